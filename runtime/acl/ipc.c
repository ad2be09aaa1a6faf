/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares memory of aclrtMalloc between processes, by key (aclrtIpcMem*). Owns the list of keys
 * that this process imported: one call closes both an export and an import, and only this list
 * tells which of the two a key is.
 */
#include "acl-internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define KEY_BYTES 65u

/* A key is open as often as it stands here. */
struct import {
	TAILQ_ENTRY(import) link;
	char key[KEY_BYTES];
	DVdeviceptr va;
};
static TAILQ_HEAD(, import) imports = TAILQ_HEAD_INITIALIZER(imports);
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;

/* Adds an entry at the end, so that the oldest import of a key is closed first. False: no host
 * memory. */
static bool add_entry(const char *key, DVdeviceptr va)
{
	struct import *entry = calloc(1, sizeof(*entry));

	if (entry == NULL)
		return false;
	memcpy(entry->key, key, strlen(key) + 1);
	entry->va = va;
	pthread_mutex_lock(&imports_lock);
	TAILQ_INSERT_TAIL(&imports, entry, link);
	pthread_mutex_unlock(&imports_lock);
	return true;
}

static aclError check_key(const char *call, const char *key)
{
	return RT_WANT(call, strnlen(key, KEY_BYTES) < KEY_BYTES,
		       "key has more than %u characters; it must be one that "
		       "aclrtIpcMemGetExportKey wrote",
		       KEY_BYTES - 1);
}

ACL_EXPORT aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len,
					    uint64_t flags)
{
	aclError error =
		ACL_IS_NULL(devPtr) ?: ACL_IS_NULL(key)
			?: RT_WANT(__func__, size != 0, "size is 0; it must be at least 1")
			?: RT_WANT(__func__, len != 0, "len is 0; the key takes %u bytes",
				   KEY_BYTES)
			?: RT_WANT(__func__,
				   flags <= ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
				   "flags is %#llx; it must be ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION (1)",
				   (unsigned long long)flags)
			?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemCreateHandle, (DVdeviceptr)(uintptr_t)devPtr,
				    size, key, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len);

	if (error == ACL_SUCCESS && flags != 0)
		error = ACL_CALL(__func__, halShmemSetAttribute, key,
				 SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER, SHMEM_NO_WLIST_ENABLE);
	return error;
}

ACL_EXPORT aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
	ACL_ANSWERS(ACL_IS_NULL(key) ?: ACL_IS_NULL(pid)
			?: RT_WANT(__func__, num > 0 && num <= INT32_MAX,
				   "num is %zu; it must be between 1 and %d", num, INT32_MAX)
			?: check_key(__func__, key) ?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemSetPidHandle, key, pid, (int)num));

ACL_EXPORT aclError aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids,
						    size_t num)
{
	aclError error = ACL_IS_NULL(key) ?: ACL_IS_NULL(serverPids) ?: ACL_IS_ZERO(num)
			?: check_key(__func__, key) ?: acl_check_context(__func__);

	for (size_t i = 0; i < num && error == ACL_SUCCESS; i++) {
		const aclrtServerPid *of = &serverPids[i];

		if (of->pid == NULL || of->num == 0 || of->num > INT32_MAX)
			return rt_invalid(__func__,
					  "serverPids[%zu] has %zu process ids at %p; 1 to %d are "
					  "taken",
					  i, of->num, (void *)of->pid, INT32_MAX);
		error = ACL_CALL(__func__, halShmemSetPodPid, key, of->sdid, of->pid, (int)of->num);
	}
	return error;
}

ACL_EXPORT aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
	struct core_context *context;
	struct ShmemGetInfo info = { 0 };
	DVdeviceptr va = 0;
	aclError error =
		ACL_IS_NULL(devPtr) ?: ACL_IS_NULL(key)
			?: RT_WANT(__func__, flags <= ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS,
				   "flags is %#llx; it must be ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS (1)",
				   (unsigned long long)flags)
			?: check_key(__func__, key) ?: acl_current(__func__, &context);

	if (error != ACL_SUCCESS)
		return error;
	if (flags != 0)
		error = ACL_CALL(__func__, halShmemInfoGet, key, &info)
				?: acl_enable_peer(__func__, context->device, info.phyDevid);
	error = error ?: ACL_CALL(__func__, halShmemOpenHandleByDevId, context->device, key, &va);
	if (error != ACL_SUCCESS)
		return error;
	if (!add_entry(key, va)) {
		npu_call(core_driver(), halShmemCloseHandle, va);
		return acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, __func__,
				"no host memory for one more imported key");
	}
	*devPtr = (void *)(uintptr_t)va;
	return ACL_SUCCESS;
}

/* Closes the oldest import of the key here; a key that was not imported is taken for an export of
 * this process. */
ACL_EXPORT aclError aclrtIpcMemClose(const char *key)
{
	struct import *entry;
	aclError error = ACL_IS_NULL(key) ?: check_key(__func__, key)
			?: acl_check_context(__func__);

	if (error != ACL_SUCCESS)
		return error;
	pthread_mutex_lock(&imports_lock);
	TAILQ_FOREACH(entry, &imports, link)
	if (strcmp(entry->key, key) == 0)
		break;
	if (entry != NULL)
		TAILQ_REMOVE(&imports, entry, link);
	pthread_mutex_unlock(&imports_lock);
	if (entry == NULL)
		return ACL_CALL(__func__, halShmemDestroyHandle, key);
	error = ACL_CALL(__func__, halShmemCloseHandle, entry->va);
	if (error == ACL_SUCCESS) {
		free(entry);
	} else { /* it is still open: back to where it was found first */
		pthread_mutex_lock(&imports_lock);
		TAILQ_INSERT_HEAD(&imports, entry, link);
		pthread_mutex_unlock(&imports_lock);
	}
	return error;
}

/* The 910B and 910C have one way from a device to another, HCCS: advising it changes nothing, the
 * others are not there. */
ACL_EXPORT aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr)
	ACL_ANSWERS(
		RT_WANT(__func__, key != NULL, "key is NULL; it must be an exported key")
			?: RT_WANT(__func__, type == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK,
				   "type is %d; it must be ACL_RT_IPC_MEM_ATTR_ACCESS_LINK (0)",
				   (int)type)
			?: RT_WANT(__func__,
				   attr <= ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH,
				   "attr is %llu; it must be between 0 and %d",
				   (unsigned long long)attr,
				   ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH)
			?: (attr == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS
				    ? ACL_SUCCESS
				    : acl_fail(ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED, __func__,
					       "attr is %llu; devices are linked by HCCS here "
					       "(ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS, 1)",
					       (unsigned long long)attr)));
