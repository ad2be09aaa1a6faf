/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation cache: one hash table finds all entries, and a ring for each set orders them. The
 * code that every request runs is in the header.
 */
#include "tlb.h"

#include <glib.h>
#include <string.h>

void tlb_age_init(struct tlb_age *age, uint32_t first, uint32_t count)
{
	uint32_t last = first + count - 1;

	for (uint32_t i = first; i <= last; i++)
		age[i] = (struct tlb_age){ i > first ? i - 1 : last, i < last ? i + 1 : first };
}

void tlb_age_make_oldest(struct tlb_age *age, uint32_t *oldest, uint32_t i)
{
	uint32_t newest = age[*oldest].older;

	if (i != *oldest && i != newest)
		tlb_age_to_seam(age, i, newest, *oldest);
	*oldest = i;
}

void tlb_init(struct tlb *tlb, unsigned entries, unsigned ways)
{
	unsigned lg2 = 1, sets = ways ? entries / ways : 0;

	memset(tlb, 0, sizeof(*tlb));
	tlb->entries = entries;
	tlb->set_mask = sets - 1;
	tlb->set_modulo = sets & tlb->set_mask ? sets : 0;
	/* Few chains have anything, next to none more than one: what a search does is foreseen. */
	while (1u << lg2 < 8 * entries)
		lg2++;
	tlb->hash_mask = (1u << lg2) - 1;
	tlb->chain = g_new(uint32_t, (size_t)1 << lg2);
	for (unsigned i = 0; i <= tlb->hash_mask; i++)
		tlb->chain[i] = entries;
	tlb->entry = g_aligned_alloc0(entries + 1, sizeof(struct tlb_entry), 64);
	tlb->age = g_aligned_alloc0(entries, sizeof(struct tlb_age), 64);
	tlb->link = g_new0(struct tlb_link, entries);
	tlb->oldest = g_new(uint32_t, sets);
	for (unsigned set = 0; set < sets; set++) {
		tlb_age_init(tlb->age, set * ways, ways);
		tlb->oldest[set] = set * ways;
	}
}

void tlb_clear(struct tlb *tlb)
{
	g_aligned_free(tlb->entry);
	g_aligned_free(tlb->age);
	g_free(tlb->link);
	g_free(tlb->oldest);
	g_free(tlb->chain);
	memset(tlb, 0, sizeof(*tlb));
}

struct tlb_entry *tlb_peek_chain(const struct tlb *tlb, uint32_t at, uint64_t key)
{
	while (at != tlb->entries && tlb->entry[at].key != key)
		at = tlb->link[at].next;
	return at != tlb->entries ? &tlb->entry[at] : NULL;
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

struct tlb_entry *tlb_drop(struct tlb *tlb, uint64_t key)
{
	struct tlb_entry *entry = tlb_peek(tlb, key);
	uint32_t index;

	if (!entry)
		return NULL;
	index = (uint32_t)(entry - tlb->entry);
	tlb_unchain(tlb, index);
	tlb_count(tlb, key, 0);
	tlb_age_make_oldest(tlb->age, &tlb->oldest[tlb_set_of(tlb, key)], index);
	entry->key = 0;
	return entry;
}
