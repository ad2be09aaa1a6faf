/* SPDX-License-Identifier: Apache-2.0
 *
 * JUnit's XML of a program, as CI servers read it.
 */
#include "npusim.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/out-file.h"

struct test {
	char *name;
	double seconds;
	gboolean ended, skipped;
	GString *failure; /* empty: none */
};

static void test_free(gpointer value)
{
	struct test *test = value;

	g_free(test->name);
	g_string_free(test->failure, TRUE);
	g_free(test);
}

static struct test *add_test(GPtrArray *tests, const char *name)
{
	struct test *test = g_new0(struct test, 1);

	test->name = g_strdup(name);
	test->failure = g_string_new(NULL);
	g_ptr_array_add(tests, test);
	return test;
}

/* ---- what the program tells ---- */

static const char *text_of(JsonObject *note, const char *member)
{
	return json_object_get_string_member_with_default(note, member, "");
}

/* {"test": NAME, "event": "start"}, then any number of "passed", "failed", "skipped", each of a
 * part of the test, with "seconds" and "text", then "end". A later start is another run of it. */
static void take_note(GPtrArray *tests, GHashTable *open, JsonObject *note)
{
	const char *name = text_of(note, "test"), *event = text_of(note, "event");
	struct test *test = g_hash_table_lookup(open, name);

	if (strcmp(event, "start") == 0) {
		test = add_test(tests, name);
		g_hash_table_insert(open, test->name, test);
	} else if (test && strcmp(event, "end") == 0) {
		test->ended = TRUE;
	} else if (test) {
		test->seconds += json_object_get_double_member_with_default(note, "seconds", 0);
		test->skipped |= strcmp(event, "skipped") == 0;
		if (strcmp(event, "failed") == 0)
			g_string_append_printf(test->failure, "%s\n", text_of(note, "text"));
	}
}

static GPtrArray *tests_of(const char *notes)
{
	GPtrArray *tests = g_ptr_array_new_with_free_func(test_free);
	g_autoptr(GHashTable) open = g_hash_table_new(g_str_hash, g_str_equal);
	g_auto(GStrv) lines = g_strsplit(notes ? notes : "", "\n", -1);

	for (char **line = lines; *line; line++) {
		/* the last one may be cut short */
		g_autoptr(JsonNode) root = json_from_string(*line, NULL);
		if (root && JSON_NODE_HOLDS_OBJECT(root))
			take_note(tests, open, json_node_get_object(root));
	}
	return tests;
}

/* ---- how it ended ---- */

/* NULL: well. g_free() */
static char *end_of(int status)
{
	if (WIFSIGNALED(status))
		return g_strdup_printf("signal %d (%s) ended the process", WTERMSIG(status),
				       g_strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status)
		       ? g_strdup_printf("the process ended with status %d", WEXITSTATUS(status))
		       : NULL;
}

/* The tests that the program's end was the end of; or the program, where nothing else tells. */
static void blame(GPtrArray *tests, const struct junit_program *program)
{
	g_autofree char *end = end_of(program->status);
	const char *text = program->text ? program->text : "";
	const char *reports = program->reports ? program->reports : text;
	gboolean told = end == NULL && tests->len > 0;

	for (guint i = 0; i < tests->len; i++) {
		struct test *test = tests->pdata[i];
		if (!test->ended)
			g_string_append_printf(test->failure, "%s in the middle of this test\n%s",
					       end ? end : "the process ended with status 0",
					       reports);
		told |= test->failure->len > 0;
	}
	if (told)
		return;
	g_autofree char *words = g_strjoinv(" ", (char **)program->words);
	struct test *whole = add_test(tests, words);
	whole->seconds = program->seconds;
	if (end)
		g_string_append_printf(whole->failure, "%s\n%s", end, text);
}

/* ---- the file ---- */

/* XML has no other control characters, and no way to write them. */
static char *escaped(const char *text)
{
	g_autofree char *valid = g_utf8_make_valid(text, -1);

	for (char *c = valid; *c; c++)
		if (((guchar)*c < ' ' && !strchr("\t\n\r", *c)) || *c == 127)
			*c = '?';
	return g_markup_escape_text(valid, -1);
}

static void add_case(GString *out, const struct test *test)
{
	g_autofree char *name = escaped(test->name), *text = escaped(test->failure->str);
	g_auto(GStrv) lines = g_strsplit(text, "\n", 2);

	g_string_append_printf(out, "<testcase classname=\"npusim\" name=\"%s\" time=\"%.3f\">",
			       name, test->seconds);
	if (test->failure->len)
		g_string_append_printf(out, "<failure message=\"%s\">%s</failure>", lines[0], text);
	else if (test->skipped)
		g_string_append(out, "<skipped/>");
	g_string_append(out, "</testcase>\n");
}

gboolean junit_write(const char *path, const struct junit_program *program, GError **error)
{
	g_autoptr(GPtrArray) tests = tests_of(program->notes);
	g_autoptr(GString) out = g_string_new("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
	g_autoptr(GString) name = g_string_new(path);
	g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
	g_autofree char *text = escaped(program->text ? program->text : "");
	guint failures = 0, skipped = 0;

	blame(tests, program);
	for (guint i = 0; i < tests->len; i++) {
		const struct test *test = tests->pdata[i];
		failures += test->failure->len > 0;
		skipped += test->failure->len == 0 && test->skipped;
	}
	g_string_append_printf(out,
			       "<testsuites><testsuite name=\"npusim run\" tests=\"%u\" "
			       "failures=\"%u\" errors=\"0\" skipped=\"%u\" time=\"%.3f\">\n",
			       tests->len, failures, skipped, program->seconds);
	for (guint i = 0; i < tests->len; i++)
		add_case(out, tests->pdata[i]);
	if (*text)
		g_string_append_printf(out, "<system-err>%s</system-err>\n", text);
	g_string_append(out, "</testsuite></testsuites>\n");
	g_string_replace(name, "%p", pid, 0);
	return out_file_write(name->str, out->str, out->len, error);
}
