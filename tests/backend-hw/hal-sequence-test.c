/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that CANN's own runtime (8.5) makes to the driver, in its order and with its arguments,
 * from loading to resetting the device. What it reads is checked, the data of its copies too.
 */
#include "hal-rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* Task types in a place holder. */
enum {
	TASK_MAINTENANCE = 0x06,
	TASK_ALLOC_DSA_ADDR = 0x1d,
	TASK_RINGBUFFER = 0x53,
	TASK_GET_STARS_VERSION = 0x61
};

static void expect_info(int32_t module, int32_t info, int64_t value)
{
	int64_t got = -1;

	NOTE("module %d, info %d", module, info);
	EXPECT_HAL(HAL(halGetDeviceInfo)(0, module, info, &got));
	EXPECT_EQ(got, value);
}

static void refuses(const char *name)
{
	drvError_t (*function)(void *a, int b, int c, int d);

	*(void **)&function = hal_symbol(name);
	ASSERT_NOT_NULL(function);
	NOTE("%s", name);
	EXPECT_EQ(function(NULL, 0, 0, 0), DRV_ERROR_NOT_SUPPORT);
}

static void load_and_init(void)
{
	uint32_t platform = 9, devices = 0;
	char name[50] = "";

	EXPECT_HAL(HAL(drvGetPlatformInfo)(&platform));
	EXPECT_EQ(platform, 1u);
	EXPECT_HAL(HAL(drvGetDevNum)(&devices));
	EXPECT_EQ(devices, 2u);
	refuses("drvHdcClientCreate");
	for (int i = 0; i < 3; i++)
		expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, 0x40501);
	EXPECT_EQ(HAL(halGetSocVersion)(0, name, sizeof(name)), DRV_ERROR_NOT_SUPPORT);
	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_CORE_NUM, 1);
	expect_info(MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM, 24);
	expect_info(MODULE_TYPE_AICPU, INFO_TYPE_CORE_NUM, 6);
	HAL(halSupportFeature)(0, FEATURE_TRSDRV_SQ_DEVICE_MEM_PRIORITY);
	EXPECT_FALSE(HAL(halSupportFeature)(0, FEATURE_TRSDRV_SQ_SUPPORT_DYNAMIC_BIND));
}

static void open_device(void)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;
	struct halCapabilityInfo capability;
	uint32_t ssid = 9;

	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_ENV, 0);
	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_RUN_MACH, 0);
	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_ADDR_MODE, 0);
	EXPECT_HAL(HAL(halDeviceOpen)(0, &in, &out));
	EXPECT_HAL(HAL(drvMemSmmuQuery)(0, &ssid));
	EXPECT_EQ(ssid, 0u);
	memset(&capability, 0xff, sizeof(capability));
	EXPECT_HAL(HAL(halGetChipCapability)(0, &capability));
	EXPECT_EQ(capability.ts_group_number, 0u);
	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_CHIP_ID, 0);
	expect_info(MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_DIE_ID, 0);
	/* The caller goes on without what these two would give. */
	EXPECT_EQ(HAL(halMemCtl)(8, NULL, 0, NULL, NULL), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(HAL(halMemCtl)(0, NULL, 0, NULL, NULL), DRV_ERROR_NOT_SUPPORT);
}

/* The pools of SetDevice: sizes and flags as they were seen. */
static const struct {
	uint64_t bytes, flag;
} pools[] = {
	{ 32768, UINT64_C(0x0700000000904400) },   { 2096640, UINT64_C(0x0700000000904400) },
	{ 6356992, UINT64_C(0x0700000000924400) }, { 1966080, UINT64_C(0x0700000040924400) },
	{ 3018752, UINT64_C(0x0700000000924400) }, { 65536, UINT64_C(0x0700000000900400) },
	{ 2097152, UINT64_C(0x0700000000924400) }, { 2, UINT64_C(0x0700000000904400) },
	{ 2457600, UINT64_C(0x0700000000924400) }, { 1228800, UINT64_C(0x0700000000904400) },
	{ 2097152, UINT64_C(0x0700000000924400) }, { 512, UINT64_C(0x0700000000904400) },
};
#define POOL_COUNT (sizeof(pools) / sizeof(pools[0]))

