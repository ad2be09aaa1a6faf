/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver model as one process has it: settings, the lock, the node that it has joined, its
 * devices and the model. ARCHITECTURE.md lists the rooms above this one.
 *
 * Lock order: bsim.lock (this process), then the node's (all processes). sim.h is called under
 * bsim.lock only. A function named *_locked is called with bsim.lock held; one that lets go of it
 * meanwhile says so.
 */
#ifndef NPUSIM_BSIM_PROCESS_H
#define NPUSIM_BSIM_PROCESS_H

#include <glib.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/stack.h"
#include "node/node.h"

#define BSIM_DEVICE_MAX 16
#define BSIM_HOST_ID    65 /* the driver's id of the host */

enum bsim_contract { BSIM_DOCS, BSIM_DRIVER };

struct bsim_device {
	bool open;
	struct node_block *runtime; /* in place of what CANN's runtime holds; NULL: nothing */
	uint32_t peers;             /* bit p: P2P enabled from this device to device p */
	uint64_t fresh_frames;      /* created where this process had never held as much */
};

/* A mutex that nobody is kept from: who finds it taken stands in line, and those who come later
 * pass the line a bounded number of times. (Strict order costs two context switches a call.) */
struct bsim_lock {
	pthread_mutex_t mutex;
	pthread_mutex_t line; /* held by the first who waits */
	unsigned waiting;     /* how many stand in line */
	unsigned asleep;      /* how many of them sleep for the line */
	unsigned passed;      /* how often it was taken past the one who waits now */
};
#define BSIM_LOCK_PASSES 32u

struct bsim {
	struct npu_driver driver; /* first: the driver's self is the bsim */
	uint64_t now_ps;          /* bsim_now_locked(), when the lock was let go of: atomic */
	struct bsim_lock lock;    /* of all that follows, and of the model */
	enum bsim_contract contract;
	npu_ask_fn is_documented; /* npusimDocumentedBy */
	bool timing;
	bool contents;         /* copies and fills move bytes */
	bool writes;           /* what has addresses counts as written: block_mapped_locked() */
	uint8_t poison;        /* what new memory of a device holds */
	bool no_supernode;     /* also where it is a 910C */
	uint64_t lost_noticed; /* servers whose loss a call has waited for */
	uint64_t scans;        /* for their imports that have been due: one every 60 s */
	struct sim_profile profile;
	struct node *node; /* joined at the first device's opening */
	struct sim *sim;
	struct sim_lock sim_lock; /* how the model lets go of the lock: queue_open() */
	unsigned devices; /* known before joining: from the environment, else the running node's */
	bool shape_known; /* the running node, if any, has been looked at */
	bool any_open;    /* a device has been opened: the window exists */
	struct bsim_device device[BSIM_DEVICE_MAX];
	bool (*link_faults)(unsigned server, uint64_t *delay_us); /* driver_link_faults() */
	struct node_config config; /* what was asked for; the node's shape once joined */
	uint64_t calls;            /* begun, or gone on: the idle thread looks at it */
	uint64_t call_count[SIM_CALL_COUNT], call_ps[SIM_CALL_COUNT];
	/* Of the call that runs, from 1: the sum of call_count, and 1, but for calls that were made
	 * again when others had run. */
	uint64_t call_number;
	/* The rooms above, each in its own headers. */
	struct window *window;
	struct handle_table *handles;
	struct alloc_table *allocs;
	uint64_t leaves; /* how often the lock was let go of to give memory back; the numbers of */
	GSList *leaving; /* those times that are not over, the oldest first */
	const struct dialect *cuda; /* NULL: the window's rules; fixed once any_open */
	struct queue_set *queues;
	/* Of the queues, or NULL: at the end of every call; and how many copies that are not done
	 * copy from or write to [va, va + bytes). */
	void (*catch_up)(struct bsim *bs);
	unsigned (*uses)(struct bsim *bs, uint64_t va, uint64_t bytes);
};

/* The one object of the process: the report of a host access needs it outside of a call. NULL
 * before and after its life. */
extern struct bsim *bsim_process;

static inline struct bsim *bsim_of(struct npu_driver *self)
{
	return (struct bsim *)self;
}

