/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the columns of a file's history, in one pass over its records, and packs them.
 */
#include "page.h"

#include <zlib.h>

#include "format/out-file.h"
#include "track/memory.h"

/* Those of call sites, then those of a device. Of one with a *, which is not in its name, what is
 * packed is the difference d to the value before: 2 d where it grows, -2 d - 1 where it shrinks. */
#define COLUMNS(X)                                                                                \
	X(SITE_LABEL, "site.label") /* number of a text */                                        \
	X(SITE_DEPTH, "site.depth") /* frames */                                                  \
	X(SITE_FRAME, "site.frame") /* texts, of one stack after another's, innermost first */    \
	X(EVENT_VERB, "event.verb")                                                               \
	X(EVENT_NUMBER, "*event.number") /* in the file; without calls, among its device's */     \
	X(EVENT_TIME, "*event.time")     /* ns */                                                 \
	X(BLOCK_EVENT, "*block.event")   /* that made it, from 1; 0: it was there at the start */ \
	X(BLOCK_LIFE, "block.life")      /* events until it was freed, from its own; 0: never */  \
	X(BLOCK_WAIT, "block.wait") /* events from the request to free it; 0: there was none */   \
	X(BLOCK_ADDRESS, "block.address") /* 0: not known */                                      \
	X(BLOCK_SIZE, "block.size")                                                               \
	X(BLOCK_SITE, "block.site")                                                               \
	X(BLOCK_STREAM, "block.stream")                                                           \
	X(BLOCK_USED, "block.used")   /* events until the last use, plus 1; 0: none */            \
	X(BLOCK_ENDED, "block.ended") /* site of what freed it ^ its own, plus 1; 0: not known */ \
	X(BLOCK_OVER, "block.over")   /* bytes that it takes beyond its size; 0: not known */     \
	X(ROW_EVENT, "*row.event")    /* no block's, of physical memory, or that says more */     \
	X(ROW_ADDRESS, "row.address")                                                             \
	X(ROW_SIZE, "row.size")                                                                   \
	X(ROW_SITE, "row.site")                                                                   \
	X(ROW_TEXT, "row.text") /* number + 1 of what it says, or 0 */                            \
	X(ROW_STREAM, "row.stream")                                                               \
	X(ROW_FREE, "row.free")          /* of an out of memory: bytes that were free */          \
	X(ROW_TOOK, "row.took")          /* ns of a call as recorded, plus 1; 0: not known */     \
	X(ROW_POOL, "row.pool")          /* number + 1 of a segment's private pool; 0: none */    \
	X(ROW_PHYSICAL, "*row.physical") /* physical memory after it */
#define COLUMN_NUMBER(number, name) number,
#define COLUMN_NAME(number, name)   name,
enum column { COLUMNS(COLUMN_NUMBER) COLUMN_COUNT, OF_DEVICE = EVENT_VERB };
static const char *const column_names[COLUMN_COUNT] = { COLUMNS(COLUMN_NAME) };

/* A block that is live. */
struct lying {
	guint64 address; /* with the process above it */
	guint64 block;   /* index */
	guint device;
};
#define PLACE                  (G_MAXUINT - 1)
#define IN_PROCESS(r, address) ((guint64)(r)->process << 48 | (address))
struct gatherer {
	struct trace *trace;
	struct tracker *tracker;
	GPtrArray *columns;    /* GArray * of guint64: those of sites, then of each device */
	struct int_map *known; /* subject, device -> block + 1; subject, PLACE -> address */
	GTree *lying;          /* struct lying */
	struct texts texts;
	const char *clock;
	guint64 now_ns;
	gboolean recorded; /* what calls got stands for blocks */
	guint uses;        /* 1: copies and fills are known, 2: what operators accessed */
};
#define VALUE(array, i)           (g_array_index(array, guint64, i))
#define OF_BLOCK(g, d, column, i) VALUE(column_of(g, d, BLOCK_##column), i)

static GArray *column_of(const struct gatherer *g, guint device, enum column column)
{
	return g_ptr_array_index(g->columns, device * (COLUMN_COUNT - OF_DEVICE) + column);
}

/* Values of columns that follow one another. */
static void put(struct gatherer *g, guint device, enum column first, const guint64 *values,
		guint count)
{
	for (guint i = 0; i < count; i++)
		g_array_append_val(column_of(g, device, first + i), values[i]);
}

static guint64 events_of(const struct gatherer *g, guint device)
{
	return column_of(g, device, EVENT_VERB)->len;
}

