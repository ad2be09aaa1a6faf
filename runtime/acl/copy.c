/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills for the ACL, at once or queued on a stream. Owns the order of the checks,
 * which both forms share; the choice of engine (PCIe DMA between host and device, SDMA between
 * device addresses), the pieces of long copies, and the host buffers that entries read from, which
 * live until their entries are done. Where bytes lie and how they move is the driver's business. As
 * in CANN a synchronous copy waits for no stream.
 *
 * As CANN documents it, an asynchronous copy that touches pageable host memory is not queued: it
 * waits for the stream and is done when the call returns. So only page-locked memory must outlive
 * the call.
 */
#include "acl-internal.h"

#include <stdlib.h>

#define WIDTH_MAX        UINT64_C(5000000)
#define HEIGHT_MAX       (UINT64_C(5) << 20)
#define BATCH_SYNC_MAX   4096u
#define FILL_PIECE_BYTES (UINT64_C(1) << 20)

struct batch {
	void **dsts;
	const size_t *dest_maxs;
	void **srcs;
	const size_t *sizes;
	size_t count;
	const aclrtMemcpyBatchAttr *attrs;
	const size_t *indexes;
	size_t attr_count;
	size_t attr; /* of the copy that is looked at */
};
/* The arguments of a function that has one, and of one for rows. */
#define BATCH                                                                                     \
	(&(struct batch){ dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, \
			  0 })
#define ROWS                                                              \
	(&(struct drvMem2D){ .dst = dst,                                  \
			     .dpitch = dpitch,                            \
			     .src = (unsigned long long *)(uintptr_t)src, \
			     .spitch = spitch,                            \
			     .width = width,                              \
			     .height = height })

/* ---- the direction of a copy ---- */

/* With a pageable end CANN takes some kinds beside the obvious one; all come to the same copy. */
static bool kind_is_heard(aclrtMemcpyKind kind, bool from_device, bool to_device,
			  bool from_pageable, bool to_pageable)
{
	switch (kind) {
	case ACL_MEMCPY_HOST_TO_HOST:
		return !from_device && !to_device;
	case ACL_MEMCPY_HOST_TO_DEVICE:
		return !from_device && (to_device || to_pageable);
	case ACL_MEMCPY_DEVICE_TO_HOST:
		return !to_device && (from_device || from_pageable);
	case ACL_MEMCPY_DEVICE_TO_DEVICE:
		return (from_device || from_pageable) && (to_device || to_pageable);
	default:
		return true;
	}
}

static aclrtMemcpyKind kind_of_places(bool from_device, bool to_device)
{
	if (from_device)
		return to_device ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST;
	return to_device ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_HOST_TO_HOST;
}

/* Where both ends lie, and the kind that follows: the addresses decide, *kind is heard where a
 * pageable end leaves a choice. 107000 where it is heard and impossible; the driver's code where an
 * address is nowhere. */
static aclError real_kind(const void *dst, const void *src, aclrtMemcpyKind *kind,
			  struct npu_place *to, struct npu_place *from)
{
	bool from_device, to_device, pageable;
	aclError error = acl_place_of("src", src, from) ?: acl_place_of("dst", dst, to);

	if (error != ACL_SUCCESS)
		return error;
	from_device = from->kind == NPU_PLACE_DEVICE || from->kind == NPU_PLACE_MANAGED;
	to_device = to->kind == NPU_PLACE_DEVICE || to->kind == NPU_PLACE_MANAGED;
	pageable = from->kind == NPU_PLACE_PAGEABLE || to->kind == NPU_PLACE_PAGEABLE;
	if (pageable &&
	    !kind_is_heard(*kind, from_device, to_device, from->kind == NPU_PLACE_PAGEABLE,
			   to->kind == NPU_PLACE_PAGEABLE))
		return rt_invalid("kind is %s, but src is %s memory and dst is %s memory; use %s "
				  "or ACL_MEMCPY_DEFAULT",
				  acl_memcpy_kind_name(*kind), from_device ? "device" : "host",
				  to_device ? "device" : "host",
				  acl_memcpy_kind_name(kind_of_places(from_device, to_device)));
	/* Two pageable ends are a copy on the host only where the program says so. */
	if (from->kind != NPU_PLACE_PAGEABLE || to->kind != NPU_PLACE_PAGEABLE ||
	    *kind == ACL_MEMCPY_DEFAULT)
		*kind = kind_of_places(from_device, to_device);
	return ACL_SUCCESS;
}

