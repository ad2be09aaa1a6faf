/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of an npusim trace as a replay wants them, over the reader of npusim/trace.h.
 */
#include "format.h"

#include <string.h>

#include "read/by-address.h"
#include "format-words.h"
#include "read/int-map.h"
#include "read/sites.h"
#include "trace-reader.h"
#include "trace/verbs.h"
#include "units.h"

#define ADDRESS_END  (G_GUINT64_CONSTANT(1) << 62) /* some readers mark addresses above 2^56 */
#define OFFSET_BITS  43 /* of a reservation's offset in an event's address: 8 TiB */
#define RESERVATIONS (1u << (62 - OFFSET_BITS))
/* Addresses of what has only a name: of reservations above 2^62, of segments below, each behind the
 * one before; process and number of a block that says not where it lies. */
#define RESERVED_BASE (G_GUINT64_CONSTANT(1) << 62)
#define SEGMENT_BASE  (G_GUINT64_CONSTANT(1) << 61)
#define SEGMENT_UNIT  (2 * MIB)

struct format_reader {
	struct npu_trace_reader *reader;
	GHashTable *reservations; /* process << 32 | number -> index + 1, of those that segment_map
				     lines name */
	struct int_map *segments; /* address and device of those that live -> size */
	struct int_map *names;    /* process << 32 | number, letter -> address of what lives */
	guint64 next_segment;     /* its address */
	gboolean head_read, by_address;
	gboolean lent;          /* `sites` are the trace's */
	struct sites *sites;    /* NULL until a line has one */
	GHashTable *site_texts; /* site= as it is written -> number in sites */
	GArray *site_numbers;   /* guint32: the same, in order of appearance */
};

/* What an allocator's event is. */
static const guint8 actions[NPU_TRACE_VERB_COUNT] = {
	[NPU_TRACE_SEGMENT_ALLOC] = TRACE_SEGMENT_ALLOC,
	[NPU_TRACE_SEGMENT_FREE] = TRACE_SEGMENT_FREE,
	[NPU_TRACE_SEGMENT_MAP] = TRACE_SEGMENT_MAP,
	[NPU_TRACE_SEGMENT_UNMAP] = TRACE_SEGMENT_UNMAP,
	[NPU_TRACE_ALLOC] = TRACE_ALLOC,
	[NPU_TRACE_FREE] = TRACE_FREE_COMPLETED,
	[NPU_TRACE_FREE_REQUESTED] = TRACE_FREE_REQUESTED,
	[NPU_TRACE_OOM] = TRACE_OOM,
	[NPU_TRACE_NOTE] = TRACE_OTHER,
};

static gboolean bad(const struct npu_trace_record *record, GError **error, const char *text)
{
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %" G_GUINT64_FORMAT ": %s",
		    record->line, text);
	return FALSE;
}

static guint64 key_of(const struct npu_trace_record *c, const struct npu_trace_name *name)
{
	return (guint64)c->process << 32 | name->number;
}

static gboolean expandable_address(struct format_reader *r, const struct npu_trace_record *c,
				   guint64 *out, GError **error)
{
	guint64 key = key_of(c, &c->name);
	guint index = GPOINTER_TO_UINT(g_hash_table_lookup(r->reservations, &key));

	if (index == 0) {
		index = g_hash_table_size(r->reservations) + 1;
		if (index >= RESERVATIONS)
			return bad(c, error,
				   "there are more reservations than the 524287 of a replay");
		g_hash_table_insert(r->reservations, g_memdup2(&key, sizeof key),
				    GUINT_TO_POINTER(index));
	}
	if (c->name.offset >> OFFSET_BITS || c->size >> OFFSET_BITS ||
	    (c->name.offset + c->size) >> OFFSET_BITS)
		return bad(c, error, "it ends more than 8 TiB into its reservation");
	*out = RESERVED_BASE | (guint64)index << OFFSET_BITS | c->name.offset;
	return TRUE;
}

/* Where the head says that addresses count, they do: a converter wrote it, from a file that has
 * nothing else. */
