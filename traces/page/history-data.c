/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the columns of a file's history, in one pass over its records, and packs them.
 */
#include "page.h"

#include <zlib.h>

#include "format/out-file.h"
#include "track/object-tracker.h"

/* Those that grow are packed as differences. */
#define COLUMNS(X)                               \
	X(EVENT_VERB, "event.verb", FALSE)       \
	X(EVENT_NUMBER, "event.number", TRUE)    \
	X(EVENT_TIME, "event.time", TRUE)        \
	X(BLOCK_EVENT, "block.event", TRUE)      \
	X(BLOCK_LIFE, "block.life", FALSE)       \
	X(BLOCK_WAIT, "block.wait", FALSE)       \
	X(BLOCK_ADDRESS, "block.address", FALSE) \
	X(BLOCK_SIZE, "block.size", FALSE)       \
	X(BLOCK_SITE, "block.site", FALSE)       \
	X(BLOCK_STREAM, "block.stream", FALSE)   \
	X(ROW_EVENT, "row.event", TRUE)          \
	X(ROW_ADDRESS, "row.address", FALSE)     \
	X(ROW_SIZE, "row.size", FALSE)           \
	X(ROW_SITE, "row.site", FALSE)           \
	X(ROW_TEXT, "row.text", FALSE)           \
	X(ROW_FREE, "row.free", FALSE)           \
	X(ROW_TOOK, "row.took", FALSE)           \
	X(ROW_PHYSICAL, "row.physical", TRUE)
#define COLUMN_NUMBER(number, name, grows) number,
#define COLUMN_KIND(number, name, grows)   { name, grows },
enum column { COLUMNS(COLUMN_NUMBER) COLUMN_COUNT };
static const struct {
	const char *name;
	gboolean grows;
} column_kinds[COLUMN_COUNT] = { COLUMNS(COLUMN_KIND) };

struct history_of_device {
	GArray *columns[COLUMN_COUNT]; /* guint64 */
};
/* A call whose end is not known yet. A row for each device, as one of address space is of all. */
struct call {
	guint64 simulated_ps;
	guint rows[]; /* index + 1, or 0 */
};
struct gatherer {
	struct trace *trace;
	struct tracker *tracker;
	struct history_of_device *devices;
	GHashTable *live;   /* subject, device -> index + 1 of a block */
	GHashTable *places; /* subject -> address */
	GHashTable *calls;  /* process << 32 | thread -> struct call */
	struct texts texts;
	const char *clock;
	guint64 now_ns;
	gboolean recorded; /* what calls got stands for blocks */
};
#define VALUE(array, i) (g_array_index(array, guint64, i))

static void add(GArray *column, guint64 value)
{
	g_array_append_val(column, value);
}

static void put(struct history_of_device *h, enum column column, guint64 value)
{
	add(h->columns[column], value);
}

static guint64 recall(GHashTable *map, guint64 key, guint device)
{
	const struct int_map_entry *e = int_map_find(map, key, device);

	return e ? e->value : 0;
}

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
		base = recall(g->places, l->place, 0);
	else if (r->has & NPU_TRACE_HAS_AT)
		return (base = recall(g->places, l->place, 0)) ? base + r->at.offset : 0;
	else
		base = recall(g->places, l->subject, 0);
	return base ? base + r->name.offset : 0;
}

/* FALSE: it is no block of the device. */
static gboolean end_block(struct gatherer *g, guint device, guint64 subject)
{
	const struct history_of_device *h = &g->devices[device];
	struct int_map_entry *e = int_map_find(g->live, subject, device);
	guint64 now = h->columns[EVENT_VERB]->len;

	if (e == NULL)
		return FALSE;
	guint64 *wait = &VALUE(h->columns[BLOCK_WAIT], e->value - 1);
	VALUE(h->columns[BLOCK_LIFE], e->value - 1) =
		now - VALUE(h->columns[BLOCK_EVENT], e->value - 1);
	*wait = *wait ? now - *wait : 0;
	g_hash_table_remove(g->live, e);
	return TRUE;
}

/* Blocks that the line makes, ends or waits for: an allocator's, or what calls got. FALSE: there
 * are none. */
static gboolean step_blocks(struct gatherer *g, guint device, const struct tracker_line *l,
			    guint64 address)
{
	struct history_of_device *h = &g->devices[device];
	const GArray *gone = g->tracker->gone;
	guint32 verb = l->item.record.verb;
	guint64 block = recall(g->live, l->subject, device);
	gboolean makes = g->recorded ? verb == NPU_TRACE_MALLOC || verb == NPU_TRACE_CREATE
				     : verb == NPU_TRACE_ALLOC;
	gboolean done = FALSE;

	for (guint i = 0; i < gone->len; i++)
		done |= end_block(g, device, VALUE(gone, i));
	if (verb == NPU_TRACE_FREE_REQUESTED && block) {
		VALUE(h->columns[BLOCK_WAIT], block - 1) = h->columns[EVENT_VERB]->len;
		return TRUE;
	}
	if (!l->made || !makes)
		return done;
	put(h, BLOCK_EVENT, h->columns[EVENT_VERB]->len);
	int_map_put(g->live, l->subject, device, h->columns[BLOCK_EVENT]->len);
	put(h, BLOCK_LIFE, 0);
	put(h, BLOCK_WAIT, 0);
	put(h, BLOCK_ADDRESS, address);
	put(h, BLOCK_SIZE, l->item.record.size);
	put(h, BLOCK_SITE, l->item.site);
	put(h, BLOCK_STREAM, l->item.record.stream);
	return TRUE;
}

