/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads on one driver: calls that wait for each other, the idle thread, ends, fork().
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue-rig.h"
#include "queue/queue.h"

SETUP(queue_thread)
{
	rig_open();
}

TEARDOWN(queue_thread)
{
	rig_close();
}

static void nap(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Until so many calls sleep in the driver. */
static void await_waiters(unsigned count)
{
	struct bsim *bs = bsim_of(rig);
	bool all = false;

	while (!all) {
		bsim_lock(bs);
		all = bs->queues->waiters == count;
		bsim_unlock(bs);
		nap(1);
	}
}

/* ---- waiting for another thread's call ---- */

static void *record_later(void *arg)
{
	uint32_t *event = arg;

	nap(30);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, *event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	return NULL;
}

TEST(queue_thread, a_report_that_another_thread_brings_about)
{
	uint32_t event = rig_id(0, DRV_EVENT_ID), count = 0;
	struct stars_logic_cqe cqe;
	struct rig_stream stream;
	pthread_t other;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, event, 0, REPORT);
	ASSERT_EQ(pthread_create(&other, NULL, record_later, &event), 0);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 20000, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 1u);
	pthread_join(other, NULL);
}

struct copy_later {
	struct rig_stream *stream;
	uint64_t dst, src;
};

static void *copy_later(void *arg)
{
	const struct copy_later *later = arg;

	nap(30);
	rig_sdma(later->stream, later->dst, later->src, 16 * MIB, REPORT);
	return NULL;
}

/* The waiter has to drive the model itself: the other only sends. */
TEST(queue_thread, work_that_another_thread_sends)
{
	struct copy_later later = { .dst = rig_alloc(0, 16 * MIB), .src = rig_alloc(0, 16 * MIB) };
	struct rig_stream stream;
	pthread_t other;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	later.stream = &stream;
	ASSERT_EQ(pthread_create(&other, NULL, copy_later, &later), 0);
	EXPECT_EQ(rig_next(&stream).sqe_type, STARS_SQE_SDMA);
	pthread_join(other, NULL);
}

static void *send_to_full(void *arg)
{
	struct stars_event_sqe wait = { .header.type = STARS_SQE_PLACE_HOLDER };

	EXPECT_EQ(rig_send(arg, &wait, QUIET, -1), DRV_ERROR_NONE);
	return NULL;
}

TEST(queue_thread, room_that_another_thread_makes)
{
	struct rig_stream stream;
	uint32_t event;
	pthread_t other;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	event = rig_id(0, DRV_EVENT_ID);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	rig_nop(&stream, QUIET);
	rig_nop(&stream, QUIET);
	ASSERT_EQ(pthread_create(&other, NULL, send_to_full, &stream), 0);
	nap(20);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	pthread_join(other, NULL);
	rig_finish(&stream);
}

struct receiver {
	struct rig_stream *stream;
	drvError_t code;
	int timeout_ms;
};

static void *receive(void *arg)
{
	struct receiver *r = arg;
	struct stars_logic_cqe cqe;
	uint32_t count;

	r->code = rig_recv(r->stream, &cqe, 1, r->timeout_ms, &count);
	return NULL;
}

TEST(queue_thread, freed_while_a_call_waits)
{
	struct rig_stream stream;
	struct receiver r = { .stream = &stream, .timeout_ms = -1 };
	pthread_t other;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	ASSERT_EQ(pthread_create(&other, NULL, receive, &r), 0);
	nap(20);
	rig_stream_close(&stream);
	pthread_join(other, NULL);
	EXPECT_EQ(r.code, DRV_ERROR_INVALID_VALUE);
}

static void *wait_for_callback(void *arg)
{
	uint64_t bits[QUEUE_CALLBACKS / 64];
	struct halReportInfoInput in = { .type = DRV_CALLBACK_TYPE, .timeout = -1 };
	struct halReportInfoOutput out = { .cqIdBitmap = bits,
					   .cqIdBitmapSize = QUEUE_CALLBACKS / 64 };

	*(drvError_t *)arg = npu_call(rig, halCqReportIrqWait, 0, &in, &out);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "device 0 was closed by another thread");
	return NULL;
}

