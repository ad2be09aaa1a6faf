/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, their ids and attributes, peer access, contexts. What holds for every function, the
 * id spaces too: acl_rt.h. Include acl/acl.h, not this.
 */
#ifndef NPUSIM_ACL_RT_DEVICE_H
#define NPUSIM_ACL_RT_DEVICE_H

#include "types.h"

NPUSIM_ACL_BEGIN

/* --- devices -------------------------------------------------------------------------------- */

/**
 * aclrtSetDevice:
 * @deviceId: 0 to the number of devices - 1.
 *
 * Makes the device the calling thread's, and its primary context the thread's current one. The
 * first call for a device opens it and makes the primary context with its default stream; each
 * further call counts up. Without aclInit it starts the runtime.
 *
 * Returns: 0; 507033: the device cannot be opened.
 * Time: driver, the first time.
 */
aclError aclrtSetDevice(int32_t deviceId);

/**
 * aclrtResetDevice:
 * @deviceId: a device that was set.
 *
 * Takes back one aclrtSetDevice. The last one waits for the work of the primary context, and
 * closes the device: the primary context, its streams, and this process's memory, mappings and
 * handles on the device are gone, in every thread.
 *
 * Returns: 0; 507007: the device is not set.
 * Time: waits.
 */
aclError aclrtResetDevice(int32_t deviceId);

/**
 * aclrtResetDeviceForce:
 * As aclrtResetDevice, however often the device was set.
 */
aclError aclrtResetDeviceForce(int32_t deviceId);

/**
 * aclrtGetDevice:
 * @deviceId: out: the device of the current context.
 *
 * Context: needed.
 */
aclError aclrtGetDevice(int32_t *deviceId);

/**
 * aclrtGetDeviceCount:
 * @count: out: how many devices there are, or how many ASCEND_RT_VISIBLE_DEVICES lists.
 */
aclError aclrtGetDeviceCount(uint32_t *count);

/**
 * aclrtGetRunMode:
 * @runMode: out: ACL_HOST.
 */
aclError aclrtGetRunMode(aclrtRunMode *runMode);

/**
 * aclrtSynchronizeDevice:
 *
 * Waits for all work on all streams of the current context; other contexts of its device go on, as
 * with CANN's runtime, though CANN's pages say that it waits for the device.
 *
 * Context: needed.
 * Returns: 0, or the code of work that failed.
 * Time: waits.
 */
aclError aclrtSynchronizeDevice(void);

/**
 * aclrtSynchronizeDeviceWithTimeout:
 * @timeout: in ms, from 1; -1 waits for ever.
 *
 * As aclrtSynchronizeDevice.
 *
 * Returns: also 107000: @timeout is 0 or below -1; 507046: not done in time, and the work goes on.
 */
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/**
 * aclrtSetTsDevice:
 * @tsId: ACL_TS_ID_AICORE or ACL_TS_ID_AIVECTOR.
 *
 * Chooses a task scheduler; a 910B or 910C has one for all, so nothing changes.
 *
 * Returns: 0; 100000: another @tsId.
 */
aclError aclrtSetTsDevice(aclrtTsId tsId);

/**
 * aclrtGetDeviceUtilizationRate:
 * @utilizationInfo: in and out: utilizationExtend must be null; the rest is filled in. On the
 *   model memoryUtilization is the part of the HBM in use; no cores are modelled, they are 0.
 *
 * Returns: 0; 100000: utilizationExtend is not null.
 */
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo);

/**
 * aclrtQueryDeviceStatus:
 * @deviceStatus: out.
 */
aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus);

/**
 * aclrtGetDeviceInfo:
 * @attr: what to ask for.
 * @value: out: a number, or bytes for sizes.
 *
 * Returns: 0; 107000: no such device or no such @attr; 207000: this SoC has no such thing.
 * Since: 8.5.
 */
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);

/**
 * aclrtDeviceGetUuid:
 * @uuid: out: 16 bytes that no other device has; the same in every process of the node.
 *
 * Since: 8.5.
 */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid);

/**
 * aclrtGetDeviceCapability:
 * @devFeatureType: a feature.
 * @value: out: ACL_DEV_FEATURE_SUPPORT or ACL_DEV_FEATURE_NOT_SUPPORT.
 *
 * Returns: 0; 107000: no such feature.
 * Since: 8.5.
 */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
				  int32_t *value);

/**
 * aclrtDeviceGetStreamPriorityRange:
 * @leastPriority: out, or null: the lowest priority, the largest number.
 * @greatestPriority: out, or null: the highest priority, the smallest number.
 *
 * Context: needed.
 * Since: 8.5.
 */
aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority);

/* --- ids ------------------------------------------------------------------------------------ */

/**
 * aclrtGetPhyDevIdByLogicDevId:
 * @logicDevId: a user id, whatever the name says: CANN's documents own up to it and offer
 *   aclrtGetPhyDevIdByUserDevId.
 * @phyDevId: out: its physical id.
 *
 * Returns: 0; 107000: the id is below 0; 107001: there is no such device.
 * Since: 8.5.
 */
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId);

