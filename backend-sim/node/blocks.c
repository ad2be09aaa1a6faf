/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and ends blocks, the physical allocations, and the views that a process has of them, and
 * says who holds how much when there is no room for a new one. frames.c chooses the frames.
 */
#include "records.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

#define CLOSING_WAIT_MS 10000 /* for frames that are being cleaned */
#define CLOSING_LOOK_MS 10    /* who cleans them may die of it */
#define TOP_HOLDERS     4

const char *server_text(const struct node *node, unsigned server)
{
	return node->shape.servers == 1 ? npu_text("node %s", node->name)
					: npu_text("server %u of supernode %s", server, node->name);
}

/* ---- the end of a block ---- */

void block_leave(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;

	if (record->closing) /* another thread is at it */
		return;
	if (place.frame < place.memory->usable)
		own_frames_sub(place.memory, record->frames);
	if (!holders_are_none_but(&place, node->slot)) {
		holders_set(&place, node->slot, false);
		return;
	}
	if (record->fd && block_fd_is_open(node, id)) {
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
		holders_set(&place, node->slot, false);
		return;
	}
	if (GET(record->touched)) {
		block_close(node, id);
		node_unlock(node);
		block_clean(node, id);
		node_lock(node);
	}
	block_release(node, id);
}

void node_block_drop(struct node *node, struct node_block *block)
{
	struct view_count *count;

	if (!block || (node_is_quiet(node) && frame_cache_put(node, block)))
		return;
	if (node_enter(node) != DRV_ERROR_NONE) {
		free(block);
		return;
	}
	count = &node->views[block->id];
	if (!block->imported && --count->own == 0 && count->views > 1) {
		/* What this process exported has only its own imports left here. */
		uint32_t share = block_at(node, block->id).record->share;

		if (share && share_is_mine(node, &node->shares[share - 1]))
			PUT(node->shares[share - 1].exporter_gone, 1);
	}
	if (--count->views == 0)
		block_leave(node, block->id);
	node_unlock(node);
	free(block);
}

void node_block_touch(struct node *node, const struct node_block *block)
{
	uint8_t *touched = &node->memory[block->memory]->blocks[block->extents[0].frame].touched;

	if (!node_is_forked(node) && !__atomic_load_n(touched, __ATOMIC_RELAXED))
		__atomic_store_n(touched, 1, __ATOMIC_RELEASE);
}

/* ---- views ---- */

drvError_t block_enter(struct node *node, const struct node_block *block, struct block_place *out)
{
	drvError_t error = node_enter(node);

	if (error != DRV_ERROR_NONE || block_find(node, block->id, block->generation, out))
		return error;
	node_unlock(node);
	return node_fail(DRV_ERROR_INVALID_HANDLE, "node %s: block %u is no block any more",
			 node->name, block->id);
}

struct node_block *block_view(struct node *node, uint32_t id, bool imported)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;
	struct node_block *block;
	unsigned n = 0;

	block = g_malloc0(sizeof(*block) + record->extent_count * sizeof(*block->extents));
	block->id = id;
	block->generation = record->generation;
	block->memory = place.memory->index;
	block->frames = record->frames;
	block->giant = record->giant;
	block->imported = imported;
	if (imported)
		block_unseen(node, &place);
	block->extent_count = record->extent_count;
	for (uint32_t first = place.frame; first != NODE_NONE;
	     first = place.memory->extents[first].next)
		block->extents[n++] =
			(struct node_extent){ .frame = first,
					      .count = place.memory->extents[first].count };
	if (!block_is_held_by(&place, node->slot)) {
		holders_set(&place, node->slot, true);
		if (place.frame < place.memory->usable)
			own_frames_add(place.memory, record->frames);
	}
	node->views[id].views++;
	node->views[id].own += !imported;
	return block;
}

/* ---- the beginning of a block ---- */

/* The frames are taken; from the store of the bit in `live` on they are the block's. */
static struct node_block *write_block(struct node *node, struct memory *m,
				      const struct extent_chain *chain, uint32_t frames, bool giant,
				      const char *tag)
{
	uint32_t first = chain->first;
	struct block_record *record = &m->blocks[first];
	struct node_block *block;

	node_step();
	*record = (struct block_record){
		.generation = record->generation + 1,
		.frames = frames,
		.extent_count = chain->count,
		.giant = giant,
		.touched = first >= m->usable, /* page tables are written at once */
	};
	node_step();
	snprintf(record->tag, sizeof(record->tag), "%s", tag ? tag : "");
	block = block_view(node, m->id_base + first, false);
	PUT(m->live[first / 64], m->live[first / 64] | UINT64_C(1) << (first % 64));
	return block;
}

