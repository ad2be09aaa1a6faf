/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivers the records of a trace, and gives names to what a file identifies by address.
 */
#include "record-reader.h"

#include <string.h>

#include "format/memory-limit.h"
#include "format/units.h"
#include "int-map.h"

#define RECORD_BYTES 256 /* what those who read it may keep of one */

/* Expandable segments of a device: a reservation for each stretch of addresses. */
struct areas {
	const GArray *spans; /* struct span */
	guint32 *numbers;    /* of each; 0: not named yet */
};
struct record_reader {
	struct trace *trace;
	guint64 number;
	guint64 taken; /* records, those of the start too */

	/* of a file without names */
	struct int_map *names; /* address and letter of a device -> number */
	struct areas *areas;   /* of each device */
	guint32 last[128];     /* number given out, by letter */
	guint64 base_us;       /* time of the first event, less 1 */
	gboolean has_base;
};

struct record_reader *record_reader_open(const char *path, GError **error)
{
	struct trace *trace = trace_open(path, error);

	if (trace == NULL)
		return NULL;
	struct record_reader *reader = g_new0(struct record_reader, 1);
	reader->trace = trace;
	reader->areas = g_new0(struct areas, trace->devices->len);
	for (guint d = 0; d < trace->devices->len; d++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, d);
		reader->areas[d].spans = spans_merged(&device->maps, GIB);
		reader->areas[d].numbers = g_new0(guint32, MAX(reader->areas[d].spans->len, 1));
	}
	if (record_reader_rewind(reader, error))
		return reader;
	record_reader_close(reader);
	return NULL;
}

void record_reader_close(struct record_reader *reader)
{
	if (reader == NULL)
		return;
	for (guint d = 0; d < reader->trace->devices->len; d++)
		g_free(reader->areas[d].numbers);
	g_free(reader->areas);
	int_map_free(reader->names);
	trace_free(reader->trace);
	g_free(reader);
}

gboolean record_reader_rewind(struct record_reader *reader, GError **error)
{
	int_map_free(reader->names);
	reader->names = int_map_new();
	memset(reader->last, 0, sizeof reader->last);
	for (guint d = 0; d < reader->trace->devices->len; d++)
		memset(reader->areas[d].numbers, 0, reader->areas[d].spans->len * sizeof(guint32));
	reader->number = reader->taken = 0;
	reader->has_base = FALSE;
	return reader->trace->source->rewind(reader->trace, error);
}

gboolean record_reader_copy(struct record_reader *reader, GString *text, GError **error)
{
	trace_reader_copy(reader->trace->format, text);
	return record_reader_rewind(reader, error);
}

struct trace *record_reader_trace(const struct record_reader *reader)
{
	return reader->trace;
}

const char *record_reader_info(const struct record_reader *reader, const char *key)
{
	return reader->trace->format ? npu_trace_reader_info_of(reader->trace->format, key) : NULL;
}

/* What is handed out twice keeps its name, and so does what is given back twice, in vain. */
static void put_number(struct record_reader *reader, struct record_item *item)
{
	struct npu_trace_record *r = &item->record;
	gboolean ends = r->verb == NPU_TRACE_FREE || r->verb == NPU_TRACE_SEGMENT_FREE;
	guint32 tag = item->device << 8 | (guint8)r->name.kind;
	struct int_map_entry *known = int_map_find(reader->names, item->address, tag);

	r->name.number = known ? (guint32)known->value : ++reader->last[(guint8)r->name.kind];
	if (known && ends)
		int_map_remove(reader->names, known);
	else if (known == NULL && !ends)
		int_map_put(reader->names, item->address, tag, r->name.number);
}

static void put_area(struct record_reader *reader, struct record_item *item)
{
	const struct areas *areas = &reader->areas[item->device];
	struct npu_trace_name *name = &item->record.name;
	guint above = by_address_above(areas->spans, item->address);

	if (above == 0) /* unmapped without ever having been mapped */
		return;
	if (areas->numbers[above - 1] == 0)
		areas->numbers[above - 1] = ++reader->last['r'];
	name->number = areas->numbers[above - 1];
	name->offset = item->address - g_array_index(areas->spans, struct span, above - 1).start;
}

/* Times count from the first; 0 stays what has none. */
static void put_time(struct record_reader *reader, struct record_item *item)
{
	if (item->time_us == 0)
		return;
	if (!reader->has_base)
		reader->base_us = (guint64)item->time_us - 1;
	reader->has_base = TRUE;
	guint64 since = (guint64)item->time_us - reader->base_us;
	item->record.host_ns = since < G_MAXINT64 / 1000 ? since * 1000 : 0;
	item->record.has |= NPU_TRACE_HAS_HOST_NS;
}

int record_reader_next(struct record_reader *reader, struct record_item *out, GError **error)
{
	struct trace *trace = reader->trace;

	if (!memory_limit_ask(RECORD_BYTES, error, "event %" G_GUINT64_FORMAT, ++reader->taken))
		return -1;
	int more = trace->source->next(trace, out, error);
	if (more <= 0 || trace->format)
		return more;
	out->record.name.kind = trace_verbs[out->record.verb].kind;
	if (out->record.name.kind) {
		out->record.has |= NPU_TRACE_HAS_NAME;
		if (out->record.name.kind == 'r')
			put_area(reader, out);
		else
			put_number(reader, out);
	}
	if (!(out->record.has & NPU_TRACE_HAS_START)) {
		out->number = ++reader->number;
		put_time(reader, out);
	}
	return 1;
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
		g_string_append_printf(out, "+%" G_GUINT64_FORMAT, name->offset);
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
