/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers queries about memory: capacities, the owner of an address, memory errors. Owns the names
 * of enum values in messages, and the translation from the driver's kinds of memory to the ACL's
 * locations.
 */
#include "acl-internal.h"

#include <stdio.h>
#include <string.h>

/* ---- attributes of memory ---- */

/* Which memory an attribute counts, and what a handle of it is made of. */
#define ATTR(attr, size, pools, ...)                         \
	[attr] = { .name = #attr,                            \
		   .info_type = MEM_INFO_TYPE_##size##_SIZE, \
		   .pool = ACL_POOL_##pools,                 \
		   __VA_ARGS__ }
#define HANDLE(pages, at_host, at_device)                                              \
	.handle = true, .page = MEM_##pages##_PAGE_TYPE, .host = MEM_##at_host##_TYPE, \
	.device = MEM_##at_device##_TYPE
#define HOST_HANDLE(pages, at_host) HANDLE(pages, at_host, at_host), .host_only = true
static const struct acl_mem_attr mem_attrs[] = {
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

const struct acl_mem_attr *acl_mem_attr(uint32_t attr)
{
	static const struct acl_mem_attr unknown = { .name = "unknown" };

	return attr < ATTR_COUNT ? &mem_attrs[attr] : &unknown;
}

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
	if ((mem_type & DV_MEM_LOCK_DEV) != 0)
		*out = NPU_PLACE_DEVICE;
	else if ((mem_type & DV_MEM_LOCK_HOST) != 0)
		*out = NPU_PLACE_PINNED;
	else if ((mem_type & (DV_MEM_LOCK_DEV_DVPP | DV_MEM_SOMA | DV_MEM_SVM_DEVICE)) != 0)
		*out = NPU_PLACE_DEVICE;
	else if ((mem_type & DV_MEM_SVM_HOST) != 0)
		*out = NPU_PLACE_PINNED;
	else if ((mem_type & DV_MEM_SVM) != 0)
		*out = NPU_PLACE_DEVICE;
	else if ((mem_type & DV_MEM_USER_REGISTER) != 0)
		*out = NPU_PLACE_REGISTERED;
	else if ((mem_type & DV_MEM_USER_MALLOC) != 0)
		*out = acl_host_is_registered(ptr) ? NPU_PLACE_REGISTERED : NPU_PLACE_PAGEABLE;
	else if ((mem_type & DV_MEM_UVM) != 0)
		*out = NPU_PLACE_MANAGED;
	else
		return false;
	return true;
}

aclError acl_place_of(const char *call, const char *argument, const void *ptr,
		      struct npu_place *out)
{
	struct DVattribute found = { 0 };
	aclError error = ACL_CALL(call, drvMemGetAttribute, (DVdeviceptr)(uintptr_t)ptr, &found);

	if (error != ACL_SUCCESS && core_driver() != NULL)
		npu_message_prefix("%s is %p: ", argument, ptr);
	if (error != ACL_SUCCESS)
		return error;
	*out = (struct npu_place){ .owner = found.devId, .page_bytes = found.pageSize };
	if (!place_kind_of(found.memType, ptr, &out->kind))
		return rt_invalid(
			call, "%s is %p, for which the driver tells no known kind of memory (%#x)",
			argument, ptr, found.memType);
	if (acl_place_is_host(out))
		out->owner = NPU_OWNER_HOST;
	return ACL_SUCCESS;
}

/* ---- addresses ---- */

ACL_EXPORT aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
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
			?: acl_place_of(__func__, "ptr", ptr, &place);

	if (error != ACL_SUCCESS)
		return error;
	found.location.type = types[place.kind];
	found.location.id = acl_place_device(&place);
	found.pageSize = place.page_bytes;
	if (place.kind == NPU_PLACE_DEVICE || place.kind == NPU_PLACE_MANAGED) {
		if (!core_logic_to_user(place.owner, &user))
			return acl_fail(
				ACL_ERROR_RT_INVALID_DEVICEID, __func__,
				"ptr is memory of the driver's device %u, which "
				"ASCEND_RT_VISIBLE_DEVICES does not show (user -> driver: %s)",
				place.owner, core_visible_text());
		found.location.id = (uint32_t)user;
	}
	*attributes = found;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType,
				      uint32_t *checkResult, uint32_t reserve)
{
	const uint32_t known = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
	struct MemInfo info = { 0 };
	aclError error;
	struct core_context *context;

	if (ACL_IS_NULL(addrList) || ACL_IS_NULL(checkResult))
		return ACL_ERROR_INVALID_PARAM;
	*checkResult = 0; /* by any other answer too, as in CANN */
	error = RT_WANT(__func__, reserve == 0, "reserve is %u; it must be 0", reserve)
			?: RT_WANT(__func__, size != 0, "size is 0; it must be at least 1")
			?: RT_WANT(__func__, (memType & ~known) == 0,
				   "memType is %#x; it must be a combination of "
				   "ACL_RT_MEM_TYPE_DEV (0x2), ACL_RT_MEM_TYPE_DVPP (0x8) and "
				   "ACL_RT_MEM_TYPE_RSVD (0x10)",
				   memType)
			?: acl_current(__func__, &context);
	if (error != ACL_SUCCESS)
		return error;
	info.addr_info.addr = (DVdeviceptr **)addrList;
	info.addr_info.cnt = size;
	info.addr_info.mem_type = memType;
	info.addr_info.flag = 1;
	return ACL_CALL(__func__, halMemGetInfo, context->device, MEM_INFO_TYPE_ADDR_CHECK, &info)
		       ?: ACL_GIVE(checkResult, info.addr_info.flag);
}

