/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: cuMemAlloc and related calls, host memory, managed memory. Owns what there
 * is of these and of what pools and other processes gave, and which context it belongs to; the
 * memory is the driver's. Managed memory is page-locked host memory here, which host and device can
 * both access.
 */
#include "cuda-internal.h"

#include "base/lock.h"
#include "trace/names.h"

#include <stdlib.h>

#define PITCH_BYTES   512u
#define DEVICE_KINDS  (1u << NPU_PLACE_DEVICE | 1u << NPU_PLACE_MANAGED) /* of cuMemFree */
#define SHARED_KINDS  (1u << NPU_PLACE_OPENED | 1u << CUDA_IMPORTED)     /* of another process */
#define CONTEXT_KINDS (DEVICE_KINDS | SHARED_KINDS)                      /* that go with it */

static struct trace_names allocations; /* by address; cuda_memory_find() says what they have */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool cuda_memory_add(uint64_t va, uint64_t bytes, const void *owner, int kind)
{
	LOCKED(&lock);

	return trace_name_add(&allocations,
			      (struct trace_name){ va, bytes, (uintptr_t)owner, 1, (char)kind });
}

bool cuda_memory_take(uint64_t va, unsigned kinds, struct trace_name *out)
{
	LOCKED(&lock);
	struct trace_name *name = trace_name_find(&allocations, va);

	if (name == NULL || name->key != va || !(kinds >> name->letter & 1))
		return false;
	*out = *name;
	return name->references-- > 1 || trace_name_take(&allocations, va, NULL);
}

bool cuda_memory_again(uint64_t va)
{
	LOCKED(&lock);
	struct trace_name *name = trace_name_find(&allocations, va);

	if (name != NULL)
		name->references++;
	return name != NULL;
}

struct trace_name cuda_memory_find(uint64_t va)
{
	LOCKED(&lock);
	const struct trace_name *name = trace_name_find(&allocations, va);

	return name != NULL ? *name : (struct trace_name){ 0 };
}

static CUresult give_back(const struct trace_name *gone)
{
	cuda_ipc_forget(gone->key);
	if (gone->letter == NPU_PLACE_MANAGED)
		cuda_managed_forget(gone->key);
	if (SHARED_KINDS >> gone->letter & 1)
		return CUDA_CALL(halShmemCloseHandle, gone->key);
	return CUDA_CALL(halMemFree, cuda_pointer(gone->key));
}

void cuda_memory_end_context(void *context)
{
	struct trace_name name;
	uint64_t *keys;
	size_t count;

	pthread_mutex_lock(&lock);
	count = trace_names_list(&allocations, &keys);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; core_driver() != NULL && i < count; i++)
		while (cuda_memory_find(keys[i]).number == (uintptr_t)context &&
		       cuda_memory_take(keys[i], CONTEXT_KINDS, &name))
			if (name.references == 1)
				give_back(&name);
	free(keys);
}

