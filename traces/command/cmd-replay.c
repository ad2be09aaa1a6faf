/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim replay: reads a trace or a snapshot, replays it on the model, and writes the result.
 */
#include "npusim.h"

#include "show/show.h"

static struct replay_options options;

static gboolean on_progress(guint64 done, gpointer data)
{
	progress_step(done, data);
	return done % 16 != 0 || !interrupted(); /* it looks at stdout, which takes long */
}

enum { PAGE_2M, PAGE_1G, PAGE_OF_POLICY };

/* What of the command line tells of the policy, the accesses, moments and the profile. */
static struct {
	char *json, *access, *profile, *since;
	char **settings, **at;
	guint page, policy;
	int profile_at, profile_since; /* moments */
} opt = { .page = PAGE_OF_POLICY, .profile_since = -1 };

static const char *const pages[] = { "2m", "1g", NULL };
static const struct option options_of_replay[] = {
	OPTION("json", OUTPUT, &opt.json, "FILE", "write the result as JSON to FILE; - is stdout"),
	OPTION("at", TEXTS, &opt.at, "M",
	       "a moment to be looked at beside the peak: end, the number of an event, a time"),
	OPTION_WORDS("policy", &opt.policy, policy_names, "P",
		     "as-recorded, native, caching or expandable: whose memory serves the blocks"),
	OPTION_WORDS("page", &opt.page, pages, "SIZE", "2m or 1g: pages of a policy"),
	OPTION("access", TEXT, &opt.access, "A",
	       "none, seq, random, hot or hot:T/M: what a core reads with each block"),
	OPTION_RANGE("access-reads", NUMBER, &options.access.reads, 1, ACCESS_READS_MAX, "N",
		     "how many places random and hot read each time; 64"),
	OPTION_RANGE("access-every", NUMBER, &options.access.every, 1, ACCESS_EVERY_MAX, "N",
		     "reads after each N events, not with each block"),
	OPTION("no-copies", FLAG, &options.no_copies, NULL, "leaves recorded copies and fills out"),
	OPTION("each-call", FLAG, &options.each, NULL,
	       "--json has each call, and where memory lay on the device"),
	OPTION("profile", OUTPUT, &opt.profile, "FILE",
	       "write what was live at the first --at, by call stack, to FILE: .folded, "
	       ".speedscope.json, .pb.gz (pprof)"),
	OPTION("since", TEXT, &opt.since, "M", "--profile has what grew since the moment M"),
	OPTION("set", TEXTS, &opt.settings, "KEY=VALUE",
	       "an option of the policy, as in PYTORCH_NPU_ALLOC_CONF"),
	{ 0 },
};

/* *out: its number. The peak and the first lack of memory are looked at in any case. */
static gboolean add_moment(const char *option, const char *text, int *out, GError **error)
{
	struct moment m = { .what = MOMENT_EVENT };
	char *end;
	double value = g_ascii_strtod(text, &end);
	double us = strcmp(end, "us") == 0   ? 1
		    : strcmp(end, "ms") == 0 ? 1e3
		    : strcmp(end, "s") == 0  ? 1e6
					     : 0;

	*out = strcmp(text, "oom") == 0 ? MOMENT_OOM : MOMENT_PEAK;
	if (*out == MOMENT_OOM || strcmp(text, "peak") == 0)
		return TRUE;
	if (strcmp(text, "end") == 0)
		m.what = MOMENT_END;
	else if (end != text && us > 0 && value >= 0 && value <= 1e12)
		m = (struct moment){ .what = MOMENT_TIME, .wanted = (guint64)(value * us) };
	else if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &m.wanted, NULL))
		return refuse_option(
			error,
			"%s %s: peak, oom, end, the number of an event or a time such as 1.5ms is "
			"wanted",
			option, text);
	if (options.moment_count == G_N_ELEMENTS(options.moments))
		return refuse_option(error, "%s %s: more than %d moments", option, text,
				     (int)G_N_ELEMENTS(options.moments));
	options.moments[options.moment_count] = m;
	*out = (int)(MOMENT_OOM + 1 + options.moment_count++);
	return TRUE;
}

