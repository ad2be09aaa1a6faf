/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates addresses through L1 TLB, L2 TLB and page table walk, and invalidates entries.
 */
#include "mmu-state.h"

#include <glib.h>
#include <string.h>

#include "sim/page-table.h"

#define HOLDER_BITS 64u
#define OWN_PAGE    2u /* a flag of entries beside PT_WRITE: of mmu_answer.is_own */
#define FLAGS       (OWN_PAGE | PT_WRITE)
#define SCAN_ABOVE  64u /* 2 MiB regions: a longer range is looked for by a scan of the entries */

/* What a lane's own TLB has: some of the L2 TLB's entries, by their indices. */
struct l1_tlb {
	uint32_t *place;     /* of each entry of the L2 TLB, and the one behind the last: its place
				here, counted from 1; 0: none */
	uint32_t *entry;     /* at each place; the one behind the last: the place is free */
	struct tlb_age *age; /* of the places */
	uint32_t oldest;
	uint64_t holder; /* the lane's bit of tlb_entry.holders */
};

struct mmu_state {
	struct mmu_memory memory;
	struct mmu_shared *shared;
	unsigned device, lanes, walkers;
	uint64_t l1_ps, l2_ps;
	struct l1_tlb *l1; /* of each lane */
	struct tlb l2, walk_cache;
	uint64_t *walker_free_ps;   /* when each of them is free */
	struct tlb_age *walker_age; /* in the order of that, then of their numbers */
	uint32_t first_walker, next_walker;
	uint64_t space_entries[MMU_SPACES]; /* of the L2 TLB and the walk cache */
	struct sim_counters *counters;
};

/* The walker that is free first. Those that are free are as good as another: tried in turn. */
static inline unsigned free_walker(struct mmu_state *mmu, uint64_t at_ps)
{
	unsigned next = mmu->next_walker, first = mmu->first_walker;

	mmu->next_walker = next + 1 < mmu->walkers ? next + 1 : 0;
	return mmu->walker_free_ps[next] <= MAX(at_ps, mmu->walker_free_ps[first]) ? next : first;
}

/* Mostly it is free after all others. */
static inline void take_walker(struct mmu_state *mmu, uint32_t walker, uint64_t until_ps)
{
	uint64_t *free_ps = mmu->walker_free_ps;
	struct tlb_age *age = mmu->walker_age;
	uint32_t behind = walker;

	free_ps[walker] = until_ps;
	tlb_age_make_newest(age, &mmu->first_walker, walker);
	while (behind != mmu->first_walker &&
	       free_ps[age[behind].older] + (age[behind].older > walker) > until_ps)
		behind = age[behind].older;
	if (G_UNLIKELY(behind == mmu->first_walker))
		mmu->first_walker = walker;
	else if (behind != walker)
		tlb_age_to_seam(age, walker, age[behind].older, behind);
}

static void l1_init(struct l1_tlb *l1, unsigned lane, unsigned places, unsigned entries)
{
	*l1 = (struct l1_tlb){ .place = g_new0(uint32_t, entries + 1),
			       .entry = g_new(uint32_t, places),
			       .age = g_new(struct tlb_age, places),
			       .holder = UINT64_C(1) << lane % HOLDER_BITS };
	for (unsigned i = 0; i < places; i++)
		l1->entry[i] = entries;
	tlb_age_init(l1->age, 0, places);
}

struct mmu_state *mmu_state_new(const struct sim_profile *p, unsigned device, unsigned lanes,
				struct mmu_shared *shared, const struct mmu_memory *memory,
				struct sim_counters *counters)
{
	struct mmu_state *mmu = g_new0(struct mmu_state, 1);

	mmu->memory = *memory;
	mmu->shared = shared;
	mmu->counters = counters;
	mmu->device = device;
	mmu->lanes = lanes;
	mmu->walkers = p->walkers;
	mmu->l1_ps = p->tlb_l1_ps;
	mmu->l2_ps = p->tlb_l2_ps;
	mmu->l1 = g_new0(struct l1_tlb, lanes);
	for (unsigned i = 0; i < lanes; i++)
		l1_init(&mmu->l1[i], i, p->tlb_l1_entries, p->tlb_l2_entries);
	tlb_init(&mmu->l2, p->tlb_l2_entries, p->tlb_l2_ways);
	tlb_init(&mmu->walk_cache, p->walk_cache_entries, p->walk_cache_entries);
	mmu->walker_free_ps = g_new0(uint64_t, p->walkers);
	mmu->walker_age = g_new(struct tlb_age, p->walkers);
	tlb_age_init(mmu->walker_age, 0, p->walkers);
	return mmu;
}