static CUresult allocate(CUdeviceptr *ptr, size_t size, uint64_t flags, enum npu_place_kind kind)
{
	struct core_context *context;
	void *made = NULL;
	CUresult code = cuda_current(&context) ?: CUDA_WANT(size != 0, "size is 0");

	if (code != CUDA_SUCCESS)
		return code;
	if (kind == NPU_PLACE_DEVICE)
		flags |= context->device;
	if ((code = CUDA_CALL(halMemAlloc, &made, size, flags)) != CUDA_SUCCESS)
		return code;
	if (!cuda_memory_add((uintptr_t)made, size, core_context_handle(context), kind)) {
		npu_call(core_driver(), halMemFree, made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_GIVE(ptr, (uintptr_t)made);
}

uint64_t cuda_device_flags(size_t size)
{
	return (MEM_DEV_VAL << MEM_VIRT_BIT) | MEM_TYPE_HBM |
	       ((uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT) |
	       (size > CUDA_HUGE_ABOVE_BYTES ? MEM_PAGE_HUGE : 0);
}

static uint64_t host_flags(void)
{
	return (MEM_HOST_VAL << MEM_VIRT_BIT) | ((uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
	CUDA_ANSWERS(allocate(ptr, size, cuda_device_flags(size), NPU_PLACE_DEVICE));

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;

	if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16) ||
	    row < width || height > SIZE_MAX / row)
		return cuda_invalid("width %zu, height %zu, element %u", width, height, element);
	return allocate(ptr, row * height, cuda_device_flags(row * height), NPU_PLACE_DEVICE)
		       ?: CUDA_GIVE(pitch, row);
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
	CUDA_ANSWERS(CUDA_WANT(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST,
			       "flags is %u; it must be 1 or 2", flags)
			     ?: allocate(ptr, size, host_flags(), NPU_PLACE_MANAGED));

CUresult cuda_memory_release(uint64_t va, unsigned kinds)
{
	const struct core_context *context;
	struct trace_name gone;

	if (!cuda_memory_take(va, kinds, &gone))
		return cuda_invalid("0x%llx is not the start of an allocation that this call frees",
				    (unsigned long long)va);
	if (gone.references > 1)
		return CUDA_SUCCESS;
	context = core_context_find(cuda_pointer(gone.number));
	if (context != NULL)
		core_device_synchronize(context->device, NULL, -1);
	return give_back(&gone);
}

/* stream: NULL for a synchronous call, which frees managed memory, too. Memory of an imported pool
 * is open, and is closed. */
static CUresult free_memory(CUdeviceptr ptr, const CUstream *stream)
{
	unsigned kinds = stream == NULL ? DEVICE_KINDS : 1u << NPU_PLACE_DEVICE;

	return cuda_memory_find(ptr).letter == CUDA_POOLED
		       ? cuda_pool_free(ptr, stream)
		       : cuda_memory_release(ptr, kinds | 1u << CUDA_IMPORTED);
}

CUresult cuMemFree_v2(CUdeviceptr ptr) CUDA_ANSWERS(free_memory(ptr, NULL));
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) CUDA_ANSWERS(free_memory(ptr, &stream));

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct MemInfo info = { 0 };
	struct core_context *context;

	return CUDA_WANT(free != NULL || total != NULL, "free and total are NULL")
		       ?: cuda_current(&context)
		       ?: CUDA_CALL(halMemGetInfo, context->device, MEM_INFO_TYPE_HBM_SIZE, &info)
		       ?: CUDA_GIVE_IF(free, info.phy_info.huge_free)
		       ?: CUDA_GIVE_IF(total, info.phy_info.huge_total);
}

/* The H100's driver finds a mapping only once a device has access to it. */
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct npu_place place = cuda_place(ptr);

	if (base == NULL && size == NULL)
		return cuda_invalid("base and size are NULL");
	if (!(place.kind == NPU_PLACE_MAPPED && (place.readers != 0 || place.cpu)) &&
	    place.kind != NPU_PLACE_DEVICE && place.kind != NPU_PLACE_OPENED &&
	    place.kind != NPU_PLACE_PINNED && place.kind != NPU_PLACE_MANAGED)
		return cuda_fail(CUDA_ERROR_NOT_FOUND,
				 "no memory that a device can reach lies at 0x%llx", ptr);
	return CUDA_GIVE_IF(base, place.base)
		       ?: CUDA_GIVE_IF(size, place.kind == NPU_PLACE_MAPPED ? place.bytes
									    : place.asked_bytes);
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	CUdeviceptr made = 0;

	return CUDA_WANT(flags <= (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
				   CU_MEMHOSTALLOC_WRITECOMBINED),
			 "flags is %u; known are 1, 2 and 4, and their sums", flags)
		       ?: allocate(&made, size, host_flags(), NPU_PLACE_PINNED)
		       ?: CUDA_GIVE(ptr, cuda_pointer(made));
}

CUresult cuMemAllocHost_v2(void **ptr, size_t size) CUDA_ANSWERS(cuMemHostAlloc(ptr, size, 0));

CUresult cuMemFreeHost(void *ptr)
	CUDA_ANSWERS(cuda_memory_release((uintptr_t)ptr, 1u << NPU_PLACE_PINNED));

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags)
	CUDA_ANSWERS(CUDA_WANT(flags == 0 && cuda_memory_find((uintptr_t)host).bytes != 0,
			       "host %p, flags %u", host, flags)
			     ?: CUDA_GIVE(ptr, (uintptr_t)host)); /* one address space */

CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
	CUDA_ANSWERS(CUDA_WANT(cuda_memory_find((uintptr_t)host).letter == NPU_PLACE_PINNED,
			       "host %p was not made by cuMemHostAlloc", host)
			     ?: CUDA_GIVE(flags, CU_MEMHOSTALLOC_DEVICEMAP));

/* Copies reach the program's own memory as it is: only who registered what is kept. */
CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned int flags)
{
	struct core_context *context;
	CUresult code = cuda_current(&context) ?: CUDA_WANT(size != 0, "size is 0");

	(void)flags;
	if (code != CUDA_SUCCESS)
		return code;
	if (cuda_memory_find((uintptr_t)host).bytes != 0 ||
	    cuda_memory_find((uintptr_t)host + size - 1).bytes != 0)
		return cuda_fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host %p, size %zu",
				 host, size);
	return cuda_memory_add((uintptr_t)host, size, core_context_handle(context),
			       NPU_PLACE_REGISTERED)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void *host)
{
	struct trace_name gone;

	if (!cuda_memory_take((uintptr_t)host, 1u << NPU_PLACE_REGISTERED, &gone))
		return cuda_fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host %p", host);
	npu_call(core_driver(), npusimGaveBack, gone.key, gone.bytes, core_called);
	return CUDA_SUCCESS;
}
