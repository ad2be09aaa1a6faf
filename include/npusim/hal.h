/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of libascend_hal.so, the user part of the Ascend driver, as far as npusim uses them:
 * names, values and layouts of the driver's public headers (ascend_hal_base.h, ascend_hal_define.h,
 * ascend_hal_error.h, trs_pkg.h; driver master of 2026-07). tests/contract/hal-layout.c pins every
 * size and offset. This file declares no function: see driver.h.
 */
#ifndef NPUSIM_HAL_H
#define NPUSIM_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's other headers, such as dsmi_common_interface.h, bring these along. */
#ifndef __ASCEND_HAL_ERROR_H__
#define __ASCEND_HAL_ERROR_H__
typedef int drvError_t;

enum {
	DRV_ERROR_NONE = 0,
	DRV_ERROR_NO_DEVICE = 1,
	DRV_ERROR_INVALID_DEVICE = 2,
	DRV_ERROR_INVALID_VALUE = 3,
	DRV_ERROR_INVALID_HANDLE = 4,
	DRV_ERROR_INVALID_MALLOC_TYPE = 5,
	DRV_ERROR_OUT_OF_MEMORY = 6,
	DRV_ERROR_INNER_ERR = 7,
	DRV_ERROR_PARA_ERROR = 8,
	DRV_ERROR_UNINIT = 9,
	DRV_ERROR_REPEATED_INIT = 10,
	DRV_ERROR_NOT_EXIST = 11,
	DRV_ERROR_BUSY = 13,
	DRV_ERROR_NO_RESOURCES = 14,
	DRV_ERROR_OUT_OF_CMD_SLOT = 15,
	DRV_ERROR_WAIT_TIMEOUT = 16,
	DRV_ERROR_IOCRL_FAIL = 17,
	DRV_ERROR_SOCKET_CLOSE = 25,
	DRV_ERROR_SEND_MESG = 27,
	DRV_ERROR_BUS_DOWN = 33,
	DRV_ERROR_OVER_LIMIT = 37,
	DRV_ERROR_FILE_OPS = 38,
	DRV_ERROR_MALLOC_FAIL = 40,
	DRV_ERROR_PROCESS_EXIT = 42,
	DRV_ERROR_DEV_PROCESS_HANG = 43,
	DRV_ERROR_OPER_NOT_PERMITTED = 46,
	DRV_ERROR_NO_EVENT_RESOURCES = 47,
	DRV_ERROR_NO_STREAM_RESOURCES = 48,
	DRV_ERROR_NO_NOTIFY_RESOURCES = 49,
	DRV_ERROR_NO_MODEL_RESOURCES = 50,
	DRV_ERROR_TRY_AGAIN = 51,
	DRV_ERROR_OPEN_FAILED = 53,
	DRV_ERROR_MEMORY_OPT_FAIL = 58,
	DRV_ERROR_SQID_FULL = 60,
	DRV_ERROR_COPY_USER_FAIL = 74,
	DRV_ERROR_QUEUE_EMPTY = 75,
	DRV_ERROR_QUEUE_FULL = 76,
	DRV_ERROR_CDQ_ABNORMAL = 82,
	DRV_ERROR_CDQ_NOT_EXIST = 83,
	DRV_ERROR_NO_CDQ_RESOURCES = 84,
	DRV_ERROR_RESUME = 89,
	DRV_ERROR_NOT_SUPPORT = 0xfffe,
};
#endif
typedef drvError_t DVresult;
typedef uint64_t DVdeviceptr;
typedef uint32_t DVdevice;

/* ---- virtual memory ---- */

