/* SPDX-License-Identifier: Apache-2.0
 *
 * What is once a process: how it ends, which backend it takes, what the environment does to it,
 * that a program may replace functions of the library. Each test is a process of its own.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "npusim/npusim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static void *map_some(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtDrvMemHandle handle;
	void *va = NULL;

	EXPECT_EQ(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1), 0);
	EXPECT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), 0);
	EXPECT_EQ(aclrtMapMem(va, 2 * MIB, 0, handle, 0), 0);
	return va;
}

/* ---- the end ---- */

/* The end of a program, destructors and all; the harness would leave without. */
static void leave(bool failed_before)
{
	exit(harness_has_failed() && !failed_before ? 70 : 0);
}

/* Memory of the device is what these programs leave; what the model keeps for it is not the
 * program's. */
extern void __lsan_disable(void) __attribute__((weak));

static void leave_mapped(void *leaks)
{
	bool failed_before = harness_has_failed();

	if (__lsan_disable != NULL)
		__lsan_disable();
	if (leaks != NULL)
		setenv("NPUSIM_LEAKS", leaks, 1);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	map_some();
	leave(failed_before);
}

static void leave_clean(void *arg)
{
	bool failed_before = harness_has_failed();

	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtResetDevice(0), 0);
	leave(failed_before);
}

TEST(process, leak_report)
{
	char mode[] = "full", off[] = "off";

	unsetenv("NPUSIM_LEAKS");
	unsetenv("NPUSIM_LOG");
	EXPECT_EXIT(0, leave_mapped, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "left at the end of the process");
	EXPECT_CONTAINS(harness_last_stderr(), "1 mapping");
	EXPECT_EXIT(0, leave_mapped, mode);
	EXPECT_CONTAINS(harness_last_stderr(), "left at the end of the process");
	EXPECT_EXIT(0, leave_mapped, off);
	EXPECT_NULL(strstr(harness_last_stderr(), "left at the end"));
	EXPECT_EXIT(0, leave_clean, NULL);
	EXPECT_NULL(strstr(harness_last_stderr(), "left at the end"));
}

static void *wait_for_ever(void *stream)
{
	aclrtSetDevice(0);
	aclrtSynchronizeStream(stream);
	return NULL;
}

static void sleep_long(void *arg)
{
	(void)arg;
	sleep(100);
}

/* A stream that never gets on, a thread that waits for it, a callback that does not return. */
static void leave_busy(void *arg)
{
	aclrtStream stream, other;
	aclrtEvent gate;
	pthread_t thread;
	bool failed_before = harness_has_failed();

	(void)arg;
	setenv("NPUSIM_LEAKS", "off", 1);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtCreateStream(&stream), 0);
	EXPECT_EQ(aclrtCreateStream(&other), 0);
	EXPECT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(stream, gate), 0);
	EXPECT_EQ(aclrtLaunchHostFunc(other, sleep_long, NULL), 0);
	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_ever, stream), 0);
	pthread_detach(thread);
	usleep(50000);
	leave(failed_before);
}

TEST(process, ends_with_streams_busy)
{
	time_t start = time(NULL);

	EXPECT_EXIT(0, leave_busy, NULL);
	EXPECT_LT(time(NULL) - start, 20);
}

TEST_CHILD(process, reset_after_finalize_works)
{
	EXPECT_EQ(aclInit(NULL), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclFinalize(), 0);
	EXPECT_EQ(aclrtResetDevice(0), 0);
}

/* ---- the environment ---- */

static unsigned misreadings, misread_at_first;

/* A setting that is wrong when a call reads it first. */
__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
	static char wrong[] = "simulator";

	if (misreadings == 0 || strcmp(name, "NPUSIM_BACKEND") != 0)
		return getenv(name);
	misreadings--;
	return wrong;
}

