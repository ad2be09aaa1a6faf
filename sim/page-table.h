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

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PT_PAGE_LG2  12 /* level 3 page */
#define PT_HUGE_LG2  21 /* level 2 block */
#define PT_GIANT_LG2 30 /* level 1 block */

#define PT_WRITE 1u /* leaf may be written; without it, read only */

struct pt_host {
	/* Physical address of a zeroed 4 KiB table, or 0 if there is no memory for it. */
	uint64_t (*alloc_table)(void *ctx);
	/* The table is all zeros again when it is given back. */
	void (*free_table)(void *ctx, uint64_t pa);
	/* Where the bytes at pa lie in this process. */
	void *(*at)(void *ctx, uint64_t pa);
	void *ctx;
};

struct page_table {
	struct pt_host host;
	uint64_t root_pa; /* 0 until the first map */
	uint64_t tables;  /* live tables, the root included: x 4 KiB = bytes that the page table
			     takes */
	/* the level 2 table used last: va >> 30, where it lies, and the descriptor that points at
	 * it */
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

struct pt_leaf {
	uint64_t pa;       /* of the byte at va */
	unsigned page_lg2; /* of the leaf that has it */
	unsigned flags;
	unsigned levels; /* descriptors read */
};
/* The translation of va. False: none; out->levels says how many descriptors were read to find out.
 */
bool pt_walk(const struct page_table *pt, uint64_t va, struct pt_leaf *out);

#ifdef __cplusplus
}
#endif

#endif
