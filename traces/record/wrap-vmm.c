/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the calls for devices, virtual memory and its sharing, as a program makes them.
 */
#include "preload.h"

#define ACCESS_LINES_MAX 64

static const void *got(const struct trace_call *call, void *const *out)
{
	return call->code == ACL_SUCCESS ? *out : NULL;
}

/* ---- devices ---- */

PRELOAD_EXPORT aclError aclrtSetDevice(int32_t deviceId)
{
	PRELOAD_BEGIN(aclrtSetDevice, , deviceId);
	trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), false);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtResetDevice(int32_t deviceId)
{
	PRELOAD_BEGIN(aclrtResetDevice, , deviceId);
	trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), true);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtResetDeviceForce(int32_t deviceId)
{
	PRELOAD_BEGIN(aclrtResetDeviceForce, , deviceId);
	trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), true);
	PRELOAD_END;
}

/* ---- reservations ---- */

PRELOAD_EXPORT aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
					       void *expectPtr, uint64_t flags)
{
	PRELOAD_BEGIN(aclrtReserveMemAddress, , virPtr, size, alignment, expectPtr, flags);
	trace_record_reserve(recorder, &call, got(&call, virPtr), size, (uintptr_t)expectPtr,
			     flags);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size,
							 size_t alignment, void *expectPtr,
							 uint64_t flags)
{
	PRELOAD_BEGIN(aclrtReserveMemAddressNoUCMemory, , virPtr, size, alignment, expectPtr,
		      flags);
	trace_record_reserve(recorder, &call, got(&call, virPtr), size, (uintptr_t)expectPtr,
			     flags);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtReleaseMemAddress(void *virPtr)
{
	PRELOAD_BEGIN(aclrtReleaseMemAddress,
		      struct trace_ending ending = trace_place_ends(recorder, virPtr), virPtr);
	trace_record_place_end(recorder, &call, NPU_TRACE_UNRESERVE, &ending);
	PRELOAD_END;
}

/* ---- physical memory ---- */

static uint32_t page_lg2_of(aclrtMemAttr attr)
{
	switch ((int)attr) {
	case ACL_DDR_MEM_NORMAL:
	case ACL_HBM_MEM_NORMAL:
	case ACL_DDR_MEM_P2P_NORMAL:
	case ACL_HBM_MEM_P2P_NORMAL:
	case ACL_MEM_NORMAL:
	case ACL_MEM_P2P_NORMAL:
		return 12;
	case ACL_HBM_MEM_HUGE1G:
	case ACL_HBM_MEM_P2P_HUGE1G:
	case ACL_MEM_HUGE1G:
	case ACL_MEM_P2P_HUGE1G:
		return 30;
	default:
		return 21;
	}
}

PRELOAD_EXPORT aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
					    const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	PRELOAD_BEGIN(aclrtMallocPhysical, , handle, size, prop, flags);
	trace_record_create(recorder, &call, got(&call, handle), size,
			    prop != NULL ? preload_device_at(&call, &prop->location)
					 : NPU_TRACE_HOST,
			    prop != NULL ? page_lg2_of(prop->memAttr) : 0);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	PRELOAD_BEGIN(aclrtFreePhysical,
		      struct trace_ending ending = trace_handle_ends(recorder, handle), handle);
	trace_record_release(recorder, &call, &ending);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	PRELOAD_BEGIN(aclrtMemRetainAllocationHandle, , virPtr, handle);
	trace_record_retain(recorder, &call, got(&call, handle), virPtr);
	PRELOAD_END;
}

/* ---- mappings ---- */

PRELOAD_EXPORT aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
				    aclrtDrvMemHandle handle, uint64_t flags)
{
	PRELOAD_BEGIN(aclrtMapMem, , virPtr, size, offset, handle, flags);
	trace_record_map(recorder, &call, virPtr, size, handle, false);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset,
					    aclrtDrvMemHandle handle, uint64_t flags)
{
	PRELOAD_BEGIN(aclrtMemMapNoAccess, , virPtr, size, offset, handle, flags);
	trace_record_map(recorder, &call, virPtr, size, handle, true);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtUnmapMem(void *virPtr)
{
	PRELOAD_BEGIN(aclrtUnmapMem, , virPtr);
	trace_record_unmap(recorder, &call, virPtr);
	PRELOAD_END;
}

/* Here CANN takes an id of the server, unlike anywhere else. */
PRELOAD_EXPORT aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
					  size_t count)
{
	PRELOAD_BEGIN(aclrtMemSetAccess, , virPtr, size, desc, count);
	for (size_t i = 0; desc != NULL && i < count && i < ACCESS_LINES_MAX; i++)
		trace_record_access(recorder, &call, virPtr, size,
				    desc[i].location.type == ACL_MEM_LOCATION_TYPE_DEVICE
					    ? (int64_t)desc[i].location.id
					    : NPU_TRACE_HOST,
				    (uint64_t)desc[i].flags);
	PRELOAD_END;
}

/* ---- sharing ---- */

/* `share` is a number, or the bytes of a fabric handle. */
static uint64_t key_of(const void *share, aclrtMemSharedHandleType type)
{
	if (share == NULL)
		return 0;
	return type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
		       ? trace_key_of_bytes(share, sizeof(aclrtMemFabricHandle))
		       : *(const uint64_t *)share;
}

PRELOAD_EXPORT aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
							aclrtMemHandleType handleType,
							uint64_t flags, uint64_t *shareableHandle)
{
	PRELOAD_BEGIN(aclrtMemExportToShareableHandle, , handle, handleType, flags,
		      shareableHandle);
	trace_record_export(recorder, &call, call.code == ACL_SUCCESS ? *shareableHandle : 0,
			    handle, flags);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
							  aclrtMemSharedHandleType shareType,
							  void *shareableHandle)
{
	PRELOAD_BEGIN(aclrtMemExportToShareableHandleV2, , handle, flags, shareType,
		      shareableHandle);
	trace_record_export(recorder, &call,
			    call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0,
			    handle, flags);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
							  int32_t deviceId,
							  aclrtDrvMemHandle *handle)
{
	PRELOAD_BEGIN(aclrtMemImportFromShareableHandle, , shareableHandle, deviceId, handle);
	trace_record_import(recorder, &call, shareableHandle,
			    preload_device(&call, (uint32_t)deviceId), got(&call, handle));
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
							    aclrtMemSharedHandleType shareType,
							    uint64_t flags,
							    aclrtDrvMemHandle *handle)
{
	PRELOAD_BEGIN(aclrtMemImportFromShareableHandleV2, , shareableHandle, shareType, flags,
		      handle);
	trace_record_import(recorder, &call,
			    call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0,
			    preload_current_device(&call), got(&call, handle));
	PRELOAD_END;
}
