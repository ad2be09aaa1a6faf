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

/* ---- one piece ---- */

PRELOAD_EXPORT aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
				    aclrtMemcpyKind kind)
{
	PRELOAD_BEGIN(aclrtMemcpy, , dst, destMax, src, count, kind);
	trace_record_copy(recorder, &call, at(dst), at(src), count);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
					 aclrtMemcpyKind kind, aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyAsync, , dst, destMax, src, count, kind, stream);
	trace_record_copy(recorder, &call, at(dst), at(src), count);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src,
						      size_t count, aclrtMemcpyKind kind,
						      aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyAsyncWithCondition, , dst, destMax, src, count, kind, stream);
	trace_record_copy(recorder, &call, at(dst), at(src), count);
	PRELOAD_END;
}

/* Where the pointers are is device memory, which nobody may read here. */
PRELOAD_EXPORT aclError aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax, size_t dstDataOffset,
						   const void **src, size_t count,
						   size_t srcDataOffset, aclrtMemcpyKind kind,
						   aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyAsyncWithOffset, , dst, destMax, dstDataOffset, src, count,
		      srcDataOffset, kind, stream);
	trace_record_other(recorder, &call, NULL);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind,
						 aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyAsyncWithDesc, , desc, kind, stream);
	trace_record_other(recorder, &call, NULL);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count,
					 aclrtReduceKind kind, aclDataType type, aclrtStream stream,
					 void *reserve)
{
	PRELOAD_BEGIN(aclrtReduceAsync, , dst, src, count, kind, type, stream, reserve);
	trace_record_other(recorder, &call, NULL);
	PRELOAD_END;
}

/* ---- rows ---- */

PRELOAD_EXPORT aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
				      size_t width, size_t height, aclrtMemcpyKind kind)
{
	PRELOAD_BEGIN(aclrtMemcpy2d, , dst, dpitch, src, spitch, width, height, kind);
	trace_record_copy(recorder, &call, at(dst), at(src), (uint64_t)width * height);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
					   size_t width, size_t height, aclrtMemcpyKind kind,
					   aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpy2dAsync, , dst, dpitch, src, spitch, width, height, kind, stream);
	trace_record_copy(recorder, &call, at(dst), at(src), (uint64_t)width * height);
	PRELOAD_END;
}

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

PRELOAD_EXPORT aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
					 size_t numBatches, aclrtMemcpyBatchAttr *attrs,
					 size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
{
	PRELOAD_BEGIN(aclrtMemcpyBatch, , dsts, destMaxs, srcs, sizes, numBatches, attrs,
		      attrsIndexes, numAttrs, failIndex);
	record_batch(recorder, &call, dsts, srcs, sizes, numBatches);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs,
					   size_t *sizes, size_t numBatches,
					   aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
					   size_t numAttrs)
{
	PRELOAD_BEGIN(aclrtMemcpyBatchV2, , dsts, destMaxs, srcs, sizes, numBatches, attrs,
		      attrsIndexes, numAttrs);
	record_batch(recorder, &call, dsts, srcs, sizes, numBatches);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs,
					      size_t *sizes, size_t numBatches,
					      aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
					      size_t numAttrs, size_t *failIndex,
					      aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyBatchAsync, , dsts, destMaxs, srcs, sizes, numBatches, attrs,
		      attrsIndexes, numAttrs, failIndex, stream);
	record_batch(recorder, &call, dsts, srcs, sizes, numBatches);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs,
						size_t *sizes, size_t numBatches,
						aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
						size_t numAttrs, aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemcpyBatchAsyncV2, , dsts, destMaxs, srcs, sizes, numBatches, attrs,
		      attrsIndexes, numAttrs, stream);
	record_batch(recorder, &call, dsts, srcs, sizes, numBatches);
	PRELOAD_END;
}

/* ---- memsets ---- */

PRELOAD_EXPORT aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	PRELOAD_BEGIN(aclrtMemset, , devPtr, maxCount, value, count);
	trace_record_fill(recorder, &call, at(devPtr), count);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
					 aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemsetAsync, , devPtr, maxCount, value, count, stream);
	trace_record_fill(recorder, &call, at(devPtr), count);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
	PRELOAD_BEGIN(aclrtMemsetD32, , ptr, memSize, value, N);
	trace_record_fill(recorder, &call, at(ptr), (uint64_t)N * sizeof(value));
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N,
					    aclrtStream stream)
{
	PRELOAD_BEGIN(aclrtMemsetD32Async, , ptr, memSize, value, N, stream);
	trace_record_fill(recorder, &call, at(ptr), (uint64_t)N * sizeof(value));
	PRELOAD_END;
}
