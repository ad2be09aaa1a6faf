/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what PyTorch's profiler (Kineto) writes for Chrome: its [memory] events are blocks that
 * come and go. The slices of the same thread that an event lies in are its call stack: Python's
 * functions, where with_stack was on, and operators.
 */
#include "event-sorter.h"
#include "format/memory-limit.h"
#include "int-map.h"
#include "pickle.h"
#include "readers.h"

#define HOST     0 /* c10's DeviceType of the CPU */
#define SIZE_END (G_GINT64_CONSTANT(1) << 46)
#define OTHERS   (G_GINT64_CONSTANT(1) << 55) /* address of what only a sum tells of */

/* A slice, or a [memory] event. */
struct item {
	gint64 ns, end;          /* end: of a slice */
	gint64 thread;           /* of its process */
	gint64 bytes, allocated; /* below 0: of a block that goes; in all after it */
	gint64 address;          /* 0: it is a slice */
	gint64 device;
	guint32 text; /* a slice's name; where an event was */
};
struct timeline {
	struct trace *trace;
	struct texts names;
	GArray *items; /* struct item */
	GError **error;
};

/* FALSE: it is no [memory] event of a device, with an address. */
static gboolean read_memory(const struct pickle_value *event, struct item *out)
{
	const struct pickle_value *args = pickle_get(event, "args");
	gint64 type = HOST;

	pickle_get_int(args, "Device Type", &type);
	pickle_get_int(args, "Total Allocated", &out->allocated);
	return type != HOST && pickle_get_int(args, "Device Id", &out->device) &&
	       out->device >= 0 && out->device <= TRACE_DEVICE_LAST &&
	       pickle_get_int(args, "Addr", &out->address) && out->address > 0 &&
	       out->address < OTHERS && pickle_get_int(args, "Bytes", &out->bytes) &&
	       out->bytes > -SIZE_END && out->bytes < SIZE_END && out->allocated > -SIZE_END &&
	       out->allocated < SIZE_END;
}

static void read_event(struct timeline *t, const struct pickle_value *event)
{
	const struct pickle_value *name = pickle_get(event, "name");
	const struct pickle_value *category = pickle_get(event, "cat");
	gboolean memory = pickle_is(name, "[memory]");
	gboolean slice = pickle_is(category, "python_function") || pickle_is(category, "cpu_op");
	struct item item = { 0 };
	gint64 length, process = 0;

	if (name == NULL || name->type != PICKLE_STR ||
	    !pickle_get_thousandths(event, "ts", &item.ns))
		return;
	pickle_get_int(event, "pid", &process);
	pickle_get_int(event, "tid", &item.thread);
	item.thread ^= (gint64)((guint64)process << 32);
	if (slice && !memory && pickle_get_thousandths(event, "dur", &length) && length >= 0) {
		item.end = item.ns + length;
		item.text = texts_add(&t->names, g_strndup(name->text, name->length));
	} else if (!memory || !read_memory(event, &item)) {
		return;
	}
	g_array_append_val(t->items, item);
}

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

/* Slices before what lies in them. */
static gint by_thread(gconstpointer a, gconstpointer b)
{
	const struct item *x = a, *y = b;

	return x->thread != y->thread ? ORDER(x->thread, y->thread)
	       : x->ns != y->ns       ? ORDER(x->ns, y->ns)
				      : ORDER(y->end, x->end);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
	return ORDER(((const struct item *)a)->ns, ((const struct item *)b)->ns);
}

