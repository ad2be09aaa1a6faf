/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the summary of a trace for the readers of files, and delivers its records. Rows, whose
 * objects get names here, are one source of them.
 */
#include "trace.h"

#define DEVICE(trace, i) ((struct trace_device *)g_ptr_array_index((trace)->devices, i))

#define RECORD_BYTES 256 /* what those who read it may keep of one */

const struct trace_action trace_actions[TRACE_ACTIONS] = {
	{ NPU_TRACE_ALLOC, "alloc" },
	{ NPU_TRACE_FREE_REQUESTED, "free_requested" },
	{ NPU_TRACE_FREE, "free_completed" },
	{ NPU_TRACE_SEGMENT_ALLOC, "segment_alloc" },
	{ NPU_TRACE_SEGMENT_FREE, "segment_free" },
	{ NPU_TRACE_SEGMENT_MAP, "segment_map" },
	{ NPU_TRACE_SEGMENT_UNMAP, "segment_unmap" },
	{ NPU_TRACE_OOM, "oom" },
};

/* A text of the notes by its number + 1; NULL: there is none. */
static const char *note_text(const struct trace *trace, guint32 number)
{
	return number ? g_ptr_array_index(trace->notes.list, number - 1) : NULL;
}

static void make_item(const struct trace *trace, const struct trace_row *row,
		      struct record_item *out)
{
	struct npu_trace_record *r = &out->record;
	gboolean block = row->verb == NPU_TRACE_ALLOC, note = row->verb == NPU_TRACE_NOTE;
	gboolean oom = row->verb == NPU_TRACE_OOM;

	*out = (struct record_item){
		.record = { .verb = row->verb,
			    .has = NPU_TRACE_HAS_DEVICE,
			    .device = row->device,
			    .page_lg2 = 21,
			    .size = row->size,
			    .stream = (guint64)row->stream,
			    .free_bytes = oom ? row->address : 0,
			    .va = oom ? 0 : row->address,
			    .op = note ? note_text(trace, row->text + 1) : NULL },
		.site = note ? SITE_NONE : row->text,
		.device = trace_device_index(trace, row->device),
		.address = row->address,
		.size = row->size,
		.time_us = row->time_us,
		.more = note_text(trace, row->more),
		.over = block ? row->over : 0,
		.pool = note_text(trace, block ? 0 : row->over),
	};
	r->has |= oom ? NPU_TRACE_HAS_FREE : NPU_TRACE_HAS_VA;
	r->has |= note ? NPU_TRACE_HAS_OP : 0u;
	r->has |= row->size || !note ? NPU_TRACE_HAS_SIZE : 0u;
	r->has |= row->small ? NPU_TRACE_HAS_SMALL : 0u;
	r->has |= row->stream ? NPU_TRACE_HAS_STREAM : 0u;
	r->has |= row->start ? NPU_TRACE_HAS_START : 0u;
}

/* What is handed out twice keeps its name, and so does what is given back twice, in vain. */
static void put_number(struct trace *trace, struct record_item *item)
{
	struct npu_trace_record *r = &item->record;
	gboolean ends = r->verb == NPU_TRACE_FREE || r->verb == NPU_TRACE_SEGMENT_FREE;
	guint32 tag = item->device << 8 | (guint8)r->name.kind;
	struct int_map_entry *known = int_map_find(trace->names, item->address, tag);

	r->name.number = known ? (guint32)known->value : ++trace->last[(guint8)r->name.kind];
	if (known && ends)
		int_map_remove(trace->names, known);
	else if (known == NULL && !ends)
		int_map_put(trace->names, item->address, tag, r->name.number);
}

static void put_area(struct trace *trace, struct record_item *item)
{
	GTreeNode *node = by_address_node(DEVICE(trace, item->device)->maps, item->address);

	if (node == NULL) /* unmapped without ever having been mapped */
		return;
	struct span *span = g_tree_node_value(node);
	if (span->number == 0)
		span->number = ++trace->last['r'];
	item->record.name.number = span->number;
	item->record.name.offset = item->address - span->start;
}

