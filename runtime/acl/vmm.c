/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory of the ACL face: address reservations, physical handles, mappings, access, and
 * queries about them. Owns the order of the checks above the driver and the translation of
 * aclrtPhysicalMemProp in both directions. It stores no handles and no addresses: the driver does.
 */
#include "memory-internal.h"

#include <stdlib.h>
#include <string.h>

#define ACCESS_MAX \
	1024u /* descriptors in one aclrtMemSetAccess: far more than there are locations */
#define ACCESS_ON_STACK 8u

/* ---- aclrtPhysicalMemProp and the driver's ---- */

/* Page type and memory type of each aclrtMemAttr, by location. Attributes that MallocPhysical does
 * not take are left out. */
struct attr_row {
	bool known;
	bool host_only;
	uint8_t pg_type;
	uint8_t host_mem_type;
	uint8_t device_mem_type;
};
#define ATTR_ROW(host_only, pg, host, device)                                                 \
	{                                                                                     \
		true, host_only, MEM_##pg##_PAGE_TYPE, MEM_##host##_TYPE, MEM_##device##_TYPE \
	}
static const struct attr_row attr_rows[] = {
	[ACL_DDR_MEM_HUGE] = ATTR_ROW(true, HUGE, DDR, DDR),
	[ACL_DDR_MEM_NORMAL] = ATTR_ROW(true, NORMAL, DDR, DDR),
	[ACL_HBM_MEM_HUGE] = ATTR_ROW(false, HUGE, HBM, HBM),
	[ACL_HBM_MEM_NORMAL] = ATTR_ROW(false, NORMAL, HBM, HBM),
	[ACL_DDR_MEM_P2P_HUGE] = ATTR_ROW(true, HUGE, P2P_DDR, P2P_DDR),
	[ACL_DDR_MEM_P2P_NORMAL] = ATTR_ROW(true, NORMAL, P2P_DDR, P2P_DDR),
	[ACL_HBM_MEM_HUGE1G] = ATTR_ROW(false, GIANT, HBM, HBM),
	[ACL_MEM_NORMAL] = ATTR_ROW(false, NORMAL, DDR, HBM),
	[ACL_MEM_HUGE] = ATTR_ROW(false, HUGE, DDR, HBM),
	[ACL_MEM_HUGE1G] = ATTR_ROW(false, GIANT, DDR, HBM),
	[ACL_MEM_P2P_NORMAL] = ATTR_ROW(false, NORMAL, P2P_DDR, P2P_HBM),
	[ACL_MEM_P2P_HUGE] = ATTR_ROW(false, HUGE, P2P_DDR, P2P_HBM),
	[ACL_MEM_P2P_HUGE1G] = ATTR_ROW(false, GIANT, P2P_DDR, P2P_HBM),
};

/* The other way: what a handle's page and memory type read back as, by [host][memory type][page
 * type]; -1: nothing. */
static const int8_t attr_back[2][MEM_TS_DDR_TYPE][MEM_MAX_PAGE_TYPE] = {
	{
		[MEM_HBM_TYPE] = { ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE1G },
		[MEM_DDR_TYPE] = { ACL_MEM_NORMAL, ACL_MEM_HUGE, ACL_MEM_HUGE1G },
		[MEM_P2P_HBM_TYPE] = { ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE1G },
		[MEM_P2P_DDR_TYPE] = { -1, -1, -1 },
	},
	{
		[MEM_HBM_TYPE] = { ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE1G },
		[MEM_DDR_TYPE] = { ACL_MEM_NORMAL, ACL_MEM_HUGE, ACL_MEM_HUGE1G },
		[MEM_P2P_HBM_TYPE] = { -1, -1, -1 },
		[MEM_P2P_DDR_TYPE] = { ACL_DDR_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE,
				       ACL_MEM_P2P_HUGE1G },
	},
};

/* The checks of memAttr against the location, and the driver's form with the id as it was given. */
static aclError prop_convert(const char *call, const aclrtPhysicalMemProp *prop,
			     struct drv_mem_prop *out)
{
	uint32_t attr = (uint32_t)prop->memAttr;
	bool device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
	bool host = prop->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
		    prop->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	const struct attr_row *row;