enum drv_mem_side { MEM_HOST_SIDE = 0, MEM_DEV_SIDE = 1, MEM_HOST_NUMA_SIDE = 2, MEM_MAX_SIDE = 3 };
enum drv_mem_pg_type {
	MEM_NORMAL_PAGE_TYPE = 0, /* 4 KiB */
	MEM_HUGE_PAGE_TYPE = 1,   /* 2 MiB */
	MEM_GIANT_PAGE_TYPE = 2,  /* 1 GiB */
	MEM_MAX_PAGE_TYPE = 3
};
enum drv_mem_type {
	MEM_HBM_TYPE = 0,
	MEM_DDR_TYPE = 1,
	MEM_P2P_HBM_TYPE = 2,
	MEM_P2P_DDR_TYPE = 3,
	MEM_TS_DDR_TYPE = 4,
	MEM_MAX_TYPE = 5
};
typedef enum {
	MEM_ACCESS_TYPE_NONE = 0,
	MEM_ACCESS_TYPE_READ = 1,
	MEM_ACCESS_TYPE_READWRITE = 3,
} drv_mem_access_type;
typedef enum {
	MEM_HANDLE_TYPE_NONE = 0,
	MEM_HANDLE_TYPE_FABRIC = 1,
	MEM_HANDLE_TYPE_POSIX = 2,
} drv_mem_handle_type;
typedef enum {
	MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	MEM_ALLOC_GRANULARITY_INVALID = 2
} drv_mem_granularity_options;
enum ShareHandleAttrType { SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER = 0, SHR_HANDLE_ATTR_TYPE_MAX = 1 };
enum { SHR_HANDLE_WLIST_ENABLE = 0, SHR_HANDLE_NO_WLIST_ENABLE = 1 };

#define MEM_RSV_TYPE_DEVICE_SHARE \
	(UINT64_C(1) << 8) /* flags of halMemAddressReserve; bits 0-7: page type */
#define MEM_RSV_TYPE_REMOTE_MAP (UINT64_C(1) << 9) /* a range outside the SVM window: NoUC */
#define MEM_SHARE_HANDLE_LEN    128

/* Opaque: made by halMemCreate and the imports, ended by as many halMemRelease as it has
 * references. */
typedef struct drv_mem_handle drv_mem_handle_t;

struct drv_mem_prop {
	uint32_t side, devid, module_id, pg_type, mem_type;
	uint64_t reserve; /* 0 */
};
struct drv_mem_location {
	uint32_t id;
	enum drv_mem_side side;
};
struct drv_mem_access_desc {
	drv_mem_access_type type;
	struct drv_mem_location location;
	unsigned int rsv[2];
};
struct MemShareHandle {
	uint8_t share_info[MEM_SHARE_HANDLE_LEN];
};
struct halSDIDParseInfo { /* what a super device id consists of */
	uint32_t server_id, chip_id, die_id, udevid, reserve[8];
};
struct ShareHandleAttr {
	unsigned int enableFlag, rsv[8];
};
struct ShareHandleGetInfo {
	unsigned int phyDevid, reserve[8];
};
enum { SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER = 1 }; /* type of halShmemSetAttribute */
enum { SHMEM_WLIST_ENABLE = 0, SHMEM_NO_WLIST_ENABLE = 1 };
struct ShmemGetInfo {
	unsigned int phyDevid, reserve[8];
};

/* ---- memory information ---- */

enum {
	MEM_INFO_TYPE_DDR_SIZE = 1,
	MEM_INFO_TYPE_HBM_SIZE = 2,
	MEM_INFO_TYPE_DDR_P2P_SIZE = 3,
	MEM_INFO_TYPE_HBM_P2P_SIZE = 4,
	MEM_INFO_TYPE_ADDR_CHECK = 5,
	MEM_INFO_TYPE_MAX = 12
};
struct MemPhyInfo {
	unsigned long total; /* bytes in 4 KiB pages */
	unsigned long free;
	unsigned long huge_total; /* bytes in 2 MiB and 1 GiB pages */
	unsigned long huge_free;
	unsigned long giant_total; /* bytes in 1 GiB pages alone */
	unsigned long giant_free;
};
struct MemAddrInfo {
	DVdeviceptr **addr;
	unsigned int cnt, mem_type, flag;
};
struct MemInfo {
	union {
		struct MemPhyInfo phy_info;
		struct MemAddrInfo addr_info;
		uint8_t whole[264]; /* other types have longer answers: nodes, a group's name */
	};
};

