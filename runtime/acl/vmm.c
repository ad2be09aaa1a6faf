/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory of the ACL face: address reservations, physical handles, mappings, access; and
 * queries about memory of any kind: attributes, the owner of an address, capacities, memory errors.
 * Owns the order of the checks above the driver, the translation of aclrtPhysicalMemProp in both
 * directions and of the driver's kinds of memory to the ACL's locations, and the names of enum
 * values in messages. It stores no handles and no addresses: the driver does.
 */
#include "acl-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- attributes of memory ---- */

enum pool { POOL_NORMAL = 1, POOL_HUGE = 2, POOL_GIANT = 4, POOL_ALL = POOL_NORMAL | POOL_HUGE };
/* What an aclrtMemAttr stands for. */
struct mem_attr {
	const char *name;
	uint8_t info_type;      /* MEM_INFO_TYPE_* */
	uint8_t pool;           /* enum pool */
	bool handle, host_only; /* MallocPhysical takes it; for locations on the host alone */
	uint8_t page;           /* the page type of such a handle */
	uint8_t host, device;   /* its memory type, by location */
};

/* Which memory an attribute counts, and what a handle of it is made of. */
#define ATTR(attr, size, pools, ...)                         \
	[attr] = { .name = #attr,                            \
		   .info_type = MEM_INFO_TYPE_##size##_SIZE, \
		   .pool = POOL_##pools,                     \
		   __VA_ARGS__ }
#define HANDLE(pages, at_host, at_device)                                              \
	.handle = true, .page = MEM_##pages##_PAGE_TYPE, .host = MEM_##at_host##_TYPE, \
	.device = MEM_##at_device##_TYPE
#define HOST_HANDLE(pages, at_host) HANDLE(pages, at_host, at_host), .host_only = true
static const struct mem_attr mem_attrs[] = {
	ATTR(ACL_DDR_MEM, DDR, ALL),
	ATTR(ACL_HBM_MEM, HBM, ALL),
	ATTR(ACL_DDR_MEM_HUGE, DDR, HUGE, HOST_HANDLE(HUGE, DDR)),
	ATTR(ACL_DDR_MEM_NORMAL, DDR, NORMAL, HOST_HANDLE(NORMAL, DDR)),
	ATTR(ACL_HBM_MEM_HUGE, HBM, HUGE, HANDLE(HUGE, HBM, HBM)),
	ATTR(ACL_HBM_MEM_NORMAL, HBM, NORMAL, HANDLE(NORMAL, HBM, HBM)),
	ATTR(ACL_DDR_MEM_P2P_HUGE, DDR_P2P, HUGE, HOST_HANDLE(HUGE, P2P_DDR)),
	ATTR(ACL_DDR_MEM_P2P_NORMAL, DDR_P2P, NORMAL, HOST_HANDLE(NORMAL, P2P_DDR)),
	ATTR(ACL_HBM_MEM_P2P_HUGE, HBM_P2P, HUGE),
	ATTR(ACL_HBM_MEM_P2P_NORMAL, HBM_P2P, NORMAL),
	ATTR(ACL_HBM_MEM_HUGE1G, HBM, GIANT, HANDLE(GIANT, HBM, HBM)),
	ATTR(ACL_HBM_MEM_P2P_HUGE1G, HBM_P2P, GIANT),
	ATTR(ACL_MEM_NORMAL, HBM, NORMAL, HANDLE(NORMAL, DDR, HBM)),
	ATTR(ACL_MEM_HUGE, HBM, HUGE, HANDLE(HUGE, DDR, HBM)),
	ATTR(ACL_MEM_HUGE1G, HBM, GIANT, HANDLE(GIANT, DDR, HBM)),
	ATTR(ACL_MEM_P2P_NORMAL, HBM_P2P, NORMAL, HANDLE(NORMAL, P2P_DDR, P2P_HBM)),
	ATTR(ACL_MEM_P2P_HUGE, HBM_P2P, HUGE, HANDLE(HUGE, P2P_DDR, P2P_HBM)),
	ATTR(ACL_MEM_P2P_HUGE1G, HBM_P2P, GIANT, HANDLE(GIANT, P2P_DDR, P2P_HBM)),
};
#define ATTR_COUNT (sizeof(mem_attrs) / sizeof(mem_attrs[0]))

