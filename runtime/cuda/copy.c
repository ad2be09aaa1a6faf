/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills, synchronous and in streams. Every range is checked before anything moves: a
 * hole, or a mapping without the required access, is INVALID_VALUE at the call, as on the H100.
 * Owns no state.
 *
 * A copy in a stream that touches the program's own memory, unless it is registered, waits for the
 * stream and is complete when the call returns.
 */
#include "cuda-internal.h"

#define NO_STREAM ((const CUstream *)NULL)

static bool is_pageable(uint64_t va)
{
	return cuda_place(va).kind == NPU_PLACE_PAGEABLE;
}

bool cuda_is_loose(uint64_t va)
{
	return is_pageable(va) && cuda_memory_find(va).letter != NPU_PLACE_REGISTERED;
}

static bool is_on_device(uint64_t va)
{
	struct npu_place place = cuda_place(va);

	return npu_place_is_translated(&place);
}

/* ---- one piece ---- */

static CUresult copy_now(uint64_t dst, uint64_t src, size_t bytes)
{
	return CUDA_CALL(drvMemcpy, dst, bytes, src, bytes);
}

static CUresult copy_in_stream(uint64_t dst, uint64_t src, size_t bytes, CUstream handle)
{
	bool to_device = is_on_device(dst), from_device = is_on_device(src);
	bool waits = cuda_is_loose(dst) || cuda_is_loose(src) || (!to_device && !from_device);
	struct core_stream *stream;

	CUDA_OR_RETURN(cuda_stream(handle, &stream) ?: cuda_stream_order(handle));
	if (waits)
		return cuda_of_core(core_stream_synchronize(stream, -1, cuda_call))
			       ?: copy_now(dst, src, bytes);
	return cuda_of_core(
		core_stream_copy(stream, dst, src, bytes, to_device && from_device, cuda_call));
}

/* stream: NULL for a synchronous call. */
static CUresult copy(uint64_t dst, uint64_t src, size_t bytes, const CUstream *stream)
{
	CUDA_IN_CONTEXT_OF(stream != NULL ? *stream : NULL);
	CUresult code = cuda_current(NULL);

	if (code != CUDA_SUCCESS || bytes == 0)
		return code;
	if (dst == 0 || src == 0)
		return cuda_invalid("%s is NULL", dst == 0 ? "dst" : "src");
	CUDA_OR_RETURN(CUDA_CALL(npusimCheckCopy, dst, src, bytes));
	if (stream != NULL)
		return copy_in_stream(dst, src, bytes, *stream);
	return cuda_stream_before_sync() ?: copy_now(dst, src, bytes);
}

#define COPIES(name, version, to, from)                                                          \
	CUresult cuMemcpy##name##version(to dst, from src, size_t bytes)                         \
	{                                                                                        \
		return copy((uintptr_t)dst, (uintptr_t)src, bytes, NO_STREAM);                   \
	}                                                                                        \
	CUresult cuMemcpy##name##Async##version(to dst, from src, size_t bytes, CUstream stream) \
	{                                                                                        \
		return copy((uintptr_t)dst, (uintptr_t)src, bytes, &stream);                     \
	}
COPIES(, , CUdeviceptr, CUdeviceptr)
COPIES(HtoD, _v2, CUdeviceptr, const void *)
COPIES(DtoH, _v2, void *, CUdeviceptr)
COPIES(DtoD, _v2, CUdeviceptr, CUdeviceptr)

/* One address space: the contexts need only be alive. */
static CUresult check_peers(CUcontext dst, CUcontext src)
{
	if (core_context_find(dst) != NULL && core_context_find(src) != NULL)
		return CUDA_SUCCESS;
	return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, "dst_context %p, src_context %p", (void *)dst,
			 (void *)src);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
		      CUcontext src_context, size_t bytes)
	CUDA_ANSWERS(check_peers(dst_context, src_context) ?: copy(dst, src, bytes, NO_STREAM));
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			   CUcontext src_context, size_t bytes, CUstream stream)
	CUDA_ANSWERS(check_peers(dst_context, src_context) ?: copy(dst, src, bytes, &stream));

/* ---- rows ---- */

static bool base_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
		    size_t pitch, uint64_t *out)
{
	uint64_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;

	*out = base + y * pitch + x;
	return base != 0 && (type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
			     type == CU_MEMORYTYPE_UNIFIED);
}

