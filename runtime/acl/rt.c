/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libruntime.so that programs call beside the ACL: the checks of CANN's, and the
 * same core below.
 */
#include "runtime/rt.h"

#include "acl-internal.h"

#define HOST_AICPU  8  /* MODULE_TYPE_HOST_AICPU: a program cannot ask about it */
#define MAX_DEVICES 64 /* RT_MAX_DEV_NUM */

#define RT_IS_NULL(arg) \
	RT_WANT(__func__, (arg) != NULL, #arg " is NULL; it must point to something")
#define RT_IS_ZERO(arg) \
	RT_WANT(__func__, (arg) > 0, #arg " is %lld; it must be at least 1", (long long)(arg))

static aclError facts(const char *call, void *handle, struct core_stream_facts *out)
{
	struct core_stream *stream;

	return core_stream_find_any(handle, call, &stream)
		       ?: ACL_GIVE(out, core_stream_facts(stream));
}

ACL_ANSWERS_WITH(rtStreamGetSqid, struct core_stream_facts found,
	RT_IS_NULL(sqId) ?: facts(__func__, stm, &found) ?: ACL_GIVE(sqId, found.sq));
ACL_ANSWERS_WITH(rtStreamGetCqid, struct core_stream_facts found,
	RT_IS_NULL(cqId) ?: RT_IS_NULL(logicCqId) ?: facts(__func__, stm, &found)
			?: ACL_GIVE(cqId, found.cq) ?: ACL_GIVE(logicCqId, found.logic_cq));

ACL_ANSWERS(rtGetDevResAddress, ((void)resInfo, (void)addrInfo, acl_fail_unmodelled(__func__)));
ACL_ANSWERS(rtReleaseDevResAddress, ((void)resInfo, acl_fail_unmodelled(__func__)));

ACL_ANSWERS(rtDeviceGetBareTgid,
	    RT_IS_NULL(pid) ?: acl_named(__func__, aclrtDeviceGetBareTgid((int32_t *)pid)));

static aclError peers(const char *call, uint32_t device, uint32_t peer, uint32_t *out)
{
	return RT_WANT(call, device < MAX_DEVICES && peer < MAX_DEVICES,
		       "devIdDes is %u and phyIdSrc %u; both must be below %d", device, peer,
		       MAX_DEVICES)
		       ?: core_device_logic((int32_t)device, "devIdDes", call, out);
}

ACL_ANSWERS_WITH(rtGetDeviceInfo, uint32_t logic = 0,
	RT_WANT(__func__, moduleType != HOST_AICPU,
		       "moduleType is %d, the host's AICPU, which is no device's", moduleType)
		       ?: RT_IS_NULL(val) ?: acl_check_driver(__func__)
		       ?: acl_asked_device(__func__, deviceId, &logic)
		       ?: ACL_CALL(__func__, halGetDeviceInfo, logic, moduleType, infoType, val));

ACL_ANSWERS(rtGetLogicDevIdByUserDevId,
	    RT_IS_NULL(logicDevId)
		    ?: acl_named(__func__, aclrtGetLogicDevIdByUserDevId(userDevId, logicDevId)));
ACL_ANSWERS(rtGetDevicePhyIdByIndex, RT_IS_NULL(phyId) ?: acl_check_driver(__func__)
			?: ACL_CALL(__func__, drvDeviceGetPhyIdByIndex, devIndex, phyId));

ACL_ANSWERS_WITH(rtEnableP2P, uint32_t logic = 0,
	acl_check_driver(__func__)
		       ?: peers(__func__, devIdDes, phyIdSrc, &logic)
		       ?: ACL_CALL(__func__, halDeviceEnableP2P, logic, phyIdSrc, flag));
ACL_ANSWERS_WITH(rtDisableP2P, uint32_t logic = 0,
	acl_check_driver(__func__)
		       ?: peers(__func__, devIdDes, phyIdSrc, &logic)
		       ?: ACL_CALL(__func__, halDeviceDisableP2P, logic, phyIdSrc, 0));

ACL_ANSWERS(rtIpcSetMemoryName,
	RT_IS_NULL(ptr) ?: RT_IS_ZERO(byteCount) ?: RT_IS_NULL(name) ?: RT_IS_ZERO(len)
			?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemCreateHandle, (DVdeviceptr)(uintptr_t)ptr,
				    byteCount, name, len));

ACL_ANSWERS(rtIpcDestroyMemoryName, RT_IS_NULL(name) ?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemDestroyHandle, name));

ACL_ANSWERS_WITH(rtIpcOpenMemory, struct core_context *context = NULL; DVdeviceptr va = 0,
	RT_IS_NULL(ptr) ?: RT_IS_NULL(name) ?: acl_current(__func__, &context)
			?: ACL_CALL(__func__, halShmemOpenHandleByDevId, context->device, name, &va)
			?: ACL_GIVE(ptr, (void *)(uintptr_t)va));

ACL_ANSWERS(rtIpcCloseMemory, RT_IS_NULL(ptr) ?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemCloseHandle, (DVdeviceptr)(uintptr_t)ptr));
ACL_ANSWERS(rtSetIpcMemPid, RT_IS_NULL(name) ?: RT_IS_NULL(pid) ?: RT_IS_ZERO(num)
			?: acl_check_context(__func__)
			?: ACL_CALL(__func__, halShmemSetPidHandle, name, pid, num));

ACL_ANSWERS(rtSetIpcMemorySuperPodPid, RT_IS_NULL(name) ?: RT_IS_NULL(pid) ?: RT_IS_ZERO(num)
		       ?: acl_check_context(__func__)
		       ?: ACL_CALL(__func__, halShmemSetPodPid, name, sdid, pid, num));

rtError_t rtMemcpyAsyncWithoutCheckKind(void *dst, uint64_t destMax, const void *src, uint64_t cnt,
					rtMemcpyKind_t kind, rtStream_t stm)
{
	(void)kind;
	return cnt == 0 ? RT_ERROR_NONE
			: acl_named(__func__, aclrtMemcpyAsync(dst, destMax, src, cnt,
							       ACL_MEMCPY_DEFAULT, stm));
}
