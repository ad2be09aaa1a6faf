/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libruntime.so that programs call beside the ACL: the checks of CANN's, and the
 * same core below.
 */
#include "runtime/rt.h"

#include "acl-internal.h"

#define HOST_AICPU  8  /* MODULE_TYPE_HOST_AICPU: a program cannot ask about it */
#define MAX_DEVICES 64 /* RT_MAX_DEV_NUM */

#define RT_IS_NULL(arg) RT_WANT((arg) != NULL, #arg " is NULL; it must point to something")
#define RT_IS_ZERO(arg) RT_WANT((arg) > 0, #arg " is %lld; it must be at least 1", (long long)(arg))

ACL_ANSWERS_WITH(rtStreamGetSqid, struct core_stream *found,
	RT_IS_NULL(sqId) ?: core_stream_find_any(stm, &found)
			?: ACL_GIVE(sqId, core_stream_facts(found).sq));
ACL_ANSWERS_WITH(rtStreamGetCqid, struct core_stream *found,
	RT_IS_NULL(cqId) ?: RT_IS_NULL(logicCqId) ?: core_stream_find_any(stm, &found)
			?: ACL_GIVE(cqId, core_stream_facts(found).cq)
			?: ACL_GIVE(logicCqId, core_stream_facts(found).logic_cq));

ACL_ANSWERS(rtGetDevResAddress, ((void)resInfo, (void)addrInfo, acl_fail_unmodelled()));
ACL_ANSWERS(rtReleaseDevResAddress, ((void)resInfo, acl_fail_unmodelled()));

ACL_ANSWERS(rtDeviceGetBareTgid, RT_IS_NULL(pid) ?: aclrtDeviceGetBareTgid((int32_t *)pid));

static aclError peers(uint32_t device, uint32_t peer, uint32_t *out)
{
	return RT_WANT(device < MAX_DEVICES && peer < MAX_DEVICES,
		       "devIdDes is %u and phyIdSrc %u; both must be below %d", device, peer,
		       MAX_DEVICES)
		       ?: core_device_logic((int32_t)device, "devIdDes", out);
}

ACL_ANSWERS_WITH(rtGetDeviceInfo, uint32_t logic = 0,
	RT_WANT(moduleType != HOST_AICPU,
		       "moduleType is %d, the host's AICPU, which is no device's", moduleType)
		       ?: RT_IS_NULL(val) ?: core_check_driver()
		       ?: acl_asked_device(deviceId, &logic)
		       ?: ACL_CALL(halGetDeviceInfo, logic, moduleType, infoType, val));

ACL_ANSWERS(rtGetLogicDevIdByUserDevId,
	    RT_IS_NULL(logicDevId) ?: aclrtGetLogicDevIdByUserDevId(userDevId, logicDevId));
ACL_ANSWERS(rtGetDevicePhyIdByIndex, RT_IS_NULL(phyId) ?: core_check_driver()
			?: ACL_CALL(drvDeviceGetPhyIdByIndex, devIndex, phyId));

ACL_ANSWERS_WITH(rtEnableP2P, uint32_t logic = 0,
	core_check_driver() ?: peers(devIdDes, phyIdSrc, &logic)
		       ?: ACL_CALL(halDeviceEnableP2P, logic, phyIdSrc, flag));
ACL_ANSWERS_WITH(rtDisableP2P, uint32_t logic = 0,
	core_check_driver() ?: peers(devIdDes, phyIdSrc, &logic)
		       ?: ACL_CALL(halDeviceDisableP2P, logic, phyIdSrc, 0));

ACL_ANSWERS(rtIpcSetMemoryName,
	RT_IS_NULL(ptr) ?: RT_IS_ZERO(byteCount) ?: RT_IS_NULL(name) ?: RT_IS_ZERO(len)
			?: acl_check_context()
			?: ACL_CALL(halShmemCreateHandle, (DVdeviceptr)(uintptr_t)ptr,
				    byteCount, name, len));

ACL_ANSWERS(rtIpcDestroyMemoryName, RT_IS_NULL(name) ?: acl_check_context()
			?: ACL_CALL(halShmemDestroyHandle, name));

ACL_ANSWERS_WITH(rtIpcOpenMemory, struct core_context *context = NULL; DVdeviceptr va = 0,
	RT_IS_NULL(ptr) ?: RT_IS_NULL(name) ?: acl_current(&context)
			?: ACL_CALL(halShmemOpenHandleByDevId, context->device, name, &va)
			?: ACL_GIVE(ptr, (void *)(uintptr_t)va));

ACL_ANSWERS(rtIpcCloseMemory, RT_IS_NULL(ptr) ?: acl_check_context()
			?: ACL_CALL(halShmemCloseHandle, (DVdeviceptr)(uintptr_t)ptr));
ACL_ANSWERS(rtSetIpcMemPid, RT_IS_NULL(name) ?: RT_IS_NULL(pid) ?: RT_IS_ZERO(num)
			?: acl_check_context() ?: ACL_CALL(halShmemSetPidHandle, name, pid, num));

ACL_ANSWERS(rtSetIpcMemorySuperPodPid, RT_IS_NULL(name) ?: RT_IS_NULL(pid) ?: RT_IS_ZERO(num)
		       ?: acl_check_context() ?: ACL_CALL(halShmemSetPodPid, name, sdid, pid, num));

ACL_ANSWERS(rtMemcpyAsyncWithoutCheckKind,
	    ((void)kind, aclrtMemcpyAsync(dst, destMax, src, cnt, ACL_MEMCPY_DEFAULT, stm)));
