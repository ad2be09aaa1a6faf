/* SPDX-License-Identifier: Apache-2.0
 *
 * Live mappings of handles, and the page tables behind them. Owns which pages of which handle lie
 * where, who may reach them, and the descriptors; reservations are window.h's, handles handle.h's.
 * Called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_MAPPING_H
#define NPUSIM_BSIM_MAPPING_H

#include "handle.h"

struct mapping {
	uint64_t va, bytes;
	struct drv_mem_handle *handle;
	struct range *range;          /* the reservation that it lies in */
	struct mapping *next, **link; /* all live ones */
	struct bsim_made made;
	uint32_t peers; /* bit d: device d has it in its page table, beside the owner */
	bool cpu;       /* the CPU may reach it */
};

/* Removes a mapping: its leaves everywhere, the CPU's access, its handle's reference. */
void mapping_end(struct bsim *bs, struct mapping *m);
/* Every live mapping of this process, the newest first. */
struct mapping *mapping_first(const struct bsim *bs);
/* Ends all of a device's: mappings of its memory, and others' in its page table. Returns how many
 * mappings ended. */
unsigned mapping_end_device(struct bsim *bs, unsigned device);
void mapping_close(struct bsim *bs);

/* ---- tables.c: page tables
 * -------------------------------------------------------------------------------------------------
 */

void tables_open(struct bsim *bs, unsigned memory);
/* Frees all tables of the space and the frames that they were cut from. */
void tables_close(struct bsim *bs, unsigned memory);
/* Maps the first `bytes` of the block at va. False: no memory for tables; nothing is mapped then.
 */
bool tables_map(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes,
		const struct node_block *block);
void tables_unmap(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes, bool giant);
/* 4 KiB pages, from `pa` on. */
bool tables_map_pages(struct bsim *bs, unsigned space, uint64_t va, uint64_t pa, uint64_t pages);
void tables_unmap_pages(struct bsim *bs, unsigned space, uint64_t va, uint64_t pages);
/* Lets the CPU reach the first `bytes` of a block at va; false with errno. */
bool tables_open_to_cpu(struct bsim *bs, uint64_t va, uint64_t bytes,
			const struct node_block *block);

#endif
