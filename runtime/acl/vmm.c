/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory of the ACL face: address reservations, physical handles, mappings, access, and
 * queries about them. Owns the order of the checks above the driver and the translation of
 * aclrtPhysicalMemProp in both directions. It stores no handles and no addresses: the driver does.
 */
#include "acl-internal.h"

#include <stdlib.h>
#include <string.h>

#define ACCESS_MAX \
	1024u /* descriptors in one aclrtMemSetAccess: far more than there are locations */
#define ACCESS_ON_STACK 8u

/* ---- aclrtPhysicalMemProp and the driver's ---- */

/* What a handle's page and memory type read back as, by [host][memory type][page type]; -1:
 * nothing.
 */
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
	const struct acl_mem_attr *attr = acl_mem_attr((uint32_t)prop->memAttr);
	bool device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
	bool host = prop->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
		    prop->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;

	if (!attr->handle)
		return acl_invalid(call,
				   "prop->memAttr is %d (%s), which no handle can have; use "
				   "ACL_HBM_MEM_HUGE (2 MiB pages), ACL_HBM_MEM_HUGE1G (1 GiB "
				   "pages), ACL_HBM_MEM_NORMAL, or one of ACL_MEM_*",
				   (int)prop->memAttr, attr->name);
	if (device && attr->host_only)
		return acl_invalid(
			call,
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
	return ACL_WANT(call, prop->handleType == ACL_MEM_HANDLE_TYPE_NONE,
			"prop->handleType is %d; it must be ACL_MEM_HANDLE_TYPE_NONE (0)",
			(int)prop->handleType)
		       ?: ACL_WANT(call, prop->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED,
				   "prop->allocationType is %d; it must be "
				   "ACL_MEM_ALLOCATION_TYPE_PINNED (0)",
				   (int)prop->allocationType)
		       ?: ACL_WANT(call,
				   prop->location.type != ACL_MEM_LOCATION_TYPE_UNREGISTERED &&
					   prop->location.type != ACL_MEM_LOCATION_TYPE_MANAGED,
				   "prop->location.type is %d (%s); it must be DEVICE (1), HOST "
				   "(0) or HOST_NUMA (4)",
				   (int)prop->location.type,
				   acl_location_name(prop->location.type));
}

/* ---- addresses ---- */

static aclError reserve(const char *call, void **virPtr, size_t size, size_t alignment,
			void *expectPtr, uint64_t flags, uint64_t more_flags)
{
	void *va = NULL;

	return acl_null(call, "virPtr", virPtr) ?: acl_zero(call, "size", size)
		       ?: ACL_WANT(call, flags <= 1,
				   "flags is %#llx; it must be 0 (normal pages) or 1 (huge pages)",
				   (unsigned long long)flags)
		       ?: ACL_CALL(call, halMemAddressReserve, &va, size, alignment, expectPtr,
			flags | more_flags)
		       ?: ACL_GIVE(virPtr, va);
}

ACL_EXPORT aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
					   void *expectPtr, uint64_t flags)
	ACL_ANSWERS(reserve(__func__, virPtr, size, alignment, expectPtr, flags, 0));
ACL_EXPORT aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
						     void *expectPtr, uint64_t flags)
	ACL_ANSWERS(reserve(__func__, virPtr, size, alignment, expectPtr, flags,
			    MEM_RSV_TYPE_REMOTE_MAP));
ACL_EXPORT aclError aclrtReleaseMemAddress(void *virPtr)
	ACL_ANSWERS(ACL_IS_NULL(virPtr) ?: ACL_CALL(__func__, halMemAddressFree, virPtr));

/* ---- physical memory ---- */

ACL_EXPORT aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
					const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	struct drv_mem_prop driver_prop;
	drv_mem_handle_t *made = NULL;
	aclError error = ACL_IS_NULL(handle) ?: ACL_IS_NULL(prop) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags) ?: check_prop(__func__, prop)
			?: prop_convert(__func__, prop, &driver_prop)
			?: prop_translate(__func__, &driver_prop);
	struct core_context *context;

	if (error == ACL_SUCCESS && driver_prop.side == MEM_HOST_NUMA_SIDE) {
		error = acl_current(__func__, &context);
		if (error == ACL_SUCCESS &&
		    !npu_call(core_driver(), halSupportFeature, context->device,
			      FEATURE_SVM_VMM_NORMAL_GRANULARITY))
			return acl_unsupported(__func__,
					       "prop->location.type is HOST_NUMA, which the driver "
					       "in use does not support; use type HOST with id 0");
	}
	/* Whether there are 1 GiB pages at all is the driver's answer too: NOT_SUPPORT, the same
	 * code. */
	return error ?: ACL_CALL(__func__, halMemCreate, &made, size, &driver_prop, 0)
			?: ACL_GIVE(handle, made);
}

ACL_EXPORT aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
	ACL_ANSWERS(ACL_IS_NULL(handle)
			    ?: ACL_CALL(__func__, halMemRelease, (drv_mem_handle_t *)handle));

