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

#define CORE_QUEUE_DEPTH 2048u
struct subscriber;
STAILQ_HEAD(core_callbacks, callback);

struct core_stream {
	struct core_slot slot;
	pthread_mutex_t lock;
	pthread_cond_t
		progress; /* completions, the receiver left, a callback is ready, the stream dies */
	bool alive;       /* takes work; of the queue, not of the handle */
	uint64_t life;    /* counts the streams that this slot has been */
	bool is_default;
	_Atomic uint32_t device;
	uint32_t sq, cq, logic_cq;
	int32_t id;
	uint32_t priority, flags;
	bool stopped;         /* lock: by aclrtStreamStop, until it is aborted */
	bool aborting;        /* lock: takes no work meanwhile */
	unsigned aborts;      /* so far; lock */
	bool stop_on_failure; /* lock; what it does is its context's */
	bool failed;          /* lock; in a context that stops */
	uint64_t sent, done;  /* entries since its birth */
	uint64_t done_ns;     /* when the last that is done was, by the driver's clock */
	struct core_done pending[CORE_QUEUE_DEPTH]; /* of entry n at n % DEPTH; then cleared */
	bool receiving; /* one thread waits in the driver for completions */
	unsigned reap_due;
	int failure;      /* the first since the last report: its aclError, and why */
	char *cause_text; /* free(); NULL: no memory for it */
	/* callback.c */
	struct subscriber *subscriber;
	bool host_funcs; /* has used core_callback_launch_host(): never mixed with a subscriber */
	unsigned attention;          /* entries whose completion the stream's own thread must see */
	struct core_callbacks ready; /* host functions whose turn has come, in order */
	bool pump_started, pump_stop;
	pthread_t pump;
};
extern struct core_pool core_streams;
extern struct core_owned core_stream_lists[CORE_DEVICE_MAX]; /* by device */

/* A call that waits for a stream, as long as core_wait_holds(). */
struct core_wait {
	bool quiet;           /* of no call: nobody is told where it does not end */
	uint64_t deadline_ns; /* of core_now_ns(); UINT64_MAX: none */
	uint64_t life;        /* the stream's */
	unsigned aborts;      /* of it, before */
	/* since when, in wall time, nothing of the stream has moved; 0: not looked at */
	uint64_t since_ns, patience_ns, seen;
};
static inline struct core_wait core_wait_begin(const struct core_stream *stream,
					       uint64_t deadline_ns)
{
	return (struct core_wait){ .deadline_ns = deadline_ns,
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
int core_stream_aborted(const struct core_stream *stream);

/* Handles of the streams of a device; free(). */
void **core_stream_list(uint32_t device, unsigned *out_count);

/* ---- a stream's queues in the driver: entries out, completions in ---- */

/* Sends entries that belong together, so that nothing comes between them. `done` has one for each
 * entry, or is NULL. */
int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done);
/* The same with the stream's lock held (it is released while there is no room). */
int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done);
/* What is done up to the entry `last` is told so, by the completion `cqe`; NULL: it is dropped. */
void core_stream_complete_locked(struct core_stream *stream, uint64_t last,
				 const struct stars_logic_cqe *cqe);
/* Waits until something completes or changes: 0, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the deadline
 * has passed, or the code of a driver that does not answer. */
int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait);
/* Takes what is complete, without waiting; the lock is held, or taken. */
void core_stream_reap_locked(struct core_stream *stream);
void core_stream_reap(struct core_stream *stream);
void core_stream_reap_device(uint32_t device);
/* Makes the stream's queue, or takes it down. */
int core_stream_open_queue(struct core_stream *stream);
/* Puts an empty queue in the place of one that is stopped. Lock held; released until nobody waits
 * in the driver for the old one. */
int core_stream_renew_queue_locked(struct core_stream *stream);
/* Waits, not long, until nobody waits in the driver for a queue that is gone. False: one does. */
bool core_stream_wait_leave_locked(struct core_stream *stream);
/* Until nobody aborts the stream: its queue may be another one then. */
void core_stream_wait_abort_locked(struct core_stream *stream);
void core_stream_close_queue(struct core_stream *stream);

/* Ids of events in the driver: one is taken (aclError), given back, recorded by the host. */
int core_event_id_take(uint32_t device, uint32_t *out_id);
void core_event_id_give(uint32_t device, uint32_t id);
void core_event_id_record(uint32_t device, uint32_t id);

#endif
