/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the results for people (a table), for test runners (TAP 13), and step by step.
 */
#include "check.h"

#include <string.h>

#define put g_string_append_printf

/* The lines of a result's text, each behind `before`. */
static void write_text(GString *out, const struct case_result *r, const char *before)
{
	g_auto(GStrv) lines = g_strsplit(r->text->str, "\n", -1);

	for (char **line = lines; *line != NULL; line++)
		put(out, "%s%s\n", before, *line);
}

void check_report_table(GString *out, const struct check_report *report)
{
	g_autoptr(GHashTable) reasons = g_hash_table_new(g_str_hash, g_str_equal);
	GHashTableIter iter;
	gpointer reason, count;

	put(out, "backend %s, %u x %s\n\n", report->backend, report->server.devices,
	    report->server.soc);
	put(out, "device  suite                passed  failed skipped     time\n");
	for (guint i = 0; i < report->results->len;) { /* one line a suite and device */
		const struct case_result *first = report->results->pdata[i], *r = first;
		unsigned counts[3] = { 0 };
		guint64 ns = 0;

		for (;
		     r->device == first->device && strcmp(r->test->suite, first->test->suite) == 0;
		     r = report->results->pdata[i]) {
			counts[r->status]++;
			ns += r->ns;
			/* how often each reason stands: there may be dozens of skips */
			count = g_hash_table_lookup(reasons, r->text->str);
			if (r->status == CASE_SKIPPED)
				g_hash_table_insert(reasons, r->text->str, (char *)count + 1);
			if (++i == report->results->len)
				break;
		}
		put(out, "%-7u %-20s %6u %7u %7u %6.2f s\n", first->device, first->test->suite,
		    counts[CASE_PASSED], counts[CASE_FAILED], counts[CASE_SKIPPED],
		    (double)ns / 1e9);
	}
	g_hash_table_iter_init(&iter, reasons);
	while (g_hash_table_iter_next(&iter, &reason, &count))
		put(out, "  %3u skipped: %s\n", GPOINTER_TO_UINT(count), (const char *)reason);
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = report->results->pdata[i];

		if (r->status != CASE_FAILED)
			continue;
		put(out, "\nFAILED device %u  %s.%s\n", r->device, r->test->suite, r->test->name);
		write_text(out, r, "  ");
	}
	put(out, "\n%u passed, %u failed, %u skipped\n", report->counts[CASE_PASSED],
	    report->counts[CASE_FAILED], report->counts[CASE_SKIPPED]);
}

void check_report_tap(GString *out, const struct check_report *report)
{
	put(out, "TAP version 13\n1..%u\n", report->results->len);
	put(out, "# backend %s, %u x %s\n", report->backend, report->server.devices,
	    report->server.soc);
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = report->results->pdata[i];

		put(out, "%sok %u - device %u %s.%s%s%s\n", r->status == CASE_FAILED ? "not " : "",
		    i + 1, r->device, r->test->suite, r->test->name,
		    r->status == CASE_SKIPPED ? " # SKIP " : "",
		    r->status == CASE_SKIPPED ? r->text->str : "");
		if (r->status != CASE_FAILED)
			continue;
		put(out, "  ---\n  message: |\n");
		write_text(out, r, "    ");
		put(out, "  ...\n");
	}
}

void check_report_calls(GString *out, const struct check_report *report)
{
	put(out, "device\tcase\tline\tstep\tcode\tvalue\tns\n");
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = report->results->pdata[i];

		for (guint a = 0; a < r->answers->len; a++) {
			const struct case_said *answer =
				&g_array_index(r->answers, struct case_said, a);
			const struct case_step *step = case_step_at(r->test, a);
			g_autofree char *text = g_strescape(step->text, NULL);

			put(out, "%u\t%s.%s\t%d\t%s\t%d\t%s\t%" G_GUINT64_FORMAT "\n", r->device,
			    r->test->suite, r->test->name, step->line, text, answer->code,
			    answer->value, answer->ns);
		}
	}
}
