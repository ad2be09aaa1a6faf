/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares memory between processes. Physical memory: export, whitelist, import, in the first form (a
 * number), the second (V2) and as fabric handles. Memory of aclrtMalloc: by key (aclrtIpcMem*).
 * Owns the order of the checks, the peer access that an import enables, and the list of keys that
 * this process imported: one call closes both an export and an import, and only this list tells
 * which of the two a key is. The driver decides who may import what.
 */
#include "acl-internal.h"

#include "base/lock.h"
#include "base/stack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define SERVER_ID_UNKNOWN UINT32_MAX
#define SERVER_ID_NONE    0x3ff /* of a device outside of supernodes */

static aclError check_share_type(aclrtMemSharedHandleType type)
{
	return RT_WANT(
		type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT ||
			type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
		"shareType is %d; it must be ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT (1: shareableHandle "
		"is a uint64_t) or ACL_MEM_SHARE_HANDLE_TYPE_FABRIC (2: an aclrtMemFabricHandle)",
		(int)type);
}

static aclError check_export_flags(uint64_t flags)
{
	return RT_WANT(flags <= ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
		       "flags is %#llx; it must be ACL_RT_VMM_EXPORT_FLAG_DEFAULT (0) or "
		       "ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION (1)",
		       (unsigned long long)flags);
}

/* The number behind either form, and the server it comes from (SERVER_ID_UNKNOWN for a number: this
 * one). */
static aclError number_of(aclrtMemSharedHandleType type, void *shareable, uint32_t *out_server,
			  uint64_t *out_number)
{
	*out_server = SERVER_ID_UNKNOWN;
	if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
		memcpy(out_number, shareable, sizeof(*out_number));
		return ACL_SUCCESS;
	}
	return ACL_CALL(halMemTransShareableHandle, MEM_HANDLE_TYPE_FABRIC,
			(struct MemShareHandle *)shareable, out_server, out_number);
}

/* For fabric handles: 207000 where the device is on none, as on a 910B. */
static aclError server_of(uint32_t device, int64_t *out_server)
{
	aclError error = ACL_CALL(halGetDeviceInfo, device, MODULE_TYPE_SYSTEM, INFO_TYPE_SERVER_ID,
				  out_server);

	if (error != ACL_SUCCESS || *out_server != SERVER_ID_NONE)
		return error;
	return acl_unsupported("device %u is not in a supernode and has no fabric handles, as "
			       "every 910B; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT (1)",
			       device);
}

/* It stays where the flag fails, as with CANN. */
static aclError export(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType type,
		       void *out_shareable)
{
	struct ShareHandleAttr to_all = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE };
	bool is_fabric = type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
	struct core_context *context;
	struct MemShareHandle fabric;
	uint64_t number = 0;
	uint32_t server;
	int64_t here;
	aclError error;

	if (!is_fabric) {
		error = ACL_CALL(halMemExportToShareableHandle, (drv_mem_handle_t *)handle,
				 MEM_HANDLE_TYPE_NONE, 0, &number);
	} else {
		memcpy(&fabric, out_shareable, sizeof(fabric)); /* of which the driver sets some */
		error = acl_current(&context) ?: server_of(context->device, &here)
				?: ACL_CALL(halMemExportToShareableHandleV2,
					    (drv_mem_handle_t *)handle, MEM_HANDLE_TYPE_FABRIC, 0,
					    &fabric);
	}
	if (error == ACL_SUCCESS && (flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) != 0)
		error = (is_fabric ? number_of(type, &fabric, &server, &number) : ACL_SUCCESS)
				?: ACL_CALL(halMemShareHandleSetAttribute, number,
					    SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, to_all);
	if (error == ACL_SUCCESS)
		memcpy(out_shareable, is_fabric ? (void *)&fabric : &number,
		       is_fabric ? sizeof(fabric) : sizeof(number));
	return error;
}

