/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim bench: runs access patterns on the model's memory system. The model is in a module,
 * bench.so.
 */
#include "npusim.h"

#include <dlfcn.h>

#include "config.h"
#include "show/show.h"
#include "sim/bench/bench.h"

#define AMOUNT_MAX (1ull << 42) /* of bytes, and of accesses */
#define LINE_BYTES (64u << 10)  /* of a file, at most */

/* What --pattern takes beside those of bench.h. */
enum { PUBLISHED = BENCH_TRACE + 1, REMOTE };
static const char *const patterns[] = { "sequential", "random",    "strided", "chase",
					"trace",      "published", "remote",  NULL };
static const char *const operations[] = { "read", "write", "mixed", NULL };
static const char *const pages[] = { "4k", "2m", "1g", NULL };

/* What is asked for and what came of it; the words of its members are those of the options. */
static struct run {
	struct bench_request asked;
	struct bench_result got;
	const char *version, *soc, *pattern, *file, *operation, *page;
	guint64 engines;
} run = { .asked = { .bytes = G_GUINT64_CONSTANT(8) << 30,
		     .access_bytes = 128,
		     .stride = 4096,
		     .accesses = G_MAXUINT64 /* not given */ },
	  .version = NPUSIM_VERSION,
	  .engines = 1 };

static struct {
	char *soc, *json;
	char **set;
	guint pattern, operation, page;
} opt = { .pattern = BENCH_RANDOM, .page = 1 };

#define AMOUNT(name, member, value, help) \
	OPTION_RANGE(name, SIZE, &run.asked.member, 0, AMOUNT_MAX, value, help)

static const struct option options[] = {
	OPTION_WORDS("pattern", &opt.pattern, patterns, "WHAT",
		     "sequential, random, strided, chase (default random); trace: the accesses of "
		     "FILE; published: measured on real devices against the model; remote: of "
		     "that, memory of other servers"),
	OPTION_WORDS("op", &opt.operation, operations, "WHAT", "read, write, mixed (default read)"),
	OPTION_RANGE("engines", NUMBER, &run.engines, 1, G_MAXINT, "N",
		     "cores that run it (default 1)"),
	OPTION_WORDS("page", &opt.page, pages, "SIZE", "4k, 2m, 1g (default 2m)"),
	AMOUNT("size", bytes, "BYTES", "memory that it goes over (default 8g)"),
	AMOUNT("access", access_bytes, "BYTES", "of one access (default 128)"),
	AMOUNT("stride", stride, "BYTES", "between accesses of strided (default 4k)"),
	AMOUNT("count", accesses, "N",
	       "accesses of all engines (default 1000000; of trace: the file's)"),
	AMOUNT("warmup", warmup, "N", "accesses before those that are measured (default 0)"),
	AMOUNT("seed", seed, "N", "of random and chase (default 0)"),
	OPTION("soc", TEXT, &opt.soc, "NAME", "profile, or the file of one (default Ascend910B1)"),
	OPTION("set", TEXTS, &opt.set, "GROUP.KEY=VALUE", "change a value of the profile"),
	OPTION("commands", FILE, &run.asked.commands, "FILE",
	       "write the commands of the HBM, as DRAMsim3 does"),
	OPTION("json", OUTPUT, &opt.json, "FILE", "write the results there too; - instead"),
	{ 0 },
};

/* -1: it is none. */
static int operation_of(const char *word)
{
	static const char *const names[] = { "R", "W", "READ", "WRITE", "LD", "ST" };

	for (guint i = 0; i < G_N_ELEMENTS(names); i++)
		if (g_ascii_strcasecmp(word, names[i]) == 0)
			return i % 2;
	return -1;
}

/* An address alone; with R or W behind it (Ramulator), or READ or WRITE and a clock (DRAMsim3);
 * with LD or ST before it (Ramulator 2), or a clock and read or write (DRAMSys); a count of
 * instructions, an address read, and maybe one written (Ramulator, of a processor). NULL: it is. */