/* When and by which call a thing was made: for the report of what is left, and for messages. */
struct bsim_made {
	uint64_t number; /* of the driver call in this process */
	uint64_t ps;     /* simulated time */
	npu_stack stack; /* the program's, where NPUSIM_STACKS keeps any */
};

/* A driver call under way. What it costs when it succeeds is `cost` for `pages` pages of 2^page_lg2
 * bytes; one that fails costs a query. */
struct bsim_call {
	struct bsim *bs;
	const char *name;  /* of a BSIM_CALL() */
	drvError_t result; /* what the call is about to return */
	enum sim_call cost;
	unsigned page_lg2; /* 21 */
	uint64_t pages;    /* 1 */
	uint64_t number;   /* bs->call_number */
	bool locked;
	bool spent;        /* its time has passed: bsim_spend_locked() */
	bool begun;        /* the model has done a part of it, which is not done again */
	uint64_t until;    /* of bs->leaves: what it waits for without memory; 0: not known yet */
	int cancel_before; /* locked: what cancel_hold() gave */
};

/* True in a child that was forked after the node was joined. */
bool bsim_is_forked(const struct bsim *bs);
drvError_t bsim_forked(void);

/* ---- process.c: settings, from the environment variables, and the shape of the server that they
 * and a running node determine. *error: free() ---- */

/* Reads every variable. False, and *error. */
bool settings_read(struct bsim *bs, char **error);
/* Joins the node, if that has not happened yet, and takes over its shape. OPEN_FAILED and a
 * message where that cannot be. */
drvError_t settings_join_locked(struct bsim *bs);
/* Where neither SoC, devices nor HBM were given: takes the shape of the node of that name that runs
 * already. Once. */
void settings_learn_shape_locked(struct bsim *bs);
/* No device is open. The SoC is the dialect's where none was named. */
drvError_t settings_set_dialect_locked(struct bsim *bs, const struct dialect *cuda);

/* ---- process.c: the lock ---- */

/* Takes the lock behind all who wait for it. */
void bsim_lock_in_line(struct bsim *bs);
void bsim_unlock(struct bsim *bs);
/* The holder could let go of it now: true if anybody waits for it. */
bool bsim_lock_offer(void *bsim);
/* pthread_cond_wait(), or pthread_cond_timedwait() where `until` is not NULL. */
int bsim_wait_locked(struct bsim *bs, pthread_cond_t *cond, const struct timespec *until);

