/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of libascend_hal.so is called at least once; every name that others need is there,
 * and none that they would rather do without.
 */
#include "hal-rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const struct drv_mem_prop device_memory = { .side = MEM_DEV_SIDE,
						   .module_id = APP_MODULE_ID,
						   .pg_type = MEM_HUGE_PAGE_TYPE };

/* ---- names ---- */

/* What CANN's runtime (8.5 to 9.1) links strongly, and calls without looking. */
static const char *const strong[] = {
	"drvDeviceGetBareTgid",
	"drvDeviceGetIndexByPhyId",
	"drvDeviceGetPhyIdByIndex",
	"drvDeviceGetTransWay",
	"drvDfxShowReport",
	"drvFlushCache",
	"drvGetDevIDs",
	"drvGetDevNum",
	"drvGetP2PStatus",
	"drvGetPlatformInfo",
	"drvHdcAddMsgBuffer",
	"drvHdcAllocMsg",
	"drvHdcClientCreate",
	"drvHdcClientDestroy",
	"drvHdcEpollClose",
	"drvHdcEpollCreate",
	"drvHdcEpollCtl",
	"drvHdcEpollWait",
	"drvHdcFreeMsg",
	"drvHdcGetCapacity",
	"drvHdcGetMsgBuffer",
	"drvHdcReuseMsg",
	"drvHdcServerCreate",
	"drvHdcServerDestroy",
	"drvHdcSessionAccept",
	"drvHdcSessionClose",
	"drvHdcSessionConnect",
	"drvHdcSetSessionReference",
	"drvMemAddressTranslate",
	"drvMemConvertAddr",
	"drvMemDestroyAddr",
	"drvMemGetAttribute",
	"drvMemPrefetchToDevice",
	"drvMemSmmuQuery",
	"drvMemcpy",
	"drvMemsetD8",
	"halCqReportGet",
	"halCqReportIrqWait",
	"halDeviceCanAccessPeer",
	"halDeviceDisableP2P",
	"halDeviceEnableP2P",
	"halGetCapabilityGroupInfo",
	"halGetChipCapability",
	"halGetDeviceInfo",
	"halGetPairDevicesInfo",
	"halHdcGetSessionAttr",
	"halHdcRecv",
	"halHdcSend",
	"halHdcSessionConnectEx",
	"halHostUnregister",
	"halMemAlloc",
	"halMemFree",
	"halMemGetInfo",
	"halReportRelease",
	"halResourceIdAlloc",
	"halResourceIdFree",
	"halShmemCloseHandle",
	"halShmemCreateHandle",
	"halShmemDestroyHandle",
	"halShmemOpenHandle",
	"halShmemSetPidHandle",
	"halSqCqAllocate",
	"halSqCqFree",
	"halSqMemGet",
	"halSqMsgSend",
	"halMemCtl",
	"halSqTaskSend",
	"halCqReportRecv",
	"halResourceConfig",
};

/* What memfabric looks up beside those; one that is missing ends it. */
static const char *const memfabric[] = {
	"halMemAddressReserve",
	"halMemAddressFree",
	"halMemCreate",
	"halMemRelease",
	"halMemMap",
	"halMemUnmap",
	"halMemSetAccess",
	"halMemExportToShareableHandleV2",
	"halMemImportFromShareableHandleV2",
	"halMemTransShareableHandle",
	"halMemShareHandleSetAttribute",
	"halMemGetAllocationGranularity",
	"halHostRegister",
	"halHostUnregisterEx",
	"halSqCqQuery",
	"drvNotifyIdAddrOffset",
	"g_devmm_mem_dev",
	"svm_module_alloced_size_inc",
	"devmm_virt_alloc_mem_from_base",
	"devmm_ioctl_enable_heap",
	"devmm_get_heap_list_by_type",
	"devmm_virt_set_heap_idle",
	"devmm_virt_get_heap_mgmt",
	"devmm_ioctl_free_pages",
	"devmm_va_to_heap_idx",
	"devmm_virt_get_heap_from_queue",
	"devmm_virt_normal_heap_update_info",
	"devmm_va_to_heap",
	"devmm_virt_destroy_heap",
};

