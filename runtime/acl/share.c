/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares physical memory between processes: export, whitelist, import, in the first form (a
 * number), the second (V2) and as fabric handles. Owns the order of the checks and the peer access
 * that an import enables; the driver decides who may import what.
 */
#include "memory-internal.h"

#include <string.h>

#define SERVER_ID_UNKNOWN UINT32_MAX

static aclError check_share_type(const char *call, aclrtMemSharedHandleType type)
{
	if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
		return ACL_SUCCESS;
	return acl_fail(ACL_ERROR_RT_PARAM_INVALID, call,
			"shareType is %d; it must be ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT (1: "
			"shareableHandle is a uint64_t) or "
			"ACL_MEM_SHARE_HANDLE_TYPE_FABRIC (2: an aclrtMemFabricHandle)",
			(int)type);
}

static aclError check_export_flags(const char *call, uint64_t flags)
{
	if (flags <= ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return ACL_SUCCESS;
	return acl_fail(ACL_ERROR_RT_PARAM_INVALID, call,
			"flags is %#llx; it must be ACL_RT_VMM_EXPORT_FLAG_DEFAULT (0) or "
			"ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION (1)",
			(unsigned long long)flags);
}

/* Any process of the server may import from now on. The export stays where this fails, as with
 * CANN. */
static aclError disable_validation(const char *call, struct npu_driver *drv, uint64_t shareable)
{
	struct ShareHandleAttr attr = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE };

	return core_result(call, npu_call(drv, halMemShareHandleSetAttribute, shareable,
					  SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, attr));
}

/* The number behind either form, and the server it comes from (SERVER_ID_UNKNOWN for a number: this
 * one). */
static aclError number_of(const char *call, struct npu_driver *drv, aclrtMemSharedHandleType type,
			  void *shareable, uint32_t *out_server, uint64_t *out_number)
{
	*out_server = SERVER_ID_UNKNOWN;
	if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
		memcpy(out_number, shareable, sizeof(*out_number));
		return ACL_SUCCESS;
	}
	return core_result(call,
			   npu_call(drv, halMemTransShareableHandle, MEM_HANDLE_TYPE_FABRIC,
				    (struct MemShareHandle *)shareable, out_server, out_number));
}

static aclError server_of(const char *call, struct npu_driver *drv, uint32_t device,
			  int64_t *out_server)
{
	return core_result(call, npu_call(drv, halGetDeviceInfo, device, MODULE_TYPE_SYSTEM,
					  INFO_TYPE_SERVER_ID, out_server));
}

/* ---- export ---- */

static aclError export_number(const char *call, struct npu_driver *drv, aclrtDrvMemHandle handle,
			      uint64_t flags, void *out_shareable)
{
	uint64_t number = 0;
	aclError error;

	error = core_result(call,
			    npu_call(drv, halMemExportToShareableHandle, (drv_mem_handle_t *)handle,
				     MEM_HANDLE_TYPE_NONE, 0, &number));
	if (error == ACL_SUCCESS && (flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) != 0)
		error = disable_validation(call, drv, number);
	if (error == ACL_SUCCESS)
		memcpy(out_shareable, &number, sizeof(number));
	return error;
}

static aclError export_fabric(const char *call, struct npu_driver *drv, aclrtDrvMemHandle handle,
			      uint64_t flags, void *out_shareable)
{
	struct core_context *context = core_context_current();
	struct MemShareHandle fabric = { { 0 } };
	uint64_t number;
	uint32_t server;
	int64_t here;
	aclError error;

	if (context == NULL)
		return core_context_none(call);
	error = server_of(call, drv, context->device, &here);
	if (error == ACL_SUCCESS)
		error = core_result(call, npu_call(drv, halMemExportToShareableHandleV2,
						   (drv_mem_handle_t *)handle,
						   MEM_HANDLE_TYPE_FABRIC, 0, &fabric));
	if (error == ACL_SUCCESS && (flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) != 0) {
		error = number_of(call, drv, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric, &server,
				  &number);
		if (error == ACL_SUCCESS)
			error = disable_validation(call, drv, number);
	}
	if (error == ACL_SUCCESS)
		memcpy(out_shareable, &fabric, sizeof(fabric));
	return error;
}

ACL_EXPORT aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
						    aclrtMemHandleType handleType, uint64_t flags,
						    uint64_t *shareableHandle)
{
	aclError error;

	ACL_CHECK_NULL(handle);
	if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return acl_fail(ACL_ERROR_INVALID_PARAM, __func__,
				"handleType is %d; it must be ACL_MEM_HANDLE_TYPE_NONE (0)",
				(int)handleType);
	ACL_CHECK_NULL(shareableHandle);
	error = check_export_flags(__func__, flags);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	return export_number(__func__, drv, handle, flags, shareableHandle);
}

ACL_EXPORT aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
						      aclrtMemSharedHandleType shareType,
						      void *shareableHandle)
{
	aclError error;

	ACL_CHECK_NULL(handle);
	ACL_CHECK_NULL(shareableHandle);
	error = check_share_type(__func__, shareType);
	if (error == ACL_SUCCESS)
		error = check_export_flags(__func__, flags);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT)
		return export_number(__func__, drv, handle, flags, shareableHandle);
	return export_fabric(__func__, drv, handle, flags, shareableHandle);
}

/* ---- white list ---- */