/* ---- shared with the other files (acl-internal.h) ---- */

#define NAME_OF(table, value)                                                                \
	((uint32_t)(value) < sizeof(table) / sizeof((table)[0]) ? (table)[(uint32_t)(value)] \
								: "unknown")

const char *acl_location_name(int type)
{
	static const char *const names[] = { "HOST", "DEVICE", "UNREGISTERED", "MANAGED",
					     "HOST_NUMA" };

	return NAME_OF(names, type);
}

const char *acl_memcpy_kind_name(int kind)
{
	static const char *const names[] = {
		"ACL_MEMCPY_HOST_TO_HOST",
		"ACL_MEMCPY_HOST_TO_DEVICE",
		"ACL_MEMCPY_DEVICE_TO_HOST",
		"ACL_MEMCPY_DEVICE_TO_DEVICE",
		"ACL_MEMCPY_DEFAULT",
		"ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE",
		"ACL_MEMCPY_INNER_DEVICE_TO_DEVICE",
		"ACL_MEMCPY_INTER_DEVICE_TO_DEVICE",
	};
	return NAME_OF(names, kind);
}

/* The driver's kinds in the order in which CANN asks for them. */
static bool place_kind_of(uint32_t mem_type, const void *ptr, enum npu_place_kind *out)
{
	static const struct {
		uint32_t bits;
		enum npu_place_kind kind;
	} kinds[] = {
		{ DV_MEM_LOCK_DEV, NPU_PLACE_DEVICE },
		{ DV_MEM_LOCK_HOST, NPU_PLACE_PINNED },
		{ DV_MEM_LOCK_DEV_DVPP | DV_MEM_SOMA | DV_MEM_SVM_DEVICE, NPU_PLACE_DEVICE },
		{ DV_MEM_SVM_HOST, NPU_PLACE_PINNED },
		{ DV_MEM_SVM, NPU_PLACE_DEVICE },
		{ DV_MEM_USER_REGISTER, NPU_PLACE_REGISTERED },
		{ DV_MEM_USER_MALLOC, NPU_PLACE_PAGEABLE },
		{ DV_MEM_UVM, NPU_PLACE_MANAGED },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((mem_type & kinds[i].bits) != 0) {
			*out = kinds[i].kind;
			if (*out == NPU_PLACE_PAGEABLE && acl_host_is_registered(ptr))
				*out = NPU_PLACE_REGISTERED;
			return true;
		}
	return false;
}

aclError acl_place_of(const char *argument, const void *ptr, struct npu_place *out)
{
	struct DVattribute found = { 0 };
	drvError_t code = core_call(drvMemGetAttribute, (DVdeviceptr)(uintptr_t)ptr, &found);

	if (code != DRV_ERROR_NONE)
		return core_result_about(code, npu_text("%s is %p: ", argument, ptr));
	*out = (struct npu_place){ .owner = found.devId, .page_bytes = found.pageSize };
	if (!place_kind_of(found.memType, ptr, &out->kind))
		return rt_invalid(
			"%s is %p, for which the driver tells no known kind of memory (%#x)",
			argument, ptr, found.memType);
	if (acl_place_is_host(out))
		out->owner = NPU_OWNER_HOST;
	return ACL_SUCCESS;
}

/* ---- addresses ---- */

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
	static const aclrtMemLocationType types[] = {
		[NPU_PLACE_DEVICE] = ACL_MEM_LOCATION_TYPE_DEVICE,
		[NPU_PLACE_PINNED] = ACL_MEM_LOCATION_TYPE_HOST,
		[NPU_PLACE_REGISTERED] = ACL_MEM_LOCATION_TYPE_HOST,
		[NPU_PLACE_PAGEABLE] = ACL_MEM_LOCATION_TYPE_UNREGISTERED,
		[NPU_PLACE_MANAGED] = ACL_MEM_LOCATION_TYPE_MANAGED,
	};
	aclrtPtrAttributes found = { 0 };
	struct npu_place place = { 0 };
	int32_t user = 0;
	aclError error = ACL_IS_NULL(ptr) ?: ACL_IS_NULL(attributes)
			?: acl_place_of("ptr", ptr, &place);

	if (error != ACL_SUCCESS)
		return error;
	found.location.type = types[place.kind];
	found.location.id = acl_place_device(&place);
	found.pageSize = place.page_bytes;
	if (place.kind == NPU_PLACE_DEVICE || place.kind == NPU_PLACE_MANAGED) {
		if (core_logic_to_user(place.owner, &user) != ACL_SUCCESS)
			return core_fail(
				ACL_ERROR_RT_INVALID_DEVICEID,
				"ptr is memory of the driver's device %u, which "
				"ASCEND_RT_VISIBLE_DEVICES does not show (user -> driver: %s)",
				place.owner, core_visible_text());
		found.location.id = (uint32_t)user;
	}
	*attributes = found;
	return ACL_SUCCESS;
}

aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType, uint32_t *checkResult,
			   uint32_t reserve)
{
	const uint32_t known = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
	struct MemInfo info = { 0 };
	aclError error;
	struct core_context *context;

	if (ACL_IS_NULL(addrList) || ACL_IS_NULL(checkResult))
		return ACL_ERROR_INVALID_PARAM;
	*checkResult = 0; /* by any other answer too, as in CANN */
	error = RT_WANT(reserve == 0, "reserve is %u; it must be 0", reserve)
			?: RT_WANT(size != 0, "size is 0; it must be at least 1")
			?: RT_WANT((memType & ~known) == 0,
				   "memType is %#x; it must be a combination of "
				   "ACL_RT_MEM_TYPE_DEV (0x2), ACL_RT_MEM_TYPE_DVPP (0x8) and "
				   "ACL_RT_MEM_TYPE_RSVD (0x10)",
				   memType)
			?: acl_current(&context);
	if (error != ACL_SUCCESS)
		return error;
	info.addr_info.addr = (DVdeviceptr **)addrList;
	info.addr_info.cnt = size;
	info.addr_info.mem_type = memType;
	info.addr_info.flag = 1;
	return ACL_CALL(halMemGetInfo, context->device, MEM_INFO_TYPE_ADDR_CHECK, &info)
		       ?: ACL_GIVE(checkResult, info.addr_info.flag);
}

/* ---- capacities ---- */

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	struct MemInfo info = { 0 };
	const struct MemPhyInfo *phy = &info.phy_info;
	aclError error = ACL_IS_NULL(free) ?: ACL_IS_NULL(total);
	struct core_context *context;
	unsigned pool;

	if (error == ACL_SUCCESS && (uint32_t)attr >= ATTR_COUNT)
		return core_fail(ACL_ERROR_RT_INVALID_MEMORY_TYPE,
				 "attr is %d; it must be an aclrtMemAttr, 0 (ACL_DDR_MEM) to %u "
				 "(ACL_MEM_P2P_HUGE1G)",
				 (int)attr, (unsigned)ATTR_COUNT - 1);
	error = error ?: acl_current(&context)
			?: ACL_CALL(halMemGetInfo, context->device,
				    mem_attrs[attr].info_type, &info);
	if (error != ACL_SUCCESS)
		return error;
	pool = mem_attrs[attr].pool;
	*free = (pool & POOL_NORMAL ? phy->free : 0) + (pool & POOL_HUGE ? phy->huge_free : 0) +
		(pool & POOL_GIANT ? phy->giant_free : 0);
	*total = (pool & POOL_NORMAL ? phy->total : 0) + (pool & POOL_HUGE ? phy->huge_total : 0) +
		 (pool & POOL_GIANT ? phy->giant_total : 0);
	return ACL_SUCCESS;
}

