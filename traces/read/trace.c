/* SPDX-License-Identifier: Apache-2.0
 *
 * The history's containers, and the choice of a reader.
 */
#include "trace.h"

#include "event-sorter.h"
#include "format/format.h"
#include "format/input.h"
#include "readers.h"
#include "sites.h"
#include "trace/verbs.h"
#include "format/units.h"

static const char *const action_names[TRACE_ACTION_COUNT] = {
	[TRACE_ALLOC] = "alloc",
	[TRACE_FREE_REQUESTED] = "free_requested",
	[TRACE_FREE_COMPLETED] = "free_completed",
	[TRACE_SEGMENT_ALLOC] = "segment_alloc",
	[TRACE_SEGMENT_FREE] = "segment_free",
	[TRACE_SEGMENT_MAP] = "segment_map",
	[TRACE_SEGMENT_UNMAP] = "segment_unmap",
	[TRACE_OOM] = "oom",
};

const char *trace_action_name(enum trace_action action)
{
	return action_names[action];
}

static void device_free(gpointer data)
{
	struct trace_device *device = data;
	g_array_unref(device->ranges);
	g_array_unref(device->blocks);
	g_array_unref(device->events);
	spans_clear(&device->maps);
	spans_clear(&device->cuts);
	g_hash_table_unref(device->other_index);
	g_ptr_array_unref(device->other_names);
	g_array_unref(device->other_counts);
	g_free(device);
}

struct trace *trace_new(const char *kind)
{
	struct trace *trace = g_new0(struct trace, 1);
	trace->devices = g_ptr_array_new_with_free_func(device_free);
	trace->kind = g_strdup(kind);
	return trace;
}

void trace_free(struct trace *trace)
{
	if (trace == NULL)
		return;
	g_ptr_array_unref(trace->devices);
	format_close(trace->format);
	event_sorter_free(trace->sorter);
	sites_free(trace->sites);
	g_free(trace->kind);
	g_free(trace->soc);
	g_free(trace->about);
	g_free(trace);
}

struct trace_device *trace_device(struct trace *trace, guint id)
{
	guint at = 0;
	for (; at < trace->devices->len; at++) {
		struct trace_device *known = g_ptr_array_index(trace->devices, at);
		if (known->device == id)
			return known;
		if (known->device > id)
			break;
	}
	struct trace_device *device = g_new0(struct trace_device, 1);
	device->device = id;
	device->ranges = g_array_new(FALSE, FALSE, sizeof(struct trace_range));
	device->blocks = g_array_new(FALSE, FALSE, sizeof(struct trace_block));
	device->events = g_array_new(FALSE, FALSE, sizeof(struct trace_event));
	spans_init(&device->maps);
	spans_init(&device->cuts);
	device->other_index = g_hash_table_new(g_str_hash, g_str_equal);
	device->other_names = g_ptr_array_new_with_free_func(g_free);
	device->other_counts = g_array_new(FALSE, TRUE, sizeof(guint64));
	g_ptr_array_insert(trace->devices, (gint)at, device);
	return device;
}

void trace_device_note_map(struct trace_device *device, guint64 address, guint64 size)
{
	guint64 end = address + size;
	if (size == 0)
		return;
	spans_add(&device->maps, address / GIB * GIB, round_up(end, GIB));
}

void trace_device_add(struct trace_device *device, const struct trace_event *event, gboolean keep)
{
	device->counts[event->action]++;
	if (event->action == TRACE_SEGMENT_MAP)
		trace_device_note_map(device, event->address, event->size);
	if (event->action == TRACE_SEGMENT_UNMAP) {
		spans_add(&device->cuts, event->address, event->address + 1);
		spans_add(&device->cuts, event->address + event->size,
			  event->address + event->size + 1);
	}
	if (keep)
		g_array_append_vals(device->events, event, 1);
}

void trace_device_add_other(struct trace_device *device, const struct trace_event *event,
			    const char *name, gsize length, gboolean keep)
{
	struct trace_event e = *event;
	g_autofree char *text = g_strndup(name, length);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	gpointer index;

	if (g_hash_table_lookup_extended(device->other_index, valid, NULL, &index)) {
		e.other = GPOINTER_TO_UINT(index);
	} else {
		e.other = device->other_names->len;
		g_hash_table_insert(device->other_index, valid, GUINT_TO_POINTER(e.other));
		g_ptr_array_add(device->other_names, g_steal_pointer(&valid));
		g_array_set_size(device->other_counts, device->other_names->len);
	}
	g_array_index(device->other_counts, guint64, e.other)++;
	trace_device_add(device, &e, keep);
}

