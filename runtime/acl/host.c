/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers host memory of the program for the device. Owns the list of registered ranges, for
 * which the driver cannot be asked: what is already registered, at which address the device sees
 * it, and that the range counts as page-locked in copies.
 */
#include "acl-internal.h"

#include "base/lock.h"

#include <stdlib.h>
#include <sys/queue.h>

#define REGISTER_TYPES ((uint32_t)(ACL_HOST_REGISTER_IOMEMORY | ACL_HOST_REGISTER_READONLY))
#define REGISTER_FLAGS                                                                    \
	((uint32_t)(ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | \
		    ACL_HOST_REG_PINNED))
#define READ_ONLY_FLAG (UINT32_C(1) << 28) /* the driver's, beside the kind of mapping */

struct range {
	LIST_ENTRY(range) link;
	uintptr_t start, end;
	bool mapped;
	uint32_t device; /* logic id, where it is mapped */
	void *device_va;
};
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, range) ranges;
} registered = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Any range that meets [start, end). */
static struct range *find_locked(uintptr_t start, uintptr_t end)
{
	struct range *r;

	LIST_FOREACH(r, &registered.ranges, link)
	if (r->start < end && start < r->end)
		return r;
	return NULL;
}

bool acl_host_is_registered(const void *ptr)
{
	LOCKED(&registered.lock);

	return find_locked((uintptr_t)ptr, (uintptr_t)ptr + 1) != NULL;
}

/* The driver's kind of mapping for the flags of the two calls. */
static uint32_t mapping_kind(bool io_memory, bool read_only)
{
	uint32_t kind = io_memory ? HOST_IO_MAP_DEV : HOST_MEM_MAP_DEV_PCIE_TH;

	return read_only ? kind | READ_ONLY_FLAG : kind;
}

/* Registers [ptr, ptr + size): maps it to the device unless `kind` is -1. */
static aclError add_range(const char *call, void *ptr, uint64_t size, int64_t kind, uint32_t device,
			  void **out_device_va)
{
	struct range *range, *met;
	aclError error = ACL_SUCCESS;

	if (size > UINTPTR_MAX - (uintptr_t)ptr)
		return rt_invalid(call, "size is %s, which reaches beyond the end of all addresses",
				  npu_size_text(size));
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, call,
				"no host memory for one more registered range");
	*range = (struct range){ .start = (uintptr_t)ptr,
				 .end = (uintptr_t)ptr + size,
				 .mapped = kind >= 0,
				 .device = device };
	pthread_mutex_lock(&registered.lock);
	met = find_locked(range->start, range->end);
	if (met != NULL) {
		error = acl_fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, call,
				 "the range meets [%#llx, %#llx), which is registered already; "
				 "unregister that first, at %#llx",
				 (unsigned long long)met->start, (unsigned long long)met->end,
				 (unsigned long long)met->start);
	} else if (range->mapped) {
		drvError_t code = npu_call(core_driver(), halHostRegister, ptr, size,
					   (uint32_t)kind, device, &range->device_va);

		error = core_result(call, code);
		if (code == DRV_ERROR_BUSY)
			error = ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	if (error == ACL_SUCCESS) {
		LIST_INSERT_HEAD(&registered.ranges, range, link);
		if (out_device_va != NULL)
			*out_device_va = range->device_va;
	}
	pthread_mutex_unlock(&registered.lock);
	if (error != ACL_SUCCESS)
		free(range);
	return error;
}

ACL_EXPORT aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
				      void **devPtr)
{
	uint32_t bits = (uint32_t)type;
	struct core_context *context;
	aclError error = ACL_IS_NULL(ptr) ?: ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size);

	if (error == ACL_SUCCESS && (bits & ~REGISTER_TYPES) != 0)
		return acl_unsupported(__func__,
				       "type is %#x; it must be ACL_HOST_REGISTER_MAPPED (0), "
				       "ACL_HOST_REGISTER_IOMEMORY (4), ACL_HOST_REGISTER_READONLY "
				       "(8), or the last two together",
				       bits);
	return error ?: acl_current(__func__, &context)
		       ?: add_range(__func__, ptr, size,
				    mapping_kind(bits & ACL_HOST_REGISTER_IOMEMORY,
						 bits & ACL_HOST_REGISTER_READONLY),
				    context->device, devPtr);
}

ACL_EXPORT aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
	bool mapped = (flag & ~(uint32_t)ACL_HOST_REG_PINNED) != 0;
	struct core_context *context;

	return ACL_IS_NULL(ptr) ?: ACL_IS_ZERO(size)
		       ?: RT_WANT(__func__, flag != 0 && (flag & ~REGISTER_FLAGS) == 0,
				  "flag is %#x; it must be a combination of ACL_HOST_REG_MAPPED "
				  "(0x2), ACL_HOST_REG_IOMEMORY (0x4), ACL_HOST_REG_READONLY (0x8) "
				  "and ACL_HOST_REG_PINNED (0x10000000)",
				  flag)
		       ?: acl_current(__func__, &context)
		       ?: add_range(__func__, ptr, size,
				    mapped ? (int64_t)mapping_kind(flag & ACL_HOST_REG_IOMEMORY,
								   flag & ACL_HOST_REG_READONLY)
					   : -1,
				    context->device, NULL);
}

ACL_EXPORT aclError aclrtHostUnregister(void *ptr)
{
	struct range *range;
	aclError error = ACL_IS_NULL(ptr) ?: acl_check_context(__func__);

	if (error != ACL_SUCCESS)
		return error;
	LOCKED(&registered.lock);
	range = find_locked((uintptr_t)ptr, (uintptr_t)ptr + 1);
	if (range == NULL || range->start != (uintptr_t)ptr)
		return acl_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, __func__,
				"ptr is %p, which is not the start of a registered range", ptr);
	if (range->mapped)
		error = ACL_CALL(__func__, halHostUnregisterEx, ptr, range->device,
				 HOST_MEM_MAP_DEV_PCIE_TH);
	else
		npu_call(core_driver(), npusimGaveBack, range->start, range->end - range->start,
			 __func__);
	if (error == ACL_SUCCESS) {
		LIST_REMOVE(range, link);
		free(range);
	}
	return error;
}

ACL_EXPORT aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
	const struct range *range;
	aclError error = ACL_IS_NULL(pHost) ?: ACL_IS_NULL(pDevice) ?: ACL_IS_SET(flag)
			?: acl_check_context(__func__);

	if (error != ACL_SUCCESS)
		return error;
	LOCKED(&registered.lock);
	range = find_locked((uintptr_t)pHost, (uintptr_t)pHost + 1);
	if (range == NULL || !range->mapped)
		return rt_invalid(__func__,
				  "pHost is %p, which no device sees; register it with "
				  "aclrtHostRegisterV2 and ACL_HOST_REG_MAPPED",
				  pHost);
	*pDevice = (char *)range->device_va + ((uintptr_t)pHost - range->start);
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
						aclrtHostMemMapCapability *capabilities)
{
	uint32_t device = 0, found = 0;

	return ACL_IS_NULL(capabilities)
			?: core_device_logic((int32_t)deviceId, "deviceId", __func__, &device)
			?: RT_WANT(__func__, (uint32_t)hacType <= ACL_RT_HAC_TYPE_CCU,
				   "hacType is %d; it must be between 0 and %d", (int)hacType,
				   (int)ACL_RT_HAC_TYPE_CCU)
			?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halHostRegisterCapabilities, device,
				    (uint32_t)hacType, &found)
			?: ACL_GIVE(capabilities, found != 0 ? ACL_RT_HOST_MEM_MAP_SUPPORTED
							     : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED);
}
