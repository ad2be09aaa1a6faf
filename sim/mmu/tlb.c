/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation cache: one hash table finds all entries, and a ring for each set orders them. An
 * entry with its links fills one cache line of the host. The code that every request runs is in
 * the header.
 */
#include "tlb.h"

#include <glib.h>
#include <string.h>

/* Every entry is on its set's ring always, the free ones at the old end. */
void tlb_init(struct tlb *tlb, unsigned entries, unsigned ways)
{
	unsigned lg2 = 1;

	memset(tlb, 0, sizeof(*tlb));
	tlb->entries = entries;
	tlb->ways = ways;
	tlb->sets = ways ? entries / ways : 0;
	tlb->set_mask = tlb->sets - 1;
	tlb->set_modulo = tlb->sets & tlb->set_mask ? tlb->sets : 0;
	/* Few chains have anything, next to none more than one: what a search does is foreseen. */
	while (1u << lg2 < 8 * entries)
		lg2++;
	tlb->hash_mask = (1u << lg2) - 1;
	tlb->chain = g_new0(uint32_t, (size_t)1 << lg2);
	tlb->entry = g_aligned_alloc0(entries, sizeof(struct tlb_entry), 64);
	tlb->oldest = g_new(uint32_t, tlb->sets);
	for (unsigned set = 0; set < tlb->sets; set++) {
		uint32_t first = set * ways, last = first + ways - 1;

		for (uint32_t i = first; i <= last; i++) {
			tlb->entry[i].older = i > first ? i - 1 : last;
			tlb->entry[i].newer = i < last ? i + 1 : first;
		}
		tlb->oldest[set] = first;
	}
}

void tlb_clear(struct tlb *tlb)
{
	g_aligned_free(tlb->entry);
	g_free(tlb->oldest);
	g_free(tlb->chain);
	memset(tlb, 0, sizeof(*tlb));
}

/* Evicted or not: an entry of another size than the one before it in its place. */
void tlb_count(struct tlb *tlb, uint64_t gone, uint64_t come)
{
	unsigned size = tlb_key_size(gone);

	if (gone) {
		tlb->live_bytes -= UINT64_C(1) << tlb_size_lg2(size);
		if (!--tlb->live[size])
			tlb->live_sizes &= ~(1u << size);
	}
	size = tlb_key_size(come);
	if (come) {
		tlb->live_bytes += UINT64_C(1) << tlb_size_lg2(size);
		tlb->live[size]++;
		tlb->live_sizes |= 1u << size;
	}
}

static void make_oldest(struct tlb *tlb, uint32_t i, unsigned set)
{
	uint32_t oldest = tlb->oldest[set], newest = tlb->entry[oldest].older;

	if (i != oldest && i != newest)
		tlb_move_to_seam(tlb, i, newest);
	tlb->oldest[set] = i;
}

void tlb_remove(struct tlb *tlb, struct tlb_entry *entry)
{
	uint32_t index = (uint32_t)(entry - tlb->entry);

	tlb_unchain(tlb, index);
	tlb_count(tlb, entry->key, 0);
	make_oldest(tlb, index, tlb_set_of(tlb, entry->key));
	entry->key = 0;
}

bool tlb_drop(struct tlb *tlb, uint64_t key)
{
	struct tlb_entry *entry = tlb_peek(tlb, key);

	if (entry)
		tlb_remove(tlb, entry);
	return entry != NULL;
}
