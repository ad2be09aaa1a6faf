/* SPDX-License-Identifier: Apache-2.0
 *
 * The page tables of this process: one for each device, one for host memory, in the format of
 * page-table.h, stored in the memory that they describe. They alone determine where bytes go:
 * copies and the model's MMUs walk them. Called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_TABLES_H
#define NPUSIM_BSIM_TABLES_H

#include <glib.h>

#include "page-table.h"
#include "process/process.h"

/* The page table of a device, or of the host's memory. */
struct space {
	struct page_table pt;
	struct bsim *bs;
	unsigned memory;         /* whose it is: a device, or SIM_NODE_HOST */
	GPtrArray *table_blocks; /* struct node_block: frames that the tables are cut from */
	uint64_t free_table_pa;  /* chain of free 4 KiB tables: each holds the next one's address */
	uint64_t fresh_table_pa, fresh_tables; /* tables of the newest block that were never used */
	uint64_t mapped_bytes;
	uint64_t table_peak;
	uint64_t leaves[3]; /* live, of 4 KiB, 2 MiB, 1 GiB */
};

struct space *tables_space(unsigned memory);
void tables_open(struct bsim *bs, unsigned memory);
/* Frees all tables of the space and the frames that they were cut from. */
void tables_close(struct bsim *bs, unsigned memory);
/* Maps the first `bytes` of the block at va; flags of the leaves: PT_WRITE, or 0. False: no memory
 * for tables; nothing is mapped then. */
bool tables_map(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes,
		const struct node_block *block, unsigned flags);
/* 4 KiB pages, from `pa` on. */
bool tables_map_pages(struct bsim *bs, unsigned space, uint64_t va, uint64_t pa, uint64_t pages);
/* `bytes` of leaves of 2^page_lg2 bytes; 0 is allowed. */
void tables_unmap(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes, unsigned page_lg2);
/* Lets the CPU reach the first `bytes` of a block at va; false with errno. */
bool tables_open_to_cpu(struct bsim *bs, uint64_t va, uint64_t bytes,
			const struct node_block *block);

#endif
