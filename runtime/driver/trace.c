/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that records calls, in the format of traces/FORMAT.md. It decides which call becomes
 * which line; the recorder owns the lines and the file.
 */
#include "driver/layer.h"

#include "base/base.h"
#include "trace/line.h"
#include "trace/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_MAX 64u /* descriptors of one call that get a line */

struct trace_layer {
	struct layer layer;
	struct trace_recorder *recorder;
};

/* What the hook before a call leaves for the one after it. */
struct note {
	struct trace_call call;
	struct trace_ending ending;
	npu_stack stack; /* of what obtains memory */
};
_Static_assert(sizeof(struct note) <= sizeof(((struct layer_call *)0)->note), "a note fits");

/* What a record would only drown in. */
static bool is_quiet(enum driver_op op)
{
	return op == DRIVER_OP_halCqReportRecv || op == DRIVER_OP_halSqCqQuery ||
	       op == DRIVER_OP_halCqReportIrqWait || op == DRIVER_OP_halCqReportGet;
}

static bool obtains_memory(enum driver_op op)
{
	return op == DRIVER_OP_halMemCreate || op == DRIVER_OP_halMemAlloc ||
	       op == DRIVER_OP_halMemImportFromShareableHandle ||
	       op == DRIVER_OP_halMemImportFromShareableHandleV2;
}

static bool trace_before(struct layer *layer, struct layer_call *call)
{
	struct trace_recorder *recorder = ((struct trace_layer *)layer)->recorder;
	struct note *note = (struct note *)(void *)call->note;
	struct trace_call *stamp = &note->call;

	if (is_quiet(call->op))
		return false;
	if (call->op == DRIVER_OP_halMemAddressFree)
		note->ending =
			trace_ends(recorder, NPU_TRACE_UNRESERVE, call->with.halMemAddressFree.ptr);
	else if (call->op == DRIVER_OP_halMemFree)
		note->ending = trace_ends(recorder, NPU_TRACE_MFREE, call->with.halMemFree.pp);
	else if (call->op == DRIVER_OP_halMemRelease)
		note->ending =
			trace_ends(recorder, NPU_TRACE_RELEASE, call->with.halMemRelease.handle);
	if (obtains_memory(call->op))
		note->stack = npu_stack_here();
	*stamp = trace_call_begin(recorder, driver_op_name(call->op));
	stamp->simulated =
		layer->below.npusimNow(layer->driver.lower, &stamp->simulated_ps) == DRV_ERROR_NONE;
	return false;
}

static uint64_t key_of_share(const struct MemShareHandle *share)
{
	return share == NULL ? 0 : trace_key_of_bytes(share->share_info, sizeof(share->share_info));
}

static int64_t device_of(uint32_t side, uint32_t device)
{
	return side == MEM_DEV_SIDE ? (int64_t)device : NPU_TRACE_HOST;
}

/* A line of the call `c`, to the recorder `r`. */
#define RECORD(verb, ...) TRACE_RECORD(r, c, verb, __VA_ARGS__)
#define ARGUMENTS(name)   const __typeof__(call->with.name) *a = &call->with.name

static void record_accesses(struct trace_recorder *r, struct trace_call *c,
			    const struct layer_call *call)
{
	ARGUMENTS(halMemSetAccess);

	for (size_t i = 0; a->desc != NULL && i < a->count && i < ACCESS_MAX; i++)
		RECORD(ACCESS, .name = TRACE_AT(a->ptr), .size = a->size,
		       .device = device_of(a->desc[i].location.side, a->desc[i].location.id),
		       .flags = (uint64_t)a->desc[i].type);
}

static void record_create(struct trace_recorder *r, struct trace_call *c,
			  const struct layer_call *call)
{
	ARGUMENTS(halMemCreate);
	const struct drv_mem_prop *prop = a->prop;
	uint32_t page = prop != NULL ? prop->pg_type : MEM_HUGE_PAGE_TYPE;

	RECORD(CREATE, .name = TRACE_AT(call->code == DRV_ERROR_NONE ? *a->handle : NULL),
	       .size = a->size,
	       .device = prop != NULL ? device_of(prop->side, prop->devid) : NPU_TRACE_HOST,
	       .page_lg2 = page == MEM_NORMAL_PAGE_TYPE  ? 12
			   : page == MEM_GIANT_PAGE_TYPE ? 30
							 : 21);
}

