/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a trace as they are, events of other files with names made for their addresses.
 */
#include "feed.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "input.h"
#include "live.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* What of the start comes next. */
enum stage { STAGE_RANGES, STAGE_BLOCKS, STAGE_EVENTS };

/* Expandable segments of a device: a reservation for each stretch of addresses. */
struct areas {
	const GArray *spans; /* struct span */
	guint32 *numbers;    /* of each; 0: not named yet */
};
struct feed {
	struct trace *trace;
	struct npu_trace_reader *lines; /* of a trace of npusim, else NULL */
	enum stage stage;
	guint device, at; /* of the start */
	guint64 number;
	struct live *names;  /* address and letter of a device -> number */
	struct areas *areas; /* of each device */
	guint32 last[128];   /* number given out, by letter */
	guint64 base_us;     /* time of the first event, less 1 */
	gboolean has_base;
};

/* ---- opening ---- */

static void areas_open(struct feed *feed)
{
	feed->areas = g_new0(struct areas, feed->trace->devices->len);
	for (guint d = 0; d < feed->trace->devices->len; d++) {
		struct trace_device *device = g_ptr_array_index(feed->trace->devices, d);
		feed->areas[d].spans = spans_merged(&device->maps, GIB);
		feed->areas[d].numbers = g_new0(guint32, MAX(feed->areas[d].spans->len, 1));
	}
}

static gboolean lines_open(struct feed *feed, const char *path, GError **error)
{
	char *text = NULL;

	feed->lines = npu_trace_reader_open(path, &text);
	if (feed->lines == NULL)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s", text ? text : path);
	free(text);
	return feed->lines != NULL;
}

struct feed *feed_open(const char *path, GError **error)
{
	struct trace *trace = trace_read(path, error);

	if (trace == NULL)
		return NULL;
	struct feed *feed = g_new0(struct feed, 1);
	feed->trace = trace;
	feed->names = live_new();
	areas_open(feed);
	if (trace->format ? lines_open(feed, path, error) : trace_rewind(trace, error))
		return feed;
	feed_close(feed);
	return NULL;
}

void feed_close(struct feed *feed)
{
	if (feed == NULL)
		return;
	for (guint d = 0; d < feed->trace->devices->len; d++)
		g_free(feed->areas[d].numbers);
	g_free(feed->areas);
	npu_trace_reader_close(feed->lines);
	live_free(feed->names);
	trace_free(feed->trace);
	g_free(feed);
}

struct trace *feed_trace(const struct feed *feed)
{
	return feed->trace;
}

const char *feed_info(const struct feed *feed, const char *key)
{
	return feed->lines ? npu_trace_reader_info_of(feed->lines, key) : NULL;
}

gboolean feed_is_json(const char *path, gboolean *out, GError **error)
{
	struct input *input = input_open(path, error);
	guint8 head[64];
	gssize got = input ? input_take(input, head, sizeof head, error) : -1, i = 0;

	input_close(input);
	while (i < got && g_ascii_isspace(head[i]))
		i++;
	*out = i < got && (head[i] == '{' || head[i] == '[');
	return got >= 0;
}

/* ---- names for addresses ---- */

static const struct {
	guint32 verb;
	char letter; /* 0: no name */
	gboolean begins, ends;
} actions[TRACE_ACTION_COUNT] = {
	[TRACE_ALLOC] = { NPU_TRACE_ALLOC, 'b', TRUE, FALSE },
	[TRACE_FREE_REQUESTED] = { NPU_TRACE_FREE_REQUESTED, 'b', FALSE, FALSE },
	[TRACE_FREE_COMPLETED] = { NPU_TRACE_FREE, 'b', FALSE, TRUE },
	[TRACE_SEGMENT_ALLOC] = { NPU_TRACE_SEGMENT_ALLOC, 'a', TRUE, FALSE },
	[TRACE_SEGMENT_FREE] = { NPU_TRACE_SEGMENT_FREE, 'a', FALSE, TRUE },
	[TRACE_SEGMENT_MAP] = { NPU_TRACE_SEGMENT_MAP, 'r', FALSE, FALSE },
	[TRACE_SEGMENT_UNMAP] = { NPU_TRACE_SEGMENT_UNMAP, 'r', FALSE, FALSE },
	[TRACE_OOM] = { NPU_TRACE_OOM, 0, FALSE, FALSE },
	[TRACE_OTHER] = { NPU_TRACE_NOTE, 0, FALSE, FALSE },
};

/* What is handed out twice keeps its name, and so does what is given back twice, in vain. */
static struct npu_trace_name name_of(struct feed *feed, guint device, char letter, guint64 address,
				     gboolean ends)
{
	guint32 tag = device << 8 | (guint8)letter;
	struct live_entry *known = live_find(feed->names, address, tag);
	struct npu_trace_name name = { .kind = letter };

	name.number = known ? (guint32)known->value : ++feed->last[(guint8)letter];
	if (known && ends)
		live_remove(feed->names, known);
	else if (known == NULL && !ends)
		live_put(feed->names, address, tag, name.number);
	return name;
}

static struct npu_trace_name area_of(struct feed *feed, guint device, guint64 address)
{
	const struct areas *areas = &feed->areas[device];
	guint low = 0, high = areas->spans->len;
	struct npu_trace_name name = { .kind = 'r' };

	while (low < high) { /* the first span above the address */
		guint middle = low + (high - low) / 2;
		if (g_array_index(areas->spans, struct span, middle).start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0) /* unmapped without ever having been mapped */
		return name;
	if (areas->numbers[low - 1] == 0)
		areas->numbers[low - 1] = ++feed->last['r'];
	name.number = areas->numbers[low - 1];
	name.offset = address - g_array_index(areas->spans, struct span, low - 1).start;
	return name;
}

static void put_name(struct feed *feed, guint device, enum trace_action action, guint64 address,
		     struct npu_trace_record *r)
{
	char letter = actions[action].letter;

