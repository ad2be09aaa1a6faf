/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs host functions in the order of a stream. In the queue such a call is a placeholder, whose
 * completion signals that its turn has come, and, if the stream is to wait for its return, a wait
 * for an event that the host then records. A stream with such calls has its own thread, which
 * receives the completions when no other thread waits, and runs the functions of
 * aclrtLaunchHostFunc; those of aclrtLaunchCallback are passed to the subscribed thread.
 */
#include "core/end.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct callback {
	STAILQ_ENTRY(callback) link;
	atomic_uint users; /* its turn, and the entry that waits for its return */
	struct core_stream *stream;
	void (*fn)(void *);
	void *arg;
	bool blocks;       /* the stream waits, for an event that the host records */
	uint32_t event_id; /* that */
	atomic_bool runs;
	struct subscriber *subscriber; /* NULL: the stream's own thread */
	uint32_t device, sq;           /* the stream's, which may be gone when it runs */
	uint64_t number;               /* of the placeholder, once its turn has come */
};

struct subscriber {
	LIST_ENTRY(subscriber) link;
	uint64_t thread;
	unsigned users; /* streams subscribed, and callbacks launched and not taken; 0: it is one
			   no more, and stays for a thread of that number */
	struct core_callbacks ready;
	pthread_cond_t arrived;
};

/* Of all subscribers. */
static pthread_mutex_t subscribers_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, subscriber) subscribers;

/* ---- a callback's turn ---- */

static void unuse(struct callback *callback)
{
	if (atomic_fetch_sub(&callback->users, 1) > 1)
		return;
	if (callback->blocks)
		core_event_id_give(callback->device, callback->event_id);
	free(callback);
}

/* Under no lock. The calls that the function makes are the program's, not ours. */
static void run(struct callback *callback)
{
	CORE_CALLED("");

	atomic_store(&callback->runs, true);
	core_order(callback->device, NPU_ORDER_STREAM, callback->sq, callback->number);
	callback->fn(callback->arg);
	if (callback->blocks)
		core_event_id_record(callback->device, callback->event_id);
	unuse(callback);
}

/* One user more, or one less, of the subscriber; NULL: there is none. */
static void count_users(struct subscriber *subscriber, int change)
{
	if (subscriber == NULL)
		return;
	LOCKED(&subscribers_lock);
	subscriber->users += (unsigned)change;
}

static void forget_callback(struct callback *callback)
{
	count_users(callback->subscriber, -1);
	unuse(callback);
}

/* The placeholder is complete; the stream's lock is held. */
static void turn_came(void *arg, const struct stars_logic_cqe *cqe)
{
	struct callback *callback = arg;
	struct core_stream *stream = callback->stream;

	stream->attention--;
	if (cqe == NULL) {
		forget_callback(callback);
		return;
	}
	callback->number =
		stream->done + 1 + ((cqe->task_id - (stream->done + 1)) & (CORE_TASK_IDS - 1));
	if (callback->subscriber != NULL) {
		LOCKED(&subscribers_lock);
		STAILQ_INSERT_TAIL(&callback->subscriber->ready, callback, link);
		pthread_cond_broadcast(&callback->subscriber->arrived);
		return;
	}
	STAILQ_INSERT_TAIL(&stream->ready, callback, link);
	pthread_cond_broadcast(&stream->progress);
}

/* The wait behind a callback is over. */
static void return_seen(void *arg, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	unuse(arg);
}

static void describe_turn(void *arg, struct core_stall *out)
{
	struct callback *callback = arg;

	snprintf(out->text, sizeof(out->text), "waits for the host function %p, which %s",
		 (void *)(uintptr_t)callback->fn,
		 atomic_load(&callback->runs) ? "runs: its return ends the wait"
		 : callback->subscriber != NULL
			 ? "no thread has taken: aclrtProcessReport in the thread that "
			   "subscribes runs it"
			 : "is the next that the stream's thread runs");
}

/* ---- the stream's own thread ---- */

static __thread const struct core_stream *pump_of;

bool core_is_pump_of(const struct core_stream *stream)
{
	return pump_of == stream;
}

