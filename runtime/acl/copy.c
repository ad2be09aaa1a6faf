/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronous copies and fills, and the checks that they share with the asynchronous ones
 * (copy-async.c). Owns the order of the checks; where bytes lie and how they move is the driver's
 * business. As in CANN a synchronous copy waits for no stream.
 */
#include "acl-internal.h"

#include <stdlib.h>

#define WIDTH_MAX        UINT64_C(5000000)
#define HEIGHT_MAX       (UINT64_C(5) << 20)
#define BATCH_SYNC_MAX   4096u
#define FILL_PIECE_BYTES (UINT64_C(1) << 20)

/* ---- one copy ---- */

aclError acl_check_copy(const char *call, const void *dst, size_t dst_max, const void *src,
			size_t count, aclrtMemcpyKind kind)
{
	return acl_null(call, "dst", dst) ?: acl_null(call, "src", src)
		       ?: ACL_WANT(call, (uint32_t)kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
				   "kind is %d (%s); it must be ACL_MEMCPY_HOST_TO_HOST (0) to "
				   "ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE (5), for instance "
				   "ACL_MEMCPY_DEFAULT (4)",
				   (int)kind, acl_memcpy_kind_name(kind))
		       ?: RT_WANT(call, count <= dst_max,
				  "count is %s, but destMax says that dst has room for %s; count "
				  "must be at most destMax",
				  npu_size_text(count), npu_size_text(dst_max));
}

aclError acl_copy_now(const char *call, void *dst, size_t dst_max, const void *src, size_t count)
{
	return ACL_CALL(call, drvMemcpy, (DVdeviceptr)(uintptr_t)dst, dst_max,
			(DVdeviceptr)(uintptr_t)src, count);
}

ACL_EXPORT aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
				aclrtMemcpyKind kind)
{
	aclError error;

	if (count == 0)
		return ACL_SUCCESS;
	error = acl_check_copy(__func__, dst, destMax, src, count, kind);
	if (error != ACL_SUCCESS || dst == src)
		return error;
	error = acl_check_context(__func__);
	if (error != ACL_SUCCESS)
		return error;
	core_order(0, NPU_ORDER_KIND, (uint32_t)kind, (uintptr_t)dst);
	return acl_copy_now(__func__, dst, destMax, src, count);
}

/* ---- rows ---- */

aclError acl_check_copy_2d(const char *call, const struct acl_rows *rows, aclrtMemcpyKind kind)
{
	return acl_null(call, "dst", rows->dst) ?: acl_null(call, "src", rows->src)
		       ?: ACL_WANT(call,
				   rows->width <= rows->spitch && rows->width <= rows->dpitch,
				   "width is %zu, but spitch is %zu and dpitch is %zu; a row must "
				   "fit into both pitches",
				   rows->width, rows->spitch, rows->dpitch)
		       ?: ACL_WANT(call, kind >= ACL_MEMCPY_HOST_TO_DEVICE &&
						kind <= ACL_MEMCPY_DEFAULT,
				   "kind is %d (%s); rows are copied by ACL_MEMCPY_HOST_TO_DEVICE "
				   "(1), ACL_MEMCPY_DEVICE_TO_HOST (2), "
				   "ACL_MEMCPY_DEVICE_TO_DEVICE (3) and ACL_MEMCPY_DEFAULT (4)",
				   (int)kind, acl_memcpy_kind_name(kind))
		       ?: RT_WANT(call, rows->height <= HEIGHT_MAX,
				  "height is %zu; it must be at most %llu", rows->height,
				  (unsigned long long)HEIGHT_MAX)
		       ?: RT_WANT(call, rows->width <= WIDTH_MAX,
				  "width is %zu; it must be at most %llu", rows->width,
				  (unsigned long long)WIDTH_MAX);
}