/* Each names itself, says why there is no driver, and is the thread's last error. */
#define EXPECT_NO_DRIVER(part, call, ...)                                                    \
	do {                                                                                 \
		const char *message_;                                                        \
                                                                                             \
		misreadings = misread_at_first;                                              \
		EXPECT_EQ(call(__VA_ARGS__), 500000);                                        \
		message_ = aclGetRecentErrMsg() ?: "";                                       \
		EXPECT_TRUE(strncmp(message_, #call ": npusim: ", strlen(#call) + 10) == 0); \
		EXPECT_CONTAINS(message_, part);                                             \
		EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 500000);                   \
		EXPECT_EQ(npusim_driver_code(), 0);                                          \
	} while (0)

static void expect_no_driver(const char *part)
{
	static uint64_t place[1];
	aclrtPtrAttributes attributes;
	aclrtContext context;
	uint32_t count;
	int32_t user;

	EXPECT_NO_DRIVER(part, aclrtSetDevice, 0);
	EXPECT_NO_DRIVER(part, aclInit, NULL);
	misreadings = misread_at_first;
	EXPECT_NULL(aclrtGetSocName());
	EXPECT_CONTAINS(aclGetRecentErrMsg(), part);
	EXPECT_NO_DRIVER(part, aclrtReleaseMemAddress, place);
	EXPECT_NO_DRIVER(part, aclrtValueWait, place, 0, 0, NULL);
	EXPECT_NO_DRIVER(part, aclrtPointerGetAttributes, place, &attributes);
	EXPECT_NO_DRIVER(part, aclrtCreateContext, &context, 0);
	EXPECT_NO_DRIVER(part, aclrtGetDeviceCount, &count);
	EXPECT_NO_DRIVER(part, aclrtGetUserDevIdByLogicDevId, 0, &user);
	EXPECT_NO_DRIVER(part, npusimBlock, place, 8);
	EXPECT_NO_DRIVER(part, npusimBlockFree, place);
	EXPECT_NO_DRIVER(part, npusimMark, "name");
	EXPECT_NO_DRIVER(part, npusimSetReportCallback, NULL, NULL);
}

static void unknown_backend(void *arg)
{
	(void)arg;
	setenv("NPUSIM_BACKEND", "simulator", 1);
	expect_no_driver("NPUSIM_BACKEND=simulator is not valid: it takes hw, sim, auto");
}

/* A driver that can be had when the call is over has not answered it. */
static void late_backend(void *arg)
{
	(void)arg;
	misread_at_first = 1;
	expect_no_driver("NPUSIM_BACKEND=simulator is not valid: it takes hw, sim, auto");
	EXPECT_EQ(aclrtSetDevice(0), 0);
}

static void unusable_backend(void *arg)
{
	(void)arg;
	setenv("NPUSIM_BACKEND", "hw", 1);
	setenv("NPUSIM_HAL", "/nonexistent/libascend_hal.so", 1);
	expect_no_driver("backend 'hw' cannot be used: ");
}

static void bad_fault(void *arg)
{
	(void)arg;
	setenv("NPUSIM_FAULT", "halMemCraete:1:oom", 1);
	expect_no_driver("is halMemCreate meant?");
}

TEST(process, backend_that_cannot_be_is_an_error)
{
	EXPECT_EXIT(0, unknown_backend, NULL);
	EXPECT_EXIT(0, late_backend, NULL);
	EXPECT_EXIT(0, unusable_backend, NULL);
	EXPECT_EXIT(0, bad_fault, NULL);
}

TEST_CHILD(process, fault_on_demand)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtDrvMemHandle handle;

	setenv("NPUSIM_FAULT", "mem_create:2:oom", 1);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), 0);
	EXPECT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), 207001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "call 2 of halMemCreate was made to fail");
	EXPECT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), 0);
	EXPECT_EQ(aclrtResetDevice(0), 0);
}

static void traced(void *path)
{
	setenv("NPUSIM_TRACE", path, 1);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	map_some();
	EXPECT_EQ(aclrtResetDevice(0), 0);
}

