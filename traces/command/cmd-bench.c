/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim bench: runs access patterns on the model's memory system. The model is in a module,
 * bench.so.
 */
#include "npusim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config.h"
#include "format/input.h"
#include "format/out-file.h"
#include "show/member.h"
#include "show/progress.h"
#include "sim/bench/bench.h"

#define AMOUNT_MAX (1ull << 42) /* of bytes, and of accesses */

struct options {
	char *soc, *pattern, *operation, *page, *size, *access, *stride, *count, *warmup, *seed,
		*commands, *json;
	const char *file; /* of the pattern trace */
	int engines;
	char **set;
};

static const char *const patterns[] = { "sequential", "random", "strided", "chase", "trace", NULL };
static const char *const operations[] = { "read", "write", "mixed", NULL };
static const char *const pages[] = { "4k", "2m", "1g", NULL };

static gboolean choose(const char *option, const char *value, const char *const *words, guint *out,
		       GError **error)
{
	g_autofree char *all = g_strjoinv(", ", (char **)words);

	for (*out = 0; words[*out]; ++*out)
		if (g_ascii_strcasecmp(words[*out], value) == 0)
			return TRUE;
	return refuse_option(error, "--%s=%s: must be one of %s", option, value, all);
}

static gboolean parse_amount(const char *option, const char *value, guint64 *out, GError **error)
{
	return (npu_parse_size(value, out) && *out <= AMOUNT_MAX) ||
	       refuse_option(error,
			     "--%s=%s: must be a whole number, with K, M, G or T behind it for "
			     "powers of 1024, at most %lluT",
			     option, value, AMOUNT_MAX >> 40);
}

static gboolean parse_address(const char *word, guint64 *out)
{
	char *end;

	*out = g_ascii_strtoull(word, &end, g_ascii_strncasecmp(word, "0x", 2) == 0 ? 16 : 10);
	return end != word && *end == '\0';
}

/* -1: it is none. */
static int operation_of(const char *word)
{
	static const char *const names[] = { "R", "W", "READ", "WRITE", "LD", "ST" };

	for (guint i = 0; i < G_N_ELEMENTS(names); i++)
		if (g_ascii_strcasecmp(word, names[i]) == 0)
			return i % 2;
	return -1;
}

/* What a file's lines are read into. */
struct accesses {
	GArray *packed;
	guint64 bytes;   /* of memory */
	gboolean beyond; /* an address is not in it */
};

static void add_access(struct accesses *to, guint64 address, int write)
{
	guint64 access = BENCH_ACCESS(address, write);

	/* packed, an address lacks its highest bit */
	if (address >= to->bytes)
		to->beyond = TRUE;
	else
		g_array_append_val(to->packed, access);
}

/* An address alone; with R or W behind it (Ramulator), or READ or WRITE and a clock (DRAMsim3);
 * with LD or ST before it (Ramulator 2); a count of instructions, an address that is read, and
 * maybe one that is written (Ramulator's traces of processors). FALSE: none of them. */
static gboolean add_line(struct accesses *to, const char *line)
{
	char word[3][32];
	guint64 first, second, third;
	int words = sscanf(line, "%31s %31s %31s", word[0], word[1], word[2]);

	if (words < 1 || word[0][0] == '#')
		return TRUE;
	gboolean is_number = parse_address(word[0], &first);
	int operation = operation_of(word[is_number && words > 1]);
	if (is_number && (words == 1 || operation >= 0)) {
		add_access(to, first, operation > 0);
		return TRUE;
	}
	if (words == 1 || !parse_address(word[1], &second) || (!is_number && operation < 0) ||
	    (is_number && words == 3 && !parse_address(word[2], &third)))
		return FALSE;
	add_access(to, second, operation > 0);
	if (is_number && words == 3)
		add_access(to, third, TRUE);
	return TRUE;
}

