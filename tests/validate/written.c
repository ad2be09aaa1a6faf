/* SPDX-License-Identifier: Apache-2.0
 *
 * The map of written bytes against a plain array, over random changes and copies.
 */
#include "harness/test.h"
#include "validate/written.h"

#include <stdlib.h>
#include <string.h>

#define BYTES ((uint64_t)256 << 10)

struct pair {
	uint64_t map[BYTES / 64];
	bool plain[BYTES / 8]; /* by 8 bytes */
};

static void change(struct pair *p, uint64_t begin, uint64_t end, bool set)
{
	uint64_t first = set ? begin / 8 : (begin + 7) / 8, last = set ? (end + 7) / 8 : end / 8;

	if (set)
		written_set(p->map, begin, end);
	else
		written_clear(p->map, begin, end);
	for (uint64_t i = first; i < last; i++)
		p->plain[i] = set;
}
static void copy(struct pair *to, uint64_t at, const struct pair *from, uint64_t begin,
		 uint64_t bytes)
{
	written_copy(to->map, at, from->map, begin, bytes);
	for (uint64_t i = (at + 7) / 8; i < (at + bytes) / 8; i++)
		to->plain[i] = false;
	for (uint64_t i = 0; i < bytes; i++)
		if (from->plain[(begin + i) / 8])
			to->plain[(at + i) / 8] = true;
}

static uint64_t first_unwritten(const struct pair *p, uint64_t begin, uint64_t end)
{
	while (begin < end && p->plain[begin / 8])
		begin++;
	return begin;
}

static void compare(const struct pair *p, uint64_t begin, uint64_t end)
{
	uint64_t gap = 0, gap_end = 0, wanted = first_unwritten(p, begin, end);

	ASSERT_EQ(written_gap(p->map, begin, end, &gap, &gap_end), wanted < end);
	if (wanted >= end)
		return;
	ASSERT_EQ(gap, wanted);
	while (wanted < end && !p->plain[wanted / 8])
		wanted++;
	ASSERT_EQ(gap_end, wanted);
}

/* Lengths that are little, or many words. */
static uint64_t length(unsigned *seed, uint64_t most)
{
	uint64_t bytes = rand_r(seed) % 3 == 0 ? (uint64_t)(1 + rand_r(seed) % 3) << 16
					       : (uint64_t)rand_r(seed) % 9000 + 1;

	return bytes < most ? bytes : most;
}

TEST(written, is_a_plain_array)
{
	static struct pair pairs[2];
	unsigned seed = 1;

	for (int step = 0; step < 1500; step++) {
		struct pair *p = &pairs[rand_r(&seed) % 2], *other = &pairs[p == &pairs[0]];
		uint64_t begin = (uint64_t)rand_r(&seed) % BYTES;
		uint64_t from, bytes;

		begin = rand_r(&seed) % 2 ? begin & ~UINT64_C(0xffff) : begin;
		bytes = length(&seed, BYTES - begin);
		switch (rand_r(&seed) % 4) {
		case 0:
			change(p, begin, begin + bytes, false);
			break;
		case 1:
			from = (uint64_t)rand_r(&seed) % (BYTES - bytes + 1);
			copy(p, begin, other, from, bytes);
			break;
		default:
			change(p, begin, begin + bytes, true);
		}
		compare(p, begin > 20 ? begin - 20 : 0, BYTES);
		compare(p, begin, begin + bytes);
	}
}

TEST(written, counts_granules)
{
	uint64_t map[2] = { 0 }, begin = 0, end = 0;

	EXPECT_TRUE(written_gap(map, 3, 100, &begin, &end));
	EXPECT_EQ(begin, 3u);
	EXPECT_EQ(end, 100u);
	written_set(map, 0, 97);
	EXPECT_FALSE(written_gap(map, 0, 104, &begin, &end));
	EXPECT_TRUE(written_gap(map, 0, 105, &begin, &end));
	EXPECT_EQ(begin, 104u);
	written_clear(map, 1, 100); /* the first and the last are another's, too */
	EXPECT_TRUE(written_gap(map, 0, 104, &begin, &end));
	EXPECT_EQ(begin, 8u);
	EXPECT_EQ(end, 96u);
}
