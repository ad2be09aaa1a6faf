/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime below its faces: devices, contexts, streams, events, and the translation from a
 * driver's code to an error of the ACL. It calls the driver through npu_call() only, and is
 * independent of the backend. The faces (runtime/acl, runtime/cuda) check arguments in their own
 * dialect and call in here.
 *
 * Objects are handed out as opaque pointers that are looked up and never dereferenced unchecked: a
 * stale or invalid one gets an error code. All functions may be called from any thread.
 */
#ifndef NPUSIM_CORE_H
#define NPUSIM_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "npusim/driver.h"

#define CORE_DEVICE_MAX 64

/* ---- the process's runtime (object/process.c) ---- */

/* The driver stack, opened at the first call that needs it (a program that never calls aclInit
 * works). NULL, message set, if no backend can be used; tried again at the next call. */
struct npu_driver *core_driver(void);
/* The driver, if it is open. */
struct npu_driver *core_driver_peek(void);
/* Calls the driver: core_call(halMemRelease, handle). NO_DRIVER, the message set, where there is
 * none, even if another thread has one by now. */
#define CORE_NO_DRIVER ((drvError_t)-1)
#define core_call(op, ...)                                                              \
	({                                                                              \
		struct npu_driver *core_drv_ = core_driver();                           \
		core_drv_ == NULL ? CORE_NO_DRIVER                                      \
				  : npu_call(core_drv_, op __VA_OPT__(, ) __VA_ARGS__); \
	})
/* What the program knows now, without a call of the driver that says so: npusimOrder. */
void core_order(uint32_t device, enum npu_order what, uint32_t id, uint64_t value);
/* What the call itself does takes simulated time: npusimSpend. */
static inline int core_spend(enum npu_work work)
{
	struct npu_driver *drv = core_driver_peek();

	if (drv != NULL)
		npu_call(drv, npusimSpend, work);
	return 0;
}

/* ---- errors (object/process.c) ---- */

/* The name of the face's function that the thread is in, which its door sets: the messages of what
 * is refused begin with it. "" outside, and in the functions that streams call. */
extern __thread const char *core_called;
/* It is that until the block's end, whatever the program's functions call meanwhile. */
#define CORE_CALLED(name)                                                                          \
	__attribute__((cleanup(core_called_back), unused)) const char *const outer_ = core_called; \
	core_called = name
static inline void core_called_back(const char *const *outer)
{
	core_called = *outer;
}
/* The end of a chain of calls that answer codes: *out = value. */
#define CORE_GIVE(out, value) (*(out) = (value), 0)
/* 500000, the message set, where no driver can be had. */
int core_check_driver(void);
/* A driver's code, other than 0, as an aclError (driver_code_acl()). It takes the driver's message
 * where there is one, behind the call's name and what it is about ("ptr is 0x10: ", or ""). */
int core_result_about(drvError_t code, const char *about);
static inline int core_result(drvError_t code)
{
	return code == DRV_ERROR_NONE ? 0 : core_result_about(code, "");
}

/* ---- devices and their ids (object/process.c) ---- */
/* user id: index in ASCEND_RT_VISIBLE_DEVICES; logic id: the driver's; physical id: the chip's. */

int core_device_count(uint32_t *out_user_count, uint32_t *out_logic_count); /* aclError */
bool core_user_to_logic(int32_t user,
			uint32_t *out_logic); /* message set where false: names the id spaces */
int core_logic_to_user(uint32_t logic, int32_t *out_user); /* aclError */
/* The variable of the list, ASCEND_RT_VISIBLE_DEVICES at first; in_any_order: the list need not
 * ascend. It is read at the next question for devices. */
void core_visible_use(const char *variable, bool in_any_order);
/* What ASCEND_RT_VISIBLE_DEVICES says, for messages: "0 -> 2, 1 -> 3". */
const char *core_visible_text(void);

/* ---- contexts (object/context.c) ---- */

/* Atomic, since a context may end in another thread, and its place be taken, while it is used. */
struct core_context {
	_Atomic int32_t user_device;
	_Atomic uint32_t device; /* logic id */
	_Atomic bool primary;
	_Atomic uint64_t words[8]; /* the face's, 0 at first; the rest is object/context.c's */
};
/* The calling thread's current context, or NULL. */
struct core_context *core_context_peek(void);

/* ---- streams (stream.c) ---- */

struct core_stream; /* opaque */

