/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the frames of new blocks, and tracks which frames of a memory are in use: derived state,
 * which node_rebuild() recomputes from the living blocks. And keeps, for each process, a cache of
 * blocks that it dropped.
 *
 * Policy: a 1 GiB page needs 512 free frames that begin at a multiple of 512 ("a giant"), so whole
 * giants are preserved as long as possible. A request takes as few whole giants as it can; it uses
 * partly used giants first, the fullest before others, and in one piece if one of them has enough
 * room in one piece. Whole giants are taken from the smallest sufficient run.
 */
#include "records.h"

#include <stdlib.h>
#include <string.h>

/* ---- bits ---- */

/* The first frame at or after `from` whose bit is `used`; `end` if there is none before it. */
static uint32_t next_frame(const struct memory *m, uint32_t from, uint32_t end, bool used)
{
	return bits_next(m->used, from, end, used ? 0 : UINT64_MAX);
}

/* ---- giants ---- */

static inline uint32_t giant_count(const struct memory *m)
{
	return (m->usable + NODE_GIANT_FRAMES - 1) / NODE_GIANT_FRAMES;
}

/* Usable frames of a giant: fewer than 512 in the last one, which then is never whole. */
static inline uint32_t giant_capacity(const struct memory *m, uint32_t giant)
{
	return MIN(m->usable - giant * NODE_GIANT_FRAMES, NODE_GIANT_FRAMES);
}

static inline uint32_t giant_free(const struct memory *m, uint32_t giant)
{
	return giant_capacity(m, giant) - m->giant_used[giant];
}

static inline bool giant_is_whole(const struct memory *m, uint32_t giant)
{
	return giant_free(m, giant) == NODE_GIANT_FRAMES;
}

static void count_giant(struct memory *m, uint32_t giant, uint32_t count, bool used)
{
	bool was_whole = giant_is_whole(m, giant), is_whole;
	uint32_t hint = m->state->hint;

	PUT(m->giant_used[giant],
	    (uint16_t)(used ? m->giant_used[giant] + count : m->giant_used[giant] - count));
	is_whole = giant_is_whole(m, giant);
	if (was_whole != is_whole)
		PUT(m->state->free_giants,
		    was_whole ? m->state->free_giants - 1 : m->state->free_giants + 1);
	if (is_whole || giant_free(m, giant) == 0) {
		if (hint == giant)
			PUT(m->state->hint, NODE_NONE);
	} else if (hint != NODE_NONE && giant_free(m, giant) < giant_free(m, hint)) {
		PUT(m->state->hint, giant);
	}
}

void frames_mark(struct memory *m, uint32_t first, uint32_t count, bool used)
{
	for (uint32_t at = first; at < first + count;) {
		uint64_t *word = &m->used[at / 64], mask = bits_of_word(&at, first + count);

		PUT(*word, used ? *word | mask : *word & ~mask);
	}
	if (first >= m->usable)
		return;
	PUT(m->state->free_frames,
	    used ? m->state->free_frames - count : m->state->free_frames + count);
	while (count) {
		uint32_t giant = first / NODE_GIANT_FRAMES;
		uint32_t n = MIN((giant + 1) * NODE_GIANT_FRAMES - first, count);

		count_giant(m, giant, n, used);
		first += n;
		count -= n;
	}
}

void frames_reset(struct memory *m)
{
	node_step();
	memset(m->used, 0, (m->frames + 63) / 64 * sizeof(*m->used));
	node_step();
	memset(m->giant_used, 0, giant_count(m) * sizeof(*m->giant_used));
	PUT(m->state->free_frames, m->usable);
	PUT(m->state->closing_frames, 0);
	PUT(m->state->free_giants, m->usable / NODE_GIANT_FRAMES);
	PUT(m->state->hint, NODE_NONE);
}

/* ---- taking ---- */

static void take(struct memory *m, uint32_t first, uint32_t count, struct extent_chain *out)
{
	struct extent_record *last = &m->extents[out->last];

	frames_mark(m, first, count, true);
	if (out->count && out->last + last->count == first) {
		PUT(last->count, last->count + count);
		return;
	}
	PUT(m->extents[first].count, count);
	PUT(m->extents[first].next, NODE_NONE);
	if (out->count++)
		PUT(last->next, first);
	else
		out->first = first;
	out->last = first;
}

/* The first run of `count` free frames within a giant, or NODE_NONE. */
static uint32_t run_in_giant(const struct memory *m, uint32_t giant, uint32_t count)
{
	uint32_t end = giant * NODE_GIANT_FRAMES + giant_capacity(m, giant), longest;
	uint32_t first = bits_run(m->used, giant * NODE_GIANT_FRAMES, end, count, &longest);

	return first < end ? first : NODE_NONE;
}

