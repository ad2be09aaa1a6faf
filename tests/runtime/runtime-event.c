/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of runtime/core over a fake driver: the three kinds, records one after the other, waits
 * within and between devices, times, ends.
 */
#include "harness/test.h"

#include "rig.h"

#include <string.h>
#include <unistd.h>

static void *a, *b; /* streams */

SETUP(event)
{
	rig_open(2);
	ASSERT_EQ(core_device_set(0), 0);
	ASSERT_EQ(core_stream_create(0, 0, &a), 0);
	ASSERT_EQ(core_stream_create(0, 0, &b), 0);
}

TEARDOWN(event)
{
	fake_hold(rig, false);
	rig_close();
}

static void *make(enum core_event_kind kind, uint32_t flags)
{
	void *event = NULL;

	EXPECT_EQ(core_event_create(kind, flags, &event), 0);
	return event;
}

static bool is_done(void *event)
{
	bool done = false;

	EXPECT_EQ(core_event_query(event, false, &done), 0);
	return done;
}

static bool is_idle(void *handle)
{
	bool idle = false;
	int code;

	EXPECT_EQ(core_stream_query(rig_find(handle, &code), &idle), 0);
	return idle;
}

static int synchronize(void *handle, int32_t timeout_ms)
{
	int code;

	return core_stream_synchronize(rig_find(handle, &code), timeout_ms);
}

TEST(event, happens_when_its_turn_comes)
{
	void *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	fake_hold(rig, true);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_FALSE(is_done(event));
	EXPECT_EQ(core_event_synchronize(event, 10), 507047);
	EXPECT_CONTAINS(npu_message(), "has not happened within 10 ms");
	fake_hold(rig, false);
	EXPECT_EQ(core_event_synchronize(event, -1), 0);
	EXPECT_TRUE(is_done(event));
}

TEST(event, state_before_the_first_record)
{
	void *plain = make(CORE_EVENT_PLAIN, 0), *again = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);
	bool done = false;

	EXPECT_FALSE(is_done(plain));
	EXPECT_TRUE(is_done(again));
	EXPECT_EQ(core_event_synchronize(plain, -1), 0);
	EXPECT_EQ(core_event_query(plain, true, &done), 0);
	EXPECT_TRUE(done);
	EXPECT_EQ(core_event_query(again, true, &done), 207000);
}

TEST(event, wait_before_the_first_record)
{
	void *plain = make(CORE_EVENT_PLAIN, 0), *again = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);
	void *flags = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_wait(plain, a, 0), 107000);
	EXPECT_CONTAINS(npu_message(), "was never recorded");
	EXPECT_EQ(core_event_wait(again, a, 0), 0);
	EXPECT_TRUE(is_idle(a));
	EXPECT_EQ(core_event_wait(flags, a, 0), 0);
	EXPECT_FALSE(is_idle(a));
	EXPECT_EQ(core_event_record(flags, b), 0);
	EXPECT_EQ(synchronize(a, 1000), 0);
}

TEST(event, stream_waits_for_another)
{
	void *gate = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC),
	     *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);
	bool done = true;

	EXPECT_EQ(core_event_wait(gate, a, 0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_FALSE(is_idle(b));
	EXPECT_EQ(core_event_query_waits(gate, &done), 0);
	EXPECT_FALSE(done);
	EXPECT_EQ(core_event_query_waits(event, &done), 207000);
	EXPECT_EQ(core_event_record(gate, NULL), 0);
	EXPECT_EQ(synchronize(b, 1000), 0);
	EXPECT_TRUE(is_done(event));
	EXPECT_EQ(core_event_query_waits(gate, &done), 0);
	EXPECT_TRUE(done);
}

/* Who waits for a record waits for that one: recording again neither delays nor releases it. */
TEST(event, recorded_again_while_waited_for)
{
	void *gate = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC),
	     *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_wait(gate, a, 0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_EQ(core_event_record(event, NULL), 0); /* on an idle stream: happens at once */
	EXPECT_EQ(core_event_synchronize(event, -1), 0);
	EXPECT_FALSE(is_idle(b));
	EXPECT_EQ(core_event_record(gate, NULL), 0);
	EXPECT_EQ(synchronize(b, 1000), 0);
}

TEST(event, wait_on_its_own_stream_sends_nothing)
{
	void *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	fake_hold(rig, true);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_wait(event, a, 0), 0);
	fake_hold(rig, false);
	EXPECT_EQ(synchronize(a, -1), 0);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_EVENT_WAIT), 0);
}

