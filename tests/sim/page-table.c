/* SPDX-License-Identifier: Apache-2.0
 *
 * Page tables: {4 KiB, 2 MiB, 1 GiB} pages against an oracle, boundaries, failures half way, leaks.
 */
#include "harness/test.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job.h"
#include "sim/page-table.h"
#include "table-check.h"

#define TABLE_MAX 4096

/* Memory for tables only: pa / 4 KiB - 1 is the place of a table. */
struct arena {
	unsigned char (*tables)[4096];
	bool used[TABLE_MAX];
	unsigned live, left; /* left: how many more may be had */
	struct sim_memory memory;
};

static struct arena arena;

static uint64_t alloc_table(void *ctx)
{
	struct arena *a = ctx;

	if (!a->left)
		return 0;
	for (unsigned i = 0; i < TABLE_MAX; i++) {
		if (a->used[i])
			continue;
		a->used[i] = true;
		a->live++;
		a->left--;
		for (unsigned b = 0; b < 4096; b++)
			if (a->tables[i][b])
				ADD_FAILURE("table %u was not zeroed when it was freed", i);
		return (uint64_t)(i + 1) << 12;
	}
	return 0;
}

static void free_table(void *ctx, uint64_t pa)
{
	struct arena *a = ctx;

	if (!EXPECT_TRUE(a->used[(pa >> 12) - 1]))
		return;
	a->used[(pa >> 12) - 1] = false;
	a->live--;
	a->left++;
}

static struct page_table pt;

static const uint64_t *next_table(uint64_t pte)
{
	return (const uint64_t *)arena.tables[((pte & PTE_PA_MASK) >> 12) - 1];
}

static bool clear_level(const uint64_t *table, unsigned level, uint64_t va, uint64_t last)
{
	uint64_t span = UINT64_C(1) << pt_level_lg2(level);

	for (unsigned i = pt_index_of(va, level); i <= pt_index_of(last, level); i++) {
		uint64_t start = (va & ~(span * PT_ENTRIES - 1)) + i * span;
		uint64_t from = start > va ? start : va;
		uint64_t to = start + (span - 1) < last ? start + (span - 1) : last;

		if (!(table[i] & PTE_VALID))
			continue;
		if (!pt_is_table(table[i], level) ||
		    !clear_level(next_table(table[i]), level + 1, from, to))
			return false;
	}
	return true;
}

/* True if no leaf lies in [va, va + bytes). */
static bool is_clear(uint64_t va, uint64_t bytes)
{
	if (!pt.root_pa)
		return true;
	return clear_level(next_table(pt.root_pa), 0, va, va + bytes - 1);
}

SETUP(page_table)
{
	const struct pt_host host = { alloc_table, free_table, &arena, &arena.memory };

	memset(&arena, 0, sizeof(arena));
	arena.tables = calloc(TABLE_MAX, 4096);
	arena.memory.base[0] = *arena.tables - 4096;
	arena.memory.bytes[0] = (TABLE_MAX + 1) * UINT64_C(4096);
	arena.left = TABLE_MAX;
	pt_init(&pt, &host);
}

TEARDOWN(page_table)
{
	EXPECT_TRUE(pt_check(&pt, NULL));
	pt_destroy(&pt);
	EXPECT_EQ(arena.live, 0u);
	EXPECT_EQ(pt.tables, 0u);
	free(arena.tables);
}

static void expect_leaf(uint64_t va, uint64_t pa, unsigned lg2, unsigned flags)
{
	struct pt_leaf leaf, again = { 0 };
	struct pt_step steps = { { 0 } };
	NOTE("va 0x%llx", (unsigned long long)va);

	if (!EXPECT_TRUE(pt_walk(&pt, va, &leaf)))
		return;
	EXPECT_EQ(leaf.pa, pa);
	EXPECT_EQ(leaf.page_lg2, lg2);
	EXPECT_EQ(leaf.flags, flags);
	EXPECT_EQ(leaf.levels, lg2 == 30 ? 2u : lg2 == 21 ? 3u : 4u);
	EXPECT_TRUE(pt_walk_from(0, pt.root_pa, &arena.memory, va, &again, &steps));
	EXPECT_EQ(again.pa, pa);
	EXPECT_EQ(again.levels, leaf.levels);
	EXPECT_EQ(steps.descriptor_pa[0], pt.root_pa + 8 * (va >> 39 & 511));
}

static void expect_none(uint64_t va)
{
	struct pt_leaf leaf;
	NOTE("va 0x%llx", (unsigned long long)va);

	EXPECT_FALSE(pt_walk(&pt, va, &leaf));
}

TEST(page_table, empty_translates_nothing)
{
	struct pt_leaf leaf;

	EXPECT_FALSE(pt_walk(&pt, 0, &leaf));
	EXPECT_EQ(leaf.levels, 0u);
	EXPECT_TRUE(is_clear(0, UINT64_C(1) << 48));
	pt_unmap(&pt, 0x200000, 0x200000);
	pt_soon(&pt, 0x200000);
	EXPECT_EQ(arena.live, 0u);
}

struct size_case {
	const char *title;
	unsigned lg2;
	uint64_t tables; /* of one page, the root included */
};