enum { /* memType of struct DVattribute */
       DV_MEM_SVM = 0x1,
       DV_MEM_SVM_HOST = 0x2,
       DV_MEM_SVM_DEVICE = 0x4,
       DV_MEM_LOCK_HOST = 0x8,
       DV_MEM_LOCK_DEV = 0x10,
       DV_MEM_LOCK_DEV_DVPP = 0x20,
       DV_MEM_USER_MALLOC = 0x80,
       DV_MEM_USER_REGISTER = 0x100,
       DV_MEM_UVM = 0x200,
       DV_MEM_SOMA = 0x400
};
#define DV_MEM_RESV 8
struct DVattribute {
	uint32_t memType, resv1, resv2, devId, pageSize, resv[DV_MEM_RESV];
};

/* ---- classic allocation: flag of halMemAlloc ---- */

#define MEM_DEVID_MASK     UINT64_C(0x3ff) /* bits 0-9 */
#define MEM_VIRT_BIT       10              /* bits 10-13: side */
#define MEM_SVM_VAL        UINT64_C(0)
#define MEM_DEV_VAL        UINT64_C(1)
#define MEM_HOST_VAL       UINT64_C(2)
#define MEM_DVPP_VAL       UINT64_C(3)
#define MEM_TYPE_HBM       (UINT64_C(1) << 14) /* else DDR */
#define MEM_PAGE_HUGE      (UINT64_C(1) << 17)
#define MEM_ALIGN_BIT      20 /* bits 20-24: log2 of the alignment */
#define MEM_ADVISE_P2P     (UINT64_C(1) << 25)
#define MEM_ADVISE_TS      (UINT64_C(1) << 27)
#define MEM_READONLY       (UINT64_C(1) << 29)
#define MEM_HOST_RW_DEV_RO (UINT64_C(1) << 30)
#define MEM_PAGE_GIANT     (UINT64_C(1) << 31)
#define MEM_MODULE_ID_BIT  56 /* bits 56-63 */
enum { HCCL_HAL_MODULE_ID = 3, RUNTIME_MODULE_ID = 7, APP_MODULE_ID = 33, ASCENDCL_MODULE_ID = 48 };

/* ---- copies ---- */

typedef enum {
	DRV_MEMCPY_HOST_TO_DEVICE = 1,
	DRV_MEMCPY_DEVICE_TO_HOST = 2,
	DRV_MEMCPY_DEVICE_TO_DEVICE = 3
} drvMemcpyKind_t;
struct memcpy_info {
	drvMemcpyKind_t dir;
	uint32_t devid;
	uint64_t reserve[2];
};
struct drvMem2D {
	unsigned long long *dst;
	unsigned long long dpitch;
	unsigned long long *src;
	unsigned long long spitch, width, height;
	unsigned long long fixed_size; /* bytes that earlier calls have moved */
	unsigned int direction, resv1;
	unsigned long long resv2;
};
enum {
	DEVMM_MEMCPY2D_SYNC = 0,
	DEVMM_MEMCPY2D_ASYNC_CONVERT = 1,
	DEVMM_MEMCPY2D_ASYNC_DESTROY = 2
};
struct DMA_ADDR { /* descriptors of a copy */
	union {
		struct {
			void *src; /* flag 1: of the list of descriptors */
			void *dst;
			unsigned int len; /* how many they are */
			unsigned char flag;
			void *priv;
		} phyAddr;
		struct {
			unsigned long long offset;
			unsigned int devid; /* in */
		} offsetAddr;
	};
	unsigned int fixed_size; /* bytes that they copy */
	unsigned int virt_id;
};
struct drvMem2DAsync {
	struct drvMem2D copy2dInfo;
	struct DMA_ADDR *dmaAddr;
};
struct MEMCPY2D {
	unsigned int type, resv;
	union {
		struct drvMem2D copy2d;
		struct drvMem2DAsync copy2dAsync;
	};
};

enum { /* flag of halHostRegister: kind of mapping */
       HOST_MEM_MAP_DEV = 0,
       HOST_SVM_MAP_DEV = 1,
       DEV_SVM_MAP_HOST = 2,
       HOST_MEM_MAP_DEV_PCIE_TH = 3,
       HOST_MEM_MAP_DMA = 5,
       HOST_IO_MAP_DEV = 6,
};

/* ---- devices ---- */