/* Weak ones that change what callers do if they are there: descriptors are prepared for queues that
 * do not read them, faults are waited for, logs are fetched. */
static const char *const absent[] = {
	"halMemcpySumbit",     "halMemDestroyAddrBatch",
	"halMemPoolCreate",    "halCtl",
	"halReadFaultEvent",   "halMapErrorCode",
	"halSetRuntimeApiVer", "drvMemDeviceOpen",
	"drvDeviceOpen",       "halMemGetAddressReserveRange",
	"halMemAgentOpen",
};

TEST(hal_names, all_that_others_need_are_there)
{
	for (size_t i = 0; i < sizeof(strong) / sizeof(strong[0]); i++)
		if (hal_symbol(strong[i]) == NULL)
			ADD_FAILURE("%s is missing", strong[i]);
	for (size_t i = 0; i < sizeof(memfabric) / sizeof(memfabric[0]); i++)
		if (hal_symbol(memfabric[i]) == NULL)
			ADD_FAILURE("%s is missing", memfabric[i]);
}

TEST(hal_names, none_that_has_nothing_behind_it_and_could_be_left_out)
{
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (hal_symbol(absent[i]) != NULL)
			ADD_FAILURE("%s is there", absent[i]);
}

TEST(hal_names, what_is_not_modelled_refuses)
{
	static const char *const refused[] = {
		"drvHdcAddMsgBuffer",
		"drvHdcAllocMsg",
		"drvHdcClientCreate",
		"drvHdcClientDestroy",
		"drvHdcEpollClose",
		"drvHdcEpollCreate",
		"drvHdcEpollCtl",
		"drvHdcEpollWait",
		"drvHdcFreeMsg",
		"drvHdcGetCapacity",
		"drvHdcGetMsgBuffer",
		"drvHdcReuseMsg",
		"drvHdcServerCreate",
		"drvHdcServerDestroy",
		"drvHdcSessionAccept",
		"drvHdcSessionClose",
		"drvHdcSessionConnect",
		"drvHdcSetSessionReference",
		"halHdcGetSessionAttr",
		"halHdcRecv",
		"halHdcSend",
		"halHdcSessionConnectEx",
		"halGetCapabilityGroupInfo",
		"drvMemConvertAddr",
		"svm_module_alloced_size_inc",
		"devmm_ioctl_enable_heap",
		"devmm_virt_set_heap_idle",
		"devmm_ioctl_free_pages",
		"devmm_va_to_heap_idx",
		"devmm_virt_normal_heap_update_info",
		"devmm_virt_destroy_heap",
	};
	drvError_t (*function)(long a, long b, long c, long d, long e, long f);

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		NOTE("%s", refused[i]);
		*(void **)&function = hal_symbol(refused[i]);
		ASSERT_NOT_NULL(function);
		EXPECT_EQ(function(0, 0, 0, 0, 0, 0), DRV_ERROR_NOT_SUPPORT);
	}
}

TEST(hal_names, private_pointers_are_null)
{
	static const char *const pointers[] = {
		"devmm_virt_alloc_mem_from_base", "devmm_get_heap_list_by_type",
		"devmm_virt_get_heap_mgmt", "devmm_virt_get_heap_from_queue", "devmm_va_to_heap"
	};
	void *(*function)(void);
	void (*nothing)(uint64_t base, uint32_t length);

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		*(void **)&function = hal_symbol(pointers[i]);
		ASSERT_NOT_NULL(function);
		EXPECT_NULL(function());
	}
	EXPECT_EQ(*(int *)hal_symbol("g_devmm_mem_dev"), -1);
	*(void **)&nothing = hal_symbol("drvFlushCache");
	nothing(0, 0);
	*(void **)&nothing = hal_symbol("drvDfxShowReport");
	nothing(0, 0);
}

/* ---- every function of the seam ---- */

static void open_devices(void)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	for (uint32_t dev = 0; dev < 2; dev++)
		EXPECT_HAL(HAL(halDeviceOpen)(dev, &in, &out));
}

static void close_devices(void)
{
	halDevCloseIn in = { { 0 } };

	for (uint32_t dev = 0; dev < 2; dev++)
		EXPECT_HAL(HAL(halDeviceClose)(dev, &in));
}