/* The fullest partly used giant with a run of `count` frames (*first); NODE_NONE: there is none. */
static uint32_t fullest_giant(const struct memory *m, uint32_t count, uint32_t *first)
{
	uint32_t best = NODE_NONE, least = NODE_GIANT_FRAMES, giants = giant_count(m);

	for (uint32_t giant = 0; giant < giants; giant++) {
		uint32_t left = giant_free(m, giant), run;

		if (left < count || left >= least)
			continue;
		run = run_in_giant(m, giant, count);
		if (run == NODE_NONE)
			continue;
		best = giant;
		least = left;
		*first = run;
	}
	return best;
}

static void take_one(struct memory *m, struct extent_chain *out)
{
	uint32_t giant = m->state->hint, first = 0;

	if (giant != NODE_NONE) {
		take(m, run_in_giant(m, giant, 1), 1, out);
		return;
	}
	giant = fullest_giant(m, 1, &first);
	PUT(m->state->hint, giant);
	take(m, first, 1, out);
}

/* From partly used giants, which have as many free frames. */
static void take_partial(struct memory *m, uint32_t count, struct extent_chain *out)
{
	uint32_t first = 0, giant, end, stop;

	if (count == 1) {
		take_one(m, out);
		return;
	}
	if (count && fullest_giant(m, count, &first) != NODE_NONE) {
		take(m, first, count, out);
		return;
	}
	while (count) {
		giant = fullest_giant(m, 1, &first);
		end = giant * NODE_GIANT_FRAMES + giant_capacity(m, giant);
		for (; count && first < end; first = next_frame(m, stop, end, false)) {
			stop = next_frame(m, first, end, true);
			stop = stop - first < count ? stop : first + count;
			count -= stop - first;
			take(m, first, stop - first, out);
		}
	}
}

/* The smallest run of whole giants that has `count`, else the longest one. */
static uint32_t run_of_giants(const struct memory *m, uint32_t count, uint32_t *length)
{
	uint32_t best = NODE_NONE, giants = m->usable / NODE_GIANT_FRAMES, end;

	*length = 0;
	for (uint32_t giant = 0; giant < giants; giant = end + 1) {
		uint32_t run;

		for (end = giant; end < giants && giant_is_whole(m, end); end++)
			continue;
		run = end - giant;
		if (run > *length ? *length < count : run >= count && run < *length) {
			best = giant;
			*length = run;
		}
	}
	return best;
}

static void take_whole(struct memory *m, uint32_t count, struct extent_chain *out)
{
	while (count) {
		uint32_t giants = (count + NODE_GIANT_FRAMES - 1) / NODE_GIANT_FRAMES, length;
		uint32_t giant = run_of_giants(m, giants, &length);
		uint32_t n = MIN(length * NODE_GIANT_FRAMES, count);

		take(m, giant * NODE_GIANT_FRAMES, n, out);
		count -= n;
	}
}

struct extent_chain frames_take(struct memory *m, uint32_t count, bool giant)
{
	uint64_t partial = m->state->free_frames -
			   (uint64_t)m->state->free_giants * NODE_GIANT_FRAMES,
		 whole = giant ? count : 0;
	struct extent_chain chain = { .count = 0 };

	if (!giant && count > partial)
		whole = (count - partial + NODE_GIANT_FRAMES - 1) / NODE_GIANT_FRAMES *
			NODE_GIANT_FRAMES;
	if (count > whole)
		take_partial(m, (uint32_t)(count - whole), &chain);
	take_whole(m, (uint32_t)MIN(whole, count), &chain);
	return chain;
}

struct extent_chain frames_take_reserved(struct memory *m)
{
	uint32_t frame = next_frame(m, m->usable, m->frames, false);
	struct extent_chain chain = { .count = 0 };

	if (frame < m->frames)
		take(m, frame, 1, &chain);
	return chain;
}

/* ---- the frame cache ----
 *
 * Keeps, for each process, a cache of blocks that it dropped, to make the next one of that size
 * from without the node's lock: creating and freeing side by side, processes then share no word
 * that is written. (A pair takes 50 to 80 ns so, and 210 to 380 ns without, from 1 process to 8.)
 *
 * A block in a cache lives, and its member holds it, so that nothing has to be known of caches when
 * the member dies. Only blocks go there that nobody else ever could reach and that were never
 * written. Their generation is raised on the way: who still names the old block does not find it.
 * To all others a block in a cache is free: whoever counts free frames or is short of them takes it
 * out of the cache, by a compare-and-swap that the owner may lose.
 *
 * A word of a cache: 0; or its owner works on it; or the block's id + 1 in bits 0-30 and its
 * generation in bits 32-63, with bit 31 set when the holder of the node's lock has claimed it and
 * is about to end the block.
 */

