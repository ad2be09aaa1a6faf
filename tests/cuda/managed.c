/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: what programs may say of it.
 */
#include "rig.h"

#define BYTES (8 * MIB)
#define CPU   CU_DEVICE_CPU

static CUdeviceptr ptr;

SETUP(cuda_managed)
{
	rig_begin();
	TRY(cuMemAllocManaged(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL));
}

TEARDOWN(cuda_managed)
{
	TRY(cuMemFree_v2(ptr));
}

TEST(cuda_managed, is_prefetched)
{
	CUmemLocation node = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 3 };
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, -77 };
	CUdeviceptr plain = 0;
	CUstream stream = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAlloc_v2(&plain, MIB));
	TRY(cuMemPrefetchAsync(ptr, BYTES, 1, stream));
	TRY(cuMemPrefetchAsync(ptr + MIB, 1, CPU, NULL));
	TRY(cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, stream));
	TRY(cuMemPrefetchAsync_v2(ptr, BYTES, here, 0, stream));
	*(unsigned char *)(uintptr_t)ptr = 1; /* whoever has it, the CPU can use it */
	TRY(cuStreamDestroy_v2(stream));
	FAILS(INVALID_HANDLE, cuMemPrefetchAsync(ptr, BYTES, 0, stream));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(ptr + MIB, BYTES, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(ptr, SIZE_MAX, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(ptr, 0, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(plain, MIB, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(0, MIB, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 1, NULL));
	FAILS(INVALID_DEVICE, cuMemPrefetchAsync(ptr, BYTES, 9, NULL));
	FAILS(INVALID_DEVICE, cuMemPrefetchAsync(ptr, BYTES, -2, NULL));
	node.id = -1;
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, NULL));
	node.type = CU_MEM_LOCATION_TYPE_INVALID;
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, NULL));
	TRY(cuMemFree_v2(plain));
}

TEST(cuda_managed, takes_advice)
{
	CUmemLocation device = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	CUmemLocation node = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 };

	for (int advice = 1; advice <= 6; advice++) {
		TRY(cuMemAdvise(ptr, BYTES, (CUmem_advise)advice, 0));
		TRY(cuMemAdvise(ptr + MIB, MIB, (CUmem_advise)advice, CPU));
		TRY(cuMemAdvise_v2(ptr, BYTES, (CUmem_advise)advice, device));
		FAILS(INVALID_VALUE, cuMemAdvise(ptr, 2 * BYTES, (CUmem_advise)advice, 0));
	}
	/* A device counts for some. */
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 9));
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 9));
	FAILS(INVALID_DEVICE, cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 9));
	FAILS(INVALID_DEVICE, cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 9));
	TRY(cuMemAdvise_v2(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node));
	FAILS(INVALID_VALUE, cuMemAdvise_v2(ptr, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, node));
	FAILS(INVALID_VALUE, cuMemAdvise(ptr, BYTES, (CUmem_advise)0, 0));
	FAILS(INVALID_VALUE, cuMemAdvise(ptr, BYTES, (CUmem_advise)7, 0));
	FAILS(INVALID_VALUE, cuMemAdvise(0, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
}

TEST(cuda_managed, is_attached_whole)
{
	CUstream stream = NULL;
	CUdeviceptr plain = 0;

	TRY(cuStreamCreate(&stream, 0));
	TRY(cuMemAlloc_v2(&plain, MIB));
	TRY(cuStreamAttachMemAsync(stream, ptr, 0, CU_MEM_ATTACH_SINGLE));
	TRY(cuStreamAttachMemAsync(stream, ptr, BYTES, CU_MEM_ATTACH_GLOBAL));
	TRY(cuStreamAttachMemAsync(NULL, ptr, 0, CU_MEM_ATTACH_HOST));
	FAILS(INVALID_VALUE, cuStreamAttachMemAsync(NULL, ptr, 0, CU_MEM_ATTACH_SINGLE));
	FAILS(INVALID_VALUE, cuStreamAttachMemAsync(stream, ptr, 1, CU_MEM_ATTACH_GLOBAL));
	FAILS(INVALID_VALUE, cuStreamAttachMemAsync(stream, ptr, 0, 3));
	FAILS(INVALID_VALUE, cuStreamAttachMemAsync(stream, plain, 0, CU_MEM_ATTACH_GLOBAL));
	TRY(cuMemFree_v2(plain));
	TRY(cuStreamDestroy_v2(stream));
	FAILS(INVALID_HANDLE, cuStreamAttachMemAsync(stream, ptr, 0, CU_MEM_ATTACH_GLOBAL));
}