static const struct size_case sizes[] = { { "4K", 12, 4 }, { "2M", 21, 3 }, { "1G", 30, 2 } };

TEST_EACH(page_table, maps_and_unmaps, sizes, title)
{
	const struct size_case *c = param;
	uint64_t page = UINT64_C(1) << c->lg2, va = UINT64_C(0x12c000000000);

	ASSERT_TRUE(pt_map(&pt, va, 5 * page, c->lg2, 1, PT_WRITE));
	EXPECT_EQ(pt.tables, c->tables);
	EXPECT_EQ(arena.live, c->tables);
	expect_leaf(va, 5 * page, c->lg2, PT_WRITE);
	expect_leaf(va + 42, 5 * page + 42, c->lg2, PT_WRITE);
	expect_leaf(va + page - 1, 6 * page - 1, c->lg2, PT_WRITE);
	expect_none(va - 1);
	expect_none(va + page);
	EXPECT_FALSE(is_clear(va, page));
	EXPECT_TRUE(is_clear(va + page, page));
	pt_unmap(&pt, va, page);
	expect_none(va);
	EXPECT_EQ(pt.tables, 1u);
	EXPECT_EQ(arena.live, 1u);
}

TEST_EACH(page_table, first_and_last_page_of_the_space, sizes, title)
{
	const struct size_case *c = param;
	uint64_t page = UINT64_C(1) << c->lg2, last = (UINT64_C(1) << 48) - page;

	ASSERT_TRUE(pt_map(&pt, 0, page, c->lg2, 1, 0));
	ASSERT_TRUE(pt_map(&pt, last, last, c->lg2, 1, PT_WRITE));
	expect_leaf(0, page, c->lg2, 0);
	expect_leaf(last + page - 1, last + page - 1, c->lg2, PT_WRITE);
	expect_none(UINT64_C(1) << 48);
	expect_none(UINT64_MAX);
	pt_unmap(&pt, 0, UINT64_C(1) << 48);
	expect_none(last);
	EXPECT_EQ(arena.live, 1u);
}

TEST_EACH(page_table, crosses_tables, sizes, title)
{
	const struct size_case *c = param;
	uint64_t page = UINT64_C(1) << c->lg2;
	uint64_t va = (UINT64_C(512) << c->lg2) - 3 * page; /* three pages before a table's end */
	uint64_t leaves = 0;

	ASSERT_TRUE(pt_map(&pt, va, 7 * page, c->lg2, 6, PT_WRITE));
	for (unsigned i = 0; i < 6; i++)
		expect_leaf(va + i * page, (7 + i) * page, c->lg2, PT_WRITE);
	EXPECT_TRUE(pt_check(&pt, &leaves));
	EXPECT_EQ(leaves, 6u);
	pt_unmap(&pt, va + page, 4 * page);
	expect_leaf(va, 7 * page, c->lg2, PT_WRITE);
	expect_none(va + page);
	expect_none(va + 4 * page);
	expect_leaf(va + 5 * page, 12 * page, c->lg2, PT_WRITE);
	EXPECT_TRUE(pt_check(&pt, &leaves));
	EXPECT_EQ(leaves, 2u);
}

TEST(page_table, giant_page_takes_the_place_of_emptied_tables)
{
	ASSERT_TRUE(pt_map(&pt, UINT64_C(1) << 30, 0, 21, 512, PT_WRITE));
	EXPECT_EQ(pt.tables, 3u);
	pt_unmap(&pt, UINT64_C(1) << 30, UINT64_C(1) << 30);
	ASSERT_TRUE(pt_map(&pt, UINT64_C(1) << 30, UINT64_C(3) << 30, 30, 1, 0));
	EXPECT_EQ(pt.tables, 2u);
	expect_leaf((UINT64_C(1) << 30) + 77, (UINT64_C(3) << 30) + 77, 30, 0);
}

TEST(page_table, mixed_sizes_side_by_side)
{
	uint64_t huge = UINT64_C(1) << 21;

	ASSERT_TRUE(pt_map(&pt, 0, 0, 21, 3, PT_WRITE));
	ASSERT_TRUE(pt_map(&pt, 3 * huge, huge, 12, 512, 0));
	expect_leaf(3 * huge + 4097, huge + 4097, 12, 0);
	expect_leaf(2 * huge, 2 * huge, 21, PT_WRITE);
	EXPECT_EQ(pt.tables, 4u);
	pt_unmap(&pt, huge, 3 * huge);
	EXPECT_EQ(pt.tables, 3u);
	expect_leaf(0, 0, 21, PT_WRITE);
	expect_none(3 * huge);
}

/* Out of tables at every point of a map that needs several: nothing stays. */
TEST(page_table, map_without_memory_leaves_nothing)
{
	uint64_t va = (UINT64_C(1) << 39) - 4096; /* the second page is in other tables */
	unsigned needs = 7;

	for (unsigned left = 0; left <= needs; left++) {
		bool done;
		NOTE("%u tables to be had", left);

		arena.left = left;
		done = pt_map(&pt, va, 0, 12, 2, PT_WRITE);
		EXPECT_EQ(done, left == needs);
		EXPECT_TRUE(pt_check(&pt, NULL));
		if (!done) {
			EXPECT_TRUE(is_clear(0, UINT64_C(1) << 48));
			EXPECT_LE(arena.live, 1u);
		}
		pt_destroy(&pt);
	}
}

