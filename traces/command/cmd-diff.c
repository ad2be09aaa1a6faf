/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim diff: reads two traces or two results and writes what changed.
 */
#include "npusim.h"

#include <stdio.h>

#include "format/out-file.h"
#include "show/progress.h"
#include "read/readers.h"
#include "show/diff.h"
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
	int status = failure_of("diff", error);

	return status == NPUSIM_EXIT_MEMORY ? status : EXIT_TROUBLE;
}

/* ---- output ---- */

/* What is said of the two files, whatever they are. */
struct verdict {
	const char *what; /* "traces" */
	struct side {
		char *file;
		const char *kind;
		guint64 events;
	} sides[2];
	guint64 equal;
	GPtrArray *figures; /* struct difference * */
};

static const struct member side_members[] = {
	{ "file", MEMBER_TEXT, AT(side, file) },
	{ "kind", MEMBER_TEXT, AT(side, kind) },
	{ "events", MEMBER_COUNT, AT(side, events) },
	{ 0 },
};

READ(gint64, schema, verdict, v, SCHEMA_VERSION)
READ(char *, program, verdict, v, g_strdup("npusim diff"))

static const struct member verdict_members[] = {
	{ "schema", MEMBER_COUNT, .whole = schema },
	{ "program", MEMBER_TEXT, .text = program },
	{ "what", MEMBER_TEXT, AT(verdict, what) },
	{ "a", MEMBER_OBJECT, AT(verdict, sides[0]), .members = side_members },
	{ "b", MEMBER_OBJECT, AT(verdict, sides[1]), .members = side_members },
	{ "equal", MEMBER_FLAG, AT(verdict, equal) },
	{ "figures", MEMBER_LIST, .array = ARRAY_POINTERS, .members = difference_members,
	  AT(verdict, figures) },
	{ 0 },
};

/* `diff`: of traces, what is told beside figures; NULL: results. */
static gboolean write_json(const struct job *job, struct verdict *v, const struct trace_diff *diff,
			   GError **error)
{
	g_autoptr(JsonBuilder) b = json_builder_new();

	for (int side = 0; side < 2; side++)
		v->sides[side].file = g_filename_display_name(job->paths[side]);
	json_builder_begin_object(b);
	members_build(b, verdict_members, v, NULL);
	if (diff)
		members_build(b, trace_diff_members, diff, NULL);
	json_builder_end_object(b);
	g_autoptr(JsonNode) root = json_builder_get_root(b);
	for (int side = 0; side < 2; side++)
		g_free(v->sides[side].file);
	return json_write(job->json, root, error);
}

/* `same`: what there is of it, where all is. FALSE: there is nothing more to print. */
static gboolean print_heads(const struct job *job, const struct verdict *v, guint64 same,
			    const char *of_what)
{
	if (g_strcmp0(job->json, "-") == 0)
		return FALSE;
	if (v->equal) {
		printf("no difference: %" G_GUINT64_FORMAT " %s are the same\n", same, of_what);
		return FALSE;
	}
	for (int side = 0; side < 2; side++)
		printf("%s %s: %s, %" G_GUINT64_FORMAT " events\n", side ? "+++ B" : "--- A",
		       job->paths[side], v->sides[side].kind, v->sides[side].events);
	return TRUE;
}

/* ---- traces ---- */

static int show_traces(const struct job *job, const struct trace_diff *diff, GError **error)
{
	struct verdict v = { "traces", .equal = trace_diff_is_equal(diff),
			     .figures = diff->figures.list };

	for (int side = 0; side < 2; side++) {
		v.sides[side].kind = diff->traces[side]->kind;
		v.sides[side].events = diff->traces[side]->events;
	}
	if (print_heads(job, &v, diff->same, "events"))
		trace_diff_print(diff, job->limit, stdout);
	if (job->json && !write_json(job, &v, diff, error))
		return EXIT_TROUBLE;
	return v.equal ? EXIT_EQUAL : EXIT_DIFFERENT;
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
		progress_start(&bar, "events",
			       record_reader_trace(readers[0])->events +
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

static int show_results(const struct job *job, const struct differences *figures,
			JsonNode *const results[2], GError **error)
{
	struct verdict v = { "results", .equal = figures->list->len == 0,
			     .figures = figures->list };

	for (int side = 0; side < 2; side++) {
		JsonObject *result = json_node_get_object(results[side]);
		v.sides[side].kind = result_text(result, "kind", "a result");
		v.sides[side].events = (guint64)result_int(result, "events", 0);
	}
	if (print_heads(job, &v, figures->equal, "figures")) {
		differences_print(figures, stdout);
		printf("\n%u figures differ, %" G_GUINT64_FORMAT " are the same\n",
		       figures->list->len, figures->equal);
	}
	if (job->json && !write_json(job, &v, NULL, error))
		return EXIT_TROUBLE;
	return v.equal ? EXIT_EQUAL : EXIT_DIFFERENT;
}

static int diff_two_results(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(JsonNode) a = result_file_read(job->paths[0], &error);
	g_autoptr(JsonNode) b = a ? result_file_read(job->paths[1], &error) : NULL;
	JsonNode *const results[] = { a, b };
	int status = EXIT_TROUBLE;

	if (b) {
		struct differences figures;
		differences_init(&figures);
		diff_results(results, job->limit, &figures);
		status = show_results(job, &figures, results, &error);
		differences_clear(&figures);
	}
	return error ? trouble(error) : status;
}

/* ---- the verb ---- */

static int run(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	gboolean json[2];

	if ((job->json && !out_file_check(job->json, &error)) ||
	    !input_keep(job->paths[0], &error) || !input_keep(job->paths[1], &error) ||
	    !readers_file_is_result(job->paths[0], &json[0], &error) ||
	    !readers_file_is_result(job->paths[1], &json[1], &error))
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

	if (!parse_options("A B", SUMMARY, entries, OPTIONS_OF_READER, &argc, &argv, &status))
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