aclError acl_copy_2d_now(const char *call, const struct acl_rows *rows, aclrtMemcpyKind kind)
{
	unsigned direction = kind == ACL_MEMCPY_HOST_TO_DEVICE ? DRV_MEMCPY_HOST_TO_DEVICE
							       : DRV_MEMCPY_DEVICE_TO_HOST;
	struct MEMCPY2D copy = {
		.type = DEVMM_MEMCPY2D_SYNC,
		.copy2d = {
			.dst = rows->dst,
			.dpitch = rows->dpitch,
			.src = (unsigned long long *) (uintptr_t) rows->src,
			.spitch = rows->spitch,
			.width = rows->width,
			.height = rows->height,
			.direction = direction,
		},
	};

	return ACL_CALL(call, halMemcpy2D, &copy);
}

ACL_EXPORT aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
				  size_t width, size_t height, aclrtMemcpyKind kind)
{
	const struct acl_rows rows = { dst, dpitch, src, spitch, width, height };
	struct npu_place from, to;
	aclrtMemcpyKind real = kind;
	aclError error;

	if (width == 0 || height == 0)
		return ACL_SUCCESS;
	error = acl_check_copy_2d(__func__, &rows, kind);
	if (error != ACL_SUCCESS)
		return error;
	if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
		return acl_unsupported(
			__func__, "kind is ACL_MEMCPY_DEVICE_TO_DEVICE; a synchronous copy of rows "
				  "goes from the host to a device or back: use aclrtMemcpy2dAsync");
	error = acl_check_context(__func__) ?: acl_real_kind(__func__, dst, src, &real, &to, &from);
	if (error != ACL_SUCCESS)
		return error;
	if (real != ACL_MEMCPY_HOST_TO_DEVICE && real != ACL_MEMCPY_DEVICE_TO_HOST)
		return rt_invalid(__func__,
				  "src and dst lie so that this is %s; a synchronous copy of rows "
				  "goes from the host to a device or back",
				  acl_memcpy_kind_name(real));
	return acl_copy_2d_now(__func__, &rows, real);
}

/* ---- fills ---- */

aclError acl_fill_now(const char *call, void *ptr, size_t max, uint8_t value, size_t count)
{
	return ACL_CALL(call, drvMemsetD8, (DVdeviceptr)(uintptr_t)ptr, max, value, count);
}

aclError acl_check_fill(const char *call, size_t max, size_t count)
{
	return RT_WANT(call, count <= max,
		       "count is %s, but maxCount says that devPtr has room for %s; count must be "
		       "at most maxCount",
		       npu_size_text(count), npu_size_text(max));
}

ACL_EXPORT aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	if (count == 0)
		return ACL_SUCCESS;
	return ACL_IS_NULL(devPtr)
		       ?: acl_check_context(__func__)
		       ?: acl_check_fill(__func__, maxCount, count)
		       ?: acl_fill_now(__func__, devPtr, maxCount, (uint8_t)value, count);
}

aclError acl_check_fill_d32(const char *call, const void *ptr, size_t mem_size, size_t words,
			    struct npu_place *out_place)
{
	return acl_null(call, "ptr", ptr)
		       ?: ACL_WANT(call, ((uintptr_t)ptr & 3) == 0,
				   "ptr is %p; it must be a multiple of 4", ptr)
		       ?: ACL_WANT(call, words <= mem_size / sizeof(uint32_t),
				   "N is %zu words of 4 bytes, but memSize is %s; 4 * N must be at "
				   "most memSize",
				   words, npu_size_text(mem_size))
		       ?: acl_place_of(call, "ptr", ptr, out_place)
		       ?: ACL_WANT(call, out_place->kind == NPU_PLACE_DEVICE ||
						acl_place_is_host(out_place),
				   "ptr is %p, which is ordinary memory of the process; it must be "
				   "memory of aclrtMalloc, aclrtMallocHost or aclrtMapMem",
				   ptr)
		       ?: acl_check_context(call);
}

/* Words of four equal bytes are filled by the driver, others copied from a piece of them on the
 * host. */