typedef struct hal_dev_open_in {
	uint64_t reserve[8];
} halDevOpenIn;
typedef struct hal_dev_open_out {
	uint64_t reserve[8];
} halDevOpenOut;
typedef struct hal_dev_close_in {
	uint64_t reserve[8];
} halDevCloseIn;

enum { /* moduleType of halGetDeviceInfo */
       MODULE_TYPE_SYSTEM = 0,
       MODULE_TYPE_AICPU = 1,
       MODULE_TYPE_AICORE = 4,
       MODULE_TYPE_VECTOR_CORE = 7,
       MODULE_TYPE_MEMORY = 10,
       MODULE_TYPE_L2BUFF = 13
};
enum { /* infoType of halGetDeviceInfo */
       INFO_TYPE_ENV = 0,
       INFO_TYPE_VERSION = 1,
       INFO_TYPE_CORE_NUM = 3,
       INFO_TYPE_FREQUE = 4,
       INFO_TYPE_P2P_CAPABILITY = 12,
       INFO_TYPE_PHY_CHIP_ID = 18,
       INFO_TYPE_PHY_DIE_ID = 19,
       INFO_TYPE_UTILIZATION = 23,
       INFO_TYPE_SDID = 26,
       INFO_TYPE_SERVER_ID = 27,
       INFO_TYPE_SCALE_TYPE = 28,
       INFO_TYPE_SUPER_POD_ID = 29,
       INFO_TYPE_ADDR_MODE = 30,
       INFO_TYPE_RUN_MACH = 31,
       INFO_TYPE_MAINBOARD_ID = 39,
       INFO_TYPE_HD_CONNECT_TYPE = 40, /* 0 PCIe, 1 HCCS, 2 UB */
       INFO_TYPE_DIE_NUM = 41,
       INFO_TYPE_NEAR_NODE = 0x6e00,  /* npusim's own: the NUMA node near to it; -1: none is */
       INFO_TYPE_FREE_BYTES = 0x6e01, /* npusim's own, of MODULE_TYPE_MEMORY */
};
enum {
	TOPOLOGY_HCCS = 0,
	TOPOLOGY_PIX = 1,
	TOPOLOGY_PIB = 2,
	TOPOLOGY_PHB = 3,
	TOPOLOGY_SYS = 4,
	TOPOLOGY_SIO = 5,
	TOPOLOGY_HCCS_SW = 6
};
enum { /* drvFeature_t */
       FEATURE_TRSDRV_SQ_DEVICE_MEM_PRIORITY = 0,
       FEATURE_SVM_GET_USER_MALLOC_ATTR = 2,
       FEATURE_TRSDRV_SQ_SUPPORT_DYNAMIC_BIND = 4,
       FEATURE_SVM_VMM_NORMAL_GRANULARITY = 6
};
#define CAP_RESERVE_SIZE 30
struct halCapabilityInfo {
	uint32_t sdma_reduce_support, memory_support, ts_group_number, sdma_reduce_kind;
	uint32_t res[CAP_RESERVE_SIZE];
};

/* ---- submission and completion queues ---- */

enum { DRV_NORMAL_TYPE = 0, DRV_CALLBACK_TYPE = 1, DRV_LOGIC_TYPE = 2 }; /* drvSqCqType_t */
enum { DRV_STREAM_ID = 0, DRV_EVENT_ID = 1, DRV_MODEL_ID = 2, DRV_NOTIFY_ID = 3 }; /* drvIdType_t */
enum { /* drvSqCqPropType_t */
       DRV_SQCQ_PROP_SQ_STATUS = 0,
       DRV_SQCQ_PROP_SQ_HEAD = 1,
       DRV_SQCQ_PROP_SQ_TAIL = 2,
       DRV_SQCQ_PROP_SQ_DISABLE_TO_ENABLE = 3,
       DRV_SQCQ_PROP_SQ_CQE_STATUS = 4, /* cleared by reading */
       DRV_SQCQ_PROP_SQ_REG_BASE = 5,
       DRV_SQCQ_PROP_SQ_BASE = 6,
       DRV_SQCQ_PROP_SQ_DEPTH = 7
};
enum { /* drvResourceConfigType_t */
       DRV_STREAM_BIND_LOGIC_CQ = 0,
       DRV_STREAM_UNBIND_LOGIC_CQ = 1,
       DRV_ID_RECORD = 2, /* the host records an event or a notify */
       DRV_STREAM_ENABLE_EVENT = 3,
       DRV_ID_RESET = 4 /* back to not recorded */
};
#define SQCQ_RTS_INFO_LENGTH        5
#define SQCQ_RESV_LENGTH            8
#define SQCQ_QUERY_INFO_LENGTH      8
#define RESOURCEID_RESV_LENGTH      8
#define RESOURCE_CONFIG_INFO_LENGTH 7
#define TSDRV_FLAG_ONLY_SQCQ_ID     (1u << 4)

