/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks every descriptor of a page table, for tests that make some.
 */
#ifndef NPUSIM_TESTS_SIM_TABLE_CHECK_H
#define NPUSIM_TESTS_SIM_TABLE_CHECK_H

#include "sim/page-table.h"

static inline const uint64_t *pt_check_table(const struct page_table *pt, uint64_t pa)
{
	uint64_t room;

	return (const uint64_t *)(const void *)sim_memory_at(pt->host.memory, pa, &room);
}

static inline bool pt_check_level(const struct page_table *pt, const uint64_t *table,
				  unsigned level, uint64_t *tables, uint64_t *leaves,
				  unsigned *out_live)
{
	*out_live = 0;
	++*tables;
	for (unsigned i = 0; i < PT_ENTRIES; i++) {
		uint64_t pte = table[i];
		unsigned below;

		if (!pte)
			continue;
		++*out_live;
		if (pt_is_leaf(pte, level)) {
			if ((pte & PTE_PA_MASK) & ((UINT64_C(1) << pt_level_lg2(level)) - 1))
				return false;
			++*leaves;
			continue;
		}
		if (!pt_is_table(pte, level) ||
		    !pt_check_level(pt, pt_check_table(pt, pte & PTE_PA_MASK), level + 1, tables,
				    leaves, &below) ||
		    !below || below != (pte & PTE_COUNT) >> PTE_COUNT_LG2)
			return false;
	}
	return true;
}

/* True if no descriptor breaks the format, and every count is right; *out_leaves (may be NULL): how
 * many leaves there are. */
static inline bool pt_check(const struct page_table *pt, uint64_t *out_leaves)
{
	uint64_t tables = 0, leaves = 0;
	unsigned live;

	if (pt->root_pa &&
	    !pt_check_level(pt, pt_check_table(pt, pt->root_pa), 0, &tables, &leaves, &live))
		return false;
	if (tables != pt->tables)
		return false;
	if (out_leaves)
		*out_leaves = leaves;
	return true;
}

#endif
