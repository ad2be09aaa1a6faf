/* SPDX-License-Identifier: Apache-2.0
 *
 * What npusim's libcuda.so.1 offers, as far as it is modelled: names, values and layouts of CUDA's
 * driver API, version 13.0. For npusim's own tests and for programs on machines without CUDA;
 * others bring their own cuda.h, which has the same ABI. runtime/cuda/COVERAGE.md says what is
 * modelled.
 */
#ifndef NPUSIM_CUDA_H
#define NPUSIM_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_VERSION 13000

/* The pointer, or context, may be NULL; others are INVALID_VALUE, or INVALID_CONTEXT, then, before
 * anything else is asked. */
#define CU_OR_NULL

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

/* X(code, name, text of cuGetErrorString) */
#define CUDA_ERRORS(X)                                                                      \
	X(0, CUDA_SUCCESS, "no error")                                                      \
	X(1, CUDA_ERROR_INVALID_VALUE, "invalid argument")                                  \
	X(2, CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                     \
	X(3, CUDA_ERROR_NOT_INITIALIZED, "initialization error")                            \
	X(4, CUDA_ERROR_DEINITIALIZED, "driver shutting down")                              \
	X(5, CUDA_ERROR_PROFILER_DISABLED, "profiler disabled")                             \
	X(6, CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized")               \
	X(7, CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started")               \
	X(8, CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped")               \
	X(34, CUDA_ERROR_STUB_LIBRARY, "stub library")                                      \
	X(36, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "call requires newer driver")          \
	X(46, CUDA_ERROR_DEVICE_UNAVAILABLE, "device unavailable")                          \
	X(100, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                  \
	X(101, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                         \
	X(102, CUDA_ERROR_DEVICE_NOT_LICENSED, "device not licensed")                       \
	X(200, CUDA_ERROR_INVALID_IMAGE, "invalid image")                                   \
	X(201, CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                        \
	X(202, CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current")               \
	X(205, CUDA_ERROR_MAP_FAILED, "map failed")                                         \
	X(206, CUDA_ERROR_UNMAP_FAILED, "unmap failed")                                     \
	X(207, CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped")                               \
	X(208, CUDA_ERROR_ALREADY_MAPPED, "already mapped")                                 \
	X(209, CUDA_ERROR_NO_BINARY_FOR_GPU, "no binary for gpu")                           \
	X(210, CUDA_ERROR_ALREADY_ACQUIRED, "already acquired")                             \
	X(211, CUDA_ERROR_NOT_MAPPED, "not mapped")                                         \
	X(212, CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "not mapped as array")                       \
	X(213, CUDA_ERROR_NOT_MAPPED_AS_POINTER, "not mapped as pointer")                   \
	X(214, CUDA_ERROR_ECC_UNCORRECTABLE, "ecc uncorrectable")                           \
	X(215, CUDA_ERROR_UNSUPPORTED_LIMIT, "unsupported limit")                           \
	X(216, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "context already in use")                 \
	X(217, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access unsupported")               \
	X(218, CUDA_ERROR_INVALID_PTX, "invalid ptx")                                       \
	X(219, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid graphics context")             \
	X(220, CUDA_ERROR_NVLINK_UNCORRECTABLE, "nvlink uncorrectable")                     \
	X(221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "jit compiler not found")                 \
	X(222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "unsupported ptx version")               \
	X(223, CUDA_ERROR_JIT_COMPILATION_DISABLED, "jit compilation disabled")             \
	X(224, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "unsupported exec affinity")           \
	X(225, CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "unsupported devside sync")             \
	X(226, CUDA_ERROR_CONTAINED, "contained")                                           \
	X(300, CUDA_ERROR_INVALID_SOURCE, "invalid source")                                 \
	X(301, CUDA_ERROR_FILE_NOT_FOUND, "file not found")                                 \
	X(302, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found") \
	X(303, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object init failed")           \
	X(304, CUDA_ERROR_OPERATING_SYSTEM, "operating system")                             \
	X(400, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                        \
	X(401, CUDA_ERROR_ILLEGAL_STATE, "illegal state")                                   \
	X(402, CUDA_ERROR_LOSSY_QUERY, "lossy query")                                       \
	X(500, CUDA_ERROR_NOT_FOUND, "named symbol not found")                              \
	X(600, CUDA_ERROR_NOT_READY, "device not ready")                                    \
	X(700, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")      \
	X(701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "launch out of resources")               \
	X(702, CUDA_ERROR_LAUNCH_TIMEOUT, "launch timeout")                                 \
	X(703, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch incompatible texturing")   \
	X(704, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")    \
	X(705, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")      \
	X(708, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context active")                 \
	X(709, CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                     \
	X(710, CUDA_ERROR_ASSERT, "assert")                                                 \
	X(711, CUDA_ERROR_TOO_MANY_PEERS, "too many peers")                                 \
	X(712, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory already registered") \
	X(713, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory not registered")         \
	X(714, CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error")                     \
	X(715, CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction")                       \
	X(716, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address")                         \
	X(717, CUDA_ERROR_INVALID_ADDRESS_SPACE, "invalid address space")                   \
	X(718, CUDA_ERROR_INVALID_PC, "invalid pc")                                         \
	X(719, CUDA_ERROR_LAUNCH_FAILED, "launch failed")                                   \
	X(720, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "cooperative launch too large")     \
	X(721, CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory leak")                         \
	X(800, CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                         \
	X(801, CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                         \
	X(802, CUDA_ERROR_SYSTEM_NOT_READY, "system not ready")                             \
	X(803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system driver mismatch")                 \
	X(804, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "compat not supported on device") \
	X(805, CUDA_ERROR_MPS_CONNECTION_FAILED, "mps connection failed")                   \
	X(806, CUDA_ERROR_MPS_RPC_FAILURE, "mps rpc failure")                               \
	X(807, CUDA_ERROR_MPS_SERVER_NOT_READY, "mps server not ready")                     \
	X(808, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "mps max clients reached")               \
	X(809, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "mps max connections reached")       \
	X(810, CUDA_ERROR_MPS_CLIENT_TERMINATED, "mps client terminated")                   \
	X(811, CUDA_ERROR_CDP_NOT_SUPPORTED, "cdp not supported")                           \
	X(812, CUDA_ERROR_CDP_VERSION_MISMATCH, "cdp version mismatch")                     \
	X(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "stream capture unsupported")         \
	X(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "stream capture invalidated")         \
	X(902, CUDA_ERROR_STREAM_CAPTURE_MERGE, "stream capture merge")                     \
	X(903, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "stream capture unmatched")             \
	X(904, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "stream capture unjoined")               \
	X(905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "stream capture isolation")             \
	X(906, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "stream capture implicit")               \
	X(907, CUDA_ERROR_CAPTURED_EVENT, "captured event")                                 \
	X(908, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "stream capture wrong thread")       \
	X(909, CUDA_ERROR_TIMEOUT, "timeout")                                               \
	X(910, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "graph exec update failure")           \
	X(911, CUDA_ERROR_EXTERNAL_DEVICE, "external device")                               \
	X(912, CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size")                     \
	X(913, CUDA_ERROR_FUNCTION_NOT_LOADED, "function not loaded")                       \
	X(914, CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type")                   \
	X(915, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration") \
	X(916, CUDA_ERROR_KEY_ROTATION, "key rotation")                                     \
	X(999, CUDA_ERROR_UNKNOWN, "unknown error")
#define CUDA_ERROR_VALUE(code, name, text) name = code,
typedef enum cudaError_enum { CUDA_ERRORS(CUDA_ERROR_VALUE) } CUresult;
#undef CUDA_ERROR_VALUE

/* ---- devices and contexts ---- */

typedef int CUdevice_attribute;
enum {
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128
};
typedef int CUdevice_P2PAttribute;
typedef int CUlimit; /* others: printf FIFO 1, pending launches 4, L2 fetches 5, persisting L2 6 */
enum { CU_LIMIT_STACK_SIZE = 0, CU_LIMIT_MALLOC_HEAP_SIZE = 2 };
enum { CU_CTX_SCHED_SPIN = 1, CU_CTX_SCHED_YIELD = 2, CU_CTX_SCHED_BLOCKING_SYNC = 4 };
typedef int CUstreamCaptureMode; /* 0 to 2: global, of a thread, relaxed */
#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_EVENT_INTERPROCESS = 4 }; /* without times */
typedef void (*CUhostFn)(void *user_data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user_data);
enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0, /* the difference, as a signed number, is not below 0 */
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_STREAM_WAIT_VALUE_AND = 2,
	CU_STREAM_WAIT_VALUE_NOR = 3,
	CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30
};
typedef enum CUstreamBatchMemOpType_enum {
	CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
	CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	CU_STREAM_MEM_OP_BARRIER = 6
} CUstreamBatchMemOpType;
typedef union CUstreamBatchMemOpParams_union {
	CUstreamBatchMemOpType operation;
	struct {
		CUstreamBatchMemOpType operation;
		CUdeviceptr address;
		union {
			uint32_t value;
			uint64_t value64;
		};
		unsigned int flags;
		CUdeviceptr alias;
	} waitValue, writeValue;
	uint64_t pad[6];
} CUstreamBatchMemOpParams;

/* ---- memory ---- */

enum {
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_MEMHOSTALLOC_WRITECOMBINED = 4
};
enum { CU_MEM_ATTACH_GLOBAL = 1, CU_MEM_ATTACH_HOST = 2, CU_MEM_ATTACH_SINGLE = 4 };
typedef enum CUmemorytype_enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_ARRAY = 3,
	CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;
typedef enum CUpointer_attribute_enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
	CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
	CU_POINTER_ATTRIBUTE_MAPPED = 13,
	CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
	CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
	CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
	CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
	CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
	CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
	CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20
} CUpointer_attribute;
typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	CUcontext srcContext; /* between peers */
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER;

/* ---- virtual memory management ---- */

typedef enum CUmemLocationType_enum {
	CU_MEM_LOCATION_TYPE_INVALID = 0,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_LOCATION_TYPE_HOST = 2,
	CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
	CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4
} CUmemLocationType;
typedef enum { CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1 } CUmemRangeHandleType;
typedef struct CUmemLocation_st {
	CUmemLocationType type;
	int id;
} CUmemLocation;
typedef enum CUmemAccess_flags_enum {
	CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
	CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
} CUmemAccess_flags;
typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	CUmemAccess_flags flags;
} CUmemAccessDesc;
typedef enum CUmemAllocationType_enum {
	CU_MEM_ALLOCATION_TYPE_INVALID = 0,
	CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	CU_MEM_ALLOCATION_TYPE_MANAGED = 2
} CUmemAllocationType;
typedef enum CUmemAllocationHandleType_enum {
	CU_MEM_HANDLE_TYPE_NONE = 0,
	CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
	CU_MEM_HANDLE_TYPE_WIN32 = 2,
	CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
	CU_MEM_HANDLE_TYPE_FABRIC = 8
} CUmemAllocationHandleType;
typedef enum CUmemAllocationGranularity_flags_enum {
	CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
} CUmemAllocationGranularity_flags;
typedef struct CUmemAllocationProp_st {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

/* ---- managed memory, and copies in batches ---- */

#define CU_DEVICE_CPU ((CUdevice)-1)
typedef enum CUmem_advise_enum {
	CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
	CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
	CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
	CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
	CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
	CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6
} CUmem_advise;
typedef enum CUmem_range_attribute_enum {
	CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
	CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8
} CUmem_range_attribute;
typedef enum CUmemcpySrcAccessOrder_enum {
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3
} CUmemcpySrcAccessOrder;
typedef struct CUmemcpyAttributes_st {
	CUmemcpySrcAccessOrder srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;

/* ---- pools, and sharing by handles of 64 bytes ---- */

typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef enum CUmemPool_attribute_enum {
	CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
	CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
	CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
	CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4, /* from here on uint64_t, above int */
	CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
	CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
	CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
	CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8
} CUmemPool_attribute;
typedef struct CUmemPoolProps_st {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;
typedef struct CUipcMemHandle_st {
	char reserved[64];
} CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData;
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };

typedef enum CUdriverProcAddressQueryResult_enum {
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;

/* ---- functions ---- */

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     CU_OR_NULL CUdriverProcAddressQueryResult *status);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice src,
				 CUdevice dst);
CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *context, CU_OR_NULL void *affinity, int affinities,
			unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *context, CU_OR_NULL void *params, unsigned int flags,
			CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CU_OR_NULL CUcontext *context);
CUresult cuCtxSetCurrent(CU_OR_NULL CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice_v2(CUdevice *device, CU_OR_NULL CUcontext context);
CUresult cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxSetFlags(unsigned int flags);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CU_OR_NULL CUcontext context);
CUresult cuProfilerInitialize(CU_OR_NULL const char *config, CU_OR_NULL const char *output,
			      int mode);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
CUresult cuCtxGetApiVersion(CU_OR_NULL CUcontext context, unsigned int *version);
CUresult cuCtxGetStreamPriorityRange(CU_OR_NULL int *least, CU_OR_NULL int *greatest);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);

CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CU_OR_NULL CUgreenCtx *green);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, uint32_t value,
				unsigned int flags);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, uint64_t value,
				unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, uint32_t value,
				 unsigned int flags);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, uint64_t value,
				 unsigned int flags);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
			       unsigned int flags);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, CU_OR_NULL void *user_data,
			     unsigned int flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, CU_OR_NULL void *user_data);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);

CUresult cuMemGetInfo_v2(CU_OR_NULL size_t *free, CU_OR_NULL size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t length,
				unsigned int flags);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t count, CUdevice device, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t count, CUmemLocation location,
			       unsigned int flags, CUstream stream);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUdevice device);
CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUmemLocation location);
CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
				CUdeviceptr ptr, size_t count);
CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes,
				 size_t number, CUdeviceptr ptr, size_t count);
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t size,
				       CUmemRangeHandleType type, unsigned long long flags);
CUresult cuMemGetAddressRange_v2(CU_OR_NULL CUdeviceptr *base, CU_OR_NULL size_t *size,
				 CUdeviceptr ptr);
CUresult cuMemAllocHost_v2(void **ptr, size_t size);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int *flags, void *host);
CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned int flags);
CUresult cuMemHostUnregister(void *host);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable,
					    CUmemAllocationHandleType type,
					    unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data);

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
		      CUcontext src_context, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, CU_OR_NULL const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2(CU_OR_NULL void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			   CUcontext src_context, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, CU_OR_NULL const void *src, size_t bytes,
			      CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(CU_OR_NULL void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			    size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *starts, size_t number,
			       CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count);
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
			 size_t height);
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
			  size_t height);
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
			  size_t height);
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
			   size_t height, CUstream stream);
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
			    size_t height, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
			    size_t height, CUstream stream);

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
						CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr);
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
					CUmemAllocationHandleType type);

#ifdef __cplusplus
}
#endif

#endif