struct halSqCqInputInfo {
	int type;
	uint32_t tsId, sqeSize, cqeSize, sqeDepth, cqeDepth, grpId, flag, cqId, sqId;
	uint32_t info[SQCQ_RTS_INFO_LENGTH]; /* [0]: stream id */
	uint32_t ext_info_len;
	void *ext_info;
	uint32_t res[SQCQ_RESV_LENGTH - 3];
};
struct halSqCqOutputInfo {
	uint32_t sqId, cqId;
	unsigned long long queueVAddr;
	uint32_t flag;
	uint32_t res[SQCQ_RESV_LENGTH - 3];
};
struct halSqCqFreeInfo {
	int type;
	uint32_t tsId, sqId, cqId;
	uint32_t flag; /* bit 0: the completion queue stays */
	uint32_t res[SQCQ_RESV_LENGTH];
};
struct halResourceIdInputInfo {
	int type; /* drvIdType_t */
	uint32_t tsId, resourceId;
	uint32_t res[RESOURCEID_RESV_LENGTH]; /* streams: [0] priority, [1] flags */
};
struct halResourceIdOutputInfo {
	uint32_t resourceId, res[RESOURCEID_RESV_LENGTH];
};
struct halResourceConfigInfo {
	int prop;
	uint32_t value[RESOURCE_CONFIG_INFO_LENGTH];
};
struct halSqCqQueryInfo {
	int type;
	uint32_t tsId, sqId, cqId;
	int prop;
	uint32_t value[SQCQ_QUERY_INFO_LENGTH];
};
/* A name for an id of a device, by which other processes get at it. */
enum { SHR_ID_NOTIFY_TYPE = 0 };
struct drvShrIdInfo {
	uint32_t devid; /* in: the driver's number; out: the physical one */
	uint32_t tsid, id_type, shrid, flag, rsv[2];
};
enum { SHR_ID_ATTR_NO_WLIST_IN_SERVER = 0 };
#define SHRID_NO_WLIST_ENABLE 1
#define SHR_ID_SHADOW         64u /* flag: it is another server's, and devid the SDID */
struct shrIdAttr {
	unsigned int enableFlag, rsv[8];
};
struct shrIdGetInfo {
	uint32_t phyDevid;
	unsigned int rsv[8];
};
struct drvNotifyInfo {
	uint32_t tsId, notifyId;
	uint64_t devAddrOffset;
};
struct halTaskSendInfo {
	int type;
	uint32_t tsId, sqId;
	int32_t timeout; /* ms to wait for room */
	uint8_t *sqe_addr;
	uint32_t sqe_num;
	uint32_t pos; /* out: position of the first entry */
	uint32_t res[SQCQ_RESV_LENGTH];
};
struct halReportRecvInfo {
	int type;
	uint32_t tsId, cqId;
	int32_t timeout; /* ms; 0: do not wait, -1: no limit */
	uint8_t *cqe_addr;
	uint32_t cqe_num;
	uint32_t report_cqe_num; /* out */
	uint32_t stream_id;
	uint32_t task_id; /* all ones: any */
	uint32_t res[SQCQ_RESV_LENGTH];
};

