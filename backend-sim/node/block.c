/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks: physical allocations, who holds them, and what is said when there is no room for one.
 * Which frames are free is known by node-frames.c.
 */
#include "node-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSING_WAIT_ROUNDS 50000 /* of 200 us: for frames that are being cleaned */
#define TOP_HOLDERS         4

/* ---- finding blocks ---- */

struct block_place block_at(const struct node *node, uint32_t id)
{
	struct block_place place = { .memory = NULL };

	for (unsigned i = 0; i < SIM_NODE_MAX; i++) {
		struct memory *m = node->memory[i];

		if (m && id - m->id_base < m->frames) {
			place.memory = m;
			place.frame = id - m->id_base;
			place.record = &m->blocks[place.frame];
			break;
		}
	}
	return place;
}

static inline bool is_live(const struct memory *m, uint32_t frame)
{
	return m->live[frame / 64] >> (frame % 64) & 1;
}

bool block_find(const struct node *node, uint32_t id, uint32_t generation, struct block_place *out)
{
	if (id >= node->id_count)
		return false;
	*out = block_at(node, id);
	return is_live(out->memory, out->frame) && GET(out->record->generation) == generation;
}

void block_for_each(struct node *node, struct memory *m,
		    void (*each)(struct node *node, uint32_t id, void *arg), void *arg)
{
	for (uint32_t word = 0; word < (m->frames + 63) / 64; word++)
		for (uint64_t seen = 0, bits; (bits = m->live[word] & ~seen);) {
			unsigned bit = (unsigned)__builtin_ctzll(bits);

			seen |= (UINT64_C(1) << bit) | ((UINT64_C(1) << bit) - 1);
			each(node, m->id_base + word * 64 + bit, arg);
		}
}

/* ---- the end of a block ---- */

void block_release(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct memory *m = place.memory;
	uint32_t chain = share_end(node, place.record), first = place.frame;
	uint64_t *word = &m->live[first / 64];

	PUT(*word,
	    *word & ~(UINT64_C(1) << (first % 64))); /* here it ends; what follows is derived */
	if (place.record->closing && first < m->usable)
		PUT(m->state->closing_frames, m->state->closing_frames - place.record->frames);
	for (; first != NODE_NONE; first = m->extents[first].next)
		frames_mark(m, first, m->extents[first].count, false);
	if (place.record->share)
		PUT(node->control->share_count, node->control->share_count - 1);
	allow_give_back(node, chain);
}

void block_close(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct memory_state *state = place.memory->state;

	if (place.record->closing)
		return;
	PUT(place.record->closing, 1);
	if (place.frame < place.memory->usable)
		PUT(state->closing_frames, state->closing_frames + place.record->frames);
}

static bool others_hold(const struct block_record *record, unsigned slot)
{
	uint64_t others = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		others |= record->holders[w] & ~(w == slot / 64 ? holder_bit(slot) : 0);
	return others != 0;
}

