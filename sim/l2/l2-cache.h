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

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	unsigned lines_lg2;   /* of a block */
	unsigned block_lines; /* of a block, less one */
	uint32_t groups;
	uint64_t groups_inverse; /* of 2^64 */
	uint64_t memory;         /* upper bits of every block's number */
	struct l2_group *group;
	struct l2_set *set; /* one of each group while it is whole, then one of each line */
};

/* A stretch of memory that the access brings about. */
struct l2_stretch {
	uint64_t pa, bytes;
};

/* bytes / (block_bytes x ways) groups (at least one) of a set for each line; a block has at most 32
 * lines, a set 16 ways. Tags are had at the first access; all accesses are to one memory of 2^30
 * blocks. */
struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways);
void l2_cache_free(struct l2_cache *cache);

struct l2_answer {
	uint64_t lines, hits;
	struct l2_stretch fill; /* lines to read from memory: from the first to the last, hits
				   between left in */
	unsigned cleans;
	struct l2_stretch clean[L2_LINES_MAX]; /* dirty lines to write back */
};

/* For l2_cache_access(): the tags; several units, or a group to be split or made whole again,
 * which returns the missing lines; what of those is to be filled. */
__attribute__((cold)) void l2_cache_allocate(struct l2_cache *cache, uint64_t number);
uint64_t l2_cache_access_units(struct l2_cache *cache, uint32_t group, uint32_t tag, unsigned first,
			       unsigned count, bool write, struct l2_answer *out);
void l2_cache_fill(const struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
		   uint64_t missing, struct l2_answer *out);

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
	return (pa >> cache->block_lg2) & ((1u << L2_NUMBER_BITS) - 1);
}

static inline unsigned l2_line(const struct l2_cache *cache, uint64_t pa)
{
	return (unsigned)(pa >> cache->line_lg2) & cache->block_lines;
}

/* Puts the tag first; those before place `at` move one further, what was there goes. */
static inline void l2_put_first(struct l2_set *set, unsigned at, uint32_t tag)
{
	if (G_LIKELY(at == L2_WAYS_MAX - 1)) { /* of one size, and so without a loop */
		const struct l2_set was = *set;

		memcpy(&set->tag[1], was.tag, sizeof(was.tag) - sizeof(tag));
	} else {
		memmove(&set->tag[1], set->tag, at * sizeof(tag));
	}
	set->tag[0] = tag;
}

/* The place of the tag, dirty or not, plus 1; 0: none. Without a branch, so that several are
 * compared at once. */
static inline unsigned l2_find_tag(const struct l2_set *set, uint32_t tag)
{
	typedef uint32_t four __attribute__((vector_size(16), may_alias));
	const four *tags = (const four *)(const void *)set->tag;
	four place = { 1, 2, 3, 4 }, found = { 0 };

	for (unsigned i = 0; i < L2_WAYS_MAX / 4; i++, place += 4)
		found |= (four)((tags[i] & ~1u) == tag) & place;
	return found[0] | found[1] | found[2] | found[3];
}

/* Looks the tag up, which is there afterwards, as the newest. True if it was before. *out_gone: the
 * dirty tag that has gone for it; 0: none. */
static inline bool l2_look_up(const struct l2_cache *cache, struct l2_set *set, uint32_t tag,
			      bool write, uint32_t *out_gone)
{
	unsigned at = 0;
	uint32_t found = set->tag[0];
	bool hit = (found & ~1u) == tag;

	*out_gone = 0;
	if (!hit) {
		at = l2_find_tag(set, tag);
		hit = at != 0;
		at = hit ? at - 1 : cache->ways - 1;
		found = set->tag[at];
		if (!hit) {
			*out_gone = found & 1 ? found : 0;
			found = tag;
		}
		l2_put_first(set, at, found);
	}
	if (G_UNLIKELY(write))
		set->tag[0] |= 1;
	return hit;
}

/* Notes that lines of a block which has gone are to be written back. */
static inline void l2_add_clean(const struct l2_cache *cache, uint32_t gone, unsigned first,
				unsigned count, struct l2_answer *out)
{
	uint64_t number = cache->memory << L2_NUMBER_BITS | ((gone >> 1) - 1);
	uint64_t pa = (number << cache->block_lg2) + ((uint64_t)first << cache->line_lg2);
	struct l2_stretch *last = out->cleans ? &out->clean[out->cleans - 1] : NULL;

	if (last && last->pa + last->bytes == pa)
		last->bytes += (uint64_t)count << cache->line_lg2;
	else
		out->clean[out->cleans++] =
			(struct l2_stretch){ pa, (uint64_t)count << cache->line_lg2 };
}

/* The group of the block that has pa. Its set is on its way to the host's caches then. */
static inline uint32_t l2_cache_find(struct l2_cache *cache, uint64_t pa)
{
	uint32_t group = l2_group_of(cache, l2_number(cache, pa));
	const struct l2_group *it;

	if (G_UNLIKELY(pa >> cache->block_lg2 >> L2_NUMBER_BITS != cache->memory))
		l2_cache_allocate(cache, pa >> cache->block_lg2);
	it = &cache->group[group];
	__builtin_prefetch(&cache->set[it->at + (l2_line(cache, pa) & -it->unit)], 1);
	return group;
}

/* l2_cache_access() of a group that has been found. */
__attribute__((always_inline)) static inline void l2_cache_access_in(struct l2_cache *cache,
								     uint32_t group, uint64_t pa,
								     uint64_t bytes, bool write,
								     struct l2_answer *out)
{
	uint32_t tag = (l2_number(cache, pa) + 1) << 1, gone;
	unsigned first = l2_line(cache, pa), count = l2_line(cache, pa + bytes - 1) - first + 1;
	const struct l2_group *it = &cache->group[group];
	uint64_t missing;
	bool hit;

	out->lines = count;
	out->cleans = 0;
	if (G_LIKELY(count == it->unit && !(first & (count - 1)) && !it->coarse)) {
		hit = l2_look_up(cache, &cache->set[it->at + first], tag, write, &gone);
		out->hits = hit ? count : 0;
		if (G_UNLIKELY(gone))
			l2_add_clean(cache, gone, first, count, out);
		out->fill.pa = pa >> cache->line_lg2 << cache->line_lg2;
		out->fill.bytes = hit ? 0 : (uint64_t)count << cache->line_lg2;
		if (G_LIKELY(hit || !write))
			return;
		missing = (~UINT64_C(0) >> (64 - count)) << first;
	} else {
		missing = l2_cache_access_units(cache, group, tag, first, count, write, out);
	}
	l2_cache_fill(cache, pa, bytes, write, missing, out);
}

/* Looks up the lines of [pa, pa + bytes), which lie in one block. What misses is there afterwards;
 * a write makes lines dirty, and fills no line that it covers entirely. */
__attribute__((always_inline)) static inline void l2_cache_access(struct l2_cache *cache,
								  uint64_t pa, uint64_t bytes,
								  bool write, struct l2_answer *out)
{
	l2_cache_access_in(cache, l2_cache_find(cache, pa), pa, bytes, write, out);
}

G_END_DECLS

#endif
