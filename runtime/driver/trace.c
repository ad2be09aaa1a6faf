/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that records calls, in the format of traces/FORMAT.md. It decides which call becomes
 * which line; the recorder owns the lines and the file.
 */
#include "driver/layer.h"

#include "base/base.h"
#include "driver/code.h"
#include "trace/line.h"
#include "trace/recorder-file.h"
#include "trace/recorder.h"
#include "trace/site.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
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

static struct trace_recorder *recorder_of(const struct layer *layer)
{
	return ((const struct trace_layer *)layer)->recorder;
}

/* What a record would only drown in. */
static bool is_quiet(enum driver_op op)
{
	return op == DRIVER_OP_halCqReportRecv || op == DRIVER_OP_halSqCqQuery;
}

static bool obtains_memory(enum driver_op op)
{
	return op == DRIVER_OP_halMemCreate || op == DRIVER_OP_halMemAlloc ||
	       op == DRIVER_OP_halMemImportFromShareableHandle ||
	       op == DRIVER_OP_halMemImportFromShareableHandleV2;
}

static bool trace_before(struct layer *layer, struct layer_call *call)
{
	struct trace_recorder *recorder = recorder_of(layer);
	struct note *note = (struct note *)(void *)call->note;
	struct trace_call *stamp = &note->call;

	if (is_quiet(call->op))
		return false;
	if (call->op == DRIVER_OP_halMemAddressFree)
		note->ending = trace_place_ends(recorder, call->with.halMemAddressFree.ptr);
	else if (call->op == DRIVER_OP_halMemFree)
		note->ending = trace_place_ends(recorder, call->with.halMemFree.pp);
	else if (call->op == DRIVER_OP_halMemRelease)
		note->ending = trace_handle_ends(recorder, call->with.halMemRelease.handle);
	if (obtains_memory(call->op))
		note->stack = npu_stack_here();
	*stamp = trace_call_begin(recorder, driver_op_name(call->op));
	stamp->simulated =
		layer->below.npusimNow(layer->driver.lower, &stamp->simulated_ps) == DRV_ERROR_NONE;
	return false;
}

/* ---- what lines need ---- */

static uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static uint64_t key_of_share(const struct MemShareHandle *share)
{
	return share == NULL ? 0 : trace_key_of_bytes(share->share_info, sizeof(share->share_info));
}

static int64_t device_of(uint32_t side, uint32_t device)
{
	return side == MEM_DEV_SIDE ? (int64_t)device : NPU_TRACE_HOST;
}

/* The copies among the entries, at the time when they are handed over. */
static void record_entry(struct trace_recorder *recorder, const struct trace_call *call,
			 const uint8_t *entry)
{
	const struct stars_sqe_header *header = (const void *)entry;
	uint64_t dst, src, bytes, type = header->type;

	if (driver_entry_copy(entry, &dst, &src, &bytes))
		trace_record_copy(recorder, call, dst, src, bytes);
	else
		trace_record_other(recorder, call, &type);
}

/* ---- calls that have returned ---- */

static void record_accesses(struct trace_recorder *r, const struct trace_call *c,
			    const struct layer_call *call)
{
	const __typeof__(call->with.halMemSetAccess) *a = &call->with.halMemSetAccess;

	for (size_t i = 0; a->desc != NULL && i < a->count && i < ACCESS_MAX; i++)
		trace_record_access(r, c, a->ptr, a->size,
				    device_of(a->desc[i].location.side, a->desc[i].location.id),
				    (uint64_t)a->desc[i].type);
}

static void record_create(struct trace_recorder *r, const struct trace_call *c,
			  const struct layer_call *call)
{
	const __typeof__(call->with.halMemCreate) *a = &call->with.halMemCreate;
	const struct drv_mem_prop *prop = a->prop;
	uint32_t page = prop != NULL ? prop->pg_type : MEM_HUGE_PAGE_TYPE;

	trace_record_create(r, c, call->code == DRV_ERROR_NONE ? *a->handle : NULL, a->size,
			    prop != NULL ? device_of(prop->side, prop->devid) : NPU_TRACE_HOST,
			    page == MEM_NORMAL_PAGE_TYPE  ? 12
			    : page == MEM_GIANT_PAGE_TYPE ? 30
							  : 21);
}

