/* SPDX-License-Identifier: Apache-2.0
 *
 * Page tables in the memory of a device: map, unmap, walk.
 * A table's count of live entries stands in the descriptor that points at the table, in bits that
 * the architecture leaves to software: no memory beside the tables, and an unmap knows at once
 * whether a table became empty.
 */
#include "page-table.h"

#include <assert.h>
#include <stddef.h>

#define PTE_INNER      (UINT64_C(3) << 8)  /* SH: inner shareable */
#define PTE_ACCESSED   (UINT64_C(1) << 10) /* AF */
#define PTE_LEAF_FIXED (PTE_VALID | PTE_INNER | PTE_ACCESSED)

#define COUNT_ONE (UINT64_C(1) << PTE_COUNT_LG2)

#define NO_GIANT UINT64_MAX

static inline uint64_t *table_at(const struct page_table *pt, uint64_t pte)
{
	uint64_t room;

	return (uint64_t *)(void *)sim_memory_at(pt->host.memory, pte & PTE_PA_MASK, &room);
}

static inline void forget(struct page_table *pt)
{
	pt->cached_giant = NO_GIANT;
	pt->cached_table = NULL;
	pt->cached_parent = NULL;
}

void pt_init(struct page_table *pt, const struct pt_host *host)
{
	*pt = (struct page_table){ .host = *host };
	forget(pt);
}

static void free_below(struct page_table *pt, uint64_t *table, unsigned level, uint64_t va)
{
	for (unsigned i = 0; i < PT_ENTRIES; i++, va += UINT64_C(1) << pt_level_lg2(level)) {
		if (pt->block_gone && level < PT_LEVEL_LEAF && pt_is_leaf(table[i], level))
			pt->block_gone(pt->host.ctx, va);
		if (pt_is_table(table[i], level)) {
			free_below(pt, table_at(pt, table[i]), level + 1, va);
			pt->host.free_table(pt->host.ctx, table[i] & PTE_PA_MASK);
			pt->tables--;
		}
		table[i] = 0;
	}
}

void pt_destroy(struct page_table *pt)
{
	if (pt->root_pa) {
		free_below(pt, table_at(pt, pt->root_pa), 0, 0);
		pt->host.free_table(pt->host.ctx, pt->root_pa);
		pt->tables--;
		pt->root_pa = 0;
	}
	forget(pt);
}

/* Returns how many entries of `table` became empty. Frees tables below that have none left, those
 * that were empty before included, so that it also clears up after a map that ran out of tables. */
static unsigned unmap_level(struct page_table *pt, uint64_t *table, unsigned level, uint64_t va,
			    uint64_t last)
{
	unsigned first_index = pt_index_of(va, level);
	unsigned last_index = pt_index_of(last, level);
	uint64_t span = UINT64_C(1) << pt_level_lg2(level);
	unsigned gone = 0;

	for (unsigned i = first_index; level == PT_LEVEL_LEAF && i <= last_index; i++) {
		gone += table[i] & PTE_VALID;
		table[i] = 0;
	}
	for (unsigned i = first_index; level < PT_LEVEL_LEAF && i <= last_index; i++) {
		uint64_t pte = table[i];
		uint64_t start = (va & ~(span * PT_ENTRIES - 1)) + i * span;

		if (!(pte & PTE_VALID))
			continue;
		if (pt_is_table(pte, level)) {
			uint64_t from = start > va ? start : va;
			uint64_t to = start + (span - 1) < last ? start + (span - 1) : last;

			table[i] -=
				COUNT_ONE * unmap_level(pt, table_at(pt, pte), level + 1, from, to);
			if (table[i] & PTE_COUNT)
				continue;
			pt->host.free_table(pt->host.ctx, pte & PTE_PA_MASK);
			pt->tables--;
		} else {
			assert(start >= va && start + (span - 1) <= last);
		}
		table[i] = 0;
		gone++;
	}
	return gone;
}

/* Within the level 2 table used last, blocks only, and some of them staying: no walk. */
static bool unmap_blocks(struct page_table *pt, uint64_t va, uint64_t bytes)
{
	uint64_t *first, gone = 0, n = bytes >> PT_HUGE_LG2;

	if (va >> PT_GIANT_LG2 != pt->cached_giant ||
	    (va + bytes - 1) >> PT_GIANT_LG2 != pt->cached_giant ||
	    (va | bytes) & ((UINT64_C(1) << PT_HUGE_LG2) - 1))
		return false;
	first = &pt->cached_table[pt_index_of(va, 2)];
	for (uint64_t i = 0; i < n; i++) {
		if (pt_is_table(first[i], 2))
			return false;
		gone += first[i] & PTE_VALID;
	}
	if (gone >= (*pt->cached_parent & PTE_COUNT) >> PTE_COUNT_LG2)
		return false;
	for (uint64_t i = 0; i < n; i++)
		first[i] = 0;
	*pt->cached_parent -= COUNT_ONE * gone;
	return true;
}