static void make_pools(void *out[])
{
	for (unsigned i = 0; i < POOL_COUNT; i++) {
		NOTE("pool %u of %zu bytes", i, (size_t)pools[i].bytes);
		out[i] = NULL;
		EXPECT_HAL(HAL(halMemAlloc)(&out[i], pools[i].bytes, pools[i].flag));
		EXPECT_EQ((uintptr_t)out[i] % 512, 0u);
		EXPECT_HAL(HAL(drvMemsetD8)((uintptr_t)out[i], pools[i].bytes, 0, pools[i].bytes));
	}
}

static void queue_properties(struct hal_stream *stream)
{
	struct halSqCqQueryInfo info = { .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .prop = DRV_SQCQ_PROP_SQ_REG_BASE };

	EXPECT_HAL(HAL(halSqCqQuery)(0, &info));
	EXPECT_TRUE(info.value[0] != 0 || info.value[1] != 0);
	info.prop = DRV_SQCQ_PROP_SQ_HEAD;
	EXPECT_HAL(HAL(halSqCqQuery)(0, &info));
	EXPECT_EQ(info.value[0], 0u);
	info.prop = DRV_SQCQ_PROP_SQ_STATUS;
	EXPECT_HAL(HAL(halSqCqQuery)(0, &info));
	EXPECT_EQ(info.value[0], 1u);
}

static void send_place_holder(struct hal_stream *stream, uint16_t task, bool report)
{
	struct {
		struct stars_sqe_header header;
		uint32_t rest[14];
	} sqe = { .header = { .type = STARS_SQE_PLACE_HOLDER, .sub_type = task } };

	hal_send(stream, &sqe, report);
}

/* Version, ring buffer with its copies there and back, address of the DSA. */
static void first_tasks(struct hal_stream *stream, void *ring)
{
	drvError_t (*translate)(DVdeviceptr va, uint64_t * pa);
	uint64_t pa = 0;
	uint8_t *host = calloc(2, MIB), back[10240];
	struct stars_logic_cqe cqes[4];

	ASSERT_NOT_NULL(host);
	send_place_holder(stream, TASK_GET_STARS_VERSION, true);
	ASSERT_TRUE(hal_wait_for_head(stream));
	ASSERT_EQ(hal_receive(stream, cqes, 4), 1u);
	EXPECT_EQ(cqes[0].stream_id, stream->id);
	EXPECT_EQ(cqes[0].task_id, 0u);
	EXPECT_EQ(cqes[0].error_type & STARS_ERROR_MASK, 0);
	for (size_t i = 0; i < 2 * MIB; i++)
		host[i] = (uint8_t)(i * 7 + i / 4096);
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)ring, 2 * MIB, (uintptr_t)host, 2 * MIB));
	*(void **)&translate = hal_symbol("drvMemAddressTranslate");
	EXPECT_HAL(translate((uintptr_t)ring, &pa));
	EXPECT_NE(pa, 0u);
	send_place_holder(stream, TASK_RINGBUFFER, false);
	ASSERT_TRUE(hal_wait_for_head(stream));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)back, sizeof(back), (uintptr_t)ring, sizeof(back)));
	EXPECT_MEMEQ(back, host, sizeof(back));
	send_place_holder(stream, TASK_ALLOC_DSA_ADDR, true);
	ASSERT_TRUE(hal_wait_for_head(stream));
	EXPECT_EQ(hal_receive(stream, cqes, 4), 1u);
	EXPECT_EQ(hal_receive(stream, cqes, 4), 0u); /* empty, without waiting: 0 and no entry */
	free(host);
}

static void virtual_memory(void)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE };
	struct drv_mem_access_desc access = { .type = MEM_ACCESS_TYPE_READWRITE,
					      .location = { 0, MEM_DEV_SIDE } };
	struct ShareHandleAttr open_to_all = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE };
	drv_mem_handle_t *handle = NULL;
	uint64_t shareable = 0, value = UINT64_C(0x0123456789abcdef), back = 0;
	size_t granularity = 0;
	void *va = NULL;

	EXPECT_HAL(HAL(halMemGetAllocationGranularity)(&prop, MEM_ALLOC_GRANULARITY_MINIMUM,
						       &granularity));
	EXPECT_EQ(granularity, 2 * MIB);
	EXPECT_HAL(HAL(halMemAddressReserve)(&va, 4 * MIB, 0, NULL, 1));
	EXPECT_HAL(HAL(halMemCreate)(&handle, 4 * MIB, &prop, 0));
	EXPECT_HAL(HAL(halMemMap)(va, 4 * MIB, 0, handle, 0));
	EXPECT_HAL(HAL(halMemSetAccess)(va, 4 * MIB, &access, 1));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)va + 3 * MIB, 8, (uintptr_t)&value, 8));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)&back, 8, (uintptr_t)va + 3 * MIB, 8));
	EXPECT_EQ(back, value);
	EXPECT_HAL(HAL(halMemExportToShareableHandle)(handle, MEM_HANDLE_TYPE_NONE, 0, &shareable));
	EXPECT_HAL(HAL(halMemShareHandleSetAttribute)(shareable, SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER,
						      open_to_all));
	EXPECT_HAL(HAL(halMemUnmap)(va));
	EXPECT_HAL(HAL(halMemRelease)(handle));
	EXPECT_HAL(HAL(halMemAddressFree)(va));
}

