/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks, the physical allocations, by their records: creates, finds, ends and cleans them, keeps
 * the views that a process has of them, and says who holds how much when there is no room for a new
 * one; and builds anew what is derived from these records, for who creates a node or takes the lock
 * of a dead member over. frames.c chooses the frames.
 */
#include "records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOSING_WAIT_MS 10000 /* for frames that are being cleaned */
#define CLOSING_LOOK_MS 10    /* who cleans them may die of it */
#define TOP_HOLDERS     4

/* ---- finding ---- */

struct block_place block_at(const struct node *node, uint32_t id)
{
	uint32_t of_server = node->id_count / node->shape.servers, server = id / of_server;
	uint32_t device = id % of_server / node->memories->frames;
	struct memory *m = &node->memories[server * SIM_NODE_MAX +
					   (device < node->shape.devices ? device : SIM_NODE_HOST)];

	return (struct block_place){ m, id - m->id_base, &m->blocks[id - m->id_base] };
}

bool block_find(const struct node *node, uint32_t id, uint32_t generation, struct block_place *out)
{
	if (id >= node->id_count)
		return false;
	*out = block_at(node, id);
	return (out->memory->live[out->frame / 64] >> (out->frame % 64) & 1) &&
	       GET(out->record->generation) == generation;
}

bool block_next(const struct node *node, uint32_t *id, struct block_place *out)
{
	for (++*id; *id < node->id_count;) {
		const struct memory *m;
		uint32_t frame;

		*out = block_at(node, *id);
		m = out->memory;
		frame = GET(m->state->used) ? bits_next(m->live, out->frame, m->frames, 0)
					    : m->frames;
		*id = m->id_base + frame;
		if (frame < m->frames) {
			*out = block_at(node, *id);
			return true;
		}
	}
	return false;
}

/* ---- holders ---- */

void holders_set(const struct block_place *place, unsigned slot, bool held)
{
	uint64_t *word = &place->record->holders[slot / 64];

	PUT(*word, held ? *word | holder_bit(slot) : *word & ~holder_bit(slot));
}

bool holders_are_none_but(const struct block_place *place, unsigned slot)
{
	uint64_t others = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		others |= place->record->holders[w] &
			  ~(slot != NODE_NONE && w == slot / 64 ? holder_bit(slot) : 0);
	return others == 0;
}

/* ---- the end of a block ---- */

/* Through the file: some that translate system calls (qemu-user) say that MADV_REMOVE is done, and
 * do nothing. Through the mapping where the program has closed the file. */
static void clean(const struct node *node, const struct memory *m, uint64_t at, uint64_t bytes)
{
	unsigned char *start = m->base + at;

	if (own_file_is_open(&node->file) &&
	    fallocate(node->file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(m->file_offset + at), (off_t)bytes) == 0)
		return;
	munlock(start, bytes); /* the program may lock its memory (mlockall) */
	if (madvise(start, bytes, MADV_REMOVE) != 0)
		memset(start, 0, bytes);
}

static void clean_block(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct memory *m = place.memory;

	if (!m->base && !memory_open(node, m))
		return; /* nobody has it any more */
	for (uint32_t first = place.frame; first != NODE_NONE; first = m->extents[first].next) {
		uint64_t at = first * NODE_FRAME_BYTES;
		uint64_t bytes = m->extents[first].count * NODE_FRAME_BYTES;

		clean(node, m, at, bytes);
		if (GET(node->control->told))
			clean(node, m, m->bytes + written_bytes(at), written_bytes(bytes));
	}
}

