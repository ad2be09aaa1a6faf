/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads STAlloc's logs: one line for each block that a program allocated (1) or freed (0), with
 * address, size and stream, in order; and marks of iterations and layers, which are counted.
 */
#include <stdio.h>

#include "readers.h"

enum { WHAT, ADDRESS, SIZE, STREAM, COLUMN_COUNT };
static const struct row_column columns[COLUMN_COUNT] = {
	[WHAT] = { "1 or 0", .optional = TRUE },
	[ADDRESS] = { "the address", .optional = TRUE },
	[SIZE] = { "the size", .optional = TRUE },
	[STREAM] = { "the stream", .optional = TRUE },
};

struct log {
	struct trace *trace;
	guint device;
};

static gboolean read_row(struct rows *rows, gpointer data)
{
	const struct log *log = data;
	const char *what = rows_field(rows, WHAT), *stream = rows_field(rows, STREAM);
	struct trace_row row = { .order = (gint64)rows->line, .device = (guint16)log->device };
	gboolean block = strcmp(what, "1") == 0 || strcmp(what, "0") == 0;
	gboolean iteration = strcmp(what, "Iteration") == 0;
	guint64 pointer = 0;

	if (!block && (iteration || strcmp(rows_field(rows, ADDRESS), "Layer") == 0))
		return event_sorter_add_note(log->trace, &row,
					     iteration ? "mark of an iteration" : "mark of a layer",
					     rows->error);
	if (!block)
		return rows_bad(rows,
				"\"%.40s\": 1, 0 or a mark of an iteration or a layer is wanted",
				what);
	if (rows->fields->len < STREAM)
		return rows_bad(rows,
				"%u fields: 1 or 0, an address, a size and a stream are wanted",
				rows->fields->len);
	if (!rows_number(rows, ADDRESS, &row.address) || !rows_number(rows, SIZE, &row.size))
		return FALSE;
	if (*stream && !number_signed(stream, &row.stream) &&
	    !number_parse(stream, G_MAXUINT64, &pointer))
		return rows_bad(rows, "the stream is \"%.40s\"", stream);
	row.stream += (gint64)pointer;
	row.verb = *what == '1' ? NPU_TRACE_ALLOC : NPU_TRACE_FREE;
	return row_list_add(&log->trace->unsorted, &row, rows->error);
}

gboolean stalloc_read(struct trace *trace, struct input *input, GError **error)
{
	struct log log = { .trace = trace };
	g_autofree char *name = g_path_get_basename(input_name(input));
	const char *at = strstr(name, "dev");

	/* mem_log_dev3.txt is of device 3 */
	if (at == NULL || sscanf(at, "dev%4u", &log.device) != 1 || log.device > TRACE_DEVICE_LAST)
		log.device = 0;
	return rows_read(input, ' ', columns, COLUMN_COUNT, read_row, &log, error) &&
	       event_sorter_finish(trace, FALSE, error);
}
