/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches frees with the allocations that they free, over rows sorted by time. It goes over the
 * rows twice: once backwards, which leaves what was live at the start, then forwards from there.
 */
#include "readers.h"

struct event_sorter {
	struct trace *trace;
	gboolean doubled;
	struct int_map *live; /* address and tag -> size */
	guint16 last_device;  /* of the rows so far */
	GError **error;
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

#define SEGMENT_TAG (1u << 31) /* a segment is not the block at its address */

static guint32 tag_of(const struct trace_row *row)
{
	return row->device | (is_segment(row) ? SEGMENT_TAG : 0);
}

static gboolean begins(const struct trace_row *row)
{
	return row->verb == NPU_TRACE_ALLOC || row->verb == NPU_TRACE_SEGMENT_ALLOC;
}

static gboolean put(struct event_sorter *s, struct trace_row row, guint32 verb)
{
	row.verb = (guint8)verb;
	row.small = row.small && verb == NPU_TRACE_SEGMENT_ALLOC;
	return trace_add_row(s->trace, &row, s->error);
}

static gboolean put_note(struct event_sorter *s, struct trace_row row, const char *name)
{
	row.text = trace_note(s->trace, name);
	return put(s, row, NPU_TRACE_NOTE);
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static gboolean put_life(struct event_sorter *s, const struct trace_row *row)
{
	gboolean doubled = s->doubled && is_segment(row);

	return (!doubled || begins(row) || put(s, *row, NPU_TRACE_FREE)) &&
	       put(s, *row, row->verb) &&
	       (!doubled || !begins(row) || put(s, *row, NPU_TRACE_ALLOC));
}

/* Whether the row is about a block, or a segment whose device is known by now. */
static gboolean is_life(struct event_sorter *s, struct trace_row *row)
{
	guint32 device = 0;

	if (row->device == EVENT_SORTER_ANY_DEVICE) {
		while (device <= s->last_device &&
		       !int_map_find(s->live, row->address, device | SEGMENT_TAG))
			device++;
		row->verb = device <= s->last_device ? row->verb : NPU_TRACE_NOTE;
		row->device = device <= s->last_device ? (guint16)device : 0;
	}
	s->last_device = MAX(s->last_device, row->device);
	return begins(row) || row->verb == NPU_TRACE_FREE || row->verb == NPU_TRACE_SEGMENT_FREE;
}

/* Backwards: what is freed was live before, if that or a later free of the same tells how large it
 * was; what is allocated was not. */
static void undo_row(struct event_sorter *s, struct trace_row row)
{
	struct int_map_entry *known;

	if (!is_life(s, &row))
		return;
	known = int_map_find(s->live, row.address, tag_of(&row));
	if (!begins(&row) && (row.size > 0 || known))
		int_map_put(s->live, row.address, tag_of(&row), row.size ?: known->value);
	else if (known)
		int_map_remove(s->live, known);
}

/* What is left of going backwards. */
static gboolean put_start(struct event_sorter *s)
{
	const struct int_map_entry *known = NULL;
	gboolean ok = TRUE;

	while (ok && (known = int_map_next(s->live, known))) {
		gboolean segment = known->tag & SEGMENT_TAG;
		const struct trace_row row = {
			.address = known->key,
			.size = known->value,
			.device = (guint16)known->tag,
			.start = TRUE,
			.verb = segment ? NPU_TRACE_SEGMENT_ALLOC : NPU_TRACE_ALLOC,
			.small = segment && known->value <= 2 * MIB,
		};
		ok = put_life(s, &row);
	}
	return ok;
}

static gboolean take_row(struct event_sorter *s, struct trace_row row)
{
	gboolean life = is_life(s, &row);
	struct int_map_entry *known =
		life ? int_map_find(s->live, row.address, tag_of(&row)) : NULL;

	if (!life)
		return put(s, row, row.verb);
	if (begins(&row)) {
		struct trace_row gone = row;
		gone.verb = is_segment(&row) ? NPU_TRACE_SEGMENT_FREE : NPU_TRACE_FREE;
		gone.size = known ? known->value : 0;
		if (known && (!put_life(s, &gone) || !put_note(s, row, "free that the file lacks")))
			return FALSE;
		int_map_put(s->live, row.address, tag_of(&row), row.size);
		return put_life(s, &row);
	}
	row.text = SITE_NONE;
	if (known == NULL)
		return put_note(s, row, "free of what is not allocated");
	row.size = known->value;
	int_map_remove(s->live, known);
	return put_life(s, &row);
}

gboolean event_sorter_finish(struct trace *trace, gboolean doubled, GError **error)
{
	struct event_sorter s = { trace, doubled, int_map_new(sizeof(struct int_map_entry), NULL),
				  .error = error };
	struct row_list *rows = &trace->unsorted;
	gboolean ok = row_list_sort(rows, FALSE, error);

	for (guint64 left = rows->count; ok && left > 0; left--)
		undo_row(&s, *row_list_at(rows, left - 1));
	ok = ok && put_start(&s);
	for (guint64 i = 0; ok && i < rows->count; i++)
		ok = take_row(&s, *row_list_at(rows, i));
	row_list_clear(rows);
	int_map_free(s.live);
	return ok;
}
