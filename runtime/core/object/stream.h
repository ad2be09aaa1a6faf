/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream as an object: its parts, and the list of live ones. Its queue, its callbacks and its
 * waiters are in queue.h, callback.h and stall.h.
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
	struct core_stream *next; /* of the device; core_lists_lock */
	struct core_stream **link;
	bool alive;    /* takes work; of the queue, not of the handle */
	uint64_t life; /* counts the streams that this slot has been */
	bool is_default;
	uint32_t device, sq, cq, logic_cq;
	int32_t id;
	uint32_t priority, flags;
	bool stop_on_failure;           /* lock; kept and no more: no task fails by itself here */
	uint64_t sent, done;            /* entries since its birth */
	struct stream_pending *pending; /* ring, in order of seq */
	unsigned pending_first, pending_count, pending_room;
	bool receiving; /* one thread waits in the driver for completions */
	unsigned reap_due;
	int error; /* the first since the last report */
	char error_text[256];
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
	/* stall.c: since when, in wall time, nothing of the stream has moved; 0: not looked at */
	uint64_t since_ns, patience_ns, seen;
};
static inline struct core_wait core_wait_begin(const struct core_stream *stream,
					       uint64_t deadline_ns, const char *call)
{
	return (struct core_wait){ .call = call, .deadline_ns = deadline_ns, .life = stream->life };
}
/* False once the stream has ended, though another may live in its place. */
static inline bool core_wait_holds(const struct core_stream *stream, const struct core_wait *wait)
{
	return stream->alive && stream->life == wait->life;
}

/* Puts a stream among those of its device; from now on it is found, by the handle that is answered.
 * NULL: its context, by that handle, has ended, and nobody would end the stream. */
void *core_stream_link(struct core_stream *stream, const void *context);
void core_stream_unlink(struct core_stream *stream);
/* Hides a stream of the context, for the caller to end; waits while there are only streams that
 * others are ending. NULL: none is left. */
struct core_stream *core_stream_take_of(struct context *context);
/* Handles of the streams of a device; free(). */
void **core_stream_list(uint32_t device, unsigned *out_count);

#endif
