/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting, and matching frees with what they free.
 */
#include "history.h"

#include <string.h>

struct history {
	GArray *rows;     /* struct history_row */
	GPtrArray *names; /* char * */
	GHashTable *name_index;
	GHashTable *sizes; /* of struct live: what is allocated now, and what once was */
};
struct live {
	guint64 address; /* first three: the key */
	guint32 device;
	guint32 segment;
	guint64 size;
	gboolean now;
};

static guint live_hash(gconstpointer key)
{
	const struct live *l = key;

	return g_int64_hash(&l->address) ^ l->device * 31 ^ l->segment;
}

static gboolean live_equal(gconstpointer a, gconstpointer b)
{
	const struct live *x = a, *y = b;

	return x->address == y->address && x->device == y->device && x->segment == y->segment;
}

struct history *history_new(void)
{
	struct history *h = g_new0(struct history, 1);

	h->rows = g_array_new(FALSE, FALSE, sizeof(struct history_row));
	h->names = g_ptr_array_new_with_free_func(g_free);
	h->name_index = g_hash_table_new(g_str_hash, g_str_equal);
	h->sizes = g_hash_table_new_full(live_hash, live_equal, g_free, NULL);
	return h;
}

void history_free(struct history *h)
{
	if (h == NULL)
		return;
	g_array_unref(h->rows);
	g_hash_table_unref(h->name_index);
	g_ptr_array_unref(h->names);
	g_hash_table_unref(h->sizes);
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

void history_add(struct history *h, const struct history_row *row)
{
	g_array_append_vals(h->rows, row, 1);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
	const struct history_row *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static void add_other(struct trace *trace, struct trace_device *device,
		      const struct trace_event *event, const char *name)
{
	struct trace_event e = *event;

	e.action = TRACE_OTHER;
	trace_device_add_other(device, &e, name, strlen(name));
	trace->events++;
}

static void add(struct trace *trace, struct trace_device *device, const struct trace_event *event)
{
	trace_device_add(device, event, TRUE);
	trace->events++;
}

static void begin_live(struct history *h, struct trace *trace, struct trace_device *device,
		       const struct trace_event *event)
{
	struct live key = { .address = event->address,
			    .device = device->device,
			    .segment = event->action == TRACE_SEGMENT_ALLOC,
			    .size = event->size,
			    .now = TRUE };
	struct live *known = g_hash_table_lookup(h->sizes, &key);

	if (known && known->now) {
		struct trace_event gone = *event;
		gone.action = key.segment ? TRACE_SEGMENT_FREE : TRACE_FREE_COMPLETED;
		gone.size = known->size;
		add(trace, device, &gone);
		add_other(trace, device, event, "free that the file lacks");
	}
	if (known)
		*known = key;
	else
		g_hash_table_add(h->sizes, g_memdup2(&key, sizeof key));
	add(trace, device, event);
}

/* It was there before the file began, if the file says how large it was. */
static gboolean was_live(struct history *h, struct trace_device *device,
			 const struct trace_event *event, gboolean segment)
{
	struct live live = { .address = event->address,
			     .device = device->device,
			     .segment = segment,
			     .size = event->size };
	struct trace_block block = { .address = event->address, .size = event->size };
	struct trace_range range = { .address = event->address,
				     .size = event->size,
				     .stream = event->stream,
				     .small = event->size <= 2u << 20 };

	if (event->size == 0)
		return FALSE;
	g_hash_table_add(h->sizes, g_memdup2(&live, sizeof live));
	if (segment)
		g_array_append_val(device->ranges, range);
	else
		g_array_append_val(device->blocks, block);
	return TRUE;
}

static void end_live(struct history *h, struct trace *trace, struct trace_device *device,
		     const struct trace_event *event)
{
	struct trace_event e = *event;
	struct live key = { .address = event->address,
			    .device = device->device,
			    .segment = event->action == TRACE_SEGMENT_FREE };
	struct live *known = g_hash_table_lookup(h->sizes, &key);

	if (known && known->now) {
		e.size = known->size;
		known->now = FALSE;
	} else if (known || !was_live(h, device, event, key.segment)) {
		add_other(trace, device, event, "free of what is not allocated");
		return;
	}
	add(trace, device, &e);
}

static void add_row(struct history *h, struct trace *trace, const struct history_row *row)
{
	struct trace_device *device = trace_device(trace, row->device);
	struct trace_event event = { .address = row->address,
				     .size = row->size,
				     .stream = row->stream,
				     .time_us = row->time_us,
				     .action = row->action };

	switch (row->action) {
	case TRACE_ALLOC:
	case TRACE_SEGMENT_ALLOC:
		begin_live(h, trace, device, &event);
		break;
	case TRACE_FREE_COMPLETED:
	case TRACE_SEGMENT_FREE:
		end_live(h, trace, device, &event);
		break;
	default:
		add_other(trace, device, &event, g_ptr_array_index(h->names, row->other));
	}
}

static gint by_address(gconstpointer a, gconstpointer b)
{
	guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

	return x < y ? -1 : x > y;
}

struct trace *history_finish(struct history *h, const char *kind)
{
	struct trace *trace = trace_new(kind);

	g_array_sort(h->rows, by_time);
	for (guint i = 0; i < h->rows->len; i++)
		add_row(h, trace, &g_array_index(h->rows, struct history_row, i));
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_array_sort(device->ranges, by_address);
		g_array_sort(device->blocks, by_address);
	}
	history_free(h);
	return trace;
}
