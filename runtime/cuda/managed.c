/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs say of managed memory: prefetches, advice, attachment. It does not migrate, and
 * everything can access it all the time, so what is right has no effect. No state.
 */
#include "cuda-internal.h"

static CUmemLocation location_of(CUdevice device)
{
	return (CUmemLocation){ device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
							: CU_MEM_LOCATION_TYPE_DEVICE,
				device };
}

/* Managed memory, and a device, the host, or a node of it: those up to `last`. */
static CUresult check(CUdeviceptr ptr, size_t count, CUmemLocation where, CUmemLocationType last)
{
	struct trace_name memory = cuda_memory_find(ptr);
	uint32_t logic;

	if (memory.letter != NPU_PLACE_MANAGED || count == 0 ||
	    count > memory.key + memory.bytes - ptr)
		return cuda_invalid("[0x%llx, +%zu) is not memory of cuMemAllocManaged", ptr,
				    count);
	if (where.type < CU_MEM_LOCATION_TYPE_DEVICE || where.type > last ||
	    (where.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && where.id < 0))
		return cuda_invalid("location is (%d, %d): its type is 1 (a device) to %d (2: the "
				    "host, 3: a node of it, 4: the thread's)",
				    (int)where.type, where.id, (int)last);
	return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? cuda_check_device(where.id, &logic)
							 : cuda_unharmed();
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t count, CUmemLocation location,
			       unsigned int flags, CUstream stream)
{
	CUDA_IN_CONTEXT_OF(stream);

	if (flags != 0)
		return cuda_invalid("flags is %u; it must be 0", flags);
	return check(ptr, count, location, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		       ?: cuda_stream(stream, NULL);
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t count, CUdevice device, CUstream stream)
	CUDA_ANSWERS(cuMemPrefetchAsync_v2(ptr, count, location_of(device), 0, stream));

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return cuda_invalid("advice is %d; known are 1 to 6", (int)advice);
	if (advice <= CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
	    advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
		location = location_of(CU_DEVICE_CPU); /* which is ignored */
	return check(ptr, count, location,
		     advice >= CU_MEM_ADVISE_SET_ACCESSED_BY
			     ? CU_MEM_LOCATION_TYPE_HOST
			     : CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUdevice device)
	CUDA_ANSWERS(cuMemAdvise_v2(ptr, count, advice, location_of(device)));

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t length, unsigned int flags)
{
	struct trace_name memory = cuda_memory_find(ptr);
	CUDA_IN_CONTEXT_OF(stream);

	if (memory.letter != NPU_PLACE_MANAGED || memory.key != ptr ||
	    (length != 0 && length != memory.bytes) ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	     (flags != CU_MEM_ATTACH_SINGLE || stream == NULL)))
		return cuda_invalid("[0x%llx, +%zu), flags %u: memory of cuMemAllocManaged is "
				    "attached whole, globally (1), to the host (2) or to a stream "
				    "that is not the default one (4)",
				    ptr, length, flags);
	return cuda_stream(stream, NULL);
}
