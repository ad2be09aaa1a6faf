/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills as entries of a stream, for faces that have already checked the addresses. Owns
 * the splitting of long ones, and the host buffer from which a fill reads its pattern, which lives
 * until the entries are done.
 */
#include "core/object/error.h"

#include <string.h>

#define PATTERN_BYTES UINT64_C(65536)
#define ENTRIES_MAX   32u

void core_copy_entry(union core_entry *entry, uint64_t dst, uint64_t src, uint64_t bytes,
		     bool on_device)
{
	memset(entry, 0, sizeof(*entry));
	entry->header.type = (on_device ? STARS_SQE_SDMA : STARS_SQE_PCIE_DMA) & 0x3f;
	if (on_device) {
		entry->sdma.control = STARS_SDMA_COPY_CONTROL;
		entry->sdma.length = (uint32_t)bytes;
		entry->sdma.src_addr_low = (uint32_t)src;
		entry->sdma.src_addr_high = (uint32_t)(src >> 32);
		entry->sdma.dst_addr_low = (uint32_t)dst;
		entry->sdma.dst_addr_high = (uint32_t)(dst >> 32);
	} else {
		entry->dma.dst = dst;
		entry->dma.src = src;
		entry->dma.length = bytes;
	}
}

int core_stream_copy(struct core_stream *stream, uint64_t dst, uint64_t src, uint64_t bytes,
		     bool on_device, const char *call)
{
	int code = CORE_OK;

	for (uint64_t done = 0, now; done < bytes && code == CORE_OK; done += now) {
		union core_entry entry;

		now = bytes - done < CORE_PIECE_BYTES ? bytes - done : CORE_PIECE_BYTES;
		core_copy_entry(&entry, dst + done, src + done, now, on_device);
		code = core_stream_send(stream, &entry, 1, NULL, NULL, call);
	}
	return code;
}

static void free_buffer(void *buffer, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	core_call(halMemFree, buffer);
}

/* A piece of the pattern from the host, then the device doubles what it has. */
int core_stream_fill(struct core_stream *stream, uint64_t dst, uint32_t pattern, uint64_t bytes,
		     const char *call)
{
	uint64_t piece = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
	struct npu_driver *drv = core_driver();
	union core_entry entries[ENTRIES_MAX];
	void *buffer = NULL;
	unsigned count = 1;
	int code;

	if (drv == NULL)
		return CORE_API_INTERNAL;
	code = core_result(call,
			   npu_call(drv, halMemAlloc, &buffer, piece,
				    (MEM_HOST_VAL << MEM_VIRT_BIT) |
					    ((uint64_t)RUNTIME_MODULE_ID << MEM_MODULE_ID_BIT)));
	if (code != CORE_OK)
		return code;
	core_order(0, NPU_ORDER_OWN, 0, (uintptr_t)buffer);
	for (uint64_t i = 0; i < piece; i++)
		((uint8_t *)buffer)[i] = (uint8_t)(pattern >> (i % 4 * 8));
	core_copy_entry(&entries[0], dst, (uintptr_t)buffer, piece, false);
	for (uint64_t done = piece, now; done < bytes && code == CORE_OK; done += now) {
		now = bytes - done < done ? bytes - done : done;
		now = now < CORE_PIECE_BYTES ? now : CORE_PIECE_BYTES;
		if (count == ENTRIES_MAX) {
			code = core_stream_send(stream, entries, count, NULL, NULL, call);
			count = 0;
		}
		core_copy_entry(&entries[count++], dst + done, dst, now, true);
	}
	code = code ?: core_stream_send(stream, entries, count, free_buffer, buffer, call);
	if (code != CORE_OK)
		free_buffer(buffer, NULL);
	return code;
}
