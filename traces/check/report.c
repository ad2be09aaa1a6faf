/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the results for people (a table), for test runners (TAP 13) and for CI servers (JUnit
 * XML).
 */
#include "check.h"

#include <string.h>

#include "config.h"

#define put g_string_append_printf

static const struct case_result *at(const struct check_report *report, guint i)
{
	return g_ptr_array_index(report->results, i);
}

unsigned check_report_count(const struct check_report *report, enum case_status status)
{
	unsigned count = 0;

	for (guint i = 0; i < report->results->len; i++)
		count += at(report, i)->status == status;
	return count;
}

/* ---- table ---- */

/* How often each reason for a skip stands, since there may be dozens of skips. */
static void write_skips(GString *out, const struct check_report *report)
{
	g_autoptr(GHashTable) reasons = g_hash_table_new(g_str_hash, g_str_equal);
	GHashTableIter iter;
	gpointer reason, count;

	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = at(report, i);

		if (r->status == CASE_SKIPPED)
			g_hash_table_insert(reasons, r->text->str,
					    GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(
								     reasons, r->text->str)) +
							     1));
	}
	g_hash_table_iter_init(&iter, reasons);
	while (g_hash_table_iter_next(&iter, &reason, &count))
		put(out, "  %3u skipped: %s\n", GPOINTER_TO_UINT(count), (const char *)reason);
}

static void write_failures(GString *out, const struct check_report *report)
{
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = at(report, i);
		g_auto(GStrv) lines = g_strsplit(r->text->str, "\n", -1);

		if (r->status != CASE_FAILED)
			continue;
		put(out, "\nFAILED device %u  %s.%s\n", r->device, r->test->suite, r->test->name);
		for (char **line = lines; *line != NULL; line++)
			put(out, "  %s\n", *line);
	}
}

/* One line a suite and device. */
static void write_counts(GString *out, const struct check_report *report)
{
	guint i = 0;

	put(out, "device  suite                passed  failed skipped     time\n");
	while (i < report->results->len) {
		const struct case_result *first = at(report, i);
		unsigned counts[3] = { 0 };
		guint64 ns = 0;

		for (; i < report->results->len && at(report, i)->device == first->device &&
		       strcmp(at(report, i)->test->suite, first->test->suite) == 0;
		     i++) {
			counts[at(report, i)->status]++;
			ns += at(report, i)->ns;
		}
		put(out, "%-7u %-20s %6u %7u %7u %6.2f s\n", first->device, first->test->suite,
		    counts[CASE_PASSED], counts[CASE_FAILED], counts[CASE_SKIPPED],
		    (double)ns / 1e9);
	}
}

void check_report_table(GString *out, const struct check_report *report)
{
	put(out, "backend %s, %u x %s\n\n", report->backend, report->server->devices,
	    report->server->soc);
	write_counts(out, report);
	write_skips(out, report);
	write_failures(out, report);
	put(out, "\n%u passed, %u failed, %u skipped\n", check_report_count(report, CASE_PASSED),
	    check_report_count(report, CASE_FAILED), check_report_count(report, CASE_SKIPPED));
}

/* ---- TAP ---- */

void check_report_tap(GString *out, const struct check_report *report)
{
	put(out, "TAP version 13\n1..%u\n", report->results->len);
	put(out, "# backend %s, %u x %s\n", report->backend, report->server->devices,
	    report->server->soc);
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = at(report, i);
		g_auto(GStrv) lines = g_strsplit(r->text->str, "\n", -1);

		put(out, "%sok %u - device %u %s.%s%s%s\n", r->status == CASE_FAILED ? "not " : "",
		    i + 1, r->device, r->test->suite, r->test->name,
		    r->status == CASE_SKIPPED ? " # SKIP " : "",
		    r->status == CASE_SKIPPED ? r->text->str : "");
		if (r->status != CASE_FAILED)
			continue;
		put(out, "  ---\n  message: |\n");
		for (char **line = lines; *line != NULL; line++)
			put(out, "    %s\n", *line);
		put(out, "  ...\n");
	}
}

/* ---- JUnit XML (the host's name is nobody's business) ---- */

static void write_junit_case(GString *out, const struct case_result *r)
{
	g_autofree char *name = g_markup_escape_text(r->test->name, -1);
	g_autofree char *suite = g_markup_escape_text(r->test->suite, -1);
	g_autofree char *text = g_markup_escape_text(r->text->str, -1);

	put(out, "    <testcase classname=\"device%u.%s\" name=\"%s\" time=\"%.6f\"", r->device,
	    suite, name, (double)r->ns / 1e9);
	if (r->status == CASE_PASSED)
		put(out, "/>\n");
	else if (r->status == CASE_SKIPPED)
		put(out, ">\n      <skipped message=\"%s\"/>\n    </testcase>\n", text);
	else
		put(out, ">\n      <failure>%s</failure>\n    </testcase>\n", text);
}

void check_report_junit(GString *out, const struct check_report *report)
{
	g_autofree char *soc = g_markup_escape_text(report->server->soc, -1);
	g_autoptr(GDateTime) start =
		g_date_time_new_from_unix_utc(report->start_us / G_USEC_PER_SEC);
	g_autofree char *time = g_date_time_format(start, "%Y-%m-%dT%H:%M:%SZ");
	guint64 ns = 0;

	for (guint i = 0; i < report->results->len; i++)
		ns += at(report, i)->ns;
	put(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	put(out,
	    "  <testsuite name=\"npusim check %s %s\" tests=\"%u\" failures=\"%u\" errors=\"0\" "
	    "skipped=\"%u\" time=\"%.6f\" timestamp=\"%s\" hostname=\"localhost\">\n",
	    report->backend, soc, report->results->len, check_report_count(report, CASE_FAILED),
	    check_report_count(report, CASE_SKIPPED), (double)ns / 1e9, time);
	put(out,
	    "    <properties>\n      <property name=\"npusim\" value=\"" NPUSIM_VERSION
	    "\"/>\n      <property name=\"backend\" value=\"%s\"/>\n"
	    "      <property name=\"soc\" value=\"%s\"/>\n"
	    "      <property name=\"devices\" value=\"%u\"/>\n    </properties>\n",
	    report->backend, soc, report->server->devices);
	for (guint i = 0; i < report->results->len; i++)
		write_junit_case(out, at(report, i));
	put(out, "  </testsuite>\n</testsuites>\n");
}

/* ---- every call ---- */

void check_report_calls(GString *out, const struct check_report *report)
{
	put(out, "device\tcase\tline\tstep\tcode\tvalue\tns\n");
	for (guint i = 0; i < report->results->len; i++) {
		const struct case_result *r = at(report, i);

		for (guint a = 0; a < r->answers->len; a++) {
			const struct case_said *answer =
				&g_array_index(r->answers, struct case_said, a);
			g_autofree char *step = g_strescape(answer->step->text, NULL);

			put(out, "%u\t%s.%s\t%d\t%s\t%d\t%s\t%" G_GUINT64_FORMAT "\n", r->device,
			    r->test->suite, r->test->name, answer->step->line, step, answer->code,
			    answer->value, answer->ns);
		}
	}
}