static CUresult copy_rows(const CUDA_MEMCPY2D *rows, const CUstream *stream)
{
	CUresult code = CUDA_IS_NULL(rows);
	size_t spitch, dpitch;
	uint64_t src, dst;

	if (code != CUDA_SUCCESS || rows->WidthInBytes == 0 || rows->Height == 0)
		return code;
	spitch = rows->srcPitch ?: rows->WidthInBytes;
	dpitch = rows->dstPitch ?: rows->WidthInBytes;
	if (spitch < rows->WidthInBytes + rows->srcXInBytes ||
	    dpitch < rows->WidthInBytes + rows->dstXInBytes ||
	    !base_of(rows->srcMemoryType, rows->srcHost, rows->srcDevice, rows->srcXInBytes,
		     rows->srcY, spitch, &src) ||
	    !base_of(rows->dstMemoryType, rows->dstHost, rows->dstDevice, rows->dstXInBytes,
		     rows->dstY, dpitch, &dst))
		return cuda_invalid("rows of %zu bytes, pitches %zu and %zu, memory types %d and "
				    "%d: arrays are not modelled, and a pitch is no smaller than a "
				    "row",
				    rows->WidthInBytes, spitch, dpitch, (int)rows->srcMemoryType,
				    (int)rows->dstMemoryType);
	for (size_t y = 0; y < rows->Height && code == CUDA_SUCCESS; y++)
		code = copy(dst + y * dpitch, src + y * spitch, rows->WidthInBytes, stream);
	return code;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy_) CUDA_ANSWERS(copy_rows(copy_, NO_STREAM));
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy_)
	CUDA_ANSWERS(copy_rows(copy_, NO_STREAM));
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy_, CUstream stream)
	CUDA_ANSWERS(copy_rows(copy_, &stream));

/* ---- fills ---- */

static CUresult fill_in_stream(uint64_t dst, uint32_t pattern, unsigned bytes, size_t count,
			       CUstream handle)
{
	struct core_stream *stream;
	CUresult code = cuda_stream(handle, &stream) ?: cuda_stream_order(handle);
	uint32_t word = bytes == 1   ? pattern * 0x01010101u
			: bytes == 2 ? pattern * 0x00010001u
				     : pattern;

	if (code != CUDA_SUCCESS)
		return code;
	if (is_on_device(dst))
		return cuda_of_core(core_stream_fill(stream, dst, word, count * bytes, cuda_call));
	return cuda_of_core(core_stream_synchronize(stream, -1, cuda_call))
		       ?: CUDA_CALL(npusimFill, dst, pattern, bytes, count);
}

static CUresult fill(uint64_t dst, uint32_t pattern, unsigned bytes, size_t count,
		     const CUstream *stream)
{
	CUDA_IN_CONTEXT_OF(stream != NULL ? *stream : NULL);
	CUresult code = cuda_current(NULL);

	if (code != CUDA_SUCCESS || count == 0)
		return code;
	if (dst == 0 || dst % bytes != 0 || count > SIZE_MAX / bytes)
		return cuda_invalid("dst is 0x%llx; it must be a multiple of %u, and not 0",
				    (unsigned long long)dst, bytes);
	CUDA_OR_RETURN(CUDA_CALL(npusimCheckCopy, dst, 0, count * bytes));
	if (is_pageable(dst))
		return cuda_invalid("dst 0x%llx is no memory of the driver",
				    (unsigned long long)dst);
	if (stream != NULL)
		return fill_in_stream(dst, pattern, bytes, count, *stream);
	return cuda_stream_before_sync() ?: CUDA_CALL(npusimFill, dst, pattern, bytes, count);
}

static CUresult fill_rows(uint64_t dst, size_t pitch, uint32_t pattern, unsigned bytes,
			  size_t width, size_t height, const CUstream *stream)
{
	CUresult code = CUDA_SUCCESS;

	if (height > 1 && (width > pitch / bytes || pitch % bytes != 0))
		return cuda_invalid("pitch is %zu, and a row has %zu values of %u bytes", pitch,
				    width, bytes);
	for (size_t y = 0; y < height && code == CUDA_SUCCESS; y++)
		code = fill(dst + y * pitch, pattern, bytes, width, stream);
	return code;
}

#define FILLS(bits, type)                                                                          \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)                   \
	{                                                                                          \
		return fill(dst, value, bits / 8, count, NO_STREAM);                               \
	}                                                                                          \
	CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count,                 \
					CUstream stream)                                           \
	{                                                                                          \
		return fill(dst, value, bits / 8, count, &stream);                                 \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width,   \
					size_t height)                                             \
	{                                                                                          \
		return fill_rows(dst, pitch, value, bits / 8, width, height, NO_STREAM);           \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width, \
					  size_t height, CUstream stream)                          \
	{                                                                                          \
		return fill_rows(dst, pitch, value, bits / 8, width, height, &stream);             \
	}
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
