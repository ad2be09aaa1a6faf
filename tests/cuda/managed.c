/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: what programs say of ranges of it, and what these answer then.
 */
#include "rig.h"

#define BYTES (8 * MIB)
#define HALF  (BYTES / 2)
#define CPU   (-1)
#define NONE  (-2)

#define ATTRIBUTE(name) CU_MEM_RANGE_ATTRIBUTE_##name

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

static int ask(CUmem_range_attribute attribute, CUdeviceptr start, size_t bytes)
{
	int value = 99;

	TRY(cuMemRangeGetAttribute(&value, sizeof(value), attribute, start, bytes));
	return value;
}

TEST(cuda_managed, remembers_the_last_prefetch_of_each_page)
{
	CUmemLocation node = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 3 };
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 77 };
	CUstream stream = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	EXPECT_EQ(NONE, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, BYTES));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_INVALID,
		  ask(ATTRIBUTE(LAST_PREFETCH_LOCATION_TYPE), ptr, BYTES));
	TRY(cuMemPrefetchAsync(ptr, HALF, 1, stream));
	EXPECT_EQ(1, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, HALF));
	EXPECT_EQ(NONE, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, HALF + 1));
	TRY(cuMemPrefetchAsync(ptr + HALF, HALF, 1, NULL));
	EXPECT_EQ(1, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, BYTES)); /* said in two calls */
	TRY(cuMemPrefetchAsync(ptr + MIB, MIB, CPU, stream));
	EXPECT_EQ(NONE, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, BYTES));
	EXPECT_EQ(CPU, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr + MIB, MIB));
	EXPECT_EQ(1, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, MIB));
	EXPECT_EQ(1, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr + 2 * MIB, 6 * MIB));
	TRY(cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, stream));
	EXPECT_EQ(CPU, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), ptr, BYTES));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_HOST_NUMA,
		  ask(ATTRIBUTE(LAST_PREFETCH_LOCATION_TYPE), ptr, BYTES));
	EXPECT_EQ(3, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION_ID), ptr, BYTES));
	TRY(cuMemPrefetchAsync_v2(ptr, 1, here, 0, stream)); /* a whole page */
	EXPECT_NE(77, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION_ID), ptr, 4096));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_HOST_NUMA,
		  ask(ATTRIBUTE(LAST_PREFETCH_LOCATION_TYPE), ptr, 4096));
	TRY(cuStreamDestroy_v2(stream));
	FAILS(INVALID_HANDLE, cuMemPrefetchAsync(ptr, BYTES, 0, stream));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(ptr, BYTES + 1, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(ptr, 0, 0, NULL));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 1, NULL));
	FAILS(INVALID_DEVICE, cuMemPrefetchAsync(ptr, BYTES, 9, NULL));
	node.id = -1;
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, NULL));
	node.type = CU_MEM_LOCATION_TYPE_INVALID;
	FAILS(INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, node, 0, NULL));
}

