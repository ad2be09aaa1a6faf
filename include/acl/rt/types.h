/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants, enumerations and structures of the functions that npusim models.
 * Those of the other functions are in unmodelled-types.h. Include acl/acl.h, not this.
 */
#ifndef NPUSIM_ACL_RT_TYPES_H
#define NPUSIM_ACL_RT_TYPES_H

#include "../acl_base.h"

/* Around prototypes: names of C, exported also from code that hides its own. */
/* clang-format off */
#ifdef __cplusplus
#define NPUSIM_ACL_BEGIN extern "C" { _Pragma("GCC visibility push(default)")
#define NPUSIM_ACL_END   _Pragma("GCC visibility pop") }
#else
#define NPUSIM_ACL_BEGIN _Pragma("GCC visibility push(default)")
#define NPUSIM_ACL_END   _Pragma("GCC visibility pop")
#endif
/* clang-format on */

/* What aclrtGetVersion answers: the API of CANN 9.0 and later (8.5 has 1.16.0). */
#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

/* --- devices -------------------------------------------------------------------------------- */

/** Where the program runs: beside the device, or on it. */
typedef enum aclrtRunMode {
	ACL_DEVICE = 0,
	ACL_HOST = 1, /* the answer here, always */
} aclrtRunMode;

typedef enum aclrtTsId {
	ACL_TS_ID_AICORE = 0,
	ACL_TS_ID_AIVECTOR = 1,
	ACL_TS_ID_RESERVED = 2,
} aclrtTsId;

typedef enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

typedef enum aclrtDeviceStatus {
	ACL_RT_DEVICE_STATUS_NORMAL = 0,
	ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
	ACL_RT_DEVICE_STATUS_END = 0xFFFF,
} aclrtDeviceStatus;

typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;

/** Per cent, 0 to 100. */
typedef struct aclrtUtilizationInfo {
	int32_t cubeUtilization, vectorUtilization, aicpuUtilization, memoryUtilization;
	aclrtUtilizationExtendInfo *utilizationExtend; /* reserved: NULL */
} aclrtUtilizationInfo;

typedef struct aclrtUuid {
	char bytes[16];
} aclrtUuid;

/** What aclrtGetDeviceInfo can be asked for. Sizes are in bytes. */
typedef enum {
	ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
	ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
	ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
	ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
	ACL_DEV_ATTR_WARP_SIZE = 202,
	ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
	ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 204, /* older name of the next */
	ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,
	ACL_DEV_ATTR_MAX_GRID_DIM_X = 205,
	ACL_DEV_ATTR_MAX_GRID_DIM_Y = 206,
	ACL_DEV_ATTR_MAX_GRID_DIM_Z = 207,
	ACL_DEV_ATTR_MAX_BLOCK_PER_GRID = 208,
	ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK = 209,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_X = 210,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_Y = 211,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_Z = 212,
	ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,
	ACL_DEV_ATTR_L2_CACHE_SIZE = 302,
	ACL_DEV_ATTR_SMP_ID = 401U,
	ACL_DEV_ATTR_PHY_CHIP_ID = 402U,
	ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID = 403U, /* older spelling of the next */
	ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403U,
	ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404U,
	ACL_DEV_ATTR_SUPER_POD_ID = 405U,
	ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406U,
	ACL_DEV_ATTR_MAINBOARD_ID = 407U,
	ACL_DEV_ATTR_HD_CONNECT_TYPE = 408U,    /* ACL_HOST_DEVICE_CONNECT_TYPE_* */
	ACL_DEV_ATTR_DEVICE_FORM_FACTOR = 409U, /* ACL_DEVICE_FORM_FACTOR_* */
	ACL_DEV_ATTR_IS_VIRTUAL = 501U,
	ACL_DEV_ATTR_NPU_ARCH = 601U,
} aclrtDevAttr;

#define ACL_HOST_DEVICE_CONNECT_TYPE_PCIE 0
#define ACL_HOST_DEVICE_CONNECT_TYPE_HCCS 1
#define ACL_HOST_DEVICE_CONNECT_TYPE_UB   2

