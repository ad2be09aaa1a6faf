/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the calls for devices, for virtual memory and its sharing, for classic allocations, and
 * copies and memsets, one line each, and one for each item of a batch. Work queued on a stream is
 * recorded when it is queued. Sizes are written as the driver receives them, so that a replay
 * requests the same.
 */
#include "preload.h"

#define ACCESS_LINES_MAX 64
#define BATCH_LINES_MAX  65536
#define ALIGN_BYTES      UINT64_C(32)
#define PADDING_BYTES    UINT64_C(32)
#define HUGE_ABOVE_BYTES (UINT64_C(1) << 20) /* HUGE_FIRST takes huge pages above this */
#define POLICY_MASK      0xff

/* A line, in the wrappers below. */
#define RECORD(verb, ...) TRACE_RECORD(recorder, &call, verb, __VA_ARGS__)

static const void *got(const struct trace_call *call, void *const *out)
{
	return call->code == ACL_SUCCESS ? *out : NULL;
}

#define WRAP_DEVICE(name, verb) \
	WRAP(name, RECORD(verb, .device = preload_device(&call, (uint32_t)deviceId)))
WRAP_DEVICE(aclrtSetDevice, DEVICE_SET)
WRAP_DEVICE(aclrtResetDevice, DEVICE_RESET)
WRAP_DEVICE(aclrtResetDeviceForce, DEVICE_RESET)

#define WRAP_RESERVE(name_)                                                             \
	WRAP(name_, RECORD(RESERVE, .name = TRACE_AT(got(&call, virPtr)), .size = size, \
			   .hint = (uintptr_t)expectPtr, .flags = flags))
WRAP_RESERVE(aclrtReserveMemAddress)
WRAP_RESERVE(aclrtReserveMemAddressNoUCMemory)
WRAP_END(aclrtReleaseMemAddress, virPtr, NPU_TRACE_UNRESERVE)

static uint32_t page_of_attribute(aclrtMemAttr attr)
{
	switch ((int)attr) {
	case ACL_DDR_MEM_NORMAL:
	case ACL_HBM_MEM_NORMAL:
	case ACL_DDR_MEM_P2P_NORMAL:
	case ACL_HBM_MEM_P2P_NORMAL:
	case ACL_MEM_NORMAL:
	case ACL_MEM_P2P_NORMAL:
		return 12;
	case ACL_HBM_MEM_HUGE1G:
	case ACL_HBM_MEM_P2P_HUGE1G:
	case ACL_MEM_HUGE1G:
	case ACL_MEM_P2P_HUGE1G:
		return 30;
	default:
		return 21;
	}
}

WRAP(aclrtMallocPhysical,
     RECORD(CREATE, .name = TRACE_AT(got(&call, handle)), .size = size,
	    .device = prop != NULL ? preload_device_at(&call, &prop->location) : NPU_TRACE_HOST,
	    .page_lg2 = prop != NULL ? page_of_attribute(prop->memAttr) : 0))
WRAP_END(aclrtFreePhysical, handle, NPU_TRACE_RELEASE)
WRAP(aclrtMemRetainAllocationHandle,
     RECORD(RETAIN, .name = TRACE_AT(got(&call, handle)), .at = TRACE_AT(virPtr)))

#define WRAP_MAP(name_, has_)                                                          \
	WRAP(name_, RECORD(MAP, .has = (has_), .name = TRACE_AT(virPtr), .size = size, \
			   .handle = TRACE_AT(handle)))
WRAP_MAP(aclrtMapMem, 0)
WRAP_MAP(aclrtMemMapNoAccess, NPU_TRACE_HAS_NO_ACCESS)
WRAP(aclrtUnmapMem, RECORD(UNMAP, .name = TRACE_AT(virPtr)))

/* Here CANN takes an id of the server, unlike anywhere else. */
static void record_access(struct trace_recorder *recorder, struct trace_call *call, const void *va,
			  size_t size, const aclrtMemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; desc != NULL && i < count && i < ACCESS_LINES_MAX; i++)
		TRACE_RECORD(recorder, call, ACCESS, .name = TRACE_AT(va), .size = size,
			     .device = desc[i].location.type == ACL_MEM_LOCATION_TYPE_DEVICE
					       ? (int64_t)desc[i].location.id
					       : NPU_TRACE_HOST,
			     .flags = (uint64_t)desc[i].flags);
}
WRAP(aclrtMemSetAccess, record_access(recorder, &call, virPtr, size, desc, count))

/* `share` is a number, or the bytes of a fabric handle. */
static uint64_t key_of(const void *share, aclrtMemSharedHandleType type)
{
	if (share == NULL)
		return 0;
	return type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
		       ? trace_key_of_bytes(share, sizeof(aclrtMemFabricHandle))
		       : *(const uint64_t *)share;
}

#define WRAP_EXPORT(name, share)                                                 \
	WRAP(name, RECORD(EXPORT, .key = call.code == ACL_SUCCESS ? (share) : 0, \
			  .handle = TRACE_AT(handle), .flags = flags))
WRAP_EXPORT(aclrtMemExportToShareableHandle, *shareableHandle)
WRAP_EXPORT(aclrtMemExportToShareableHandleV2, key_of(shareableHandle, shareType))
#define WRAP_IMPORT(name_, share, device_)                                               \
	WRAP(name_, RECORD(IMPORT, .name = TRACE_AT(got(&call, handle)), .key = (share), \
			   .device = device_))
