/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of the driver's functions, as users write them in NPUSIM_FAULT.
 */
#include "driver/layer.h"

#include "base/base.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	bool is_call;
} ops[] = {
#define NPU_OP(result, missing, op, ...) { #op, false },
#define NPU_QUERY(op, ...)               { #op, false },
#define NPU_CALL(op, ...)                { #op, true },
#include "npusim/driver-ops.h"
};

const char *driver_op_name(enum driver_op op)
{
	return (unsigned)op < DRIVER_OP_COUNT ? ops[op].name : "?";
}

bool driver_op_is_call(enum driver_op op)
{
	return (unsigned)op < DRIVER_OP_COUNT && ops[op].is_call;
}

/* The letters that tell names apart: "halMemCreate", "mem_create" and "MEMCREATE" are one. */
static void plain_name(const char *name, char *out, size_t room)
{
	size_t length = 0;

	if (strncasecmp(name, "hal", 3) == 0 || strncasecmp(name, "drv", 3) == 0)
		name += name[3] == '_' ? 4 : 3;
	for (; *name != '\0' && length + 1 < room; name++)
		if (isalnum((unsigned char)*name))
			out[length++] = (char)tolower((unsigned char)*name);
	out[length] = '\0';
}

enum driver_op driver_op_by_name(const char *name, const char **out_nearest)
{
	char wanted[64], plain[DRIVER_OP_COUNT][64];
	const char *all[DRIVER_OP_COUNT], *nearest;

	plain_name(name, wanted, sizeof(wanted));
	for (int i = 0; i < DRIVER_OP_COUNT; i++) {
		plain_name(ops[i].name, plain[i], sizeof(plain[i]));
		if (strcmp(wanted, plain[i]) == 0)
			return (enum driver_op)i;
		all[i] = plain[i];
	}
	nearest = npu_nearest(wanted, all, DRIVER_OP_COUNT);
	*out_nearest =
		nearest == NULL ? NULL : ops[(size_t)(nearest - plain[0]) / sizeof(plain[0])].name;
	return DRIVER_OP_COUNT;
}

bool driver_entry_copy(const uint8_t *entry, uint64_t *dst, uint64_t *src, uint64_t *bytes)
{
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe pcie;

	memcpy(&sdma, entry, sizeof(sdma));
	memcpy(&pcie, entry, sizeof(pcie));
	if (sdma.header.type == STARS_SQE_SDMA) {
		*dst = (uint64_t)sdma.dst_addr_high << 32 | sdma.dst_addr_low;
		*src = (uint64_t)sdma.src_addr_high << 32 | sdma.src_addr_low;
		*bytes = sdma.length;
	} else if (sdma.header.type == STARS_SQE_PCIE_DMA) {
		*dst = pcie.dst;
		*src = pcie.src;
		*bytes = pcie.length;
	} else {
		return false;
	}
	return true;
}

void driver_entry_set_copy(uint8_t *entry, uint64_t dst, uint64_t src)
{
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe pcie;

	memcpy(&sdma, entry, sizeof(sdma));
	memcpy(&pcie, entry, sizeof(pcie));
	if (sdma.header.type == STARS_SQE_SDMA) {
		sdma.dst_addr_low = (uint32_t)dst;
		sdma.dst_addr_high = (uint32_t)(dst >> 32);
		sdma.src_addr_low = (uint32_t)src;
		sdma.src_addr_high = (uint32_t)(src >> 32);
		memcpy(entry, &sdma, sizeof(sdma));
	} else {
		pcie.dst = dst;
		pcie.src = src;
		memcpy(entry, &pcie, sizeof(pcie));
	}
}