/* Callback queues. */
struct halReportInfoInput {
	int type;
	uint32_t grpId; /* of the queues that are waited for */
	uint32_t tsId;
	int32_t timeout; /* ms */
	uint32_t res[SQCQ_RESV_LENGTH];
};
struct halReportInfoOutput {
	uint64_t *cqIdBitmap;    /* bits of the completion queues that have a report */
	uint32_t cqIdBitmapSize; /* in: words of it */
	uint32_t res[SQCQ_RESV_LENGTH];
};
struct halReportGetInput {
	int type;
	uint32_t tsId, cqId, res[SQCQ_RESV_LENGTH];
};
struct halReportGetOutput {
	uint32_t count;
	void *reportPtr; /* struct stars_callback_cqe */
	uint32_t res[SQCQ_RESV_LENGTH];
};
struct halReportReleaseInfo {
	int type;
	uint32_t tsId, cqId, count, res[SQCQ_RESV_LENGTH];
};
struct halSqMemGetInput {
	int type;
	uint32_t tsId, sqId, cmdCount, res[SQCQ_RESV_LENGTH];
};
struct halSqMemGetOutput {
	uint32_t cmdCount;
	volatile void *cmdPtr; /* struct stars_callback_command */
	uint32_t pos;
	uint32_t res[SQCQ_RESV_LENGTH - 1];
};
struct halSqMsgInfo {
	int type;
	uint32_t tsId, sqId, cmdCount, reportCount, res[SQCQ_RESV_LENGTH];
};

/* The 64-byte submission queue entries of STARS, the 910B's task scheduler. */
enum {
	STARS_SQE_AICPU = 1,
	STARS_SQE_PLACE_HOLDER = 3,
	STARS_SQE_EVENT_RECORD = 4,
	STARS_SQE_EVENT_WAIT = 5,
	STARS_SQE_NOTIFY_RECORD = 6,
	STARS_SQE_NOTIFY_WAIT = 7,
	STARS_SQE_WRITE_VALUE = 8,
	STARS_SQE_SDMA = 11,
	STARS_SQE_PCIE_DMA = 17,
	STARS_SQE_COND = 20
};
#define STARS_SQE_BYTES 64
/* Byte 14 of every entry but npusim's own: how long the scheduler lets the task run; 0 is not long
 * enough for any. */
#define STARS_CREDIT_OFFSET  14
#define STARS_CREDIT_DEFAULT 254u
#define STARS_CREDIT_FOREVER 255u /* waits */
struct stars_sqe_header {
	uint8_t type : 6;
	uint8_t l1_lock : 1;
	uint8_t l1_unlock : 1;
	uint8_t ie : 2;
	uint8_t pre_p : 2;
	uint8_t post_p : 2;
	uint8_t wr_cqe : 1; /* completion wanted */
	uint8_t res : 1;
	uint16_t sub_type; /* place holder: the task's type */
	uint16_t stream_id, task_id;
};
struct stars_sdma_sqe {
	struct stars_sqe_header header;
	uint32_t res3;
	uint16_t res4;
	uint8_t kernel_credit, ptr_mode;
	uint32_t control; /* opcode in bits 0-7: 0 is a copy */
	uint16_t src_stream_id, src_sub_stream_id, dst_stream_id, dst_sub_stream_id;
	uint32_t length, src_addr_low, src_addr_high, dst_addr_low, dst_addr_high;
	uint32_t src_offset_low, dst_offset_low;
	uint16_t src_offset_high, dst_offset_high;
	uint32_t res5;
};
/* A copy by virtual addresses, as CANN's runtime sends it: streams of both sides valid (bits 9,
 * 10), not secure (11, 12), quality of service 6 (13-16). */
#define STARS_SDMA_COPY_CONTROL (1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 6u << 13)
struct stars_pcie_dma_sqe {
	struct stars_sqe_header header;
	uint32_t res0;
	uint16_t res1;
	uint8_t kernel_credit, res2;
	uint32_t sq_addr_low, sq_addr_high;
	uint16_t sq_tail_ptr, res3;
	uint32_t convert; /* STARS_DMA_*; none: src, dst, length are virtual */
	uint64_t src, dst, length;
	uint32_t passid, res5;
};
#define STARS_DMA_DESCRIPTORS                                                                     \
	1u                   /* sq_addr is of descriptors that halMemcpy2D made (DMA_ADDR's src), \
				and sq_tail_ptr how many */
