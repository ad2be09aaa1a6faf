/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches frees with the allocations that they free, over rows sorted by time. It makes several
 * passes over the rows: after the first it knows what was live at the start.
 */
#include "event-sorter.h"

#include <sqlite3.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "format/memory-limit.h"
#include "format/temp-file.h"
#include "format/units.h"
#include "int-map.h"

#define PENDING_MAX 6 /* records that one row can become */

struct event_sorter {
	struct trace *trace; /* being made; it owns the sorter where it is its source */
	sqlite3 *db;
	sqlite3_stmt *insert, *sorted;
	guint64 rows, rows_kept; /* so far; at most, for the history to stay in memory */
	gboolean doubled;
	guint32 no_free, no_alloc; /* notes */
	GArray *starts;            /* struct trace_row: what there was before the first row */

	/* of a pass */
	struct int_map *live;     /* address and tag -> size */
	struct int_map *segments; /* address -> device */
	struct int_map *unknown;  /* NULL, or: what was freed and not known */
	struct trace_row pending[PENDING_MAX];
	guint pending_first, pending_end;
};

static gsize memory_bytes = EVENT_SORTER_MEMORY_BYTES;

void event_sorter_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

/* ---- the rows ---- */

/* FALSE and error: what SQLite cannot do. */
static gboolean failed(struct event_sorter *s, GError **error)
{
	if (sqlite3_errcode(s->db) == SQLITE_NOMEM &&
	    !memory_limit_ask(G_MAXINT64, error, "its %" G_GUINT64_FORMAT " rows", s->rows))
		return FALSE;
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
		      "%s: a temporary file for rows that do not fit into memory cannot be used: "
		      "%s; TMPDIR names another folder",
		      temp_file_folder(), sqlite3_errmsg(s->db));
}

/* A row as the database has it: its place, in bytes that are ordered as the numbers are, and it. */
struct stored {
	guint8 place[2 * sizeof(guint64) + 1 + sizeof(guint64)]; /* order, rank, serial, number */
	struct trace_row row;
};

static guint8 *put_number(guint8 *at, guint64 number)
{
	guint64 bytes = GUINT64_TO_BE(number);

	memcpy(at, &bytes, sizeof bytes);
	return at + sizeof bytes;
}

/* An empty name: a file that nobody else sees, which is there once its pages fill the cache. What
 * fails here makes the first row fail. */
static void open_rows(struct event_sorter *s)
{
	static const char set_up[] = "PRAGMA journal_mode = OFF;"
				     "PRAGMA page_size = 16384;"
				     "PRAGMA cache_size = -4096;"
				     "CREATE TABLE rows(row PRIMARY KEY) WITHOUT ROWID;"
				     "BEGIN";

	if (sqlite3_open_v2("", &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) == SQLITE_OK)
		sqlite3_exec(s->db, set_up, NULL, NULL, NULL);
	sqlite3_prepare_v2(s->db, "INSERT INTO rows VALUES(?)", -1, &s->insert, NULL);
	sqlite3_prepare_v2(s->db, "SELECT row FROM rows ORDER BY row", -1, &s->sorted, NULL);
}

gboolean event_sorter_add(struct event_sorter *s, const struct event_row *row, GError **error)
{
	struct stored stored = { .row = row->row };
	guint8 *at = put_number(stored.place, (guint64)row->order ^ G_GUINT64_CONSTANT(1) << 63);

	*at++ = row->rank;
	put_number(put_number(at, row->serial), ++s->rows);
	if (s->rows == s->rows_kept + 1) {
		/* SQLite would take another folder silently */
		int fd = temp_file_open(error);
		if (fd < 0)
			return FALSE;
		close(fd);
	}
	sqlite3_bind_blob(s->insert, 1, &stored, sizeof stored, SQLITE_STATIC);
	sqlite3_step(s->insert);
	return sqlite3_reset(s->insert) == SQLITE_OK || failed(s, error);
}

gboolean event_sorter_add_block(struct event_sorter *s, struct event_row *row, gint64 end,
				GError **error)
{
	row->row.verb = NPU_TRACE_ALLOC;
	row->rank = 1;
	if (!event_sorter_add(s, row, error))
		return FALSE;
	if (end < row->order)
		return TRUE;
	row->row.verb = NPU_TRACE_FREE;
	row->row.text = SITE_NONE;
	row->rank = end == row->order ? 2 : 0;
	row->order = end;
	row->row.time_us = row->row.time_us ? end / 1000 : 0;
	return event_sorter_add(s, row, error);
}

void event_sorter_start(struct event_sorter *s, const struct trace_row *row)
{
	g_array_append_vals(s->starts, row, 1);
}

/* 1: a row; 0: the end; -1 and error. */
static int next_row(struct event_sorter *s, struct trace_row *out, GError **error)
{
	int more = sqlite3_step(s->sorted);

	if (more == SQLITE_DONE)
		return 0;
	if (more != SQLITE_ROW)
		return failed(s, error) ? 0 : -1;
	memcpy(out, (const char *)sqlite3_column_blob(s->sorted, 0) + offsetof(struct stored, row),
	       sizeof *out);
	return 1;
}