/* The first of those that are ready, taken out; NULL: there is none. */
static struct callback *take_ready(struct core_callbacks *ready)
{
	struct callback *callback = STAILQ_FIRST(ready);

	if (callback != NULL)
		STAILQ_REMOVE_HEAD(ready, link);
	return callback;
}

static void *pump(void *arg)
{
	struct core_stream *stream = arg;
	struct core_wait wait;

	pump_of = stream;
	core_called = "npusim";
	pthread_mutex_lock(&stream->lock);
	wait = core_wait_begin(stream, UINT64_MAX);
	wait.quiet = true;
	while (!stream->pump_stop) {
		struct callback *callback = take_ready(&stream->ready);

		if (callback != NULL) {
			pthread_mutex_unlock(&stream->lock);
			run(callback);
			pthread_mutex_lock(&stream->lock);
		} else if (stream->attention == 0 || !stream->alive ||
			   core_stream_progress_locked(stream, &wait) != CORE_OK) {
			pthread_cond_wait(&stream->progress, &stream->lock);
		}
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

int core_attention_send_locked(struct core_stream *stream, void *entries, unsigned count,
			       const struct core_done *done)
{
	int code = stream->pump_started ? 0 : pthread_create(&stream->pump, NULL, pump, stream);

	if (code != 0)
		return core_no_memory("no thread for stream %d's callbacks: %s", stream->id,
				      strerror(code));
	stream->pump_started = true;
	stream->attention++;
	pthread_cond_broadcast(&stream->progress);
	code = core_stream_send_locked(stream, entries, count, done);
	if (code != CORE_OK)
		stream->attention--;
	return code;
}

void core_callback_end(struct core_stream *stream)
{
	struct callback *callback;

	pthread_mutex_lock(&stream->lock);
	stream->pump_stop = true;
	pthread_cond_broadcast(&stream->progress);
	pthread_mutex_unlock(&stream->lock);
	if (stream->pump_started)
		pthread_join(stream->pump, NULL);
	while ((callback = take_ready(&stream->ready)) != NULL)
		forget_callback(callback);
	count_users(stream->subscriber, -1);
	stream->subscriber = NULL;
}

/* ---- launched ---- */

/* The entries of a callback, and who hears of them. */
static int send_locked(struct callback *callback)
{
	struct core_stream *stream = callback->stream;
	struct stars_event_sqe sqe[2] = {
		{ .header.type = STARS_SQE_PLACE_HOLDER },
		{ .header.type = STARS_SQE_EVENT_WAIT, .event_id = (uint16_t)callback->event_id },
	};
	struct core_done done[2] = {
		{ .fn = turn_came, .arg = callback },
		{ .fn = return_seen, .arg = callback, .describe = describe_turn },
	};

	return core_attention_send_locked(stream, sqe, callback->blocks ? 2 : 1, done);
}

static int launch_locked(struct core_stream *stream, void (*fn)(void *), void *arg, bool block)
{
	struct callback *callback = calloc(1, sizeof(*callback));
	int code = CORE_OK;

	if (callback == NULL)
		return core_no_memory("no memory for a callback");
	callback->stream = stream;
	callback->fn = fn;
	callback->arg = arg;
	callback->subscriber = stream->subscriber;
	callback->device = stream->device;
	callback->sq = stream->sq;
	count_users(callback->subscriber, 1);
	if (block)
		code = core_event_id_take(stream->device, &callback->event_id);
	callback->blocks = block && code == CORE_OK;
	atomic_store(&callback->users, callback->blocks ? 2 : 1);
	code = code ?: send_locked(callback);
	if (code != CORE_OK) {
		atomic_store(&callback->users, 1);
		forget_callback(callback);
	}
	return code;
}

/* ---- threads that subscribe ---- */

static struct subscriber *find_locked(uint64_t thread)
{
	struct subscriber *subscriber;

	LIST_FOREACH(subscriber, &subscribers, link)
	if (subscriber->thread == thread)
		break;
	return subscriber;
}

/* The thread subscribes to one stream more; NULL: no memory. */
static struct subscriber *join(uint64_t thread)
{
	LOCKED(&subscribers_lock);
	struct subscriber *subscriber = find_locked(thread);

	if (subscriber == NULL && (subscriber = calloc(1, sizeof(*subscriber))) != NULL) {
		subscriber->thread = thread;
		STAILQ_INIT(&subscriber->ready);
		clock_cond_init(&subscriber->arrived);
		LIST_INSERT_HEAD(&subscribers, subscriber, link);
	}
	if (subscriber != NULL)
		subscriber->users++;
	return subscriber;
}

/* The next callback of the subscriber, or NULL at the end of the time. The lock is held. */
static struct callback *await_locked(struct subscriber *subscriber, int32_t timeout_ms)
{
	UNCANCELLED;
	struct callback *callback;
	struct timespec until = clock_after_ms(timeout_ms < 0 ? 0 : (uint32_t)timeout_ms);
	int code = 0;

	while (STAILQ_EMPTY(&subscriber->ready) && code != ETIMEDOUT)
		code = timeout_ms < 0 ? pthread_cond_wait(&subscriber->arrived, &subscribers_lock)
				      : pthread_cond_timedwait(&subscriber->arrived,
							       &subscribers_lock, &until);
	callback = take_ready(&subscriber->ready);
	if (callback != NULL)
		subscriber->users--;
	return callback;
}

int core_callback_launch(void (*fn)(void *arg), void *arg, bool block, void *handle)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->host_funcs)
		return core_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
				 "stream %d has used aclrtLaunchHostFunc: a stream takes one kind "
				 "of callback or the other",
				 stream->id);
	if (stream->subscriber == NULL)
		return core_fail(
			ACL_ERROR_RT_STREAM_NO_CB_REG,
			"no thread subscribes to stream %d; call aclrtSubscribeReport first",
			stream->id);
	return launch_locked(stream, fn, arg, block);
}

