/* SPDX-License-Identifier: Apache-2.0
 *
 * The rig's calls, each of which must succeed.
 */
#include "rig.h"

#include <stdlib.h>

void rig_begin(void)
{
	CUcontext context = NULL;

	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&context, 0));
	TRY(cuCtxSetCurrent(context));
}

CUmemAllocationProp rig_prop(int device)
{
	return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
}

CUmemAccessDesc rig_grant(int device, CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
}

CUmemGenericAllocationHandle rig_create(int device, size_t bytes)
{
	CUmemAllocationProp prop = rig_prop(device);
	CUmemGenericAllocationHandle handle = 0;

	TRY(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

CUdeviceptr rig_reserve(size_t bytes)
{
	CUdeviceptr va = 0;

	TRY(cuMemAddressReserve(&va, bytes, 0, 0, 0));
	return va;
}

struct piece rig_make(int device, size_t bytes)
{
	CUmemAccessDesc grant = rig_grant(device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	struct piece piece = { rig_reserve(bytes), bytes, rig_create(device, bytes) };

	TRY(cuMemMap(piece.va, bytes, 0, piece.handle, 0));
	TRY(cuMemSetAccess(piece.va, bytes, &grant, 1));
	return piece;
}

void rig_end(struct piece piece)
{
	TRY(cuMemUnmap(piece.va, piece.bytes));
	TRY(cuMemRelease(piece.handle));
	TRY(cuMemAddressFree(piece.va, piece.bytes));
}

bool rig_is_filled(CUdeviceptr va, size_t bytes, unsigned char value)
{
	unsigned char *to = malloc(bytes);
	bool filled = to != NULL && cuMemcpyDtoH_v2(to, va, bytes) == CUDA_SUCCESS;

	for (size_t i = 0; filled && i < bytes; i++)
		filled = to[i] == value;
	free(to);
	return filled;
}
