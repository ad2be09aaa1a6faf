/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of a device's L2: set-associative in lines, LRU, write-back. The lines of a block lie in
 * as many sets side by side, a group. Sets that have only seen the same, as those of a group do in
 * a stream, are kept once: such a unit of up to a block costs one step. Plain code: no time, no
 * data.
 */
#ifndef NPUSIM_SIM_L2_L2_CACHE_H
#define NPUSIM_SIM_L2_L2_CACHE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

G_BEGIN_DECLS

#define L2_WAYS_MAX    16u
#define L2_LINES_MAX   32u /* of a block */
#define L2_NUMBER_BITS 30u /* of a block's number that a tag holds; others are the memory's own */

/* What a lookup reads, one cache line of the machine that runs the model: the line used last comes
 * first. A tag: the block's number + 1, and below it whether the line is dirty; 0: free. */
struct l2_set {
	uint32_t tag[L2_WAYS_MAX];
} __attribute__((aligned(64)));

struct l2_group {
	uint32_t at;     /* of its first set */
	uint16_t unit;   /* lines that a set stands for */
	uint16_t coarse; /* lines that came in larger units than these since a smaller one */
};

/* A stretch of memory that the access brings about. */
struct l2_stretch {
	uint64_t pa, bytes;
};

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	unsigned lines_lg2;   /* of a block */
	unsigned block_lines; /* of a block, less one */
	uint32_t groups;
	uint64_t line_mask;      /* of an address: the line's */
	uint64_t groups_inverse; /* of 2^64 */
	uint64_t first;          /* of the memory's blocks; others are numbered from there */
	struct l2_group *group;
	struct l2_set *set; /* one of each group while it is whole, then one of each line */
	struct l2_stretch clean[L2_LINES_MAX]; /* dirty lines that the last access writes back */
};

/* bytes / (block_bytes x ways) groups (at least one) of a set for each line; a block has at most 32
 * lines, a set 16 ways. Tags are had at the first access; all accesses are to one memory of 2^30
 * blocks. */
struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways);
void l2_cache_free(struct l2_cache *cache);

struct l2_answer {
	unsigned lines, hits;
	unsigned cleans;        /* of the cache's clean[] */
	struct l2_stretch fill; /* lines to read from memory: from the first to the last, hits
				   between left in */
};

/* For l2_cache_access(): the tags; several units, or a group to be split or made whole again; what
 * of the missing lines is to be filled. */
__attribute__((cold)) void l2_cache_allocate(struct l2_cache *cache, uint64_t number);
struct l2_answer l2_cache_access_units(struct l2_cache *cache, uint64_t pa, uint64_t bytes,
				       bool write);
struct l2_stretch l2_cache_fill(const struct l2_cache *cache, uint64_t pa, uint64_t bytes,
				bool write, uint64_t missing);

/* Each lap of the memory through the groups begins one further on, four laps in turn, so that a
 * matrix's columns do not all meet in a few; a lap still has one block for each group. No more than
 * four: what is written back lies as many blocks off what is read, and long runs of it are to be
 * whole stripes of the HBM. Remainder by multiplication: Lemire, Kaser, Kurz, "Faster remainder by
 * direct computation", 2019. */
static inline uint32_t l2_group_of(const struct l2_cache *cache, uint32_t number)
{
	__extension__ typedef unsigned __int128 uint128;

	number += (uint32_t)((uint128)number * cache->groups_inverse >> 64) % 4;
	return (uint32_t)((uint128)(number * cache->groups_inverse) * cache->groups >> 64);
}

static inline uint32_t l2_number(const struct l2_cache *cache, uint64_t pa)
{
	return (uint32_t)((pa >> cache->block_lg2) - cache->first);
}

static inline unsigned l2_line(const struct l2_cache *cache, uint64_t pa)
{
	return (unsigned)(pa >> cache->line_lg2) & cache->block_lines;
}

typedef uint32_t l2_tags __attribute__((vector_size(16), aligned(4), may_alias));

/* Puts the tag first; those before place `at` move one further, what was there goes. */
static inline void l2_put_first(struct l2_set *set, unsigned at, uint32_t tag)
{
	l2_tags *from = (l2_tags *)(void *)&set->tag[0], *to = (l2_tags *)(void *)&set->tag[1];

	if (G_LIKELY(at == L2_WAYS_MAX - 1)) { /* of one size, and so without a loop */
		const l2_tags was[] = { from[0], from[1], from[2] };

		*(l2_tags *)(void *)&set->tag[12] = *(l2_tags *)(void *)&set->tag[11];
		to[0] = was[0];
		to[1] = was[1];
		to[2] = was[2];
	} else {
		memmove(&set->tag[1], set->tag, at * sizeof(tag));
	}
	set->tag[0] = tag;
}