/* ---- the events once more ---- */

gboolean trace_rewind(struct trace *trace, GError **error)
{
	trace->next_device = trace->next_event = 0;
	if (trace->format)
		return format_rewind(trace->format, error);
	return trace->sorter == NULL || event_sorter_rewind(trace->sorter, error);
}

static int next_of_format(struct trace *trace, guint *out_device, struct trace_event *out,
			  GError **error)
{
	struct format_line line;
	int more;

	while ((more = format_next(trace->format, &line, error)) > 0) {
		if (!trace_verbs[line.record.verb].event || line.record.code != 0)
			continue;
		for (guint at = 0; at < trace->devices->len; at++) {
			const struct trace_device *device = g_ptr_array_index(trace->devices, at);
			if ((gint64)device->device != line.record.device)
				continue;
			*out_device = at;
			*out = line.event;
			return 1;
		}
	}
	return more;
}

int trace_next(struct trace *trace, guint *out_device, struct trace_event *out, GError **error)
{
	if (trace->format)
		return next_of_format(trace, out_device, out, error);
	if (trace->sorter)
		return event_sorter_next(trace->sorter, trace, out_device, out, error);
	for (; trace->next_device < trace->devices->len; trace->next_device++) {
		const struct trace_device *device =
			g_ptr_array_index(trace->devices, trace->next_device);
		if (trace->next_event < device->events->len) {
			*out_device = trace->next_device;
			*out = g_array_index(device->events, struct trace_event,
					     trace->next_event++);
			return 1;
		}
		trace->next_event = 0;
	}
	return 0;
}

/* Readers that take the input over. */
static const struct {
	gboolean (*recognise)(const guint8 *bytes, gsize count);
	struct trace *(*read)(struct input *input, GError **error);
} readers[] = {
	{ format_recognise, format_read },           { memscope_recognise, memscope_read },
	{ memscope_db_recognise, memscope_db_read }, { mindspore_recognise, mindspore_read },
	{ stalloc_recognise, stalloc_read },
};

/* What a file begins with says what it is. */
static struct trace *read_input(struct input *input, GError **error)
{
	guint8 head[64];
	gssize got = input_take(input, head, sizeof head, error);
	if (got >= 0 && !input_rewind(input, error))
		got = -1;
	for (guint i = 0; got > 0 && i < G_N_ELEMENTS(readers); i++) {
		if (readers[i].recognise(head, (gsize)got))
			return readers[i].read(input, error);
	}
	if (got > 0 && snapshot_recognise(head, (gsize)got)) {
		g_autoptr(GBytes) bytes = input_whole(input, error);
		input_close(input);
		return bytes ? snapshot_read(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes),
					     error)
			     : NULL;
	}
	input_close(input);
	if (got > 0 && readers_is_json(head, (gsize)got))
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			"it is JSON, as a result of npusim replay --json is: npusim report, diff "
			"and convert read those, a replay wants the trace or snapshot itself");
	else if (got >= 0)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			    "%s: npusim reads memory snapshots of PyTorch and torch_npu (pickle, "
			    "protocol 2 to 5), npusim traces, dumps of msMemScope (CSV, SQLite), "
			    "memory_block.csv of MindSpore and logs of STAlloc, each plain or .gz",
			    got == 0 ? "the file is empty" : "not a kind of file that is known");
	return NULL;
}

struct trace *trace_read(const char *path, GError **error)
{
	struct input *input = input_open(path, error);
	if (input == NULL)
		return NULL;
	GError *cause = NULL;
	struct trace *trace = read_input(input, &cause);
	if (trace)
		return trace;
	/* errors of the file itself name it already */
	if (cause->domain != G_FILE_ERROR) {
		g_autofree char *name = g_filename_display_name(path);
		g_prefix_error(&cause, "%s: ", name);
	}
	g_propagate_error(error, cause);
	return NULL;
}
