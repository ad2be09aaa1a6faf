/* SPDX-License-Identifier: Apache-2.0
 *
 * L2 tags. What a lookup reads lies together: of each set the tags, and a list of the ways in order
 * of use, the last of which goes first.
 */
#include "l2-cache.h"

#include <glib.h>
#include <string.h>

#define WAYS_MAX 64u
#define NUMBER_BITS                                                                             \
	31u           /* of a block's number that a tag holds; those above are the memory's own \
		       */
#define SET_ALIGN 64u /* a cache line of the machine that runs the model */

/* Four tags are compared at once. */
typedef uint32_t quad __attribute__((vector_size(16)));

struct lines {
	uint32_t valid, dirty;
};

struct l2_cache {
	unsigned ways, line_lg2, block_lg2;
	uint32_t sets;
	size_t order_at, lines_at, set_bytes;
	uint64_t memory; /* upper bits of every block's number */
	/* of each set: tags (number + 1 in its lower bits, 0: free), made up to whole quads; the
	 * ways in order of use, as a ring, its first element in front; the lines of each way */
	unsigned char *set;
};

struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways)
{
	struct l2_cache *cache = g_new0(struct l2_cache, 1);

	g_assert(ways && ways <= WAYS_MAX && block_bytes <= 32 * line_bytes);
	cache->ways = ways;
	cache->line_lg2 = (unsigned)__builtin_ctzll(line_bytes);
	cache->block_lg2 = (unsigned)__builtin_ctzll(block_bytes);
	cache->sets = (uint32_t)MAX(1, bytes / (block_bytes * ways));
	cache->order_at = (ways + 3) / 4 * sizeof(quad);
	cache->lines_at = (cache->order_at + 1 + ways + 7) & ~(size_t)7;
	cache->set_bytes = (cache->lines_at + ways * sizeof(struct lines) + SET_ALIGN - 1) &
			   ~(size_t)(SET_ALIGN - 1);
	return cache;
}

static void allocate(struct l2_cache *cache, uint64_t number)
{
	cache->memory = number >> NUMBER_BITS;
	cache->set = g_aligned_alloc0(cache->sets, cache->set_bytes, SET_ALIGN);
	for (uint32_t set = 0; set < cache->sets; set++)
		for (unsigned way = 0; way < cache->ways; way++)
			cache->set[set * cache->set_bytes + cache->order_at + 1 + way] =
				(unsigned char)way;
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_aligned_free(cache->set);
	g_free(cache);
}

static uint32_t low_number(uint64_t number)
{
	return (uint32_t)(number & ((UINT64_C(1) << NUMBER_BITS) - 1));
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
	stretch.bytes =
		base + ((64 - (uint64_t)__builtin_clzll(mask)) << cache->line_lg2) - stretch.pa;
	return stretch;
}

static unsigned find_way(const quad *tags, unsigned ways, uint32_t tag)
{
	quad want = { tag, tag, tag, tag }, found = { 0 };
	const uint32_t *single = (const uint32_t *)(const void *)tags;
	unsigned way = 0;
	uint64_t any[2];

	for (unsigned i = 0; i < (ways + 3) / 4; i++)
		found |= (quad)(tags[i] == want);
	memcpy(any, &found, sizeof(any));
	if (!(any[0] | any[1]))
		return ways;
	while (single[way] != tag)
		way++;
	return way;
}

/* The way becomes the one used last. The one used least recently only turns the ring. */
static void move_to_front(unsigned char *order, unsigned ways, unsigned way)
{
	unsigned char *ring = order + 1, next = (unsigned char)way, was;
	unsigned first = order[0], last = first ? first - 1 : ways - 1;

	if (ring[last] == way) {
		order[0] = (unsigned char)last;
		return;
	}
	for (unsigned i = first;; i = i + 1 == ways ? 0 : i + 1) {
		was = ring[i];
		ring[i] = next;
		if (was == way)
			return;
		next = was;
	}
}

/* The block's lines; a block that was not there takes the way used least recently. */
static struct lines *find_block(struct l2_cache *cache, uint64_t number, struct l2_answer *out)
{
	uint32_t tag = low_number(number) + 1, *tags;
	unsigned char *set, *order;
	struct lines *lines;
	unsigned way;

	if (!cache->set)
		allocate(cache, number);
	g_assert(number >> NUMBER_BITS == cache->memory);
	set = cache->set + (tag - 1) % cache->sets * cache->set_bytes;
	tags = (uint32_t *)(void *)set;
	order = set + cache->order_at;
	lines = (struct lines *)(void *)(set + cache->lines_at);
	way = order[1 + order[0]];
	if (tags[way] == tag)
		return &lines[way];
	way = find_way((const quad *)(const void *)set, cache->ways, tag);
	if (way == cache->ways) {
		way = order[1 + (order[0] ? order[0] : cache->ways) - 1];
		if (lines[way].dirty)
			out->clean = stretch_of(cache,
						(cache->memory << NUMBER_BITS | (tags[way] - 1))
							<< cache->block_lg2,
						lines[way].dirty);
		lines[way] = (struct lines){ 0, 0 };
		tags[way] = tag;
	}
	move_to_front(order, cache->ways, way);
	return &lines[way];
}

void l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
		     struct l2_answer *out)
{
	uint64_t number = pa >> cache->block_lg2;
	uint64_t mask = lines_mask(cache, pa, pa + bytes - 1), missing;
	uint64_t line = (UINT64_C(1) << cache->line_lg2) - 1;
	struct lines *block;

	*out = (struct l2_answer){ 0 };
	block = find_block(cache, number, out);
	missing = mask & ~block->valid;
	out->lines = ((pa + bytes - 1) >> cache->line_lg2) - (pa >> cache->line_lg2) + 1;
	out->hits = out->lines -
		    (missing == mask ? out->lines : (uint64_t)__builtin_popcountll(missing));
	if (write) {
		uint64_t partial = 0;

		if (pa & line)
			partial |= lines_mask(cache, pa, pa);
		if ((pa + bytes) & line)
			partial |= lines_mask(cache, pa + bytes - 1, pa + bytes - 1);
		missing &= partial;
		block->dirty |= (uint32_t)mask;
	}
	out->fill = stretch_of(cache, number << cache->block_lg2, missing);
	block->valid |= (uint32_t)mask;
}