#define WORD_BUSY    UINT64_C(0x7fffffff)
#define WORD_CLAIMED (UINT64_C(1) << 31)
#define WORD_ID_MASK UINT64_C(0x7fffffff)

/* What a request must match; never 0. */
static inline uint64_t key_of(unsigned memory, uint64_t frames, bool giant)
{
	return frames << 16 | memory << 1 | giant;
}

static inline bool holds_block(uint64_t word)
{
	return word && word != WORD_BUSY && !(word & WORD_CLAIMED);
}

/* ---- the owner: lock not held ---- */

struct node_block *frame_cache_take(struct node *node, unsigned memory, uint64_t frames, bool giant)
{
	uint64_t *words = node->control->members[node->slot].frame_cache,
		 key = key_of(memory, frames, giant);
	struct memory *m = node->memory[memory];

	for (unsigned i = 0; i < NODE_CACHED; i++) {
		uint64_t word = GET(words[i]);
		struct node_block *block;

		if (__atomic_load_n(&node->cached_keys[i], __ATOMIC_RELAXED) != key ||
		    !holds_block(word) || !SWAP(words[i], word, WORD_BUSY))
			continue;
		block = node->cached[i];
		if (key_of(block->memory, block->frames, block->giant) != key) {
			PUT(words[i], word);
			continue;
		}
		node->cached[i] = NULL;
		node->views[block->id] = (struct view_count){ .views = 1, .own = 1 };
		own_frames_add(m, (int64_t)block->frames);
		PUT(words[i], 0);
		return block;
	}
	return NULL;
}

/* Only this process can reach the block, and it has not been written. */
static bool is_eligible(const struct node *node, const struct node_block *block,
			const struct block_record *record)
{
	const struct view_count *count = &node->views[block->id];

	return block->frames <= NODE_GIANT_FRAMES && count->views == 1 && count->own == 1 &&
	       !record->share && !record->fd && !record->named && !record->closing &&
	       !__atomic_load_n(&record->touched, __ATOMIC_ACQUIRE);
}

bool frame_cache_put(struct node *node, struct node_block *block)
{
	uint64_t *words = node->control->members[node->slot].frame_cache;
	struct memory *m = node->memory[block->memory];
	struct block_record *record = &m->blocks[block->extents[0].frame];

	if (!is_eligible(node, block, record))
		return false;
	for (unsigned i = 0; i < NODE_CACHED; i++) {
		if (GET(words[i]) != 0 || !SWAP(words[i], 0, WORD_BUSY))
			continue;
		block->generation++;
		PUT(record->generation, block->generation);
		node->views[block->id] = (struct view_count){ .views = 0 };
		own_frames_add(m, -(int64_t)block->frames);
		free(node->cached[i]);
		node->cached[i] = block;
		__atomic_store_n(&node->cached_keys[i],
				 key_of(block->memory, block->frames, block->giant),
				 __ATOMIC_RELAXED);
		PUT(words[i], (uint64_t)block->generation << 32 | (block->id + 1));
		return true;
	}
	return false;
}

void frame_cache_end(struct node *node)
{
	for (unsigned i = 0; i < NODE_CACHED; i++)
		free(node->cached[i]);
}

/* ---- everybody: lock held ---- */

/* Ends the block of a claimed word, if it is still the one that was meant: who buries a dead
 * member, and dies of it, has ended some. */
static void end_claimed(struct node *node, uint64_t *word)
{
	const uint64_t claimed = GET(*word); /* its owner tries to take it meanwhile */
	const uint32_t id = (uint32_t)(claimed & WORD_ID_MASK) - 1;
	struct block_place place;

	if (block_find(node, id, (uint32_t)(claimed >> 32), &place))
		block_release(node, id);
	PUT(*word, 0);
}

void frame_cache_empty(struct node *node, unsigned slot)
{
	uint64_t *words = node->control->members[slot].frame_cache;

	for (unsigned i = 0; i < NODE_CACHED; i++) {
		uint64_t word = GET(words[i]);

		if (holds_block(word) && SWAP(words[i], word, word | WORD_CLAIMED))
			end_claimed(node, &words[i]);
	}
}

void frame_caches_empty(struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		if (GET(node->control->members[slot].state) == MEMBER_LIVE)
			frame_cache_empty(node, slot);
}

/* A claim by one who died of it is carried out. */
void frame_caches_rebuild(struct node *node)
{
	for (unsigned slot = 0; slot < node->control->member_limit; slot++)
		for (unsigned i = 0; i < NODE_CACHED; i++) {
			uint64_t *word = &node->control->members[slot].frame_cache[i];

			if (GET(*word) != WORD_BUSY && GET(*word) & WORD_CLAIMED)
				end_claimed(node, word);
		}
}