/* Random maps and unmaps of runs in a small space, against one word a 4 KiB page. */
#define SPACE_LG2 32
#define WORDS     (1u << (SPACE_LG2 - 12))

static void random_step(GRand *rand, uint64_t *oracle, uint64_t base)
{
	static const unsigned lg2s[] = { 12, 12, 21, 21, 30 };
	unsigned lg2 = lg2s[g_rand_int_range(rand, 0, 5)];
	uint64_t page = UINT64_C(1) << lg2, words = page >> 12;
	uint64_t total = (UINT64_C(1) << SPACE_LG2) / page;
	uint64_t count = 1 + g_rand_int_range(rand, 0, lg2 == 30 ? 2 : 700);
	uint64_t first = (uint64_t)g_rand_int_range(rand, 0, (gint32)total);
	uint64_t pa = (uint64_t)g_rand_int_range(rand, 1, 1 << 12) << 30;
	bool clear = true;

	if (first + count > total)
		count = total - first;
	for (uint64_t w = first * words; w < (first + count) * words; w++)
		clear = clear && !oracle[w];
	EXPECT_EQ(is_clear(base + first * page, count * page), clear);
	if (!clear) {
		/* Unmap whole leaves only: widen to 1 GiB where the run would cut one. */
		uint64_t from = first * words & ~UINT64_C(0x3ffff);
		uint64_t to = ((first + count) * words + 0x3ffff) & ~UINT64_C(0x3ffff);

		pt_unmap(&pt, base + from * 4096, (to - from) * 4096);
		memset(&oracle[from], 0, (to - from) * sizeof(*oracle));
		return;
	}
	if (!EXPECT_TRUE(pt_map(&pt, base + first * page, pa, lg2, count, PT_WRITE)))
		return;
	for (uint64_t w = 0; w < count * words; w++)
		oracle[first * words + w] = (pa + w * 4096) | 1;
}

TEST(page_table, random_run_agrees_with_an_oracle)
{
	GRand *rand = g_rand_new_with_seed(20260101);
	uint64_t *oracle = calloc(WORDS, sizeof(*oracle));
	uint64_t base = UINT64_C(0x12bfc0000000); /* over a boundary of level 0's kind of table */

	for (unsigned step = 0; step < 300; step++) {
		random_step(rand, oracle, base);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t word = g_rand_int(rand) % WORDS;
			struct pt_leaf leaf;
			bool found;

			pt_soon(&pt, base + word * 4096); /* whatever is there */
			found = pt_walk(&pt, base + word * 4096 + 9, &leaf);
			ASSERT_EQ(found, oracle[word] != 0);
			if (found)
				ASSERT_EQ(leaf.pa, (oracle[word] & ~UINT64_C(1)) + 9);
		}
	}
	EXPECT_TRUE(pt_check(&pt, NULL));
	pt_unmap(&pt, base, UINT64_C(1) << SPACE_LG2);
	EXPECT_EQ(arena.live, 1u);
	g_rand_free(rand);
	free(oracle);
}

/* ---- physical addresses ---- */

/* The windows of other servers are the driver's: devdrv_s2s_msg.h, devmm_common.h. */
static const struct physical {
	const char *label;
	unsigned node;
	uint64_t pa;
} physical[] = {
	{ "own device", 3, UINT64_C(6) << 40 },
	{ "own host", SIM_NODE_HOST, UINT64_C(32) << 40 },
	{ "peer device", SIM_PEER(0, 0), UINT64_C(48) << 40 },
	{ "peer's other die", SIM_PEER(2, 1), (UINT64_C(50) << 40) + (UINT64_C(64) << 30) },
	{ "peer's last die", SIM_PEER(47, 15), (UINT64_C(95) << 40) + (UINT64_C(960) << 30) },
	{ "peer's host", SIM_PEER(0, SIM_NODE_HOST), UINT64_C(128) << 40 },
	{ "last peer's host", SIM_PEER(47, SIM_NODE_HOST),
	  (UINT64_C(128) << 40) + UINT64_C(47) * 2728 * (UINT64_C(1) << 30) },
};

TEST_EACH(physical_address, is_the_windows, physical, label)
{
	const struct physical *c = param;
	uint64_t offset;

	EXPECT_EQ(SIM_PA(c->node, 12345), c->pa + 12345);
	EXPECT_EQ(sim_pa_find(c->pa + 12345, &offset), c->node);
	EXPECT_EQ(offset, 12345u);
	EXPECT_LT(c->pa, UINT64_C(1) << 48);
}

TEST(physical_address, of_no_memory)
{
	static const uint64_t holes[] = { 96, 127, 256 }; /* TiB */
	uint64_t offset;

	for (unsigned i = 0; i < 3; i++)
		EXPECT_EQ(sim_pa_find(holes[i] << 40, &offset), (unsigned)SIM_MEMORY_MAX);
}