static guint64 recall(const struct gatherer *g, guint64 subject, guint device)
{
	const struct int_map_entry *e = int_map_find(g->known, subject, device);

	return e ? e->value : 0;
}

/* An offset into what is named; 0: where it lies is not known. */
static guint64 address_in(const struct gatherer *g, guint64 subject, guint64 offset)
{
	guint64 base = recall(g, subject, PLACE);

	return base ? base + offset : 0;
}

/* 0: not known. */
static guint64 address_of(const struct gatherer *g, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	gboolean part = r->verb == NPU_TRACE_SEGMENT_MAP || r->verb == NPU_TRACE_SEGMENT_UNMAP;
	gboolean at = (r->has & NPU_TRACE_HAS_AT) && !part;

	if (r->verb == NPU_TRACE_OOM || (r->has & NPU_TRACE_HAS_VA))
		return r->verb == NPU_TRACE_OOM ? 0 : r->va;
	return address_in(g, part || at ? l->place : l->subject,
			  at ? r->at.offset : r->name.offset);
}

static void lay(struct gatherer *g, guint device, const struct npu_trace_record *r, guint64 address,
		guint64 block)
{
	const struct lying lying = { IN_PROCESS(r, address), block, device };

	if (address)
		by_address_put(g->lying, &lying, sizeof lying);
}

/* The blocks at an address were used; 0: it is not known. */
static void use(struct gatherer *g, const struct npu_trace_record *r, guint64 address)
{
	guint64 start = IN_PROCESS(r, address);
	GTreeNode *node = address ? by_address_node(g->lying, start + MAX(r->size, 1) - 1) : NULL;

	for (; node; node = g_tree_node_previous(node)) {
		const struct lying *l = g_tree_node_value(node);
		/* a reset ends what is still mapped */
		if (OF_BLOCK(g, l->device, LIFE, l->block) > 0)
			continue;
		if (l->address + OF_BLOCK(g, l->device, SIZE, l->block) <= start)
			return;
		OF_BLOCK(g, l->device, USED, l->block) =
			events_of(g, l->device) - OF_BLOCK(g, l->device, EVENT, l->block) + 1;
	}
}

/* FALSE: it is no block of the device. */
static gboolean end_block(struct gatherer *g, guint device, guint64 subject,
			  const struct record_item *item)
{
	struct int_map_entry *e = int_map_find(g->known, subject, device);
	guint64 now = events_of(g, device);

	if (e == NULL)
		return FALSE;
	guint64 block = e->value - 1, *wait = &OF_BLOCK(g, device, WAIT, block), ended = item->site;
	guint64 at = IN_PROCESS(&item->record, OF_BLOCK(g, device, ADDRESS, block));
	OF_BLOCK(g, device, LIFE, block) = now - OF_BLOCK(g, device, EVENT, block);
	*wait = *wait ? now - *wait : 0;
	OF_BLOCK(g, device, ENDED, block) =
		ended ? (ended ^ OF_BLOCK(g, device, SITE, block)) + 1 : 0;
	const struct lying *lying = g_tree_lookup(g->lying, &at);
	if (lying && lying->device == device && lying->block == block)
		g_tree_remove(g->lying, &at);
	int_map_remove(g->known, e);
	return TRUE;
}

/* Blocks that the line makes, ends or waits for: an allocator's, or what calls got. FALSE: none. */
static gboolean step_blocks(struct gatherer *g, guint device, const struct tracker_line *l,
			    guint64 address)
{
	const GArray *gone = g->tracker->gone;
	const struct npu_trace_record *r = &l->item.record;
	guint64 block = recall(g, l->subject, device), now = events_of(g, device);
	gboolean makes = g->recorded ? r->verb == NPU_TRACE_MALLOC || r->verb == NPU_TRACE_CREATE
				     : r->verb == NPU_TRACE_ALLOC;
	const guint64 made[] = { now,          0,         0, address, r->size,
				 l->item.site, r->stream, 0, 0,       l->item.over };
	gboolean done = FALSE;

	for (guint i = 0; i < gone->len; i++)
		done |= end_block(g, device, VALUE(gone, i), &l->item);
	if (r->verb == NPU_TRACE_FREE_REQUESTED && block) {
		OF_BLOCK(g, device, WAIT, block - 1) = now;
		return TRUE;
	}
	if (!l->made || !makes)
		return done;
	put(g, device, BLOCK_EVENT, made, G_N_ELEMENTS(made));
	int_map_put(g->known, l->subject, device, column_of(g, device, BLOCK_EVENT)->len);
	lay(g, device, r, address, column_of(g, device, BLOCK_EVENT)->len - 1);
	return TRUE;
}

