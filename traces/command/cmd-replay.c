/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim replay: reads a trace or a snapshot, replays it on the model, and writes the result.
 */
#include "npusim.h"

#include <string.h>

#include "format/out-file.h"
#include "show/progress.h"
#include "play/replay.h"
#include "show/figures.h"

static gboolean on_progress(guint64 done, guint64 total, gpointer data)
{
	struct progress *bar = data;

	bar->total = total;
	progress_step(bar, done);
	return !interrupted();
}

static struct replay *run(struct record_reader *reader, const struct replay_options *asked,
			  GError **error)
{
	struct progress bar;
	struct replay_options options = *asked;

	progress_start(&bar, "events", record_reader_trace(reader)->events);
	options.progress = on_progress;
	options.data = &bar;
	interrupts_watch(FALSE);
	struct replay *replay = replay_run(reader, &options, error);
	interrupts_leave();
	progress_end(&bar);
	return replay;
}

/* What of the command line tells of the policy, the accesses, moments and the profile. */
struct chosen {
	char *policy, *page, *access, *reads, *every;
	char **settings, **at;
	char *profile, *since;
	int profile_at, profile_since; /* moments */
};

/* "40us", "1.5ms", "2s", or the number of an event. */
static gboolean parse_moment(const char *text, struct moment *out)
{
	static const struct {
		const char *name;
		double us;
	} units[] = { { "us", 1 }, { "ms", 1e3 }, { "s", 1e6 } };
	char *end;
	double value = g_ascii_strtod(text, &end);

	*out = (struct moment){ .what = MOMENT_EVENT };
	if (g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &out->wanted, NULL))
		return TRUE;
	for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
		if (end == text || strcmp(end, units[i].name) != 0 || !(value >= 0) || value > 1e12)
			continue;
		*out = (struct moment){ .what = MOMENT_TIME,
					       .wanted = (guint64)(value * units[i].us) };
		return TRUE;
	}
	return FALSE;
}

/* *out: its number. The peak and the first lack of memory are looked at in any case. */
static gboolean add_moment(struct replay_options *options, const char *option, const char *text,
			   int *out, GError **error)
{
	struct moment m = { .what = MOMENT_END };

	*out = strcmp(text, "oom") == 0 ? MOMENT_OOM : MOMENT_PEAK;
	if (*out == MOMENT_OOM || strcmp(text, "peak") == 0)
		return TRUE;
	if (strcmp(text, "end") != 0 && !parse_moment(text, &m))
		return refuse_option(
			error,
			"%s %s: peak, oom, end, the number of an event or a time such as 1.5ms is "
			"wanted",
			option, text);
	if (options->moment_count == G_N_ELEMENTS(options->moments))
		return refuse_option(error, "%s %s: more than %d moments", option, text,
				     (int)G_N_ELEMENTS(options->moments));
	options->moments[options->moment_count] = m;
	*out = (int)(MOMENT_OOM + 1 + options->moment_count++);
	return TRUE;
}

static gboolean choose_moments(struct replay_options *options, struct chosen *c, GError **error)
{
	int moment;

	c->profile_since = -1;
	for (guint i = 0; c->at && c->at[i]; i++) {
		if (!add_moment(options, "--at", c->at[i], &moment, error))
			return FALSE;
		c->profile_at = i == 0 ? moment : c->profile_at;
	}
	if (c->since && c->profile == NULL)
		return refuse_option(error, "--since %s needs --profile", c->since);
	return (c->since == NULL ||
		add_moment(options, "--since", c->since, &c->profile_since, error)) &&
	       (c->profile == NULL || profile_check(c->profile, error));
}

static gboolean choose_number(const char *option, const char *text, guint64 most, guint64 *out,
			      GError **error)
{
	if (text == NULL || g_ascii_string_to_unsigned(text, 10, 1, most, out, NULL))
		return TRUE;
	return refuse_option(error,
			     "%s %s: a whole number from 1 to %" G_GUINT64_FORMAT " is wanted",
			     option, text, most);
}

static gboolean choose_access(struct access_options *access, const struct chosen *c, GError **error)
{
	access_options_init(access);
	if (c->access && !access_parse(c->access, access, error))
		return FALSE;
	if (access->pattern == ACCESS_NONE && (c->reads || c->every))
		return refuse_option(error, "%s needs --access seq, random or hot",
				     c->reads ? "--access-reads" : "--access-every");
	return choose_number("--access-reads", c->reads, ACCESS_READS_MAX, &access->reads, error) &&
	       choose_number("--access-every", c->every, ACCESS_EVERY_MAX, &access->every, error);
}

static gboolean choose(struct policy_options *policy, struct access_options *access,
		       const struct chosen *c, GError **error)
{
	policy_options_init(policy);
	if (c->policy && !policy_parse(c->policy, &policy->kind, error))
		return FALSE;
	for (guint i = 0; c->settings && c->settings[i]; i++) {
		if (!policy_options_set(policy, c->settings[i], error))
			return FALSE;
	}
	if (c->page && g_ascii_strcasecmp(c->page, "2m") != 0 &&
	    g_ascii_strcasecmp(c->page, "1g") != 0)
		return refuse_option(error, "--page %s: known are 2m and 1g", c->page);
	if (c->page)
		policy->page_1g = c->page[0] == '1';
	return choose_access(access, c, error) && policy_options_check(policy, error);
}

