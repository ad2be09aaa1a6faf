/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads memory_block.csv of MindSpore's memory tracker: a row is a block from its first tick to
 * its last. Ticks are a counter, not a time. Columns are found by name, since they differ between
 * versions.
 */
#include <string.h>

#include "event-sorter.h"
#include "readers.h"
#include "rows.h"
#include "sites.h"

enum { START, END, ADDRESS, STREAM, POOL, SIZE, COLUMN_COUNT };
static const char *const columns[COLUMN_COUNT] = {
	[START] = "start_time_stamp", [END] = "end_time_stamp", [ADDRESS] = "device_addr",
	[STREAM] = "stream_id",       [POOL] = "pool_type",     [SIZE] = "size",
};

/* Who asked: the first of them that the row has, and the place in the source. */
static const char *const who[] = { "node_name", "task_name", "producer_task" };

struct blocks {
	struct event_sorter *sorter;
	guint at[COLUMN_COUNT], last; /* of the columns, and the last of them */
	guint who_at[G_N_ELEMENTS(who)], file_at, line_at; /* G_MAXUINT: there is no such column */
};

gboolean mindspore_recognise(const guint8 *bytes, gsize count)
{
	return readers_begin_with(bytes, count, "start_time_stamp,end_time_stamp,");
}

static guint32 find_site(struct blocks *b, const struct rows *rows)
{
	struct site_frame f = { .file = rows_field(rows, b->file_at), .name = "" };

	for (guint i = 0; i < G_N_ELEMENTS(who) && *f.name == '\0'; i++)
		f.name = rows_field(rows, b->who_at[i]);
	f.name_length = strlen(f.name);
	f.file_length = strlen(f.file);
	if (!rows_signed(rows_field(rows, b->line_at), &f.line))
		f.line = 0;
	return f.name_length + f.file_length > 0 ? sites_add(event_sorter_sites(b->sorter), &f, 1)
						 : SITE_NONE;
}

static gboolean leave_out(struct blocks *b, struct event_row *row, const char *name, GError **error)
{
	row->row.verb = NPU_TRACE_NOTE;
	row->row.text = event_sorter_note(b->sorter, name);
	return event_sorter_add(b->sorter, row, error);
}

static gboolean add_row(struct blocks *b, const struct rows *rows, GError **error)
{
	struct event_row row = { .serial = rows_line(rows) };
	gint64 end;
	const char *start = rows_field(rows, b->at[START]), *pool = rows_field(rows, b->at[POOL]);
	const char *stream = rows_field(rows, b->at[STREAM]), *size = rows_field(rows, b->at[SIZE]);
	const char *address = rows_field(rows, b->at[ADDRESS]);

	if (rows_count(rows) <= b->last)
		return readers_bad(rows_line(rows), error,
				   "%u fields, and the header has %u: the row breaks off",
				   rows_count(rows), b->last + 1);
	if (!rows_signed(start, &row.order))
		return readers_bad(rows_line(rows), error,
				   "start_time_stamp is \"%.40s\", no number", start);
	g_autofree char *lower = g_ascii_strdown(pool, -1);
	if (strstr(lower, "cpu"))
		return leave_out(b, &row, "block of the host", error);
	if (row.order < 0)
		return leave_out(b, &row, "block inside another (start -1)", error);
	if (!readers_number(row.serial, "device_addr", address, strlen(address), &row.row.address,
			    error) ||
	    !readers_number(row.serial, "size", size, strlen(size), &row.row.size, error))
		return FALSE;
	if (*stream && !rows_signed(stream, &row.row.stream))
		return readers_bad(rows_line(rows), error, "stream_id is \"%.40s\", no number",
				   stream);
	row.row.text = find_site(b, rows);
	/* none, -1 or a huge number: it was never given back */
	if (!rows_signed(rows_field(rows, b->at[END]), &end) || end == G_MAXINT64)
		end = G_MININT64;
	return event_sorter_add_block(b->sorter, &row, end, error);
}

static gboolean read_rows(struct blocks *b, struct rows *rows, GError **error)
{
	int more = rows_next(rows, error);

	if (more < 0 || !rows_columns(rows, columns, COLUMN_COUNT, b->at, error))
		return FALSE;
	for (int c = 0; c < COLUMN_COUNT; c++)
		b->last = MAX(b->last, b->at[c]);
	for (guint i = 0; i < G_N_ELEMENTS(who); i++)
		b->who_at[i] = rows_column(rows, who[i]);
	b->file_at = rows_column(rows, "file_name");
	b->line_at = rows_column(rows, "line_num");
	while ((more = rows_next(rows, error)) > 0) {
		if (!add_row(b, rows, error))
			return FALSE;
	}
	return more == 0;
}

struct trace *mindspore_read(struct input *input, GError **error)
{
	struct blocks b = { .sorter = event_sorter_new("MindSpore memory_block.csv") };
	struct rows *rows = rows_open(input, ',');
	gboolean ok = read_rows(&b, rows, error);

	rows_close(rows);
	input_close(input);
	return event_sorter_finish(b.sorter, ok, FALSE, error);
}
