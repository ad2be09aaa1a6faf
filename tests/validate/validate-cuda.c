/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases as those of validate-program, of the CUDA driver API: its mappings are closed at first.
 */
#include <cuda/cuda.h>
#include <stdio.h>
#include <string.h>

#define BYTES ((size_t)2 << 20)

static void must(CUresult code, const char *call)
{
	if (code != CUDA_SUCCESS)
		printf("%s: %d\n", call, code);
}
#define MUST(call) must(call, #call)

static CUmemGenericAllocationHandle handle;
static CUdeviceptr va;

static void mapped_without_access(void)
{
	printf("copied %d\n", cuMemsetD8_v2(va, 1, 64));
}

static void mapped_with_access(void)
{
	CUmemAccessDesc desc = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
				 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

	MUST(cuMemSetAccess(va, BYTES, &desc, 1));
	MUST(cuMemsetD8_v2(va, 1, 64));
}

static void leaves_handle(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUmemGenericAllocationHandle lost;

	MUST(cuMemCreate(&lost, BYTES, &prop, 0));
}

/* Device 4 of an H100's server is near node 1 of its host. */
static void asks_for_node(void)
{
	const int host_numa_id = 134;
	int node = -1;

	MUST(cuDeviceGetAttribute(&node, host_numa_id, 4));
	if (node != 1)
		printf("node: %d\n", node);
}

static void begin(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuMemAddressReserve(&va, BYTES, 0, 0, 0));
	MUST(cuMemCreate(&handle, BYTES, &prop, 0));
	MUST(cuMemMap(va, BYTES, 0, handle, 0));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "mapped_without_access", mapped_without_access },
	{ "mapped_with_access", mapped_with_access },
	{ "leaves_handle", leaves_handle },
	{ "asks_for_node", asks_for_node },
};

int main(int argc, char **argv)
{
	begin();
	for (unsigned i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			cases[i].run();
	MUST(cuMemUnmap(va, BYTES));
	MUST(cuMemRelease(handle));
	MUST(cuMemAddressFree(va, BYTES));
	return 0;
}
