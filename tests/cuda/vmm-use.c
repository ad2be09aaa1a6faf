/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs do with virtual memory, call sequences and wrong arguments: the ground that HIP's
 * own suite for virtual memory covers.
 */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- memory that goes away under queued work ---- */

/* As cuda.h has it: the process must be started again. First in this file: the process has not used
 * a device yet, and its child may. */
TEST_CHILD(cuda_harm, illegal_address_stays)
{
	struct piece p;
	CUcontext other, got;
	CUdeviceptr ptr;
	CUdevice device;
	CUevent event;
	CUstream stream;
	CUmemoryPool pool;
	CUmemAllocationProp prop = rig_prop(0);
	const char *name;
	void *host =
		mmap(NULL, GRANULE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	atomic_bool open = false;
	size_t bytes;
	unsigned flags;
	int value;

	rig_begin();
	p = rig_make(0, GRANULE);
	ASSERT_NE(host, MAP_FAILED);
	TRY(cuDevicePrimaryCtxRetain(&other, 1));
	TRY(cuEventCreate(&event, 0));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemHostRegister_v2(host, GRANULE, 0));
	TRY(cuLaunchHostFunc(stream, rig_hold, &open));
	TRY(cuMemcpyHtoDAsync_v2(p.va, host, GRANULE, stream));
	TRY(cuMemHostUnregister(host));
	munmap(host, GRANULE);
	atomic_store(&open, true);
	FAILS(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
	FAILS(ILLEGAL_ADDRESS, cuStreamQuery(stream));
	FAILS(ILLEGAL_ADDRESS, cuEventQuery(event));
	FAILS(ILLEGAL_ADDRESS, cuMemUnmap(p.va, p.bytes));
	FAILS(ILLEGAL_ADDRESS, cuMemFree_v2(p.va));
	TRY(cuCtxSetCurrent(other));
	FAILS(ILLEGAL_ADDRESS, cuCtxSynchronize());
	FAILS(ILLEGAL_ADDRESS, cuMemAlloc_v2(&ptr, MIB));
	FAILS(ILLEGAL_ADDRESS, cuMemGetInfo_v2(&bytes, NULL));
	TRY(cuDeviceGetMemPool(&pool, 0));
	FAILS(ILLEGAL_ADDRESS, cuDeviceSetMemPool(0, pool));
	TRY(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p.va));
	TRY(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	FAILS(INVALID_VALUE, cuMemHostGetFlags(&flags, &value));
	TRY(cuCtxGetCurrent(&got));
	TRY(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
	TRY(cuDriverGetVersion(&value));
	TRY(cuDeviceGet(&device, 1));
	TRY(cuDeviceGetCount(&value));
}

SETUP(cuda_use)
{
	rig_begin();
}

/* ---- reservations ---- */

TEST(cuda_use, reserve_alignments)
{
	for (size_t align = 2; align <= 4096; align *= 2) {
		struct piece p = { .bytes = GRANULE, .handle = rig_create(0, GRANULE) };
		CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

		TRY(cuMemAddressReserve(&p.va, p.bytes, align, 0, 0));
		TRY(cuMemMap(p.va, p.bytes, 0, p.handle, 0));
		TRY(cuMemSetAccess(p.va, p.bytes, &grant, 1));
		TRY(cuMemsetD8_v2(p.va, (unsigned char)align, p.bytes));
		EXPECT_TRUE(rig_is_filled(p.va, p.bytes, (unsigned char)align));
		rig_end(p);
	}
}

TEST(cuda_use, hint_is_taken_where_it_is_free)
{
	CUdeviceptr whole = rig_reserve(8 * MIB), first, second, third;

	TRY(cuMemAddressFree(whole, 8 * MIB));
	TRY(cuMemAddressReserve(&first, 4 * MIB, 0, whole, 0));
	TRY(cuMemAddressReserve(&second, 4 * MIB, 0, whole + 4 * MIB, 0));
	TRY(cuMemAddressReserve(&third, 4 * MIB, 0, whole, 0));
	EXPECT_EQ(whole, first);
	EXPECT_EQ(whole + 4 * MIB, second);
	EXPECT_NE(whole, third);
	TRY(cuMemAddressFree(first, 4 * MIB));
	TRY(cuMemAddressFree(second, 4 * MIB));
	TRY(cuMemAddressFree(third, 4 * MIB));
}

TEST(cuda_use, reservation_across_gib)
{
	CUdeviceptr va = rig_reserve(UINT64_C(3) << 30);
	size_t bytes = (UINT64_C(3) << 30) / 2;
	CUdeviceptr odd;

	TRY(cuMemAddressFree(va, UINT64_C(3) << 30));
	TRY(cuMemAddressReserve(&odd, bytes, 0, va + 6 * MIB, 0));
	struct piece p = { odd, bytes, rig_create(0, GRANULE) };
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr last = odd + bytes - GRANULE;

	TRY(cuMemMap(last, GRANULE, 0, p.handle, 0));
	TRY(cuMemSetAccess(last, GRANULE, &grant, 1));
	TRY(cuMemsetD8_v2(last, 9, GRANULE));
	EXPECT_TRUE(rig_is_filled(last, GRANULE, 9));
	TRY(cuMemUnmap(odd, bytes));
	TRY(cuMemRelease(p.handle));
	TRY(cuMemAddressFree(odd, bytes));
}

TEST(cuda_use, null_arguments)
{
	CUmemAllocationProp prop = rig_prop(0);
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	struct piece p = rig_make(0, GRANULE);
	CUmemGenericAllocationHandle handle;
	unsigned long long flags;
	size_t size;

	FAILS(INVALID_VALUE, cuMemAddressReserve(NULL, GRANULE, 0, 0, 0));
	FAILS(INVALID_VALUE, cuMemAddressFree(0, GRANULE));
	FAILS(INVALID_VALUE, cuMemAddressFree(p.va, 0));
	FAILS(INVALID_VALUE, cuMemCreate(NULL, GRANULE, &prop, 0));
	FAILS(INVALID_VALUE, cuMemCreate(&handle, GRANULE - 1, &prop, 0));
	FAILS(INVALID_VALUE, cuMemRelease(0));
	FAILS(INVALID_VALUE, cuMemMap(0, GRANULE, 0, p.handle, 0));
	FAILS(INVALID_VALUE, cuMemUnmap(0, GRANULE));
	FAILS(INVALID_VALUE, cuMemUnmap(p.va, GRANULE - 1));
	FAILS(INVALID_VALUE, cuMemSetAccess(0, GRANULE, &grant, 1));
	FAILS(INVALID_VALUE, cuMemSetAccess(p.va, GRANULE, NULL, 1));
	FAILS(INVALID_VALUE, cuMemSetAccess(p.va, GRANULE - 1, &grant, 1));
	FAILS(INVALID_VALUE, cuMemSetAccess(p.va, GRANULE + 1, &grant, 1));
	FAILS(INVALID_VALUE, cuMemGetAccess(NULL, &grant.location, p.va));
	FAILS(INVALID_VALUE, cuMemGetAccess(&flags, NULL, p.va));
	FAILS(INVALID_VALUE,
	      cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	FAILS(INVALID_VALUE,
	      cuMemGetAllocationGranularity(&size, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	FAILS(INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(NULL, p.handle));
	FAILS(INVALID_VALUE, cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)p.va));
	FAILS(INVALID_VALUE, cuMemRetainAllocationHandle(&handle, NULL));
	FAILS(INVALID_VALUE, cuMemExportToShareableHandle(
				     NULL, p.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	FAILS(INVALID_VALUE,
	      cuMemImportFromShareableHandle(NULL, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	FAILS(NOT_PERMITTED,
	      cuMemImportFromShareableHandle(&handle, &prop, CU_MEM_HANDLE_TYPE_FABRIC));
	rig_end(p);
}

/* ---- handles in ranges ---- */

TEST(cuda_use, sizes_of_many_granules)
{
	for (size_t n = 1; n <= 32; n *= 2)
		rig_end(rig_make(0, n * GRANULE));
}

TEST(cuda_use, one_range_mapped_again_and_again)
{
	struct piece p = rig_make(0, GRANULE);
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	for (int i = 0; i < 20; i++) {
		TRY(cuMemsetD8_v2(p.va, (unsigned char)i, p.bytes));
		TRY(cuMemUnmap(p.va, p.bytes));
		FAILS(INVALID_VALUE, cuMemsetD8_v2(p.va, 1, 1));
		TRY(cuMemMap(p.va, p.bytes, 0, p.handle, 0));
		FAILS(INVALID_VALUE, cuMemsetD8_v2(p.va, 1, 1));
		TRY(cuMemSetAccess(p.va, p.bytes, &grant, 1));
		EXPECT_TRUE(rig_is_filled(p.va, p.bytes, (unsigned char)i));
	}
	rig_end(p);
}

TEST(cuda_use, one_handle_through_several_ranges)
{
	for (int device = 0; device < 2; device++) {
		CUmemGenericAllocationHandle handle = rig_create(device, GRANULE);
		CUmemAccessDesc grant = rig_grant(device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

		for (int i = 0; i < 4; i++) {
			CUdeviceptr va = rig_reserve(GRANULE);

			TRY(cuMemMap(va, GRANULE, 0, handle, 0));
			TRY(cuMemSetAccess(va, GRANULE, &grant, 1));
			if (i > 0)
				EXPECT_TRUE(rig_is_filled(va, GRANULE, (unsigned char)i));
			TRY(cuMemsetD8_v2(va, (unsigned char)(i + 1), GRANULE));
			TRY(cuMemUnmap(va, GRANULE));
			TRY(cuMemAddressFree(va, GRANULE));
		}
		TRY(cuMemRelease(handle));
	}
}

/* Handles of two devices in one range: one reservation is bound to no device. */
TEST(cuda_use, handles_of_two_devices_in_one_range)
{
	CUdeviceptr va = rig_reserve(2 * GRANULE);
	CUmemAccessDesc grants[2] = { rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
				      rig_grant(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) };
	CUmemGenericAllocationHandle own = rig_create(0, GRANULE), other = rig_create(1, GRANULE);
	unsigned long long flags = 0;

	TRY(cuMemMap(va, GRANULE, 0, own, 0));
	TRY(cuMemMap(va + GRANULE, GRANULE, 0, other, 0));
	TRY(cuMemSetAccess(va, 2 * GRANULE, grants, 2));
	TRY(cuMemGetAccess(&flags, &grants[1].location, va));
	EXPECT_EQ(3, flags);
	TRY(cuMemGetAccess(&flags, &grants[0].location, va + GRANULE));
	EXPECT_EQ(3, flags);
	TRY(cuMemsetD8_v2(va, 6, 2 * GRANULE));
	EXPECT_TRUE(rig_is_filled(va, 2 * GRANULE, 6));
	TRY(cuMemUnmap(va, 2 * GRANULE));
	TRY(cuMemRelease(own));
	TRY(cuMemRelease(other));
	TRY(cuMemAddressFree(va, 2 * GRANULE));
}

TEST(cuda_use, range_grows_and_keeps_its_bytes)
{
	CUdeviceptr va = rig_reserve(8 * GRANULE);
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemGenericAllocationHandle handles[8];

	for (unsigned i = 0; i < 8; i++) {
		handles[i] = rig_create(0, GRANULE);
		TRY(cuMemMap(va + i * GRANULE, GRANULE, 0, handles[i], 0));
		TRY(cuMemSetAccess(va + i * GRANULE, GRANULE, &grant, 1));
		TRY(cuMemsetD8_v2(va + i * GRANULE, (unsigned char)i, GRANULE));
		TRY(cuMemRelease(handles[i])); /* the mapping keeps it */
	}
	for (unsigned i = 0; i < 8; i++)
		EXPECT_TRUE(rig_is_filled(va + i * GRANULE, GRANULE, (unsigned char)i));
	TRY(cuMemUnmap(va, 8 * GRANULE));
	TRY(cuMemAddressFree(va, 8 * GRANULE));
}

/* ---- access ---- */

TEST(cuda_use, access_by_device)
{
	struct piece p = rig_make(0, GRANULE);
	CUmemAccessDesc grant = rig_grant(1, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CUmemAccessDesc none = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	unsigned long long flags = 9;

	TRY(cuMemGetAccess(&flags, &grant.location, p.va));
	EXPECT_EQ(0, flags);
	TRY(cuMemSetAccess(p.va, p.bytes, &grant, 1));
	TRY(cuMemGetAccess(&flags, &grant.location, p.va));
	EXPECT_EQ(1, flags);
	TRY(cuMemsetD8_v2(p.va, 3, p.bytes)); /* device 0 may write */
	TRY(cuMemSetAccess(p.va, p.bytes, &none, 1));
	EXPECT_TRUE(rig_is_filled(p.va, p.bytes, 3)); /* device 1 may read */
	FAILS(INVALID_VALUE, cuMemsetD8_v2(p.va, 4, p.bytes));
	EXPECT_TRUE(rig_is_filled(p.va, p.bytes, 3));
	rig_end(p);
}

TEST(cuda_use, read_only_part_stops_the_whole_write)
{
	CUdeviceptr va = rig_reserve(2 * GRANULE);
	CUmemGenericAllocationHandle a = rig_create(0, GRANULE), b = rig_create(0, GRANULE);
	CUmemAccessDesc write = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAccessDesc read = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READ);

	TRY(cuMemMap(va, GRANULE, 0, a, 0));
	TRY(cuMemMap(va + GRANULE, GRANULE, 0, b, 0));
	TRY(cuMemSetAccess(va, 2 * GRANULE, &write, 1));
	TRY(cuMemsetD8_v2(va, 1, 2 * GRANULE));
	TRY(cuMemSetAccess(va + GRANULE, GRANULE, &read, 1));
	FAILS(INVALID_VALUE, cuMemsetD8_v2(va, 2, 2 * GRANULE));
	FAILS(INVALID_VALUE, cuMemcpyDtoDAsync_v2(va + GRANULE, va, GRANULE, NULL));
	EXPECT_TRUE(rig_is_filled(va, 2 * GRANULE, 1));
	TRY(cuMemSetAccess(va, 2 * GRANULE, &write, 1));
	TRY(cuMemsetD8_v2(va, 2, 2 * GRANULE));
	EXPECT_TRUE(rig_is_filled(va, 2 * GRANULE, 2));
	TRY(cuMemUnmap(va, 2 * GRANULE));
	TRY(cuMemRelease(a));
	TRY(cuMemRelease(b));
	TRY(cuMemAddressFree(va, 2 * GRANULE));
}

TEST(cuda_use, host_memory_for_the_cpu_and_a_device)
{
	CUmemAllocationProp prop = rig_prop(0), back;
	CUmemAccessDesc grants[2] = { rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
				      { { CU_MEM_LOCATION_TYPE_HOST, 0 },
					CU_MEM_ACCESS_FLAGS_PROT_READWRITE } };
	CUdeviceptr va = rig_reserve(GRANULE);
	CUmemGenericAllocationHandle handle = 0;
	unsigned char *cpu = (unsigned char *)(uintptr_t)va;

	prop.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST_NUMA, 1 };
	TRY(cuMemCreate(&handle, GRANULE, &prop, 0));
	TRY(cuMemGetAllocationPropertiesFromHandle(&back, handle));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_HOST_NUMA, back.location.type);
	EXPECT_EQ(1, back.location.id);
	TRY(cuMemMap(va, GRANULE, 0, handle, 0));
	TRY(cuMemSetAccess(va, GRANULE, grants, 2));
	TRY(cuMemsetD8_v2(va, 5, GRANULE));
	EXPECT_EQ(5, cpu[GRANULE - 1]);
	cpu[0] = 77;
	EXPECT_TRUE(rig_is_filled(va, 1, 77));
	TRY(cuMemUnmap(va, GRANULE));
	TRY(cuMemRelease(handle));
	TRY(cuMemAddressFree(va, GRANULE));
	prop.location.id = -1;
	FAILS(INVALID_VALUE, cuMemCreate(&handle, GRANULE, &prop, 0));
}

/* ---- copies between kinds of memory ---- */

TEST(cuda_use, copies_between_kinds_of_memory)
{
	struct piece p = rig_make(0, GRANULE), peer = rig_make(1, GRANULE);
	CUdeviceptr classic, managed;

	TRY(cuMemAlloc_v2(&classic, GRANULE));
	TRY(cuMemAllocManaged(&managed, GRANULE, CU_MEM_ATTACH_GLOBAL));
	memset((void *)(uintptr_t)managed, 11, GRANULE);
	TRY(cuMemcpyDtoD_v2(p.va, managed, GRANULE));
	TRY(cuMemcpyDtoD_v2(classic, p.va, GRANULE));
	TRY(cuMemcpyDtoD_v2(peer.va, classic, GRANULE));
	EXPECT_TRUE(rig_is_filled(peer.va, GRANULE, 11));
	TRY(cuMemsetD8_v2(peer.va, 12, GRANULE));
	TRY(cuMemcpyDtoDAsync_v2(p.va, peer.va, GRANULE, NULL));
	TRY(cuMemcpyDtoDAsync_v2(managed, p.va, GRANULE, NULL));
	TRY(cuCtxSynchronize());
	EXPECT_EQ(12, ((unsigned char *)(uintptr_t)managed)[GRANULE - 1]);
	TRY(cuMemFree_v2(classic));
	TRY(cuMemFree_v2(managed));
	rig_end(p);
	rig_end(peer);
}

/* ---- threads ---- */

static void *use_a_range(void *arg)
{
	CUcontext context = arg;
	bool fine = cuCtxSetCurrent(context) == CUDA_SUCCESS;

	for (int i = 0; i < 50 && fine; i++) {
		struct piece p = rig_make(i % 2, GRANULE);

		fine = cuMemsetD8_v2(p.va, (unsigned char)i, 4096) == CUDA_SUCCESS &&
		       rig_is_filled(p.va, 4096, (unsigned char)i);
		rig_end(p);
	}
	return fine ? arg : NULL;
}

TEST(cuda_use, threads_with_their_own_ranges)
{
	pthread_t threads[5];
	CUcontext context = NULL;

	TRY(cuCtxGetCurrent(&context));
	for (unsigned i = 0; i < 5; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, use_a_range, context));
	for (unsigned i = 0; i < 5; i++) {
		void *result = NULL;

		pthread_join(threads[i], &result);
		EXPECT_NOT_NULL(result);
	}
}

/* ---- ranges over reservations ---- */

/* Two that adjoin are one to every call but cuMemAddressFree; what lies behind them is none. */
TEST(cuda_use, ranges_over_reservations_that_adjoin)
{
	CUdeviceptr whole = rig_reserve(12 * MIB), a, b;
	CUmemGenericAllocationHandle h = rig_create(0, 4 * MIB), k = rig_create(0, 4 * MIB);
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	TRY(cuMemAddressFree(whole, 12 * MIB));
	TRY(cuMemAddressReserve(&a, 4 * MIB, 0, whole, 0));
	TRY(cuMemAddressReserve(&b, 4 * MIB, 0, whole + 4 * MIB, 0));
	ASSERT_EQ(a + 4 * MIB, b);
	TRY(cuMemMap(a, 4 * MIB, 0, h, 0));
	TRY(cuMemMap(b, 4 * MIB, 0, k, 0));
	TRY(cuMemSetAccess(a, 8 * MIB, &grant, 1));
	TRY(cuMemsetD8_v2(a, 7, 8 * MIB));
	EXPECT_TRUE(rig_is_filled(a, 8 * MIB, 7));
	FAILS(INVALID_VALUE, cuMemUnmap(a, 6 * MIB)); /* cuts the second mapping */
	FAILS(INVALID_VALUE, cuMemUnmap(a, 12 * MIB));
	FAILS(INVALID_VALUE, cuMemAddressFree(a, 8 * MIB));
	TRY(cuMemUnmap(a, 8 * MIB));

	TRY(cuMemMap(a + GRANULE, 4 * MIB, 0, h, 0)); /* over both */
	TRY(cuMemSetAccess(a + GRANULE, 4 * MIB, &grant, 1));
	TRY(cuMemsetD8_v2(b, 9, GRANULE));
	EXPECT_TRUE(rig_is_filled(b, GRANULE, 9));
	FAILS(INVALID_VALUE, cuMemAddressFree(a, 4 * MIB));
	FAILS(INVALID_VALUE, cuMemAddressFree(b, 4 * MIB));
	FAILS(INVALID_VALUE, cuMemMap(b + GRANULE, 4 * MIB, 0, k, 0));
	TRY(cuMemUnmap(a, 8 * MIB));
	TRY(cuMemAddressFree(b, 4 * MIB));
	TRY(cuMemAddressFree(a, 4 * MIB));
	TRY(cuMemRelease(h));
	TRY(cuMemRelease(k));
}
