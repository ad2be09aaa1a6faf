/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, their ids, attributes and peers, and contexts: the ACL face of runtime/core/device.c,
 * and queries that the driver answers.
 */
#include "acl-internal.h"

#include "base/lock.h"

#include <stdio.h>
#include <string.h>

ACL_ANSWERS(aclrtSetDevice, core_device_set(deviceId));
ACL_ANSWERS(aclrtResetDevice, core_device_reset(deviceId, false));
ACL_ANSWERS(aclrtResetDeviceForce, core_device_reset(deviceId, true));

ACL_ANSWERS_WITH(aclrtGetDevice, struct core_context *context,
	ACL_IS_NULL(deviceId) ?: acl_current(&context)
			?: ACL_GIVE(deviceId, context->user_device));

ACL_ANSWERS_WITH(aclrtGetDeviceCount, uint32_t user; uint32_t logic,
	ACL_IS_NULL(count) ?: core_device_count(&user, &logic)
			?: ACL_GIVE(count, user));

ACL_ANSWERS(aclrtGetRunMode, ACL_IS_NULL(runMode) ?: ACL_GIVE(runMode, ACL_HOST));

aclError acl_synchronize(int32_t timeout)
{
	struct core_context *context;

	return acl_current(&context) ?: core_spend(NPU_WORK_DEVICE_SYNC)
		       ?: core_device_synchronize(context->device, context, timeout);
}

ACL_ANSWERS(aclrtSynchronizeDevice, acl_synchronize(-1));
ACL_ANSWERS(aclrtSynchronizeDeviceWithTimeout,
	    acl_check_timeout(timeout, false) ?: acl_synchronize(timeout));

ACL_ANSWERS(aclrtSetTsDevice,
	    ACL_WANT(tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR,
		     "tsId is %d; it must be ACL_TS_ID_AICORE (0) or ACL_TS_ID_AIVECTOR (1)",
		     (int)tsId));

/* ---- contexts ---- */

ACL_ANSWERS(aclrtCreateContext, ACL_IS_NULL(context) ?: core_context_create(deviceId, context));
ACL_ANSWERS(aclrtDestroyContext, ACL_IS_NULL(context) ?: core_context_destroy(context));
ACL_ANSWERS(aclrtSetCurrentContext, ACL_IS_NULL(context) ?: core_context_select(context));

ACL_ANSWERS_WITH(aclrtGetCurrentContext, struct core_context *current,
	ACL_IS_NULL(context) ?: acl_current(&current)
			?: ACL_GIVE(context, core_context_handle(current)));

ACL_ANSWERS_WITH(aclrtGetPrimaryCtxState, bool is_active,
	ACL_IS_NULL(active)
		       ?: ACL_WANT(flags == NULL, "flags is reserved; it must be NULL")
		       ?: core_device_primary_active(deviceId, &is_active)
		       ?: ACL_GIVE(active, is_active));

ACL_ANSWERS(aclrtCtxGetCurrentDefaultStream, ACL_IS_NULL(stream) ?: core_stream_default(stream));

/* ---- what a device is ---- */

/* Asks the driver for the name, or for the version: arch << 16 | chip << 8 | bin, chip 5 the 910B
 * and 910C. False with the message set. */
static bool ask_soc_name(char *out, uint32_t room)
{
	static const char *const bins[256] = { "4", "1", "2", "3", [8] = "2C", [10] = "4-1" };
	int64_t version = 0;
	const char *bin;

	if (core_check_driver() != ACL_SUCCESS)
		return false;
	if (npu_call(core_driver(), halGetSocVersion, 0, out, room) == DRV_ERROR_NONE &&
	    out[0] != '\0')
		return true;
	if (ACL_CALL(halGetDeviceInfo, 0, MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, &version) !=
	    ACL_SUCCESS)
		return false;
	bin = (version >> 8 & 0xff) == 5 ? bins[version & 0xff] : NULL;
	if (bin == NULL)
		acl_unsupported("the driver's hardware version %#llx is no known SoC",
				(unsigned long long)version);
	else
		snprintf(out, room, "Ascend910B%s", bin);
	return bin != NULL;
}

const char *aclrtGetSocName(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char name[64]; /* for good once it is known */
	static bool known;
	LOCKED(&lock);

	CORE_CALLED(__func__);
	if (!known)
		known = ask_soc_name(name, (uint32_t)sizeof(name));
	return known ? name : NULL;
}

