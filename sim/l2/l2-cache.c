/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates the L2 tags, splits groups of sets and joins them again. Lookups are in the header.
 */
#include "l2-cache.h"

#define NO_MEMORY UINT64_MAX

struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways)
{
	struct l2_cache *cache = g_new0(struct l2_cache, 1);

	g_assert(ways && ways <= L2_WAYS_MAX && block_bytes <= L2_LINES_MAX * line_bytes);
	cache->ways = ways;
	cache->line_lg2 = (unsigned)__builtin_ctzll(line_bytes);
	cache->block_lg2 = (unsigned)__builtin_ctzll(block_bytes);
	cache->lines_lg2 = cache->block_lg2 - cache->line_lg2;
	cache->groups = (uint32_t)MAX(1, bytes / (block_bytes * ways));
	cache->groups_inverse = UINT64_MAX / cache->groups + 1;
	cache->memory = NO_MEMORY;
	return cache;
}

/* Pages of sets that no group has been split into are never touched. */
void l2_cache_allocate(struct l2_cache *cache, uint64_t number)
{
	uint64_t sets = cache->groups + ((uint64_t)cache->groups << cache->lines_lg2);

	g_assert(cache->memory == NO_MEMORY);
	cache->memory = number >> L2_NUMBER_BITS;
	cache->group = g_new0(struct l2_group, cache->groups);
	cache->sets = g_malloc0((sets + 1) * sizeof(*cache->set));
	cache->set = (struct l2_set *)(((uintptr_t)cache->sets | (sizeof(*cache->set) - 1)) + 1);
}

void l2_cache_free(struct l2_cache *cache)
{
	if (!cache)
		return;
	g_free(cache->group);
	g_free(cache->sets);
	g_free(cache);
}

/* --- units --- */

static void split(struct l2_cache *cache, uint32_t group)
{
	unsigned lines = 1u << cache->lines_lg2, unit = lines >> cache->group[group].split_lg2;
	struct l2_set *whole = l2_set_of(cache, group, 0), *set;

	cache->group[group].split_lg2++;
	set = l2_set_of(cache, group, 0);
	if (unit == lines)
		set[0] = *whole;
	for (unsigned line = 0; line < lines; line += unit)
		set[line + unit / 2] = set[line];
}

/* Joins units two by two while all pairs are equal, up to so many lines. */
static void join(struct l2_cache *cache, uint32_t group, unsigned lines)
{
	struct l2_group *it = &cache->group[group];
	struct l2_set *set = l2_set_of(cache, group, 0);
	unsigned all = 1u << cache->lines_lg2, unit = all >> it->split_lg2;

	for (; unit < lines; unit *= 2, it->split_lg2--)
		for (unsigned line = 0; line < all; line += 2 * unit)
			if (memcmp(&set[line], &set[line + unit], sizeof(*set)) != 0)
				return;
	if (!it->split_lg2)
		*l2_set_of(cache, group, 0) = *set;
}

/* The largest unit in which these lines of a block are whole units. */
static unsigned unit_of(unsigned first, unsigned count)
{
	return (first | count) & -(first | count);
}

/* Returns the missing lines. Units become as small as these lines need, and larger again once
 * enough lines have come in larger ones that all sets can have seen the same. */
uint32_t l2_cache_access_units(struct l2_cache *cache, uint32_t group, uint32_t tag, unsigned first,
			       unsigned count, bool write, struct l2_answer *out)
{
	struct l2_group *it = &cache->group[group];
	unsigned fits = unit_of(first, count), lines = 1u << cache->lines_lg2, unit;
	uint32_t missing = 0, gone;

	while (lines >> it->split_lg2 > fits)
		split(cache, group);
	unit = lines >> it->split_lg2;
	it->coarse = unit < fits ? (uint16_t)(it->coarse + count) : 0;
	for (unsigned line = first; line < first + count; line += unit) {
		if (!l2_look_up(cache, l2_set_of(cache, group, line), tag, write, &gone))
			missing |= (uint32_t)(~UINT64_C(0) >> (64 - unit)) << line;
		if (G_UNLIKELY(gone))
			l2_add_clean(cache, gone, line, unit, out);
	}
	if (it->coarse >= cache->ways << cache->lines_lg2) {
		join(cache, group, fits);
		it->coarse = 0;
	}
	return missing;
}

static uint64_t line_bit(const struct l2_cache *cache, uint64_t pa)
{
	return UINT64_C(1) << l2_line(cache, pa);
}

uint64_t l2_cache_partial(const struct l2_cache *cache, uint64_t pa, uint64_t bytes)
{
	uint64_t line = (UINT64_C(1) << cache->line_lg2) - 1;

	return (pa & line ? line_bit(cache, pa) : 0) |
	       ((pa + bytes) & line ? line_bit(cache, pa + bytes - 1) : 0);
}
