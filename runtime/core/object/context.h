/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts as objects, and which is current in each thread.
 */
#ifndef NPUSIM_CORE_CONTEXT_H
#define NPUSIM_CORE_CONTEXT_H

#include <sys/queue.h>

#include "core/core.h"
#include "core/object/pool.h"

struct event;

struct context {
	struct core_slot slot;
	struct core_context face;       /* what core.h shows of it */
	_Atomic(void *) default_stream; /* handle; made at first use */
	LIST_HEAD(, event) events;      /* core_lists_lock */
};
extern struct core_pool core_contexts;

/* A new, published context on an open device whose count of users the caller has raised. */
struct context *core_context_make(int32_t user, uint32_t logic, bool primary);
/* The calling thread's current context is the primary one of the device, whichever that is at each
 * call; < 0: none. */
void core_context_follow(int64_t logic);
struct context *core_context_of(const struct core_context *face);
/* core_context_peek(), with the handle by which it was found. Another thread may end it at any
 * time: who makes something of it compares, under core_lists_lock, that handle with the slot's, for
 * the slot may have none, or that of its next user. */
struct context *core_context_look(void **out_handle);

/* 107002, message: no context of this process has the handle. */
int core_context_no_such(const void *handle, const char *call);
/* If it was the thread's current one, none is. */
void core_context_leave(const void *handle);

#endif
