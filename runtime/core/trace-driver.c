/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that records the calls it forwards, in the format of traces/FORMAT.md, version 1. Owns
 * the file, the names in it and the stamps. A line is written when its call has returned; its
 * stamps are of the call's beginning.
 */
#include "core-private.h"
#include "driver-wrap.h"
#include "trace-head.h"
#include "trace-names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct trace_driver {
	struct npu_driver driver;
	pthread_mutex_t lock; /* of all below */
	FILE *file;
	uint64_t start_ns;
	unsigned threads;
	uint64_t numbers[128];     /* the last number given out, by letter */
	struct trace_names places; /* reservations and classic allocations */
	struct trace_names handles;
	struct trace_names shares;
};

struct stamp {
	uint64_t host_ns, simulated_ps;
	bool simulated;
};

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct trace_driver *trace_of(struct npu_driver *self)
{
	return (struct trace_driver *)self;
}

static struct stamp now(struct npu_driver *self)
{
	struct stamp stamp = { .host_ns = host_ns() - trace_of(self)->start_ns };

	stamp.simulated = npu_call(self->lower, npusimNow, &stamp.simulated_ps) == DRV_ERROR_NONE;
	return stamp;
}

/* ---- lines ---- */

static unsigned thread_number_locked(struct trace_driver *trace)
{
	static __thread struct {
		struct trace_driver *trace;
		unsigned number;
	} mine;

	if (mine.trace != trace) {
		mine.trace = trace;
		mine.number = ++trace->threads;
	}
	return mine.number;
}

/* One line: stamps, text, code. */
static void line_locked(struct trace_driver *trace, const struct stamp *stamp, drvError_t code,
			const char *format, ...) __attribute__((format(printf, 4, 5)));
static void line_locked(struct trace_driver *trace, const struct stamp *stamp, drvError_t code,
			const char *format, ...)
{
	va_list args;

	fprintf(trace->file, "@%" PRIu64, stamp->host_ns);
	if (stamp->simulated)
		fprintf(trace->file, " ~%" PRIu64, stamp->simulated_ps);
	fprintf(trace->file, " :1.%u ", thread_number_locked(trace));
	va_start(args, format);
	vfprintf(trace->file, format, args);
	va_end(args);
	if (code != DRV_ERROR_NONE)
		fprintf(trace->file, " => %d", core_error_of(code));
	fputc('\n', trace->file);
}

static void other_call(struct npu_driver *self, const struct stamp *stamp, enum driver_op op,
		       drvError_t code)
{
	struct trace_driver *trace = trace_of(self);

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, stamp, code, "call op=%s", driver_op_name(op));
	pthread_mutex_unlock(&trace->lock);
}

static uint64_t next_number_locked(struct trace_driver *trace, char letter)
{
	return ++trace->numbers[(unsigned char)letter];
}

#define PLACE_TEXT 64

/* "r1+4194304"; "host" for what is no place of the driver. */
static const char *place_text(struct trace_driver *trace, uint64_t va, char out[static PLACE_TEXT])
{
	const struct trace_name *name = trace_name_find(&trace->places, va);

	if (name == NULL)
		snprintf(out, PLACE_TEXT, "host");
	else
		snprintf(out, PLACE_TEXT, "%c%" PRIu64 "+%" PRIu64, name->letter, name->number,
			 va - name->key);
	return out;
}

static const char *page_text(uint32_t page_type)
{
	return page_type == MEM_NORMAL_PAGE_TYPE  ? "4k"
	       : page_type == MEM_GIANT_PAGE_TYPE ? "1g"
						  : "2m";
}

/* ---- reservations ---- */

static drvError_t traced_reserve(struct npu_driver *self, void **ptr, size_t size, size_t alignment,
				 void *addr, uint64_t flag)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code =
		npu_call(self->lower, halMemAddressReserve, ptr, size, alignment, addr, flag);
	uint64_t number, va = code == DRV_ERROR_NONE ? (uint64_t)(uintptr_t)*ptr : 0;
	char hint[32] = "";

	if (addr != NULL)
		snprintf(hint, sizeof(hint), " hint=%#" PRIx64, (uint64_t)(uintptr_t)addr);
	pthread_mutex_lock(&trace->lock);
	number = next_number_locked(trace, 'r');
	if (code == DRV_ERROR_NONE)
		trace_name_add(&trace->places, (struct trace_name){ va, size, number, 0, 'r' });
	line_locked(trace, &stamp, code,
		    "reserve r%" PRIu64 " size=%zu%s flags=%" PRIu64 " va=%#" PRIx64, number, size,
		    hint, flag, va);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