static void call_questions(void)
{
	uint32_t ids[2] = { 9, 9 }, number = 9;
	int version = 0;
	int64_t value = -1;
	uint64_t feature[2] = { 1u << 4, 0 }, answer[2] = { 0 };
	size_t size = 0;
	char name[64];
	struct halCapabilityInfo capability;
	struct halSDIDParseInfo parsed;
	uint8_t way = 9;

	EXPECT_HAL(HAL(drvGetPlatformInfo)(&number));
	EXPECT_HAL(HAL(drvGetDevNum)(&number));
	EXPECT_EQ(number, 2u);
	EXPECT_HAL(HAL(drvGetDevIDs)(ids, 2));
	EXPECT_EQ(ids[1], 1u);
	EXPECT_HAL(HAL(halGetDeviceInfo)(0, MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, &value));
	EXPECT_HAL(HAL(halGetPairDevicesInfo)(0, 1, 0, &value));
	EXPECT_HAL(HAL(halParseSDID)(4u << 22 | 1900559, &parsed));
	EXPECT_EQ(parsed.server_id, 4u);
	EXPECT_EQ(parsed.chip_id, 7u);
	EXPECT_EQ(parsed.die_id, 1u);
	EXPECT_EQ(parsed.udevid, 15u);
	EXPECT_EQ(value, TOPOLOGY_HCCS);
	EXPECT_EQ(HAL(halGetSocVersion)(0, name, sizeof(name)), DRV_ERROR_NOT_SUPPORT);
	EXPECT_HAL(HAL(halGetAPIVersion)(&version));
	EXPECT_EQ(version >> 16, 7);
	EXPECT_TRUE(HAL(halSupportFeature)(0, FEATURE_SVM_VMM_NORMAL_GRANULARITY));
	EXPECT_HAL(HAL(halGetChipCapability)(0, &capability));
	EXPECT_HAL(HAL(drvMemSmmuQuery)(0, &number));
	EXPECT_EQ(HAL(drvDeviceGetBareTgid)(), getpid());
	EXPECT_HAL(HAL(drvDeviceGetIndexByPhyId)(1, &number));
	EXPECT_EQ(number, 1u);
	EXPECT_HAL(HAL(drvDeviceGetPhyIdByIndex)(1, &number));
	EXPECT_HAL(HAL(drvDeviceGetTransWay)(NULL, NULL, &way));
	EXPECT_HAL(HAL(halGetHostID)(&number));
	EXPECT_EQ(number, 65u);
	EXPECT_EQ(HAL(halMemCtl)(0, NULL, 0, NULL, NULL), DRV_ERROR_NOT_SUPPORT);
	EXPECT_HAL(HAL(halMemCtl)(2, feature, sizeof(feature), answer, &size)); /* size is 0 */
	EXPECT_EQ(answer[0], 1u << 4);
	EXPECT_EQ(size, sizeof(answer));
	EXPECT_HAL(HAL(halHostRegisterCapabilities)(0, 0, &number));
}

static void call_peers(void)
{
	int can = 0;
	uint32_t status = 9;

	EXPECT_HAL(HAL(halDeviceCanAccessPeer)(&can, 0, 1));
	EXPECT_EQ(can, 1);
	EXPECT_HAL(HAL(halDeviceEnableP2P)(0, 1, 0));
	EXPECT_HAL(HAL(drvGetP2PStatus)(0, 1, &status));
	EXPECT_HAL(HAL(halDeviceDisableP2P)(0, 1, 0));
}