ACL_ANSWERS(aclrtMemExportToShareableHandle, ACL_IS_NULL(handle)
		       ?: ACL_WANT(handleType == ACL_MEM_HANDLE_TYPE_NONE,
				   "handleType is %d; it must be ACL_MEM_HANDLE_TYPE_NONE (0)",
				   (int)handleType)
		       ?: ACL_IS_NULL(shareableHandle) ?: check_export_flags(flags)
		       ?: export(handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
				 shareableHandle));
ACL_ANSWERS(aclrtMemExportToShareableHandleV2,
	ACL_IS_NULL(handle) ?: ACL_IS_NULL(shareableHandle)
			?: check_share_type(shareType) ?: check_export_flags(flags)
			?: export(handle, flags, shareType, shareableHandle));

static aclError set_pids(uint64_t number, int32_t *pids, size_t count)
{
	/* The driver takes 32 bits: what is more is refused there too, not cut off. */
	uint32_t passed = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;

	return ACL_CALL(halMemSetPidToShareableHandle, number, pids, passed);
}

ACL_ANSWERS(aclrtMemSetPidToShareableHandle, ACL_IS_NULL(pid) ?: ACL_IS_ZERO(pidNum)
		       ?: set_pids(shareableHandle, pid, pidNum));

ACL_ANSWERS_WITH(aclrtMemSetPidToShareableHandleV2, uint64_t number = 0,
	ACL_IS_NULL(shareableHandle) ?: ACL_IS_NULL(pid) ?: ACL_IS_ZERO(pidNum)
		       ?: check_share_type(shareType)
		       ?: number_of(shareType, shareableHandle, &(uint32_t){ 0 }, &number)
		       ?: set_pids(number, pid, pidNum));

aclError acl_enable_peer(uint32_t device, uint32_t peer_phy)
{
	uint32_t phy = 0, peer = 0;
	aclError error = ACL_CALL(drvDeviceGetPhyIdByIndex, device, &phy)
				 ?: ACL_CALL(drvDeviceGetIndexByPhyId, peer_phy, &peer);

	if (error != ACL_SUCCESS || phy == peer_phy)
		return error;
	return ACL_CALL(halDeviceEnableP2P, peer, phy, 0)
		       ?: ACL_CALL(halDeviceEnableP2P, device, peer_phy, 0);
}

/* Peer access to the exporter's device where the driver can tell it; the host's memory needs none.
 */
static aclError prepare_peer(uint32_t device, uint64_t number)
{
	struct ShareHandleGetInfo info = { 0 };
	uint32_t host_id = 0;
	drvError_t code = npu_call(core_driver(), halMemShareHandleInfoGet, number, &info);

	if (code == DRV_ERROR_NOT_SUPPORT)
		return ACL_SUCCESS;
	if (code != DRV_ERROR_NONE)
		return core_result(code);
	if (npu_call(core_driver(), halGetHostID, &host_id) == DRV_ERROR_NONE &&
	    host_id == info.phyDevid)
		return ACL_SUCCESS;
	return acl_enable_peer(device, info.phyDevid);
}

/* Memory for `device`; the exporter's device is one that the current device reaches. */
static aclError import_number(uint32_t current, uint32_t device, uint64_t number,
			      drv_mem_handle_t **out)
{
	return prepare_peer(current, number)
		       ?: ACL_CALL(halMemImportFromShareableHandle, number, device, out);
}

ACL_ANSWERS_WITH(aclrtMemImportFromShareableHandle,
	drv_mem_handle_t *made = NULL; uint32_t device = 0; struct core_context *context,
	ACL_IS_NULL(handle) ?: core_device_logic(deviceId, "deviceId", &device)
			?: acl_current(&context)
			?: import_number(context->device, device, shareableHandle, &made)
			?: ACL_GIVE(handle, made));

