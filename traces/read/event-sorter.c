/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches frees with the allocations that they free, over rows sorted by time. It makes several
 * passes over the rows: after the first it knows what was live at the start.
 */
#include "event-sorter.h"

#include "format/units.h"
#include "int-map.h"

struct event_sorter {
	struct trace *trace;
	gboolean doubled;

	/* of a pass */
	GHashTable *live;     /* address and tag -> size */
	GHashTable *segments; /* address -> device */
	GHashTable *unknown;  /* what was freed and not known; NULL: the trace is being made */
};

gboolean event_sorter_add_note(struct trace *trace, struct trace_row *row, const char *name,
			       GError **error)
{
	row->verb = NPU_TRACE_NOTE;
	row->text = trace_note(trace, name);
	return row_list_add(&trace->unsorted, row, error);
}

gboolean event_sorter_add_block(struct trace *trace, struct trace_row *row, gint64 end,
				GError **error)
{
	row->verb = NPU_TRACE_ALLOC;
	row->rank = 1;
	if (!row_list_add(&trace->unsorted, row, error))
		return FALSE;
	if (end < row->order)
		return TRUE;
	row->verb = NPU_TRACE_FREE;
	row->text = SITE_NONE;
	row->rank = end == row->order ? 2 : 0;
	row->order = end;
	row->time_us = row->time_us ? end / 1000 : 0;
	return row_list_add(&trace->unsorted, row, error);
}

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

static gboolean put(struct event_sorter *s, struct trace_row row, guint32 verb, GError **error)
{
	row.verb = (guint8)verb;
	return s->unknown || trace_add_row(s->trace, &row, error);
}

