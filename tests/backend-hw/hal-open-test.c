/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that have not called libascend_hal.so yet: the first call may come from any thread, what
 * the library is asked before a device is open, and that it is one with libascendcl.so of the same
 * process.
 */
#include "hal-rig.h"

#include <dlfcn.h>
#include <limits.h>
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

struct question {
	pthread_barrier_t start;
	drvError_t (*count_devices)(uint32_t *count);
};

static void *ask(void *arg)
{
	struct question *question = arg;
	uint32_t count = 0;

	pthread_barrier_wait(&question->start);
	return (void *)(uintptr_t)(question->count_devices(&count) == DRV_ERROR_NONE && count == 2);
}

static void ask_from_all_threads(void *arg)
{
	struct question question;
	void *library = dlopen(LIBASCEND_HAL,
			       RTLD_NOW | RTLD_LOCAL); /* the rig's first use would call it */
	pthread_t threads[8];
	void *good;

	(void)arg;
	ASSERT_NOT_NULL(library);
	*(void **)&question.count_devices = dlsym(library, "drvGetDevNum");
	pthread_barrier_init(&question.start, NULL, 8);
	for (int i = 0; i < 8; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, ask, &question), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &good);
		EXPECT_NOT_NULL(good);
	}
}

/* A process that has not called the library yet: this one has, so the child starts over by exec. */
static void exec_self(void *filter)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = '\0';
	setenv("HAL_FRESH", "1", 1);
	execl(self, self, filter, NULL);
	_exit(127);
}

/* True in the child; the parent has it run. */
static bool fresh(const char *test)
{
	char filter[128];

	if (getenv("HAL_FRESH") != NULL)
		return true;
	snprintf(filter, sizeof(filter), "--gtest_filter=hal_open.%s", test);
	EXPECT_EXIT(0, exec_self, filter);
	return false;
}

TEST(hal_open, first_call_may_come_from_any_thread)
{
	if (fresh("first_call_may_come_from_any_thread"))
		ask_from_all_threads(NULL);
}

static void ask_a_model_that_cannot_be(void)
{
	uint32_t count = 9;
	void *va = NULL;

	setenv("NPUSIM_SOC", "Ascend310", 1);
	EXPECT_EQ(HAL(drvGetDevNum)(&count), DRV_ERROR_NO_DEVICE);
	EXPECT_EQ(count, 9u);
	EXPECT_CONTAINS(HAL(npusimLastMessage)(), "Ascend310");
	EXPECT_EQ(HAL(halMemAddressReserve)(&va, 2 * MIB, 0, NULL, 1), DRV_ERROR_NO_DEVICE);
	EXPECT_FALSE(HAL(halSupportFeature)(0, 0));
	EXPECT_EQ(HAL(drvDeviceGetBareTgid)(), -1);
	/* What was wrong can be put right. */
	setenv("NPUSIM_SOC", "Ascend910_9382", 1);
	EXPECT_HAL(HAL(drvGetDevNum)(&count));
}

TEST(hal_open, model_that_cannot_be_is_no_device_and_said_once)
{
	if (fresh("model_that_cannot_be_is_no_device_and_said_once"))
		ask_a_model_that_cannot_be();
	else
		EXPECT_CONTAINS(harness_last_stderr(), "Ascend310");
}

static void no_name_of_a_910b(void)
{
	char name[50] = "";

	EXPECT_EQ(HAL(halGetSocVersion)(0, name, sizeof(name)), DRV_ERROR_NOT_SUPPORT);
}

TEST(hal_open, soc_of_a_910b_without_a_name_is_no_failure)
{
	if (fresh("soc_of_a_910b_without_a_name_is_no_failure"))
		no_name_of_a_910b();
	else
		EXPECT_NULL(strstr(harness_last_stderr(), "halGetSocVersion"));
}

