/* SPDX-License-Identifier: Apache-2.0
 *
 * L2 tags: hits, fills, write-back, replacement.
 */
#include "harness/test.h"

#include "sim/l2/l2-cache.h"

static struct l2_cache *cache;
static struct l2_answer answer;

/* Two ways, four sets, blocks of 4 KiB in lines of 128 bytes. */
SETUP(l2_cache)
{
	cache = l2_cache_new(8 * 4096, 4096, 128, 2);
}

TEARDOWN(l2_cache)
{
	l2_cache_free(cache);
}

static void access_bytes(uint64_t pa, uint64_t bytes, bool write)
{
	l2_cache_access(cache, pa, bytes, write, &answer);
}

TEST(l2_cache, line_is_there_after_a_miss)
{
	access_bytes(0x1010, 8, false);
	EXPECT_EQ(answer.lines, 1u);
	EXPECT_EQ(answer.hits, 0u);
	EXPECT_EQ(answer.fill.pa, 0x1000u);
	EXPECT_EQ(answer.fill.bytes, 128u);
	access_bytes(0x1000, 128, false);
	EXPECT_EQ(answer.hits, 1u);
	EXPECT_EQ(answer.fill.bytes, 0u);
	access_bytes(0x1000, 256, false);
	EXPECT_EQ(answer.lines, 2u);
	EXPECT_EQ(answer.hits, 1u);
	EXPECT_EQ(answer.fill.pa, 0x1080u);
}

TEST(l2_cache, whole_block_of_32_lines)
{
	struct l2_cache *wide = l2_cache_new(1u << 20, 4096, 128, 2);

	l2_cache_access(wide, 8192, 4096, false, &answer);
	EXPECT_EQ(answer.lines, 32u);
	EXPECT_EQ(answer.fill.bytes, 4096u);
	l2_cache_access(wide, 12288 - 128, 128, false, &answer);
	EXPECT_EQ(answer.hits, 1u);
	l2_cache_free(wide);
}

TEST(l2_cache, write_of_whole_lines_fills_nothing)
{
	access_bytes(0, 256, true);
	EXPECT_EQ(answer.fill.bytes, 0u);
	access_bytes(0x1000 + 64, 128, true); /* two lines in part */
	EXPECT_EQ(answer.fill.pa, 0x1000u);
	EXPECT_EQ(answer.fill.bytes, 256u);
	access_bytes(0x2000, 32, true);
	EXPECT_EQ(answer.fill.bytes, 128u);
}

TEST(l2_cache, oldest_block_goes_and_dirty_lines_are_written_back)
{
	/* Blocks 0, 7, 10 and 13 are of one set of the four. */
	access_bytes(128, 256, true);
	access_bytes(7 * 4096, 128, false);
	access_bytes(0, 128, false); /* now the newer one */
	access_bytes(10 * 4096, 128, false);
	EXPECT_EQ(answer.clean.bytes, 0u); /* block 7 went, and was clean */
	access_bytes(13 * 4096, 128, false);
	EXPECT_EQ(answer.clean.pa, 128u);
	EXPECT_EQ(answer.clean.bytes, 256u);
	access_bytes(128, 128, false);
	EXPECT_EQ(answer.hits, 0u);
}

/* A matrix larger than the cache, read again and again in order, is never there: as the data_copy
 * sample's counters show (0.005 % hits). One that fits is there each time but the first. */
TEST(l2_cache, repeated_reads_hit_if_they_fit)
{
	for (unsigned blocks = 6; blocks <= 12; blocks += 6) {
		uint64_t lines = 0, hits = 0;
		struct l2_cache *c = l2_cache_new(8 * 4096, 4096, 128, 2);

		for (unsigned pass = 0; pass < 4; pass++) {
			for (uint64_t b = 0; b < blocks; b++) {
				l2_cache_access(c, b * 4096, 4096, false, &answer);
				lines += answer.lines;
				hits += answer.hits;
			}
		}
		EXPECT_EQ(hits * 4, blocks == 6 ? lines * 3 : 0u);
		l2_cache_free(c);
	}
}

/* Columns of a matrix whose rows are a quarter as far apart as the sets reach: all of the cache is
 * theirs, not the four sets that a plain remainder would give them. */
TEST(l2_cache, columns_spread_over_the_sets)
{
	struct l2_cache *c = l2_cache_new(16 * 2 * 4096, 4096, 128, 2);
	uint64_t hits = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (uint64_t row = 0; row < 16; row++) {
			l2_cache_access(c, row * 4 * 4096, 4096, false, &answer);
			hits += answer.hits;
		}
	}
	EXPECT_EQ(hits, 16 * 32u);
	l2_cache_free(c);
}

/* What a set does, written down as a list: block and dirty line of each way, the newest first. */
struct listed {
	uint64_t block;
	bool valid, dirty;
};

static void expect_as_listed(struct listed *set, unsigned ways, uint64_t block, bool write)
{
	struct listed it = { block, true, write }, gone = { 0 };
	unsigned i = 0;

	while (i < ways - 1 && !(set[i].valid && set[i].block == block))
		i++;
	if (set[i].valid && set[i].block == block)
		it.dirty |= set[i].dirty;
	else
		gone = set[i];
	EXPECT_EQ(answer.hits, set[i].valid && set[i].block == block ? 1u : 0u);
	EXPECT_EQ(answer.clean.bytes, gone.dirty ? 4096u : 0u);
	if (gone.dirty)
		EXPECT_EQ(answer.clean.pa, gone.block * 4096);
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = it;
}

TEST(l2_cache, each_count_of_ways_is_lru)
{
	for (unsigned ways = 1; ways <= L2_WAYS_MAX; ways++) {
		struct l2_cache *c = l2_cache_new(ways * 4096, 4096, 4096, ways);
		struct listed set[L2_WAYS_MAX] = { 0 };
		g_autoptr(GRand) rand = g_rand_new_with_seed(ways);
		NOTE("%u ways", ways);

		for (unsigned i = 0; i < 5000; i++) {
			uint64_t block = g_rand_int_range(rand, 0, (gint32)ways + 2);
			bool write = g_rand_int_range(rand, 0, 4) == 0;

			l2_cache_access(c, block * 4096, 4096, write, &answer);
			expect_as_listed(set, ways, block, write);
		}
		l2_cache_free(c);
	}
}