/**
 * aclrtGetLogicDevIdByPhyDevId:
 * @phyDevId: a physical id.
 * @logicDevId: out: its user id, whatever the name says.
 *
 * Returns: 0; 107000: the id is below 0; 107001: the device is not visible.
 * Since: 8.5.
 */
aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId);

/**
 * aclrtGetLogicDevIdByUserDevId:
 * @userDevid: a user id.
 * @logicDevId: out: its logical id, which aclrtMemSetAccess takes.
 *
 * Returns: 0; 107000: the id is below 0; 107001: there is no such device.
 * Since: 8.5.
 */
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId);

/**
 * aclrtGetUserDevIdByLogicDevId:
 * @logicDevId: a logical id that ASCEND_RT_VISIBLE_DEVICES lists, if it is set.
 * @userDevid: out: its user id.
 *
 * Returns: 0; 107000: the id is below 0; 107001: the device is not visible.
 * Since: 8.5.
 */
aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid);

/**
 * aclrtGetUserDevIdByPhyDevId:
 * As aclrtGetLogicDevIdByPhyDevId, by a name that says that it is a user id.
 *
 * Since: 9.1.
 */
aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t *const userDevId);

/**
 * aclrtGetPhyDevIdByUserDevId:
 * As aclrtGetPhyDevIdByLogicDevId, by a name that says that it takes a user id.
 *
 * Since: 9.1.
 */
aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId);

/**
 * aclrtDeviceGetBareTgid:
 * @pid: out: this process as the driver knows it: its id on the host, also inside of a container.
 *   Others put it into their white lists.
 */
aclError aclrtDeviceGetBareTgid(int32_t *pid);

/* --- peers ---------------------------------------------------------------------------------- */

/**
 * aclrtDeviceCanAccessPeer:
 * @canAccessPeer: out: 1 if @deviceId could access @peerDeviceId, else 0.
 * @peerDeviceId: another device.
 *
 * Returns: 0; 100000: both are the same; 107000: @canAccessPeer is null; 107001: no such
 *   device.
 */
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId);

/**
 * aclrtDeviceEnablePeerAccess:
 * @peerDeviceId: a device that may access the current one from now on, and the other way round.
 * @flags: 0.
 *
 * Once more is harmless. Importing another device's memory does this by itself.
 *
 * Context: needed.
 * Returns: 0; 200006: @flags is not 0; 100000: it is the current device; 107001: no such device.
 * Time: driver.
 */
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);

/**
 * aclrtDeviceDisablePeerAccess:
 * @peerDeviceId: a device.
 *
 * Context: needed.
 * Returns: 0; 100000: it is the current device; 107001: no such device.
 * Time: driver.
 */
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/**
 * aclrtDevicePeerAccessStatus:
 * @peerDeviceId: another device.
 * @status: out: 1 if access between them is enabled, else 0.
 *
 * Returns: 0; 107001: no such device.
 * Since: 8.5.
 */
aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status);

/**
 * aclrtGetDevicesTopo:
 * @otherDeviceId: another device.
 * @value: out: one of ACL_RT_DEVS_TOPOLOGY_*: HCCS between 910Bs, SIO between the dies of a 910C.
 *
 * Since: 8.5.
 */
aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value);

/* --- contexts ------------------------------------------------------------------------------- */

/**
 * aclrtCreateContext:
 * @context: out: a new context, to be given back by aclrtDestroyContext.
 * @deviceId: its device, which need not be set.
 *
 * Makes it the calling thread's current context.
 *
 * Time: driver.
 */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/**
 * aclrtDestroyContext:
 * @context: one of aclrtCreateContext, not a primary one.
 *
 * Its streams and events are gone with it; memory is not, it belongs to the process.
 *
 * Returns: 0; 107000 or 107002: no such context.
 * Time: waits.
 */
aclError aclrtDestroyContext(aclrtContext context);

/**
 * aclrtSetCurrentContext:
 * @context: any live context of this process.
 *
 * Returns: 0; 107000 or 107002: no such context.
 */
aclError aclrtSetCurrentContext(aclrtContext context);

/**
 * aclrtGetCurrentContext:
 * @context: out: the calling thread's.
 *
 * Context: needed.
 */
aclError aclrtGetCurrentContext(aclrtContext *context);

/**
 * aclrtGetPrimaryCtxState:
 * @flags: reserved: null.
 * @active: out: 1 if the device has its primary context in this process, else 0.
 *
 * Returns: 0; 100000: @flags is not null.
 * Since: 8.5.
 */
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active);

/**
 * aclrtCtxGetCurrentDefaultStream:
 * @stream: out: the stream that null stands for in the current context; not to be destroyed.
 *
 * Context: needed.
 * Since: 8.5.
 */
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

NPUSIM_ACL_END

#endif
