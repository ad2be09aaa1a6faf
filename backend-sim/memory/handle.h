/* SPDX-License-Identifier: Apache-2.0
 *
 * Physical handles of this process: the objects behind drv_mem_handle_t. Owns their memory, their
 * references and what is remembered of those that are gone; the pages are the node's (node.h).
 *
 * A handle is never believed: its address is looked up first, so that a stale, foreign or made-up
 * one gets its code. The record of a freed handle is kept until thousands more have been freed, and
 * says who freed it. All functions are called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_HANDLE_H
#define NPUSIM_BSIM_HANDLE_H

#include "memory/window.h"

enum handle_state { HANDLE_NEVER, HANDLE_LIVE, HANDLE_FREED, HANDLE_LOST_TO_RESET };

/* Small, for there may be hundreds of thousands: side, devid, module_id, pg_type and mem_type are
 * those of struct drv_mem_prop as given at creation. */
struct drv_mem_handle {
	uint8_t state; /* enum handle_state */
	uint8_t space; /* whose page table translates where it is mapped: a device, or SIM_NODE_HOST
			*/
	bool imported, exported;
	bool from_fd; /* by a descriptor, in this process or another */
	uint8_t side, pg_type, mem_type;
	uint32_t ref;      /* of the program and of mappings together */
	uint32_t map_ref;  /* of mappings alone: map_ref <= ref */
	uint32_t share_id; /* imported or exported */
	uint32_t devid, module_id;
	uint64_t bytes; /* rounded up */
	uint64_t word;  /* struct drv_mem_prop.reserve */
	struct node_block *block;
	struct bsim_made made;
	union {
		struct drv_mem_handle *next_import; /* live: bucket of imports by share id */
		uint64_t freed_number;              /* gone: by which driver call */
	};
	struct drv_mem_handle *next, *prev; /* live ones; freed ones by age */
};

#define HANDLE_IMPORT_BUCKETS 256u

struct handle_table {
	unsigned char *arena; /* one stretch of addresses, used from the bottom */
	uint64_t used;        /* records that were ever handed out */
	uint64_t usable;      /* records that can be written */
	struct drv_mem_handle *live;
	struct drv_mem_handle *oldest_freed, *newest_freed;
	uint64_t live_count, freed_count;
	struct drv_mem_handle *imports[HANDLE_IMPORT_BUCKETS];
	uint64_t resets; /* devices that were closed with handles or mappings */
};

bool handle_table_open(struct bsim *bs);
void handle_table_close(struct bsim *bs);

/* The live handle at that address; INVALID_VALUE, and INVALID_HANDLE before any device is open,
 * with a message that starts with the call. */
drvError_t handle_find(struct bsim *bs, const char *call, const void *pointer,
		       struct drv_mem_handle **out);
/* A live handle for the block, with one reference. NULL: host memory is short (message set). */
struct drv_mem_handle *handle_make(struct bsim *bs, const char *call, struct node_block *block);
/* Ends a handle whatever its references say: its pages go back. */
void handle_end(struct bsim *bs, struct drv_mem_handle *h, enum handle_state state);
/* Drops the reference of a mapping that is gone; ends the handle with its last one. */
void handle_unmapped(struct bsim *bs, struct drv_mem_handle *h);
/* The import of a share on a device that this process has already. */
struct drv_mem_handle *handle_find_import(struct bsim *bs, uint32_t share_id, unsigned space);
void handle_add_import(struct bsim *bs, struct drv_mem_handle *h);

static inline bool handle_is_giant(const struct drv_mem_handle *h)
{
	return h->block->giant;
}

#endif