/* The driver's list of components is not among the functions of the seam; the model knows what the
 * process holds as a whole, and that is the program's. */
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
			      size_t *outputNum)
{
	struct npu_stats stats = { .size = sizeof(stats) };
	uint32_t device = 0;
	aclError error;

	if (ACL_IS_NULL(memUsageInfo) || ACL_IS_NULL(outputNum))
		return ACL_ERROR_INVALID_PARAM;
	*outputNum = 0; /* by any other answer too, as in CANN */
	error = RT_WANT(inputNum != 0, "inputNum is 0; memUsageInfo must have room for 1 at least")
			?: core_device_logic(deviceId, "deviceId", &device) ?: acl_check_context()
			?: ACL_CALL(npusimGetStats, device, &stats);
	if (error != ACL_SUCCESS)
		return error;
	memset(memUsageInfo, 0, sizeof(*memUsageInfo));
	snprintf(memUsageInfo->name, sizeof(memUsageInfo->name), "APP");
	memUsageInfo->curMemSize = stats.own_bytes;
	memUsageInfo->memPeakSize = stats.own_peak_bytes;
	*outputNum = 1;
	return ACL_SUCCESS;
}

/* ---- errors of the memory itself ---- */

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize,
			    size_t *retSize)
{
	uint32_t device = 0;

	(void)arraySize; /* room for none is enough: there are none */
	return ACL_IS_NULL(memUceInfoArray) ?: ACL_IS_NULL(retSize)
			?: core_device_logic(deviceId, "deviceId", &device)
			?: ACL_GIVE(retSize, 0);
}

/* Memory without an error is mended by leaving it as it is. */
aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize)
{
	static const size_t zeros[UCE_INFO_RESERVED_SIZE];
	uint32_t device = 0;
	aclError error = ACL_IS_NULL(memUceInfoArray)
				 ?: ACL_WANT(arraySize <= MAX_MEM_UCE_INFO_ARRAY_SIZE,
					     "arraySize is %zu; it must be at most %d", arraySize,
					     MAX_MEM_UCE_INFO_ARRAY_SIZE);

	for (size_t i = 0; error == ACL_SUCCESS && i < arraySize; i++)
		error = ACL_WANT(memcmp(memUceInfoArray[i].reserved, zeros, sizeof(zeros)) == 0,
				 "memUceInfoArray[%zu].reserved is not all zeros; it must be", i);
	return error ?: core_device_logic(deviceId, "deviceId", &device);
}

#define ACCESS_MAX      1024u /* descriptors of one call: far more than there are locations */
#define ACCESS_ON_STACK 8u

/* ---- aclrtPhysicalMemProp and the driver's ---- */

/* What a handle's memory type and page type read back as. P2P_HBM is of devices, P2P_DDR of the
 * host: nothing else can have them. */
static const aclrtMemAttr attr_back[MEM_TS_DDR_TYPE][MEM_MAX_PAGE_TYPE] = {
	[MEM_HBM_TYPE] = { ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE1G },
	[MEM_DDR_TYPE] = { ACL_MEM_NORMAL, ACL_MEM_HUGE, ACL_MEM_HUGE1G },
	[MEM_P2P_HBM_TYPE] = { ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE1G },
	[MEM_P2P_DDR_TYPE] = { ACL_DDR_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE1G },
};

