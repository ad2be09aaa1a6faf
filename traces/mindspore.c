/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_block.csv of MindSpore's memory tracker: a row is a block from its first tick to its last.
 * Ticks are a counter, no time. Columns are found by their names, since each version has others.
 */
#include <string.h>

#include "history.h"
#include "readers.h"
#include "rows.h"

enum { START, END, ADDRESS, STREAM, POOL, SIZE, COLUMN_COUNT };
static const char *const columns[COLUMN_COUNT] = {
	[START] = "start_time_stamp", [END] = "end_time_stamp", [ADDRESS] = "device_addr",
	[STREAM] = "stream_id",       [POOL] = "pool_type",     [SIZE] = "size",
};

struct blocks {
	struct history *history;
	guint at[COLUMN_COUNT], last;
};

gboolean mindspore_recognise(const guint8 *bytes, gsize count)
{
	return readers_begin_with(bytes, count, "start_time_stamp,end_time_stamp,");
}

static gboolean find_columns(struct blocks *b, const struct rows *rows, GError **error)
{
	for (int c = 0; c < COLUMN_COUNT; c++) {
		guint at = 0;
		while (at < rows_count(rows) && strcmp(rows_field(rows, at), columns[c]) != 0)
			at++;
		if (at == rows_count(rows))
			return readers_bad(rows_line(rows), error,
					   "the header has no column \"%s\"", columns[c]);
		b->at[c] = at;
		b->last = MAX(b->last, at);
	}
	return TRUE;
}

static gboolean number(const struct rows *rows, const char *name, const char *text, guint64 *out,
		       GError **error)
{
	if (rows_unsigned(text, out) && *out <= READERS_ADDRESS_END)
		return TRUE;
	return readers_bad(rows_line(rows), error, "%s is \"%.40s\", no number below 2^56", name,
			   text);
}

static void leave_out(struct blocks *b, struct history_row *row, const char *name)
{
	row->action = TRACE_OTHER;
	row->other = history_name(b->history, name);
	history_add(b->history, row);
}

/* Blocks that go at a tick make room for those that come with it, except for one that is there for
 * that tick alone. */
static void add_block(struct blocks *b, struct history_row *row, const char *end_text)
{
	gint64 end;

	row->action = TRACE_ALLOC;
	row->rank = 1;
	history_add(b->history, row);
	/* none, -1 or a huge number: it was never given back */
	if (!rows_signed(end_text, &end) || end < row->order || end == G_MAXINT64)
		return;
	row->action = TRACE_FREE_COMPLETED;
	row->rank = end == row->order ? 2 : 0;
	row->order = end;
	history_add(b->history, row);
}

static gboolean add_row(struct blocks *b, const struct rows *rows, GError **error)
{
	struct history_row row = { .serial = rows_line(rows) };
	const char *start = rows_field(rows, b->at[START]), *pool = rows_field(rows, b->at[POOL]);
	const char *stream = rows_field(rows, b->at[STREAM]);

	if (rows_count(rows) <= b->last)
		return readers_bad(rows_line(rows), error,
				   "%u fields, and the header has %u: the row breaks off",
				   rows_count(rows), b->last + 1);
	if (!rows_signed(start, &row.order))
		return readers_bad(rows_line(rows), error,
				   "start_time_stamp is \"%.40s\", no number", start);
	g_autofree char *lower = g_ascii_strdown(pool, -1);
	if (strstr(lower, "cpu")) {
		leave_out(b, &row, "block of the host");
		return TRUE;
	}
	if (row.order < 0) {
		leave_out(b, &row, "block inside another (start -1)");
		return TRUE;
	}
	if (!number(rows, "device_addr", rows_field(rows, b->at[ADDRESS]), &row.address, error) ||
	    !number(rows, "size", rows_field(rows, b->at[SIZE]), &row.size, error))
		return FALSE;
	if (*stream && !rows_signed(stream, &row.stream))
		return readers_bad(rows_line(rows), error, "stream_id is \"%.40s\", no number",
				   stream);
	add_block(b, &row, rows_field(rows, b->at[END]));
	return TRUE;
}

static gboolean read_rows(struct blocks *b, struct rows *rows, GError **error)
{
	int more = rows_next(rows, error);

	if (more < 0 || !find_columns(b, rows, error))
		return FALSE;
	while ((more = rows_next(rows, error)) > 0) {
		if (!add_row(b, rows, error))
			return FALSE;
	}
	return more == 0;
}

struct trace *mindspore_read(struct input *input, GError **error)
{
	struct blocks b = { .history = history_new() };
	struct rows *rows = rows_open(input, ',');
	gboolean ok = read_rows(&b, rows, error);

	rows_close(rows);
	input_close(input);
	if (ok)
		return history_finish(b.history, "MindSpore memory_block.csv");
	history_free(b.history);
	return NULL;
}
