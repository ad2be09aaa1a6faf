/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the conformance cases that can run on one device, runs them, keeps their answers, and
 * compares those of two backends step by step.
 */
#include "check.h"

#include <string.h>

/* ---- what a case needs ---- */

/* A number of bytes in a word such as "4M" or "h+2G"; names count as nothing. */
static guint64 bytes_of(const char *word)
{
	guint64 sum = 0;

	while (*word != '\0') {
		char *end;
		guint64 value = g_ascii_strtoull(word, &end, 0);

		if (end != word) {
			const char *unit = strchr("KMGT", *end);

			if (*end != '\0' && unit != NULL)
				value <<= 10 * (unit - "KMGT" + 1);
			sum += value;
		}
		word = end + strcspn(end, "+");
		word += *word == '+';
	}
	return sum;
}

static gboolean makes_memory(const struct case_step *step)
{
	const char *verb = step->argv[0];

	if (strcmp(verb, "call") == 0)
		return step->argc > 1 && (strstr(step->argv[1], "alloc") != NULL ||
					  strstr(step->argv[1], "Alloc") != NULL);
	return strcmp(verb, "create") == 0 || g_str_has_prefix(verb, "malloc") ||
	       strcmp(verb, "plain") == 0;
}

/* The most that the steps of a case could hold together. */
static guint64 memory_of(const struct test_case *test)
{
	guint64 sum = 0;

	for (guint s = 0; s < test->steps->len; s++) {
		const struct case_step *step = case_step_at(test, s);

		for (int a = 2; makes_memory(step) && a < step->argc; a++)
			if (strchr(step->argv[a], '=') == NULL)
				sum += bytes_of(step->argv[a]);
	}
	return sum;
}

/* The highest id of a device that a step names and that a server may have. */
static unsigned highest_device(const struct test_case *test)
{
	unsigned highest = 0;

	for (guint s = 0; s < test->steps->len; s++) {
		const struct case_step *step = case_step_at(test, s);
		gboolean bare = strcmp(step->argv[0], "device") == 0 ||
				g_str_has_prefix(step->argv[0], "peer");

		for (int a = 1; a < step->argc; a++) {
			const char *word = strstr(step->argv[a], "device:");
			guint64 id = word != NULL ? g_ascii_strtoull(word + 7, NULL, 10)
				     : bare       ? g_ascii_strtoull(step->argv[a], NULL, 10)
						  : 0;

			if (id < 16 && id > highest)
				highest = (unsigned)id;
		}
	}
	return highest;
}

/* Some answers have the driver's number of a device, which is not the one that the case's process
 * sees. */
static gboolean names_devices(const struct test_case *test)
{
	for (guint s = 0; s < test->steps->len; s++) {
		const char *value = case_step_at(test, s)->docs.value;
		const char *other = case_step_at(test, s)->driver.value;

		if ((value != NULL && strstr(value, "device:") != NULL) ||
		    (other != NULL && strstr(other, "device:") != NULL))
			return TRUE;
	}
	return FALSE;
}

static gboolean sets(const struct test_case *test, const char *name)
{
	for (guint i = 0; i < test->settings->len; i++)
		if (g_str_has_prefix(g_ptr_array_index(test->settings, i), name))
			return TRUE;
	return FALSE;
}

const char *check_case_skip(const struct test_case *test, const struct check_limits *limits)
{
	g_autofree char *text = NULL;
	guint64 bytes = memory_of(test);
	unsigned needed = MAX(highest_device(test) + 1, test->devices);

	if (test->full_size && !limits->full)
		return "fills a device, and --full is not given";
	if (test->full_size && !limits->same_shape)
		return "is written for a server of eight devices, each with all its memory free";
	if (limits->most_bytes > 0 && bytes > limits->most_bytes) {
		text = g_strdup_printf("takes up to %" G_GUINT64_FORMAT
				       " MiB, and %" G_GUINT64_FORMAT
				       " are allowed (--safe, --max-memory)",
				       bytes >> 20, limits->most_bytes >> 20);
		return g_intern_string(text);
	}
	if (needed > limits->devices) {
		text = g_strdup_printf("needs %u devices, and there are %u from this one on",
				       needed, limits->devices);
		return g_intern_string(text);
	}
	if (limits->device > 0 && names_devices(test))
		return "its answers name device 0";
	if (!limits->is_first &&
	    (sets(test, "ASCEND_RT_VISIBLE_DEVICES") || sets(test, "NPUSIM_SOC")))
		return "chooses its own devices: it ran with the first one";
	return NULL;
}

/* ---- running ---- */

static void clear_answer(gpointer data)
{
	g_free(((struct check_answer *)data)->value);
}

static struct check_result *result_new(const struct test_case *test, unsigned device)
{
	struct check_result *result = g_new0(struct check_result, 1);

	result->test = test;
	result->device = device;
	result->text = g_string_new(NULL);
	result->answers = g_array_new(FALSE, FALSE, sizeof(struct check_answer));
	g_array_set_clear_func(result->answers, clear_answer);
	return result;
}

