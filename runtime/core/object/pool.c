/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages slots for objects that programs hold handles to: slots, handles and generations. It does
 * not know what the slots contain. A handle looks like an address but is not one: it holds kind,
 * generation and slot.
 */
#include "core/object/pool.h"

#include "base/lock.h"

#include <stdlib.h>

#define INDEX_SHIFT      4
#define INDEX_BITS       18
#define GENERATION_SHIFT (INDEX_SHIFT + INDEX_BITS)
#define GENERATION_BITS  20
#define KIND_SHIFT       44

_Static_assert(CORE_POOL_CHUNK_SLOTS *CORE_POOL_CHUNKS <= 1u << INDEX_BITS, "indices fit");
_Static_assert(GENERATION_SHIFT + GENERATION_BITS <= KIND_SHIFT, "generations fit");

static struct core_slot *slot_at(struct core_pool *pool, uint32_t index)
{
	char *chunk = atomic_load_explicit(&pool->chunk[index / CORE_POOL_CHUNK_SLOTS],
					   memory_order_acquire);

	return chunk == NULL ? NULL
			     : (struct core_slot *)(chunk +
						    (index % CORE_POOL_CHUNK_SLOTS) * pool->bytes);
}

static struct core_slot *new_slot_locked(struct core_pool *pool)
{
	uint32_t index = pool->slots;
	struct core_slot *slot;

	if (index >= CORE_POOL_CHUNK_SLOTS * CORE_POOL_CHUNKS)
		return NULL;
	if (index % CORE_POOL_CHUNK_SLOTS == 0) {
		char *chunk = calloc(CORE_POOL_CHUNK_SLOTS, pool->bytes);

		if (chunk == NULL)
			return NULL;
		atomic_store_explicit(&pool->chunk[index / CORE_POOL_CHUNK_SLOTS], chunk,
				      memory_order_release);
	}
	slot = slot_at(pool, index);
	slot->index = index;
	if (pool->prepare != NULL)
		pool->prepare(slot);
	pool->slots++;
	return slot;
}

void *core_pool_take(struct core_pool *pool)
{
	struct core_slot *slot;
	LOCKED(&pool->lock);

	if (pool->free.stqh_last == NULL)
		STAILQ_INIT(&pool->free);
	slot = STAILQ_FIRST(&pool->free);
	if (slot != NULL)
		STAILQ_REMOVE_HEAD(&pool->free, link);
	else
		slot = new_slot_locked(pool);
	if (slot != NULL) {
		slot->generation++;
		atomic_store(&slot->ended, 0);
	}
	return slot;
}

void *core_pool_publish(struct core_pool *pool, void *object)
{
	struct core_slot *slot = object;
	uint64_t generation = slot->generation & ((1u << GENERATION_BITS) - 1);
	uint64_t handle = (uint64_t)pool->kind << KIND_SHIFT | generation << GENERATION_SHIFT |
			  (uint64_t)slot->index << INDEX_SHIFT;

	atomic_store_explicit(&slot->handle, handle, memory_order_release);
	return (void *)(uintptr_t)handle;
}

bool core_pool_hide(void *object, const void *handle)
{
	struct core_slot *slot = object;
	uint64_t value = (uint64_t)(uintptr_t)handle;

	if (value == 0 ||
	    !atomic_compare_exchange_strong_explicit(&slot->handle, &value, 0, memory_order_acq_rel,
						     memory_order_acquire))
		return false;
	atomic_store(&slot->ended, npu_stack_here());
	return true;
}

void core_pool_give(struct core_pool *pool, void *object)
{
	struct core_slot *slot = object;
	LOCKED(&pool->lock);

	STAILQ_INSERT_TAIL(&pool->free, slot, link);
}

/* The slot that a handle names, whoever has it now; or NULL. */
static struct core_slot *slot_of(struct core_pool *pool, uint64_t handle)
{
	uint32_t index = (uint32_t)(handle >> INDEX_SHIFT);

	return handle >> KIND_SHIFT != pool->kind
		       ? NULL
		       : slot_at(pool, index % (CORE_POOL_CHUNK_SLOTS * CORE_POOL_CHUNKS));
}

void *core_pool_find(struct core_pool *pool, const void *handle)
{
	uint64_t value = (uint64_t)(uintptr_t)handle;
	struct core_slot *slot = core_is_forked() ? NULL : slot_of(pool, value);

	return slot != NULL && atomic_load_explicit(&slot->handle, memory_order_acquire) == value
		       ? slot
		       : NULL;
}

int core_pool_missing(struct core_pool *pool, const void *handle, int code)
{
	uint64_t value = (uint64_t)(uintptr_t)handle;
	uint32_t life = value >> GENERATION_SHIFT & ((1u << GENERATION_BITS) - 1);
	const struct core_slot *slot = slot_of(pool, value);
	const char *how = "destroyed, or its device was reset, and another has its place since";
	npu_stack ended = 0;
	char *by;

	if (core_is_forked())
		return core_context_none();
	pthread_mutex_lock(&pool->lock);
	if (slot == NULL || life - 1 >= slot->generation)
		how = npu_text("not made by %s", pool->makers);
	else if (life == slot->generation) {
		how = "destroyed, or its device was reset (NPUSIM_STACKS=short says where)";
		ended = atomic_load(&slot->ended);
	}
	pthread_mutex_unlock(&pool->lock);
	by = npu_stack_words(ended);
	if (by != NULL)
		how = npu_text("destroyed by %s", by);
	free(by);
	return core_fail(code, "%s=%p is no %s of this process: it was %s", pool->name, handle,
			 pool->name, how);
}
