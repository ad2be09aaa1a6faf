/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds, ends and cleans up blocks by their records, and says who holds them, for all files that
 * work on blocks with the node's lock held; and builds anew what is derived from these records, for
 * who creates a node or takes the lock of a dead member over.
 */
#include "records.h"

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

void block_for_each(struct node *node, void (*each)(struct node *node, uint32_t id, void *arg),
		    void *arg)
{
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++) {
		const struct memory *m = &node->memories[i];

		if (!m->state || !GET(m->state->used))
			continue;
		for (uint32_t word = 0; word < (m->frames + 63) / 64; word++)
			for (uint64_t seen = 0, bits; (bits = m->live[word] & ~seen);) {
				unsigned bit = (unsigned)__builtin_ctzll(bits);

				seen |= (UINT64_C(1) << bit) | ((UINT64_C(1) << bit) - 1);
				each(node, m->id_base + word * 64 + bit, arg);
			}
	}
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

void block_clean(struct node *node, uint32_t id)
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
	allow_give_back(node, share->allow);
}

/* ---- this process's account ---- */

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
	if (holders_are_none_but(&place, NODE_NONE))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
}

/* Whitelist entries that no living share reaches are free. */
static void rebuild_shares(struct node *node)
{
	struct control *control = node->control;
	uint32_t top = control->allow_top, count = 0;
	g_autofree uint8_t *reached = g_malloc0(top + 1);
	struct block_place place;

	for (uint32_t i = 0; i < control->share_limit; i++) {
		if (!share_is_live(node, i, &place))
			continue;
		count++;
		for (uint32_t at = node->shares[i].allow; at; at = node->allows[at - 1].next)
			reached[at - 1] = 1;
	}
	PUT(control->share_count, count);
	while (top && !reached[top - 1])
		top--;
	PUT(control->allow_free, 0);
	for (uint32_t i = 0; i < top; i++)
		if (!reached[i]) {
			PUT(node->allows[i].next, control->allow_free);
			PUT(control->allow_free, i + 1);
		}
	PUT(control->allow_top, top);
}

/* Who does this may die of it at any step: the next one then starts over. */
void node_rebuild(struct node *node)
{
	PUT(node->control->fd_kept, 0);
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++)
		if (node->memories[i].state && GET(node->memories[i].state->used))
			frames_reset(&node->memories[i]);
	block_for_each(node, count_block, NULL);
	rebuild_shares(node);
	frame_caches_rebuild(node);
}