/* The name goes before the call: afterwards another thread may have the address. */
static drvError_t end_place(struct npu_driver *self, const char *verb, enum driver_op op, void *ptr,
			    drvError_t (*call)(struct npu_driver *lower, void *ptr))
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	struct trace_name name;
	drvError_t code;
	bool known;

	pthread_mutex_lock(&trace->lock);
	known = trace_name_take(&trace->places, (uint64_t)(uintptr_t)ptr, &name);
	pthread_mutex_unlock(&trace->lock);
	code = call(self->lower, ptr);
	if (!known) {
		other_call(self, &stamp, op, code);
		return code;
	}
	pthread_mutex_lock(&trace->lock);
	if (code != DRV_ERROR_NONE)
		trace_name_add(&trace->places, name);
	line_locked(trace, &stamp, code, "%s %c%" PRIu64, verb, name.letter, name.number);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t call_address_free(struct npu_driver *lower, void *ptr)
{
	return npu_call(lower, halMemAddressFree, ptr);
}

static drvError_t traced_unreserve(struct npu_driver *self, void *ptr)
{
	return end_place(self, "unreserve", DRIVER_OP_halMemAddressFree, ptr, call_address_free);
}

/* ---- handles ---- */

static uint64_t key_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* One more reference to a handle that the driver has answered; its number. */
static uint64_t add_handle_locked(struct trace_driver *trace, const void *handle)
{
	struct trace_name *name = trace_name_find(&trace->handles, key_of(handle));
	uint64_t number;

	if (name != NULL) {
		name->references++;
		return name->number;
	}
	number = next_number_locked(trace, 'h');
	trace_name_add(&trace->handles, (struct trace_name){ key_of(handle), 1, number, 1, 'h' });
	return number;
}

/* 0: a handle that the trace has not seen. */
static uint64_t handle_number_locked(struct trace_driver *trace, const void *handle)
{
	const struct trace_name *name = trace_name_find(&trace->handles, key_of(handle));

	return name == NULL ? 0 : name->number;
}

static drvError_t traced_create(struct npu_driver *self, drv_mem_handle_t **handle, size_t size,
				const struct drv_mem_prop *prop, uint64_t flag)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemCreate, handle, size, prop, flag);
	char where[16] = "host";
	uint64_t number;

	if (prop != NULL && prop->side == MEM_DEV_SIDE)
		snprintf(where, sizeof(where), "%u", prop->devid);
	pthread_mutex_lock(&trace->lock);
	number = code == DRV_ERROR_NONE ? add_handle_locked(trace, *handle)
					: next_number_locked(trace, 'h');
	line_locked(trace, &stamp, code, "create h%" PRIu64 " size=%zu device=%s page=%s", number,
		    size, where, page_text(prop != NULL ? prop->pg_type : MEM_HUGE_PAGE_TYPE));
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_release(struct npu_driver *self, drv_mem_handle_t *handle)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	struct trace_name *name, gone = { 0 };
	drvError_t code;

	pthread_mutex_lock(&trace->lock);
	name = trace_name_find(&trace->handles, key_of(handle));
	if (name != NULL) {
		gone = *name;
		if (--name->references == 0)
			trace_name_take(&trace->handles, key_of(handle), NULL);
	}
	pthread_mutex_unlock(&trace->lock);
	code = npu_call(self->lower, halMemRelease, handle);
	if (gone.number == 0) {
		other_call(self, &stamp, DRIVER_OP_halMemRelease, code);
		return code;
	}
	pthread_mutex_lock(&trace->lock);
	if (code != DRV_ERROR_NONE)
		trace_name_add(&trace->handles, gone);
	line_locked(trace, &stamp, code, "release h%" PRIu64, gone.number);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_retain(struct npu_driver *self, drv_mem_handle_t **handle, void *ptr)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemRetainAllocationHandle, handle, ptr);
	char place[PLACE_TEXT];
	uint64_t number;

	pthread_mutex_lock(&trace->lock);
	number = code == DRV_ERROR_NONE ? add_handle_locked(trace, *handle)
					: next_number_locked(trace, 'h');
	line_locked(trace, &stamp, code, "retain h%" PRIu64 " at=%s", number,
		    place_text(trace, key_of(ptr), place));
	pthread_mutex_unlock(&trace->lock);
	return code;
}

/* ---- mappings ---- */

