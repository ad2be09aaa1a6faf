/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth in slices: order, limits, what is remembered.
 */
#include "sim/transport/bandwidth.h"

#include <glib.h>

#include "harness/test.h"

#define LENGTH UINT64_C(1024) /* ps of a slice here */
#define COUNT  64u
#define ORIGIN UINT64_C(1000000)

static struct bandwidth channel;
static uint64_t end;

SETUP(bandwidth)
{
	bandwidth_init(&channel, 10, 6, ORIGIN);
}

TEARDOWN(bandwidth)
{
	bandwidth_clear(&channel);
}

TEST(bandwidth, one_after_the_other_in_order)
{
	EXPECT_EQ(bandwidth_take(&channel, 3000, ORIGIN + 100, &end), ORIGIN + 100);
	EXPECT_EQ(end, ORIGIN + 3100);
	EXPECT_EQ(bandwidth_take(&channel, 500, ORIGIN + 2048, &end), ORIGIN + 3100);
	EXPECT_EQ(end, ORIGIN + 3600);
	EXPECT_EQ(bandwidth_take(&channel, 10, ORIGIN + 40000, &end), ORIGIN + 40000);
	EXPECT_EQ(end, ORIGIN + 40010);
}

TEST(bandwidth, nothing_takes_nothing)
{
	EXPECT_EQ(bandwidth_take(&channel, 0, ORIGIN + 77, &end), ORIGIN + 77);
	EXPECT_EQ(end, ORIGIN + 77);
}

/* Two requests out of order: the one whose time is later, booked first, does not hold up the one
 * that is ready earlier. */
TEST(bandwidth, earlier_request_is_not_delayed_by_later_one)
{
	bandwidth_take(&channel, 5000, ORIGIN + 20 * LENGTH, &end);
	EXPECT_EQ(bandwidth_take(&channel, 2000, ORIGIN + 3 * LENGTH, &end), ORIGIN + 3 * LENGTH);
	EXPECT_EQ(end, ORIGIN + 3 * LENGTH + 2000);
	/* One that does not fit before it goes on behind it. */
	EXPECT_EQ(bandwidth_take(&channel, 2 * LENGTH, ORIGIN + 19 * LENGTH, &end),
		  ORIGIN + 19 * LENGTH);
	EXPECT_EQ(end, ORIGIN + 20 * LENGTH + 5000 + LENGTH);
}

/* What comes in the middle of a full stretch goes behind it at once. */
TEST(bandwidth, full_stretches_are_passed_over)
{
	bandwidth_take(&channel, 40 * LENGTH, ORIGIN, &end);
	EXPECT_EQ(channel.full_from, 0u);
	EXPECT_EQ(channel.full_to, 40u);
	for (unsigned i = 0; i < 40; i++)
		EXPECT_EQ(bandwidth_take(&channel, 1, ORIGIN + i * LENGTH + 5, &end),
			  ORIGIN + 40 * LENGTH + i);
}

TEST(bandwidth, cleared_has_nothing_taken)
{
	bandwidth_take(&channel, 40 * LENGTH, ORIGIN + 100 * LENGTH, &end);
	bandwidth_clear(&channel);
	EXPECT_EQ(bandwidth_take(&channel, 10, ORIGIN + 5, &end), ORIGIN + 5);
	EXPECT_EQ(bandwidth_take(&channel, LENGTH, ORIGIN + 110 * LENGTH, &end),
		  ORIGIN + 110 * LENGTH);
}

/* A time that is no longer remembered is served from the oldest that is, and what was booked
 * afterwards is left as it is. */
TEST(bandwidth, memory_wraps_around)
{
	uint64_t late = ORIGIN + 1000 * LENGTH;

	bandwidth_take(&channel, LENGTH, ORIGIN + 936 * LENGTH, &end); /* same place as 1000 */
	bandwidth_take(&channel, LENGTH / 2, late, &end);
	EXPECT_EQ(bandwidth_take(&channel, 10, ORIGIN + 936 * LENGTH, &end), ORIGIN + 937 * LENGTH);
	EXPECT_EQ(bandwidth_take(&channel, 10, ORIGIN, &end), ORIGIN + 937 * LENGTH + 10);
	EXPECT_EQ(bandwidth_take(&channel, 10, late, &end), late + LENGTH / 2);
}

/* Random requests: each gets its time, none before it may, and no stretch of whole slices has more
 * than its length. */
TEST(bandwidth, never_more_than_the_rate)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(7);
	g_autofree uint64_t *inside = g_new0(uint64_t, 40000);
	uint64_t total = 0, last = 0, base = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t ps = (uint64_t)g_rand_int_range(rand, 1, i % 16 ? 900 : 9000), start, from;

		base += (uint64_t)g_rand_int_range(rand, 0, 1500);
		from = base + (uint64_t)g_rand_int_range(rand, 0, 20 * (int)LENGTH);
		start = bandwidth_take(&channel, ps, ORIGIN + from, &end) - ORIGIN;
		end -= ORIGIN;
		EXPECT_GE(start, from);
		EXPECT_GE(end - start, ps);
		total += ps;
		last = MAX(last, end);
		if (start / LENGTH == (end - 1) / LENGTH)
			inside[start / LENGTH] += ps;
	}
	for (uint64_t slice = 0; slice <= last / LENGTH; slice++)
		EXPECT_LE(inside[slice], LENGTH);
	EXPECT_LE(total, last);
	for (unsigned i = 0; i < COUNT; i++)
		EXPECT_LE(channel.slice[i].taken_ps, LENGTH);
}

/* More is asked for than there is: all of the time is used, in whatever order requests come. */
TEST(bandwidth, nothing_is_lost_where_all_is_wanted)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(8);
	uint64_t last = 0;

	for (unsigned i = 0; i < 100; i++) {
		bandwidth_take(&channel, 500, ORIGIN + (uint64_t)g_rand_int_range(rand, 0, 100),
			       &end);
		last = MAX(last, end - ORIGIN);
	}
	EXPECT_LE(last, 50000u + 2 * LENGTH);
	EXPECT_GE(last, 50000u);
}
