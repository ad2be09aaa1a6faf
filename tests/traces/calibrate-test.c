/* SPDX-License-Identifier: Apache-2.0
 *
 * The fit of npusim check --calibrate, over times made from a profile, exact and with noise: what
 * it finds is the profile's, and its intervals hold that in at least the share of seeds that they
 * promise: of a value that is found in fewer than half of the seeds, as far as those can tell.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "harness/test.h"
#include "sim/mmu/tlb.h"
#include "sim/profile.h"

#define SEEDS    200
#define ROWS_MAX 4000

#define PASS_NS 3800. /* of a pass of rows, and of each row with no miss, on the model */
#define ROW_NS  1293.
#define WALK_NS 145.

static struct sim_profile truth;
static GKeyFile *truth_keys;

SETUP(calibrate)
{
	ASSERT_TRUE(sim_profile_load("Ascend910B1", &truth, NULL));
	g_autofree char *dump = sim_profile_dump(&truth);

	g_clear_pointer(&truth_keys, g_key_file_unref);
	truth_keys = g_key_file_new();
	g_key_file_load_from_data(truth_keys, dump, strlen(dump), G_KEY_FILE_NONE, NULL);
}

struct source {
	GRand *random;
	double noise; /* relative, of the median */
	GArray *samples;
};

static double normal(GRand *random)
{
	return sqrt(-2 * log(1 - g_rand_double(random))) * cos(2 * G_PI * g_rand_double(random));
}

static void add(struct source *source, const char *what, guint64 bytes, unsigned lg2, int rounds,
		double ns)
{
	for (int i = 0; i < rounds; i++) {
		struct sim_sample sample = { what, bytes, lg2, FALSE, ns };

		if (source->noise > 0)
			sample.ns *= exp(source->noise * normal(source->random));
		g_array_append_val(source->samples, sample);
	}
}

/* As measure.c goes over sizes. */
static void add_calls(struct source *source)
{
	static const char *const names[] = {
		[SIM_CALL_RESERVE] = "reserve", [SIM_CALL_ADDRESS_FREE] = "address_free",
		[SIM_CALL_CREATE] = "create",   [SIM_CALL_RELEASE] = "release",
		[SIM_CALL_MAP] = "map",         [SIM_CALL_UNMAP] = "unmap",
		[SIM_CALL_ACCESS] = "access",   [SIM_CALL_EXPORT] = "export",
		[SIM_CALL_IMPORT] = "import",   [SIM_CALL_ALLOC] = "alloc",
		[SIM_CALL_FREE] = "free",       [SIM_CALL_QUERY] = "query",
	};

	const double query = (double)truth.call[SIM_CALL_QUERY].base_ns;

	for (int call = 0; call < SIM_CALL_SUBMIT; call++) {
		bool plain = call == SIM_CALL_RESERVE || call == SIM_CALL_ADDRESS_FREE;

		for (unsigned lg2 = 21; lg2 <= 30; lg2 += 9)
			for (guint64 bytes = G_GUINT64_CONSTANT(1) << lg2; bytes >> 32 <= 1;
			     bytes *= 2)
				add(source, names[call], bytes, lg2, 21,
				    (double)sim_call_ps(&truth, (enum sim_call)call,
							bytes >> (plain ? 21 : lg2),
							plain ? 21 : lg2) /
						    1e3 +
					    (call == SIM_CALL_IMPORT ? query : 0));
	}
	add(source, "submit", 0, 21, 21, (double)truth.call[SIM_CALL_SUBMIT].base_ns + 2 * query);
	add(source, "stream", 0, 21, 21, (double)truth.call[SIM_CALL_STREAM].base_ns + 3 * query);
}

static void add_copies(struct source *source)
{
	for (guint64 bytes = 4096; bytes <= G_GUINT64_CONSTANT(64) << 20; bytes *= 4) {
		double size = (double)bytes * 1e3;

		add(source, "h2d", bytes, 21, 21, 6100 + size / (double)truth.h2d_bytes_per_us);
		add(source, "d2h", bytes, 21, 21, 6200 + size / (double)truth.d2h_bytes_per_us);
		add(source, "peer_write", bytes, 21, 21,
		    6200 + size / (double)truth.peer_write_bytes_per_us);
	}
}

