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

WRAP(aclrtSetDevice, (int32_t deviceId), (deviceId),
     trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), false))
WRAP(aclrtResetDevice, (int32_t deviceId), (deviceId),
     trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), true))
WRAP(aclrtResetDeviceForce, (int32_t deviceId), (deviceId),
     trace_record_device(recorder, &call, preload_device(&call, (uint32_t)deviceId), true))

/* ---- reservations ---- */

WRAP(aclrtReserveMemAddress,
     (void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags),
     (virPtr, size, alignment, expectPtr, flags),
     trace_record_reserve(recorder, &call, got(&call, virPtr), size, (uintptr_t)expectPtr, flags))
WRAP(aclrtReserveMemAddressNoUCMemory,
     (void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags),
     (virPtr, size, alignment, expectPtr, flags),
     trace_record_reserve(recorder, &call, got(&call, virPtr), size, (uintptr_t)expectPtr, flags))
WRAP_END(aclrtReleaseMemAddress, virPtr, NPU_TRACE_UNRESERVE)

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

WRAP(aclrtMallocPhysical,
     (aclrtDrvMemHandle * handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags),
     (handle, size, prop, flags),
     trace_record_create(recorder, &call, got(&call, handle), size,
			 prop != NULL ? preload_device_at(&call, &prop->location) : NPU_TRACE_HOST,
			 prop != NULL ? page_lg2_of(prop->memAttr) : 0))
WRAP_AROUND(aclrtFreePhysical, (aclrtDrvMemHandle handle), (handle),
	    struct trace_ending ending = trace_handle_ends(recorder, handle),
	    trace_record_release(recorder, &call, &ending))
WRAP(aclrtMemRetainAllocationHandle, (void *virPtr, aclrtDrvMemHandle *handle), (virPtr, handle),
     trace_record_retain(recorder, &call, got(&call, handle), virPtr))

/* ---- mappings ---- */

WRAP(aclrtMapMem,
     (void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags),
     (virPtr, size, offset, handle, flags),
     trace_record_map(recorder, &call, virPtr, size, handle, false))
WRAP(aclrtMemMapNoAccess,
     (void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags),
     (virPtr, size, offset, handle, flags),
     trace_record_map(recorder, &call, virPtr, size, handle, true))
WRAP(aclrtUnmapMem, (void *virPtr), (virPtr), trace_record_unmap(recorder, &call, virPtr))

/* Here CANN takes an id of the server, unlike anywhere else. */
static void record_access(struct trace_recorder *recorder, const struct trace_call *call,
			  const void *va, size_t size, const aclrtMemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; desc != NULL && i < count && i < ACCESS_LINES_MAX; i++)
		trace_record_access(recorder, call, va, size,
				    desc[i].location.type == ACL_MEM_LOCATION_TYPE_DEVICE
					    ? (int64_t)desc[i].location.id
					    : NPU_TRACE_HOST,
				    (uint64_t)desc[i].flags);
}

WRAP(aclrtMemSetAccess, (void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count),
     (virPtr, size, desc, count), record_access(recorder, &call, virPtr, size, desc, count))

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

WRAP(aclrtMemExportToShareableHandle,
     (aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
      uint64_t *shareableHandle),
     (handle, handleType, flags, shareableHandle),
     trace_record_export(recorder, &call, call.code == ACL_SUCCESS ? *shareableHandle : 0, handle,
			 flags))
WRAP(aclrtMemExportToShareableHandleV2,
     (aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType,
      void *shareableHandle),
     (handle, flags, shareType, shareableHandle),
     trace_record_export(recorder, &call,
			 call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0, handle,
			 flags))
WRAP(aclrtMemImportFromShareableHandle,
     (uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle),
     (shareableHandle, deviceId, handle),
     trace_record_import(recorder, &call, shareableHandle,
			 preload_device(&call, (uint32_t)deviceId), got(&call, handle)))
WRAP(aclrtMemImportFromShareableHandleV2,
     (void *shareableHandle, aclrtMemSharedHandleType shareType, uint64_t flags,
      aclrtDrvMemHandle *handle),
     (shareableHandle, shareType, flags, handle),
     trace_record_import(recorder, &call,
			 call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0,
			 preload_current_device(&call), got(&call, handle)))