TEST(event, without_sync_cannot_be_waited_for)
{
	void *event = make(CORE_EVENT_AGAIN, CORE_EVENT_TIME_LINE),
	     *flags = make(CORE_EVENT_FLAGS, CORE_EVENT_TIME_LINE);

	EXPECT_EQ(core_event_wait(event, a, 0), 207000);
	EXPECT_CONTAINS(npu_message(), "without ACL_EVENT_SYNC");
	EXPECT_EQ(core_event_reset(flags, a), 207000);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_synchronize(event, -1), 0);
}

TEST(event, reset_makes_waits_wait_again)
{
	void *event = make(CORE_EVENT_PLAIN, 0), *again = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(synchronize(a, -1), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_TRUE(is_idle(b));
	EXPECT_EQ(core_event_reset(event, a), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_FALSE(is_idle(b));
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(synchronize(b, 1000), 0);
	EXPECT_EQ(core_event_reset(again, a), 207000);
}

/* ---- between devices ---- */

TEST(event, stream_of_another_device_waits)
{
	void *gate = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC),
	     *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC), *far = NULL;

	EXPECT_EQ(core_event_wait(gate, a, 0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_device_set(1), 0);
	ASSERT_EQ(core_stream_create(0, 0, &far), 0);
	EXPECT_EQ(core_event_wait(event, far, 0), 0);
	EXPECT_FALSE(is_idle(far));
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_event_record(gate, NULL), 0);
	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_EQ(synchronize(far, 5000), 0);
}

TEST(event, record_on_another_device_than_its_own)
{
	void *event = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC), *far = NULL;

	EXPECT_EQ(core_event_wait(event, a, 0), 0);
	EXPECT_EQ(core_device_set(1), 0);
	ASSERT_EQ(core_stream_create(0, 0, &far), 0);
	EXPECT_EQ(core_event_record(event, far), 0);
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(synchronize(a, 5000), 0);
}

/* ---- times ---- */

TEST(event, elapsed_time)
{
	void *start = make(CORE_EVENT_AGAIN, CORE_EVENT_TIME_LINE),
	     *end = make(CORE_EVENT_PLAIN, 0);
	uint64_t first = 0, second = 0;
	float ms = -1;

	EXPECT_EQ(core_event_elapsed(start, end, &ms), 507000);
	EXPECT_CONTAINS(npu_message(), "startEvent=");
	EXPECT_EQ(core_event_record(start, a), 0);
	EXPECT_EQ(synchronize(a, -1), 0);
	usleep(3000);
	fake_hold(rig, true);
	EXPECT_EQ(core_event_record(end, a), 0);
	EXPECT_EQ(core_event_elapsed(start, end, &ms), 107006);
	EXPECT_CONTAINS(npu_message(), "has not happened yet");
	EXPECT_EQ(ms, -1);
	fake_hold(rig, false);
	EXPECT_EQ(synchronize(a, -1), 0);
	EXPECT_EQ(core_event_elapsed(start, end, &ms), 0);
	EXPECT_GE(ms, 3.0);
	EXPECT_LT(ms, 3000.0);
	EXPECT_EQ(core_event_timestamp(start, &first), 0);
	EXPECT_EQ(core_event_timestamp(end, &second), 0);
	EXPECT_GE(second - first, 3000);
	EXPECT_EQ(core_event_elapsed(end, start, &ms), 0);
	EXPECT_LT(ms, 0.0);
}

TEST(event, without_time_line_has_no_time)
{
	void *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);
	uint64_t us;

	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(synchronize(a, -1), 0);
	EXPECT_EQ(core_event_timestamp(event, &us), 107006);
	EXPECT_CONTAINS(npu_message(), "without ACL_EVENT_TIME_LINE");
}

/* ---- ends ---- */

TEST(event, destroyed_while_waited_for)
{
	void *gate = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC),
	     *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_wait(gate, a, 0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_EQ(core_event_destroy(event), 0);
	EXPECT_EQ(core_event_destroy(event), 107000);
	EXPECT_CONTAINS(npu_message(), "no event of this process: it was destroyed, or its device");
	EXPECT_EQ(core_event_destroy((void *)8), 107000);
	EXPECT_CONTAINS(npu_message(), "no event of this process: it was not made by");
	EXPECT_EQ(core_event_record(event, a), 107000);
	EXPECT_EQ(core_event_record(gate, NULL), 0);
	EXPECT_EQ(synchronize(b, 1000), 0);
}

