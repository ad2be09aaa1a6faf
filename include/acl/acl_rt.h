/* SPDX-License-Identifier: Apache-2.0
 *
 * The ACL runtime API: devices, contexts, streams, events and memory, as in CANN 8.5 to 9.x.
 * Names, values, prototypes and layouts are CANN's, so that programs run unmodified on either.
 * The declarations stand in rt/ by subject; this file says what holds for all of them.
 *
 * Errors. A function answers ACL_SUCCESS (0) or a code, given here by its number; the names are
 * in acl_base_rt.h and error_codes/rt_error_codes.h. After a failure nothing has changed and no
 * output is written, unless said otherwise, and aclGetRecentErrMsg() says in words what was wrong.
 * These are not repeated with each function; one whose answers are not given has 0 and these alone:
 *   - 100000: a pointer is null that is not said to be allowed null;
 *   - 107001: a device id is negative or too large;
 *   - 107002: a context is needed, and the calling thread has no current context
 *     (aclrtSetDevice makes one);
 *   - 107017: memory functions of the driver before any aclrtSetDevice of this process;
 *   - 207000: the backend in use lacks the function (an older driver, for instance);
 *   - 507899: the driver failed or refused for a reason that has no code of its own;
 *   - in the child of a fork after the first use of a device, every call fails: no device context
 *     survives a fork. Fork first, or exec.
 *
 * Said once. Where a function is "as" another, its parameters, context, codes and time are that
 * one's, but for what is said; "also" adds codes. A @stream of which nothing is said is a stream,
 * or null for the default stream of the current context, and the function needs a context; such an
 * @event is one of the process, such a @deviceId a device.
 *
 * Contracts. Where CANN's documents and its driver disagree, NPUSIM_CONTRACT decides: `docs`
 * (default) or `driver`. The codes here are those of `docs`; "driver:" gives the other answer.
 * Such a call leaves a note that says what the other contract would have answered. A program's own
 * hal* calls get the driver's answer in both.
 *
 * Device ids. There are four spaces. User ids count the devices that ASCEND_RT_VISIBLE_DEVICES
 * lists, from 0; logical ids all devices that the process could see; physical ids all devices of
 * the server. What the driver calls its id is the logical one. A parameter is a user id unless
 * said otherwise; unset, and outside of containers, all are the same.
 *
 * Threads. Any function may be called by any thread at any time, also on the same object, but
 * not with an object that another thread is destroying. A thread's current device and context are
 * its own.
 *
 * Ownership. What a ...Create..., ...Malloc..., ...Reserve..., ...Import... or ...Retain...
 * function hands out belongs to the caller, who gives it back by the function named there. Arrays
 * and strings passed in are read before the call returns; data of asynchronous copies must live
 * until they are done. A stale, foreign or made-up pointer or handle answers a code, never a crash.
 *
 * Simulated time. On the model every call, queries too, takes the simulated time of a call. Beyond
 * that, "Time: driver" adds that of a message to the driver, growing with the number of pages;
 * "Time: data" that of moving the data; "Time: waits" until the work waited for is done; "Time:
 * queued" means that the call returns at once and that the work takes effect when it is done in
 * simulated time, so who looks earlier sees the old bytes. Timeouts count simulated time.
 * On hardware there is no simulated time.
 *
 * "Since" names the first CANN release whose acl_rt.h has the function; where it is not said, that
 * is 8.1 or an earlier one.
 *
 * Index. What is modelled, by header; rt/unmodelled.h has the rest. Build files of programs search
 * this very file for a name to learn whether the release has it, so the names stand here too.
 * - rt/system.h: aclInit, aclFinalize, aclFinalizeReference, aclInitCallbackRegister,
 *   aclInitCallbackUnRegister, aclFinalizeCallbackRegister, aclFinalizeCallbackUnRegister,
 *   aclrtGetVersion, aclrtGetSocName, aclGetRecentErrMsg, aclrtPeekAtLastError, aclrtGetLastError,
 *   aclsysGetCANNVersion, aclsysGetVersionStr, aclsysGetVersionNum.
 * - rt/device.h: aclrtSetDevice, aclrtResetDevice, aclrtResetDeviceForce, aclrtGetDevice,
 *   aclrtGetDeviceCount, aclrtGetRunMode, aclrtSynchronizeDevice,
 *   aclrtSynchronizeDeviceWithTimeout, aclrtSetTsDevice, aclrtGetDeviceUtilizationRate,
 *   aclrtQueryDeviceStatus, aclrtGetDeviceInfo, aclrtDeviceGetUuid, aclrtGetDeviceCapability,
 *   aclrtDeviceGetStreamPriorityRange, aclrtGetPhyDevIdByLogicDevId, aclrtGetLogicDevIdByPhyDevId,
 *   aclrtGetLogicDevIdByUserDevId, aclrtGetUserDevIdByLogicDevId, aclrtGetUserDevIdByPhyDevId,
 *   aclrtGetPhyDevIdByUserDevId, aclrtDeviceGetBareTgid, aclrtDeviceCanAccessPeer,
 *   aclrtDeviceEnablePeerAccess, aclrtDeviceDisablePeerAccess, aclrtDevicePeerAccessStatus,
 *   aclrtGetDevicesTopo, aclrtCreateContext, aclrtDestroyContext, aclrtSetCurrentContext,
 *   aclrtGetCurrentContext, aclrtGetPrimaryCtxState, aclrtCtxGetCurrentDefaultStream.
 * - rt/stream.h: aclrtCreateStream, aclrtCreateStreamWithConfig, aclrtDestroyStream,
 *   aclrtDestroyStreamForce, aclrtSynchronizeStream, aclrtSynchronizeStreamWithTimeout,
 *   aclrtStreamQuery, aclrtStreamAbort, aclrtStreamStop, aclrtStreamGetId,
 *   aclrtStreamGetPriority, aclrtStreamGetFlags,
 *   aclrtSetStreamFailureMode, aclrtGetStreamAvailableNum, aclrtStreamWaitEvent,
 *   aclrtStreamWaitEventWithTimeout, aclrtStreamWaitEventWithFlag, aclrtCreateEvent,
 *   aclrtCreateEventWithFlag, aclrtCreateEventExWithFlag, aclrtDestroyEvent, aclrtRecordEvent,
 *   aclrtRecordEventWithFlag, aclrtResetEvent, aclrtQueryEvent, aclrtQueryEventStatus,
 *   aclrtQueryEventWaitStatus, aclrtSynchronizeEvent, aclrtSynchronizeEventWithTimeout,
 *   aclrtEventElapsedTime, aclrtEventGetTimestamp, aclrtGetEventId, aclrtGetEventAvailNum,
 *   aclrtLaunchCallback, aclrtLaunchHostFunc, aclrtSubscribeReport, aclrtUnSubscribeReport,
 *   aclrtProcessReport, aclrtValueWrite, aclrtValueWait, aclrtCreateNotify, aclrtDestroyNotify,
 *   aclrtRecordNotify, aclrtWaitAndResetNotify, aclrtGetNotifyId, aclrtNotifyBatchReset,
 *   aclrtNotifyGetExportKey, aclrtNotifySetImportPid, aclrtNotifySetImportPidInterServer,
 *   aclrtNotifyImportByKey.
 * - rt/memory.h: aclrtMalloc, aclrtMallocAlign32, aclrtMallocCached, aclrtMallocWithCfg,
 *   aclrtMallocForTaskScheduler, aclrtFree, aclrtFreeWithDevSync, aclrtMemFlush,
 *   aclrtMemInvalidate, aclrtCmoAsync, aclrtMallocHost, aclrtMallocHostWithCfg, aclrtFreeHost,
 *   aclrtFreeHostWithDevSync, aclrtHostRegister, aclrtHostRegisterV2, aclrtHostGetDevicePointer,
 *   aclrtHostUnregister, aclrtHostMemMapCapabilities, aclrtMemcpy, aclrtMemcpyAsync,
 *   aclrtMemcpyAsyncWithCondition, aclrtMemcpy2d, aclrtMemcpy2dAsync, aclrtMemcpyBatch,
 *   aclrtMemcpyBatchV2, aclrtMemcpyBatchAsync, aclrtMemcpyBatchAsyncV2, aclrtMemset,
 *   aclrtMemsetAsync, aclrtMemsetD32, aclrtMemsetD32Async, aclrtGetMemInfo, aclrtGetMemUsageInfo,
 *   aclrtPointerGetAttributes, aclrtCheckMemType, aclrtGetMemUceInfo, aclrtMemUceRepair,
 *   aclrtMemP2PMap.
 * - rt/vmm.h: aclrtReserveMemAddress, aclrtReserveMemAddressNoUCMemory, aclrtReleaseMemAddress,
 *   aclrtMallocPhysical, aclrtFreePhysical, aclrtMemGetAllocationGranularity,
 *   aclrtMemGetAllocationPropertiesFromHandle, aclrtMemRetainAllocationHandle, aclrtMapMem,
 *   aclrtMemMapNoAccess, aclrtUnmapMem, aclrtMemSetAccess, aclrtMemGetAccess,
 *   aclrtMemGetAddressRange, aclrtMemExportToShareableHandle, aclrtMemExportToShareableHandleV2,
 *   aclrtMemSetPidToShareableHandle, aclrtMemSetPidToShareableHandleV2,
 *   aclrtMemImportFromShareableHandle, aclrtMemImportFromShareableHandleV2,
 *   aclrtIpcMemGetExportKey, aclrtIpcMemSetImportPid, aclrtIpcMemImportPidInterServer,
 *   aclrtIpcMemImportByKey, aclrtIpcMemClose, aclrtIpcMemSetAttr.
 */
#ifndef INC_EXTERNAL_ACL_ACL_RT_H_
#define INC_EXTERNAL_ACL_ACL_RT_H_

/* CANN's acl_rt.h brings these too, and programs rely on it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"
#include "rt/types.h"
#include "rt/unmodelled-types.h"

#include "rt/system.h"
#include "rt/device.h"
#include "rt/stream.h"
#include "rt/memory.h"
#include "rt/vmm.h"
#include "rt/unmodelled.h"

#endif
