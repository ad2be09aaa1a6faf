/* SPDX-License-Identifier: Apache-2.0
 *
 * The one seam of npusim: struct npu_driver, the functions of libascend_hal.so, one member each,
 * with the object as first argument. The runtime above calls nothing else; a backend below
 * (backend-hw: the real driver; backend-sim: the model) fills it in; a wrapper (trace, count,
 * fault) is a driver over a lower driver, and they stack.
 *
 * Contract of each function: facts of the driver's public header and source; see the header of the
 * driver (ascend_hal_base.h) for parameters, and the headers of backend-sim for what the model
 * answers. All results are drvError_t. Every function may be called from any thread. Every call may
 * advance simulated time.
 *
 * The list is append-only and versioned: a driver that was built against a shorter list works with
 * a longer runtime, since `size` tells where it ends and the rest is answered by the `unsupported`
 * table (DRV_ERROR_NOT_SUPPORT).
 */
#ifndef NPUSIM_DRIVER_H
#define NPUSIM_DRIVER_H

#include "hal.h"
#include "place.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(result type, result where the function is missing, name, (parameters), (arguments)) */
#define NPU_DRIVER_OPS(X)                                                                          \
	/* devices */                                                                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvGetPlatformInfo, (uint32_t * info), (info))        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvGetDevNum, (uint32_t * num_dev), (num_dev))        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvGetDevIDs, (uint32_t * devices, uint32_t len),     \
	  (devices, len))                                                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetDeviceInfo,                                     \
	  (uint32_t dev, int32_t module, int32_t info, int64_t * value),                           \
	  (dev, module, info, value))                                                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetPairDevicesInfo,                                \
	  (uint32_t dev, uint32_t other, int32_t info, int64_t * value),                           \
	  (dev, other, info, value))                                                               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetSocVersion,                                     \
	  (uint32_t dev, char *soc_version, uint32_t len), (dev, soc_version, len))                \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetAPIVersion, (int *version), (version))          \
	X(bool, false, halSupportFeature, (uint32_t dev, int feature), (dev, feature))             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetChipCapability,                                 \
	  (uint32_t dev, struct halCapabilityInfo * info), (dev, info))                            \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halDeviceOpen,                                        \
	  (uint32_t dev, halDevOpenIn * in, halDevOpenOut * out), (dev, in, out))                  \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halDeviceClose, (uint32_t dev, halDevCloseIn * in),   \
	  (dev, in))                                                                               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvMemSmmuQuery, (DVdevice dev, uint32_t * ssid),     \
	  (dev, ssid))                                                                             \
	X(pid_t, -1, drvDeviceGetBareTgid, (), ())                                                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvDeviceGetIndexByPhyId,                             \
	  (uint32_t phy, uint32_t * index), (phy, index))                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvDeviceGetPhyIdByIndex,                             \
	  (uint32_t index, uint32_t * phy), (index, phy))                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvDeviceGetTransWay,                                 \
	  (void *src, void *dst, uint8_t *way), (src, dst, way))                                   \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halDeviceCanAccessPeer,                               \
	  (int *can, uint32_t dev, uint32_t peer), (can, dev, peer))                               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halDeviceEnableP2P,                                   \
	  (uint32_t dev, uint32_t peer, uint32_t flag), (dev, peer, flag))                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halDeviceDisableP2P,                                  \
	  (uint32_t dev, uint32_t peer, uint32_t flag), (dev, peer, flag))                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvGetP2PStatus,                                      \
	  (uint32_t dev, uint32_t peer, uint32_t * status), (dev, peer, status))                   \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halGetHostID, (uint32_t * host_id), (host_id))        \
	/* virtual memory */                                                                       \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemAddressReserve,                                 \
	  (void **ptr, size_t size, size_t alignment, void *addr, uint64_t flag),                  \
	  (ptr, size, alignment, addr, flag))                                                      \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemAddressFree, (void *ptr), (ptr))                \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemCreate,                                         \
	  (drv_mem_handle_t * *handle, size_t size, const struct drv_mem_prop *prop,               \
	   uint64_t flag),                                                                         \
	  (handle, size, prop, flag))                                                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemRelease, (drv_mem_handle_t * handle), (handle)) \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemRetainAllocationHandle,                         \
	  (drv_mem_handle_t * *handle, void *ptr), (handle, ptr))                                  \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemMap,                                            \
	  (void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag),        \
	  (ptr, size, offset, handle, flag))                                                       \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemMapNoAccess,                                    \
	  (void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag),        \
	  (ptr, size, offset, handle, flag))                                                       \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemUnmap, (void *ptr), (ptr))                      \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemSetAccess,                                      \
	  (void *ptr, size_t size, struct drv_mem_access_desc *desc, size_t count),                \
	  (ptr, size, desc, count))                                                                \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemGetAccess,                                      \
	  (void *ptr, struct drv_mem_location *location, uint64_t *flags), (ptr, location, flags)) \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemGetAllocationGranularity,                       \
	  (const struct drv_mem_prop *prop, drv_mem_granularity_options option,                    \
	   size_t *granularity),                                                                   \
	  (prop, option, granularity))                                                             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemGetAllocationPropertiesFromHandle,              \
	  (struct drv_mem_prop * prop, drv_mem_handle_t * handle), (prop, handle))                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemGetAddressRange,                                \
	  (DVdeviceptr ptr, DVdeviceptr * base, size_t * size), (ptr, base, size))                 \
	/* sharing */                                                                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemExportToShareableHandle,                        \
	  (drv_mem_handle_t * handle, drv_mem_handle_type type, uint64_t flags,                    \
	   uint64_t * shareable),                                                                  \
	  (handle, type, flags, shareable))                                                        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemExportToShareableHandleV2,                      \
	  (drv_mem_handle_t * handle, drv_mem_handle_type type, uint64_t flags,                    \
	   struct MemShareHandle * shareable),                                                     \
	  (handle, type, flags, shareable))                                                        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemImportFromShareableHandle,                      \
	  (uint64_t shareable, uint32_t dev, drv_mem_handle_t * *handle),                          \
	  (shareable, dev, handle))                                                                \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemImportFromShareableHandleV2,                    \
	  (drv_mem_handle_type type, struct MemShareHandle * shareable, uint32_t dev,              \
	   drv_mem_handle_t * *handle),                                                            \
	  (type, shareable, dev, handle))                                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemTransShareableHandle,                           \
	  (drv_mem_handle_type type, struct MemShareHandle * share, uint32_t * server,             \
	   uint64_t * shareable),                                                                  \
	  (type, share, server, shareable))                                                        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemSetPidToShareableHandle,                        \
	  (uint64_t shareable, int *pid, uint32_t pid_num), (shareable, pid, pid_num))             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemShareHandleSetAttribute,                        \
	  (uint64_t shareable, enum ShareHandleAttrType type, struct ShareHandleAttr attr),        \
	  (shareable, type, attr))                                                                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemShareHandleGetAttribute,                        \
	  (uint64_t shareable, enum ShareHandleAttrType type, struct ShareHandleAttr * attr),      \
	  (shareable, type, attr))                                                                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemShareHandleInfoGet,                             \
	  (uint64_t shareable, struct ShareHandleGetInfo * info), (shareable, info))               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemCreateHandle,                                 \
	  (DVdeviceptr va, size_t byte_count, char *name, uint32_t name_len),                      \
	  (va, byte_count, name, name_len))                                                        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemDestroyHandle, (const char *name), (name))    \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemOpenHandle,                                   \
	  (const char *name, DVdeviceptr *va), (name, va))                                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemOpenHandleByDevId,                            \
	  (DVdevice dev, const char *name, DVdeviceptr *va), (dev, name, va))                      \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemCloseHandle, (DVdeviceptr va), (va))          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemSetPidHandle,                                 \
	  (const char *name, int *pid, int num), (name, pid, num))                                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemSetAttribute,                                 \
	  (const char *name, uint32_t type, uint64_t attr), (name, type, attr))                    \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halShmemInfoGet,                                      \
	  (const char *name, struct ShmemGetInfo *info), (name, info))                             \
	/* classic memory and copies */                                                            \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemAlloc,                                          \
	  (void **pp, unsigned long long size, unsigned long long flag), (pp, size, flag))         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemFree, (void *pp), (pp))                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemGetInfo,                                        \
	  (DVdevice dev, unsigned int type, struct MemInfo *info), (dev, type, info))              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvMemGetAttribute,                                   \
	  (DVdeviceptr va, struct DVattribute * attr), (va, attr))                                 \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemCtl,                                            \
	  (int type, void *param, size_t param_size, void *out, size_t *out_size),                 \
	  (type, param, param_size, out, out_size))                                                \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvMemcpy,                                            \
	  (DVdeviceptr dst, size_t dest_max, DVdeviceptr src, size_t count),                       \
	  (dst, dest_max, src, count))                                                             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemcpy2D, (struct MEMCPY2D * copy), (copy))        \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halMemcpyBatch,                                       \
	  (uint64_t * dst, uint64_t * src, size_t * size, size_t count), (dst, src, size, count))  \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvMemsetD8,                                          \
	  (DVdeviceptr dst, size_t dest_max, uint8_t value, size_t num),                           \
	  (dst, dest_max, value, num))                                                             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, drvMemPrefetchToDevice,                               \
	  (DVdeviceptr va, size_t len, DVdevice dev), (va, len, dev))                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halHostRegister,                                      \
	  (void *src, uint64_t size, uint32_t flag, uint32_t dev, void **dst),                     \
	  (src, size, flag, dev, dst))                                                             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halHostUnregister, (void *src, uint32_t dev),         \
	  (src, dev))                                                                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halHostUnregisterEx,                                  \
	  (void *src, uint32_t dev, uint32_t flag), (src, dev, flag))                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halHostRegisterCapabilities,                          \
	  (uint32_t dev, uint32_t acc_module, uint32_t * cap), (dev, acc_module, cap))             \
	/* queues: ids, submission, completion */                                                  \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halResourceIdAlloc,                                   \
	  (uint32_t dev, struct halResourceIdInputInfo * in,                                       \
	   struct halResourceIdOutputInfo * out),                                                  \
	  (dev, in, out))                                                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halResourceIdFree,                                    \
	  (uint32_t dev, struct halResourceIdInputInfo * in), (dev, in))                           \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halResourceConfig,                                    \
	  (uint32_t dev, struct halResourceIdInputInfo * in, struct halResourceConfigInfo * para), \
	  (dev, in, para))                                                                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halSqCqAllocate,                                      \
	  (uint32_t dev, struct halSqCqInputInfo * in, struct halSqCqOutputInfo * out),            \
	  (dev, in, out))                                                                          \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halSqCqFree,                                          \
	  (uint32_t dev, struct halSqCqFreeInfo * info), (dev, info))                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halSqCqQuery,                                         \
	  (uint32_t dev, struct halSqCqQueryInfo * info), (dev, info))                             \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halSqTaskSend,                                        \
	  (uint32_t dev, struct halTaskSendInfo * info), (dev, info))                              \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, halCqReportRecv,                                      \
	  (uint32_t dev, struct halReportRecvInfo * info), (dev, info))                            \
	/* npusim's own, answered by the model; a foreign driver has none of them */               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimGetStats,                                       \
	  (uint32_t dev, struct npu_stats * out), (dev, out))                                      \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimNow, (uint64_t * ps), (ps))                     \
	X(const char *, NULL, npusimLastMessage, (), ())                                           \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimLeaks,                                          \
	  (void (*line)(void *arg, const char *text), void *arg, bool full), (line, arg, full))    \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimSetDialect, (enum npu_dialect dialect),         \
	  (dialect))                                                                               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimPlace, (uint64_t va, struct npu_place * out),   \
	  (va, out))                                                                               \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimFill,                                           \
	  (DVdeviceptr dst, uint32_t pattern, unsigned pattern_bytes, size_t count),               \
	  (dst, pattern, pattern_bytes, count))                                                    \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimCheckCopy,                                      \
	  (DVdeviceptr dst, DVdeviceptr src, size_t count), (dst, src, count))                     \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimTouch,                                          \
	  (uint32_t dev, const uint64_t *at, size_t count, size_t bytes, uint32_t core),           \
	  (dev, at, count, bytes, core))                                                           \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimAwait,                                          \
	  (uint32_t dev, uint32_t stream, uint32_t cq, uint32_t wall_ms, struct npu_head * out),   \
	  (dev, stream, cq, wall_ms, out))                                                         \
	X(drvError_t, DRV_ERROR_NOT_SUPPORT, npusimPhysical,                                       \
	  (uint32_t dev, uint64_t va, uint64_t * pa, uint64_t * bytes), (dev, va, pa, bytes))