/* What a dropped record is waited for by does not wait for ever. */
TEST(event, record_dropped_with_its_stream)
{
	void *gate = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC),
	     *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_wait(gate, a, 0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(core_event_wait(event, b, 0), 0);
	EXPECT_EQ(core_stream_destroy(a, true), 0);
	EXPECT_EQ(synchronize(b, 1000), 0);
	EXPECT_TRUE(is_done(event));
}

TEST(event, record_that_cannot_be_sent)
{
	void *event = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC);

	EXPECT_EQ(core_event_wait(event, a, 0), 0);
	fake_refuse_sends(rig, DRV_ERROR_NO_DEVICE, 1);
	EXPECT_EQ(core_event_record(event, b), 207004);
	EXPECT_EQ(synchronize(a, 1000), 0);
	fake_refuse_sends(rig, DRV_ERROR_NO_DEVICE, 1);
	EXPECT_EQ(core_event_reset(event, b), 0);
	EXPECT_EQ(core_event_wait(event, a, 0), 207004);
	EXPECT_EQ(core_event_record(event, b), 0);
	EXPECT_EQ(core_event_wait(event, a, 0), 0);
	EXPECT_EQ(synchronize(a, 1000), 0);
	EXPECT_TRUE(is_done(event));
}

/* A stream of the recording device waits by way of the event's own device. */
TEST(event, recorded_elsewhere_than_it_was_made_and_waited_for_there)
{
	void *event = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC);
	void *far = NULL, *farther = NULL;

	ASSERT_EQ(core_device_set(1), 0);
	ASSERT_EQ(core_stream_create(0, 0, &far), 0);
	ASSERT_EQ(core_stream_create(0, 0, &farther), 0);
	EXPECT_EQ(core_event_wait(event, far, 0), 0);
	EXPECT_EQ(core_event_record(event, farther), 0);
	EXPECT_EQ(synchronize(far, 1000), 0);
	EXPECT_EQ(core_device_reset(1, true), 0);
	ASSERT_EQ(core_device_set(0), 0);
}

/* The id that a dropped wait had on its device is another's by then. */
TEST(event, dropped_wait_is_not_let_go_later)
{
	void *event = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC), *next;
	void *far = NULL;

	ASSERT_EQ(core_device_set(1), 0);
	ASSERT_EQ(core_stream_create(0, 0, &far), 0);
	EXPECT_EQ(core_event_wait(event, far, 0), 0);
	EXPECT_EQ(core_stream_destroy(far, true), 0);
	ASSERT_EQ(core_stream_create(0, 0, &far), 0);
	next = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC);
	EXPECT_EQ(core_event_wait(next, far, 0), 0);
	ASSERT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_event_record(event, a), 0);
	EXPECT_EQ(synchronize(a, 1000), 0);
	ASSERT_EQ(core_device_set(1), 0);
	EXPECT_FALSE(is_idle(far));
	EXPECT_EQ(core_event_record(next, NULL), 0);
	EXPECT_EQ(synchronize(far, 1000), 0);
	EXPECT_EQ(core_device_reset(1, true), 0);
	ASSERT_EQ(core_device_set(0), 0);
}

TEST(event, of_a_context_go_with_it)
{
	void *event;

	EXPECT_EQ(core_device_set(1), 0);
	event = make(CORE_EVENT_FLAGS, CORE_EVENT_SYNC);
	EXPECT_EQ(core_event_live(1), 1);
	EXPECT_EQ(core_device_reset(1, false), 0);
	EXPECT_EQ(core_event_live(1), 0);
	EXPECT_EQ(core_event_destroy(event), 107000);
}

TEST(event, ids_differ)
{
	uint32_t first = 0, second = 0;

	EXPECT_EQ(core_event_id(make(CORE_EVENT_PLAIN, 0), &first), 0);
	EXPECT_EQ(core_event_id(make(CORE_EVENT_PLAIN, 0), &second), 0);
	EXPECT_NE(first, second);
}

static void *record_and_wait(void *arg)
{
	void *event = arg, *stream = NULL;

	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_stream_create(0, 0, &stream), 0);
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(core_event_record(event, stream), 0);
		EXPECT_EQ(core_event_wait(event, i % 2 ? a : b, 0), 0);
		is_done(event);
	}
	EXPECT_EQ(core_stream_destroy(stream, false), 0);
	EXPECT_EQ(core_device_reset(0, false), 0);
	return NULL;
}

TEST(event, many_threads_record_one)
{
	void *event = make(CORE_EVENT_AGAIN, CORE_EVENT_SYNC);
	pthread_t thread[6];

	for (int i = 0; i < 6; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, record_and_wait, event), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(synchronize(a, 5000), 0);
	EXPECT_EQ(synchronize(b, 5000), 0);
}
