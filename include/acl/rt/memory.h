/* SPDX-License-Identifier: Apache-2.0
 *
 * Device and host memory in one piece, copies and fills, questions about memory. What holds for
 * every function: acl_rt.h. Virtual memory is in vmm.h. Include acl/acl.h, not this.
 */
#ifndef NPUSIM_ACL_RT_MEMORY_H
#define NPUSIM_ACL_RT_MEMORY_H

#include "types.h"

NPUSIM_ACL_BEGIN

/* --- device memory -------------------------------------------------------------------------- */

/**
 * aclrtMalloc:
 * @devPtr: out: HBM of the current device, aligned to 64 bytes, to be given back by aclrtFree. The
 *   host cannot read or write it.
 * @size: bytes, not 0; rounded up to a multiple of 32, and 32 more.
 * @policy: the pages. HUGE_FIRST takes 4 KiB pages for 1 MiB or less. What is no policy counts as
 *   HUGE_FIRST.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0 or overflows; 207001: out of memory; 207000: no 1 GiB pages on
 *   this device.
 * Time: driver.
 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/**
 * aclrtMallocAlign32:
 * As aclrtMalloc, but without the 32 bytes more.
 */
aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/**
 * aclrtMallocCached:
 * @policy: ACL_MEM_MALLOC_HUGE_FIRST, HUGE_ONLY, NORMAL_ONLY or HUGE1G_ONLY.
 *
 * As aclrtMalloc; the same memory.
 */
aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/**
 * aclrtMallocWithCfg:
 * @cfg: attributes of the allocation, or null. The module id books the memory under a component's
 *   name (aclrtGetMemUsageInfo); nothing else changes.
 *
 * As aclrtMalloc.
 *
 * Returns: also 100000: @cfg counts attributes but has none.
 */
aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
			    aclrtMallocConfig *cfg);

/**
 * aclrtMallocForTaskScheduler:
 * As aclrtMallocWithCfg: memory that the task scheduler may read too; on the model all memory is
 * such.
 */
aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
				     aclrtMallocConfig *cfg);

/**
 * aclrtFree:
 * @devPtr: the start of an aclrtMalloc...; no address of aclrtReserveMemAddress.
 *
 * Work that still uses the memory is not waited for.
 *
 * Returns: 0; 107000: no such allocation.
 * Time: driver.
 */
aclError aclrtFree(void *devPtr);

/**
 * aclrtFreeWithDevSync:
 * As aclrtFree, but waits for the device's work first.
 *
 * Time: waits. Since: 8.5.
 */
aclError aclrtFreeWithDevSync(void *devPtr);

/**
 * aclrtMemFlush:
 * @devPtr: device memory.
 * @size: bytes, not 0.
 *
 * Writes back what the cache holds of the range; here nothing ever waits there for the host.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0.
 */
aclError aclrtMemFlush(void *devPtr, size_t size);

/**
 * aclrtMemInvalidate:
 * As aclrtMemFlush, but forgets what the cache holds of the range.
 */
aclError aclrtMemInvalidate(void *devPtr, size_t size);

/**
 * aclrtCmoAsync:
 * @src: device memory.
 * @size: bytes, not 0.
 * @cmoType: what to do with the range in the device's L2 cache. The bytes stay as they are.
 *
 * Returns: 0; 100000: @size is 0; 107000: no such @cmoType.
 * Time: queued.
 */
aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream);

/* --- host memory ---------------------------------------------------------------------------- */

/**
 * aclrtMallocHost:
 * @hostPtr: out: pinned host memory, to be given back by aclrtFreeHost.
 * @size: bytes, not 0.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0; 207001: out of memory.
 * Time: driver.
 */
aclError aclrtMallocHost(void **hostPtr, size_t size);

/**
 * aclrtMallocHostWithCfg:
 * @cfg: null, or attributes: ACL_RT_MEM_ATTR_MODULE_ID; ACL_RT_MEM_ATTR_VA_FLAG with vaFlag 0.
 *   vaFlag 1 asks that aclrtHostRegister of the memory give the device the same address.
 *
 * As aclrtMallocHost.
 *
 * Returns: also 107000: another attribute; 207000: vaFlag 1, the answer of drivers older than 25.5,
 *   after which programs take aclrtMallocHost.
 */
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg);

