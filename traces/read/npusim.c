/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads npusim traces: a first pass computes a file's summary; after that it is the source of its
 * records, line by line, with an address for each name, for consumers that track memory by
 * address.
 */
#include "readers.h"

#define ADDRESS_END  (G_GUINT64_CONSTANT(1) << 62) /* some readers mark addresses above 2^56 */
#define OFFSET_BITS  43 /* of a reservation's offset in an event's address: 8 TiB */
#define RESERVATIONS (1u << (62 - OFFSET_BITS))
/* Addresses of what has only a name: of reservations above 2^62, of segments below, each behind the
 * one before; process and number of a block that says not where it lies. */
#define RESERVED_BASE (G_GUINT64_CONSTANT(1) << 62)
#define SEGMENT_BASE  (G_GUINT64_CONSTANT(1) << 61)
#define SEGMENT_UNIT  (2 * MIB)

#define SEGMENT (1u << 31) /* with a device, as a tag */

struct lines {
	const char *name; /* of the file */
	/* 'r', process << 32 | number: index of those that segment_map lines name, from 1; 'a',
	 * 'b', the same: address of what lives; SEGMENT | device, address: size of a live one */
	struct int_map *known;
	guint reservations;
	guint64 next_segment; /* its address */
	guint64 number;       /* of the last event */
	gboolean head_read, by_address;
	struct texts site_texts; /* site= as they are written, in order of appearance */
	GArray *sites;           /* guint32: their numbers in trace.sites */
};

#define bad(r, error, ...) line_bad((r)->line, error, __VA_ARGS__)

static guint64 reserved_address(guint64 index, guint64 offset)
{
	return RESERVED_BASE | index << OFFSET_BITS | offset;
}

static gboolean expandable_address(struct lines *l, const struct npu_trace_record *r, guint64 *out,
				   GError **error)
{
	guint64 key = record_name_key(r->process, &r->name);
	struct int_map_entry *known = int_map_add(l->known, key, 'r');

	if (known->value == 0 && l->reservations + 1 == RESERVATIONS)
		return bad(r, error, "there are more reservations than the 524287 of a replay");
	known->value = known->value ?: ++l->reservations;
	if (r->name.offset >> OFFSET_BITS || r->size >> OFFSET_BITS ||
	    (r->name.offset + r->size) >> OFFSET_BITS)
		return bad(r, error, "it ends more than 8 TiB into its reservation");
	*out = reserved_address(known->value, r->name.offset);
	return TRUE;
}

/* Where at= says that a block lies; 0: it says nothing that is known. */
static guint64 place_of(struct lines *l, const struct npu_trace_record *r)
{
	const struct int_map_entry *known =
		r->at.kind == 'r' || r->at.kind == 'a'
			? int_map_find(l->known, record_name_key(r->process, &r->at),
				       (guint32)r->at.kind)
			: NULL;

	if (known == NULL || r->at.offset >> OFFSET_BITS)
		return 0;
	return r->at.kind == 'r' ? reserved_address(known->value, r->at.offset)
				 : known->value + r->at.offset;
}

/* A segment without an address lies behind the one before. */
static guint64 next_segment(struct lines *l, guint64 size)
{
	guint64 address = l->next_segment;

	if (size < RESERVED_BASE - address - SEGMENT_UNIT)
		l->next_segment += (size / SEGMENT_UNIT + 2) * SEGMENT_UNIT;
	return address;
}

/* Of a segment or a block: its first line says where it lies, others name it alone. What is not
 * known has an address that none has. */
static guint64 address_of_name(struct lines *l, const struct npu_trace_record *r)
{
	guint32 letter = (guint32)r->name.kind;
	guint64 key = record_name_key(r->process, &r->name), address = 0;
	struct int_map_entry *known = int_map_find(l->known, key, letter);

	if (known)
		address = known->value;
	else if (r->code == 0 && r->verb == NPU_TRACE_SEGMENT_ALLOC)
		address = next_segment(l, r->size);
	else if (r->code == 0 && r->verb == NPU_TRACE_ALLOC)
		address = place_of(l, r);
	if (known && r->code == 0 &&
	    (r->verb == NPU_TRACE_SEGMENT_FREE || r->verb == NPU_TRACE_FREE))
		int_map_remove(l->known, known);
	else if (known == NULL && address != 0)
		int_map_put(l->known, key, letter, address);
	return address ? address : key;
}

/* Where what an event is about lies. */
static gboolean put_address(struct trace *trace, const struct npu_trace_record *r, guint64 *address,
			    GError **error)
{
	struct lines *l = trace->data;

	/* Where the head says that addresses count, they do: a converter wrote it, from a file that
	 * has nothing else. It is asked at the first record that has one. */
	if ((r->has & NPU_TRACE_HAS_VA) && !l->head_read) {
		l->by_address = g_strcmp0(trace_info(trace, "addresses"), "va") == 0;
		l->head_read = TRUE;
	}
	if (r->verb == NPU_TRACE_OOM) {
		*address = r->free_bytes;
	} else if (r->verb == NPU_TRACE_NOTE) {
		*address = record_name_key(r->process, &r->name);
	} else if ((r->has & NPU_TRACE_HAS_VA) && l->by_address) {
		*address = r->va;
		return (r->va <= ADDRESS_END && r->size <= ADDRESS_END - r->va) ||
		       bad(r, error, "its address runs past 2^62");
	} else if (r->verb == NPU_TRACE_SEGMENT_MAP || r->verb == NPU_TRACE_SEGMENT_UNMAP) {
		return expandable_address(l, r, address, error);
	} else {
		*address = address_of_name(l, r);
	}
	return TRUE;
}

