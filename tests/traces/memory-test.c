/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments of a table against copies of all that was there; maps of them against a painted array of
 * small units; and the bins of latencies.
 */

#include "track/memory.h"
#include "harness/test.h"
#include "play/replay.h"

#define KEYS  64
#define SPACE 256 /* addresses that are painted */

static guint32 next_random(guint32 *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* ---- moments ---- */

struct shadow {
	guint64 serial[KEYS]; /* 0: not there */
};

static void expect_moment(const struct memory *l, const struct moment *m, const struct shadow *s)
{
	g_autoptr(GPtrArray) items = memory_at(l, m, ALLOCATION_BLOCK);
	guint count = 0;

	for (guint k = 0; k < KEYS; k++)
		count += s->serial[k] != 0;
	ASSERT_EQ(items->len, count);
	for (guint i = 0; i < items->len; i++) {
		const struct allocation *item = g_ptr_array_index(items, i);
		EXPECT_EQ(item->asked, s->serial[item->key]);
		EXPECT_EQ(item->address, item->key * 16);
	}
}

TEST(table, moments_are_what_was_there_however_often_they_are_marked)
{
	for (guint32 seed = 1; seed <= 20; seed++) {
		struct memory l;
		struct shadow now = { 0 }, kept[3] = { 0 };
		gboolean marked[3] = { FALSE };
		guint32 state = seed;
		guint64 serial = 0;

		memory_init(&l, 0);
		for (guint m = 0; m < 3; m++)
			memory_add_moment(&l, MOMENT_EVENT, m);
		for (guint step = 0; step < 2000; step++) {
			guint64 key = next_random(&state) % KEYS;
			guint what = next_random(&state) % 20, m = next_random(&state) % 3;
			struct allocation item = { .key = key, .address = key * 16, .size = 16 };
			item.asked = ++serial;
			if (what == 0) {
				memory_mark(&l, &l.moments[m], step);
				kept[m] = now;
				marked[m] = TRUE;
			} else if (what < 12) {
				memory_add(&l, ALLOCATION_BLOCK, &item);
				now.serial[key] = serial;
			} else {
				EXPECT_EQ(memory_remove(&l, ALLOCATION_BLOCK, key),
					  now.serial[key] != 0);
				now.serial[key] = 0;
			}
		}
		for (guint m = 0; m < 3; m++) {
			EXPECT_EQ(l.moments[m].reached, marked[m]);
			if (marked[m])
				expect_moment(&l, &l.moments[m], &kept[m]);
		}
		memory_clear(&l);
	}
}

TEST(levels, sums_end_at_what_an_int64_holds)
{
	struct levels l = { .event = 1 };

	levels_change(&l, LEVEL_LIVE, TRUE, 5);
	levels_change(&l, LEVEL_LIVE, FALSE, 6);
	EXPECT_EQ(l.of[LEVEL_LIVE].now, 0u);
	levels_change(&l, LEVEL_LIVE, TRUE, G_MAXUINT64);
	levels_change(&l, LEVEL_LIVE, TRUE, G_MAXINT64);
	EXPECT_EQ(l.of[LEVEL_LIVE].now, (guint64)G_MAXINT64);
	EXPECT_EQ(l.of[LEVEL_LIVE].got, (guint64)G_MAXINT64);
	EXPECT_EQ(l.of[LEVEL_LIVE].peak.bytes, (guint64)G_MAXINT64);
}

TEST(levels, a_peak_is_of_the_event_that_reached_it_first)
{
	struct levels l = { .event = 7, .host_ns = 70 };

	levels_pages(&l, TRUE, 3, 4);
	l.event = 8;
	levels_step(&l, NPU_TRACE_ALLOC, 2, FALSE);
	levels_pages(&l, FALSE, 3, 4);
	levels_step(&l, NPU_TRACE_ALLOC, 9, FALSE);
	levels_pages(&l, TRUE, 4, 4);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].peak.bytes, 4u);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].peak.number, 7u);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].peak.host_ns, 70u);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].got, 8u);
	EXPECT_EQ(l.of[LEVEL_ROUNDING].now, 0u);
	EXPECT_EQ(l.of[LEVEL_LIVE].peak.number, 8u);
	EXPECT_EQ(l.live_at_peak, 11u);
	levels_step(&l, NPU_TRACE_SEGMENT_MAP, 6, TRUE);
	EXPECT_EQ(l.of[LEVEL_SEGMENTS].now, 6u);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].now, 10u);
	EXPECT_EQ(l.live_at_peak, 11u);
	levels_step(&l, NPU_TRACE_SEGMENT_UNMAP, 6, FALSE);
	EXPECT_EQ(l.of[LEVEL_SEGMENTS].now, 0u);
	EXPECT_EQ(l.of[LEVEL_PHYSICAL].now, 10u);
}