/* The event, what it does to blocks, and a row for what is no block's. */
static void step_device(struct gatherer *g, guint device, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	const struct trace_device *d = g_ptr_array_index(g->trace->devices, device);
	guint64 address = address_of(g, l), number = events_of(g, device) + 1;
	const guint64 event[] = { r->verb, g->trace->memory_calls > 0 ? l->item.number : number,
				  g->now_ns };

	if (l->item.number != 0)
		put(g, device, EVENT_VERB, event, G_N_ELEMENTS(event));
	gboolean done = r->code == 0 && step_blocks(g, device, l, address);
	gboolean maps = r->code == 0 && r->verb == NPU_TRACE_MAP;
	guint64 mapped = maps ? recall(g, l->handle, device) : 0;
	/* a handle is shown where it is mapped first, and used wherever it is mapped */
	if (mapped) {
		guint64 *place = &OF_BLOCK(g, device, ADDRESS, mapped - 1);
		*place = *place ?: address;
		lay(g, device, r, address, mapped - 1);
	}
	if (done && !g->recorded && l->item.more == NULL)
		return;
	const char *said = r->op ?: l->item.more, *in = l->item.pool;
	guint64 text = said ? texts_add(&g->texts, g_utf8_make_valid(said, -1)) + 1ull : 0;
	guint64 pool = in ? texts_add(&g->texts, g_strdup(in)) + 1ull : 0;
	guint64 physical = tracker_device(g->tracker, d->device)->levels->of[LEVEL_PHYSICAL].now;
	guint64 now = events_of(g, device), size = l->had ? l->had : r->size;
	guint64 took = r->took_ns ? r->took_ns + 1 : 0;
	const guint64 row[] = { now,       address,       size, l->item.site, text,
				r->stream, r->free_bytes, took, pool,         physical };
	put(g, device, ROW_EVENT, row, G_N_ELEMENTS(row));
}

static void step(struct gatherer *g, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	struct tracker_line l;
	gboolean calls = g->trace->memory_calls > 0;

	tracker_step(g->tracker, item, &l);
	/* a replay counts the same lines */
	if (!calls && (!trace_verbs[r->verb].event || r->code != 0))
		return;
	if (r->has & NPU_TRACE_HAS_HOST_NS) {
		g->clock = "host";
		g->now_ns = MAX(g->now_ns, r->host_ns);
	} else if ((r->has & NPU_TRACE_HAS_SIMULATED) && strcmp(g->clock, "host") != 0) {
		g->clock = "simulated";
		g->now_ns = MAX(g->now_ns, r->simulated_ps / 1000);
	}
	guint device = trace_device_index(g->trace, l.device);
	for (guint d = 0; d < g->trace->devices->len; d++) {
		/* address space is of no device */
		if (d == device || (calls && l.device == RECORD_NO_DEVICE))
			step_device(g, d, &l);
	}
	guint64 address = address_of(g, &l), at = IN_PROCESS(r, address);
	if (r->code != 0)
		return;
	if (r->verb == NPU_TRACE_COPY || r->verb == NPU_TRACE_FILL) {
		g->uses |= 1;
		use(g, r, address_in(g, l.place, r->at.offset));
		use(g, r, address_in(g, l.from, r->from.offset));
	} else if (r->op && address && g_str_has_prefix(r->op, "ACCESS ")) {
		g->uses |= 2;
		use(g, r, address);
	}
	if (l.made && address)
		int_map_put(g->known, l.subject, PLACE, address);
	if (r->verb == NPU_TRACE_MAP && address && l.handle && recall(g, l.handle, PLACE) == 0)
		int_map_put(g->known, l.handle, PLACE, address);
	if (r->verb == NPU_TRACE_UNMAP && l.had)
		g_tree_remove(g->lying, &at);
}

/* As a member of the head's list, and behind what is in `body`. */
static void pack_column(GVariantBuilder *columns, GByteArray *body, const char *name,
			GArray *values, gboolean grows)
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
	g_variant_builder_add(columns, "(suu)", name, values->len, bytes);
}

