/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs in the HBM: what whole rows and whole stripes take by a closed form, against the burst
 * scheduler, which gets the same bytes burst by burst, over random geometries, interleaves, timings
 * and lengths: those of memories with 16 banks or more and a queue of 64 requests or more. With
 * fewer of either, single bursts cannot fill the bus, and what runs assume does not hold.
 */
#include "harness/test.h"

#include <glib.h>
#include <string.h>

#include "sim/hbm/hbm.h"

#define SEED        20240607
#define CONFIGS     500
#define GROUPS_MOST 16

static unsigned between(GRand *rand, int least, int most)
{
	return (unsigned)g_rand_int_range(rand, least, most + 1);
}

static unsigned lg2(uint64_t x)
{
	return 63 - (unsigned)__builtin_clzll(x);
}

/* Of an address. */
struct field {
	char letter;
	unsigned bits;
};

/* Fields in any order. */
static void add_fields(GRand *rand, GString *map, struct field *field, unsigned fields)
{
	for (; fields; fields--) {
		unsigned i = between(rand, 0, (int)fields - 1);

		g_string_append_printf(map, " %c%u%s", field[i].letter, field[i].bits,
				       field[i].letter != 'c' && between(rand, 0, 1) ? "x" : "");
		field[i] = field[fields - 1];
	}
}

/* As controllers have it: neighbours in other channels and bank groups, the row on top, half of the
 * fields that may be are XORed with the row. */
static void random_map(GRand *rand, struct sim_profile *p)
{
	unsigned columns = lg2(p->hbm_columns), low = between(rand, 0, 2);
	struct field spread[] = {
		{ 's', lg2(p->hbm_stacks) },
		{ 'h', lg2(p->hbm_channels) },
		{ 'p', lg2(p->hbm_pseudo_channels) },
		{ 'g', lg2(p->hbm_bank_groups) },
	};
	struct field upper[] = { { 'c', columns - low }, { 'b', lg2(p->hbm_banks) } };
	g_autoptr(GString) map = g_string_new(NULL);

	g_string_printf(map, "o%u c%u", lg2(p->hbm_burst * 8), low);
	add_fields(rand, map, spread, G_N_ELEMENTS(spread));
	add_fields(rand, map, upper, G_N_ELEMENTS(upper));
	g_string_append_printf(map, " r%u", lg2(p->hbm_rows));
	g_strlcpy(p->hbm_map, map->str, sizeof(p->hbm_map));
}

static void random_timing(GRand *rand, struct sim_profile *p)
{
	p->hbm_clocks.cl = between(rand, 10, 40);
	p->hbm_clocks.cwl = between(rand, 4, 20);
	p->hbm_clocks.rcd_rd = between(rand, 10, 30);
	p->hbm_clocks.rcd_wr = between(rand, 8, 24);
	p->hbm_clocks.rp = between(rand, 10, 30);
	p->hbm_clocks.ras = p->hbm_clocks.rcd_rd + between(rand, 10, 40);
	p->hbm_clocks.rc = p->hbm_clocks.ras + p->hbm_clocks.rp;
	p->hbm_clocks.wr = between(rand, 10, 32);
	p->hbm_clocks.rtp = between(rand, 4, 12);
	p->hbm_clocks.ccd_s = p->hbm_burst / 2;
	p->hbm_clocks.ccd_l = p->hbm_clocks.ccd_s * between(rand, 1, 2);
	p->hbm_clocks.rrd_s = between(rand, 2, 8);
	p->hbm_clocks.rrd_l = p->hbm_clocks.rrd_s + between(rand, 0, 4);
	p->hbm_clocks.faw = 4 * p->hbm_clocks.rrd_s + between(rand, 0, 8);
	p->hbm_clocks.wtr_s = between(rand, 4, 14);
	p->hbm_clocks.wtr_l = p->hbm_clocks.wtr_s + between(rand, 0, 6);
	p->hbm_clocks.rtw = between(rand, 4, 20);
	p->hbm_refresh = between(rand, 0, 1);
	p->hbm_refresh_per_bank = between(rand, 0, 1);
	p->hbm_clocks.rfc = between(rand, 300, 600);
	p->hbm_clocks.refi = between(rand, 3000, 7000);
	p->hbm_clocks.rfc_sb = between(rand, 100, 300);
	p->hbm_clocks.refi_sb = between(rand, 400, 600);
	p->hbm_queue = 64u << between(rand, 0, 2);
}