static gboolean has_addresses(struct format_reader *r)
{
	if (!r->head_read)
		r->by_address =
			g_strcmp0(npu_trace_reader_info_of(r->reader, "addresses"), "va") == 0;
	r->head_read = TRUE;
	return r->by_address;
}

/* A text, or the number of one that was there before. */
static guint32 site_of(struct format_reader *r, const char *text)
{
	guint64 number;
	gpointer known;

	if (g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT32, &number, NULL))
		return number <= r->site_numbers->len
			       ? g_array_index(r->site_numbers, guint32, number - 1)
			       : SITE_NONE;
	if (g_hash_table_lookup_extended(r->site_texts, text, NULL, &known))
		return GPOINTER_TO_UINT(known);
	if (r->sites == NULL)
		r->sites = sites_new();
	guint32 site = sites_add_lines(r->sites, text);
	if (site == SITE_NONE)
		return site;
	g_hash_table_insert(r->site_texts, g_strdup(text), GUINT_TO_POINTER(site));
	g_array_append_val(r->site_numbers, site);
	return site;
}

/* Where at= says that a block lies; 0: it says nothing that is known. */
static guint64 place_of(struct format_reader *r, const struct npu_trace_record *c)
{
	guint64 key = key_of(c, &c->at);
	gpointer index = c->at.kind == 'r' ? g_hash_table_lookup(r->reservations, &key) : NULL;
	const struct int_map_entry *segment =
		c->at.kind == 'a' ? int_map_find(r->names, key, 'a') : NULL;

	if (c->at.offset >> OFFSET_BITS)
		return 0;
	if (index)
		return RESERVED_BASE | (guint64)GPOINTER_TO_UINT(index) << OFFSET_BITS |
		       c->at.offset;
	return segment ? segment->value + c->at.offset : 0;
}

/* A segment without an address lies behind the one before. */
static guint64 next_segment(struct format_reader *r, guint64 size)
{
	guint64 address = r->next_segment;

	if (size < RESERVED_BASE - address - SEGMENT_UNIT)
		r->next_segment += (size / SEGMENT_UNIT + 2) * SEGMENT_UNIT;
	return address;
}

/* Of a segment or a block: its first line says where it lies, others name it alone. What is not
 * known has an address that none has. */
static guint64 address_of_name(struct format_reader *r, const struct npu_trace_record *c)
{
	guint32 letter = (guint32)c->name.kind;
	guint64 key = key_of(c, &c->name), address = 0;
	struct int_map_entry *known = int_map_find(r->names, key, letter);

	if (known)
		address = known->value;
	else if (c->code == 0 && c->verb == NPU_TRACE_SEGMENT_ALLOC)
		address = next_segment(r, c->size);
	else if (c->code == 0 && c->verb == NPU_TRACE_ALLOC)
		address = place_of(r, c);
	if (known && c->code == 0 &&
	    (c->verb == NPU_TRACE_SEGMENT_FREE || c->verb == NPU_TRACE_FREE))
		int_map_remove(r->names, known);
	else if (known == NULL && address != 0)
		int_map_put(r->names, key, letter, address);
	return address ? address : key;
}

/* A line that frees a segment need not say how large it was. */
static void follow_segment(struct format_reader *r, const struct npu_trace_record *c,
			   struct trace_event *e)
{
	guint32 device = (guint32)c->device;

	if (c->code != 0)
		return;
	if (c->verb == NPU_TRACE_SEGMENT_ALLOC) {
		int_map_put(r->segments, e->address, device, e->size);
		return;
	}
	struct int_map_entry *known = int_map_find(r->segments, e->address, device);
	if (known == NULL)
		return;
	if (!(c->has & NPU_TRACE_HAS_SIZE))
		e->size = known->value;
	int_map_remove(r->segments, known);
}

static gboolean is_segment(const struct npu_trace_record *c)
{
	return c->verb == NPU_TRACE_SEGMENT_ALLOC || c->verb == NPU_TRACE_SEGMENT_FREE;
}

