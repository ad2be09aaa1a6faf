/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts as objects, which is current in each thread, and the devices that they keep open.
 */
#ifndef NPUSIM_CORE_CONTEXT_H
#define NPUSIM_CORE_CONTEXT_H

#include "core/core.h"
#include "core/object/pool.h"
#include "core/object/process.h"

struct context {
	struct core_slot slot;
	struct core_context face;       /* what core.h shows of it */
	_Atomic(void *) default_stream; /* handle; made at first use */
	struct core_owned events;
	atomic_bool stops;  /* on failures: a stream of it does */
	atomic_int failure; /* of the task that has stopped it; CORE_OK: none has */
};
extern struct core_pool core_contexts;

/* A new, published context on an open device whose count of users the caller has raised. */
struct context *core_context_make(int32_t user, uint32_t logic, bool primary);
/* The calling thread's current context is the primary one of the device, whichever that is at each
 * call; < 0: none. */
void core_context_follow(int64_t logic);
struct context *core_context_of(const struct core_context *face);
/* The failure that has stopped the context, with a message: its streams take no more work, and what
 * waits for them or asks is answered this. */
int core_context_stopped(const struct context *context);
/* core_context_peek(), with the handle by which it was found. Another thread may end it at any
 * time: who makes something of it compares, under core_lists_lock, that handle with the slot's, for
 * the slot may have none, or that of its next user. */
struct context *core_context_look(void **out_handle);

/* If it was the thread's current one, none is. */
void core_context_leave(const void *handle);

/* ---- streams and events: they end with their context ---- */

/* Those of a device that are live. */
unsigned core_owned_live(const struct core_pool *pool, uint32_t device);
/* Puts an object into the list that has those of its slot's context; from now on it is found, by
 * the handle that is answered, and that *also has (may be NULL). NULL: its context, by that handle,
 * has ended, and nobody would end the object. */
void *core_owned_link(struct core_pool *pool, struct core_owned *list, void *object,
		      const void *context, _Atomic(void *) *also);
void core_owned_unlink(struct core_pool *pool, void *object);
/* Hides an object of the context, for the caller to end; waits while there are only such that
 * others are ending. NULL: none is left. */
void *core_owned_take(const struct core_owned *list, const struct context *context);

/* ---- devices: open while they have users, their primary context and each context of
 * aclrtCreateContext ---- */

struct device {
	unsigned users;          /* contexts; core_setup_lock */
	atomic_bool kept;        /* core_device_keep() is a user, too; set under core_setup_lock */
	unsigned set;            /* aclrtSetDevice less aclrtResetDevice; core_setup_lock */
	_Atomic(void *) primary; /* handle of its primary context */
};
extern struct device core_devices[CORE_DEVICE_MAX];

/* One more, one less user of a device: opens it at the first, closes it at the last.
 * core_setup_lock is held. */
int core_device_hold_locked(uint32_t logic);
void core_device_drop_locked(uint32_t logic);
/* The same, with the lock. */
void core_device_drop(uint32_t logic);
/* The handle of the device's primary context, or NULL. Any thread. */
void *core_device_primary(uint32_t logic);

#endif
