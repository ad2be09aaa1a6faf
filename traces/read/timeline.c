/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what PyTorch's profiler (Kineto) writes for Chrome: its [memory] events are blocks that
 * come and go. The slices of the same thread that an event lies in are its call stack: Python's
 * functions, where with_stack was on, and operators.
 */
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
	const struct pickle_value *name;
};
struct timeline {
	struct trace *trace;
	GArray *items; /* struct item */
	GError **error;
	const struct item *first[TRACE_DEVICE_LAST + 1]; /* event of each device */
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
	struct item item = { .name = name };
	gint64 length, process = 0;

	if (name == NULL || name->type != PICKLE_STR ||
	    !pickle_get_thousandths(event, "ts", &item.ns))
		return;
	pickle_get_int(event, "pid", &process);
	pickle_get_int(event, "tid", &item.thread);
	item.thread ^= (gint64)((guint64)process << 32);
	if (slice && !memory && pickle_get_thousandths(event, "dur", &length) && length >= 0)
		item.end = item.ns + length;
	else if (!memory || !read_memory(event, &item))
		return;
	g_array_append_val(t->items, item);
}

/* Slices before what lies in them. */
static gint by_thread(gconstpointer a, gconstpointer b)
{
	const struct item *x = a, *y = b;

	return COMPARE(x->thread, y->thread) ?: COMPARE(x->ns, y->ns) ?: COMPARE(y->end, x->end);
}

/* The site of an event in slices, outermost first. */
static guint32 site_in(struct timeline *t, const GPtrArray *open)
{
	g_autoptr(GString) text = g_string_new(NULL);
	guint past = open->len - MIN(open->len, SITE_FRAMES_READ);

	for (guint s = open->len; s > past && text->len < NPU_TRACE_LINE_MAX; s--) {
		const struct pickle_value *name = ((struct item *)open->pdata[s - 1])->name;
		g_string_append_printf(text, "%.*s\n", (int)MIN(name->length, NPU_TRACE_LINE_MAX),
				       name->text);
	}
	return sites_add(trace_sites(t->trace), text->str);
}

/* The events as rows. */
static gboolean add_events(struct timeline *t)
{
	g_autoptr(GPtrArray) open = g_ptr_array_new();

	g_array_sort(t->items, by_thread);
	for (guint i = 0; i < t->items->len; i++) {
		struct item *item = &g_array_index(t->items, struct item, i), *last;
		while (open->len > 0 && (last = open->pdata[open->len - 1]) &&
		       (last->end < item->ns || last->thread != item->thread))
			g_ptr_array_set_size(open, (gint)open->len - 1);
		if (item->address == 0) {
			g_ptr_array_add(open, item);
			continue;
		}
		const struct item **first = &t->first[item->device];
		gboolean goes = item->bytes < 0;
		const struct trace_row row = { .address = (guint64)item->address,
					       .size = (guint64)ABS(item->bytes),
					       .device = (guint16)item->device,
					       .time_us = item->ns / 1000,
					       .text = goes ? SITE_NONE : site_in(t, open),
					       .verb = goes ? NPU_TRACE_FREE : NPU_TRACE_ALLOC,
					       .order = item->ns,
					       .serial = i };
		if (*first == NULL || item->ns < (*first)->ns)
			*first = item;
		if (!row_list_add(&t->trace->unsorted, &row, t->error))
			return FALSE;
	}
	return t->trace->unsorted.count > 0 ||
	       refuse(t->error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		      "it is a timeline for Chrome or Perfetto without [memory] events of a "
		      "device: record one by torch.profiler with profile_memory=True, or a memory "
		      "snapshot by torch.cuda.memory._record_memory_history() and "
		      "_dump_snapshot(FILE) "
		      "(torch_npu.npu.memory has both too)");
}

/* What the first sum of a device tells of, and no event, was there before. */
static gboolean add_others(struct timeline *t)
{
	gboolean ok = TRUE;

	for (guint d = 0; ok && d < t->trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(t->trace->devices, d);
		const struct item *first = t->first[device->device];
		gint64 before = first->allocated - first->bytes - (gint64)device->start_block_bytes;
		const struct trace_row other = { .address = (guint64)OTHERS,
						 .size = (guint64)before,
						 .device = (guint16)device->device,
						 .start = TRUE,
						 .verb = NPU_TRACE_ALLOC };
		ok = before <= 0 || before >= SIZE_END || trace_add_row(t->trace, &other, t->error);
	}
	return ok;
}

gboolean timeline_read(struct trace *trace, struct input *input, GError **error)
{
	struct pickle *pickle = pickle_read_input(input, NULL, error);
	const struct pickle_value *list = pickle ? pickle_root(pickle) : NULL;
	struct timeline t = { .trace = trace,
			      .items = g_array_new(FALSE, FALSE, sizeof(struct item)),
			      .error = error };
	gboolean ok = pickle != NULL;

	if (list && list->type == PICKLE_DICT)
		list = pickle_get(list, "traceEvents");
	for (gsize i = 0; ok && list && list->type == PICKLE_LIST && i < list->list->len; i++) {
		ok = memory_limit_ask(sizeof(struct item), error, "event %zu", i);
		if (ok)
			read_event(&t, pickle_item(list, i));
	}
	ok = ok && add_events(&t) && event_sorter_finish(trace, FALSE, error) && add_others(&t);
	g_array_unref(t.items);
	pickle_free(pickle);
	return ok;
}