static void random_profile(GRand *rand, struct sim_profile *p)
{
	p->hbm_stacks = 1u << between(rand, 0, 1);
	p->hbm_channels = 1u << between(rand, 1, 3);
	p->hbm_pseudo_channels = between(rand, 1, 2);
	p->hbm_bank_groups = 4u << between(rand, 0, 2);
	p->hbm_banks = 4;
	p->hbm_columns = 1u << between(rand, 4, 6);
	p->hbm_burst = 4u << between(rand, 0, 1);
	p->hbm_rows = 1u << 14;
	random_map(rand, p);
	random_timing(rand, p);
}

struct run {
	uint64_t offset, bytes;
	bool write;
};

/* Runs of writes are many buffers long, since what is in the buffer at the end is not written. */
static struct run random_run(GRand *rand, const struct sim_profile *p)
{
	uint64_t burst = p->hbm_burst * 8;
	bool write = between(rand, 0, 1);
	uint64_t bursts = 1u << between(rand, write ? 14 : 3, 17);

	bursts += between(rand, 0, (int)bursts);
	return (struct run){ burst * between(rand, 0, 1 << 16), burst * bursts, write };
}

/* The run in one go. In clocks. */
static double in_rows(const struct sim_profile *p, struct run run)
{
	struct hbm *hbm = hbm_new(p, NULL);
	uint64_t done = hbm_access(hbm, run.offset, run.bytes, run.write, 0, NULL);

	hbm_free(hbm);
	return (double)done / p->hbm_tck_ps;
}

/* The run as the scheduler serves it: every burst asked for at once. In clocks. */
static double by_bursts(const struct sim_profile *p, struct run run)
{
	struct hbm *hbm = hbm_new(p, NULL);
	uint64_t burst = p->hbm_burst * 8, last = 0;

	for (uint64_t at = run.offset; at < run.offset + run.bytes; at += burst) {
		uint64_t done = hbm_access(hbm, at, burst, run.write, 0, NULL);

		last = MAX(last, done);
	}
	hbm_free(hbm);
	return (double)last / p->hbm_tck_ps;
}

/* What the scheduler's writes lose beside: they go in batches of half the queue, which wait for a
 * bank that is being refreshed on its own. */
static double batch_pauses(const struct sim_profile *p, struct run run)
{
	unsigned pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	uint64_t batches = run.bytes / (p->hbm_burst * 8) / pseudos / MIN(p->hbm_queue / 2, 64);
	unsigned pause = p->hbm_clocks.rfc_sb + p->hbm_clocks.rtp + p->hbm_clocks.rp;

	return p->hbm_refresh && p->hbm_refresh_per_bank ? (double)(batches * pause) : 0;
}

/* The bounds: reads within 20 %, either way. Writes take the scheduler no less than 0.9 of the
 * closed form, and 1.5 times it at most beside the pauses between its batches. */
TEST(hbm_runs, closed_form_agrees_with_the_burst_scheduler)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);
	struct sim_profile profile;
	char *error = NULL;

	ASSERT_TRUE(sim_profile_load("Ascend910B1", &profile, &error));
	for (unsigned i = 0; i < CONFIGS; i++) {
		struct run run;
		double rows, bursts;

		random_profile(rand, &profile);
		run = random_run(rand, &profile);
		rows = in_rows(&profile, run);
		bursts = by_bursts(&profile, run);
		NOTE("configuration %u: %s, %s of %llu bytes at %llu", i, profile.hbm_map,
		     run.write ? "write" : "read", (unsigned long long)run.bytes,
		     (unsigned long long)run.offset);
		if (run.write) {
			EXPECT_GE(bursts, 0.9 * rows);
			EXPECT_LE(bursts, 1.5 * rows + batch_pauses(&profile, run));
		} else {
			EXPECT_NEAR(rows, bursts, 0.2 * bursts);
		}
	}
}

static struct hbm *recorded_hbm(const struct sim_profile *p,
				void (*note)(enum hbm_command, const struct hbm_place *, uint64_t))
{
	struct hbm *hbm;

	hbm_record_next.call = note;
	hbm = hbm_new(p, NULL);
	hbm_record_next.call = NULL;
	return hbm;
}

