/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which devices there are to check, by steps of a case, so that a crash of the driver
 * becomes an error message; selects the conformance cases that can run on one of them, and compares
 * the answers of two backends step by step.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case-step.h"

static gboolean ask_device(struct case_processes *processes, struct check_server *out,
			   GError **error)
{
	g_autofree char *words = g_strdup_printf("device %u", out->devices);
	struct case_answer answer;

	if (!case_need(processes, 0, words, &answer, error) ||
	    !case_need(processes, 0, "memory", &answer, error)) {
		g_prefix_error(error, "%s: ", words);
		return FALSE;
	}
	sscanf(answer.value, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
	       &out->free_bytes[out->devices], &out->total_bytes[out->devices]);
	out->devices++;
	return TRUE;
}

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	static const struct test_case alone = { .dialect = &case_acl,
						.processes = 1,
						.bare = TRUE };
	enum { INIT, DEVICES, SOC, BACKEND, STEPS };
	static const char *const steps[STEPS] = { "init", "devices", "soc", "backend" };
	struct case_processes *processes = case_start(&alone, library);
	struct case_answer answers[STEPS];
	gboolean good = TRUE;

	memset(out, 0, sizeof(*out));
	for (int i = 0; good && i < STEPS; i++)
		good = case_need(processes, 0, steps[i], &answers[i], error);
	unsigned count = good ? (unsigned)atoi(answers[DEVICES].value) : 0;
	if (good && count == 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver is there, and has no device");
	good = count > 0;
	while (good && out->devices < MIN(count, CHECK_DEVICES_MAX))
		good = ask_device(processes, out, error);
	case_end(processes);
	if (good) {
		g_strlcpy(out->soc, answers[SOC].value, sizeof(out->soc));
		out->backend = g_strdup(answers[BACKEND].value);
	}
	return good;
}

/* The most that the steps of a case could hold together, in whole pages of the largest that each
 * may get: 1 GiB where it asks for them, else 2 MiB; variables count as nothing. */
static guint64 memory_of(const struct test_case *test)
{
	guint64 sum = 0, bytes;

	for (guint s = 0; s < test->steps->len; s++) {
		char **argv = case_step_at(test, s)->argv;
		g_autofree char *words = g_strjoinv(" ", argv);
		guint64 page = g_regex_match_simple("(huge1g|policy=[67])( |$)", words, 0, 0)
				       ? G_GUINT64_CONSTANT(1) << 30
				       : 2 << 20;

		if (!g_regex_match_simple("^(call \\S*[Aa]lloc|create |malloc|plain )", words, 0,
					  0))
			continue;
		for (int a = 2; argv[1] != NULL && argv[a] != NULL; a++) {
			if (strchr(argv[a], '=') != NULL)
				continue;
			case_number(argv[a], &bytes);
			sum += (bytes + page - 1) / page * page;
		}
	}
	return sum;
}

static gboolean sets(const struct test_case *test, const char *name)
{
	for (guint i = 0; i < test->settings->len; i++)
		if (g_str_has_prefix(g_ptr_array_index(test->settings, i), name))
			return TRUE;
	return FALSE;
}

struct case_result *check_case_skip(const struct test_case *test, const struct check_limits *limits)
{
	struct case_result *result = case_result_new(test);
	guint64 bytes = memory_of(test);

	result->status = CASE_SKIPPED;
	if (test->full_size && !limits->full)
		g_string_assign(result->text, "fills a device, and --full is not given");
	else if (test->full_size && !limits->same_shape)
		g_string_assign(result->text, "is written for a server of eight devices, each "
					      "with all its memory free");
	else if (limits->most_bytes > 0 && bytes > limits->most_bytes)
		g_string_printf(result->text,
				"takes up to %" G_GUINT64_FORMAT " MiB, and %" G_GUINT64_FORMAT
				" are allowed (--safe, --max-memory)",
				bytes >> 20, limits->most_bytes >> 20);
	else if (test->devices > limits->devices)
		g_string_printf(result->text, "needs %u devices, and there are %u from this one on",
				test->devices, limits->devices);
	else if (limits->device > 0 && test->numbered)
		g_string_assign(result->text, "its answers name device 0");
	else if (!limits->is_first &&
		 (sets(test, "ASCEND_RT_VISIBLE_DEVICES") || sets(test, "NPUSIM_SOC")))
		g_string_assign(result->text, "chooses its own devices: it ran with the first one");
	if (result->text->len == 0)
		g_clear_pointer(&result, case_result_free);
	return result;
}

/* Whether a step may end the object of this name, so that a driver must not be asked for it. */
static gboolean may_end(const struct test_case *test, const char *name)
{
	g_autofree char *pattern =
		g_strdup_printf("(reset|finalize|(destroy|call) .*\\b%s\\b)", name);

	for (guint s = 0; s < test->steps->len; s++)
		if (g_regex_match_simple(pattern, case_step_at(test, s)->text, G_REGEX_CASELESS, 0))
			return TRUE;
	return FALSE;
}

static void watch(struct test_case *test, const char *verb, const char *name)
{
	struct case_step step = { .line = test->line, .text = g_strjoin(" ", verb, name, NULL) };

	step.argv = g_strsplit(step.text, " ", -1);
	g_array_append_val(test->steps, step);
}

void check_case_watch(struct test_case *test)
{
	g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
	guint count = test->steps->len;
	gboolean marked = FALSE;

	for (guint s = 0; s < count; s++)
		if (case_step_at(test, s)->docs.code <= CASE_SIGNAL)
			return; /* nobody is left to be asked */
	for (guint s = 0; s < count; s++) {
		const struct case_step *step = case_step_at(test, s);
		const char *verb = step->argv[0], *name = step->argv[1];

		gboolean address =
			g_str_has_prefix(verb, "reserve") || g_str_has_prefix(verb, "malloc");

		marked |= step->process == 0 && strcmp(verb, "mark") == 0;
		if (step->process != 0 || name == NULL ||
		    (!address && strcmp(verb, "create") != 0) ||
		    !g_hash_table_add(names, (char *)name))
			continue;
		if (address) {
			watch(test, "whose", name);
			watch(test, "range", name);
			watch(test, "access", name);
		} else if (!may_end(test, name)) {
			watch(test, "properties", name);
		}
	}
	if (marked)
		watch(test, "used", NULL);
}

void check_compare(struct case_result *result, const struct case_result *other, const char *name,
		   const char *other_name)
{
	const char *const who[] = { name, other_name,
				    "the documents say:", "the driver's source:" };

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
			g_string_append_printf(text, "%s%s %s%s%s",
					       k == 0   ? ""
					       : k == 1 ? ", "
							: "; ",
					       who[k],
					       case_code_text(result->test->dialect, said[k]->code),
					       *value ? ": " : "", value);
			if (said[k]->cause != 0)
				g_string_append_printf(text, ", since the driver answered %d",
						       said[k]->cause);
		}
	}
}