void block_release(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct control *control = node->control;
	struct memory *m = place.memory;
	uint32_t share = place.record->share, first = place.frame;
	uint64_t *word = &m->live[first / 64];

	PUT(*word,
	    *word & ~(UINT64_C(1) << (first % 64))); /* here it ends; what follows is derived */
	if (place.record->closing && first < m->usable)
		PUT(m->state->closing_frames, m->state->closing_frames - place.record->frames);
	for (; first != NODE_NONE; first = m->extents[first].next)
		frames_mark(m, first, m->extents[first].count, false);
	if (share)
		share_end(node, &node->shares[share - 1]);
	if (place.record->closing && control->frames_wanted) {
		PUT(control->frames_wanted, 0);
		syscall(SYS_futex, &control->frames_wanted, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
}

bool block_close(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct memory_state *state = place.memory->state;

	if (!(GET(place.record->touched) & BLOCK_WRITTEN)) {
		block_release(node, id);
		return false;
	}
	if (place.record->closing)
		return true;
	PUT(place.record->closing, 1);
	if (place.frame < place.memory->usable)
		PUT(state->closing_frames, state->closing_frames + place.record->frames);
	return true;
}

void block_end(struct node *node, uint32_t id)
{
	clean_block(node, id);
	node_lock(node);
	block_release(node, id);
	node_unlock(node);
}

/* ---- descriptors, shares ---- */

struct flock block_fd_lock(uint32_t id, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = NODE_FD_BASE + id, .l_len = 1
	};
}

bool block_fd_is_open(const struct node *node, uint32_t id)
{
	struct flock lock = block_fd_lock(id, F_WRLCK);

	return !own_file_is_open(&node->file) || fcntl(node->file.fd, F_OFD_GETLK, &lock) != 0 ||
	       lock.l_type != F_UNLCK;
}

bool share_is_live(const struct node *node, uint32_t index, struct block_place *out)
{
	const struct share_record *share = &node->shares[index];

	return share->named || (block_find(node, share->block, share->block_generation, out) &&
				out->record->share == index + 1);
}

bool share_is_mine(const struct node *node, const struct share_record *share)
{
	return share->exporter == node->slot && share->exporter_generation == node->generation;
}

void share_end(struct node *node, struct share_record *share)
{
	PUT(share->named, 0); /* here it ends, if not with its block; what follows is derived */
	PUT(node->control->share_count, node->control->share_count - 1);
}

/* ---- this process's account ---- */

void own_frames_add(struct memory *m, int64_t frames)
{
	uint64_t now = __atomic_add_fetch(&m->own_frames, (uint64_t)frames, __ATOMIC_RELAXED);
	uint64_t peak = __atomic_load_n(&m->own_peak_frames, __ATOMIC_RELAXED);

	while (now > peak && !__atomic_compare_exchange_n(&m->own_peak_frames, &peak, now, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

/* ---- derived state ---- */

static void count_block(struct node *node, const struct block_place *place)
{
	struct memory *m = place->memory;

	for (uint32_t first = place->frame; first != NODE_NONE; first = m->extents[first].next)
		frames_mark(m, first, m->extents[first].count, true);
	if (place->record->closing && place->frame < m->usable)
		PUT(m->state->closing_frames, m->state->closing_frames + place->record->frames);
	if (holders_are_none_but(place, NODE_NONE))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
}

/* Who does this may die of it at any step: the next one then starts over. */
void node_rebuild(struct node *node)
{
	struct block_place place;
	uint32_t id = NODE_NONE, shares = 0;

	PUT(node->control->fd_kept, 0);
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++)
		if (node->memories[i].state && GET(node->memories[i].state->used))
			frames_reset(&node->memories[i]);
	while (block_next(node, &id, &place))
		count_block(node, &place);
	for (uint32_t i = 0; i < node->control->share_limit; i++)
		shares += share_is_live(node, i, &place);
	PUT(node->control->share_count, shares);
	frame_caches_rebuild(node);
}

const char *server_text(const struct node *node, unsigned server)
{
	return node->shape.servers == 1 ? npu_text("node %s", node->name)
					: npu_text("server %u of supernode %s", server, node->name);
}

/* ---- the end of a block ---- */

bool block_leave(struct node *node, uint32_t id)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;

	if (record->closing) /* another thread is at it */
		return false;
	if (place.frame < place.memory->usable)
		own_frames_add(place.memory, -(int64_t)record->frames);
	if (server_is_lost(node, node->shape.server))
		return false; /* nobody hears of it: node_scan() */
	if (!holders_are_none_but(&place, node->slot)) {
		holders_set(&place, node->slot, false);
		return false;
	}
	if (record->fd && block_fd_is_open(node, id)) {
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
		holders_set(&place, node->slot, false);
		return false;
	}
	return block_close(node, id);
}

bool node_block_leave(struct node *node, struct node_block *block)
{
	struct view_count *count;
	bool closing;

	if (node_is_quiet(node) && frame_cache_put(node, block))
		return false;
	if (node_enter(node) != DRV_ERROR_NONE) {
		free(block);
		return false;
	}
	count = &node->views[block->id];
	if (!block->imported && --count->own == 0 && count->views > 1) {
		/* What this process exported has only its own imports left here. */
		uint32_t share = block_at(node, block->id).record->share;

		if (share && share_is_mine(node, &node->shares[share - 1]))
			PUT(node->shares[share - 1].exporter_gone, 1);
	}
	closing = --count->views == 0 && block_leave(node, block->id);
	__atomic_add_fetch(&node->cleaning, closing, __ATOMIC_RELAXED);
	node_unlock(node);
	if (!closing)
		free(block);
	return closing;
}

void node_block_clean(struct node *node, struct node_block *block)
{
	block_end(node, block->id);
	__atomic_sub_fetch(&node->cleaning, 1, __ATOMIC_RELAXED);
	free(block);
}

void node_block_drop(struct node *node, struct node_block *block)
{
	if (block && node_block_leave(node, block))
		node_block_clean(node, block);
}

static void touch(const struct node *node, const struct node_block *block, uint8_t how)
{
	uint8_t *touched = &node->memory[block->memory]->blocks[block->extents[0].frame].touched;

	if (!node_is_forked(node) && !(__atomic_load_n(touched, __ATOMIC_RELAXED) & how))
		__atomic_fetch_or(touched, how, __ATOMIC_RELEASE); /* another process may, too */
}

void node_block_map(struct node *node, const struct node_block *block)
{
	touch(node, block, BLOCK_MAPPED);
}

void node_block_touch(struct node *node, const struct node_block *block)
{
	touch(node, block, BLOCK_WRITTEN);
}

/* ---- views ---- */

drvError_t block_of_view(const struct node *node, const struct node_block *block,
			 struct block_place *out)
{
	if (block_find(node, block->id, block->generation, out))
		return DRV_ERROR_NONE;
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
				      const struct extent_chain *chain, uint32_t frames, bool giant)
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
		.touched = first >= m->usable ? BLOCK_WRITTEN : 0, /* page tables are at once */
	};
	block = block_view(node, m->id_base + first, false);
	PUT(m->live[first / 64], m->live[first / 64] | UINT64_C(1) << (first % 64));
	return block;
}