/* ---- queued copies ---- */

static aclError sender_init(struct core_sender *sender, aclrtStream stream)
{
	struct core_stream *found;
	aclError error = core_stream_find(stream, &found);

	core_sender_init(sender, found);
	return error;
}

/* Waits for the stream, what was collected included. */
static aclError sender_wait(struct core_sender *sender)
{
	if (core_sender_flush(sender, NULL, NULL) == ACL_SUCCESS)
		sender->error = core_stream_synchronize(sender->stream, -1);
	return sender->error;
}

/* Between two devices the driver tells which engine reaches. */
static aclError add_device_copy(struct core_sender *sender, void *dst, void *src, uint64_t bytes,
				bool other_device)
{
	uint8_t way = 0;

	if (other_device)
		sender->error = ACL_CALL(drvDeviceGetTransWay, src, dst, &way);
	if (sender->error == ACL_SUCCESS)
		core_sender_copy(sender, (uintptr_t)dst, (uintptr_t)src, bytes, way != 1);
	return sender->error;
}

/* ---- one copy ---- */

/* Pointers, kind and size, in CANN's order. */
static aclError check_copy(const void *dst, size_t dst_max, const void *src, size_t count,
			   aclrtMemcpyKind kind)
{
	return ACL_IS_NULL(dst) ?: ACL_IS_NULL(src)
		       ?: ACL_WANT((uint32_t)kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
				   "kind is %d (%s); it must be ACL_MEMCPY_HOST_TO_HOST (0) to "
				   "ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE (5), for instance "
				   "ACL_MEMCPY_DEFAULT (4)",
				   (int)kind, acl_memcpy_kind_name(kind))
		       ?: RT_WANT(count <= dst_max,
				  "count is %s, but destMax says that dst has room for %s; count "
				  "must be at most destMax",
				  npu_size_text(count), npu_size_text(dst_max));
}

static aclError copy_now(void *dst, size_t dst_max, const void *src, size_t count)
{
	return ACL_CALL(drvMemcpy, (DVdeviceptr)(uintptr_t)dst, dst_max,
			(DVdeviceptr)(uintptr_t)src, count);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
	aclError error;

	if (count == 0)
		return ACL_SUCCESS;
	error = check_copy(dst, destMax, src, count, kind);
	if (error != ACL_SUCCESS || dst == src)
		return error;
	error = acl_check_context();
	if (error != ACL_SUCCESS)
		return error;
	core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)dst);
	return copy_now(dst, destMax, src, count);
}

/* ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: the source is copied at once, free when the call returns. */
static aclError copy_through_buffer(struct core_sender *sender, void *dst, const void *src,
				    size_t count)
{
	struct npu_place to, from;
	aclrtMemcpyKind kind = ACL_MEMCPY_DEFAULT;
	void *buffer;
	aclError error = real_kind(dst, src, &kind, &to, &from);

	if (error != ACL_SUCCESS)
		return error;
	if (kind != ACL_MEMCPY_HOST_TO_DEVICE)
		return rt_invalid(
			"kind is ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, but src and dst lie so that "
			"this is %s; src must be host memory and dst device memory",
			acl_memcpy_kind_name(kind));
	buffer = core_buffer_make(count, &error);
	if (buffer == NULL)
		return error;
	error = copy_now(buffer, count, src, count);
	/* The buffer goes with the last entry. Else what was sent before has been waited for: see
	 * core_stream_send(). */
	if (error == ACL_SUCCESS) {
		core_sender_copy(sender, (uintptr_t)dst, (uintptr_t)buffer, count, false);
		error = core_sender_flush(sender, core_buffer_free, buffer);
	}
	if (error != ACL_SUCCESS)
		core_buffer_free(buffer, NULL);
	return error;
}