struct npu_driver;

/* Whose rules of virtual memory count in this process. Set before the first device is opened, or
 * never. NPU_DIALECT_WINDOW    the Ascend driver's: reservations lie in one window of addresses,
 * the SVM window NPU_DIALECT_CUDA  reservations lie anywhere in the process's address space, of
 * any size and alignment from 2 MiB on (halMemAddressReserve's alignment counts, its addr is a
 * hint, its flag is not looked at); memory of several devices may be mapped in one, and imported
 * memory beside other; halMemMapNoAccess is there; halMemSetAccess takes exactly one mapping, and
 * MEM_ACCESS_TYPE_NONE and _READ, too; each import makes a handle of its own, also in the process
 * that exported; MEM_HANDLE_TYPE_POSIX is there for export and import V2: the first int of the 128
 * bytes is an open file descriptor; struct drv_mem_prop.reserve is kept with the handle and
 * answered again, and the properties of a released handle are still answered. Devices need no peer
 * access to be given a mapping. Where NPUSIM_SOC is not set, the SoC is the H100. */
enum npu_dialect { NPU_DIALECT_WINDOW = 0, NPU_DIALECT_CUDA = 1 };

/* npusimPlace: what lies at an address (npusim/place.h). It costs no simulated time, and fails only
 * on NULL. */

