/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that records the calls it forwards, in the format of traces/FORMAT.md. What the lines
 * are, and the file, is the recorder's; here is which call becomes which line.
 */
#include "core-private.h"
#include "driver-wrap.h"
#include "trace/line.h"
#include "trace/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trace_driver {
	struct npu_driver driver;
	struct trace_recorder *recorder;
};

static struct trace_recorder *recorder_of(struct npu_driver *self)
{
	return ((struct trace_driver *)self)->recorder;
}

static struct trace_call begin(struct npu_driver *self, enum driver_op op)
{
	struct trace_call call = trace_call_begin(recorder_of(self), driver_op_name(op));

	call.simulated = npu_call(self->lower, npusimNow, &call.simulated_ps) == DRV_ERROR_NONE;
	return call;
}

static int32_t answer_of(drvError_t code)
{
	return code == DRV_ERROR_NONE ? 0 : core_error_of(code);
}

/* `call` begins, `expression` is the call, and gives `code`. */
#define CALL(op, ...)                                               \
	struct trace_recorder *recorder = recorder_of(self);        \
	struct trace_call call = begin(self, DRIVER_OP_##op);       \
	drvError_t code = npu_call(self->lower, op, ##__VA_ARGS__); \
                                                                    \
	call.code = answer_of(code)

static uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static uint32_t page_lg2_of(uint32_t page_type)
{
	return page_type == MEM_NORMAL_PAGE_TYPE ? 12 : page_type == MEM_GIANT_PAGE_TYPE ? 30 : 21;
}

/* ---- reservations ---- */

static drvError_t traced_reserve(struct npu_driver *self, void **ptr, size_t size, size_t alignment,
				 void *addr, uint64_t flag)
{
	CALL(halMemAddressReserve, ptr, size, alignment, addr, flag);
	trace_record_reserve(recorder, &call, code == DRV_ERROR_NONE ? *ptr : NULL, size,
			     key_of(addr), flag);
	return code;
}

static drvError_t traced_unreserve(struct npu_driver *self, void *ptr)
{
	struct trace_ending ending = trace_place_ends(recorder_of(self), ptr);

	CALL(halMemAddressFree, ptr);
	trace_record_place_end(recorder, &call, NPU_TRACE_UNRESERVE, &ending);
	return code;
}

/* ---- handles ---- */

static drvError_t traced_create(struct npu_driver *self, drv_mem_handle_t **handle, size_t size,
				const struct drv_mem_prop *prop, uint64_t flag)
{
	int64_t device =
		prop != NULL && prop->side == MEM_DEV_SIDE ? (int64_t)prop->devid : NPU_TRACE_HOST;

	CALL(halMemCreate, handle, size, prop, flag);
	trace_record_create(recorder, &call, code == DRV_ERROR_NONE ? *handle : NULL, size, device,
			    page_lg2_of(prop != NULL ? prop->pg_type : MEM_HUGE_PAGE_TYPE));
	return code;
}

static drvError_t traced_release(struct npu_driver *self, drv_mem_handle_t *handle)
{
	struct trace_ending ending = trace_handle_ends(recorder_of(self), handle);

	CALL(halMemRelease, handle);
	trace_record_release(recorder, &call, &ending);
	return code;
}

static drvError_t traced_retain(struct npu_driver *self, drv_mem_handle_t **handle, void *ptr)
{
	CALL(halMemRetainAllocationHandle, handle, ptr);
	trace_record_retain(recorder, &call, code == DRV_ERROR_NONE ? *handle : NULL, ptr);
	return code;
}

/* ---- mappings ---- */

static drvError_t traced_map(struct npu_driver *self, void *ptr, size_t size, size_t offset,
			     drv_mem_handle_t *handle, uint64_t flag)
{
	CALL(halMemMap, ptr, size, offset, handle, flag);
	trace_record_map(recorder, &call, ptr, size, handle, false);
	return code;
}

static drvError_t traced_map_no_access(struct npu_driver *self, void *ptr, size_t size,
				       size_t offset, drv_mem_handle_t *handle, uint64_t flag)
{
	CALL(halMemMapNoAccess, ptr, size, offset, handle, flag);
	trace_record_map(recorder, &call, ptr, size, handle, true);
	return code;
}

static drvError_t traced_unmap(struct npu_driver *self, void *ptr)
{
	CALL(halMemUnmap, ptr);
	trace_record_unmap(recorder, &call, ptr);
	return code;
}

static drvError_t traced_set_access(struct npu_driver *self, void *ptr, size_t size,
				    struct drv_mem_access_desc *desc, size_t count)
{
	CALL(halMemSetAccess, ptr, size, desc, count);
	for (size_t i = 0; desc != NULL && i < count && i < CORE_DEVICE_MAX; i++)
		trace_record_access(recorder, &call, ptr, size,
				    desc[i].location.side == MEM_DEV_SIDE
					    ? (int64_t)desc[i].location.id
					    : NPU_TRACE_HOST,
				    (uint64_t)desc[i].type);
	return code;
}

/* ---- sharing ---- */

static uint64_t key_of_share(const struct MemShareHandle *share)
{
	return share == NULL ? 0 : trace_key_of_bytes(share->share_info, sizeof(share->share_info));
}

static drvError_t traced_export(struct npu_driver *self, drv_mem_handle_t *handle,
				drv_mem_handle_type type, uint64_t flags, uint64_t *share)
{
	CALL(halMemExportToShareableHandle, handle, type, flags, share);
	trace_record_export(recorder, &call, code == DRV_ERROR_NONE ? *share : 0, handle, flags);
	return code;
}

static drvError_t traced_export_v2(struct npu_driver *self, drv_mem_handle_t *handle,
				   drv_mem_handle_type type, uint64_t flags,
				   struct MemShareHandle *share)
{
	CALL(halMemExportToShareableHandleV2, handle, type, flags, share);
	trace_record_export(recorder, &call, key_of_share(share), handle, flags);
	return code;
}

static drvError_t traced_import(struct npu_driver *self, uint64_t share, uint32_t dev,
				drv_mem_handle_t **handle)
{
	CALL(halMemImportFromShareableHandle, share, dev, handle);
	trace_record_import(recorder, &call, share, dev, code == DRV_ERROR_NONE ? *handle : NULL);
	return code;
}

static drvError_t traced_import_v2(struct npu_driver *self, drv_mem_handle_type type,
				   struct MemShareHandle *share, uint32_t dev,
				   drv_mem_handle_t **handle)
{
	CALL(halMemImportFromShareableHandleV2, type, share, dev, handle);
	trace_record_import(recorder, &call, key_of_share(share), dev,
			    code == DRV_ERROR_NONE ? *handle : NULL);
	return code;
}

/* ---- classic memory and copies ---- */

static drvError_t traced_alloc(struct npu_driver *self, void **pp, unsigned long long size,
			       unsigned long long flag)
{
	bool host = (flag >> MEM_VIRT_BIT & 0xf) == MEM_HOST_VAL;

	CALL(halMemAlloc, pp, size, flag);
	trace_record_malloc(recorder, &call, code == DRV_ERROR_NONE ? *pp : NULL, size,
			    host ? NPU_TRACE_HOST : (int64_t)(flag & MEM_DEVID_MASK),
			    (flag & MEM_PAGE_GIANT) != 0  ? 30
			    : (flag & MEM_PAGE_HUGE) != 0 ? 21
							  : 12);
	return code;
}

static drvError_t traced_free(struct npu_driver *self, void *pp)
{
	struct trace_ending ending = trace_place_ends(recorder_of(self), pp);

	CALL(halMemFree, pp);
	trace_record_place_end(recorder, &call, NPU_TRACE_MFREE, &ending);
	return code;
}

static drvError_t traced_copy(struct npu_driver *self, DVdeviceptr dst, size_t dest_max,
			      DVdeviceptr src, size_t count)
{
	CALL(drvMemcpy, dst, dest_max, src, count);
	trace_record_copy(recorder, &call, dst, src, count);
	return code;
}

static drvError_t traced_copy_batch(struct npu_driver *self, uint64_t *dst, uint64_t *src,
				    size_t *size, size_t count)
{
	CALL(halMemcpyBatch, dst, src, size, count);
	for (size_t i = 0; i < count && dst != NULL && src != NULL && size != NULL; i++)
		trace_record_copy(recorder, &call, dst[i], src[i], size[i]);
	return code;
}

static drvError_t traced_copy_2d(struct npu_driver *self, struct MEMCPY2D *copy)
{
	CALL(halMemcpy2D, copy);
	if (copy != NULL && copy->type == DEVMM_MEMCPY2D_SYNC)
		trace_record_copy(recorder, &call, key_of(copy->copy2d.dst),
				  key_of(copy->copy2d.src),
				  copy->copy2d.width * copy->copy2d.height);
	return code;
}

static drvError_t traced_fill(struct npu_driver *self, DVdeviceptr dst, size_t dest_max,
			      uint8_t value, size_t num)
{
	CALL(drvMemsetD8, dst, dest_max, value, num);
	trace_record_fill(recorder, &call, dst, num);
	return code;
}

static drvError_t traced_fill_pattern(struct npu_driver *self, DVdeviceptr dst, uint32_t pattern,
				      unsigned pattern_bytes, size_t count)
{
	CALL(npusimFill, dst, pattern, pattern_bytes, count);
	trace_record_fill(recorder, &call, dst, count * pattern_bytes);
	return code;
}

/* The copies among the entries, at the time when they are handed over. */
static void record_entry(struct trace_recorder *recorder, const struct trace_call *call,
			 const uint8_t *entry)
{
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe pcie;
	uint64_t type;

	memcpy(&sdma, entry, sizeof(sdma));
	type = sdma.header.type;
	if (type == STARS_SQE_SDMA) {
		trace_record_copy(
			recorder, call, (uint64_t)sdma.dst_addr_high << 32 | sdma.dst_addr_low,
			(uint64_t)sdma.src_addr_high << 32 | sdma.src_addr_low, sdma.length);
	} else if (type == STARS_SQE_PCIE_DMA) {
		memcpy(&pcie, entry, sizeof(pcie));
		trace_record_copy(recorder, call, pcie.dst, pcie.src, pcie.length);
	} else {
		trace_record_other(recorder, call, &type);
	}
}

static drvError_t traced_send(struct npu_driver *self, uint32_t dev, struct halTaskSendInfo *info)
{
	CALL(halSqTaskSend, dev, info);
	for (uint32_t i = 0; info != NULL && info->sqe_addr != NULL && i < info->sqe_num; i++)
		record_entry(recorder, &call, info->sqe_addr + (size_t)i * STARS_SQE_BYTES);
	return code;
}

/* ---- devices, and all else ---- */

static drvError_t traced_open(struct npu_driver *self, uint32_t dev, halDevOpenIn *in,
			      halDevOpenOut *out)
{
	CALL(halDeviceOpen, dev, in, out);
	trace_record_device(recorder, &call, dev, false);
	return code;
}

static drvError_t traced_close_device(struct npu_driver *self, uint32_t dev, halDevCloseIn *in)
{
	CALL(halDeviceClose, dev, in);
	trace_record_device(recorder, &call, dev, true);
	return code;
}

/* What a record would only drown in, and what is no call of the driver. */
static bool is_quiet(enum driver_op op)
{
	return op == DRIVER_OP_halCqReportRecv || op == DRIVER_OP_halSqCqQuery ||
	       !driver_op_is_call(op);
}

#define TRACE_CODE(ret, result) \
	__builtin_choose_expr(__builtin_types_compatible_p(ret, drvError_t), result, DRV_ERROR_NONE)
#define TRACED(ret, missing, op, params, args)                      \
	static ret traced_##op NPU_WITH_SELF params                 \
	{                                                           \
		struct npu_driver *lower = self->lower;             \
		struct trace_call call;                             \
		ret result;                                         \
                                                                    \
		if (is_quiet(DRIVER_OP_##op))                       \
			return lower->op DRIVER_LOWER args;         \
		call = begin(self, DRIVER_OP_##op);                 \
		result = lower->op DRIVER_LOWER args;               \
		call.code = answer_of(TRACE_CODE(ret, result));     \
		trace_record_other(recorder_of(self), &call, NULL); \
		return result;                                      \
	}
NPU_DRIVER_OPS(TRACED)
#undef TRACED

static void trace_close(struct npu_driver *self)
{
	trace_recorder_close(recorder_of(self));
	free(self);
}

static void fill_in(struct npu_driver *drv)
{
	*drv = (struct npu_driver){ .abi = NPU_DRIVER_ABI,
				    .size = sizeof(struct npu_driver),
				    .name = "trace",
				    .close = trace_close,
#define TRACE_MEMBER(ret, missing, op, params, args) .op = traced_##op,
				    NPU_DRIVER_OPS(TRACE_MEMBER)
#undef TRACE_MEMBER
	};
	drv->halMemAddressReserve = traced_reserve;
	drv->halMemAddressFree = traced_unreserve;
	drv->halMemCreate = traced_create;
	drv->halMemRelease = traced_release;
	drv->halMemRetainAllocationHandle = traced_retain;
	drv->halMemMap = traced_map;
	drv->halMemMapNoAccess = traced_map_no_access;
	drv->halMemUnmap = traced_unmap;
	drv->halMemSetAccess = traced_set_access;
	drv->halMemExportToShareableHandle = traced_export;
	drv->halMemExportToShareableHandleV2 = traced_export_v2;
	drv->halMemImportFromShareableHandle = traced_import;
	drv->halMemImportFromShareableHandleV2 = traced_import_v2;
	drv->halMemAlloc = traced_alloc;
	drv->halMemFree = traced_free;
	drv->drvMemcpy = traced_copy;
	drv->halMemcpyBatch = traced_copy_batch;
	drv->halMemcpy2D = traced_copy_2d;
	drv->drvMemsetD8 = traced_fill;
	drv->npusimFill = traced_fill_pattern;
	drv->halSqTaskSend = traced_send;
	drv->halDeviceOpen = traced_open;
	drv->halDeviceClose = traced_close_device;
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

struct npu_driver *trace_driver_open(struct npu_driver *lower, const char *path, char **error)
{
	struct trace_driver *trace = calloc(1, sizeof(*trace));
	char about[256];

	*error = NULL;
	/* libnpusim-record.so writes the file: it has the calls as the program makes them */
	if (dlsym(RTLD_DEFAULT, "npusim_record_preloaded") != NULL) {
		free(trace);
		return lower;
	}
	describe(lower, about, sizeof(about));
	if (trace != NULL)
		trace->recorder = trace_recorder_open(path, about);
	if (trace == NULL || trace->recorder == NULL) {
		if (asprintf(error, "NPUSIM_TRACE=%s cannot be written: %s", path,
			     strerror(errno)) < 0)
			*error = NULL;
		free(trace);
		return NULL;
	}
	fill_in(&trace->driver);
	trace->driver.caps = lower->caps;
	trace->driver.lower = lower;
	return &trace->driver;
}
