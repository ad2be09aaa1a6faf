/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation cache: against an oracle, and its order of replacement.
 */
#include "harness/test.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "sim/mmu/tlb.h"

TEST(tlb, empty_finds_nothing)
{
	struct tlb tlb;
	uint64_t evicted;

	tlb_init(&tlb, 4, 4);
	EXPECT_NULL(tlb_find_va(&tlb, tlb_key_base(0), 0));
	tlb_clear(&tlb);
	tlb_init(&tlb, 0, 0);
	EXPECT_NULL(tlb_insert(&tlb, tlb_key(tlb_key_base(0), 0, 0), &evicted, NULL));
	tlb_clear(&tlb);
}

TEST(tlb, key_tells_everything_apart)
{
	uint64_t va = UINT64_C(0xfffffffff000);

	EXPECT_NE(tlb_key(tlb_key_base(0), va, 0), tlb_key(tlb_key_base(1), va, 0));
	EXPECT_NE(tlb_key(tlb_key_base(0), 0, 0), tlb_key(tlb_key_base(0), 0, 1));
	EXPECT_NE(tlb_key(tlb_key_base(31), va, 3), 0u);
	EXPECT_EQ(tlb_key_va(tlb_key(tlb_key_base(31), va, 0)), va);
	EXPECT_EQ(tlb_key_space(tlb_key(tlb_key_base(31), va, 2)), 31u);
	EXPECT_EQ(tlb_key_size(tlb_key(tlb_key_base(31), va, 2)), 2u);
	EXPECT_EQ(tlb_key_va(tlb_key(tlb_key_base(3), UINT64_C(0x12c000345678), 1)),
		  UINT64_C(0x12c000200000));
}

TEST(tlb, least_recently_used_goes_first)
{
	struct tlb tlb;
	uint64_t evicted, holders;

	tlb_init(&tlb, 3, 3);
	for (unsigned i = 0; i < 3; i++) {
		tlb_insert(&tlb, tlb_key(tlb_key_base(0), i << 12, 0), &evicted, NULL)->holders = i;
		EXPECT_EQ(evicted, 0u);
	}
	EXPECT_NOT_NULL(tlb_find_va(&tlb, tlb_key_base(0), 0));
	tlb_insert(&tlb, tlb_key(tlb_key_base(0), 3 << 12, 0), &evicted, &holders);
	EXPECT_EQ(evicted, tlb_key(tlb_key_base(0), 1 << 12, 0));
	EXPECT_EQ(holders, 1u);
	EXPECT_NOT_NULL(tlb_drop(&tlb, tlb_key(tlb_key_base(0), 0, 0)));
	EXPECT_NULL(tlb_drop(&tlb, tlb_key(tlb_key_base(0), 0, 0)));
	tlb_insert(&tlb, tlb_key(tlb_key_base(0), 4 << 12, 0), &evicted, NULL);
	EXPECT_EQ(evicted, 0u); /* took the free place */
	tlb_clear(&tlb);
}

/* Random use of a set-associative cache, against a list for each set. */
#define ENTRIES 24
#define WAYS    4

static unsigned oracle_find(uint64_t *set, uint64_t key)
{
	unsigned i = 0;

	while (i < WAYS && set[i] != key)
		i++;
	return i;
}

static void oracle_front(uint64_t *set, unsigned i, uint64_t key)
{
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = key;
}

TEST(tlb, random_use_agrees_with_an_oracle)
{
	uint64_t sets[ENTRIES / WAYS][WAYS] = { { 0 } };
	GRand *rand = g_rand_new_with_seed(4);
	struct tlb tlb;

	tlb_init(&tlb, ENTRIES, WAYS);
	for (unsigned step = 0; step < 100000; step++) {
		uint64_t page = (uint64_t)g_rand_int_range(rand, 0, 60);
		uint64_t key = tlb_key(tlb_key_base(page & 1), page << 21, 1), evicted;
		uint64_t *set = sets[page % (ENTRIES / WAYS)];
		unsigned i = oracle_find(set, key);
		struct tlb_entry *entry;

		if (g_rand_int_range(rand, 0, 10) == 0) {
			ASSERT_EQ(tlb_drop(&tlb, key) != NULL, i < WAYS);
			if (i < WAYS) {
				memmove(set + i, set + i + 1, (WAYS - 1 - i) * sizeof(*set));
				set[WAYS - 1] = 0;
			}
			continue;
		}
		entry = tlb_find_va(&tlb, tlb_key_base(page & 1), (page << 21) + 77);
		ASSERT_EQ(entry != NULL, i < WAYS);
		if (entry) {
			ASSERT_EQ(entry->pa, page);
			oracle_front(set, i, key);
		} else {
			tlb_insert(&tlb, key, &evicted, NULL)->pa = page;
			ASSERT_EQ(evicted, set[WAYS - 1]);
			oracle_front(set, WAYS - 1, key);
		}
	}
	tlb_clear(&tlb);
	g_rand_free(rand);
}

/* A random sweep over N pages hits a full cache of C entries with C / N: the closed form, within
 * three sigma. */
static void sweep(unsigned size, uint64_t pages)
{
	GRand *rand = g_rand_new_with_seed(99);
	struct tlb tlb;
	uint64_t hits = 0, n = 400000, evicted;
	double p = pages > 512 ? 512.0 / pages : 1;
	NOTE("%llu pages", (unsigned long long)pages);

	tlb_init(&tlb, 512, 512);
	for (uint64_t i = 0; i < n + 20 * pages; i++) {
		uint64_t va = g_rand_int(rand) % pages << tlb_size_lg2(size);

		if (tlb_find_va(&tlb, tlb_key_base(0), va))
			hits += i >= 20 * pages;
		else
			tlb_insert(&tlb, tlb_key(tlb_key_base(0), va, size), &evicted, NULL);
	}
	/* Successive hits are all but independent: what is held does not hang on what comes next.
	 */
	EXPECT_NEAR((double)hits / n, p, 3 * sqrt(p * (1 - p) / n) + 1e-12);
	EXPECT_EQ(tlb.live_bytes, MIN(512, pages) << tlb_size_lg2(size));
	tlb_clear(&tlb);
	g_rand_free(rand);
}

TEST(tlb, random_sweep_has_the_closed_form)
{
	sweep(1, 30720); /* 60 GiB in 2 MiB pages */
	sweep(1, 1024);
	sweep(2, 60); /* 60 GiB in 1 GiB pages */
}
