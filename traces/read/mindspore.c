/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads memory_block.csv of MindSpore's memory tracker: a row is a block from its first tick to
 * its last. Ticks are a counter, not a time. Columns are found by name, since they differ between
 * versions.
 */
#include "readers.h"

enum { START, END, ADDRESS, STREAM, POOL, SIZE, NODE, TASK, PRODUCER, SOURCE, LINE, COLUMN_COUNT };
static const struct row_column columns[COLUMN_COUNT] = {
	[START] = { "start_time_stamp" },
	[END] = { "end_time_stamp" },
	[ADDRESS] = { "device_addr" },
	[STREAM] = { "stream_id" },
	[POOL] = { "pool_type" },
	[SIZE] = { "size" },
	/* who asked: the first of them that the row has, and the place in the source */
	[NODE] = { "node_name", .optional = TRUE },
	[TASK] = { "task_name", .optional = TRUE },
	[PRODUCER] = { "producer_task", .optional = TRUE },
	[SOURCE] = { "file_name", .optional = TRUE },
	[LINE] = { "line_num", .optional = TRUE },
};

static gboolean read_row(struct rows *rows, gpointer data)
{
	struct trace *trace = data;
	struct trace_row row = { .serial = rows->line };
	const char *start = rows_field(rows, START), *stream = rows_field(rows, STREAM);
	const char *file = rows_field(rows, SOURCE), *name = "";
	g_autoptr(GString) frame = g_string_new(NULL);
	gint64 end, line = 0;

	if (!number_signed(start, &row.order))
		return rows_bad(rows, "start_time_stamp is \"%.40s\", no number", start);
	g_autofree char *lower = g_ascii_strdown(rows_field(rows, POOL), -1);
	if (strstr(lower, "cpu"))
		return event_sorter_add_note(trace, &row, "block of the host", rows->error);
	if (row.order < 0)
		return event_sorter_add_note(trace, &row, "block inside another (start -1)",
					     rows->error);
	if (!rows_number(rows, ADDRESS, &row.address) || !rows_number(rows, SIZE, &row.size))
		return FALSE;
	if (*stream && !number_signed(stream, &row.stream))
		return rows_bad(rows, "stream_id is \"%.40s\", no number", stream);
	for (guint c = NODE; c <= PRODUCER && *name == '\0'; c++)
		name = rows_field(rows, c);
	number_signed(rows_field(rows, LINE), &line);
	site_frame_add(frame, name, strlen(name), file, strlen(file), line);
	row.text = *name || *file ? sites_add(trace_sites(trace), frame->str) : SITE_NONE;
	/* none, -1 or a huge number: it was never given back */
	if (!number_signed(rows_field(rows, END), &end) || end == G_MAXINT64)
		end = G_MININT64;
	return event_sorter_add_block(trace, &row, end, rows->error);
}

gboolean mindspore_read(struct trace *trace, struct input *input, GError **error)
{
	return rows_read(input, ',', columns, COLUMN_COUNT, read_row, trace, error) &&
	       event_sorter_finish(trace, FALSE, error);
}