aclError acl_fill_d32_now(const char *call, void *ptr, uint32_t value, size_t words)
{
	uint64_t bytes = (uint64_t)words * sizeof(value);
	uint64_t piece = bytes < FILL_PIECE_BYTES ? bytes : FILL_PIECE_BYTES;
	aclError error = ACL_SUCCESS;
	uint32_t *pattern;

	if (value == (value & 0xff) * 0x01010101u)
		return acl_fill_now(call, ptr, bytes, (uint8_t)value, bytes);
	pattern = malloc(piece);
	if (pattern == NULL)
		return acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, call,
				"no host memory for a piece of %s to copy from",
				npu_size_text(piece));
	for (uint64_t i = 0; i < piece / sizeof(value); i++)
		pattern[i] = value;
	for (uint64_t done = 0; done < bytes && error == ACL_SUCCESS; done += piece) {
		uint64_t now = bytes - done < piece ? bytes - done : piece;

		error = acl_copy_now(call, (char *)ptr + done, now, pattern, now);
	}
	free(pattern);
	return error;
}

ACL_EXPORT aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
	struct npu_place place;

	if (N == 0)
		return ACL_SUCCESS;
	return acl_check_fill_d32(__func__, ptr, memSize, N, &place)
		       ?: acl_fill_d32_now(__func__, ptr, value, N);
}

/* ---- batches ---- */

static aclError check_batch_arrays(const char *call, const struct acl_batch *batch)
{
	if (acl_null(call, "dsts", batch->dsts) || acl_null(call, "destMaxs", batch->dest_maxs) ||
	    acl_null(call, "srcs", batch->srcs) || acl_null(call, "attrs", batch->attrs) ||
	    acl_null(call, "attrsIndexes", batch->indexes))
		return ACL_ERROR_INVALID_PARAM;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->dest_maxs[i] < batch->sizes[i])
			return acl_invalid(call,
					   "sizes[%zu] is %s, but destMaxs[%zu] is %s; a copy must "
					   "fit into its place",
					   i, npu_size_text(batch->sizes[i]), i,
					   npu_size_text(batch->dest_maxs[i]));
	for (size_t k = 0; k < batch->attr_count; k++)
		for (size_t i = 0; i < sizeof(batch->attrs[k].rsv); i++)
			if (batch->attrs[k].rsv[i] != 0)
				return acl_invalid(
					call, "attrs[%zu].rsv is not all zeros; it must be", k);
	return ACL_SUCCESS;
}

static aclError check_batch_indexes(const char *call, const struct acl_batch *batch)
{
	if (batch->attr_count == 0 || batch->attr_count > batch->count)
		return rt_invalid(call, "numAttrs is %zu; it must be between 1 and numBatches, %zu",
				  batch->attr_count, batch->count);
	if (batch->indexes[0] != 0)
		return rt_invalid(call, "attrsIndexes[0] is %zu; it must be 0", batch->indexes[0]);
	for (size_t k = 1; k < batch->attr_count; k++)
		if (batch->indexes[k] <= batch->indexes[k - 1] || batch->indexes[k] >= batch->count)
			return rt_invalid(call,
					  "attrsIndexes[%zu] is %zu after %zu; indices must ascend "
					  "and be less than numBatches, %zu",
					  k, batch->indexes[k], batch->indexes[k - 1],
					  batch->count);
	return ACL_SUCCESS;
}

aclError acl_check_batch(const char *call, const struct acl_batch *batch, bool *out_empty)
{
	*out_empty = false;
	if (acl_null(call, "sizes", batch->sizes))
		return ACL_ERROR_INVALID_PARAM;
	if (batch->count == 0)
		return acl_invalid(call, "numBatches is 0; it must be at least 1");
	*out_empty = true;
	for (size_t i = 0; i < batch->count; i++)
		*out_empty &= batch->sizes[i] == 0;
	if (*out_empty)
		return ACL_SUCCESS;
	return check_batch_arrays(call, batch) ?: check_batch_indexes(call, batch);
}

/* The location that the program gives for one end against where it really is. */
static aclError check_batch_end(const char *call, size_t i, const char *end, const void *ptr,
				const aclrtMemLocation *said, struct npu_place *out)
{
	bool said_device = said->type == ACL_MEM_LOCATION_TYPE_DEVICE;
	bool said_host = said->type == ACL_MEM_LOCATION_TYPE_HOST ||
			 said->type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	int32_t user = -1;
	aclError error = acl_place_of(call, end, ptr, out);
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
			call,
			"%ss[%zu] is memory of device %d, but attrs says %s %u; they must agree",
			end, i, user, acl_location_name(said->type), said->id);
	return rt_invalid(call, "%ss[%zu] is host memory, but attrs says %s; they must agree", end,
			  i, acl_location_name(said->type));
}