struct act {
	uint32_t pseudo, group;
	uint64_t clock;
};

static GArray *acts;
static unsigned bank_count; /* of a group */

static void note_act(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	struct act act = { place->pseudo, place->bank / bank_count, clock };

	if (command == HBM_ACTIVATE)
		g_array_append_val(acts, act);
}

static gint by_clock(gconstpointer a, gconstpointer b)
{
	const struct act *x = a, *y = b;

	return x->pseudo != y->pseudo ? (x->pseudo > y->pseudo) - (x->pseudo < y->pseudo)
				      : (x->clock > y->clock) - (x->clock < y->clock);
}

/* Requests' times go back and leap ahead, so that activations are placed before and between others.
 */
TEST(hbm_runs, activations_keep_their_distances_in_any_order)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);
	struct sim_profile p;

	for (unsigned config = 0; config < CONFIGS / 2; config++) {
		uint64_t last[GROUPS_MOST], now = 0;
		unsigned near = 0;
		struct hbm *hbm;

		ASSERT_TRUE(sim_profile_load("Ascend910B1", &p, NULL));
		random_profile(rand, &p);
		p.hbm_clocks.faw = between(rand, 0, 12) * (p.hbm_clocks.rrd_s + 1);
		bank_count = p.hbm_banks;
		acts = g_array_new(FALSE, FALSE, sizeof(struct act));
		hbm = recorded_hbm(&p, note_act);
		for (unsigned i = 0; i < 2000; i++) {
			uint64_t back = between(rand, 0, 1) ? between(rand, 0, 200000) : 0;

			now += between(rand, 0, 2000);
			hbm_access(hbm, (uint64_t)between(rand, 0, 1 << 20) * 64, 64, false,
				   now - MIN(now, back), NULL);
		}
		hbm_free(hbm);
		g_array_sort(acts, by_clock);
		for (guint i = 0; i < acts->len; i++) {
			const struct act *a = &g_array_index(acts, struct act, i), *of = a;

			if (i == 0 || a[-1].pseudo != a->pseudo)
				memset(last, 0xff, sizeof(last));
			else
				near += a->clock - a[-1].clock < p.hbm_clocks.rrd_s;
			if (last[a->group] != UINT64_MAX)
				near += a->clock - last[a->group] < p.hbm_clocks.rrd_l;
			last[a->group] = a->clock;
			of = i >= 4 ? a - 4 : NULL;
			if (of && of->pseudo == a->pseudo)
				near += a->clock - of->clock < p.hbm_clocks.faw;
		}
		EXPECT_GT(acts->len, 1000u);
		EXPECT_EQ(near, 0u);
		g_array_unref(acts);
	}
}

struct burst {
	uint32_t pseudo, group;
	bool write;
	uint64_t clock;
};

static GArray *bursts;

static void note_burst(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	struct burst burst = { place->pseudo, place->bank / bank_count, command == HBM_WRITE,
			       clock };

	if (command == HBM_READ || command == HBM_WRITE)
		g_array_append_val(bursts, burst);
}

static gint by_burst(gconstpointer a, gconstpointer b)
{
	const struct burst *x = a, *y = b;

	return x->pseudo != y->pseudo ? (x->pseudo > y->pseudo) - (x->pseudo < y->pseudo)
				      : (x->clock > y->clock) - (x->clock < y->clock);
}

/* Clocks that a burst has to keep to one before it. */
static uint64_t distance(const struct sim_profile *p, const struct burst *a, const struct burst *b)
{
	const struct sim_hbm_clocks *t = &p->hbm_clocks;
	bool same = a->group == b->group;

	if (a->write == b->write)
		return same ? t->ccd_l : t->ccd_s;
	if (b->write)
		return t->rtw;
	return t->cwl + p->hbm_burst / 2 + (same ? MAX(t->wtr_l, t->wtr_s) : t->wtr_s);
}

/* Writes go into the gaps that reads leave, and reads into those between writes: the bus has the
 * time to turn, however long that takes and in whatever order they were booked. */