void mmu_state_free(struct mmu_state *mmu)
{
	if (!mmu)
		return;
	for (struct l1_tlb *l1 = mmu->l1; l1 < mmu->l1 + mmu->lanes; l1++) {
		g_free(l1->place);
		g_free(l1->entry);
		g_free(l1->age);
	}
	tlb_clear(&mmu->l2);
	tlb_clear(&mmu->walk_cache);
	g_free(mmu->l1);
	g_free(mmu->walker_free_ps);
	g_free(mmu->walker_age);
	g_free(mmu);
}

static uint32_t *region_of(struct mmu_state *mmu, unsigned space, uint64_t va)
{
	uint64_t hash =
		((va >> PT_HUGE_LG2) + space * UINT64_C(0x51ed27)) * UINT64_C(0x9e3779b97f4a7c15);

	return &mmu->shared->filter.region[hash >> 52 & (MMU_REGIONS - 1)];
}

/* An entry of the L2 TLB or the walk cache has come (1) or gone (-1). */
static inline void count_entry(struct mmu_state *mmu, uint64_t key, bool is_page, int by)
{
	unsigned space = tlb_key_space(key);
	uint32_t bit = 1u << mmu->device, *devices = &mmu->shared->filter.devices[space];
	uint64_t entries = mmu->space_entries[space] += (uint64_t)(int64_t)by;

	if (is_page && tlb_key_size(key) <= 1)
		*region_of(mmu, space, tlb_key_va(key)) += (uint32_t)by;
	if (G_UNLIKELY(entries <= 1))
		*devices = entries ? *devices | bit : *devices & ~bit;
}

/* A page that leaves the L2 TLB leaves every L1 TLB. */
static void page_went(struct mmu_state *mmu, uint32_t index, uint64_t key, uint64_t holders)
{
	for (; holders; holders &= holders - 1) {
		for (unsigned lane = (unsigned)__builtin_ctzll(holders); lane < mmu->lanes;
		     lane += HOLDER_BITS) {
			struct l1_tlb *l1 = &mmu->l1[lane];
			uint32_t place = l1->place[index];

			if (!place)
				continue;
			l1->place[index] = 0;
			l1->entry[place - 1] = mmu->l2.entries;
			tlb_age_make_oldest(l1->age, &l1->oldest, place - 1);
		}
	}
	count_entry(mmu, key, true, -1);
}

static void drop(struct mmu_state *mmu, struct tlb *tlb, uint64_t key)
{
	const struct tlb_entry *entry = tlb_drop(tlb, key);

	if (entry && tlb == &mmu->l2)
		page_went(mmu, (uint32_t)(entry - tlb->entry), key, entry->holders);
	else if (entry)
		count_entry(mmu, key, false, -1);
}

static inline void put_l1(const struct mmu_state *mmu, struct l1_tlb *l1, struct tlb_entry *entry)
{
	uint32_t place = l1->oldest, index = (uint32_t)(entry - mmu->l2.entry);

	l1->place[l1->entry[place]] = 0;
	l1->oldest = l1->age[place].newer;
	l1->entry[place] = index;
	l1->place[index] = place + 1;
	entry->holders |= l1->holder;
}

/* A found page is the newest of the TLB that had it, and of the lane's (its place there, or 0). */
static inline void use_page(struct mmu_state *mmu, struct l1_tlb *l1, struct tlb_entry *entry,
			    uint32_t place)
{
	if (place) {
		tlb_age_make_newest(l1->age, &l1->oldest, place - 1);
		return;
	}
	tlb_touch(&mmu->l2, entry);
	put_l1(mmu, l1, entry);
}

__attribute__((cold)) static void cache_tables(struct mmu_state *mmu, uint64_t base, uint64_t va,
					       const struct pt_step *steps, unsigned from,
					       unsigned levels)
{
	for (unsigned level = from + 1; level < levels; level++) {
		uint64_t key = tlb_key(base, va, TLB_SIZES - level), evicted;
		struct tlb_entry *entry = tlb_insert(&mmu->walk_cache, key, &evicted, NULL);

		if (!entry)
			return;
		if (evicted)
			count_entry(mmu, evicted, false, -1);
		count_entry(mmu, key, false, 1);
		entry->pa = steps->descriptor_pa[level] & ~UINT64_C(0xfff);
	}
}

/* Reads the descriptors, from the lowest table that the walk cache has, on the walker that is free
 * first. Returns the key of the page; 0: there is none. */