static const struct closed_case {
	const char *title;
	bool opened_again;
} closed_cases[] = { { "closed", false }, { "closed and opened again", true } };

TEST_EACH(queue_thread, device_closed_while_a_call_waits_for_callbacks, closed_cases, title)
{
	const struct closed_case *c = param;
	halDevCloseIn close_in = { { 0 } };
	halDevOpenIn open_in = { { 0 } };
	halDevOpenOut opened;
	struct bsim *bs = bsim_of(rig);
	drvError_t code = DRV_ERROR_NONE;
	pthread_t other;

	ASSERT_EQ(pthread_create(&other, NULL, wait_for_callback, &code), 0);
	await_waiters(1);
	bsim_lock(bs); /* which the waiting call needs to see anything */
	queue_device_close_locked(bs, 0);
	bs->device[0].open = c->opened_again;
	bsim_unlock(bs);
	pthread_join(other, NULL);
	EXPECT_EQ(code, DRV_ERROR_INVALID_HANDLE);
	bs->device[0].open = true;
	EXPECT_EQ(npu_call(rig, halDeviceClose, 0, &close_in), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halDeviceOpen, 0, &open_in, &opened), DRV_ERROR_NONE);
}

TEST(queue_thread, closed_while_calls_wait)
{
	struct rig_stream stream;
	struct receiver r[3] = { { &stream, 0, -1 }, { &stream, 0, -1 }, { &stream, 0, 60000 } };
	pthread_t other[3];

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(pthread_create(&other[i], NULL, receive, &r[i]), 0);
	await_waiters(3);
	rig_end();
	for (int i = 0; i < 3; i++) {
		pthread_join(other[i], NULL);
		EXPECT_EQ(r[i].code, DRV_ERROR_PROCESS_EXIT);
	}
}

/* A time-out of simulated time ends although nothing else happens, in about as much wall time. */
TEST(queue_thread, time_outs_end_in_wall_time)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	uint64_t begin;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	begin = wall_ms();
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 50, &count), DRV_ERROR_WAIT_TIMEOUT);
	EXPECT_GE(wall_ms() - begin, 49u);
}

/* As if the blocked tasks had waited for their time-outs in wall time. */
static void let_wall_time_pass(struct bsim *bs)
{
	struct queue_sq *sq;

	bsim_lock(bs);
	TAILQ_FOREACH(sq, &bs->queues->blocked, blocked_link)
	if (sq->deadline_ps != SIM_NEVER)
		sq->deadline_wall_ns = 1;
	bsim_unlock(bs);
}

/* Whoever is the first to see it, a wait that times out has taken its time. */
TEST(queue_thread, a_time_out_takes_its_simulated_time)
{
	struct rig_stream first, second;
	uint64_t begin;

	ASSERT_NO_FATAL(rig_stream_open(&first, 0, 4, 8));
	ASSERT_NO_FATAL(rig_stream_open(&second, 0, 4, 8));
	begin = rig_now();
	rig_event(&second, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 3, REPORT);
	rig_event(&first, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 2, REPORT);
	let_wall_time_pass(bsim_of(rig));
	EXPECT_EQ(rig_next(&first).error_type, STARS_ERROR_TIMEOUT);
	EXPECT_GE(rig_now() - begin, 2 * SIM_PS_PER_MS * 1000);
	EXPECT_EQ(rig_next(&second).error_type, STARS_ERROR_TIMEOUT);
	EXPECT_GE(rig_now() - begin, 3 * SIM_PS_PER_MS * 1000);
	EXPECT_LT(rig_now() - begin, 4 * SIM_PS_PER_MS * 1000);
}

