/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays a history with another allocator than the file's: its blocks are handed out by the
 * caching allocator, or by one classic allocation each. The file's segments only show where its
 * cache was emptied.
 */
#include "policy.h"
#include "format/units.h"
#include "read/int-map.h"

/* A block of the history. */
struct held {
	guint64 address;           /* of the file; first: the table's key */
	struct cache_block *block; /* of the cache, or */
	guint64 own, size;         /* a classic allocation of its own */
};
struct allocator {
	struct filter base;
	const struct policy_options *options;
	struct cache *cache; /* NULL: native */
	GHashTable *blocks;  /* of struct held */
	struct int_map
		*names;    /* address, letter -> number: handles mapped there, segments, areas */
	guint32 last[128]; /* number given out, by letter */
	guint32 start;     /* NPU_TRACE_HAS_START while it is rebuilt */
	guint64 history;   /* blocks handed out and gone so far */
	guint empty_next;  /* in options->empty_at */
	gboolean in_burst;
	GError *cause; /* of CACHE_FAILED: the first */
};

/* ---- what goes out ---- */

static enum cache_answer call(struct allocator *a, struct npu_trace_record c, guint64 *va)
{
	guint64 got;

	c.has |= a->start | NPU_TRACE_HAS_DEVICE;
	c.device = a->base.trace->device;
	c.process = a->base.trace->device + 1;
	return a->base.out.call(a->base.out.data, &c, va ? va : &got, a->cause ? NULL : &a->cause);
}

static struct npu_trace_name new_name(struct allocator *a, char kind)
{
	return (struct npu_trace_name){ .kind = kind, .number = ++a->last[(guint8)kind] };
}

/* The name of what begins, or is mapped, at an address. */
static struct npu_trace_name name_at(const struct allocator *a, char kind, guint64 address)
{
	const struct int_map_entry *e = int_map_find(a->names, address, (guint32)kind);

	return (struct npu_trace_name){ .kind = kind, .number = (guint32)e->value };
}

/* A call that gets something of a kind at an address. */
static enum cache_answer obtain(struct allocator *a, struct npu_trace_record c, char kind,
				guint64 *address)
{
	c.name = new_name(a, kind);
	enum cache_answer answer = call(a, c, address);

	if (answer == CACHE_OK)
		int_map_put(a->names, *address, (guint32)kind, c.name.number);
	return answer;
}

/* A call that ends it. */
static enum cache_answer end(struct allocator *a, enum npu_trace_verb verb, char kind,
			     guint64 address)
{
	const struct npu_trace_record c = { .verb = verb, .name = name_at(a, kind, address) };

	int_map_remove(a->names, int_map_find(a->names, address, (guint32)kind));
	return call(a, c, NULL);
}

static enum cache_answer classic_alloc(struct allocator *a, guint64 size, gboolean giant,
				       guint64 *address)
{
	const struct npu_trace_record c = { .verb = NPU_TRACE_MALLOC,
					    .size = size,
					    .page_lg2 = giant ? 30 : 21 };

	return obtain(a, c, 'a', address);
}

/* Segments got or given back: `size` bytes in pages of `pages` bytes. */
static void put_event(struct allocator *a, enum npu_trace_verb verb, guint64 size, guint64 pages)
{
	const struct record_item item = {
		.record = { .verb = verb,
			    .has = a->start | NPU_TRACE_HAS_ROUNDED,
			    .size = size,
			    .rounded = pages },
		.size = size,
	};

	a->base.out.event(a->base.out.data, &item);
}

/* ---- memory for the cache ---- */

static enum cache_answer get(gpointer data, guint64 size, gboolean giant, guint64 *address)
{
	enum cache_answer answer = classic_alloc(data, size, giant, address);

	if (answer == CACHE_OK)
		put_event(data, NPU_TRACE_SEGMENT_ALLOC, size, size);
	return answer;
}

static enum cache_answer give(gpointer data, guint64 address, guint64 size)
{
	enum cache_answer answer = end(data, NPU_TRACE_MFREE, 'a', address);

	put_event(data, NPU_TRACE_SEGMENT_FREE, size, size);
	return answer;
}

static enum cache_answer reserve(gpointer data, guint64 size, guint64 *address)
{
	const struct npu_trace_record c = { .verb = NPU_TRACE_RESERVE, .size = size, .flags = 1 };

	return obtain(data, c, 'r', address);
}

static enum cache_answer unreserve(gpointer data, guint64 address)
{
	return end(data, NPU_TRACE_UNRESERVE, 'r', address);
}