static const char *add_line(GArray *to, guint64 bytes, const char *line)
{
	char word[3][32];
	guint64 number[3] = { 0 };
	gboolean known[3] = { 0 };
	int behind = 0; /* CLOCK: (LENGTH) */
	(void)sscanf(line, " %*[0-9]: %n(%*[0-9]) %n", &behind, &behind);
	int words = sscanf(line + behind, behind ? "%31s %31s" : "%31s %31s %31s", word[0], word[1],
			   word[2]);

	if (words < 1 || word[0][0] == '#')
		return NULL;
	for (int i = 0; i < words; i++)
		known[i] = number_parse(word[i], G_MAXUINT64, &number[i]);
	int operation = operation_of(word[known[0] && words > 1]);
	int at = !known[0] || (words > 1 && operation < 0);  /* of the address */
	gboolean writes = known[0] && at == 1 && words == 3; /* to one more, behind it */
	gboolean ends = words == 1 + (at == 1 || operation >= 0) || known[words - 1];
	if (!known[at] || (!known[0] && operation < 0) || !ends)
		return "is no access: ADDRESS, ADDRESS R|W, ADDRESS READ|WRITE CLOCK, LD|ST "
		       "ADDRESS, CLOCK: read|write ADDRESS or COUNT ADDRESS [ADDRESS] is wanted";
	/* packed, an address lacks its highest bit */
	if (number[at] >= bytes || (writes && number[2] >= bytes))
		return npu_text("is beyond the memory: give a --size above " U64 " bytes", bytes);
	const guint64 accesses[] = { BENCH_ACCESS(number[at], operation > 0),
				     BENCH_ACCESS(number[2], TRUE) };
	g_array_append_vals(to, accesses, 1 + (guint)writes);
	return NULL;
}

static gboolean read_accesses(const char *path, guint64 bytes, GArray *to, GError **error)
{
	struct input *input = input_open(path, error);
	struct input_line line;
	const char *wrong = NULL;
	int more = -1;

	while (input && !wrong && (more = input_line(input, LINE_BYTES, &line, error)) > 0)
		wrong = add_line(to, bytes, line.text);
	if (wrong)
		refuse_option(error, "%s:" U64 ": \"%.40s\" %s", path, line.number, line.text,
			      wrong);
	else if (more == 0 && to->len == 0)
		refuse_option(error, "%s has no access", path);
	else if (more < 0 && (*error)->domain == TRACE_ERROR)
		g_prefix_error(error, "%s: ", path);
	input_close(input);
	return more == 0 && to->len > 0;
}

static void *load_module(const char *function, GError **error)
{
	g_autofree char *path = part_file("bench.so", error);
	void *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	void *found = module ? dlsym(module, function) : NULL;

	if (path && found == NULL)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", dlerror());
	return found;
}

static double part(uint64_t of, uint64_t all)
{
	return all ? 100.0 * (double)of / (double)all : 0;
}

/* GB/s */
static double rate(uint64_t bytes, uint64_t ps)
{
	return ps ? (double)bytes * 1000 / (double)ps : 0;
}