static gboolean read_accesses(const char *path, guint64 bytes, GArray *to, GError **error)
{
	struct input *input = input_keep(path, error) ? input_open(path, error) : NULL;
	g_autoptr(GBytes) whole = input ? input_whole(input, error) : NULL;
	gsize length = 0, number = 0;
	struct accesses accesses = { to, bytes, FALSE };
	const char *text = whole ? g_bytes_get_data(whole, &length) : NULL;

	if (input)
		input_close(input);
	for (gsize at = 0; at < length;) {
		const char *end = memchr(text + at, '\n', length - at);
		gsize line_length = end ? (gsize)(end - text) - at : length - at;
		g_autofree char *line = g_strndup(text + at, line_length);

		number++;
		at += line_length + 1;
		if (!add_line(&accesses, line))
			return refuse_option(error,
					     "%s:%" G_GSIZE_FORMAT
					     ": \"%.40s\" is no access: ADDRESS, "
					     "ADDRESS R|W, ADDRESS READ|WRITE CLOCK, LD|ST ADDRESS "
					     "or COUNT ADDRESS [ADDRESS] is wanted",
					     path, number, line);
		if (accesses.beyond)
			return refuse_option(error,
					     "%s:%" G_GSIZE_FORMAT
					     ": \"%.40s\" is beyond the memory: "
					     "give a --size above %" G_GUINT64_FORMAT " bytes",
					     path, number, line, bytes);
	}
	if (whole && to->len == 0)
		return refuse_option(error, "%s has no access", path);
	return whole != NULL;
}

static gboolean get_request(const struct options *o, struct bench_request *r, GArray *accesses,
			    GError **error)
{
	guint pattern, operation, page;

	if (!choose("pattern", o->pattern ? o->pattern : "random", patterns, &pattern, error) ||
	    !choose("op", o->operation ? o->operation : "read", operations, &operation, error) ||
	    !choose("page", o->page ? o->page : "2m", pages, &page, error) ||
	    !parse_amount("size", o->size ? o->size : "8g", &r->bytes, error) ||
	    !parse_amount("access", o->access ? o->access : "128", &r->access_bytes, error) ||
	    !parse_amount("stride", o->stride ? o->stride : "4k", &r->stride, error) ||
	    !parse_amount("count", o->count ? o->count : "1000000", &r->accesses, error) ||
	    !parse_amount("warmup", o->warmup ? o->warmup : "0", &r->warmup, error) ||
	    !parse_amount("seed", o->seed ? o->seed : "0", &r->seed, error))
		return FALSE;
	r->pattern = (enum bench_pattern)pattern;
	r->operation = (enum bench_operation)operation;
	r->page_lg2 = 12 + 9 * page;
	r->engines = (unsigned)o->engines;
	r->commands = o->commands;
	if ((r->pattern == BENCH_TRACE) != (o->file != NULL))
		return o->file ? refuse_option(error, "no argument is expected, but '%s' is there",
					       o->file)
			       : refuse_option(error, "--pattern=trace: which file?");
	if (r->pattern != BENCH_TRACE)
		return TRUE;
	if (!read_accesses(o->file, r->bytes, accesses, error))
		return FALSE;
	r->traced = (const uint64_t *)(void *)accesses->data;
	r->traced_count = accesses->len;
	if (!o->count)
		r->accesses = r->traced_count;
	return TRUE;
}

static gboolean load_profile(const struct options *o, struct sim_profile *profile, GError **error)
{
	g_autofree char *why = NULL;

	if (!sim_profile_load(o->soc ? o->soc : "Ascend910B1", profile, &why))
		return refuse_option(error, "--soc: %s", why);
	return o->set == NULL || sim_profile_set(profile, o->set, &why) ||
	       refuse_option(error, "--set: %s", why);
}

static void *load_module(const char *function, GError **error)
{
	g_autofree char *path = part_file(PART_BENCH, error);
	void *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	void *found = module ? dlsym(module, function) : NULL;

	if (path && found == NULL)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", dlerror());
	return found;
}

/* --- results --- */

static double part(uint64_t of, uint64_t all)
{
	return all ? 100.0 * (double)of / (double)all : 0;
}

static double rate(const struct bench_result *r)
{
	return r->ps ? (double)r->bytes * 1000 / (double)r->ps : 0;
}

