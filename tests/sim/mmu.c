/* SPDX-License-Identifier: Apache-2.0
 *
 * The MMU's state: levels and their times, walkers, hits under misses, inclusion, what an
 * invalidation costs, and the miss rate of random sweeps with 2 MiB and 1 GiB pages against the
 * closed form.
 */
#include "harness/test.h"

#include <glib.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/mmu/mmu-state.h"
#include "sim/page-table.h"

#define READ_PS 100000 /* one descriptor */
#define LANES   75
#define TABLES  256

static struct sim_profile profile;
static struct mmu_shared shared;
static struct sim_counters counters;
static struct mmu_state *mmu;
static struct page_table table;
static uint64_t (*tables)[512];
static unsigned tables_used;
static struct sim_memory memory; /* pa / 4 KiB - 1 is the place of a table */

static uint64_t alloc_table(void *ctx)
{
	(void)ctx;
	return tables_used < TABLES ? (uint64_t)++tables_used << 12 : 0;
}

static void free_table(void *ctx, uint64_t pa)
{
	(void)ctx;
	(void)pa;
}

static void (*meanwhile)(void); /* once */

static uint64_t read_descriptor(void *ctx, uint64_t pa, uint64_t at_ps)
{
	void (*now)(void) = meanwhile;

	(void)ctx;
	(void)pa;
	meanwhile = NULL;
	if (now)
		now();
	return at_ps + READ_PS;
}

static void open_mmu(void)
{
	const struct mmu_memory descriptors = { read_descriptor, NULL, &memory };

	memset(&shared, 0, sizeof(shared));
	memset(&counters, 0, sizeof(counters));
	mmu = mmu_state_new(&profile, 0, LANES, &shared, &descriptors, &counters);
	shared.root_pa[0] = table.root_pa;
}

static void map(uint64_t va, uint64_t pa, unsigned lg2, uint64_t count)
{
	ASSERT_TRUE(pt_map(&table, va, pa, lg2, count, PT_WRITE));
	if (mmu)
		shared.root_pa[0] = table.root_pa;
}

SETUP(mmu)
{
	const struct pt_host host = { alloc_table, free_table, NULL, &memory };
	char *error = NULL;

	ASSERT_TRUE(sim_profile_load("Ascend910B1", &profile, &error));
	tables = g_malloc0(TABLES * sizeof(*tables));
	memory.base[0] = (unsigned char *)tables - sizeof(*tables);
	memory.bytes[0] = (TABLES + 1) * sizeof(*tables);
	tables_used = 0;
	pt_init(&table, &host);
	open_mmu();
}

TEARDOWN(mmu)
{
	mmu_state_free(mmu);
	mmu = NULL;
	g_free(tables);
}

static uint64_t translate(unsigned lane, uint64_t va, uint64_t at_ps)
{
	struct mmu_answer answer;

	if (!EXPECT_EQ(mmu_translate(mmu, lane, 0, va, false, at_ps, &answer), SIM_OK))
		return 0;
	EXPECT_EQ(answer.pa, va - (va >> 47 << 47)); /* the tests map va to the same pa */
	return answer.done_ps - at_ps;
}

