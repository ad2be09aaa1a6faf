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

static bool is_loose(uint64_t va)
{
	return is_pageable(va) && cuda_memory_find(va).letter != NPU_PLACE_REGISTERED;
}

static bool is_on_device(uint64_t va)
{
	struct npu_place place = cuda_place(va);

	return npu_place_is_translated(&place);
}

/* ---- one piece ---- */

static CUresult copy_now(const char *call, uint64_t dst, uint64_t src, size_t bytes)
{
	return CUDA_CALL(call, drvMemcpy, dst, bytes, src, bytes);
}

static CUresult copy_in_stream(const char *call, uint64_t dst, uint64_t src, size_t bytes,
			       CUstream handle)
{
	bool to_device = is_on_device(dst), from_device = is_on_device(src);
	bool waits = is_loose(dst) || is_loose(src) || (!to_device && !from_device);
	struct core_stream *stream;
	CUresult code = cuda_stream(handle, call, &stream) ?: cuda_stream_order(handle, call);

	if (code != CUDA_SUCCESS)
		return code;
	if (waits)
		return cuda_of_core(call, core_stream_synchronize(stream, -1, call))
			       ?: copy_now(call, dst, src, bytes);
	return cuda_of_core(
		call, core_stream_copy(stream, dst, src, bytes, to_device && from_device, call));
}

/* stream: NULL for a synchronous call. */
static CUresult copy(const char *call, uint64_t dst, uint64_t src, size_t bytes,
		     const CUstream *stream)
{
	CUDA_IN_CONTEXT_OF(stream != NULL ? *stream : NULL);
	CUresult code = cuda_current(call, NULL);

	if (code != CUDA_SUCCESS || bytes == 0)
		return code;
	if (dst == 0 || src == 0)
		return cuda_invalid(call, "%s is NULL", dst == 0 ? "dst" : "src");
	code = CUDA_CALL(call, npusimCheckCopy, dst, src, bytes);
	if (code != CUDA_SUCCESS)
		return code;
	if (stream != NULL)
		return copy_in_stream(call, dst, src, bytes, *stream);
	return cuda_stream_before_sync(call) ?: copy_now(call, dst, src, bytes);
}

#define COPIES(name, version, to, from)                                                          \
	CUresult cuMemcpy##name##version(to dst, from src, size_t bytes)                         \
	{                                                                                        \
		return copy("cuMemcpy" #name, (uintptr_t)dst, (uintptr_t)src, bytes, NO_STREAM); \
	}                                                                                        \
	CUresult cuMemcpy##name##Async##version(to dst, from src, size_t bytes, CUstream stream) \
	{                                                                                        \
		return copy("cuMemcpy" #name "Async", (uintptr_t)dst, (uintptr_t)src, bytes,     \
			    &stream);                                                            \
	}
COPIES(, , CUdeviceptr, CUdeviceptr)
COPIES(HtoD, _v2, CUdeviceptr, const void *)
COPIES(DtoH, _v2, void *, CUdeviceptr)
COPIES(DtoD, _v2, CUdeviceptr, CUdeviceptr)

/* One address space: the contexts need only be alive. */
static CUresult copy_peer(const char *call, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			  CUcontext src_context, size_t bytes, const CUstream *stream)
{
	if (core_context_find(dst_context) == NULL || core_context_find(src_context) == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, call, "dst_context %p, src_context %p",
				 (void *)dst_context, (void *)src_context);
	return copy(call, dst, src, bytes, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
		      CUcontext src_context, size_t bytes)
	CUDA_ANSWERS(copy_peer(__func__, dst, dst_context, src, src_context, bytes, NO_STREAM));
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			   CUcontext src_context, size_t bytes, CUstream stream)
	CUDA_ANSWERS(copy_peer(__func__, dst, dst_context, src, src_context, bytes, &stream));

/* ---- rows ---- */

static bool base_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
		    size_t pitch, uint64_t *out)
{
	uint64_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;

	*out = base + y * pitch + x;
	return base != 0 && (type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
			     type == CU_MEMORYTYPE_UNIFIED);
}