static void find_sites(struct timeline *t)
{
	g_autoptr(GPtrArray) open = g_ptr_array_new();
	g_autoptr(GString) text = g_string_new(NULL);

	g_array_sort(t->items, by_thread);
	for (guint i = 0; i < t->items->len; i++) {
		struct item *item = &g_array_index(t->items, struct item, i), *last;
		while (open->len > 0 && (last = open->pdata[open->len - 1]) &&
		       (last->end < item->ns || last->thread != item->thread))
			g_ptr_array_set_size(open, (gint)open->len - 1);
		if (item->address == 0)
			g_ptr_array_add(open, item);
		if (item->address == 0 || item->bytes < 0)
			continue;
		g_string_truncate(text, 0);
		for (guint s = open->len; s > 0 && text->len < NPU_TRACE_LINE_MAX; s--) {
			last = open->pdata[s - 1];
			g_string_append(text, g_ptr_array_index(t->names.list, last->text));
			g_string_append_c(text, '\n');
		}
		item->text = sites_add_lines(trace_sites(t->trace), text->str);
	}
	g_array_sort(t->items, by_time);
}

/* The events as rows. What the first sum of a device tells of, and no event, was there before. */
static gboolean add_rows(struct timeline *t)
{
	g_autofree gint64 *before = g_new0(gint64, TRACE_DEVICE_LAST + 1);
	GHashTable *seen = int_map_new(); /* addresses; of a device alone: it has begun */
	gboolean ok = TRUE;

	for (guint i = 0; ok && i < t->items->len; i++) {
		const struct item *e = &g_array_index(t->items, struct item, i);
		guint32 device = (guint32)e->device;
		const struct trace_row row = { .address = (guint64)e->address,
					       .size = (guint64)ABS(e->bytes),
					       .device = (guint16)device,
					       .time_us = e->ns / 1000,
					       .text = e->bytes < 0 ? SITE_NONE : e->text,
					       .verb = e->bytes < 0 ? NPU_TRACE_FREE
								    : NPU_TRACE_ALLOC,
					       .order = e->ns,
					       .serial = i };
		if (e->address == 0)
			continue;
		if (int_map_find(seen, 0, device) == NULL)
			before[device] = e->allocated - e->bytes;
		if (e->bytes < 0 && int_map_find(seen, row.address, device) == NULL)
			before[device] += e->bytes;
		int_map_put(seen, 0, device, 0);
		int_map_put(seen, row.address, device, 0);
		ok = row_list_add(&t->trace->unsorted, &row, t->error);
	}
	ok = ok &&
	     (g_hash_table_size(seen) > 0 ||
	      refuse(t->error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		     "it is a timeline for Chrome or Perfetto without [memory] events of a device: "
		     "record one by torch.profiler with profile_memory=True, or a memory snapshot "
		     "by "
		     "torch.cuda.memory._record_memory_history() and _dump_snapshot(FILE) "
		     "(torch_npu.npu.memory has both too)"));
	for (guint16 d = 0; ok && d <= TRACE_DEVICE_LAST; d++) {
		const struct trace_row other = { .address = (guint64)OTHERS,
						 .size = (guint64)MAX(before[d], 0),
						 .device = d,
						 .verb = NPU_TRACE_ALLOC };
		if (before[d] > 0 && before[d] < SIZE_END)
			trace_add_start(t->trace, &other);
	}
	g_clear_pointer(&seen, g_hash_table_unref);
	return ok;
}

static gboolean read_timeline(struct timeline *t, const struct pickle_value *root)
{
	const struct pickle_value *list =
		root->type == PICKLE_DICT ? pickle_get(root, "traceEvents") : root;

	for (gsize i = 0; list && list->type == PICKLE_LIST && i < list->list->count; i++) {
		if (!memory_limit_ask(sizeof(struct item), t->error, "event %zu", i))
			return FALSE;
		read_event(t, &list->list->items[i]);
	}
	find_sites(t);
	return add_rows(t);
}

gboolean timeline_read(struct trace *trace, struct input *input, GError **error)
{
	struct pickle *pickle = pickle_read_input(input, NULL, error);
	struct timeline t = { .trace = trace,
			      .items = g_array_new(FALSE, FALSE, sizeof(struct item)),
			      .error = error };

	texts_init(&t.names);
	gboolean ok = pickle && read_timeline(&t, pickle_root(pickle));
	texts_clear(&t.names);
	g_array_unref(t.items);
	pickle_free(pickle);
	return ok && event_sorter_finish(trace, FALSE, error);
}