/* A model that works slowly is no reason for a time-out. */
TEST(queue_thread, wall_time_of_a_busy_model_is_no_time_out)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct bsim *bs = bsim_of(rig);
	struct rig_stream works, waits;
	struct stars_logic_cqe cqe;
	uint32_t event, count;

	ASSERT_NO_FATAL(rig_stream_open(&works, 0, 4, 8));
	ASSERT_NO_FATAL(rig_stream_open(&waits, 0, 4, 8));
	event = rig_id(0, DRV_EVENT_ID);
	bsim_lock(bs);
	bs->queues->idle_ns = UINT64_C(3600000000000); /* nobody else lets the model run */
	bsim_unlock(bs);
	rig_sdma(&works, b, a, 64 * MIB, REPORT);
	rig_event(&waits, STARS_SQE_EVENT_WAIT, 0, event, 60, REPORT);
	let_wall_time_pass(bs);
	EXPECT_EQ(rig_recv(&waits, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(rig_next(&works).error_type, 0);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&waits).error_type, 0);
	rig_end(); /* with the thread that sleeps so long */
}

/* ---- the idle thread ---- */

TEST(queue_thread, a_flag_that_is_only_polled)
{
	volatile uint64_t *flag = rig_pinned(4096);
	uint64_t a = rig_alloc(0, 16 * MIB), b = rig_alloc(0, 16 * MIB), begin;
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	*flag = 0;
	rig_sdma(&stream, b, a, 16 * MIB, QUIET);
	rig_write(&stream, (uint64_t)flag, 1, 3, QUIET);
	begin = wall_ms();
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0 && wall_ms() - begin < 20000)
		;
	EXPECT_EQ(*flag, 1u);
}

/* Both sides by memory alone: the device waits for a value that the CPU writes, the CPU for one
 * that the device writes. */
TEST(queue_thread, values_go_to_and_fro_without_a_call)
{
	volatile uint64_t *flag = rig_pinned(4096);
	struct rig_stream stream;
	uint64_t begin = wall_ms();

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	flag[0] = flag[1] = 0;
	for (uint64_t i = 1; i <= 3; i++) {
		rig_wait_value(&stream, (uint64_t)&flag[0], 1, i, QUIET);
		rig_write(&stream, (uint64_t)&flag[1], i, 3, QUIET);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		__atomic_store_n(&flag[0], i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE) < i && wall_ms() - begin < 20000)
			;
	}
	EXPECT_EQ(flag[1], 3u);
}

/* Stopped for longer than it must be idle, as where its machine stands still. */
TEST(queue_thread, a_program_that_stood_still_has_time_for_a_call)
{
	uint64_t a = rig_alloc(0, 16 * MIB), b = rig_alloc(0, 16 * MIB);
	struct bsim *bs = bsim_of(rig);
	struct rig_stream stream;
	pid_t pid, stopped = getpid();

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	bsim_lock(bs);
	bs->queues->idle_ns = UINT64_C(400000000);
	bsim_unlock(bs);
	rig_sdma(&stream, b, a, 16 * MIB, QUIET);
	pid = fork();
	if (pid == 0) {
		nap(500);
		kill(stopped, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 0u);
	rig_finish(&stream);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	rig_end();
}

static unsigned long voluntary_switches(void)
{
	char line[256];
	unsigned long all = 0, value;
	FILE *pipe = popen("cat /proc/$PPID/task/*/status | grep '^voluntary_ctxt'", "r");

	while (pipe != NULL && fgets(line, sizeof(line), pipe) != NULL)
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &value) == 1)
			all += value;
	if (pipe != NULL)
		pclose(pipe);
	return all;
}

TEST(queue_thread, nothing_runs_when_there_is_nothing_to_do)
{
	uint64_t a = rig_alloc(0, 2 * MIB), b = rig_alloc(0, 2 * MIB);
	struct rig_stream stream;
	unsigned long before;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_sdma(&stream, b, a, 2 * MIB, QUIET);
	rig_finish(&stream);
	nap(20);
	before = voluntary_switches();
	nap(200);
	EXPECT_LT(voluntary_switches() - before, 50u);
}

/* ---- ends of processes ---- */