static aclError copy_async(void *dst, size_t dst_max, const void *src, size_t count,
			   aclrtMemcpyKind kind, aclrtStream stream)
{
	struct npu_place to, from;
	struct core_sender sender;
	aclError error;

	if (count == 0)
		return ACL_SUCCESS;
	error = check_copy(dst, dst_max, src, count, kind) ?: sender_init(&sender, stream);
	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
		return copy_through_buffer(&sender, dst, src, count);
	core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)dst);
	error = real_kind(dst, src, &kind, &to, &from);
	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_HOST_TO_HOST)
		return acl_unsupported(
			"src and dst are both host memory, which no engine of the device copies; "
			"use aclrtMemcpy, or a host function in the stream (aclrtLaunchHostFunc)");
	if (dst == src)
		return ACL_SUCCESS;
	if (from.kind == NPU_PLACE_PAGEABLE || to.kind == NPU_PLACE_PAGEABLE)
		return sender_wait(&sender) ?: copy_now(dst, dst_max, src, count);
	if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
		add_device_copy(&sender, dst, (void *)src, count,
				acl_place_device(&to) != acl_place_device(&from));
	else
		core_sender_copy(&sender, (uintptr_t)dst, (uintptr_t)src, count, false);
	return core_sender_flush(&sender, NULL, NULL);
}

ACL_ANSWERS(aclrtMemcpyAsync, copy_async(dst, destMax, src, count, kind, stream));
ACL_ANSWERS(aclrtMemcpyAsyncWithCondition, copy_async(dst, destMax, src, count, kind, stream));

/* ---- rows ---- */

static aclError check_copy_2d(const struct drvMem2D *rows, aclrtMemcpyKind kind)
{
	return acl_null("dst", rows->dst) ?: acl_null("src", rows->src)
		       ?: ACL_WANT(rows->width <= rows->spitch && rows->width <= rows->dpitch,
				   "width is %llu, but spitch is %llu and dpitch is %llu; a row "
				   "must fit into both pitches",
				   rows->width, rows->spitch, rows->dpitch)
		       ?: ACL_WANT(kind >= ACL_MEMCPY_HOST_TO_DEVICE &&
						kind <= ACL_MEMCPY_DEFAULT,
				   "kind is %d (%s); rows are copied by ACL_MEMCPY_HOST_TO_DEVICE "
				   "(1), ACL_MEMCPY_DEVICE_TO_HOST (2), "
				   "ACL_MEMCPY_DEVICE_TO_DEVICE (3) and ACL_MEMCPY_DEFAULT (4)",
				   (int)kind, acl_memcpy_kind_name(kind))
		       ?: RT_WANT(rows->height <= HEIGHT_MAX,
				  "height is %llu; it must be at most %llu", rows->height,
				  (unsigned long long)HEIGHT_MAX)
		       ?: RT_WANT(rows->width <= WIDTH_MAX,
				  "width is %llu; it must be at most %llu", rows->width,
				  (unsigned long long)WIDTH_MAX);
}

static aclError copy_2d_now(const struct drvMem2D *rows, aclrtMemcpyKind kind)
{
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_SYNC, .copy2d = *rows };

	copy.copy2d.direction = kind == ACL_MEMCPY_HOST_TO_DEVICE ? DRV_MEMCPY_HOST_TO_DEVICE
								  : DRV_MEMCPY_DEVICE_TO_HOST;
	return ACL_CALL(halMemcpy2D, &copy);
}

/* One entry a row; rows without gaps on both sides are one copy. */
static aclError send_rows(struct core_sender *sender, const struct drvMem2D *rows, bool on_devices,
			  bool other_device)
{
	bool dense = rows->width == rows->dpitch && rows->width == rows->spitch;
	uint64_t bytes = dense ? rows->width * rows->height : rows->width;
	uint64_t count = dense ? 1 : rows->height;

	for (uint64_t i = 0; i < count && sender->error == ACL_SUCCESS; i++) {
		char *dst = (char *)rows->dst + i * rows->dpitch;
		char *src = (char *)rows->src + i * rows->spitch;

		if (on_devices)
			add_device_copy(sender, dst, src, bytes, other_device);
		else
			core_sender_copy(sender, (uintptr_t)dst, (uintptr_t)src, bytes, false);
	}
	return core_sender_flush(sender, NULL, NULL);
}