static inline uint64_t walk(struct mmu_state *mmu, const uint64_t *root_pa, uint64_t base,
			    uint64_t va, uint64_t at_ps, struct pt_leaf *out_leaf,
			    uint64_t *out_done_ps)
{
	const struct tlb_entry *table = tlb_find_va(&mmu->walk_cache, base, va);
	unsigned first = table ? TLB_SIZES - tlb_key_size(table->key) : 0, level = first;
	unsigned walker = free_walker(mmu, at_ps);
	uint64_t t = MAX(at_ps, mmu->walker_free_ps[walker]), changes = mmu->shared->changes;
	struct pt_step steps;
	bool found;

	found = pt_walk_from(first, table ? table->pa : *root_pa, mmu->memory.tables, va, out_leaf,
			     &steps);
	for (; level < out_leaf->levels; level++)
		t = mmu->memory.read(mmu->memory.ctx, steps.descriptor_pa[level], t);
	take_walker(mmu, walker, t);
	mmu->counters->walks++;
	mmu->counters->walk_cache_hits += table != NULL;
	mmu->counters->walk_levels += level - first;
	mmu->counters->walk_ps += t - at_ps;
	*out_done_ps = t;
	if (G_UNLIKELY(mmu->shared->changes != changes)) /* while others had the lock */
		found = pt_walk_from(0, *root_pa, mmu->memory.tables, va, out_leaf, &steps);
	else if (G_UNLIKELY(first + 1 < level) && found)
		cache_tables(mmu, base, va, &steps, first, level);
	return found ? tlb_key(base, va, tlb_size_of(out_leaf->page_lg2)) : 0;
}

static inline struct tlb_entry *fill(struct mmu_state *mmu, struct l1_tlb *l1,
				     const uint64_t *root_pa, uint64_t base, uint64_t va,
				     uint64_t at_ps, uint64_t *out_done_ps)
{
	struct tlb_entry *entry;
	struct pt_leaf leaf = { 0 };
	uint64_t key = walk(mmu, root_pa, base, va, at_ps, &leaf, out_done_ps);
	uint64_t evicted, holders, room, pa = leaf.pa & -(UINT64_C(1) << leaf.page_lg2);

	if (G_UNLIKELY(!key))
		return NULL;
	entry = tlb_insert(&mmu->l2, key, &evicted, &holders);
	if (G_LIKELY(evicted))
		page_went(mmu, (uint32_t)(entry - mmu->l2.entry), evicted, holders);
	count_entry(mmu, key, true, 1);
	(void)sim_memory_at(mmu->memory.tables, pa, &room);
	entry->pa = pa | leaf.flags;
	if (room >> leaf.page_lg2 && SIM_PA_NODE(pa) == mmu->device)
		entry->pa |= OWN_PAGE;
	entry->ready_ps = *out_done_ps;
	put_l1(mmu, l1, entry);
	return entry;
}

enum sim_status mmu_translate(struct mmu_state *mmu, unsigned lane, unsigned space, uint64_t va,
			      bool write, uint64_t at_ps, struct mmu_answer *out)
{
	struct l1_tlb *l1 = &mmu->l1[lane];
	uint64_t base = tlb_key_base(space);
	struct tlb_entry *entry = tlb_peek_va(&mmu->l2, base, va);

	mmu->counters->tlb_requests++;
	out->done_ps = at_ps + mmu->l1_ps;
	if (entry) {
		uint32_t place = l1->place[entry - mmu->l2.entry];

		*(place ? &mmu->counters->tlb_l1_hits : &mmu->counters->tlb_l2_hits) += 1;
		out->done_ps += place ? 0 : mmu->l2_ps;
		use_page(mmu, l1, entry, place);
	} else {
		mmu->counters->tlb_misses++;
		entry = fill(mmu, l1, &mmu->shared->root_pa[space], base, va,
			     out->done_ps + mmu->l2_ps, &out->done_ps);
		if (G_UNLIKELY(!entry))
			return SIM_FAULT_TRANSLATION;
	}
	out->done_ps = MAX(out->done_ps, entry->ready_ps);
	if (G_UNLIKELY(write && !(entry->pa & PT_WRITE)))
		return SIM_FAULT_PERMISSION;
	out->is_own = entry->pa & OWN_PAGE;
	out->page_lg2 = tlb_size_lg2(tlb_key_size(entry->key));
	out->pa = (entry->pa & ~(uint64_t)FLAGS) + (va & ((UINT64_C(1) << out->page_lg2) - 1));
	return SIM_OK;
}