	if (attr >= sizeof(attr_rows) / sizeof(attr_rows[0]) || !attr_rows[attr].known)
		return acl_fail(
			ACL_ERROR_INVALID_PARAM, call,
			"prop->memAttr is %d (%s), which no handle can have; use ACL_HBM_MEM_HUGE "
			"(2 MiB pages), "
			"ACL_HBM_MEM_HUGE1G (1 GiB pages), ACL_HBM_MEM_NORMAL, or one of ACL_MEM_*",
			(int)attr, acl_mem_attr_name((int)attr));
	row = &attr_rows[attr];
	if (device && row->host_only)
		return acl_fail(ACL_ERROR_INVALID_PARAM, call,
				"prop->memAttr is %s with prop->location.type DEVICE; DDR is host "
				"memory: use type HOST or "
				"HOST_NUMA, or ACL_HBM_MEM_HUGE for device memory",
				acl_mem_attr_name((int)attr));
	*out = (struct drv_mem_prop){
		.side = (uint32_t)prop->location.type,
		.devid = prop->location.id,
		.module_id = APP_MODULE_ID,
		.pg_type = row->pg_type,
		.mem_type = host ? row->host_mem_type : row->device_mem_type,
		.reserve = prop->reserve,
	};
	return ACL_SUCCESS;
}

/* Device ids and the driver's number of HOST_NUMA. */
static aclError prop_translate(const char *call, struct drv_mem_prop *prop)
{
	if (prop->side == ACL_MEM_LOCATION_TYPE_DEVICE)
		return core_device_logic((int32_t)prop->devid, "prop->location.id", call,
					 &prop->devid);
	if (prop->side == ACL_MEM_LOCATION_TYPE_HOST_NUMA)
		prop->side = MEM_HOST_NUMA_SIDE;
	return ACL_SUCCESS;
}

static aclError check_prop(const char *call, const aclrtPhysicalMemProp *prop)
{
	if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return acl_fail(ACL_ERROR_INVALID_PARAM, call,
				"prop->handleType is %d; it must be ACL_MEM_HANDLE_TYPE_NONE (0)",
				(int)prop->handleType);
	if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
		return acl_fail(
			ACL_ERROR_INVALID_PARAM, call,
			"prop->allocationType is %d; it must be ACL_MEM_ALLOCATION_TYPE_PINNED (0)",
			(int)prop->allocationType);
	if (prop->location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED ||
	    prop->location.type == ACL_MEM_LOCATION_TYPE_MANAGED)
		return acl_fail(ACL_ERROR_INVALID_PARAM, call,
				"prop->location.type is %d (%s); it must be DEVICE (1), HOST (0) "
				"or HOST_NUMA (4)",
				(int)prop->location.type, acl_location_name(prop->location.type));
	return ACL_SUCCESS;
}

/* ---- addresses ---- */

static aclError reserve(const char *call, void **virPtr, size_t size, size_t alignment,
			void *expectPtr, uint64_t flags, uint64_t more_flags)
{
	void *va = NULL;
	drvError_t code;

	if (virPtr == NULL)
		return acl_fail_null(call, "virPtr");
	if (size == 0)
		return acl_fail(ACL_ERROR_INVALID_PARAM, call, "size is 0; it must be at least 1");
	if (flags > 1)
		return acl_fail(ACL_ERROR_INVALID_PARAM, call,
				"flags is %#llx; it must be 0 (normal pages) or 1 (huge pages)",
				(unsigned long long)flags);
	ACL_DRIVER(drv);
	code = npu_call(drv, halMemAddressReserve, &va, size, alignment, expectPtr,
			flags | more_flags);
	if (code != DRV_ERROR_NONE)
		return core_result(call, code);
	*virPtr = va;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
					   void *expectPtr, uint64_t flags)
{
	return reserve(__func__, virPtr, size, alignment, expectPtr, flags, 0);
}