static void record_alloc(struct trace_recorder *r, struct trace_call *c,
			 const struct layer_call *call)
{
	ARGUMENTS(halMemAlloc);
	bool host = (a->flag >> MEM_VIRT_BIT & 0xf) == MEM_HOST_VAL;

	RECORD(MALLOC, .name = TRACE_AT(call->code == DRV_ERROR_NONE ? *a->pp : NULL),
	       .size = a->size,
	       .device = host ? NPU_TRACE_HOST : (int64_t)(a->flag & MEM_DEVID_MASK),
	       .page_lg2 = (a->flag & MEM_PAGE_GIANT) != 0  ? 30
			   : (a->flag & MEM_PAGE_HUGE) != 0 ? 21
							    : 12);
}

static void record_copies(struct trace_recorder *r, struct trace_call *c,
			  const struct layer_call *call)
{
	ARGUMENTS(halMemcpyBatch);

	if (a->dst == NULL || a->src == NULL || a->size == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		RECORD(COPY, .at = TRACE_AT(a->dst[i]), .from = TRACE_AT(a->src[i]),
		       .size = a->size[i]);
}

static void record_rows(struct trace_recorder *r, struct trace_call *c, const struct MEMCPY2D *copy)
{
	const struct drvMem2D *rows;
	uint64_t done;

	if (copy != NULL && copy->type == DEVMM_MEMCPY2D_SYNC) {
		RECORD(COPY, .at = TRACE_AT(copy->copy2d.dst), .from = TRACE_AT(copy->copy2d.src),
		       .size = copy->copy2d.width * copy->copy2d.height);
		return;
	}
	rows = copy != NULL && copy->type == DEVMM_MEMCPY2D_ASYNC_CONVERT && c->code == 0
		       ? &copy->copy2dAsync.copy2dInfo
		       : NULL;
	if (rows == NULL || rows->width == 0 || copy->copy2dAsync.dmaAddr == NULL) {
		TRACE_RECORD(r, c, CALL);
		return;
	}
	done = rows->fixed_size / rows->width; /* which the descriptors leave out */
	RECORD(COPY, .at = TRACE_AT((uintptr_t)rows->dst + done * rows->dpitch),
	       .from = TRACE_AT((uintptr_t)rows->src + done * rows->spitch),
	       .size = copy->copy2dAsync.dmaAddr->fixed_size);
}

/* The copies among the entries, at the time when they are handed over. */
static void record_sent(struct trace_recorder *r, struct trace_call *c,
			const struct halTaskSendInfo *sent)
{
	for (uint32_t i = 0; sent != NULL && sent->sqe_addr != NULL && i < sent->sqe_num; i++) {
		union stars_sqe entry = driver_entry(sent, i);
		uint64_t dst, src, bytes;

		if (driver_entry_copy(&entry, &dst, &src, &bytes))
			RECORD(COPY, .at = TRACE_AT(dst), .from = TRACE_AT(src), .size = bytes);
		else
			RECORD(CALL, .has = NPU_TRACE_HAS_TYPE, .type = entry.header.type);
	}
}

/* What is written of a call, with its arguments as `a`. */
#define LINES(name, ...)         \
	case DRIVER_OP_##name: { \
		ARGUMENTS(name); \
		(void)a;         \
		__VA_ARGS__;     \
		break;           \
	}