static inline void bsim_lock(struct bsim *bs)
{
	struct bsim_lock *lock = &bs->lock;

	if (__atomic_load_n(&lock->passed, __ATOMIC_RELAXED) >= BSIM_LOCK_PASSES ||
	    pthread_mutex_trylock(&lock->mutex) != 0)
		bsim_lock_in_line(bs);
	else if (__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(&lock->passed, lock->passed + 1, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

/* Requires a device to be open: INVALID_HANDLE and a message "no device has been opened: call
 * aclrtSetDevice first". */
drvError_t bsim_require_open_locked(struct bsim *bs, const char *call);

/* Entry and exit of every driver function that touches state. bsim_begin() takes the lock; in a
 * forked child it fails: result is PROCESS_EXIT (message set), and the call only ends; so it does
 * where `open` names a call that needs an open device before all else, and none is. bsim_end()
 * lets time pass for the call, counts it, unlocks, and returns the result. */
static inline struct bsim_call bsim_begin(struct npu_driver *self, enum sim_call cost,
					  const char *open)
{
	struct bsim_call call = { .bs = bsim_of(self), .cost = cost, .page_lg2 = 21, .pages = 1 };

	if (bsim_is_forked(call.bs)) {
		call.result = bsim_forked();
		return call;
	}
	call.cancel_before = cancel_hold();
	bsim_lock(call.bs);
	call.locked = true;
	call.number = ++call.bs->call_number;
	call.bs->calls++;
	if (open != NULL)
		call.result = bsim_require_open_locked(call.bs, open);
	return call;
}
/* True for a call to be made again: at once (RESUME), as it let go of the lock; after a wait, as
 * what leaves was in its way, or may be its room. */
static inline bool bsim_try_again_locked(struct bsim_call *c)
{
	const GSList *oldest = c->bs->leaving;

	if (c->result == DRV_ERROR_NONE)
		return false;
	if (c->result != DRV_ERROR_RESUME) {
		c->until = c->until ?: c->bs->leaves; /* later ones are not waited for */
		if (c->result != DRV_ERROR_TRY_AGAIN &&
		    (c->result != DRV_ERROR_OUT_OF_MEMORY || c->spent || c->begun ||
		     oldest == NULL || GPOINTER_TO_SIZE(oldest->data) > c->until))
			return false;
		c->bs->sim_lock.wait(c->bs);
	}
	if (c->bs->call_number != c->number) /* others came between */
		c->number = ++c->bs->call_number;
	return true;
}
drvError_t bsim_end(struct bsim_call *call);
/* The time of such a call passes, which is not counted as one. */
void bsim_pass_time_locked(struct bsim *bs, enum sim_call cost, uint64_t pages, unsigned page_lg2);
/* The call's time passes now, in a call that will succeed: what it starts, starts behind it. */
void bsim_spend_locked(struct bsim_call *call);

/* The driver's functions as this backend implements them. */
#define NPU_OP(result, missing, op, ...) result bsim_##op NPU_WITH_SELF(__VA_ARGS__);
#include "npusim/driver-ops.h"

/* Defines a function that is a call: BSIM_CALL(halMemRelease, SIM_CALL_RELEASE, (drv_mem_handle_t
 * *, handle)) and a body, which runs between bsim_begin() and bsim_end(). It has `struct bsim_call
 * *c`, with its name in c->name, and returns the result. BSIM_OPEN_CALL: one that needs an open
 * device before all else. */
#define BSIM_CALL(op, cost, ...) BSIM_CALL_BEGUN_BY(bsim_begin(self, cost, NULL), op, __VA_ARGS__)
#define BSIM_OPEN_CALL(op, cost, ...) \
	BSIM_CALL_BEGUN_BY(bsim_begin(self, cost, #op), op, __VA_ARGS__)
#define BSIM_CALL_BEGUN_BY(begin, op, ...)                                                 \
	static drvError_t op##_locked(struct bsim_call *c, NPU_PARAMS(__VA_ARGS__));       \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__)                                    \
	{                                                                                  \
		struct bsim_call begun = begin;                                            \
                                                                                           \
		begun.name = #op;                                                          \
		if (begun.result == DRV_ERROR_NONE)                                        \
			do                                                                 \
				begun.result = op##_locked(&begun, NPU_ARGS(__VA_ARGS__)); \
			while (bsim_try_again_locked(&begun));                             \
		return bsim_end(&begun);                                                   \
	}                                                                                  \
	static drvError_t op##_locked(struct bsim_call *c, NPU_PARAMS(__VA_ARGS__))

/* The same of a question that is no call, costs no time and is not counted: what watches must not
 * change what it sees. The body has `struct bsim *bs`, whose lock is held, and its name in `call`.
 */
#define BSIM_QUESTION(op, ...)                                                                     \
	static drvError_t op##_locked(struct bsim *bs, const char *call, NPU_PARAMS(__VA_ARGS__)); \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__)                                            \
	{                                                                                          \
		struct bsim *bs = bsim_of(self);                                                   \
		drvError_t result;                                                                 \
                                                                                                   \
		bsim_lock(bs);                                                                     \
		result = op##_locked(bs, #op, NPU_ARGS(__VA_ARGS__));                              \
		bsim_unlock(bs);                                                                   \
		return result;                                                                     \
	}                                                                                          \
	static drvError_t op##_locked(struct bsim *bs, __attribute__((unused)) const char *call,   \
				      NPU_PARAMS(__VA_ARGS__))

/* Sets the thread's message, and is the code: `return bsim_fail(code, "halMemMap: ...", ...)`. */
#define bsim_fail(code, ...)  (npu_message_set(__VA_ARGS__), (code))
#define bsim_invalid(...)     bsim_fail(DRV_ERROR_INVALID_VALUE, __VA_ARGS__)
#define bsim_unsupported(...) bsim_fail(DRV_ERROR_NOT_SUPPORT, __VA_ARGS__)
/* Passes on what the node or a room below said, with the call in front. */
drvError_t bsim_pass(const char *call, drvError_t result);
/* INVALID_VALUE: "call: argument is NULL"; and that of an argument that is. */
drvError_t bsim_null(const char *call, const char *argument);
#define BSIM_GIVEN(call, argument) ((argument) == 0 ? bsim_null(call, #argument) : DRV_ERROR_NONE)

/* Simulated time of the calling program. */
uint64_t bsim_now_locked(struct bsim *bs);
struct bsim_made bsim_made_locked(struct bsim *bs);
/* By whom: "aclrtMalloc, load at train.c:96"; where no stack is known "driver call 17", and, with
 * `hint`, how to have one. See npu_text(). */
const char *bsim_made_text(const struct bsim_made *made, bool hint);
/* OPEN_FAILED, and a message with `error`, which is freed; NULL: no memory. */
drvError_t bsim_open_failed(char *error);
/* Requires this device to be open. False, and a message: which code that is differs by call. */
bool bsim_require_device_locked(struct bsim *bs, const char *call, unsigned device);
/* INVALID_DEVICE: "call: argument is 9; this server has devices 0 to 7". */
drvError_t bsim_no_device(const struct bsim *bs, const char *call, const char *argument,
			  uint32_t device);
/* "the host", "device 3": as npu_text(). */
const char *bsim_memory_text(unsigned memory);

/* ---- identities in a supernode ---- */

#define BSIM_SERVER_NONE 0x3ffu /* in no supernode; the node of a 910C is its only server */

static inline uint32_t bsim_server_id(const struct bsim *bs)
{
	return bs->profile.is_910c && !bs->no_supernode ? bs->config.server : BSIM_SERVER_NONE;
}

static inline uint32_t bsim_sdid_server(uint32_t sdid)
{
	return sdid >> 22;
}

/* The server was stopped: the time passes in which the driver finds that out, 30 s, or 1 s once it
 * has. INVALID_HANDLE, and a message. NONE: it is there. */
drvError_t bsim_check_server_locked(struct bsim *bs, const char *call, unsigned server);

static inline uint64_t bsim_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* ---- contract.c: the two contracts, for calls that reach a case in which the documentation and
 * the driver's source differ: what each of them answers, and the query for the answer in force. The
 * documents' rules are about aclrt functions: a call that is not one's (npusimDocumentedBy) gets
 * the driver's answer, without a note. Called with bsim.lock held. ---- */

/* One row for every case in which documentation and driver differ. contract.c has the codes, the
 * rule's id and the source. */
enum contract_row {
	CONTRACT_HINT_NOT_1G_ALIGNED,
	CONTRACT_HINT_TAKEN,
	CONTRACT_HINT_OUT_OF_WINDOW,
	CONTRACT_CREATE_UNALIGNED,
	CONTRACT_CREATE_MANAGED,
	CONTRACT_MAP_SMALLER,
	CONTRACT_MAP_LARGER,
	CONTRACT_MAP_UNALIGNED_SIZE,
	CONTRACT_MAP_MIXED_IMPORT,
	CONTRACT_IMPORT_SAME_PROCESS,
	CONTRACT_SYNC_COPY_TWO_DEVICES,
	CONTRACT_NOUC_NEEDS_910C,
	CONTRACT_NOTIFY_PIDS,
	CONTRACT_ROW_COUNT
};
/* Under the active contract: true if the row's documented answer applies. Leaves the note of what
 * the other contract would have answered (once a row and call name at level warn, then debug). */
bool contract_docs_apply(struct bsim *bs, enum contract_row row, const char *call);
/* The code of the active contract, with the note. */
drvError_t contract_code(struct bsim *bs, enum contract_row row, const char *call);

/* A row as it is written down, for tests and for the description of the backend. */
struct contract_rule {
	const char *rule; /* id of the documents' rule */
	const char *what; /* the case, in words */
	drvError_t docs, driver;
	const char *docs_text, *driver_text; /* what a program sees: the ACL's code, or "success" */
	const char *source;
};
extern const struct contract_rule contract_rules[CONTRACT_ROW_COUNT];

#endif
