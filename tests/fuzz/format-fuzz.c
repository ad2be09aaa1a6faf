/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim traces, gzip or not: any bytes give records or an error, and the same ones the second
 * time.
 */
#include "format.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct trace_record record;
	guint64 events = 0;
	int result = 0;
	struct input *input = input_open_bytes(bytes, count, "input", &error);
	struct trace *trace = input ? format_read(input, &error) : NULL;

	g_assert((trace == NULL) == (error != NULL));
	if (trace) {
		while ((result = format_next(trace->format, &record, &error)) > 0)
			events++;
		g_assert(result == 0 && error == NULL && events == trace->events);
	}
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