void own_frames_add(struct memory *m, uint64_t frames)
{
	uint64_t now = __atomic_add_fetch(&m->own_frames, frames, __ATOMIC_RELAXED);
	uint64_t peak = __atomic_load_n(&m->own_peak_frames, __ATOMIC_RELAXED);

	while (now > peak && !__atomic_compare_exchange_n(&m->own_peak_frames, &peak, now, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

void own_frames_sub(struct memory *m, uint64_t frames)
{
	__atomic_sub_fetch(&m->own_frames, frames, __ATOMIC_RELAXED);
}

void block_leave(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;
	uint64_t *word = &record->holders[node->slot / 64];

	if (record->closing) /* another thread is at it */
		return;
	if (place.frame < place.memory->usable)
		own_frames_sub(place.memory, record->frames);
	if (others_hold(record, node->slot)) {
		PUT(*word, *word & ~holder_bit(node->slot));
		return;
	}
	if (record->fd && fd_is_open(node, id)) {
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
		PUT(*word, *word & ~holder_bit(node->slot));
		return;
	}
	if (__atomic_load_n(&record->touched, __ATOMIC_ACQUIRE)) {
		block_close(node, id);
		node_unlock(node);
		node_clean(node, id);
		node_lock(node);
	}
	block_release(node, id);
}

void node_block_drop(struct node *node, struct node_block *block)
{
	struct view_count *count;

	if (!block || (node_is_quiet(node) && pocket_put(node, block)))
		return;
	if (node_enter(node) != DRV_ERROR_NONE) {
		free(block);
		return;
	}
	count = &node->views[block->id];
	if (!block->imported && --count->own == 0 && count->views > 1)
		share_exporter_gone(node, block_at(node, block->id).record);
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

struct node_block *block_view(struct node *node, uint32_t id, bool imported)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;
	struct node_block *block;
	unsigned n = 0;

	block = node_alloc(sizeof(*block) + record->extent_count * sizeof(*block->extents));
	block->id = id;
	block->generation = record->generation;
	block->memory = place.memory->index;
	block->frames = record->frames;
	block->giant = record->giant;
	block->imported = imported;
	block->extent_count = record->extent_count;
	for (uint32_t first = place.frame; first != NODE_NONE;
	     first = place.memory->extents[first].next)
		block->extents[n++] =
			(struct node_extent){ .frame = first,
					      .count = place.memory->extents[first].count };
	if (!block_is_held_by(record, node->slot)) {
		uint64_t *word = &record->holders[node->slot / 64];

		PUT(*word, *word | holder_bit(node->slot));
		if (place.frame < place.memory->usable)
			own_frames_add(place.memory, record->frames);
	}
	node->views[id].views++;
	node->views[id].own += !imported;
	return block;
}

/* ---- the beginning of a block ---- */

static void write_extents(struct memory *m, const struct extent_list *list)
{
	for (unsigned i = 0; i < list->count; i++) {
		struct extent_record *record = &m->extents[list->extents[i].frame];

		PUT(record->count, (uint32_t)list->extents[i].count);
		PUT(record->next,
		    i + 1 < list->count ? (uint32_t)list->extents[i + 1].frame : NODE_NONE);
	}
}

/* The frames are taken; from the store of the bit in `live` on they are the block's. */
static struct node_block *write_block(struct node *node, struct memory *m,
				      const struct extent_list *list, uint32_t frames, bool giant,
				      const char *tag)
{
	uint32_t first = (uint32_t)list->extents[0].frame;
	struct block_record *record = &m->blocks[first];
	struct node_block *block;

	write_extents(m, list);
	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		PUT(record->holders[w], 0);
	PUT(record->generation, record->generation + 1);
	PUT(record->frames, frames);
	PUT(record->extent_count, list->count);
	PUT(record->share, 0);
	PUT(record->giant, giant);
	PUT(record->touched, first >= m->usable); /* page tables are written at once */
	PUT(record->closing, 0);
	PUT(record->fd, 0);
	PUT(record->named, 0);
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

	for (unsigned slot = 0; slot < NODE_MEMBERS && place.frame < place.memory->usable; slot++)
		if (block_is_held_by(place.record, slot))
			holdings->frames[slot] += place.record->frames;
}

/* "process 12 (python3) holds 40960 MiB, process 13 (python3) 2 MiB" */
static void describe_holders(struct node *node, struct memory *m, char *out, size_t size)
{
	struct holdings *holdings = node_alloc(sizeof(*holdings));
	size_t at = 0;

	block_for_each(node, m, add_holding, holdings);
	out[0] = '\0';
	for (unsigned n = 0; n < TOP_HOLDERS && at < size; n++) {
		unsigned top = 0;

		for (unsigned slot = 1; slot < NODE_MEMBERS; slot++)
			top = holdings->frames[slot] > holdings->frames[top] ? slot : top;
		if (!holdings->frames[top])
			break;
		at += (size_t)snprintf(out + at, size - at, "%sprocess %d (%s) %s%llu MiB",
				       n ? ", " : "", node->control->members[top].pid,
				       node->control->members[top].command, n ? "" : "holds ",
				       (unsigned long long)holdings->frames[top] * 2);
		holdings->frames[top] = 0;
	}
	free(holdings);
}

static void memory_text(const struct node *node, unsigned memory, char out[96])
{
	if (memory == SIM_NODE_HOST)
		snprintf(out, 96, "the host's pool of node %s", node->name);
	else
		snprintf(out, 96, "device %u of node %s", memory, node->name);
}

/* Lock held; lets it go. */
static drvError_t no_room(struct node *node, struct memory *m, uint64_t frames, bool giant)
{
	unsigned long long free_mib = m->state->free_frames * 2,
			   total_mib = (uint64_t)m->usable * 2;
	unsigned giants = m->state->free_giants;
	char holders[1024], where[96];

	describe_holders(node, m, holders, sizeof(holders));
	node_unlock(node);
	memory_text(node, m->index, where);
	if (giant)
		npu_message_set("out of memory: %s: %llu pages of 1 GiB are asked for, and %u are "
				"free (%llu MiB of %llu MiB are "
				"free, but a 1 GiB page needs a whole, aligned GiB); %s",
				where, (unsigned long long)frames / NODE_GIANT_FRAMES, giants,
				free_mib, total_mib, holders[0] ? holders : "nothing is held");
	else
		npu_message_set("out of memory: %s: %llu MiB are asked for, and %llu MiB of %llu "
				"MiB are free; %s",
				where, (unsigned long long)frames * 2, free_mib, total_mib,
				holders[0] ? holders : "nothing is held");
	return DRV_ERROR_OUT_OF_MEMORY;
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
	if (memory >= SIM_NODE_MAX || !node->memory[memory]) {
		npu_message_set("node %s has no memory %u: it has %u devices", node->name, memory,
				node->shape.devices);
		return DRV_ERROR_INVALID_DEVICE;
	}
	if (frames == 0 || (giant && frames % NODE_GIANT_FRAMES)) {
		npu_message_set("node %s: %llu frames%s cannot be one block", node->name,
				(unsigned long long)frames, giant ? " of 1 GiB pages" : "");
		return DRV_ERROR_INVALID_VALUE;
	}
	return DRV_ERROR_NONE;
}

/* Waits, the lock not held, for a process that is cleaning frames; dead ones are not waited for but
 * taken over. */
static drvError_t wait_for_closing(struct node *node)
{
	const struct timespec pause = { .tv_nsec = 200000 };

	node_unlock(node);
	nanosleep(&pause, NULL);
	return node_enter(node);
}

/* Lock held. What is free in truth becomes so: this process's pocket; where that does not do, all
 * that others do not use. */
static void make_room(struct node *node, const struct memory *m, uint64_t frames, bool giant)
{
	pocket_empty(node, node->slot);
	if (!fits(m, frames, giant))
		pockets_empty(node);
	if (!fits(m, frames, giant) && node->control->fd_kept)
		node_sweep(node);
}

drvError_t node_block_create(struct node *node, unsigned memory, uint64_t frames, bool giant,
			     const char *tag, struct node_block **out)
{
	drvError_t error = check_request(node, memory, frames, giant);
	struct extent_list list;
	struct memory *m;

	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	if (node_is_quiet(node) && (*out = pocket_take(node, memory, frames, giant, tag)))
		return DRV_ERROR_NONE;
	error = node_enter(node);
	if (error == DRV_ERROR_NONE)
		make_room(node, m, frames, giant);
	for (unsigned round = 0; error == DRV_ERROR_NONE && !fits(m, frames, giant); round++) {
		if (round == 0)
			member_check_all(node);
		else if (!m->state->closing_frames || round == CLOSING_WAIT_ROUNDS)
			return no_room(node, m, frames, giant);
		error = wait_for_closing(node);
		if (error == DRV_ERROR_NONE)
			make_room(node, m, frames, giant);
	}
	if (error != DRV_ERROR_NONE)
		return error;
	extent_list_init(&list);
	frames_take(m, (uint32_t)frames, giant, &list);
	*out = write_block(node, m, &list, (uint32_t)frames, giant, tag);
	node_unlock(node);
	extent_list_end(&list);
	return DRV_ERROR_NONE;
}

drvError_t node_table_frame(struct node *node, unsigned memory, struct node_block **out)
{
	drvError_t error = check_request(node, memory, 1, false);
	struct extent_list list;
	struct memory *m;
	uint32_t frame;
	char where[96];

	if (error == DRV_ERROR_NONE)
		error = node_enter(node);
	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	frame = frames_take_reserved(m);
	if (frame == NODE_NONE) {
		node_unlock(node);
		memory_text(node, memory, where);
		npu_message_set("out of memory: %s: the part that is kept for page tables (%u "
				"frames of 2 MiB) is full",
				where, m->frames - m->usable);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	extent_list_init(&list);
	list.extents[list.count++] = (struct node_extent){ .frame = frame, .count = 1 };
	*out = write_block(node, m, &list, 1, false, "page tables");
	node_unlock(node);
	return DRV_ERROR_NONE;
}

void node_usage(struct node *node, unsigned memory, struct node_usage *out)
{
	struct memory *m = memory < SIM_NODE_MAX ? node->memory[memory] : NULL;

	*out = (struct node_usage){ .total_frames = m ? m->usable : 0 };
	if (!m || node_enter(node) != DRV_ERROR_NONE)
		return;
	pockets_empty(node);
	if (node->control->fd_kept)
		node_sweep(node);
	out->free_frames = m->state->free_frames + m->state->closing_frames;
	out->own_frames = __atomic_load_n(&m->own_frames, __ATOMIC_RELAXED);
	out->own_peak_frames = __atomic_load_n(&m->own_peak_frames, __ATOMIC_RELAXED);
	out->free_giants = m->state->free_giants;
	out->largest_free_run = frames_largest_run(m);
	node_unlock(node);
}