/* Above what a stage can let pass the model is wrong, and so is what it says. */
static void warn_over(const struct bench_result *r)
{
	static const char *const stages[] = { "cores ask", "L2 moves", "HBM moves" };

	for (guint i = 0; i < BENCH_STAGES; i++)
		if (r->flow[i].over)
			g_printerr("npusim bench: the %s for %.2f GB/s, and the profile lets it "
				   "have %.2f: this is an error of the model, please report it\n",
				   stages[i],
				   r->ps ? (double)r->flow[i].bytes * 1000 / (double)r->ps : 0,
				   (double)r->flow[i].bytes_per_us / 1000);
}

static double hit_share(uint64_t hits, uint64_t misses)
{
	return part(hits, hits + misses);
}

static void print_result(const struct bench_request *asked, const struct bench_result *r)
{
	const struct sim_counters *c = &r->counters;
	double walk_ns = c->walks ? (double)c->walk_ps / (double)c->walks / 1000 : 0;

	if (asked->warmup > 0)
		g_print("warm-up          %" G_GUINT64_FORMAT
			" accesses in %.3f us, not counted below\n",
			asked->warmup, (double)r->warmup_ps / 1e6);
	g_print("accesses         %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " bytes in %.3f us\n",
		r->accesses, r->bytes, (double)r->ps / 1e6);
	g_print("bandwidth        %.2f GB/s\n", rate(r));
	g_print("latency          min %.1f  mean %.1f  p50 %.1f  p90 %.1f  p99 %.1f  max %.1f ns\n",
		(double)r->min_ps / 1e3, (double)r->mean_ps / 1e3, (double)r->p50_ps / 1e3,
		(double)r->p90_ps / 1e3, (double)r->p99_ps / 1e3, (double)r->max_ps / 1e3);
	g_print("TLB Hit Rate     %.2f %% (L1 %.2f %%, L2 %.2f %%)\n",
		part(c->tlb_l1_hits + c->tlb_l2_hits, c->tlb_requests),
		part(c->tlb_l1_hits, c->tlb_requests), part(c->tlb_l2_hits, c->tlb_requests));
	g_print("TLB Miss Rate    %.2f %%\n", part(c->tlb_misses, c->tlb_requests));
	g_print("walks            %" G_GUINT64_FORMAT ", %.1f ns each, walk cache hit %.2f %%\n",
		c->walks, walk_ns, part(c->walk_cache_hits, c->walks));
	g_print("TLB reach        %s of %" G_GUINT64_FORMAT " entries\n",
		npu_size_words((gint64)c->tlb_live_bytes), c->tlb_l2_entries);
	g_print("L2 hits          %.2f %% of reads, %.2f %% of writes, %.2f %% of walks, "
		"%" G_GUINT64_FORMAT " conflicts\n",
		part(c->l2_read_hits, c->l2_reads), part(c->l2_write_hits, c->l2_writes),
		part(c->l2_walk_hits, c->l2_walk_reads), c->l2_conflicts);
	g_print("HBM row hits     %.2f %% of requests, %.2f %% of bursts, %" G_GUINT64_FORMAT
		" bytes read, %" G_GUINT64_FORMAT " written\n",
		hit_share(c->hbm_row_hits, c->hbm_row_misses),
		part(c->hbm_bursts - c->hbm_row_misses, c->hbm_bursts), c->hbm_read_bytes,
		c->hbm_write_bytes);
}

READ(double, rate_of_result, bench_result, r, rate(r))

struct asked {
	const struct options *options;
	struct bench_request request;
};

static const struct asked *asked_of(gconstpointer context)
{
	return context;
}

