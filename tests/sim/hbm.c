/* SPDX-License-Identifier: Apache-2.0
 *
 * The HBM against published simulators, and against what follows from its timing parameters alone.
 * Reference: DRAMsim3, Ramulator 2.1 and DRAMSys 5.1 on one HBM2E stack of 16 pseudo channels
 * at 3.2 Gb/s a pin, the same requests; per trace the least, median and greatest of their answers.
 * A trace where they agree must be met to 3 %; one where only bandwidth is fixed to 1 % in
 * bandwidth; where scheduling freedom shows, within their range and 10 %.
 */
#include "harness/test.h"

#include <glib.h>
#include <string.h>

#include "sim/hbm/hbm.h"

enum agreement { AGREE, AGREE_BANDWIDTH, POLICY };

struct golden {
	const char *title, *trace;
	bool refresh;
	enum agreement agreement;
	double bw_min, bw_median, bw_max;                /* GB/s */
	double latency_min, latency_median, latency_max; /* ns; of reads */
	double hit_min, hit_max;
};

static const struct golden golden[] = {
	{ "seq", "seq", true, POLICY, 325.46, 366.61, 368.22, 177.90, 178.67, 201.29, .9665,
	  .9672 },
	{ "rand", "rand", true, POLICY, 133.15, 186.63, 203.90, 320.52, 350.40, 491.41, .4972,
	  .4975 },
	{ "stride1k", "stride1k", true, AGREE, 22.99, 22.99, 23.07, 2832.98, 2843.57, 2843.83,
	  .9667, .9673 },
	{ "stride64k", "stride64k", true, AGREE, 4.79, 4.79, 4.79, 13531.97, 13531.99, 13531.99,
	  .4967, .4968 },
	{ "rw50", "rw50", true, POLICY, 110.52, 128.92, 160.37, 573.80, 575.09, 597.46, .4346,
	  .4956 },
	{ "chase", "chase", true, POLICY, 1.48, 1.60, 1.60, 39.97, 40.07, 43.28, .4976, .4977 },
	{ "rand_ol25", "rand_ol25", true, AGREE_BANDWIDTH, 102.36, 102.36, 102.36, 101.08, 102.88,
	  139.06, .4978, .4978 },
	{ "seq_ol50", "seq_ol50", true, AGREE_BANDWIDTH, 204.69, 204.70, 204.70, 62.30, 62.31,
	  91.85, .9664, .9664 },
	{ "seq_noref", "seq", false, AGREE, 406.35, 409.46, 409.51, 159.95, 159.97, 161.20, .9687,
	  .9687 },
	{ "rand_noref", "rand", false, POLICY, 163.64, 208.27, 227.63, 287.08, 313.89, 399.86,
	  .5000, .5000 },
	{ "stride1k_noref", "stride1k", false, AGREE, 25.50, 25.60, 25.60, 2553.63, 2553.73,
	  2563.58, .9688, .9688 },
	{ "stride64k_noref", "stride64k", false, AGREE, 5.32, 5.32, 5.32, 12194.20, 12194.20,
	  12194.20, .5000, .5000 },
	{ "rw50_noref", "rw50", false, POLICY, 135.06, 143.42, 179.25, 489.27, 510.82, 514.03,
	  .4405, .5000 },
	{ "chase_noref", "chase", false, AGREE, 1.33, 1.35, 1.35, 47.43, 47.43, 48.05, .5000,
	  .5000 },
	{ "rand_ol25_noref", "rand_ol25", false, AGREE, 102.38, 102.38, 102.38, 60.23, 60.35, 61.08,
	  .5000, .5000 },
	{ "seq_ol50_noref", "seq_ol50", false, AGREE, 204.79, 204.79, 204.79, 22.20, 22.20, 22.59,
	  .9687, .9687 },
};

/* --- the traces: request i depends on i only --- */

#define CAPACITY (UINT64_C(8) << 30)

struct trace {
	const char *title;
	unsigned requests;
	unsigned window;    /* requests under way at once; 0: open loop */
	unsigned a_clock;   /* open loop: requests a clock */
	const char *sha256; /* of address | is_write, little-endian, eight bytes each */
};