static CUresult copy_rows(const char *call, const CUDA_MEMCPY2D *rows, const CUstream *stream)
{
	CUresult code = cuda_null(call, "copy", rows);
	size_t spitch, dpitch;
	uint64_t src, dst;

	if (code != CUDA_SUCCESS)
		return code;
	if (rows->WidthInBytes == 0 || rows->Height == 0)
		return CUDA_SUCCESS;
	spitch = rows->srcPitch != 0 ? rows->srcPitch : rows->WidthInBytes;
	dpitch = rows->dstPitch != 0 ? rows->dstPitch : rows->WidthInBytes;
	if (spitch < rows->WidthInBytes + rows->srcXInBytes ||
	    dpitch < rows->WidthInBytes + rows->dstXInBytes ||
	    !base_of(rows->srcMemoryType, rows->srcHost, rows->srcDevice, rows->srcXInBytes,
		     rows->srcY, spitch, &src) ||
	    !base_of(rows->dstMemoryType, rows->dstHost, rows->dstDevice, rows->dstXInBytes,
		     rows->dstY, dpitch, &dst))
		return cuda_invalid(
			call,
			"rows of %zu bytes, pitches %zu and %zu, memory types %d and %d: "
			"arrays are not modelled, and a pitch is no smaller than a row",
			rows->WidthInBytes, spitch, dpitch, (int)rows->srcMemoryType,
			(int)rows->dstMemoryType);
	for (size_t y = 0; y < rows->Height && code == CUDA_SUCCESS; y++)
		code = copy(call, dst + y * dpitch, src + y * spitch, rows->WidthInBytes, stream);
	return code;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy_)
	CUDA_ANSWERS(copy_rows("cuMemcpy2D", copy_, NO_STREAM));
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy_)
	CUDA_ANSWERS(copy_rows("cuMemcpy2DUnaligned", copy_, NO_STREAM));
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy_, CUstream stream)
	CUDA_ANSWERS(copy_rows("cuMemcpy2DAsync", copy_, &stream));

/* ---- fills ---- */

static CUresult fill_in_stream(const char *call, uint64_t dst, uint32_t pattern, unsigned bytes,
			       size_t count, CUstream handle)
{
	struct core_stream *stream;
	CUresult code = cuda_stream(handle, call, &stream) ?: cuda_stream_order(handle, call);
	uint32_t word = bytes == 1   ? pattern * 0x01010101u
			: bytes == 2 ? pattern * 0x00010001u
				     : pattern;

	if (code != CUDA_SUCCESS)
		return code;
	if (is_on_device(dst))
		return cuda_of_core(call, core_stream_fill(stream, dst, word, count * bytes, call));
	return cuda_of_core(call, core_stream_synchronize(stream, -1, call))
		       ?: CUDA_CALL(call, npusimFill, dst, pattern, bytes, count);
}

static CUresult fill(const char *call, uint64_t dst, uint32_t pattern, unsigned bytes, size_t count,
		     const CUstream *stream)
{
	CUDA_IN_CONTEXT_OF(stream != NULL ? *stream : NULL);
	CUresult code = cuda_current(call, NULL);

	if (code != CUDA_SUCCESS || count == 0)
		return code;
	if (dst == 0 || dst % bytes != 0 || count > SIZE_MAX / bytes)
		return cuda_invalid(call, "dst is 0x%llx; it must be a multiple of %u, and not 0",
				    (unsigned long long)dst, bytes);
	code = CUDA_CALL(call, npusimCheckCopy, dst, 0, count * bytes);
	if (code != CUDA_SUCCESS)
		return code;
	if (is_pageable(dst))
		return cuda_invalid(call, "dst 0x%llx is no memory of the driver",
				    (unsigned long long)dst);
	if (stream != NULL)
		return fill_in_stream(call, dst, pattern, bytes, count, *stream);
	return cuda_stream_before_sync(call)
		       ?: CUDA_CALL(call, npusimFill, dst, pattern, bytes, count);
}

static CUresult fill_rows(const char *call, uint64_t dst, size_t pitch, uint32_t pattern,
			  unsigned bytes, size_t width, size_t height, const CUstream *stream)
{
	CUresult code = CUDA_SUCCESS;

	if (height > 1 && (width > pitch / bytes || pitch % bytes != 0))
		return cuda_invalid(call, "pitch is %zu, and a row has %zu values of %u bytes",
				    pitch, width, bytes);
	for (size_t y = 0; y < height && code == CUDA_SUCCESS; y++)
		code = fill(call, dst + y * pitch, pattern, bytes, width, stream);
	return code;
}

#define FILLS(bits, type)                                                                          \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)                   \
	{                                                                                          \
		return fill("cuMemsetD" #bits, dst, value, bits / 8, count, NO_STREAM);            \
	}                                                                                          \
	CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count,                 \
					CUstream stream)                                           \
	{                                                                                          \
		return fill(__func__, dst, value, bits / 8, count, &stream);                       \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width,   \
					size_t height)                                             \
	{                                                                                          \
		return fill_rows("cuMemsetD2D" #bits, dst, pitch, value, bits / 8, width, height,  \
				 NO_STREAM);                                                       \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width, \
					  size_t height, CUstream stream)                          \
	{                                                                                          \
		return fill_rows(__func__, dst, pitch, value, bits / 8, width, height, &stream);   \
	}
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