/* ---- capacities ---- */

ACL_EXPORT aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	struct MemInfo info = { 0 };
	const struct MemPhyInfo *phy = &info.phy_info;
	aclError error;
	struct core_context *context;
	unsigned pool;

	error = ACL_IS_NULL(free) ?: ACL_IS_NULL(total);
	if (error == ACL_SUCCESS && (uint32_t)attr >= ATTR_COUNT)
		return acl_fail(ACL_ERROR_RT_INVALID_MEMORY_TYPE, __func__,
				"attr is %d; it must be an aclrtMemAttr, 0 (ACL_DDR_MEM) to %u "
				"(ACL_MEM_P2P_HUGE1G)",
				(int)attr, (unsigned)ATTR_COUNT - 1);
	error = error ?: acl_current(__func__, &context)
			?: ACL_CALL(__func__, halMemGetInfo, context->device,
				    mem_attrs[attr].info_type, &info);
	if (error != ACL_SUCCESS)
		return error;
	pool = mem_attrs[attr].pool;
	*free = (pool & ACL_POOL_NORMAL ? phy->free : 0) +
		(pool & ACL_POOL_HUGE ? phy->huge_free : 0) +
		(pool & ACL_POOL_GIANT ? phy->giant_free : 0);
	*total = (pool & ACL_POOL_NORMAL ? phy->total : 0) +
		 (pool & ACL_POOL_HUGE ? phy->huge_total : 0) +
		 (pool & ACL_POOL_GIANT ? phy->giant_total : 0);
	return ACL_SUCCESS;
}

/* The driver's list of components is not among the functions of the seam; the model knows what the
 * process holds as a whole, and that is the program's. */
ACL_EXPORT aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo,
					 size_t inputNum, size_t *outputNum)
{
	struct npu_stats stats = { .size = sizeof(stats) };
	uint32_t device = 0;
	aclError error;

	if (ACL_IS_NULL(memUsageInfo) || ACL_IS_NULL(outputNum))
		return ACL_ERROR_INVALID_PARAM;
	*outputNum = 0; /* by any other answer too, as in CANN */
	error = RT_WANT(__func__, inputNum != 0,
			"inputNum is 0; memUsageInfo must have room for 1 at least")
			?: core_device_logic(deviceId, "deviceId", __func__, &device)
			?: acl_check_context(__func__)
			?: ACL_CALL(__func__, npusimGetStats, device, &stats);
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

ACL_EXPORT aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
				       size_t arraySize, size_t *retSize)
{
	uint32_t device = 0;

	(void)arraySize; /* room for none is enough: there are none */
	return ACL_IS_NULL(memUceInfoArray) ?: ACL_IS_NULL(retSize)
			?: core_device_logic(deviceId, "deviceId", __func__, &device)
			?: ACL_GIVE(retSize, 0);
}

/* Memory without an error is mended by leaving it as it is. */
ACL_EXPORT aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
				      size_t arraySize)
{
	static const size_t zeros[UCE_INFO_RESERVED_SIZE];
	uint32_t device = 0;

	if (ACL_IS_NULL(memUceInfoArray))
		return ACL_ERROR_INVALID_PARAM;
	if (arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE)
		return acl_invalid(__func__, "arraySize is %zu; it must be at most %d", arraySize,
				   MAX_MEM_UCE_INFO_ARRAY_SIZE);
	for (size_t i = 0; i < arraySize; i++)
		if (memcmp(memUceInfoArray[i].reserved, zeros, sizeof(zeros)) != 0)
			return acl_invalid(
				__func__,
				"memUceInfoArray[%zu].reserved is not all zeros; it must be", i);
	return core_device_logic(deviceId, "deviceId", __func__, &device);
}
