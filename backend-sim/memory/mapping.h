/* SPDX-License-Identifier: Apache-2.0
 *
 * Live mappings of handles, and the page tables behind them. Owns which pages of which handle lie
 * where, who may reach them, and the descriptors; reservations are window.h's, handles handle.h's.
 * Called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_MAPPING_H
#define NPUSIM_BSIM_MAPPING_H

#include "memory/handle.h"

struct mapping {
	uint64_t va;
	struct drv_mem_handle *handle;
	struct mapping *next, **link; /* all live ones */
	struct bsim_made made;
	uint32_t slots;     /* of 2 MiB */
	uint16_t peers;     /* bit d: device d has it in its page table, beside the owner */
	uint16_t read_only; /* bit d: device d, owner or not, may only read */
	bool home;          /* the owner has it in its page table */
	bool cpu;           /* the CPU may reach it */
};

static inline uint64_t mapping_bytes(const struct mapping *m)
{
	return (uint64_t)m->slots << 21;
}

/* Bit d: device d may read; may write. */
uint32_t mapping_readers(const struct mapping *m);
uint32_t mapping_writers(const struct mapping *m);
/* Ends all of a device's: mappings of its memory, and others' in its page table. Returns how many
 * mappings ended. */
unsigned mapping_end_device(struct bsim *bs, unsigned device);
void mapping_close(struct bsim *bs);

/* ---- tables.c: page tables ---- */

void tables_open(struct bsim *bs, unsigned memory);
/* Frees all tables of the space and the frames that they were cut from. */
void tables_close(struct bsim *bs, unsigned memory);
/* Maps the first `bytes` of the block at va. False: no memory for tables; nothing is mapped then.
 */
bool tables_map(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes,
		const struct node_block *block);
/* The same with the leaves' flags: PT_WRITE, or 0. */
bool tables_map_as(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes,
		   const struct node_block *block, unsigned flags);
void tables_unmap(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes, bool giant);
/* 4 KiB pages, from `pa` on. */
bool tables_map_pages(struct bsim *bs, unsigned space, uint64_t va, uint64_t pa, uint64_t pages);
void tables_unmap_pages(struct bsim *bs, unsigned space, uint64_t va, uint64_t pages);
/* Lets the CPU reach the first `bytes` of a block at va; false with errno. */
bool tables_open_to_cpu(struct bsim *bs, uint64_t va, uint64_t bytes,
			const struct node_block *block);

#endif
