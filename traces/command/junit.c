/* SPDX-License-Identifier: Apache-2.0
 *
 * JUnit's XML of a program, and of conformance cases, as CI servers read it.
 */
#include "npusim.h"

#include <sys/wait.h>

#include "config.h"
#include "show/show.h"

/* Its texts are interned, or others'. */
struct test {
	const char *suite, *name;
	double seconds;
	gboolean ended;
	const char *skipped, *failure; /* why, or ""; NULL: it was not, it did not */
};

static struct test *add_test(GPtrArray *tests, const char *suite, const char *name)
{
	struct test *test = g_new0(struct test, 1);

	test->suite = g_intern_string(suite);
	test->name = g_intern_string(name);
	g_ptr_array_add(tests, test);
	return test;
}

static void add_failure(struct test *test, const char *line, const char *more)
{
	g_autofree char *all = g_strconcat(test->failure ?: "", line, "\n", more, NULL);

	test->failure = g_intern_string(all);
}

/* The tests that the program's end was the end of; or the program, where nothing else tells. */
static void blame(GPtrArray *tests, const struct junit_program *program)
{
	int status = program->status;
	g_autofree char *end =
		WIFSIGNALED(status)
			? g_strdup_printf("signal %d (%s) ended the process", WTERMSIG(status),
					  g_strsignal(WTERMSIG(status)))
			: g_strdup_printf("the process ended with status %d", WEXITSTATUS(status));
	const char *text = program->text ? program->text : "";
	const char *reports = program->reports ? program->reports : text;
	gboolean told = status == 0 && tests->len > 0;

	for (guint i = 0; i < tests->len; i++) {
		struct test *test = tests->pdata[i];
		if (!test->ended)
			add_failure(test, npu_text("%s in the middle of this test", end), reports);
		told |= test->failure != NULL;
	}
	if (told)
		return;
	g_autofree char *words = g_strjoinv(" ", (char **)program->words);
	struct test *whole = add_test(tests, "npusim", words);
	whole->seconds = program->seconds;
	if (status != 0)
		add_failure(whole, end, text);
}

/* XML has no other control characters, and no way to write them. */
static char *escaped(const char *text)
{
	g_autofree char *valid = g_utf8_make_valid(text, -1);

	for (char *c = valid; *c; c++)
		if (((guchar)*c < ' ' && !strchr("\t\n\r", *c)) || *c == 127)
			*c = '?';
	return g_markup_escape_text(valid, -1);
}

/* head, tail: elements before those of the tests, and behind. The host's name is left out. */
static void add_suite(GString *out, const char *verb, const GPtrArray *tests, double seconds,
		      gint64 start_us, const char *head, const char *tail)
{
	g_autoptr(GDateTime) start = g_date_time_new_from_unix_utc(start_us / G_USEC_PER_SEC);
	g_autofree char *time = g_date_time_format(start, "%Y-%m-%dT%H:%M:%SZ");
	g_autoptr(GString) cases = g_string_new(NULL);
	guint failures = 0, skipped = 0;

	for (guint i = 0; i < tests->len; i++) {
		const struct test *test = tests->pdata[i];
		gboolean failed = test->failure != NULL;
		g_autofree char *suite = escaped(test->suite), *name = escaped(test->name);
		g_autofree char *text = escaped(test->failure ?: test->skipped ?: "");
		g_auto(GStrv) lines = g_strsplit(text, "\n", 2);

		failures += failed;
		skipped += !failed && test->skipped;
		g_string_append_printf(cases,
				       "<testcase classname=\"%s\" name=\"%s\" time=\"%.6f\">",
				       suite, name, test->seconds);
		if (failed)
			g_string_append_printf(cases, "<failure message=\"%s\">%s</failure>",
					       lines[0], text);
		else if (test->skipped)
			g_string_append_printf(cases, "<skipped message=\"%s\"/>", text);
		g_string_append(cases, "</testcase>\n");
	}
	g_string_append_printf(out,
			       "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites><testsuite "
			       "name=\"npusim %s\" tests=\"%u\" failures=\"%u\" errors=\"0\" "
			       "skipped=\"%u\" time=\"%.6f\" timestamp=\"%s\" "
			       "hostname=\"localhost\">\n%s%s%s</testsuite></testsuites>\n",
			       verb, tests->len, failures, skipped, seconds, time, head, cases->str,
			       tail);
}

gboolean junit_write(const char *path, const struct junit_program *program, GError **error)
{
	g_autoptr(GPtrArray) tests = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GHashTable) open = g_hash_table_new(g_str_hash, g_str_equal);
	g_auto(GStrv) lines = g_strsplit(program->notes ? program->notes : "", "\n", -1);
	g_autoptr(GString) out = g_string_new(NULL), name = g_string_new(path);
	g_autofree char *text = escaped(program->text ? program->text : "");
	g_autofree char *tail =
		*text ? g_strconcat("<system-err>", text, "</system-err>\n", NULL) : g_strdup("");

	for (char **line = lines; *line; line++) {
		/* the last one may be cut short */
		g_autoptr(JsonNode) root = json_from_string(*line, NULL);
		if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root))
			continue;
		/* {"test": NAME, "event": "start"}, then any number of "passed", "failed",
		 * "skipped", each of a part of the test, with "seconds" and "text", then "end"; a
		 * later start is another run of it */
		JsonObject *note = json_node_get_object(root);
		const char *of = result_text(note, "test", ""),
			   *event = result_text(note, "event", "");
		struct test *test = g_hash_table_lookup(open, of);
		if (strcmp(event, "start") == 0) {
			test = add_test(tests, "npusim", of);
			g_hash_table_insert(open, (char *)test->name, test);
		} else if (test && strcmp(event, "end") == 0) {
			test->ended = TRUE;
		} else if (test) {
			test->seconds +=
				json_object_get_double_member_with_default(note, "seconds", 0);
			if (strcmp(event, "skipped") == 0)
				test->skipped = "";
			if (strcmp(event, "failed") == 0)
				add_failure(test, result_text(note, "text", ""), "");
		}
	}
	blame(tests, program);
	add_suite(out, "run", tests, program->seconds,
		  g_get_real_time() - (gint64)(program->seconds * G_USEC_PER_SEC), "", tail);
	g_string_replace(name, "%p", npu_text("%d", (int)getpid()), 0);
	return out_file_write(name->str, out->str, out->len, error);
}

void junit_of_cases(GString *out, const struct check_report *report)
{
	g_autoptr(GPtrArray) tests = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *soc = escaped(report->server.soc);
	g_autofree char *head = g_strdup_printf(
		"<properties><property name=\"npusim\" value=\"" NPUSIM_VERSION "\"/>"
		"<property name=\"backend\" value=\"%s\"/><property name=\"soc\" value=\"%s\"/>"
		"<property name=\"devices\" value=\"%u\"/></properties>\n",
		report->backend, soc, report->server.devices);
	double seconds = 0;

	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = report->results->pdata[i];
		struct test *test = add_test(
			tests, npu_text("device%u.%s", r->device, r->test->suite), r->test->name);

		test->seconds = (double)r->ns / 1e9;
		seconds += test->seconds;
		test->skipped = r->status == CASE_SKIPPED ? r->text->str : NULL;
		test->failure = r->status == CASE_FAILED ? r->text->str : NULL;
	}
	add_suite(out, "check", tests, seconds, report->start_us, head, "");
}
