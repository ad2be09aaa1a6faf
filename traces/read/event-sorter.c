/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches frees with the allocations that they free, over rows sorted by time. It goes over the
 * rows twice: after the first pass it knows which addresses were freed without being known.
 */
#include "readers.h"

#define NOT_LIVE G_MAXUINT64 /* at the start */
/* In `unknown`, of a segment that a row without a device freed: 0, or 1 + the device that the next
 * such row tells, or NOT_LIVE. */
#define ANY_TAG (1u << 31 | EVENT_SORTER_ANY_DEVICE)

struct event_sorter {
	struct trace *trace;
	gboolean doubled;
	gboolean looks;      /* the first pass: the trace is not made yet */
	GHashTable *unknown; /* what was freed and not known -> size, as a free says, or NOT_LIVE;
				until its first row has come again */
	GError **error;

	/* of a pass */
	GHashTable *live;     /* address and tag -> size */
	GHashTable *segments; /* address -> device */
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

/* In the tables: a segment is not the block at its address. */
static guint32 tag_of(const struct trace_row *row)
{
	return row->device | (is_segment(row) ? 1u << 31 : 0);
}

static gboolean put(struct event_sorter *s, struct trace_row row, guint32 verb)
{
	row.verb = (guint8)verb;
	return s->looks || trace_add_row(s->trace, &row, s->error);
}

static gboolean put_note(struct event_sorter *s, struct trace_row row, const char *name)
{
	row.text = trace_note(s->trace, name);
	return put(s, row, NPU_TRACE_NOTE);
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static gboolean put_life(struct event_sorter *s, const struct trace_row *row)
{
	if (s->doubled && row->verb == NPU_TRACE_SEGMENT_FREE && !put(s, *row, NPU_TRACE_FREE))
		return FALSE;
	return put(s, *row, row->verb) && (!s->doubled || row->verb != NPU_TRACE_SEGMENT_ALLOC ||
					   put(s, *row, NPU_TRACE_ALLOC));
}

static void know(struct event_sorter *s, const struct trace_row *row)
{
	int_map_put(s->live, row->address, tag_of(row), row->size);
	if (is_segment(row))
		int_map_put(s->segments, row->address, 0, row->device);
}

static gboolean begin_live(struct event_sorter *s, const struct trace_row *row)
{
	struct int_map_entry *known = int_map_find(s->live, row->address, tag_of(row));

	if (known) {
		struct trace_row gone = *row;
		gone.verb = is_segment(row) ? NPU_TRACE_SEGMENT_FREE : NPU_TRACE_FREE;
		gone.size = known->value;
		if (!put_life(s, &gone) || !put_note(s, *row, "free that the file lacks"))
			return FALSE;
	}
	know(s, row);
	return put_life(s, row);
}

static gboolean end_live(struct event_sorter *s, struct trace_row row)
{
	struct int_map_entry *known = int_map_find(s->live, row.address, tag_of(&row));
	struct int_map_entry *of_any =
		is_segment(&row) ? int_map_find(s->segments, row.address, 0) : NULL;

	row.text = SITE_NONE;
	if (known == NULL) {
		struct int_map_entry *unknown = int_map_find(s->unknown, row.address, tag_of(&row));
		if (unknown && unknown->value == 0)
			unknown->value = row.size;
		else if (unknown == NULL && s->looks)
			int_map_put(s->unknown, row.address, tag_of(&row), row.size);
		return put_note(s, row, "free of what is not allocated");
	}
	row.size = known->value;
	g_hash_table_remove(s->live, known);
	if (of_any && of_any->value == row.device)
		g_hash_table_remove(s->segments, of_any);
	return put_life(s, &row);
}

/* Of each address that was freed without being known, the first row decides: a free says that it
 * was live, if it, or the next that says so before it is allocated, tells how large it was. */
static gboolean decide(struct event_sorter *s, const struct trace_row *row, gboolean begins)
{
	struct int_map_entry *unknown = int_map_find(s->unknown, row->address, tag_of(row));
	struct int_map_entry *any = s->looks && is_segment(row)
					    ? int_map_find(s->unknown, row->address, ANY_TAG)
					    : NULL;

	if (any && any->value == 0 && (begins || row->size > 0))
		any->value = begins ? NOT_LIVE : row->device + 1u;
	if (unknown && s->looks && begins && unknown->value == 0)
		unknown->value = NOT_LIVE;
	if (unknown == NULL || s->looks)
		return TRUE;
	struct trace_row start = { .address = row->address,
				   .size = row->size ? row->size : unknown->value,
				   .stream = is_segment(row) ? row->stream : 0,
				   .device = row->device,
				   .start = TRUE,
				   .verb = is_segment(row) ? NPU_TRACE_SEGMENT_ALLOC
							   : NPU_TRACE_ALLOC };
	start.small = is_segment(row) && start.size <= 2 * MIB;
	g_hash_table_remove(s->unknown, unknown);
	if (begins || start.size == 0 || start.size == NOT_LIVE)
		return TRUE;
	know(s, &start);
	if (!trace_add_row(s->trace, &start, s->error))
		return FALSE;
	start.verb = NPU_TRACE_ALLOC;
	start.stream = 0;
	start.small = 0;
	return !is_segment(row) || !s->doubled || trace_add_row(s->trace, &start, s->error);
}

static gboolean take_row(struct event_sorter *s, struct trace_row row)
{
	gboolean begins = row.verb == NPU_TRACE_ALLOC || row.verb == NPU_TRACE_SEGMENT_ALLOC;
	gboolean told = row.device != EVENT_SORTER_ANY_DEVICE;

	if (!told) {
		const struct int_map_entry *segment = int_map_find(s->segments, row.address, 0);
		const struct int_map_entry *any = int_map_find(s->unknown, row.address, ANY_TAG);
		if (segment == NULL && any == NULL && s->looks) {
			int_map_put(s->unknown, row.address, ANY_TAG, 0);
		} else if (segment == NULL && !s->looks && any &&
			   any->value - 1 <= TRACE_DEVICE_LAST) {
			row.device = (guint16)(any->value - 1);
			if (!decide(s, &row, FALSE))
				return FALSE;
			segment = int_map_find(s->segments, row.address, 0);
		}
		row.device = segment ? (guint16)segment->value : 0;
		row.verb = segment ? row.verb : NPU_TRACE_NOTE;
	}
	if (row.verb == NPU_TRACE_NOTE || row.verb == NPU_TRACE_SEGMENT_MAP ||
	    row.verb == NPU_TRACE_SEGMENT_UNMAP)
		return put(s, row, row.verb);
	if (told && g_hash_table_size(s->unknown) > 0 && !decide(s, &row, begins))
		return FALSE;
	return begins ? begin_live(s, &row) : end_live(s, row);
}

static gboolean pass(struct event_sorter *s, gboolean looks)
{
	struct row_list *rows = &s->trace->unsorted;
	gboolean ok = TRUE;

	s->looks = looks;
	s->live = int_map_new();
	s->segments = int_map_new();
	for (guint64 i = 0; ok && i < rows->count; i++)
		ok = take_row(s, *row_list_at(rows, i));
	g_hash_table_unref(s->live);
	g_hash_table_unref(s->segments);
	return ok;
}

gboolean event_sorter_finish(struct trace *trace, gboolean doubled, GError **error)
{
	g_autoptr(GHashTable) unknown = int_map_new();
	struct event_sorter s = {
		.trace = trace, .doubled = doubled, .unknown = unknown, .error = error
	};
	gboolean ok =
		row_list_sort(&trace->unsorted, FALSE, error) && pass(&s, TRUE) && pass(&s, FALSE);

	row_list_clear(&trace->unsorted);
	return ok;
}