/**
 * aclrtFreeHost:
 * @hostPtr: the start of an aclrtMallocHost....
 *
 * It does not wait. The pages stay until all copies are done that were queued before, and nobody
 * else gets them until then.
 *
 * Returns: 0; 107000: no such allocation.
 * Time: driver.
 */
aclError aclrtFreeHost(void *hostPtr);

/**
 * aclrtFreeHostWithDevSync:
 * As aclrtFreeHost, but waits for the device's work first.
 *
 * Time: waits. Since: 8.5.
 */
aclError aclrtFreeHostWithDevSync(void *hostPtr);

/**
 * aclrtHostRegister:
 * @ptr: memory of the process, aligned to 4 KiB.
 * @size: bytes, not 0.
 * @type: ACL_HOST_REGISTER_MAPPED.
 * @devPtr: out: the address at which the device sees it; for kernels only, not for copies.
 *
 * The memory must outlive aclrtHostUnregister.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0; 207000: no such @type here; 507910: part of the range is
 *   registered.
 * Time: driver.
 */
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);

/**
 * aclrtHostRegisterV2:
 * @ptr: as in aclrtHostRegister.
 * @size: bytes, not 0.
 * @flag: ACL_HOST_REG_MAPPED, ACL_HOST_REG_PINNED or both.
 *
 * aclrtHostGetDevicePointer tells where the device sees it.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0; 107000: @flag is 0 or unknown; 207000: ACL_HOST_REG_IOMEMORY or
 *   ACL_HOST_REG_READONLY; 507910: part of the range is registered.
 * Time: driver. Since: 8.5.
 */
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);

/**
 * aclrtHostGetDevicePointer:
 * @pHost: an address in a registered and mapped range.
 * @pDevice: out: where the device sees it.
 * @flag: 0.
 *
 * Context: needed.
 * Returns: 0; 100000: @flag is not 0; 107000: not registered, or not mapped.
 * Since: 8.5.
 */
aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);

/**
 * aclrtHostUnregister:
 * @ptr: the start of a registered range.
 *
 * It does not wait. Copies that are queued use the memory at their turn: what is there is copied;
 * where the program has unmapped it, the next synchronisation answers 507001.
 *
 * Returns: 0; 507911: not registered.
 * Time: driver.
 */
aclError aclrtHostUnregister(void *ptr);

/**
 * aclrtHostMemMapCapabilities:
 * @hacType: an engine of the device.
 * @capabilities: out: whether the engine can reach registered host memory.
 *
 * Returns: 0; 107000: no such engine.
 * Since: 9.0.
 */
aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
				     aclrtHostMemMapCapability *capabilities);

/* --- copies and fills ----------------------------------------------------------------------- */

/**
 * aclrtMemcpy:
 * @dst: where to. Host memory of any origin, or device memory, also mapped by aclrtMapMem.
 * @destMax: bytes at @dst, at least @count.
 * @src: where from.
 * @count: bytes; 0 is no copy and no error.
 * @kind: one of the first six; the addresses decide, whatever it says.
 *
 * Needs no aclrtMemSetAccess for copies from and to the host. Between two devices it needs peer
 * access; and in one process reserved memory of two devices is copied by aclrtMemcpyAsync alone.
 *
 * Context: needed.
 * Returns: 0; 100000: no such @kind; 107000: @count is more than @destMax; 507899: part of the
 *   range is not mapped, or cannot be reached, or two devices' reserved memory (driver: that is
 *   copied).
 * Time: data.
 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind);

/**
 * aclrtMemcpyAsync:
 * @src: it may change until the copy is done, and must live until then.
 * @kind: ACL_MEMCPY_DEFAULT, or what the addresses say; it is heard only where one of them is
 *   ordinary memory of the process. HOST_TO_BUF_TO_DEVICE: @src is read before the call returns.
 *
 * As aclrtMemcpy. Page-locked host memory (aclrtMallocHost, or registered) is copied when the
 * stream comes to it, and must live until then. With ordinary memory of the process the call waits
 * for the stream, and the copy is done when it returns.
 *
 * Returns: also 107000: @kind is heard and wrong; 207000: both ends on the host; 507899: no memory
 *   has @count bytes. What only shows when its turn comes is in the log then, and the answer of the
 *   next synchronisation: 507001: an address of a device is not mapped, or registered host memory
 *   is gone, or protected, or its file shorter. Bytes before that are copied.
 * Time: queued.
 */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
			  aclrtMemcpyKind kind, aclrtStream stream);