static char *pack(struct gatherer *g)
{
	static const char *const uses[] = { "", "copied or filled", "read or written", "used" };
	const char *verbs[NPU_TRACE_VERB_COUNT];
	GVariantBuilder columns, devices;
	g_autoptr(GString) head = g_string_new(NULL);
	g_autoptr(GByteArray) body = g_byte_array_new();
	const struct sites *sites = g->trace->sites;

	for (guint32 site = 0; sites && site < sites_count(sites); site++) {
		const char *label = sites_label_text(sites, sites_label(sites, site));
		const guint64 of[] = { texts_add(&g->texts, g_strdup(label)),
				       sites_depth(sites, site) };
		put(g, 0, SITE_LABEL, of, G_N_ELEMENTS(of));
		for (guint i = 0; i < of[1]; i++) {
			char *text = g_strdup(sites_frame(sites, site, i));
			guint64 frame = texts_add(&g->texts, text);
			put(g, 0, SITE_FRAME, &frame, 1);
		}
	}
	g_variant_builder_init(&columns, G_VARIANT_TYPE("a(suu)"));
	for (guint i = 0; i < g->columns->len; i++) {
		guint d = i < OF_DEVICE ? 0 : (i - OF_DEVICE) / (COLUMN_COUNT - OF_DEVICE);
		guint c = i - d * (COLUMN_COUNT - OF_DEVICE);
		gboolean grows = *column_names[c] == '*';
		g_autofree char *of = c < OF_DEVICE ? g_strdup("") : g_strdup_printf("%u.", d);
		g_autofree char *name = g_strconcat(of, column_names[c] + grows, NULL);
		pack_column(&columns, body, name, g_ptr_array_index(g->columns, i), grows);
	}
	g_variant_builder_init(&devices, G_VARIANT_TYPE("a(uu)"));
	for (guint d = 0; d < g->trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(g->trace->devices, d);
		g_variant_builder_add(&devices, "(uu)", device->device, g->trace->block_unit);
	}
	for (guint32 verb = 0; verb < NPU_TRACE_VERB_COUNT; verb++)
		verbs[verb] = record_verb_name(verb);
	out_json_variant(
		head,
		g_variant_new_parsed(
			"{'columns':<%*>,'time':<%s>,'recorded':<%b>,'uses':<%s>,'settings':<%s>,"
			"'devices':<%*>,'verbs':<%*>,'texts':<%*>}",
			g_variant_builder_end(&columns), g->clock, g->recorded, uses[g->uses],
			g->trace->settings ?: "", g_variant_builder_end(&devices),
			g_variant_new_strv(verbs, NPU_TRACE_VERB_COUNT),
			g_variant_new_strv((const char *const *)g->texts.list->pdata,
					   g->texts.list->len)));

	guint32 length = GUINT32_TO_LE((guint32)head->len);
	g_byte_array_prepend(body, (const guint8 *)head->str, (guint)head->len);
	g_byte_array_prepend(body, (const guint8 *)&length, sizeof length);
	uLongf packed = compressBound(body->len);
	g_autofree guint8 *bytes = g_malloc(packed);
	/* the room suffices */
	int code = compress(bytes, &packed, body->data, body->len);
	g_assert(code == Z_OK);
	return g_base64_encode(bytes, packed);
}

char *history_data(const char *path, GError **error)
{
	struct gatherer g = { .trace = trace_open(path, error), .clock = "none" };
	struct record_item item;
	char *data = NULL;
	int more;

	if (g.trace == NULL)
		return NULL;
	g.recorded = g.trace->memory_calls > 0;
	for (guint d = 0; d < g.trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(g.trace->devices, d);
		g.recorded = g.recorded && device->counts[NPU_TRACE_ALLOC] == 0;
	}
	g.tracker = tracker_new(g.trace->memory_calls > 0);
	g.known = int_map_new(sizeof(struct int_map_entry), NULL);
	g.lying = by_address_tree();
	texts_init(&g.texts);
	g.columns = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
	for (guint i = 0; i < OF_DEVICE + g.trace->devices->len * (COLUMN_COUNT - OF_DEVICE); i++)
		g_ptr_array_add(g.columns, g_array_new(FALSE, FALSE, sizeof(guint64)));
	while ((more = trace_next(g.trace, &item, error)) > 0)
		step(&g, &item);
	if (more == 0)
		data = pack(&g);
	g_ptr_array_unref(g.columns);
	texts_clear(&g.texts);
	g_tree_unref(g.lying);
	int_map_free(g.known);
	tracker_free(g.tracker);
	trace_free(g.trace);
	return data;
}
