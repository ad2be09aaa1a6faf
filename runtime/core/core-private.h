/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of runtime/core share, and what its tests look at. No face includes it.
 *
 * Locks, outer before inner: core_setup_lock (devices and contexts come and go), a stream's lock,
 * core_lists_lock (who belongs to which context), a subscriber's lock. The driver may be called
 * under each of them, a program's code under none.
 */
#ifndef NPUSIM_CORE_PRIVATE_H
#define NPUSIM_CORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/core.h"

/* The aclErrors that runtime/core answers; it knows no face's headers. */
enum core_error {
	CORE_OK = 0,
	CORE_PARAM_INVALID = 107000,
	CORE_INVALID_DEVICE = 107001,
	CORE_CONTEXT_NULL = 107002,
	CORE_STREAM_CONTEXT = 107003,
	CORE_EVENT_TIMESTAMP_INVALID = 107006,
	CORE_STREAM_SUBSCRIBE = 107011,
	CORE_THREAD_SUBSCRIBE = 107012,
	CORE_STREAM_NO_CALLBACK = 107015,
	CORE_TASK_TIMEOUT = 107020,
	CORE_NOT_SUPPORT = 207000,
	CORE_MEMORY_ALLOCATION = 207001,
	CORE_NO_DEVICE = 207004,
	CORE_NO_EVENT = 207007,
	CORE_NO_STREAM = 207008,
	CORE_API_INTERNAL = 500000,
	CORE_INTERNAL = 507000,
	CORE_TS_ERROR = 507001,
	CORE_CONTEXT_RELEASE = 507007,
	CORE_REPORT_TIMEOUT = 507012,
	CORE_SYS_DMA = 507013,
	CORE_DEVICE_SETUP = 507033,
	CORE_STREAM_SYNC_TIMEOUT = 507046,
	CORE_EVENT_SYNC_TIMEOUT = 507047,
	CORE_DRIVER_INTERNAL = 507899
};
/* Sets the message "<call>: <text>" and returns the code, which aclrtGetLastError() will answer. */
int core_fail(int code, const char *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- type-stable objects behind handles (pool.c) ----
 *
 * A handle names slot and generation, so a stale one is told from the slot's next user. Slots are
 * never given back to the system: a thread that still holds a pointer when another destroys the
 * object finds a dead object, not freed memory. */

struct core_slot {
	_Atomic uint64_t handle; /* 0 while nobody may find it */
	uint32_t index, generation;
	struct core_slot *next_free;
};

#define CORE_POOL_CHUNK_SLOTS 64u
#define CORE_POOL_CHUNKS      2048u

struct core_pool {
	uint8_t kind;                  /* 1 .. 7, unlike other pools' */
	size_t bytes;                  /* of an object; a struct core_slot is its first member */
	void (*prepare)(void *object); /* once a slot: locks and the like */
	pthread_mutex_t lock;
	_Atomic(char *) chunk[CORE_POOL_CHUNKS];
	uint32_t slots;
	struct core_slot *free_first, *free_last;
};
#define CORE_POOL(kind_, type_, prepare_)                                       \
	{                                                                       \
		.kind = (kind_), .bytes = sizeof(type_), .prepare = (prepare_), \
		.lock = PTHREAD_MUTEX_INITIALIZER                               \
	}
/* An object that nobody finds yet; its contents are those of its last life. NULL: none left. */
void *core_pool_take(struct core_pool *pool);
/* From now on core_pool_find() answers the object for its handle. */
void *core_pool_publish(struct core_pool *pool, void *object);
/* From now on it does not. False if it did not before, or if the slot has another handle, and so
 * another owner, since: of several callers that name one handle one gets true. */
bool core_pool_hide(struct core_pool *pool, void *object, const void *handle);
/* Ends the object's life; it must be hidden. */
void core_pool_give(struct core_pool *pool, void *object);
void *core_pool_find(struct core_pool *pool, const void *handle);
/* Hides any one that is published, and answers it; NULL: none is. */
void *core_pool_hide_any(struct core_pool *pool);
static inline void *core_slot_handle(const void *object)
{
	return (void *)(uintptr_t)atomic_load_explicit(&((const struct core_slot *)object)->handle,
						       memory_order_acquire);
}

/* ---- the process's runtime (runtime.c) ---- */

extern pthread_mutex_t core_setup_lock;
extern pthread_mutex_t core_lists_lock;
/* Tests: this driver from now on, instead of one that the registry opens. Not closed by
 * core_shutdown(). */
void core_driver_use(struct npu_driver *drv);
/* A device was opened: forks survive it no more. */
void core_device_was_opened(void);
uint64_t core_now_ns(void);

/* ---- devices and contexts ---- */

struct core_stream;
struct event;

struct context {
	struct core_slot slot;
	struct core_context face;       /* what core.h shows of it */
	_Atomic(void *) default_stream; /* handle; made at first use */
	struct event *events;           /* core_lists_lock */
};
extern struct core_pool core_contexts;

/* A new, published context on an open device whose count of users the caller has raised. */
struct context *core_context_make(int32_t user, uint32_t logic, bool primary);
/* Ends its streams and events; nobody may find it any more. `force`: pending work is dropped. */
void core_context_end(struct context *context, bool force, const char *call);
/* The calling thread's current context is the primary one of the device, whichever that is at each
 * call; < 0: none. */
void core_context_follow(int64_t logic);
struct context *core_context_of(const struct core_context *face);
/* core_context_peek(), with the handle by which it was found. Another thread may end it at any
 * time: who makes something of it compares, under core_lists_lock, that handle with the slot's, for
 * the slot may have none, or that of its next user. */
struct context *core_context_look(void **out_handle);

/* One more, one less user of a device: opens it at the first, closes it at the last.
 * core_setup_lock is held. */
int core_device_hold_locked(uint32_t logic, const char *call);
void core_device_drop_locked(uint32_t logic);
/* The handle of the device's primary context, or NULL. Any thread. */
void *core_device_primary(uint32_t logic);
/* Forgets all devices and contexts: core_shutdown(). */
void core_device_shutdown(void);
void core_visible_forget(void);

/* ---- streams (stream.c, stream-queue.c, stall.c) ---- */

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

/* Sends entries that belong together, so that nothing comes between them. `done` has one for each
 * entry, or is NULL. */
int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done, const char *call);
/* The same with the stream's lock held (it is released while there is no room). */
int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done, const char *call);
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
/* Waits until something completes or changes: 0, CORE_STREAM_SYNC_TIMEOUT when the deadline has
 * passed, or the code of a driver that does not answer. */