int core_callback_launch_host(void (*fn)(void *arg), void *arg, void *handle)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber != NULL)
		return core_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
				 "a thread subscribes to stream %d (aclrtSubscribeReport): a "
				 "stream takes one kind of callback or the other",
				 stream->id);
	stream->host_funcs = true; /* at once: the lock is released while there is no room */
	return launch_locked(stream, fn, arg, true);
}

int core_callback_subscribe(uint64_t thread, void *handle)
{
	struct core_stream *stream;
	int code = core_stream_find_any(handle, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber != NULL || stream->host_funcs)
		return core_fail(
			ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream %d %s", stream->id,
			stream->host_funcs
				? "has used aclrtLaunchHostFunc: a stream takes one kind of "
				  "callback or the other"
				: "has a subscriber already; call aclrtUnSubscribeReport first");
	stream->subscriber = join(thread);
	return stream->subscriber != NULL ? CORE_OK
					  : core_no_memory("no memory for a subscription");
}

int core_callback_unsubscribe(uint64_t thread, void *handle)
{
	struct core_stream *stream;
	int code = core_stream_find_any(handle, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber == NULL)
		return core_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "no thread subscribes to stream %d",
				 stream->id);
	if (stream->subscriber->thread != thread)
		return core_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
				 "threadId=%llu does not subscribe to stream %d: thread %llu does",
				 (unsigned long long)thread, stream->id,
				 (unsigned long long)stream->subscriber->thread);
	count_users(stream->subscriber, -1);
	stream->subscriber = NULL;
	return CORE_OK;
}

int core_callback_process(int32_t timeout_ms)
{
	struct subscriber *subscriber;
	struct callback *callback = NULL;

	pthread_mutex_lock(&subscribers_lock);
	subscriber = find_locked((uint64_t)pthread_self());
	if (subscriber != NULL && subscriber->users == 0)
		subscriber = NULL;
	if (subscriber != NULL)
		callback = await_locked(subscriber, timeout_ms);
	pthread_mutex_unlock(&subscribers_lock);
	if (subscriber == NULL)
		return core_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
				 "the calling thread subscribes to no stream; call "
				 "aclrtSubscribeReport with pthread_self() first");
	if (callback == NULL)
		return core_fail(ACL_ERROR_RT_REPORT_TIMEOUT, "no callback came within %d ms",
				 timeout_ms);
	run(callback);
	return CORE_OK;
}
