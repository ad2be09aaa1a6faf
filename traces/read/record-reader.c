/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a trace as they are, events of other files with names made for their addresses.
 */
#include "record-reader.h"

#include <stdlib.h>
#include <string.h>

#include "by-address.h"
#include "int-map.h"
#include "readers.h"
#include "format/format.h"
#include "format/trace-reader.h"
#include "format/units.h"

/* What of the start comes next. */
enum stage { STAGE_RANGES, STAGE_BLOCKS, STAGE_EVENTS };

/* Expandable segments of a device: a reservation for each stretch of addresses. */
struct areas {
	const GArray *spans; /* struct span */
	guint32 *numbers;    /* of each; 0: not named yet */
};
struct record_reader {
	struct trace *trace;
	struct npu_trace_reader *lines; /* of a trace of npusim, else NULL */
	enum stage stage;
	guint device, at; /* of the start */
	guint64 number;
	struct int_map *names; /* address and letter of a device -> number */
	struct areas *areas;   /* of each device */
	guint32 last[128];     /* number given out, by letter */
	guint64 base_us;       /* time of the first event, less 1 */
	gboolean has_base;
};

/* ---- opening ---- */

static void areas_open(struct record_reader *reader)
{
	reader->areas = g_new0(struct areas, reader->trace->devices->len);
	for (guint d = 0; d < reader->trace->devices->len; d++) {
		struct trace_device *device = g_ptr_array_index(reader->trace->devices, d);
		reader->areas[d].spans = spans_merged(&device->maps, GIB);
		reader->areas[d].numbers = g_new0(guint32, MAX(reader->areas[d].spans->len, 1));
	}
}

static gboolean lines_open(struct record_reader *reader, const char *path, GError **error)
{
	char *text = NULL;

	reader->lines = npu_trace_reader_open(path, &text);
	if (reader->lines == NULL)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s", text ? text : path);
	free(text);
	return reader->lines != NULL;
}

struct record_reader *record_reader_open(const char *path, GError **error)
{
	struct trace *trace = trace_read(path, error);

	if (trace == NULL)
		return NULL;
	struct record_reader *reader = g_new0(struct record_reader, 1);
	reader->trace = trace;
	reader->names = int_map_new();
	areas_open(reader);
	if (trace->format ? lines_open(reader, path, error) : trace_rewind(trace, error))
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
	npu_trace_reader_close(reader->lines);
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
	reader->stage = STAGE_RANGES;
	reader->device = reader->at = 0;
	reader->number = 0;
	reader->has_base = FALSE;
	return (reader->lines == NULL || trace_reader_rewind(reader->lines, error)) &&
	       trace_rewind(reader->trace, error);
}

gboolean record_reader_copy(struct record_reader *reader, GString *text, GError **error)
{
	trace_reader_copy(reader->lines, text);
	return trace_reader_rewind(reader->lines, error);
}

struct trace *record_reader_trace(const struct record_reader *reader)
{
	return reader->trace;
}

const char *record_reader_info(const struct record_reader *reader, const char *key)
{
	return reader->lines ? npu_trace_reader_info_of(reader->lines, key) : NULL;
}

/* ---- names for addresses ---- */

static const struct {
	guint32 verb;
	char letter; /* 0: no name */
	gboolean ends;
} actions[TRACE_ACTION_COUNT] = {
	[TRACE_ALLOC] = { NPU_TRACE_ALLOC, 'b', FALSE },
	[TRACE_FREE_REQUESTED] = { NPU_TRACE_FREE_REQUESTED, 'b', FALSE },
	[TRACE_FREE_COMPLETED] = { NPU_TRACE_FREE, 'b', TRUE },
	[TRACE_SEGMENT_ALLOC] = { NPU_TRACE_SEGMENT_ALLOC, 'a', FALSE },
	[TRACE_SEGMENT_FREE] = { NPU_TRACE_SEGMENT_FREE, 'a', TRUE },
	[TRACE_SEGMENT_MAP] = { NPU_TRACE_SEGMENT_MAP, 'r', FALSE },
	[TRACE_SEGMENT_UNMAP] = { NPU_TRACE_SEGMENT_UNMAP, 'r', FALSE },
	[TRACE_OOM] = { NPU_TRACE_OOM, 0, FALSE },
	[TRACE_OTHER] = { NPU_TRACE_NOTE, 0, FALSE },
};

/* What is handed out twice keeps its name, and so does what is given back twice, in vain. */
static struct npu_trace_name name_of(struct record_reader *reader, guint device, char letter,
				     guint64 address, gboolean ends)
{
	guint32 tag = device << 8 | (guint8)letter;
	struct int_map_entry *known = int_map_find(reader->names, address, tag);
	struct npu_trace_name name = { .kind = letter };

	name.number = known ? (guint32)known->value : ++reader->last[(guint8)letter];
	if (known && ends)
		int_map_remove(reader->names, known);
	else if (known == NULL && !ends)
		int_map_put(reader->names, address, tag, name.number);
	return name;
}