TEST(process, trace_of_a_program)
{
	char path[] = "/tmp/npusim-trace-XXXXXX", text[8192] = "";
	int fd = mkstemp(path);
	FILE *file;

	ASSERT_GE(fd, 0);
	EXPECT_EXIT(0, traced, path);
	file = fdopen(fd, "r");
	ASSERT_GT(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	unlink(path);
	EXPECT_CONTAINS(text, "npusim-trace 1\ninfo program=");
	EXPECT_CONTAINS(text, "soc=Ascend910B1");
	EXPECT_CONTAINS(text, "device id=0 op=set\n");
	EXPECT_CONTAINS(text, "reserve r1 size=2097152");
	EXPECT_CONTAINS(text, "create h1 size=2097152 device=0 page=2m\n");
	EXPECT_CONTAINS(text, "map r1+0 size=2097152 handle=h1\n");
	EXPECT_CONTAINS(text, "device id=0 op=reset\n");
}

static void masked(void *arg)
{
	int32_t id = -1;
	uint32_t count = 0;

	(void)arg;
	setenv("ASCEND_RT_VISIBLE_DEVICES", "2,3,99", 1);
	EXPECT_EQ(aclrtGetDeviceCount(&count), 0);
	EXPECT_EQ(count, 2);
	EXPECT_EQ(aclrtSetDevice(2), 107001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "0 -> 2, 1 -> 3");
	EXPECT_EQ(aclrtSetDevice(1), 0);
	EXPECT_EQ(aclrtGetDevice(&id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetLogicDevIdByUserDevId(1, &id), 0);
	EXPECT_EQ(id, 3);
	EXPECT_EQ(aclrtGetUserDevIdByLogicDevId(0, &id), 107001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "hidden");
	EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(1, &id), 0);
	EXPECT_EQ(id, 3);
	EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(3, &id), 107001);
	EXPECT_EQ(aclrtGetLogicDevIdByPhyDevId(3, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetLogicDevIdByPhyDevId(0, &id), 107001);
	EXPECT_EQ(aclrtResetDevice(1), 0);
}

TEST(process, visible_devices)
{
	EXPECT_EXIT(0, masked, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "'99' is no device");
}

/* ---- programs that replace functions of the library ---- */

static atomic_int replaced_calls;

/* The program's own, found before the library's: a call from the library's inside would land here.
 */
#define REPLACE(name, parameters)                                       \
	__attribute__((visibility("default"))) aclError name parameters \
	{                                                               \
		atomic_fetch_add(&replaced_calls, 1);                   \
		return 0;                                               \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
REPLACE(aclrtFree, (void *devPtr))
REPLACE(aclrtMallocAlign32, (void **devPtr, size_t size, aclrtMemMallocPolicy policy))
REPLACE(aclrtSynchronizeStream, (aclrtStream stream))
REPLACE(aclrtSetCurrentContext, (aclrtContext context))
REPLACE(aclrtGetCurrentContext, (aclrtContext * context))
REPLACE(aclrtQueryEventStatus, (aclrtEvent event, aclrtEventRecordedStatus *status))
REPLACE(aclrtUnmapMem, (void *virPtr))
REPLACE(aclrtFreePhysical, (aclrtDrvMemHandle handle))
REPLACE(aclrtFreeHost, (void *hostPtr))
REPLACE(aclrtSynchronizeDevice, (void))

TEST_CHILD(process, library_does_not_call_itself_through_exports)
{
	aclrtContext context;
	aclrtStream stream;
	aclrtEvent event;
	void *memory = NULL;

	setenv("NPUSIM_LEAKS", "off", 1);
	EXPECT_EQ(aclInit(NULL), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	map_some();
	EXPECT_EQ(aclrtCreateContext(&context, 0), 0);
	EXPECT_EQ(aclrtCreateStream(&stream), 0);
	EXPECT_EQ(aclrtCreateEvent(&event), 0);
	EXPECT_EQ(aclrtRecordEvent(event, stream), 0);
	EXPECT_EQ(aclrtSynchronizeEvent(event), 0);
	EXPECT_EQ(aclrtMalloc(&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtMemsetAsync(memory, MIB, 1, MIB, stream), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1000), 0);
	EXPECT_EQ(aclrtFreeWithDevSync(memory), 0);
	EXPECT_EQ(aclrtDestroyStream(stream), 0);
	EXPECT_EQ(aclrtDestroyEvent(event), 0);
	EXPECT_EQ(aclrtDestroyContext(context), 0);
	EXPECT_EQ(aclrtResetDevice(0), 0);
	EXPECT_EQ(aclFinalize(), 0);
	EXPECT_EQ(replaced_calls, 0);
	EXPECT_EQ(aclrtFree(NULL), 0);
	EXPECT_EQ(replaced_calls, 1);
}

/* ---- fork ---- */

static void child_of_a_user(void *arg)
{
	int32_t device;

	(void)arg;
	EXPECT_NE(aclrtSetDevice(0), 0);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "forked");
	EXPECT_EQ(aclrtGetDevice(&device), 107002);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "forked");
}

static void fork_in_use(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EXIT(0, child_of_a_user, NULL);
	map_some();
	EXPECT_EQ(aclrtResetDevice(0), 0);
}

static void child_of_an_asker(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	map_some();
	EXPECT_EQ(aclrtResetDevice(0), 0);
}

static void fork_before_use(void *arg)
{
	uint32_t count;

	(void)arg;
	EXPECT_EQ(aclInit(NULL), 0);
	EXPECT_EQ(aclrtGetDeviceCount(&count), 0);
	EXPECT_NOT_NULL(aclrtGetSocName());
	EXPECT_EXIT(0, child_of_an_asker, NULL);
	child_of_an_asker(NULL);
}

TEST(process, fork)
{
	EXPECT_EXIT(0, fork_in_use, NULL);
	EXPECT_EXIT(0, fork_before_use, NULL);
}