static void print_result(const struct bench_request *asked, const struct bench_result *r)
{
	const struct sim_counters *c = &r->counters;
	double walk_ns = c->walks ? (double)c->walk_ps / (double)c->walks / 1000 : 0;

	if (asked->warmup > 0)
		g_print("warm-up          %s in %.3f us, not counted below\n",
			npu_counted(asked->warmup, "access"), (double)r->warmup_ps / 1e6);
	g_print("accesses         " U64 ", " U64 " bytes in %.3f us\n", r->accesses, r->bytes,
		(double)r->ps / 1e6);
	g_print("bandwidth        %.2f GB/s\n", rate(r->bytes, r->ps));
	g_print("latency          min %.1f  mean %.1f  p50 %.1f  p90 %.1f  p99 %.1f  max %.1f ns\n",
		(double)r->min_ps / 1e3, (double)r->mean_ps / 1e3, (double)r->p50_ps / 1e3,
		(double)r->p90_ps / 1e3, (double)r->p99_ps / 1e3, (double)r->max_ps / 1e3);
	g_print("TLB Hit Rate     %.2f %% (L1 %.2f %%, L2 %.2f %%)\n",
		part(c->tlb_l1_hits + c->tlb_l2_hits, c->tlb_requests),
		part(c->tlb_l1_hits, c->tlb_requests), part(c->tlb_l2_hits, c->tlb_requests));
	g_print("TLB Miss Rate    %.2f %%\n", part(c->tlb_misses, c->tlb_requests));
	g_print("walks            " U64 ", %.1f ns each, walk cache hit %.2f %%\n", c->walks,
		walk_ns, part(c->walk_cache_hits, c->walks));
	g_print("TLB reach        %s of " U64 " entries\n", npu_size_words(c->tlb_live_bytes),
		c->tlb_l2_entries);
	g_print("L2 hits          %.2f %% of reads, %.2f %% of writes, %.2f %% of walks, %s\n",
		part(c->l2_read_hits, c->l2_reads), part(c->l2_write_hits, c->l2_writes),
		part(c->l2_walk_hits, c->l2_walk_reads), npu_counted(c->l2_conflicts, "conflict"));
	g_print("HBM row hits     %.2f %% of requests, %.2f %% of bursts, " U64 " bytes read, " U64
		" written\n",
		part(c->hbm_row_hits, c->hbm_row_hits + c->hbm_row_misses),
		part(c->hbm_bursts - c->hbm_row_misses, c->hbm_bursts), c->hbm_read_bytes,
		c->hbm_write_bytes);
}

READ(double, rate_of_result, run, r, rate(r->got.bytes, r->got.ps))

/* Each key that is not as in the built-in profile of that name, "Group.key=value"; of a name that
 * is not built in, all keys. */
static void build_changed(JsonBuilder *b, gconstpointer at)
{
	const struct sim_profile *profile = ((const struct run *)at)->asked.profile;
	g_autofree struct sim_profile *plain = g_new0(struct sim_profile, 1);
	g_autofree char *text = sim_profile_dump(profile), *problem = NULL;
	g_autofree char *plain_text = sim_profile_load(profile->soc_name, plain, &problem)
					      ? sim_profile_dump(plain)
					      : g_strdup("");
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	g_auto(GStrv) plain_lines = g_strsplit(plain_text, "\n", -1);
	guint known = g_strv_length(plain_lines);
	const char *group = "";

	for (guint i = 0; lines[i]; i++) {
		if (lines[i][0] == '[') {
			lines[i][strlen(lines[i]) - 1] = '\0';
			group = lines[i] + 1;
		} else if (lines[i][0] && (i >= known || strcmp(lines[i], plain_lines[i]) != 0)) {
			json_builder_add_string_value(b, npu_text("%s.%s", group, lines[i]));
		}
	}
}

#define FIGURES(X)                                                                               \
	X(accesses), X(bytes), X(ps), X(warmup_ps), X(min_ps), X(mean_ps), X(p50_ps), X(p90_ps), \
		X(p99_ps), X(max_ps)
#define COUNTERS(X)                                                                                \
	X(tlb_requests), X(tlb_l1_hits), X(tlb_l2_hits), X(tlb_misses), X(walks), X(walk_levels),  \
		X(walk_cache_hits), X(walk_ps), X(tlb_l2_entries), X(tlb_live_bytes), X(l2_reads), \
		X(l2_read_hits), X(l2_writes), X(l2_write_hits), X(l2_walk_reads),                 \
		X(l2_walk_hits), X(l2_conflicts), X(hbm_read_bytes), X(hbm_write_bytes),           \
		X(hbm_row_hits), X(hbm_row_misses), X(hbm_bursts), X(hbm_refreshes)