/* CANN says -1 where the driver does not know. */
static int32_t utilization(uint32_t logic, int module)
{
	int64_t value = 0;
	drvError_t code = npu_call(core_driver(), halGetDeviceInfo, logic, module,
				   INFO_TYPE_UTILIZATION, &value);

	return code == DRV_ERROR_NONE ? (int32_t)value : -1;
}

static drvError_t memory_info(uint32_t logic, struct MemInfo *out)
{
	memset(out, 0, sizeof(*out));
	return npu_call(core_driver(), halMemGetInfo, logic, MEM_INFO_TYPE_HBM_SIZE, out);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo)
{
	struct MemInfo info;
	uint64_t total, free_bytes;
	uint32_t logic;
	int code = ACL_IS_NULL(utilizationInfo)
		       ?: ACL_WANT(utilizationInfo->utilizationExtend == NULL,
				   "utilizationInfo->utilizationExtend is reserved; it must be "
				   "NULL")
		       ?: core_device_logic(deviceId, "deviceId", &logic);

	if (code != ACL_SUCCESS)
		return code;
	utilizationInfo->cubeUtilization = utilization(logic, MODULE_TYPE_AICORE);
	utilizationInfo->vectorUtilization = utilization(logic, MODULE_TYPE_VECTOR_CORE);
	utilizationInfo->aicpuUtilization = utilization(logic, MODULE_TYPE_AICPU);
	utilizationInfo->memoryUtilization = -1;
	if (memory_info(logic, &info) != DRV_ERROR_NONE)
		return ACL_SUCCESS;
	total = info.phy_info.total + info.phy_info.huge_total;
	free_bytes = info.phy_info.free + info.phy_info.huge_free;
	if (total > 0)
		utilizationInfo->memoryUtilization = (int32_t)((total - free_bytes) * 100 / total);
	return ACL_SUCCESS;
}

ACL_ANSWERS(aclrtQueryDeviceStatus,
	    ACL_IS_NULL(deviceStatus)
		    ?: core_device_logic(deviceId, "deviceId", &(uint32_t){ 0 })
		    ?: ACL_GIVE(deviceStatus, ACL_RT_DEVICE_STATUS_NORMAL));

/* The attributes that are one question to the driver. */
static const struct attribute {
	aclrtDevAttr attr;
	int module, info;
} attributes[] = {
	{ ACL_DEV_ATTR_AICPU_CORE_NUM, MODULE_TYPE_AICPU, INFO_TYPE_CORE_NUM },
	{ ACL_DEV_ATTR_AICORE_CORE_NUM, MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM },
	{ ACL_DEV_ATTR_CUBE_CORE_NUM, MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM },
	{ ACL_DEV_ATTR_VECTOR_CORE_NUM, MODULE_TYPE_VECTOR_CORE, INFO_TYPE_CORE_NUM },
	{ ACL_DEV_ATTR_PHY_CHIP_ID, MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_CHIP_ID },
	{ ACL_DEV_ATTR_SUPER_POD_DEVICE_ID, MODULE_TYPE_SYSTEM, INFO_TYPE_SDID },
	{ ACL_DEV_ATTR_SUPER_POD_SERVER_ID, MODULE_TYPE_SYSTEM, INFO_TYPE_SERVER_ID },
	{ ACL_DEV_ATTR_SUPER_POD_ID, MODULE_TYPE_SYSTEM, INFO_TYPE_SUPER_POD_ID },
	{ ACL_DEV_ATTR_MAINBOARD_ID, MODULE_TYPE_SYSTEM, INFO_TYPE_MAINBOARD_ID },
	{ ACL_DEV_ATTR_HD_CONNECT_TYPE, MODULE_TYPE_SYSTEM, INFO_TYPE_HD_CONNECT_TYPE },
	{ ACL_DEV_ATTR_IS_VIRTUAL, MODULE_TYPE_SYSTEM, INFO_TYPE_RUN_MACH },
};

/* L2 of a 910B and 910C, and the architecture of their cores (dav-c220): CANN's platform_config. */
#define L2_BYTES (INT64_C(192) << 20)
#define NPU_ARCH 2201