ACL_EXPORT aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
						     void *expectPtr, uint64_t flags)
{
	return reserve(__func__, virPtr, size, alignment, expectPtr, flags,
		       MEM_RSV_TYPE_REMOTE_MAP);
}

ACL_EXPORT aclError aclrtReleaseMemAddress(void *virPtr)
{
	ACL_CHECK_NULL(virPtr);
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, halMemAddressFree, virPtr));
}

/* ---- physical memory ---- */

ACL_EXPORT aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
					const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	struct drv_mem_prop driver_prop;
	drv_mem_handle_t *made = NULL;
	aclError error;
	drvError_t code;

	ACL_CHECK_NULL(handle);
	ACL_CHECK_NULL(prop);
	ACL_CHECK_POSITIVE(size);
	ACL_CHECK_ZERO(flags);
	error = check_prop(__func__, prop);
	if (error == ACL_SUCCESS)
		error = prop_convert(__func__, prop, &driver_prop);
	if (error == ACL_SUCCESS)
		error = prop_translate(__func__, &driver_prop);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	if (driver_prop.side == MEM_HOST_NUMA_SIDE) {
		ACL_CONTEXT(context);
		if (!npu_call(drv, halSupportFeature, context->device,
			      FEATURE_SVM_VMM_NORMAL_GRANULARITY))
			return acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
					"prop->location.type is HOST_NUMA, which the driver in use "
					"does not support; use "
					"type HOST with id 0");
	}
	/* Whether there are 1 GiB pages at all is the driver's answer too: NOT_SUPPORT, the same
	 * code. */
	code = npu_call(drv, halMemCreate, &made, size, &driver_prop, 0);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	*handle = made;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	ACL_CHECK_NULL(handle);
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, halMemRelease, (drv_mem_handle_t *)handle));
}

ACL_EXPORT aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
						     aclrtMemGranularityOptions option,
						     size_t *granularity)
{
	struct drv_mem_prop driver_prop;
	size_t bytes = 0;
	aclError error;
	drvError_t code;

	ACL_CHECK_NULL(prop);
	ACL_CHECK_NULL(granularity);
	error = prop_convert(__func__, prop, &driver_prop);
	if (error == ACL_SUCCESS)
		error = prop_translate(__func__, &driver_prop);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	code = npu_call(drv, halMemGetAllocationGranularity, &driver_prop,
			(drv_mem_granularity_options)option, &bytes);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	*granularity = bytes;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
							      aclrtPhysicalMemProp *prop)
{
	struct drv_mem_prop found = { 0 };
	int attr = -1;
	bool host;
	drvError_t code;

	ACL_CHECK_NULL(handle);
	ACL_CHECK_NULL(prop);
	ACL_DRIVER(drv);
	code = npu_call(drv, halMemGetAllocationPropertiesFromHandle, &found,
			(drv_mem_handle_t *)handle);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	host = found.side != MEM_DEV_SIDE;
	if (found.mem_type < MEM_TS_DDR_TYPE && found.pg_type < MEM_MAX_PAGE_TYPE)
		attr = attr_back[host][found.mem_type][found.pg_type];
	if (attr < 0)
		return acl_fail(ACL_ERROR_INVALID_PARAM, __func__,
				"handle %p has page type %u and memory type %u %s, for which there "
				"is no aclrtMemAttr",
				handle, found.pg_type, found.mem_type,
				host ? "on the host" : "on a device");
	*prop = (aclrtPhysicalMemProp){
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = (aclrtMemAttr)attr,
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
ACL_EXPORT aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
				uint64_t flags)
{
	ACL_CHECK_NULL(virPtr);
	ACL_CHECK_NULL(handle);
	ACL_CHECK_POSITIVE(size);
	ACL_CHECK_ZERO(flags);
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, halMemMap, virPtr, size, offset,
					      (drv_mem_handle_t *)handle, 0));
}

ACL_EXPORT aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset,
					aclrtDrvMemHandle handle, uint64_t flags)
{
	ACL_CHECK_NULL(virPtr);
	ACL_CHECK_NULL(handle);
	ACL_CHECK_POSITIVE(size);
	ACL_CHECK_ZERO(flags);
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, halMemMapNoAccess, virPtr, size, offset,
					      (drv_mem_handle_t *)handle, 0));
}

