/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation cache: one hash table over all entries finds them, a list for each set orders
 * them. Links and hashes lie apart from the entries, so that a miss touches few cache lines.
 */
#include "tlb.h"

#include <glib.h>
#include <string.h>

void tlb_init(struct tlb *tlb, unsigned entries, unsigned ways)
{
	uint32_t slots = 16;

	memset(tlb, 0, sizeof(*tlb));
	tlb->entries = entries;
	tlb->ways = ways;
	tlb->sets = ways ? entries / ways : 0;
	while (slots < 2 * entries)
		slots *= 2;
	tlb->hash_mask = slots - 1;
}

void tlb_clear(struct tlb *tlb)
{
	g_free(tlb->entry);
	g_free(tlb->link);
	g_free(tlb->slot);
	g_free(tlb->newest);
	g_free(tlb->oldest);
	tlb_init(tlb, tlb->entries, tlb->ways);
}

static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static unsigned set_of(const struct tlb *tlb, uint64_t key)
{
	return tlb->sets == 1 ? 0 : (unsigned)((key & ((UINT64_C(1) << 36) - 1)) % tlb->sets);
}

/* Every entry is on its set's list always, the free ones at the old end. */
static void allocate(struct tlb *tlb)
{
	tlb->entry = g_new0(struct tlb_entry, tlb->entries);
	tlb->link = g_new(struct tlb_link, tlb->entries);
	tlb->slot = g_new0(struct tlb_slot, (size_t)tlb->hash_mask + 1);
	tlb->newest = g_new(uint32_t, tlb->sets);
	tlb->oldest = g_new(uint32_t, tlb->sets);
	for (unsigned set = 0; set < tlb->sets; set++) {
		uint32_t first = set * tlb->ways;

		for (uint32_t i = first; i < first + tlb->ways; i++) {
			tlb->link[i].older = i > first ? i - 1 : TLB_NONE;
			tlb->link[i].newer = i + 1 < first + tlb->ways ? i + 1 : TLB_NONE;
		}
		tlb->oldest[set] = first;
		tlb->newest[set] = first + tlb->ways - 1;
	}
}

static void take_out(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_link *e = &tlb->link[i];

	*(e->older == TLB_NONE ? &tlb->oldest[set] : &tlb->link[e->older].newer) = e->newer;
	*(e->newer == TLB_NONE ? &tlb->newest[set] : &tlb->link[e->newer].older) = e->older;
}

static void make_newest(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_link *e = &tlb->link[i];

	if (tlb->newest[set] == i)
		return;
	take_out(tlb, i, set);
	e->older = tlb->newest[set];
	e->newer = TLB_NONE;
	tlb->link[e->older].newer = i;
	tlb->newest[set] = i;
}

static void make_oldest(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_link *e = &tlb->link[i];

	if (tlb->oldest[set] == i)
		return;
	take_out(tlb, i, set);
	e->newer = tlb->oldest[set];
	e->older = TLB_NONE;
	tlb->link[e->newer].older = i;
	tlb->oldest[set] = i;
}

/* The slot that has the key, or the free one where the search for it ends. */
static uint32_t find_slot(const struct tlb *tlb, uint64_t key)
{
	uint32_t hash = hash_of(key), at = hash & tlb->hash_mask;

	while (tlb->slot[at].entry &&
	       (tlb->slot[at].hash != hash || tlb->entry[tlb->slot[at].entry - 1].key != key))
		at = (at + 1) & tlb->hash_mask;
	return at;
}

struct tlb_entry *tlb_peek(const struct tlb *tlb, uint64_t key)
{
	uint32_t found = tlb->entry ? tlb->slot[find_slot(tlb, key)].entry : 0;

	return found ? &tlb->entry[found - 1] : NULL;
}

struct tlb_entry *tlb_find(struct tlb *tlb, uint64_t key)
{
	struct tlb_entry *entry = tlb_peek(tlb, key);

	if (entry) {
		uint32_t index = (uint32_t)(entry - tlb->entry);

		make_newest(tlb, index, tlb->sets == 1 ? 0 : index / tlb->ways);
	}
	return entry;
}

struct tlb_entry *tlb_find_va(struct tlb *tlb, unsigned space, unsigned asid, uint64_t va)
{
	for (unsigned size = 0; size < TLB_SIZES; size++) {
		struct tlb_entry *entry;

		if (tlb->live[size] && (entry = tlb_find(tlb, tlb_key(space, asid, va, size))))
			return entry;
	}
	return NULL;
}

/* Empties a slot; those behind it that were pushed past it move up. */
static void free_slot(struct tlb *tlb, uint32_t hole)
{
	for (uint32_t at = hole;;) {
		uint32_t home;

		at = (at + 1) & tlb->hash_mask;
		if (!tlb->slot[at].entry)
			break;
		home = tlb->slot[at].hash;
		if (((at - home) & tlb->hash_mask) >= ((at - hole) & tlb->hash_mask)) {
			tlb->slot[hole] = tlb->slot[at];
			hole = at;
		}
	}
	tlb->slot[hole].entry = 0;
}

static void forget(struct tlb *tlb, struct tlb_entry *entry, uint32_t slot)
{
	unsigned size = tlb_key_size(entry->key);

	free_slot(tlb, slot);
	tlb->live[size]--;
	tlb->live_bytes -= UINT64_C(1) << tlb_size_lg2(size);
	entry->key = 0;
}

struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t key, uint64_t *out_evicted,
			     uint64_t *out_holders)
{
	struct tlb_entry *entry;
	uint32_t index, at;
	unsigned set;

	*out_evicted = 0;
	if (!tlb->entries)
		return NULL;
	if (!tlb->entry)
		allocate(tlb);
	set = set_of(tlb, key);
	index = tlb->oldest[set];
	entry = &tlb->entry[index];
	if (entry->key) {
		*out_evicted = entry->key;
		if (out_holders)
			*out_holders = entry->holders;
		forget(tlb, entry, find_slot(tlb, entry->key));
	}
	at = find_slot(tlb, key);
	tlb->slot[at] = (struct tlb_slot){ hash_of(key), index + 1 };
	entry->key = key;
	entry->holders = 0;
	tlb->live[tlb_key_size(key)]++;
	tlb->live_bytes += UINT64_C(1) << tlb_size_lg2(tlb_key_size(key));
	make_newest(tlb, index, set);
	return entry;
}

static void remove_at(struct tlb *tlb, uint32_t slot)
{
	uint32_t index = tlb->slot[slot].entry - 1;

	forget(tlb, &tlb->entry[index], slot);
	make_oldest(tlb, index, tlb->sets == 1 ? 0 : index / tlb->ways);
}

void tlb_remove(struct tlb *tlb, struct tlb_entry *entry)
{
	remove_at(tlb, find_slot(tlb, entry->key));
}

bool tlb_drop(struct tlb *tlb, uint64_t key)
{
	uint32_t slot;

	if (!tlb->entry)
		return false;
	slot = find_slot(tlb, key);
	if (!tlb->slot[slot].entry)
		return false;
	remove_at(tlb, slot);
	return true;
}