/* The checks of memAttr against the location, and the driver's form with the id as it was given. */
static aclError prop_convert(const aclrtPhysicalMemProp *prop, struct drv_mem_prop *out)
{
	static const struct mem_attr unknown = { .name = "unknown" };
	const struct mem_attr *attr =
		(uint32_t)prop->memAttr < ATTR_COUNT ? &mem_attrs[prop->memAttr] : &unknown;
	bool device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
	bool host = prop->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
		    prop->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;

	if (!attr->handle)
		return acl_invalid("prop->memAttr is %d (%s), which no handle can have; use "
				   "ACL_HBM_MEM_HUGE (2 MiB pages), ACL_HBM_MEM_HUGE1G (1 GiB "
				   "pages), ACL_HBM_MEM_NORMAL, or one of ACL_MEM_*",
				   (int)prop->memAttr, attr->name);
	if (device && attr->host_only)
		return acl_invalid(
			"prop->memAttr is %s with prop->location.type DEVICE; DDR is host memory: "
			"use type HOST or HOST_NUMA, or ACL_HBM_MEM_HUGE for device memory",
			attr->name);
	*out = (struct drv_mem_prop){
		.side = (uint32_t)prop->location.type,
		.devid = prop->location.id,
		.module_id = APP_MODULE_ID,
		.pg_type = attr->page,
		.mem_type = host ? attr->host : attr->device,
		.reserve = prop->reserve,
	};
	return ACL_SUCCESS;
}

/* Device ids and the driver's number of HOST_NUMA. */
static aclError prop_translate(struct drv_mem_prop *prop)
{
	if (prop->side == ACL_MEM_LOCATION_TYPE_DEVICE)
		return core_device_logic((int32_t)prop->devid, "prop->location.id", &prop->devid);
	if (prop->side == ACL_MEM_LOCATION_TYPE_HOST_NUMA)
		prop->side = MEM_HOST_NUMA_SIDE;
	return ACL_SUCCESS;
}

static aclError check_prop(const aclrtPhysicalMemProp *prop)
{
	return ACL_WANT(prop->handleType == ACL_MEM_HANDLE_TYPE_NONE,
			"prop->handleType is %d; it must be ACL_MEM_HANDLE_TYPE_NONE (0)",
			(int)prop->handleType)
		       ?: ACL_WANT(prop->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED,
				   "prop->allocationType is %d; it must be "
				   "ACL_MEM_ALLOCATION_TYPE_PINNED (0)",
				   (int)prop->allocationType)
		       ?: ACL_WANT(prop->location.type != ACL_MEM_LOCATION_TYPE_UNREGISTERED &&
					   prop->location.type != ACL_MEM_LOCATION_TYPE_MANAGED,
				   "prop->location.type is %d (%s); it must be DEVICE (1), HOST "
				   "(0) or HOST_NUMA (4)",
				   (int)prop->location.type,
				   acl_location_name(prop->location.type));
}

/* ---- addresses ---- */

static aclError reserve(void **virPtr, size_t size, size_t alignment, void *expectPtr,
			uint64_t flags, uint64_t more_flags)
{
	void *va = NULL;

	return ACL_IS_NULL(virPtr) ?: ACL_IS_ZERO(size)
		       ?: ACL_WANT(flags <= 1,
				   "flags is %#llx; it must be 0 (normal pages) or 1 (huge pages)",
				   (unsigned long long)flags)
		       ?: ACL_CALL(halMemAddressReserve, &va, size, alignment, expectPtr,
			flags | more_flags)
		       ?: ACL_GIVE(virPtr, va);
}

ACL_ANSWERS(aclrtReserveMemAddress, reserve(virPtr, size, alignment, expectPtr, flags, 0));
ACL_ANSWERS(aclrtReserveMemAddressNoUCMemory,
	    reserve(virPtr, size, alignment, expectPtr, flags, MEM_RSV_TYPE_REMOTE_MAP));
ACL_ANSWERS(aclrtReleaseMemAddress, ACL_IS_NULL(virPtr) ?: ACL_CALL(halMemAddressFree, virPtr));