/* npusimTouch: core `core` of the device (cube cores first, then vector cores) reads `bytes` bytes
 * at each of `count` addresses, one after the other, through the MMU, the caches and the memory;
 * nothing is kept. It returns when they are there, in simulated time. IOCRL_FAIL and a message at
 * the first byte that is not mapped. */

enum npu_head_kind {
	NPU_HEAD_NONE,  /* nothing is queued */
	NPU_HEAD_RUNS,  /* an engine has it, or its turn is now */
	NPU_HEAD_EVENT, /* it waits: for an event, a notify, a value, for room for its completion */
	NPU_HEAD_NOTIFY,
	NPU_HEAD_VALUE,
	NPU_HEAD_REPORT
};
/* What the task at the head of a stream's queue does. */
struct npu_head {
	enum npu_head_kind kind;
	uint32_t task;              /* its id */
	uint32_t device, id;        /* EVENT, NOTIFY */
	uint64_t va, wanted, found; /* VALUE */
	uint32_t compare;           /* VALUE: an ACL_STREAM_WAIT_VALUE_* */
};

/* npusimAwait: waits until the completion queue `cq` has a report, or is gone, and takes none. It
 * costs no simulated time, nor has it a limit there: WAIT_TIMEOUT once wall_ms have passed in wall
 * time and the model has nothing to do, and *out says what the head of `stream` waits for. */