static aclError copy_2d(const struct drvMem2D *rows, aclrtMemcpyKind kind, bool queued,
			aclrtStream stream)
{
	struct npu_place to, from;
	struct core_sender sender;
	aclrtMemcpyKind real = kind;
	aclError error;

	if (rows->width == 0 || rows->height == 0)
		return ACL_SUCCESS;
	error = check_copy_2d(rows, kind);
	if (error == ACL_SUCCESS && !queued && kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
		return acl_unsupported(
			"kind is ACL_MEMCPY_DEVICE_TO_DEVICE; a synchronous copy of rows goes from "
			"the host to a device or back: use aclrtMemcpy2dAsync");
	error = error ?: (queued ? sender_init(&sender, stream) : acl_check_context());
	if (error == ACL_SUCCESS && queued)
		core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)rows->dst);
	error = error ?: real_kind(rows->dst, rows->src, &real, &to, &from)
			?: RT_WANT(queued || real == ACL_MEMCPY_HOST_TO_DEVICE ||
						real == ACL_MEMCPY_DEVICE_TO_HOST,
				   "src and dst lie so that this is %s; a synchronous copy of rows "
				   "goes from the host to a device or back",
				   acl_memcpy_kind_name(real))
			?: RT_WANT(real != ACL_MEMCPY_HOST_TO_HOST,
				   "src and dst are both host memory; rows are copied from, to or "
				   "between devices");
	if (error != ACL_SUCCESS)
		return error;
	if (queued && from.kind != NPU_PLACE_PAGEABLE && to.kind != NPU_PLACE_PAGEABLE)
		return send_rows(&sender, rows, real == ACL_MEMCPY_DEVICE_TO_DEVICE,
				 acl_place_device(&to) != acl_place_device(&from));
	return (queued ? sender_wait(&sender) : ACL_SUCCESS) ?: copy_2d_now(rows, real);
}

ACL_ANSWERS(aclrtMemcpy2d, copy_2d(ROWS, kind, false, NULL));
ACL_ANSWERS(aclrtMemcpy2dAsync, copy_2d(ROWS, kind, true, stream));

/* ---- fills ---- */

static aclError fill_now(void *ptr, size_t max, uint8_t value, size_t count)
{
	return ACL_CALL(drvMemsetD8, (DVdeviceptr)(uintptr_t)ptr, max, value, count);
}

static aclError check_fill(size_t max, size_t count)
{
	return RT_WANT(count <= max,
		       "count is %s, but maxCount says that devPtr has room for %s; count must be "
		       "at most maxCount",
		       npu_size_text(count), npu_size_text(max));
}

ACL_ANSWERS(aclrtMemset,
	count == 0 ? ACL_SUCCESS
		   : ACL_IS_NULL(devPtr)
			     ?: acl_check_context() ?: check_fill(maxCount, count)
			     ?: fill_now(devPtr, maxCount, (uint8_t)value, count));

static aclError check_fill_d32(const void *ptr, size_t mem_size, size_t words,
			       struct npu_place *out_place)
{
	return ACL_IS_NULL(ptr)
		       ?: ACL_WANT(((uintptr_t)ptr & 3) == 0,
				   "ptr is %p; it must be a multiple of 4", ptr)
		       ?: ACL_WANT(words <= mem_size / sizeof(uint32_t),
				   "N is %zu words of 4 bytes, but memSize is %s; 4 * N must be at "
				   "most memSize",
				   words, npu_size_text(mem_size))
		       ?: acl_place_of("ptr", ptr, out_place)
		       ?: ACL_WANT(out_place->kind == NPU_PLACE_DEVICE ||
						acl_place_is_host(out_place),
				   "ptr is %p, which is ordinary memory of the process; it must be "
				   "memory of aclrtMalloc, aclrtMallocHost or aclrtMapMem",
				   ptr)
		       ?: acl_check_context();
}

/* Words of four equal bytes are filled by the driver, others copied from a piece of them on the
 * host. */
