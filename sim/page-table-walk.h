/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptors of a page table, and the walk from table to table: what an MMU does at every
 * miss. Making and freeing tables is page-table's.
 */
#ifndef NPUSIM_SIM_PAGE_TABLE_WALK_H
#define NPUSIM_SIM_PAGE_TABLE_WALK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "page-table.h"

/* VMSAv8-64 stage 1 descriptors, 4 KiB granule, Arm DDI 0487 D8.3.1 and D8.3.2. */
#define PTE_VALID    UINT64_C(1)
#define PTE_TABLE    UINT64_C(2) /* levels 0 to 2: a table and not a block; level 3: always set */
#define PTE_READONLY (UINT64_C(1) << 7) /* AP[2] */
#define PTE_PA_MASK  UINT64_C(0x0000fffffffff000)
/* Of a table descriptor bits 11:2 are ignored by the hardware: how many live entries the table has,
 * 0 .. 512. */
#define PTE_COUNT_LG2 2
#define PTE_COUNT     (UINT64_C(0x3ff) << PTE_COUNT_LG2)

#define PT_ENTRIES    512u
#define PT_LEVEL_LEAF 3u
#define PT_VA_LG2     48u

static inline unsigned pt_level_lg2(unsigned level)
{
	return 39 - 9 * level;
}

static inline unsigned pt_index_of(uint64_t va, unsigned level)
{
	return (unsigned)(va >> pt_level_lg2(level)) & (PT_ENTRIES - 1);
}

static inline bool pt_is_table(uint64_t pte, unsigned level)
{
	return level < PT_LEVEL_LEAF && (pte & (PTE_VALID | PTE_TABLE)) == (PTE_VALID | PTE_TABLE);
}

static inline bool pt_is_leaf(uint64_t pte, unsigned level)
{
	uint64_t leaf = level == PT_LEVEL_LEAF ? PTE_VALID | PTE_TABLE : PTE_VALID;

	return level > 0 && (pte & (PTE_VALID | PTE_TABLE)) == leaf;
}

/* What the descriptor that ends the walk says; false: that there is nothing. */
static inline bool pt_read_leaf(struct pt_leaf *out, uint64_t pte, uint64_t va, unsigned level)
{
	uint64_t offset = (UINT64_C(1) << pt_level_lg2(level)) - 1;

	out->levels = level + 1;
	if (G_UNLIKELY(!pt_is_leaf(pte, level)))
		return false;
	out->pa = (pte & PTE_PA_MASK & ~offset) | (va & offset);
	out->page_lg2 = pt_level_lg2(level);
	out->flags = pte & PTE_READONLY ? 0 : PT_WRITE;
	return true;
}

/* Where each descriptor that was read lies. */
struct pt_step {
	uint64_t descriptor_pa[PT_LEVEL_LEAF + 1];
};

/* pt_walk() from a table of `level` on (0: the root) that has va: what an MMU does which remembers
 * tables. */
static inline bool pt_walk_from(unsigned level, uint64_t table_pa,
				void *(*at)(void *ctx, uint64_t pa), void *ctx, uint64_t va,
				struct pt_leaf *out, struct pt_step *steps)
{
	uint64_t pa = table_pa;

	out->levels = 0;
	if (G_UNLIKELY(!pa || va >> PT_VA_LG2))
		return false;
	for (;; level++) {
		const uint64_t *table = (const uint64_t *)at(ctx, pa);
		unsigned index = pt_index_of(va, level);
		uint64_t pte;

		if (G_UNLIKELY(!table))
			return false;
		pte = table[index];
		steps->descriptor_pa[level] = pa + 8 * index;
		if (!pt_is_table(pte, level))
			return pt_read_leaf(out, pte, va, level);
		pa = pte & PTE_PA_MASK;
	}
}

#endif
