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

PRELOAD_EXPORT aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	PRELOAD_BEGIN(aclrtMalloc, , devPtr, size, policy);
	record_device(recorder, &call, devPtr, size, policy, true);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	PRELOAD_BEGIN(aclrtMallocAlign32, , devPtr, size, policy);
	record_device(recorder, &call, devPtr, size, policy, false);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	PRELOAD_BEGIN(aclrtMallocCached, , devPtr, size, policy);
	record_device(recorder, &call, devPtr, size, policy, true);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
					   aclrtMallocConfig *cfg)
{
	PRELOAD_BEGIN(aclrtMallocWithCfg, , devPtr, size, policy, cfg);
	record_device(recorder, &call, devPtr, size, policy, false);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size,
						    aclrtMemMallocPolicy policy,
						    aclrtMallocConfig *cfg)
{
	PRELOAD_BEGIN(aclrtMallocForTaskScheduler, , devPtr, size, policy, cfg);
	record_device(recorder, &call, devPtr, size, policy, false);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	PRELOAD_BEGIN(aclrtMallocHost, , hostPtr, size);
	trace_record_malloc(recorder, &call, call.code == ACL_SUCCESS ? *hostPtr : NULL, size,
			    NPU_TRACE_HOST, 12);
	PRELOAD_END;
}

PRELOAD_EXPORT aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
	PRELOAD_BEGIN(aclrtMallocHostWithCfg, , ptr, size, cfg);
	trace_record_malloc(recorder, &call, call.code == ACL_SUCCESS ? *ptr : NULL, size,
			    NPU_TRACE_HOST, 12);
	PRELOAD_END;
}

/* ---- giving back ---- */

#define FREE(name, pointer)                                                                     \
	PRELOAD_EXPORT aclError name(void *pointer)                                             \
	{                                                                                       \
		PRELOAD_BEGIN(name,                                                             \
			      struct trace_ending ending = trace_place_ends(recorder, pointer), \
			      pointer);                                                         \
		trace_record_place_end(recorder, &call, NPU_TRACE_MFREE, &ending);              \
		PRELOAD_END;                                                                    \
	}

FREE(aclrtFree, devPtr)
FREE(aclrtFreeWithDevSync, devPtr)
FREE(aclrtFreeHost, hostPtr)
FREE(aclrtFreeHostWithDevSync, hostPtr)

/* ---- for the record ---- */

/* A call that no verb is for. */
#define OTHER(name, parameters, ...)                       \
	PRELOAD_EXPORT aclError name parameters            \
	{                                                  \
		PRELOAD_BEGIN(name, , __VA_ARGS__);        \
		trace_record_other(recorder, &call, NULL); \
		PRELOAD_END;                               \
	}

OTHER(aclrtHostRegister, (void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr), ptr,
      size, type, devPtr)
OTHER(aclrtHostRegisterV2, (void *ptr, uint64_t size, uint32_t flag), ptr, size, flag)
OTHER(aclrtHostUnregister, (void *ptr), ptr)
OTHER(aclrtMemAllocManaged, (void **ptr, uint64_t size, uint32_t flag), ptr, size, flag)
OTHER(aclrtMemFlush, (void *devPtr, size_t size), devPtr, size)
OTHER(aclrtMemInvalidate, (void *devPtr, size_t size), devPtr, size)
OTHER(aclrtCmoAsync, (void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream), src, size,
      cmoType, stream)
OTHER(aclrtMemP2PMap, (void *devPtr, size_t size, int32_t dstDevId, uint64_t flags), devPtr, size,
      dstDevId, flags)
OTHER(aclrtMemSetPidToShareableHandle, (uint64_t shareableHandle, int32_t *pid, size_t pidNum),
      shareableHandle, pid, pidNum)
OTHER(aclrtMemSetPidToShareableHandleV2,
      (void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid, size_t pidNum),
      shareableHandle, shareType, pid, pidNum)
OTHER(aclrtIpcMemGetExportKey, (void *devPtr, size_t size, char *key, size_t len, uint64_t flags),
      devPtr, size, key, len, flags)
OTHER(aclrtIpcMemSetImportPid, (const char *key, int32_t *pid, size_t num), key, pid, num)
OTHER(aclrtIpcMemImportByKey, (void **devPtr, const char *key, uint64_t flags), devPtr, key, flags)
OTHER(aclrtIpcMemClose, (const char *key), key)
