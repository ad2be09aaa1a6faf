/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates the L2 tags, and handles the writes. Lookups are in the header.
 */
#include "l2-cache.h"

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
	cache->oldest = 4 * (ways - 1);
	return cache;
}

void l2_cache_allocate(struct l2_cache *cache, uint64_t number)
{
	g_assert(cache->memory == NO_MEMORY);
	cache->memory = number >> L2_NUMBER_BITS;
	cache->set = g_aligned_alloc0(cache->sets, sizeof(*cache->set), 64);
	cache->order = g_aligned_alloc0(cache->sets, sizeof(*cache->order), 64);
	cache->dirty = g_aligned_alloc0(cache->sets, sizeof(*cache->dirty), 64);
	for (uint32_t set = 0; set < cache->sets; set++)
		cache->order[set].ways = UINT64_C(0xfedcba9876543210);
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_aligned_free(cache->set);
	g_aligned_free(cache->order);
	g_aligned_free(cache->dirty);
	g_free(cache);
}

struct l2_stretch l2_cache_clean(struct l2_cache *cache, uint32_t set, unsigned way)
{
	uint64_t number = cache->memory << L2_NUMBER_BITS | (cache->set[set].tag[way] - 1);
	uint32_t dirty = cache->dirty[set][way];

	cache->dirty[set][way] = 0;
	cache->order[set].dirty &= ~(1u << way);
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