static void call_mapping(void)
{
	struct drv_mem_access_desc access = { .type = MEM_ACCESS_TYPE_READWRITE,
					      .location = { 0, MEM_DEV_SIDE } };
	struct drv_mem_location where = { 0, MEM_DEV_SIDE };
	struct drv_mem_prop prop = { 0 };
	drv_mem_handle_t *handle = NULL, *again = NULL;
	DVdeviceptr base = 0;
	size_t bytes = 0;
	uint64_t flags = 9;
	void *va = NULL;

	EXPECT_HAL(HAL(halMemGetAllocationGranularity)(&device_memory,
						       MEM_ALLOC_GRANULARITY_RECOMMENDED, &bytes));
	EXPECT_HAL(HAL(halMemAddressReserve)(&va, 4 * MIB, 0, NULL, 1));
	EXPECT_HAL(HAL(halMemCreate)(&handle, 4 * MIB, &device_memory, 0));
	/* As the drivers of 910B and 910C: there, and refusing. */
	EXPECT_EQ(HAL(halMemMapNoAccess)(va, 4 * MIB, 0, handle, 0), DRV_ERROR_NOT_SUPPORT);
	EXPECT_HAL(HAL(halMemMap)(va, 4 * MIB, 0, handle, 0));
	EXPECT_HAL(HAL(halMemSetAccess)(va, 4 * MIB, &access, 1));
	EXPECT_HAL(HAL(halMemGetAccess)(va, &where, &flags));
	EXPECT_EQ(flags, (uint64_t)MEM_ACCESS_TYPE_READWRITE);
	EXPECT_HAL(HAL(halMemRetainAllocationHandle)(&again, va));
	EXPECT_HAL(HAL(halMemRelease)(again));
	EXPECT_HAL(HAL(halMemGetAllocationPropertiesFromHandle)(&prop, handle));
	EXPECT_EQ(prop.side, (uint32_t)MEM_DEV_SIDE);
	EXPECT_HAL(HAL(halMemGetAddressRange)((uintptr_t)va + MIB, &base, &bytes));
	EXPECT_EQ(base, (uintptr_t)va);
	EXPECT_HAL(HAL(halMemUnmap)(va));
	EXPECT_HAL(HAL(halMemRelease)(handle));
	EXPECT_HAL(HAL(halMemAddressFree)(va));
}

static void call_sharing(void)
{
	struct MemShareHandle fabric;
	struct ShareHandleAttr attr = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE }, got = { 0 };
	struct ShareHandleGetInfo info = { 0 };
	drv_mem_handle_t *first = NULL, *second = NULL, *imported = NULL;
	uint64_t one = 0, two = 0;
	uint32_t server = 9;
	int pid = getpid();

	EXPECT_HAL(HAL(halMemCreate)(&first, 2 * MIB, &device_memory, 0));
	EXPECT_HAL(HAL(halMemCreate)(&second, 2 * MIB, &device_memory, 0));
	EXPECT_HAL(HAL(halMemExportToShareableHandle)(first, MEM_HANDLE_TYPE_NONE, 0, &one));
	EXPECT_HAL(HAL(halMemSetPidToShareableHandle)(one, &pid, 1));
	EXPECT_HAL(HAL(halMemShareHandleInfoGet)(one, &info));
	EXPECT_EQ(info.phyDevid, 0u);
	EXPECT_HAL(
		HAL(halMemExportToShareableHandleV2)(second, MEM_HANDLE_TYPE_FABRIC, 0, &fabric));
	EXPECT_HAL(HAL(halMemTransShareableHandle)(MEM_HANDLE_TYPE_FABRIC, &fabric, &server, &two));
	EXPECT_HAL(
		HAL(halMemShareHandleSetAttribute)(two, SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, attr));
	EXPECT_HAL(
		HAL(halMemShareHandleGetAttribute)(two, SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, &got));
	EXPECT_EQ(got.enableFlag, (unsigned)SHR_HANDLE_NO_WLIST_ENABLE);
	/* In the process that made it: refused by both forms. */
	EXPECT_NE(HAL(halMemImportFromShareableHandle)(one, 0, &imported), DRV_ERROR_NONE);
	EXPECT_NE(HAL(halMemImportFromShareableHandleV2)(MEM_HANDLE_TYPE_FABRIC, &fabric, 0,
							 &imported),
		  DRV_ERROR_NONE);
	EXPECT_HAL(HAL(halMemRelease)(first));
	EXPECT_HAL(HAL(halMemRelease)(second));
}