/* What has no question of its own. */
static aclError other_attribute(uint32_t logic, aclrtDevAttr attr, int64_t *value)
{
	struct MemInfo info;

	switch ((int)attr) {
	case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
		return core_result(memory_info(logic, &info))
			       ?: ACL_GIVE(value, (int64_t)(info.phy_info.total +
							    info.phy_info.huge_total));
	case ACL_DEV_ATTR_L2_CACHE_SIZE:
		return ACL_GIVE(value, L2_BYTES);
	case ACL_DEV_ATTR_NPU_ARCH:
		return ACL_GIVE(value, NPU_ARCH);
	case ACL_DEV_ATTR_SMP_ID:
	case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
	case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
		break;
	default:
		if (attr >= ACL_DEV_ATTR_WARP_SIZE && attr <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z)
			break;
		return rt_invalid("attr is %d; it must be an ACL_DEV_ATTR_*", (int)attr);
	}
	return acl_unsupported(
		"attr=%d: a 910B or 910C has no such thing, or its driver does not tell",
		(int)attr);
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
	uint32_t logic;
	aclError error = ACL_IS_NULL(value) ?: core_check_driver()
				?: acl_asked_device(deviceId, &logic);

	if (error != ACL_SUCCESS)
		return error;
	for (unsigned i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attr == attr)
			return ACL_CALL(halGetDeviceInfo, logic, attributes[i].module,
					attributes[i].info, value);
	return other_attribute(logic, attr, value);
}

/* Made of what tells devices of one node apart, and nodes: the same in every process. */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
	static const int32_t infos[] = { INFO_TYPE_VERSION, INFO_TYPE_SERVER_ID,
					 INFO_TYPE_SUPER_POD_ID };
	int64_t words[3] = { 0 };
	uint32_t logic, host = 0, physical;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	int code = ACL_IS_NULL(uuid) ?: core_device_logic(deviceId, "deviceId", &logic);

	if (code != ACL_SUCCESS)
		return code;
	npu_call(core_driver(), halGetHostID, &host);
	if (npu_call(core_driver(), drvDeviceGetPhyIdByIndex, logic, &physical) != DRV_ERROR_NONE)
		physical = logic;
	for (size_t i = 0; i < 3; i++)
		npu_call(core_driver(), halGetDeviceInfo, logic, MODULE_TYPE_SYSTEM, infos[i],
			 &words[i]);
	for (size_t i = 0; i < sizeof(words); i++)
		hash = (hash ^ ((const unsigned char *)words)[i]) * UINT64_C(0x100000001b3);
	memcpy(uuid->bytes, &hash, 8);
	memcpy(uuid->bytes + 8, &host, 4);
	memcpy(uuid->bytes + 12, &physical, 4);
	return ACL_SUCCESS;
}

ACL_ANSWERS_WITH(aclrtGetDeviceCapability, uint32_t logic,
	ACL_IS_NULL(value) ?: core_device_logic(deviceId, "deviceId", &logic)
			?: RT_WANT(
				devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV ||
					devFeatureType == ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
				"devFeatureType is %d; it must be an ACL_FEATURE_* (1 or 21)",
				(int)devFeatureType)
			?: ACL_GIVE(value, ACL_DEV_FEATURE_NOT_SUPPORT));

/* ---- ids ---- */

static aclError check_id(const char *argument, int32_t id)
{
	return RT_WANT(id >= 0, "%s is %d; it must be at least 0", argument, id);
}

/* By which the driver takes a peer, too. */
static aclError peer_physical(const char *argument, int32_t user, uint32_t *out)
{
	uint32_t logic;

	return core_device_logic(user, argument, &logic)
		       ?: ACL_CALL(drvDeviceGetPhyIdByIndex, logic, out);
}

static aclError physical_of_user(const char *argument, int32_t user, int32_t *out_physical)
{
	uint32_t physical;

	return check_id(argument, user) ?: peer_physical(argument, user, &physical)
		       ?: ACL_GIVE(out_physical, (int32_t)physical);
}

static aclError user_of_physical(int32_t physical, int32_t *out_user)
{
	uint32_t logic;

	return check_id("phyDevId", physical) ?: core_check_driver()
		       ?: ACL_CALL(drvDeviceGetIndexByPhyId, (uint32_t)physical, &logic)
		       ?: core_logic_to_user(logic, out_user);
}

/* CANN's "logic id" of this one and the next is the user's: its documents say so, and have the same
 * again under better names. */
ACL_ANSWERS(aclrtGetPhyDevIdByLogicDevId,
	    ACL_IS_NULL(phyDevId) ?: physical_of_user("logicDevId", logicDevId, phyDevId));
ACL_ANSWERS(aclrtGetLogicDevIdByPhyDevId,
	    ACL_IS_NULL(logicDevId) ?: user_of_physical(phyDevId, logicDevId));
