/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of CUDA's runtime API without kernels: memory in the order of streams, from a pool that
 * keeps what is freed. Ends with 0 if all is as it says.
 */
#include "sample.h"

#include <string.h>

#define BYTES             ((size_t)4 << 20)
#define EXPECT(condition) expect(condition, #condition)

static uint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;

	CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

int main(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemAccessDesc peer = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
				 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUmemoryPool pool, standard, current;
	uint64_t keep = UINT64_MAX;
	unsigned char *host = malloc(BYTES);
	void *first = NULL, *second = NULL, *ptr = NULL;
	CUstream stream;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
	CHECK(cudaMemPoolCreate(&pool, &props));
	EXPECT(cudaMemPoolCreate(NULL, &props) == 1);
	CHECK(cudaMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	EXPECT(cudaMemPoolSetAttribute(pool, 99, &keep) == 1);

	CHECK(cudaMallocFromPoolAsync(&first, BYTES, pool, stream));
	CHECK(cudaMemsetAsync(first, 7, BYTES, stream));
	CHECK(cudaMemcpyAsync(host, first, BYTES, 2, stream));
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaMallocFromPoolAsync(&second, BYTES, pool, stream));
	EXPECT(first == second); /* the stream has it again, in order */
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(host[0] == 7 && host[BYTES - 1] == 7);
	EXPECT(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == BYTES);
	CHECK(cudaFreeAsync(second, stream));
	EXPECT(cudaFreeAsync(second, stream) == 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == BYTES);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	EXPECT(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);

	CHECK(cudaMemPoolSetAccess(pool, &peer, 1));
	CHECK(cudaMemPoolGetAccess(&access, pool, &peer.location));
	EXPECT(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK(cudaDeviceSetMemPool(0, pool));
	CHECK(cudaDeviceGetMemPool(&current, 0));
	EXPECT(current == pool);
	CHECK(cudaMallocAsync(&ptr, BYTES, stream)); /* of the device's pool */
	EXPECT(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == BYTES);
	CHECK(cudaFree(ptr));
	CHECK(cudaDeviceSetMemPool(0, standard));
	CHECK(cudaMemPoolDestroy(pool));
	EXPECT(cudaMemPoolTrimTo(pool, 0) == 1);
	CHECK(cudaStreamDestroy(stream));
	free(host);
	puts("pool: passed");
	return 0;
}
