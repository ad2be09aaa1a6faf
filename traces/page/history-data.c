/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the columns of a file's history, in one pass over its records, and packs them.
 */
#include "history-data.h"

#include <json-glib/json-glib.h>
#include <string.h>
#include <zlib.h>

#include "format/failure.h"
#include "track/object-tracker.h"

enum column {
	EVENT_VERB,
	EVENT_NUMBER,
	EVENT_TIME,
	BLOCK_EVENT,
	BLOCK_LIFE,
	BLOCK_WAIT,
	BLOCK_ADDRESS,
	BLOCK_SIZE,
	BLOCK_SITE,
	BLOCK_STREAM,
	ROW_EVENT,
	ROW_ADDRESS,
	ROW_SIZE,
	ROW_SITE,
	ROW_TEXT,
	ROW_FREE,
	ROW_TOOK,
	ROW_PHYSICAL,
	COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = {
	"event.verb",    "event.number", "event.time", "block.event",  "block.life", "block.wait",
	"block.address", "block.size",   "block.site", "block.stream", "row.event",  "row.address",
	"row.size",      "row.site",     "row.text",   "row.free",     "row.took",   "row.physical",
};

struct history_of_device {
	GArray *columns[COLUMN_COUNT]; /* guint64 */
	GHashTable *live;              /* key of a block -> its index + 1 */
	GArray *made;                  /* event of each block, guint64 */
	guint64 number, time, block_event, row_event, physical; /* before */
};
/* A call whose end is not known yet. */
struct call {
	struct history_of_device *of;
	guint row;
	guint64 simulated_ps;
};
struct gatherer {
	struct record_reader *reader;
	struct trace *trace;
	struct tracker *tracker;
	struct history_of_device *devices;
	GHashTable *places; /* subject -> address */
	GHashTable *calls;  /* process << 32 | thread -> struct call */
	struct texts texts;
	const char *clock;
	guint64 now_ns;
	gboolean recorded; /* what calls got stands for blocks */
};
/* What is packed. */
struct pack {
	JsonBuilder *head;
	GByteArray *body;
};

#define VALUE(array, i) (g_array_index(array, guint64, i))

static void put(struct history_of_device *h, enum column column, guint64 value)
{
	g_array_append_val(h->columns[column], value);
}

static void remember(GHashTable *table, guint64 key, guint64 value)
{
	g_hash_table_insert(table, g_memdup2(&key, sizeof key), g_memdup2(&value, sizeof value));
}

static guint64 recall(GHashTable *table, guint64 key)
{
	const guint64 *value = g_hash_table_lookup(table, &key);

	return value ? *value : 0;
}

/* ---- where things lie ---- */

/* 0: not known. */
static guint64 address_of(const struct gatherer *g, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint64 base;

	if (r->verb == NPU_TRACE_OOM)
		return 0;
	if (r->has & NPU_TRACE_HAS_VA)
		return r->va;
	if (r->verb == NPU_TRACE_SEGMENT_MAP || r->verb == NPU_TRACE_SEGMENT_UNMAP)
		base = recall(g->places, l->place);
	else if (r->has & NPU_TRACE_HAS_AT)
		return (base = recall(g->places, l->place)) ? base + r->at.offset : 0;
	else
		base = recall(g->places, l->subject);
	return base ? base + r->name.offset : 0;
}

static void note_place(struct gatherer *g, const struct tracker_line *l, guint64 address)
{
	if (l->made && address)
		remember(g->places, l->subject, address);
	if (l->item.record.verb == NPU_TRACE_MAP && address && l->handle &&
	    recall(g->places, l->handle) == 0)
		remember(g->places, l->handle, address);
}

/* ---- blocks ---- */

static void end_block(struct history_of_device *h, guint64 key)
{
	guint64 block = recall(h->live, key);

	if (block == 0)
		return;
	VALUE(h->columns[BLOCK_LIFE], block - 1) =
		h->columns[EVENT_VERB]->len - VALUE(h->made, block - 1);
	if (VALUE(h->columns[BLOCK_WAIT], block - 1))
		VALUE(h->columns[BLOCK_WAIT], block - 1) =
			h->columns[EVENT_VERB]->len - VALUE(h->columns[BLOCK_WAIT], block - 1);
	g_hash_table_remove(h->live, &key);
}

static void make_block(struct history_of_device *h, guint64 key, const struct tracker_line *l,
		       guint64 address, guint64 size)
{
	guint64 event = h->columns[EVENT_VERB]->len;

	end_block(h, key);
	g_array_append_val(h->made, event);
	remember(h->live, key, h->made->len);
	put(h, BLOCK_EVENT, event - h->block_event);
	put(h, BLOCK_LIFE, 0);
	put(h, BLOCK_WAIT, 0);
	put(h, BLOCK_ADDRESS, address);
	put(h, BLOCK_SIZE, size);
	put(h, BLOCK_SITE, l->item.site);
	put(h, BLOCK_STREAM, l->item.record.stream);
	h->block_event = event;
}

/* An allocator's block, if the line is about one. */
static gboolean step_block(struct history_of_device *h, const struct tracker_line *l,
			   guint64 address)
{
	const struct npu_trace_record *r = &l->item.record;
	guint64 key = (guint64)r->process << 32 | r->name.number;
	guint64 block = recall(h->live, key);

	switch (r->verb) {
	case NPU_TRACE_ALLOC:
		make_block(h, key, l, address, r->size);
		return TRUE;
	case NPU_TRACE_FREE:
		end_block(h, key);
		return block != 0;
	case NPU_TRACE_FREE_REQUESTED:
		if (block)
			VALUE(h->columns[BLOCK_WAIT], block - 1) = h->columns[EVENT_VERB]->len;
		return block != 0;
	default:
		return FALSE;
	}
}

/* What calls got, and what went with this one. */
static gboolean step_recorded(struct gatherer *g, struct history_of_device *h,
			      const struct tracker_line *l, guint64 address)
{
	const GArray *gone = tracker_gone(g->tracker);
	guint32 verb = l->item.record.verb;

	for (guint i = 0; i < gone->len; i++)
		end_block(h, VALUE(gone, i));
	if (!l->made || (verb != NPU_TRACE_MALLOC && verb != NPU_TRACE_CREATE))
		return gone->len > 0;
	make_block(h, l->subject, l, address, l->item.record.size);
	return TRUE;
}

/* A handle lies where it is mapped first. */
static void place_block(struct history_of_device *h, const struct tracker_line *l, guint64 address)
{
	guint64 block = l->item.record.verb == NPU_TRACE_MAP ? recall(h->live, l->handle) : 0;

	if (block && VALUE(h->columns[BLOCK_ADDRESS], block - 1) == 0)
		VALUE(h->columns[BLOCK_ADDRESS], block - 1) = address;
}

/* ---- rows ---- */

static guint64 physical_of(const struct gatherer *g, guint device)
{
	const struct trace_device *d = g_ptr_array_index(g->trace->devices, device);
	const struct tracker_device *t = tracker_find(g->tracker, d->device);

	return t ? t->now[TRACKER_PHYSICAL] : 0;
}

static void put_row(struct gatherer *g, guint device, const struct tracker_line *l, guint64 address)
{
	struct history_of_device *h = &g->devices[device];
	const struct npu_trace_record *r = &l->item.record;
	guint64 event = h->columns[EVENT_VERB]->len, physical = physical_of(g, device);
	gint64 change = (gint64)(physical - h->physical);

	put(h, ROW_EVENT, event - h->row_event);
	put(h, ROW_ADDRESS, address);
	put(h, ROW_SIZE, l->had ? l->had : r->size);
	put(h, ROW_SITE, l->item.site);
	put(h, ROW_TEXT,
	    r->op ? texts_add(&g->texts, g_utf8_make_valid(r->op, -1)) + G_GUINT64_CONSTANT(1) : 0);
	put(h, ROW_FREE, r->free_bytes);
	put(h, ROW_TOOK, 0);
	put(h, ROW_PHYSICAL, (guint64)(change < 0 ? -2 * change - 1 : 2 * change));
	h->row_event = event;
	h->physical = physical;
}

/* A call took as long as simulated time went on until the next of its thread began. */
static void time_call(struct gatherer *g, struct history_of_device *h,
		      const struct npu_trace_record *r)
{
	guint64 key = (guint64)r->process << 32 | r->thread;
	const struct call *before = g_hash_table_lookup(g->calls, &key);
	struct call call = { h, h->columns[ROW_TOOK]->len - 1, r->simulated_ps };

	if (!(r->has & NPU_TRACE_HAS_SIMULATED) || trace_verbs[r->verb].event)
		return;
	if (before && r->simulated_ps >= before->simulated_ps)
		VALUE(before->of->columns[ROW_TOOK], before->row) =
			(r->simulated_ps - before->simulated_ps) / 1000 + 1;
	g_hash_table_insert(g->calls, g_memdup2(&key, sizeof key), g_memdup2(&call, sizeof call));
}

/* ---- records ---- */

static void tick(struct gatherer *g, const struct npu_trace_record *r)
{
	if (r->has & NPU_TRACE_HAS_HOST_NS) {
		g->clock = "host";
		g->now_ns = MAX(g->now_ns, r->host_ns);
	} else if ((r->has & NPU_TRACE_HAS_SIMULATED) && strcmp(g->clock, "host") != 0) {
		g->clock = "simulated";
		g->now_ns = MAX(g->now_ns, r->simulated_ps / 1000);
	}
}

static void step_device(struct gatherer *g, guint device, const struct tracker_line *l)
{
	struct history_of_device *h = &g->devices[device];
	const struct npu_trace_record *r = &l->item.record;
	guint64 address = address_of(g, l);
	gboolean start = record_is_of_start(r), done = FALSE;

	if (!start) {
		guint64 events = h->columns[EVENT_VERB]->len + G_GUINT64_CONSTANT(1);
		guint64 number = g->trace->memory_calls > 0 ? l->item.number : events;
		put(h, EVENT_VERB, r->verb);
		put(h, EVENT_NUMBER, number - h->number);
		put(h, EVENT_TIME, g->now_ns - h->time);
		h->number = number;
		h->time = g->now_ns;
	}
	if (r->code == 0 && g->recorded)
		done = step_recorded(g, h, l, address);
	else if (r->code == 0)
		done = step_block(h, l, address);
	place_block(h, l, address);
	if (!done || g->recorded)
		put_row(g, device, l, address);
	if (!start && (!done || g->recorded))
		time_call(g, h, r);
}

static void step(struct gatherer *g, const struct record_item *item)
{
	struct tracker_line l;
	gboolean calls = g->trace->memory_calls > 0;

	tracker_step(g->tracker, item, &l);
	/* a replay counts the same lines */
	if (!calls && (!trace_verbs[item->record.verb].event || item->record.code != 0))
		return;
	tick(g, &item->record);
	guint device = trace_device_index(g->trace, l.device);
	for (guint d = 0; d < g->trace->devices->len; d++) {
		/* address space is of no device */
		if (d == device || (calls && l.device == RECORD_NO_DEVICE))
			step_device(g, d, &l);
	}
	note_place(g, &l, address_of(g, &l));
}

static gboolean gather(struct gatherer *g, GError **error)
{
	struct record_item item;
	int more;

	while ((more = record_reader_next(g->reader, &item, error)) > 0) {
		step(g, &item);
	}
	return more == 0;
}

/* ---- packing ---- */

static void pack_column(struct pack *p, const char *name, const GArray *values)
{
	guint64 all = 0;
	guint bytes = 0;

	for (guint i = 0; i < values->len; i++)
		all |= VALUE(values, i);
	for (; bytes < sizeof all && (bytes == 0 || all >> (8 * bytes)); bytes++) {
		guint from = p->body->len;
		g_byte_array_set_size(p->body, from + values->len);
		for (guint i = 0; i < values->len; i++)
			p->body->data[from + i] = (guint8)(VALUE(values, i) >> (8 * bytes));
	}
	json_builder_begin_array(p->head);
	json_builder_add_string_value(p->head, name);
	json_builder_add_int_value(p->head, values->len);
	json_builder_add_int_value(p->head, bytes);
	json_builder_end_array(p->head);
}

static void pack_sites(struct gatherer *g, struct pack *p)
{
	const struct sites *sites = g->trace->sites;
	GArray *columns[3];
	static const char *const names[] = { "site.label", "site.depth", "site.frame" };

	for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
		columns[i] = g_array_new(FALSE, FALSE, sizeof(guint64));
	for (guint32 site = 0; sites && site < sites_count(sites); site++) {
		const char *label = sites_label_text(sites, sites_label(sites, site));
		guint64 number = texts_add(&g->texts, g_strdup(label));
		guint64 depth = sites_depth(sites, site);
		g_array_append_val(columns[0], number);
		g_array_append_val(columns[1], depth);
		for (guint i = 0; i < depth; i++) {
			number = texts_add(&g->texts, g_strdup(sites_frame(sites, site, i)));
			g_array_append_val(columns[2], number);
		}
	}
	for (guint i = 0; i < G_N_ELEMENTS(columns); i++) {
		pack_column(p, names[i], columns[i]);
		g_array_unref(columns[i]);
	}
}

static void begin_list(struct pack *p, const char *name)
{
	json_builder_set_member_name(p->head, name);
	json_builder_begin_array(p->head);
}

static void pack_head(struct gatherer *g, struct pack *p)
{
	json_builder_begin_object(p->head);
	json_builder_set_member_name(p->head, "kind");
	json_builder_add_string_value(p->head, g->trace->kind);
	json_builder_set_member_name(p->head, "time");
	json_builder_add_string_value(p->head, g->clock);
	begin_list(p, "verbs");
	for (guint32 verb = 0; verb < NPU_TRACE_VERB_COUNT; verb++)
		json_builder_add_string_value(p->head, record_verb_name(verb));
	json_builder_end_array(p->head);
	begin_list(p, "devices");
	for (guint d = 0; d < g->trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(g->trace->devices, d);
		json_builder_begin_object(p->head);
		json_builder_set_member_name(p->head, "device");
		json_builder_add_int_value(p->head, device->device);
		json_builder_set_member_name(p->head, "recorded");
		json_builder_add_boolean_value(p->head, g->recorded);
		json_builder_end_object(p->head);
	}
	json_builder_end_array(p->head);
	begin_list(p, "columns");
	pack_sites(g, p);
	for (guint d = 0; d < g->trace->devices->len; d++) {
		for (int c = 0; c < COLUMN_COUNT; c++) {
			g_autofree char *name = g_strdup_printf("%u.%s", d, column_names[c]);
			pack_column(p, name, g->devices[d].columns[c]);
		}
	}
	json_builder_end_array(p->head);
	begin_list(p, "texts");
	for (guint i = 0; i < g->texts.list->len; i++)
		json_builder_add_string_value(p->head, g_ptr_array_index(g->texts.list, i));
	json_builder_end_array(p->head);
	json_builder_end_object(p->head);
}

static char *pack(struct gatherer *g)
{
	struct pack p = { json_builder_new(), g_byte_array_new() };

	pack_head(g, &p);
	g_autoptr(JsonNode) root = json_builder_get_root(p.head);
	g_autofree char *json = json_to_string(root, FALSE);
	guint32 head = (guint32)strlen(json), length = GUINT32_TO_LE(head);
	g_byte_array_prepend(p.body, (const guint8 *)json, head);
	g_byte_array_prepend(p.body, (const guint8 *)&length, sizeof length);
	uLongf packed = compressBound(p.body->len);
	g_autofree guint8 *bytes = g_malloc(packed);
	/* the room suffices, and the level is a valid one */
	int code = compress2(bytes, &packed, p.body->data, p.body->len, Z_BEST_COMPRESSION);
	g_assert(code == Z_OK);
	g_byte_array_unref(p.body);
	g_object_unref(p.head);
	return g_base64_encode(bytes, packed);
}

/* ---- all of it ---- */

/* Whether the allocator above the calls tells of blocks. */
static gboolean tells_blocks(const struct trace *trace)
{
	for (guint d = 0; d < trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(trace->devices, d);
		if (device->counts[NPU_TRACE_ALLOC] > 0)
			return TRUE;
	}
	return trace->memory_calls == 0;
}

static void open_devices(struct gatherer *g)
{
	g->devices = g_new0(struct history_of_device, g->trace->devices->len);
	for (guint d = 0; d < g->trace->devices->len; d++) {
		struct history_of_device *h = &g->devices[d];
		for (int c = 0; c < COLUMN_COUNT; c++)
			h->columns[c] = g_array_new(FALSE, FALSE, sizeof(guint64));
		h->live = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
		h->made = g_array_new(FALSE, FALSE, sizeof(guint64));
	}
}

static void close_devices(struct gatherer *g)
{
	for (guint d = 0; d < g->trace->devices->len; d++) {
		struct history_of_device *h = &g->devices[d];
		for (int c = 0; c < COLUMN_COUNT; c++)
			g_array_unref(h->columns[c]);
		g_hash_table_unref(h->live);
		g_array_unref(h->made);
	}
	g_free(g->devices);
}

char *history_data(const char *path, GError **error)
{
	struct gatherer g = { .reader = record_reader_open(path, error), .clock = "none" };
	char *data = NULL;

	if (g.reader == NULL)
		return NULL;
	g.trace = record_reader_trace(g.reader);
	g.recorded = !tells_blocks(g.trace);
	g.tracker = tracker_new(g.trace->memory_calls > 0);
	g.places = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	g.calls = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	texts_init(&g.texts);
	open_devices(&g);
	if (gather(&g, error))
		data = pack(&g);
	close_devices(&g);
	texts_clear(&g.texts);
	g_hash_table_unref(g.calls);
	g_hash_table_unref(g.places);
	tracker_free(g.tracker);
	record_reader_close(g.reader);
	return data;
}
