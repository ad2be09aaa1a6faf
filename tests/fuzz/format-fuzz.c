/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim traces, gzip or not: any bytes give records or an error, and the same ones the second
 * time; what the reader of npusim/trace.h answers, its writer can write, and it reads that back
 * equal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "npusim/trace.h"
#include "read/readers.h"

#define FIRST_LINE "npusim-trace 1\n"

/* All records of a reader as lines, to be freed; those that are too long as %XX are left out. */
static char *write_all(struct npu_trace_reader *reader, guint64 *events, int *result)
{
	static char line[NPU_TRACE_LINE_MAX];
	GString *text = g_string_new(FIRST_LINE);
	struct npu_trace_record record;

	while ((*result = npu_trace_reader_next(reader, &record)) > 0) {
		int length = npu_trace_line(&record, line, sizeof line, NULL);

		g_assert(length > 0 || length == -E2BIG);
		if (length > 0)
			g_string_append_len(text, line, length);
		++*events;
	}
	return g_string_free(text, FALSE);
}

static guint64 read_public(const uint8_t *bytes, size_t count)
{
	char *error = NULL;
	struct npu_trace_reader *reader =
		npu_trace_reader_open_bytes(bytes, count, "input", &error);
	guint64 events = 0, again = 0;
	int result;

	g_assert((reader == NULL) == (error != NULL));
	free(error);
	if (reader == NULL)
		return 0;
	g_autofree char *text = write_all(reader, &events, &result);
	g_assert((result < 0) == (npu_trace_reader_error(reader)[0] != '\0'));
	npu_trace_reader_close(reader);
	reader = npu_trace_reader_open_bytes(text, strlen(text), "lines", NULL);
	g_assert(reader != NULL);
	g_autofree char *once_more = write_all(reader, &again, &result);
	g_assert(result == 0 && again <= events && strcmp(text, once_more) == 0);
	npu_trace_reader_close(reader);
	return events;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct record_item item;
	guint64 events = 0;
	int result = 0;
	struct input *input = input_open_bytes(bytes, count, "input", &error);
	struct trace *trace = input ? readers_read(npusim_read, "fuzz", input, &error) : NULL;
	guint64 public_events = read_public(bytes, count);

	g_assert((trace == NULL) == (error != NULL));
	if (trace) {
		while ((result = trace_next(trace, &item, &error)) > 0)
			events += item.number > 0;
		g_assert(result == 0 && error == NULL && events == trace->events);
		g_assert(events <= public_events); /* less what was there at the start */
	}
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