ACL_EXPORT aclError aclrtUnmapMem(void *virPtr)
{
	ACL_CHECK_NULL(virPtr);
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, halMemUnmap, virPtr));
}

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
			npu_message_set("%s; desc[%zu].location.id is the driver's device id, "
					"which is not translated: if "
					"user device %u was meant, pass %u "
					"(aclrtGetLogicDevIdByUserDevId; user -> driver: "
					"%s)",
					cause, i, desc[i].location.id, logic, core_visible_text());
		else
			npu_message_set("%s", cause);
		free(cause);
	}
}

ACL_EXPORT aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
				      size_t count)
{
	struct drv_mem_access_desc on_stack[ACCESS_ON_STACK], *converted = on_stack;
	drvError_t code;
	aclError error;

	if (virPtr == NULL)
		return acl_fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
				"virPtr is NULL; it must be the start of a mapping");
	if (desc == NULL)
		return acl_fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
				"desc is NULL; it must point to count descriptors");
	if (count > ACCESS_MAX)
		return acl_fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
				"count is %zu; it must be between 1 and %u", count, ACCESS_MAX);
	ACL_DRIVER(drv);
	if (count > ACCESS_ON_STACK) {
		converted = calloc(count, sizeof(*converted));
		if (converted == NULL)
			return acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, __func__,
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
	code = npu_call(drv, halMemSetAccess, virPtr, size, converted, count);
	error = code == DRV_ERROR_NONE ? ACL_SUCCESS : core_result(__func__, code);
	if (error != ACL_SUCCESS)
		hint_at_ids(desc, count);
	if (converted != on_stack)
		free(converted);
	return error;
}

ACL_EXPORT aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag)
{
	struct drv_mem_location driver_location;
	uint64_t flags = 0;
	drvError_t code;

	ACL_CHECK_NULL(virPtr);
	ACL_CHECK_NULL(location);
	ACL_CHECK_NULL(flag);
	ACL_DRIVER(drv);
	driver_location = (struct drv_mem_location){ .id = location->id,
						     .side = (enum drv_mem_side)location->type };
	code = npu_call(drv, halMemGetAccess, virPtr, &driver_location, &flags);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	*flag = flags;
	return ACL_SUCCESS;
}

/* ---- what lies at an address ---- */

ACL_EXPORT aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	drv_mem_handle_t *found = NULL;
	drvError_t code;

	ACL_CHECK_NULL(virPtr);
	ACL_CHECK_NULL(handle);
	ACL_DRIVER(drv);
	code = npu_call(drv, halMemRetainAllocationHandle, &found, virPtr);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	*handle = found;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
	DVdeviceptr base = 0;
	size_t size = 0;
	drvError_t code;

	ACL_CHECK_NULL(ptr);
	if (pbase == NULL && psize == NULL)
		return acl_fail(
			ACL_ERROR_RT_PARAM_INVALID, __func__,
			"pbase and psize are both NULL; at least one must point to something");
	ACL_DRIVER(drv);
	code = npu_call(drv, halMemGetAddressRange, (DVdeviceptr)(uintptr_t)ptr, &base, &size);
	if (code != DRV_ERROR_NONE)
		return core_result(__func__, code);
	if (pbase != NULL)
		*pbase = (void *)(uintptr_t)base;
	if (psize != NULL)
		*psize = size;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags)
{
	uint32_t device;

	ACL_CHECK_NULL(devPtr);
	ACL_CHECK_POSITIVE(size);
	ACL_CHECK_ZERO(flags);
	if (core_device_logic(dstDevId, "dstDevId", __func__, &device) != ACL_SUCCESS)
		return ACL_ERROR_RT_PARAM_INVALID; /* CANN's code for an id in the peer functions */
	ACL_CONTEXT(context);
	(void)context;
	ACL_DRIVER(drv);
	return core_result(__func__, npu_call(drv, drvMemPrefetchToDevice,
					      (DVdeviceptr)(uintptr_t)devPtr, size, device));
}