static void record_alloc(struct trace_recorder *r, const struct trace_call *c,
			 const struct layer_call *call)
{
	const __typeof__(call->with.halMemAlloc) *a = &call->with.halMemAlloc;
	bool host = (a->flag >> MEM_VIRT_BIT & 0xf) == MEM_HOST_VAL;

	trace_record_malloc(r, c, call->code == DRV_ERROR_NONE ? *a->pp : NULL, a->size,
			    host ? NPU_TRACE_HOST : (int64_t)(a->flag & MEM_DEVID_MASK),
			    (a->flag & MEM_PAGE_GIANT) != 0  ? 30
			    : (a->flag & MEM_PAGE_HUGE) != 0 ? 21
							     : 12);
}

static void record_copies(struct trace_recorder *r, const struct trace_call *c,
			  const struct layer_call *call)
{
	const __typeof__(call->with.halMemcpyBatch) *a = &call->with.halMemcpyBatch;

	if (a->dst == NULL || a->src == NULL || a->size == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		trace_record_copy(r, c, a->dst[i], a->src[i], a->size[i]);
}

/* The rest: sharing, classic memory, copies, and what has no line of its own. */
static void record_other_call(struct trace_recorder *r, const struct note *note,
			      const struct layer_call *call)
{
	const union layer_arguments *with = &call->with;
	const struct trace_call *c = &note->call;
	bool fine = call->code == DRV_ERROR_NONE;

	switch (call->op) {
	case DRIVER_OP_halMemExportToShareableHandle:
		trace_record_export(r, c, fine ? *with->halMemExportToShareableHandle.shareable : 0,
				    with->halMemExportToShareableHandle.handle,
				    with->halMemExportToShareableHandle.flags);
		break;
	case DRIVER_OP_halMemExportToShareableHandleV2:
		trace_record_export(r, c,
				    key_of_share(with->halMemExportToShareableHandleV2.shareable),
				    with->halMemExportToShareableHandleV2.handle,
				    with->halMemExportToShareableHandleV2.flags);
		break;
	case DRIVER_OP_halMemImportFromShareableHandle:
		trace_record_import(r, c, with->halMemImportFromShareableHandle.shareable,
				    with->halMemImportFromShareableHandle.dev,
				    fine ? *with->halMemImportFromShareableHandle.handle : NULL);
		break;
	case DRIVER_OP_halMemImportFromShareableHandleV2:
		trace_record_import(r, c,
				    key_of_share(with->halMemImportFromShareableHandleV2.shareable),
				    with->halMemImportFromShareableHandleV2.dev,
				    fine ? *with->halMemImportFromShareableHandleV2.handle : NULL);
		break;
	case DRIVER_OP_halMemAlloc:
		record_alloc(r, c, call);
		break;
	case DRIVER_OP_halMemFree:
		trace_record_place_end(r, c, NPU_TRACE_MFREE, &note->ending);
		break;
	case DRIVER_OP_drvMemcpy:
		trace_record_copy(r, c, with->drvMemcpy.dst, with->drvMemcpy.src,
				  with->drvMemcpy.count);
		break;
	case DRIVER_OP_halMemcpyBatch:
		record_copies(r, c, call);
		break;
	case DRIVER_OP_halMemcpy2D: {
		const struct MEMCPY2D *copy = with->halMemcpy2D.copy;

		if (copy != NULL && copy->type == DEVMM_MEMCPY2D_SYNC)
			trace_record_copy(r, c, key_of(copy->copy2d.dst), key_of(copy->copy2d.src),
					  copy->copy2d.width * copy->copy2d.height);
		break;
	}
	case DRIVER_OP_drvMemsetD8:
		trace_record_fill(r, c, with->drvMemsetD8.dst, with->drvMemsetD8.num);
		break;
	case DRIVER_OP_npusimFill:
		trace_record_fill(r, c, with->npusimFill.dst,
				  with->npusimFill.count * with->npusimFill.pattern_bytes);
		break;
	case DRIVER_OP_halSqTaskSend: {
		const struct halTaskSendInfo *sent = with->halSqTaskSend.info;

		for (uint32_t i = 0; sent != NULL && sent->sqe_addr != NULL && i < sent->sqe_num;
		     i++)
			record_entry(r, c, sent->sqe_addr + (size_t)i * STARS_SQE_BYTES);
		break;
	}
	default:
		trace_record_other(r, c, NULL);
	}
}

static void trace_after(struct layer *layer, struct layer_call *call)
{
	const union layer_arguments *with = &call->with;
	struct note *note = (struct note *)(void *)call->note;
	struct trace_recorder *r = recorder_of(layer);
	struct trace_call *c = &note->call;
	bool fine = call->code == DRV_ERROR_NONE;

	if (is_quiet(call->op))
		return;
	c->code = driver_code_acl(call->code);
	if (obtains_memory(call->op))
		c->site = trace_site(note->stack);
	switch (call->op) {
	case DRIVER_OP_halDeviceOpen:
		trace_record_device(r, c, with->halDeviceOpen.dev, false);
		break;
	case DRIVER_OP_halDeviceClose:
		trace_record_device(r, c, with->halDeviceClose.dev, true);
		break;
	case DRIVER_OP_halMemAddressReserve:
		trace_record_reserve(r, c, fine ? *with->halMemAddressReserve.ptr : NULL,
				     with->halMemAddressReserve.size,
				     key_of(with->halMemAddressReserve.addr),
				     with->halMemAddressReserve.flag);
		break;
	case DRIVER_OP_halMemAddressFree:
		trace_record_place_end(r, c, NPU_TRACE_UNRESERVE, &note->ending);
		break;
	case DRIVER_OP_halMemCreate:
		record_create(r, c, call);
		break;
	case DRIVER_OP_halMemRelease:
		trace_record_release(r, c, &note->ending);
		break;
	case DRIVER_OP_halMemRetainAllocationHandle:
		trace_record_retain(r, c, fine ? *with->halMemRetainAllocationHandle.handle : NULL,
				    with->halMemRetainAllocationHandle.ptr);
		break;
	case DRIVER_OP_halMemMap:
		trace_record_map(r, c, with->halMemMap.ptr, with->halMemMap.size,
				 with->halMemMap.handle, false);
		break;
	case DRIVER_OP_halMemMapNoAccess:
		trace_record_map(r, c, with->halMemMapNoAccess.ptr, with->halMemMapNoAccess.size,
				 with->halMemMapNoAccess.handle, true);
		break;
	case DRIVER_OP_halMemUnmap:
		trace_record_unmap(r, c, with->halMemUnmap.ptr);
		break;
	case DRIVER_OP_halMemSetAccess:
		record_accesses(r, c, call);
		break;
	default:
		record_other_call(r, note, call);
	}
}

/* ---- the object ---- */

/* What the driver says of its devices, for the head of the trace. */
static void describe(struct npu_driver *lower, char *out, size_t room)
{
	struct trace_text text = { .at = out, .end = out + room - 1 };
	char soc[64] = "", devices[32];
	uint32_t count = 0;

	trace_text_put(&text, "backend=", strlen("backend="));
	trace_text_put_value(&text, lower->name);
	trace_text_put(&text, " contract=", strlen(" contract="));
	trace_text_put_value(&text, npu_var_get(NPU_VAR_CONTRACT, NULL));
	if (npu_call(lower, halGetSocVersion, 0, soc, (uint32_t)sizeof(soc)) == DRV_ERROR_NONE &&
	    soc[0] != '\0') {
		trace_text_put(&text, " soc=", strlen(" soc="));
		trace_text_put_value(&text, soc);
	}
	if (npu_call(lower, drvGetDevNum, &count) == DRV_ERROR_NONE)
		trace_text_put(&text, devices,
			       (size_t)snprintf(devices, sizeof(devices), " devices=%u", count));
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
