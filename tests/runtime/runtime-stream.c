/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of runtime/core over a fake driver: order, room in the queue, errors, time-outs, ends.
 */
#include "harness/test.h"

#include "heard.h"
#include "rig.h"

#include <string.h>
#include <unistd.h>

static struct core_stream *stream;
static void *handle;

SETUP(stream)
{
	int code;

	rig_open(2);
	ASSERT_EQ(core_device_set(0), 0);
	ASSERT_EQ(core_stream_create(3, 1, &handle), 0);
	stream = rig_find(handle, &code);
	ASSERT_NOT_NULL(stream);
}

TEARDOWN(stream)
{
	fake_hold(rig, false);
	rig_close();
}

/* Sends `count` placeholders as one call. */
static int send_some(unsigned count, uint8_t type,
		     void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg)
{
	static struct stars_event_sqe sqe[300];

	memset(sqe, 0, sizeof(sqe));
	for (unsigned i = 0; i < count; i++)
		sqe[i].header.type = type & 0x3f;
	return core_stream_send(stream, sqe, count, keep, arg);
}

static void count_up(void *arg, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(stream, has_what_it_was_made_with)
{
	EXPECT_EQ(core_stream_facts(stream).priority, 3);
	EXPECT_EQ(core_stream_facts(stream).flags, 1);
	EXPECT_GT(core_stream_facts(stream).id, 0);
	EXPECT_EQ(core_stream_live(0), 1);
}

TEST(stream, keep_is_called_once_all_is_complete)
{
	atomic_int kept = 0;
	bool idle = true;

	fake_hold(rig, true);
	EXPECT_EQ(send_some(5, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	EXPECT_EQ(core_stream_query(stream, &idle), 0);
	EXPECT_FALSE(idle);
	EXPECT_EQ(kept, 0);
	fake_hold(rig, false);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	EXPECT_EQ(kept, 1);
	EXPECT_EQ(core_stream_query(stream, &idle), 0);
	EXPECT_TRUE(idle);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_PLACE_HOLDER), 5);
}

TEST(stream, more_than_fits_waits_for_room)
{
	atomic_int kept = 0;

	for (int i = 0; i < 50; i++)
		EXPECT_EQ(send_some(299, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	EXPECT_EQ(kept, 50);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_PLACE_HOLDER), 50 * 299);
}

static void *let_go_later(void *arg)
{
	usleep(20000);
	fake_hold(arg, false);
	return NULL;
}

TEST(stream, full_queue_waits_for_another_thread)
{
	pthread_t thread;
	atomic_int kept = 0;

	fake_hold(rig, true);
	ASSERT_EQ(pthread_create(&thread, NULL, let_go_later, rig), 0);
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(send_some(200, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	EXPECT_EQ(kept, 20);
	pthread_join(thread, NULL);
}

TEST(stream, driver_that_is_full_is_asked_again)
{
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	fake_hold(rig, true);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	fake_hold(rig, false);
	fake_refuse_sends(rig, DRV_ERROR_SQID_FULL, 1);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_PLACE_HOLDER), 3);
}

TEST(stream, driver_that_refuses_is_an_error)
{
	atomic_int kept = 0;

	fake_refuse_sends(rig, DRV_ERROR_NO_DEVICE, 1);
	EXPECT_EQ(send_some(3, STARS_SQE_PLACE_HOLDER, count_up, &kept), 207004);
	EXPECT_CONTAINS(npu_message(), "call: the driver answers 1");
	EXPECT_EQ(kept, 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
}

static const struct failure_case {
	const char *label;
	uint8_t type, error_type;
	int code;
	const char *text;
} failures[] = {
	{ "copy_on_device", STARS_SQE_SDMA, 1, 507001, "a copy or fill on the device on stream" },
	{ "copy_with_host", STARS_SQE_PCIE_DMA, 1, 507001,
	  "a copy between host and device on stream" },
	{ "memory_gone", STARS_SQE_PCIE_DMA, 1, 507001,
	  "a copy between host and device on stream" },
	{ "copy_time_out", STARS_SQE_SDMA, 4, 107020, "time-out" },
	{ "other", STARS_SQE_WRITE_VALUE, 1, 507001,
	  "a write of a value or record of a notify on stream" },
	{ "other_time_out", STARS_SQE_PLACE_HOLDER, 4, 107020, "time-out" },
	{ "warning_only", STARS_SQE_SDMA, 0x40, 0, NULL },
};

TEST_EACH(stream, failed_work, failures, label)
{
	const struct failure_case *c = param;

	fake_fail_next(rig, c->type, c->error_type,
		       strcmp(c->label, "memory_gone") == 0 ? TS_ERROR_HOST_MEMORY : 0x77);
	EXPECT_EQ(send_some(1, c->type, NULL, NULL), 0);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), c->code);
	if (c->text != NULL) {
		EXPECT_CONTAINS(npu_message(), "call: ");
		EXPECT_CONTAINS(npu_message(), c->text);
		if (strcmp(c->label, "memory_gone") != 0)
			EXPECT_CONTAINS(npu_message(), "119");
	}
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
}