int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait);
/* Takes what is complete, without waiting. */
void core_stream_reap_locked(struct core_stream *stream);
void core_stream_reap_device(uint32_t device);
uint64_t core_deadline_ns(int32_t timeout_ms);
/* Makes the stream's queue, or takes it down. */
int core_stream_open_queue(struct core_stream *stream, const char *call);
void core_stream_close_queue(struct core_stream *stream);
/* Task ids have 16 bits; all ones stands for "any". */
#define CORE_TASK_IDS 0x8000u

/* ---- waits that do not end (stall.c) ---- */

/* Wall time in ms until core_stall_tell_locked() has something to say of this wait; UINT32_MAX:
 * never. */
uint32_t core_stall_due_locked(const struct core_stream *stream, struct core_wait *wait);
/* Warns, once a wait, if it is due and the stream stands: who waits, for which task, and what would
 * end it. The lock is released meanwhile. */
void core_stall_tell_locked(struct core_stream *stream, struct core_wait *wait);

/* Hides a stream of the context, for the caller to end. *out_left: some were left, if only ones
 * that others are ending. */
struct core_stream *core_stream_take_of(struct context *context, bool *out_left);
/* Ends a hidden stream: waits for its work, or drops it. */
void core_stream_end(struct core_stream *stream, bool force, const char *call);

/* ---- events (event.c) ---- */

void core_event_end_all(struct context *context);

/* ---- callbacks (callback.c) ---- */

/* The stream's own thread looks after one more entry (lock held), and one less. It exists from the
 * first on. */
int core_attention_begin_locked(struct core_stream *stream, const char *call);
void core_attention_end_locked(struct core_stream *stream);
/* The stream ends: its thread is stopped, its subscription is gone. No lock is held. */
void core_callback_end(struct core_stream *stream);
/* True in the stream's own thread, where one must not wait for it. */
bool core_is_pump_of(const struct core_stream *stream);

#endif