static struct npu_trace_name area_of(struct record_reader *reader, guint device, guint64 address)
{
	const struct areas *areas = &reader->areas[device];
	guint above = by_address_above(areas->spans, address);
	struct npu_trace_name name = { .kind = 'r' };

	if (above == 0) /* unmapped without ever having been mapped */
		return name;
	if (areas->numbers[above - 1] == 0)
		areas->numbers[above - 1] = ++reader->last['r'];
	name.number = areas->numbers[above - 1];
	name.offset = address - g_array_index(areas->spans, struct span, above - 1).start;
	return name;
}

static void put_name(struct record_reader *reader, guint device, enum trace_action action,
		     guint64 address, struct npu_trace_record *r)
{
	char letter = actions[action].letter;

	if (letter == 0)
		return;
	r->has |= NPU_TRACE_HAS_NAME | NPU_TRACE_HAS_VA;
	r->va = address;
	r->name = letter == 'r' ? area_of(reader, device, address)
				: name_of(reader, device, letter, address, actions[action].ends);
}

/* ---- records ---- */

static struct npu_trace_record *begin(struct record_reader *reader, guint device,
				      enum trace_action action, guint64 size, gint64 stream,
				      struct record_item *out)
{
	const struct trace_device *d = g_ptr_array_index(reader->trace->devices, device);

	memset(out, 0, sizeof *out);
	out->device = device;
	out->size = size;
	out->record.verb = actions[action].verb;
	out->record.has = NPU_TRACE_HAS_DEVICE;
	out->record.device = d->device;
	out->record.page_lg2 = 21;
	if (size || action != TRACE_OTHER)
		out->record.has |= NPU_TRACE_HAS_SIZE;
	out->record.size = size;
	if (stream)
		out->record.has |= NPU_TRACE_HAS_STREAM;
	out->record.stream = (guint64)stream;
	return &out->record;
}

static void of_range(struct record_reader *reader, const struct trace_range *range,
		     struct record_item *out)
{
	enum trace_action action = range->expandable ? TRACE_SEGMENT_MAP : TRACE_SEGMENT_ALLOC;
	struct npu_trace_record *r =
		begin(reader, reader->device, action, range->size, range->stream, out);

	put_name(reader, reader->device, action, range->address, r);
	out->address = range->address;
	r->has |= NPU_TRACE_HAS_START | (range->small ? NPU_TRACE_HAS_SMALL : 0u);
}

static void of_block(struct record_reader *reader, const struct trace_block *block,
		     struct record_item *out)
{
	struct npu_trace_record *r =
		begin(reader, reader->device, TRACE_ALLOC, block->size, 0, out);

	put_name(reader, reader->device, TRACE_ALLOC, block->address, r);
	r->has |= NPU_TRACE_HAS_START;
	out->address = block->address;
	out->site = block->site;
}

/* Of what was there at the start; FALSE: that was all. */
static gboolean next_of_start(struct record_reader *reader, struct record_item *out)
{
	for (; reader->device < reader->trace->devices->len; reader->device++) {
		const struct trace_device *d =
			g_ptr_array_index(reader->trace->devices, reader->device);
		if (reader->stage == STAGE_RANGES && reader->at < d->ranges->len) {
			of_range(reader,
				 &g_array_index(d->ranges, struct trace_range, reader->at++), out);
			return TRUE;
		}
		if (reader->stage == STAGE_RANGES)
			reader->at = 0;
		reader->stage = STAGE_BLOCKS;
		if (reader->at < d->blocks->len) {
			of_block(reader,
				 &g_array_index(d->blocks, struct trace_block, reader->at++), out);
			return TRUE;
		}
		reader->at = 0;
		reader->stage = STAGE_RANGES;
	}
	reader->stage = STAGE_EVENTS;
	return FALSE;
}

/* Times count from the first; 0 stays what has none. */
static void put_time(struct record_reader *reader, gint64 time_us, struct npu_trace_record *r)
{
	if (time_us == 0)
		return;
	if (!reader->has_base)
		reader->base_us = (guint64)time_us - 1;
	reader->has_base = TRUE;
	guint64 since = (guint64)time_us - reader->base_us;
	r->host_ns = since < G_MAXINT64 / 1000 ? since * 1000 : 0;
	r->has |= NPU_TRACE_HAS_HOST_NS;
}

static void of_event(struct record_reader *reader, guint device, const struct trace_event *e,
		     struct record_item *out)
{
	const struct trace_device *d = g_ptr_array_index(reader->trace->devices, device);
	struct npu_trace_record *r = begin(reader, device, e->action, e->size, e->stream, out);