#define ACL_DEVICE_FORM_FACTOR_POD       0
#define ACL_DEVICE_FORM_FACTOR_A_K       1
#define ACL_DEVICE_FORM_FACTOR_A_X       2
#define ACL_DEVICE_FORM_FACTOR_PCIE_CARD 3

typedef enum {
	ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
	ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21,
} aclrtDevFeatureType;

#define ACL_DEV_FEATURE_SUPPORT     0x00000001
#define ACL_DEV_FEATURE_NOT_SUPPORT 0x00000000

/* How two devices are connected (aclrtGetDevicesTopo). */
#define ACL_RT_DEVS_TOPOLOGY_HCCS    0x01ULL
#define ACL_RT_DEVS_TOPOLOGY_PIX     0x02ULL
#define ACL_RT_DEVS_TOPOLOGY_PIB     0x04ULL
#define ACL_RT_DEVS_TOPOLOGY_PHB     0x08ULL
#define ACL_RT_DEVS_TOPOLOGY_SYS     0x10ULL
#define ACL_RT_DEVS_TOPOLOGY_SIO     0x20ULL
#define ACL_RT_DEVS_TOPOLOGY_HCCS_SW 0x40ULL

/* --- streams and events --------------------------------------------------------------------- */

/* Flags of aclrtCreateStreamWithConfig; may be combined. */
#define ACL_STREAM_FAST_LAUNCH     0x00000001U
#define ACL_STREAM_FAST_SYNC       0x00000002U
#define ACL_STREAM_PERSISTENT      0x00000004U
#define ACL_STREAM_HUGE            0x00000008U
#define ACL_STREAM_CPU_SCHEDULE    0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY 0x00000020U

/* Flags of aclrtCreateEventWithFlag and aclrtCreateEventExWithFlag. */
#define ACL_EVENT_SYNC                    0x00000001U /* can order streams and threads */
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE               0x00000008U /* has a time stamp */
#define ACL_EVENT_DEVICE_USE_ONLY         0x00000010U
#define ACL_EVENT_EXTERNAL                0x00000020U
#define ACL_EVENT_IPC                     0x00000040U

#define ACL_EVENT_RECORD_DEFAULT  0x0U
#define ACL_EVENT_RECORD_EXTERNAL 0x01U
#define ACL_EVENT_WAIT_DEFAULT    0x0U
#define ACL_EVENT_WAIT_EXTERNAL   0x01U

/* Conditions of aclrtValueWait on a 64-bit value at a device address. */
#define ACL_STREAM_WAIT_VALUE_GEQ 0x00000000U /* (int64_t)(*address - value) >= 0 */
#define ACL_STREAM_WAIT_VALUE_EQ  0x00000001U /* *address == value */
#define ACL_STREAM_WAIT_VALUE_AND 0x00000002U /* (*address & value) != 0 */
#define ACL_STREAM_WAIT_VALUE_NOR 0x00000003U /* ~(*address | value) != 0 */

typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

/** Mind the order: here 0 is "not ready". */
typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
	ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
	ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
	ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF,
} aclrtEventWaitStatus;

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 0xFFFF,
} aclrtStreamStatus;

typedef enum aclrtCallbackBlockType {
	ACL_CALLBACK_NO_BLOCK = 0,
	ACL_CALLBACK_BLOCK = 1, /* the stream's later work waits for the callback's return */
} aclrtCallbackBlockType;

typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);

/* --- memory --------------------------------------------------------------------------------- */

/** ACL_MEMCPY_DEFAULT: the addresses tell. The others must agree with the addresses. */
typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

/** Pages of 2 MiB (HUGE), 4 KiB (NORMAL) or 1 GiB (HUGE1G). FIRST: else 4 KiB. */
typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,
	ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	/* may be added to one of the above */
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

typedef enum {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,
	ACL_RT_MEM_ATTR_VA_FLAG = 3,
} aclrtMallocAttrType;

