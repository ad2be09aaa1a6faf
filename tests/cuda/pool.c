/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered memory: who has a block again and when, what pools keep, and what they say of
 * themselves.
 */
#include "rig.h"

#include <string.h>

#define BYTES (3 * GRANULE)

static CUstream streams[2];
static CUmemoryPool pool;
static atomic_bool open;

static CUmemPoolProps props_of(int device)
{
	return (CUmemPoolProps){ .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
}

static uint64_t size_of(CUmemPool_attribute attribute)
{
	uint64_t value = UINT64_MAX;

	TRY(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void set(CUmemPool_attribute attribute, uint64_t value)
{
	TRY(cuMemPoolSetAttribute(pool, attribute, &value));
}

static CUdeviceptr take(size_t bytes, CUstream stream)
{
	CUdeviceptr ptr = 0;

	TRY(cuMemAllocFromPoolAsync(&ptr, bytes, pool, stream));
	return ptr;
}

SETUP(cuda_pool)
{
	CUmemPoolProps props = props_of(0);

	rig_begin();
	for (int i = 0; i < 2; i++)
		TRY(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	TRY(cuMemPoolCreate(&pool, &props));
	atomic_store(&open, false);
}

TEARDOWN(cuda_pool)
{
	atomic_store(&open, true);
	for (int i = 0; i < 2; i++) {
		TRY(cuStreamSynchronize(streams[i]));
		TRY(cuStreamDestroy_v2(streams[i]));
	}
	TRY(cuMemPoolDestroy(pool));
	TRY(cuCtxSynchronize());
}

TEST(cuda_pool, gives_a_block_again_to_the_stream_that_freed_it)
{
	CUdeviceptr first, second;

	TRY(cuLaunchHostFunc(streams[0], rig_hold, &open));
	first = take(BYTES, streams[0]);
	TRY(cuMemsetD8Async(first, 5, BYTES, streams[0]));
	TRY(cuMemFreeAsync(first, streams[0]));
	second = take(BYTES, streams[0]); /* behind the fill, in order */
	EXPECT_EQ(first, second);
	TRY(cuMemsetD8Async(second, 6, BYTES, streams[0]));
	atomic_store(&open, true);
	TRY(cuStreamSynchronize(streams[0]));
	EXPECT_TRUE(rig_is_filled(second, BYTES, 6));
	TRY(cuMemFreeAsync(second, streams[0]));
	FAILS(INVALID_VALUE, cuMemFreeAsync(second, streams[0]));
	FAILS(INVALID_VALUE, cuMemFree_v2(second));
}

/* The other stream's work on it may not have ended. */
TEST(cuda_pool, gives_a_block_to_another_stream_once_it_is_idle)
{
	CUdeviceptr first, second, third, fourth;

	set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	first = take(BYTES, streams[0]);
	TRY(cuLaunchHostFunc(streams[0], rig_hold, &open));
	TRY(cuMemFreeAsync(first, streams[0]));
	second = take(BYTES, streams[1]);
	EXPECT_NE(first, second);
	atomic_store(&open, true);
	TRY(cuStreamSynchronize(streams[0]));
	third = take(BYTES, streams[1]);
	EXPECT_EQ(first, third);
	TRY(cuMemFreeAsync(third, streams[0]));
	TRY(cuStreamSynchronize(streams[0]));
	set(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	fourth = take(BYTES, streams[1]);
	EXPECT_NE(first, fourth);
	TRY(cuMemFreeAsync(second, streams[1]));
	TRY(cuMemFreeAsync(fourth, streams[1]));
}

/* A free that waits for the device keeps no other thread from its work. */
TEST(cuda_pool, waits_while_others_go_on)
{
	CUdeviceptr ptr = take(BYTES, streams[0]), other;
	struct rig_giving_back freed;

	TRY(cuLaunchHostFunc(streams[0], rig_hold, &open));
	rig_give_back(&freed, cuMemFree_v2, ptr);
	TRY(cuStreamSynchronize(streams[1]));
	other = take(BYTES, streams[1]);
	EXPECT_NE(ptr, other);
	TRY(cuMemFreeAsync(other, streams[1]));
	atomic_store(&open, true);
	pthread_join(freed.thread, NULL);
	EXPECT_EQ(0, size_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

TEST(cuda_pool, gives_back_above_its_threshold_when_the_program_waits)
{
	size_t before = rig_free_bytes();
	CUdeviceptr blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = take(BYTES - 100, streams[0]);
	EXPECT_EQ(3 * BYTES, before - rig_free_bytes());
	EXPECT_EQ(3 * BYTES, size_of(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
	EXPECT_EQ(3 * BYTES, size_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 2 * BYTES);
	for (int i = 0; i < 3; i++)
		TRY(cuMemFreeAsync(blocks[i], streams[0]));
	EXPECT_EQ(3 * BYTES, before - rig_free_bytes());
	EXPECT_EQ(0, size_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	TRY(cuStreamSynchronize(streams[0]));
	EXPECT_EQ(2 * BYTES, before - rig_free_bytes());
	TRY(cuMemPoolTrimTo(pool, BYTES));
	EXPECT_EQ(BYTES, before - rig_free_bytes());
	TRY(cuMemPoolTrimTo(pool, 2 * BYTES));
	EXPECT_EQ(BYTES, size_of(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
	EXPECT_EQ(3 * BYTES, size_of(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
	EXPECT_EQ(3 * BYTES, size_of(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
	set(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
	set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	EXPECT_EQ(BYTES, size_of(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
	EXPECT_EQ(0, size_of(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
	set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
	TRY(cuCtxSynchronize());
	EXPECT_EQ(before, rig_free_bytes());
}

/* What a pool keeps is no reason to fail. */
TEST(cuda_pool, gives_back_when_memory_is_short)
{
	size_t all = rig_free_bytes() / GRANULE * GRANULE;
	CUdeviceptr half = take(all / 2 / GRANULE * GRANULE, NULL), most = 0;

	set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	FAILS(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&most, all, pool, NULL));
	TRY(cuMemFreeAsync(half, NULL));
	most = take(all - GRANULE, NULL);
	TRY(cuMemFreeAsync(most, NULL));
}

TEST(cuda_pool, ends_with_its_last_block)
{
	size_t before = rig_free_bytes();
	CUmemPoolProps props = props_of(0);
	CUmemoryPool other = NULL;
	CUdeviceptr ptr = 0;
	uint64_t value;

	props.maxSize = 2 * BYTES;
	TRY(cuMemPoolCreate(&other, &props));
	TRY(cuMemAllocFromPoolAsync(&ptr, BYTES, other, streams[0]));
	FAILS(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&ptr, BYTES + 1, other, streams[0]));
	TRY(cuMemPoolDestroy(other));
	FAILS(INVALID_VALUE, cuMemPoolDestroy(other));
	FAILS(INVALID_VALUE,
	      cuMemPoolGetAttribute(other, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	TRY(cuMemsetD8_v2(ptr, 7, BYTES)); /* the block is still the program's */
	TRY(cuMemFree_v2(ptr));
	TRY(cuCtxSynchronize());
	EXPECT_EQ(before, rig_free_bytes());
}

TEST(cuda_pool, says_what_its_memory_is)
{
	CUdeviceptr ptr = take(1000, streams[0]), base = 0;
	CUmemoryPool own = NULL;
	CUcontext context = (CUcontext)1;
	size_t bytes = 0;
	int type = 0;

	TRY(cuMemGetAddressRange_v2(&base, &bytes, ptr + 999));
	EXPECT_EQ(ptr, base);
	EXPECT_EQ(1000, bytes);
	TRY(cuPointerGetAttribute(&own, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ptr));
	EXPECT_EQ((void *)pool, (void *)own);
	TRY(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
	EXPECT_NULL(context);
	TRY(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
	EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
	TRY(cuMemFreeAsync(ptr, streams[0]));
	TRY(cuMemAlloc_v2(&ptr, MIB));
	TRY(cuMemFreeAsync(ptr, streams[0])); /* classic memory, too */
	FAILS(INVALID_VALUE, cuMemFree_v2(ptr));
}

TEST(cuda_pool, devices_have_a_default_one_and_a_current_one)
{
	CUmemoryPool first = NULL, now = NULL;
	CUdeviceptr ptr = 0;

	TRY(cuDeviceGetDefaultMemPool(&first, 0));
	TRY(cuDeviceGetMemPool(&now, 0));
	EXPECT_EQ((void *)first, (void *)now);
	FAILS(INVALID_VALUE, cuMemPoolDestroy(first));
	FAILS(INVALID_VALUE, cuDeviceSetMemPool(1, pool));
	TRY(cuDeviceSetMemPool(0, pool));
	TRY(cuDeviceGetMemPool(&now, 0));
	EXPECT_EQ((void *)pool, (void *)now);
	TRY(cuMemAllocAsync(&ptr, BYTES, streams[0]));
	EXPECT_EQ(BYTES, size_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	TRY(cuMemFreeAsync(ptr, NULL));
	TRY(cuDeviceSetMemPool(0, first));
	FAILS(INVALID_DEVICE, cuDeviceGetMemPool(&now, 9));
	FAILS(INVALID_VALUE, cuDeviceGetDefaultMemPool(NULL, 0));
}

static void *change_pools(void *context)
{
	CUmemPoolProps props = props_of(0);
	CUmemoryPool now = NULL;

	TRY(cuCtxSetCurrent(context));
	for (int i = 0; i < 100000; i++) {
		TRY(cuMemPoolCreate(&now, &props));
		TRY(cuDeviceSetMemPool(0, now));
		TRY(cuMemPoolDestroy(now));
	}
	return NULL;
}

/* The current pool may end at any time, and the device's default one is the current one then. */
TEST(cuda_pool, allocates_while_another_thread_ends_the_current_one)
{
	CUcontext context = NULL;
	CUdeviceptr ptr = 0;
	pthread_t thread;

	TRY(cuCtxGetCurrent(&context));
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_pools, context));
	for (int i = 0; i < 100000; i++) {
		TRY(cuMemAllocAsync(&ptr, 1000, streams[0]));
		TRY(cuMemFreeAsync(ptr, streams[0]));
	}
	pthread_join(thread, NULL);
}

TEST(cuda_pool, keeps_who_may_access_it)
{
	CUmemAccessDesc desc = rig_grant(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;

	TRY(cuMemPoolGetAccess(&flags, pool, &location));
	EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_NONE, flags);
	TRY(cuMemPoolSetAccess(pool, &desc, 1));
	TRY(cuMemPoolGetAccess(&flags, pool, &location));
	EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	TRY(cuMemPoolSetAccess(pool, &desc, 1));
	TRY(cuMemPoolGetAccess(&flags, pool, &location));
	EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_NONE, flags);
	desc.location.id = 0; /* its own device */
	FAILS(INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
	desc = rig_grant(1, CU_MEM_ACCESS_FLAGS_PROT_READ);
	FAILS(INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
	location.id = 9;
	FAILS(INVALID_DEVICE, cuMemPoolGetAccess(&flags, pool, &location));
	FAILS(INVALID_VALUE, cuMemPoolGetAccess(NULL, pool, &location));
}

TEST(cuda_pool, refuses_what_is_wrong)
{
	CUmemPoolProps props = props_of(0);
	CUmemoryPool other = NULL;
	CUdeviceptr ptr = 0;
	uint64_t value = 5;

	FAILS(INVALID_VALUE, cuMemPoolCreate(NULL, &props));
	FAILS(INVALID_VALUE, cuMemPoolCreate(&other, NULL));
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	FAILS(INVALID_VALUE, cuMemPoolCreate(&other, &props));
	props = props_of(9);
	FAILS(INVALID_DEVICE, cuMemPoolCreate(&other, &props));
	FAILS(INVALID_VALUE, cuMemPoolTrimTo((CUmemoryPool)&value, 0));
	FAILS(INVALID_VALUE, cuMemPoolGetAttribute(pool, 0, &value));
	FAILS(INVALID_VALUE, cuMemPoolGetAttribute(pool, 9, &value));
	FAILS(INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
	FAILS(INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	FAILS(INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
	FAILS(INVALID_VALUE, cuMemAllocFromPoolAsync(NULL, BYTES, pool, NULL));
	FAILS(INVALID_VALUE, cuMemAllocFromPoolAsync(&ptr, 0, pool, NULL));
	FAILS(INVALID_VALUE, cuMemAllocFromPoolAsync(&ptr, BYTES, NULL, NULL));
	FAILS(INVALID_HANDLE, cuMemAllocAsync(&ptr, BYTES, (CUstream)0x1234));
	FAILS(INVALID_VALUE, cuMemFreeAsync((uintptr_t)&value, NULL));
}
