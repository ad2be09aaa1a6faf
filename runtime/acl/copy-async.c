/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous copies and fills: queue entries for page-locked and device memory, built here and
 * sent through the stream. Owns the choice of engine (PCIe DMA between host and device, SDMA
 * between device addresses), the pieces of long copies, and the host buffers that entries read
 * from, which live until their entries are done.
 *
 * As CANN documents it, a copy that touches pageable host memory is not queued: it waits for the
 * stream and is done when the call returns. So only page-locked memory must outlive the call.
 */
#include "acl-internal.h"

#include <assert.h>
#include <string.h>

#define ENTRIES_MAX 32u /* sent at once */
static_assert(sizeof(union core_entry) == STARS_SQE_BYTES, "entries have 64 bytes");

/* Collects entries and sends them in order; the first failure stays. */
struct sender {
	const char *call;
	struct core_stream *stream;
	aclError error;
	unsigned count;
	union core_entry entries[ENTRIES_MAX];
};

static aclError sender_init(struct sender *sender, const char *call, aclrtStream stream)
{
	sender->call = call;
	sender->error = core_stream_find(stream, call, &sender->stream);
	sender->count = 0;
	return sender->error;
}

static aclError sender_flush(struct sender *sender,
			     void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg)
{
	if (sender->error == ACL_SUCCESS && sender->count > 0)
		sender->error = core_stream_send(sender->stream, sender->entries, sender->count,
						 keep, arg, sender->call);
	sender->count = 0;
	return sender->error;
}

static union core_entry *sender_add(struct sender *sender)
{
	if (sender->count == ENTRIES_MAX)
		sender_flush(sender, NULL, NULL);
	return &sender->entries[sender->count++];
}

/* Of any length: SDMA between device addresses, else PCIe DMA. */
static void add_copy(struct sender *sender, const void *dst, const void *src, uint64_t bytes,
		     bool on_device)
{
	for (uint64_t done = 0; done < bytes; done += CORE_PIECE_BYTES)
		core_copy_entry(sender_add(sender), (uintptr_t)dst + done, (uintptr_t)src + done,
				bytes - done < CORE_PIECE_BYTES ? bytes - done : CORE_PIECE_BYTES,
				on_device);
}

/* Waits for the stream, what was collected included. */
static aclError sender_wait(struct sender *sender)
{
	if (sender_flush(sender, NULL, NULL) == ACL_SUCCESS)
		sender->error = core_stream_synchronize(sender->stream, -1, sender->call);
	return sender->error;
}

/* ---- host buffers that entries read ---- */

static void *buffer_alloc(const char *call, uint64_t bytes, aclError *error)
{
	void *made = NULL;

	*error = ACL_CALL(call, halMemAlloc, &made, bytes,
			  (MEM_HOST_VAL << MEM_VIRT_BIT) |
				  ((uint64_t)RUNTIME_MODULE_ID << MEM_MODULE_ID_BIT));
	if (*error != ACL_SUCCESS)
		return NULL;
	core_order(0, NPU_ORDER_OWN, 0, (uintptr_t)made);
	return made;
}

static void buffer_free(void *buffer, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	core_call(halMemFree, buffer);
}

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

aclError acl_real_kind(const char *call, const void *dst, const void *src, aclrtMemcpyKind *kind,
		       struct npu_place *to, struct npu_place *from)
{
	bool from_device, to_device, pageable;
	aclError error = acl_place_of(call, "src", src, from) ?: acl_place_of(call, "dst", dst, to);

