/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of boxes and in batches.
 */
#include "rig.h"

#include <string.h>

/* A box of 2 slices of 3 rows of 5 bytes, in memory of 4 slices of 6 rows of 16 bytes. */
#define PITCH  16u
#define ROWS   6u
#define SLICES 4u
#define ALL    (PITCH * ROWS * SLICES)

static unsigned char source[ALL], target[ALL];
static CUdeviceptr ptr;
static CUcontext context;

SETUP(cuda_copies)
{
	rig_begin();
	TRY(cuCtxGetCurrent(&context));
	TRY(cuMemAlloc_v2(&ptr, MIB));
	TRY(cuMemsetD8_v2(ptr, 0xee, MIB));
	for (unsigned i = 0; i < ALL; i++)
		source[i] = (unsigned char)(i % 251);
}

TEARDOWN(cuda_copies)
{
	TRY(cuMemFree_v2(ptr));
}

static CUDA_MEMCPY3D to_device(void)
{
	return (CUDA_MEMCPY3D){ .srcXInBytes = 2,
				.srcY = 1,
				.srcZ = 1,
				.srcMemoryType = CU_MEMORYTYPE_HOST,
				.srcHost = source,
				.srcPitch = PITCH,
				.srcHeight = ROWS,
				.dstXInBytes = 3,
				.dstY = 2,
				.dstZ = 1,
				.dstMemoryType = CU_MEMORYTYPE_DEVICE,
				.dstDevice = ptr,
				.dstPitch = PITCH,
				.dstHeight = ROWS,
				.WidthInBytes = 5,
				.Height = 3,
				.Depth = 2,
				.srcContext = context,
				.dstContext = context };
}

/* The box lies one column and one row further than in the source, and nothing else has changed. */
static void expect_box(void)
{
	TRY(cuCtxSynchronize());
	TRY(cuMemcpyDtoH_v2(target, ptr, ALL));
	for (unsigned i = 0; i < ALL; i++) {
		unsigned x = i % PITCH, y = i / PITCH % ROWS, z = i / PITCH / ROWS;
		bool inside = x >= 3 && x < 8 && y >= 2 && y < 5 && z >= 1 && z < 3;

		EXPECT_EQ(inside ? source[i - PITCH - 1] : 0xee, target[i]);
	}
}

TEST(cuda_copies, box)
{
	CUDA_MEMCPY3D box = to_device();

	TRY(cuMemcpy3D_v2(&box));
	expect_box();
}

TEST(cuda_copies, box_in_a_stream)
{
	CUDA_MEMCPY3D box = to_device();
	CUstream stream = NULL;
	void *host = NULL;

	TRY(cuMemAllocHost_v2(&host, ALL));
	memcpy(host, source, ALL);
	box.srcHost = host;
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemcpy3DAsync_v2(&box, stream));
	TRY(cuStreamSynchronize(stream));
	expect_box();
	TRY(cuStreamDestroy_v2(stream));
	TRY(cuMemFreeHost(host));
}

TEST(cuda_copies, box_between_peers)
{
	CUDA_MEMCPY3D_PEER box = to_device();

	TRY(cuMemcpy3DPeer(&box));
	expect_box();
	TRY(cuMemsetD8_v2(ptr, 0xee, ALL));
	TRY(cuMemcpy3DPeerAsync(&box, NULL));
	expect_box();
	box.srcContext = NULL;
	FAILS(INVALID_CONTEXT, cuMemcpy3DPeer(&box));
	FAILS(INVALID_CONTEXT, cuMemcpy3DPeerAsync(&box, NULL));
	FAILS(INVALID_VALUE, cuMemcpy3DPeer(NULL));
}

/* Without a pitch and a height rows and slices follow one another. */
TEST(cuda_copies, box_without_gaps)
{
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = source,
			      .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			      .dstDevice = ptr,
			      .WidthInBytes = PITCH,
			      .Height = ROWS,
			      .Depth = SLICES };

	TRY(cuMemcpy3D_v2(&box));
	TRY(cuMemcpyDtoH_v2(target, ptr, ALL));
	EXPECT_EQ(0, memcmp(target, source, ALL));
}

