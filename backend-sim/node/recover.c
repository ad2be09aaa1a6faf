/* SPDX-License-Identifier: Apache-2.0
 *
 * What dead members left: their holds, their names, their places in the table; and after one that
 * died with the lock in its hands, everything that is derived. Each step may be the last of this
 * process too: whoever comes next begins again.
 */
#include "node-private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- derived state ---- */

static void count_block(struct node *node, uint32_t id, void *arg)
{
	struct block_place place = block_at(node, id);
	struct memory *m = place.memory;

	(void)arg;
	for (uint32_t first = place.frame; first != NODE_NONE; first = m->extents[first].next)
		frames_mark(m, first, m->extents[first].count, true);
	if (place.record->closing && place.frame < m->usable)
		PUT(m->state->closing_frames, m->state->closing_frames + place.record->frames);
	if (place.record->share)
		PUT(node->control->share_count, node->control->share_count + 1);
	if (block_has_no_holder(place.record))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
}

void node_rebuild(struct node *node)
{
	PUT(node->control->share_count, 0);
	PUT(node->control->fd_kept, 0);
	pockets_rebuild(node);
	for (unsigned i = 0; i < SIM_NODE_MAX; i++) {
		if (!node->memory[i])
			continue;
		frames_reset(node->memory[i]);
		block_for_each(node, node->memory[i], count_block, NULL);
	}
	allow_rebuild(node);
}

/* ---- frames that read as zeros again ---- */

/* Through the mapping, not through the descriptor, which the program may have closed. */
static void clean_extent(const struct memory *m, uint32_t first, uint32_t count)
{
	unsigned char *start = m->base + (uint64_t)first * NODE_FRAME_BYTES;
	size_t bytes = (size_t)count * NODE_FRAME_BYTES;

	if (madvise(start, bytes, MADV_REMOVE) == 0)
		return;
	munlock(start, bytes); /* the program locks its memory (mlockall) */
	if (madvise(start, bytes, MADV_REMOVE) != 0)
		memset(start, 0, bytes);
}

void node_clean(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	const struct memory *m = place.memory;

	for (uint32_t first = place.frame; first != NODE_NONE; first = m->extents[first].next)
		clean_extent(m, first, m->extents[first].count);
}

/* ---- the dead ---- */

struct reaping {
	uint64_t dead[NODE_HOLDER_WORDS];
	uint32_t *
		orphans; /* blocks to clean: closing, and held by this process for the time being */
	size_t count, capacity;
};

static void add_orphan(struct reaping *reaping, uint32_t id)
{
	if (reaping->count == reaping->capacity) {
		reaping->capacity = reaping->capacity ? 2 * reaping->capacity : 64;
		reaping->orphans =
			realloc(reaping->orphans, reaping->capacity * sizeof(*reaping->orphans));
		if (!reaping->orphans)
			abort();
	}
	reaping->orphans[reaping->count++] = id;
}

static void reap_block(struct node *node, uint32_t id, void *arg)
{
	struct reaping *reaping = arg;
	struct block_record *record = block_at(node, id).record;
	uint64_t lost = 0, left = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++) {
		lost |= record->holders[w] & reaping->dead[w];
		left |= record->holders[w] & ~reaping->dead[w];
	}
	if (!lost)
		return;
	if (!left && record->fd && !record->closing && fd_is_open(node, id)) {
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
		left = 1;
	}
	if (!left && !__atomic_load_n(&record->touched, __ATOMIC_ACQUIRE)) {
		block_release(node, id);
		return;
	}
	if (!left) {
		block_close(node, id);
		PUT(record->holders[node->slot / 64],
		    record->holders[node->slot / 64] | holder_bit(node->slot));
		add_orphan(reaping, id);
	}
	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		if (record->holders[w] & reaping->dead[w])
			PUT(record->holders[w], record->holders[w] & ~reaping->dead[w]);
}

static bool find_dead(struct node *node, struct reaping *reaping)
{
	uint32_t limit = GET(node->control->member_limit);
	bool any = false;

	for (unsigned slot = 0; slot < limit; slot++)
		if (slot != node->slot && member_is_gone(node, slot)) {
			reaping->dead[slot / 64] |= holder_bit(slot);
			any = true;
		}
	return any;
}

static void free_dead(struct node *node, const struct reaping *reaping)
{
	for (unsigned slot = 0; slot < NODE_MEMBERS; slot++)
		if (reaping->dead[slot / 64] & holder_bit(slot))
			member_free(node, slot);
}

/* Lock held at entry and return. */
static void end_orphans(struct node *node, struct reaping *reaping)
{
	if (!reaping->count)
		return;
	node_unlock(node);
	for (size_t i = 0; i < reaping->count; i++)
		node_clean(node, reaping->orphans[i]);
	node_lock(node);
	for (size_t i = 0; i < reaping->count; i++)
		block_release(node, reaping->orphans[i]);
	free(reaping->orphans);
}

void node_recover(struct node *node)
{
	struct reaping reaping = { .count = 0 };

	if (!find_dead(node, &reaping))
		return;
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i])
			block_for_each(node, node->memory[i], reap_block, &reaping);
	names_reap(node, reaping.dead);
	free_dead(node, &reaping);
	end_orphans(node, &reaping);
}

/* ---- what only descriptors kept ---- */

static void sweep_block(struct node *node, uint32_t id, void *arg)
{
	struct block_record *record = block_at(node, id).record;

	if (!block_has_no_holder(record) || fd_is_open(node, id))
		return;
	if (node->control->fd_kept)
		PUT(node->control->fd_kept, node->control->fd_kept - 1);
	if (!__atomic_load_n(&record->touched, __ATOMIC_ACQUIRE)) {
		block_release(node, id);
		return;
	}
	block_close(node, id);
	PUT(record->holders[node->slot / 64],
	    record->holders[node->slot / 64] | holder_bit(node->slot));
	add_orphan(arg, id);
}

void node_sweep(struct node *node)
{
	struct reaping reaping = { .count = 0 };

	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i])
			block_for_each(node, node->memory[i], sweep_block, &reaping);
	end_orphans(node, &reaping);
}