/* Numbers of what has names are given out anew. */
static gboolean rows_rewind(struct trace *trace, GError **error)
{
	int_map_free(trace->names);
	trace->names = int_map_new(sizeof(struct int_map_entry), NULL);
	memset(trace->last, 0, sizeof trace->last);
	trace->next = 0;
	trace->has_base = FALSE;
	for (guint d = 0; d < trace->devices->len; d++) {
		GTreeNode *n = g_tree_node_first(DEVICE(trace, d)->maps);
		for (; n; n = g_tree_node_next(n))
			((struct span *)g_tree_node_value(n))->number = 0;
	}
	return row_list_sort(&trace->rows, TRUE, error);
}

static int rows_next(struct trace *trace, struct record_item *out)
{
	struct npu_trace_record *r = &out->record;

	if (trace->next == trace->rows.count)
		return 0;
	make_item(trace, row_list_at(&trace->rows, trace->next++), out);
	r->name.kind = trace_verbs[r->verb].kind;
	if (r->name.kind && !trace->nameless) {
		r->has |= NPU_TRACE_HAS_NAME;
		(r->name.kind == 'r' ? put_area : put_number)(trace, out);
	}
	if (r->has & NPU_TRACE_HAS_START)
		return 1;
	out->number = trace->next - trace->starts;
	if (out->time_us == 0)
		return 1;
	/* times count from the first */
	if (!trace->has_base)
		trace->base_us = (guint64)out->time_us - 1;
	trace->has_base = TRUE;
	guint64 since = (guint64)out->time_us - trace->base_us;
	r->host_ns = since < G_MAXINT64 / 1000 ? since * 1000 : 0;
	r->has |= NPU_TRACE_HAS_HOST_NS;
	return 1;
}

static void device_free(gpointer data)
{
	struct trace_device *device = data;

	g_tree_unref(device->maps);
	g_tree_unref(device->cuts);
	texts_clear(&device->others);
	g_array_unref(device->other_counts);
	g_free(device);
}

struct trace *trace_new(const char *kind)
{
	struct trace *trace = g_new0(struct trace, 1);

	trace->devices = g_ptr_array_new_with_free_func(device_free);
	trace->kind = kind;
	texts_init(&trace->notes);
	return trace;
}

void trace_free(struct trace *trace)
{
	if (trace == NULL)
		return;
	if (trace->format)
		npusim_close(trace);
	int_map_free(trace->names);
	row_list_clear(&trace->unsorted);
	row_list_clear(&trace->rows);
	g_ptr_array_unref(trace->devices);
	texts_clear(&trace->notes);
	sites_free(trace->sites);
	g_free(trace->soc);
	g_free(trace->about);
	g_free(trace->settings);
	g_free(trace);
}

gboolean trace_rewind(struct trace *trace, GError **error)
{
	trace->taken = 0;
	return (trace->format ? npusim_rewind : rows_rewind)(trace, error);
}

int trace_next(struct trace *trace, struct record_item *out, GError **error)
{
	if (!memory_limit_ask(RECORD_BYTES, error, "event " U64, ++trace->taken))
		return -1;
	return trace->format ? npusim_next(trace, out, error) : rows_next(trace, out);
}

const struct trace_row *trace_ahead(const struct trace *trace, guint64 rows)
{
	guint64 at = trace->next + rows;

	return at < trace->rows.count ? &trace->rows.rows[at] : NULL;
}

const char *trace_info(const struct trace *trace, const char *key)
{
	return trace->format ? npu_trace_reader_info_of(trace->format, key) : NULL;
}

guint trace_device_index(const struct trace *trace, gint64 id)
{
	guint at = 0;

	while (at < trace->devices->len && DEVICE(trace, at)->device != id)
		at++;
	return at < trace->devices->len ? at : G_MAXUINT;
}

struct trace_device *trace_device(struct trace *trace, guint id)
{
	guint at = 0;

