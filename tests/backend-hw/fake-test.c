/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime over drivers that are wrong in one way each: the right code, words that help, and
 * nothing left behind. Each test runs in a process of its own, since a process has one driver.
 */
#include "harness/test.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"

#define TWO_MIB ((size_t)2 << 20)

/* Runs `body` over the driver in a child. */
static void over(const char *driver, void (*body)(void *))
{
	setenv("NPUSIM_BACKEND", "hw", 1);
	setenv("NPUSIM_HAL", driver, 1);
	EXPECT_EXIT(0, body, (void *)(uintptr_t)driver);
}

/* Objects that the driver still counts. */
static int live(const char *driver)
{
	void *library = dlopen(driver, RTLD_NOW | RTLD_NOLOAD);
	int (*count)(void);

	if (library == NULL)
		return -1;
	*(void **)&count = dlsym(library, "fake_hal_live");
	return count();
}

static aclrtPhysicalMemProp property(void)
{
	aclrtPhysicalMemProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
	prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
	prop.memAttr = ACL_HBM_MEM_HUGE;
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

/* Reserve, create, map, copy, and all the way back. */
static void whole_path(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;
	void *va = NULL;
	char text[] = "as it was", back[sizeof(text)] = "";

	ASSERT_EQ(aclInit(NULL), ACL_SUCCESS);
	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	ASSERT_EQ(aclrtReserveMemAddress(&va, TWO_MIB, 0, NULL, 1), ACL_SUCCESS);
	ASSERT_EQ(aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0), ACL_SUCCESS);
	ASSERT_EQ(aclrtMapMem(va, TWO_MIB, 0, handle, 0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMemcpy(va, TWO_MIB, text, sizeof(text), ACL_MEMCPY_HOST_TO_DEVICE),
		  ACL_SUCCESS);
	EXPECT_EQ(aclrtMemcpy(back, sizeof(back), va, sizeof(back), ACL_MEMCPY_DEVICE_TO_HOST),
		  ACL_SUCCESS);
	EXPECT_STREQ(back, text);
	EXPECT_EQ(aclrtUnmapMem(va), ACL_SUCCESS);
	EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
	EXPECT_EQ(aclrtReleaseMemAddress(va), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, good_driver_does_the_whole_path)
{
	over(FAKE_HAL_GOOD, whole_path);
}

TEST(hw_fake, old_driver_does_the_whole_path)
{
	over(FAKE_HAL_OLD, whole_path);
}

static void asynchronous_copy(void *driver)
{
	aclrtStream stream = NULL;
	void *device = NULL;
	char text[] = "as it was", back[sizeof(text)] = "";

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
	ASSERT_EQ(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
	EXPECT_EQ(aclrtMemcpyAsync(device, 4096, text, sizeof(text), ACL_MEMCPY_HOST_TO_DEVICE,
				   stream),
		  ACL_SUCCESS);
	EXPECT_EQ(aclrtMemcpyAsync(back, sizeof(back), device, sizeof(back),
				   ACL_MEMCPY_DEVICE_TO_HOST, stream),
		  ACL_SUCCESS);
	EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
	EXPECT_STREQ(back, text);
	EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
	EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, good_driver_copies_asynchronously)
{
	over(FAKE_HAL_GOOD, asynchronous_copy);
}

static void ask_for_fabric(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;
	aclrtMemFabricHandle fabric;
	void *va = NULL;

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	ASSERT_EQ(aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMemExportToShareableHandleV2(handle, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
						    &fabric),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "the driver has no halMemExportToShareableHandleV2");
	ASSERT_EQ(aclrtReserveMemAddress(&va, TWO_MIB, 0, NULL, 1), ACL_SUCCESS);
	EXPECT_EQ(aclrtMemRetainAllocationHandle(va, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), (const char *)driver);
}

TEST(hw_fake, old_driver_refuses_what_it_lacks_by_name)
{
	over(FAKE_HAL_OLD, ask_for_fabric);
}

static void cannot_start(const char *part)
{
	const char *message;

	EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_INTERNAL_ERROR);
	message = aclGetRecentErrMsg();
	EXPECT_CONTAINS(message, "backend 'hw' cannot be used");
	EXPECT_CONTAINS(message, part);
}

static void start_without_map(void *driver)
{
	cannot_start((const char *)driver);
	cannot_start("halMemMap halMemUnmap");
}

static void start_newer(void *driver)
{
	cannot_start((const char *)driver);
	cannot_start("interface 8.1.2");
}

static void start_nothing(void *driver)
{
	cannot_start((const char *)driver);
	cannot_start("cannot open shared object file");
}

TEST(hw_fake, named_and_unusable_is_an_error_with_the_reason)
{
	over(FAKE_HAL_NO_MAP, start_without_map);
	over(FAKE_HAL_NEWER, start_newer);
	over("/nonexistent/libascend_hal.so", start_nothing);
}

static void no_device(void *driver)
{
	uint32_t count = 9;

	(void)driver;
	EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "deviceId");
}

TEST(hw_fake, no_device_is_said)
{
	over(FAKE_HAL_NO_DEVICE, no_device);
}

static void count_fails(void *driver)
{
	uint32_t count = 9;

	(void)driver;
	EXPECT_NE(aclrtGetDeviceCount(&count), ACL_SUCCESS);
	EXPECT_EQ(count, 9u);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "the driver answers 1 (no such device)");
}