WRAP_IMPORT(aclrtMemImportFromShareableHandle, shareableHandle,
	    preload_device(&call, (uint32_t)deviceId))
WRAP_IMPORT(aclrtMemImportFromShareableHandleV2,
	    call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0,
	    preload_current_device(&call))
WRAP_OTHER(aclrtMemSetPidToShareableHandle)
WRAP_OTHER(aclrtMemSetPidToShareableHandleV2)
WRAP_OTHER(aclrtIpcMemGetExportKey)
WRAP_OTHER(aclrtIpcMemSetImportPid)
WRAP_OTHER(aclrtIpcMemImportByKey)
WRAP_OTHER(aclrtIpcMemClose)

/* ---- classic allocations; sizes are rounded up as CANN does ---- */

static uint32_t page_of_policy(aclrtMemMallocPolicy policy, uint64_t size)
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

static void record_malloc(struct trace_recorder *recorder, struct trace_call *call,
			  void *const *out, uint64_t size, aclrtMemMallocPolicy policy, bool padded)
{
	bool giant = page_of_policy(policy, size) == 30;
	uint64_t bytes = round_up(size, padded && !giant ? PADDING_BYTES : 0);

	TRACE_RECORD(recorder, call, MALLOC, .name = TRACE_AT(got(call, out)), .size = bytes,
		     .device = preload_current_device(call),
		     .page_lg2 = page_of_policy(policy, bytes));
}

#define WRAP_MALLOC(name, padded) \
	WRAP(name, record_malloc(recorder, &call, devPtr, size, policy, padded))
WRAP_MALLOC(aclrtMalloc, true)
WRAP_MALLOC(aclrtMallocAlign32, false)
WRAP_MALLOC(aclrtMallocCached, true)
WRAP_MALLOC(aclrtMallocWithCfg, false)
WRAP_MALLOC(aclrtMallocForTaskScheduler, false)

#define WRAP_HOST(name_, out)                                                       \
	WRAP(name_, RECORD(MALLOC, .name = TRACE_AT(got(&call, out)), .size = size, \
			   .device = NPU_TRACE_HOST, .page_lg2 = 12))
WRAP_HOST(aclrtMallocHost, hostPtr)
WRAP_HOST(aclrtMallocHostWithCfg, ptr)

WRAP_END(aclrtFree, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeWithDevSync, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHost, hostPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHostWithDevSync, hostPtr, NPU_TRACE_MFREE)

WRAP_OTHER(aclrtHostRegister)
WRAP_OTHER(aclrtHostRegisterV2)
WRAP_OTHER(aclrtHostUnregister)
WRAP_OTHER(aclrtMemAllocManaged)
WRAP_OTHER(aclrtMemFlush)
WRAP_OTHER(aclrtMemInvalidate)
WRAP_OTHER(aclrtCmoAsync)
WRAP_OTHER(aclrtMemP2PMap)

#define WRAP_COPY(name, bytes) \
	WRAP(name, RECORD(COPY, .at = TRACE_AT(dst), .from = TRACE_AT(src), .size = bytes))
WRAP_COPY(aclrtMemcpy, count)
WRAP_COPY(aclrtMemcpyAsync, count)
WRAP_COPY(aclrtMemcpyAsyncWithCondition, count)
WRAP_COPY(aclrtMemcpy2d, height *(uint64_t)width)
WRAP_COPY(aclrtMemcpy2dAsync, height *(uint64_t)width)

/* Where the pointers are is device memory, which nobody may read here. */
WRAP_OTHER(aclrtMemcpyAsyncWithOffset)
WRAP_OTHER(aclrtMemcpyAsyncWithDesc)
WRAP_OTHER(aclrtReduceAsync)

static void record_batch(struct trace_recorder *recorder, struct trace_call *call,
			 void *const *dsts, void *const *srcs, const size_t *sizes, size_t count)
{
	bool readable = dsts != NULL && srcs != NULL && sizes != NULL && count <= BATCH_LINES_MAX;

	for (size_t i = 0; readable && i < count; i++)
		TRACE_RECORD(recorder, call, COPY, .at = TRACE_AT(dsts[i]),
			     .from = TRACE_AT(srcs[i]), .size = sizes[i]);
	if (!readable || count == 0)
		TRACE_RECORD(recorder, call, CALL);
}

#define WRAP_BATCH(name) WRAP(name, record_batch(recorder, &call, dsts, srcs, sizes, numBatches))
WRAP_BATCH(aclrtMemcpyBatch)
WRAP_BATCH(aclrtMemcpyBatchV2)
WRAP_BATCH(aclrtMemcpyBatchAsync)
WRAP_BATCH(aclrtMemcpyBatchAsyncV2)

#define WRAP_FILL(name, pointer, bytes) \
	WRAP(name, RECORD(FILL, .at = TRACE_AT(pointer), .size = bytes))
WRAP_FILL(aclrtMemset, devPtr, count)
WRAP_FILL(aclrtMemsetAsync, devPtr, count)
WRAP_FILL(aclrtMemsetD32, ptr, (uint64_t)N * sizeof(value))
WRAP_FILL(aclrtMemsetD32Async, ptr, (uint64_t)N * sizeof(value))
