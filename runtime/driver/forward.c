/* SPDX-License-Identifier: Apache-2.0
 *
 * The one forwarding driver, on which every layer is built, and the answers for functions that a
 * driver lacks. The names of the driver's functions, and one table of its codes: their names, and
 * the aclErrors to which CANN's runtime translates them.
 */
#include "driver/layer.h"

#include "base/base.h"
#include "base/lock.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The parameters of each stand unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NPU_OP(result, missing, op, ...)                      \
	static result missing_##op NPU_WITH_SELF(__VA_ARGS__) \
	{                                                     \
		return missing;                               \
	}
#include "npusim/driver-ops.h"

static void fill_gaps(struct npu_driver *drv, size_t size)
{
#define NPU_OP(result, missing, op, ...)                                                  \
	if (offsetof(struct npu_driver, op) + sizeof(drv->op) <= size && drv->op == NULL) \
		drv->op = missing_##op;
#include "npusim/driver-ops.h"
}

/* To be called by the functions of a layer's table: self is its first member. */
static struct layer *layer_of(struct npu_driver *self)
{
	return (struct layer *)self;
}

#define FORWARD(result, op, ...)                                                    \
	static result forward_##op NPU_WITH_SELF(__VA_ARGS__)                       \
	{                                                                           \
		return layer_of(self)->below.op NPU_TO(self->lower, ##__VA_ARGS__); \
	}
#define NPU_OP(result, missing, op, ...) FORWARD(result, op, ##__VA_ARGS__)
#define NPU_QUERY(op, ...)               FORWARD(drvError_t, op, ##__VA_ARGS__)
#define NPU_CALL(name, ...)                                                               \
	static drvError_t forward_##name NPU_WITH_SELF(__VA_ARGS__)                       \
	{                                                                                 \
		UNCANCELLED;                                                              \
		struct layer *layer = layer_of(self);                                     \
		const struct layer_hooks *hooks = layer->hooks;                           \
		struct layer_call call = { .op = DRIVER_OP_##name,                        \
					   .with.name = { NPU_ARGS(__VA_ARGS__) } };      \
                                                                                          \
		if (hooks->before == NULL || !hooks->before(layer, &call))                \
			call.code = layer->below.name NPU_TO(self->lower, ##__VA_ARGS__); \
		if (hooks->after != NULL)                                                 \
			hooks->after(layer, &call);                                       \
		return call.code;                                                         \
	}
#include "npusim/driver-ops.h"

static void close_layer(struct npu_driver *self)
{
	struct layer *layer = layer_of(self);

	layer->hooks->end(layer);
}

static const struct npu_driver forward = {
	.abi = NPU_DRIVER_ABI,
	.size = sizeof(struct npu_driver),
	.close = close_layer,
#define NPU_OP(result, missing, op, ...) .op = forward_##op,
#include "npusim/driver-ops.h"
};

static void free_layer(struct layer *layer)
{
	free(layer);
}

void layer_init(struct layer *layer, const char *name, struct npu_driver *lower,
		const struct layer_hooks *hooks)
{
	static const struct layer_hooks none = { .end = free_layer };

	memset(&layer->below, 0, sizeof(layer->below));
	memcpy(&layer->below, lower,
	       lower->size < sizeof(layer->below) ? lower->size : sizeof(layer->below));
	fill_gaps(&layer->below, sizeof(layer->below));
	layer->driver = forward;
	layer->driver.name = name;
	layer->driver.caps = lower->caps;
	layer->driver.lower = lower;
	layer->hooks = hooks ?: &none;
}

struct npu_driver *npu_driver_complete(struct npu_driver *drv)
{
	struct layer *layer;

	/* What lies beyond `size` is not the driver's memory. */
	fill_gaps(drv, drv->size);
	if (drv->size >= sizeof(*drv))
		return drv;
	layer = malloc(sizeof(*layer));
	if (layer == NULL)
		return NULL;
	layer_init(layer, drv->name, drv, NULL);
	return &layer->driver;
}

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

bool driver_entry_copy(const union stars_sqe *entry, uint64_t *dst, uint64_t *src, uint64_t *bytes)
{
	const struct stars_sdma_sqe *sdma = &entry->sdma;

	if (entry->header.type == STARS_SQE_SDMA) {
		*dst = (uint64_t)sdma->dst_addr_high << 32 | sdma->dst_addr_low;
		*src = (uint64_t)sdma->src_addr_high << 32 | sdma->src_addr_low;
		*bytes = sdma->length;
	} else if (entry->header.type == STARS_SQE_PCIE_DMA &&
		   (entry->dma.convert & STARS_DMA_DESCRIPTORS) == 0) {
		*dst = entry->dma.dst;
		*src = entry->dma.src;
		*bytes = entry->dma.length;
	} else {
		return false;
	}
	return true;
}

void driver_entry_set_copy(union stars_sqe *entry, uint64_t dst, uint64_t src)
{
	if (entry->header.type == STARS_SQE_SDMA) {
		entry->sdma.dst_addr_low = (uint32_t)dst;
		entry->sdma.dst_addr_high = (uint32_t)(dst >> 32);
		entry->sdma.src_addr_low = (uint32_t)src;
		entry->sdma.src_addr_high = (uint32_t)(src >> 32);
	} else {
		entry->dma.dst = dst;
		entry->dma.src = src;
	}
}

/* ---- codes: what is not in the table is the driver's internal error, as in CANN ---- */

#define INTERNAL 507899 /* ACL_ERROR_RT_DRV_INTERNAL_ERROR */

static const struct code {
	drvError_t driver;
	int acl;
	const char *name;
} table[] = {
	{ DRV_ERROR_NONE, 0, "no error" },
	{ DRV_ERROR_NO_DEVICE, 207004, "no such device" },
	{ DRV_ERROR_INVALID_DEVICE, 107001, "invalid device" },
	{ DRV_ERROR_INVALID_VALUE, 107000, "invalid value" },
	{ DRV_ERROR_INVALID_HANDLE, 107017, "invalid handle" },
	{ DRV_ERROR_INVALID_MALLOC_TYPE, 107018, "invalid kind of memory" },
	{ DRV_ERROR_OUT_OF_MEMORY, 207001, "out of memory" },
	{ DRV_ERROR_REPEATED_INIT, 207015, "initialised twice" },
	{ DRV_ERROR_NO_RESOURCES, 207005, "no resources" },
	{ DRV_ERROR_WAIT_TIMEOUT, 507012, "time-out" },
	{ DRV_ERROR_IOCRL_FAIL, INTERNAL, "refused by the driver" },
	{ DRV_ERROR_SOCKET_CLOSE, 507901, "connection closed" },
	{ DRV_ERROR_SEND_MESG, 507051, "message not sent" },
	{ DRV_ERROR_BUS_DOWN, 507010, "lost heartbeat" },
	{ DRV_ERROR_OVER_LIMIT, 207012, "over the limit" },
	{ DRV_ERROR_MALLOC_FAIL, 207005, "no memory of the host" },
	{ DRV_ERROR_DEV_PROCESS_HANG, 507000, "device process hangs" },
	{ DRV_ERROR_OPER_NOT_PERMITTED, 207006, "not permitted" },
	{ DRV_ERROR_NO_EVENT_RESOURCES, 207007, "no event left" },
	{ DRV_ERROR_NO_STREAM_RESOURCES, 207008, "no stream left" },
	{ DRV_ERROR_NO_NOTIFY_RESOURCES, 207009, "no notify left" },
	{ DRV_ERROR_NO_MODEL_RESOURCES, 207010, "no model left" },
	{ DRV_ERROR_MEMORY_OPT_FAIL, 107000, "memory operation failed" },
	{ DRV_ERROR_COPY_USER_FAIL, 507052, "copy from or to the program failed" },
	{ DRV_ERROR_QUEUE_EMPTY, 207013, "queue empty" },
	{ DRV_ERROR_QUEUE_FULL, 207014, "queue full" },
	{ DRV_ERROR_CDQ_ABNORMAL, 507037, "queue broken" },
	{ DRV_ERROR_CDQ_NOT_EXIST, 107000, "no such queue" },
	{ DRV_ERROR_NO_CDQ_RESOURCES, 207011, "no queue left" },
	{ DRV_ERROR_RESUME, 207020, "time-out of the driver" },
	{ DRV_ERROR_NOT_SUPPORT, 207000, "not supported" },
	/* Known to the driver, but to CANN's runtime one and the same. */
	{ DRV_ERROR_INNER_ERR, INTERNAL, "internal error" },
	{ DRV_ERROR_PARA_ERROR, INTERNAL, "invalid for the driver" },
	{ DRV_ERROR_UNINIT, INTERNAL, "not initialised" },
	{ DRV_ERROR_NOT_EXIST, INTERNAL, "does not exist" },
	{ DRV_ERROR_BUSY, INTERNAL, "busy" },
	{ DRV_ERROR_FILE_OPS, INTERNAL, "file operation failed" },
	{ DRV_ERROR_PROCESS_EXIT, INTERNAL, "not this process's: it was forked, or is ending" },
	{ DRV_ERROR_TRY_AGAIN, INTERNAL, "try again" },
};

static const struct code *code_of(drvError_t code)
{
	static const struct code unknown = { 0, INTERNAL, NULL };

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].driver == code)
			return &table[i];
	return &unknown;
}

int driver_code_acl(drvError_t code)
{
	return code_of(code)->acl;
}

const char *driver_code_name(drvError_t code)
{
	return code_of(code)->name;
}