/* npusimPhysical: where in the memory of a device the byte at `va` lies, by its page table, and how
 * many bytes from there on lie one after another: *bytes is in and out, and bounds them. It costs
 * no simulated time. IOCRL_FAIL where nothing of that device's memory is mapped. */

/* What the model knows of one device, beyond the HAL. */
struct npu_stats {
	uint32_t size; /* set by the caller: sizeof(struct npu_stats); append-only */
	uint32_t device;
	uint64_t now_ps;           /* simulated time of the process */
	uint64_t hbm_bytes;        /* of the device */
	uint64_t usable_bytes;     /* what programs can get */
	uint64_t used_bytes;       /* held by all processes of the node */
	uint64_t own_bytes;        /* held by this process */
	uint64_t page_table_bytes; /* this process's page table of the device */
	uint64_t page_table_peak_bytes;
	uint64_t mapped_bytes; /* this process's live mappings on the device */
	uint64_t leaves_4k, leaves_2m, leaves_1g;
	uint64_t largest_free_bytes; /* longest run of free frames */
	uint64_t free_giants;        /* 1 GiB pages that could be had now */
	uint64_t call_count[16]; /* calls by enum sim_call's order: reserve, address free, create,
				    release, map, ... */
	uint64_t call_ps[16];    /* simulated time in them */
	uint64_t tlb_l1_entries, tlb_l2_entries; /* capacities; reach = entries x page size */
	uint64_t tlb_requests, tlb_hits, tlb_misses, walks, walk_ps;
	uint64_t hbm_read_bytes, hbm_write_bytes, row_hits, row_misses;
	uint64_t own_peak_bytes; /* the most that own_bytes has been */
};