/* What a face calls `stream`: NULL stands for the default stream of the current context. aclError:
 * there is no context (107002), or the stream is unknown or destroyed (107000/107003); *out is NULL
 * then. */
int core_stream_find(void *stream, struct core_stream **out);

/* Queues `count` 64-byte entries in order; fills in header.stream_id, task_id and wr_cqe. Waits for
 * room while the queue is full. `keep` (may be NULL) is called with `arg` when the last entry is
 * complete, from whatever thread sees it: to free what the entries point to. aclError. */
int core_stream_send(struct core_stream *stream, void *entries, unsigned count,
		     void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg);
/* Waits until all that was sent is complete. timeout_ms of simulated time, -1: none. 0, 507046
 * (time-out), or the first error of a task since the last time it was reported (the mapping of
 * completion errors to codes is stream.c's). */
int core_stream_synchronize(struct core_stream *stream, int32_t timeout_ms);
/* All streams of a device's context; NULL: of all that have not stopped at a failure. */
int core_device_synchronize(uint32_t device, const struct core_context *context,
			    int32_t timeout_ms);

/* ---- what else the faces call ----
 *
 * All results are aclErrors, the message set. Handles are what programs hold; they are looked up,
 * never dereferenced, and a stale one is never taken for a younger object. */

/* The calling thread's last runtime code that was not 0 (aclrtGetLastError); peeked, or taken.
 * Codes below 107000 are the face's own and are not kept. */
int core_last_error_note(int code);   /* the code */
int core_last_error_change(int code); /* the same of a call whose code was noted */
int core_driver_code(void);           /* what the driver answered to the last failed call; else 0 */
/* How every call is refused: sets the message "<call>: <text>", notes the code, and returns it. */
int core_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int core_last_error(bool take);
/* Simulated time of the process in ps; on a driver that simulates nothing, its host's monotonic
 * clock. */
uint64_t core_now_ps(void);
/* True in a child that was forked after the parent had opened a device: nothing works there. */
bool core_is_forked(void);

/* devices: user ids */
int core_device_set(int32_t user);
int core_device_reset(int32_t user, bool force);
/* As core_device_set(), but the thread's current context stays: *out_context is the primary one. */
int core_device_retain(int32_t user, void **out_context);
/* The device stays open, whatever contexts end. */
int core_device_keep(uint32_t logic);
/* Whether the device has its primary context in this process. 107001 for a bad id. */
int core_device_primary_active(int32_t user, bool *out_active);
/* User id to logic id, or 107001 with a message "<call>: <argument>=... ". */
int core_device_logic(int32_t user, const char *argument, uint32_t *out_logic);

/* contexts */
int core_context_create(int32_t user, void **out_context);
int core_context_destroy(void *context);
int core_context_select(void *context);
/* The thread has no current context any more. */
void core_context_deselect(void);
/* The live context of that handle, or NULL. */
struct core_context *core_context_find(void *context);
/* The handle that programs hold of a context that core_context_peek() answered. */
void *core_context_handle(const struct core_context *context);
/* 107002, message: "<call>: no current context: call aclrtSetDevice ...". */
int core_context_none(void);

/* streams: NULL is the default stream of the current context, which each function needs */
#define CORE_STREAM_PRIORITY_LEAST 7u
#define CORE_STREAM_MAX            32768u
#define CORE_EVENT_MAX             65536u
int core_stream_create(uint32_t priority, uint32_t flags, void **out_stream);
int core_stream_destroy(void *stream, bool force);
int core_stream_default(void **out_stream);
/* The context that a live stream belongs to; NULL: there is no such stream. */
void *core_stream_context(void *stream);
/* As core_stream_find(), but a stream of any context of the process will do. */
int core_stream_find_any(void *stream, struct core_stream **out);
/* Whether all that was sent is complete. */
int core_stream_query(struct core_stream *stream, bool *out_idle);
/* What is on it is dropped, what runs does not go on, and who waits for it is told so (107023). */
int core_stream_abort(void *stream);
/* What runs does not go on, and nothing else of it begins until it is aborted. */
int core_stream_stop(void *stream);
struct core_stream_facts {
	int32_t id;
	uint32_t priority, flags;
	uint32_t sq, cq, logic_cq; /* the driver's numbers of its queues */
};
struct core_stream_facts core_stream_facts(const struct core_stream *stream);
/* Where a stream stops on failures, the first of a task of any stream of its context stops that:
 * until it ends, each call for its streams and events answers the failure's code. False, and
 * nothing changes, where a stream that stops is to go on again, or has failed and is to stop. */