TEST(hbm_runs, reads_and_writes_keep_their_distances_in_any_order)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);
	struct sim_profile p;
	unsigned turns = 0;

	for (unsigned config = 0; config < CONFIGS / 2; config++) {
		uint64_t now = 0;
		unsigned near = 0, writes = between(rand, 1, 9), longest;
		struct hbm *hbm;

		ASSERT_TRUE(sim_profile_load("Ascend910B1", &p, NULL));
		random_profile(rand, &p);
		longest = config % 10 == 0 ? 300 : config % 2 ? 4 : 20;
		p.hbm_clocks.ccd_l = p.hbm_clocks.ccd_s * between(rand, 1, 12);
		p.hbm_clocks.cwl = between(rand, 0, (int)longest);
		p.hbm_clocks.rtw = between(rand, 0, (int)longest);
		p.hbm_clocks.wtr_s = between(rand, 0, (int)longest);
		p.hbm_clocks.wtr_l = between(rand, 0, MAX((int)longest, 100));
		p.hbm_queue = between(rand, 1, 200);
		bank_count = p.hbm_banks;
		bursts = g_array_new(FALSE, FALSE, sizeof(struct burst));
		hbm = recorded_hbm(&p, note_burst);
		for (unsigned i = 0; i < 3000; i++) {
			uint64_t back = between(rand, 0, 1) ? between(rand, 0, 200000) : 0;
			uint64_t bytes = p.hbm_burst * 8 << between(rand, 0, 2);

			now += between(rand, 0, 2000);
			hbm_access(hbm, between(rand, 0, 1 << 16) * bytes, bytes,
				   between(rand, 0, 9) < writes, now - MIN(now, back), NULL);
		}
		hbm_free(hbm);
		g_array_sort(bursts, by_burst);
		for (guint i = 0; i < bursts->len; i++) {
			const struct burst *b = &g_array_index(bursts, struct burst, i);

			for (guint k = 1; k <= i && k <= 400; k++) {
				if (b[-(gint)k].pseudo != b->pseudo)
					break;
				near += b->clock - b[-(gint)k].clock < distance(&p, b - k, b);
			}
			turns += i && b[-1].pseudo == b->pseudo && b[-1].write != b->write;
		}
		NOTE("configuration %u: %s", config, p.hbm_map);
		EXPECT_EQ(near, 0u);
		g_array_unref(bursts);
	}
	EXPECT_GT(turns, 30000u);
}

static GArray *taken; /* by writes, in their order: when the buffer takes them, a clock */
static guint written;
static unsigned early;

static void note_written(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	(void)place;
	if (command == HBM_WRITE)
		early += clock < g_array_index(taken, uint64_t, written++);
}

/* The buffer of one pseudo channel writes first come, first served. */
TEST(hbm_runs, writes_go_to_their_rows_once_the_buffer_has_taken_them)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);
	struct sim_profile p;

	for (unsigned config = 0; config < CONFIGS / 2; config++) {
		uint64_t now = 0;
		int pause = between(rand, 0, 1) ? 20000 : 2000; /* up to it, between requests */
		unsigned writes = between(rand, 1, 10);
		struct hbm *hbm;

		ASSERT_TRUE(sim_profile_load("Ascend910B1", &p, NULL));
		random_profile(rand, &p);
		p.hbm_stacks = p.hbm_channels = p.hbm_pseudo_channels = 1;
		random_map(rand, &p);
		p.hbm_queue = between(rand, 1, 200);
		taken = g_array_new(FALSE, FALSE, sizeof(uint64_t));
		written = early = 0;
		hbm = recorded_hbm(&p, note_written);
		for (unsigned i = 0; i < 3000; i++) {
			uint64_t burst = p.hbm_burst * 8, clock;
			bool write = between(rand, 0, 9) < writes;

			now += between(rand, 0, pause);
			clock = hbm_access(hbm, between(rand, 0, 1 << 18) * burst, burst, write,
					   now, NULL) /
				p.hbm_tck_ps;
			clock -= p.hbm_clocks.cwl + p.hbm_burst / 2;
			if (write)
				g_array_append_val(taken, clock);
		}
		hbm_free(hbm);
		NOTE("configuration %u: %s", config, p.hbm_map);
		EXPECT_GT(written, 100u);
		EXPECT_EQ(early, 0u);
		g_array_unref(taken);
	}
}
