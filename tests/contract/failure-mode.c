/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL_STOP_ON_FAILURE: what each call answers once a task of a context has failed of which a stream
 * is to stop on failures. The answers are those of CANN's runtime v9.1.0, which was run over
 * npusim's libascend_hal.so (backend-sim/CANN-RUNTIME.md).
 */
#include "harness/test.h"

#include <stdlib.h>

#include "acl/acl.h"

#define MIB    (UINT64_C(1) << 20)
#define OK     ACL_SUCCESS
#define FAILED 507001

static aclrtStream stream, other;
static aclrtEvent event;
static aclrtNotify notify;
static aclrtDrvMemHandle handle;
static char *memory, *mapped;

SETUP(failure_mode)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};

	ASSERT_EQ(aclrtSetDevice(0), OK);
	ASSERT_EQ(aclrtCreateStream(&stream), OK);
	ASSERT_EQ(aclrtCreateStream(&other), OK);
	ASSERT_EQ(aclrtCreateEvent(&event), OK);
	ASSERT_EQ(aclrtCreateNotify(&notify, 0), OK);
	ASSERT_EQ(aclrtMalloc((void **)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	ASSERT_EQ(aclrtReserveMemAddress((void **)&mapped, 4 * MIB, 0, NULL, 1), OK);
	ASSERT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), OK);
	ASSERT_EQ(aclrtMapMem(mapped, 2 * MIB, 0, handle, 0), OK);
}

/* Memory does not need the streams; a reset ends what has failed, and all is as new. */
TEARDOWN(failure_mode)
{
	EXPECT_EQ(aclrtUnmapMem(mapped), OK);
	EXPECT_EQ(aclrtFreePhysical(handle), OK);
	EXPECT_EQ(aclrtReleaseMemAddress(mapped), OK);
	EXPECT_EQ(aclrtFree(memory), OK);
	EXPECT_EQ(aclrtResetDevice(0), OK);
	EXPECT_EQ(aclrtSetDevice(0), OK);
	EXPECT_EQ(aclrtCreateStream(&stream), OK);
	EXPECT_EQ(aclrtMalloc((void **)&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	EXPECT_EQ(aclrtMemsetAsync(memory, MIB, 0, MIB, stream), OK);
	EXPECT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_EQ(aclrtFree(memory), OK);
	EXPECT_EQ(aclrtResetDevice(0), OK);
}

static int copy(aclrtStream by)
{
	return aclrtMemcpyAsync(memory + MIB, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, by);
}

/* A copy across the end of what is mapped. */
static int bad_copy(aclrtStream by)
{
	return aclrtMemcpyAsync(mapped + MIB, 2 * MIB, memory, 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE,
				by);
}

static int fail(aclrtStream by)
{
	return bad_copy(by) ?: aclrtSynchronizeStream(by);
}

static void host_func(void *unused)
{
	(void)unused;
	ADD_FAILURE("a host function ran in a context that has stopped");
}

/* Each call with a stream or an event, of a context that has stopped. */
static void expect_stopped(aclrtStream by)
{
	aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
	aclrtEventRecordedStatus recorded;
	aclrtEventWaitStatus waited;
	float ms;

	EXPECT_EQ(copy(by), FAILED);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "takes no more work");
	EXPECT_EQ(aclrtMemcpy2dAsync(memory, 64, memory + MIB, 64, 64, 2,
				     ACL_MEMCPY_DEVICE_TO_DEVICE, by),
		  FAILED);
	EXPECT_EQ(aclrtMemsetAsync(memory, MIB, 0, MIB, by), FAILED);
	EXPECT_EQ(aclrtMemcpyAsync(NULL, MIB, memory, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, by), 100000);
	EXPECT_EQ(aclrtRecordEvent(event, by), FAILED);
	EXPECT_EQ(aclrtStreamWaitEvent(by, event), 107000); /* never recorded */
	EXPECT_EQ(aclrtResetEvent(event, by), FAILED);
	EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), FAILED);
	EXPECT_EQ(aclrtQueryEventWaitStatus(event, &waited), FAILED);
	EXPECT_EQ(aclrtSynchronizeEvent(event), FAILED);
	EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 100), FAILED);
	EXPECT_EQ(aclrtEventElapsedTime(&ms, event, event), 507000);
	EXPECT_EQ(aclrtValueWrite(memory, 7, 0, by), FAILED);
	EXPECT_EQ(aclrtValueWait(memory, 7, 0, by), FAILED);
	EXPECT_EQ(aclrtRecordNotify(notify, by), FAILED);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, by, 0), FAILED);
	EXPECT_EQ(aclrtLaunchHostFunc(by, host_func, NULL), FAILED);
	EXPECT_EQ(aclrtStreamQuery(by, &status), FAILED);
	EXPECT_EQ((int)status, (int)ACL_STREAM_STATUS_RESERVED);
	EXPECT_EQ(aclrtSynchronizeStream(by), FAILED);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(by, 100), FAILED);
}

