/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim diff: two traces or two results in, what changed out.
 */
#include "npusim.h"

#include <stdio.h>
#include <string.h>

#include "show/diff-result.h"
#include "show/diff-trace.h"
#include "format/in-file.h"
#include "show/json-out.h"
#include "progress.h"
#include "read/readers.h"
#include "show/result-file.h"

#define SCHEMA_VERSION 1
#define LIMIT_DEFAULT  10

enum { EXIT_EQUAL = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };

struct job {
	const char *paths[2];
	const char *json;
	guint limit;
};

static int trouble(const GError *error)
{
	failure("diff", "%s", error->message);
	return EXIT_TROUBLE;
}

/* ---- output ---- */

static void build_file(JsonBuilder *b, const char *name, const char *path, const char *kind,
		       guint64 events)
{
	g_autofree char *shown = g_filename_display_name(path);

	json_builder_set_member_name(b, name);
	json_builder_begin_object(b);
	member_text(b, "file", shown);
	member_text(b, "kind", kind);
	member_count(b, "events", events);
	json_builder_end_object(b);
}

static JsonBuilder *build_head(const struct job *job, const char *what, gboolean equal,
			       const char *const kinds[2], const guint64 events[2])
{
	JsonBuilder *b = json_builder_new();

	json_builder_begin_object(b);
	member_int(b, "schema", SCHEMA_VERSION);
	member_text(b, "program", "npusim diff");
	member_text(b, "what", what);
	build_file(b, "a", job->paths[0], kinds[0], events[0]);
	build_file(b, "b", job->paths[1], kinds[1], events[1]);
	member_bool(b, "equal", equal);
	return b;
}

/* Ends the builder. */
static gboolean write_json(JsonBuilder *b, const char *path, GError **error)
{
	json_builder_end_object(b);
	JsonNode *root = json_builder_get_root(b);
	gboolean ok = json_out_write(root, path, error);

	json_node_unref(root);
	g_object_unref(b);
	return ok;
}

static void print_heads(const struct job *job, const char *const kinds[2], const guint64 events[2])
{
	for (int side = 0; side < 2; side++)
		printf("%s %s: %s, %" G_GUINT64_FORMAT " events\n", side ? "+++ B" : "--- A",
		       job->paths[side], kinds[side], events[side]);
}

static gboolean prints_text(const struct job *job)
{
	return g_strcmp0(job->json, "-") != 0;
}

/* ---- traces ---- */

static int show_traces(const struct job *job, const struct trace_diff *diff, GError **error)
{
	const char *const kinds[] = { diff->traces[0]->kind, diff->traces[1]->kind };
	const guint64 events[] = { diff->traces[0]->events, diff->traces[1]->events };
	gboolean equal = trace_diff_is_equal(diff);

	if (prints_text(job) && equal) {
		printf("no difference: %" G_GUINT64_FORMAT " events are the same\n",
		       diff->align->same);
	} else if (prints_text(job)) {
		print_heads(job, kinds, events);
		trace_diff_print(diff, job->limit, stdout);
	}
	if (job->json) {
		JsonBuilder *b = build_head(job, "traces", equal, kinds, events);
		trace_diff_build(diff, b);
		if (!write_json(b, job->json, error))
			return EXIT_TROUBLE;
	}
	return equal ? EXIT_EQUAL : EXIT_DIFFERENT;
}

static int diff_traces(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	struct record_reader *readers[2] = { record_reader_open(job->paths[0], &error), NULL };
	struct trace_diff *diff = NULL;
	struct progress bar;
	int status = EXIT_TROUBLE;

	if (readers[0])
		readers[1] = record_reader_open(job->paths[1], &error);
	if (readers[1]) {
		progress_start(&bar, record_reader_trace(readers[0])->events +
					     record_reader_trace(readers[1])->events);
		diff = trace_diff_run(readers, job->limit, &bar, &error);
		progress_end(&bar);
	}
	if (diff)
		status = show_traces(job, diff, &error);
	trace_diff_free(diff);
	record_reader_close(readers[0]);
	record_reader_close(readers[1]);
	return error ? trouble(error) : status;
}