/* ---- no room ---- */

struct holdings {
	struct memory *memory;
	uint64_t frames[NODE_MEMBERS];
};

static void add_holding(struct node *node, uint32_t id, void *arg)
{
	struct holdings *holdings = arg;
	struct block_place place = block_at(node, id);

	if (place.memory != holdings->memory || place.frame >= place.memory->usable)
		return;
	for (unsigned slot = 0; slot < node->control->member_limit; slot++)
		if (block_is_held_by(&place, slot))
			holdings->frames[slot] += place.record->frames;
}

/* "process 12 (python3) holds 40960 MiB, process 13 (python3) 2 MiB" */
static char *holders_text(struct node *node, struct memory *m)
{
	g_autofree struct holdings *holdings = g_new0(struct holdings, 1);
	GString *text = g_string_new(NULL);

	holdings->memory = m;
	block_for_each(node, add_holding, holdings);
	for (unsigned n = 0; n < TOP_HOLDERS; n++) {
		unsigned top = 0;

		for (unsigned slot = 1; slot < NODE_MEMBERS; slot++)
			top = holdings->frames[slot] > holdings->frames[top] ? slot : top;
		if (!holdings->frames[top])
			break;
		g_string_append_printf(text, "%sprocess %d (%s) %s%llu MiB", n ? ", " : "",
				       node->control->members[top].pid,
				       node->control->members[top].command, n ? "" : "holds ",
				       (unsigned long long)holdings->frames[top] * 2);
		holdings->frames[top] = 0;
	}
	return g_string_free(text->len ? text : g_string_assign(text, "nothing is held"), FALSE);
}

static const char *memory_text(const struct node *node, unsigned memory)
{
	const char *server = server_text(node, node->memory[memory]->server);

	return memory == SIM_NODE_HOST ? npu_text("the host's pool of %s", server)
				       : npu_text("device %u of %s", memory, server);
}

/* Lock held; lets it go. */
static drvError_t no_room(struct node *node, struct memory *m, uint64_t frames, bool giant)
{
	unsigned long long free_mib = m->state->free_frames * 2,
			   total_mib = (uint64_t)m->usable * 2;
	unsigned giants = m->state->free_giants;
	g_autofree char *holders = holders_text(node, m);
	const char *where = memory_text(node, m->index);

	node_unlock(node);
	if (giant)
		return node_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "out of memory: %s: %llu pages of 1 GiB are asked for, and %u are "
				 "free (%llu MiB of %llu MiB are free, but a 1 GiB page needs a "
				 "whole, aligned GiB); %s",
				 where, (unsigned long long)frames / NODE_GIANT_FRAMES, giants,
				 free_mib, total_mib, holders);
	return node_fail(DRV_ERROR_OUT_OF_MEMORY,
			 "out of memory: %s: %llu MiB are asked for, and %llu MiB of %llu MiB are "
			 "free; %s",
			 where, (unsigned long long)frames * 2, free_mib, total_mib, holders);
}

/* ---- creating ---- */

static inline bool fits(const struct memory *m, uint64_t frames, bool giant)
{
	return giant ? frames / NODE_GIANT_FRAMES <= m->state->free_giants
		     : frames <= m->state->free_frames;
}

static drvError_t check_request(const struct node *node, unsigned memory, uint64_t frames,
				bool giant)
{
	if (memory >= SIM_NODE_MAX || !node->memory[memory])
		return node_fail(DRV_ERROR_INVALID_DEVICE,
				 "node %s has no memory %u: it has %u devices", node->name, memory,
				 node->shape.devices);
	if (frames == 0 || (giant && frames % NODE_GIANT_FRAMES))
		return node_fail(DRV_ERROR_INVALID_VALUE,
				 "node %s: %llu frames%s cannot be one block", node->name,
				 (unsigned long long)frames, giant ? " of 1 GiB pages" : "");
	return DRV_ERROR_NONE;
}

