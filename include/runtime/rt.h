/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of CANN's libruntime.so that programs without kernels call beside the ACL: names,
 * prototypes and codes are CANN's. libruntime.so is another name of libascendcl.so, in which
 * programs look these up too.
 *
 * They work on the same devices, contexts and streams as the ACL; what acl_rt.h says of errors,
 * threads, device ids and simulated time holds here. Codes common to all: 107000, a pointer is NULL
 * or a size or count is 0; 107001 or 107000, no such device; 107002, "Context: needed" and there is
 * none; 207000, the driver lacks the function.
 */
#ifndef NPUSIM_RUNTIME_RT_H
#define NPUSIM_RUNTIME_RT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A header of CANN's that comes before this one has its types. */
#ifndef CCE_RUNTIME_RT_EXTERNAL_BASE_H
typedef int32_t rtError_t;
#define RT_ERROR_NONE 0

typedef void *rtStream_t;
typedef void *rtNotify_t;
#endif

#ifndef CCE_RUNTIME_RT_EXTERNAL_MEM_H
typedef enum tagRtMemcpyKind {
	RT_MEMCPY_HOST_TO_HOST = 0,
	RT_MEMCPY_HOST_TO_DEVICE = 1,
	RT_MEMCPY_DEVICE_TO_HOST = 2,
	RT_MEMCPY_DEVICE_TO_DEVICE = 3
} rtMemcpyKind_t;
#endif

#ifndef CCE_RUNTIME_RT_EXTERNAL_DEVICE_H
typedef struct {
	uint32_t dieId;
	uint32_t procType;
	uint32_t resType;
	uint32_t resId;
	uint32_t flag;
} rtDevResInfo;
typedef struct {
	uint64_t *resAddress;
	uint32_t *len;
} rtDevResAddrInfo;
#endif

/* ---- streams, notifies ---- */

/**
 * rtStreamGetSqid, rtStreamGetCqid:
 * The driver's numbers of a stream's submission queue, of its completion queue and of the logic
 * one. @stm: NULL is the default stream. Context: needed. 107017 or 100000: no stream.
 */
rtError_t rtStreamGetSqid(const rtStream_t stm, uint32_t *sqId);
rtError_t rtStreamGetCqid(const rtStream_t stm, uint32_t *cqId, uint32_t *logicCqId);
/**
 * rtNotifyGetAddrOffset: where a notify of aclrtCreateNotify lies among the registers of its
 * device. Context: needed. 107017: no such notify.
 */
rtError_t rtNotifyGetAddrOffset(rtNotify_t notify, uint64_t *devAddrOffset);
/** rtGetDevResAddress, rtReleaseDevResAddress: 207000: 910B and 910C have no such addresses. */
rtError_t rtGetDevResAddress(rtDevResInfo *const resInfo, rtDevResAddrInfo *const addrInfo);
rtError_t rtReleaseDevResAddress(rtDevResInfo *const resInfo);

/* ---- devices ---- */

/** rtDeviceGetBareTgid: this process's id as the host of a container has it. */
rtError_t rtDeviceGetBareTgid(uint32_t *pid);
/** rtGetDeviceInfo: @deviceId: a user id; @moduleType, @infoType: the driver's. 207000: the device
 * has no such property. */
rtError_t rtGetDeviceInfo(uint32_t deviceId, int32_t moduleType, int32_t infoType, int64_t *val);
/** rtGetLogicDevIdByUserDevId: as aclrtGetLogicDevIdByUserDevId, before any device is set too. */
rtError_t rtGetLogicDevIdByUserDevId(const int32_t userDevId, int32_t *const logicDevId);
/** rtGetDevicePhyIdByIndex: @devIndex: a logic id. */
rtError_t rtGetDevicePhyIdByIndex(uint32_t devIndex, uint32_t *phyId);
/** rtEnableP2P, rtDisableP2P: access between a device, by its user id, and one by its physical id.
 */
rtError_t rtEnableP2P(uint32_t devIdDes, uint32_t phyIdSrc, uint32_t flag);
rtError_t rtDisableP2P(uint32_t devIdDes, uint32_t phyIdSrc);

/* ---- memory ---- */

/**
 * rtIpcSetMemoryName, rtIpcDestroyMemoryName:
 * Shares memory of aclrtMalloc under a name, which is written to name[len] with its NUL (65 bytes),
 * and ends that. Context: needed.
 */
rtError_t rtIpcSetMemoryName(const void *ptr, uint64_t byteCount, char *name, uint32_t len);
rtError_t rtIpcDestroyMemoryName(const char *name);
/**
 * rtIpcOpenMemory, rtIpcCloseMemory:
 * Maps memory of a name, and unmaps it by the address that it got. Context: needed.
 */
rtError_t rtIpcOpenMemory(void **ptr, const char *name);
rtError_t rtIpcCloseMemory(const void *ptr);
/**
 * rtSetIpcMemPid, rtSetIpcMemorySuperPodPid:
 * Says which processes may open it: of this server, or of the one in the supernode that the device
 * @sdid is of (207000 outside of a supernode).
 */
rtError_t rtSetIpcMemPid(const char *name, int32_t pid[], int32_t num);
rtError_t rtSetIpcMemorySuperPodPid(const char *name, uint32_t sdid, int32_t pid[], int32_t num);
/** rtMemcpyAsyncWithoutCheckKind: aclrtMemcpyAsync, whose direction the addresses tell. Time:
 * queued. */
rtError_t rtMemcpyAsyncWithoutCheckKind(void *dst, uint64_t destMax, const void *src, uint64_t cnt,
					rtMemcpyKind_t kind, rtStream_t stm);

#ifdef __cplusplus
}
#endif

#endif
