/* SPDX-License-Identifier: Apache-2.0
 *
 * Records copies and memsets, one line each, and one line for each item of a batch. Work queued on
 * a stream is recorded when it is queued.
 */
#include "preload.h"

#define BATCH_LINES_MAX 65536

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* From src to dst. */
#define WRAP_COPY(name, parameters, arguments, bytes) \
	WRAP(name, parameters, arguments,             \
	     trace_record_copy(recorder, &call, at(dst), at(src), bytes))

/* ---- one piece ---- */

WRAP_COPY(aclrtMemcpy,
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind),
	  (dst, destMax, src, count, kind), count)
WRAP_COPY(aclrtMemcpyAsync,
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
	   aclrtStream stream),
	  (dst, destMax, src, count, kind, stream), count)
WRAP_COPY(aclrtMemcpyAsyncWithCondition,
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
	   aclrtStream stream),
	  (dst, destMax, src, count, kind, stream), count)

/* Where the pointers are is device memory, which nobody may read here. */
WRAP_OTHER(aclrtMemcpyAsyncWithOffset,
	   (void **dst, size_t destMax, size_t dstDataOffset, const void **src, size_t count,
	    size_t srcDataOffset, aclrtMemcpyKind kind, aclrtStream stream),
	   (dst, destMax, dstDataOffset, src, count, srcDataOffset, kind, stream))
WRAP_OTHER(aclrtMemcpyAsyncWithDesc, (void *desc, aclrtMemcpyKind kind, aclrtStream stream),
	   (desc, kind, stream))
WRAP_OTHER(aclrtReduceAsync,
	   (void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
	    aclrtStream stream, void *reserve),
	   (dst, src, count, kind, type, stream, reserve))

/* ---- rows ---- */

WRAP_COPY(aclrtMemcpy2d,
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	   aclrtMemcpyKind kind),
	  (dst, dpitch, src, spitch, width, height, kind), height *(uint64_t)width)
WRAP_COPY(aclrtMemcpy2dAsync,
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	   aclrtMemcpyKind kind, aclrtStream stream),
	  (dst, dpitch, src, spitch, width, height, kind, stream), height *(uint64_t)width)

/* ---- batches ---- */

static void record_batch(struct trace_recorder *recorder, const struct trace_call *call,
			 void *const *dsts, void *const *srcs, const size_t *sizes, size_t count)
{
	bool readable = dsts != NULL && srcs != NULL && sizes != NULL && count <= BATCH_LINES_MAX;

	for (size_t i = 0; readable && i < count; i++)
		trace_record_copy(recorder, call, at(dsts[i]), at(srcs[i]), sizes[i]);
	if (!readable || count == 0)
		trace_record_other(recorder, call, NULL);
}

#define WRAP_BATCH(name, parameters, arguments) \
	WRAP(name, parameters, arguments,       \
	     record_batch(recorder, &call, dsts, srcs, sizes, numBatches))
WRAP_BATCH(aclrtMemcpyBatch,
	   (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
	    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex),
	   (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex))
WRAP_BATCH(aclrtMemcpyBatchV2,
	   (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
	    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs),
	   (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs))
WRAP_BATCH(aclrtMemcpyBatchAsync,
	   (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
	    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
	    aclrtStream stream),
	   (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex,
	    stream))
WRAP_BATCH(aclrtMemcpyBatchAsyncV2,
	   (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
	    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, aclrtStream stream),
	   (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, stream))

/* ---- memsets ---- */

#define WRAP_FILL(name, parameters, arguments, pointer, bytes) \
	WRAP(name, parameters, arguments, trace_record_fill(recorder, &call, at(pointer), bytes))
WRAP_FILL(aclrtMemset, (void *devPtr, size_t maxCount, int32_t value, size_t count),
	  (devPtr, maxCount, value, count), devPtr, count)
WRAP_FILL(aclrtMemsetAsync,
	  (void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream),
	  (devPtr, maxCount, value, count, stream), devPtr, count)
WRAP_FILL(aclrtMemsetD32, (void *ptr, size_t memSize, uint32_t value, size_t N),
	  (ptr, memSize, value, N), ptr, (uint64_t)N * sizeof(value))
WRAP_FILL(aclrtMemsetD32Async,
	  (void *ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream),
	  (ptr, memSize, value, N, stream), ptr, (uint64_t)N * sizeof(value))