static uint32_t kind_of(const void *address)
{
	struct DVattribute attr;

	memset(&attr, 0, sizeof(attr));
	EXPECT_HAL(HAL(drvMemGetAttribute)((uintptr_t)address, &attr));
	return attr.memType;
}

/* Host to device by PCIe DMA, device to device by SDMA, and back: as aclrtMemcpyAsync sends them.
 */
static void asynchronous_copies(struct hal_stream *stream)
{
	enum { BYTES = 3 << 20 };
	struct stars_pcie_dma_sqe dma = { .header.type = STARS_SQE_PCIE_DMA, .length = BYTES };
	struct stars_sdma_sqe sdma = { .header.type = STARS_SQE_SDMA, .length = BYTES };
	uint8_t *host = calloc(1, BYTES), *back = calloc(1, BYTES), *a = hal_alloc(0, BYTES),
		*b = hal_alloc(0, BYTES);
	struct stars_logic_cqe cqes[4];
	uint8_t way = 9;

	ASSERT_NOT_NULL(host);
	ASSERT_NOT_NULL(back);
	for (size_t i = 0; i < BYTES; i++)
		host[i] = (uint8_t)(i ^ i >> 9);
	EXPECT_EQ(kind_of(host), DV_MEM_USER_MALLOC);
	EXPECT_EQ(kind_of(a), DV_MEM_LOCK_DEV);
	dma.src = (uintptr_t)host;
	dma.dst = (uintptr_t)a;
	hal_send(stream, &dma, false);
	EXPECT_HAL(HAL(drvDeviceGetTransWay)(a, b, &way));
	EXPECT_EQ(way, 0);
	sdma.src_addr_low = (uint32_t)(uintptr_t)a;
	sdma.src_addr_high = (uint32_t)((uintptr_t)a >> 32);
	sdma.dst_addr_low = (uint32_t)(uintptr_t)b;
	sdma.dst_addr_high = (uint32_t)((uintptr_t)b >> 32);
	hal_send(stream, &sdma, false);
	dma.src = (uintptr_t)b;
	dma.dst = (uintptr_t)back;
	hal_send(stream, &dma, true);
	ASSERT_TRUE(hal_wait_for_head(stream));
	EXPECT_MEMEQ(back, host, BYTES);
	ASSERT_EQ(hal_receive(stream, cqes, 4), 1u);
	EXPECT_EQ(cqes[0].sqe_type, STARS_SQE_PCIE_DMA);
	EXPECT_EQ(cqes[0].error_type & STARS_ERROR_MASK, 0);
	EXPECT_HAL(HAL(halMemFree)(a));
	EXPECT_HAL(HAL(halMemFree)(b));
	free(host);
	free(back);
}

static void record_and_wait(struct hal_stream *stream)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out = { 0 };
	struct stars_event_sqe sqe = { .header.type = STARS_SQE_EVENT_RECORD };
	struct stars_logic_cqe cqes[4];

	EXPECT_HAL(HAL(halResourceIdAlloc)(0, &in, &out));
	sqe.event_id = (uint16_t)out.resourceId;
	hal_send(stream, &sqe, true);
	sqe.header.type = STARS_SQE_EVENT_WAIT;
	hal_send(stream, &sqe, false);
	ASSERT_TRUE(hal_wait_for_head(stream));
	EXPECT_EQ(hal_receive(stream, cqes, 4), 1u);
	in.resourceId = out.resourceId;
	EXPECT_HAL(HAL(halResourceIdFree)(0, &in));
}