/* The last read is of what nobody wrote: rows are copied and a function is called before. */
static void validated_beside_rows(void)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;
	struct halSqCqInputInfo make = { .type = DRV_CALLBACK_TYPE,
					 .sqeSize = sizeof(struct stars_callback_command),
					 .sqeDepth = 1024,
					 .cqeSize = sizeof(struct stars_callback_cqe),
					 .cqeDepth = 1024,
					 .grpId = 1 };
	struct halSqCqOutputInfo made = { 0 };
	struct stars_callback_sqe call = { .header.type = STARS_SQE_AICPU,
					   .topic = STARS_TOPIC_CALLBACK << 12 };
	struct stars_pcie_dma_sqe copy = { .header.type = STARS_SQE_PCIE_DMA, .convert = 1 };
	struct MEMCPY2D rows = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	struct hal_stream stream;
	void *target, *unwritten, *host = calloc(1, 8192);

	setenv("NPUSIM_VALIDATE", "on", 1);
	EXPECT_HAL(HAL(halDeviceOpen)(0, &in, &out));
	target = hal_alloc(0, 2 * MIB);
	unwritten = hal_alloc(0, 2 * MIB);
	EXPECT_HAL(HAL(halSqCqAllocate)(0, &make, &made));
	hal_stream_open(&stream, 0);
	rows.copy2dAsync.dmaAddr = &dma;
	rows.copy2dAsync.copy2dInfo = (struct drvMem2D){ .dst = target,
							 .dpitch = 4096,
							 .src = host,
							 .spitch = 4096,
							 .width = 4096,
							 .height = 2,
							 .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	EXPECT_HAL(HAL(halMemcpy2D)(&rows));
	copy.sq_addr_low = (uint32_t)(uintptr_t)dma.phyAddr.src;
	copy.sq_tail_ptr = (uint16_t)dma.phyAddr.len;
	hal_send(&stream, &copy, false);
	call.cq_id = (uint16_t)made.cqId;
	hal_send(&stream, &call, false);
	EXPECT_TRUE(hal_wait_for_head(&stream));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)host, 8192, (uintptr_t)target, 8192));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)host, 8192, (uintptr_t)unwritten, 8192));
	exit(harness_has_failed());
}

TEST(hal_open, rows_and_callbacks_hide_no_read_of_unwritten_memory)
{
	const char *found;

	if (fresh("rows_and_callbacks_hide_no_read_of_unwritten_memory"))
		validated_beside_rows();
	found = strstr(harness_last_stderr(), "uninitialised: ");
	ASSERT_NOT_NULL(found);
	EXPECT_NULL(strstr(found + 1, "uninitialised: "));
}

static void name_of_a_910c(void)
{
	char name[50] = "";

	setenv("NPUSIM_SOC", "Ascend910_9382", 1);
	EXPECT_HAL(HAL(halGetSocVersion)(0, name, sizeof(name)));
	EXPECT_STREQ(name, "Ascend910_9382");
}

TEST(hal_open, soc_of_a_910c_has_a_name)
{
	if (fresh("soc_of_a_910c_has_a_name"))
		name_of_a_910c();
}

/* As memfabric has it: the device is opened through the ACL, memory is had through the HAL, and it
 * is one and the same device. */
