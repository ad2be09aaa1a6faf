/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits that nothing ends, over the model: the warning names the call, the stream, its task, what
 * that waits for, and what would end it. Each is then ended.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "heard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static aclrtContext context;
static aclrtStream waiting, other;
static uint64_t *value; /* of the device */

static void put(uint64_t number)
{
	EXPECT_EQ(aclrtMemcpy(value, 8, &number, 8, ACL_MEMCPY_HOST_TO_DEVICE), 0);
}

SETUP(stall)
{
	setenv("NPUSIM_PATIENCE", "0.05", 1);
	ASSERT_EQ(aclrtSetDevice(0), 0);
	ASSERT_EQ(aclrtGetCurrentContext(&context), 0);
	ASSERT_EQ(aclrtCreateStream(&waiting), 0);
	ASSERT_EQ(aclrtCreateStream(&other), 0);
	ASSERT_EQ(aclrtMalloc((void **)&value, 8, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
	put(3);
	heard_begin();
}

TEARDOWN(stall)
{
	heard_end();
	EXPECT_EQ(aclrtResetDeviceForce(0), 0);
}

static void *synchronize(void *stream)
{
	EXPECT_EQ(aclrtSetCurrentContext(context), 0);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	return NULL;
}

static void *synchronize_device(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetCurrentContext(context), 0);
	EXPECT_EQ(aclrtSynchronizeDevice(), 0);
	return NULL;
}

/* Starts the call, and returns when it is complained about. */
static pthread_t hang(void *(*call)(void *arg), void *arg)
{
	pthread_t thread = 0;

	EXPECT_EQ(pthread_create(&thread, NULL, call, arg), 0);
	heard_await("ends the wait");
	return thread;
}

TEST(stall, event_that_nobody_records)
{
	aclrtEvent event = NULL;
	pthread_t thread;

	ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), 0);
	ASSERT_EQ(aclrtStreamWaitEvent(waiting, event), 0);
	thread = hang(synchronize, waiting);
	EXPECT_CONTAINS(heard(), "warn: aclrtSynchronizeStream has waited for stream");
	EXPECT_CONTAINS(heard(), "for 0.05 s in which nothing of it was done: task 1 of stream");
	EXPECT_CONTAINS(heard(), "which nobody has recorded: aclrtRecordEvent");
	EXPECT_CONTAINS(heard(), "aclrtDestroyStreamForce");
	usleep(200000);
	EXPECT_EQ(aclrtRecordEvent(event, other), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(heard_count("has waited"), 1u);
}

TEST(stall, value_that_nobody_writes)
{
	pthread_t thread;
	char words[96];

	ASSERT_EQ(aclrtValueWait(value, 5, ACL_STREAM_WAIT_VALUE_EQ, waiting), 0);
	thread = hang(synchronize_device, NULL);
	snprintf(words, sizeof(words), "a value at %p equal to 0x5, where 0x3 is", (void *)value);
	EXPECT_CONTAINS(heard(), "aclrtSynchronizeDevice has waited");
	EXPECT_CONTAINS(heard(), words);
	EXPECT_EQ(aclrtValueWrite(value, 5, 0, other), 0);
	pthread_join(thread, NULL);
}

TEST(stall, chain_of_streams)
{
	aclrtEvent event = NULL;
	pthread_t thread;

	ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), 0);
	ASSERT_EQ(aclrtValueWait(value, 4, ACL_STREAM_WAIT_VALUE_GEQ, other), 0);
	ASSERT_EQ(aclrtRecordEvent(event, other), 0);
	ASSERT_EQ(aclrtStreamWaitEvent(waiting, event), 0);
	thread = hang(synchronize, waiting);
	EXPECT_CONTAINS(heard(), "which is recorded on stream");
	EXPECT_CONTAINS(heard(), "and has not happened; there task 1 of stream");
	EXPECT_CONTAINS(heard(), "at least 0x4, where 0x3 is");
	put(4);
	pthread_join(thread, NULL);
}

static void nothing(void *arg)
{
	(void)arg;
}

TEST(stall, callback_that_nobody_takes)
{
	pthread_t thread;

	ASSERT_EQ(aclrtSubscribeReport((uint64_t)pthread_self(), waiting), 0);
	ASSERT_EQ(aclrtLaunchCallback(nothing, NULL, ACL_CALLBACK_BLOCK, waiting), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, synchronize, waiting), 0);
	heard_await("no thread has taken: aclrtProcessReport");
	EXPECT_EQ(aclrtProcessReport(-1), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(aclrtUnSubscribeReport((uint64_t)pthread_self(), waiting), 0);
}

static atomic_bool released;

static void until_released(void *arg)
{
	(void)arg;
	while (!atomic_load(&released))
		usleep(1000);
}

TEST(stall, host_function_that_does_not_return)
{
	pthread_t thread;

	atomic_store(&released, false);
	ASSERT_EQ(aclrtLaunchHostFunc(waiting, until_released, NULL), 0);
	thread = hang(synchronize, waiting);
	EXPECT_CONTAINS(heard(), "waits for the host function");
	EXPECT_CONTAINS(heard(), "which runs: its return");
	atomic_store(&released, true);
	pthread_join(thread, NULL);
}

static void *reset(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtResetDevice(1), 0);
	return NULL;
}

/* It waits, as its document says, and does not drop what is queued. */
TEST(stall, reset_of_a_device_waits_for_its_streams)
{
	aclrtContext apart = NULL;
	aclrtEvent event = NULL;
	aclrtStream stream = NULL;
	pthread_t thread;

	ASSERT_EQ(aclrtCreateContext(&apart, 1), 0);
	ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), 0);
	ASSERT_EQ(aclrtSetDevice(1), 0);
	ASSERT_EQ(aclrtCreateStream(&stream), 0);
	ASSERT_EQ(aclrtStreamWaitEvent(stream, event), 0);
	thread = hang(reset, NULL);
	EXPECT_CONTAINS(heard(), "aclrtResetDevice has waited");
	EXPECT_CONTAINS(heard(), "which nobody has recorded");
	ASSERT_EQ(aclrtSetCurrentContext(apart), 0);
	EXPECT_EQ(aclrtRecordEvent(event, NULL), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(aclrtDestroyContext(apart), 0);
	ASSERT_EQ(aclrtSetDevice(0), 0);
}

TEST(stall, waits_with_a_limit_are_not_complained_about)
{
	ASSERT_EQ(aclrtValueWait(value, 5, ACL_STREAM_WAIT_VALUE_EQ, waiting), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(waiting, 200), 507046);
	EXPECT_EQ(strstr(heard(), "has waited"), NULL); /* it has failed, and that is all */
	put(5);
	EXPECT_EQ(aclrtSynchronizeStream(waiting), 0);
}

static void *put_later(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetCurrentContext(context), 0);
	usleep(200000);
	put(5);
	return NULL;
}

TEST(stall, nothing_is_said_where_it_is_off)
{
	pthread_t thread;

	setenv("NPUSIM_PATIENCE", "off", 1);
	ASSERT_EQ(aclrtValueWait(value, 5, ACL_STREAM_WAIT_VALUE_EQ, waiting), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, put_later, NULL), 0);
	EXPECT_EQ(aclrtSynchronizeStream(waiting), 0);
	pthread_join(thread, NULL);
	EXPECT_STREQ(heard(), "");
}