#define STARS_DMA_UPDATES 6u /* of other queues' entries */
/* EVENT_RECORD, EVENT_WAIT; NOTIFY_RECORD, NOTIFY_WAIT have the notify's id and, 4 bytes earlier
 * than an event's, the time-out in exe_result's place. */
struct stars_event_sqe {
	struct stars_sqe_header header;
	uint16_t event_id, res2, res3;
	uint8_t kernel_credit, res4;
	uint32_t exe_result;
	uint32_t timeout; /* s; 0: none */
	uint32_t res5[10];
};
struct stars_write_value_sqe {
	struct stars_sqe_header header;
	uint32_t res3;
	uint16_t res4;
	uint8_t kernel_credit, res5;
	uint32_t write_addr_low;
	uint32_t write_addr_high; /* bits 0-16 address, 20-22 log2 of the bytes, 31 virtual */
	uint32_t res7;
	uint32_t sub_type; /* 0: write value, or one of the next */
	uint32_t value[8];
};
enum {
	STARS_WRITE_EVENT_RESET = 1, /* back to not recorded, the event whose id stands in res7 */
	STARS_WRITE_NOTIFY = 3 /* record the notify of device res3 whose register is written: a
				  multiple of 1 MiB and what drvNotifyIdAddrOffset says */
};
/* That offset of a notify's register, 512 in every 64 KiB, and the notify of a register. */
#define STARS_NOTIFY_OFFSET(id)  ((id) % 512 * 4 + (id) / 512 * 65536)
#define STARS_NOTIFY_OF(address) (((address)&0xfffffu) / 65536 * 512 + (address) % 65536 / 4)
/* Where those of another server's device begin, by its SDID, and whether an address is there. */
#define STARS_PEER_NOTIFIES(sdid)                                  \
	((UINT64_C(48) << 40) + ((uint64_t)((sdid) >> 22) << 40) + \
	 ((uint64_t)((sdid) >> 18 & 7) << 37) + ((uint64_t)((sdid) >> 16 & 1) << 36) + 0x1100000)
#define STARS_IS_PEERS(low, high) \
	(((high)&0x1ffffu) >= 0x3000 && ((high)&0xfu) == 0 && (low) >> 20 == 0x11)
/* npusim's own entry: the queue stops until the value at a device address compares true. The 910B
 * does this with a chain of conditional entries whose layout is not public; it is sent only to a
 * driver that has NPU_CAP_VALUE_WAIT. */
struct stars_value_wait_sqe {
	struct stars_sqe_header header; /* type STARS_SQE_COND */
	uint32_t magic;                 /* STARS_VALUE_WAIT_MAGIC */
	uint32_t compare;               /* ACL_STREAM_WAIT_VALUE_* or STARS_WAIT_CYCLIC */
	uint64_t addr, value;
	uint32_t narrow; /* 1: the value has 4 bytes; 0: 8 */
	uint32_t res[7];
};
#define STARS_VALUE_WAIT_MAGIC 0x7761696eu
#define STARS_WAIT_CYCLIC      4 /* found - value, as a signed number, is not below 0 */

/* STARS_SQE_COND has condition code behind its first 16 bytes: 32-bit instructions that read memory
 * and may send the queue to another entry. A value wait is a WRITE_VALUE and one of these, that
 * goes back to it until the value is there; in CANN 9 a place holder follows, which is skipped. */
#define STARS_CONDITION_AT 4 /* in words of 4 bytes */
/* Calls a function of the host: STARS_SQE_AICPU whose topic is STARS_TOPIC_CALLBACK. */
struct stars_callback_sqe {
	struct stars_sqe_header header;
	uint16_t res0, kernel, sqe_index;
	uint8_t kernel_credit, res1;
	uint16_t cq_id, group_id, device, stream_id, event_id, is_block, task_id, res2;
	uint64_t function, data;
	uint32_t res3[2];
	uint32_t topic; /* bits 12-17 */
	uint32_t pid;
};
#define STARS_TOPIC_OF(topic) ((topic) >> 12 & 0x3fu)
#define STARS_TOPIC_CALLBACK  26u
/* What a callback queue gets of it. */
struct stars_callback_cqe {
	uint16_t phase; /* bits 4-15: the queue */
	uint16_t stream_id, task_id, sq_id, sq_head, sequence;
	uint8_t is_block, res;
	uint16_t event_id;
	uint64_t function, data;
};
/* Sent back when a blocking function has returned: the event that the stream waits for. */
struct stars_callback_command {
	uint32_t pid;
	uint8_t type, res0[3]; /* STARS_COMMAND_RECORD */
	uint16_t stream_id, event_id, task_id;
	uint8_t res1[50];
};
#define STARS_COMMAND_RECORD 15
/* Where the device's scheduler tells of failed tasks, a ring of device memory: a place holder of
 * this task says where it is. */