static void put_row(struct gatherer *g, guint device, const struct tracker_line *l, guint64 address)
{
	struct history_of_device *h = &g->devices[device];
	const struct npu_trace_record *r = &l->item.record;
	const struct trace_device *d = g_ptr_array_index(g->trace->devices, device);
	const struct tracker_device *t = tracker_find(g->tracker, d->device);

	put(h, ROW_EVENT, h->columns[EVENT_VERB]->len);
	put(h, ROW_ADDRESS, address);
	put(h, ROW_SIZE, l->had ? l->had : r->size);
	put(h, ROW_SITE, l->item.site);
	put(h, ROW_TEXT,
	    r->op ? texts_add(&g->texts, g_utf8_make_valid(r->op, -1)) + G_GUINT64_CONSTANT(1) : 0);
	put(h, ROW_FREE, r->free_bytes);
	put(h, ROW_TOOK, 0);
	put(h, ROW_PHYSICAL, t ? t->now[TRACKER_PHYSICAL] : 0);
}

/* A call took as long as simulated time went on until the next of its thread began. The call that
 * begins now, or NULL. */
static struct call *time_call(struct gatherer *g, const struct npu_trace_record *r)
{
	guint64 key = (guint64)r->process << 32 | r->thread;
	guint count = g->trace->devices->len;

	if (!(r->has & NPU_TRACE_HAS_SIMULATED) || trace_verbs[r->verb].event)
		return NULL;
	const struct call *before = g_hash_table_lookup(g->calls, &key);
	for (guint d = 0; before && r->simulated_ps >= before->simulated_ps && d < count; d++) {
		if (before->rows[d])
			VALUE(g->devices[d].columns[ROW_TOOK], before->rows[d] - 1) =
				(r->simulated_ps - before->simulated_ps) / 1000 + 1;
	}
	struct call *call = g_malloc0(sizeof *call + count * sizeof call->rows[0]);
	call->simulated_ps = r->simulated_ps;
	g_hash_table_insert(g->calls, g_memdup2(&key, sizeof key), call);
	return call;
}

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

static void step_device(struct gatherer *g, guint device, const struct tracker_line *l,
			struct call *call)
{
	struct history_of_device *h = &g->devices[device];
	const struct npu_trace_record *r = &l->item.record;
	guint64 address = address_of(g, l);
	gboolean start = record_is_of_start(r);

	if (!start) {
		guint64 events = h->columns[EVENT_VERB]->len + G_GUINT64_CONSTANT(1);
		guint64 number = g->trace->memory_calls > 0 ? l->item.number : events;
		put(h, EVENT_VERB, r->verb);
		put(h, EVENT_NUMBER, number);
		put(h, EVENT_TIME, g->now_ns);
	}
	gboolean done = r->code == 0 && step_blocks(g, device, l, address);
	guint64 mapped = r->verb == NPU_TRACE_MAP ? recall(g->live, l->handle, device) : 0;
	/* a handle lies where it is mapped first */
	if (mapped && VALUE(h->columns[BLOCK_ADDRESS], mapped - 1) == 0)
		VALUE(h->columns[BLOCK_ADDRESS], mapped - 1) = address;
	if (!done || g->recorded)
		put_row(g, device, l, address);
	if (call && !start && (!done || g->recorded))
		call->rows[device] = h->columns[ROW_TOOK]->len;
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
	struct call *call = record_is_of_start(&item->record) ? NULL : time_call(g, &item->record);
	for (guint d = 0; d < g->trace->devices->len; d++) {
		/* address space is of no device */
		if (d == device || (calls && l.device == RECORD_NO_DEVICE))
			step_device(g, d, &l, call);
	}
	guint64 address = address_of(g, &l);
	if (l.made && address)
		int_map_put(g->places, l.subject, 0, address);
	if (item->record.verb == NPU_TRACE_MAP && address && l.handle &&
	    recall(g->places, l.handle, 0) == 0)
		int_map_put(g->places, l.handle, 0, address);
}

/* As a member of the head's list, and behind what is in `body`. */
static void pack_column(GString *head, GByteArray *body, const char *name, GArray *values,
			gboolean grows)
{
	guint64 all = 0;
	guint bytes = 0;

	for (guint i = values->len; grows && i-- > 0;) {
		gint64 more = (gint64)(VALUE(values, i) - (i ? VALUE(values, i - 1) : 0));
		VALUE(values, i) = (guint64)(more < 0 ? -2 * more - 1 : 2 * more);
	}
	for (guint i = 0; i < values->len; i++)
		all |= VALUE(values, i);
	for (; bytes < sizeof all && (bytes == 0 || all >> (8 * bytes)); bytes++) {
		guint from = body->len;
		g_byte_array_set_size(body, from + values->len);
		for (guint i = 0; i < values->len; i++)
			body->data[from + i] = (guint8)(VALUE(values, i) >> (8 * bytes));
	}
	g_string_append_printf(head, "[\"%s\",%u,%u],", name, values->len, bytes);
}