/* Finds the pages first, which changes nothing, and uses them then. */
unsigned mmu_translate_rows(struct mmu_state *mmu, unsigned lane, unsigned space, bool write,
			    uint64_t at_ps, uint64_t bytes, struct sim_row *rows, unsigned count)
{
	uint64_t base = tlb_key_base(space), flags = OWN_PAGE | (write ? PT_WRITE : 0);
	const uint64_t l1_done = at_ps + mmu->l1_ps, l2_done = l1_done + mmu->l2_ps;
	/* of the row before; sizes are guessed to be the same */
	uint64_t key = base, page_va = INT64_MAX, page_bytes = 4096, to_pa = 0, done = 0;
	unsigned lg2 = tlb_size_lg2(0), l2_hits = 0, hits = 0;
	struct l1_tlb *l1 = &mmu->l1[lane];
	struct {
		struct tlb_entry *entry;
		struct sim_row *row; /* the first there */
	} page[SIM_ROWS_MAX], *next = page, *last;

	for (; hits < count; hits++) {
		struct sim_row *row = &rows[hits];
		uint64_t va = row->address;

		if (G_UNLIKELY(bytes && va % SIM_ROW_BYTES + bytes > SIM_ROW_BYTES))
			break;
		if (va - page_va >= page_bytes) {
			struct tlb_entry *entry = tlb_peek(&mmu->l2, key | va >> lg2);

			if (G_UNLIKELY(!entry)) {
				entry = tlb_peek_va(&mmu->l2, base, va);
				if (!entry)
					break;
				lg2 = tlb_size_lg2(tlb_key_size(entry->key));
				page_bytes = UINT64_C(1) << lg2;
				key = tlb_key(base, 0, tlb_key_size(entry->key));
			}
			if (G_UNLIKELY((entry->pa & flags) != flags))
				break;
			page_va = va & -page_bytes;
			to_pa = (entry->pa & ~(uint64_t)FLAGS) - page_va;
			done = MAX(l1_done, entry->ready_ps);
			next->entry = entry;
			next++->row = row;
		}
		row->address = va + to_pa;
		row->at_ps = done;
	}
	for (last = next, next = page; next < last; next++) {
		struct tlb_entry *entry = next->entry;
		uint32_t place = l1->place[entry - mmu->l2.entry];

		use_page(mmu, l1, entry, place);
		if (place)
			continue;
		l2_hits++;
		next->row->at_ps = MAX(l2_done, entry->ready_ps);
	}
	mmu->counters->tlb_requests += hits;
	mmu->counters->tlb_l1_hits += hits - l2_hits;
	mmu->counters->tlb_l2_hits += l2_hits;
	return hits;
}

/* Entry by entry. */
static void drop_by_scan(struct mmu_state *mmu, unsigned space, uint64_t va, uint64_t last)
{
	struct tlb *const tlbs[] = { &mmu->l2, &mmu->walk_cache };

	for (unsigned t = 0; t < 2; t++) {
		for (unsigned i = 0; i < tlbs[t]->entries; i++) {
			uint64_t key = tlbs[t]->entry[i].key, start = tlb_key_va(key);
			uint64_t size = UINT64_C(1) << tlb_size_lg2(tlb_key_size(key));

			if (key && tlb_key_space(key) == space && start <= last &&
			    start + (size - 1) >= va)
				drop(mmu, tlbs[t], key);
		}
	}
}

/* Page by page, of each size that there is. */
static void drop_by_key(struct mmu_state *mmu, unsigned space, uint64_t va, uint64_t last)
{
	uint64_t base = tlb_key_base(space);

	for (unsigned size = 0; size < TLB_SIZES; size++) {
		bool pages = mmu->l2.live[size] != 0, tables = mmu->walk_cache.live[size] != 0;
		uint64_t bytes = UINT64_C(1) << tlb_size_lg2(size);

		for (uint64_t at = va & -bytes; (pages || tables) && at <= last; at += bytes) {
			if (pages && (size > 1 || *region_of(mmu, space, at)))
				drop(mmu, &mmu->l2, tlb_key(base, at, size));
			if (tables)
				drop(mmu, &mmu->walk_cache, tlb_key(base, at, size));
		}
	}
}

void mmu_state_invalidate(struct mmu_state *mmu, unsigned space, uint64_t va, uint64_t bytes)
{
	uint64_t last = va + bytes - 1;
	bool is_long = (last >> PT_HUGE_LG2) - (va >> PT_HUGE_LG2) >= SCAN_ABOVE;

	if (bytes && mmu->space_entries[space])
		(is_long ? drop_by_scan : drop_by_key)(mmu, space, va, last);
}

uint64_t mmu_state_live_bytes(const struct mmu_state *mmu)
{
	return mmu->l2.live_bytes;
}
