/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim report: reads results, or replays what there is none of, and writes one self-contained
 * page.
 */
#include "npusim.h"

#include <signal.h>
#include <sys/prctl.h>

#include "page/page.h"
#include "show/show.h"

/* `histories`: char *, of each result, or NULL. */
static gboolean write_page(const char *path, JsonBuilder *list, const GPtrArray *histories,
			   GError **error)
{
	g_autoptr(GString) data = g_string_new(NULL);
	g_autoptr(GString) page = g_string_new_len((const char *)report_page_before,
						   (gssize)report_page_before_bytes);

	g_string_append(page, "<script type=\"application/json\" id=\"data\">");
	out_json(data, json_builder_get_root(list), FALSE);
	/* nothing in it can end the element, or the line of a script */
	g_string_replace(data, "<", "\\u003c", 0);
	g_string_replace(data, ">", "\\u003e", 0);
	g_string_replace(data, "&", "\\u0026", 0);
	g_string_append(page, data->str);
	g_string_append(page, "</script>\n");
	for (guint i = 0; i < histories->len; i++) {
		if (histories->pdata[i])
			g_string_append_printf(page,
					       "<script type=\"text/plain\" id=\"history-%u\">"
					       "%s</script>\n",
					       i, (const char *)histories->pdata[i]);
	}
	g_string_append_len(page, (const char *)report_page_after, (gssize)report_page_after_bytes);
	return out_file_write(path, page->str, page->len, error);
}

/* Where each output goes; NULL: nowhere. */
static struct {
	char *page, *csv, *series, *json;
} to;

static const struct option options[] = {
	OPTION_SHORT("output", 'o', OUTPUT, &to.page, "FILE",
		     "write the page to FILE (default report.html); - is stdout"),
	OPTION("csv", OUTPUT, &to.csv, "FILE",
	       "write the figures as CSV, a line for each device of each result"),
	OPTION("csv-series", OUTPUT, &to.series, "FILE",
	       "write memory over time as CSV, a line for each point"),
	OPTION("json", OUTPUT, &to.json, "FILE", "write the results as one JSON list"),
	{ 0 },
};

static pid_t self_pid; /* of the report */

/* It ends with the report, which may be killed. */
static void prepare_child(gpointer fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != self_pid || dup2(GPOINTER_TO_INT(fd), STDOUT_FILENO) < 0)
		_exit(NPUSIM_EXIT_NOT_RUNNABLE);
}

/* The result of a snapshot or a trace. In a process of its own, as the model allows no second
 * simulation in one. `cause`: why the file is no result. */
static JsonNode *replay(const char *path, const GError *cause, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", error), *said = NULL;
	int fd = self ? temp_file_open(error) : -1;
	g_autofree char *written = g_strdup_printf("/proc/self/fd/%d", fd);
	char verb[] = "replay", json[] = "--json=-", each[] = "--each-call", dashes[] = "--";
	/* of each call only the page shows something */
	char *argv[] = { self, verb, json, to.page ? each : json, dashes, (char *)path, NULL };
	JsonNode *result = NULL;
	int status = 0;

	if (fd < 0)
		return NULL;
	self_pid = getpid();
	gboolean ran = g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, prepare_child,
				    GINT_TO_POINTER(fd), NULL, &said, &status, error);
	if (ran && g_spawn_check_wait_status(status, error))
		result = result_file_read(written, error);
	else if (ran && (*said == '\0' || (*error)->domain == G_SPAWN_ERROR)) /* a signal */
		g_prefix_error(error, "%s: the replay: ", path);
	else if (ran) {
		g_clear_error(error);
		struct trace *trace = trace_open(path, error);
		if (trace) /* it is the replay that failed */
			g_set_error(error, cause->domain, cause->code, "%s", g_strchomp(said));
		else if (g_error_matches(*error, TRACE_ERROR, TRACE_ERROR_UNKNOWN))
			g_prefix_error(error, "%s; ", cause->message);
		trace_free(trace);
	}
	close(fd);
	return result;
}

/* Of a file its result, and its history, where it is no result: else NULL. */
static JsonNode *read_result(const char *path, char **out_history, GError **error)
{
	g_autoptr(GError) cause = NULL;
	JsonNode *result = result_file_read(path, &cause);

	if (g_error_matches(cause, TRACE_ERROR, TRACE_ERROR_UNKNOWN) && strcmp(path, "-") != 0) {
		result = replay(path, cause, error);
		*out_history = result ? history_data(path, error) : NULL;
		if (*out_history == NULL)
			g_clear_pointer(&result, json_node_unref);
	} else if (cause)
		g_propagate_error(error, g_steal_pointer(&cause));
	return result;
}

static int run(char **names, GError **error)
{
	g_autoptr(GPtrArray) results =
		g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
	g_autoptr(GPtrArray) histories = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(JsonBuilder) list = json_builder_new(); /* each with the name of its file */

	/* where only the others are asked for, there is no page */
	if (to.page == NULL && to.csv == NULL && to.series == NULL && to.json == NULL)
		to.page = g_strdup("report.html");
	if (to.page && !out_file_check(to.page, error))
		return NPUSIM_EXIT_FAILED;
	json_builder_begin_array(list);
	for (char **name = names; *name; name++) {
		char *history = NULL;
		JsonNode *result = read_result(*name, &history, error);
		if (result == NULL)
			return NPUSIM_EXIT_FAILED;
		g_ptr_array_add(results, result);
		g_ptr_array_add(histories, history);
		JsonObject *from = json_node_get_object(result);
		g_autoptr(GList) members = json_object_get_members(from);
		g_autofree char *base = g_path_get_basename(*name);
		g_autofree char *shown = g_filename_display_name(base);

		json_builder_begin_object(list);
		json_text(list, "result_file", shown);
		for (GList *m = members; m; m = m->next) {
			json_builder_set_member_name(list, m->data);
			json_builder_add_value(
				list, json_node_copy(json_object_get_member(from, m->data)));
		}
		json_builder_end_object(list);
	}
	json_builder_end_array(list);
	if ((to.csv && !csv_write(to.csv, FALSE, results, names, -1, error)) ||
	    (to.series && !csv_write(to.series, TRUE, results, names, -1, error)) ||
	    (to.json && !json_write(to.json, list, error)) ||
	    (to.page && !write_page(to.page, list, histories, error)))
		return NPUSIM_EXIT_FAILED;
	if (to.page && strcmp(to.page, "-") != 0)
		g_printerr("%s: open it in a browser\n", to.page);
	return NPUSIM_EXIT_OK;
}

VERB(report, "show results of replays as one page with charts", "RESULT...",
     "Writes one HTML page about results of npusim replay --json, side by side: it holds its "
     "charts and\nneeds no network.",
     1, G_MAXINT, WITH_READER, options, run);