/* ---- results ---- */

static const char *kind_of(JsonNode *result)
{
	return result_text(json_node_get_object(result), "kind", "a result");
}

static int show_results(const struct job *job, const struct figures *figures, JsonNode *a,
			JsonNode *b, GError **error)
{
	const char *const kinds[] = { kind_of(a), kind_of(b) };
	const guint64 events[] = {
		(guint64)result_int(json_node_get_object(a), "events", 0),
		(guint64)result_int(json_node_get_object(b), "events", 0),
	};
	gboolean equal = figures->list->len == 0;

	if (prints_text(job) && equal) {
		printf("no difference: %" G_GUINT64_FORMAT " figures are the same\n",
		       figures->equal);
	} else if (prints_text(job)) {
		print_heads(job, kinds, events);
		figures_print(figures, stdout);
		printf("\n%u figures differ, %" G_GUINT64_FORMAT " are the same\n",
		       figures->list->len, figures->equal);
	}
	if (job->json) {
		JsonBuilder *builder = build_head(job, "results", equal, kinds, events);
		figures_build(figures, builder);
		if (!write_json(builder, job->json, error))
			return EXIT_TROUBLE;
	}
	return equal ? EXIT_EQUAL : EXIT_DIFFERENT;
}

static int diff_two_results(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	JsonNode *a = result_file_read(job->paths[0], &error);
	JsonNode *b = a ? result_file_read(job->paths[1], &error) : NULL;
	int status = EXIT_TROUBLE;

	if (b) {
		struct figures figures;
		figures_init(&figures);
		diff_results(a, b, job->limit, &figures);
		status = show_results(job, &figures, a, b, &error);
		figures_clear(&figures);
	}
	g_clear_pointer(&a, json_node_unref);
	g_clear_pointer(&b, json_node_unref);
	return error ? trouble(error) : status;
}

/* ---- the verb ---- */

static int run(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	gboolean json[2];

	if (!in_file_keep(job->paths[0], &error) || !in_file_keep(job->paths[1], &error) ||
	    !readers_file_is_json(job->paths[0], &json[0], &error) ||
	    !readers_file_is_json(job->paths[1], &json[1], &error))
		return trouble(error);
	if (json[0] == json[1])
		return json[0] ? diff_two_results(job) : diff_traces(job);
	failure("diff",
		"%s is JSON, which a result of npusim replay --json is, and %s is not, so it "
		"should be a trace: two traces can be compared, or two results",
		job->paths[json[0] ? 0 : 1], job->paths[json[0] ? 1 : 0]);
	return EXIT_TROUBLE;
}

#define SUMMARY                                                                                   \
	"Says what changed between two traces (snapshots, dumps, recordings, of any kind that\n"  \
	"npusim replay reads) or two results of npusim replay --json. Status 0: nothing did, 1: " \
	"something did, 2: trouble."

int cmd_diff(int argc, char **argv)
{
	g_autofree char *json = NULL;
	int limit = LIMIT_DEFAULT, status = NPUSIM_EXIT_OK;
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json,
		  "write what changed as JSON to FILE; - is stdout", "FILE" },
		{ "limit", 0, 0, G_OPTION_ARG_INT, &limit,
		  "at most N entries of each list, 0 for all (default 10)", "N" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};

	if (!parse_options("A B", SUMMARY, entries, OPTIONS_OWN, &argc, &argv, &status))
		return status;
	if (argc != 3)
		return usage_error("diff", argc < 3 ? "which two files?" : "two files at a time");
	if (limit < 0)
		return usage_error("diff", "--limit %d: a number from 0 on is wanted", limit);
	const struct job job = { .paths = { argv[1], argv[2] },
				 .json = json,
				 .limit = limit ? (guint)limit : G_MAXUINT };
	return run(&job);
}