static void call_names_of_memory(void)
{
	struct ShmemGetInfo info = { 0 };
	DVdeviceptr again = 0;
	char name[65] = "";
	int pid = getpid();
	void *memory = hal_alloc(0, 2 * MIB);

	EXPECT_HAL(HAL(halShmemCreateHandle)((uintptr_t)memory, 2 * MIB, name, sizeof(name)));
	EXPECT_NE(name[0], '\0');
	EXPECT_HAL(HAL(halShmemSetPidHandle)(name, &pid, 1));
	EXPECT_NE(HAL(halShmemSetPodPid)(name, 0, &pid, 1), DRV_ERROR_NONE); /* a 910B */
	EXPECT_HAL(HAL(halShmemInfoGet)(name, &info));
	HAL(halShmemSetAttribute)(name, 0, 1); /* after pids were set it may refuse */
	if (HAL(halShmemOpenHandle)(name, &again) == DRV_ERROR_NONE)
		EXPECT_HAL(HAL(halShmemCloseHandle)(again));
	if (HAL(halShmemOpenHandleByDevId)(0, name, &again) == DRV_ERROR_NONE)
		EXPECT_HAL(HAL(halShmemCloseHandle)(again));
	EXPECT_NE(HAL(halShmemCloseHandle)(0), DRV_ERROR_NONE);
	EXPECT_HAL(HAL(halShmemDestroyHandle)(name));
	EXPECT_HAL(HAL(halMemFree)(memory));
}

static void call_notifies(void)
{
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };
	struct halResourceIdOutputInfo out = { 0 };
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE }, opened = { .devid = 1 };
	struct drvNotifyInfo where = { 0 };
	struct shrIdGetInfo of = { .phyDevid = 9 };
	struct shrIdAttr to_all = { .enableFlag = SHRID_NO_WLIST_ENABLE };
	char name[65] = "";
	pid_t pid = getpid();

	EXPECT_HAL(HAL(halResourceIdAlloc)(0, &in, &out));
	info.shrid = in.resourceId = where.notifyId = out.resourceId;
	EXPECT_HAL(HAL(drvNotifyIdAddrOffset)(0, &where));
	EXPECT_EQ(where.devAddrOffset, out.resourceId % 512 * 4 + out.resourceId / 512 * 65536);
	EXPECT_EQ(HAL(halShrIdCreate)(&info, name, 64), DRV_ERROR_INVALID_VALUE);
	EXPECT_HAL(HAL(halShrIdCreate)(&info, name, sizeof(name)));
	EXPECT_EQ(HAL(halShrIdSetPid)(name, &pid, 2), DRV_ERROR_INVALID_VALUE);
	EXPECT_HAL(HAL(halShrIdSetPid)(name, &pid, 1));
	EXPECT_EQ(HAL(halShrIdSetAttribute)(name, SHR_ID_ATTR_NO_WLIST_IN_SERVER, to_all),
		  DRV_ERROR_OPER_NOT_PERMITTED);
	EXPECT_EQ(HAL(halShrIdSetPodPid)(name, 0, pid), DRV_ERROR_IOCRL_FAIL); /* a 910B */
	EXPECT_HAL(HAL(halShrIdInfoGet)(name, &of));
	EXPECT_EQ(of.phyDevid, 0u);
	EXPECT_HAL(HAL(halShrIdOpen)(name, &opened));
	EXPECT_EQ(opened.devid, 0u);
	EXPECT_EQ(opened.shrid, out.resourceId);
	EXPECT_HAL(HAL(halShrIdDestroy)(name));
	EXPECT_NE(HAL(halShrIdOpen)(name, &opened), DRV_ERROR_NONE);
	EXPECT_HAL(HAL(halShrIdClose)(name));
	EXPECT_HAL(HAL(halResourceIdFree)(0, &in));
	EXPECT_NE(HAL(halShrIdClose)(name), DRV_ERROR_NONE);
}