/* Where what an event is about lies. */
static gboolean put_address(struct format_reader *r, const struct npu_trace_record *c,
			    guint64 *address, GError **error)
{
	if (c->verb == NPU_TRACE_OOM) {
		*address = c->free_bytes;
		return TRUE;
	}
	if (c->verb == NPU_TRACE_NOTE)
		return TRUE;
	if ((c->has & NPU_TRACE_HAS_VA) && has_addresses(r)) {
		*address = c->va;
		return (c->va <= ADDRESS_END && c->size <= ADDRESS_END - c->va) ||
		       bad(c, error, "its address runs past 2^62");
	}
	if (c->verb == NPU_TRACE_SEGMENT_MAP || c->verb == NPU_TRACE_SEGMENT_UNMAP)
		return expandable_address(r, c, address, error);
	*address = address_of_name(r, c);
	return TRUE;
}

static gboolean make_event(struct format_reader *r, const struct npu_trace_record *c,
			   struct trace_event *out, GError **error)
{
	*out = (struct trace_event){ .action = actions[c->verb],
				     .address = key_of(c, &c->name),
				     .size = c->size,
				     .stream = (gint64)c->stream,
				     .time_us = (gint64)(c->host_ns / 1000) };
	if (c->site && c->verb == NPU_TRACE_ALLOC)
		out->site = site_of(r, c->site);
	if (!put_address(r, c, &out->address, error))
		return FALSE;
	if (is_segment(c))
		follow_segment(r, c, out);
	return TRUE;
}

/* 1: any line; 0 at the end; -1 and error. */
int format_next_line(struct format_reader *r, struct format_line *out, GError **error)
{
	struct npu_trace_record *c = &out->record;
	int result = trace_reader_take(r->reader, c, error);

	if (result <= 0)
		return result;
	c->device = MIN(c->device, G_MAXINT32);
	return !trace_verbs[c->verb].event || make_event(r, c, &out->event, error) ? 1 : -1;
}

static gboolean is_of_start(const struct npu_trace_record *line)
{
	return (line->has & NPU_TRACE_HAS_START) &&
	       (line->verb == NPU_TRACE_ALLOC || line->verb == NPU_TRACE_SEGMENT_ALLOC ||
		line->verb == NPU_TRACE_SEGMENT_MAP);
}

int format_next(struct format_reader *r, struct format_line *out, GError **error)
{
	int result;

	/* what was there at the start is in the summary */
	do
		result = format_next_line(r, out, error);
	while (result > 0 && is_of_start(&out->record));
	return result;
}

/* ---- the file ---- */

gboolean format_recognise(const guint8 *bytes, gsize count)
{
	gsize length = strlen(FORMAT_MAGIC);

	return count > length && memcmp(bytes, FORMAT_MAGIC, length) == 0 && bytes[length] == ' ';
}

/* No line was read. */
static void start_over(struct format_reader *r)
{
	g_hash_table_remove_all(r->reservations);
	int_map_free(r->segments);
	int_map_free(r->names);
	r->segments = int_map_new();
	r->names = int_map_new();
	r->next_segment = SEGMENT_BASE;
	r->head_read = FALSE;
}

struct format_reader *format_open(struct input *input, GError **error)
{
	struct npu_trace_reader *reader = trace_reader_new(input, error);
	struct format_reader *r;

	if (reader == NULL)
		return NULL;
	r = g_new0(struct format_reader, 1);
	r->reader = reader;
	r->reservations = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	start_over(r);
	r->site_texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	r->site_numbers = g_array_new(FALSE, FALSE, sizeof(guint32));
	return r;
}

gboolean format_rewind(struct format_reader *r, GError **error)
{
	start_over(r);
	return trace_reader_rewind(r->reader, error);
}

void format_close(struct format_reader *r)
{
	if (r == NULL)
		return;
	npu_trace_reader_close(r->reader);
	g_hash_table_unref(r->reservations);
	int_map_free(r->segments);
	int_map_free(r->names);
	g_hash_table_unref(r->site_texts);
	g_array_unref(r->site_numbers);
	if (!r->lent)
		sites_free(r->sites);
	g_free(r);
}

