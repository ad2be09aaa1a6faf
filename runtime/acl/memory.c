/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: device memory, page-locked host memory, host memory of the program that is
 * registered for the device, and cache maintenance. Owns the translation from a policy to the
 * driver's flags, the fallback from huge to normal pages, and the list of registered ranges, for
 * which the driver cannot be asked: what is already registered, at which address the device sees
 * it, and that the range counts as page-locked in copies.
 */
#include "acl-internal.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "malloc-rule.h"

#define BANDWIDTH_MASK 0xff00u
#define ALIGNMENT_LG2  9u /* 512 bytes, what the runtime asks the driver for */
#define MODULE_ID_LAST 76u

/* What a malloc call asks for, beside the size. */
struct request {
	struct malloc_policy policy;
	bool low_bandwidth;
	bool read_only;
	bool for_scheduler;
	uint16_t module;
};

static struct request request_of(aclrtMemMallocPolicy policy)
{
	uint32_t bits = (uint32_t)policy;

	return (struct request){
		.policy = malloc_policy_of(bits),
		.low_bandwidth = (bits & BANDWIDTH_MASK) == ACL_MEM_TYPE_LOW_BAND_WIDTH,
		.read_only = (bits & ACL_MEM_ACCESS_USER_SPACE_READONLY) != 0,
		.module = APP_MODULE_ID,
	};
}

static uint64_t flags_of(const struct request *request, uint32_t device, enum page_choice pages)
{
	uint64_t flags = (MEM_DEV_VAL << MEM_VIRT_BIT) | (device & MEM_DEVID_MASK) |
			 ((uint64_t)request->module << MEM_MODULE_ID_BIT);

	if (!request->low_bandwidth || pages == PAGES_GIANT)
		flags |= MEM_TYPE_HBM;
	if (pages != PAGES_GIANT)
		flags |= (uint64_t)ALIGNMENT_LG2 << MEM_ALIGN_BIT;
	if (pages == PAGES_HUGE)
		flags |= MEM_PAGE_HUGE;
	if (pages == PAGES_GIANT)
		flags |= MEM_PAGE_GIANT;
	if (request->policy.p2p)
		flags |= MEM_ADVISE_P2P;
	if (request->read_only)
		flags |= MEM_READONLY;
	if (request->for_scheduler)
		flags |= MEM_ADVISE_TS;
	return flags;
}

/* Layers know the driver's size; what the program asked for is told. */
static void hand_out(void *made, uint64_t size, uint64_t asked, void **out)
{
	core_order(0, NPU_ORDER_ASKED, (uint32_t)(size - asked), (uintptr_t)made);
	*out = made;
}

/* HUGE_FIRST falls back to normal pages where there are no huge ones. */
static aclError allocate(const struct request *request, uint64_t asked, bool padded, void **out)
{
	uint64_t size = asked;
	bool fits = malloc_round(request->policy.pages, padded, &size);
	aclError error = ACL_WANT(fits, "size is %zu; rounded up it does not fit 64 bits", asked);
	bool choose = request->policy.pages == PAGES_HUGE_FIRST;
	enum page_choice pages = malloc_pages_of(request->policy.pages, size);
	struct core_context *context;
	void *made = NULL;

	error = error ?: acl_current(&context);
	if (error != ACL_SUCCESS)
		return error;
	if (choose && pages == PAGES_HUGE &&
	    npu_call(core_driver(), halMemAlloc, &made, size,
		     flags_of(request, context->device, pages)) != DRV_ERROR_NONE)
		pages = PAGES_NORMAL;
	if (made == NULL)
		error = ACL_CALL(halMemAlloc, &made, size,
				 flags_of(request, context->device, pages));
	if (error == ACL_SUCCESS)
		hand_out(made, size, asked, out);
	return error;
}

static aclError allocate_classic(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
				 bool padded)
{
	struct request request = request_of(policy);

	return ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size) ?: allocate(&request, size, padded, devPtr);
}

ACL_ANSWERS(aclrtMalloc, allocate_classic(devPtr, size, policy, true));
ACL_ANSWERS(aclrtMallocAlign32, allocate_classic(devPtr, size, policy, false));
ACL_ANSWERS(aclrtMallocCached, allocate_classic(devPtr, size, policy, true));