/* ---- physical memory ---- */

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	struct drv_mem_prop driver_prop;
	drv_mem_handle_t *made = NULL;
	aclError error = ACL_IS_NULL(handle) ?: ACL_IS_NULL(prop) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags) ?: check_prop(prop) ?: prop_convert(prop, &driver_prop)
			?: prop_translate(&driver_prop);
	struct core_context *context;

	if (error == ACL_SUCCESS && driver_prop.side == MEM_HOST_NUMA_SIDE) {
		error = acl_current(&context);
		if (error == ACL_SUCCESS &&
		    !npu_call(core_driver(), halSupportFeature, context->device,
			      FEATURE_SVM_VMM_NORMAL_GRANULARITY))
			return acl_unsupported("prop->location.type is HOST_NUMA, which the driver "
					       "in use does not support; use type HOST with id 0");
	}
	/* Whether there are 1 GiB pages at all is the driver's answer too: NOT_SUPPORT, the same
	 * code. */
	return error ?: ACL_CALL(halMemCreate, &made, size, &driver_prop, 0)
			?: ACL_GIVE(handle, made);
}

ACL_ANSWERS(aclrtFreePhysical,
	    ACL_IS_NULL(handle) ?: ACL_CALL(halMemRelease, (drv_mem_handle_t *)handle));

ACL_ANSWERS_WITH(aclrtMemGetAllocationGranularity,
	struct drv_mem_prop driver_prop; size_t bytes = 0,
	ACL_IS_NULL(prop) ?: ACL_IS_NULL(granularity)
			?: prop_convert(prop, &driver_prop) ?: prop_translate(&driver_prop)
			?: ACL_CALL(halMemGetAllocationGranularity, &driver_prop,
				(drv_mem_granularity_options)option, &bytes)
			?: ACL_GIVE(granularity, bytes));

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
						   aclrtPhysicalMemProp *prop)
{
	struct drv_mem_prop found = { 0 };
	bool host;
	aclError error = ACL_IS_NULL(handle) ?: ACL_IS_NULL(prop)
			?: ACL_CALL(halMemGetAllocationPropertiesFromHandle, &found,
				    (drv_mem_handle_t *)handle);

	if (error != ACL_SUCCESS)
		return error;
	host = found.side != MEM_DEV_SIDE;
	if (found.mem_type >= MEM_TS_DDR_TYPE || found.pg_type >= MEM_MAX_PAGE_TYPE ||
	    found.mem_type == (host ? MEM_P2P_HBM_TYPE : MEM_P2P_DDR_TYPE))
		return acl_invalid("handle %p has page type %u and memory type %u %s, for which "
				   "there is no aclrtMemAttr",
				   handle, found.pg_type, found.mem_type,
				   host ? "on the host" : "on a device");
	*prop = (aclrtPhysicalMemProp){
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = attr_back[found.mem_type][found.pg_type],
		.location = { .id = found.devid,
			      .type = found.side == MEM_HOST_NUMA_SIDE
					      ? ACL_MEM_LOCATION_TYPE_HOST_NUMA
					      : (aclrtMemLocationType)found.side },
		.reserve = found.reserve,
	};
	return ACL_SUCCESS;
}

/* ---- mappings ---- */

/* The offset is left to the driver, as CANN leaves it: 107000. */
ACL_ANSWERS(aclrtMapMem, ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags)
			?: ACL_CALL(halMemMap, virPtr, size, offset,
				    (drv_mem_handle_t *)handle, 0));
ACL_ANSWERS(aclrtMemMapNoAccess, ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags)
			?: ACL_CALL(halMemMapNoAccess, virPtr, size, offset,
				    (drv_mem_handle_t *)handle, 0));
ACL_ANSWERS(aclrtUnmapMem, ACL_IS_NULL(virPtr) ?: ACL_CALL(halMemUnmap, virPtr));

/* ---- access ---- */

