/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues inside backend-sim: ids, submission queues, completion queues, and the execution of
 * entries.
 *
 * A queue executes its entries in order, on simulated time. Entries that move data are jobs of the
 * device's engines; all others take no time of their own (no figure is known), and happen at the
 * time at which their turn comes: when the entry before is complete, when what they wait for
 * happens, or when they are sent. After an entry that failed the queue goes on with the next, as
 * CANN's runtime has it by skipping the entry: the error is in the completion, which is made
 * whether or not the entry asked for one. A full completion queue stops the queues that complete
 * into it; nothing is lost. To who asks, the head stands at the failed entry until it has asked for
 * the status: CANN's runtime, which goes by the head, does so when it has noted the error. All
 * under bsim.lock.
 */
#ifndef NPUSIM_BSIM_QUEUE_H
#define NPUSIM_BSIM_QUEUE_H

#include <glib.h>
#include <sys/queue.h>

#include "process/process.h"

#define QUEUE_STREAMS   32768u
#define QUEUE_EVENTS    65536u
#define QUEUE_MODELS    32768u
#define QUEUE_NOTIFIES  8192u /* 13 bits in an entry; the node's */
#define QUEUE_SQS       32768u
#define QUEUE_LOGIC_CQS 32768u
#define QUEUE_CALLBACKS 1024u /* bits that CANN's runtime has for them */
#define QUEUE_SQ_DEPTH  4096u
#define QUEUE_CQ_DEPTH  65536u

#define COPY_ROOM_BYTES (UINT64_C(64) << 20) /* who writes less does not ask for room */

/* Fields of entries. */
static inline uint64_t queue_word(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}
#define QUEUE_WRITE_HIGH_MASK  0x1ffffu
#define QUEUE_WRITE_SIZE(high) ((high) >> 20 & 7u)

