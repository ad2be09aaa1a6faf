/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of a device's L2: set-associative, least recently used goes first, write-back. A tag
 * covers a block of several lines, each with its own valid and dirty bit, so that a stream costs a
 * step a block. Plain code: no time, no data.
 */
#ifndef NPUSIM_SIM_L2_L2_CACHE_H
#define NPUSIM_SIM_L2_L2_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define L2_WAYS_MAX    64u
#define L2_NUMBER_BITS 31u /* of a block's number that a tag holds; others are the memory's own */

/* Four tags are compared at once; a set has sixteen, or a multiple. */
typedef uint32_t l2_quad __attribute__((vector_size(16)));

/* The ways of a set in order of use: the oldest is next to the newest. */
struct l2_ring {
	unsigned char older, newer;
};

struct l2_lines {
	uint32_t valid, dirty;
};

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	uint32_t lines_mask; /* of a block */
	uint32_t sets, ring_at, lines_at, set_bytes;
	uint64_t sets_inverse; /* of 2^64 */
	uint64_t memory;       /* upper bits of every block's number */
	/* of each set: tags (number + 1 in its lower bits, 0: free), made up to sixteens; the
	 * ring, the newest in front of it; the lines of each way */
	unsigned char *set;
};

/* A stretch of memory that the access brings about. */
struct l2_stretch {
	uint64_t pa, bytes;
};

/* bytes / (block_bytes x ways) sets (at least one); a block has at most 32 lines, a set 64 ways.
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

/* For l2_cache_access(): the tags; what the block of a tag that goes has to write back. */
void l2_cache_allocate(struct l2_cache *cache, uint64_t number);
struct l2_stretch l2_cache_victim(const struct l2_cache *cache, uint32_t tag, uint32_t dirty);
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
static inline unsigned l2_find_way(const l2_quad *tags, unsigned ways, uint32_t tag)
{
	const l2_quad want = { tag, tag, tag, tag };
	const l2_quad a = { 1, 2, 3, 4 }, b = { 5, 6, 7, 8 }, c = { 9, 10, 11, 12 },
		      d = { 13, 14, 15, 16 };

	for (unsigned from = 0; from < ways; from += 16, tags += 4) {
		l2_quad found = ((l2_quad)(tags[0] == want) & a) |
				((l2_quad)(tags[1] == want) & b) |
				((l2_quad)(tags[2] == want) & c) | ((l2_quad)(tags[3] == want) & d);
		uint64_t any[2];

		memcpy(any, &found, sizeof(any));
		any[0] |= any[1];
		if (any[0])
			return from + (unsigned)(any[0] | any[0] >> 32);
	}
	return 0;
}

/* The way becomes the one used last. */
static inline void l2_make_newest(unsigned char *now, struct l2_ring *ring, unsigned way)
{
	unsigned newest = *now, oldest = ring[newest].newer;
	unsigned older = ring[way].older, newer = ring[way].newer;

	if (newest == way)
		return;
	*now = (unsigned char)way;
	if (oldest == way)
		return;
	ring[older].newer = (unsigned char)newer;
	ring[newer].older = (unsigned char)older;
	ring[way].older = (unsigned char)newest;
	ring[way].newer = (unsigned char)oldest;
	ring[newest].newer = ring[oldest].older = (unsigned char)way;
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
	uint32_t number = (pa >> cache->block_lg2) & ((UINT64_C(1) << L2_NUMBER_BITS) - 1);
	const unsigned char *set = cache->set;

	if (!set)
		return;
	set += (uint64_t)l2_set_of(cache, number) * cache->set_bytes;
	for (unsigned at = 0; at < cache->set_bytes; at += 64)
		__builtin_prefetch(set + at, 1);
}

/* The block's lines; a block that was not there takes the way used least recently. */
static inline struct l2_lines *l2_find_block(struct l2_cache *cache, uint64_t number,
					     struct l2_answer *out)
{
	uint32_t tag = (uint32_t)(number & ((UINT64_C(1) << L2_NUMBER_BITS) - 1)) + 1, *tags;
	struct l2_lines *lines;
	struct l2_ring *ring;
	unsigned char *set;
	unsigned way;

	if (number >> L2_NUMBER_BITS != cache->memory)
		l2_cache_allocate(cache, number);
	set = cache->set + (uint64_t)l2_set_of(cache, tag - 1) * cache->set_bytes;
	tags = (uint32_t *)(void *)set;
	lines = (struct l2_lines *)(void *)(set + cache->lines_at);
	ring = (struct l2_ring *)(void *)(set + cache->ring_at);
	way = l2_find_way((const l2_quad *)(const void *)set, cache->ways, tag);
	if (!way--) {
		way = ring[set[cache->ring_at - 1]].newer;
		if (lines[way].dirty)
			out->clean = l2_cache_victim(cache, tags[way], lines[way].dirty);
		lines[way].valid = lines[way].dirty = 0;
		tags[way] = tag;
	}
	l2_make_newest(&set[cache->ring_at - 1], ring, way);
	return &lines[way];
}

/* Looks up the lines of [pa, pa + bytes), which lie in one block. What misses is there afterwards;
 * a write makes lines dirty, and fills no line that it covers entirely. */
static inline void l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
				   struct l2_answer *out)
{
	uint64_t number = pa >> cache->block_lg2, first = pa >> cache->line_lg2;
	uint64_t count = ((pa + bytes - 1) >> cache->line_lg2) - first + 1;
	uint64_t mask = (~UINT64_C(0) >> (64 - count)) << (first & cache->lines_mask), missing;
	struct l2_lines *block;

	memset(out, 0, sizeof(*out));
	block = l2_find_block(cache, number, out);
	missing = mask & ~block->valid;
	block->valid |= (uint32_t)mask;
	out->lines = count;
	if (!missing)
		out->hits = count;
	else if (missing != mask)
		out->hits = count - (uint64_t)__builtin_popcountll(missing);
	if (write) {
		block->dirty |= (uint32_t)mask;
		missing &= l2_cache_partial(cache, pa, bytes);
	}
	if (missing)
		out->fill = l2_stretch_of(cache, number << cache->block_lg2, missing);
}

#ifdef __cplusplus
}
#endif

#endif
