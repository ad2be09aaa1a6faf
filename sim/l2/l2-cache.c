/* SPDX-License-Identifier: Apache-2.0
 *
 * L2 tags. Ways of a set are kept in order of use: a hit moves its way to the front, so that the last one goes first.
 */
#include "l2-cache.h"

#include <glib.h>
#include <string.h>

struct block {
	uint64_t tag; /* block number + 1; 0: free */
	uint64_t valid, dirty;
};

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	uint64_t sets;
	struct block *block;
};

struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways)
{
	struct l2_cache *cache = g_new0(struct l2_cache, 1);

	cache->ways = ways;
	cache->line_lg2 = (unsigned)__builtin_ctzll(line_bytes);
	cache->block_lg2 = (unsigned)__builtin_ctzll(block_bytes);
	cache->sets = MAX(1, bytes / (block_bytes * ways));
	return cache;
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_free(cache->block);
	g_free(cache);
}

static uint64_t lines_mask(const struct l2_cache *cache, uint64_t first, uint64_t last)
{
	uint64_t block_mask = (UINT64_C(1) << (cache->block_lg2 - cache->line_lg2)) - 1;
	uint64_t from = first >> cache->line_lg2 & block_mask;
	uint64_t to = last >> cache->line_lg2 & block_mask;

	return (~UINT64_C(0) >> (63 - (to - from))) << from;
}

static struct l2_stretch stretch_of(const struct l2_cache *cache, uint64_t base, uint64_t mask)
{
	struct l2_stretch stretch = { 0, 0 };

	if (!mask)
		return stretch;
	stretch.pa = base + ((uint64_t)__builtin_ctzll(mask) << cache->line_lg2);
	stretch.bytes = base + ((64 - (uint64_t)__builtin_clzll(mask)) << cache->line_lg2) - stretch.pa;
	return stretch;
}

/* The block's way, moved to the front of its set; a block that was not there takes the last one. */
static struct block *find_block(struct l2_cache *cache, uint64_t number, struct l2_answer *out)
{
	struct block *set, found;
	unsigned way = 0;

	if (!cache->block)
		cache->block = g_new0(struct block, cache->sets * cache->ways);
	set = &cache->block[number % cache->sets * cache->ways];
	while (way < cache->ways - 1 && set[way].tag != number + 1)
		way++;
	found = set[way];
	if (found.tag != number + 1) {
		if (found.tag)
			out->clean = stretch_of(cache, (found.tag - 1) << cache->block_lg2,
						found.dirty);
		found = (struct block){ .tag = number + 1 };
	}
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = found;
	return set;
}

void l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
		     struct l2_answer *out)
{
	uint64_t number = pa >> cache->block_lg2;
	uint64_t mask = lines_mask(cache, pa, pa + bytes - 1), missing;
	uint64_t line = (UINT64_C(1) << cache->line_lg2) - 1;
	struct block *block;

	memset(out, 0, sizeof(*out));
	block = find_block(cache, number, out);
	missing = mask & ~block->valid;
	out->lines = (uint64_t)__builtin_popcountll(mask);
	out->hits = out->lines - (uint64_t)__builtin_popcountll(missing);
	if (write) {
		uint64_t partial = 0;

		if (pa & line)
			partial |= lines_mask(cache, pa, pa);
		if ((pa + bytes) & line)
			partial |= lines_mask(cache, pa + bytes - 1, pa + bytes - 1);
		missing &= partial;
		block->dirty |= mask;
	}
	out->fill = stretch_of(cache, number << cache->block_lg2, missing);
	block->valid |= mask;
}