static aclError set_pids(const char *call, struct npu_driver *drv, uint64_t number, int32_t *pids,
			 size_t count)
{
	/* The driver takes 32 bits: what is more is refused there too, not cut off. */
	uint32_t passed = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;

	return core_result(call,
			   npu_call(drv, halMemSetPidToShareableHandle, number, pids, passed));
}

ACL_EXPORT aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
						    size_t pidNum)
{
	ACL_CHECK_NULL(pid);
	ACL_CHECK_POSITIVE(pidNum);
	ACL_DRIVER(drv);
	return set_pids(__func__, drv, shareableHandle, pid, pidNum);
}

ACL_EXPORT aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
						      aclrtMemSharedHandleType shareType,
						      int32_t *pid, size_t pidNum)
{
	uint64_t number = 0;
	uint32_t server;
	aclError error;

	ACL_CHECK_NULL(shareableHandle);
	ACL_CHECK_NULL(pid);
	ACL_CHECK_POSITIVE(pidNum);
	error = check_share_type(__func__, shareType);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	error = number_of(__func__, drv, shareType, shareableHandle, &server, &number);
	if (error != ACL_SUCCESS)
		return error;
	return set_pids(__func__, drv, number, pid, pidNum);
}

/* ---- import ---- */

/* Peer access both ways between the current device and the one whose memory is imported. */
static aclError enable_peer(const char *call, struct npu_driver *drv, uint32_t device,
			    uint32_t peer_phy)
{
	uint32_t phy = 0, peer = 0;
	aclError error;

	error = core_result(call, npu_call(drv, drvDeviceGetPhyIdByIndex, device, &phy));
	if (error == ACL_SUCCESS)
		error = core_result(call, npu_call(drv, drvDeviceGetIndexByPhyId, peer_phy, &peer));
	if (error != ACL_SUCCESS || phy == peer_phy)
		return error;
	error = core_result(call, npu_call(drv, halDeviceEnableP2P, peer, phy, 0));
	if (error == ACL_SUCCESS)
		error = core_result(call, npu_call(drv, halDeviceEnableP2P, device, peer_phy, 0));
	return error;
}

/* Peer access to the exporter's device where the driver can tell it; memory of the host needs none.
 */
static aclError prepare_peer(const char *call, struct npu_driver *drv, uint32_t device,
			     uint64_t number)
{
	struct ShareHandleGetInfo info = { 0 };
	uint32_t host_id = 0;
	drvError_t code = npu_call(drv, halMemShareHandleInfoGet, number, &info);

	if (code == DRV_ERROR_NOT_SUPPORT)
		return ACL_SUCCESS;
	if (code != DRV_ERROR_NONE)
		return core_result(call, code);
	if (npu_call(drv, halGetHostID, &host_id) == DRV_ERROR_NONE && host_id == info.phyDevid)
		return ACL_SUCCESS;
	return enable_peer(call, drv, device, info.phyDevid);
}

ACL_EXPORT aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
						      aclrtDrvMemHandle *handle)
{
	drv_mem_handle_t *made = NULL;
	uint32_t device = 0;
	aclError error;

	ACL_CHECK_NULL(handle);
	error = core_device_logic(deviceId, "deviceId", __func__, &device);
	if (error != ACL_SUCCESS)
		return error;
	ACL_CONTEXT(context);
	ACL_DRIVER(drv);
	error = prepare_peer(__func__, drv, context->device, shareableHandle);
	if (error == ACL_SUCCESS)
		error = core_result(__func__, npu_call(drv, halMemImportFromShareableHandle,
						       shareableHandle, device, &made));
	if (error == ACL_SUCCESS)
		*handle = made;
	return error;
}

static aclError import_fabric(const char *call, struct npu_driver *drv, uint32_t device,
			      struct MemShareHandle *fabric, drv_mem_handle_t **out)
{
	int64_t here = 0;
	uint32_t server;
	uint64_t number = 0;
	aclError error = server_of(call, drv, device, &here);

	if (error == ACL_SUCCESS)
		error = number_of(call, drv, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, fabric, &server,
				  &number);
	if (error == ACL_SUCCESS && (int64_t)server == here)
		error = prepare_peer(call, drv, device, number);
	if (error != ACL_SUCCESS)
		return error;
	return core_result(call, npu_call(drv, halMemImportFromShareableHandleV2,
					  MEM_HANDLE_TYPE_FABRIC, fabric, device, out));
}

ACL_EXPORT aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
							aclrtMemSharedHandleType shareType,
							uint64_t flags, aclrtDrvMemHandle *handle)
{
	drv_mem_handle_t *made = NULL;
	aclError error;

	ACL_CHECK_NULL(shareableHandle);
	ACL_CHECK_NULL(handle);
	ACL_CHECK_ZERO(flags);
	ACL_CONTEXT(context);
	error = check_share_type(__func__, shareType);
	if (error != ACL_SUCCESS)
		return error;
	ACL_DRIVER(drv);
	if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
		struct MemShareHandle fabric;

		memcpy(&fabric, shareableHandle, sizeof(fabric));
		error = import_fabric(__func__, drv, context->device, &fabric, &made);
	} else {
		uint64_t number;

		memcpy(&number, shareableHandle, sizeof(number));
		error = prepare_peer(__func__, drv, context->device, number);
		if (error == ACL_SUCCESS)
			error = core_result(__func__, npu_call(drv, halMemImportFromShareableHandle,
							       number, context->device, &made));
	}
	if (error == ACL_SUCCESS)
		*handle = made;
	return error;
}
