/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream as an object: its parts, the list of live streams, its queues in the driver, its host
 * functions, and its waiters.
 */
#ifndef NPUSIM_CORE_STREAM_H
#define NPUSIM_CORE_STREAM_H

#include "core/object/context.h"

struct stars_logic_cqe;
/* Called when an entry is complete, under the stream's lock. cqe is NULL for work that was dropped
 * with its stream. It may call the driver, and nothing else of runtime/core but what says that it
 * may be called from here. */
typedef void (*core_done_fn)(void *arg, const struct stars_logic_cqe *cqe);
/* What an entry that does not get done waits for, for people. */
struct core_stall {
	char text[256];
	void *next; /* handle of the stream whose work would end the wait; NULL: none is known */
};
struct core_done {
	core_done_fn fn; /* NULL: nobody asks */
	void *arg;
	/* Under the stream's lock, until fn is called; NULL: nothing is known here. */
	void (*describe)(void *arg, struct core_stall *out);
};

/* Task ids have 16 bits; all ones stands for "any". */
#define CORE_TASK_IDS 0x8000u

struct stream_pending {
	uint64_t seq;
	struct core_done done;
};
struct callback;
struct subscriber;

struct core_stream {
	struct core_slot slot;
	pthread_mutex_t lock;
	pthread_cond_t
		progress; /* completions, the receiver left, a callback is ready, the stream dies */
	struct context *context;
	LIST_ENTRY(core_stream) link; /* of the device; core_lists_lock */
	bool alive;                   /* takes work; of the queue, not of the handle */
	uint64_t life;                /* counts the streams that this slot has been */
	bool is_default;
	uint32_t device, sq, cq, logic_cq;
	int32_t id;
	uint32_t priority, flags;
	bool stopped;                   /* lock: by aclrtStreamStop, until it is aborted */
	bool aborting;                  /* lock: takes no work meanwhile */
	unsigned aborts;                /* so far; lock */
	bool stop_on_failure;           /* lock; kept and no more: no task fails by itself here */
	uint64_t sent, done;            /* entries since its birth */
	struct stream_pending *pending; /* ring, in order of seq */
	unsigned pending_first, pending_count, pending_room;
	bool receiving; /* one thread waits in the driver for completions */
	unsigned reap_due;
	int failure;      /* the first since the last report: its aclError, and why */
	char *cause_text; /* free(); NULL: no memory for it */
	/* callback.c */
	struct subscriber *subscriber;
	bool host_funcs; /* has used core_callback_launch_host(): never mixed with a subscriber */
	unsigned attention;     /* entries whose completion the stream's own thread must see */
	struct callback *ready; /* host functions whose turn has come, in order */
	struct callback **ready_last;
	bool pump_started, pump_stop;
	pthread_t pump;
};
extern struct core_pool core_streams;

/* A call that waits for a stream, as long as core_wait_holds(). */
struct core_wait {
	const char *call;     /* NULL: of nobody, and nobody is told where it does not end */
	uint64_t deadline_ns; /* of core_now_ns(); UINT64_MAX: none */
	uint64_t life;        /* the stream's */
	unsigned aborts;      /* of it, before */
	/* stall.c: since when, in wall time, nothing of the stream has moved; 0: not looked at */
	uint64_t since_ns, patience_ns, seen;
};
static inline struct core_wait core_wait_begin(const struct core_stream *stream,
					       uint64_t deadline_ns, const char *call)
{
	return (struct core_wait){ .call = call,
				   .deadline_ns = deadline_ns,
				   .life = stream->life,
				   .aborts = stream->aborts };
}
/* The stream has been aborted since. */
static inline bool core_wait_is_aborted(const struct core_stream *stream,
					const struct core_wait *wait)
{
	return stream->alive && stream->life == wait->life && stream->aborts != wait->aborts;
}
/* False once the stream has been aborted or has ended, though another may live in its place. */
static inline bool core_wait_holds(const struct core_stream *stream, const struct core_wait *wait)
{
	return stream->alive && stream->life == wait->life && stream->aborts == wait->aborts;
}
/* 107023, the message set: for who waited for a stream that was aborted. */
int core_stream_aborted(const struct core_stream *stream, const char *call);