/* ---- with a configuration ---- */

static aclError check_cfg(const aclrtMallocConfig *cfg)
{
	return ACL_WANT(cfg == NULL || cfg->numAttrs == 0 || cfg->attrs != NULL,
			"cfg->attrs is NULL, but cfg->numAttrs is %zu; give the attributes, or 0",
			cfg->numAttrs);
}

/* The current device or nothing: memory of another device is had by making that one current. */
static aclError check_cfg_device(uint32_t user)
{
	struct core_context *context;
	uint32_t device;
	aclError error = acl_current(&context);

	if (error != ACL_SUCCESS || user == context->device)
		return error;
	if (core_device_logic((int32_t)user, "cfg's device id", &device) != ACL_SUCCESS)
		return ACL_ERROR_RT_PARAM_INVALID;
	return RT_WANT(device == context->device,
		       "cfg's device id is %u, but the current device is %d; call "
		       "aclrtSetDevice(%u) first",
		       user, context->user_device, user);
}

static aclError apply_cfg(struct request *request, const aclrtMallocConfig *cfg)
{
	aclError error = ACL_SUCCESS;

	for (size_t i = 0; cfg != NULL && i < cfg->numAttrs && error == ACL_SUCCESS; i++) {
		const aclrtMallocAttribute *attr = &cfg->attrs[i];

		switch ((int)attr->attr) {
		case ACL_RT_MEM_ATTR_RSV:
			break;
		case ACL_RT_MEM_ATTR_MODULE_ID:
			request->module = attr->value.moduleId > MODULE_ID_LAST
						  ? APP_MODULE_ID
						  : attr->value.moduleId;
			break;
		case ACL_RT_MEM_ATTR_DEVICE_ID:
			error = check_cfg_device(attr->value.deviceId);
			break;
		default:
			error = rt_invalid("cfg->attrs[%zu].attr is %d; it must be between 0 and 2",
					   i, (int)attr->attr);
		}
	}
	return error;
}

static aclError allocate_with_cfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
				  const aclrtMallocConfig *cfg, bool for_scheduler)
{
	struct request request = request_of(policy);
	aclError error = ACL_IS_NULL(devPtr) ?: check_cfg(cfg)
			?: ACL_IS_ZERO(size) ?: acl_check_context();

	if (error != ACL_SUCCESS)
		return error;
	request.for_scheduler = for_scheduler;
	return apply_cfg(&request, cfg) ?: allocate(&request, size, false, devPtr);
}

ACL_ANSWERS(aclrtMallocWithCfg, allocate_with_cfg(devPtr, size, policy, cfg, false));
ACL_ANSWERS(aclrtMallocForTaskScheduler, allocate_with_cfg(devPtr, size, policy, cfg, true));

/* ---- giving back ---- */

/* The driver answers every pointer that it does not know with its own code, VMM addresses and host
 * memory too. */
ACL_ANSWERS(aclrtFree, ACL_IS_NULL(devPtr) ?: ACL_CALL(halMemFree, devPtr));
ACL_ANSWERS(aclrtFreeWithDevSync,
	    ACL_IS_NULL(devPtr) ?: acl_synchronize(-1) ?: ACL_CALL(halMemFree, devPtr));

static aclError free_host(void *pointer)
{
	struct npu_place place;
	aclError error = acl_place_of("hostPtr", pointer, &place);

	if (error != ACL_SUCCESS && error != ACL_ERROR_INTERNAL_ERROR)
		error = core_last_error_change(ACL_ERROR_RT_PARAM_INVALID);
	return error ?: RT_WANT(acl_place_is_host(&place) || place.kind == NPU_PLACE_PAGEABLE,
		       "hostPtr is %p, which is memory of device %u; give it back with aclrtFree",
		       pointer, place.owner)
		       ?: ACL_CALL(halMemFree, pointer);
}

/* ---- page-locked host memory ---- */

