/* SPDX-License-Identifier: Apache-2.0
 *
 * L2 tags: hits, fills, write-back, replacement.
 */
#include "harness/test.h"

#include <math.h>
#include <string.h>

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
	answer = l2_cache_access(cache, pa, bytes, write);
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

	answer = l2_cache_access(wide, 8192, 4096, false);
	EXPECT_EQ(answer.lines, 32u);
	EXPECT_EQ(answer.fill.bytes, 4096u);
	answer = l2_cache_access(wide, 12288 - 128, 128, false);
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

TEST(l2_cache, oldest_line_goes_and_is_written_back_if_dirty)
{
	/* Blocks 0, 7, 10 and 13 are of one group of the four. */
	access_bytes(128, 256, true);
	access_bytes(7 * 4096, 256, false);
	access_bytes(0, 256, false); /* line 1 is now the newer one, line 2 still the older */
	access_bytes(10 * 4096, 128, false);
	EXPECT_EQ(answer.cleans, 0u); /* line 0 of block 7 went, and was clean */
	access_bytes(13 * 4096 + 128, 256, false);
	EXPECT_EQ(answer.cleans, 0u); /* line 1 of block 7 went; there was room for line 2 */
	access_bytes(10 * 4096 + 128, 256, false);
	ASSERT_EQ(answer.cleans, 1u);
	EXPECT_EQ(cache->clean[0].pa, 128u);
	EXPECT_EQ(cache->clean[0].bytes, 256u);
	access_bytes(256, 128, false);
	EXPECT_EQ(answer.hits, 0u);
	access_bytes(0, 128, false);
	EXPECT_EQ(answer.hits, 1u); /* nothing else of the block has gone */
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
				answer = l2_cache_access(c, b * 4096, 4096, false);
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
			answer = l2_cache_access(c, row * 4 * 4096, 4096, false);
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

/* True if the block was there. *out_gone: what has gone for it. */
static bool list_access(struct listed *set, unsigned ways, uint64_t block, bool write,
			struct listed *out_gone)
{
	struct listed it = { block, true, write };
	unsigned i = 0;
	bool hit;

	while (i < ways - 1 && !(set[i].valid && set[i].block == block))
		i++;
	hit = set[i].valid && set[i].block == block;
	it.dirty |= hit && set[i].dirty;
	*out_gone = hit ? (struct listed){ 0 } : set[i];
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = it;
	return hit;
}

TEST(l2_cache, each_count_of_ways_is_lru)
{
	for (unsigned ways = 1; ways <= L2_WAYS_MAX; ways++) {
		struct l2_cache *c = l2_cache_new(ways * 4096, 4096, 4096, ways);
		struct listed set[L2_WAYS_MAX] = { 0 }, gone;
		g_autoptr(GRand) rand = g_rand_new_with_seed(ways);
		NOTE("%u ways", ways);

		for (unsigned i = 0; i < 5000; i++) {
			uint64_t block = g_rand_int_range(rand, 0, (gint32)ways + 2);
			bool write = g_rand_int_range(rand, 0, 4) == 0;

			answer = l2_cache_access(c, block * 4096, 4096, write);
			EXPECT_EQ(answer.hits, list_access(set, ways, block, write, &gone));
			ASSERT_EQ(answer.cleans, gone.dirty ? 1u : 0u);
			if (gone.dirty)
				EXPECT_EQ(c->clean[0].pa, gone.block * 4096);
		}
		l2_cache_free(c);
	}
}

/* Accesses of all sizes to a few blocks of two groups, in phases of small and of whole ones: each
 * line's set is LRU on its own, however many of them are kept as one. */
TEST(l2_cache, each_line_has_a_set_of_its_own)
{
	enum { WAYS = 3, BLOCKS = 12, LINES = 32 };
	struct l2_cache *c = l2_cache_new(2 * WAYS * 4096, 4096, 128, WAYS);
	struct listed set[2][LINES][WAYS] = { 0 };
	g_autoptr(GRand) rand = g_rand_new_with_seed(1);

	for (unsigned i = 0; i < 60000; i++) {
		unsigned most = i / 1000 % 2 ? 5 : (unsigned)g_rand_int_range(rand, 0, 6);
		unsigned count = 1u << most, hits = 0;
		unsigned first = (unsigned)g_rand_int_range(rand, 0, 33 - (gint32)count);
		uint64_t block = (uint64_t)g_rand_int_range(rand, 0, BLOCKS), dirty = 0, clean = 0;
		bool write = g_rand_int_range(rand, 0, 4) == 0;

		answer = l2_cache_access(c, block * 4096 + first * 128, count * 128, write);
		for (unsigned line = first; line < first + count; line++) {
			struct listed *of = set[l2_group_of(c, (uint32_t)block)][line], gone;

			hits += list_access(of, WAYS, block, write, &gone);
			dirty += gone.dirty;
		}
		for (unsigned n = 0; n < answer.cleans; n++)
			clean += c->clean[n].bytes / 128;
		ASSERT_EQ(answer.hits, hits);
		ASSERT_EQ(clean, dirty);
	}
	l2_cache_free(c);
}

/* Random reads of less than a block hit capacity / footprint: with as many lines for each set, as
 * many of them are there as the set has ways. Three sigma, after five times the capacity. */
static const struct footprint {
	const char *title;
	uint64_t blocks, bytes, ways;
} footprints[] = {
	{ "4_to_3_by_64", 128, 64, 16 },           { "4_to_3_by_128", 128, 128, 16 },
	{ "2_to_1_by_128", 192, 128, 16 },         { "4_to_1_by_128", 384, 128, 16 },
	{ "2_to_1_by_512", 192, 512, 16 },         { "4_to_1_by_2048", 384, 2048, 16 },
	{ "4_to_1_by_4096", 384, 4096, 16 },       { "2_to_1_by_128_in_8_ways", 192, 128, 8 },
	{ "2_to_1_by_256_in_3_ways", 72, 256, 3 },
};

TEST_EACH(l2_cache, random_reads_hit_capacity_over_footprint, footprints, title)
{
	const struct footprint *it = param;
	uint64_t capacity = (it->ways == 3 ? 36 : 96) * 4096, total = it->blocks * 4096, lines = 0,
		 hits = 0, reads = 400000, held = 0;
	struct l2_cache *c = l2_cache_new(capacity, 4096, 128, (unsigned)it->ways);
	g_autofree uint64_t *of_group = g_new0(uint64_t, c->groups);
	g_autoptr(GRand) rand = g_rand_new_with_seed(7);
	double share, sigma;

	for (uint64_t i = 0; i < reads + 5 * capacity / it->bytes; i++) {
		uint64_t at = (uint64_t)g_rand_int_range(rand, 0, (gint32)(total / it->bytes));

		answer = l2_cache_access(c, at * it->bytes, it->bytes, false);
		lines += i < 5 * capacity / it->bytes ? 0 : answer.lines;
		hits += i < 5 * capacity / it->bytes ? 0 : answer.hits;
	}
	for (uint64_t block = 0; block < it->blocks; block++)
		held += ++of_group[l2_group_of(c, (uint32_t)block)] <= it->ways;
	share = (double)held / (double)it->blocks;
	sigma = sqrt(share * (1 - share) / (double)reads); /* lines of a read go together */
	EXPECT_NEAR((double)hits / (double)lines, share, 3 * sigma + 1e-9);
	EXPECT_NEAR((double)hits / (double)lines, MIN(1, (double)capacity / (double)total), 0.02);
	l2_cache_free(c);
}