	while (at < trace->devices->len && DEVICE(trace, at)->device < id)
		at++;
	if (at < trace->devices->len && DEVICE(trace, at)->device == id)
		return DEVICE(trace, at);
	struct trace_device *device = g_new0(struct trace_device, 1);
	device->device = id;
	device->maps = by_address_tree();
	device->cuts = by_address_tree();
	texts_init(&device->others);
	device->other_counts = g_array_new(FALSE, TRUE, sizeof(guint64));
	g_ptr_array_insert(trace->devices, (gint)at, device);
	return device;
}

guint32 trace_note(struct trace *trace, const char *name)
{
	return texts_add(&trace->notes, g_utf8_make_valid(name, -1));
}

struct sites *trace_sites(struct trace *trace)
{
	if (trace->sites == NULL)
		trace->sites = sites_new();
	return trace->sites;
}

void trace_count(struct trace *trace, const struct trace_row *row)
{
	struct trace_device *device = trace_device(trace, row->device);
	guint64 address = row->address, end = address + row->size;

	if (row->verb == NPU_TRACE_SEGMENT_MAP && row->size > 0)
		spans_add(device->maps, address / GIB * GIB, round_up(end, GIB), GIB);
	if (row->start) {
		trace->starts++;
		device->start_block_bytes += row->verb == NPU_TRACE_ALLOC ? row->size : 0;
		return;
	}
	device->counts[row->verb]++;
	if (row->verb == NPU_TRACE_SEGMENT_UNMAP) {
		spans_add(device->cuts, address, address + 1, 0);
		spans_add(device->cuts, end, end + 1, 0);
	}
	if (row->verb == NPU_TRACE_NOTE) {
		const char *name = g_ptr_array_index(trace->notes.list, row->text);
		guint index = texts_add(&device->others, g_strdup(name));
		if (index == device->other_counts->len)
			g_array_set_size(device->other_counts, index + 1);
		g_array_index(device->other_counts, guint64, index)++;
	}
}

gboolean trace_add_row(struct trace *trace, const struct trace_row *row, GError **error)
{
	struct trace_row start = *row;

	start.order = row->verb == NPU_TRACE_ALLOC;
	start.serial = row->address;
	trace_count(trace, row);
	trace->events += !row->start;
	trace->stamps |= row->time_us && !row->start ? NPU_TRACE_HAS_HOST_NS : 0u;
	return row_list_add(&trace->rows, row->start ? &start : row, error);
}

const char *record_verb_name(guint32 verb)
{
	return verb == NPU_TRACE_FREE_REQUESTED ? "free_requested"
	       : verb == NPU_TRACE_DEVICE_RESET ? "device_reset"
						: npu_trace_verb_name(verb);
}

void record_name_text(const struct npu_trace_name *name, GString *out)
{
	if (name->kind == NPU_TRACE_NAME_HOST)
		g_string_append(out, "host");
	else
		g_string_append_printf(out, "%c%u", name->kind, name->number);
	if (name->offset)
		g_string_append_printf(out, "+" U64, name->offset);
}

void record_text(const struct record_item *item, GString *out)
{
	struct npu_trace_record r = item->record;
	char line[4096];

	r.has &= NPU_TRACE_HAS_NAME | NPU_TRACE_HAS_OP | NPU_TRACE_HAS_SIZE | NPU_TRACE_HAS_DEVICE |
		 NPU_TRACE_HAS_PAGE | NPU_TRACE_HAS_HANDLE | NPU_TRACE_HAS_SHARE |
		 NPU_TRACE_HAS_AT | NPU_TRACE_HAS_FROM | NPU_TRACE_HAS_ALIGN | NPU_TRACE_HAS_FLAGS |
		 NPU_TRACE_HAS_STREAM | NPU_TRACE_HAS_FREE;
	gboolean fits = npu_trace_line(&r, line, sizeof line, NULL) > 0;
	g_string_append_len(out, fits ? line : record_verb_name(r.verb),
			    fits ? (gssize)strcspn(line, "\n") : -1);
}