	if (error != ACL_SUCCESS)
		return error;
	from_device = from->kind == NPU_PLACE_DEVICE || from->kind == NPU_PLACE_MANAGED;
	to_device = to->kind == NPU_PLACE_DEVICE || to->kind == NPU_PLACE_MANAGED;
	pageable = from->kind == NPU_PLACE_PAGEABLE || to->kind == NPU_PLACE_PAGEABLE;
	if (pageable &&
	    !kind_is_heard(*kind, from_device, to_device, from->kind == NPU_PLACE_PAGEABLE,
			   to->kind == NPU_PLACE_PAGEABLE))
		return rt_invalid(call,
				  "kind is %s, but src is %s memory and dst is %s memory; use %s "
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

/* Between two devices the driver tells which engine reaches. */
static aclError add_device_copy(struct sender *sender, void *dst, void *src, uint64_t bytes,
				bool other_device)
{
	uint8_t way = 0;

	if (other_device)
		sender->error = ACL_CALL(sender->call, drvDeviceGetTransWay, src, dst, &way);
	if (sender->error == ACL_SUCCESS)
		add_copy(sender, dst, src, bytes, way != 1);
	return sender->error;
}

/* ---- one copy ---- */

/* ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: the source is copied at once, and free when the call returns.
 */
static aclError copy_through_buffer(struct sender *sender, void *dst, const void *src, size_t count)
{
	struct npu_place to, from;
	aclrtMemcpyKind kind = ACL_MEMCPY_DEFAULT;
	void *buffer;
	aclError error = acl_real_kind(sender->call, dst, src, &kind, &to, &from);

	if (error != ACL_SUCCESS)
		return error;
	if (kind != ACL_MEMCPY_HOST_TO_DEVICE)
		return rt_invalid(
			sender->call,
			"kind is ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, but src and dst lie so that "
			"this is %s; src must be host memory and dst device memory",
			acl_memcpy_kind_name(kind));
	buffer = buffer_alloc(sender->call, count, &error);
	if (buffer == NULL)
		return error;
	error = acl_copy_now(sender->call, buffer, count, src, count);
	/* The buffer goes with the last entry. Else what was sent before has been waited for: see
	 * core_stream_send(). */
	if (error == ACL_SUCCESS) {
		add_copy(sender, dst, buffer, count, false);
		error = sender_flush(sender, buffer_free, buffer);
	}
	if (error != ACL_SUCCESS)
		buffer_free(buffer, NULL);
	return error;
}

static aclError copy_async(const char *call, void *dst, size_t dst_max, const void *src,
			   size_t count, aclrtMemcpyKind kind, aclrtStream stream)
{
	struct npu_place to, from;
	struct sender sender;
	aclError error = acl_check_copy(call, dst, dst_max, src, count, kind)
				 ?: sender_init(&sender, call, stream);

	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
		return copy_through_buffer(&sender, dst, src, count);
	core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)dst);
	error = acl_real_kind(call, dst, src, &kind, &to, &from);
	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_HOST_TO_HOST)
		return acl_unsupported(
			call,
			"src and dst are both host memory, which no engine of the device copies; "
			"use aclrtMemcpy, or a host function in the stream (aclrtLaunchHostFunc)");
	if (dst == src)
		return ACL_SUCCESS;
	if (from.kind == NPU_PLACE_PAGEABLE || to.kind == NPU_PLACE_PAGEABLE)
		return sender_wait(&sender) ?: acl_copy_now(call, dst, dst_max, src, count);
	if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
		add_device_copy(&sender, dst, (void *)src, count,
				acl_place_device(&to) != acl_place_device(&from));
	else
		add_copy(&sender, dst, src, count, false);
	return sender_flush(&sender, NULL, NULL);
}

ACL_EXPORT aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
				     aclrtMemcpyKind kind, aclrtStream stream)
	ACL_ANSWERS(count == 0 ? ACL_SUCCESS
			       : copy_async(__func__, dst, destMax, src, count, kind, stream));
ACL_EXPORT aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src,
						  size_t count, aclrtMemcpyKind kind,
						  aclrtStream stream)
	ACL_ANSWERS(count == 0 ? ACL_SUCCESS
			       : copy_async(__func__, dst, destMax, src, count, kind, stream));

/* ---- rows ---- */

/* One entry a row; rows without gaps on both sides are one copy. */
static aclError send_rows(struct sender *sender, const struct acl_rows *rows, bool on_devices,
			  bool other_device)
{
	bool dense = rows->width == rows->dpitch && rows->width == rows->spitch;
	uint64_t bytes = dense ? (uint64_t)rows->width * rows->height : rows->width;
	uint64_t count = dense ? 1 : rows->height;

	for (uint64_t i = 0; i < count && sender->error == ACL_SUCCESS; i++) {
		char *dst = (char *)rows->dst + i * rows->dpitch;
		char *src = (char *)rows->src + i * rows->spitch;

		if (on_devices)
			add_device_copy(sender, dst, src, bytes, other_device);
		else
			add_copy(sender, dst, src, bytes, false);
	}
	return sender_flush(sender, NULL, NULL);
}

ACL_EXPORT aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
				       size_t width, size_t height, aclrtMemcpyKind kind,
				       aclrtStream stream)
{
	const struct acl_rows rows = { dst, dpitch, src, spitch, width, height };
	struct npu_place to, from;
	struct sender sender;
	aclError error;

	if (width == 0 || height == 0)
		return ACL_SUCCESS;
	error = acl_check_copy_2d(__func__, &rows, kind) ?: sender_init(&sender, __func__, stream);
	if (error != ACL_SUCCESS)
		return error;
	core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)dst);
	error = acl_real_kind(__func__, dst, src, &kind, &to, &from);
	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_HOST_TO_HOST)
		return rt_invalid(__func__, "src and dst are both host memory; rows are copied "
					    "from, to or between devices");
	if (from.kind == NPU_PLACE_PAGEABLE || to.kind == NPU_PLACE_PAGEABLE)
		return sender_wait(&sender) ?: acl_copy_2d_now(__func__, &rows, kind);
	return send_rows(&sender, &rows, kind == ACL_MEMCPY_DEVICE_TO_DEVICE,
			 acl_place_device(&to) != acl_place_device(&from));
}

/* ---- fills ---- */

