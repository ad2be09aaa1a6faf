/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation cache: one hash over all entries finds them, a list for each set orders them.
 */
#include "tlb.h"

#include <glib.h>
#include <string.h>

void tlb_init(struct tlb *tlb, unsigned entries, unsigned ways)
{
	uint32_t chains = 16;

	memset(tlb, 0, sizeof(*tlb));
	tlb->entries = entries;
	tlb->ways = ways;
	tlb->sets = ways ? entries / ways : 0;
	while (chains < 2 * entries)
		chains *= 2;
	tlb->hash_mask = chains - 1;
}

void tlb_clear(struct tlb *tlb)
{
	g_free(tlb->entry);
	g_free(tlb->chain);
	g_free(tlb->newest);
	g_free(tlb->oldest);
	tlb_init(tlb, tlb->entries, tlb->ways);
}

static uint32_t *chain_of(const struct tlb *tlb, uint64_t key)
{
	return &tlb->chain[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & tlb->hash_mask];
}

static unsigned set_of(const struct tlb *tlb, uint64_t key)
{
	return tlb->sets == 1 ? 0 : (unsigned)((key & ((UINT64_C(1) << 36) - 1)) % tlb->sets);
}

/* Every entry is on its set's list always, the free ones at the old end. */
static void allocate(struct tlb *tlb)
{
	tlb->entry = g_new0(struct tlb_entry, tlb->entries);
	tlb->chain = g_new(uint32_t, (size_t)tlb->hash_mask + 1);
	tlb->newest = g_new(uint32_t, tlb->sets);
	tlb->oldest = g_new(uint32_t, tlb->sets);
	memset(tlb->chain, 0xff, ((size_t)tlb->hash_mask + 1) * sizeof(*tlb->chain));
	for (unsigned set = 0; set < tlb->sets; set++) {
		uint32_t first = set * tlb->ways;

		for (uint32_t i = first; i < first + tlb->ways; i++) {
			tlb->entry[i].older = i > first ? i - 1 : TLB_NONE;
			tlb->entry[i].newer = i + 1 < first + tlb->ways ? i + 1 : TLB_NONE;
		}
		tlb->oldest[set] = first;
		tlb->newest[set] = first + tlb->ways - 1;
	}
}

static void take_out(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_entry *e = &tlb->entry[i];

	*(e->older == TLB_NONE ? &tlb->oldest[set] : &tlb->entry[e->older].newer) = e->newer;
	*(e->newer == TLB_NONE ? &tlb->newest[set] : &tlb->entry[e->newer].older) = e->older;
}

static void make_newest(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_entry *e = &tlb->entry[i];

	if (tlb->newest[set] == i)
		return;
	take_out(tlb, i, set);
	e->older = tlb->newest[set];
	e->newer = TLB_NONE;
	tlb->entry[e->older].newer = i;
	tlb->newest[set] = i;
}

static void make_oldest(struct tlb *tlb, uint32_t i, unsigned set)
{
	struct tlb_entry *e = &tlb->entry[i];

	if (tlb->oldest[set] == i)
		return;
	take_out(tlb, i, set);
	e->newer = tlb->oldest[set];
	e->older = TLB_NONE;
	tlb->entry[e->newer].older = i;
	tlb->oldest[set] = i;
}

struct tlb_entry *tlb_find(struct tlb *tlb, uint64_t key)
{
	if (!tlb->entry)
		return NULL;
	for (uint32_t i = *chain_of(tlb, key); i != TLB_NONE; i = tlb->entry[i].next)
		if (tlb->entry[i].key == key) {
			make_newest(tlb, i, i / tlb->ways);
			return &tlb->entry[i];
		}
	return NULL;
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

static void unchain(struct tlb *tlb, uint32_t index)
{
	uint32_t *link = chain_of(tlb, tlb->entry[index].key);

	while (*link != index)
		link = &tlb->entry[*link].next;
	*link = tlb->entry[index].next;
	tlb->live[tlb_key_size(tlb->entry[index].key)]--;
	tlb->live_bytes -= UINT64_C(1) << tlb_size_lg2(tlb_key_size(tlb->entry[index].key));
	tlb->entry[index].key = 0;
}

struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t key, uint64_t *out_evicted,
			     uint64_t *out_holders)
{
	struct tlb_entry *entry;
	uint32_t index, *link;
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
		unchain(tlb, index);
	}
	link = chain_of(tlb, key);
	entry->key = key;
	entry->holders = 0;
	entry->next = *link;
	*link = index;
	tlb->live[tlb_key_size(key)]++;
	tlb->live_bytes += UINT64_C(1) << tlb_size_lg2(tlb_key_size(key));
	make_newest(tlb, index, set);
	return entry;
}

void tlb_remove(struct tlb *tlb, struct tlb_entry *entry)
{
	uint32_t index = (uint32_t)(entry - tlb->entry);

	unchain(tlb, index);
	make_oldest(tlb, index, index / tlb->ways);
}

bool tlb_drop(struct tlb *tlb, uint64_t key)
{
	struct tlb_entry *entry = tlb_find(tlb, key);

	if (!entry)
		return false;
	tlb_remove(tlb, entry);
	return true;
}
