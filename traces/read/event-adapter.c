/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns records into the events, ranges and blocks that replays take.
 */
#include "event-adapter.h"

#include "record-reader.h"

static void event_of(const struct record_item *item, struct trace_event *out)
{
	*out = (struct trace_event){ .address = item->address,
				     .size = item->size,
				     .stream = (gint64)item->record.stream,
				     .time_us = item->time_us,
				     .site = item->site,
				     .action = (guint8)trace_action_of(item->record.verb) };
}

static void add_start(struct trace *trace, const struct record_item *item)
{
	struct trace_device *device = g_ptr_array_index(trace->devices, item->device);
	struct trace_block block = { .address = item->address,
				     .size = item->size,
				     .site = item->site };
	struct trace_range range = { .address = item->address,
				     .size = item->size,
				     .stream = (gint64)item->record.stream,
				     .expandable = item->record.verb == NPU_TRACE_SEGMENT_MAP,
				     .small = (item->record.has & NPU_TRACE_HAS_SMALL) != 0 };

	if (item->record.verb == NPU_TRACE_ALLOC)
		g_array_append_val(device->blocks, block);
	else
		g_array_append_val(device->ranges, range);
}

gboolean trace_adapt(struct trace *trace, GError **error)
{
	struct record_item item;
	int more = 0;

	for (guint i = 0; i < trace->starts->len; i++) {
		trace_row_item(trace, &g_array_index(trace->starts, struct trace_row, i), &item);
		add_start(trace, &item);
	}
	if (trace->format && !trace->source->rewind(trace, error))
		return FALSE;
	while (trace->format && (more = trace->source->next(trace, &item, error)) > 0) {
		if (record_is_of_start(&item.record) && item.record.code == 0)
			add_start(trace, &item);
	}
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_array_sort(device->ranges, by_address);
		g_array_sort(device->blocks, by_address);
	}
	return more == 0 && trace->source->rewind(trace, error);
}

struct trace *trace_read(const char *path, GError **error)
{
	struct trace *trace = trace_open(path, error);

	if (trace == NULL || trace_adapt(trace, error))
		return trace;
	trace_free(trace);
	return NULL;
}

gboolean trace_rewind(struct trace *trace, GError **error)
{
	return trace->source->rewind(trace, error);
}

int trace_next_line(struct trace *trace, struct format_line *out, GError **error)
{
	struct record_item item;
	int more;

	do
		more = trace->source->next(trace, &item, error);
	while (more > 0 && record_is_of_start(&item.record));
	out->record = item.record;
	out->record.device =
		item.record.device == RECORD_NO_DEVICE ? 0 : MIN(item.record.device, G_MAXINT32);
	event_of(&item, &out->event);
	return more;
}

int trace_next(struct trace *trace, guint *out_device, struct trace_event *out, GError **error)
{
	struct format_line line;
	int more;

	do
		more = trace_next_line(trace, &line, error);
	while (more > 0 && (!trace_verbs[line.record.verb].event || line.record.code != 0 ||
			    trace_device_index(trace, line.record.device) == G_MAXUINT));
	*out_device = more > 0 ? trace_device_index(trace, line.record.device) : 0;
	*out = line.event;
	return more;
}
