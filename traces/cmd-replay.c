/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim replay: a file in, answers out.
 */
#include "npusim.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"
#include "result.h"

#define PROGRESS_AFTER_US 500000 /* short replays show none */
#define PROGRESS_EVERY_US 100000
#define BAR_WIDTH         40

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

struct bar {
	gint64 start_us, last_us;
	gboolean terminal, shown;
};

static gboolean on_progress(guint64 done, guint64 total, gpointer data)
{
	struct bar *bar = data;
	gint64 now = g_get_monotonic_time();
	if (bar->terminal && now - bar->start_us > PROGRESS_AFTER_US &&
	    now - bar->last_us > PROGRESS_EVERY_US) {
		int filled = total ? (int)(done * BAR_WIDTH / total) : 0;
		g_printerr("\r[%.*s%*s] %3.0f %%, %" G_GUINT64_FORMAT " events", filled,
			   "########################################", BAR_WIDTH - filled, "",
			   total ? 100.0 * done / total : 0.0, done);
		bar->last_us = now;
		bar->shown = TRUE;
	}
	return !interrupted;
}

static struct replay *run(struct trace *trace, const struct policy_options *policy,
			  enum access_pattern access, GError **error)
{
	struct bar bar = { .start_us = g_get_monotonic_time(), .terminal = isatty(STDERR_FILENO) };
	struct replay_options options = {
		.progress = on_progress, .data = &bar, .policy = policy, .access = access
	};
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND },
			 before;

	sigaction(SIGINT, &action, &before);
	struct replay *replay = replay_run(trace, &options, error);
	sigaction(SIGINT, &before, NULL);
	if (bar.shown)
		g_printerr("\r%*s\r", BAR_WIDTH + 40, "");
	return replay;
}

/* What of the command line tells of the policy. */
struct chosen {
	char *policy, *page, *access;
	char **settings;
};

static gboolean choose(struct policy_options *policy, enum access_pattern *access,
		       const struct chosen *c, GError **error)
{
	policy_options_init(policy);
	if (c->policy && !policy_parse(c->policy, &policy->kind, error))
		return FALSE;
	for (guint i = 0; c->settings && c->settings[i]; i++) {
		if (!policy_options_set(policy, c->settings[i], error))
			return FALSE;
	}
	if (c->page && strcmp(c->page, "2m") != 0 && strcmp(c->page, "1g") != 0) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			    "--page %s: known are 2m and 1g", c->page);
		return FALSE;
	}
	if (c->access && !access_parse(c->access, access, error))
		return FALSE;
	if (c->page)
		policy->page_1g = c->page[0] == '1';
	return policy_options_check(policy, error);
}

static int replay_file(const char *path, const char *json, const struct policy_options *policy,
		       enum access_pattern access)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;
	struct trace *trace = trace_read(path, &error);

	if (trace == NULL)
		return failure("replay", "%s", error->message);
	struct replay *replay = run(trace, policy, access, &error);
	if (replay == NULL) {
		status = failure("replay", "%s: %s", path, error->message);
	} else {
		if (json == NULL || g_strcmp0(json, "-") != 0)
			result_print(stdout, path, trace, replay);
		if (json && !result_write_json(json, path, trace, replay, &error))
			status = failure("replay", "%s: %s", json, error->message);
		if (replay->interrupted)
			status = 128 + SIGINT;
	}
	replay_free(replay);
	trace_free(trace);
	return status;
}

#define SUMMARY                                                                                   \
	"Replays an allocation history on the model, starting from what was live when it began: " \
	"a memory snapshot of\n"                                                                  \
	"PyTorch or torch_npu (.pkl), an npusim trace, plain or .gz."

int cmd_replay(int argc, char **argv)
{
	g_autofree char *json = NULL, *node = own_node_name("replay");
	g_autofree char *policy_word = NULL, *page = NULL, *pattern = NULL;
	g_auto(GStrv) settings = NULL;
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json,
		  "write the result as JSON to FILE; - is stdout", "FILE" },
		{ "policy", 0, 0, G_OPTION_ARG_STRING, &policy_word,
		  "as-recorded, native, caching or expandable: whose memory serves the blocks",
		  "P" },
		{ "page", 0, 0, G_OPTION_ARG_STRING, &page, "2m or 1g: pages of a policy", "SIZE" },
		{ "access", 0, 0, G_OPTION_ARG_STRING, &pattern,
		  "none, seq or random: what a core reads with each block", "A" },
		{ "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &settings,
		  "an option of the policy, as in PYTORCH_NPU_ALLOC_CONF", "KEY=VALUE" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("FILE", SUMMARY, entries, OPTIONS_OF_MODEL, &argc, &argv, &status))
		return status;
	if (argc != 2)
		return usage_error("replay", argc < 2 ? "which file?" : "one file at a time");
	const struct chosen chosen = { policy_word, page, pattern, settings };
	struct policy_options policy;
	enum access_pattern access = ACCESS_NONE;
	if (!choose(&policy, &access, &chosen, &error) || !model_options_apply("sim", node, &error))
		status = usage_error("replay", "%s", error->message);
	else
		status = replay_file(argv[1], json, &policy, access);
	policy_options_clear(&policy);
	return status;
}