#define NPU_DRIVER_ABI 1u

#define NPU_WITH_SELF(...)      (struct npu_driver * self __VA_OPT__(, ) __VA_ARGS__)
#define NPU_CALL_SELF(drv, ...) (drv __VA_OPT__(, ) __VA_ARGS__)

enum {                               /* caps */
       NPU_CAP_MODEL = 1u << 0,      /* simulated: time, statistics and messages are there */
       NPU_CAP_VALUE_WAIT = 1u << 1, /* struct stars_value_wait_sqe */
       /* What drivers have had at different times; without the bit the calls are "not supported".
	*/
       NPU_CAP_MAP_NO_ACCESS = 1u << 2, /* halMemMapNoAccess */
       NPU_CAP_SHARE_V2 =
	       1u << 3, /* export and import V2, halMemTransShareableHandle: fabric handles */
       NPU_CAP_RETAIN = 1u << 4, /* halMemRetainAllocationHandle */
};

struct npu_driver {
	uint32_t abi;     /* NPU_DRIVER_ABI */
	uint32_t size;    /* sizeof(struct npu_driver) of whoever filled it in */
	const char *name; /* "sim", "hw", "fault", ... */
	uint32_t caps;
	struct npu_driver *lower;               /* of a wrapper; NULL at the bottom */
	void (*close)(struct npu_driver *self); /* ends this object, not `lower` */
#define NPU_MEMBER(ret, missing, op, params, args) ret(*op) NPU_WITH_SELF params;
	NPU_DRIVER_OPS(NPU_MEMBER)
#undef NPU_MEMBER
};

/* Calls op of drv: npu_call(drv, halMemMap, va, size, 0, handle, 0). The runtime calls through
 * nothing else. */
#define npu_call(drv, op, ...) ((drv)->op NPU_CALL_SELF(drv __VA_OPT__(, ) __VA_ARGS__))

/* What a backend module exports, under the name NPU_BACKEND_SYMBOL; the ABI number stands in the
 * name, so that a stale module fails to load and not to work. */
struct npu_backend {
	uint32_t abi, size;
	const char *name;
	/* A driver, or NULL and *error (free()) says what is wrong, with file and every missing
	 * symbol. */
	struct npu_driver *(*open)(char **error);
	/* For `npusim info`: version, file, SoC, as "key=value" lines; free(). */
	char *(*describe)(void);
};
#define NPU_BACKEND_SYMBOL "npusim_backend_1"

/* ---- the registry (runtime/core/registry.c) ---- */

/* Completes a driver: every member that is NULL or beyond drv->size is taken from the `unsupported`
 * table. */
void npu_driver_complete(struct npu_driver *drv);
/* Opens the backend that `name` says ("hw", "sim", "auto"; NULL: NPUSIM_BACKEND, else auto), stacks
 * the wrappers that the environment asks for, and returns the top. NULL and *error (free())
 * otherwise. */
struct npu_driver *npu_driver_open(const char *name, char **error);
/* Closes the whole stack. NULL is allowed. */
void npu_driver_close(struct npu_driver *drv);

#ifdef __cplusplus
}
#endif

#endif