/* Of rows that miss, cross a page, or may not be written, the first stays for mmu_translate(). */
TEST(mmu, rows_take_together_what_they_take_one_by_one)
{
	const struct mmu_memory descriptors = { read_descriptor, NULL, &memory };
	struct sim_counters counted = { 0 };
	struct mmu_shared other = { 0 };
	struct mmu_state *alone;
	g_autoptr(GRand) rand = g_rand_new_with_seed(1);
	unsigned together = 0;

	memory.bytes[0] = UINT64_C(2) << 30;
	map(0, 0, 21, 512);
	ASSERT_TRUE(pt_map(&table, UINT64_C(1) << 30, UINT64_C(1) << 30, 21, 8, 0));
	ASSERT_TRUE(pt_map(&table, UINT64_C(2) << 30, UINT64_C(5) << 28, 12, 64, PT_WRITE));
	alone = mmu_state_new(&profile, 0, LANES, &other, &descriptors, &counted);
	other.root_pa[0] = table.root_pa;
	for (uint64_t batch = 0; batch < 3000; batch++) {
		bool write = batch % 4 == 0;
		struct sim_row rows[SIM_ROWS_MAX] = { 0 };
		uint64_t sent[SIM_ROWS_MAX];

		for (unsigned i = 0; i < SIM_ROWS_MAX; i++) {
			sent[i] = g_rand_int(rand) % (520u << 21);
			if (g_rand_int_range(rand, 0, 5) == 0)
				sent[i] = (UINT64_C(2) << 30) + sent[i] % (64u << 12);
			rows[i] = (struct sim_row){ .address = sent[i] };
		}
		for (unsigned i = 0, n = 0; i < SIM_ROWS_MAX; i++) {
			uint64_t va = sent[i], at = batch * 100000;
			struct mmu_answer got = { 0 }, wanted = { 0 };
			enum sim_status status;

			if (i == n)
				n += mmu_translate_rows(mmu, 3, 0, write, at, 64, &rows[i],
							SIM_ROWS_MAX - i);
			together += i < n;
			status = mmu_translate(alone, 3, 0, va, write, at, &wanted);
			if (i < n)
				got = (struct mmu_answer){ .pa = rows[i].address,
							   .done_ps = rows[i].at_ps };
			else
				ASSERT_EQ(mmu_translate(mmu, 3, 0, va, write, at, &got), status);
			n = MAX(n, i + 1);
			ASSERT_EQ(got.done_ps, wanted.done_ps);
			if (status == SIM_OK)
				ASSERT_EQ(got.pa, wanted.pa);
		}
	}
	EXPECT_EQ(memcmp(&counters, &counted, sizeof(counted)), 0);
	EXPECT_GT(together, 20000u);
	EXPECT_GT(counted.tlb_misses, 500u);
	mmu_state_free(alone);
}

TEST(mmu, levels_take_their_times)
{
	uint64_t l1 = profile.tlb_l1_ps, l2 = profile.tlb_l2_ps;

	map(0, 0, 21, 512);
	EXPECT_EQ(translate(0, 5, 0), l1 + l2 + 3 * READ_PS);
	EXPECT_EQ(translate(0, 6, 1000000), l1);
	EXPECT_EQ(translate(1, 7, 2000000), l1 + l2);
	EXPECT_EQ(translate(1, 7, 3000000), l1);
	EXPECT_EQ(translate(0, (1 << 21) + 1, 4000000), l1 + l2 + READ_PS); /* walk cache */
	EXPECT_EQ(counters.walk_cache_hits, 1u);
	EXPECT_EQ(counters.walk_levels, 4u);
}

TEST(mmu, giant_and_small_pages_walk_two_and_four_levels)
{
	uint64_t hit = profile.tlb_l1_ps + profile.tlb_l2_ps;

	map(UINT64_C(1) << 40, UINT64_C(1) << 40, 30, 1);
	map(UINT64_C(1) << 41, UINT64_C(1) << 41, 12, 1);
	EXPECT_EQ(translate(0, UINT64_C(1) << 40, 0), hit + 2 * READ_PS);
	EXPECT_EQ(translate(0, UINT64_C(1) << 41, 0), hit + 4 * READ_PS);
}

TEST(mmu, second_asker_waits_for_the_walk_under_way)
{
	uint64_t hit = profile.tlb_l1_ps + profile.tlb_l2_ps;

	map(0, 0, 21, 1);
	EXPECT_EQ(translate(0, 0, 0), hit + 3 * READ_PS);
	EXPECT_EQ(translate(1, 0, 1000), hit + 3 * READ_PS - 1000);
	EXPECT_EQ(counters.walks, 1u);
}

TEST(mmu, walks_beyond_the_walkers_queue)
{
	const unsigned walkers[] = { 1, 2, 3, 16 };
	uint64_t hit = profile.tlb_l1_ps + profile.tlb_l2_ps;

	map(0, 0, 21, 33);
	profile.walk_cache_entries = 0;
	for (size_t i = 0; i < G_N_ELEMENTS(walkers); i++) {
		unsigned n = profile.walkers = walkers[i];
		NOTE("%u walkers", n);

		mmu_state_free(mmu);
		open_mmu();
		for (unsigned lane = 0; lane <= 2 * n; lane++)
			EXPECT_EQ(translate(lane, (uint64_t)lane << 21, 0),
				  hit + (1 + lane / n) * 3 * READ_PS);
	}
}