static inline unsigned queue_value_bytes(const struct stars_value_wait_sqe *wait)
{
	return wait->narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* Objects by id, from 0 on. After an id was given back, all others come first. */
struct queue_table {
	void **at; /* grows */
	uint32_t slots, live, next;
};

/* What is known of an id of a stream, event, model or notify. */
struct queue_id {
	uint32_t recorded;  /* an event: 1 */
	uint32_t cq;        /* a stream's logic completion queue */
	uint64_t cq_number; /* which of those of that id; 0: none */
};

struct queue_report {
	GList link;      /* of its queue; its data is the report */
	uint64_t number; /* how many were before it */
	union {
		struct stars_logic_cqe logic;
		struct stars_callback_cqe callback;
	};
	char *text; /* of an error, or NULL */
};

/* A completion queue: a logic one, or the one of a callback queue. */
struct queue_cq {
	unsigned device;
	uint32_t id, depth, group;
	uint64_t number; /* how many there were before it in this process, and 1 */
	GQueue reports;
	/* of a callback queue */
	bool shown; /* its first report was waited for, and is not released */
	struct stars_callback_command command;
};

enum queue_sq_state {
	SQ_READY,      /* its next entry, if any, can start */
	SQ_BUSY,       /* an engine has it */
	SQ_WAIT_EVENT, /* blocked: in queue_set.blocked */
	SQ_WAIT_NOTIFY,
	SQ_WAIT_VALUE,
	SQ_CQ_FULL, /* its completion does not fit */
	SQ_DONE     /* it was freed while its job ran, which has ended */
};

/* Why an entry failed. type 0: it did not. text is the owner's to g_free(); NULL where type is 0.
 */
struct queue_error {
	uint8_t type;
	uint32_t code;
	char *text;
};

struct queue_sq {
	struct bsim *bs;
	unsigned device;
	uint32_t id, cq_id, stream_id, depth;
	bool only_id; /* no entries can be sent */
	bool stopped; /* nothing of it begins any more, and what runs is not completed */
	union stars_sqe *ring;
	struct {
		uint64_t call, ps;
	} * sent; /* by which driver call, and when, of each entry in the ring */
	uint32_t head, tail;
	unsigned told; /* failures */
	GQueue failed; /* where, of entries of which DRV_SQCQ_PROP_SQ_STATUS has not told */
	enum queue_sq_state state;
	bool listed; /* in queue_set.ready */
	bool doomed; /* freed, waits for its job's end only */
	struct sim_job job;
	uint64_t row;            /* of a copy by descriptors, that is next */
	struct queue_rows *rows; /* of which an engine copies one, or NULL */
	/* blocked on */
	unsigned wait_device;
	uint32_t wait_id;
	/* of a wait with a time-out, else SIM_NEVER; in wall time: while the model stands still */
	uint64_t deadline_ps, deadline_wall_ns;
	struct stars_logic_cqe held; /* SQ_CQ_FULL: the completion that waits, and its text */
	char *held_text;
	bool holding;
	TAILQ_ENTRY(queue_sq) ready_link, blocked_link;
	LIST_ENTRY(queue_sq) doomed_link;
};

struct queue_device {
	struct queue_table ids[4]; /* by DRV_STREAM_ID, DRV_EVENT_ID, DRV_MODEL_ID, DRV_NOTIFY_ID */
	/* by DRV_NORMAL_TYPE: struct queue_sq; DRV_CALLBACK_TYPE, DRV_LOGIC_TYPE: queue_cq */
	struct queue_table queues[3];
	uint64_t ring_pa, ring_errors;
	uint32_t ring_elements; /* 0: no error ring */
	GHashTable *rows;       /* struct queue_rows by its number; NULL until there is one */
	uint64_t rows_made;
	uint64_t closings; /* so far: what a call has waited for may be another opening's */
};

/* Memory that a call uses while it lets go of the lock. */
struct queue_use {
	uint64_t va, bytes; /* 0: none */
};
struct queue_user {
	struct queue_use use[2];
	uint64_t sent; /* the driver call */
	LIST_ENTRY(queue_user) link;
};

/* A copy by descriptors, a g_rc_box of the device's table and of who copies a row of it. */
struct queue_rows {
	struct bsim *bs;
	struct drvMem2D rows; /* those of this number only */
	struct queue_user user;
};

struct queue_set {
	struct bsim *bs;
	struct queue_device device[BSIM_DEVICE_MAX];
	uint64_t reports; /* so far */
	uint64_t cqs;     /* likewise */
	uint64_t now_ps;  /* the time at which entries are being executed */
	bool running;     /* queue_run_locked() is below on the stack, of this thread or of another
			     that has let go of the lock */
	unsigned away;    /* calls that have let go of the lock to move bytes, or between events */
	TAILQ_HEAD(, queue_sq) ready, blocked;
	LIST_HEAD(, queue_sq) doomed;
	LIST_HEAD(, queue_user) users;
	unsigned polled, deadlines; /* blocked queues that a poll must look at */
	/* calls that wait in wall time for another thread's */
	pthread_cond_t changed;
	unsigned waiters;
	bool closing;
	/* idle.c */
	pthread_cond_t work;
	GThread *idle_thread; /* NULL: not started */
	bool idle_failed, idle_stop, idle_parked;
	uint64_t idle_ns; /* how long nothing must have been called; tests change it */
	pid_t pid;
};

/* ---- queue.c ---- */

/* The idle thread, and what the queues need at opening and end. */
void queue_open(struct bsim *bs);
/* Called without bsim.lock: ends the idle thread, sends home who waits (PROCESS_EXIT). NULL, and
 * nothing done, in a forked child or where queue_open() was not called. Else what is for
 * queue_free() after sim_close(): the model may look at the jobs of its engines until then, but
 * drops them without a word. */
struct queue_set *queue_close(struct bsim *bs);
void queue_free(struct queue_set *set);
void queue_sq_free(struct queue_sq *sq);
/* What is due by the host's time takes effect: runs the model up to it, looks at value waits and
 * time-outs. bsim_end() calls it after it has let time pass; cheap where nothing is due. */
void queue_catch_up_locked(struct bsim *bs);
/* halDeviceClose: the device's queues and ids go; what its engines have begun ends by itself. */
void queue_device_close_locked(struct bsim *bs, unsigned device);

/* bsim_begin(), and what is due takes effect before the call looks. */
struct bsim_call queue_begin(struct npu_driver *self, enum sim_call cost);
/* BSIM_CALL() of one that begins so. */
#define QUEUE_CALL(op, cost, ...) BSIM_CALL_BEGUN_BY(queue_begin(self, cost), op, __VA_ARGS__)
/* The device's queues, if `dev` is one and is open, and `ts` is its task scheduler, 0. Else
 * INVALID_DEVICE, INVALID_HANDLE or INVALID_VALUE and a message. */
drvError_t queue_device_find_locked(struct bsim *bs, const char *call, uint32_t dev, uint32_t ts,
				    struct queue_device **out);
/* The queue of that id, a struct queue_sq or queue_cq. NULL, and c->result and the message say why:
 * the codes of queue_device_find_locked(), and INVALID_VALUE: there is none, or `type` is not the
 * one that is wanted. */
void *queue_find_locked(struct bsim_call *c, uint32_t dev, uint32_t ts, int type, int wanted,
			uint32_t id);
/* Around what takes long: the lock is let go, and taken again. Others call meanwhile; the model and
 * the queues do not end. Of a struct bsim, for struct sim_lock. */
void queue_let_go_locked(void *bsim);
void queue_take_back(void *bsim);
/* Something happened that a waiting call may be after. */
void queue_changed_locked(struct bsim *bs);
/* Waits until ready(arg), for timeout_ms of simulated time (-1: no limit). Lets the model run;
 * where it has nothing to do, waits in wall time, with the lock released, for another thread's
 * call, a nanosecond of one for one of the other; and gives up when wall_ms of that have passed,
 * which costs no simulated time. NONE, WAIT_TIMEOUT or, at queue_close(), PROCESS_EXIT. ready() may
 * be called at any time in between. */
#define QUEUE_NO_LIMIT UINT32_MAX
drvError_t queue_wait_locked(struct bsim *bs, bool (*ready)(void *arg), void *arg,
			     int32_t timeout_ms, uint32_t wall_ms);

/* A call that lets go of the lock, `user` its own, copies between, or writes, these: host memory
 * that is freed meanwhile stays until it ends. */
void queue_use_locked(struct bsim *bs, struct queue_user *user, uint64_t dst, uint64_t src,
		      uint64_t bytes);
void queue_use_end_locked(struct bsim *bs, struct queue_user *user);
/* The queue's entries `first` to count - 1, from its head, will not use host memory any more. */
void queue_uses_end_locked(struct bsim *bs, const struct queue_sq *sq, uint32_t first,
			   uint32_t count);
/* Since when the entry at the head is there behind a copy that has just ended; 0: behind none. */
uint64_t queue_sent_behind_copy(const struct queue_sq *sq);
/* Of entries that were sent and are not done. */
uint32_t queue_undone(const struct queue_sq *sq);

/* ---- ids.c ---- */

/* NULL: there is none of that id. */
void *queue_table_find(const struct queue_table *table, uint32_t id);
/* False: there are `capacity` already. */
bool queue_table_add(struct queue_table *table, uint32_t capacity, void *object, uint32_t *out_id);
/* The object. */
void *queue_table_remove(struct queue_table *table, uint32_t id);
/* An event or a notify (type) of the device happens at queue_set.now_ps: who waits for it becomes
 * ready. */
void queue_record_locked(struct bsim *bs, unsigned device, int type, uint32_t id);
/* The process uses that id of the device: of a notify, one of another server, too. */
bool queue_id_is_used(struct bsim *bs, unsigned device, int type, uint32_t id);
bool queue_is_recorded(struct bsim *bs, unsigned device, int type, uint32_t id);
/* Resets it, as does a wait for a notify. False: it was not recorded. */
bool queue_record_take(struct bsim *bs, unsigned device, int type, uint32_t id);
/* The host records it, for a call; PARA_ERROR: it is not in use. */
drvError_t queue_id_record_locked(struct bsim_call *c, uint32_t dev, int type, uint32_t id);
void queue_idents_clear_locked(struct bsim *bs, unsigned device);

/* ---- cq.c: logic completion queues (halCqReportRecv, npusimAwait) and callback queues ---- */

/* Its stream's; NULL: none. */
struct queue_cq *queue_cq_of(const struct queue_sq *sq);
/* Where condition code reads the tail of its queue. */
uint64_t queue_tail_register(const struct queue_sq *sq);
/* Takes text. False: it is full. */
bool queue_cq_post(struct bsim *bs, struct queue_cq *cq, const void *cqe, char *text);
/* in->type is DRV_LOGIC_TYPE or DRV_CALLBACK_TYPE, and there is room for one more. */
drvError_t queue_cq_make_locked(struct bsim *bs, uint32_t dev, struct queue_device *device,
				const struct halSqCqInputInfo *in, uint32_t capacity,
				uint32_t *out_id);
/* It is in no table any more. */
void queue_cq_drop_locked(struct bsim *bs, struct queue_cq *cq);

/* ---- copy.c ---- */

/* The copy by descriptors of that number (DMA_ADDR's phyAddr.src), or NULL. */
struct queue_rows *queue_rows_find(const struct queue_device *device, void *number);
/* The last release ends their use of memory. */
void queue_rows_release(void *rows);

/* ---- condition.c ---- */

enum condition_end {
	CONDITION_DONE, /* the last instruction was the last */
	CONDITION_GOTO, /* entry `head` of queue `sq` is next */
	CONDITION_BAD   /* the instruction `word` is not known, or memory could not be read */
};
struct condition {
	/* `bytes` bytes at va; false: they cannot be read */
	bool (*read)(void *arg, uint64_t va, void *to, unsigned bytes);
	void *arg;
	uint32_t sq, head, word;
};
enum condition_end condition_run(struct condition *condition, const uint32_t *code, unsigned words);

/* ---- errors.c ---- */

/* The device's error ring is where the place holder says, or is gone. */
void queue_ring_set_locked(struct bsim *bs, unsigned device,
			   const struct stars_error_ring_sqe *sqe);
/* The entry at the head of the queue has failed. */
void queue_ring_tell_locked(struct bsim *bs, const struct queue_sq *sq, uint8_t error_type);

/* ---- ready.c ---- */

/* The queue waits, in a state behind SQ_BUSY, until it is kicked. */
void queue_block_locked(struct bsim *bs, struct queue_sq *sq, enum queue_sq_state state);
/* The queue may be able to go on: the entry that it is blocked on is tried again, at the next
 * queue_run_locked(). */
void queue_kick_locked(struct bsim *bs, struct queue_sq *sq);
/* Kicks those that are blocked so on that id of the device, of a notify one; on room in a
 * completion queue: of device and id 0. */
void queue_wake_locked(struct bsim *bs, enum queue_sq_state state, unsigned device, uint32_t id);
/* Executes what can be, at now_ps. Does nothing when called from within itself. */
void queue_run_locked(struct bsim *bs, uint64_t now_ps);
/* Ends a queue, which is in no table any more: now, or when its job has ended. */
void queue_sq_drop_locked(struct bsim *bs, struct queue_sq *sq);

/* ---- sqe.c ---- */

/* Executes some entries. True: the queue has more that can be now. */
bool queue_advance_locked(struct bsim *bs, struct queue_sq *sq);
/* Blocked queues whose value compares true, or whose time-out has passed, become ready. */
void queue_poll_locked(struct bsim *bs);
/* What a wait for a value at the head of the queue finds there. 0 where it cannot be read: the
 * entry will fail at its next try, and say so. */
uint64_t queue_value_locked(struct bsim *bs, struct queue_sq *sq);

/* ---- idle.c ---- */

/* Work has been given to the model: starts or wakes the thread. */
void queue_idle_wake_locked(struct bsim *bs);
/* Ends the thread. Called without the lock. */
void queue_idle_end(struct bsim *bs);

#endif
