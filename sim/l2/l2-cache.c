/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates the L2 tags, splits groups of sets and joins them again. Lookups are in the header.
 */
#include "l2-cache.h"

#include <sys/mman.h>

#include "base/int-map.h"

#define NO_BLOCK (UINT64_C(1) << 63)

struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways)
{
	struct l2_cache *cache = g_new0(struct l2_cache, 1);

	g_assert(ways && ways <= L2_WAYS_MAX && block_bytes <= L2_LINES_MAX * line_bytes);
	cache->ways = ways;
	cache->line_mask = -line_bytes;
	cache->line_lg2 = (unsigned)__builtin_ctzll(line_bytes);
	cache->block_lg2 = (unsigned)__builtin_ctzll(block_bytes);
	cache->lines_lg2 = cache->block_lg2 - cache->line_lg2;
	cache->block_lines = (1u << cache->lines_lg2) - 1;
	cache->groups = (uint32_t)MAX(1, bytes / (block_bytes * ways));
	cache->groups_inverse = UINT64_MAX / cache->groups + 1;
	cache->first = NO_BLOCK;
	return cache;
}

static size_t sets_bytes(const struct l2_cache *cache)
{
	return (cache->groups + ((size_t)cache->groups << cache->lines_lg2)) * sizeof(*cache->set);
}

/* Pages of sets that no group has been split into are never touched, not even by a malloc() that
 * fills what it gives (MALLOC_PERTURB_). */
void l2_cache_allocate(struct l2_cache *cache, uint64_t number)
{
	g_assert(cache->first == NO_BLOCK);
	cache->first = number >> L2_NUMBER_BITS << L2_NUMBER_BITS;
	cache->group = g_new0(struct l2_group, cache->groups);
	cache->set = npu_pages_new(sets_bytes(cache), true); /* random accesses touch all of it */
	if (cache->set == NULL)
		g_error("no memory for the tags of the L2");
	for (uint32_t i = 0; i < cache->groups; i++)
		cache->group[i] = (struct l2_group){ i, (uint16_t)(1u << cache->lines_lg2), 0 };
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_free(cache->group);
	if (cache->set != NULL)
		munmap(cache->set, sets_bytes(cache));
	g_free(cache);
}

static void split(struct l2_cache *cache, uint32_t group)
{
	struct l2_group *it = &cache->group[group];
	unsigned lines = 1u << cache->lines_lg2, unit = it->unit;
	const struct l2_set *whole = &cache->set[it->at];
	struct l2_set *set;

	it->at = cache->groups + (group << cache->lines_lg2);
	it->unit /= 2;
	set = &cache->set[it->at];
	set[0] = *whole;
	for (unsigned line = 0; line < lines; line += unit)
		set[line + unit / 2] = set[line];
}

/* Joins units two by two while all pairs are equal, up to so many lines. */
static void join(struct l2_cache *cache, uint32_t group, unsigned lines)
{
	struct l2_group *it = &cache->group[group];
	struct l2_set *set = &cache->set[it->at];
	unsigned all = 1u << cache->lines_lg2;

	for (; it->unit < lines; it->unit *= 2)
		for (unsigned line = 0; line < all; line += 2 * it->unit)
			if (memcmp(&set[line], &set[line + it->unit], sizeof(*set)) != 0)
				return;
	if (it->unit < all)
		return;
	it->at = group;
	cache->set[group] = *set;
}

static uint64_t line_bit(const struct l2_cache *cache, uint64_t pa)
{
	return UINT64_C(1) << l2_line(cache, pa);
}

/* Of a write, those at its ends that it does not cover. */
struct l2_stretch l2_cache_fill(const struct l2_cache *cache, uint64_t pa, uint64_t bytes,
				bool write, uint64_t missing)
{
	uint64_t line = (UINT64_C(1) << cache->line_lg2) - 1;
	unsigned from, to;

	if (write)
		missing &= (pa & line ? line_bit(cache, pa) : 0) |
			   ((pa + bytes) & line ? line_bit(cache, pa + bytes - 1) : 0);
	if (!missing)
		return (struct l2_stretch){ 0 };
	from = (unsigned)__builtin_ctzll(missing);
	to = 64 - (unsigned)__builtin_clzll(missing);
	return (struct l2_stretch){ (pa >> cache->block_lg2 << cache->block_lg2) +
					    ((uint64_t)from << cache->line_lg2),
				    (uint64_t)(to - from) << cache->line_lg2 };
}

/* Units become as small as these lines need, and larger again once enough lines have come in larger
 * ones that all sets can have seen the same. */
struct l2_answer l2_cache_access_units(struct l2_cache *cache, uint64_t pa, uint64_t bytes,
				       bool write)
{
	uint32_t number = l2_number(cache, pa), group = l2_group_of(cache, number);
	unsigned first = l2_line(cache, pa), count = l2_line(cache, pa + bytes - 1) - first + 1;
	unsigned fits = (first | count) & -(first | count); /* the largest unit */
	struct l2_group *it = &cache->group[group];
	struct l2_answer out = { count, 0, 0, { 0, 0 } };
	uint32_t tag = (number + 1) << 1, gone;
	uint64_t missing = 0;

	while (it->unit > fits)
		split(cache, group);
	it->coarse = it->unit < fits ? (uint16_t)(it->coarse + count) : 0;
	for (unsigned line = first; line < first + count; line += it->unit) {
		if (l2_look_up(cache, &cache->set[it->at + line], tag, write, &gone))
			out.hits += it->unit;
		else
			missing |= (~UINT64_C(0) >> (64 - it->unit)) << line;
		if (G_UNLIKELY(gone & 1))
			out.cleans = l2_add_clean(cache, gone, line, it->unit, out.cleans);
	}
	if (it->coarse >= cache->ways << cache->lines_lg2) {
		join(cache, group, fits);
		it->coarse = 0;
	}
	out.fill = l2_cache_fill(cache, pa, bytes, write, missing);
	return out;
}
