/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: memory that has an address from the start. Owns the objects, their heaps and
 * their frames; the heaps' addresses are window.h's, the frames node.h's. Called with bsim.lock
 * held.
 */
#ifndef NPUSIM_BSIM_ALLOC_H
#define NPUSIM_BSIM_ALLOC_H

#include "memory/memory.h"

bool alloc_table_open(struct bsim *bs);
void alloc_table_close(struct bsim *bs);
/* Ends everything that lies in or was registered for a device; returns how many. */
unsigned alloc_end_device(struct bsim *bs, unsigned device);

/* Addresses for `bytes`, in a heap of that kind or, above 512 MiB, in heaps of its own. No pages
 * yet, but where the kind is of 4 KiB device pages. NULL and a message: no room. */
struct allocation *allocation_new(struct bsim *bs, const char *call, const struct pool_kind *kind,
				  uint64_t bytes, drvError_t *out_error);
/* Gives the addresses back, and what pages the heap had for them. Leaves, blocks and the CPU's maps
 * are the caller's. */
void allocation_drop(struct bsim *bs, struct allocation *a);
/* Ends the heaps of a memory that nothing is in. */
void pool_end_empty(struct bsim *bs, unsigned memory);
/* Ends an allocation with everything that belongs to it. */
void allocation_end(struct bsim *bs, struct allocation *a);

/* The frame and offset behind a 4 KiB page allocation's first page. */
const struct node_block *allocation_frame(const struct allocation *a, uint64_t va);

#endif
