/* SPDX-License-Identifier: Apache-2.0
 *
 * The one answer to "what lies at this address" (npusim/place.h), made from the records of the
 * window, the mappings and the allocations, and the same in words for messages.
 *
 * The records are for checks, queries and messages, before anything moves; the page tables
 * (tables.h) alone say where bytes go. The two never differ: a page is in the page table of exactly
 * the spaces that its record says, with its flags and its frames, and no page table has a leaf
 * without a record.
 */
#ifndef NPUSIM_BSIM_PLACE_H
#define NPUSIM_BSIM_PLACE_H

#include "process/process.h"

/* All but next_mapped. Reads only: the report of a host access calls it without the lock, and may
 * then get a wrong answer. Everybody else has bsim.lock. */
struct npu_place place_at(const struct bsim *bs, uint64_t va);
/* The same for an entry that driver call `sent` sent: host memory that was freed since is there. */
struct npu_place place_sent_at(const struct bsim *bs, uint64_t va, uint64_t sent);
/* "[0x12c000000000, +2097152 (2 MiB))": as npu_text(). */
const char *range_text(uint64_t va, uint64_t bytes);
/* "0x12c000200000 (2 MiB into the mapping at 0x12c000000000, 4 MiB, device 0)": as npu_text(). */
const char *place_text_locked(struct bsim *bs, uint64_t va);

/* A reservation lies there, with something mapped at the address or not. */
static inline bool place_is_reserved(const struct npu_place *place)
{
	return place->kind == NPU_PLACE_RESERVED || place->kind == NPU_PLACE_MAPPED;
}

/* The owner as backend-sim counts memories. */
static inline unsigned place_memory(const struct npu_place *place)
{
	return place->owner == NPU_OWNER_HOST ? SIM_NODE_HOST : place->owner;
}

static inline uint32_t place_owner(unsigned memory)
{
	return memory == SIM_NODE_HOST ? NPU_OWNER_HOST : memory;
}

#endif
