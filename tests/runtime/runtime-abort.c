/* SPDX-License-Identifier: Apache-2.0
 *
 * aclrtStreamAbort and aclrtStreamStop on the model: what becomes of work that runs, that is queued
 * and that comes later, of events, and of those who wait.
 */
#include "harness/test.h"

#include "acl/acl.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define BYTES (64u << 20)

static aclrtStream a, b;
static unsigned char *from, *to;
static void *memory;

SETUP(abort)
{
	ASSERT_EQ(aclrtSetDevice(0), 0);
	ASSERT_EQ(aclrtCreateStream(&a), 0);
	ASSERT_EQ(aclrtCreateStream(&b), 0);
	ASSERT_EQ(aclrtMallocHost((void **)&from, BYTES), 0);
	ASSERT_EQ(aclrtMallocHost((void **)&to, BYTES), 0);
	ASSERT_EQ(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	ASSERT_EQ(aclrtMemset(memory, BYTES, 3, BYTES), 0);
	memset(from, 7, BYTES);
	memset(to, 0, BYTES);
}

TEARDOWN(abort)
{
	EXPECT_EQ(aclrtResetDeviceForce(0), 0);
}

static void copy_in(aclrtStream stream)
{
	EXPECT_EQ(aclrtMemcpyAsync(memory, BYTES, from, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream),
		  0);
}

static void copy_out(aclrtStream stream)
{
	EXPECT_EQ(aclrtMemcpyAsync(to, BYTES, memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
}

/* The last byte of the memory, once nothing is under way. */
static unsigned char last_byte(void)
{
	unsigned char byte = 0;

	EXPECT_EQ(aclrtMemcpy(&byte, 1, (char *)memory + BYTES - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST),
		  0);
	return byte;
}

static bool is_idle(aclrtStream stream)
{
	aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;

	EXPECT_EQ(aclrtStreamQuery(stream, &status), 0);
	return status == ACL_STREAM_STATUS_COMPLETE;
}

/* Lets so much simulated time pass that all that was queued would be done. */
static void let_time_pass(void)
{
	copy_out(b);
	EXPECT_EQ(aclrtSynchronizeStream(b), 0);
}

/* Where nothing is called for a millisecond, the model runs on by itself, and the copy may be done
 * before it is aborted: it is tried again then. */
TEST(abort, drops_what_runs_and_what_is_queued)
{
	bool dropped = false;

	for (int i = 0; !dropped && i < 10; i++) {
		EXPECT_EQ(aclrtMemset(memory, BYTES, 3, BYTES), 0);
		copy_in(a);
		copy_out(a);
		dropped = !is_idle(a);
		EXPECT_EQ(aclrtStreamAbort(a), 0);
		EXPECT_TRUE(is_idle(a));
		EXPECT_EQ(aclrtSynchronizeStream(a), 0);
		let_time_pass();
		dropped = dropped && last_byte() == 3;
	}
	EXPECT_TRUE(dropped);
	EXPECT_EQ(to[BYTES - 1], 3); /* by let_time_pass() alone */
	/* The stream is as a new one. */
	copy_in(a);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	EXPECT_EQ(last_byte(), 7);
	EXPECT_EQ(aclrtDestroyStream(a), 0);
}

TEST(abort, forgets_errors_and_takes_the_default_stream)
{
	EXPECT_EQ(aclrtStreamAbort(NULL), 0);
	copy_in(NULL);
	EXPECT_EQ(aclrtStreamAbort(NULL), 0);
	EXPECT_EQ(aclrtSynchronizeStream(NULL), 0);
	copy_in(NULL);
	EXPECT_EQ(aclrtSynchronizeStream(NULL), 0);
	EXPECT_EQ(last_byte(), 7);
	EXPECT_EQ(aclrtStreamAbort(&a), 107000);
	ASSERT_EQ(aclrtSetDevice(1), 0);
	EXPECT_EQ(aclrtStreamAbort(a), 107003);
	EXPECT_EQ(aclrtResetDevice(1), 0);
	ASSERT_EQ(aclrtSetDevice(0), 0);
}

static aclrtEvent gate, recorded;
static int codes[2];

static void *wait_for_stream(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	codes[0] = aclrtSynchronizeStream(a);
	return NULL;
}

static void *wait_for_event(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	codes[1] = aclrtSynchronizeEvent(recorded);
	return NULL;
}

static void open_gate(void)
{
	ASSERT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&recorded, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(a, gate), 0);
	EXPECT_EQ(aclrtRecordEvent(recorded, a), 0);
}

TEST(abort, tells_who_waits)
{
	aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
	pthread_t threads[2];

	ASSERT_NO_FATAL(open_gate());
	codes[0] = codes[1] = -1;
	ASSERT_EQ(pthread_create(&threads[0], NULL, wait_for_stream, NULL), 0);
	ASSERT_EQ(pthread_create(&threads[1], NULL, wait_for_event, NULL), 0);
	usleep(50000); /* they wait, most likely */
	EXPECT_EQ(aclrtStreamAbort(a), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_TRUE(codes[0] == 107023 || codes[0] == 0);
	EXPECT_EQ(codes[1], 107023);
	/* The event that was to be recorded there does not happen. */
	EXPECT_EQ(aclrtQueryEventStatus(recorded, &status), 0);
	EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
	EXPECT_EQ(aclrtSynchronizeEvent(recorded), 107023);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "aclrtStreamAbort");
	EXPECT_EQ(aclrtRecordEvent(recorded, a), 0);
	EXPECT_EQ(aclrtSynchronizeEvent(recorded), 0);
}

TEST(abort, leaves_streams_that_wait_for_it_where_they_are)
{
	ASSERT_NO_FATAL(open_gate());
	EXPECT_EQ(aclrtStreamWaitEvent(b, recorded), 0);
	EXPECT_EQ(aclrtStreamAbort(a), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(b, 10), 507046);
	EXPECT_EQ(aclrtStreamAbort(b), 0);
	EXPECT_EQ(aclrtSynchronizeStream(b), 0);
	copy_in(b);
	EXPECT_EQ(aclrtSynchronizeDevice(), 0);
	EXPECT_EQ(last_byte(), 7);
}

static void count_up(void *arg)
{
	(*(volatile int *)arg)++;
}

TEST(abort, drops_host_functions_whose_turn_has_not_come)
{
	int count = 0;

	ASSERT_NO_FATAL(open_gate());
	EXPECT_EQ(aclrtLaunchHostFunc(a, count_up, &count), 0);
	EXPECT_EQ(aclrtStreamAbort(a), 0);
	EXPECT_EQ(aclrtLaunchHostFunc(a, count_up, &count), 0);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	EXPECT_EQ(count, 1);
}

/* Over and over, while another thread sends: no call hangs, and each answer is one of three. */
static void *send_for_ever(void *end)
{
	EXPECT_EQ(aclrtSetDevice(0), 0);
	while (!__atomic_load_n((bool *)end, __ATOMIC_RELAXED)) {
		int code = aclrtMemcpyAsync(to, 4096, memory, 4096, ACL_MEMCPY_DEVICE_TO_HOST, a);

		if (code != 107023 && !EXPECT_EQ(code, 0))
			break;
		code = aclrtSynchronizeStream(a);
		if (code != 107023 && !EXPECT_EQ(code, 0))
			break;
	}
	return NULL;
}

TEST(abort, while_others_send)
{
	bool end = false;
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, send_for_ever, &end), 0);
	for (int i = 0; i < 200; i++)
		EXPECT_EQ(aclrtStreamAbort(a), 0);
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* The model runs on by itself here, too: the copy may be done before the stop. */
TEST(abort, a_stop_stops_the_copy_that_runs)
{
	copy_in(a);
	EXPECT_EQ(aclrtStreamStop(a), 0);
	let_time_pass();
	EXPECT_TRUE(is_idle(a) || last_byte() == 3);
}

TEST(abort, a_stop_keeps_what_is_queued)
{
	ASSERT_NO_FATAL(open_gate());
	copy_in(a);
	copy_out(a);
	EXPECT_EQ(aclrtStreamStop(a), 0);
	EXPECT_EQ(aclrtRecordEvent(gate, b), 0);
	let_time_pass();
	EXPECT_EQ(last_byte(), 3);
	EXPECT_FALSE(is_idle(a));
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(a, 10), 507046);
	copy_in(a); /* it stays too */
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(a, 10), 507046);
	EXPECT_EQ(aclrtStreamAbort(a), 0);
	copy_in(a);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	EXPECT_EQ(last_byte(), 7);
	EXPECT_EQ(aclrtStreamStop(NULL), 107000);
	copy_in(a);
	EXPECT_EQ(aclrtStreamStop(a), 0);
	EXPECT_EQ(aclrtDestroyStream(a), 0);
}