static const struct trace traces[] = {
	{ "seq", 1000000, 1024, 0,
	  "9813ac518a712c64d736e62386e85f9577b0a653373653dfe859fcaf918e2af1" },
	{ "rand", 1000000, 1024, 0,
	  "0553166441b0eacc866dcc3cf934c14548b7c2f60eb84a0779f7aea66e6eef1f" },
	{ "stride1k", 200000, 1024, 0,
	  "691fe94f605d940e86764342ab6dfa8ecfda6491f39281b5dafff4a13956ef64" },
	{ "stride64k", 50000, 1024, 0,
	  "e099f1463f03b22e9cafa51ecfa62478040ded8c196c7eb7d828430acee9846d" },
	{ "rw50", 1000000, 1024, 0,
	  "9120c82060b70b5d21aa6d45ba3159ceb84958b02ece492bc35e213ea27ece9b" },
	{ "chase", 50000, 1, 0,
	  "12261658a0d687f3ed52074bd2e50b377f897d2c2640b45fe2ba34fc0ac48683" },
	{ "rand_ol25", 1000000, 0, 1,
	  "0553166441b0eacc866dcc3cf934c14548b7c2f60eb84a0779f7aea66e6eef1f" },
	{ "seq_ol50", 1000000, 0, 2,
	  "9813ac518a712c64d736e62386e85f9577b0a653373653dfe859fcaf918e2af1" },
};

