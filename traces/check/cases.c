/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which devices there are to check, by steps of a case, so that a crash of the driver
 * becomes an error message; and compares the answers of two backends step by step.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	static const struct test_case alone = { .dialect = &case_acl, .processes = 1 };
	enum { INIT, DEVICES, SOC, BACKEND, STEPS };
	static const char *const steps[STEPS] = { "init", "devices", "soc", "backend" };
	struct case_processes *processes = case_start(&alone, library);
	struct case_answer answers[STEPS], answer;
	gboolean good = TRUE;

	for (int i = 0; good && i < STEPS; i++)
		good = case_need(processes, 0, steps[i], &answers[i], error);
	if (good) {
		out->devices = MIN((unsigned)atoi(answers[DEVICES].value), CHECK_DEVICES_MAX);
		g_strlcpy(out->soc, answers[SOC].value, sizeof(out->soc));
		out->backend = g_strdup(answers[BACKEND].value);
	}
	for (unsigned d = 0; d < out->devices; d++) {
		g_autofree char *open = g_strdup_printf("device %u", d);
		g_autofree char *reset = g_strdup_printf("reset-device %u", d);
		g_autoptr(GError) why = NULL;

		if (case_need(processes, 0, open, &answer, &why) &&
		    case_need(processes, 0, "memory", &answer, &why)) {
			sscanf(answer.value, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
			       &out->free_bytes[d], &out->total_bytes[d]);
			case_need(processes, 0, reset, &answer, NULL);
		} else {
			out->trouble[d] = g_intern_string(why->message);
		}
		if (answer.code > CASE_SIGNAL)
			continue;
		case_end(processes); /* it has ended: the next device has another */
		processes = case_start(&alone, library);
		case_need(processes, 0, steps[INIT], &answer, NULL);
	}
	case_need(processes, 0, "finalize", &answer, NULL);
	case_end(processes);
	return good;
}

static void watch(struct test_case *test, guint at, const char *verb, const char *name)
{
	g_autofree char *text = g_strjoin(" ", verb, name, NULL);
	struct case_step step = { .line = test->line, .words = g_intern_string(text) };

	step.text = step.words;
	g_array_insert_val(test->steps, at, step);
}

void check_case_watch(struct test_case *test)
{
	g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
	g_autoptr(GString) all = g_string_new(NULL);
	guint count = test->steps->len, devices = 0, start = 0;
	gboolean marked = FALSE;

	for (guint s = 0; s < count; s++) {
		if (case_step_at(test, s)->docs.code <= CASE_SIGNAL)
			return; /* nobody is left to be asked */
		g_string_append_printf(all, "%s\n", case_step_at(test, s)->text);
	}
	for (guint s = 0; s < count; s++) {
		const struct case_step *step = case_step_at(test, s);
		g_auto(GStrv) words = g_strsplit(step->words, " ", 3);
		const char *verb = words[0], *name = g_intern_string(words[1]);
		gboolean address =
			g_str_has_prefix(verb, "reserve") || g_str_has_prefix(verb, "malloc");

		marked |= step->process == 0 && strcmp(verb, "mark") == 0;
		if (step->process == 0 && strcmp(verb, "device") == 0 && devices++ == 0)
			start = s + 1;
		if (step->process != 0 || name == NULL ||
		    (!address && strcmp(verb, "create") != 0) ||
		    !g_hash_table_add(names, (char *)name))
			continue;
		if (address) {
			watch(test, test->steps->len, "whose", name);
			watch(test, test->steps->len, "range", name);
			watch(test, test->steps->len, "access", name);
			continue;
		}
		/* a driver must not be asked for an object that a step may have ended */
		g_autofree char *pattern =
			g_strdup_printf("(reset|finalize|(destroy|call) .*\\b%s\\b)", name);
		if (!g_regex_match_simple(pattern, all->str, G_REGEX_CASELESS, 0))
			watch(test, test->steps->len, "properties", name);
	}
	/* of two devices nothing says which is the current one at the end */
	if (!marked && devices == 1)
		watch(test, start, "mark", NULL);
	if (marked || devices == 1)
		watch(test, test->steps->len, "used", NULL);
}

void check_compare(struct case_result *result, const struct case_result *other, const char *name,
		   const char *other_name)
{
	const char *const who[] = { name, other_name,
				    "the documents say:", "the driver's source:" };
	static const char *const before[] = { "", ", ", "; ", "; " };

	for (guint i = 0; i < MIN(result->answers->len, other->answers->len); i++) {
		const struct case_said *a = &g_array_index(result->answers, struct case_said, i);
		const struct case_said *b = &g_array_index(other->answers, struct case_said, i);
		const struct case_step *step = case_step_at(result->test, i);
		const struct case_said *const said[] = { a, b, &step->docs, &step->driver };

		if (a->code == b->code && a->cause == b->cause && strcmp(a->value, b->value) == 0)
			continue;
		GString *text = case_result_fail(result, step);
		for (guint k = 0; k < G_N_ELEMENTS(said); k++) {
			const char *value = said[k]->value ?: "";

			if (!said[k]->given)
				continue;
			g_string_append_printf(text, "%s%s %s%s%s", before[k], who[k],
					       case_code_text(result->test->dialect, said[k]->code),
					       *value ? ": " : "", value);
			if (said[k]->cause != 0)
				g_string_append_printf(text, ", since the driver answered %d",
						       said[k]->cause);
		}
	}
}