/* Puts a stream among those of its device; from now on it is found, by the handle that is answered.
 * NULL: its context, by that handle, has ended, and nobody would end the stream. */
void *core_stream_link(struct core_stream *stream, const void *context);
void core_stream_unlink(struct core_stream *stream);
/* Hides a stream of the context, for the caller to end; waits while there are only streams that
 * others are ending. NULL: none is left. */
struct core_stream *core_stream_take_of(struct context *context);
/* Handles of the streams of a device; free(). */
void **core_stream_list(uint32_t device, unsigned *out_count);

/* ---- a stream's queues in the driver: entries out, completions in (queue.c) ---- */

/* Sends entries that belong together, so that nothing comes between them. `done` has one for each
 * entry, or is NULL. */
int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done, const char *call);
/* The same with the stream's lock held (it is released while there is no room). */
int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done, const char *call);
/* Waits until something completes or changes: 0, CORE_STREAM_SYNC_TIMEOUT when the deadline has
 * passed, or the code of a driver that does not answer. */
int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait);
/* Takes what is complete, without waiting; the lock is held, or taken. */
void core_stream_reap_locked(struct core_stream *stream);
void core_stream_reap(struct core_stream *stream);
void core_stream_reap_device(uint32_t device);
/* Makes the stream's queue, or takes it down. */
int core_stream_open_queue(struct core_stream *stream, const char *call);
/* Puts an empty queue in the place of one that is stopped. Lock held; released until nobody waits
 * in the driver for the old one. */
int core_stream_renew_queue_locked(struct core_stream *stream, const char *call);
/* Waits, not long, until nobody waits in the driver for a queue that is gone. False: one does. */
bool core_stream_wait_leave_locked(struct core_stream *stream);
/* Until nobody aborts the stream: its queue may be another one then. */
void core_stream_wait_abort_locked(struct core_stream *stream);
void core_stream_close_queue(struct core_stream *stream);

/* ---- host functions: whose turn comes when, the stream's own thread, and the threads that
 * subscribe (callback.c) ---- */

/* Queues a call of fn(arg) on the stream, whose lock is held (it is released while there is no
 * room): by the stream's subscriber, else by its own thread. `block`: the stream waits for its
 * return. aclError. */
int core_callback_launch_locked(struct core_stream *stream, void (*fn)(void *), void *arg,
				bool block, const char *call);

/* The thread subscribes to one stream more; NULL: no memory. */
struct subscriber *core_subscriber_join(uint64_t thread);
/* To one less. */
void core_subscriber_leave(struct subscriber *subscriber);
uint64_t core_subscriber_thread(const struct subscriber *subscriber);
/* Runs the next callback of the calling thread, waiting for it timeout_ms of the host's time, -1:
 * no limit. 0, CORE_REPORT_TIMEOUT or CORE_THREAD_SUBSCRIBE. */
int core_subscriber_process(int32_t timeout_ms);

/* The stream's own thread looks after one more entry (lock held), and one less. It exists from the
 * first on. */
int core_attention_begin_locked(struct core_stream *stream, const char *call);
void core_attention_end_locked(struct core_stream *stream);
/* The stream ends: its thread is stopped, its subscription is gone. No lock is held. */
void core_callback_end(struct core_stream *stream);
/* True in the stream's own thread, where one must not wait for it. */
bool core_is_pump_of(const struct core_stream *stream);

/* ---- waits that do not end (stall.c) ---- */

/* Wall time in ms until core_stall_tell_locked() has something to say of this wait; UINT32_MAX:
 * never. */
uint32_t core_stall_due_locked(const struct core_stream *stream, struct core_wait *wait);
/* Warns, once a wait, if it is due and the stream stands: who waits, for which task, and what would
 * end it. The lock is released meanwhile. */
void core_stall_tell_locked(struct core_stream *stream, struct core_wait *wait);

#endif