ACL_ANSWERS(aclrtGetPhyDevIdByUserDevId,
	    ACL_IS_NULL(phyDevId) ?: physical_of_user("userDevId", userDevId, phyDevId));
ACL_ANSWERS(aclrtGetUserDevIdByPhyDevId,
	    ACL_IS_NULL(userDevId) ?: user_of_physical(phyDevId, userDevId));

ACL_ANSWERS_WITH(aclrtGetLogicDevIdByUserDevId, uint32_t logic,
	ACL_IS_NULL(logicDevId) ?: check_id("userDevid", userDevid)
			?: core_device_logic(userDevid, "userDevid", &logic)
			?: ACL_GIVE(logicDevId, (int32_t)logic));

ACL_ANSWERS(aclrtGetUserDevIdByLogicDevId,
	ACL_IS_NULL(userDevid) ?: check_id("logicDevId", logicDevId) ?: core_check_driver()
			?: core_logic_to_user((uint32_t)logicDevId, userDevid));

ACL_ANSWERS_WITH(aclrtDeviceGetBareTgid, pid_t tgid,
	ACL_IS_NULL(pid) ?: core_check_driver()
			?: ACL_GIVE(&tgid, npu_call(core_driver(), drvDeviceGetBareTgid))
			?: (tgid >= 0 ? ACL_GIVE(pid, tgid)
				      : acl_unsupported("the driver does not tell the process's id "
							"on the host")));

/* ---- peers ---- */

static aclError check_other(int32_t device, int32_t peer)
{
	return ACL_WANT(device != peer,
			"device %d and its peer are the same; the peer must be another device",
			device);
}

/* The driver's number of a device, and a peer's: its physical one, or the driver's. */
struct pair {
	uint32_t logic, peer;
};

ACL_ANSWERS_WITH(aclrtDeviceCanAccessPeer, struct pair of; int can = 0,
	check_other(deviceId, peerDeviceId) ?: peer_physical("peerDeviceId", peerDeviceId, &of.peer)
			?: core_device_logic(deviceId, "deviceId", &of.logic)
			?: RT_WANT(canAccessPeer != NULL,
				"canAccessPeer is NULL; it must point to something")
			?: ACL_CALL(halDeviceCanAccessPeer, &can, of.logic, of.peer)
			?: ACL_GIVE(canAccessPeer, can));

/* The current device and the peer, for the two calls that change the access between them. */
static aclError current_and_peer(int32_t peer_device, struct pair *out)
{
	struct core_context *context;

	return acl_current(&context) ?: check_other(context->user_device, peer_device)
		       ?: ACL_GIVE(&out->logic, context->device)
		       ?: peer_physical("peerDeviceId", peer_device, &out->peer);
}

ACL_ANSWERS_WITH(aclrtDeviceEnablePeerAccess, struct pair of,
	(flags == 0 ? ACL_SUCCESS
		    : core_fail(ACL_ERROR_FEATURE_UNSUPPORTED,
			       "flags is %#x; it is reserved and must be 0", flags))
		       ?: current_and_peer(peerDeviceId, &of)
		       ?: ACL_CALL(halDeviceEnableP2P, of.logic, of.peer, flags));
ACL_ANSWERS_WITH(aclrtDeviceDisablePeerAccess, struct pair of,
		 current_and_peer(peerDeviceId, &of)
			 ?: ACL_CALL(halDeviceDisableP2P, of.logic, of.peer, 0));

ACL_ANSWERS_WITH(aclrtDevicePeerAccessStatus, uint32_t enabled = 0; struct pair of,
	ACL_IS_NULL(status)
			?: core_device_logic(deviceId, "deviceId", &of.logic)
			?: peer_physical("peerDeviceId", peerDeviceId, &of.peer)
			?: ACL_CALL(drvGetP2PStatus, of.logic, of.peer, &enabled)
			?: ACL_GIVE(status, (int32_t)enabled));

/* The driver counts kinds of connection from 0; the ACL has a bit for each, in the same order. */
ACL_ANSWERS_WITH(aclrtGetDevicesTopo, uint32_t logic; uint32_t other; int64_t topology = 0,
	ACL_IS_NULL(value)
			?: core_device_logic((int32_t)deviceId, "deviceId", &logic)
			?: core_device_logic((int32_t)otherDeviceId, "otherDeviceId", &other)
			?: ACL_CALL(halGetPairDevicesInfo, logic, other, 0, &topology)
			?: ACL_GIVE(value, UINT64_C(1) << topology));
