/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks of runtime/core over a fake driver: who runs them, in which order, what waits for them.
 */
#include "harness/test.h"

#include "rig.h"

#include <string.h>
#include <unistd.h>

static void *stream;
static atomic_int steps;
static atomic_int seen[8];

SETUP(callback)
{
	rig_open(2);
	ASSERT_EQ(core_device_set(0), 0);
	ASSERT_EQ(core_stream_create(0, 0, &stream), 0);
	atomic_store(&steps, 0);
	memset(seen, 0, sizeof(seen));
}

TEARDOWN(callback)
{
	fake_hold(rig, false);
	rig_close();
}

static uint64_t me(void)
{
	return (uint64_t)pthread_self();
}

/* Notes at which step it was called. */
static void note(void *arg)
{
	atomic_store(&seen[(intptr_t)arg], atomic_fetch_add(&steps, 1) + 1);
}

static bool is_idle(void)
{
	bool idle = false;
	int code;

	EXPECT_EQ(core_stream_query(rig_find(stream, &code), &idle), 0);
	return idle;
}

static int synchronize(int32_t timeout_ms)
{
	int code;

	return core_stream_synchronize(rig_find_any(stream, &code), timeout_ms);
}

TEST(callback, codes_of_subscription)
{
	EXPECT_EQ(core_callback_launch(note, NULL, true, stream), 107015);
	EXPECT_CONTAINS(npu_message(), "no thread subscribes to stream");
	EXPECT_EQ(core_callback_process(1), 107012);
	EXPECT_EQ(core_callback_unsubscribe(me(), stream), 107011);
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_subscribe(me(), stream), 107011);
	EXPECT_EQ(core_callback_unsubscribe(me() + 1, stream), 107012);
	EXPECT_EQ(core_callback_process(5), 507012);
	EXPECT_CONTAINS(npu_message(), "no callback came within 5 ms");
	EXPECT_EQ(core_callback_unsubscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_process(1), 107012);
}

TEST(callback, runs_in_the_subscribers_thread)
{
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)1, false, stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)2, false, stream), 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(seen[1], 1);
	EXPECT_EQ(seen[2], 2);
	EXPECT_EQ(synchronize(1000), 0);
}

TEST(callback, blocking_one_holds_the_stream)
{
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)1, true, stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)2, true, stream), 0);
	EXPECT_EQ(synchronize(30), 507046);
	EXPECT_EQ(seen[1], 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_FALSE(is_idle());
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(synchronize(5000), 0);
	EXPECT_EQ(seen[2], 2);
}

TEST(callback, not_blocking_one_does_not)
{
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)1, false, stream), 0);
	EXPECT_EQ(synchronize(5000), 0);
	EXPECT_EQ(seen[1], 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(seen[1], 1);
}

TEST(callback, one_thread_serves_several_streams)
{
	void *other = NULL;

	ASSERT_EQ(core_stream_create(0, 0, &other), 0);
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_subscribe(me(), other), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)1, true, stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)2, true, other), 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(steps, 2);
	EXPECT_EQ(core_callback_unsubscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_process(5), 507012);
	EXPECT_EQ(core_stream_destroy(other, false), 0);
	EXPECT_EQ(core_callback_process(5), 107012);
}

/* What was launched before the end of a subscription is still run. */
TEST(callback, unsubscribed_with_one_due)
{
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(note, (void *)1, true, stream), 0);
	EXPECT_EQ(core_callback_unsubscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(seen[1], 1);
	EXPECT_EQ(synchronize(5000), 0);
	EXPECT_EQ(core_callback_process(5), 107012);
}

/* ---- aclrtLaunchHostFunc ---- */

TEST(callback, host_function_runs_by_itself)
{
	EXPECT_EQ(core_callback_launch_host(note, (void *)1, stream), 0);
	EXPECT_EQ(core_callback_launch_host(note, (void *)2, stream), 0);
	EXPECT_EQ(synchronize(5000), 0);
	EXPECT_EQ(seen[1], 1);
	EXPECT_EQ(seen[2], 2);
}

TEST(callback, host_function_runs_though_nobody_waits)
{
	EXPECT_EQ(core_callback_launch_host(note, (void *)1, stream), 0);
	for (int i = 0; i < 5000 && seen[1] == 0; i++)
		usleep(1000);
	EXPECT_EQ(seen[1], 1);
}

static void wait_a_while(void *arg)
{
	usleep(20000);
	note(arg);
}

