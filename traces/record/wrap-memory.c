/* SPDX-License-Identifier: Apache-2.0
 *
 * Records classic allocations, of device and host memory. A size is written as the driver receives
 * it, rounded up as CANN does, so that a replay requests the same.
 */
#include "preload.h"

#define ALIGN_BYTES      UINT64_C(32)
#define PADDING_BYTES    UINT64_C(32)
#define HUGE_ABOVE_BYTES (UINT64_C(1) << 20) /* HUGE_FIRST takes huge pages above this */
#define POLICY_MASK      0xff

static uint32_t page_lg2_of(aclrtMemMallocPolicy policy, uint64_t size)
{
	switch ((int)policy & POLICY_MASK) {
	case ACL_MEM_MALLOC_HUGE_ONLY:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		return 21;
	case ACL_MEM_MALLOC_NORMAL_ONLY:
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		return 12;
	case ACL_MEM_MALLOC_HUGE1G_ONLY:
	case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
		return 30;
	default:
		return size > HUGE_ABOVE_BYTES ? 21 : 12;
	}
}

static uint64_t round_up(uint64_t size, uint64_t more)
{
	return size > UINT64_MAX - more - ALIGN_BYTES
		       ? size
		       : (size + more + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

static void record_device(struct trace_recorder *recorder, const struct trace_call *call,
			  void *const *out, uint64_t size, aclrtMemMallocPolicy policy, bool padded)
{
	bool giant = page_lg2_of(policy, size) == 30;
	uint64_t bytes = round_up(size, padded && !giant ? PADDING_BYTES : 0);

	trace_record_malloc(recorder, call, call->code == ACL_SUCCESS ? *out : NULL, bytes,
			    preload_current_device(call), page_lg2_of(policy, bytes));
}

#define WRAP_DEVICE(name, parameters, arguments, padded) \
	WRAP(name, parameters, arguments,                \
	     record_device(recorder, &call, devPtr, size, policy, padded))
#define WRAP_HOST(name, parameters, arguments, out)                                               \
	WRAP(name, parameters, arguments,                                                         \
	     trace_record_malloc(recorder, &call, call.code == ACL_SUCCESS ? *(out) : NULL, size, \
				 NPU_TRACE_HOST, 12))

WRAP_DEVICE(aclrtMalloc, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),
	    (devPtr, size, policy), true)
WRAP_DEVICE(aclrtMallocAlign32, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),
	    (devPtr, size, policy), false)
WRAP_DEVICE(aclrtMallocCached, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),
	    (devPtr, size, policy), true)
WRAP_DEVICE(aclrtMallocWithCfg,
	    (void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg),
	    (devPtr, size, policy, cfg), false)
WRAP_DEVICE(aclrtMallocForTaskScheduler,
	    (void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg),
	    (devPtr, size, policy, cfg), false)
WRAP_HOST(aclrtMallocHost, (void **hostPtr, size_t size), (hostPtr, size), hostPtr)
WRAP_HOST(aclrtMallocHostWithCfg, (void **ptr, uint64_t size, aclrtMallocConfig *cfg),
	  (ptr, size, cfg), ptr)

/* ---- giving back ---- */

WRAP_END(aclrtFree, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeWithDevSync, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHost, hostPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHostWithDevSync, hostPtr, NPU_TRACE_MFREE)

/* ---- for the record ---- */

WRAP_OTHER(aclrtHostRegister, (void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr),
	   (ptr, size, type, devPtr))
WRAP_OTHER(aclrtHostRegisterV2, (void *ptr, uint64_t size, uint32_t flag), (ptr, size, flag))
WRAP_OTHER(aclrtHostUnregister, (void *ptr), (ptr))
WRAP_OTHER(aclrtMemAllocManaged, (void **ptr, uint64_t size, uint32_t flag), (ptr, size, flag))
WRAP_OTHER(aclrtMemFlush, (void *devPtr, size_t size), (devPtr, size))
WRAP_OTHER(aclrtMemInvalidate, (void *devPtr, size_t size), (devPtr, size))
WRAP_OTHER(aclrtCmoAsync, (void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream),
	   (src, size, cmoType, stream))
WRAP_OTHER(aclrtMemP2PMap, (void *devPtr, size_t size, int32_t dstDevId, uint64_t flags),
	   (devPtr, size, dstDevId, flags))
WRAP_OTHER(aclrtMemSetPidToShareableHandle, (uint64_t shareableHandle, int32_t *pid, size_t pidNum),
	   (shareableHandle, pid, pidNum))
WRAP_OTHER(aclrtMemSetPidToShareableHandleV2,
	   (void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid, size_t pidNum),
	   (shareableHandle, shareType, pid, pidNum))
WRAP_OTHER(aclrtIpcMemGetExportKey,
	   (void *devPtr, size_t size, char *key, size_t len, uint64_t flags),
	   (devPtr, size, key, len, flags))
WRAP_OTHER(aclrtIpcMemSetImportPid, (const char *key, int32_t *pid, size_t num), (key, pid, num))
WRAP_OTHER(aclrtIpcMemImportByKey, (void **devPtr, const char *key, uint64_t flags),
	   (devPtr, key, flags))
WRAP_OTHER(aclrtIpcMemClose, (const char *key), (key))
