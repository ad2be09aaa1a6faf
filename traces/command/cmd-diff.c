/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim diff: reads two traces or two results and writes what changed.
 */
#include "npusim.h"

#include "read/readers.h"
#include "show/show.h"

#define SCHEMA_VERSION 1
#define LIMIT_DEFAULT  10

enum { EXIT_EQUAL = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };

static char *json;
static gint64 limit = LIMIT_DEFAULT;

static const struct option options[] = {
	OPTION("json", OUTPUT, &json, "FILE", "write what changed as JSON to FILE; - is stdout"),
	OPTION_RANGE("limit", NUMBER, &limit, 0, G_MAXINT, "N",
		     "at most N entries of each list, 0 for all (default 10)"),
	{ 0 },
};

/* `diff`: what is told beside the figures; NULL: of results. */
static gboolean write_json(char *const *paths, const struct differences *figures,
			   const struct trace_diff *diff, gboolean equal, GError **error)
{
	g_autoptr(JsonBuilder) out = json_builder_new();

	json_builder_begin_object(out);
	json_number(out, "schema", SCHEMA_VERSION);
	json_text(out, "program", "npusim diff");
	json_text(out, "what", diff ? "traces" : "results");
	for (int side = 0; side < 2; side++) {
		g_autofree char *file = g_filename_display_name(paths[side]);

		json_builder_set_member_name(out, side ? "b" : "a");
		json_builder_begin_object(out);
		json_text(out, "file", file);
		json_text(out, "kind", figures->kinds[side]);
		json_number(out, "events", figures->events[side]);
		json_builder_end_object(out);
	}
	json_builder_set_member_name(out, "equal");
	json_builder_add_boolean_value(out, equal);
	json_builder_set_member_name(out, "figures");
	json_builder_add_value(out, json_node_copy(figures->json));
	if (diff)
		members_build(out, trace_diff_members, diff);
	json_builder_end_object(out);
	return json_write(json, out, error);
}

/* Returns the exit status. */
static int show(char *const *paths, const struct differences *figures,
		const struct trace_diff *diff, GError **error)
{
	gboolean equal = figures->rows->len + (diff ? diff->places : 0) == 0;
	gboolean prints = g_strcmp0(json, "-") != 0;
	guint64 same = diff ? diff->same : figures->equal;

	if (prints && equal)
		printf("no difference: " U64 " %s are the same\n", same,
		       diff ? "events" : "figures");
	prints = prints && !equal;
	for (int side = 0; prints && side < 2; side++)
		printf("%s %s: %s, %s\n", side ? "+++ B" : "--- A", paths[side],
		       figures->kinds[side], npu_counted(figures->events[side], "event"));
	if (prints && diff) {
		trace_diff_print(diff, stdout);
	} else if (prints) {
		differences_print(figures, stdout);
		printf("\ndifferent: %s; the same: " U64 "\n",
		       npu_counted(figures->rows->len, "figure"), same);
	}
	if ((json && !write_json(paths, figures, diff, equal, error)) ||
	    output_error() != 0) /* main() says so */
		return EXIT_TROUBLE;
	return equal ? EXIT_EQUAL : EXIT_DIFFERENT;
}

static int diff_traces(char *const *paths, GError **error)
{
	struct trace *traces[2] = { trace_open(paths[0], error), NULL };
	struct trace_diff *diff = NULL;
	int status = EXIT_TROUBLE;

	if (traces[0])
		traces[1] = trace_open(paths[1], error);
	if (traces[1])
		diff = trace_diff_run(traces, (guint)limit, error);
	if (diff)
		status = show(paths, &diff->figures, diff, error);
	trace_diff_free(diff);
	trace_free(traces[0]);
	trace_free(traces[1]);
	return status;
}

static int diff_two_results(char *const *paths, GError **error)
{
	g_autoptr(JsonNode) a = result_file_read(paths[0], error);
	g_autoptr(JsonNode) b = a ? result_file_read(paths[1], error) : NULL;
	JsonNode *const results[] = { a, b };
	struct differences figures;

	if (b == NULL)
		return EXIT_TROUBLE;
	differences_init(&figures, (guint)limit);
	diff_results(results, &figures);
	int status = show(paths, &figures, NULL, error);
	differences_clear(&figures);
	return status;
}

static int run(char **paths, GError **error)
{
	gboolean is_result[2];

	if (limit == 0)
		limit = G_MAXUINT;
	if (!readers_file_is_result(paths[0], &is_result[0], error) ||
	    !readers_file_is_result(paths[1], &is_result[1], error))
		return EXIT_TROUBLE;
	if (is_result[0] == is_result[1])
		return is_result[0] ? diff_two_results(paths, error) : diff_traces(paths, error);
	return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		      "%s is JSON, which a result of npusim replay --json is, and %s is not, so it "
		      "should be a trace: two traces can be compared, or two results",
		      paths[is_result[0] ? 0 : 1], paths[is_result[0] ? 1 : 0]);
}

VERB(diff, "say what changed between two traces, or two results of replays", "A B",
     "Says what changed between two traces (snapshots, dumps, recordings, of any kind that\nnpusim "
     "replay reads) or two results of npusim replay --json. Status 0: nothing did, 1: something "
     "did, 2: trouble.",
     2, 2, WITH_READER, options, run, EXIT_TROUBLE);