ACL_EXPORT aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
				     aclrtStream stream)
{
	uint32_t byte = (uint8_t)value;
	struct npu_place place;
	struct sender sender;
	aclError error;

	if (count == 0)
		return ACL_SUCCESS;
	error = ACL_IS_NULL(devPtr)
			?: acl_check_fill(__func__, maxCount, count)
			?: acl_check_context(__func__)
			?: sender_init(&sender, __func__, stream)
			?: acl_place_of(__func__, "devPtr", devPtr, &place);
	if (error != ACL_SUCCESS)
		return error;
	if (place.kind == NPU_PLACE_DEVICE)
		return core_stream_fill(sender.stream, (uintptr_t)devPtr, byte * 0x01010101u, count,
					__func__);
	return sender_wait(&sender)
		       ?: acl_fill_now(__func__, devPtr, maxCount, (uint8_t)value, count);
}

ACL_EXPORT aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N,
					aclrtStream stream)
{
	struct npu_place place;
	struct sender sender;
	aclError error;

	if (N == 0)
		return ACL_SUCCESS;
	error = acl_check_fill_d32(__func__, ptr, memSize, N, &place)
			?: sender_init(&sender, __func__, stream);
	if (error != ACL_SUCCESS)
		return error;
	if (place.kind == NPU_PLACE_DEVICE)
		return core_stream_fill(sender.stream, (uintptr_t)ptr, value,
					(uint64_t)N * sizeof(value), __func__);
	return sender_wait(&sender) ?: acl_fill_d32_now(__func__, ptr, value, N);
}

/* ---- batches ---- */

static aclError batch_step(struct sender *sender, const struct acl_batch *batch, size_t i,
			   const struct npu_place *to, const struct npu_place *from)
{
	if (to->kind != NPU_PLACE_PAGEABLE && from->kind != NPU_PLACE_PAGEABLE) {
		add_copy(sender, batch->dsts[i], batch->srcs[i], batch->sizes[i], false);
		return sender->error;
	}
	if (sender_wait(sender) == ACL_SUCCESS)
		sender->error = acl_copy_now(sender->call, batch->dsts[i], batch->dest_maxs[i],
					     batch->srcs[i], batch->sizes[i]);
	return sender->error;
}

/* As in CANN the copies before a refused one are made; *fail_index says which was refused. */
static aclError copy_batch_async(const char *call, const struct acl_batch *batch,
				 size_t *fail_index, aclrtStream stream)
{
	struct npu_place to, from;
	struct sender sender;
	aclError error, sent;
	size_t k = 0;
	bool empty;

	*fail_index = SIZE_MAX;
	error = acl_check_batch(call, batch, &empty);
	if (error != ACL_SUCCESS || empty)
		return error;
	error = sender_init(&sender, call, stream);
	for (size_t i = 0; error == ACL_SUCCESS && i < batch->count; i++) {
		if (batch->sizes[i] == 0)
			error = rt_invalid(
				call, "sizes[%zu] is 0 among others that are not; leave it out", i);
		else
			error = acl_check_batch_copy(call, batch, i, acl_batch_attr(batch, i, &k),
						     &to, &from);
		if (error != ACL_SUCCESS) {
			*fail_index = i;
			sent = sender_flush(&sender, NULL, NULL);
			return sent != ACL_SUCCESS ? sent : error;
		}
		error = batch_step(&sender, batch, i, &to, &from);
	}
	return error ?: sender_flush(&sender, NULL, NULL);
}

ACL_EXPORT aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
					  size_t numBatches, aclrtMemcpyBatchAttr *attrs,
					  size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
					  aclrtStream stream)
	ACL_ANSWERS(ACL_IS_NULL(failIndex)
			    ?: copy_batch_async(__func__, ACL_BATCH, failIndex, stream));

ACL_EXPORT aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs,
					    size_t *sizes, size_t numBatches,
					    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
					    size_t numAttrs, aclrtStream stream)
	ACL_ANSWERS(copy_batch_async(__func__, ACL_BATCH, &(size_t){ 0 }, stream));

/* ---- caches ---- */

/* A place in the stream: the model's cache has nothing to gain from it, and the bytes are the same.
 */
ACL_EXPORT aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream)
{
	struct npu_place place;
	struct sender sender;
	union core_entry *entry;
	aclError error;

	if (ACL_IS_NULL(src) || ACL_IS_ZERO(size))
		return ACL_ERROR_INVALID_PARAM;
	if ((uint32_t)cmoType > ACL_RT_CMO_TYPE_FLUSH)
		return rt_invalid(__func__, "cmoType is %d; it must be between 0 and %d",
				  (int)cmoType, (int)ACL_RT_CMO_TYPE_FLUSH);
	error = sender_init(&sender, __func__, stream)
			?: acl_place_of(__func__, "src", src, &place);
	if (error != ACL_SUCCESS)
		return error;
	if (place.kind != NPU_PLACE_DEVICE)
		return rt_invalid(__func__,
				  "src is %p, which is host memory; it must be device memory", src);
	entry = sender_add(&sender);
	memset(entry, 0, sizeof(*entry));
	entry->header.type = STARS_SQE_PLACE_HOLDER;
	return sender_flush(&sender, NULL, NULL);
}
