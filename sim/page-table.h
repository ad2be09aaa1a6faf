/* SPDX-License-Identifier: Apache-2.0
 *
 * Page tables: ARMv8-A descriptors, 4 KiB granule, 48-bit addresses (Arm DDI 0487, D8.3), in the
 * memory of the device. Level 0 entries point at tables; level 1: tables or 1 GiB blocks; level 2:
 * tables or 2 MiB blocks; level 3: 4 KiB pages. Owns the format and the algorithm; whose memory the
 * tables take is the caller's business. Plain code, no time. Not thread-safe: one writer at a time,
 * readers of the same table excluded by the caller.
 */
#ifndef NPUSIM_SIM_PAGE_TABLE_H
#define NPUSIM_SIM_PAGE_TABLE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/job.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PT_PAGE_LG2  12 /* level 3 page */
#define PT_HUGE_LG2  21 /* level 2 block */
#define PT_GIANT_LG2 30 /* level 1 block */

#define PT_WRITE 1u /* leaf may be written; without it, read only */

/* --- the format, and the walk from table to table: what an MMU does at every miss --- */

/* VMSAv8-64 stage 1 descriptors, 4 KiB granule, Arm DDI 0487 D8.3.1 and D8.3.2. */
#define PTE_VALID    UINT64_C(1)
#define PTE_TABLE    UINT64_C(2) /* levels 0 to 2: a table and not a block; level 3: always set */
#define PTE_READONLY (UINT64_C(1) << 7) /* AP[2] */
#define PTE_PA_MASK  UINT64_C(0x0000fffffffff000)
/* Bits 11:2 of a table descriptor, ignored by the hardware: the table's live entries, 0 .. 512. */
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

struct pt_leaf {
	uint64_t pa;       /* of the byte at va */
	unsigned page_lg2; /* of the leaf that has it */
	unsigned flags;
	unsigned levels; /* descriptors read */
};

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

/* pt_walk() from a table of `level` on (0: the root) that has va: an MMU may remember tables. */
static inline bool pt_walk_from(unsigned level, uint64_t table_pa, const struct sim_memory *memory,
				uint64_t va, struct pt_leaf *out, struct pt_step *steps)
{
	uint64_t pa = table_pa, room;

	out->levels = 0;
	if (G_UNLIKELY(!pa || va >> PT_VA_LG2))
		return false;
	for (;; level++) {
		const uint64_t *table = (const uint64_t *)(void *)sim_memory_at(memory, pa, &room);
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

/* --- tables --- */

struct pt_host {
	/* Physical address of a zeroed 4 KiB table, or 0 if there is no memory for it. */
	uint64_t (*alloc_table)(void *ctx);
	/* The table is all zeros again when it is given back. */
	void (*free_table)(void *ctx, uint64_t pa);
	void *ctx;
	const struct sim_memory *memory; /* that the tables are in */
};

struct page_table {
	struct pt_host host;
	/* Or NULL: a leaf of 2 MiB or 1 GiB goes with its table. */
	void (*block_gone)(void *ctx, uint64_t va);
	uint64_t root_pa; /* 0 until the first map */
	uint64_t tables;  /* live tables, the root included: x 4 KiB = bytes that the page table
			     takes */
	/* the level 2 table used last: va >> 30, its place, and the descriptor that points at it */
	uint64_t cached_giant;
	uint64_t *cached_table;
	uint64_t *cached_parent;
};

void pt_init(struct page_table *pt, const struct pt_host *host);
/* Frees every table. Leaves are not the page table's to free. */
void pt_destroy(struct page_table *pt);

/* Maps `count` pages of 2^page_lg2 bytes (12, 21 or 30) at va to consecutive physical pages from pa
 * on. Both aligned to the page. False if a table could not be had: nothing has been mapped then.
 * The range must be unmapped. */
bool pt_map(struct page_table *pt, uint64_t va, uint64_t pa, unsigned page_lg2, uint64_t count,
	    unsigned flags);
/* Removes every leaf in [va, va + bytes), frees tables that became empty (the root stays). The
 * range cuts no leaf. */
void pt_unmap(struct page_table *pt, uint64_t va, uint64_t bytes);

/* A map or an unmap of 4 KiB pages from va on comes soon: has their descriptors fetched. */
void pt_soon(const struct page_table *pt, uint64_t va);

/* The translation of va. False: none; out->levels: how many descriptors were read to find out. */
bool pt_walk(const struct page_table *pt, uint64_t va, struct pt_leaf *out);

#ifdef __cplusplus
}
#endif

#endif
