/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays a history with another allocator than the file's: its blocks are handed out by the
 * caching allocator, or by one classic allocation each. The file's segments only show where its
 * cache was emptied.
 */
#include "policy.h"

/* A block of the history. */
struct held {
	guint64 address;           /* of the file */
	guint32 tag, next;         /* inside */
	struct cache_block *block; /* of the cache, or */
	guint64 own, size;         /* a classic allocation of its own */
};
struct allocator {
	struct filter base;
	const struct policy_options *options;
	struct cache *cache; /* NULL: native */
	guint64 history;     /* blocks handed out and gone so far */
	guint empty_next;    /* in options->empty_at */
	gboolean in_burst;
};

enum cache_answer filter_call(struct filter *f, struct npu_trace_record *c, guint64 *va)
{
	guint64 unused;

	c->has |= f->start_bit | NPU_TRACE_HAS_DEVICE;
	c->device = f->trace->device;
	c->process = f->trace->device + 1;
	return f->out.call(f->out.data, c, va ? va : &unused, f->cause ? NULL : &f->cause);
}

enum cache_answer filter_release(struct filter *f, guint32 handle)
{
	return filter_call(f, POLICY_CALL(RELEASE, .name = POLICY_NAME('h', handle)), NULL);
}

void filter_segments(struct filter *f, enum npu_trace_verb verb, guint64 size, guint64 pages)
{
	const struct record_item item = {
		.record = { .verb = verb,
			    .has = f->start_bit | NPU_TRACE_HAS_ROUNDED,
			    .size = size,
			    .rounded = pages },
		.size = size,
	};

	f->out.event(f->out.data, &item);
}

/* A block of its own, in whole pages, comes or goes. */
static enum cache_answer own(struct allocator *a, enum npu_trace_verb verb, struct held *held)
{
	gboolean comes = verb == NPU_TRACE_MALLOC, giant = a->options->page_1g;
	guint64 size = MAX(held->size, 1);
	struct npu_trace_record c = {
		.verb = verb, .size = size, .va = held->own, .page_lg2 = giant ? 30 : 21
	};
	enum cache_answer answer = filter_call(&a->base, &c, comes ? &held->own : NULL);

	if (answer == CACHE_OK || !comes)
		filter_segments(&a->base, comes ? NPU_TRACE_SEGMENT_ALLOC : NPU_TRACE_SEGMENT_FREE,
				held->size, giant ? round_up(size, GIB) : malloc_pages(size));
	return answer;
}

/* Where the block lies; 0: it has no memory. */
static guint64 address_of(const struct held *held)
{
	return held->block ? held->block->address : held->own;
}

/* What finds no memory is kept as a block that lies nowhere. */
static enum cache_answer hand_out(struct allocator *a, const struct record_item *item,
				  gint64 stream)
{
	struct filter *f = &a->base;
	struct held held = { .address = item->address, .size = item->size };
	struct record_item placed = *item;
	enum cache_answer answer = a->cache ? cache_alloc(a->cache, item->size, stream, &held.block)
					    : own(a, NPU_TRACE_MALLOC, &held);

	if (answer == CACHE_FAILED)
		return answer;
	if (answer == CACHE_NO_MEMORY)
		f->out.lost(f->out.data, item->size, item->site);
	*(struct held *)int_map_add(a->base.blocks, item->address, 0) = held;
	placed.record.va = address_of(&held);
	placed.record.rounded = held.block ? held.block->size : held.size;
	placed.record.has |= NPU_TRACE_HAS_VA | NPU_TRACE_HAS_ROUNDED;
	if (placed.record.va == 0)
		placed.record.verb = NPU_TRACE_FREE;
	if (placed.record.va != 0 || f->start_bit)
		f->out.event(f->out.data, &placed);
	return CACHE_OK;
}

static enum cache_answer take_back(struct allocator *a, struct held *held)
{
	enum cache_answer answer = CACHE_OK;

	if (held->block)
		cache_release(a->cache, held->block);
	else if (held->own)
		answer = own(a, NPU_TRACE_MFREE, held);
	int_map_remove(a->base.blocks, held);
	return answer;
}

static enum cache_answer empty(struct allocator *a)
{
	a->base.emptied += a->cache != NULL;
	return a->cache ? cache_empty(a->cache) : CACHE_OK;
}

static enum cache_answer empty_where_said(struct allocator *a)
{
	const GArray *at = a->options->empty_at;
	enum cache_answer answer = CACHE_OK;

	while (answer != CACHE_FAILED && a->options->empty == POLICY_EMPTY_AT &&
	       a->empty_next < at->len && g_array_index(at, guint64, a->empty_next) <= a->history) {
		a->empty_next++;
		answer = empty(a);
	}
	return answer;
}

/* Blocks of the start, by address, as the segments are that they lie in: what has no block behind
 * it says the stream. */
static enum cache_answer start(struct filter *base, const GArray *items)
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
		if (hand_out(a, ITEM(i), stream) == CACHE_FAILED)
			return CACHE_FAILED;
	}
#undef ITEM
	base->start_bit = 0;
	base->out.started(base->out.data);
	return empty_where_said(a);
}

static enum cache_answer step(struct filter *base, const struct record_item *item)
{
	struct allocator *a = (struct allocator *)base;
	guint32 verb = item->record.verb;
	gboolean gives = verb == NPU_TRACE_SEGMENT_FREE || verb == NPU_TRACE_SEGMENT_UNMAP;
	gboolean comes = verb == NPU_TRACE_ALLOC, goes = verb == NPU_TRACE_FREE;
	struct held *held = NULL;
	enum cache_answer answer = CACHE_OK;

	if (gives && !a->in_burst && a->options->empty == POLICY_EMPTY_RECORDED &&
	    !base->trace->of_process)
		answer = empty(a);
	a->in_burst = gives;
	if (answer == CACHE_FAILED)
		return answer;
	if (comes || goes)
		held = int_map_find(a->base.blocks, item->address, 0);
	a->history += comes || goes;
	/* a block that found no memory was not live */
	if (goes && (held == NULL || address_of(held) != 0))
		base->out.event(base->out.data, item);
	if (held)
		answer = take_back(a, held);
	if (comes && answer != CACHE_FAILED)
		answer = hand_out(a, item, (gint64)item->record.stream);
	return answer == CACHE_FAILED ? answer : empty_where_said(a);
}

static guint64 find(const struct filter *base, guint64 address)
{
	const struct held *held = int_map_find(base->blocks, address, 0);

	return held ? address_of(held) : 0;
}

static void close_filter(struct filter *base)
{
	struct allocator *a = (struct allocator *)base;

	if (a->cache)
		cache_free(a->cache);
	int_map_free(a->base.blocks);
	g_clear_error(&base->cause);
	g_free(a);
}

struct filter *filter_allocator(const struct policy_options *options, struct trace_device *trace,
				const struct filter_output *out)
{
	struct allocator *a = g_new0(struct allocator, 1);

	a->base = (struct filter){
		start, step, find, close_filter, trace, *out, .start_bit = NPU_TRACE_HAS_START
	};
	a->options = options;
	a->base.blocks = int_map_new(sizeof(struct held), NULL);
	if (options->kind != POLICY_NATIVE)
		a->cache = cache_new(options, &a->base);
	return &a->base;
}