	put_name(reader, device, e->action, e->address, r);
	put_time(reader, e->time_us, r);
	out->number = ++reader->number;
	out->address = e->address;
	out->time_us = e->time_us;
	if (e->action == TRACE_OOM) {
		r->has |= NPU_TRACE_HAS_FREE;
		r->free_bytes = e->address;
	} else if (e->action == TRACE_OTHER) {
		r->has |= NPU_TRACE_HAS_VA;
		r->va = e->address;
		r->has |= NPU_TRACE_HAS_OP;
		r->op = g_ptr_array_index(d->other_names, e->other);
	} else {
		out->site = e->site;
	}
}

static guint index_of(const struct trace *trace, gint64 device)
{
	for (guint at = 0; at < trace->devices->len; at++) {
		const struct trace_device *known = g_ptr_array_index(trace->devices, at);
		if ((gint64)known->device == device)
			return at;
	}
	return G_MAXUINT;
}

gboolean record_is_of_start(const struct npu_trace_record *r)
{
	return (r->has & NPU_TRACE_HAS_START) &&
	       (r->verb == NPU_TRACE_ALLOC || r->verb == NPU_TRACE_SEGMENT_ALLOC ||
		r->verb == NPU_TRACE_SEGMENT_MAP);
}

static int next_line(struct record_reader *reader, struct record_item *out, GError **error)
{
	memset(out, 0, sizeof *out);
	int more = npu_trace_reader_next(reader->lines, &out->record);
	if (more < 0)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s",
			    npu_trace_reader_error(reader->lines));
	gboolean start =
		(out->record.has & NPU_TRACE_HAS_START) && trace_verbs[out->record.verb].event;
	out->number = start || more <= 0 ? 0 : ++reader->number;
	if (more > 0 && !(out->record.has & NPU_TRACE_HAS_DEVICE))
		out->record.device = RECORD_NO_DEVICE;
	struct format_line line;
	if (more > 0 && format_next_line(reader->trace->format, &line, error) <= 0)
		return -1;
	out->device = index_of(reader->trace, out->record.device);
	out->size = out->record.size;
	out->time_us = (gint64)(out->record.host_ns / 1000);
	if (more > 0 && trace_verbs[out->record.verb].event) {
		out->address = line.event.address;
		out->size = line.event.size;
		out->site = line.event.action == TRACE_ALLOC ? line.event.site : 0;
	}
	return more;
}

int record_reader_next(struct record_reader *reader, struct record_item *out, GError **error)
{
	struct trace_event event;
	guint device;

	if (reader->lines)
		return next_line(reader, out, error);
	if (reader->stage != STAGE_EVENTS && next_of_start(reader, out))
		return 1;
	int more = trace_next(reader->trace, &device, &event, error);
	if (more > 0)
		of_event(reader, device, &event, out);
	return more;
}

/* ---- text ---- */

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

static void text_of_name(GString *out, const char *key, const struct npu_trace_name *name)
{
	g_string_append_printf(out, " %s", key);
	record_name_text(name, out);
}

static void text_of_number(GString *out, const struct npu_trace_record *r, guint32 bit,
			   const char *key, guint64 value)
{
	if (r->has & bit)
		g_string_append_printf(out, " %s=%" G_GUINT64_FORMAT, key, value);
}

void record_text(const struct record_item *item, GString *out)
{
	const struct npu_trace_record *r = &item->record;

	g_string_append(out, record_verb_name(r->verb));
	if (r->has & NPU_TRACE_HAS_NAME)
		text_of_name(out, "", &r->name);
	if ((r->has & NPU_TRACE_HAS_OP) && r->op)
		g_string_append_printf(out, " op=%s", r->op);
	text_of_number(out, r, NPU_TRACE_HAS_SIZE, "size", r->size);
	if (r->has & NPU_TRACE_HAS_DEVICE)
		g_string_append_printf(out, r->device < 0 ? " device=host" : " device=%d",
				       (int)r->device);
	if (r->has & NPU_TRACE_HAS_PAGE)
		g_string_append_printf(out, " page=%s",
				       r->page_lg2 == 30   ? "1g"
				       : r->page_lg2 == 21 ? "2m"
							   : "4k");
	if (r->has & NPU_TRACE_HAS_HANDLE)
		text_of_name(out, "handle=", &r->handle);
	if (r->has & NPU_TRACE_HAS_SHARE)
		text_of_name(out, "share=", &r->share);
	if (r->has & NPU_TRACE_HAS_AT)
		text_of_name(out, "at=", &r->at);
	if (r->has & NPU_TRACE_HAS_FROM)
		text_of_name(out, "src=", &r->from);
	text_of_number(out, r, NPU_TRACE_HAS_ALIGN, "align", r->align);
	text_of_number(out, r, NPU_TRACE_HAS_FLAGS, "flags", r->flags);
	text_of_number(out, r, NPU_TRACE_HAS_STREAM, "stream", r->stream);
	text_of_number(out, r, NPU_TRACE_HAS_FREE, "free", r->free_bytes);
	if (r->code)
		g_string_append_printf(out, " => %d", r->code);
}