/* After a refusal: says it if an id was a user id, since this call alone takes the driver's. */
static void hint_at_ids(const aclrtMemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t logic;
		char *cause = desc[i].location.type != ACL_MEM_LOCATION_TYPE_DEVICE
				      ? NULL
				      : strdup(npu_message());

		if (cause == NULL)
			continue;
		if (core_user_to_logic((int32_t)desc[i].location.id, &logic) &&
		    logic != desc[i].location.id)
			npu_message_set(
				"%s; desc[%zu].location.id is the driver's device id, which is not "
				"translated: if user device %u was meant, pass %u "
				"(aclrtGetLogicDevIdByUserDevId; user -> driver: %s)",
				cause, i, desc[i].location.id, logic, core_visible_text());
		else
			npu_message_set("%s", cause);
		free(cause);
	}
}

aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count)
{
	struct drv_mem_access_desc on_stack[ACCESS_ON_STACK], *converted = on_stack;
	aclError error = RT_WANT(virPtr != NULL,
				 "virPtr is NULL; it must be the start of a mapping")
			?: RT_WANT(desc != NULL, "desc is NULL; it must point to count descriptors")
			?: RT_WANT(count <= ACCESS_MAX,
				   "count is %zu; it must be between 1 and %u", count, ACCESS_MAX);

	if (error != ACL_SUCCESS)
		return error;
	if (count > ACCESS_ON_STACK) {
		converted = calloc(count, sizeof(*converted));
		if (converted == NULL)
			return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
					 "no host memory for %zu access descriptors", count);
	}
	/* Descriptors are converted one by one. CANN passes the array on as it is, though the
	 * driver's descriptor is 20 bytes and the ACL's 24, so that there only the first of several
	 * is read right. What the program means is done here: no program can rely on descriptors
	 * that are read from between two others. */
	for (size_t i = 0; i < count; i++)
		converted[i] = (struct drv_mem_access_desc){
			.type = (drv_mem_access_type)desc[i].flags,
			.location = { .id = desc[i].location.id,
				      .side = (enum drv_mem_side)desc[i].location.type },
		};
	error = ACL_CALL(halMemSetAccess, virPtr, size, converted, count);
	if (error != ACL_SUCCESS)
		hint_at_ids(desc, count);
	if (converted != on_stack)
		free(converted);
	return error;
}

ACL_ANSWERS_WITH(aclrtMemGetAccess, uint64_t flags = 0,
	ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(location) ?: ACL_IS_NULL(flag)
			?: ACL_CALL(halMemGetAccess, virPtr,
				    (&(struct drv_mem_location){
					    .id = location->id,
					    .side = (enum drv_mem_side)location->type }),
				    &flags)
			?: ACL_GIVE(flag, flags));

/* ---- what lies at an address ---- */

ACL_ANSWERS_WITH(aclrtMemRetainAllocationHandle, drv_mem_handle_t *found = NULL,
	ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle)
			?: ACL_CALL(halMemRetainAllocationHandle, &found, virPtr)
			?: ACL_GIVE(handle, found));

ACL_ANSWERS_WITH(aclrtMemGetAddressRange, DVdeviceptr base = 0; size_t size = 0,
	ACL_IS_NULL(ptr)
			?: RT_WANT(pbase != NULL || psize != NULL,
				"pbase and psize are both NULL; at least one must point to "
				"something")
			?: ACL_CALL(halMemGetAddressRange, (DVdeviceptr)(uintptr_t)ptr,
				&base, &size)
			?: ACL_GIVE_IF(pbase, (void *)(uintptr_t)base) ?: ACL_GIVE_IF(psize, size));

/* CANN has another code for an id in the peer functions. */
ACL_ANSWERS_WITH(aclrtMemP2PMap, uint32_t device,
	ACL_IS_NULL(devPtr) ?: ACL_IS_ZERO(size) ?: ACL_IS_SET(flags)
			?: (core_device_logic(dstDevId, "dstDevId", &device) == 0
				    ? ACL_SUCCESS
				    : ACL_ERROR_RT_PARAM_INVALID)
			?: acl_check_context()
			?: ACL_CALL(drvMemPrefetchToDevice,
				    (DVdeviceptr)(uintptr_t)devPtr, size, device));