static aclError import_fabric(uint32_t device, const void *shareable, drv_mem_handle_t **out)
{
	struct MemShareHandle fabric;
	int64_t here = 0;
	uint32_t server;
	uint64_t number = 0;
	aclError error;

	memcpy(&fabric, shareable, sizeof(fabric));
	error = server_of(device, &here)
			?: number_of(ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric, &server, &number);
	if (error == ACL_SUCCESS && (int64_t)server == here)
		error = prepare_peer(device, number);
	return error
		       ?: ACL_CALL(halMemImportFromShareableHandleV2, MEM_HANDLE_TYPE_FABRIC,
				   &fabric, device, out);
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
					     aclrtMemSharedHandleType shareType, uint64_t flags,
					     aclrtDrvMemHandle *handle)
{
	drv_mem_handle_t *made = NULL;
	struct core_context *context;
	uint64_t number;
	aclError error = ACL_IS_NULL(shareableHandle) ?: ACL_IS_NULL(handle) ?: ACL_IS_SET(flags)
			?: acl_current(&context) ?: check_share_type(shareType);

	if (error != ACL_SUCCESS)
		return error;
	memcpy(&number, shareableHandle, sizeof(number));
	error = shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
			? import_fabric(context->device, shareableHandle, &made)
			: import_number(context->device, context->device, number, &made);
	return error ?: ACL_GIVE(handle, made);
}

/* A key is open as often as it stands here. */
struct import {
	TAILQ_ENTRY(import) link;
	char key[CORE_KEY_BYTES];
	DVdeviceptr va;
	npu_stack closed; /* by whom */
};
static TAILQ_HEAD(, import) imports = TAILQ_HEAD_INITIALIZER(imports);
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;

#define CLOSED_MAX 64u
static struct import closed[CLOSED_MAX]; /* the last, exports too: for messages */
static unsigned closed_count;

static aclError check_key(const char *key)
{
	return RT_WANT(strnlen(key, CORE_KEY_BYTES) < CORE_KEY_BYTES,
		       "key has more than %u characters; it must be one that "
		       "aclrtIpcMemGetExportKey wrote",
		       CORE_KEY_BYTES - 1);
}

ACL_ANSWERS(aclrtIpcMemGetExportKey,
		ACL_IS_NULL(devPtr) ?: ACL_IS_NULL(key)
			?: RT_WANT(size != 0, "size is 0; it must be at least 1")
			?: RT_WANT(len != 0, "len is 0; the key takes %u bytes", CORE_KEY_BYTES)
			?: RT_WANT(flags <= ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
				   "flags is %#llx; it must be ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION (1)",
				   (unsigned long long)flags)
			?: acl_check_context()
			?: ACL_CALL(halShmemCreateHandle, (DVdeviceptr)(uintptr_t)devPtr,
				    size, key, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len)
			?: (flags == 0 ? ACL_SUCCESS
				       : ACL_CALL(halShmemSetAttribute, key,
						  SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER,
						  SHMEM_NO_WLIST_ENABLE)));
ACL_ANSWERS(aclrtIpcMemSetImportPid, ACL_IS_NULL(key) ?: ACL_IS_NULL(pid)
			?: RT_WANT(num > 0 && num <= INT32_MAX,
				   "num is %zu; it must be between 1 and %d", num, INT32_MAX)
			?: check_key(key) ?: acl_check_context()
			?: ACL_CALL(halShmemSetPidHandle, key, pid, (int)num));