TEST(mmu, faults_are_not_cached)
{
	struct mmu_answer answer;

	map(0, 0, 21, 1);
	EXPECT_EQ(mmu_translate(mmu, 0, 0, 1 << 21, false, 0, &answer), SIM_FAULT_TRANSLATION);
	map(1 << 21, 1 << 21, 21, 1);
	EXPECT_EQ(mmu_translate(mmu, 0, 0, 1 << 21, false, 0, &answer), SIM_OK);
}

static void unmap_all(void)
{
	pt_unmap(&table, 0, 2 << 12);
	shared.changes++;
}

static void remap_all(void)
{
	unmap_all();
	map(0, 1 << 20, 12, 2);
}

/* Others have the lock while a walk's reads are under way. Nothing of the tables as they were
 * stays: not in the walk cache either, by which the page beside is found. */
TEST(mmu, tables_that_change_during_a_walk)
{
	struct mmu_answer answer;

	map(0, 0, 12, 2);
	meanwhile = unmap_all;
	EXPECT_EQ(mmu_translate(mmu, 0, 0, 0, false, 0, &answer), SIM_FAULT_TRANSLATION);
	EXPECT_EQ(mmu_state_live_bytes(mmu), 0);
	map(0, 0, 12, 2);
	meanwhile = remap_all;
	for (uint64_t page = 0; page < 4; page++) {
		uint64_t va = (page & 1) << 12;

		EXPECT_EQ(mmu_translate(mmu, 0, 0, va, false, 0, &answer), SIM_OK);
		EXPECT_EQ(answer.pa, (1 << 20) + va);
	}
	EXPECT_EQ(mmu_state_live_bytes(mmu), 2 << 12);
}

/* What the L2 TLB loses no L1 TLB keeps. */
TEST(mmu, l1_holds_nothing_that_l2_does_not)
{
	mmu_state_free(mmu);
	profile.tlb_l2_entries = 8;
	profile.tlb_l2_ways = 8;
	open_mmu();
	map(0, 0, 21, 9);
	for (unsigned lane = 0; lane < LANES; lane++)
		translate(lane, 0, 0);
	for (uint64_t page = 1; page < 9; page++)
		translate(0, page << 21, 0);
	EXPECT_EQ(counters.tlb_misses, 9u);
	translate(70, 0, 0);
	EXPECT_EQ(counters.tlb_misses, 10u);
	EXPECT_EQ(mmu_state_live_bytes(mmu), UINT64_C(8) << 21);
}

/* Pages by age, the newest first; -1: none. */
static bool list_drop(int *list, unsigned n, int page)
{
	for (unsigned i = 0; i < n; i++) {
		if (list[i] == page) {
			memmove(&list[i], &list[i + 1], (n - 1 - i) * sizeof(*list));
			list[n - 1] = -1;
			return true;
		}
	}
	return false;
}

/* Returns the page that goes. */
static int list_push(int *list, unsigned n, int page)
{
	int last = list[n - 1];

	memmove(&list[1], list, (n - 1) * sizeof(*list));
	list[0] = page;
	return last;
}