static gboolean choose(struct policy_options *policy, GError **error)
{
	struct access_options *access = &options.access;
	int moment;

	policy_options_init(policy);
	policy->kind = opt.policy;
	for (guint i = 0; opt.settings && opt.settings[i]; i++)
		if (!policy_options_set(policy, opt.settings[i], error))
			return FALSE;
	if (opt.page != PAGE_OF_POLICY)
		policy->page_1g = opt.page == PAGE_1G;
	if (!policy_options_check(policy, error) ||
	    (opt.access && !access_parse(opt.access, access, error)))
		return FALSE;
	if (access->pattern == ACCESS_NONE && (access->reads || access->every))
		return refuse_option(error, "%s needs --access seq, random or hot",
				     access->reads ? "--access-reads" : "--access-every");
	for (guint i = 0; opt.at && opt.at[i]; i++) {
		if (!add_moment("--at", opt.at[i], &moment, error))
			return FALSE;
		opt.profile_at = i == 0 ? moment : opt.profile_at;
	}
	if (opt.since && opt.profile == NULL)
		return refuse_option(error, "--since %s needs --profile", opt.since);
	return (opt.since == NULL || add_moment("--since", opt.since, &opt.profile_since, error)) &&
	       (opt.profile == NULL || profile_check(opt.profile, error));
}

static int replay_file(const char *path, GError **error)
{
	int status = NPUSIM_EXIT_OK;
	struct trace *trace = trace_open(path, error);
	g_autoptr(JsonBuilder) json = json_builder_new();
	struct progress bar;

	if (trace == NULL)
		return NPUSIM_EXIT_FAILED;
	progress_start(&bar, "events", trace->events);
	options.progress = on_progress;
	options.data = &bar;
	options.frames = opt.json != NULL;
	interrupts_watch(FALSE);
	struct replay *replay = replay_run(trace, &options, error);
	interrupts_leave();
	progress_end(&bar);
	if (replay) {
		const struct result result = { path, trace, replay };

		if (g_strcmp0(opt.json, "-") != 0)
			result_print(stdout, &result);
		if (opt.json)
			members_build_object(json, figures_result, &result);
		if ((!opt.json || json_write(opt.json, json, error)) && opt.profile &&
		    !profile_write(opt.profile, replay, opt.profile_at, opt.profile_since, error) &&
		    (*error)->domain == TRACE_ERROR)
			g_prefix_error(error, "%s: ", path);
		if (replay->interrupted)
			status = interrupt_status();
	} else if (!g_error_matches(*error, MODEL_ERROR, MODEL_ERROR_START)) {
		g_prefix_error(error, "%s: ", path);
	}
	replay_free(replay);
	trace_free(trace);
	return status;
}

static int run(char **words, GError **error)
{
	struct policy_options policy;
	static struct replay_match matches[REPLAY_MATCHES];
	int status = NPUSIM_EXIT_USAGE;

	options.policy = &policy;
	options.matches = matches;
	/* what copies move does not matter, and memory for it may not be there */
	g_setenv("NPUSIM_CONTENTS", "off", FALSE);
	g_setenv("NPUSIM_FAILURES", "off", TRUE); /* the result has them */
	if (choose(&policy, error) && model_options_apply("sim", error))
		status = replay_file(*words, error);
	policy_options_clear(&policy);
	return status;
}

VERB(replay, "replay a memory snapshot or a trace on the model", "FILE",
     "Replays an allocation history on the model, starting from what was live when it "
     "began.\nFILE, plain or .gz: a memory snapshot of PyTorch or torch_npu, what their profilers "
     "say of memory,\nan npusim trace, a msMemScope dump, MindSpore's memory_block.csv, a log of "
     "STAlloc.",
     1, 1, WITH_READER | WITH_MODEL | WITH_TRACE, options_of_replay, run);