TEST(cuda_copies, box_that_is_wrong)
{
	CUDA_MEMCPY3D box = to_device();

	FAILS(INVALID_VALUE, cuMemcpy3D_v2(NULL));
	box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	FAILS(INVALID_VALUE, cuMemcpy3D_v2(&box));
	box = to_device();
	box.srcHost = NULL;
	FAILS(INVALID_VALUE, cuMemcpy3D_v2(&box));
	box = to_device();
	box.dstPitch = 7; /* 3 + 5 are more */
	FAILS(INVALID_VALUE, cuMemcpy3D_v2(&box));
	box = to_device();
	box.srcHeight = 2;
	FAILS(INVALID_VALUE, cuMemcpy3D_v2(&box));
	box = to_device();
	box.dstDevice = MIB; /* no memory */
	FAILS(INVALID_VALUE, cuMemcpy3D_v2(&box));
	box.Depth = 0;
	TRY(cuMemcpy3D_v2(&box)); /* nothing is to be copied */
}

static CUmemcpyAttributes attributes[] = {
	{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
	{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY },
	{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
};

TEST(cuda_copies, batch)
{
	CUdeviceptr dst[3] = { ptr, ptr + 100, ptr + 200 };
	CUdeviceptr src[3] = { (uintptr_t)source, (uintptr_t)source + 7, (uintptr_t)source + 9 };
	size_t sizes[3] = { 10, 20, 30 }, starts[] = { 0, 2 }, failed = 5;
	CUstream stream = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuCtxSetCurrent(NULL)); /* the stream's counts */
	TRY(cuMemcpyBatchAsync_v2(dst, src, sizes, 3, attributes, starts, 2, stream));
	TRY(cuStreamSynchronize(stream));
	TRY(cuCtxSetCurrent(context));
	TRY(cuMemcpyDtoH_v2(target, ptr, ALL));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, memcmp(&target[100 * i], (void *)(uintptr_t)src[i], sizes[i]));
	EXPECT_EQ(0xee, target[10]);
	TRY(cuMemcpyBatchAsync(dst, src, sizes, 3, attributes, starts, 2, &failed, stream));
	EXPECT_EQ(SIZE_MAX, failed);
	TRY(cuStreamDestroy_v2(stream));
}

/* Of page-locked memory, which a stream reads in its turn, the program may change what was to be
 * read during the call. */
TEST(cuda_copies, batch_reads_during_the_call)
{
	size_t sizes = 64, start = 0;
	CUstream stream = NULL;
	CUdeviceptr dst = ptr, src;
	void *host = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAllocHost_v2(&host, MIB));
	memset(host, 7, MIB);
	src = (uintptr_t)host;
	TRY(cuMemcpyBatchAsync_v2(&dst, &src, &sizes, 1, &attributes[2], &start, 1, stream));
	memset(host, 8, MIB);
	TRY(cuStreamSynchronize(stream));
	EXPECT_TRUE(rig_is_filled(ptr, 64, 7));
	TRY(cuMemFreeHost(host));
	TRY(cuStreamDestroy_v2(stream));
}

TEST(cuda_copies, batch_that_is_wrong_moves_nothing)
{
	CUdeviceptr empty = rig_reserve(GRANULE), dst[2] = { ptr, empty };
	CUdeviceptr src[2] = { (uintptr_t)source, (uintptr_t)source };
	size_t sizes[2] = { 10, 10 }, starts[2] = { 0, 1 }, wrong[2] = { 1, 1 }, failed = 5;
	CUmemcpyAttributes unknown = { .srcAccessOrder = (CUmemcpySrcAccessOrder)4 };
	CUmemcpyAttributes *a = attributes;
	CUstream stream = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync(dst, src, sizes, 2, a, starts, 2, &failed, stream));
	EXPECT_EQ(1, failed);
	TRY(cuStreamSynchronize(stream));
	EXPECT_TRUE(rig_is_filled(ptr, ALL, 0xee));
	dst[1] = 0;
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync(dst, src, sizes, 2, a, starts, 2, &failed, stream));
	dst[1] = ptr + 100;
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync(dst, src, sizes, 2, a, wrong, 1, &failed, stream));
	EXPECT_EQ(SIZE_MAX, failed);
	wrong[0] = 0;
	wrong[1] = 2;
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 2, a, wrong, 2, stream));
	FAILS(INVALID_VALUE,
	      cuMemcpyBatchAsync_v2(dst, src, sizes, 2, &unknown, starts, 1, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 2, a, starts, 0, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 0, a, starts, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(NULL, src, sizes, 2, a, starts, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, NULL, sizes, 2, a, starts, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, NULL, 2, a, starts, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 2, NULL, starts, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 2, a, NULL, 2, stream));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, 2, a, starts, 2, NULL));
	FAILS(INVALID_VALUE, cuMemcpyBatchAsync(dst, src, sizes, 2, a, starts, 2, NULL, stream));
	TRY(cuMemAddressFree(empty, GRANULE));
	TRY(cuStreamDestroy_v2(stream));
}