TEST(hw_fake, count_that_fails_is_said)
{
	over(FAKE_HAL_COUNT_FAILS, count_fails);
}

static void open_fails(void *driver)
{
	EXPECT_EQ(aclrtSetDevice(0), 507033);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "device 0 cannot be opened");
	EXPECT_EQ(live(driver), 0);
	EXPECT_EQ(aclrtSetDevice(1), 507033);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, device_that_does_not_open_is_said)
{
	over(FAKE_HAL_OPEN_FAILS, open_fails);
	over(FAKE_HAL_OLD_OPEN_FAILS, open_fails);
}

static void wrong_code(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;
	void *va = NULL;

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	ASSERT_EQ(aclrtReserveMemAddress(&va, TWO_MIB, 0, NULL, 1), ACL_SUCCESS);
	ASSERT_EQ(aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMapMem(va, TWO_MIB, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "aclrtMapMem: the driver answers 12345");
	EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
	EXPECT_EQ(aclrtReleaseMemAddress(va), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, code_that_nobody_knows_is_internal_and_told)
{
	over(FAKE_HAL_WRONG_CODE, wrong_code);
}

static void out_of_memory(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handles[3] = { NULL };

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMallocPhysical(&handles[0], TWO_MIB, &prop, 0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMallocPhysical(&handles[1], TWO_MIB, &prop, 0), ACL_SUCCESS);
	EXPECT_EQ(aclrtMallocPhysical(&handles[2], TWO_MIB, &prop, 0),
		  ACL_ERROR_RT_MEMORY_ALLOCATION);
	EXPECT_CONTAINS(aclGetRecentErrMsg(),
			"aclrtMallocPhysical: the driver answers 6 (out of memory)");
	EXPECT_NULL(handles[2]);
	EXPECT_EQ(aclrtMallocPhysical(&handles[2], TWO_MIB, &prop, 0), ACL_SUCCESS);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(aclrtFreePhysical(handles[i]), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, third_creation_runs_out_of_memory_and_nothing_is_lost)
{
	over(FAKE_HAL_OUT_OF_MEMORY, out_of_memory);
}

static void device_lost(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;
	aclError code = ACL_SUCCESS;

	(void)driver;
	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	for (int i = 0; i < 100 && code == ACL_SUCCESS; i++) {
		code = aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0);
		if (code == ACL_SUCCESS)
			code = aclrtFreePhysical(handle);
	}
	EXPECT_EQ(code, ACL_ERROR_RT_LOST_HEARTBEAT);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "the driver answers 33 (lost heartbeat)");
	/* The end is orderly, whatever the driver says. */
	aclrtResetDevice(0);
	aclFinalize();
}

TEST(hw_fake, lost_device_is_a_code_and_no_hang)
{
	over(FAKE_HAL_LOST, device_lost);
}

static void slow(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;
	struct timespec start, end;

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &start);
	EXPECT_EQ(aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0), ACL_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &end);
	EXPECT_GE((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000, 19);
	EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, slow_driver_is_waited_for)
{
	over(FAKE_HAL_SLOW, slow);
}

static void stuck(void *driver)
{
	aclrtStream stream = NULL;
	void *device = NULL;

	ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
	ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
	ASSERT_EQ(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
	EXPECT_EQ(aclrtMemsetAsync(device, 4096, 1, 4096, stream), ACL_SUCCESS);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 100), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "not done in time");
	EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
	EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
	EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
	EXPECT_EQ(live(driver), 0);
}

TEST(hw_fake, queue_that_stands_still_is_a_time_out)
{
	over(FAKE_HAL_STUCK, stuck);
}

static void crash(void *driver)
{
	aclrtPhysicalMemProp prop = property();
	aclrtDrvMemHandle handle = NULL;

	(void)driver;
	aclrtSetDevice(0);
	aclrtMallocPhysical(&handle, TWO_MIB, &prop, 0);
}

TEST(hw_fake, crash_of_the_driver_is_the_childs_alone)
{
	setenv("NPUSIM_BACKEND", "hw", 1);
	setenv("NPUSIM_HAL", FAKE_HAL_CRASH, 1);
	EXPECT_SIGNAL(SIGSEGV, crash, NULL);
}

static void automatic(void *driver)
{
	uint32_t count = 0;

	(void)driver;
	EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
	EXPECT_EQ(count, 3u); /* NPUSIM_DEVICES: the model's */
}

static void automatic_good(void *driver)
{
	uint32_t count = 0;

	(void)driver;
	EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
	EXPECT_EQ(count, 2u);
}

static void choose(const char *driver, void (*body)(void *))
{
	setenv("NPUSIM_BACKEND", "auto", 1);
	setenv("NPUSIM_DEVICES", "3", 1);
	setenv("NPUSIM_HAL", driver, 1);
	EXPECT_EXIT(0, body, (void *)(uintptr_t)driver);
	unsetenv("NPUSIM_DEVICES");
}

TEST(hw_fake, auto_takes_a_driver_that_has_devices)
{
	choose(FAKE_HAL_GOOD, automatic_good);
}

TEST(hw_fake, auto_falls_to_the_model_without_one)
{
	choose(FAKE_HAL_NO_DEVICE, automatic);
	choose(FAKE_HAL_NO_MAP, automatic);
	choose("/nonexistent/libascend_hal.so", automatic);
}