static aclError fill_d32_now(void *ptr, uint32_t value, size_t words)
{
	uint64_t bytes = (uint64_t)words * sizeof(value);
	uint64_t piece = bytes < FILL_PIECE_BYTES ? bytes : FILL_PIECE_BYTES;
	aclError error = ACL_SUCCESS;
	uint32_t *pattern;

	if (value == (value & 0xff) * 0x01010101u)
		return fill_now(ptr, bytes, (uint8_t)value, bytes);
	pattern = malloc(piece);
	if (pattern == NULL)
		return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				 "no host memory for a piece of %s to copy from",
				 npu_size_text(piece));
	for (uint64_t i = 0; i < piece / sizeof(value); i++)
		pattern[i] = value;
	for (uint64_t done = 0; done < bytes && error == ACL_SUCCESS; done += piece) {
		uint64_t now = bytes - done < piece ? bytes - done : piece;

		error = copy_now((char *)ptr + done, now, pattern, now);
	}
	free(pattern);
	return error;
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
			  aclrtStream stream)
{
	uint32_t byte = (uint8_t)value;
	struct npu_place place;
	struct core_sender sender;
	aclError error;

	if (count == 0)
		return ACL_SUCCESS;
	error = ACL_IS_NULL(devPtr)
			?: check_fill(maxCount, count) ?: acl_check_context()
			?: sender_init(&sender, stream) ?: acl_place_of("devPtr", devPtr, &place);
	if (error != ACL_SUCCESS)
		return error;
	if (place.kind == NPU_PLACE_DEVICE)
		return core_stream_fill(sender.stream, (uintptr_t)devPtr, byte * 0x01010101u,
					count);
	return sender_wait(&sender) ?: fill_now(devPtr, maxCount, (uint8_t)value, count);
}

static aclError fill_d32(void *ptr, size_t mem_size, uint32_t value, size_t words, bool queued,
			 aclrtStream stream)
{
	struct npu_place place;
	struct core_sender sender;
	aclError error;

	if (words == 0)
		return ACL_SUCCESS;
	error = check_fill_d32(ptr, mem_size, words, &place);
	if (queued)
		error = error ?: sender_init(&sender, stream);
	if (error == ACL_SUCCESS && queued && place.kind == NPU_PLACE_DEVICE)
		return core_stream_fill(sender.stream, (uintptr_t)ptr, value,
					(uint64_t)words * sizeof(value));
	if (error == ACL_SUCCESS && queued)
		error = sender_wait(&sender);
	return error ?: fill_d32_now(ptr, value, words);
}

ACL_ANSWERS(aclrtMemsetD32, fill_d32(ptr, memSize, value, N, false, NULL));
ACL_ANSWERS(aclrtMemsetD32Async, fill_d32(ptr, memSize, value, N, true, stream));

/* ---- batches ---- */

static aclError check_batch_arrays(const struct batch *batch)
{
	if (acl_null("dsts", batch->dsts) || acl_null("destMaxs", batch->dest_maxs) ||
	    acl_null("srcs", batch->srcs) || acl_null("attrs", batch->attrs) ||
	    acl_null("attrsIndexes", batch->indexes))
		return ACL_ERROR_INVALID_PARAM;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->dest_maxs[i] < batch->sizes[i])
			return acl_invalid("sizes[%zu] is %s, but destMaxs[%zu] is %s; a copy must "
					   "fit into its place",
					   i, npu_size_text(batch->sizes[i]), i,
					   npu_size_text(batch->dest_maxs[i]));
	for (size_t k = 0; k < batch->attr_count; k++)
		for (size_t i = 0; i < sizeof(batch->attrs[k].rsv); i++)
			if (batch->attrs[k].rsv[i] != 0)
				return acl_invalid("attrs[%zu].rsv is not all zeros; it must be",
						   k);
	return ACL_SUCCESS;
}