/**
 * aclrtMemcpyAsyncWithCondition:
 * As aclrtMemcpyAsync, in favour of which CANN calls it deprecated.
 */
aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
				       aclrtMemcpyKind kind, aclrtStream stream);

/**
 * aclrtMemcpy2d:
 * @dst: the first row's place.
 * @dpitch: bytes from one row to the next at @dst, at least @width.
 * @src: the first row.
 * @spitch: bytes from one row to the next at @src, at least @width.
 * @width: bytes of a row; 0 is no copy and no error.
 * @height: rows; 0 is no copy and no error.
 * @kind: HOST_TO_DEVICE, DEVICE_TO_HOST, or ACL_MEMCPY_DEFAULT.
 *
 * Context: needed.
 * Returns: 0; 100000: @width is more than a pitch, or no such @kind; 107000: @width is more than
 *   5000000, @height more than 5242880, or the addresses are both on the host or on devices;
 *   207000: @kind is DEVICE_TO_DEVICE; 507899: as aclrtMemcpy.
 * Time: data.
 */
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		       size_t height, aclrtMemcpyKind kind);

/**
 * aclrtMemcpy2dAsync:
 * @kind: as there, or DEVICE_TO_DEVICE.
 *
 * As aclrtMemcpy2d. Ordinary memory of the process is copied before the call returns, as by
 * aclrtMemcpyAsync.
 *
 * Time: queued.
 */
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			    size_t height, aclrtMemcpyKind kind, aclrtStream stream);

/**
 * aclrtMemcpyBatch:
 * @dsts: @numBatches places to copy to.
 * @destMaxs: bytes at each, at least @sizes.
 * @srcs: @numBatches places to copy from.
 * @sizes: bytes of each copy.
 * @numBatches: how many copies, from 1.
 * @attrs: @numAttrs pairs of locations. attrs[k] is for the copies from attrsIndexes[k] up to
 *   attrsIndexes[k + 1], or to the end. Between host and device only.
 * @attrsIndexes: @numAttrs indices, ascending, the first 0, all below @numBatches.
 * @numAttrs: from 1 to @numBatches.
 * @failIndex: out: the copy that failed, or SIZE_MAX if none in particular. Written in any case.
 *
 * The copies of a batch are done in no order. A batch of empty copies is none, and no error.
 *
 * Context: needed.
 * Returns: 0; 100000: @numBatches is 0, a copy is larger than its place, or rsv is not zeros;
 *   107000: the indices or @numAttrs are not as said, a location does not fit its address, or both
 *   ends are on devices or on the host.
 * Time: data. Since: 8.5.
 */
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
			  size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex);

/**
 * aclrtMemcpyBatchV2:
 * As aclrtMemcpyBatch.
 *
 * Time: data. Since: 9.1.
 */
aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
			    size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			    size_t numAttrs);

/**
 * aclrtMemcpyBatchAsync:
 * As aclrtMemcpyBatch.
 *
 * Time: queued. Since: 8.5.
 */
aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
			       size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			       size_t numAttrs, size_t *failIndex, aclrtStream stream);

/**
 * aclrtMemcpyBatchAsyncV2:
 * As aclrtMemcpyBatch.
 *
 * Time: queued. Since: 9.1.
 */
aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
				 size_t numBatches, aclrtMemcpyBatchAttr *attrs,
				 size_t *attrsIndexes, size_t numAttrs, aclrtStream stream);