/* ---- the summary ---- */

static gboolean gets_memory(guint32 verb)
{
	return verb == NPU_TRACE_CREATE || verb == NPU_TRACE_MALLOC;
}

static void summarise_event(struct trace_device *device, const struct format_line *line)
{
	if (line->event.action != TRACE_OTHER) {
		trace_device_add(device, &line->event, FALSE);
		return;
	}
	const char *op = line->record.op, *name = op && *op ? op : "note";
	trace_device_add_other(device, &line->event, name, strlen(name), FALSE);
}

static void summarise(struct trace *trace, const struct format_line *line)
{
	const struct npu_trace_record *c = &line->record;
	gboolean event = trace_verbs[c->verb].event;

	if (c->device >= 0 && c->code == 0 && (event || gets_memory(c->verb))) {
		struct trace_device *device = trace_device(trace, (guint)c->device);
		if (event)
			summarise_event(device, line);
	}
	trace->events++;
	trace->calls += !event;
	trace->memory_calls += gets_memory(c->verb);
}

static void add_start(struct trace *trace, const struct format_line *line)
{
	const struct npu_trace_record *c = &line->record;
	const struct trace_event *event = &line->event;
	struct trace_device *device = trace_device(trace, (guint)c->device);
	struct trace_block block = { .address = event->address,
				     .size = event->size,
				     .site = event->site };
	struct trace_range range = { .address = event->address,
				     .size = event->size,
				     .stream = event->stream,
				     .expandable = c->verb == NPU_TRACE_SEGMENT_MAP,
				     .small = (c->has & NPU_TRACE_HAS_SMALL) != 0 };

	if (c->code != 0)
		return;
	if (c->verb == NPU_TRACE_ALLOC) {
		g_array_append_val(device->blocks, block);
		return;
	}
	g_array_append_val(device->ranges, range);
	if (range.expandable)
		trace_device_note_map(device, range.address, range.size);
}

/* What the head tells of the allocator. */
static void finish_devices(struct trace *trace, const struct npu_trace_reader *reader)
{
	const char *unit = npu_trace_reader_info_of(reader, "block_unit");
	const char *of_process = npu_trace_reader_info_of(reader, "of_process");
	g_auto(GStrv) list = g_strsplit(of_process ? of_process : "", ",", -1);
	guint64 bytes = 0;

	if (unit)
		g_ascii_string_to_unsigned(unit, 10, 1, 1u << 30, &bytes, NULL);
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_autofree char *id = g_strdup_printf("%u", device->device);
		device->block_unit = (guint)bytes;
		device->of_process = g_strv_contains((const char *const *)list, id);
		g_array_sort(device->ranges, by_address);
		g_array_sort(device->blocks, by_address);
	}
}

/* 1, 0 at the end, -1. */
static int read_one(struct trace *trace, GError **error)
{
	struct format_line line;
	int result = format_next_line(trace->format, &line, error);

	if (result > 0 && is_of_start(&line.record))
		add_start(trace, &line);
	else if (result > 0)
		summarise(trace, &line);
	return result;
}

struct trace *format_read(struct input *input, GError **error)
{
	struct format_reader *r = format_open(input, error);
	int result;

	if (r == NULL)
		return NULL;
	struct trace *trace = trace_new("npusim trace");
	trace->format = r;
	do {
		result = read_one(trace, error);
	} while (result > 0);
	trace->soc = g_strdup(npu_trace_reader_info_of(r->reader, "soc"));
	trace->about = g_strdup(npu_trace_reader_info_of(r->reader, "about"));
	trace->skipped = npu_trace_reader_skipped(r->reader);
	trace->truncated = npu_trace_reader_truncated(r->reader);
	trace->sites = r->sites;
	r->lent = r->sites != NULL;
	finish_devices(trace, r->reader);
	if (result == 0 && format_rewind(r, error))
		return trace;
	trace_free(trace);
	return NULL;
}