TEST(callback, host_function_holds_the_stream)
{
	void *event = NULL;
	bool done = true;

	EXPECT_EQ(core_event_create(CORE_EVENT_AGAIN, CORE_EVENT_SYNC, &event), 0);
	EXPECT_EQ(core_callback_launch_host(wait_a_while, (void *)1, stream), 0);
	EXPECT_EQ(core_event_record(event, stream), 0);
	EXPECT_EQ(core_event_query(event, false, &done), 0);
	if (seen[1] == 0)
		EXPECT_FALSE(done);
	EXPECT_EQ(core_event_synchronize(event, 5000), 0);
	EXPECT_EQ(seen[1], 1);
}

TEST(callback, kinds_do_not_mix_on_a_stream)
{
	void *other = NULL;

	ASSERT_EQ(core_stream_create(0, 0, &other), 0);
	EXPECT_EQ(core_callback_launch_host(note, (void *)1, stream), 0);
	EXPECT_EQ(core_callback_subscribe(me(), stream), 107011);
	EXPECT_EQ(core_callback_launch(note, NULL, true, stream), 107011);
	EXPECT_EQ(core_callback_subscribe(me(), other), 0);
	EXPECT_EQ(core_callback_launch_host(note, (void *)1, other), 107011);
}

static atomic_int inner_code;

static void call_back_in(void *arg)
{
	void *event = NULL;
	int code;

	(void)arg;
	core_device_set(0);
	atomic_store(&inner_code, core_stream_synchronize(rig_find_any(stream, &code), -1));
	core_stream_destroy(stream, false);
	EXPECT_EQ(core_event_create(CORE_EVENT_PLAIN, 0, &event), 0);
	core_device_reset(0, false);
}

/* Its calls are its own; and messages of ours name our function again when it has returned. */
static void call_other(void *arg)
{
	*(bool *)arg = core_called[0] == '\0';
	core_called = "other";
}

TEST(callback, calls_of_the_function_are_not_ours)
{
	bool outside = false;

	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(call_other, &outside, true, stream), 0);
	EXPECT_EQ(core_callback_process(1000), 0);
	EXPECT_TRUE(outside);
	EXPECT_EQ(core_callback_process(1), 507012);
	EXPECT_CONTAINS(npu_message(), "call: no callback came");
	EXPECT_EQ(synchronize(1000), 0);
}

/* A callback that waits for its own stream is told, instead of waiting for ever. */
TEST(callback, own_stream_is_not_waited_for_inside)
{
	EXPECT_EQ(core_callback_launch_host(call_back_in, NULL, stream), 0);
	EXPECT_EQ(synchronize(5000), 0);
	EXPECT_EQ(inner_code, 107000);
}

TEST(callback, destroy_waits_for_the_function)
{
	EXPECT_EQ(core_callback_launch_host(wait_a_while, (void *)1, stream), 0);
	EXPECT_EQ(core_stream_destroy(stream, false), 0);
	EXPECT_EQ(seen[1], 1);
}

TEST(callback, destroy_by_force_drops_what_is_due)
{
	fake_hold(rig, true);
	EXPECT_EQ(core_callback_launch_host(note, (void *)1, stream), 0);
	EXPECT_EQ(core_stream_destroy(stream, true), 0);
	EXPECT_EQ(seen[1], 0);
}

TEST(callback, many_in_order)
{
	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	for (int i = 0; i < 200; i++)
		EXPECT_EQ(core_callback_launch(note, (void *)1, i % 3 == 0, stream), 0);
	for (int i = 0; i < 200; i++)
		EXPECT_EQ(core_callback_process(5000), 0);
	EXPECT_EQ(steps, 200);
	EXPECT_EQ(synchronize(5000), 0);
}

/* The stream is gone when the callback runs, and what it would have waited for is another's. */
TEST(callback, outlives_its_stream_and_lets_nobody_else_go)
{
	void *event = NULL, *next = NULL;

	EXPECT_EQ(core_callback_subscribe(me(), stream), 0);
	EXPECT_EQ(core_callback_launch(note, NULL, true, stream), 0);
	EXPECT_EQ(synchronize(20), 507046);
	EXPECT_EQ(core_callback_subscribe(me(), NULL), 0);
	EXPECT_EQ(core_stream_destroy(stream, true), 0);
	ASSERT_EQ(core_stream_create(0, 0, &stream), 0);
	ASSERT_EQ(core_event_create(CORE_EVENT_FLAGS, CORE_EVENT_SYNC, &event), 0);
	EXPECT_EQ(core_event_wait(event, stream, 0), 0);
	EXPECT_EQ(core_callback_process(1000), 0);
	EXPECT_EQ(seen[0], 1);
	EXPECT_FALSE(is_idle());
	ASSERT_EQ(core_stream_create(0, 0, &next), 0);
	EXPECT_EQ(core_event_record(event, next), 0);
	EXPECT_EQ(synchronize(1000), 0);
}