static void beside_the_acl(void)
{
	drv_mem_handle_t *handle = NULL;
	void *acl, *va = NULL, *stream = NULL;
	int (*set_device)(int32_t dev),
		(*map)(void *va, size_t size, size_t offset, void *handle, uint64_t flags),
		(*copy)(void *d, size_t room, const void *s, size_t count, int kind, void *stream),
		(*create_stream)(void **), (*wait)(void *), (*end_stream)(void *),
		(*queue_of)(void *, uint32_t *);
	struct halSqCqQueryInfo queue = { .type = DRV_NORMAL_TYPE, .prop = DRV_SQCQ_PROP_SQ_DEPTH };
	uint64_t value = 7, back = 0;

	setenv("NPUSIM_BACKEND", "sim", 1);
	acl = dlopen(LIBASCENDCL, RTLD_NOW | RTLD_LOCAL);
	ASSERT_NOT_NULL(acl);
	*(void **)&set_device = dlsym(acl, "aclrtSetDevice");
	*(void **)&map = dlsym(acl, "aclrtMapMem");
	*(void **)&copy = dlsym(acl, "aclrtMemcpyAsync");
	*(void **)&create_stream = dlsym(acl, "aclrtCreateStream");
	*(void **)&wait = dlsym(acl, "aclrtSynchronizeStream");
	*(void **)&end_stream = dlsym(acl, "aclrtDestroyStream");
	*(void **)&queue_of = dlsym(acl, "rtStreamGetSqid");
	ASSERT_EQ(set_device(0), 0);
	ASSERT_EQ(create_stream(&stream), 0);
	EXPECT_HAL(HAL(halMemAddressReserve)(&va, 2 * MIB, 0, NULL, 1));
	EXPECT_HAL(HAL(halMemCreate)(&handle, 2 * MIB, &device_memory, 0));
	EXPECT_EQ(map(va, 2 * MIB, 0, handle, 0), 0);
	EXPECT_EQ(copy(va, 8, &value, 8, 1, stream), 0);
	EXPECT_EQ(wait(stream), 0);
	EXPECT_EQ(queue_of(stream, &queue.sqId), 0);
	EXPECT_HAL(HAL(halSqCqQuery)(0, &queue));
	EXPECT_EQ(end_stream(stream), 0);
	EXPECT_NE(HAL(halSqCqQuery)(0, &queue), DRV_ERROR_NONE);
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)&back, 8, (uintptr_t)va, 8));
	EXPECT_EQ(back, 7u);
	EXPECT_HAL(HAL(halMemUnmap)(va));
	EXPECT_HAL(HAL(halMemRelease)(handle));
	EXPECT_HAL(HAL(halMemAddressFree)(va));
}

/* A handle, a device and a stream are the same to all three. */
TEST(hal_open, is_one_with_the_acl_and_rt_of_the_process)
{
	if (fresh("is_one_with_the_acl_and_rt_of_the_process"))
		beside_the_acl();
}

/* No device is open: memory of the program is moved all the same, and nothing else is there. */
static void copies_without_a_device(void)
{
	uint8_t from[8192], to[8192] = { 0 };
	uint64_t dst = (uintptr_t)to, src = (uintptr_t)from;
	size_t size = sizeof(to);
	struct MEMCPY2D plane = { .type = DEVMM_MEMCPY2D_SYNC };

	memset(from, 0x5a, sizeof(from));
	EXPECT_HAL(HAL(drvMemcpy)((uintptr_t)to, sizeof(to), (uintptr_t)from, sizeof(from)));
	EXPECT_MEMEQ(to, from, sizeof(to));
	EXPECT_HAL(HAL(drvMemsetD8)((uintptr_t)to, sizeof(to), 0x11, sizeof(to)));
	EXPECT_EQ(to[sizeof(to) - 1], 0x11);
	EXPECT_EQ(HAL(halMemcpyBatch)(&dst, &src, &size, 1), DRV_ERROR_NOT_SUPPORT);
	plane.copy2d = (struct drvMem2D){ .dst = (unsigned long long *)to,
					  .dpitch = 64,
					  .src = (unsigned long long *)from,
					  .spitch = 64,
					  .width = 32,
					  .height = 4,
					  .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	EXPECT_EQ(HAL(halMemcpy2D)(&plane), DRV_ERROR_NOT_SUPPORT);
	EXPECT_NE(HAL(npusimCheckCopy)((uintptr_t)to, (uintptr_t)from, 8), DRV_ERROR_NONE);
}

TEST(hal_open, copies_need_no_device_within_the_program)
{
	if (fresh("copies_need_no_device_within_the_program"))
		copies_without_a_device();
}