static void map_line(struct npu_driver *self, const struct stamp *stamp, drvError_t code, void *ptr,
		     size_t size, const void *handle, const char *more)
{
	struct trace_driver *trace = trace_of(self);
	char place[PLACE_TEXT];

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, stamp, code, "map %s size=%zu handle=h%" PRIu64 "%s",
		    place_text(trace, key_of(ptr), place), size,
		    handle_number_locked(trace, handle), more);
	pthread_mutex_unlock(&trace->lock);
}

static drvError_t traced_map(struct npu_driver *self, void *ptr, size_t size, size_t offset,
			     drv_mem_handle_t *handle, uint64_t flag)
{
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemMap, ptr, size, offset, handle, flag);

	map_line(self, &stamp, code, ptr, size, handle, "");
	return code;
}

static drvError_t traced_map_no_access(struct npu_driver *self, void *ptr, size_t size,
				       size_t offset, drv_mem_handle_t *handle, uint64_t flag)
{
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemMapNoAccess, ptr, size, offset, handle, flag);

	map_line(self, &stamp, code, ptr, size, handle, " access=none");
	return code;
}

static drvError_t traced_unmap(struct npu_driver *self, void *ptr)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemUnmap, ptr);
	char place[PLACE_TEXT];

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, &stamp, code, "unmap %s", place_text(trace, key_of(ptr), place));
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_set_access(struct npu_driver *self, void *ptr, size_t size,
				    struct drv_mem_access_desc *desc, size_t count)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemSetAccess, ptr, size, desc, count);
	char place[PLACE_TEXT];

	pthread_mutex_lock(&trace->lock);
	for (size_t i = 0; desc != NULL && i < count && i < CORE_DEVICE_MAX; i++) {
		char where[16] = "host";

		if (desc[i].location.side == MEM_DEV_SIDE)
			snprintf(where, sizeof(where), "%u", desc[i].location.id);
		line_locked(trace, &stamp, code, "access %s size=%zu device=%s flags=%d",
			    place_text(trace, key_of(ptr), place), size, where, (int)desc[i].type);
	}
	pthread_mutex_unlock(&trace->lock);
	return code;
}

/* ---- sharing ---- */

/* The number of a share; one that comes from elsewhere gets its number here. */
static uint64_t share_number_locked(struct trace_driver *trace, uint64_t share)
{
	const struct trace_name *name = trace_name_find(&trace->shares, share);
	uint64_t number;

	if (name != NULL)
		return name->number;
	number = next_number_locked(trace, 's');
	trace_name_add(&trace->shares, (struct trace_name){ share, 1, number, 0, 's' });
	return number;
}