TEST(table, addresses_that_are_taken_are_counted_once)
{
	struct memory l;
	const struct allocation area = { .key = 1, .address = 0, .size = 100 };
	const struct allocation mapped = { .key = 2, .size = 50, .mapped = TRUE };
	const struct allocation segment = { .key = 3, .address = 200, .size = 7 };

	memory_init(&l, 0);
	memory_add(&l, ALLOCATION_RESERVED, &area);
	memory_add(&l, ALLOCATION_MEMORY, &mapped);
	memory_add(&l, ALLOCATION_MEMORY, &segment);
	EXPECT_EQ(l.levels.of[LEVEL_RESERVED].now, 107u);
	EXPECT_TRUE(memory_remove(&l, ALLOCATION_MEMORY, 2));
	EXPECT_TRUE(memory_remove(&l, ALLOCATION_RESERVED, 1));
	EXPECT_FALSE(memory_remove(&l, ALLOCATION_RESERVED, 1));
	EXPECT_EQ(l.levels.of[LEVEL_RESERVED].now, 7u);
	memory_clear(&l);
}

static void look(struct allocation *item, gpointer data)
{
	struct physical_run run = { .pa = item->key + 1000, .bytes = item->size };

	++*(guint *)data;
	item->runs = g_array_new(FALSE, FALSE, sizeof run);
	g_array_append_val(item->runs, run);
}

TEST(table, memory_is_looked_up_once_and_only_for_moments)
{
	struct memory l;
	guint looks = 0;

	memory_init(&l, 0);
	l.look = look;
	l.data = &looks;
	memory_add_moment(&l, MOMENT_PEAK, 0);
	for (guint64 k = 0; k < 4; k++) {
		const struct allocation item = { .key = k, .address = k, .size = 1 };
		memory_add(&l, ALLOCATION_MEMORY, &item);
		if (k == 2)
			memory_mark(&l, &l.moments[0], 1);
	}
	memory_remove(&l, ALLOCATION_MEMORY, 3);
	EXPECT_EQ(looks, 0u);
	memory_look(&l, 1);
	memory_remove(&l, ALLOCATION_MEMORY, 1);
	EXPECT_EQ(looks, 1u);
	memory_look_all(&l);
	EXPECT_EQ(looks, 3u);
	memory_clear(&l);
}

/* ---- maps ---- */

enum paint { NOTHING, RESERVED, FREE, LIVE };

struct scene {
	struct memory table;
	enum paint paint[SPACE];
};

static void put(struct scene *s, enum allocation_kind kind, guint64 start, guint64 size,
		gboolean mapped)
{
	const struct allocation item = {
		.key = start, .address = start, .size = size, .asked = size, .mapped = mapped
	};

	memory_add(&s->table, kind, &item);
	for (guint64 at = start; at < start + size; at++)
		s->paint[at] = kind == ALLOCATION_RESERVED ? RESERVED
			       : kind == ALLOCATION_MEMORY ? FREE
							   : LIVE;
}

/* Reservations at 0 and 128, mappings and a segment, blocks that lie in them as a whole. */
static void random_scene(struct scene *s, guint32 seed)
{
	guint32 state = seed;

	*s = (struct scene){ 0 };
	memory_init(&s->table, 0);
	memory_add_moment(&s->table, MOMENT_PEAK, 0);
	put(s, ALLOCATION_RESERVED, 0, 100, FALSE);
	put(s, ALLOCATION_RESERVED, 128, 64, FALSE);
	for (guint64 at = 0; at < 96; at += 8) {
		if (next_random(&state) % 3)
			put(s, ALLOCATION_MEMORY, at, 8, TRUE);
	}
	put(s, ALLOCATION_MEMORY, 200, 32, FALSE);
	put(s, ALLOCATION_MEMORY, 232, 8, FALSE);
	for (guint64 at = 0; at < 240;) {
		guint64 size = 1 + next_random(&state) % 12, end = at;
		while (end < at + size && end < 240 && s->paint[end] == FREE && end != 232)
			end++;
		if (end > at && next_random(&state) % 2)
			put(s, ALLOCATION_BLOCK, at, end - at, FALSE);
		at = MAX(end, at + 1);
	}
	memory_mark(&s->table, &s->table.moments[0], 1);
}