/* An address in a reservation. */
static struct npu_trace_name place_of(const struct allocator *a, guint64 area, guint64 address)
{
	struct npu_trace_name name = name_at(a, 'r', area);

	name.offset = address - area;
	return name;
}

/* `n` handles, numbered on from `first`; or none. */
static enum cache_answer create_all(struct allocator *a, guint32 first, guint64 n, guint64 step)
{
	struct npu_trace_record c = { .verb = NPU_TRACE_CREATE,
				      .size = step,
				      .page_lg2 = step >= GIB ? 30 : 21 };
	enum cache_answer answer = CACHE_OK;

	for (guint64 i = 0; i < n && answer == CACHE_OK; i++) {
		c.name = new_name(a, 'h');
		answer = call(a, c, NULL);
	}
	c = (struct npu_trace_record){ .verb = NPU_TRACE_RELEASE, .name.kind = 'h' };
	for (guint32 h = first; answer != CACHE_OK && h < a->last['h']; h++) {
		c.name.number = h;
		call(a, c, NULL);
	}
	return answer;
}

/* As torch_npu does: all handles are made, then all of them mapped. */
static enum cache_answer map(gpointer data, guint64 area, guint64 address, guint64 size,
			     guint64 step)
{
	struct allocator *a = data;
	struct npu_trace_record c = { .verb = NPU_TRACE_MAP,
				      .handle = { .kind = 'h', .number = a->last['h'] + 1 },
				      .size = step };
	enum cache_answer answer = create_all(a, c.handle.number, size / step, step);

	for (guint64 at = address; at < address + size && answer == CACHE_OK; at += step) {
		c.name = place_of(a, area, at);
		answer = call(a, c, NULL);
		if (answer == CACHE_OK)
			int_map_put(a->names, at, 'h', c.handle.number++);
	}
	if (answer == CACHE_OK)
		put_event(a, NPU_TRACE_SEGMENT_MAP, size, size);
	return answer;
}

static enum cache_answer unmap(gpointer data, guint64 area, guint64 address, guint64 size,
			       guint64 step)
{
	struct allocator *a = data;
	struct npu_trace_record c = { .verb = NPU_TRACE_UNMAP };
	enum cache_answer answer = CACHE_OK;

	for (guint64 at = address; at < address + size && answer == CACHE_OK; at += step) {
		c.name = place_of(a, area, at);
		answer = call(a, c, NULL) ?: end(a, NPU_TRACE_RELEASE, 'h', at);
	}
	put_event(a, NPU_TRACE_SEGMENT_UNMAP, size, size);
	return answer;
}

/* ---- blocks ---- */

/* A block of its own, in whole pages, comes or goes. */
static void put_own(struct allocator *a, enum npu_trace_verb verb, guint64 size)
{
	put_event(a, verb, size,
		  a->options->page_1g ? round_up(MAX(size, 1), GIB) : malloc_pages(MAX(size, 1)));
}

/* Where the block lies; 0: it has no memory. */
static guint64 address_of(const struct held *held)
{
	return held->block ? held->block->address : held->own;
}

static gboolean failed(struct allocator *a, enum cache_answer answer, GError **error)
{
	if (answer != CACHE_FAILED)
		return TRUE;
	g_propagate_error(error, g_steal_pointer(&a->cause));
	return FALSE;
}

/* What finds no memory is kept as a block that lies nowhere. */
static gboolean hand_out(struct allocator *a, const struct record_item *item, gint64 stream,
			 GError **error)
{
	struct held held = { .address = item->address, .size = item->size };
	struct record_item placed = *item;
	enum cache_answer answer =
		a->cache ? cache_alloc(a->cache, item->size, stream, &held.block)
			 : classic_alloc(a, MAX(held.size, 1), a->options->page_1g, &held.own);

	if (answer == CACHE_OK && a->cache == NULL)
		put_own(a, NPU_TRACE_SEGMENT_ALLOC, held.size);
	if (answer == CACHE_NO_MEMORY)
		a->base.out.lost(a->base.out.data, item->size, item->site);
	if (!failed(a, answer, error))
		return FALSE;
	g_hash_table_add(a->blocks, g_memdup2(&held, sizeof held));
	placed.record.va = address_of(&held);
	placed.record.rounded = held.block ? held.block->size : held.size;
	placed.record.has |= NPU_TRACE_HAS_VA | NPU_TRACE_HAS_ROUNDED;
	if (placed.record.va == 0)
		placed.record.verb = NPU_TRACE_FREE;
	if (placed.record.va != 0 || a->start)
		a->base.out.event(a->base.out.data, &placed);
	return TRUE;
}