/* splitmix64 */
static uint64_t mix(uint64_t z)
{
	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t strided(uint64_t i, uint64_t stride)
{
	return i * stride % CAPACITY + i * stride / CAPACITY * 64;
}

/* Bit 0: a write. */
static uint64_t request(const char *trace, uint64_t i)
{
	uint64_t z;

	if (!strncmp(trace, "seq", 3))
		return i * 64 % CAPACITY;
	if (!strcmp(trace, "stride1k"))
		return strided(i, 1024);
	if (!strcmp(trace, "stride64k"))
		return strided(i, 65536);
	z = mix(strcmp(trace, "rw50") ? i : i ^ UINT64_C(0x5555000000000000));
	return (z >> 16) % (CAPACITY / 64) * 64 | (strcmp(trace, "rw50") ? 0 : z & 1);
}

TEST_EACH(hbm, trace_is_the_published_one, traces, title)
{
	const struct trace *trace = param;
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

	for (uint64_t i = 0; i < trace->requests; i++) {
		uint64_t record = GUINT64_TO_LE(request(trace->title, i));

		g_checksum_update(sum, (const guchar *)&record, sizeof(record));
	}
	EXPECT_STREQ(g_checksum_get_string(sum), trace->sha256);
}

/* --- running them --- */

/* Completions of the requests under way, the earliest at the root. */
struct heap {
	uint64_t at[1025];
	unsigned n;
};

static void heap_push(struct heap *heap, uint64_t value)
{
	unsigned i = heap->n++;

	for (; i && heap->at[(i - 1) / 2] > value; i = (i - 1) / 2)
		heap->at[i] = heap->at[(i - 1) / 2];
	heap->at[i] = value;
}

static uint64_t heap_pop(struct heap *heap)
{
	uint64_t first = heap->at[0], value = heap->at[--heap->n];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < heap->n) {
		child += child + 1 < heap->n && heap->at[child + 1] < heap->at[child];
		if (heap->at[child] >= value)
			break;
		heap->at[i] = heap->at[child];
		i = child;
	}
	heap->at[i] = value;
	return first;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct sim_profile stack_profile(bool refresh)
{
	struct sim_profile profile;
	char *error = NULL;

	if (!sim_profile_load("Ascend910B1", &profile, &error))
		g_error("%s", error);
	profile.hbm_stacks = 1;
	profile.hbm_refresh = refresh;
	g_strlcpy(profile.hbm_map, "o5 c1 h3 p1 g2 c4 b2 r16", sizeof(profile.hbm_map));
	return profile;
}

static struct hbm *one_stack(bool refresh)
{
	struct sim_profile profile = stack_profile(refresh);

	return hbm_new(&profile, NULL);
}

struct outcome {
	double bandwidth, latency, hits;
};

static struct outcome run_trace(const struct trace *trace, bool refresh)
{
	struct hbm *hbm = one_stack(refresh);
	struct heap heap = { .n = 0 };
	struct sim_counters counters;
	uint64_t now = 0, last = 0, reads = 0;
	double latency = 0;

	for (uint64_t i = 0; i < trace->requests; i++) {
		uint64_t r = request(trace->title, i), done;

		if (!trace->window)
			now = i * 625 / trace->a_clock;
		else if (heap.n == trace->window)
			now = later(now, heap_pop(&heap));
		done = hbm_access(hbm, r & ~UINT64_C(1), 64, r & 1, now, NULL);
		if (trace->window)
			heap_push(&heap, done);
		if (!(r & 1)) {
			latency += (double)(done - now) / 1000;
			reads++;
		}
		last = MAX(last, done);
	}
	hbm_get_counters(hbm, &counters);
	hbm_free(hbm);
	return (struct outcome){ trace->requests * 64.0 / last * 1000, latency / reads,
				 1 - (double)counters.hbm_row_misses / counters.hbm_bursts };
}

TEST_EACH(hbm, agrees_with_published_simulators, golden, title)
{
	const struct golden *g = param;
	const struct trace *trace = traces;
	struct outcome got;

	while (strcmp(trace->title, g->trace))
		trace++;
	got = run_trace(trace, g->refresh);
	if (g->agreement == AGREE) {
		EXPECT_NEAR(got.bandwidth, g->bw_median, 0.03 * g->bw_median);
		EXPECT_NEAR(got.latency, g->latency_median, 0.03 * g->latency_median);
	} else if (g->agreement == AGREE_BANDWIDTH) {
		EXPECT_NEAR(got.bandwidth, g->bw_median, 0.01 * g->bw_median);
		EXPECT_GE(got.latency, 0.95 * g->latency_min);
		EXPECT_LE(got.latency, 1.05 * g->latency_max);
	} else {
		EXPECT_GE(got.bandwidth, 0.9 * g->bw_min);
		EXPECT_LE(got.bandwidth, 1.1 * g->bw_max);
		EXPECT_GE(got.latency, 0.9 * g->latency_min);
		EXPECT_LE(got.latency, 1.1 * g->latency_max);
	}
	EXPECT_GE(got.hits, g->hit_min - 0.02);
	EXPECT_LE(got.hits, g->hit_max + 0.02);
}

/* Reads and writes mixed, 32 bytes each, 1,024 under way, by the same simulators but DRAMSys: GB/s
 * of Ramulator with a write queue of 32 and of 64, and of DRAMsim3 with 64 and queues of banks
 * behind. A controller decides when it turns the bus and what it puts off, so they differ. */
static const struct mix {
	const char *title;
	unsigned writes; /* per cent */
	double least, most;
} mixes[] = {
	{ "random", 10, 88.64, 92.13 },       { "random", 30, 84.20, 92.00 },
	{ "random", 50, 78.90, 97.09 },       { "random", 70, 77.13, 94.49 },
	{ "random", 100, 85.78, 103.75 },     { "sequential", 10, 307.54, 350.04 },
	{ "sequential", 50, 201.24, 319.89 }, { "hits", 50, 94.34, 158.30 },
};

/* "hits": 256 streams, each of which asks for eight columns of one row after the other. */
static uint64_t mixed(const char *title, uint64_t i)
{
	uint64_t z = mix(i);

	if (!strcmp(title, "random"))
		return (z >> 16) % (CAPACITY / 32) * 32;
	if (!strcmp(title, "sequential"))
		return i * 32;
	z = mix(i % 256 << 32 | i / 256 / 8);
	return z % (CAPACITY >> 16) << 16 | i / 256 % 8 << 11 | (z >> 40) % 64 << 5;
}

TEST(hbm, mixes_agree_with_published_simulators)
{
	for (unsigned m = 0; m < G_N_ELEMENTS(mixes); m++) {
		struct sim_profile profile = stack_profile(true);
		struct heap heap = { .n = 0 };
		uint64_t now = 0, last = 0, done;
		double bandwidth;
		struct hbm *hbm;

		g_strlcpy(profile.hbm_map, "o5 h3 p1 g2 c5 b2 r16", sizeof(profile.hbm_map));
		hbm = hbm_new(&profile, NULL);
		for (uint64_t i = 0; i < 250000; i++) {
			bool write = mix(i ^ 0x5555) % 100 < mixes[m].writes;

			if (heap.n == 1024)
				now = later(now, heap_pop(&heap));
			done = hbm_access(hbm, mixed(mixes[m].title, i), 32, write, now, NULL);
			heap_push(&heap, done);
			last = MAX(last, done);
		}
		hbm_free(hbm);
		bandwidth = 250000 * 32.0 / last * 1000;
		NOTE("%s, %u %% writes", mixes[m].title, mixes[m].writes);
		EXPECT_GE(bandwidth, 0.95 * mixes[m].least);
		EXPECT_LE(bandwidth, 1.05 * mixes[m].most);
	}
}

/* --- first principles --- */

#define ROW_STEP (UINT64_C(1) << 18) /* to the next row of the same bank */

TEST(hbm, latencies_follow_from_the_parameters)
{
	struct hbm *hbm = one_stack(false);
	uint64_t t = 1000 * 625, first;

	/* Closed bank: RCD 23 + 1, CL 23, CCDL 4, burst 2. */
	EXPECT_EQ(hbm_access(hbm, 0, 64, false, t, &first), t + 53 * 625);
	EXPECT_EQ(first, t + 49 * 625);
	/* Open row: CL 23, CCDL 4, burst 2. */
	t += 1000 * 625;
	EXPECT_EQ(hbm_access(hbm, 4096, 64, false, t, NULL), t + 29 * 625);
	/* Another row of the bank: RP 23 more than a closed one. */
	t += 1000 * 625;
	EXPECT_NEAR(hbm_access(hbm, ROW_STEP, 64, false, t, NULL), t + 76 * 625, 625);
	/* And again at once: RC 77 between the activations. */
	EXPECT_NEAR(hbm_access(hbm, 2 * ROW_STEP, 64, false, t, NULL), t + (76 + 77) * 625, 1250);
	hbm_free(hbm);
}

TEST(hbm, activations_keep_their_distance)
{
	const uint64_t at[] = { 625000, 0 }; /* the first clock, too */

	for (unsigned i = 0; i < G_N_ELEMENTS(at); i++) {
		struct hbm *hbm = one_stack(false);
		uint64_t done[16], t = at[i];

		/* Sixteen banks of one pseudo channel at once: RRD 7 apart. */
		for (unsigned bank = 0; bank < 16; bank++)
			done[bank] = hbm_access(
				hbm, (uint64_t)(bank & 3) << 10 | (uint64_t)(bank >> 2) << 16, 64,
				false, t, NULL);
		EXPECT_GE(done[15] - done[0], 15 * 7 * UINT64_C(625) - 1250);
		EXPECT_LE(done[15] - done[0], 15 * 7 * UINT64_C(625) + 2500);
		hbm_free(hbm);
	}
}

#define NEXT_BANK  (UINT64_C(1) << 16) /* of the same group */
#define NEXT_GROUP (UINT64_C(1) << 10)

/* When the second of two activations may be, by the bank group: tRRD_L and tRRD_S. */
TEST(hbm, activations_of_one_group_are_further_apart)
{
	struct sim_profile profile = stack_profile(false);
	struct hbm *same, *other;
	uint64_t t = 625000, first;

	profile.hbm_clocks.rrd_l = 13;
	same = hbm_new(&profile, NULL);
	other = hbm_new(&profile, NULL);
	first = hbm_access(same, 0, 64, false, t, NULL);
	EXPECT_NEAR(hbm_access(same, NEXT_BANK, 64, false, t, NULL) - first, 13 * 625, 625);
	first = hbm_access(other, 0, 64, false, t, NULL);
	EXPECT_NEAR(hbm_access(other, NEXT_GROUP, 64, false, t, NULL) - first, 7 * 625, 625);
	hbm_free(same);
	hbm_free(other);
}

/* First ready, first come, first served: a hit that comes later goes before a conflict that waits
 * for its bank, and delays it by nothing. Bounds: not once the row is precharged, and not before
 * the queue has taken it in. */
TEST(hbm, later_hit_overtakes_a_waiting_conflict)
{
	struct sim_profile narrow = stack_profile(false);
	struct hbm *alone = one_stack(false), *hbm = one_stack(false), *late = one_stack(false);
	struct hbm *bounded;
	struct sim_counters counters;
	uint64_t t = 625000, conflict, hit, opened;

	(void)hbm_access(alone, 0, 64, false, t, NULL);
	conflict = hbm_access(alone, ROW_STEP, 64, false, t, NULL);
	opened = hbm_access(hbm, 0, 64, false, t, NULL);
	EXPECT_EQ(hbm_access(hbm, ROW_STEP, 64, false, t, NULL), conflict);
	hit = hbm_access(hbm, 4096, 64, false, t, NULL);
	EXPECT_LE(hit, opened + 8 * 625); /* two bursts, tCCD_L apart */
	hbm_get_counters(hbm, &counters);
	EXPECT_EQ(counters.hbm_row_misses, 2u);

	(void)hbm_access(late, 0, 64, false, t, NULL);
	(void)hbm_access(late, ROW_STEP, 64, false, t, NULL);
	EXPECT_GT(hbm_access(late, 4096, 64, false, t + 60 * 625, NULL), conflict);

	narrow.hbm_queue = 2;
	bounded = hbm_new(&narrow, NULL);
	(void)hbm_access(bounded, 0, 64, false, t, NULL);
	(void)hbm_access(bounded, ROW_STEP, 64, false, t, NULL);
	EXPECT_GT(hbm_access(bounded, 4096, 64, false, t, NULL), conflict);
	hbm_free(alone);
	hbm_free(hbm);
	hbm_free(late);
	hbm_free(bounded);
}

/* Refresh of one bank: that bank waits for tRFCsb, with tRTP and tRP before it; another does not.
 */
TEST(hbm, refresh_of_one_bank_leaves_the_others_alone)
{
	struct sim_profile profile = stack_profile(true);
	struct hbm *hbm;
	uint64_t period = 16 * 390, length = 320 + 8 + 23, t = (period + 10) * 625;

	profile.hbm_refresh_per_bank = true;
	hbm = hbm_new(&profile, NULL);
	EXPECT_NEAR(hbm_access(hbm, 0, 64, false, t, NULL), (period + length + 53) * 625, 1250);
	EXPECT_NEAR(hbm_access(hbm, NEXT_GROUP | NEXT_BANK, 64, false, t, NULL), t + 53 * 625,
		    1250);
	hbm_free(hbm);
}

/* After 2^32 refreshes, 4.7 hours, times are as at the beginning. */
TEST(hbm, counts_refreshes_without_end)
{
	struct sim_profile profile = stack_profile(true);
	uint64_t interval = profile.hbm_clocks.refi * profile.hbm_tck_ps;
	uint64_t start = 3 * interval, later = interval << 32, t = 0, done;
	struct hbm *early = hbm_new(&profile, NULL), *late = hbm_new(&profile, NULL);

	for (unsigned r = 0; r < 1000; r++, t = done) {
		done = hbm_access(early, request("rand", r), 64, false, start + t, NULL) - start;
		ASSERT_EQ(hbm_access(late, request("rand", r), 64, false, later + start + t, NULL),
			  later + start + done);
	}
	hbm_free(early);
	hbm_free(late);
}

/* The shortest interval that a profile may have leaves room for a CAS, wherever the slots of the
 * bus lie. */
TEST(hbm, shortest_refresh_interval_serves_requests)
{
	for (unsigned i = 0; i < 64; i++) {
		struct sim_profile profile = stack_profile(true);
		struct hbm *hbm;
		uint64_t t = 0, done;

		profile.hbm_refresh_per_bank = i & 1;
		profile.hbm_clocks.ccd_s = 1 + (i >> 1) % 4;
		profile.hbm_clocks.rfc += i >> 3;
		profile.hbm_clocks.rfc_sb += i >> 3;
		for (unsigned interval = 1;; interval++) {
			const char *key = profile.hbm_refresh_per_bank ? "refi_sb" : "refi";
			g_autofree char *set = g_strdup_printf("HBM.%s_tck=%u", key, interval);
			g_autofree char *error = NULL;

			if (sim_profile_set(&profile, (char *[]){ set, NULL }, &error))
				break;
			EXPECT_CONTAINS(error, "a bank's refreshes are ");
		}
		hbm = hbm_new(&profile, NULL);
		for (unsigned r = 0; r < 100; r++, t = done) {
			done = hbm_access(hbm, request("rand", r), 64 << r % 12, r & 1, t, NULL);
			EXPECT_GT(done, t);
		}
		hbm_free(hbm);
	}
}

/* Rows that are handed over together have the times of one request after the other, wherever the
 * model's time began, whatever their length. */
TEST(hbm, rows_together_are_requests_one_by_one)
{
	const uint64_t origin = 77777;
	struct hbm *together = one_stack(true), *alone = one_stack(true);
	struct sim_counters got = { 0 }, want = { 0 };
	uint64_t now = 0;

	for (uint64_t i = 0; i < 2000; i++) {
		struct sim_row row[SIM_ROWS_MAX];
		bool write = i % 3 == 0;
		uint64_t bytes = i % 2 ? 64 : mix(i) % SIM_ROW_BYTES + 1;

		for (unsigned k = 0; k < SIM_ROWS_MAX; k++) {
			uint64_t r = mix(i * SIM_ROWS_MAX + k);

			/* some aligned: plain reads are among them */
			row[k] = (struct sim_row){ .address = SIM_PA(
							   1, r >> 32 & -(i & 32 ? 64u : 1u)),
						   .at_ps = origin + now + r % 1000 };
		}
		hbm_access_rows(together, row, SIM_ROWS_MAX, bytes, write, origin);
		for (unsigned k = 0; k < SIM_ROWS_MAX; k++) {
			uint64_t first, done;

			done = hbm_access(alone, SIM_PA_OFFSET(row[k].address), bytes, write,
					  row[k].at_ps - origin, &first);
			ASSERT_EQ(row[k].done_ps, origin + done);
			ASSERT_EQ(row[k].first_ps, origin + first);
			now = MAX(now + 200000, done) - 200000;
		}
	}
	hbm_get_counters(together, &got);
	hbm_get_counters(alone, &want);
	EXPECT_EQ(memcmp(&got, &want, sizeof(got)), 0);
	hbm_free(together);
	hbm_free(alone);
}

static unsigned commands;

static void count_command(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	(void)command, (void)place, (void)clock;
	commands++;
}

/* Who asks for a record changes no time: the reads that nobody records have code of their own. */
TEST(hbm, record_changes_no_time)
{
	for (unsigned kind = 0; kind < 8; kind++) {
		struct sim_profile profile = stack_profile(kind & 1);
		uint64_t at[64] = { 0 }, size = UINT64_C(1) << (kind & 4 ? 33 : 22), first[2];
		struct hbm *bare, *recorded;

		profile.hbm_refresh_per_bank = kind & 2;
		bare = hbm_new(&profile, NULL);
		hbm_record_next.call = count_command;
		recorded = hbm_new(&profile, NULL);
		hbm_record_next.call = NULL;
		commands = 0;
		for (unsigned i = 0; i < 30000; i++) {
			uint64_t r = mix(i), bytes = 64 << (r & 1),
				 offset = (r >> 8) % size & -bytes;
			uint64_t *t = &at[r >> 1 & 63], now = *t;
			bool write = i % 1000 > 960;

			*t = hbm_access(bare, offset, bytes, write, now, &first[0]);
			ASSERT_EQ(hbm_access(recorded, offset, bytes, write, now, &first[1]), *t);
			ASSERT_EQ(first[1], first[0]);
		}
		EXPECT_GT(commands, 60000);
		hbm_free(bare);
		hbm_free(recorded);
	}
}

static GHashTable *opened; /* places of rows */
static unsigned activations;

static void note_opened(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	guint64 key = (uint64_t)place->pseudo << 48 | (uint64_t)place->bank << 32 | place->row;

	(void)clock;
	if (command != HBM_ACTIVATE)
		return;
	activations++;
	g_hash_table_add(opened, g_memdup2(&key, sizeof(key)));
}

TEST(hbm, record_of_a_large_request_names_each_row)
{
	for (uint64_t bytes = 4096; bytes < 256 << 10; bytes *= 2) { /* less than all rows */
		struct sim_profile profile = stack_profile(true);
		struct sim_counters counters;
		struct hbm *hbm;

		opened = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
		activations = 0;
		hbm_record_next.call = note_opened;
		hbm = hbm_new(&profile, NULL);
		hbm_record_next.call = NULL;
		hbm_access(hbm, bytes, bytes, false, 0, NULL);
		hbm_get_counters(hbm, &counters);
		NOTE("%llu bytes", (unsigned long long)bytes);
		EXPECT_EQ(activations, counters.hbm_row_misses);
		EXPECT_EQ(g_hash_table_size(opened), activations);
		hbm_free(hbm);
		g_hash_table_unref(opened);
	}
}

static bool count_offer(void *offers)
{
	++*(unsigned *)offers;
	return false;
}

/* Who waits for the caller's lock has it within a long access, however few requests that is. */
TEST(hbm, long_access_offers_the_lock)
{
	struct sim_profile profile = stack_profile(true);
	unsigned offers = 0, reading;
	struct sim_lock lock = { .is_awaited = count_offer, .arg = &offers };
	struct hbm *hbm = hbm_new(&profile, &lock);

	hbm_access(hbm, 0, 64, true, 0, NULL);
	EXPECT_EQ(offers, 0);
	for (unsigned i = 0; i < 64; i++)
		hbm_access(hbm, 0, 8 << 10, false, 0, NULL);
	EXPECT_GE(offers, 16);
	reading = offers, offers = 0;
	for (unsigned i = 0; i < 64; i++)
		hbm_access(hbm, 0, 8 << 10, true, 0, NULL);
	EXPECT_GT(offers, reading); /* batches of writes go to the banks meanwhile */
	offers = 0;
	hbm_access(hbm, 32, (8 << 10) - 64, true, 0, NULL); /* in blocks of 4 KiB and less */
	EXPECT_GE(offers, 2);
	hbm_free(hbm);
}

/* So does a block of the L2, where the map makes many pieces of it, or a batch of writes goes to
 * many banks. */
TEST(hbm, block_of_the_l2_offers_the_lock)
{
	struct sim_profile profile = stack_profile(true);
	unsigned offers = 0, reading;
	struct sim_lock lock = { .is_awaited = count_offer, .arg = &offers };
	struct hbm *hbm;
	uint64_t bytes = profile.l2_block_bytes;

	g_strlcpy(profile.hbm_map, "o5 h3 p1 g2 b2 c5 r16", sizeof(profile.hbm_map));
	hbm = hbm_new(&profile, &lock);
	for (unsigned i = 0; i < 64; i++)
		hbm_access(hbm, i * bytes, bytes, false, 0, NULL);
	EXPECT_GE(offers, 64); /* 128 pieces each */
	reading = offers, offers = 0;
	for (unsigned i = 0; i < 64; i++)
		hbm_access(hbm, i * bytes, bytes, true, 0, NULL);
	EXPECT_GT(offers, reading);
	hbm_free(hbm);
}

/* Runs: the same bytes asked for in one go or piece by piece take the same time, to a few per cent.
 */
TEST(hbm, runs_agree_with_their_pieces)
{
	for (unsigned lg2 = 14; lg2 <= 24; lg2++) {
		struct hbm *whole = one_stack(true), *pieces = one_stack(true);
		struct heap heap = { .n = 0 };
		uint64_t bytes = UINT64_C(1) << lg2, now = 0, last = 0, done;
		double run = (double)hbm_access(whole, 0, bytes, false, 0, NULL);
		NOTE("%llu bytes", (unsigned long long)bytes);

		for (uint64_t at = 0; at < bytes; at += 64) {
			if (heap.n == 1024)
				now = later(now, heap_pop(&heap));
			done = hbm_access(pieces, at, 64, false, now, NULL);
			heap_push(&heap, done);
			last = MAX(last, done);
		}
		EXPECT_NEAR(run, last, 0.08 * last);
		hbm_free(whole);
		hbm_free(pieces);
	}
}

TEST(hbm, long_run_is_capped_by_refresh)
{
	struct hbm *hbm = one_stack(true);
	uint64_t done = hbm_access(hbm, 0, UINT64_C(4) << 30, false, 0, NULL);
	double bandwidth = (double)(UINT64_C(4) << 30) / done * 1000;

	EXPECT_NEAR(bandwidth, 409.6 * (1 - 560.0 / 6240), 409.6 * 0.01);
	hbm_free(hbm);
}

/* While one bank is refreshed the others work: the bus can be full. */
TEST(hbm, refresh_of_single_banks_costs_less)
{
	struct sim_profile profile;
	struct hbm *hbm;
	char *error = NULL;
	uint64_t done;

	ASSERT_TRUE(sim_profile_load("Ascend910B1", &profile, &error));
	profile.hbm_refresh_per_bank = true;
	hbm = hbm_new(&profile, NULL);
	done = hbm_access(hbm, 0, UINT64_C(4) << 30, false, 0, NULL);
	EXPECT_GT((double)(UINT64_C(4) << 30) / done * 1000, 0.97 * 1638.4);
	hbm_free(hbm);
}