/* ---- no room ---- */

/* "process 12 (python3) holds 4194304 (4 MiB), process 13 (python3) 2097152 (2 MiB)" */
static char *holders_text(struct node *node, struct memory *m)
{
	g_autofree uint64_t *frames = g_new0(uint64_t, NODE_MEMBERS);
	GString *text = g_string_new(NULL);
	struct block_place place;
	uint32_t id = NODE_NONE;

	while (block_next(node, &id, &place))
		for (unsigned slot = 0; slot < node->control->member_limit; slot++)
			if (place.memory == m && place.frame < m->usable &&
			    block_is_held_by(&place, slot))
				frames[slot] += place.record->frames;
	for (unsigned n = 0; n < TOP_HOLDERS; n++) {
		unsigned top = 0;

		for (unsigned slot = 1; slot < NODE_MEMBERS; slot++)
			top = frames[slot] > frames[top] ? slot : top;
		if (!frames[top])
			break;
		g_string_append_printf(text, "%sprocess %d (%s) %s%s", n ? ", " : "",
				       node->control->members[top].pid,
				       node->control->members[top].command, n ? "" : "holds ",
				       npu_size_text(frames[top] * NODE_FRAME_BYTES));
		frames[top] = 0;
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
	g_autofree char *holders = holders_text(node, m);
	const char *where = memory_text(node, m->index);
	const char *total = npu_size_text((uint64_t)m->usable * NODE_FRAME_BYTES);
	const char *left = npu_size_text(m->state->free_frames * NODE_FRAME_BYTES);
	unsigned giants = m->state->free_giants;

	node_unlock(node);
	if (giant)
		return node_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "out of memory: %s: %s of 1 GiB %s asked for, and %u are free (%s "
				 "of %s are free, but a 1 GiB page needs a whole, aligned GiB); %s",
				 where, npu_counted(frames / NODE_GIANT_FRAMES, "page"),
				 frames == NODE_GIANT_FRAMES ? "is" : "are", giants, left, total,
				 holders);
	return node_fail(
		DRV_ERROR_OUT_OF_MEMORY,
		"out of memory: %s: %s are asked for, and %s of %s are free; %s", where,
		npu_size_text(MIN(frames, UINT64_MAX / NODE_FRAME_BYTES) * NODE_FRAME_BYTES), left,
		total, holders);
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
		return node_fail(DRV_ERROR_INVALID_DEVICE, "node %s has no memory %u: it has %s",
				 node->name, memory, npu_counted(node->shape.devices, "device"));
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
			     struct node_block **out)
{
	drvError_t error = check_request(node, memory, frames, giant);
	struct extent_chain chain;
	struct memory *m;
	int64_t end = 0;

	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	if (node_is_quiet(node) && (*out = frame_cache_take(node, memory, frames, giant)))
		return DRV_ERROR_NONE;
	error = node_enter(node);
	if (error == DRV_ERROR_NONE) {
		frames_ready(m);
		make_room(node, m, frames, giant);
	}
	while (error == DRV_ERROR_NONE && !fits(m, frames, giant)) {
		if (__atomic_load_n(&node->cleaning, __ATOMIC_RELAXED) ||
		    (end && (!m->state->closing_frames || clock_ms() >= end)))
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
	*out = write_block(node, m, &chain, (uint32_t)frames, giant);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_table_frame(struct node *node, unsigned memory, struct node_block **out)
{
	struct extent_chain chain;
	struct memory *m;
	ENTERED(node, error, check_request(node, memory, 1, false));

	if (error != DRV_ERROR_NONE)
		return error;
	m = node->memory[memory];
	frames_ready(m);
	chain = frames_take_reserved(m);
	if (!chain.count)
		return node_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "out of memory: %s: the part that is kept for page tables (%u "
				 "frames of 2 MiB) is full",
				 memory_text(node, memory), m->frames - m->usable);
	*out = write_block(node, m, &chain, 1, false);
	return DRV_ERROR_NONE;
}

uint64_t node_own_peak(struct node *node, unsigned memory)
{
	return __atomic_load_n(&node->memory[memory]->own_peak_frames, __ATOMIC_RELAXED);
}

void node_usage(struct node *node, unsigned memory, struct node_usage *out)
{
	struct memory *m = memory < SIM_MEMORY_MAX ? node->memory[memory] : NULL;
	unsigned largest;

	*out = (struct node_usage){ .total_frames = m ? m->usable : 0 };
	ENTERED(node, error, DRV_ERROR_NONE);
	if (!m || error != DRV_ERROR_NONE)
		return;
	if (!GET(m->state->used)) {
		out->free_frames = out->largest_free_run = m->usable;
		out->free_giants = m->usable / NODE_GIANT_FRAMES;
		return;
	}
	frame_caches_empty(node);
	if (node->control->fd_kept)
		node_sweep(node);
	out->free_frames = m->state->free_frames + m->state->closing_frames;
	out->own_frames = __atomic_load_n(&m->own_frames, __ATOMIC_RELAXED);
	out->own_peak_frames = node_own_peak(node, memory);
	out->free_giants = m->state->free_giants;
	bits_run(m->used, 0, m->usable, UINT32_MAX, &largest);
	out->largest_free_run = largest;
}
