/* SPDX-License-Identifier: Apache-2.0
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
#include "records.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BUSY    UINT64_C(0x7fffffff)
#define WORD_CLAIMED (UINT64_C(1) << 31)
#define WORD_ID_MASK UINT64_C(0x7fffffff)

static inline uint64_t word_of(const struct node_block *block)
{
	return (uint64_t)block->generation << 32 | (block->id + 1);
}

/* What a request must match; never 0. */
static inline uint64_t key_of(unsigned memory, uint64_t frames, bool giant)
{
	return frames << 16 | memory << 1 | giant;
}

static inline bool cache_swap(uint64_t *word, uint64_t from, uint64_t to)
{
	node_step();
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static inline bool holds_block(uint64_t word)
{
	return word && word != WORD_BUSY && !(word & WORD_CLAIMED);
}

/* ---- the owner: lock not held ---- */

static void retag(struct block_record *record, const char *tag)
{
	size_t length = tag ? strnlen(tag, sizeof(record->tag) - 1) : 0;

	node_step();
	memcpy(record->tag, tag ? tag : "", length);
	record->tag[length] = '\0';
}

struct node_block *frame_cache_take(struct node *node, unsigned memory, uint64_t frames, bool giant,
				    const char *tag)
{
	uint64_t *words = node->control->members[node->slot].frame_cache,
		 key = key_of(memory, frames, giant);
	struct memory *m = node->memory[memory];

	for (unsigned i = 0; i < NODE_CACHED; i++) {
		uint64_t word = GET(words[i]);
		struct node_block *block;

		if (__atomic_load_n(&node->cached_keys[i], __ATOMIC_RELAXED) != key ||
		    !holds_block(word) || !cache_swap(&words[i], word, WORD_BUSY))
			continue;
		block = node->cached[i];
		if (key_of(block->memory, block->frames, block->giant) != key) {
			PUT(words[i], word);
			continue;
		}
		node->cached[i] = NULL;
		retag(&m->blocks[block->extents[0].frame], tag);
		node->views[block->id] = (struct view_count){ .views = 1, .own = 1 };
		own_frames_add(m, block->frames);
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
		if (GET(words[i]) != 0 || !cache_swap(&words[i], 0, WORD_BUSY))
			continue;
		block->generation++;
		PUT(record->generation, block->generation);
		node->views[block->id] = (struct view_count){ .views = 0 };
		own_frames_sub(m, block->frames);
		free(node->cached[i]);
		node->cached[i] = block;
		__atomic_store_n(&node->cached_keys[i],
				 key_of(block->memory, block->frames, block->giant),
				 __ATOMIC_RELAXED);
		PUT(words[i], word_of(block));
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
	const uint32_t id = (uint32_t)(*word & WORD_ID_MASK) - 1;
	struct block_place place;

	if (block_find(node, id, (uint32_t)(*word >> 32), &place))
		block_release(node, id);
	PUT(*word, 0);
}

void frame_cache_empty(struct node *node, unsigned slot)
{
	uint64_t *words = node->control->members[slot].frame_cache;

	for (unsigned i = 0; i < NODE_CACHED; i++) {
		uint64_t word = GET(words[i]);

		if (holds_block(word) && cache_swap(&words[i], word, word | WORD_CLAIMED))
			end_claimed(node, &words[i]);
	}
}

void frame_caches_empty(struct node *node)
{
	uint32_t limit = GET(node->control->member_limit);

	for (unsigned slot = 0; slot < limit; slot++)
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