void pt_unmap(struct page_table *pt, uint64_t va, uint64_t bytes)
{
	assert(bytes && va + bytes > va && (va + bytes) >> PT_VA_LG2 <= 1);
	if (!pt->root_pa || unmap_blocks(pt, va, bytes))
		return;
	forget(pt);
	(void)unmap_level(pt, table_at(pt, pt->root_pa), 0, va, va + bytes - 1);
}

static uint64_t new_table(struct page_table *pt)
{
	uint64_t pa = pt->host.alloc_table(pt->host.ctx);

	assert(!(pa & ~PTE_PA_MASK));
	pt->tables += pa != 0;
	return pa;
}

/* The table of `level` that has va, made where missing, and the descriptor that points at it. */
static uint64_t *reach(struct page_table *pt, uint64_t va, unsigned level, uint64_t **out_parent)
{
	uint64_t *table, *parent = NULL;

	if (level == 2 && va >> PT_GIANT_LG2 == pt->cached_giant) {
		*out_parent = pt->cached_parent;
		return pt->cached_table;
	}
	if (!pt->root_pa && !(pt->root_pa = new_table(pt)))
		return NULL;
	table = table_at(pt, pt->root_pa);
	for (unsigned l = 0; l < level; l++) {
		uint64_t *slot = &table[pt_index_of(va, l)];

		if (!*slot) {
			uint64_t pa = new_table(pt);

			if (!pa)
				return NULL;
			*slot = pa | PTE_VALID | PTE_TABLE;
			if (parent)
				*parent += COUNT_ONE;
		}
		assert(pt_is_table(*slot, l));
		parent = slot;
		table = table_at(pt, *slot);
	}
	if (level == 2) {
		pt->cached_giant = va >> PT_GIANT_LG2;
		pt->cached_table = table;
		pt->cached_parent = parent;
	}
	*out_parent = parent;
	return table;
}

bool pt_map(struct page_table *pt, uint64_t va, uint64_t pa, unsigned page_lg2, uint64_t count,
	    unsigned flags)
{
	unsigned level = page_lg2 == PT_GIANT_LG2 ? 1 : page_lg2 == PT_HUGE_LG2 ? 2 : PT_LEVEL_LEAF;
	uint64_t page = UINT64_C(1) << page_lg2;
	uint64_t attributes = PTE_LEAF_FIXED | (level == PT_LEVEL_LEAF ? PTE_TABLE : 0) |
			      (flags & PT_WRITE ? 0 : PTE_READONLY);
	uint64_t begin = va;

	assert(page_lg2 == pt_level_lg2(level) && !((va | pa) & (page - 1)));
	assert(count && !((va + count * page - 1) >> PT_VA_LG2));
	while (count) {
		uint64_t *parent, *table = reach(pt, va, level, &parent);
		unsigned index = pt_index_of(va, level);
		unsigned n = count < PT_ENTRIES - index ? (unsigned)count : PT_ENTRIES - index;

		if (!table) {
			pt_unmap(pt, begin, va + page - begin);
			return false;
		}
		for (unsigned i = 0; i < n; i++, pa += page) {
			assert(!table[index + i]);
			table[index + i] = pa | attributes;
		}
		*parent += COUNT_ONE * n;
		va += n * page;
		count -= n;
	}
	return true;
}

void pt_soon(const struct page_table *pt, uint64_t va)
{
	uint64_t pte = pt->root_pa;

	for (unsigned level = 0; pte != 0 && level < PT_LEVEL_LEAF; level++) {
		pte = table_at(pt, pte)[pt_index_of(va, level)];
		pte = pt_is_table(pte, level) ? pte : 0;
	}
	if (pte != 0)
		__builtin_prefetch(&table_at(pt, pte)[pt_index_of(va, PT_LEVEL_LEAF)], 1);
}

bool pt_walk(const struct page_table *pt, uint64_t va, struct pt_leaf *out)
{
	struct pt_step steps;

	if (va >> PT_GIANT_LG2 == pt->cached_giant && va >> PT_VA_LG2 == 0) {
		uint64_t pte = pt->cached_table[pt_index_of(va, 2)];

		if (!pt_is_table(pte, 2))
			return pt_read_leaf(out, pte, va, 2);
	}
	return pt_walk_from(0, pt->root_pa, pt->host.memory, va, out, &steps);
}
