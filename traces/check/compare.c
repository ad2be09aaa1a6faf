/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the answers of two backends to one case, step by step.
 */
#include "check.h"

#include <string.h>

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