static gboolean put_note(struct event_sorter *s, struct trace_row row, const char *name,
			 GError **error)
{
	row.text = trace_note(s->trace, name);
	return put(s, row, NPU_TRACE_NOTE, error);
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static gboolean put_life(struct event_sorter *s, const struct trace_row *row, GError **error)
{
	if (s->doubled && row->verb == NPU_TRACE_SEGMENT_FREE &&
	    !put(s, *row, NPU_TRACE_FREE, error))
		return FALSE;
	return put(s, *row, row->verb, error) &&
	       (!s->doubled || row->verb != NPU_TRACE_SEGMENT_ALLOC ||
		put(s, *row, NPU_TRACE_ALLOC, error));
}

static void know(struct event_sorter *s, const struct trace_row *row)
{
	int_map_put(s->live, row->address, tag_of(row), row->size);
	if (is_segment(row))
		int_map_put(s->segments, row->address, 0, row->device);
}

static gboolean begin_live(struct event_sorter *s, const struct trace_row *row, GError **error)
{
	struct int_map_entry *known = int_map_find(s->live, row->address, tag_of(row));

	if (known) {
		struct trace_row gone = *row;
		gone.verb = is_segment(row) ? NPU_TRACE_SEGMENT_FREE : NPU_TRACE_FREE;
		gone.size = known->value;
		if (!put_life(s, &gone, error) ||
		    !put_note(s, *row, "free that the file lacks", error))
			return FALSE;
	}
	know(s, row);
	return put_life(s, row, error);
}

static gboolean end_live(struct event_sorter *s, struct trace_row row, GError **error)
{
	struct int_map_entry *known = int_map_find(s->live, row.address, tag_of(&row));
	struct int_map_entry *of_any =
		is_segment(&row) ? int_map_find(s->segments, row.address, 0) : NULL;

	row.text = SITE_NONE;
	if (known == NULL) {
		if (s->unknown)
			int_map_put(s->unknown, row.address, tag_of(&row), 0);
		return put_note(s, row, "free of what is not allocated", error);
	}
	row.size = known->value;
	g_hash_table_remove(s->live, known);
	if (of_any && of_any->value == row.device)
		g_hash_table_remove(s->segments, of_any);
	return put_life(s, &row, error);
}

static gboolean take_row(struct event_sorter *s, struct trace_row row, GError **error)
{
	if (row.device == EVENT_SORTER_ANY_DEVICE) {
		const struct int_map_entry *segment = int_map_find(s->segments, row.address, 0);
		row.device = segment ? (guint16)segment->value : 0;
		row.verb = segment ? row.verb : NPU_TRACE_NOTE;
	}
	if (row.verb == NPU_TRACE_ALLOC || row.verb == NPU_TRACE_SEGMENT_ALLOC)
		return begin_live(s, &row, error);
	return stands_alone(&row) ? put(s, row, row.verb, error) : end_live(s, row, error);
}

/* Of each address that was freed without being known, the first row decides: a free says that it
 * was live, if it says how large it was. */
static gboolean decide(struct event_sorter *s, struct trace_row row, GError **error)
{
	gboolean ends = row.verb == NPU_TRACE_FREE || row.verb == NPU_TRACE_SEGMENT_FREE;
	struct trace_row start = { .address = row.address,
				   .size = row.size,
				   .stream = is_segment(&row) ? row.stream : 0,
				   .device = row.device,
				   .verb = is_segment(&row) ? NPU_TRACE_SEGMENT_ALLOC
							    : NPU_TRACE_ALLOC,
				   .small = is_segment(&row) && row.size <= 2 * MIB };
	struct int_map_entry *unknown = int_map_find(s->unknown, row.address, tag_of(&row));

	(void)error;
	if (unknown == NULL || stands_alone(&row) || row.device == EVENT_SORTER_ANY_DEVICE ||
	    (ends && row.size == 0))
		return TRUE;
	g_hash_table_remove(s->unknown, unknown);
	if (ends)
		g_array_append_val(s->trace->starts, start);
	return TRUE;
}

static gboolean pass(struct event_sorter *s,
		     gboolean (*take)(struct event_sorter *, struct trace_row, GError **),
		     GError **error)
{
	struct row_list *rows = &s->trace->unsorted;

	g_clear_pointer(&s->live, g_hash_table_unref);
	g_clear_pointer(&s->segments, g_hash_table_unref);
	s->live = int_map_new();
	s->segments = int_map_new();
	for (guint i = 0; i < s->trace->starts->len; i++)
		know(s, &g_array_index(s->trace->starts, struct trace_row, i));
	for (guint64 i = 0; i < rows->count; i++) {
		if (!take(s, *row_list_at(rows, i), error))
			return FALSE;
	}
	return TRUE;
}

static gboolean add_starts(const struct event_sorter *s, GError **error)
{
	for (guint i = 0; i < s->trace->starts->len; i++) {
		struct trace_row row = g_array_index(s->trace->starts, struct trace_row, i);
		if (!trace_add_start(s->trace, &row, error))
			return FALSE;
		if (row.verb == NPU_TRACE_ALLOC || !s->doubled)
			continue;
		row.verb = NPU_TRACE_ALLOC;
		row.stream = 0;
		row.small = 0;
		if (!trace_add_start(s->trace, &row, error))
			return FALSE;
	}
	return TRUE;
}

static gboolean match(struct event_sorter *s, GError **error)
{
	s->unknown = int_map_new();
	if (!pass(s, take_row, error) ||
	    (g_hash_table_size(s->unknown) > 0 && !pass(s, decide, error)))
		return FALSE;
	g_clear_pointer(&s->unknown, g_hash_table_unref);
	return add_starts(s, error) && pass(s, take_row, error);
}

gboolean event_sorter_finish(struct trace *trace, gboolean doubled, GError **error)
{
	struct event_sorter s = { .trace = trace, .doubled = doubled };
	gboolean ok = row_list_sort(&trace->unsorted, error) && match(&s, error);

	g_clear_pointer(&s.live, g_hash_table_unref);
	g_clear_pointer(&s.segments, g_hash_table_unref);
	g_clear_pointer(&s.unknown, g_hash_table_unref);
	row_list_clear(&trace->unsorted);
	return ok;
}
