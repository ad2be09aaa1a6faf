/* SPDX-License-Identifier: Apache-2.0
 *
 * A translation cache: set-associative, least recently used goes first, entries of several page
 * sizes side by side. L1 TLBs, the L2 TLB and the walk cache are all made of it. Plain code: no
 * time, no tables.
 */
#ifndef NPUSIM_SIM_MMU_TLB_H
#define NPUSIM_SIM_MMU_TLB_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TLB_SIZES 4 /* pages, or spans of tables, of 4 KiB, 2 MiB, 1 GiB, 512 GiB */
#define TLB_NONE  UINT32_MAX

struct tlb_entry {
	uint64_t key; /* page number, size, space, asid; 0: free */
	uint64_t pa;
	uint64_t ready_ps; /* a walk under way ends then */
	uint64_t holders;  /* for the user: which L1 TLBs may have it */
	uint32_t flags;
};

struct tlb_slot {
	uint32_t hash;
	uint32_t entry; /* its index + 1; 0: none */
};

struct tlb_link {
	uint32_t older, newer;
};

struct tlb {
	unsigned entries, ways, sets;
	uint32_t hash_mask;
	uint64_t live[TLB_SIZES];
	uint64_t live_bytes;
	/* NULL until the first insertion: an idle engine's TLB costs nothing */
	struct tlb_entry *entry;
	struct tlb_link *link;     /* of each entry, in the list of its set */
	struct tlb_slot *slot;     /* a hash table with open addressing, at most half full */
	uint32_t *newest, *oldest; /* of each set */
};

/* entries 0 makes a cache that never holds anything; ways divides entries. */
void tlb_init(struct tlb *tlb, unsigned entries, unsigned ways);
void tlb_clear(struct tlb *tlb);

static inline unsigned tlb_size_lg2(unsigned size)
{
	return 12 + 9 * size;
}

static inline unsigned tlb_size_of(unsigned lg2)
{
	return (lg2 - 12) / 9;
}

/* va below 2^48, space below 32, asid below 2^20. Never 0. */
static inline uint64_t tlb_key(unsigned space, unsigned asid, uint64_t va, unsigned size)
{
	return (UINT64_C(1) << 63) | (uint64_t)asid << 43 | (uint64_t)space << 38 |
	       (uint64_t)size << 36 | va >> tlb_size_lg2(size);
}

static inline unsigned tlb_key_size(uint64_t key)
{
	return key >> 36 & 3;
}

static inline unsigned tlb_key_space(uint64_t key)
{
	return key >> 38 & 31;
}

static inline uint64_t tlb_key_va(uint64_t key)
{
	return (key & ((UINT64_C(1) << 36) - 1)) << tlb_size_lg2(tlb_key_size(key));
}

/* The entry, now the newest of its set; NULL if there is none. */
struct tlb_entry *tlb_find(struct tlb *tlb, uint64_t key);
/* The entry as it is, its age left alone. */
struct tlb_entry *tlb_peek(const struct tlb *tlb, uint64_t key);
/* tlb_find() by address: every page size that has entries is tried. */
struct tlb_entry *tlb_find_va(struct tlb *tlb, unsigned space, unsigned asid, uint64_t va);
/* A new entry for a key that is not there; the oldest of the set makes room: its key (or 0) in
 * *out_evicted, its holders in *out_holders (may be NULL). NULL if the cache has no entries at all.
 */
struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t key, uint64_t *out_evicted,
			     uint64_t *out_holders);
void tlb_remove(struct tlb *tlb, struct tlb_entry *entry);
/* Removes by key; false if it was not there. */
bool tlb_drop(struct tlb *tlb, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif
