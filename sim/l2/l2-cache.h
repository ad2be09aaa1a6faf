/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of a device's L2: set-associative, LRU, write-back. A tag covers a block of several
 * lines, each with its own valid and dirty bit, so that a stream costs one step per block. Plain
 * code: no time, no data.
 */
#ifndef NPUSIM_SIM_L2_L2_CACHE_H
#define NPUSIM_SIM_L2_L2_CACHE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

G_BEGIN_DECLS

#define L2_WAYS_MAX    16u
#define L2_NUMBER_BITS 31u /* of a block's number that a tag holds; others are the memory's own */

/* Four tags are compared at once. */
typedef uint32_t l2_quad __attribute__((vector_size(16)));

/* What every lookup reads, two cache lines of the machine that runs the model. */
struct l2_set {
	uint32_t tag[L2_WAYS_MAX];   /* of each way: its block's number + 1; 0: free */
	uint32_t valid[L2_WAYS_MAX]; /* the lines that are there */
} __attribute__((aligned(64)));

struct l2_order {
	uint64_t ways;  /* four bits each, the one used last in the lowest; above them: anything */
	uint32_t dirty; /* bit of each way that has dirty lines */
};

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	uint32_t lines_mask; /* of a block */
	uint32_t sets;
	uint64_t sets_inverse; /* of 2^64 */
	uint64_t memory;       /* upper bits of every block's number */
	unsigned oldest;       /* where in a set's order the oldest way stands */
	struct l2_set *set;
	struct l2_order *order;         /* of each set */
	uint32_t (*dirty)[L2_WAYS_MAX]; /* lines of each way of each set */
};

/* A stretch of memory that the access brings about. */
struct l2_stretch {
	uint64_t pa, bytes;
};

/* bytes / (block_bytes x ways) sets (at least one); a block has at most 32 lines, a set 16 ways.
 * Tags are had at the first access; all accesses are to one memory of 2^31 blocks. */
struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways);
void l2_cache_free(struct l2_cache *cache);

struct l2_answer {
	uint64_t lines, hits;
	struct l2_stretch fill;  /* lines to read from memory: from the first to the last, hits
				    between left in */
	struct l2_stretch clean; /* dirty lines to write back */
};

/* For l2_cache_access(): the tags; what the block of a way that goes has to write back. */
__attribute__((cold)) void l2_cache_allocate(struct l2_cache *cache, uint64_t number);
struct l2_stretch l2_cache_clean(struct l2_cache *cache, uint32_t set, unsigned way);
/* Of a write's missing lines, those at its ends that it does not cover. */
uint64_t l2_cache_partial(const struct l2_cache *cache, uint64_t pa, uint64_t bytes);

/* From the first line of the mask, which has some, to the last. */
static inline struct l2_stretch l2_stretch_of(const struct l2_cache *cache, uint64_t base,
					      uint64_t mask)
{
	unsigned first = (unsigned)__builtin_ctzll(mask);
	unsigned lines = 64 - (unsigned)__builtin_clzll(mask) - first;
	struct l2_stretch stretch = { base + ((uint64_t)first << cache->line_lg2),
				      (uint64_t)lines << cache->line_lg2 };

	return stretch;
}

/* The way that has the tag, plus 1; 0: none. */
static inline unsigned l2_find_way(const struct l2_set *set, uint32_t tag)
{
	const l2_quad *tags = (const l2_quad *)(const void *)set->tag;
	const l2_quad want = { tag, tag, tag, tag };
	const l2_quad a = { 1, 2, 3, 4 }, b = { 5, 6, 7, 8 }, c = { 9, 10, 11, 12 },
		      d = { 13, 14, 15, 16 };
	l2_quad found = ((l2_quad)(tags[0] == want) & a) | ((l2_quad)(tags[1] == want) & b) |
			((l2_quad)(tags[2] == want) & c) | ((l2_quad)(tags[3] == want) & d);
	uint64_t any[2];

	memcpy(any, &found, sizeof(any));
	any[0] |= any[1];
	return (unsigned)(any[0] | any[0] >> 32);
}