static void call_copies(void)
{
	uint8_t *device = hal_alloc(0, 2 * MIB), *host = calloc(1, MIB), *back = calloc(1, MIB);
	uint64_t dst[1] = { (uintptr_t)device }, src[1] = { (uintptr_t)host };
	size_t size[1] = { 4096 };
	struct MEMCPY2D plane = { .type = DEVMM_MEMCPY2D_SYNC };
	struct memcpy_info to_host = { .dir = DRV_MEMCPY_DEVICE_TO_HOST };
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	drvError_t (*end_descriptors)(struct DMA_ADDR * ptr);
	drvError_t (*translate)(DVdeviceptr va, uint64_t * pa);
	uint64_t pa = 0, next = 0;
	drvError_t (*explicit_copy)(void *d, size_t room, void *s, size_t count,
				    struct memcpy_info *info);

	memset(host, 0x5a, MIB);
	EXPECT_HAL(HAL(drvMemsetD8)((uintptr_t)device, 2 * MIB, 0x11, 2 * MIB));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)device, 2 * MIB, (uintptr_t)host, MIB));
	EXPECT_HAL(HAL(halMemcpyBatch)(dst, src, size, 1));
	plane.copy2d = (struct drvMem2D){ .dst = (unsigned long long *)device,
					  .dpitch = 4096,
					  .src = (unsigned long long *)host,
					  .spitch = 2048,
					  .width = 1024,
					  .height = 16,
					  .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	EXPECT_HAL(HAL(halMemcpy2D)(&plane));
	plane.type = DEVMM_MEMCPY2D_ASYNC_CONVERT;
	plane.copy2dAsync.dmaAddr = &dma;
	EXPECT_HAL(HAL(halMemcpy2D)(&plane));
	EXPECT_EQ(dma.fixed_size, 1024u * 16);
	*(void **)&end_descriptors = hal_symbol("drvMemDestroyAddr");
	EXPECT_HAL(end_descriptors(&dma));
	EXPECT_EQ(end_descriptors(&dma), DRV_ERROR_INVALID_VALUE);
	*(void **)&translate = hal_symbol("drvMemAddressTranslate");
	EXPECT_HAL(translate((uintptr_t)device, &pa));
	EXPECT_HAL(translate((uintptr_t)device + 4096, &next));
	EXPECT_EQ(next, pa + 4096);
	EXPECT_EQ(translate((uintptr_t)host, &pa), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(translate((uintptr_t)device, NULL), DRV_ERROR_INVALID_VALUE);
	*(void **)&explicit_copy = hal_symbol("halMemcpy");
	ASSERT_NOT_NULL(explicit_copy);
	EXPECT_HAL(explicit_copy(back, MIB, device, MIB, &to_host));
	EXPECT_MEMEQ(back, host, MIB);
	EXPECT_EQ(explicit_copy(back, MIB, device, MIB, NULL), DRV_ERROR_INVALID_VALUE);
	to_host.dir = (drvMemcpyKind_t)4;
	EXPECT_EQ(explicit_copy(back, MIB, device, MIB, &to_host), DRV_ERROR_INVALID_VALUE);
	HAL(drvMemPrefetchToDevice)((uintptr_t)device, MIB, 0); /* advice: any answer will do */
	EXPECT_HAL(HAL(halMemFree)(device));
	free(host);
	free(back);
}

static void call_memory(void)
{
	struct DVattribute attr;
	struct MemInfo info;
	void *host, *seen = NULL;

	EXPECT_HAL(HAL(halMemGetInfo)(0, MEM_INFO_TYPE_HBM_SIZE, &info));
	host = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(host, MAP_FAILED);
	EXPECT_HAL(HAL(drvMemGetAttribute)((uintptr_t)host, &attr));
	EXPECT_EQ(attr.memType, (uint32_t)DV_MEM_USER_MALLOC);
	EXPECT_HAL(HAL(halHostRegister)(host, 2 * MIB, HOST_MEM_MAP_DEV, 0, &seen));
	EXPECT_NOT_NULL(seen);
	EXPECT_HAL(HAL(halHostUnregister)(host, 0));
	EXPECT_HAL(HAL(halHostRegister)(host, 2 * MIB, HOST_MEM_MAP_DEV_PCIE_TH, 0, &seen));
	EXPECT_HAL(HAL(halHostUnregisterEx)(host, 0, HOST_MEM_MAP_DEV_PCIE_TH));
	EXPECT_EQ(HAL(halHostRegister)(host, 2 * MIB, DEV_SVM_MAP_HOST, 0, &seen),
		  DRV_ERROR_NOT_SUPPORT);
	munmap(host, 2 * MIB);
}

static void call_queues(void)
{
	struct hal_stream stream;
	struct stars_logic_cqe cqe;
	struct {
		struct stars_sqe_header header;
		uint32_t rest[14];
	} nothing = { .header.type = STARS_SQE_PLACE_HOLDER };

	hal_stream_open(&stream, 1);
	hal_send(&stream, &nothing, true);
	ASSERT_TRUE(hal_wait_for_head(&stream));
	EXPECT_EQ(hal_receive(&stream, &cqe, 1), 1u);
	hal_stream_close(&stream);
}

static void call_callbacks(void)
{
	struct halSqCqInputInfo in = {
		.type = DRV_CALLBACK_TYPE, .sqeSize = 64, .cqeSize = 32, .cqeDepth = 512
	};
	struct halSqCqOutputInfo out = { 0 };
	uint64_t bits[16];
	struct halReportInfoInput wait = { .type = DRV_CALLBACK_TYPE };
	struct halReportInfoOutput who = { .cqIdBitmap = bits, .cqIdBitmapSize = 16 };
	struct halReportGetInput get = { .type = DRV_CALLBACK_TYPE };
	struct halReportGetOutput report = { .count = 9 };
	struct halReportReleaseInfo release = { .type = DRV_CALLBACK_TYPE, .count = 1 };
	struct halSqMemGetInput room = { .type = DRV_CALLBACK_TYPE };
	struct halSqMemGetOutput command = { 0 };
	struct halSqMsgInfo send = { .type = DRV_CALLBACK_TYPE, .cmdCount = 1 };
	struct halSqCqFreeInfo end = { .type = DRV_CALLBACK_TYPE };

	EXPECT_HAL(HAL(halSqCqAllocate)(0, &in, &out));
	get.cqId = release.cqId = end.cqId = out.cqId;
	room.sqId = send.sqId = out.sqId;
	EXPECT_EQ(HAL(halCqReportIrqWait)(0, &wait, &who), DRV_ERROR_WAIT_TIMEOUT);
	EXPECT_HAL(HAL(halCqReportGet)(0, &get, &report));
	EXPECT_EQ(report.count, 0u);
	EXPECT_EQ(HAL(halReportRelease)(0, &release), DRV_ERROR_INVALID_VALUE);
	EXPECT_HAL(HAL(halSqMemGet)(0, &room, &command));
	EXPECT_NOT_NULL((void *)command.cmdPtr);
	EXPECT_EQ(HAL(halSqMsgSend)(0, &send), DRV_ERROR_NOT_SUPPORT);
	EXPECT_HAL(HAL(halSqCqFree)(0, &end));
}

static void count_line(void *arg, const char *text)
{
	(void)text;
	++*(unsigned *)arg;
}

static void call_our_own(void)
{
	struct npu_stats stats = { .size = sizeof(stats) }, after = stats;
	struct npu_place place;
	struct npu_head head;
	uint64_t now = 0;
	uint32_t back = 0;
	unsigned lines = 0;
	void *memory = hal_alloc(0, 2 * MIB);

	EXPECT_HAL(HAL(npusimGetStats)(0, &stats));
	EXPECT_GT(stats.own_bytes, 0u);
	EXPECT_HAL(HAL(npusimNow)(&now));
	EXPECT_GT(now, 0u);
	EXPECT_EQ(HAL(halMemFree)((char *)memory + 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(HAL(npusimLastMessage)(), "halMemFree");
	EXPECT_HAL(HAL(npusimPlace)((uintptr_t)memory + MIB, &place));
	EXPECT_EQ(place.kind, NPU_PLACE_DEVICE);
	EXPECT_EQ(place.base, (uintptr_t)memory);
	uint64_t at[] = { (uintptr_t)memory + MIB, (uintptr_t)memory };

	EXPECT_HAL(HAL(npusimFill)((uintptr_t)memory, 0x01020304, 4, 1024));
	EXPECT_HAL(HAL(npusimTouch)(0, at, 2, 512, 0));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)&back, 4, (uintptr_t)memory + 4092, 4));
	EXPECT_EQ(back, 0x01020304u);
	EXPECT_HAL(HAL(npusimCheckCopy)((uintptr_t)memory, (uintptr_t)memory + MIB, 4096));
	EXPECT_EQ(HAL(npusimAwait)(0, 0, UINT32_MAX, 0, &head), DRV_ERROR_NONE); /* no such queue */
	EXPECT_EQ(HAL(npusimAwait)(0, 0, 0, 0, NULL), DRV_ERROR_INVALID_VALUE);
	uint64_t pa = UINT64_MAX, bytes = MIB / 2, next = 0, rest = 8 * MIB;
	EXPECT_HAL(HAL(npusimPhysical)(0, (uintptr_t)memory, &pa, &bytes));
	EXPECT_EQ(bytes, MIB / 2);
	EXPECT_HAL(HAL(npusimPhysical)(0, (uintptr_t)memory + MIB, &next, &rest));
	EXPECT_EQ(next, pa + MIB);
	EXPECT_GE(rest, MIB);
	EXPECT_EQ(HAL(npusimPhysical)(0, (uintptr_t)&pa, &pa, &bytes), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(HAL(npusimLastMessage)(), "no memory of device 0 is mapped at");
	EXPECT_HAL(HAL(npusimGaveBack)(0x1000, 4096, "a test"));
	at[0] = UINT64_MAX; /* nobody's */
	EXPECT_HAL(HAL(npusimFreedSoon)(at, 2));
	EXPECT_HAL(HAL(npusimFreedSoon)(NULL, 2));
	EXPECT_HAL(HAL(npusimDocumentedBy)(NULL));
	(void)HAL(npusimOrder)(0, (enum npu_order)0, 0, 0); /* for layers */
	(void)HAL(npusimTellBlock)(1, 0);
	(void)HAL(npusimMark)("mark");
	(void)HAL(npusimReports)(NULL, NULL);
	(void)HAL(npusimHolders)(0, NULL, NULL, NULL);
	struct npu_written written;
	struct npu_write write;

	EXPECT_HAL(HAL(npusimWritten)((uintptr_t)memory + MIB, &written));
	EXPECT_EQ(written.at, next);
	EXPECT_EQ(written.bytes, MIB);
	ASSERT_NE(written.bits, NULL);
	EXPECT_HAL(HAL(npusimWritten)((uintptr_t)memory, NULL));
	EXPECT_HAL(HAL(npusimWritten)((uintptr_t)memory, &written));
	EXPECT_EQ(written.bits, NULL);
	EXPECT_HAL(HAL(npusimWrites)((uintptr_t)memory, MIB, &write));
	EXPECT_EQ(write.mark, 0u); /* nobody else has it */
	EXPECT_NE(HAL(npusimStop)(0, UINT32_MAX), DRV_ERROR_NONE);
	EXPECT_HAL(HAL(npusimGetStats)(0, &stats));
	EXPECT_HAL(HAL(npusimNow)(&at[0]));
	EXPECT_HAL(HAL(npusimSpend)(NPU_WORK_EVENT));
	EXPECT_HAL(HAL(npusimNow)(&at[1]));
	EXPECT_EQ(at[1] - at[0], 2100000u); /* event_ns */
	EXPECT_HAL(HAL(npusimGetStats)(0, &after));
	EXPECT_EQ(memcmp(stats.call_ps, after.call_ps, sizeof(after.call_ps)), 0);
	EXPECT_EQ(memcmp(stats.call_count, after.call_count, sizeof(after.call_count)), 0);
	EXPECT_EQ(HAL(npusimSpend)(NPU_WORK_HOST_WAKE + 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(HAL(npusimSpend)((enum npu_work) - 1), DRV_ERROR_INVALID_VALUE);
	/* Only before the first device. */
	EXPECT_NE(HAL(npusimSetDialect)(NPU_DIALECT_CUDA), DRV_ERROR_NONE);
	EXPECT_HAL(HAL(npusimLeaks)(count_line, &lines, true));
	EXPECT_GT(lines, 0u);
	EXPECT_HAL(HAL(halMemFree)(memory));
}

TEST(hal_functions, every_one_is_called_and_answers)
{
	open_devices();
	call_questions();
	call_peers();
	call_mapping();
	call_sharing();
	call_names_of_memory();
	call_notifies();
	call_copies();
	call_memory();
	call_queues();
	call_callbacks();
	call_our_own();
	close_devices();
	for (int op = 0; op < HAL_OP_COUNT; op++)
		if (!hal_called[op])
			ADD_FAILURE("%s was not called", hal_op_name(op));
}