static gboolean take_back(struct allocator *a, guint64 address, GError **error)
{
	const struct held *held = g_hash_table_lookup(a->blocks, &address);
	enum cache_answer answer = CACHE_OK;

	if (held == NULL)
		return TRUE;
	if (held->block) {
		cache_release(a->cache, held->block);
	} else if (held->own) {
		answer = end(a, NPU_TRACE_MFREE, 'a', held->own);
		put_own(a, NPU_TRACE_SEGMENT_FREE, held->size);
	}
	g_hash_table_remove(a->blocks, &address);
	return failed(a, answer, error);
}

/* ---- when the cache is emptied ---- */

static gboolean empty(struct allocator *a, GError **error)
{
	if (a->cache == NULL)
		return TRUE;
	a->base.emptied++;
	return failed(a, cache_empty(a->cache), error);
}

static gboolean empty_where_said(struct allocator *a, GError **error)
{
	const GArray *at = a->options->empty_at;

	while (a->options->empty == POLICY_EMPTY_AT && a->empty_next < at->len &&
	       g_array_index(at, guint64, a->empty_next) <= a->history) {
		a->empty_next++;
		if (!empty(a, error))
			return FALSE;
	}
	return TRUE;
}

/* ---- the filter ---- */

/* Blocks of the start, by address, as the segments are that they lie in: what has no block behind
 * it says the stream. */
static gboolean start(struct filter *base, const GArray *items, GError **error)
{
	struct allocator *a = (struct allocator *)base;
	guint segment = 0, i = 0;

#define ITEM(index) (&g_array_index(items, struct record_item, index))
	while (i < items->len && ITEM(i)->record.verb != NPU_TRACE_ALLOC)
		i++;
	for (guint segments = i; i < items->len; i++) {
		while (segment + 1 < segments &&
		       ITEM(i)->address >= ITEM(segment)->address + ITEM(segment)->size)
			segment++;
		gint64 stream = segments ? (gint64)ITEM(segment)->record.stream : 0;
		if (!hand_out(a, ITEM(i), stream, error))
			return FALSE;
	}
#undef ITEM
	a->start = 0;
	base->out.started(base->out.data);
	return empty_where_said(a, error);
}

static gboolean step(struct filter *base, const struct record_item *item, GError **error)
{
	struct allocator *a = (struct allocator *)base;
	const struct held *held = g_hash_table_lookup(a->blocks, &item->address);
	guint32 verb = item->record.verb;
	gboolean gives = verb == NPU_TRACE_SEGMENT_FREE || verb == NPU_TRACE_SEGMENT_UNMAP;
	gboolean ok = TRUE;

	if (gives && !a->in_burst && a->options->empty == POLICY_EMPTY_RECORDED &&
	    !base->trace->of_process)
		ok = empty(a, error);
	a->in_burst = gives;
	if (ok && verb == NPU_TRACE_ALLOC) {
		a->history++;
		ok = take_back(a, item->address, error) &&
		     hand_out(a, item, (gint64)item->record.stream, error);
	} else if (ok && verb == NPU_TRACE_FREE) {
		a->history++;
		/* a block that found no memory was not live */
		if (held == NULL || address_of(held) != 0)
			base->out.event(base->out.data, item);
		ok = take_back(a, item->address, error);
	}
	return ok && empty_where_said(a, error);
}

static guint64 find(const struct filter *base, guint64 address)
{
	const struct held *held =
		g_hash_table_lookup(((const struct allocator *)base)->blocks, &address);

	return held ? address_of(held) : 0;
}

static void close_filter(struct filter *base)
{
	struct allocator *a = (struct allocator *)base;

	if (a->cache)
		cache_free(a->cache);
	g_hash_table_unref(a->blocks);
	int_map_free(a->names);
	g_clear_error(&a->cause);
	g_free(a);
}

struct filter *filter_allocator(const struct policy_options *options, struct trace_device *trace,
				const struct filter_output *out)
{
	struct allocator *a = g_new0(struct allocator, 1);
	const struct cache_memory memory = { get, give,  reserve, unreserve,
					     map, unmap, a,       out->total };

	a->base = (struct filter){ start, step, find, close_filter, trace, *out, 0 };
	a->options = options;
	a->blocks = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	a->names = int_map_new();
	a->start = NPU_TRACE_HAS_START;
	if (options->kind != POLICY_NATIVE)
		a->cache = cache_new(options, &memory);
	return &a->base;
}