/* The way becomes the one used last. */
static inline uint64_t l2_make_newest(uint64_t ways, unsigned way)
{
	const uint64_t ones = UINT64_C(0x1111111111111111);
	uint64_t other = ways ^ ones * way; /* zero where it is the way */
	unsigned at = (unsigned)__builtin_ctzll((other - ones) & ~other & ones << 3) - 3;
	uint64_t newer = ways & ((UINT64_C(1) << at) - 1);
	uint64_t older = ways & ~((UINT64_C(16) << at) - 1);

	return older | newer << 4 | way;
}

/* Each lap of the memory through the sets begins one set further on, four laps in turn, so that a
 * matrix's columns do not all meet in a few; a lap still has one block for each set. No more than
 * four: what is written back lies as many blocks off what is read, and long runs of it are to be
 * whole stripes of the HBM. Remainder by multiplication: Lemire, Kaser, Kurz, "Faster remainder by
 * direct computation", 2019. */
static inline uint32_t l2_set_of(const struct l2_cache *cache, uint32_t number)
{
	__extension__ typedef unsigned __int128 uint128;

	number += (uint32_t)((uint128)number * cache->sets_inverse >> 64) % 4;
	return (uint32_t)((uint128)(number * cache->sets_inverse) * cache->sets >> 64);
}

/* pa will be looked up soon. */
static inline void l2_cache_expect(const struct l2_cache *cache, uint64_t pa)
{
	uint32_t set =
		l2_set_of(cache, (pa >> cache->block_lg2) & ((UINT64_C(1) << L2_NUMBER_BITS) - 1));

	if (!cache->set)
		return;
	__builtin_prefetch(cache->set[set].tag, 1);
	__builtin_prefetch(cache->set[set].valid, 1);
	__builtin_prefetch(&cache->order[set], 1);
}

/* The block's way; a block that was not there takes the one used least recently. */
static inline unsigned l2_find_block(struct l2_cache *cache, uint32_t index, uint32_t tag,
				     struct l2_answer *out)
{
	struct l2_set *set = &cache->set[index];
	struct l2_order *order = &cache->order[index];
	unsigned way = order->ways & 15;

	if (set->tag[way] == tag)
		return way;
	way = l2_find_way(set, tag);
	if (way--) {
		order->ways = l2_make_newest(order->ways, way);
		return way;
	}
	way = order->ways >> cache->oldest & 15;
	order->ways = order->ways << 4 | way;
	if (G_UNLIKELY(order->dirty >> way & 1))
		out->clean = l2_cache_clean(cache, index, way);
	set->tag[way] = tag;
	set->valid[way] = 0;
	return way;
}

/* Looks up the lines of [pa, pa + bytes), which lie in one block. What misses is there afterwards;
 * a write makes lines dirty, and fills no line that it covers entirely. */
static inline void l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
				   struct l2_answer *out)
{
	uint64_t number = pa >> cache->block_lg2, first = pa >> cache->line_lg2;
	uint64_t count = ((pa + bytes - 1) >> cache->line_lg2) - first + 1;
	uint64_t mask = (~UINT64_C(0) >> (64 - count)) << (first & cache->lines_mask), missing;
	uint32_t tag = (uint32_t)(number & ((UINT64_C(1) << L2_NUMBER_BITS) - 1)) + 1;
	uint32_t set = l2_set_of(cache, tag - 1), *valid;
	unsigned way;

	memset(out, 0, sizeof(*out));
	if (G_UNLIKELY(number >> L2_NUMBER_BITS != cache->memory))
		l2_cache_allocate(cache, number);
	way = l2_find_block(cache, set, tag, out);
	valid = &cache->set[set].valid[way];
	missing = mask & ~*valid;
	*valid |= (uint32_t)mask;
	out->lines = count;
	if (!missing)
		out->hits = count;
	else if (missing != mask)
		out->hits = count - (uint64_t)__builtin_popcountll(missing);
	if (G_UNLIKELY(write)) {
		cache->order[set].dirty |= 1u << way;
		cache->dirty[set][way] |= (uint32_t)mask;
		missing &= l2_cache_partial(cache, pa, bytes);
	}
	if (missing)
		out->fill = l2_stretch_of(cache, number << cache->block_lg2, missing);
}

G_END_DECLS

#endif