TEST(failure_mode, stops_all_streams_of_the_context)
{
	aclrtStream late;

	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(fail(stream), FAILED);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "a copy or fill on the device on stream");
	expect_stopped(stream);
	expect_stopped(other);
	expect_stopped(NULL);
	EXPECT_EQ(aclrtSynchronizeDevice(), FAILED);
	EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(100), FAILED);
	ASSERT_EQ(aclrtCreateStream(&late), OK);
	EXPECT_EQ(copy(late), FAILED);
	EXPECT_EQ(aclrtDestroyStream(late), OK);
	/* neither an abort nor the stream's end lets it go on */
	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), 207000);
	EXPECT_EQ(aclrtSetStreamFailureMode(other, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(aclrtDestroyStream(stream), OK);
	EXPECT_EQ(copy(other), FAILED);
	EXPECT_EQ(aclrtDestroyStream(other), OK);
	EXPECT_EQ(aclrtDestroyEvent(event), OK);
	EXPECT_EQ(aclrtSynchronizeDevice(), FAILED);
	EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), FAILED);
}

TEST(failure_mode, leaves_copies_that_need_no_stream)
{
	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(fail(stream), FAILED);
	EXPECT_EQ(aclrtMemset(memory, MIB, 0, MIB), OK);
	EXPECT_EQ(aclrtMemcpy(memory + MIB, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), OK);
}

TEST(failure_mode, stops_on_the_failure_of_a_stream_that_is_not_of_it)
{
	EXPECT_EQ(fail(other), FAILED);
	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(copy(other), OK); /* that was before */
	EXPECT_EQ(aclrtSynchronizeStream(other), OK);
	EXPECT_EQ(fail(other), FAILED);
	expect_stopped(stream);
	expect_stopped(other);
	EXPECT_EQ(aclrtSetStreamFailureMode(other, ACL_STOP_ON_FAILURE), OK);
}

TEST(failure_mode, answers_the_code_of_a_time_out)
{
	EXPECT_EQ(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, stream, 1), OK);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 107020);
	EXPECT_EQ(copy(stream), 107020);
	EXPECT_EQ(aclrtSynchronizeStream(other), 107020);
}

TEST(failure_mode, is_of_one_context)
{
	aclrtContext first, second;
	aclrtStream there;

	ASSERT_EQ(aclrtGetCurrentContext(&first), OK);
	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(fail(stream), FAILED);
	ASSERT_EQ(aclrtCreateContext(&second, 0), OK);
	ASSERT_EQ(aclrtCreateStream(&there), OK);
	EXPECT_EQ(copy(there), OK);
	EXPECT_EQ(aclrtSynchronizeStream(there), OK);
	EXPECT_EQ(aclrtSynchronizeDevice(), OK);
	EXPECT_EQ(fail(there), FAILED);
	EXPECT_EQ(copy(there), OK);
	EXPECT_EQ(aclrtSynchronizeStream(there), OK);
	EXPECT_EQ(aclrtDestroyStream(there), OK);
	EXPECT_EQ(aclrtDestroyContext(second), OK);
	EXPECT_EQ(aclrtSetCurrentContext(first), OK);
	EXPECT_EQ(copy(stream), FAILED);
}

TEST(failure_mode, is_told_by_an_event_behind_the_failure)
{
	aclrtEventRecordedStatus status;

	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(bad_copy(stream), OK);
	EXPECT_EQ(aclrtRecordEvent(event, stream), OK);
	EXPECT_EQ(aclrtSynchronizeEvent(event), FAILED);
	EXPECT_EQ(aclrtQueryEventStatus(event, &status), FAILED);
	EXPECT_EQ(aclrtStreamWaitEvent(other, event), OK); /* it has happened */
	EXPECT_EQ(aclrtSynchronizeStream(other), FAILED);
	EXPECT_EQ(aclrtDestroyEvent(event), OK);
}

/* Nothing waits for what cannot come any more. */
TEST(failure_mode, ends_waits_for_ever)
{
	EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), OK);
	EXPECT_EQ(aclrtMemset(memory, 8, 0, 8), OK);
	EXPECT_EQ(aclrtValueWait(memory, 42, 1, other), OK);
	EXPECT_EQ(fail(stream), FAILED);
	EXPECT_EQ(aclrtValueWrite(memory, 42, 0, other), FAILED);
	EXPECT_EQ(aclrtSynchronizeStream(other), FAILED);
	EXPECT_EQ(aclrtSynchronizeDevice(), FAILED);
	EXPECT_EQ(aclrtDestroyStream(other), OK);
}
