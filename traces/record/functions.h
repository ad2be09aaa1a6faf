/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of an ACL library that the preload library stands in front of. A program that looks
 * one up by dlsym() gets ours too. Sorted by name.
 */
#ifndef NPUSIM_PRELOAD_FUNCTIONS_H
#define NPUSIM_PRELOAD_FUNCTIONS_H

#define PRELOAD_FUNCTIONS(X)                   \
	X(aclrtCmoAsync)                       \
	X(aclrtFree)                           \
	X(aclrtFreeHost)                       \
	X(aclrtFreeHostWithDevSync)            \
	X(aclrtFreePhysical)                   \
	X(aclrtFreeWithDevSync)                \
	X(aclrtHostRegister)                   \
	X(aclrtHostRegisterV2)                 \
	X(aclrtHostUnregister)                 \
	X(aclrtIpcMemClose)                    \
	X(aclrtIpcMemGetExportKey)             \
	X(aclrtIpcMemImportByKey)              \
	X(aclrtIpcMemSetImportPid)             \
	X(aclrtMalloc)                         \
	X(aclrtMallocAlign32)                  \
	X(aclrtMallocCached)                   \
	X(aclrtMallocForTaskScheduler)         \
	X(aclrtMallocHost)                     \
	X(aclrtMallocHostWithCfg)              \
	X(aclrtMallocPhysical)                 \
	X(aclrtMallocWithCfg)                  \
	X(aclrtMapMem)                         \
	X(aclrtMemAllocManaged)                \
	X(aclrtMemExportToShareableHandle)     \
	X(aclrtMemExportToShareableHandleV2)   \
	X(aclrtMemFlush)                       \
	X(aclrtMemImportFromShareableHandle)   \
	X(aclrtMemImportFromShareableHandleV2) \
	X(aclrtMemInvalidate)                  \
	X(aclrtMemMapNoAccess)                 \
	X(aclrtMemP2PMap)                      \
	X(aclrtMemRetainAllocationHandle)      \
	X(aclrtMemSetAccess)                   \
	X(aclrtMemSetPidToShareableHandle)     \
	X(aclrtMemSetPidToShareableHandleV2)   \
	X(aclrtMemcpy)                         \
	X(aclrtMemcpy2d)                       \
	X(aclrtMemcpy2dAsync)                  \
	X(aclrtMemcpyAsync)                    \
	X(aclrtMemcpyAsyncWithCondition)       \
	X(aclrtMemcpyAsyncWithDesc)            \
	X(aclrtMemcpyAsyncWithOffset)          \
	X(aclrtMemcpyBatch)                    \
	X(aclrtMemcpyBatchAsync)               \
	X(aclrtMemcpyBatchAsyncV2)             \
	X(aclrtMemcpyBatchV2)                  \
	X(aclrtMemset)                         \
	X(aclrtMemsetAsync)                    \
	X(aclrtMemsetD32)                      \
	X(aclrtMemsetD32Async)                 \
	X(aclrtReduceAsync)                    \
	X(aclrtReleaseMemAddress)              \
	X(aclrtReserveMemAddress)              \
	X(aclrtReserveMemAddressNoUCMemory)    \
	X(aclrtResetDevice)                    \
	X(aclrtResetDeviceForce)               \
	X(aclrtSetDevice)                      \
	X(aclrtUnmapMem)

/* Functions that it calls for its own sake: they are asked for, never stood in front of. */
#define PRELOAD_ASKED(X)                 \
	X(aclrtGetDevice)                \
	X(aclrtGetDeviceCount)           \
	X(aclrtGetLogicDevIdByUserDevId) \
	X(aclrtGetSocName)

#endif