	if (letter == 0)
		return;
	r->has |= NPU_TRACE_HAS_NAME | NPU_TRACE_HAS_VA;
	r->va = address;
	r->name = letter == 'r' ? area_of(feed, device, address)
				: name_of(feed, device, letter, address, actions[action].ends);
}

/* ---- records ---- */

static struct npu_trace_record *begin(struct feed *feed, guint device, enum trace_action action,
				      guint64 size, gint64 stream, struct feed_item *out)
{
	const struct trace_device *d = g_ptr_array_index(feed->trace->devices, device);

	memset(out, 0, sizeof *out);
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

static void of_range(struct feed *feed, const struct trace_range *range, struct feed_item *out)
{
	enum trace_action action = range->expandable ? TRACE_SEGMENT_MAP : TRACE_SEGMENT_ALLOC;
	struct npu_trace_record *r =
		begin(feed, feed->device, action, range->size, range->stream, out);

	put_name(feed, feed->device, action, range->address, r);
	r->has |= NPU_TRACE_HAS_START | (range->small ? NPU_TRACE_HAS_SMALL : 0u);
}

static void of_block(struct feed *feed, const struct trace_block *block, struct feed_item *out)
{
	struct npu_trace_record *r = begin(feed, feed->device, TRACE_ALLOC, block->size, 0, out);

	put_name(feed, feed->device, TRACE_ALLOC, block->address, r);
	r->has |= NPU_TRACE_HAS_START;
	out->site = block->site;
}

/* Of what was there at the start; FALSE: that was all. */
static gboolean next_of_start(struct feed *feed, struct feed_item *out)
{
	for (; feed->device < feed->trace->devices->len; feed->device++) {
		const struct trace_device *d =
			g_ptr_array_index(feed->trace->devices, feed->device);
		if (feed->stage == STAGE_RANGES && feed->at < d->ranges->len) {
			of_range(feed, &g_array_index(d->ranges, struct trace_range, feed->at++),
				 out);
			return TRUE;
		}
		if (feed->stage == STAGE_RANGES)
			feed->at = 0;
		feed->stage = STAGE_BLOCKS;
		if (feed->at < d->blocks->len) {
			of_block(feed, &g_array_index(d->blocks, struct trace_block, feed->at++),
				 out);
			return TRUE;
		}
		feed->at = 0;
		feed->stage = STAGE_RANGES;
	}
	feed->stage = STAGE_EVENTS;
	return FALSE;
}

/* Times count from the first; 0 stays what has none. */
static void put_time(struct feed *feed, gint64 time_us, struct npu_trace_record *r)
{
	if (time_us == 0)
		return;
	if (!feed->has_base)
		feed->base_us = (guint64)time_us - 1;
	feed->has_base = TRUE;
	guint64 since = (guint64)time_us - feed->base_us;
	r->host_ns = since < G_MAXINT64 / 1000 ? since * 1000 : 0;
	r->has |= NPU_TRACE_HAS_HOST_NS;
}

static void of_event(struct feed *feed, guint device, const struct trace_event *e,
		     struct feed_item *out)
{
	const struct trace_device *d = g_ptr_array_index(feed->trace->devices, device);
	struct npu_trace_record *r = begin(feed, device, e->action, e->size, e->stream, out);

	put_name(feed, device, e->action, e->address, r);
	put_time(feed, e->time_us, r);
	out->number = ++feed->number;
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

static int next_line(struct feed *feed, struct feed_item *out, GError **error)
{
	memset(out, 0, sizeof *out);
	int more = npu_trace_reader_next(feed->lines, &out->record);
	if (more < 0)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s",
			    npu_trace_reader_error(feed->lines));
	gboolean start = (out->record.has & NPU_TRACE_HAS_START) && feed_is_event(out->record.verb);
	out->number = start || more <= 0 ? 0 : ++feed->number;
	if (more > 0 && !(out->record.has & NPU_TRACE_HAS_DEVICE))
		out->record.device = FEED_NO_DEVICE;
	return more;
}

int feed_next(struct feed *feed, struct feed_item *out, GError **error)
{
	struct trace_event event;
	guint device;

	if (feed->lines)
		return next_line(feed, out, error);
	if (feed->stage != STAGE_EVENTS && next_of_start(feed, out))
		return 1;
	int more = trace_next(feed->trace, &device, &event, error);
	if (more > 0)
		of_event(feed, device, &event, out);
	return more;
}

/* ---- text ---- */

const char *feed_verb_name(guint32 verb)
{
	return verb == NPU_TRACE_FREE_REQUESTED ? "free_requested"
	       : verb == NPU_TRACE_DEVICE_RESET ? "device_reset"
						: npu_trace_verb_name(verb);
}

static void text_of_name(GString *out, const char *key, const struct npu_trace_name *name)
{
	g_string_append_printf(out, " %s", key);
	if (name->kind == NPU_TRACE_NAME_HOST)
		g_string_append(out, "host");
	else
		g_string_append_printf(out, "%c%u", name->kind, name->number);
	if (name->offset)
		g_string_append_printf(out, "+%" G_GUINT64_FORMAT, name->offset);
}

static void text_of_number(GString *out, const struct npu_trace_record *r, guint32 bit,
			   const char *key, guint64 value)
{
	if (r->has & bit)
		g_string_append_printf(out, " %s=%" G_GUINT64_FORMAT, key, value);
}

void feed_text(const struct feed_item *item, GString *out)
{
	const struct npu_trace_record *r = &item->record;

	g_string_append(out, feed_verb_name(r->verb));
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
