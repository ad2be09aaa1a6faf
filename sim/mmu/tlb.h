/* SPDX-License-Identifier: Apache-2.0
 *
 * A translation cache: set-associative, LRU, with entries of several page sizes side by side. The
 * L2 TLB and the walk cache are built from it; an L1 TLB has its order by age. Plain code: no time,
 * no tables.
 */
#ifndef NPUSIM_SIM_MMU_TLB_H
#define NPUSIM_SIM_MMU_TLB_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

#define TLB_SIZES 4 /* pages, or spans of tables, of 4 KiB, 2 MiB, 1 GiB, 512 GiB */

struct tlb_entry {
	uint64_t key; /* page number, size, space; 0: free */
	/* for the user: where the page or the table is, and its flags below; when a walk under way
	 * ends; which L1 TLBs may have it */
	uint64_t pa, ready_ps, holders;
};

/* An entry's neighbours by age in its set, as a ring on which every entry is always, the free ones
 * at the old end. Apart from the entries: a set of eight is one cache line of the host. */
struct tlb_age {
	uint32_t older, newer;
};

/* The entries from `first` on, all of one age. The first is the oldest. */
void tlb_age_init(struct tlb_age *age, uint32_t first, uint32_t count);
void tlb_age_make_oldest(struct tlb_age *age, uint32_t *oldest, uint32_t i);

/* Moves an entry that is neither the newest nor the oldest between the two. */
static inline void tlb_age_to_seam(struct tlb_age *age, uint32_t i, uint32_t newest,
				   uint32_t oldest)
{
	const struct tlb_age was = age[i];

	age[was.older].newer = was.newer;
	age[was.newer].older = was.older;
	age[i].older = newest;
	age[newest].newer = i;
	age[i].newer = oldest;
	age[oldest].older = i;
}

static inline void tlb_age_make_newest(struct tlb_age *age, uint32_t *oldest, uint32_t i)
{
	uint32_t newest = age[*oldest].older;

	if (*oldest == i)
		*oldest = age[i].newer;
	else if (newest != i)
		tlb_age_to_seam(age, i, newest, *oldest);
}

struct tlb_link {
	uint32_t hash, next; /* next: with the same hash; the one behind the last entry: none */
};

struct tlb {
	unsigned entries;
	unsigned set_mask;   /* number of sets - 1 where that is all ones */
	unsigned set_modulo; /* number of sets where it is not; else 0 */
	unsigned hash_mask;
	unsigned live_sizes; /* bit of each size that has entries */
	uint64_t live[TLB_SIZES];
	uint64_t live_bytes;
	struct tlb_entry *entry; /* and behind the last, for who looks for one, a free one */
	struct tlb_age *age;     /* of each entry */
	struct tlb_link *link;   /* likewise */
	uint32_t *oldest;        /* of each set; the newest is next to it */
	uint32_t *chain;         /* of each hash: its first entry */
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

/* What all keys of a space, below 32, have in common. */
static inline uint64_t tlb_key_base(unsigned space)
{
	return (UINT64_C(1) << 63) | (uint64_t)space << 38;
}

/* va below 2^48. Never 0. */
static inline uint64_t tlb_key(uint64_t base, uint64_t va, unsigned size)
{
	return base | (uint64_t)size << 36 | va >> tlb_size_lg2(size);
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

static inline uint32_t tlb_hash(const struct tlb *tlb, uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & tlb->hash_mask;
}

/* tlb_peek() where the first of the chain is another's. */
struct tlb_entry *tlb_peek_chain(const struct tlb *tlb, uint32_t at, uint64_t key);

/* The entry as it is, its age left alone; NULL if there is none. */
static inline struct tlb_entry *tlb_peek(const struct tlb *tlb, uint64_t key)
{
	uint32_t at = tlb->chain[tlb_hash(tlb, key)];

	if (tlb->entry[at].key == key)
		return &tlb->entry[at];
	return at == tlb->entries ? NULL : tlb_peek_chain(tlb, at, key);
}

static inline unsigned tlb_set_of(const struct tlb *tlb, uint64_t key)
{
	if (G_UNLIKELY(tlb->set_modulo))
		return (unsigned)((key & ((UINT64_C(1) << 36) - 1)) % tlb->set_modulo);
	return (unsigned)key & tlb->set_mask;
}

/* Makes it the newest of its set. */
static inline void tlb_touch(struct tlb *tlb, const struct tlb_entry *entry)
{
	tlb_age_make_newest(tlb->age, &tlb->oldest[tlb_set_of(tlb, entry->key)],
			    (uint32_t)(entry - tlb->entry));
}

/* tlb_peek() by address: every page size that has entries is tried, from the smallest on. */
__attribute__((always_inline)) static inline struct tlb_entry *
tlb_peek_va(const struct tlb *tlb, uint64_t base, uint64_t va)
{
	for (unsigned sizes = tlb->live_sizes; sizes; sizes &= sizes - 1) {
		unsigned size = (unsigned)__builtin_ctz(sizes);
		struct tlb_entry *entry = tlb_peek(tlb, tlb_key(base, va, size));

		if (entry)
			return entry;
	}
	return NULL;
}

/* The entry of the address, now the newest of its set; NULL if there is none. */
static inline struct tlb_entry *tlb_find_va(struct tlb *tlb, uint64_t base, uint64_t va)
{
	struct tlb_entry *entry = tlb_peek_va(tlb, base, va);

	if (entry)
		tlb_touch(tlb, entry);
	return entry;
}

static inline void tlb_unchain(struct tlb *tlb, uint32_t index)
{
	uint32_t *at = &tlb->chain[tlb->link[index].hash];

	while (G_UNLIKELY(*at != index))
		at = &tlb->link[*at].next;
	*at = tlb->link[index].next;
}

/* For tlb_insert(), where counts change. */
__attribute__((cold)) void tlb_count(struct tlb *tlb, uint64_t gone, uint64_t come);

/* A new entry for a key that is not there; the oldest of the set makes room: its key (or 0) in
 * *out_evicted, its holders in *out_holders (may be NULL). NULL if the cache has no entries. */
static inline struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t key, uint64_t *out_evicted,
					   uint64_t *out_holders)
{
	/* free or not, and the size */
	const uint64_t counted = UINT64_C(1) << 63 | UINT64_C(3) << 36;
	struct tlb_entry *entry;
	uint32_t index, hash;
	unsigned set;

	*out_evicted = 0;
	if (out_holders)
		*out_holders = 0;
	if (G_UNLIKELY(!tlb->entries))
		return NULL;
	set = tlb_set_of(tlb, key);
	index = tlb->oldest[set];
	entry = &tlb->entry[index];
	tlb->oldest[set] = tlb->age[index].newer;
	*out_evicted = entry->key;
	if (out_holders)
		*out_holders = entry->holders;
	if (G_LIKELY(entry->key))
		tlb_unchain(tlb, index);
	if (G_UNLIKELY((entry->key ^ key) & counted))
		tlb_count(tlb, entry->key, key);
	hash = tlb_hash(tlb, key);
	tlb->link[index] = (struct tlb_link){ hash, tlb->chain[hash] };
	tlb->chain[hash] = index;
	entry->key = key;
	entry->holders = 0;
	return entry;
}

/* Removes by key. Where it was, with all but the key as it was; NULL: it was not there. */
struct tlb_entry *tlb_drop(struct tlb *tlb, uint64_t key);

G_END_DECLS

#endif