static uint64_t key_of_share(const struct MemShareHandle *share)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; share != NULL && i < sizeof(share->share_info); i++)
		hash = (hash ^ share->share_info[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void export_line(struct npu_driver *self, const struct stamp *stamp, drvError_t code,
			uint64_t share, const void *handle, uint64_t flags)
{
	struct trace_driver *trace = trace_of(self);
	uint64_t number;

	pthread_mutex_lock(&trace->lock);
	number = code == DRV_ERROR_NONE ? share_number_locked(trace, share)
					: next_number_locked(trace, 's');
	line_locked(trace, stamp, code,
		    "export s%" PRIu64 " handle=h%" PRIu64 " flags=%" PRIu64 " key=%#" PRIx64,
		    number, handle_number_locked(trace, handle), flags, share);
	pthread_mutex_unlock(&trace->lock);
}

static drvError_t traced_export(struct npu_driver *self, drv_mem_handle_t *handle,
				drv_mem_handle_type type, uint64_t flags, uint64_t *share)
{
	struct stamp stamp = now(self);
	drvError_t code =
		npu_call(self->lower, halMemExportToShareableHandle, handle, type, flags, share);

	export_line(self, &stamp, code, code == DRV_ERROR_NONE ? *share : 0, handle, flags);
	return code;
}

static drvError_t traced_export_v2(struct npu_driver *self, drv_mem_handle_t *handle,
				   drv_mem_handle_type type, uint64_t flags,
				   struct MemShareHandle *share)
{
	struct stamp stamp = now(self);
	drvError_t code =
		npu_call(self->lower, halMemExportToShareableHandleV2, handle, type, flags, share);

	export_line(self, &stamp, code, key_of_share(share), handle, flags);
	return code;
}

static void import_line(struct npu_driver *self, const struct stamp *stamp, drvError_t code,
			uint64_t share, uint32_t dev, drv_mem_handle_t **handle)
{
	struct trace_driver *trace = trace_of(self);
	uint64_t number;

	pthread_mutex_lock(&trace->lock);
	number = code == DRV_ERROR_NONE ? add_handle_locked(trace, *handle)
					: next_number_locked(trace, 'h');
	line_locked(trace, stamp, code,
		    "import h%" PRIu64 " share=s%" PRIu64 " device=%u key=%#" PRIx64, number,
		    share_number_locked(trace, share), dev, share);
	pthread_mutex_unlock(&trace->lock);
}

static drvError_t traced_import(struct npu_driver *self, uint64_t share, uint32_t dev,
				drv_mem_handle_t **handle)
{
	struct stamp stamp = now(self);
	drvError_t code =
		npu_call(self->lower, halMemImportFromShareableHandle, share, dev, handle);

	import_line(self, &stamp, code, share, dev, handle);
	return code;
}

static drvError_t traced_import_v2(struct npu_driver *self, drv_mem_handle_type type,
				   struct MemShareHandle *share, uint32_t dev,
				   drv_mem_handle_t **handle)
{
	struct stamp stamp = now(self);
	drvError_t code =
		npu_call(self->lower, halMemImportFromShareableHandleV2, type, share, dev, handle);

	import_line(self, &stamp, code, key_of_share(share), dev, handle);
	return code;
}

/* ---- classic memory and copies ---- */

static drvError_t traced_alloc(struct npu_driver *self, void **pp, unsigned long long size,
			       unsigned long long flag)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemAlloc, pp, size, flag);
	bool host = (flag >> MEM_VIRT_BIT & 0xf) == MEM_HOST_VAL;
	uint64_t va = code == DRV_ERROR_NONE ? (uint64_t)(uintptr_t)*pp : 0;
	char where[16] = "host";
	uint64_t number;

	if (!host)
		snprintf(where, sizeof(where), "%u", (unsigned)(flag & MEM_DEVID_MASK));
	pthread_mutex_lock(&trace->lock);
	number = next_number_locked(trace, 'a');
	if (code == DRV_ERROR_NONE)
		trace_name_add(&trace->places, (struct trace_name){ va, size, number, 0, 'a' });
	line_locked(trace, &stamp, code,
		    "malloc a%" PRIu64 " size=%llu device=%s page=%s va=%#" PRIx64, number, size,
		    where,
		    (flag & MEM_PAGE_GIANT) != 0  ? "1g"
		    : (flag & MEM_PAGE_HUGE) != 0 ? "2m"
						  : "4k",
		    va);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t call_free(struct npu_driver *lower, void *ptr)
{
	return npu_call(lower, halMemFree, ptr);
}

static drvError_t traced_free(struct npu_driver *self, void *pp)
{
	return end_place(self, "mfree", DRIVER_OP_halMemFree, pp, call_free);
}

static void copy_line_locked(struct trace_driver *trace, const struct stamp *stamp, drvError_t code,
			     uint64_t dst, uint64_t src, uint64_t bytes)
{
	char to[PLACE_TEXT], from[PLACE_TEXT];

	line_locked(trace, stamp, code, "copy size=%" PRIu64 " dst=%s src=%s", bytes,
		    place_text(trace, dst, to), place_text(trace, src, from));
}

static drvError_t traced_copy(struct npu_driver *self, DVdeviceptr dst, size_t dest_max,
			      DVdeviceptr src, size_t count)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, drvMemcpy, dst, dest_max, src, count);

	pthread_mutex_lock(&trace->lock);
	copy_line_locked(trace, &stamp, code, dst, src, count);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_copy_batch(struct npu_driver *self, uint64_t *dst, uint64_t *src,
				    size_t *size, size_t count)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemcpyBatch, dst, src, size, count);

	pthread_mutex_lock(&trace->lock);
	for (size_t i = 0; i < count && dst != NULL && src != NULL && size != NULL; i++)
		copy_line_locked(trace, &stamp, code, dst[i], src[i], size[i]);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_copy_2d(struct npu_driver *self, struct MEMCPY2D *copy)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halMemcpy2D, copy);

	pthread_mutex_lock(&trace->lock);
	if (copy != NULL && copy->type == DEVMM_MEMCPY2D_SYNC)
		copy_line_locked(trace, &stamp, code, key_of(copy->copy2d.dst),
				 key_of(copy->copy2d.src),
				 copy->copy2d.width * copy->copy2d.height);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_fill(struct npu_driver *self, DVdeviceptr dst, size_t dest_max,
			      uint8_t value, size_t num)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, drvMemsetD8, dst, dest_max, value, num);
	char place[PLACE_TEXT];

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, &stamp, code, "fill size=%zu dst=%s", num,
		    place_text(trace, dst, place));
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_fill_pattern(struct npu_driver *self, DVdeviceptr dst, uint32_t pattern,
				      unsigned pattern_bytes, size_t count)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, npusimFill, dst, pattern, pattern_bytes, count);
	char place[PLACE_TEXT];

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, &stamp, code, "fill size=%zu dst=%s", count * pattern_bytes,
		    place_text(trace, dst, place));
	pthread_mutex_unlock(&trace->lock);
	return code;
}

/* The copies among the entries, at the time when they are handed over. */
static void entry_line_locked(struct trace_driver *trace, const struct stamp *stamp,
			      drvError_t code, const uint8_t *entry)
{
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe pcie;

	memcpy(&sdma, entry, sizeof(sdma));
	if (sdma.header.type == STARS_SQE_SDMA) {
		copy_line_locked(
			trace, stamp, code, (uint64_t)sdma.dst_addr_high << 32 | sdma.dst_addr_low,
			(uint64_t)sdma.src_addr_high << 32 | sdma.src_addr_low, sdma.length);
	} else if (sdma.header.type == STARS_SQE_PCIE_DMA) {
		memcpy(&pcie, entry, sizeof(pcie));
		copy_line_locked(trace, stamp, code, pcie.dst, pcie.src, pcie.length);
	} else {
		line_locked(trace, stamp, code, "call op=halSqTaskSend type=%u", sdma.header.type);
	}
}

static drvError_t traced_send(struct npu_driver *self, uint32_t dev, struct halTaskSendInfo *info)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halSqTaskSend, dev, info);

	pthread_mutex_lock(&trace->lock);
	for (uint32_t i = 0; info != NULL && info->sqe_addr != NULL && i < info->sqe_num; i++)
		entry_line_locked(trace, &stamp, code,
				  info->sqe_addr + (size_t)i * STARS_SQE_BYTES);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

/* ---- devices, and all else ---- */

static drvError_t traced_open(struct npu_driver *self, uint32_t dev, halDevOpenIn *in,
			      halDevOpenOut *out)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halDeviceOpen, dev, in, out);

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, &stamp, code, "device id=%u op=set", dev);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

static drvError_t traced_close_device(struct npu_driver *self, uint32_t dev, halDevCloseIn *in)
{
	struct trace_driver *trace = trace_of(self);
	struct stamp stamp = now(self);
	drvError_t code = npu_call(self->lower, halDeviceClose, dev, in);

	pthread_mutex_lock(&trace->lock);
	line_locked(trace, &stamp, code, "device id=%u op=reset", dev);
	pthread_mutex_unlock(&trace->lock);
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
#define TRACED(ret, missing, op, params, args)                                     \
	static ret traced_##op NPU_WITH_SELF params                                \
	{                                                                          \
		struct npu_driver *lower = self->lower;                            \
		struct stamp stamp;                                                \
		ret result;                                                        \
                                                                                   \
		if (is_quiet(DRIVER_OP_##op))                                      \
			return lower->op DRIVER_LOWER args;                        \
		stamp = now(self);                                                 \
		result = lower->op DRIVER_LOWER args;                              \
		other_call(self, &stamp, DRIVER_OP_##op, TRACE_CODE(ret, result)); \
		return result;                                                     \
	}
NPU_DRIVER_OPS(TRACED)
#undef TRACED

static void trace_close(struct npu_driver *self)
{
	struct trace_driver *trace = trace_of(self);

	fclose(trace->file);
	trace_names_free(&trace->places);
	trace_names_free(&trace->handles);
	trace_names_free(&trace->shares);
	pthread_mutex_destroy(&trace->lock);
	free(trace);
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

/* ---- the file ---- */

struct npu_driver *trace_driver_open(struct npu_driver *lower, const char *path, char **error)
{
	struct trace_driver *trace = calloc(1, sizeof(*trace));
	char *name = trace_file_name(path);

	*error = NULL;
	if (trace != NULL && name != NULL)
		trace->file = trace_file_open(name);
	if (trace == NULL || trace->file == NULL) {
		if (asprintf(error, "NPUSIM_TRACE=%s cannot be written: %s", path,
			     strerror(errno)) < 0)
			*error = NULL;
		free(trace);
		free(name);
		return NULL;
	}
	free(name);
	setvbuf(trace->file, NULL, _IOLBF, 0);
	pthread_mutex_init(&trace->lock, NULL);
	fill_in(&trace->driver);
	trace->driver.caps = lower->caps;
	trace->driver.lower = lower;
	trace->start_ns = host_ns();
	trace_write_head(trace->file, lower, trace->start_ns);
	return &trace->driver;
}