/* A text, or the number of one that was there before. */
static guint32 site_of(struct trace *trace, const char *text)
{
	struct lines *l = trace->data;
	guint64 number;

	if (g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT32, &number, NULL))
		return number <= l->sites->len ? g_array_index(l->sites, guint32, number - 1)
					       : SITE_NONE;
	guint index = texts_add(&l->site_texts, g_strdup(text));
	if (index == l->sites->len) {
		guint32 site = sites_add(trace_sites(trace), text);
		g_array_append_val(l->sites, site);
	}
	return g_array_index(l->sites, guint32, index);
}

static int take(struct trace *trace, struct record_item *out, GError **error)
{
	struct lines *l = trace->data;
	struct npu_trace_record *r = &out->record;
	gboolean of_start;

	memset(out, 0, sizeof *out);
	int more = trace_reader_take(trace->format, r, error);
	if (more <= 0)
		return more;
	if (!(r->has & NPU_TRACE_HAS_DEVICE))
		r->device = RECORD_NO_DEVICE;
	if (r->site)
		out->site = site_of(trace, r->site);
	out->device = trace_device_index(trace, r->device);
	of_start = (r->has & NPU_TRACE_HAS_START) &&
		   (r->verb == NPU_TRACE_ALLOC || r->verb == NPU_TRACE_SEGMENT_ALLOC ||
		    r->verb == NPU_TRACE_SEGMENT_MAP);
	out->number = of_start ? 0 : ++l->number;
	if (!trace_verbs[r->verb].event)
		return 1;
	out->size = r->size;
	out->time_us = (gint64)(r->host_ns / 1000);
	if (!put_address(trace, r, &out->address, error))
		return -1;
	/* a line that frees a segment need not say how large it was */
	guint32 tag = SEGMENT | (guint16)r->device;
	gboolean frees = r->code == 0 && r->verb == NPU_TRACE_SEGMENT_FREE;
	struct int_map_entry *known = frees ? int_map_find(l->known, out->address, tag) : NULL;
	if (r->code == 0 && r->verb == NPU_TRACE_SEGMENT_ALLOC)
		int_map_put(l->known, out->address, tag, out->size);
	if (known && !(r->has & NPU_TRACE_HAS_SIZE))
		out->size = known->value;
	if (known)
		int_map_remove(l->known, known);
	return 1;
}

int npusim_next(struct trace *trace, struct record_item *out, GError **error)
{
	int more = take(trace, out, error);

	if (more < 0 && error && (*error)->domain == TRACE_ERROR)
		g_prefix_error(error, "%s: ", ((struct lines *)trace->data)->name);
	return more;
}

gboolean npusim_rewind(struct trace *trace, GError **error)
{
	struct lines *l = trace->data;

	int_map_free(l->known);
	l->known = int_map_new(sizeof(struct int_map_entry), NULL);
	l->reservations = 0;
	l->next_segment = SEGMENT_BASE;
	l->number = 0;
	l->head_read = FALSE;
	return trace_reader_rewind(trace->format, error);
}

void npusim_close(struct trace *trace)
{
	struct lines *l = trace->data;

	npu_trace_reader_close(trace->format);
	int_map_free(l->known);
	texts_clear(&l->site_texts);
	g_array_unref(l->sites);
	g_free(l);
}

static void summarise(struct trace *trace, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	gboolean gets = r->verb == NPU_TRACE_CREATE || r->verb == NPU_TRACE_MALLOC;
	gboolean event = trace_verbs[r->verb].event;

	if (r->device >= 0 && r->code == 0 && gets)
		trace_device(trace, (guint)r->device);
	if (r->device >= 0 && r->code == 0 && event) {
		struct trace_row row = { .address = item->address,
					 .size = item->size,
					 .device = (guint16)r->device,
					 .verb = (guint8)r->verb,
					 .start = item->number == 0 };
		if (r->verb == NPU_TRACE_NOTE)
			row.text = trace_note(trace, r->op && *r->op ? r->op : "note");
		trace_count(trace, &row);
	}
	trace->events += item->number > 0;
	if (item->number > 0)
		trace->stamps |= r->has & (NPU_TRACE_HAS_HOST_NS | NPU_TRACE_HAS_SIMULATED);
	trace->calls += !event;
	trace->memory_calls += gets;
}

gboolean npusim_read(struct trace *trace, struct input *input, GError **error)
{
	struct npu_trace_reader *reader = trace_reader_new(input, error);
	struct record_item item;
	guint64 unit = 0;
	int more;

	if (reader == NULL)
		return FALSE;
	struct lines *l = g_new0(struct lines, 1);
	trace->data = l;
	trace->format = reader;
	l->name = input_name(input);
	texts_init(&l->site_texts);
	l->sites = g_array_new(FALSE, FALSE, sizeof(guint32));
	more = npusim_rewind(trace, error) ? 1 : -1;
	while (more > 0 && (more = take(trace, &item, error)) > 0)
		summarise(trace, &item);
	trace->soc = g_strdup(trace_info(trace, "soc"));
	trace->about = g_strdup(trace_info(trace, "about"));
	trace->settings = g_strdup(trace_info(trace, "settings"));
	trace->skipped = npu_trace_reader_skipped(reader);
	trace->truncated = npu_trace_reader_truncated(reader);
	/* what the head tells of the allocator */
	const char *block_unit = trace_info(trace, "block_unit");
	const char *of_process = trace_info(trace, "of_process");
	g_auto(GStrv) list = g_strsplit(of_process ?: "", ",", -1);
	g_ascii_string_to_unsigned(block_unit ?: "", 10, 1, 1u << 30, &unit, NULL);
	trace->block_unit = (guint)unit;
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		g_autofree char *id = g_strdup_printf("%u", device->device);
		device->of_process = g_strv_contains((const char *const *)list, id);
	}
	return more == 0;
}