/* Waits, the lock not held, until frames have been cleaned, if some are; a dead process is not
 * waited for but taken over. */
static drvError_t wait_for_closing(struct node *node, const struct memory *m)
{
	const struct timespec timeout = { .tv_nsec = CLOSING_LOOK_MS * 1000000 };
	uint32_t *wanted = &node->control->frames_wanted;
	bool waits = m->state->closing_frames != 0;

	if (waits)
		PUT(*wanted, 1);
	node_unlock(node);
	pthread_testcancel();
	if (waits)
		syscall(SYS_futex, wanted, FUTEX_WAIT, 1, &timeout, NULL, 0);
	return node_enter(node);
}

/* Lock held. What is free in truth becomes so: this process's cache; where that does not do, all
 * that others do not use. */
static void make_room(struct node *node, const struct memory *m, uint64_t frames, bool giant)
{
	frame_cache_empty(node, node->slot);
	if (!fits(m, frames, giant))
		frame_caches_empty(node);
	if (!fits(m, frames, giant) && node->control->fd_kept)
		node_sweep(node);
}

drvError_t node_block_create(struct node *node, unsigned memory, uint64_t frames, bool giant,
			     const char *tag, struct node_block **out)
{
	drvError_t error = check_request(node, memory, frames, giant);
	struct extent_chain chain;
	struct memory *m;
	int64_t end = 0;

	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	if (node_is_quiet(node) && (*out = frame_cache_take(node, memory, frames, giant, tag)))
		return DRV_ERROR_NONE;
	error = node_enter(node);
	if (error == DRV_ERROR_NONE) {
		frames_ready(m);
		make_room(node, m, frames, giant);
	}
	while (error == DRV_ERROR_NONE && !fits(m, frames, giant)) {
		if (end && (!m->state->closing_frames || clock_ms() >= end))
			return no_room(node, m, frames, giant);
		if (!end)
			member_check_all(node);
		end = end ? end : clock_ms() + CLOSING_WAIT_MS;
		error = wait_for_closing(node, m);
		if (error == DRV_ERROR_NONE)
			make_room(node, m, frames, giant);
	}
	if (error != DRV_ERROR_NONE)
		return error;
	chain = frames_take(m, (uint32_t)frames, giant);
	*out = write_block(node, m, &chain, (uint32_t)frames, giant, tag);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_table_frame(struct node *node, unsigned memory, struct node_block **out)
{
	drvError_t error = check_request(node, memory, 1, false);
	struct extent_chain chain;
	struct memory *m;

	error = error ?: node_enter(node);
	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	frames_ready(m);
	chain = frames_take_reserved(m);
	if (!chain.count) {
		node_unlock(node);
		return node_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "out of memory: %s: the part that is kept for page tables (%u "
				 "frames of 2 MiB) is full",
				 memory_text(node, memory), m->frames - m->usable);
	}
	*out = write_block(node, m, &chain, 1, false, "page tables");
	node_unlock(node);
	return DRV_ERROR_NONE;
}

uint64_t node_own_peak(struct node *node, unsigned memory)
{
	return __atomic_load_n(&node->memory[memory]->own_peak_frames, __ATOMIC_RELAXED);
}

void node_usage(struct node *node, unsigned memory, struct node_usage *out)
{
	struct memory *m = memory < SIM_MEMORY_MAX ? node->memory[memory] : NULL;

	*out = (struct node_usage){ .total_frames = m ? m->usable : 0 };
	if (!m || node_enter(node) != DRV_ERROR_NONE)
		return;
	if (!GET(m->state->used)) {
		out->free_frames = out->largest_free_run = m->usable;
		out->free_giants = m->usable / NODE_GIANT_FRAMES;
		node_unlock(node);
		return;
	}
	frame_caches_empty(node);
	if (node->control->fd_kept)
		node_sweep(node);
	out->free_frames = m->state->free_frames + m->state->closing_frames;
	out->own_frames = __atomic_load_n(&m->own_frames, __ATOMIC_RELAXED);
	out->own_peak_frames = node_own_peak(node, memory);
	out->free_giants = m->state->free_giants;
	out->largest_free_run = frames_largest_run(m);
	node_unlock(node);
}
