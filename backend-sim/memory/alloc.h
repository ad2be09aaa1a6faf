/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: memory that has an address from the start. Owns the objects, their heaps and
 * their frames; the heaps' addresses are window.h's, the frames node.h's. Called with bsim.lock
 * held.
 */
#ifndef NPUSIM_BSIM_ALLOC_H
#define NPUSIM_BSIM_ALLOC_H

#include "memory/window.h"

enum allocation_kind {
	ALLOCATION_DEVICE,
	ALLOCATION_PINNED,    /* host memory that programs may touch */
	ALLOCATION_OPENED,    /* another process's, by its IPC name */
	ALLOCATION_REGISTERED /* a device's address of the program's own memory */
};

/* What kind of heap an allocation comes from: those of one kind share 1 GiB heaps. */
struct pool_kind {
	enum allocation_kind use;
	enum window_area area;
	unsigned memory;   /* device, or SIM_NODE_HOST */
	unsigned page_lg2; /* 12 or 21 */
	unsigned mem_type; /* enum drv_mem_type */
};

struct allocation {
	enum allocation_kind kind;
	unsigned memory;
	unsigned page_lg2; /* of its leaves: 12, 21, 30 */
	unsigned device;   /* REGISTERED: for which device */
	uint64_t va, bytes, asked;
	uint64_t host_va; /* REGISTERED: of the first page */
	struct range *range;
	struct node_block *block; /* of its own; NULL where its pages are its heap's */
	uint64_t opened_offset;   /* OPENED, REGISTERED: what was handed out is va + this */
	struct allocation *next, **link;
	struct bsim_made made;
};

/* A 1 GiB heap. Its pages are the allocations' own blocks, or - of 4 KiB on a device - parts of
 * frames that it holds. */
struct pool {
	struct pool_kind kind;
	struct range *range;
	struct pool *next, **link;
	unsigned pages, used, lowest_free; /* no free page lies below */
	uint64_t *bits;
	struct allocation **owner;  /* by page */
	struct node_block **frames; /* [512] */
	uint16_t *frame_used;       /* pages in use of each */
	uint64_t *written;          /* pages that were handed out since their frame came */
};

struct alloc_table {
	struct allocation *all;      /* the newest first */
	struct pool *pools;          /* in the order of their making */
	uint64_t count[4], bytes[4]; /* by enum allocation_kind */
};

bool alloc_table_open(struct bsim *bs);
void alloc_table_close(struct bsim *bs);
/* Ends everything that lies in or was registered for a device; returns how many. */
unsigned alloc_end_device(struct bsim *bs, unsigned device);

/* The allocation at va in a heap or in a range of its own; NULL for none. */
struct allocation *allocation_at(const struct range *r, uint64_t va);

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