bool core_stream_set_stop(struct core_stream *stream, bool stop);
/* Live streams of a device that count against CORE_STREAM_MAX. */
unsigned core_stream_live(uint32_t device);

/* events */
enum core_event_kind {
	CORE_EVENT_PLAIN, /* aclrtCreateEvent: cannot be waited for before its first record */
	CORE_EVENT_FLAGS, /* aclrtCreateEventWithFlag: a wait before the first record waits for it
			   */
	CORE_EVENT_AGAIN  /* aclrtCreateEventExWithFlag: a wait before the first record is no wait;
			     no reset */
};
#define CORE_EVENT_SYNC      0x1u
#define CORE_EVENT_TIME_LINE 0x8u
int core_event_create(enum core_event_kind kind, uint32_t flags, void **out_event);
int core_event_destroy(void *event);
int core_event_record(void *event, void *stream);
/* timeout_s of simulated time, 0: none. */
int core_event_wait(void *event, void *stream, uint32_t timeout_s);
int core_event_reset(void *event, void *stream);
int core_event_query(void *event, bool deprecated, bool *out_done);
int core_event_query_waits(void *event, bool *out_done);
int core_event_synchronize(void *event, int32_t timeout_ms);
int core_event_elapsed(void *start, void *end, float *out_ms);
int core_event_timestamp(void *event, uint64_t *out_us);
int core_event_id(void *event, uint32_t *out_id);
unsigned core_event_live(uint32_t device);

/* notifies: 107017 for a handle that is none, and 107002 without a context */
#define CORE_KEY_BYTES 65u
struct core_notify {
	uint32_t device, id; /* the driver's */
	bool imported;
	bool elsewhere;           /* of another server: device is its SDID */
	char key[CORE_KEY_BYTES]; /* "": other processes do not know it */
};
int core_notify_add(const struct core_notify *face, void **out_notify);
int core_notify_find(void *notify, struct core_notify *out);
int core_notify_remove(void *notify, struct core_notify *out);
/* 507000: it has one. */
int core_notify_set_key(void *notify, const char key[CORE_KEY_BYTES]);

/* Collects entries of a stream, which are sent in order, as many as fit at once; the first failure
 * stays, and nothing is sent any more. */
struct core_sender {
	struct core_stream *stream;
	int error; /* aclError */
	unsigned count;
	union stars_sqe entries[32];
};
void core_sender_init(struct core_sender *sender, struct core_stream *stream);
/* Zeros, for the caller to fill in. */
union stars_sqe *core_sender_add(struct core_sender *sender);
/* A copy of any length: by SDMA between device addresses (on_device), by PCIe DMA between host and
 * device. */
void core_sender_copy(struct core_sender *sender, uint64_t dst, uint64_t src, uint64_t bytes,
		      bool on_device);
/* Of a length that no memory has, such as one that went below 0, no pieces are to be queued. */
int core_check_length(uint64_t bytes);
/* Sends what is left; keep and arg as core_stream_send() has them. sender->error. */
int core_sender_flush(struct core_sender *sender,
		      void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg);

/* copies and fills in a stream (stream.c): of device and page-locked memory only; the driver
 * says at their turn if an address is wrong. on_device: both ends are. */
int core_stream_copy(struct core_stream *stream, uint64_t dst, uint64_t src, uint64_t bytes,
		     bool on_device);
/* pattern repeats every 4 bytes. */
int core_stream_fill(struct core_stream *stream, uint64_t dst, uint32_t pattern, uint64_t bytes);

/* Page-locked host memory for entries to read, which layers know for ours. NULL: *error, message
 * set. The second is a `keep` of core_stream_send(). */
void *core_buffer_make(uint64_t bytes, int *error);
void core_buffer_free(void *buffer, const struct stars_logic_cqe *cqe);

/* callbacks */
int core_callback_subscribe(uint64_t thread, void *stream);
int core_callback_unsubscribe(uint64_t thread, void *stream);
int core_callback_launch(void (*fn)(void *arg), void *arg, bool block, void *stream);
int core_callback_launch_host(void (*fn)(void *arg), void *arg, void *stream);
/* Runs the next callback of the calling thread. timeout_ms of the host's time, -1: none. */
int core_callback_process(int32_t timeout_ms);

#endif
