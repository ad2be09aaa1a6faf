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

/* ---- batches ---- */

/* All is checked before anything moves. Attribute i is of the copies from starts[i] on. *failed:
 * the copy that is wrong, SIZE_MAX: none is. */
static CUresult copy_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
			   size_t count, const CUmemcpyAttributes *attributes, const size_t *starts,
			   size_t number, size_t *failed, CUstream stream)
{
	bool read_now = false;
	CUresult code = CUDA_SUCCESS;

	*failed = SIZE_MAX;
	if (count == 0 || number == 0 || stream == NULL || stream == CU_STREAM_LEGACY)
		return cuda_invalid("count %zu, numAttrs %zu, stream %p: no number is 0, and the "
				    "stream not the default one",
				    count, number, (void *)stream);
	for (size_t i = 0; i < number; i++) {
		CUmemcpySrcAccessOrder order = attributes[i].srcAccessOrder;

		if (starts[i] >= count || (i == 0 ? starts[0] != 0 : starts[i] <= starts[i - 1]) ||
		    order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		    order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
			return cuda_invalid(
				"attribute %zu: srcAccessOrder is %d, its first copy %zu: known "
				"are 1 to 3, and copies rise from 0 to below %zu",
				i, (int)order, starts[i], count);
		read_now |= order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	}
	for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
		*failed = i;
		code = dsts[i] == 0 || srcs[i] == 0
			       ? cuda_invalid("an address of copy %zu is NULL", i)
			       : CUDA_CALL(npusimCheckCopy, dsts[i], srcs[i], sizes[i]);
	}
	for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
		*failed = i;
		code = copy(dsts[i], srcs[i], sizes[i], &stream);
	}
	if (code != CUDA_SUCCESS)
		return code;
	*failed = SIZE_MAX;
	return read_now ? cuStreamSynchronize(stream) : code;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			    size_t *failed, CUstream stream)
	CUDA_ANSWERS(copy_batch(dsts, srcs, sizes, count, attributes, starts, number, failed,
				stream));

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			       CUstream stream)
{
	size_t failed;

	return copy_batch(dsts, srcs, sizes, count, attributes, starts, number, &failed, stream);
}

/* ---- rows and boxes ---- */

static bool base_of(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t offset,
		    uint64_t *out)
{
	uint64_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;

	*out = base + offset;
	return base != 0 && (type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
			     type == CU_MEMORYTYPE_UNIFIED);
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, const CUstream *stream)
{
	size_t width = box->WidthInBytes, height = box->Height;
	uint64_t src, dst, srow, drow, sslice, dslice;
	CUresult code = CUDA_SUCCESS;

	if (width == 0 || height == 0 || box->Depth == 0)
		return CUDA_SUCCESS;
	srow = box->srcPitch ?: width;
	drow = box->dstPitch ?: width;
	sslice = srow * (box->srcHeight ?: height);
	dslice = drow * (box->dstHeight ?: height);
	if (srow < width + box->srcXInBytes || drow < width + box->dstXInBytes ||
	    (box->Depth > 1 && (sslice < srow * height || dslice < drow * height)) ||
	    !base_of(box->srcMemoryType, box->srcHost, box->srcDevice,
		     box->srcZ * sslice + box->srcY * srow + box->srcXInBytes, &src) ||
	    !base_of(box->dstMemoryType, box->dstHost, box->dstDevice,
		     box->dstZ * dslice + box->dstY * drow + box->dstXInBytes, &dst))
		return cuda_invalid("%zu rows of %zu bytes, pitches %zu and %zu, heights %zu and "
				    "%zu, memory types %d and %d: arrays are not modelled, a pitch "
				    "is no smaller than a row, and a height than the rows",
				    height, width, srow, drow, box->srcHeight, box->dstHeight,
				    (int)box->srcMemoryType, (int)box->dstMemoryType);
	for (size_t z = 0; z < box->Depth; z++)
		for (size_t y = 0; y < height && code == CUDA_SUCCESS; y++)
			code = copy(dst + z * dslice + y * drow, src + z * sslice + y * srow, width,
				    stream);
	return code;
}

static CUresult copy_rows(const CUDA_MEMCPY2D *rows, const CUstream *stream)
{
#define SIDE(side)                                                                  \
	.side##XInBytes = rows->side##XInBytes, .side##Y = rows->side##Y,           \
	.side##MemoryType = rows->side##MemoryType, .side##Host = rows->side##Host, \
	.side##Device = rows->side##Device, .side##Pitch = rows->side##Pitch
	return copy_box(&(CUDA_MEMCPY3D){ SIDE(src), SIDE(dst), .WidthInBytes = rows->WidthInBytes,
					  .Height = rows->Height, .Depth = 1 },
			stream);
#undef SIDE
}

static CUresult copy_peer_box(const CUDA_MEMCPY3D_PEER *box, const CUstream *stream)
{
	return check_peers(box->dstContext, box->srcContext) ?: copy_box(box, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy_) CUDA_ANSWERS(copy_rows(copy_, NO_STREAM));
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy_)
	CUDA_ANSWERS(copy_rows(copy_, NO_STREAM));
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy_, CUstream stream)
	CUDA_ANSWERS(copy_rows(copy_, &stream));
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy_) CUDA_ANSWERS(copy_box(copy_, NO_STREAM));
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy_, CUstream stream)
	CUDA_ANSWERS(copy_box(copy_, &stream));
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy_)
	CUDA_ANSWERS(copy_peer_box(copy_, NO_STREAM));
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy_, CUstream stream)
	CUDA_ANSWERS(copy_peer_box(copy_, &stream));

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