/* An entry whose address does not translate: told in the completion. */
static void failing_copy(struct hal_stream *stream, void *device)
{
	struct stars_pcie_dma_sqe dma = { .header.type = STARS_SQE_PCIE_DMA,
					  .dst = (uintptr_t)device,
					  .length = 4096 };
	struct stars_logic_cqe cqes[4];
	void *nothing_mapped = NULL;
	unsigned count = 0;

	EXPECT_HAL(HAL(halMemAddressReserve)(&nothing_mapped, 2 * MIB, 0, NULL, 1));
	dma.src = (uintptr_t)nothing_mapped;
	hal_send(stream, &dma, false);
	for (int polls = 0; count == 0 && polls < 1000000; polls++)
		count = hal_receive(stream, cqes, 4);
	ASSERT_EQ(count, 1u);
	EXPECT_NE(cqes[0].error_type & STARS_ERROR_MASK, 0);
	EXPECT_NE(cqes[0].error_code, 0u);
	/* Told once, and the head goes on. */
	EXPECT_EQ(hal_query(stream, DRV_SQCQ_PROP_SQ_STATUS), 0u);
	ASSERT_TRUE(hal_wait_for_head(stream));
	EXPECT_HAL(HAL(halMemAddressFree)(nothing_mapped));
}

static void memory_info(void)
{
	struct MemInfo info;

	EXPECT_HAL(HAL(halMemGetInfo)(0, MEM_INFO_TYPE_HBM_SIZE, &info));
	EXPECT_GT(info.phy_info.total + info.phy_info.huge_total,
		  info.phy_info.free + info.phy_info.huge_free);
	EXPECT_GT(info.phy_info.free + info.phy_info.huge_free, UINT64_C(4) << 30);
}

static void reset_device(struct hal_stream *stream, void *pool[])
{
	halDevCloseIn in = { { 0 } };
	int status = 0;
	drvError_t (*device_status)(uint32_t dev, int *status);

	send_place_holder(stream, TASK_RINGBUFFER, false);
	ASSERT_TRUE(hal_wait_for_head(stream));
	send_place_holder(stream, TASK_MAINTENANCE, true);
	ASSERT_TRUE(hal_wait_for_head(stream));
	for (unsigned i = 0; i < POOL_COUNT; i++)
		EXPECT_HAL(HAL(halMemFree)(pool[i]));
	hal_stream_close(stream);
	*(void **)&device_status = hal_symbol("drvDeviceStatus");
	ASSERT_NOT_NULL(device_status);
	EXPECT_HAL(device_status(0, &status));
	EXPECT_EQ(status, 1);
	EXPECT_HAL(HAL(halDeviceClose)(0, &in));
}

TEST(hal_sequence, init_to_reset_in_the_order_of_canns_runtime)
{
	struct hal_stream stream;
	struct halSqCqInputInfo dsa = { .type = DRV_NORMAL_TYPE, .flag = TSDRV_FLAG_ONLY_SQCQ_ID };
	struct halSqCqOutputInfo dsa_out = { 0 };
	struct halSqCqFreeInfo dsa_end = { .type = DRV_NORMAL_TYPE };
	void *pool[POOL_COUNT];

	load_and_init();
	open_device();
	make_pools(pool);
	hal_stream_open(&stream, 0);
	queue_properties(&stream);
	EXPECT_HAL(HAL(halSqCqAllocate)(0, &dsa, &dsa_out));
	ASSERT_NO_FATAL(first_tasks(&stream, pool[10]));
	virtual_memory();
	ASSERT_NO_FATAL(asynchronous_copies(&stream));
	ASSERT_NO_FATAL(record_and_wait(&stream));
	ASSERT_NO_FATAL(failing_copy(&stream, pool[10]));
	memory_info();
	dsa_end.sqId = dsa_out.sqId;
	dsa_end.cqId = dsa_out.cqId;
	EXPECT_HAL(HAL(halSqCqFree)(0, &dsa_end));
	reset_device(&stream, pool);
}

/* The device can be had again. */
TEST(hal_sequence, device_opens_again_after_its_reset)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;
	halDevCloseIn close_in = { { 0 } };
	void *memory;

	EXPECT_HAL(HAL(halDeviceOpen)(1, &in, &out));
	memory = hal_alloc(1, 2 * MIB);
	EXPECT_NOT_NULL(memory);
	EXPECT_HAL(HAL(halMemFree)(memory));
	EXPECT_HAL(HAL(halDeviceClose)(1, &close_in));
}
