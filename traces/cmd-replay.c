/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim replay: a file in, answers out.
 */
#include "npusim.h"

#include <signal.h>
#include <unistd.h>

#include "replay.h"
#include "result.h"

#define PROGRESS_AFTER_US 500000 /* short replays show none */
#define PROGRESS_EVERY_US 100000
#define BAR_WIDTH         40

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	(void) signal_number;
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
	if (bar->terminal && now - bar->start_us > PROGRESS_AFTER_US && now - bar->last_us > PROGRESS_EVERY_US) {
		int filled = total ? (int) (done * BAR_WIDTH / total) : 0;
		g_printerr("\r[%.*s%*s] %3.0f %%, %" G_GUINT64_FORMAT " events", filled,
			   "########################################", BAR_WIDTH - filled, "",
			   total ? 100.0 * done / total : 0.0, done);
		bar->last_us = now;
		bar->shown = TRUE;
	}
	return !interrupted;
}

static struct replay *run(const struct trace *trace, GError **error)
{
	struct bar bar = { .start_us = g_get_monotonic_time(), .terminal = isatty(STDERR_FILENO) };
	struct replay_options options = { .progress = on_progress, .data = &bar };
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int) SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	struct replay *replay = replay_run(trace, &options, error);
	if (bar.shown)
		g_printerr("\r%*s\r", BAR_WIDTH + 40, "");
	return replay;
}

int cmd_replay(int argc, char **argv)
{
	g_autofree char *json = NULL, *node = own_node_name("replay");
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json, "write the result as JSON to FILE; - is stdout", "FILE" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("FILE",
			   "Replays a memory snapshot of PyTorch or torch_npu (.pkl) or an npusim trace, plain or .gz, on the model,\n"
			   "starting from what was live when it began.",
			   entries, TRUE, &argc, &argv, &status))
		return status;
	if (argc != 2)
		return usage_error("replay", argc < 2 ? "which file?" : "one file at a time");
	if (!model_options_apply("sim", node, &error))
		return usage_error("replay", "%s", error->message);
	struct trace *trace = trace_read(argv[1], &error);
	if (trace == NULL)
		return failure("replay", "%s", error->message);
	struct replay *replay = run(trace, &error);
	if (replay == NULL) {
		status = failure("replay", "%s: %s", argv[1], error->message);
	} else {
		if (json == NULL || g_strcmp0(json, "-") != 0)
			result_print(stdout, argv[1], trace, replay);
		if (json && !result_write_json(json, argv[1], trace, replay, &error))
			status = failure("replay", "%s: %s", json, error->message);
		if (replay->interrupted)
			status = 128 + SIGINT;
	}
	replay_free(replay);
	trace_free(trace);
	return status;
}
