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
	guint64 own, size;         /* a classic allocation of its own, of this number */
	guint32 number;
};
struct allocator {
	struct filter base;
	const struct policy_options *options;
	struct cache *cache; /* NULL: native */
	GHashTable *blocks;  /* of struct held */
	guint32 allocations; /* numbers given out */
	guint32 start;       /* NPU_TRACE_HAS_START while it is rebuilt */
	guint64 history;     /* blocks handed out and gone so far */
	guint empty_next;    /* in options->empty_at */
	gboolean in_burst;
	GError *cause; /* of CACHE_FAILED: the first */
};

static enum cache_answer call(gpointer data, const struct npu_trace_record *asked, guint64 *va)
{
	struct allocator *a = data;
	struct npu_trace_record c = *asked;

	c.has |= a->start | NPU_TRACE_HAS_DEVICE;
	c.device = a->base.trace->device;
	c.process = a->base.trace->device + 1;
	return a->base.out.call(a->base.out.data, &c, va, a->cause ? NULL : &a->cause);
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

static void on_segment(gpointer data, enum npu_trace_verb verb, guint64 size)
{
	put_event(data, verb, size, size);
}

enum cache_answer memory_call(struct cache_memory *memory, const struct npu_trace_record *c,
			      guint64 *va)
{
	guint64 got;

	return memory->call(memory->data, c, va ? va : &got);
}

static enum cache_answer release(struct cache_memory *memory, guint32 handle)
{
	const struct npu_trace_record c = { .verb = NPU_TRACE_RELEASE,
					    .name = { .kind = 'h', .number = handle } };

	return memory_call(memory, &c, NULL);
}

enum cache_answer stretch_map(struct cache_memory *memory, struct stretch *s, guint64 offset,
			      guint64 size)
{
	guint32 *handles = s->handles + offset / s->step;
	guint64 n = size / s->step, made = 0;
	struct npu_trace_record c = { .verb = NPU_TRACE_CREATE,
				      .size = s->step,
				      .page_lg2 = s->step >= GIB ? 30 : 21 };
	enum cache_answer answer = CACHE_OK;

	for (; made < n && answer == CACHE_OK; made += answer == CACHE_OK) {
		handles[made] = ++memory->handles;
		c.name = (struct npu_trace_name){ .kind = 'h', .number = handles[made] };
		answer = memory_call(memory, &c, NULL);
	}
	for (guint64 i = 0; answer != CACHE_OK && i < made; i++)
		release(memory, handles[i]);
	c.verb = NPU_TRACE_MAP;
	for (guint64 i = 0; answer == CACHE_OK && i < n; i++) {
		c.handle = (struct npu_trace_name){ .kind = 'h', .number = handles[i] };
		c.name = (struct npu_trace_name){ .kind = 'r',
						  .number = s->number,
						  .offset = offset + i * s->step };
		answer = memory_call(memory, &c, NULL);
	}
	if (answer == CACHE_OK)
		memory->event(memory->data, NPU_TRACE_SEGMENT_MAP, size);
	return answer;
}

enum cache_answer stretch_unmap(struct cache_memory *memory, struct stretch *s, guint64 offset,
				guint64 size)
{
	struct npu_trace_record c = { .verb = NPU_TRACE_UNMAP,
				      .name = { .kind = 'r', .number = s->number },
				      .size = s->step };
	enum cache_answer answer = CACHE_OK;

	for (guint64 at = offset; at < offset + size && answer == CACHE_OK; at += s->step) {
		c.name.offset = at;
		answer = memory_call(memory, &c, NULL) ?: release(memory, s->handles[at / s->step]);
	}
	memory->event(memory->data, NPU_TRACE_SEGMENT_UNMAP, size);
	return answer;
}

/* A block of its own, in whole pages, comes or goes. */
static enum cache_answer own(struct allocator *a, enum npu_trace_verb verb, struct held *held)
{
	gboolean comes = verb == NPU_TRACE_MALLOC, giant = a->options->page_1g;
	guint64 size = MAX(held->size, 1), unused;
	const struct npu_trace_record c = { .verb = verb,
					    .name = { .kind = 'a', .number = held->number },
					    .size = size,
					    .page_lg2 = giant ? 30 : 21 };
	enum cache_answer answer = call(a, &c, comes ? &held->own : &unused);

	if (answer == CACHE_OK || !comes)
		put_event(a, comes ? NPU_TRACE_SEGMENT_ALLOC : NPU_TRACE_SEGMENT_FREE, held->size,
			  giant ? round_up(size, GIB) : malloc_pages(size));
	return answer;
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
	struct held held = { .address = item->address,
			     .size = item->size,
			     .number = ++a->allocations };
	struct record_item placed = *item;
	enum cache_answer answer = a->cache ? cache_alloc(a->cache, item->size, stream, &held.block)
					    : own(a, NPU_TRACE_MALLOC, &held);

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
	struct held *held = g_hash_table_lookup(a->blocks, &address);
	enum cache_answer answer = CACHE_OK;

	if (held == NULL)
		return TRUE;
	if (held->block)
		cache_release(a->cache, held->block);
	else if (held->own)
		answer = own(a, NPU_TRACE_MFREE, held);
	g_hash_table_remove(a->blocks, &address);
	return failed(a, answer, error);
}

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
	g_clear_error(&a->cause);
	g_free(a);
}

struct filter *filter_allocator(const struct policy_options *options, struct trace_device *trace,
				const struct filter_output *out)
{
	struct allocator *a = g_new0(struct allocator, 1);
	const struct cache_memory memory = { call, on_segment, a, out->total, 0 };

	a->base = (struct filter){ start, step, find, close_filter, trace, *out, 0 };
	a->options = options;
	a->blocks = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	a->start = NPU_TRACE_HAS_START;
	if (options->kind != POLICY_NATIVE)
		a->cache = cache_new(options, &memory);
	return &a->base;
}