aclError acl_check_batch_copy(const char *call, const struct acl_batch *batch, size_t i,
			      const aclrtMemcpyBatchAttr *attr, struct npu_place *to,
			      struct npu_place *from)
{
	if (batch->dsts[i] == NULL || batch->srcs[i] == NULL)
		return rt_invalid(call, "%s[%zu] is NULL; it must point to something",
				  batch->srcs[i] == NULL ? "srcs" : "dsts", i);
	aclError error =
		check_batch_end(call, i, "dst", batch->dsts[i], &attr->dstLoc, to)
			?: check_batch_end(call, i, "src", batch->srcs[i], &attr->srcLoc, from);
	if (error != ACL_SUCCESS)
		return error;
	if ((to->kind == NPU_PLACE_DEVICE) == (from->kind == NPU_PLACE_DEVICE))
		return rt_invalid(call,
				  "dsts[%zu] and srcs[%zu] are both %s; a batch copies between "
				  "host and device",
				  i, i,
				  to->kind == NPU_PLACE_DEVICE ? "on devices" : "on the host");
	return ACL_SUCCESS;
}

const aclrtMemcpyBatchAttr *acl_batch_attr(const struct acl_batch *batch, size_t i, size_t *k)
{
	while (*k + 1 < batch->attr_count && i >= batch->indexes[*k + 1])
		(*k)++;
	return &batch->attrs[*k];
}

/* Copies of 0 bytes are checked and left out: the driver is not to see them. */
static aclError send_batch(const char *call, const struct acl_batch *batch)
{
	uint64_t *dst = calloc(batch->count, sizeof(*dst)),
		 *src = calloc(batch->count, sizeof(*src));
	size_t *size = calloc(batch->count, sizeof(*size)), n = 0;
	struct npu_driver *drv = core_driver();
	aclError error;

	for (size_t i = 0; dst != NULL && src != NULL && size != NULL && i < batch->count; i++) {
		if (batch->sizes[i] == 0)
			continue;
		dst[n] = (uint64_t)(uintptr_t)batch->dsts[i];
		src[n] = (uint64_t)(uintptr_t)batch->srcs[i];
		size[n++] = batch->sizes[i];
	}
	if (n == 0)
		error = acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, call,
				 "no host memory for a list of %zu copies", batch->count);
	else if (drv == NULL)
		error = ACL_ERROR_INTERNAL_ERROR;
	else
		error = core_result(call, ACL_DRIVER_CALL(drv, halMemcpyBatch, dst, src, size, n));
	free(dst);
	free(src);
	free(size);
	return error;
}

static aclError copy_batch(const char *call, const struct acl_batch *batch, size_t *fail_index)
{
	struct npu_place to, from;
	aclError error;
	bool empty;
	size_t k = 0;

	*fail_index = SIZE_MAX;
	error = acl_check_batch(call, batch, &empty);
	if (error != ACL_SUCCESS || empty)
		return error;
	if (batch->count > BATCH_SYNC_MAX)
		return rt_invalid(call, "numBatches is %zu; it must be at most %u", batch->count,
				  BATCH_SYNC_MAX);
	error = acl_check_context(call);
	if (error != ACL_SUCCESS)
		return error;
	for (size_t i = 0; i < batch->count; i++) {
		error = acl_check_batch_copy(call, batch, i, acl_batch_attr(batch, i, &k), &to,
					     &from);
		if (error != ACL_SUCCESS) {
			*fail_index = i;
			return error;
		}
	}
	return send_batch(call, batch);
}

ACL_EXPORT aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
				     size_t numBatches, aclrtMemcpyBatchAttr *attrs,
				     size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
	ACL_ANSWERS(ACL_IS_NULL(failIndex) ?: copy_batch(__func__, ACL_BATCH, failIndex));

ACL_EXPORT aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
				       size_t numBatches, aclrtMemcpyBatchAttr *attrs,
				       size_t *attrsIndexes, size_t numAttrs)
	ACL_ANSWERS(copy_batch(__func__, ACL_BATCH, &(size_t){ 0 }));