aclError aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids, size_t num)
{
	aclError error = ACL_IS_NULL(key) ?: ACL_IS_NULL(serverPids) ?: ACL_IS_ZERO(num)
			?: check_key(key) ?: acl_check_context();

	for (size_t i = 0; i < num && error == ACL_SUCCESS; i++) {
		const aclrtServerPid *of = &serverPids[i];

		if (of->pid == NULL || of->num == 0 || of->num > INT32_MAX)
			return rt_invalid(
				"serverPids[%zu] has %zu process ids at %p; 1 to %d are taken", i,
				of->num, (void *)of->pid, INT32_MAX);
		error = ACL_CALL(halShmemSetPodPid, key, of->sdid, of->pid, (int)of->num);
	}
	return error;
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
	struct core_context *context;
	struct ShmemGetInfo info = { 0 };
	struct import *entry;
	aclError error =
		ACL_IS_NULL(devPtr) ?: ACL_IS_NULL(key)
			?: RT_WANT(flags <= ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS,
				   "flags is %#llx; it must be ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS (1)",
				   (unsigned long long)flags)
			?: check_key(key) ?: acl_current(&context);

	if (error != ACL_SUCCESS)
		return error;
	entry = calloc(1, sizeof(*entry));
	if (entry == NULL)
		return core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				 "no host memory for one more imported key");
	memcpy(entry->key, key, strlen(key) + 1);
	if (flags != 0)
		error = ACL_CALL(halShmemInfoGet, key, &info)
				?: acl_enable_peer(context->device, info.phyDevid);
	error = error ?: ACL_CALL(halShmemOpenHandleByDevId, context->device, key, &entry->va);
	if (error != ACL_SUCCESS) {
		free(entry);
		return error;
	}
	*devPtr = (void *)(uintptr_t)entry->va;
	LOCKED(&imports_lock);
	TAILQ_INSERT_TAIL(&imports, entry, link); /* the oldest of a key is closed first */
	return ACL_SUCCESS;
}

static void tell_closed(const char *key, aclError error)
{
	for (unsigned i = closed_count; i < closed_count + CLOSED_MAX; i++) /* the newest last */
		if (*key && strcmp(closed[i % CLOSED_MAX].key, key) == 0) {
			char *by = npu_stack_words(closed[i % CLOSED_MAX].closed);

			core_fail(error, "this process has closed the key \"%s\" already, by %s",
				  key, by ?: "aclrtIpcMemClose (NPUSIM_STACKS=short says where)");
			free(by);
		}
}

/* Closes the oldest import of the key here; a key that was not imported is taken for an export of
 * this process. */
aclError aclrtIpcMemClose(const char *key)
{
	struct import *entry;
	aclError error = ACL_IS_NULL(key) ?: check_key(key) ?: acl_check_context();

	if (error != ACL_SUCCESS)
		return error;
	pthread_mutex_lock(&imports_lock);
	TAILQ_FOREACH(entry, &imports, link)
	if (strcmp(entry->key, key) == 0)
		break;
	if (entry != NULL)
		TAILQ_REMOVE(&imports, entry, link);
	pthread_mutex_unlock(&imports_lock);
	error = entry != NULL ? ACL_CALL(halShmemCloseHandle, entry->va)
			      : ACL_CALL(halShmemDestroyHandle, key);
	LOCKED(&imports_lock);
	if (error == ACL_SUCCESS) {
		strcpy(closed[closed_count % CLOSED_MAX].key, key);
		closed[closed_count++ % CLOSED_MAX].closed = npu_stack_here();
		free(entry);
	} else if (entry != NULL) { /* it is still open: back to where it was found first */
		TAILQ_INSERT_HEAD(&imports, entry, link);
	} else {
		tell_closed(key, error);
	}
	return error;
}

/* The 910B and 910C have one way from a device to another, HCCS: advising it changes nothing, the
 * others are not there. */
ACL_ANSWERS(aclrtIpcMemSetAttr,
		RT_WANT(key != NULL, "key is NULL; it must be an exported key")
			?: RT_WANT(type == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK,
				   "type is %d; it must be ACL_RT_IPC_MEM_ATTR_ACCESS_LINK (0)",
				   (int)type)
			?: RT_WANT(attr <= ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH,
				   "attr is %llu; it must be between 0 and %d",
				   (unsigned long long)attr,
				   ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH)
			?: (attr == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS
				    ? ACL_SUCCESS
				    : core_fail(ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED,
					       "attr is %llu; devices are linked by HCCS here "
					       "(ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS, 1)",
					       (unsigned long long)attr)));
