/* SPDX-License-Identifier: Apache-2.0
 *
 * L2 tags. What a lookup reads lies together: of each set the tags, the ways in order of use, and
 * the lines. Lookups are in the header.
 */
#include "l2-cache.h"

#include <glib.h>

#define SET_ALIGN 64u /* a cache line of the machine that runs the model */
#define NO_MEMORY UINT64_MAX

struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways)
{
	struct l2_cache *cache = g_new0(struct l2_cache, 1);

	g_assert(ways && ways <= L2_WAYS_MAX && block_bytes <= 32 * line_bytes);
	cache->ways = ways;
	cache->line_lg2 = (unsigned)__builtin_ctzll(line_bytes);
	cache->block_lg2 = (unsigned)__builtin_ctzll(block_bytes);
	cache->sets = (uint32_t)MAX(1, bytes / (block_bytes * ways));
	cache->sets_inverse = UINT64_MAX / cache->sets + 1;
	cache->memory = NO_MEMORY;
	cache->lines_mask = (1u << (cache->block_lg2 - cache->line_lg2)) - 1;
	cache->ring_at = (ways + 15) / 16 * 4 * (uint32_t)sizeof(l2_quad) + 1;
	cache->lines_at = (cache->ring_at + ways * (uint32_t)sizeof(struct l2_ring) + 7) & ~7u;
	cache->set_bytes =
		(cache->lines_at + ways * (uint32_t)sizeof(struct l2_lines) + SET_ALIGN - 1) &
		~(SET_ALIGN - 1);
	return cache;
}

void l2_cache_allocate(struct l2_cache *cache, uint64_t number)
{
	g_assert(cache->memory == NO_MEMORY);
	cache->memory = number >> L2_NUMBER_BITS;
	cache->set = g_aligned_alloc0(cache->sets, cache->set_bytes, SET_ALIGN);
	for (uint32_t set = 0; set < cache->sets; set++) {
		struct l2_ring *ring =
			(struct l2_ring *)(void *)(cache->set + (size_t)set * cache->set_bytes +
						   cache->ring_at);

		for (unsigned way = 0; way < cache->ways; way++) {
			ring[way].older = (unsigned char)((way + 1) % cache->ways);
			ring[way].newer = (unsigned char)((way + cache->ways - 1) % cache->ways);
		}
	}
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_aligned_free(cache->set);
	g_free(cache);
}

struct l2_stretch l2_cache_victim(const struct l2_cache *cache, uint32_t tag, uint32_t dirty)
{
	uint64_t number = cache->memory << L2_NUMBER_BITS | (tag - 1);

	return l2_stretch_of(cache, number << cache->block_lg2, dirty);
}

static uint64_t line_bit(const struct l2_cache *cache, uint64_t pa)
{
	uint64_t block_mask = (UINT64_C(1) << cache->block_lg2) - 1;

	return UINT64_C(1) << ((pa & block_mask) >> cache->line_lg2);
}

uint64_t l2_cache_partial(const struct l2_cache *cache, uint64_t pa, uint64_t bytes)
{
	uint64_t line = (UINT64_C(1) << cache->line_lg2) - 1;

	return (pa & line ? line_bit(cache, pa) : 0) |
	       ((pa + bytes) & line ? line_bit(cache, pa + bytes - 1) : 0);
}