static double miss_of(struct tlb *tlb, guint64 page)
{
	guint64 evicted, key = tlb_key(tlb_key_base(0), page << 21, 1);

	if (tlb_find_va(tlb, tlb_key_base(0), page << 21))
		return 0;
	tlb_insert(tlb, key, &evicted, NULL);
	return 1;
}

/* What a second pass over so many pages takes, by the model's own TLBs. */
static double pass_ns(guint64 rows)
{
	static double known[ROWS_MAX + 1]; /* each seed asks the same */
	struct tlb l1, l2;
	double ns = 0;

	if (known[rows] > 0)
		return known[rows];
	tlb_init(&l1, truth.tlb_l1_entries, truth.tlb_l1_entries);
	tlb_init(&l2, truth.tlb_l2_entries, truth.tlb_l2_ways);
	for (int pass = 0; pass < 2; pass++) {
		ns = PASS_NS;
		for (guint64 row = 0; row < rows; row++) {
			ns += ROW_NS;
			if (miss_of(&l1, row) > 0)
				ns += (double)truth.tlb_l2_ps / 1e3 + WALK_NS * miss_of(&l2, row);
			if (miss_of(&l1, 1 << 20) > 0) /* where the row goes */
				miss_of(&l2, 1 << 20);
		}
	}
	tlb_clear(&l1);
	tlb_clear(&l2);
	known[rows] = ns;
	return ns;
}

static void add_rows(struct source *source)
{
	for (guint64 rows = 1; rows <= ROWS_MAX; rows += MAX(rows / 20, 1)) {
		add(source, "rows", rows << 21, 21, 5, pass_ns(rows));
		add(source, "rows", rows << 21, 30, 5, PASS_NS + ROW_NS * (double)rows);
	}
}

struct value {
	char key[48];
	double best, low, high;
	bool known;
};

/* The lines of the report. */
static GArray *found(struct source *source, void (*make)(struct source *source), guint32 seed)
{
	GArray *values = g_array_new(FALSE, FALSE, sizeof(struct value));
	g_autoptr(GString) profile = g_string_new(NULL), report = g_string_new(NULL);

	source->random = g_rand_new_with_seed(seed);
	source->samples = g_array_new(FALSE, FALSE, sizeof(struct sim_sample));
	make(source);
	g_autoptr(GArray) figures = sim_figures(source->samples);
	EXPECT_TRUE(sim_fit("Ascend910B1", "a test", figures, profile, report, NULL));
	g_auto(GStrv) lines = g_strsplit(report->str, "\n", -1);
	for (char **line = lines; *line; line++) {
		struct value value = { .known = false };
		int fields = sscanf(*line, "%47s %*s %lf %lf to %lf", value.key, &value.best,
				    &value.low, &value.high);

		value.known = fields == 4;
		if (value.known || g_str_has_suffix(*line, "not identifiable"))
			g_array_append_val(values, value);
	}
	g_array_unref(source->samples);
	g_rand_free(source->random);
	return values;
}

static const struct value *value_of(const GArray *values, const char *key)
{
	for (guint i = 0; i < values->len; i++)
		if (strcmp(g_array_index(values, struct value, i).key, key) == 0)
			return &g_array_index(values, struct value, i);
	return NULL;
}

/* NAN: no key of the profile, nor of translation. Of one level that is seen: that which is nearer.
 */
static double truth_of(const struct value *value, const GArray *values)
{
	g_auto(GStrv) words = g_strsplit(value->key, ".", 2);
	g_autoptr(GError) error = NULL;
	bool last = value_of(values, "Measured.sdma_reach_pages")->best > 300;

	double number = g_key_file_get_double(truth_keys, words[0], words[1], &error);
	if (!error)
		return number;
	if (strcmp(words[1], "sdma_reach_pages") == 0)
		return last ? truth.tlb_l2_entries : truth.tlb_l1_entries;
	if (strcmp(words[1], "sdma_miss_ns") == 0)
		return last ? WALK_NS : (double)truth.tlb_l2_ps / 1e3;
	return strcmp(words[1], "sdma_walk_ns") == 0 ? WALK_NS : NAN;
}

static void make_all(struct source *source)
{
	add_calls(source);
	add_copies(source);
	add_rows(source);
}

