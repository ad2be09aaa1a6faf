/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows by time become events: frees are matched with what they free. Events are made in passes:
 * what was live at the start is known after the first.
 */
#include "event-sorter.h"

#include <string.h>

#include "by-address.h"
#include "external-sort.h"
#include "int-map.h"
#include "sites.h"

#define SEGMENT     (1u << 31) /* of a tag in the table: beside the device */
#define PENDING_MAX 6          /* events that one row can become */

/* What there was before the first row. */
struct start {
	guint64 address, size;
	gint64 stream;
	guint32 tag;
};
struct pending {
	struct trace_event event;
	guint32 device;
	const char *other; /* OTHER: its name */
};
struct event_sorter {
	struct external_sort *rows;
	GPtrArray *names; /* char * */
	GHashTable *name_index;
	gboolean doubled;
	GArray *starts;      /* struct start */
	struct sites *sites; /* NULL: no one asked for it */

	/* of a pass */
	struct int_map *live;     /* address and tag -> size */
	struct int_map *segments; /* address -> device */
	struct int_map *unknown;  /* NULL, or: what was freed and not known */
	struct pending pending[PENDING_MAX];
	guint pending_first, pending_end;
};

static int by_time(const void *a, const void *b)
{
	const struct event_row *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static gsize memory_bytes = EVENT_SORTER_MEMORY_BYTES;

void event_sorter_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

struct event_sorter *event_sorter_new(void)
{
	struct event_sorter *s = g_new0(struct event_sorter, 1);

	s->rows = external_sort_new(sizeof(struct event_row), memory_bytes, by_time);
	s->names = g_ptr_array_new_with_free_func(g_free);
	s->name_index = g_hash_table_new(g_str_hash, g_str_equal);
	s->starts = g_array_new(FALSE, FALSE, sizeof(struct start));
	return s;
}

void event_sorter_free(struct event_sorter *s)
{
	if (s == NULL)
		return;
	external_sort_free(s->rows);
	g_hash_table_unref(s->name_index);
	g_ptr_array_unref(s->names);
	g_array_unref(s->starts);
	sites_free(s->sites);
	int_map_free(s->live);
	int_map_free(s->segments);
	int_map_free(s->unknown);
	g_free(s);
}

guint32 event_sorter_name(struct event_sorter *s, const char *name)
{
	gpointer index;

	if (g_hash_table_lookup_extended(s->name_index, name, NULL, &index))
		return GPOINTER_TO_UINT(index);
	g_ptr_array_add(s->names, g_strdup(name));
	g_hash_table_insert(s->name_index, g_ptr_array_index(s->names, s->names->len - 1),
			    GUINT_TO_POINTER(s->names->len - 1));
	return s->names->len - 1;
}

struct sites *event_sorter_sites(struct event_sorter *s)
{
	if (s->sites == NULL)
		s->sites = sites_new();
	return s->sites;
}

gboolean event_sorter_add(struct event_sorter *s, const struct event_row *row, GError **error)
{
	return external_sort_put(s->rows, row, error);
}

/* ---- rows to events ---- */

static void push(struct event_sorter *s, guint32 device, const struct trace_event *event,
		 const char *other)
{
	struct pending *p = &s->pending[s->pending_end++];

	*p = (struct pending){ .event = *event, .device = device, .other = other };
	if (other)
		p->event.action = TRACE_OTHER;
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static void push_life(struct event_sorter *s, guint32 device, const struct trace_event *event)
{
	struct trace_event block = *event;

	block.action = event->action == TRACE_SEGMENT_ALLOC ? TRACE_ALLOC : TRACE_FREE_COMPLETED;
	if (s->doubled && event->action == TRACE_SEGMENT_FREE)
		push(s, device, &block, NULL);
	push(s, device, event, NULL);
	if (s->doubled && event->action == TRACE_SEGMENT_ALLOC)
		push(s, device, &block, NULL);
}

static void begin_live(struct event_sorter *s, guint32 device, const struct trace_event *event)
{
	gboolean segment = event->action == TRACE_SEGMENT_ALLOC;
	guint32 tag = device | (segment ? SEGMENT : 0);
	struct int_map_entry *known = int_map_find(s->live, event->address, tag);

	if (known) {
		struct trace_event gone = *event;
		gone.action = segment ? TRACE_SEGMENT_FREE : TRACE_FREE_COMPLETED;
		gone.size = known->value;
		push_life(s, device, &gone);
		push(s, device, event, "free that the file lacks");
	}
	int_map_put(s->live, event->address, tag, event->size);
	if (segment)
		int_map_put(s->segments, event->address, 0, device);
	push_life(s, device, event);
}

static void end_live(struct event_sorter *s, guint32 device, const struct trace_event *event)
{
	gboolean segment = event->action == TRACE_SEGMENT_FREE;
	guint32 tag = device | (segment ? SEGMENT : 0);
	struct int_map_entry *known = int_map_find(s->live, event->address, tag);
	struct int_map_entry *of_any =
		segment ? int_map_find(s->segments, event->address, 0) : NULL;
	struct trace_event e = *event;

	if (known == NULL) {
		if (s->unknown)
			int_map_put(s->unknown, event->address, tag, 0);
		push(s, device, event, "free of what is not allocated");
		return;
	}
	e.size = known->value;
	int_map_remove(s->live, known);
	if (of_any && of_any->value == device)
		int_map_remove(s->segments, of_any);
	push_life(s, device, &e);
}

static void take_row(struct event_sorter *s, const struct event_row *row)
{
	struct trace_event event = { .address = row->address,
				     .size = row->size,
				     .stream = row->stream,
				     .time_us = row->time_us,
				     .action = row->action };
	guint32 device = row->device;

	if (device == EVENT_SORTER_ANY_DEVICE) {
		struct int_map_entry *segment = int_map_find(s->segments, row->address, 0);
		device = segment ? (guint32)segment->value : 0;
		event.action = segment ? event.action : TRACE_OTHER;
	}
	gboolean begins = event.action == TRACE_ALLOC || event.action == TRACE_SEGMENT_ALLOC;
	if (begins) {
		event.site = row->other;
		begin_live(s, device, &event);
	} else if (event.action == TRACE_FREE_COMPLETED || event.action == TRACE_SEGMENT_FREE)
		end_live(s, device, &event);
	else
		push(s, device, &event, g_ptr_array_index(s->names, row->other));
}

gboolean event_sorter_rewind(struct event_sorter *s, GError **error)
{
	int_map_free(s->live);
	int_map_free(s->segments);
	s->live = int_map_new();
	s->segments = int_map_new();
	s->pending_first = s->pending_end = 0;
	for (guint i = 0; i < s->starts->len; i++) {
		const struct start *st = &g_array_index(s->starts, struct start, i);
		int_map_put(s->live, st->address, st->tag, st->size);
		if (st->tag & SEGMENT)
			int_map_put(s->segments, st->address, 0, st->tag & ~SEGMENT);
	}
	return external_sort_rewind(s->rows, error);
}

static int next_pending(struct event_sorter *s, const struct pending **out, GError **error)
{
	const void *row;

	while (s->pending_first == s->pending_end) {
		int more = external_sort_next(s->rows, &row, error);
		if (more <= 0)
			return more;
		s->pending_first = s->pending_end = 0;
		take_row(s, row);
	}
	*out = &s->pending[s->pending_first++];
	return 1;
}

int event_sorter_next(struct event_sorter *s, const struct trace *trace, guint *out_device,
		      struct trace_event *out, GError **error)
{
	const struct pending *p = NULL;
	int more = next_pending(s, &p, error);

	if (more <= 0)
		return more;
	guint at = 0;
	const struct trace_device *device = g_ptr_array_index(trace->devices, at);
	while (device->device != p->device)
		device = g_ptr_array_index(trace->devices, ++at);
	*out_device = at;
	*out = p->event;
	if (p->other)
		out->other = GPOINTER_TO_UINT(g_hash_table_lookup(device->other_index, p->other));
	return 1;
}

/* ---- what was live at the start ---- */

/* Of each address that was freed without being known, the first row decides: a free says that it
 * was live, if it says how large it was. */
static void decide(struct event_sorter *s, const struct event_row *row)
{
	gboolean segment = row->action == TRACE_SEGMENT_ALLOC || row->action == TRACE_SEGMENT_FREE;
	gboolean ends = row->action == TRACE_FREE_COMPLETED || row->action == TRACE_SEGMENT_FREE;
	struct start start = { .address = row->address,
			       .size = row->size,
			       .stream = row->stream,
			       .tag = row->device | (segment ? SEGMENT : 0) };

	if (row->action == TRACE_OTHER || row->device == EVENT_SORTER_ANY_DEVICE ||
	    (ends && row->size == 0))
		return;
	struct int_map_entry *unknown = int_map_find(s->unknown, start.address, start.tag);
	if (unknown == NULL)
		return;
	int_map_remove(s->unknown, unknown);
	if (ends)
		g_array_append_val(s->starts, start);
}

static gboolean find_starts(struct event_sorter *s, GError **error)
{
	const void *row;
	int more;

	if (!event_sorter_rewind(s, error))
		return FALSE;
	while ((more = external_sort_next(s->rows, &row, error)) > 0)
		decide(s, row);
	g_clear_pointer(&s->unknown, int_map_free);
	return more == 0;
}

static void add_start(const struct event_sorter *s, struct trace *trace, const struct start *st)
{
	struct trace_device *device = trace_device(trace, st->tag & ~SEGMENT);
	struct trace_block block = { .address = st->address, .size = st->size };
	struct trace_range range = { .address = st->address,
				     .size = st->size,
				     .stream = st->stream,
				     .small = st->size <= 2u << 20 };

	if (st->tag & SEGMENT)
		g_array_append_val(device->ranges, range);
	if (!(st->tag & SEGMENT) || s->doubled)
		g_array_append_val(device->blocks, block);
}

static void add_starts(const struct event_sorter *s, struct trace *trace)
{
	for (guint i = 0; i < s->starts->len; i++)
		add_start(s, trace, &g_array_index(s->starts, struct start, i));
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_array_sort(device->ranges, by_address);
		g_array_sort(device->blocks, by_address);
	}
}

/* ---- the trace ---- */

/* One pass: counts, and where they fit into memory, the events themselves. */
static gboolean collect(struct event_sorter *s, struct trace *trace, GError **error)
{
	gboolean keep = !external_sort_spilled(s->rows);
	const struct pending *p = NULL;
	int more;

	if (!event_sorter_rewind(s, error))
		return FALSE;
	while ((more = next_pending(s, &p, error)) > 0) {
		struct trace_device *device = trace_device(trace, p->device);
		if (p->other)
			trace_device_add_other(device, &p->event, p->other, strlen(p->other), keep);
		else
			trace_device_add(device, &p->event, keep);
		trace->events++;
	}
	return more == 0;
}

static struct trace *made(struct event_sorter *s, const char *kind, GError **error)
{
	struct trace *trace = trace_new(kind);

	if (!collect(s, trace, error)) {
		trace_free(trace);
		return NULL;
	}
	add_starts(s, trace);
	return trace;
}

static struct trace *finish(struct event_sorter *s, const char *kind, GError **error)
{
	s->unknown = int_map_new();
	struct trace *trace = made(s, kind, error);

	if (trace && int_map_count(s->unknown) > 0) {
		g_clear_pointer(&trace, trace_free);
		if (find_starts(s, error))
			trace = made(s, kind, error);
	}
	g_clear_pointer(&s->unknown, int_map_free);
	return trace;
}

struct trace *event_sorter_finish(struct event_sorter *s, const char *kind, gboolean doubled,
				  GError **error)
{
	s->doubled = doubled;
	struct trace *trace = finish(s, kind, error);

	if (trace)
		trace->sites = g_steal_pointer(&s->sites);
	if (trace && external_sort_spilled(s->rows))
		trace->sorter = s;
	else
		event_sorter_free(s);
	return trace;
}