/* The place of the tag, dirty or not, plus 1; 0: none. */
static inline unsigned l2_find_tag(const struct l2_set *set, uint32_t tag)
{
#ifdef __SSE2__
	const __m128i *tags = (const __m128i *)(const void *)set->tag,
		      wanted = _mm_set1_epi32((int)tag);
	__m128i is[L2_WAYS_MAX / 4];

	for (unsigned i = 0; i < L2_WAYS_MAX / 4; i++)
		is[i] = _mm_cmpeq_epi32(_mm_and_si128(tags[i], _mm_set1_epi32(~1)), wanted);
	is[0] = _mm_packs_epi16(_mm_packs_epi32(is[0], is[1]), _mm_packs_epi32(is[2], is[3]));
	return (unsigned)__builtin_ffs(_mm_movemask_epi8(is[0]));
#else
	for (unsigned at = 0; at < L2_WAYS_MAX; at++)
		if ((set->tag[at] & ~1u) == tag)
			return at + 1;
	return 0;
#endif
}

/* Looks the tag up, which is there afterwards, as the newest. True if it was before. *out_gone: the
 * tag that has gone for it; 0: none. */
static inline bool l2_look_up(const struct l2_cache *cache, struct l2_set *set, uint32_t tag,
			      bool write, uint32_t *out_gone)
{
	unsigned at;

	*out_gone = 0;
	if ((set->tag[0] & ~1u) == tag) {
		set->tag[0] |= write;
		return true;
	}
	at = l2_find_tag(set, tag);
	if (at) {
		l2_put_first(set, at - 1, set->tag[at - 1] | write);
		return true;
	}
	*out_gone = set->tag[cache->ways - 1];
	l2_put_first(set, cache->ways - 1, tag | write);
	return false;
}

/* Notes that lines of a block which has gone are to be written back, behind so many stretches;
 * returns how many there are then. */
static inline unsigned l2_add_clean(struct l2_cache *cache, uint32_t gone, unsigned first,
				    unsigned count, unsigned cleans)
{
	uint64_t number = cache->first + (gone >> 1) - 1;
	uint64_t pa = (number << cache->block_lg2) + ((uint64_t)first << cache->line_lg2);
	uint64_t bytes = (uint64_t)count << cache->line_lg2;
	struct l2_stretch *last = cleans ? &cache->clean[cleans - 1] : NULL;

	if (last && last->pa + last->bytes == pa) {
		last->bytes += bytes;
		return cleans;
	}
	cache->clean[cleans] = (struct l2_stretch){ pa, bytes };
	return cleans + 1;
}

/* Where lines of a block are looked up: their set, where they are a unit; NULL: sets have to be
 * split, or counted. Until the next l2_cache_access_units(). */
struct l2_place {
	struct l2_set *set;
	uint32_t tag;
	unsigned lines;
};

/* The place of the lines of [pa, pa + bytes), which lie in one block. Their set is on its way to
 * the host's caches then. */
__attribute__((always_inline)) static inline struct l2_place
l2_cache_find(struct l2_cache *cache, uint64_t pa, uint64_t bytes)
{
	uint64_t number = (pa >> cache->block_lg2) - cache->first, line = pa >> cache->line_lg2;
	unsigned first = (unsigned)line & cache->block_lines;
	unsigned count = (unsigned)(((pa + bytes - 1) >> cache->line_lg2) - line) + 1;
	const struct l2_group *it;
	struct l2_set *set;
	bool is_unit;

	if (G_UNLIKELY(number >= UINT64_C(1) << L2_NUMBER_BITS)) {
		l2_cache_allocate(cache, pa >> cache->block_lg2);
		number = l2_number(cache, pa);
	}
	it = &cache->group[l2_group_of(cache, (uint32_t)number)];
	set = &cache->set[it->at + first];
	__builtin_prefetch(set, 1);
	is_unit = (it->unit | (uint32_t)it->coarse << 16) == count && !(first & (count - 1));
	return (struct l2_place){ is_unit ? set : NULL, (uint32_t)(number + 1) << 1, count };
}

/* l2_cache_access() of lines that have been found, and are a unit. */
__attribute__((always_inline)) static inline struct l2_answer
l2_cache_access_at(struct l2_cache *cache, struct l2_place at, uint64_t pa, uint64_t bytes,
		   bool write)
{
	struct l2_answer out = { at.lines, 0, 0, { 0, 0 } };
	uint32_t gone;

	if (l2_look_up(cache, at.set, at.tag, write, &gone)) {
		out.hits = at.lines;
		return out;
	}
	out.fill.pa = pa & cache->line_mask;
	out.fill.bytes = (uint64_t)at.lines << cache->line_lg2;
	if (G_UNLIKELY(gone & 1))
		out.cleans = l2_add_clean(cache, gone, l2_line(cache, pa), at.lines, 0);
	if (G_UNLIKELY(write))
		out.fill = l2_cache_fill(cache, pa, bytes, write,
					 (~UINT64_C(0) >> (64 - at.lines)) << l2_line(cache, pa));
	return out;
}

/* Looks up the lines of [pa, pa + bytes), which lie in one block. What misses is there afterwards;
 * a write makes lines dirty, and fills no line that it covers entirely. */
__attribute__((always_inline)) static inline struct l2_answer
l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write)
{
	const struct l2_place at = l2_cache_find(cache, pa, bytes);

	return G_LIKELY(at.set) ? l2_cache_access_at(cache, at, pa, bytes, write)
				: l2_cache_access_units(cache, pa, bytes, write);
}

G_END_DECLS

#endif