/* ---- the object ---- */

struct event_sorter *event_sorter_new(const char *kind)
{
	struct event_sorter *s = g_new0(struct event_sorter, 1);

	s->trace = trace_new(kind);
	s->rows_kept = memory_bytes / sizeof(struct event_row);
	open_rows(s);
	s->starts = g_array_new(FALSE, FALSE, sizeof(struct trace_row));
	s->no_free = event_sorter_note(s, "free that the file lacks");
	s->no_alloc = event_sorter_note(s, "free of what is not allocated");
	return s;
}

static void free_all_but_trace(struct event_sorter *s)
{
	sqlite3_finalize(s->insert);
	sqlite3_finalize(s->sorted);
	sqlite3_close(s->db);
	g_array_unref(s->starts);
	int_map_free(s->live);
	int_map_free(s->segments);
	int_map_free(s->unknown);
	g_free(s);
}

guint32 event_sorter_note(struct event_sorter *s, const char *name)
{
	return trace_note(s->trace, name);
}

struct sites *event_sorter_sites(struct event_sorter *s)
{
	if (s->trace->sites == NULL)
		s->trace->sites = sites_new();
	return s->trace->sites;
}

/* ---- rows as they are to rows that match ---- */

static gboolean is_segment(const struct trace_row *row)
{
	return row->verb == NPU_TRACE_SEGMENT_ALLOC || row->verb == NPU_TRACE_SEGMENT_FREE;
}

static gboolean stands_alone(const struct trace_row *row)
{
	return row->verb == NPU_TRACE_NOTE || row->verb == NPU_TRACE_SEGMENT_MAP ||
	       row->verb == NPU_TRACE_SEGMENT_UNMAP;
}

/* In the tables: a segment is not the block at its address. */
static guint32 tag_of(const struct trace_row *row)
{
	return row->device | (is_segment(row) ? 1u << 31 : 0);
}

static void push(struct event_sorter *s, const struct trace_row *row, guint32 verb)
{
	s->pending[s->pending_end] = *row;
	s->pending[s->pending_end++].verb = (guint8)verb;
}