TEST(stream, first_of_two_failures_is_reported)
{
	fake_fail_next(rig, STARS_SQE_SDMA, 1, 1);
	EXPECT_EQ(send_some(1, STARS_SQE_SDMA, NULL, NULL), 0);
	fake_fail_next(rig, STARS_SQE_WRITE_VALUE, 1, 2);
	EXPECT_EQ(send_some(1, STARS_SQE_WRITE_VALUE, NULL, NULL), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 507001);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
}

/* Of a driver that tells nothing itself. */
TEST(stream, failure_that_nobody_asks_for_is_told)
{
	for (int force = 0; force < 2; force++) {
		heard_begin();
		fake_fail_next(rig, STARS_SQE_SDMA, 1, 1);
		EXPECT_EQ(send_some(1, STARS_SQE_SDMA, NULL, NULL), 0);
		EXPECT_EQ(core_stream_destroy(handle, force), 0);
		EXPECT_EQ(heard_count("warn: a copy or fill on the device"), 1);
		heard_end();
		ASSERT_EQ(core_stream_create(3, 1, &handle), 0);
		stream = rig_find(handle, &(int){ 0 });
	}
}

TEST(stream, time_out_leaves_the_work)
{
	fake_hold(rig, true);
	EXPECT_EQ(send_some(2, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	EXPECT_EQ(core_stream_synchronize(stream, 20), 507046);
	EXPECT_CONTAINS(npu_message(), "2 tasks that are not done in time");
	fake_hold(rig, false);
	EXPECT_EQ(core_stream_synchronize(stream, 1000), 0);
}

static void *complain_then_let_go(void *arg)
{
	heard_await("is not done");
	fake_hold(arg, false);
	return NULL;
}

/* A driver that is no model says nothing of its tasks. */
TEST(stream, wait_in_which_nothing_moves_is_complained_about)
{
	pthread_t thread;

	setenv("NPUSIM_PATIENCE", "0.05", 1);
	heard_begin();
	fake_hold(rig, true);
	EXPECT_EQ(send_some(2, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, complain_then_let_go, rig), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	pthread_join(thread, NULL);
	EXPECT_CONTAINS(heard(), "call has waited for stream");
	heard_end();
	unsetenv("NPUSIM_PATIENCE");
}

static void *synchronize_it(void *arg)
{
	EXPECT_EQ(core_stream_synchronize(arg, -1), 0);
	return NULL;
}

TEST(stream, many_threads_synchronize_and_one_times_out)
{
	pthread_t thread[4];

	fake_hold(rig, true);
	EXPECT_EQ(send_some(2, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, synchronize_it, stream), 0);
	EXPECT_EQ(core_stream_synchronize(stream, 30), 507046);
	fake_hold(rig, false);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void *send_many(void *arg)
{
	struct stars_event_sqe sqe;

	for (int i = 0; i < 500; i++) {
		memset(&sqe, 0, sizeof(sqe));
		sqe.header.type = STARS_SQE_PLACE_HOLDER;
		EXPECT_EQ(core_stream_send(stream, &sqe, 1, count_up, arg), 0);
		if (i % 50 == 0)
			EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	}
	return NULL;
}

TEST(stream, many_threads_send)
{
	pthread_t thread[6];
	atomic_int kept = 0;

	for (int i = 0; i < 6; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, send_many, &kept), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 0);
	EXPECT_EQ(kept, 3000);
}

TEST(stream, device_waits_for_all_streams)
{
	void *other = NULL;
	atomic_int kept = 0;
	struct core_stream *first = stream;
	int code;

	ASSERT_EQ(core_stream_create(0, 0, &other), 0);
	fake_hold(rig, true);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	stream = rig_find(other, &code);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	stream = first;
	EXPECT_EQ(core_device_synchronize(0, NULL, 10), 507046);
	EXPECT_EQ(core_device_synchronize(1, NULL, 10), 0);
	fake_hold(rig, false);
	EXPECT_EQ(core_device_synchronize(0, NULL, -1), 0);
	EXPECT_EQ(kept, 2);
}

TEST(stream, context_waits_for_its_own)
{
	struct core_context *held = core_context_peek();
	atomic_int kept = 0;
	void *idle = NULL;

	fake_hold(rig, true);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	ASSERT_EQ(core_context_create(0, &idle), 0);
	EXPECT_EQ(core_device_synchronize(0, core_context_find(idle), 10), 0);
	EXPECT_EQ(core_device_synchronize(0, held, 10), 507046);
	EXPECT_EQ(core_device_synchronize(0, NULL, 10), 507046);
	EXPECT_EQ(kept, 0);
	fake_hold(rig, false);
	EXPECT_EQ(core_device_synchronize(0, held, -1), 0);
	EXPECT_EQ(kept, 1);
	EXPECT_EQ(core_context_destroy(idle), 0);
}

/* Who waits for a device does not hear of a context that has stopped, but of its own failures. */
TEST(stream, device_passes_over_contexts_that_have_stopped)
{
	struct core_context *stopped = core_context_peek();
	void *other = NULL, *made = NULL;
	int code;

	EXPECT_TRUE(core_stream_set_stop(stream, true));
	fake_fail_next(rig, STARS_SQE_PLACE_HOLDER, STARS_ERROR_EXCEPTION, 1);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	EXPECT_EQ(core_stream_synchronize(stream, -1), 507001);
	EXPECT_EQ(core_device_synchronize(0, stopped, -1), 507001);
	EXPECT_EQ(core_device_synchronize(0, NULL, -1), 0);
	ASSERT_EQ(core_context_create(0, &other), 0);
	EXPECT_EQ(core_device_synchronize(0, core_context_find(other), -1), 0);
	ASSERT_EQ(core_stream_create(0, 0, &made), 0);
	stream = rig_find(made, &code);
	fake_fail_next(rig, STARS_SQE_PLACE_HOLDER, STARS_ERROR_EXCEPTION, 1);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	EXPECT_EQ(core_device_synchronize(0, NULL, -1), 507001);
	EXPECT_EQ(core_device_synchronize(0, NULL, -1), 0);
	EXPECT_EQ(core_context_destroy(other), 0);
}

/* ---- the default stream, other contexts, stale handles ---- */

TEST(stream, null_is_the_default_stream)
{
	void *by_name = NULL;
	int code;

	EXPECT_EQ(core_stream_default(&by_name), 0);
	EXPECT_EQ(rig_find(NULL, &code), rig_find(by_name, &code));
	EXPECT_EQ(core_stream_destroy(by_name, false), 107000);
	EXPECT_CONTAINS(npu_message(), "is a default stream");
}

TEST(stream, of_another_context)
{
	int code;

	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_NULL(rig_find(handle, &code));
	EXPECT_EQ(code, 107003);
	EXPECT_CONTAINS(npu_message(), "belongs to another context (device 0)");
	EXPECT_EQ(rig_find_any(handle, &code), stream);
	EXPECT_EQ(core_stream_destroy(handle, false), 107003);
}

TEST(stream, without_a_context)
{
	int code;

	core_context_follow(-1);
	EXPECT_NULL(rig_find(handle, &code));
	EXPECT_EQ(code, 107002);
	EXPECT_CONTAINS(npu_message(), "call: no current context");
	EXPECT_EQ(core_stream_create(0, 0, &handle), 107002);
}

TEST(stream, destroyed_is_not_found)
{
	void *other = NULL;
	int code;

	EXPECT_EQ(core_stream_destroy(handle, false), 0);
	EXPECT_NULL(rig_find(handle, &code));
	EXPECT_EQ(code, 107000);
	EXPECT_EQ(core_stream_destroy(handle, false), 107000);
	EXPECT_EQ(core_stream_create(0, 0, &other), 0);
	EXPECT_NULL(rig_find(handle, &code));
	EXPECT_NULL(rig_find((void *)0x1234, &code));
	EXPECT_NULL(rig_find(core_context_handle(core_context_peek()), &code));
}

TEST(stream, destroy_waits_for_its_work)
{
	pthread_t thread;
	atomic_int kept = 0;

	fake_hold(rig, true);
	EXPECT_EQ(send_some(3, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, let_go_later, rig), 0);
	EXPECT_EQ(core_stream_destroy(handle, false), 0);
	EXPECT_EQ(kept, 1);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_PLACE_HOLDER), 3);
	pthread_join(thread, NULL);
}

TEST(stream, destroy_by_force_drops_its_work)
{
	atomic_int kept = 0;

	fake_hold(rig, true);
	EXPECT_EQ(send_some(3, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	EXPECT_EQ(core_stream_destroy(handle, true), 0);
	EXPECT_EQ(kept, 1);
	EXPECT_EQ(fake_executed(rig, STARS_SQE_PLACE_HOLDER), 0);
}

static void *destroy_by_force(void *arg)
{
	usleep(20000);
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_stream_destroy(arg, true), 0);
	EXPECT_EQ(core_device_reset(0, false), 0);
	return NULL;
}

TEST(stream, begins_with_no_failure_mode)
{
	int code;

	EXPECT_TRUE(core_stream_set_stop(stream, true));
	EXPECT_FALSE(core_stream_set_stop(stream, false));
	EXPECT_EQ(core_stream_destroy(handle, false), 0);
	ASSERT_EQ(core_stream_create(0, 0, &handle), 0);
	EXPECT_TRUE(core_stream_set_stop(rig_find(handle, &code), false));
}

TEST(stream, who_waits_leaves_when_it_is_destroyed)
{
	pthread_t thread;

	fake_hold(rig, true);
	EXPECT_EQ(send_some(1, STARS_SQE_PLACE_HOLDER, NULL, NULL), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, destroy_by_force, handle), 0);
	core_stream_synchronize(stream, -1);
	pthread_join(thread, NULL);
}

TEST(stream, reset_of_the_device_waits_and_ends_it)
{
	atomic_int kept = 0;
	int code;

	EXPECT_EQ(send_some(3, STARS_SQE_PLACE_HOLDER, count_up, &kept), 0);
	EXPECT_EQ(core_device_reset(0, false), 0);
	EXPECT_EQ(kept, 1);
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_NULL(rig_find(handle, &code));
	EXPECT_EQ(code, 107000);
	EXPECT_EQ(core_stream_live(0), 0);
}

TEST(stream, none_left_is_an_error)
{
	void *more = NULL;
	int code = 0;

	for (int i = 0; i < 300 && code == 0; i++)
		code = core_stream_create(0, 0, &more);
	EXPECT_EQ(code, 207005); /* the fake has 256 queues */
	EXPECT_EQ(core_stream_live(0), 256);
}