static void trace_after(struct layer *layer, struct layer_call *call)
{
	struct note *note = (struct note *)(void *)call->note;
	struct trace_recorder *r = ((struct trace_layer *)layer)->recorder;
	struct trace_call *c = &note->call;
	bool fine = call->code == DRV_ERROR_NONE;

	if (is_quiet(call->op))
		return;
	trace_call_end(r, c);
	c->code = driver_code_acl(call->code);
	if (obtains_memory(call->op))
		c->site = npu_stack_lines(note->stack);
	switch (call->op) {
		LINES(halDeviceOpen, RECORD(DEVICE_SET, .device = a->dev))
		LINES(halDeviceClose, RECORD(DEVICE_RESET, .device = a->dev))
		LINES(halMemAddressReserve,
		      RECORD(RESERVE, .name = TRACE_AT(fine ? *a->ptr : NULL), .size = a->size,
			     .hint = (uintptr_t)a->addr, .flags = a->flag))
		LINES(halMemAddressFree, trace_record_end(r, c, &note->ending))
		LINES(halMemCreate, record_create(r, c, call))
		LINES(halMemRelease, trace_record_end(r, c, &note->ending))
		LINES(halMemRetainAllocationHandle,
		      RECORD(RETAIN, .name = TRACE_AT(fine ? *a->handle : NULL),
			     .at = TRACE_AT(a->ptr)))
		LINES(halMemMap, RECORD(MAP, .name = TRACE_AT(a->ptr), .size = a->size,
					.handle = TRACE_AT(a->handle)))
		LINES(halMemMapNoAccess,
		      RECORD(MAP, .has = NPU_TRACE_HAS_NO_ACCESS, .name = TRACE_AT(a->ptr),
			     .size = a->size, .handle = TRACE_AT(a->handle)))
		LINES(halMemUnmap, RECORD(UNMAP, .name = TRACE_AT(a->ptr)))
		LINES(halMemSetAccess, record_accesses(r, c, call))
		LINES(halMemExportToShareableHandle,
		      RECORD(EXPORT, .key = fine ? *a->shareable : 0, .handle = TRACE_AT(a->handle),
			     .flags = a->flags))
		LINES(halMemExportToShareableHandleV2,
		      RECORD(EXPORT, .key = key_of_share(a->shareable),
			     .handle = TRACE_AT(a->handle), .flags = a->flags))
		LINES(halMemImportFromShareableHandle,
		      RECORD(IMPORT, .name = TRACE_AT(fine ? *a->handle : NULL),
			     .key = a->shareable, .device = a->dev))
		LINES(halMemImportFromShareableHandleV2,
		      RECORD(IMPORT, .name = TRACE_AT(fine ? *a->handle : NULL),
			     .key = key_of_share(a->shareable), .device = a->dev))
		LINES(halMemAlloc, record_alloc(r, c, call))
		LINES(halMemFree, trace_record_end(r, c, &note->ending))
		LINES(drvMemcpy, RECORD(COPY, .at = TRACE_AT(a->dst), .from = TRACE_AT(a->src),
					.size = a->count))
		LINES(halMemcpyBatch, record_copies(r, c, call))
		LINES(halMemcpy2D, record_rows(r, c, a->copy))
		LINES(drvMemsetD8, RECORD(FILL, .at = TRACE_AT(a->dst), .size = a->num))
		LINES(npusimFill,
		      RECORD(FILL, .at = TRACE_AT(a->dst), .size = a->count * a->pattern_bytes))
		LINES(halSqTaskSend, record_sent(r, c, a->info))
	default:
		TRACE_RECORD(r, c, CALL);
	}
}

static void put(struct trace_text *text, const char *key, const char *value)
{
	trace_text_word(text, key);
	trace_text_put_value(text, value);
}

/* What the driver says of its devices, for the head of the trace. */
static void describe(struct npu_driver *lower, char *out, size_t room)
{
	struct trace_text text = { .at = out, .end = out + room - 1 };
	char soc[64] = "";
	uint32_t count = 0;

	put(&text, "backend=", lower->name);
	put(&text, " contract=", npu_var_get(NPU_VAR_CONTRACT, NULL));
	if (npu_call(lower, halGetSocVersion, 0, soc, (uint32_t)sizeof(soc)) == DRV_ERROR_NONE &&
	    soc[0] != '\0')
		put(&text, " soc=", soc);
	if (npu_call(lower, drvGetDevNum, &count) == DRV_ERROR_NONE)
		put(&text, " devices=", npu_text("%u", count));
	*text.at = '\0';
}

static void trace_end(struct layer *layer)
{
	struct trace_layer *trace = (struct trace_layer *)layer;

	trace_recorder_close(trace->recorder);
	free(trace);
}

bool trace_layer_check(const char *path, char **error)
{
	const char *problem = trace_path_problem(path);

	if (problem == NULL)
		return true;
	npu_text_add(error, "NPUSIM_TRACE=%s cannot be written: %s", path, problem);
	return false;
}

struct npu_driver *trace_layer_open(struct npu_driver *lower, const char *path, char **error)
{
	static const struct layer_hooks hooks = { trace_before, trace_after, trace_end };
	struct trace_layer *trace;
	char about[256];

	*error = NULL;
	if (dlsym(RTLD_DEFAULT, "npusim_record_preloaded") != NULL)
		return lower;
	if (!trace_layer_check(path, error))
		return NULL;
	trace = calloc(1, sizeof(*trace));
	describe(lower, about, sizeof(about));
	if (trace != NULL)
		trace->recorder = trace_recorder_open(path, about);
	if (trace == NULL || trace->recorder == NULL) {
		npu_text_add(error, "NPUSIM_TRACE=%s cannot be written: %s", path, strerror(errno));
		free(trace);
		return NULL;
	}
	npu_stack_use(0);
	layer_init(&trace->layer, "trace", lower, &hooks);
	return &trace->layer.driver;
}