static aclError allocate_host(void **out, uint64_t asked, uint16_t module)
{
	uint64_t size = (asked + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	uint64_t flags = (MEM_HOST_VAL << MEM_VIRT_BIT) |
			 ((uint64_t)ALIGNMENT_LG2 << MEM_ALIGN_BIT) |
			 ((uint64_t)module << MEM_MODULE_ID_BIT);
	void *made = NULL;
	aclError error = acl_check_context();

	if (error != ACL_SUCCESS)
		return error;
	if (asked > UINT64_MAX - ALIGN_BYTES)
		return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				 "size is %llu, more than any host has", (unsigned long long)asked);
	error = ACL_CALL(halMemAlloc, &made, size, flags);
	if (error == ACL_SUCCESS)
		hand_out(made, size, asked, out);
	return error;
}

ACL_ANSWERS(aclrtMallocHost, ACL_IS_NULL(hostPtr) ?: ACL_IS_ZERO(size)
			?: allocate_host(hostPtr, size, APP_MODULE_ID));

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
	uint16_t module = RUNTIME_MODULE_ID;

	if (ACL_IS_NULL(ptr) || ACL_IS_ZERO(size))
		return ACL_ERROR_INVALID_PARAM;
	if (cfg != NULL && cfg->attrs == NULL)
		return rt_invalid("cfg->attrs is NULL; give the attributes, or NULL for cfg");
	for (size_t i = 0; cfg != NULL && i < cfg->numAttrs; i++) {
		const aclrtMallocAttribute *attr = &cfg->attrs[i];

		if ((int)attr->attr == ACL_RT_MEM_ATTR_MODULE_ID)
			module = attr->value.moduleId > MODULE_ID_LAST ? RUNTIME_MODULE_ID
								       : attr->value.moduleId;
		else if ((int)attr->attr != ACL_RT_MEM_ATTR_VA_FLAG)
			return rt_invalid(
				"cfg->attrs[%zu].attr is %d; host memory takes "
				"ACL_RT_MEM_ATTR_MODULE_ID (1) and ACL_RT_MEM_ATTR_VA_FLAG (3)",
				i, (int)attr->attr);
		else if (attr->value.vaFlag == 1)
			return acl_unsupported("cfg->attrs[%zu] asks for one address on host and "
					       "device (vaFlag 1), which this driver does not "
					       "have; leave ACL_RT_MEM_ATTR_VA_FLAG out, or go on "
					       "with aclrtMallocHost, as with drivers before 25.5",
					       i);
	}
	return allocate_host(ptr, size, module);
}

ACL_ANSWERS(aclrtFreeHost, ACL_IS_NULL(hostPtr) ?: free_host(hostPtr));
ACL_ANSWERS(aclrtFreeHostWithDevSync, ACL_IS_NULL(hostPtr) ?: acl_synchronize(-1)
			?: free_host(hostPtr));

/* ---- caches ---- */

/* The caches of the 910B and 910C are kept coherent for the host: there is nothing to do, as in
 * CANN. */