static void pack_sites(struct gatherer *g, GString *head, GByteArray *body)
{
	static const char *const names[] = { "site.label", "site.depth", "site.frame" };
	const struct sites *sites = g->trace->sites;
	GArray *columns[G_N_ELEMENTS(names)];

	for (guint i = 0; i < G_N_ELEMENTS(names); i++)
		columns[i] = g_array_new(FALSE, FALSE, sizeof(guint64));
	for (guint32 site = 0; sites && site < sites_count(sites); site++) {
		const char *label = sites_label_text(sites, sites_label(sites, site));
		guint depth = sites_depth(sites, site);
		add(columns[0], texts_add(&g->texts, g_strdup(label)));
		add(columns[1], depth);
		for (guint i = 0; i < depth; i++)
			add(columns[2],
			    texts_add(&g->texts, g_strdup(sites_frame(sites, site, i))));
	}
	for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
		pack_column(head, body, names[i], columns[i], FALSE);
		g_array_unref(columns[i]);
	}
}

static GString *pack_head(struct gatherer *g, GByteArray *body)
{
	GString *head = g_string_new("{\"columns\":[");

	pack_sites(g, head, body);
	for (guint i = 0; i < g->trace->devices->len * COLUMN_COUNT; i++) {
		guint d = i / COLUMN_COUNT, c = i % COLUMN_COUNT;
		g_autofree char *name = g_strdup_printf("%u.%s", d, column_kinds[c].name);
		pack_column(head, body, name, g->devices[d].columns[c], column_kinds[c].grows);
	}
	g_string_truncate(head, head->len - 1);
	g_string_append_printf(head, "],\"time\":\"%s\",\"recorded\":%s,\"devices\":[", g->clock,
			       g->recorded ? "true" : "false");
	for (guint d = 0; d < g->trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(g->trace->devices, d);
		g_string_append_printf(head, "%s%u", d ? "," : "", device->device);
	}
	g_string_append(head, "],\"verbs\":[");
	for (guint32 verb = 0; verb < NPU_TRACE_VERB_COUNT; verb++)
		g_string_append_printf(head, "%s\"%s\"", verb ? "," : "", record_verb_name(verb));
	g_string_append(head, "],\"texts\":[");
	for (guint i = 0; i < g->texts.list->len; i++) {
		g_string_append(head, i ? "," : "");
		out_json_text(head, g_ptr_array_index(g->texts.list, i));
	}
	return g_string_append(head, "]}");
}

static char *pack(struct gatherer *g)
{
	GByteArray *body = g_byte_array_new();
	GString *head = pack_head(g, body);
	guint32 length = GUINT32_TO_LE((guint32)head->len);

	g_byte_array_prepend(body, (const guint8 *)head->str, (guint)head->len);
	g_byte_array_prepend(body, (const guint8 *)&length, sizeof length);
	uLongf packed = compressBound(body->len);
	g_autofree guint8 *bytes = g_malloc(packed);
	/* the room suffices */
	int code = compress(bytes, &packed, body->data, body->len);
	g_assert(code == Z_OK);
	g_byte_array_unref(body);
	g_string_free(head, TRUE);
	return g_base64_encode(bytes, packed);
}

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
		for (int c = 0; c < COLUMN_COUNT; c++)
			g->devices[d].columns[c] = g_array_new(FALSE, FALSE, sizeof(guint64));
	}
}

static void close_devices(struct gatherer *g)
{
	for (guint d = 0; d < g->trace->devices->len; d++) {
		for (int c = 0; c < COLUMN_COUNT; c++)
			g_array_unref(g->devices[d].columns[c]);
	}
	g_free(g->devices);
}

char *history_data(const char *path, GError **error)
{
	struct gatherer g = { .trace = trace_open(path, error), .clock = "none" };
	struct record_item item;
	char *data = NULL;
	int more;

	if (g.trace == NULL)
		return NULL;
	g.recorded = !tells_blocks(g.trace);
	g.tracker = tracker_new(g.trace->memory_calls > 0);
	g.live = int_map_new();
	g.places = int_map_new();
	g.calls = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	texts_init(&g.texts);
	open_devices(&g);
	while ((more = trace_next(g.trace, &item, error)) > 0)
		step(&g, &item);
	if (more == 0)
		data = pack(&g);
	close_devices(&g);
	texts_clear(&g.texts);
	g_hash_table_unref(g.calls);
	g_clear_pointer(&g.live, g_hash_table_unref);
	g_clear_pointer(&g.places, g_hash_table_unref);
	tracker_free(g.tracker);
	trace_free(g.trace);
	return data;
}