static aclError check_batch_indexes(const struct batch *batch)
{
	if (batch->attr_count == 0 || batch->attr_count > batch->count)
		return rt_invalid("numAttrs is %zu; it must be between 1 and numBatches, %zu",
				  batch->attr_count, batch->count);
	if (batch->indexes[0] != 0)
		return rt_invalid("attrsIndexes[0] is %zu; it must be 0", batch->indexes[0]);
	for (size_t k = 1; k < batch->attr_count; k++)
		if (batch->indexes[k] <= batch->indexes[k - 1] || batch->indexes[k] >= batch->count)
			return rt_invalid("attrsIndexes[%zu] is %zu after %zu; indices must ascend "
					  "and be less than numBatches, %zu",
					  k, batch->indexes[k], batch->indexes[k - 1],
					  batch->count);
	return ACL_SUCCESS;
}

/* The batch as a whole; *out_empty: nothing is to be copied. */
static aclError check_batch(const struct batch *batch, bool *out_empty)
{
	*out_empty = false;
	if (acl_null("sizes", batch->sizes))
		return ACL_ERROR_INVALID_PARAM;
	if (batch->count == 0)
		return acl_invalid("numBatches is 0; it must be at least 1");
	*out_empty = true;
	for (size_t i = 0; i < batch->count; i++)
		*out_empty &= batch->sizes[i] == 0;
	if (*out_empty)
		return ACL_SUCCESS;
	return check_batch_arrays(batch) ?: check_batch_indexes(batch);
}

/* The location that the program gives for one end against where it really is. */
static aclError check_batch_end(size_t i, const char *end, const void *ptr,
				const aclrtMemLocation *said, struct npu_place *out)
{
	bool said_device = said->type == ACL_MEM_LOCATION_TYPE_DEVICE;
	bool said_host = said->type == ACL_MEM_LOCATION_TYPE_HOST ||
			 said->type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	int32_t user = -1;
	aclError error = acl_place_of(end, ptr, out);
	bool device;

	if (error != ACL_SUCCESS)
		return error;
	device = out->kind == NPU_PLACE_DEVICE;
	if (device)
		core_logic_to_user(out->owner, &user);
	if (device ? said_device && (int32_t)said->id == user : said_host)
		return ACL_SUCCESS;
	if (device)
		return rt_invalid(
			"%ss[%zu] is memory of device %d, but attrs says %s %u; they must agree",
			end, i, user, acl_location_name(said->type), said->id);
	return rt_invalid("%ss[%zu] is host memory, but attrs says %s; they must agree", end, i,
			  acl_location_name(said->type));
}

/* One copy against its locations; copies are looked at in order. */
static aclError check_batch_copy(struct batch *batch, size_t i, struct npu_place *to,
				 struct npu_place *from)
{
	const aclrtMemcpyBatchAttr *attr;
	aclError error;

	while (batch->attr + 1 < batch->attr_count && i >= batch->indexes[batch->attr + 1])
		batch->attr++;
	attr = &batch->attrs[batch->attr];
	if (batch->dsts[i] == NULL || batch->srcs[i] == NULL)
		return rt_invalid("%s[%zu] is NULL; it must point to something",
				  batch->srcs[i] == NULL ? "srcs" : "dsts", i);
	error = check_batch_end(i, "dst", batch->dsts[i], &attr->dstLoc, to)
			?: check_batch_end(i, "src", batch->srcs[i], &attr->srcLoc, from)
			?: core_check_length(batch->sizes[i]);
	if (error != ACL_SUCCESS)
		return error;
	if ((to->kind == NPU_PLACE_DEVICE) == (from->kind == NPU_PLACE_DEVICE))
		return rt_invalid("dsts[%zu] and srcs[%zu] are both %s; a batch copies between "
				  "host and device",
				  i, i,
				  to->kind == NPU_PLACE_DEVICE ? "on devices" : "on the host");
	return ACL_SUCCESS;
}

/* Copies of 0 bytes are checked and left out: the driver is not to see them. */
static aclError send_batch(const struct batch *batch)
{
	uint64_t *dst = calloc(3 * batch->count, sizeof(*dst)), *src;
	size_t *size, n = 0;
	aclError error;

	if (dst == NULL)
		return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				 "no host memory for a list of %zu copies", batch->count);
	src = dst + batch->count;
	size = (size_t *)(src + batch->count);
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->sizes[i] == 0)
			continue;
		dst[n] = (uint64_t)(uintptr_t)batch->dsts[i];
		src[n] = (uint64_t)(uintptr_t)batch->srcs[i];
		size[n++] = batch->sizes[i];
	}
	error = ACL_CALL(halMemcpyBatch, dst, src, size, n);
	free(dst);
	return error;
}