ACL_ANSWERS(aclrtMemFlush, ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size) ?: acl_check_context());
ACL_ANSWERS(aclrtMemInvalidate, ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size) ?: acl_check_context());

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
static aclError add_range(void *ptr, uint64_t size, int64_t kind, uint32_t device,
			  void **out_device_va)
{
	struct range *range;
	const struct range *met;
	drvError_t code = DRV_ERROR_NONE;

	if (size > UINTPTR_MAX - (uintptr_t)ptr)
		return rt_invalid("size is %s, which reaches beyond the end of all addresses",
				  npu_size_text(size));
	LOCKED(&registered.lock);
	met = find_locked((uintptr_t)ptr, (uintptr_t)ptr + size);
	if (met != NULL)
		return core_fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
				 "the range meets [%#llx, %#llx), which is registered already; "
				 "unregister that first, at %#llx",
				 (unsigned long long)met->start, (unsigned long long)met->end,
				 (unsigned long long)met->start);
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				 "no host memory for one more registered range");
	*range = (struct range){ .start = (uintptr_t)ptr,
				 .end = (uintptr_t)ptr + size,
				 .mapped = kind >= 0,
				 .device = device };
	if (range->mapped)
		code = npu_call(core_driver(), halHostRegister, ptr, size, (uint32_t)kind, device,
				&range->device_va);
	if (code != DRV_ERROR_NONE) {
		aclError error = core_result(code);

		free(range);
		return code == DRV_ERROR_BUSY ? ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED : error;
	}
	LIST_INSERT_HEAD(&registered.ranges, range, link);
	return ACL_GIVE_IF(out_device_va, range->device_va);
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
	uint32_t bits = (uint32_t)type;
	struct core_context *context;
	aclError error = ACL_IS_NULL(ptr) ?: ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size);

	if (error == ACL_SUCCESS && (bits & ~REGISTER_TYPES) != 0)
		return acl_unsupported("type is %#x; it must be ACL_HOST_REGISTER_MAPPED (0), "
				       "ACL_HOST_REGISTER_IOMEMORY (4), ACL_HOST_REGISTER_READONLY "
				       "(8), or the last two together",
				       bits);
	return error ?: acl_current(&context)
		       ?: add_range(ptr, size,
				    mapping_kind(bits & ACL_HOST_REGISTER_IOMEMORY,
						 bits & ACL_HOST_REGISTER_READONLY),
				    context->device, devPtr);
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
	bool mapped = (flag & ~(uint32_t)ACL_HOST_REG_PINNED) != 0;
	struct core_context *context;

	return ACL_IS_NULL(ptr) ?: ACL_IS_ZERO(size)
		       ?: RT_WANT(flag != 0 && (flag & ~REGISTER_FLAGS) == 0,
				  "flag is %#x; it must be a combination of ACL_HOST_REG_MAPPED "
				  "(0x2), ACL_HOST_REG_IOMEMORY (0x4), ACL_HOST_REG_READONLY (0x8) "
				  "and ACL_HOST_REG_PINNED (0x10000000)",
				  flag)
		       ?: acl_current(&context)
		       ?: add_range(ptr, size,
				    mapped ? (int64_t)mapping_kind(flag & ACL_HOST_REG_IOMEMORY,
								   flag & ACL_HOST_REG_READONLY)
					   : -1,
				    context->device, NULL);
}

aclError aclrtHostUnregister(void *ptr)
{
	struct range *range;
	aclError error = ACL_IS_NULL(ptr) ?: acl_check_context();

	if (error != ACL_SUCCESS)
		return error;
	LOCKED(&registered.lock);
	range = find_locked((uintptr_t)ptr, (uintptr_t)ptr + 1);
	if (range == NULL || range->start != (uintptr_t)ptr)
		return core_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
				 "ptr is %p, which is not the start of a registered range", ptr);
	if (range->mapped)
		error = ACL_CALL(halHostUnregisterEx, ptr, range->device, HOST_MEM_MAP_DEV_PCIE_TH);
	else
		npu_call(core_driver(), npusimGaveBack, range->start, range->end - range->start,
			 core_called);
	if (error == ACL_SUCCESS) {
		LIST_REMOVE(range, link);
		free(range);
	}
	return error;
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
	const struct range *range;
	aclError error = ACL_IS_NULL(pHost) ?: ACL_IS_NULL(pDevice) ?: ACL_IS_SET(flag)
			?: acl_check_context();

	if (error != ACL_SUCCESS)
		return error;
	LOCKED(&registered.lock);
	range = find_locked((uintptr_t)pHost, (uintptr_t)pHost + 1);
	if (range == NULL || !range->mapped)
		return rt_invalid("pHost is %p, which no device sees; register it with "
				  "aclrtHostRegisterV2 and ACL_HOST_REG_MAPPED",
				  pHost);
	*pDevice = (char *)range->device_va + ((uintptr_t)pHost - range->start);
	return ACL_SUCCESS;
}

ACL_ANSWERS_WITH(aclrtHostMemMapCapabilities, uint32_t device = 0; uint32_t found = 0,
	ACL_IS_NULL(capabilities)
			?: core_device_logic((int32_t)deviceId, "deviceId", &device)
			?: RT_WANT((uint32_t)hacType <= ACL_RT_HAC_TYPE_CCU,
				"hacType is %d; it must be between 0 and %d", (int)hacType,
				(int)ACL_RT_HAC_TYPE_CCU)
			?: acl_check_context()
			?: ACL_CALL(halHostRegisterCapabilities, device, (uint32_t)hacType, &found)
			?: ACL_GIVE(capabilities, found != 0 ? ACL_RT_HOST_MEM_MAP_SUPPORTED
				: ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED));
