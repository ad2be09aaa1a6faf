/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: cuMemAlloc and related calls, host memory, managed memory. Owns which
 * context an allocation belongs to, and which ones are managed; the memory is the driver's.
 * Managed memory is page-locked host memory here, which host and device can both access.
 */
#include "cuda-internal.h"

#include "base/lock.h"
#include "trace/names.h"

#include <stdlib.h>
#include <string.h>

#define HUGE_ABOVE_BYTES (UINT64_C(1) << 20)
#define PITCH_BYTES      512u
#define DEVICE_KINDS     (1u << NPU_PLACE_DEVICE | 1u << NPU_PLACE_MANAGED) /* of cuMemFree */

/* By address; the letter is the kind of place (DEVICE of cuMemAlloc, MANAGED, PINNED of
 * cuMemAllocHost, REGISTERED), the number the context. */
static struct trace_names allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool remember(uint64_t va, uint64_t bytes, const void *context, enum npu_place_kind kind)
{
	LOCKED(&lock);

	return trace_name_add(&allocations,
			      (struct trace_name){ va, bytes, (uintptr_t)context, 1, (char)kind });
}

/* Takes the allocation that begins at va, if it is of one of the kinds, one bit each. */
static bool forget(uint64_t va, unsigned kinds, struct trace_name *out)
{
	const struct trace_name *name;
	LOCKED(&lock);

	name = trace_name_find(&allocations, va);
	return name != NULL && (kinds >> name->letter & 1) &&
	       trace_name_take(&allocations, va, out);
}

static struct trace_name find(uint64_t va)
{
	const struct trace_name *name;
	LOCKED(&lock);

	name = trace_name_find(&allocations, va);
	return name != NULL ? *name : (struct trace_name){ 0 };
}

void *cuda_memory_context(uint64_t va)
{
	return cuda_pointer(find(va).number);
}

enum npu_place_kind cuda_memory_kind(uint64_t va)
{
	return (enum npu_place_kind)find(va).letter;
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
		if (cuda_memory_context(keys[i]) == context && forget(keys[i], DEVICE_KINDS, &name))
			npu_call(core_driver(), halMemFree, cuda_pointer(keys[i]));
	free(keys);
}

/* ---- device memory ---- */

static CUresult allocate(const char *call, CUdeviceptr *ptr, size_t size, uint64_t flags,
			 enum npu_place_kind kind)
{
	struct core_context *context;
	void *made = NULL;
	CUresult code = cuda_null(call, "ptr", ptr) ?: cuda_current(call, &context);

