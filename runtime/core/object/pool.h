/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides type-stable objects behind handles. A handle names slot and generation, so a stale one
 * can be distinguished from the slot's next user. Slots are never returned to the system: a thread
 * that still holds a pointer when another destroys the object finds a dead object, not freed
 * memory.
 */
#ifndef NPUSIM_CORE_POOL_H
#define NPUSIM_CORE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/stack.h"
#include "core/core.h"

struct core_slot {
	_Atomic uint64_t handle; /* 0 while nobody may find it */
	uint32_t index, generation;
	_Atomic npu_stack ended;         /* where it was hidden last */
	STAILQ_ENTRY(core_slot) link;    /* of free ones */
	struct context *_Atomic context; /* of a stream or an event: context.h */
	LIST_ENTRY(core_slot) sibling;
};

LIST_HEAD(core_owned, core_slot); /* what contexts own; core_lists_lock */

#define CORE_POOL_CHUNK_SLOTS 64u
#define CORE_POOL_CHUNKS      2048u

struct core_pool {
	uint8_t kind;                  /* 1 .. 7, unlike other pools' */
	const char *name, *makers;     /* for messages: "event", what makes it */
	size_t bytes;                  /* of an object; a struct core_slot is its first member */
	void (*prepare)(void *object); /* once a slot: locks and the like */
	pthread_mutex_t lock;
	_Atomic(char *) chunk[CORE_POOL_CHUNKS];
	uint32_t slots;
	STAILQ_HEAD(core_slots, core_slot) free;
	atomic_uint live[CORE_DEVICE_MAX]; /* how many are in lists; core_lists_lock */
};
#define CORE_POOL(kind_, name_, makers_, type_, prepare_)                                      \
	{                                                                                      \
		.kind = (kind_), .name = (name_), .makers = (makers_), .bytes = sizeof(type_), \
		.prepare = (prepare_), .lock = PTHREAD_MUTEX_INITIALIZER                       \
	}
/* An object that nobody finds yet; its contents are those of its last life. NULL: none left. */
void *core_pool_take(struct core_pool *pool);
/* From now on core_pool_find() answers the object for its handle. */
void *core_pool_publish(struct core_pool *pool, void *object);
/* From now on it does not. False if it did not before, or if the slot has another handle, and so
 * another owner, since: of several callers that name one handle one gets true. */
bool core_pool_hide(void *object, const void *handle);
/* Ends the object's life; it must be hidden. */
void core_pool_give(struct core_pool *pool, void *object);
void *core_pool_find(struct core_pool *pool, const void *handle);
/* Fails with `code`, and says why it does not find the handle: it was destroyed, or never made. */
int core_pool_missing(struct core_pool *pool, const void *handle, int code);
static inline void *core_slot_handle(const void *object)
{
	return (void *)(uintptr_t)atomic_load_explicit(&((const struct core_slot *)object)->handle,
						       memory_order_acquire);
}

#endif