static void push_note(struct event_sorter *s, const struct trace_row *row, guint32 note)
{
	push(s, row, NPU_TRACE_NOTE);
	s->pending[s->pending_end - 1].text = note;
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static void push_life(struct event_sorter *s, const struct trace_row *row)
{
	if (s->doubled && row->verb == NPU_TRACE_SEGMENT_FREE)
		push(s, row, NPU_TRACE_FREE);
	push(s, row, row->verb);
	if (s->doubled && row->verb == NPU_TRACE_SEGMENT_ALLOC)
		push(s, row, NPU_TRACE_ALLOC);
}

static void begin_live(struct event_sorter *s, const struct trace_row *row)
{
	struct int_map_entry *known = int_map_find(s->live, row->address, tag_of(row));

	if (known) {
		struct trace_row gone = *row;
		gone.verb = is_segment(row) ? NPU_TRACE_SEGMENT_FREE : NPU_TRACE_FREE;
		gone.size = known->value;
		push_life(s, &gone);
		push_note(s, row, s->no_free);
	}
	int_map_put(s->live, row->address, tag_of(row), row->size);
	if (is_segment(row))
		int_map_put(s->segments, row->address, 0, row->device);
	push_life(s, row);
}

static void end_live(struct event_sorter *s, const struct trace_row *row)
{
	struct int_map_entry *known = int_map_find(s->live, row->address, tag_of(row));
	struct int_map_entry *of_any =
		is_segment(row) ? int_map_find(s->segments, row->address, 0) : NULL;
	struct trace_row gone = *row;

	if (known == NULL) {
		if (s->unknown)
			int_map_put(s->unknown, row->address, tag_of(row), 0);
		push_note(s, row, s->no_alloc);
		return;
	}
	gone.size = known->value;
	int_map_remove(s->live, known);
	if (of_any && of_any->value == row->device)
		int_map_remove(s->segments, of_any);
	push_life(s, &gone);
}

static void take_row(struct event_sorter *s, struct trace_row row)
{
	const struct int_map_entry *segment;

	if (row.device == EVENT_SORTER_ANY_DEVICE) {
		segment = int_map_find(s->segments, row.address, 0);
		row.device = segment ? (guint16)segment->value : 0;
		row.verb = segment ? row.verb : NPU_TRACE_NOTE;
	}
	if (row.verb == NPU_TRACE_ALLOC || row.verb == NPU_TRACE_SEGMENT_ALLOC) {
		begin_live(s, &row);
	} else if (stands_alone(&row)) {
		push(s, &row, row.verb);
	} else {
		row.text = 0;
		end_live(s, &row);
	}
}

static gboolean rewind_rows(struct event_sorter *s, GError **error)
{
	int_map_free(s->live);
	int_map_free(s->segments);
	s->live = int_map_new();
	s->segments = int_map_new();
	s->pending_first = s->pending_end = 0;
	for (guint i = 0; i < s->starts->len; i++) {
		const struct trace_row *start = &g_array_index(s->starts, struct trace_row, i);
		int_map_put(s->live, start->address, tag_of(start), start->size);
		if (is_segment(start))
			int_map_put(s->segments, start->address, 0, start->device);
	}
	return sqlite3_reset(s->sorted) == SQLITE_OK || failed(s, error);
}

static int next_pending(struct event_sorter *s, const struct trace_row **out, GError **error)
{
	struct trace_row row;

	while (s->pending_first == s->pending_end) {
		int more = next_row(s, &row, error);
		if (more <= 0)
			return more;
		s->pending_first = s->pending_end = 0;
		take_row(s, row);
	}
	*out = &s->pending[s->pending_first++];
	return 1;
}

/* ---- the source of what does not fit into memory ---- */

static gboolean sorter_rewind(struct trace *trace, GError **error)
{
	return rewind_rows(trace->data, error);
}

static int sorter_next(struct trace *trace, struct record_item *out, GError **error)
{
	const struct trace_row *row = NULL;
	int more = next_pending(trace->data, &row, error);

	if (more > 0)
		trace_row_item(trace, row, out);
	return more;
}

static void sorter_close(struct trace *trace)
{
	free_all_but_trace(trace->data);
}

/* ---- what was live at the start ---- */

/* Of each address that was freed without being known, the first row decides: a free says that it
 * was live, if it says how large it was. */
static void decide(struct event_sorter *s, const struct trace_row *row)
{
	gboolean ends = row->verb == NPU_TRACE_FREE || row->verb == NPU_TRACE_SEGMENT_FREE;
	struct trace_row start = { .address = row->address,
				   .size = row->size,
				   .stream = is_segment(row) ? row->stream : 0,
				   .device = row->device,
				   .verb = is_segment(row) ? NPU_TRACE_SEGMENT_ALLOC
							   : NPU_TRACE_ALLOC,
				   .small = is_segment(row) && row->size <= 2 * MIB };

	if (stands_alone(row) || row->device == EVENT_SORTER_ANY_DEVICE || (ends && row->size == 0))
		return;
	struct int_map_entry *unknown = int_map_find(s->unknown, row->address, tag_of(row));
	if (unknown == NULL)
		return;
	int_map_remove(s->unknown, unknown);
	if (ends)
		g_array_append_val(s->starts, start);
}

static gboolean find_starts(struct event_sorter *s, GError **error)
{
	struct trace_row row;
	int more;

	if (!rewind_rows(s, error))
		return FALSE;
	while ((more = next_row(s, &row, error)) > 0)
		decide(s, &row);
	g_clear_pointer(&s->unknown, int_map_free);
	return more == 0;
}

static void add_starts(const struct event_sorter *s)
{
	for (guint i = 0; i < s->starts->len; i++) {
		struct trace_row row = g_array_index(s->starts, struct trace_row, i);
		trace_add_start(s->trace, &row);
		if (row.verb == NPU_TRACE_ALLOC || !s->doubled)
			continue;
		row.verb = NPU_TRACE_ALLOC;
		row.stream = 0;
		row.small = 0;
		trace_add_start(s->trace, &row);
	}
	trace_end_starts(s->trace);
}

/* ---- the trace ---- */

/* One pass: counts, and where they fit into memory, the rows themselves. */
static gboolean collect(struct event_sorter *s, GArray *kept, GError **error)
{
	const struct trace_row *row = NULL;
	int more;

	g_ptr_array_set_size(s->trace->devices, 0);
	g_array_set_size(kept, 0);
	s->trace->events = 0;
	if (!rewind_rows(s, error))
		return FALSE;
	while ((more = next_pending(s, &row, error)) > 0) {
		trace_count_row(s->trace, row);
		if (s->rows <= s->rows_kept)
			g_array_append_vals(kept, row, 1);
	}
	return more == 0;
}

static gboolean match(struct event_sorter *s, GArray *kept, GError **error)
{
	s->unknown = int_map_new();
	if (!collect(s, kept, error))
		return FALSE;
	if (int_map_count(s->unknown) == 0)
		g_clear_pointer(&s->unknown, int_map_free);
	else if (!find_starts(s, error) || !collect(s, kept, error))
		return FALSE;
	add_starts(s);
	return TRUE;
}

struct trace *event_sorter_finish(struct event_sorter *s, gboolean ok, gboolean doubled,
				  GError **error)
{
	static const struct trace_source source = { sorter_rewind, sorter_next, sorter_close };
	g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(struct trace_row));
	struct trace *trace = s->trace;

	s->doubled = doubled;
	if (!ok || !match(s, kept, error)) {
		trace_free(trace);
		free_all_but_trace(s);
		return NULL;
	}
	if (s->rows > s->rows_kept) {
		trace->source = &source;
		trace->data = s;
	} else {
		trace_set_rows(trace, g_steal_pointer(&kept));
		free_all_but_trace(s);
	}
	return trace;
}