/* Members of a result, in their order; the page has them, too. */
static const struct member members[] = {
	{ "version", MEMBER_TEXT, AT(run, version) },
	{ "soc", MEMBER_TEXT, AT(run, soc) },
	{ "changed", MEMBER_LIST, .build = build_changed },
	{ "pattern", MEMBER_TEXT, AT(run, pattern) },
	{ "file", MEMBER_TEXT, AT(run, file) },
	{ "op", MEMBER_TEXT, AT(run, operation) },
	{ "page", MEMBER_TEXT, AT(run, page) },
	{ "size", MEMBER_COUNT, AT(run, asked.bytes) },
	{ "access", MEMBER_COUNT, AT(run, asked.access_bytes) },
	{ "stride", MEMBER_COUNT, AT(run, asked.stride) },
	{ "count", MEMBER_COUNT, AT(run, asked.accesses) },
	{ "warmup", MEMBER_COUNT, AT(run, asked.warmup) },
	{ "engines", MEMBER_COUNT, AT(run, engines) },
	{ "seed", MEMBER_COUNT, AT(run, asked.seed) },
	{ "gb_s", MEMBER_REAL, .real = rate_of_result },
#define COUNTED(title, place)                       \
	{                                           \
		title, MEMBER_COUNT, AT(run, place) \
	}
#define FIGURE(member)  COUNTED(#member, got.member)
#define COUNTER(member) COUNTED(#member, got.counters.member)
	FIGURES(FIGURE),
	COUNTERS(COUNTER),
	{ "cores_bytes_per_us", MEMBER_COUNT, AT(run, got.flow[BENCH_CORES].bytes_per_us) },
	{ "l2_bytes_per_us", MEMBER_COUNT, AT(run, got.flow[BENCH_L2].bytes_per_us) },
	{ "hbm_bytes_per_us", MEMBER_COUNT, AT(run, got.flow[BENCH_HBM].bytes_per_us) },
	{ 0 },
};

static gboolean run_bench(const char *file, JsonBuilder *json, GError **error)
{
	static const char *const stages[] = { "cores ask", "L2 moves", "HBM moves" };
	struct bench_request *r = &run.asked;
	g_autoptr(GArray) accesses = g_array_new(FALSE, FALSE, sizeof(guint64));
	g_autofree char *problem = NULL;
	struct progress bar;

	run.pattern = patterns[opt.pattern];
	run.file = file ? g_filename_display_name(file) : "";
	run.operation = file ? "traced" : operations[opt.operation];
	run.page = pages[opt.page];
	r->pattern = (enum bench_pattern)opt.pattern;
	r->operation = (enum bench_operation)opt.operation;
	r->engines = (unsigned)run.engines;
	r->page_lg2 = 12 + 9 * opt.page;
	if (r->pattern == BENCH_TRACE && file == NULL)
		return refuse_option(error, "--pattern=trace: which file?");
	if (r->pattern != BENCH_TRACE && file)
		return refuse_option(error, "--pattern=%s takes no file '%s'", run.pattern, file);
	if (file && !read_accesses(file, r->bytes, accesses, error))
		return FALSE;
	r->traced = (const uint64_t *)(void *)accesses->data;
	r->traced_count = accesses->len;
	if (r->accesses == G_MAXUINT64)
		r->accesses = file ? r->traced_count : 1000000;
	bench_run_fn model = (bench_run_fn)load_module("npusim_bench_run", error);

	if (model == NULL)
		return FALSE;
	progress_start(&bar, "accesses", r->warmup + r->accesses);
	r->progress = progress_step;
	r->data = &bar;
	enum bench_status status = model(r, &run.got, &problem);
	progress_end(&bar);
	if (status == BENCH_BAD_REQUEST)
		return refuse_option(error, "%s", problem);
	if (status != BENCH_OK)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", problem);
	for (guint i = 0; i < BENCH_STAGES; i++)
		/* above what a stage can let pass the model is wrong, and so is what it says */
		if (run.got.flow[i].over)
			failure("the %s for %.2f GB/s, and the profile lets it have %.2f: this is "
				"an error of the model, please report it",
				stages[i], rate(run.got.flow[i].bytes, run.got.ps),
				(double)run.got.flow[i].bytes_per_us / 1000);
	if (g_strcmp0(opt.json, "-") != 0)
		print_result(r, &run.got);
	members_build_object(json, members, &run);
	return TRUE;
}

