/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows by time become events: frees are matched with what they free. Events are made in passes:
 * what was live at the start is known after the first.
 */
#include "history.h"

#include <string.h>

#include "live.h"
#include "sites.h"
#include "spool.h"

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
struct history {
	struct spool *rows;
	GPtrArray *names; /* char * */
	GHashTable *name_index;
	gboolean doubled;
	GArray *starts;      /* struct start */
	struct sites *sites; /* NULL: no one asked for it */

	/* of a pass */
	struct live *live;     /* address and tag -> size */
	struct live *segments; /* address -> device */
	struct live *unknown;  /* NULL, or: what was freed and not known */
	struct pending pending[PENDING_MAX];
	guint pending_first, pending_end;
};

static int by_time(const void *a, const void *b)
{
	const struct history_row *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static gsize memory_bytes = HISTORY_MEMORY_BYTES;

void history_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

struct history *history_new(void)
{
	struct history *h = g_new0(struct history, 1);

	h->rows = spool_new(sizeof(struct history_row), memory_bytes, by_time);
	h->names = g_ptr_array_new_with_free_func(g_free);
	h->name_index = g_hash_table_new(g_str_hash, g_str_equal);
	h->starts = g_array_new(FALSE, FALSE, sizeof(struct start));
	return h;
}

void history_free(struct history *h)
{
	if (h == NULL)
		return;
	spool_free(h->rows);
	g_hash_table_unref(h->name_index);
	g_ptr_array_unref(h->names);
	g_array_unref(h->starts);
	sites_free(h->sites);
	live_free(h->live);
	live_free(h->segments);
	live_free(h->unknown);
	g_free(h);
}

guint32 history_name(struct history *h, const char *name)
{
	gpointer index;

	if (g_hash_table_lookup_extended(h->name_index, name, NULL, &index))
		return GPOINTER_TO_UINT(index);
	g_ptr_array_add(h->names, g_strdup(name));
	g_hash_table_insert(h->name_index, g_ptr_array_index(h->names, h->names->len - 1),
			    GUINT_TO_POINTER(h->names->len - 1));
	return h->names->len - 1;
}

struct sites *history_sites(struct history *h)
{
	if (h->sites == NULL)
		h->sites = sites_new();
	return h->sites;
}

gboolean history_add(struct history *h, const struct history_row *row, GError **error)
{
	return spool_put(h->rows, row, error);
}

/* ---- rows to events ---- */

static void push(struct history *h, guint32 device, const struct trace_event *event,
		 const char *other)
{
	struct pending *p = &h->pending[h->pending_end++];

	*p = (struct pending){ .event = *event, .device = device, .other = other };
	if (other)
		p->event.action = TRACE_OTHER;
}

/* A block or segment begins or ends; the block that a doubled segment is goes before it. */
static void push_life(struct history *h, guint32 device, const struct trace_event *event)
{
	struct trace_event block = *event;

	block.action = event->action == TRACE_SEGMENT_ALLOC ? TRACE_ALLOC : TRACE_FREE_COMPLETED;
	if (h->doubled && event->action == TRACE_SEGMENT_FREE)
		push(h, device, &block, NULL);
	push(h, device, event, NULL);
	if (h->doubled && event->action == TRACE_SEGMENT_ALLOC)
		push(h, device, &block, NULL);
}

static void begin_live(struct history *h, guint32 device, const struct trace_event *event)
{
	gboolean segment = event->action == TRACE_SEGMENT_ALLOC;
	guint32 tag = device | (segment ? SEGMENT : 0);
	struct live_entry *known = live_find(h->live, event->address, tag);

	if (known) {
		struct trace_event gone = *event;
		gone.action = segment ? TRACE_SEGMENT_FREE : TRACE_FREE_COMPLETED;
		gone.size = known->value;
		push_life(h, device, &gone);
		push(h, device, event, "free that the file lacks");
	}
	live_put(h->live, event->address, tag, event->size);
	if (segment)
		live_put(h->segments, event->address, 0, device);
	push_life(h, device, event);
}

static void end_live(struct history *h, guint32 device, const struct trace_event *event)
{
	gboolean segment = event->action == TRACE_SEGMENT_FREE;
	guint32 tag = device | (segment ? SEGMENT : 0);
	struct live_entry *known = live_find(h->live, event->address, tag);
	struct live_entry *of_any = segment ? live_find(h->segments, event->address, 0) : NULL;
	struct trace_event e = *event;

	if (known == NULL) {
		if (h->unknown)
			live_put(h->unknown, event->address, tag, 0);
		push(h, device, event, "free of what is not allocated");
		return;
	}
	e.size = known->value;
	live_remove(h->live, known);
	if (of_any && of_any->value == device)
		live_remove(h->segments, of_any);
	push_life(h, device, &e);
}

static void take_row(struct history *h, const struct history_row *row)
{
	struct trace_event event = { .address = row->address,
				     .size = row->size,
				     .stream = row->stream,
				     .time_us = row->time_us,
				     .action = row->action };
	guint32 device = row->device;

	if (device == HISTORY_ANY_DEVICE) {
		struct live_entry *segment = live_find(h->segments, row->address, 0);
		device = segment ? (guint32)segment->value : 0;
		event.action = segment ? event.action : TRACE_OTHER;
	}
	gboolean begins = event.action == TRACE_ALLOC || event.action == TRACE_SEGMENT_ALLOC;
	if (begins) {
		event.site = row->other;
		begin_live(h, device, &event);
	} else if (event.action == TRACE_FREE_COMPLETED || event.action == TRACE_SEGMENT_FREE)
		end_live(h, device, &event);
	else
		push(h, device, &event, g_ptr_array_index(h->names, row->other));
}

gboolean history_rewind(struct history *h, GError **error)
{
	live_free(h->live);
	live_free(h->segments);
	h->live = live_new();
	h->segments = live_new();
	h->pending_first = h->pending_end = 0;
	for (guint i = 0; i < h->starts->len; i++) {
		const struct start *s = &g_array_index(h->starts, struct start, i);
		live_put(h->live, s->address, s->tag, s->size);
		if (s->tag & SEGMENT)
			live_put(h->segments, s->address, 0, s->tag & ~SEGMENT);
	}
	return spool_rewind(h->rows, error);
}

static int next_pending(struct history *h, const struct pending **out, GError **error)
{
	const void *row;

	while (h->pending_first == h->pending_end) {
		int more = spool_next(h->rows, &row, error);
		if (more <= 0)
			return more;
		h->pending_first = h->pending_end = 0;
		take_row(h, row);
	}
	*out = &h->pending[h->pending_first++];
	return 1;
}

int history_next(struct history *h, const struct trace *trace, guint *out_device,
		 struct trace_event *out, GError **error)
{
	const struct pending *p = NULL;
	int more = next_pending(h, &p, error);

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
static void decide(struct history *h, const struct history_row *row)
{
	gboolean segment = row->action == TRACE_SEGMENT_ALLOC || row->action == TRACE_SEGMENT_FREE;
	gboolean ends = row->action == TRACE_FREE_COMPLETED || row->action == TRACE_SEGMENT_FREE;
	struct start start = { .address = row->address,
			       .size = row->size,
			       .stream = row->stream,
			       .tag = row->device | (segment ? SEGMENT : 0) };

	if (row->action == TRACE_OTHER || row->device == HISTORY_ANY_DEVICE ||
	    (ends && row->size == 0))
		return;
	struct live_entry *unknown = live_find(h->unknown, start.address, start.tag);
	if (unknown == NULL)
		return;
	live_remove(h->unknown, unknown);
	if (ends)
		g_array_append_val(h->starts, start);
}

static gboolean find_starts(struct history *h, GError **error)
{
	const void *row;
	int more;

	if (!history_rewind(h, error))
		return FALSE;
	while ((more = spool_next(h->rows, &row, error)) > 0)
		decide(h, row);
	g_clear_pointer(&h->unknown, live_free);
	return more == 0;
}

static gint by_address(gconstpointer a, gconstpointer b)
{
	guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

	return x < y ? -1 : x > y;
}

static void add_start(const struct history *h, struct trace *trace, const struct start *s)
{
	struct trace_device *device = trace_device(trace, s->tag & ~SEGMENT);
	struct trace_block block = { .address = s->address, .size = s->size };
	struct trace_range range = { .address = s->address,
				     .size = s->size,
				     .stream = s->stream,
				     .small = s->size <= 2u << 20 };

	if (s->tag & SEGMENT)
		g_array_append_val(device->ranges, range);
	if (!(s->tag & SEGMENT) || h->doubled)
		g_array_append_val(device->blocks, block);
}

static void add_starts(const struct history *h, struct trace *trace)
{
	for (guint i = 0; i < h->starts->len; i++)
		add_start(h, trace, &g_array_index(h->starts, struct start, i));
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_array_sort(device->ranges, by_address);
		g_array_sort(device->blocks, by_address);
	}
}

/* ---- the trace ---- */

/* One pass: counts, and where they fit into memory, the events themselves. */
static gboolean collect(struct history *h, struct trace *trace, GError **error)
{
	gboolean keep = !spool_spilled(h->rows);
	const struct pending *p = NULL;
	int more;

	if (!history_rewind(h, error))
		return FALSE;
	while ((more = next_pending(h, &p, error)) > 0) {
		struct trace_device *device = trace_device(trace, p->device);
		if (p->other)
			trace_device_add_other(device, &p->event, p->other, strlen(p->other), keep);
		else
			trace_device_add(device, &p->event, keep);
		trace->events++;
	}
	return more == 0;
}

static struct trace *made(struct history *h, const char *kind, GError **error)
{
	struct trace *trace = trace_new(kind);

	if (!collect(h, trace, error)) {
		trace_free(trace);
		return NULL;
	}
	add_starts(h, trace);
	return trace;
}

static struct trace *finish(struct history *h, const char *kind, GError **error)
{
	h->unknown = live_new();
	struct trace *trace = made(h, kind, error);

	if (trace && live_count(h->unknown) > 0) {
		g_clear_pointer(&trace, trace_free);
		if (find_starts(h, error))
			trace = made(h, kind, error);
	}
	g_clear_pointer(&h->unknown, live_free);
	return trace;
}

struct trace *history_finish(struct history *h, const char *kind, gboolean doubled, GError **error)
{
	h->doubled = doubled;
	struct trace *trace = finish(h, kind, error);

	if (trace)
		trace->sites = g_steal_pointer(&h->sites);
	if (trace && spool_spilled(h->rows))
		trace->history = h;
	else
		history_free(h);
	return trace;
}