#define STARS_TASK_ERROR_RING 0x53
struct stars_error_ring_sqe {
	struct stars_sqe_header header;
	uint32_t res0[2];
	uint64_t address; /* as drvMemAddressTranslate answers it */
	uint64_t res1, pid;
	uint32_t elements;
	uint8_t end; /* 1: no ring any more */
	uint8_t res2[19];
};
#define STARS_ERROR_RING_MAGIC    0xa55a2020u
#define STARS_ERROR_ELEMENT_BYTES 12288u
struct stars_error_ring {
	uint32_t magic, head, tail, elements;
	uint64_t pid;
	uint32_t element_bytes, res;
};
struct stars_error_element {
	uint64_t pid;
	uint32_t bytes, kind; /* STARS_RING_* */
	uint64_t number, res;
	/* SDMA: the kind again, how many units failed, [8] stream, [9] task. Else [1] stream, [3]
	 * task: of an entry that is wrong [1] is the queue, [0] the stream, [2] the head and from
	 * [8] on the entry; of a wait [0] is its type, [2] the queue, [8] the id and [10] the
	 * seconds. */
	uint16_t about[40];
};
enum { STARS_RING_SDMA = 2, STARS_RING_SQE = 9, STARS_RING_WAIT = 10 };

/* Any entry. */
union stars_sqe {
	struct stars_sqe_header header; /* of all */
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe dma;
	struct stars_event_sqe event;
	struct stars_write_value_sqe write;
	struct stars_value_wait_sqe wait;
	struct stars_callback_sqe callback;
	struct stars_error_ring_sqe ring;
	uint32_t words[STARS_SQE_BYTES / 4]; /* of condition code: from STARS_CONDITION_AT on */
};

/* The 32-byte entry of a logic completion queue. */
struct stars_logic_cqe {
	uint16_t stream_id, task_id;
	uint32_t error_code;
	uint8_t error_type; /* bits 0-5: what went wrong, 0 nothing; bit 6: warning only */
	uint8_t sqe_type;
	uint16_t sq_id, sq_head, flags;
	uint64_t timestamp; /* in clocks of STARS_CLOCK_HZ */
	uint64_t reserved;
};
enum { /* bits of error_type */
       STARS_ERROR_EXCEPTION =
	       0x01, /* the task failed: a copy or a write met an address that does not translate */
       STARS_ERROR_TIMEOUT = 0x04, /* a wait's time-out */
       STARS_ERROR_SQE = 0x08,     /* the entry itself is not understood */
       STARS_ERROR_MASK = 0x3f
};
enum { /* error_code of a completion with an error */
       TS_ERROR_TASK_EXCEPTION = 0x103,
       TS_ERROR_TASK_TIMEOUT = 0x105,
       TS_ERROR_TASK_SQE_ERROR = 0x106,
       TS_ERROR_SDMA_ERROR = 0x20b, /* any copy */
       /* npusim's own: memory of the program that an entry reads or writes is gone */
       TS_ERROR_HOST_MEMORY = 0x8001
};
#define STARS_CQE_FLAG_MATCH 0x1u /* flags: only for who asks for this stream and task */
#define STARS_SYNC_TASK_FLAG \
	0x8000u /* in an entry's stream_id: its completion has STARS_CQE_FLAG_MATCH */
#define STARS_CLOCK_HZ UINT64_C(1000000000) /* the model's: one clock a nanosecond */

#ifdef __cplusplus
}
#endif

#endif