TEST(calibrate, finds_the_profile_in_exact_times)
{
	struct source source = { .noise = 0 };
	g_autoptr(GArray) values = found(&source, make_all, 1);
	unsigned known = 0;

	for (guint i = 0; i < values->len; i++) {
		const struct value *value = &g_array_index(values, struct value, i);
		double want = truth_of(value, values);

		NOTE("%s: %g in %g to %g, of %g", value->key, value->best, value->low, value->high,
		     want);
		if (!value->known || isnan(want))
			continue;
		known++;
		EXPECT_LE(fabs(value->best - want), 0.05 * want + 0.5);
		EXPECT_LE(value->low, want + 0.5);
		EXPECT_GE(value->high, want - 0.5);
	}
	EXPECT_GE(known, 40);
	EXPECT_TRUE(value_of(values, "MMU.tlb_l2_entries")->known);
	EXPECT_TRUE(value_of(values, "MMU.tlb_l2_ps")->known);
	EXPECT_FALSE(value_of(values, "MMU.walkers")->known);
}

/* How often each key's interval held its truth, of how often there was one. */
static void count(const GArray *values, GHashTable *held, GHashTable *given)
{
	for (guint i = 0; i < values->len; i++) {
		const struct value *value = &g_array_index(values, struct value, i);
		double want = truth_of(value, values);
		char *key = (char *)g_intern_string(value->key);

		if (!value->known || isnan(want))
			continue;
		bool holds = value->low <= want + 0.5 && value->high >= want - 0.5;
		g_hash_table_insert(
			given, key,
			GINT_TO_POINTER(GPOINTER_TO_INT(g_hash_table_lookup(given, key)) + 1));
		g_hash_table_insert(
			held, key,
			GINT_TO_POINTER(GPOINTER_TO_INT(g_hash_table_lookup(held, key)) + holds));
	}
}

/* How likely intervals of 95 % are to miss so often, or more often. */
static double chance(int missed, int of)
{
	double exactly = pow(0.95, of), fewer = 0;

	for (int k = 0; k < missed; k++) {
		fewer += exactly;
		exactly *= 0.05 / 0.95 * (of - k) / (k + 1);
	}
	return 1 - fewer;
}

static void expect_coverage(double noise)
{
	g_autoptr(GHashTable) held = g_hash_table_new(NULL, NULL),
			      given = g_hash_table_new(NULL, NULL);
	GHashTableIter iter;
	gpointer key, times;

	for (guint32 seed = 1; seed <= SEEDS; seed++) {
		struct source source = { .noise = noise };
		g_autoptr(GArray) values = found(&source, make_all, seed);

		count(values, held, given);
	}
	g_hash_table_iter_init(&iter, given);
	while (g_hash_table_iter_next(&iter, &key, &times)) {
		int of = GPOINTER_TO_INT(times),
		    got = GPOINTER_TO_INT(g_hash_table_lookup(held, key));

		g_print("# %.0f %%: %s: %d of %d\n", noise * 100, (char *)key, got, of);
		NOTE("%s: %d of %d", (char *)key, got, of);
		/* The seeds are fixed. A coverage of 92 % would pass in 7 of 100 such sets. Few
		 * seeds tell less: they must not be ones that 95 % would show once in 100 sets. */
		if (of >= SEEDS / 2)
			EXPECT_LE((of - got) * 20, of);
		else
			EXPECT_GE(chance(of - got, of), 0.01);
	}
}

TEST(calibrate, intervals_hold_the_truth_at_10_percent_noise)
{
	expect_coverage(0.1);
}

TEST(calibrate, intervals_hold_the_truth_at_30_percent_noise)
{
	expect_coverage(0.3);
}

#define FEW_SPREAD  1e-3
#define FEW_ONE_NS  1e5 /* of one page, */
#define FEW_MANY_NS 1e6 /* and of 512 */

/* Of one page two times, of 512 one; what is left has one degree of freedom. */
static void make_three(struct source *source)
{
	add(source, "reserve", 2 << 20, 21, 1, FEW_ONE_NS * (1 - FEW_SPREAD));
	add(source, "reserve", 2 << 20, 30, 1, FEW_ONE_NS * (1 + FEW_SPREAD));
	add(source, "reserve", 1 << 30, 21, 1, FEW_MANY_NS);
}