/**
 * aclrtMemset:
 * @devPtr: device or host memory.
 * @maxCount: bytes there, at least @count.
 * @value: its lowest 8 bits are written to each byte.
 * @count: bytes; 0 is no fill and no error.
 *
 * Context: needed.
 * Returns: 0; 107000: @count is more than @maxCount; 507899: part of the range is not mapped.
 * Time: data.
 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);

/**
 * aclrtMemsetAsync:
 * As aclrtMemset.
 *
 * Time: queued.
 */
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
			  aclrtStream stream);

/**
 * aclrtMemsetD32:
 * @ptr: memory of aclrtMalloc... or aclrtMallocHost..., aligned to 4 bytes.
 * @memSize: bytes there, at least 4 * @N.
 * @value: written to each 32-bit word.
 * @N: words; 0 is no fill and no error.
 *
 * Context: needed.
 * Returns: 0; 100000: @ptr is not aligned or of another origin, or @memSize is too small.
 * Time: data. Since: 9.1.
 */
aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N);

/**
 * aclrtMemsetD32Async:
 * As aclrtMemsetD32.
 *
 * Time: queued. Since: 9.1.
 */
aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N,
			     aclrtStream stream);

/* --- questions ------------------------------------------------------------------------------ */

/**
 * aclrtGetMemInfo:
 * @attr: which memory of the current device. ACL_HBM_MEM: all HBM; ACL_HBM_MEM_HUGE: what pages of
 *   2 MiB and 1 GiB can take; ..._HUGE1G: what pages of 1 GiB can take; ..._NORMAL: what pages of
 *   4 KiB can take; ACL_DDR_*: the device's DDR.
 * @free: out: bytes that nobody holds; other processes of the node count.
 * @total: out: bytes that there are for users.
 *
 * Context: needed.
 * Returns: 0; 107016: no such @attr.
 * Time: driver.
 */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/**
 * aclrtGetMemUsageInfo:
 * @memUsageInfo: out: an array of @inputNum: what each component of this process holds, most
 *   first.
 * @inputNum: from 1.
 * @outputNum: out: how many were written.
 *
 * Returns: 0; 107000: @inputNum is 0.
 * Since: 8.5.
 */
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
			      size_t *outputNum);

/**
 * aclrtPointerGetAttributes:
 * @ptr: any address.
 * @attributes: out: whose memory it is and its page size in bytes. UNREGISTERED: ordinary memory
 *   of the process.
 *
 * Returns: 0; 107017: in a reservation that nothing was ever mapped to; 507899: between
 *   reservations.
 */
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);

/**
 * aclrtCheckMemType:
 * @addrList: @size device addresses.
 * @size: from 1.
 * @memType: ACL_RT_MEM_TYPE_*, one or more.
 * @checkResult: out: 1 if every address is of one of these kinds, else 0.
 * @reserve: 0.
 *
 * Returns: 0; 107000: @size is 0, @memType is unknown or @reserve is not 0.
 * Since: 8.5.
 */
aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType, uint32_t *checkResult,
			   uint32_t reserve);

/**
 * aclrtGetMemUceInfo:
 * @memUceInfoArray: out: an array of @arraySize: ranges with memory errors.
 * @arraySize: how many there is room for.
 * @retSize: out: how many there are; none on the model.
 *
 * Returns: 0; 100000: there are more than @arraySize.
 */
aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize,
			    size_t *retSize);

/**
 * aclrtMemUceRepair:
 * @memUceInfoArray: ranges of aclrtGetMemUceInfo to mend.
 * @arraySize: how many, at most MAX_MEM_UCE_INFO_ARRAY_SIZE.
 *
 * Returns: 0; 100000: too many, or reserved is not zeros.
 */
aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize);

/**
 * aclrtMemP2PMap:
 * @devPtr: memory of the current device.
 * @size: bytes, not 0.
 * @dstDevId: the device that will use it; peer access must be enabled.
 * @flags: 0.
 *
 * Writes the other device's page table now, not when it first touches the memory.
 *
 * Context: needed.
 * Returns: 0; 100000: @size is 0 or @flags is not; 107000: no such device; 507899: not mapped, or
 *   no peer access.
 * Time: driver. Since: 9.0.
 */
aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags);

NPUSIM_ACL_END

#endif