static int replay_file(const char *path, const char *json, const struct chosen *chosen,
		       const struct replay_options *options)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;
	struct record_reader *reader =
		input_keep(path, &error) ? record_reader_open(path, &error) : NULL;

	if (reader == NULL)
		return failure_of("replay", error);
	/* known before what may take long */
	if ((json && !out_file_check(json, &error)) ||
	    (chosen->profile && !out_file_check(chosen->profile, &error))) {
		record_reader_close(reader);
		return failure_of("replay", error);
	}
	const struct trace *trace = record_reader_trace(reader);
	struct replay *replay = run(reader, options, &error);
	if (replay == NULL) {
		status = g_error_matches(error, MODEL_ERROR, MODEL_ERROR_START)
				 ? failure_of("replay", error)
				 : (g_prefix_error(&error, "%s: ", path),
				    failure_of("replay", error));
	} else {
		const struct result result = { path, trace, replay };
		if (json == NULL || g_strcmp0(json, "-") != 0)
			result_print(stdout, &result);
		if (json && !members_write(json, figures_result, &result, &result, &error))
			status = failure_of("replay", error);
		else if (chosen->profile &&
			 !profile_write(chosen->profile, replay, chosen->profile_at,
					chosen->profile_since, &error))
			status = failure_of("replay", error);
		if (replay->interrupted)
			status = interrupt_status();
	}
	replay_free(replay);
	record_reader_close(reader);
	return status;
}

static int replay_chosen(const char *path, const char *json, const char *node,
			 struct chosen *chosen, struct replay_options *options)
{
	g_autoptr(GError) error = NULL;
	struct policy_options policy;
	int status;

	options->policy = &policy;
	/* what copies move does not matter, and memory for it may not be there */
	g_setenv("NPUSIM_CONTENTS", "off", FALSE);
	g_setenv("NPUSIM_FAILURES", "off", TRUE); /* the result has them */
	if (!choose(&policy, &options->access, chosen, &error) ||
	    !choose_moments(options, chosen, &error) || !model_options_apply("sim", node, &error))
		status = usage_error("replay", "%s", error->message);
	else
		status = replay_file(path, json, chosen, options);
	policy_options_clear(&policy);
	options->policy = NULL;
	return status;
}

#define SUMMARY                                                                                  \
	"Replays an allocation history on the model, starting from what was live when it began." \
	"\nFILE, plain or .gz: a memory snapshot of PyTorch or torch_npu, what their profilers " \
	"say of "                                                                                \
	"memory,\nan npusim trace, a msMemScope dump, MindSpore's memory_block.csv, a log of "   \
	"STAlloc."

int cmd_replay(int argc, char **argv)
{
	g_autofree char *node = own_node_name("replay");
	char *json = NULL;
	struct chosen chosen = { 0 };
	struct replay_options options = { 0 };
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json,
		  "write the result as JSON to FILE; - is stdout", "FILE" },
		{ "at", 0, 0, G_OPTION_ARG_STRING_ARRAY, &chosen.at,
		  "a moment to be looked at beside the peak: end, the number of an event, a time",
		  "M" },
		{ "policy", 0, 0, G_OPTION_ARG_STRING, &chosen.policy,
		  "as-recorded, native, caching or expandable: whose memory serves the blocks",
		  "P" },
		{ "page", 0, 0, G_OPTION_ARG_STRING, &chosen.page, "2m or 1g: pages of a policy",
		  "SIZE" },
		{ "access", 0, 0, G_OPTION_ARG_STRING, &chosen.access,
		  "none, seq, random, hot or hot:T/M: what a core reads with each block", "A" },
		{ "access-reads", 0, 0, G_OPTION_ARG_STRING, &chosen.reads,
		  "how many places random and hot read each time; 64", "N" },
		{ "access-every", 0, 0, G_OPTION_ARG_STRING, &chosen.every,
		  "reads after each N events, not with each block", "N" },
		{ "no-copies", 0, 0, G_OPTION_ARG_NONE, &options.no_copies,
		  "leaves recorded copies and fills out", NULL },
		{ "profile", 0, 0, G_OPTION_ARG_FILENAME, &chosen.profile,
		  "write what was live at the first --at, by call stack, to FILE: .folded, "
		  ".speedscope.json, .pb.gz (pprof)",
		  "FILE" },
		{ "since", 0, 0, G_OPTION_ARG_STRING, &chosen.since,
		  "--profile has what grew since the moment M", "M" },
		{ "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &chosen.settings,
		  "an option of the policy, as in PYTORCH_NPU_ALLOC_CONF", "KEY=VALUE" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	int status = NPUSIM_EXIT_OK;

	gboolean parsed =
		parse_options("FILE", SUMMARY, entries, OPTIONS_OF_REPLAY, &argc, &argv, &status);
	if (parsed && argc != 2)
		status = usage_error("replay", argc < 2 ? "which file?" : "one file at a time");
	else if (parsed)
		status = replay_chosen(argv[1], json, node, &chosen, &options);
	options_clear(entries);
	return status;
}