static void make_four(struct source *source)
{
	add(source, "reserve", 2 << 20, 21, 1, FEW_ONE_NS * (1 - FEW_SPREAD));
	add(source, "reserve", 2 << 20, 30, 1, FEW_ONE_NS * (1 + FEW_SPREAD));
	add(source, "reserve", 1 << 30, 21, 1, FEW_MANY_NS * (1 - FEW_SPREAD));
	add(source, "reserve", 1 << 30, 30, 1, FEW_MANY_NS * (1 + FEW_SPREAD));
}

TEST(calibrate, few_times_have_the_interval_of_student)
{
	static const struct {
		void (*make)(struct source *source);
		double t;    /* of tables */
		double many; /* squared errors of the time of 512 pages, in spreads */
	} table[] = { { make_three, 12.706, 2 }, { make_four, 4.303, 1 } };

	for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
		struct source source = { .noise = 0 };
		g_autoptr(GArray) values = found(&source, table[i].make, 1);
		const struct value *value = value_of(values, "DriverCalls.reserve_page_ns");
		double want = table[i].t * FEW_SPREAD / 511 *
			      sqrt(pow(FEW_ONE_NS, 2) + table[i].many * pow(FEW_MANY_NS, 2));

		ASSERT_TRUE(value->known);
		NOTE("%g in %g to %g, wanted %g to either side", value->best, value->low,
		     value->high, want);
		EXPECT_LE(fabs((value->high - value->low) / 2 / want - 1), 0.01);
	}
}

/* Base and message are told apart by calls of several messages alone, and not with noise: what a
 * call of one takes is right all the same. */
TEST(calibrate, a_call_of_one_message_is_predicted_whatever_a_message_takes)
{
	struct sim_call_cost *map = &truth.call[SIM_CALL_MAP];
	double assumed = (double)map->message_ns;

	map->message_ns *= 3;
	for (guint32 seed = 1; seed <= 20; seed++) {
		struct source source = { .noise = 0.1 };
		g_autoptr(GArray) values = found(&source, add_calls, seed);
		const struct value *base = value_of(values, "DriverCalls.map_base_ns");
		double want = (double)(map->base_ns + map->message_ns);

		NOTE("seed %u: base %g", seed, base->best);
		EXPECT_TRUE(base->known);
		EXPECT_FALSE(value_of(values, "DriverCalls.map_message_ns")->known);
		EXPECT_LE(fabs(base->best + assumed - want), 0.1 * want);
	}
}

static void make_flat(struct source *source)
{
	for (guint64 rows = 1; rows <= ROWS_MAX; rows += MAX(rows / 20, 1)) {
		add(source, "rows", rows << 21, 21, 5, PASS_NS + ROW_NS * (double)rows);
		add(source, "rows", rows << 21, 30, 5, PASS_NS + ROW_NS * (double)rows);
	}
}

TEST(calibrate, a_flat_device_has_no_tlb_to_be_seen)
{
	static const double noises[] = { 0, 0.1, 0.3 };

	for (guint32 seed = 1; seed <= 30; seed++) {
		struct source source = { .noise = noises[seed % 3] };
		g_autoptr(GArray) values = found(&source, make_flat, seed);

		for (guint i = 0; i < values->len; i++) {
			const struct value *value = &g_array_index(values, struct value, i);

			NOTE("seed %u, %s: %g", seed, value->key, value->best);
			if (strcmp(value->key, "Measured.gain_of_1g_pages") != 0)
				EXPECT_FALSE(value->known);
		}
	}
}

TEST(calibrate, what_took_no_time_or_has_no_model_has_no_ratio)
{
	struct source source = { .samples = g_array_new(FALSE, FALSE, sizeof(struct sim_sample)) };
	g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(struct sim_figure));
	g_autoptr(GString) text = g_string_new(NULL);

	add(&source, "map", 1 << 21, 21, 3, 5000);
	add(&source, "query", 0, 21, 3, 0);
	g_autoptr(GArray) figures = sim_figures(source.samples);
	check_figures_text(text, figures, none);
	check_figures_text(text, figures, figures);
	EXPECT_TRUE(strstr(text->str, "nan") == NULL);
	EXPECT_TRUE(strstr(text->str, " -      -\n") != NULL);
	EXPECT_TRUE(strstr(text->str, " 5.000   1.00\n") != NULL);
	g_array_unref(source.samples);
}