#define PUBLISHED_MAX 128

READ(double, ratio_of_row, bench_published, r, r->measured / r->modelled)
READ(gboolean, has_model, bench_published, r, r->modelled > 0)

static const struct member published_members[] = {
	{ "soc", MEMBER_TEXT, AT(bench_published, soc) },
	{ "what", MEMBER_TEXT, AT(bench_published, what) },
	{ "unit", MEMBER_TEXT, AT(bench_published, unit) },
	{ "measured", MEMBER_REAL, AT(bench_published, measured) },
	{ "modelled", MEMBER_REAL, AT(bench_published, modelled), .has = has_model },
	{ "ratio", MEMBER_REAL, .real = ratio_of_row, .has = has_model },
	{ "expected", MEMBER_REAL, AT(bench_published, expected), .has = has_model },
	{ "source", MEMBER_TEXT, AT(bench_published, source) },
	{ "note", MEMBER_TEXT, AT(bench_published, note) },
	{ 0 },
};

static gboolean run_published(JsonBuilder *json, GError **error)
{
	g_autofree char *problem = NULL;
	struct bench_published rows[PUBLISHED_MAX];
	gboolean quiet = g_strcmp0(opt.json, "-") == 0;
	bench_published_fn published =
		(bench_published_fn)load_module("npusim_bench_published", error);
	guint count = published ? published(rows, PUBLISHED_MAX, &problem) : 0;

	if (count == 0)
		return published && refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", problem);
	if (!quiet)
		g_print("%-14s %-38s %10s %10s %-4s %6s\n", "", "", "measured", "modelled", "",
			"ratio");
	for (const struct bench_published *r = rows; r < rows + MIN(count, PUBLISHED_MAX); r++) {
		if (opt.pattern == REMOTE && !r->remote)
			continue;
		members_build_object(json, published_members, r);
		if (quiet)
			continue;
		g_print("%-14s %-38s %10.1f ", r->soc, r->what, r->measured);
		if (r->modelled > 0)
			g_print("%10.1f %-4s %6.2f  %s\n", r->modelled, r->unit,
				r->measured / r->modelled, r->note);
		else
			g_print("%10s %-4s %6s  %s\n", "-", r->unit, "-", r->note);
	}
	return TRUE;
}

static int bench(char **words, GError **error)
{
	struct sim_profile profile;
	g_autofree char *why = NULL;
	g_autoptr(JsonBuilder) json = json_builder_new();
	gboolean is_pattern = opt.pattern < PUBLISHED;

	if (is_pattern && !sim_profile_load(opt.soc ? opt.soc : "Ascend910B1", &profile, &why))
		return refuse_option(error, "--soc: %s", why);
	if (is_pattern && opt.set && !sim_profile_set(&profile, opt.set, &why))
		return refuse_option(error, "--set: %s", why);
	run.asked.profile = &profile;
	run.soc = profile.soc_name;
	json_builder_begin_array(json);
	gboolean good = is_pattern ? run_bench(*words, json, error) : run_published(json, error);
	json_builder_end_array(json);
	good = good && (opt.json == NULL || json_write(opt.json, json, error));
	return good ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
}

VERB(bench, "run access patterns on the model's memory system", "[FILE]",
     "Runs an access pattern on the model's memory system, and shows bandwidth, latency, and hits "
     "of TLBs, L2 and rows in simulated time.",
     0, 1, 0, options, bench);