static void exit_with_work(void *arg)
{
	struct rig_stream stream;
	uint64_t a, b;

	(void)arg;
	rig_open();
	a = rig_alloc(0, 64 * MIB);
	b = rig_alloc(0, 64 * MIB);
	rig_stream_open(&stream, 0, 64, 64);
	for (int i = 0; i < 20; i++)
		rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	exit(3);
}

TEST(queue_thread, exit_with_work_under_way)
{
	rig_close();
	rig_end();
	EXPECT_EXIT(3, exit_with_work, NULL);
	EXPECT_STREQ(harness_last_stderr(), "");
	rig_open();
}

TEST(queue_thread, a_forked_child_ends_by_itself)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct rig_stream stream;
	int status = -1;
	pid_t pid;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_sdma(&stream, b, a, 64 * MIB, QUIET);
	pid = fork();
	if (pid == 0) {
		struct stars_event_sqe sqe = { .header.type = STARS_SQE_PLACE_HOLDER };
		drvError_t code = rig_send(&stream, &sqe, QUIET, 0);

		rig->close(rig);
		rig = NULL;
		_exit(code == DRV_ERROR_PROCESS_EXIT ? 0 : 1);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	rig_finish(&stream);
}

/* ---- many at once ---- */

#define THREADS 4
#define ROUNDS  40

struct player {
	unsigned number;
	uint32_t turn[THREADS]; /* events */
	uint64_t box;           /* memory that each in turn adds to */
	pthread_t thread;
};

/* Each thread owns a stream, and hands on to the next by events: a ring of waits, copies and
 * records. */
static void *play(void *arg)
{
	const struct player *p = arg;
	uint64_t value[512], scratch = rig_alloc(0, 2 * MIB);
	struct rig_stream stream;

	rig_stream_open(&stream, 0, 16, 64);
	for (unsigned round = 0; round < ROUNDS && !harness_has_failed(); round++) {
		uint32_t next = p->turn[(p->number + 1) % THREADS];
		struct stars_write_value_sqe reset = { .header.type = STARS_SQE_WRITE_VALUE,
						       .res7 = p->turn[p->number],
						       .sub_type = 1 };

		rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, p->turn[p->number], 0, QUIET);
		EXPECT_EQ(rig_send(&stream, &reset, QUIET, -1), DRV_ERROR_NONE);
		rig_sdma(&stream, scratch, p->box, 4096, QUIET);
		rig_finish(&stream);
		EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)value, 4096, scratch, 4096),
			  DRV_ERROR_NONE);
		EXPECT_EQ(value[0], (uint64_t)round * THREADS + p->number);
		value[0]++;
		EXPECT_EQ(npu_call(rig, drvMemcpy, scratch, 4096, (DVdeviceptr)value, 4096),
			  DRV_ERROR_NONE);
		rig_sdma(&stream, p->box, scratch, 4096, QUIET);
		rig_event(&stream, STARS_SQE_EVENT_RECORD, 0, next, 0, QUIET);
		rig_finish(&stream);
	}
	rig_stream_close(&stream);
	return NULL;
}

TEST(queue_thread, a_ring_of_threads)
{
	struct player players[THREADS];
	uint64_t box = rig_alloc(0, 2 * MIB), value = 0;
	uint32_t turn[THREADS];

	ASSERT_EQ(npu_call(rig, drvMemsetD8, box, 4096, 0, 4096), DRV_ERROR_NONE);
	for (unsigned i = 0; i < THREADS; i++)
		turn[i] = rig_id(0, DRV_EVENT_ID);
	for (unsigned i = 0; i < THREADS; i++) {
		players[i] = (struct player){ .number = i, .box = box };
		memcpy(players[i].turn, turn, sizeof(turn));
		ASSERT_EQ(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
	}
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, turn[0], DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(players[i].thread, NULL);
	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)&value, 8, box, 8), DRV_ERROR_NONE);
	EXPECT_EQ(value, (uint64_t)THREADS * ROUNDS);
}