TEST(maps, addresses_are_what_was_painted)
{
	for (guint32 seed = 1; seed <= 200; seed++) {
		struct scene s;
		guint64 end = 0, free_run = 0, most = 0;

		random_scene(&s, seed);
		struct memory_map map;
		address_map_init(&map, &s.table, &s.table.moments[0]);
		for (guint i = 0; i < map.ranges->len; i++) {
			const struct map_range *r = &g_array_index(map.ranges, struct map_range, i);
			for (guint64 at = end; at < r->start; at++)
				EXPECT_EQ(s.paint[at], NOTHING);
			enum paint is = r->used == 0 ? RESERVED : r->live == 0 ? FREE : LIVE;
			for (guint64 at = r->start; at < r->start + r->length; at++)
				ASSERT_EQ(s.paint[at], is);
			EXPECT_TRUE(r->used == 0 || r->used == r->length);
			EXPECT_TRUE(r->live == 0 || r->live == r->length);
			end = r->start + r->length;
		}
		for (guint64 at = end; at < SPACE; at++)
			EXPECT_EQ(s.paint[at], NOTHING);
		/* 232: where one allocation ends and another begins */
		for (guint64 at = 0; at < SPACE; at++) {
			free_run = s.paint[at] == FREE ? (at == 232 ? 0 : free_run) + 1 : 0;
			most = MAX(most, free_run);
		}
		EXPECT_EQ(map.largest_free, most);
		EXPECT_EQ(map.count, map.ranges->len);
		g_array_unref(map.ranges);
		memory_clear(&s.table);
	}
}

TEST(maps, too_many_ranges_are_put_together_and_lose_nothing)
{
	struct memory l;
	guint64 physical = 0, live = 0, before = 0;

	memory_init(&l, 0);
	memory_add_moment(&l, MOMENT_PEAK, 0);
	for (guint64 i = 0; i < 9000; i++) {
		const struct allocation m = { .key = i, .address = i * 8192, .size = 4096 };
		const struct allocation b = { .key = i, .address = i * 8192 + 512, .size = 512 };
		memory_add(&l, ALLOCATION_MEMORY, &m);
		memory_add(&l, ALLOCATION_BLOCK, &b);
	}
	memory_mark(&l, &l.moments[0], 1);
	struct memory_map map;
	address_map_init(&map, &l, &l.moments[0]);
	EXPECT_EQ(map.count, 27000u);
	EXPECT_TRUE(map.merged > 0);
	EXPECT_TRUE(map.ranges->len <= MAPS_RANGES_MAX && map.ranges->len > MAPS_RANGES_MAX / 8);
	for (guint i = 0; i < map.ranges->len; i++) {
		const struct map_range *r = &g_array_index(map.ranges, struct map_range, i);
		EXPECT_TRUE(r->start >= before);
		before = r->start + r->length;
		physical += r->used;
		live += r->live;
	}
	EXPECT_EQ(physical, 9000u * 4096);
	EXPECT_EQ(live, 9000u * 512);
	EXPECT_EQ(map.largest_free, 3072u);
	g_array_unref(map.ranges);
	memory_clear(&l);
}

static void add_frames(struct memory *l, guint64 address, guint64 pa, guint64 bytes)
{
	struct allocation item = { .key = address, .address = address, .size = bytes };
	struct physical_run run = { .pa = pa, .bytes = bytes };

	item.runs = g_array_new(FALSE, FALSE, sizeof run);
	g_array_append_val(item.runs, run);
	memory_add(l, ALLOCATION_MEMORY, &item);
}

TEST(maps, frames_have_an_owner_or_several)
{
	static const struct map_range wanted[] = {
		{ 0, 1, 0, 0, FRAME_NOBODY },      { 1, 2, 2 * MAPS_FRAME_BYTES, 0, 0x1000 },
		{ 3, 1, 12288, 0, FRAME_SEVERAL }, { 4, 2, MAPS_FRAME_BYTES + 4096, 0, 0x9000 },
		{ 6, 2, 0, 0, FRAME_NOBODY },
	};
	struct memory l;

	memory_init(&l, 0);
	memory_add_moment(&l, MOMENT_PEAK, 0);
	add_frames(&l, 0x1000, MAPS_FRAME_BYTES, 2 * MAPS_FRAME_BYTES);
	add_frames(&l, 0x5000, 3 * MAPS_FRAME_BYTES, 4096);
	add_frames(&l, 0x6000, 3 * MAPS_FRAME_BYTES + 8192, 4096);
	add_frames(&l, 0x7000, 3 * MAPS_FRAME_BYTES + 16384, 4096);
	add_frames(&l, 0x9000, 4 * MAPS_FRAME_BYTES, MAPS_FRAME_BYTES + 4096);
	memory_mark(&l, &l.moments[0], 1);
	struct memory_map map;
	frame_map_init(&map, &l, &l.moments[0], 8 * MAPS_FRAME_BYTES);
	ASSERT_NOT_NULL(map.ranges);
	ASSERT_EQ(map.ranges->len, (guint)G_N_ELEMENTS(wanted));
	for (guint i = 0; i < map.ranges->len; i++) {
		const struct map_range *r = &g_array_index(map.ranges, struct map_range, i);
		EXPECT_EQ(r->start, wanted[i].start);
		EXPECT_EQ(r->length, wanted[i].length);
		EXPECT_EQ(r->used, wanted[i].used);
		EXPECT_EQ(r->owner, wanted[i].owner);
	}
	g_array_unref(map.ranges);
	memory_clear(&l);
}

/* ---- what the file says ---- */

#define PLACES 4096

TEST(file, blocks_that_overlap_or_are_not_there_are_counted)
{
	guint64 size[PLACES] = { 0 }, live = 0, wrong = 0, blocks = 0, most_chunks = 0;
	struct memory m;
	guint32 state = 1;

	memory_init(&m, 0);
	for (guint step = 1; step <= 20000; step++) {
		guint64 address = next_random(&state) % PLACES;
		gboolean comes = next_random(&state) % 8 > (step < 15000 ? 0 : 5);
		struct record_item item = {
			.record = { .verb = comes ? NPU_TRACE_ALLOC : NPU_TRACE_FREE,
				    .has = NPU_TRACE_HAS_VA,
				    .va = address },
			.address = address,
			.size = 1 + next_random(&state) % (step < 10000 ? 2 : 8),
		};

		/* the last that begins before its end */
		gint64 at = (gint64)(comes ? MIN(address + item.size, PLACES) : address + 1) - 1;
		while (at >= 0 && size[at] == 0)
			at--;
		gboolean there = at >= 0 && (comes ? (guint64)at + size[at] > address
						   : (guint64)at == address);
		wrong += there == comes;
		blocks = blocks + comes - there;
		if (there) {
			live -= size[at];
			size[at] = 0;
		}
		if (comes) {
			live += item.size;
			size[address] = item.size;
		}
		m.levels.event = step;
		memory_step_file(&m, &item);
		ASSERT_EQ(m.file.contradictions, wrong);
		ASSERT_EQ(m.file.levels.of[LEVEL_LIVE].now, live);
		/* small ones are joined */
		ASSERT_TRUE(m.file.chunks->len <= 1 + blocks / (MEMORY_CHUNK_MAX / 4));
		most_chunks = MAX(most_chunks, m.file.chunks->len);
	}
	EXPECT_TRUE(wrong > 1000 && live > 1000);
	EXPECT_TRUE(m.file.chunks->len < most_chunks / 2);
	memory_clear(&m);
}

TEST(file, few_blocks_that_stay_are_in_few_chunks)
{
	for (int down = 0; down <= 1; down++) {
		struct memory m;

		memory_init(&m, 0);
		for (guint i = 0; i < 2 * PLACES; i++) {
			guint64 address = i < PLACES || !down ? i % PLACES : 2 * PLACES - 1 - i;
			struct record_item item = {
				.record = { .verb = i < PLACES ? NPU_TRACE_ALLOC : NPU_TRACE_FREE },
				.address = address,
				.size = 1,
			};

			if (i < PLACES || address % 64 != 0)
				memory_step_file(&m, &item);
		}
		EXPECT_EQ(m.file.levels.of[LEVEL_LIVE].now, PLACES / 64u);
		EXPECT_TRUE(m.file.chunks->len <= 1 + PLACES / 64 / (MEMORY_CHUNK_MAX / 4));
		EXPECT_EQ(m.file.contradictions, 0u);
		memory_clear(&m);
	}
}

/* ---- latencies ---- */

TEST(latency, quantiles_are_right_within_a_bin)
{
	struct latency *l = g_new0(struct latency, 1);

	for (guint64 i = 1; i <= 10000; i++)
		latency_add(l, i * 1000);
	EXPECT_EQ(l->min_ps, 1000u);
	EXPECT_EQ(l->max_ps, 10000000u);
	for (int p = 1; p <= 100; p++) {
		guint64 exact = (guint64)p * 100 * 1000, got = latency_quantile_ps(l, p / 100.0);
		EXPECT_TRUE(got >= exact && got <= exact + exact / 60);
	}
	g_free(l);
}

TEST(latency, bins_cover_every_time)
{
	struct latency *l = g_new0(struct latency, 1);
	const guint64 times[] = { 0, 1, 63, 64, 65, 127, 128, 1u << 20, G_MAXUINT64 };

	for (gsize i = 0; i < G_N_ELEMENTS(times); i++)
		latency_add(l, times[i]);
	EXPECT_EQ(l->calls, (guint64)G_N_ELEMENTS(times));
	EXPECT_EQ(latency_quantile_ps(l, 1), G_MAXUINT64);
	EXPECT_EQ(latency_quantile_ps(l, 0), 0u);
	for (guint b = 1; b < LATENCY_BINS; b++)
		EXPECT_TRUE(latency_bin_end_ps(b) > latency_bin_end_ps(b - 1));
	EXPECT_EQ(latency_bin_end_ps(LATENCY_BINS - 1), G_MAXUINT64);
	g_free(l);
}