static void note_failure(void *arg, const struct test_case *test, const struct case_step *step,
			 const char *text)
{
	static const char gone[] = "answered the end of the process (signal or status 0)";
	struct check_result *result = arg;
	g_autofree char *file = g_path_get_basename(test->file);

	/* What a process does not do once it has ended is no news. */
	if (g_str_has_prefix(text, gone) && result->text->len > 0)
		return;
	g_string_append_printf(result->text, "%s%s:%d: %s: %s", result->text->len > 0 ? "\n" : "",
			       file, step->line, step->text, text);
}

static void note_answer(void *arg, const struct test_case *test, const struct case_step *step,
			const struct case_answer *answer, uint64_t ns)
{
	struct check_result *result = arg;
	struct check_answer kept = {
		.step = step, .code = answer->code, .ns = ns, .value = g_strdup(answer->value)
	};

	(void)test;
	result->ns += ns;
	g_array_append_val(result->answers, kept);
}

struct check_result *check_case_run(const struct test_case *test, unsigned device,
				    const char *library, gboolean driver)
{
	struct check_result *result = result_new(test, device);
	struct case_options options = { .library = library,
					.driver = driver,
					.failed = note_failure,
					.answered = note_answer,
					.arg = result };

	result->status = case_run(test, &options) ? CHECK_PASSED : CHECK_FAILED;
	return result;
}

struct check_result *check_case_skipped(const struct test_case *test, unsigned device,
					const char *reason)
{
	struct check_result *result = result_new(test, device);

	result->status = CHECK_SKIPPED;
	g_string_assign(result->text, reason);
	return result;
}

void check_result_free(struct check_result *result)
{
	if (result == NULL)
		return;
	g_string_free(result->text, TRUE);
	g_array_unref(result->answers);
	g_free(result);
}

/* ---- two backends ---- */

static void watch(struct test_case *test, const char *verb, const char *name)
{
	struct case_step step = { .line = test->line, .text = g_strjoin(" ", verb, name, NULL) };

	step.argv = g_strsplit(step.text, " ", -1);
	step.argc = (int)g_strv_length(step.argv);
	g_array_append_val(test->steps, step);
}

void check_case_watch(struct test_case *test)
{
	g_autoptr(GHashTable) addresses = g_hash_table_new(g_str_hash, g_str_equal);
	guint count = test->steps->len;
	gboolean marked = FALSE;

	for (guint s = 0; s < count; s++)
		if (case_step_at(test, s)->docs.code <= CASE_SIGNAL)
			return; /* nobody is left to be asked */
	for (guint s = 0; s < count; s++) {
		const struct case_step *step = case_step_at(test, s);
		const char *verb = step->argv[0], *name = step->argc > 1 ? step->argv[1] : NULL;

		marked |= step->process == 0 && strcmp(verb, "mark") == 0;
		if (step->process != 0 || name == NULL ||
		    (!g_str_has_prefix(verb, "reserve") && !g_str_has_prefix(verb, "malloc")) ||
		    !g_hash_table_add(addresses, (char *)name))
			continue;
		watch(test, "whose", name);
		watch(test, "range", name);
		watch(test, "access", name);
	}
	if (marked)
		watch(test, "used", NULL);
}

static void say_expected(GString *text, const struct case_dialect *dialect, const char *who,
			 const struct case_expect *expected)
{
	g_string_append_printf(text, "; %s: %s%s%s", who, case_code_text(dialect, expected->code),
			       expected->value != NULL ? ": " : "",
			       expected->value != NULL ? expected->value : "");
}

static void say_answer(GString *text, const struct case_dialect *dialect, const char *who,
		       const struct check_answer *answer)
{
	g_string_append_printf(text, "%s %s%s%s", who, case_code_text(dialect, answer->code),
			       answer->value[0] != '\0' ? ": " : "", answer->value);
}

static void say_difference(struct check_result *result, const struct check_answer *a,
			   const struct check_answer *b, const char *name, const char *other_name)
{
	const struct case_dialect *dialect = result->test->dialect;
	g_autofree char *file = g_path_get_basename(result->test->file);

	g_string_append_printf(result->text, "%s%s:%d: %s: ", result->text->len > 0 ? "\n" : "",
			       file, a->step->line, a->step->text);
	say_answer(result->text, dialect, name, a);
	g_string_append(result->text, ", ");
	say_answer(result->text, dialect, other_name, b);
	if (a->step->docs.given)
		say_expected(result->text, dialect, "the documents say", &a->step->docs);
	if (a->step->driver.given)
		say_expected(result->text, dialect, "the driver's source", &a->step->driver);
}

unsigned check_compare(struct check_result *result, const struct check_result *other,
		       const char *name, const char *other_name)
{
	guint count = MIN(result->answers->len, other->answers->len);
	unsigned differences = 0;

	for (guint i = 0; i < count; i++) {
		const struct check_answer *a =
			&g_array_index(result->answers, struct check_answer, i);
		const struct check_answer *b =
			&g_array_index(other->answers, struct check_answer, i);

		if (a->code == b->code && strcmp(a->value, b->value) == 0)
			continue;
		say_difference(result, a, b, name, other_name);
		differences++;
	}
	if (differences > 0 && result->status == CHECK_PASSED)
		result->status = CHECK_FAILED;
	return differences;
}