	if (code != CUDA_SUCCESS)
		return code;
	if (size == 0)
		return cuda_invalid(call, "size is 0");
	if (kind == NPU_PLACE_DEVICE)
		flags |= context->device;
	code = CUDA_CALL(call, halMemAlloc, &made, size, flags);
	if (code != CUDA_SUCCESS)
		return code;
	if (!remember((uintptr_t)made, size, core_context_handle(context), kind)) {
		npu_call(core_driver(), halMemFree, made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = (uintptr_t)made;
	return CUDA_SUCCESS;
}

static uint64_t device_flags(size_t size)
{
	return (MEM_DEV_VAL << MEM_VIRT_BIT) | MEM_TYPE_HBM |
	       ((uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT) |
	       (size > HUGE_ABOVE_BYTES ? MEM_PAGE_HUGE : 0);
}

static uint64_t host_flags(void)
{
	return (MEM_HOST_VAL << MEM_VIRT_BIT) | ((uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
}

CUDA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
	CUDA_ANSWERS(allocate("cuMemAlloc", ptr, size, device_flags(size), NPU_PLACE_DEVICE));

CUDA_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width,
					size_t height, unsigned int element)
{
	size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
	CUresult code;

	if (pitch == NULL || width == 0 || height == 0 ||
	    (element != 4 && element != 8 && element != 16) || row < width ||
	    height > SIZE_MAX / row)
		return cuda_invalid("cuMemAllocPitch",
				    "pitch %p, width %zu, height %zu, element %u", (void *)pitch,
				    width, height, element);
	code = allocate("cuMemAllocPitch", ptr, row * height, device_flags(row * height),
			NPU_PLACE_DEVICE);
	if (code == CUDA_SUCCESS)
		*pitch = row;
	return code;
}

CUDA_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	CUresult code = CUDA_IS_NULL(ptr);

	if (code != CUDA_SUCCESS)
		return code;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return cuda_invalid(__func__, "flags is %u; it must be 1 or 2", flags);
	return allocate(__func__, ptr, size, host_flags(), NPU_PLACE_MANAGED);
}

/* Work that still uses the memory ends first, as in CUDA's driver. The context is the allocation's;
 * the calling thread needs none. */
static CUresult release(const char *call, uint64_t va, unsigned kinds)
{
	const struct core_context *context;
	struct trace_name gone;
	CUresult code = cuda_unharmed(call);

	if (code != CUDA_SUCCESS)
		return code;
	if (!forget(va, kinds, &gone))
		return cuda_invalid(call,
				    "0x%llx is not the start of an allocation that this call frees",
				    (unsigned long long)va);
	context = core_context_find(cuda_pointer(gone.number));
	if (context != NULL)
		core_device_synchronize(context->device, -1, call);
	return CUDA_CALL(call, halMemFree, cuda_pointer(va));
}

CUDA_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
	CUDA_ANSWERS(release("cuMemFree", ptr, DEVICE_KINDS));

CUDA_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct MemInfo info;
	struct core_context *context;
	CUresult code;

	if (free == NULL && total == NULL)
		return cuda_invalid(__func__, "free and total are NULL");
	memset(&info, 0, sizeof(info));
	code = cuda_current(__func__, &context)
		       ?: CUDA_CALL(__func__, halMemGetInfo, context->device,
				    MEM_INFO_TYPE_HBM_SIZE, &info);
	if (code != CUDA_SUCCESS)
		return code;
	if (free != NULL)
		*free = info.phy_info.huge_free;
	if (total != NULL)
		*total = info.phy_info.huge_total;
	return CUDA_SUCCESS;
}

/* The H100's driver finds a mapping only once a device has access to it. */
CUDA_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct npu_place place;
	CUresult code = cuda_unharmed(__func__);

	if (code != CUDA_SUCCESS)
		return code;
	if (base == NULL && size == NULL)
		return cuda_invalid(__func__, "base and size are NULL");
	place = cuda_place(ptr);
	if (!(place.kind == NPU_PLACE_MAPPED && (place.readers != 0 || place.cpu)) &&
	    place.kind != NPU_PLACE_DEVICE && place.kind != NPU_PLACE_PINNED &&
	    place.kind != NPU_PLACE_MANAGED)
		return cuda_fail(CUDA_ERROR_NOT_FOUND, __func__,
				 "no memory that a device can reach lies at 0x%llx", ptr);
	if (base != NULL)
		*base = place.base;
	if (size != NULL)
		*size = place.kind == NPU_PLACE_MAPPED ? place.bytes : place.asked_bytes;
	return CUDA_SUCCESS;
}

/* ---- host memory ---- */

static CUresult allocate_host(const char *call, void **ptr, size_t size)
{
	CUdeviceptr made = 0;

	return allocate(call, ptr == NULL ? NULL : &made, size, host_flags(), NPU_PLACE_PINNED)
		       ?: CUDA_GIVE(ptr, cuda_pointer(made));
}

CUDA_EXPORT CUresult cuMemAllocHost_v2(void **ptr, size_t size)
	CUDA_ANSWERS(allocate_host("cuMemAllocHost", ptr, size));

CUDA_EXPORT CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	if (flags >
	    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
		return cuda_invalid(__func__, "flags is %u", flags);
	return allocate_host(__func__, ptr, size);
}

CUDA_EXPORT CUresult cuMemFreeHost(void *ptr)
	CUDA_ANSWERS(release(__func__, (uintptr_t)ptr, 1u << NPU_PLACE_PINNED));

CUDA_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags)
{
	struct trace_name name;

	name = find((uintptr_t)host);
	if (ptr == NULL || flags != 0 || name.bytes == 0)
		return cuda_invalid("cuMemHostGetDevicePointer", "ptr %p, host %p, flags %u",
				    (void *)ptr, host, flags);
	*ptr = (uintptr_t)host; /* one address space */
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
	if (flags == NULL || cuda_memory_kind((uintptr_t)host) != NPU_PLACE_PINNED)
		return cuda_invalid(__func__, "host %p was not made by cuMemHostAlloc", host);
	*flags = CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

/* Copies reach the program's own memory as it is: only who registered what is kept. */
CUDA_EXPORT CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned int flags)
{
	struct core_context *context;
	CUresult code = CUDA_IS_NULL(host) ?: cuda_current("cuMemHostRegister", &context);

	if (code != CUDA_SUCCESS)
		return code;
	(void)flags;
	if (size == 0)
		return cuda_invalid("cuMemHostRegister", "size is 0");
	if (find((uintptr_t)host).bytes != 0 || find((uintptr_t)host + size - 1).bytes != 0)
		return cuda_fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "cuMemHostRegister",
				 "host %p, size %zu", host, size);
	return remember((uintptr_t)host, size, core_context_handle(context), NPU_PLACE_REGISTERED)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_EXPORT CUresult cuMemHostUnregister(void *host)
{
	struct trace_name gone;

	if (!forget((uintptr_t)host, 1u << NPU_PLACE_REGISTERED, &gone))
		return cuda_fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, __func__, "host %p", host);
	npu_call(core_driver(), npusimGaveBack, gone.key, gone.bytes, __func__);
	return CUDA_SUCCESS;
}