static aclError batch_step(struct core_sender *sender, const struct batch *batch, size_t i,
			   const struct npu_place *to, const struct npu_place *from)
{
	if (to->kind != NPU_PLACE_PAGEABLE && from->kind != NPU_PLACE_PAGEABLE) {
		core_sender_copy(sender, (uintptr_t)batch->dsts[i], (uintptr_t)batch->srcs[i],
				 batch->sizes[i], false);
		return sender->error;
	}
	if (sender_wait(sender) == ACL_SUCCESS)
		sender->error = copy_now(batch->dsts[i], batch->dest_maxs[i], batch->srcs[i],
					 batch->sizes[i]);
	return sender->error;
}

/* Queued, or done now. As in CANN the queued copies before a refused one are made; *fail_index says
 * which was refused. */
static aclError copy_batch(struct batch *batch, size_t *fail_index, bool queued, aclrtStream stream)
{
	struct npu_place to, from;
	struct core_sender sender;
	aclError error;
	bool empty;

	*fail_index = SIZE_MAX;
	error = check_batch(batch, &empty);
	if (error != ACL_SUCCESS || empty)
		return error;
	if (!queued && batch->count > BATCH_SYNC_MAX)
		return rt_invalid("numBatches is %zu; it must be at most %u", batch->count,
				  BATCH_SYNC_MAX);
	error = queued ? sender_init(&sender, stream) : acl_check_context();
	for (size_t i = 0; error == ACL_SUCCESS && i < batch->count; i++) {
		if (queued && batch->sizes[i] == 0)
			error = rt_invalid(
				"sizes[%zu] is 0 among others that are not; leave it out", i);
		else
			error = check_batch_copy(batch, i, &to, &from);
		if (error != ACL_SUCCESS) {
			*fail_index = i;
			return (queued ? core_sender_flush(&sender, NULL, NULL) : ACL_SUCCESS)
				       ?: error;
		}
		if (queued)
			error = batch_step(&sender, batch, i, &to, &from);
	}
	return error ?: (queued ? core_sender_flush(&sender, NULL, NULL) : send_batch(batch));
}

ACL_ANSWERS(aclrtMemcpyBatch, ACL_IS_NULL(failIndex) ?: copy_batch(BATCH, failIndex, false, NULL));

ACL_ANSWERS(aclrtMemcpyBatchV2, copy_batch(BATCH, &(size_t){ 0 }, false, NULL));

ACL_ANSWERS(aclrtMemcpyBatchAsync,
	    ACL_IS_NULL(failIndex) ?: copy_batch(BATCH, failIndex, true, stream));

ACL_ANSWERS(aclrtMemcpyBatchAsyncV2, copy_batch(BATCH, &(size_t){ 0 }, true, stream));

/* ---- caches ---- */

/* A place in the stream: the model's cache gains nothing from it, and the bytes are the same. */
aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream)
{
	struct npu_place place;
	struct core_sender sender;
	aclError error = ACL_IS_NULL(src) ?: ACL_IS_ZERO(size)
			?: RT_WANT((uint32_t)cmoType <= ACL_RT_CMO_TYPE_FLUSH,
				   "cmoType is %d; it must be between 0 and %d", (int)cmoType,
				   (int)ACL_RT_CMO_TYPE_FLUSH)
			?: sender_init(&sender, stream) ?: acl_place_of("src", src, &place)
			?: RT_WANT(place.kind == NPU_PLACE_DEVICE,
				   "src is %p, which is host memory; it must be device memory",
				   src);

	if (error != ACL_SUCCESS)
		return error;
	core_sender_add(&sender)->header.type = STARS_SQE_PLACE_HOLDER;
	return core_sender_flush(&sender, NULL, NULL);
}