#define ASKED(member) \
	READ(gint64, asked_##member, bench_result, r, (gint64)asked_of(context)->request.member)
#define WORD(name, words, member) \
	READ(char *, name, bench_result, r, g_strdup(words[asked_of(context)->request.member]))

ASKED(bytes)
ASKED(access_bytes)
ASKED(stride)
ASKED(accesses)
ASKED(warmup)
ASKED(engines)
ASKED(seed)
WORD(name_of_pattern, patterns, pattern)
WORD(name_of_operation, operations, operation)
READ(char *, name_of_page, bench_result, r,
     g_strdup(pages[(asked_of(context)->request.page_lg2 - 12) / 9]))
READ(char *, name_of_file, bench_result, r,
     g_strdup(asked_of(context)->options->file ? asked_of(context)->options->file : ""))
READ(char *, name_of_soc, bench_result, r, g_strdup(asked_of(context)->request.profile->soc_name))
READ(char *, version, bench_result, r, g_strdup(NPUSIM_VERSION))

/* Each key that is not as in the built-in profile of that name, "Group.key=value"; of a name that
 * is not built in, all keys. */
static void build_changed(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct sim_profile *profile = asked_of(context)->request.profile;
	g_autofree struct sim_profile *plain = g_new0(struct sim_profile, 1);
	g_autofree char *text = sim_profile_dump(profile), *problem = NULL;
	g_autofree char *plain_text = sim_profile_load(profile->soc_name, plain, &problem)
					      ? sim_profile_dump(plain)
					      : g_strdup("");
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	g_auto(GStrv) plain_lines = g_strsplit(plain_text, "\n", -1);
	guint known = g_strv_length(plain_lines);
	g_autofree char *group = g_strdup("");

	(void)at;
	json_builder_begin_array(b);
	for (guint i = 0; lines[i]; i++) {
		if (lines[i][0] == '[') {
			g_free(group);
			group = g_strndup(lines[i] + 1, strlen(lines[i]) - 2);
		} else if (lines[i][0] && (i >= known || strcmp(lines[i], plain_lines[i]) != 0)) {
			g_autofree char *key = g_strconcat(group, ".", lines[i], NULL);
			json_builder_add_string_value(b, key);
		}
	}
	json_builder_end_array(b);
}

#define FLOW(name, stage)                                                      \
	{                                                                      \
		name, MEMBER_COUNT, AT(bench_result, flow[stage].bytes_per_us) \
	}

#define COUNTER(member)                                                  \
	{                                                                \
#member, MEMBER_COUNT, AT(bench_result, counters.member) \
	}
#define FIGURE(member)                                          \
	{                                                       \
#member, MEMBER_COUNT, AT(bench_result, member) \
	}

/* Members of a result, in their order; the page has them, too. */
static const struct member members[] = {
	{ "version", MEMBER_TEXT, .text = version },
	{ "soc", MEMBER_TEXT, .text = name_of_soc },
	{ "changed", MEMBER_LIST, .build = build_changed },
	{ "pattern", MEMBER_TEXT, .text = name_of_pattern },
	{ "file", MEMBER_TEXT, .text = name_of_file },
	{ "op", MEMBER_TEXT, .text = name_of_operation },
	{ "page", MEMBER_TEXT, .text = name_of_page },
	{ "size", MEMBER_COUNT, .whole = asked_bytes },
	{ "access", MEMBER_COUNT, .whole = asked_access_bytes },
	{ "stride", MEMBER_COUNT, .whole = asked_stride },
	{ "count", MEMBER_COUNT, .whole = asked_accesses },
	{ "warmup", MEMBER_COUNT, .whole = asked_warmup },
	{ "engines", MEMBER_COUNT, .whole = asked_engines },
	{ "seed", MEMBER_COUNT, .whole = asked_seed },
	{ "gb_s", MEMBER_REAL, .real = rate_of_result },
	FIGURE(accesses),
	FIGURE(bytes),
	FIGURE(ps),
	FIGURE(warmup_ps),
	FIGURE(min_ps),
	FIGURE(mean_ps),
	FIGURE(p50_ps),
	FIGURE(p90_ps),
	FIGURE(p99_ps),
	FIGURE(max_ps),
	COUNTER(tlb_requests),
	COUNTER(tlb_l1_hits),
	COUNTER(tlb_l2_hits),
	COUNTER(tlb_misses),
	COUNTER(walks),
	COUNTER(walk_levels),
	COUNTER(walk_cache_hits),
	COUNTER(walk_ps),
	COUNTER(tlb_l2_entries),
	COUNTER(tlb_live_bytes),
	COUNTER(l2_reads),
	COUNTER(l2_read_hits),
	COUNTER(l2_writes),
	COUNTER(l2_write_hits),
	COUNTER(l2_walk_reads),
	COUNTER(l2_walk_hits),
	COUNTER(l2_conflicts),
	COUNTER(hbm_read_bytes),
	COUNTER(hbm_write_bytes),
	COUNTER(hbm_row_hits),
	COUNTER(hbm_row_misses),
	COUNTER(hbm_bursts),
	COUNTER(hbm_refreshes),
	FLOW("cores_bytes_per_us", BENCH_CORES),
	FLOW("l2_bytes_per_us", BENCH_L2),
	FLOW("hbm_bytes_per_us", BENCH_HBM),
	{ 0 },
};

/* --- running --- */

static void on_progress(uint64_t done, void *data)
{
	progress_step(data, done);
}

static int run_bench(const struct options *o, struct asked *asked)
{
	struct bench_request *r = &asked->request;
	g_autoptr(JsonBuilder) json = json_builder_new();
	g_autoptr(GError) error = NULL;
	g_autofree char *problem = NULL;
	struct bench_result result = { 0 };
	struct progress bar;
	bench_run_fn run;

	/* known before what may take long */
	if ((o->json && !out_file_check(o->json, &error)) ||
	    !(run = (bench_run_fn)load_module("npusim_bench_run", &error)))
		return failure("bench", "%s", error->message);
	progress_start(&bar, "accesses", r->warmup + r->accesses);
	r->progress = on_progress;
	r->data = &bar;
	enum bench_status status = run(r, &result, &problem);
	progress_end(&bar);
	if (status == BENCH_BAD_REQUEST)
		return usage_error("bench", "%s", problem);
	if (status != BENCH_OK)
		return failure("bench", "%s", problem);
	warn_over(&result);
	if (g_strcmp0(o->json, "-") != 0)
		print_result(r, &result);
	json_builder_begin_array(json);
	members_build_object(json, members, &result, asked);
	json_builder_end_array(json);
	g_autoptr(JsonNode) root = json_builder_get_root(json);
	return o->json && !json_write(o->json, root, &error) ? failure_of("bench", error)
							     : NPUSIM_EXIT_OK;
}

/* --- published measurements --- */

#define PUBLISHED_MAX 64

READ(double, ratio_of_row, bench_published, r, r->measured / r->modelled)
READ(gboolean, has_model, bench_published, r, r->modelled > 0)
READ(double, measured_of_row, bench_published, r, r->measured)
READ(double, modelled_of_row, bench_published, r, r->modelled)
READ(double, expected_of_row, bench_published, r, r->expected)

static const struct member published_members[] = {
	{ "soc", MEMBER_TEXT, AT(bench_published, soc) },
	{ "what", MEMBER_TEXT, AT(bench_published, what) },
	{ "unit", MEMBER_TEXT, AT(bench_published, unit) },
	{ "measured", MEMBER_REAL, .real = measured_of_row },
	{ "modelled", MEMBER_REAL, .real = modelled_of_row, .has = has_model },
	{ "ratio", MEMBER_REAL, .real = ratio_of_row, .has = has_model },
	{ "expected", MEMBER_REAL, .real = expected_of_row, .has = has_model },
	{ "source", MEMBER_TEXT, AT(bench_published, source) },
	{ "note", MEMBER_TEXT, AT(bench_published, note) },
	{ 0 },
};

/* remote: those of memory of other servers alone. */
static int run_published(const struct options *o, gboolean remote)
{
	g_autoptr(JsonBuilder) json = json_builder_new();
	g_autoptr(GError) error = NULL;
	g_autofree char *problem = NULL;
	struct bench_published rows[PUBLISHED_MAX];
	gboolean quiet = g_strcmp0(o->json, "-") == 0;
	bench_published_fn run = (bench_published_fn)load_module("npusim_bench_published", &error);
	guint count = run ? run(rows, PUBLISHED_MAX, &problem) : 0;

	if (count == 0)
		return failure("bench", "%s", run ? problem : error->message);
	if (!quiet)
		g_print("%-14s %-38s %10s %10s %-4s %6s\n", "", "", "measured", "modelled", "",
			"ratio");
	json_builder_begin_array(json);
	for (const struct bench_published *r = rows; r < rows + MIN(count, PUBLISHED_MAX); r++) {
		if (remote && !r->remote)
			continue;
		members_build_object(json, published_members, r, NULL);
		if (quiet)
			continue;
		g_print("%-14s %-38s %10.1f ", r->soc, r->what, r->measured);
		if (r->modelled > 0)
			g_print("%10.1f %-4s %6.2f  %s\n", r->modelled, r->unit,
				r->measured / r->modelled, r->note);
		else
			g_print("%10s %-4s %6s  %s\n", "-", r->unit, "-", r->note);
	}
	json_builder_end_array(json);
	g_autoptr(JsonNode) root = json_builder_get_root(json);
	if (o->json && !json_write(o->json, root, &error))
		return failure("bench", "%s", error->message);
	return NPUSIM_EXIT_OK;
}

#define TEXT(name, member, help, value)                                 \
	{                                                               \
		name, 0, 0, G_OPTION_ARG_STRING, &o.member, help, value \
	}

int cmd_bench(int argc, char **argv)
{
	struct options o = { .engines = 1 };
	struct asked asked = { .options = &o };
	struct sim_profile profile;
	g_autoptr(GArray) accesses = g_array_new(FALSE, FALSE, sizeof(guint64));
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;
	const GOptionEntry entries[] = {
		TEXT("pattern", pattern,
		     "sequential, random, strided, chase (default random); trace: the accesses of "
		     "FILE; published: measured on real devices against the model; remote: of "
		     "that, "
		     "memory of other servers",
		     "WHAT"),
		TEXT("op", operation, "read, write, mixed (default read)", "WHAT"),
		{ "engines", 0, 0, G_OPTION_ARG_INT, &o.engines, "cores that run it (default 1)",
		  "N" },
		TEXT("page", page, "4k, 2m, 1g (default 2m)", "SIZE"),
		TEXT("size", size, "memory that it goes over (default 8g)", "BYTES"),
		TEXT("access", access, "of one access (default 128)", "BYTES"),
		TEXT("stride", stride, "between accesses of strided (default 4k)", "BYTES"),
		TEXT("count", count,
		     "accesses of all engines (default 1000000; of trace: the file's)", "N"),
		TEXT("warmup", warmup, "accesses before those that are measured (default 0)", "N"),
		TEXT("seed", seed, "of random and chase (default 0)", "N"),
		TEXT("soc", soc, "profile, or the file of one (default Ascend910B1)", "NAME"),
		{ "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.set, "change a value of the profile",
		  "GROUP.KEY=VALUE" },
		TEXT("commands", commands, "write the commands of the HBM, as DRAMsim3 does",
		     "FILE"),
		TEXT("json", json, "write the results there too; - instead", "FILE"),
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};

	if (!parse_options("[FILE]",
			   "Runs an access pattern on the model's memory system, and shows "
			   "bandwidth, latency, and hits of TLBs, L2 and rows in simulated time.",
			   entries, OPTIONS_OWN, &argc, &argv, &status))
		return status;
	asked.request.profile = &profile;
	o.file = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		status =
			usage_error("bench", "no argument is expected, but '%s' is there", argv[2]);
	else if (g_strcmp0(o.pattern, "published") == 0 || g_strcmp0(o.pattern, "remote") == 0)
		status = run_published(&o, g_strcmp0(o.pattern, "remote") == 0);
	else if (o.engines < 1)
		status = usage_error("bench", "--engines=%d: must be at least 1", o.engines);
	else if (!load_profile(&o, &profile, &error) ||
		 !get_request(&o, &asked.request, accesses, &error))
		status = g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE)
				 ? usage_error("bench", "%s", error->message)
				 : failure_of("bench", error);
	else
		status = run_bench(&o, &asked);
	options_clear(entries);
	return status;
}
