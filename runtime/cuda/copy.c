/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills for the CUDA face, at once or in streams. Every range is checked before anything
 * moves: a hole, or a mapping without the required access, is INVALID_VALUE at the call, as on the
 * H100. Owns no state.
 *
 * A copy in a stream that touches the program's own memory, unless it is registered, waits for the
 * stream and is complete when the call returns.
 */
#include "cuda-internal.h"

#include <inttypes.h>

/* A synchronous function, and the same in a stream: `stream` is NULL in the answer of the first,
 * and points to the last parameter of the second. */
#define PAIR(name, name_in_stream, answer, ...)                   \
	CUresult name(__VA_ARGS__)                                \
	{                                                         \
		const CUstream *stream = NULL;                    \
                                                                  \
		return answer;                                    \
	}                                                         \
	CUresult name_in_stream(__VA_ARGS__, CUstream the_stream) \
	{                                                         \
		const CUstream *stream = &the_stream;             \
                                                                  \
		return answer;                                    \
	}

/* What is to be done to a range: a copy of `bytes`, or, where src is 0, a fill. */
struct piece {
	uint64_t dst, src;
	size_t bytes;
	uint32_t pattern;
	unsigned unit; /* bytes of the pattern */
};

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

static CUresult do_now(const struct piece *p)
{
	return p->src != 0 ? CUDA_CALL(drvMemcpy, p->dst, p->bytes, p->src, p->bytes)
			   : CUDA_CALL(npusimFill, p->dst, p->pattern, p->unit, p->bytes / p->unit);
}

static CUresult do_in_stream(const struct piece *p, CUstream handle)
{
	bool to_device = is_on_device(p->dst), from_device = p->src != 0 && is_on_device(p->src);
	struct core_stream *stream;
	CUresult code = cuda_stream(handle, &stream) ?: cuda_stream_order(handle);

	if (code != CUDA_SUCCESS)
		return code;
	if ((!to_device && !from_device) || cuda_is_loose(p->dst) ||
	    (p->src != 0 && cuda_is_loose(p->src)))
		return cuda_of_core(core_stream_synchronize(stream, -1)) ?: do_now(p);
	if (p->src != 0)
		return cuda_of_core(core_stream_copy(stream, p->dst, p->src, p->bytes,
						     to_device && from_device));
	return cuda_of_core(core_stream_fill(stream, p->dst,
					     p->unit == 1   ? p->pattern * 0x01010101u
					     : p->unit == 2 ? p->pattern * 0x00010001u
							    : p->pattern,
					     p->bytes));
}

/* stream: NULL for a synchronous call. */
static CUresult do_piece(const struct piece *p, const CUstream *stream)
{
	CUresult code = CUDA_CALL(npusimCheckCopy, p->dst, p->src, p->bytes);

	if (code != CUDA_SUCCESS)
		return code;
	if (p->src == 0 && is_pageable(p->dst))
		return cuda_invalid("dst 0x%" PRIx64 " is no memory of the driver", p->dst);
	return stream != NULL ? do_in_stream(p, *stream) : cuda_stream_before_sync() ?: do_now(p);
}

static CUresult copy(uint64_t dst, uint64_t src, size_t bytes, const CUstream *stream)
{
	CUresult code = cuda_current(NULL);

	if (code != CUDA_SUCCESS || bytes == 0)
		return code;
	if (dst == 0 || src == 0)
		return cuda_invalid("%s is NULL", dst == 0 ? "dst" : "src");
	return do_piece(&(struct piece){ dst, src, bytes, 0, 0 }, stream);
}

PAIR(cuMemcpy, cuMemcpyAsync, copy(dst, src, bytes, stream), CUdeviceptr dst, CUdeviceptr src,
     size_t bytes)
PAIR(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, copy(dst, (uintptr_t)src, bytes, stream),
     CUdeviceptr dst, const void *src, size_t bytes)
PAIR(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, copy((uintptr_t)dst, src, bytes, stream), void *dst,
     CUdeviceptr src, size_t bytes)
PAIR(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, copy(dst, src, bytes, stream), CUdeviceptr dst,
     CUdeviceptr src, size_t bytes)

/* One address space: the contexts need only be alive. */
PAIR(cuMemcpyPeer, cuMemcpyPeerAsync,
     ((void)dst_context, (void)src_context, copy(dst, src, bytes, stream)), CUdeviceptr dst,
     CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)

/* All is checked before anything moves. Attribute i is of the copies from starts[i] on. *failed:
 * the copy that is wrong, SIZE_MAX: none is. */
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			    size_t *failed, CUstream stream)
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

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			       CUstream stream)
	CUDA_ANSWERS_WITH(size_t failed, cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes,
							    starts, number, &failed, stream));

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
		return cuda_invalid("%s of %zu B, pitches %zu and %zu, heights %zu and "
				    "%zu, memory types %d and %d: arrays are not modelled, a pitch "
				    "is no smaller than a row, and a height than the rows",
				    npu_counted(height, "row"), width, srow, drow, box->srcHeight,
				    box->dstHeight, (int)box->srcMemoryType,
				    (int)box->dstMemoryType);
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

PAIR(cuMemcpy2D_v2, cuMemcpy2DAsync_v2, copy_rows(rows, stream), const CUDA_MEMCPY2D *rows)
PAIR(cuMemcpy3D_v2, cuMemcpy3DAsync_v2, copy_box(box, stream), const CUDA_MEMCPY3D *box)
PAIR(cuMemcpy3DPeer, cuMemcpy3DPeerAsync,
     cuda_check_context(box->dstContext, CUDA_ERROR_INVALID_CONTEXT)
	     ?: cuda_check_context(box->srcContext, CUDA_ERROR_INVALID_CONTEXT)
	     ?: copy_box(box, stream),
     const CUDA_MEMCPY3D_PEER *box)
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *rows) CUDA_ANSWERS(cuMemcpy2D_v2(rows));

static CUresult fill_rows(uint64_t dst, size_t pitch, uint32_t pattern, unsigned unit, size_t width,
			  size_t height, const CUstream *stream)
{
	CUresult code;

	if (height == 0)
		return CUDA_SUCCESS;
	code = cuda_current(NULL);
	if (code != CUDA_SUCCESS || width == 0)
		return code;
	if (dst == 0 || dst % unit != 0 || width > SIZE_MAX / unit ||
	    (height > 1 && (width > pitch / unit || pitch % unit != 0)))
		return cuda_invalid("dst is 0x%" PRIx64 ", pitch %zu, and a row has %s of "
				    "%u B: dst and pitch must be multiples of them, dst not 0, "
				    "and a pitch no smaller than a row",
				    dst, pitch, npu_counted(width, "value"), unit);
	for (size_t y = 0; y < height && code == CUDA_SUCCESS; y++)
		code = do_piece(&(struct piece){ dst + y * pitch, 0, width * unit, pattern, unit },
				stream);
	return code;
}

#define FILLS(bits, type)                                                                       \
	PAIR(cuMemsetD##bits##_v2, cuMemsetD##bits##Async,                                      \
	     fill_rows(dst, 0, value, bits / 8, count, 1, stream), CUdeviceptr dst, type value, \
	     size_t count)                                                                      \
	PAIR(cuMemsetD2D##bits##_v2, cuMemsetD2D##bits##Async,                                  \
	     fill_rows(dst, pitch, value, bits / 8, width, height, stream), CUdeviceptr dst,    \
	     size_t pitch, type value, size_t width, size_t height)
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