ACL_EXPORT aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
						     aclrtMemGranularityOptions option,
						     size_t *granularity)
{
	struct drv_mem_prop driver_prop;
	size_t bytes = 0;

	return ACL_IS_NULL(prop) ?: ACL_IS_NULL(granularity)
			?: prop_convert(__func__, prop, &driver_prop)
			?: prop_translate(__func__, &driver_prop)
			?: ACL_CALL(__func__, halMemGetAllocationGranularity, &driver_prop,
				    (drv_mem_granularity_options)option, &bytes)
			?: ACL_GIVE(granularity, bytes);
}

ACL_EXPORT aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
							      aclrtPhysicalMemProp *prop)
{
	struct drv_mem_prop found = { 0 };
	int attr = -1;
	bool host;
	aclError error = ACL_IS_NULL(handle) ?: ACL_IS_NULL(prop)
			?: ACL_CALL(__func__, halMemGetAllocationPropertiesFromHandle, &found,
				    (drv_mem_handle_t *)handle);

	if (error != ACL_SUCCESS)
		return error;
	host = found.side != MEM_DEV_SIDE;
	if (found.mem_type < MEM_TS_DDR_TYPE && found.pg_type < MEM_MAX_PAGE_TYPE)
		attr = attr_back[host][found.mem_type][found.pg_type];
	if (attr < 0)
		return acl_invalid(__func__,
				   "handle %p has page type %u and memory type %u %s, for which "
				   "there is no aclrtMemAttr",
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
	ACL_ANSWERS(ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags)
			?: ACL_CALL(__func__, halMemMap, virPtr, size, offset,
				    (drv_mem_handle_t *)handle, 0));
ACL_EXPORT aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset,
					aclrtDrvMemHandle handle, uint64_t flags)
	ACL_ANSWERS(ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle) ?: ACL_IS_ZERO(size)
			?: ACL_IS_SET(flags)
			?: ACL_CALL(__func__, halMemMapNoAccess, virPtr, size, offset,
				    (drv_mem_handle_t *)handle, 0));
ACL_EXPORT aclError aclrtUnmapMem(void *virPtr)
	ACL_ANSWERS(ACL_IS_NULL(virPtr) ?: ACL_CALL(__func__, halMemUnmap, virPtr));

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

ACL_EXPORT aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
				      size_t count)
{
	struct drv_mem_access_desc on_stack[ACCESS_ON_STACK], *converted = on_stack;
	aclError error = RT_WANT(__func__, virPtr != NULL,
				 "virPtr is NULL; it must be the start of a mapping")
			?: RT_WANT(__func__, desc != NULL,
				   "desc is NULL; it must point to count descriptors")
			?: RT_WANT(__func__, count <= ACCESS_MAX,
				   "count is %zu; it must be between 1 and %u", count, ACCESS_MAX);

	if (error != ACL_SUCCESS)
		return error;
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
	error = ACL_CALL(__func__, halMemSetAccess, virPtr, size, converted, count);
	if (error != ACL_SUCCESS)
		hint_at_ids(desc, count);
	if (converted != on_stack)
		free(converted);
	return error;
}

ACL_EXPORT aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag)
{
	uint64_t flags = 0;

	return ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(location) ?: ACL_IS_NULL(flag)
			?: ACL_CALL(__func__, halMemGetAccess, virPtr,
				    (&(struct drv_mem_location){
					    .id = location->id,
					    .side = (enum drv_mem_side)location->type }),
				    &flags)
			?: ACL_GIVE(flag, flags);
}

/* ---- what lies at an address ---- */

ACL_EXPORT aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	drv_mem_handle_t *found = NULL;

	return ACL_IS_NULL(virPtr) ?: ACL_IS_NULL(handle)
			?: ACL_CALL(__func__, halMemRetainAllocationHandle, &found, virPtr)
			?: ACL_GIVE(handle, found);
}

ACL_EXPORT aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
	DVdeviceptr base = 0;
	size_t size = 0;
	aclError error = ACL_IS_NULL(ptr)
			?: RT_WANT(__func__, pbase != NULL || psize != NULL,
				   "pbase and psize are both NULL; at least one must point to "
				   "something")
			?: ACL_CALL(__func__, halMemGetAddressRange, (DVdeviceptr)(uintptr_t)ptr,
				    &base, &size);

	if (error != ACL_SUCCESS)
		return error;
	if (pbase != NULL)
		*pbase = (void *)(uintptr_t)base;
	if (psize != NULL)
		*psize = size;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags)
{
	uint32_t device;

	if (ACL_IS_NULL(devPtr) || ACL_IS_ZERO(size) || ACL_IS_SET(flags))
		return ACL_ERROR_INVALID_PARAM;
	if (core_device_logic(dstDevId, "dstDevId", __func__, &device) != ACL_SUCCESS)
		return ACL_ERROR_RT_PARAM_INVALID; /* CANN's code for an id in the peer functions */
	return acl_check_context(__func__)
		       ?: ACL_CALL(__func__, drvMemPrefetchToDevice, (DVdeviceptr)(uintptr_t)devPtr,
				   size, device);
}