/* Two lanes share a bit of an entry's holders. */
TEST(mmu, lanes_agree_with_an_oracle_of_lists)
{
	enum { L1 = 3, SETS = 4, WAYS = 4, PAGES = 40 };
	const unsigned lane_of[] = { 0, 5, 69, 74 };
	g_autoptr(GRand) rand = g_rand_new_with_seed(8);
	int l1[G_N_ELEMENTS(lane_of)][L1], l2[SETS][WAYS];
	struct sim_counters wanted = { 0 };

	mmu_state_free(mmu);
	profile.tlb_l1_entries = L1;
	profile.tlb_l2_entries = SETS * WAYS;
	profile.tlb_l2_ways = WAYS;
	open_mmu();
	map(0, 0, 21, PAGES);
	memset(l1, 0xff, sizeof(l1));
	memset(l2, 0xff, sizeof(l2));
	for (unsigned step = 0; step < 50000; step++) {
		unsigned lane = g_rand_int(rand) % G_N_ELEMENTS(lane_of);
		int page = (int)(g_rand_int(rand) % PAGES), *set = l2[page % SETS], gone = -1;

		if (step % 16 == 0) {
			mmu_state_invalidate(mmu, 0, (uint64_t)page << 21, 1 << 21);
			gone = list_drop(set, WAYS, page) ? page : -1;
		} else {
			translate(lane_of[lane], (uint64_t)page << 21, step * UINT64_C(10000000));
			if (list_drop(l1[lane], L1, page)) {
				wanted.tlb_l1_hits++;
			} else if (list_drop(set, WAYS, page)) {
				wanted.tlb_l2_hits++;
				list_push(set, WAYS, page);
			} else {
				wanted.tlb_misses++;
				gone = list_push(set, WAYS, page);
			}
		}
		for (unsigned i = 0; gone >= 0 && i < G_N_ELEMENTS(lane_of); i++)
			list_drop(l1[i], L1, gone);
		if (step % 16 != 0)
			list_push(l1[lane], L1, page);
		ASSERT_EQ(counters.tlb_l1_hits, wanted.tlb_l1_hits);
		ASSERT_EQ(counters.tlb_l2_hits, wanted.tlb_l2_hits);
		ASSERT_EQ(counters.tlb_misses, wanted.tlb_misses);
	}
	EXPECT_GT(wanted.tlb_l1_hits, 1000u);
	EXPECT_GT(wanted.tlb_l2_hits, 1000u);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The bound is loose: sanitizers and a busy machine run this too. The benchmark has the figure. */
TEST(mmu, invalidation_of_what_nobody_has_is_cheap)
{
	unsigned n = 1000000;
	double start;

	map(0, 0, 21, 512);
	for (unsigned lane = 0; lane < LANES; lane++)
		for (uint64_t page = 0; page < 300; page++)
			translate(lane, page << 21, 0);
	start = now_ns();
	for (unsigned i = 0; i < n; i++)
		mmu_state_invalidate(mmu, 0, (UINT64_C(1) << 44) + ((uint64_t)i << 21), 1 << 21);
	EXPECT_LT((now_ns() - start) / n, 2000.0);
	EXPECT_EQ(mmu_state_live_bytes(mmu), UINT64_C(300) << 21);
}

TEST(mmu, long_ranges_are_invalidated_whole)
{
	map(0, 0, 21, 512);
	for (uint64_t page = 0; page < 512; page++)
		translate(page % LANES, page << 21, 0);
	mmu_state_invalidate(mmu, 0, UINT64_C(1) << 21, UINT64_C(510) << 21);
	EXPECT_EQ(mmu_state_live_bytes(mmu), UINT64_C(2) << 21);
	mmu_state_invalidate(mmu, 0, 0, UINT64_C(1) << 47);
	EXPECT_EQ(mmu_state_live_bytes(mmu), 0u);
	EXPECT_EQ(shared.filter.devices[0], 0u);
	for (unsigned i = 0; i < MMU_REGIONS; i++)
		ASSERT_EQ(shared.filter.region[i], 0u);
}

/* A random sweep over 60 GiB by one lane, the L2 TLB fully associative: it misses with 1 - entries
 * / pages. */
static void sweep(unsigned lg2, unsigned entries)
{
	uint64_t bytes = UINT64_C(60) << 30, pages = bytes >> lg2, n = 200000, warm = 4 * entries,
		 before;
	GRand *rand = g_rand_new_with_seed(lg2);
	double p = entries < pages ? 1 - (double)entries / (double)pages : 0;

	mmu_state_free(mmu);
	profile.tlb_l2_entries = profile.tlb_l2_ways = entries;
	open_mmu();
	map(0, 0, lg2, pages);
	for (uint64_t i = 0; i < warm + pages; i++)
		translate(0, (uint64_t)g_rand_int(rand) % pages << lg2, 0);
	before = counters.tlb_misses;
	for (uint64_t i = 0; i < n; i++)
		translate(0, (uint64_t)g_rand_int(rand) % pages << lg2, 0);
	EXPECT_NEAR((double)(counters.tlb_misses - before) / n, p,
		    3 * sqrt(p * (1 - p) / n) + 1e-12);
	g_rand_free(rand);
}

TEST(mmu, sweep_with_2m_pages_misses_by_the_closed_form)
{
	sweep(21, 2048);
}

TEST(mmu, sweep_with_1g_pages_misses_by_the_closed_form)
{
	sweep(30, 48);
}