typedef union {
	uint16_t moduleId;
	uint32_t deviceId, vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

/** Kinds of physical memory and of page; what aclrtGetMemInfo can be asked for. */
typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,   /* pages of 2 MiB */
	ACL_HBM_MEM_NORMAL = 5, /* treated as ACL_HBM_MEM_HUGE */
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10, /* pages of 1 GiB */
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	/* since 8.5: HBM on a device, DDR on the host */
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

enum aclrtMemPgType { NORMAL_PAGE_TYPE = 0U, HUGE_PAGE_TYPE = 1, HUGE1G_PAGE_TYPE = 2 };

enum aclrtMemType { HBM_TYPE = 0U, DDR_TYPE = 1, P2P_HBM_TYPE = 2, P2P_DDR_TYPE = 3 };

typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2, /* ordinary memory of the process */
	ACL_MEM_LOCATION_TYPE_MANAGED = 3,
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

/** `id`: the device (each function says which of the id spaces), the NUMA node, or 0. */
typedef struct aclrtMemLocation {
	uint32_t id;
	aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize; /* bytes */
	uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct aclrtMemUsageInfo {
	char name[32];        /* the component, zero-terminated */
	uint64_t curMemSize;  /* bytes */
	uint64_t memPeakSize; /* bytes */
	size_t reserved[8];
} aclrtMemUsageInfo;

/** One group of copies in a batch; see aclrtMemcpyBatch. */
typedef struct {
	aclrtMemLocation dstLoc, srcLoc;
	uint8_t rsv[16]; /* zeros */
} aclrtMemcpyBatchAttr;

typedef enum {
	ACL_HOST_REGISTER_MAPPED = 0,
	ACL_HOST_REGISTER_IOMEMORY = 0x04,
	ACL_HOST_REGISTER_READONLY = 0x08,
} aclrtHostRegisterType;

/* Flags of aclrtHostRegisterV2; may be combined. */
#define ACL_HOST_REG_MAPPED   0x2UL
#define ACL_HOST_REG_IOMEMORY 0x4UL
#define ACL_HOST_REG_READONLY 0x8UL
#define ACL_HOST_REG_PINNED   0x10000000UL

/** The engines that could reach host memory. */
typedef enum {
	ACL_RT_HAC_TYPE_STARS = 0,
	ACL_RT_HAC_TYPE_AICPU = 1,
	ACL_RT_HAC_TYPE_AIC = 2,
	ACL_RT_HAC_TYPE_AIV = 3,
	ACL_RT_HAC_TYPE_PCIEDMA = 4,
	ACL_RT_HAC_TYPE_RDMA = 5,
	ACL_RT_HAC_TYPE_SDMA = 6,
	ACL_RT_HAC_TYPE_DVPP = 7,
	ACL_RT_HAC_TYPE_UDMA = 8,
	ACL_RT_HAC_TYPE_CCU = 9,
} aclrtHacType;

typedef enum {
	ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED = 0,
	ACL_RT_HOST_MEM_MAP_SUPPORTED = 1,
} aclrtHostMemMapCapability;

/* Kinds of memory for aclrtCheckMemType; may be combined. */
#define ACL_RT_MEM_TYPE_DEV  (0X2U)
#define ACL_RT_MEM_TYPE_DVPP (0X8U)
#define ACL_RT_MEM_TYPE_RSVD (0X10U)

/** What to do with a range in the cache of the device (aclrtCmoAsync). */
typedef enum aclrtCmoType {
	ACL_RT_CMO_TYPE_PREFETCH = 0,
	ACL_RT_CMO_TYPE_WRITEBACK = 1,
	ACL_RT_CMO_TYPE_INVALID = 2,
	ACL_RT_CMO_TYPE_FLUSH = 3,
} aclrtCmoType;

#define MAX_MEM_UCE_INFO_ARRAY_SIZE 128
#define UCE_INFO_RESERVED_SIZE      14

/** A range with memory errors that could not be corrected. */
typedef struct aclrtMemUceInfo {
	void *addr;
	size_t len;
	size_t reserved[UCE_INFO_RESERVED_SIZE];
} aclrtMemUceInfo;

/* --- virtual memory ------------------------------------------------------------------------- */

/** Physical memory, by reference. See aclrtMallocPhysical. */
typedef void *aclrtDrvMemHandle;

typedef enum aclrtMemAllocationType { ACL_MEM_ALLOCATION_TYPE_PINNED = 0 } aclrtMemAllocationType;

typedef enum aclrtMemHandleType {
	ACL_MEM_HANDLE_TYPE_NONE = 0,
	ACL_MEM_HANDLE_TYPE_POSIX = 2,
} aclrtMemHandleType;

/** What shareableHandle of the ...V2 functions points to. */
typedef enum aclrtMemSharedHandleType {
	ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 0x1, /* a uint64_t */
	ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 0x2,  /* an aclrtMemFabricHandle */
} aclrtMemSharedHandleType;

typedef struct aclrtMemFabricHandle {
	uint8_t data[128];
} aclrtMemFabricHandle;

typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location; /* a device: by its user id */
	uint64_t reserve;          /* 0 */
} aclrtPhysicalMemProp;

typedef enum aclrtMemGranularityOptions {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF,
} aclrtMemGranularityOptions;

typedef enum {
	ACL_RT_MEM_ACCESS_FLAGS_NONE = 0x0,
	ACL_RT_MEM_ACCESS_FLAGS_READ = 0x1,
	ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 0x3,
} aclrtMemAccessFlags;

typedef struct {
	aclrtMemAccessFlags flags;
	aclrtMemLocation location; /* a device: by its driver id, see aclrtMemSetAccess */
	uint8_t rsv[12];
} aclrtMemAccessDesc;

#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT                0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL

/* --- IPC memory ----------------------------------------------------------------------------- */

#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT                0x0UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT                0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS     0x1UL

typedef enum { ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0 } aclrtIpcMemAttrType;

#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO                0
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS               1
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH   2
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH 3

/* --- versions and start-up ------------------------------------------------------------------ */

#define ACL_PKG_VERSION_MAX_SIZE       128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

typedef enum aclCANNPackageName {
	ACL_PKG_NAME_CANN = 0,
	ACL_PKG_NAME_RUNTIME = 1,
	ACL_PKG_NAME_COMPILER = 2,
	ACL_PKG_NAME_HCCL = 3,
	ACL_PKG_NAME_TOOLKIT = 4,
	ACL_PKG_NAME_OPP = 5,
	ACL_PKG_NAME_OPP_KERNEL = 6,
	ACL_PKG_NAME_DRIVER = 7,
} aclCANNPackageName;

typedef struct aclCANNPackageVersion {
	char version[ACL_PKG_VERSION_MAX_SIZE];
	char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/** Processes of a server of the supernode; sdid: of any device of it. */
typedef struct {
	uint32_t sdid;
	int32_t *pid;
	size_t num;
} aclrtServerPid;

/** Who registers a start-up or shutdown callback. */
typedef enum aclRegisterCallbackType {
	ACL_REG_TYPE_ACL_MODEL = 0,
	ACL_REG_TYPE_ACL_OP_EXECUTOR = 1,
	ACL_REG_TYPE_ACL_OP_CBLAS = 2,
	ACL_REG_TYPE_ACL_OP_COMPILER = 3,
	ACL_REG_TYPE_ACL_TDT_CHANNEL = 4,
	ACL_REG_TYPE_ACL_TDT_QUEUE = 5,
	ACL_REG_TYPE_ACL_DVPP = 6,
	ACL_REG_TYPE_ACL_RETR = 7,
	ACL_REG_TYPE_OTHER = 0xFFFF,
} aclRegisterCallbackType;

typedef aclError (*aclInitCallbackFunc)(const char *configStr, size_t len, void *userData);
typedef aclError (*aclFinalizeCallbackFunc)(void *userData);

#endif