TEST(cuda_managed, takes_advice_and_takes_it_back)
{
	CUmemLocation device = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	CUmemLocation node = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 };

	EXPECT_EQ(0, ask(ATTRIBUTE(READ_MOSTLY), ptr, BYTES));
	TRY(cuMemAdvise(ptr, HALF, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	EXPECT_EQ(1, ask(ATTRIBUTE(READ_MOSTLY), ptr, HALF));
	EXPECT_EQ(0, ask(ATTRIBUTE(READ_MOSTLY), ptr, BYTES));
	TRY(cuMemAdvise(ptr + MIB, MIB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
	EXPECT_EQ(0, ask(ATTRIBUTE(READ_MOSTLY), ptr, HALF));
	EXPECT_EQ(1, ask(ATTRIBUTE(READ_MOSTLY), ptr, MIB));

	EXPECT_EQ(NONE, ask(ATTRIBUTE(PREFERRED_LOCATION), ptr, BYTES));
	TRY(cuMemAdvise_v2(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
	EXPECT_EQ(1, ask(ATTRIBUTE(PREFERRED_LOCATION), ptr, BYTES));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_DEVICE, ask(ATTRIBUTE(PREFERRED_LOCATION_TYPE), ptr, BYTES));
	EXPECT_EQ(1, ask(ATTRIBUTE(PREFERRED_LOCATION_ID), ptr, BYTES));
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CPU));
	EXPECT_EQ(CPU, ask(ATTRIBUTE(PREFERRED_LOCATION), ptr, BYTES));
	EXPECT_EQ(CU_MEM_LOCATION_TYPE_HOST, ask(ATTRIBUTE(PREFERRED_LOCATION_TYPE), ptr, BYTES));
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 99));
	EXPECT_EQ(NONE, ask(ATTRIBUTE(PREFERRED_LOCATION), ptr, BYTES));

	FAILS(INVALID_VALUE, cuMemAdvise(ptr, BYTES, (CUmem_advise)0, 0));
	FAILS(INVALID_VALUE, cuMemAdvise(ptr, BYTES, (CUmem_advise)7, 0));
	FAILS(INVALID_VALUE, cuMemAdvise(0, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	FAILS(INVALID_VALUE, cuMemAdvise_v2(ptr, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, node));
	FAILS(INVALID_DEVICE, cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 9));
}

TEST(cuda_managed, lists_who_accesses_a_range)
{
	int devices[4] = { 99, 99, 99, 99 };

	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, CPU));
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
	TRY(cuMemAdvise(ptr, MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0));
	TRY(cuMemRangeGetAttribute(devices, sizeof(devices), ATTRIBUTE(ACCESSED_BY), ptr, BYTES));
	EXPECT_EQ(1, devices[0]);
	EXPECT_EQ(CPU, devices[1]);
	EXPECT_EQ(NONE, devices[2]);
	EXPECT_EQ(NONE, devices[3]);
	TRY(cuMemRangeGetAttribute(devices, sizeof(devices), ATTRIBUTE(ACCESSED_BY), ptr + MIB,
				   BYTES - MIB));
	EXPECT_EQ(0, devices[0]);
	EXPECT_EQ(1, devices[1]);
	EXPECT_EQ(CPU, devices[2]);
	devices[1] = 99;
	TRY(cuMemRangeGetAttribute(devices, 4, ATTRIBUTE(ACCESSED_BY), ptr, BYTES));
	EXPECT_EQ(1, devices[0]);
	EXPECT_EQ(99, devices[1]); /* there was room for one */
}

TEST(cuda_managed, answers_several_at_once)
{
	CUmem_range_attribute which[] = { ATTRIBUTE(READ_MOSTLY), ATTRIBUTE(PREFERRED_LOCATION) };
	int mostly = 99, preferred = 99;
	void *data[] = { &mostly, &preferred };
	size_t sizes[] = { 4, 4 };
	CUdeviceptr plain = 0;

	TRY(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
	TRY(cuMemRangeGetAttributes(data, sizes, which, 2, ptr, BYTES));
	EXPECT_EQ(0, mostly);
	EXPECT_EQ(0, preferred);
	TRY(cuMemAlloc_v2(&plain, MIB));
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 2, plain, MIB));
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(NULL, sizes, which, 2, ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(data, NULL, which, 2, ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, NULL, 2, ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 0, ptr, BYTES));
	data[1] = NULL;
	FAILS(INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 2, ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttribute(NULL, 4, which[0], ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttribute(&mostly, 8, which[0], ptr, BYTES));
	FAILS(INVALID_VALUE, cuMemRangeGetAttribute(&mostly, 3, ATTRIBUTE(ACCESSED_BY), ptr, MIB));
	FAILS(INVALID_VALUE, cuMemRangeGetAttribute(&mostly, 0, ATTRIBUTE(ACCESSED_BY), ptr, MIB));
	FAILS(INVALID_VALUE,
	      cuMemRangeGetAttribute(&mostly, 4, (CUmem_range_attribute)9, ptr, BYTES));
	FAILS(INVALID_VALUE,
	      cuMemRangeGetAttribute(&mostly, 4, (CUmem_range_attribute)0, ptr, BYTES));
	TRY(cuMemFree_v2(plain));
}

/* New memory at an old address is not what that was said to be. */
TEST(cuda_managed, forgets_what_is_freed)
{
	CUdeviceptr first = 0, again = 0;

	TRY(cuMemAllocManaged(&first, BYTES, CU_MEM_ATTACH_GLOBAL));
	TRY(cuMemAdvise(first, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	TRY(cuMemPrefetchAsync(first, BYTES, 0, NULL));
	TRY(cuMemFree_v2(first));
	FAILS(INVALID_VALUE, cuMemPrefetchAsync(first, BYTES, 0, NULL));
	TRY(cuMemAllocManaged(&again, BYTES, CU_MEM_ATTACH_GLOBAL));
	EXPECT_EQ(first, again);
	EXPECT_EQ(0, ask(ATTRIBUTE(READ_MOSTLY), again, BYTES));
	EXPECT_EQ(NONE, ask(ATTRIBUTE(LAST_PREFETCH_LOCATION), again, BYTES));
	TRY(cuMemFree_v2(again));
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
