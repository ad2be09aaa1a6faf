/* SPDX-License-Identifier: Apache-2.0
 *
 * The idle thread, which serves a program that has sent work and then polls memory without making
 * calls. Once no driver call has been made for a millisecond and the model has work, the thread
 * runs it to completion. It waits in parts, so that a program that stood still, with its machine or
 * by a signal, has time for a call. Without work it sleeps. It is started when the first work is
 * sent, blocks all signals, and does not exist in a forked child.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/queue.h"

#define IDLE_SLOWEST \
	32u /* polls of memory that change nothing come this much more rarely in the end */

#define IDLE_PARTS 4u

static bool has_work(const struct bsim *bs)
{
	return sim_busy(bs->sim) || bs->queues->polled != 0 || bs->queues->deadlines != 0;
}

static void *idle_main(void *arg)
{
	struct bsim *bs = arg;
	struct queue_set *set = bs->queues;
	struct timespec until;
	unsigned slowness = 1;

	bsim_lock(bs);
	while (!set->idle_stop) {
		uint64_t calls = bs->calls, now;

		if (!has_work(bs)) {
			slowness = 1;
			set->idle_parked = true;
			bsim_wait_locked(bs, &set->work, NULL);
			set->idle_parked = false;
			continue;
		}
		for (unsigned part = 0; part < IDLE_PARTS && bs->calls == calls; part++) {
			until = clock_at_ns(clock_now_ns() + slowness * set->idle_ns / IDLE_PARTS);
			while (!set->idle_stop &&
			       bsim_wait_locked(bs, &set->work, &until) != ETIMEDOUT)
				continue;
		}
		if (set->idle_stop)
			break;
		if (set->away != 0 || bs->calls != calls) {
			slowness = 1;
			continue;
		}
		now = sim_host_ps(bs->sim);
		sim_drain(bs->sim);
		queue_catch_up_locked(bs);
		slowness = sim_host_ps(bs->sim) != now ? 1 : MIN(slowness * 2, IDLE_SLOWEST);
	}
	bsim_unlock(bs);
	return NULL;
}

/* The bsim whose thread runs, for the end of the process: the thread must be gone before the
 * model's libraries are. */
static struct bsim *running;

static void end_at_exit(void)
{
	if (running != NULL)
		queue_idle_end(running);
}

static bool start(struct bsim *bs)
{
	static bool registered;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	bs->queues->idle_thread = g_thread_try_new("npusim-idle", idle_main, bs, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (bs->queues->idle_thread == NULL)
		return false;
	running = bs;
	if (!registered)
		registered = atexit(end_at_exit) == 0;
	return true;
}

void queue_idle_wake_locked(struct bsim *bs)
{
	struct queue_set *set = bs->queues;

	if (set->idle_stop || set->idle_failed || !has_work(bs))
		return;
	if (set->idle_thread != NULL) {
		if (set->idle_parked)
			pthread_cond_broadcast(&set->work);
		return;
	}
	set->idle_failed = !start(bs);
	if (set->idle_failed)
		npu_log(NPU_LOG_WARN, "no thread can be started: a program that polls memory "
				      "without calling anything will wait for ever");
}

/* A thread that holds the lock may never come back when the process is ending. */
#define END_WAIT_MS 2000

void queue_idle_end(struct bsim *bs)
{
	struct queue_set *set = bs->queues;
	bool started;

	if (set == NULL || set->pid != getpid() || !clock_lock_ms(&bs->lock.mutex, END_WAIT_MS))
		return;
	started = set->idle_thread != NULL && !set->idle_stop;
	set->idle_stop = true;
	running = NULL;
	pthread_cond_broadcast(&set->work);
	bsim_unlock(bs);
	if (started)
		g_thread_join(set->idle_thread);
}
