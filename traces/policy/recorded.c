/* SPDX-License-Identifier: Apache-2.0
 *
 * The as-recorded policy: derives the calls behind an allocator's own segments. A segment is one
 * classic allocation; a part of an expandable segment is a set of physical handles mapped into a
 * reservation.
 */
#include "policy.h"

#define HUGE_BYTES  (2 * MIB)
#define LARGE_BYTES (20 * MIB)  /* what the allocators map at a time in their large pool */
#define RESERVE_MAX (128 * GIB) /* one reservation of the driver */

/* A classic segment; a handle mapped; or an area: whole GiB of addresses, for one reservation. */
struct piece {
	guint64 address; /* of the file; first: the tree's key */
	guint64 size, va;
	struct npu_trace_name name; /* of the reservation, the place of the mapping */
	guint32 handle;
};
struct recorded {
	struct filter base;
	/* Of struct piece, by address. */
	GTree *areas, *chunks, *segments;
	guint32 site;  /* of the event */
	guint64 moved; /* bytes of the event that have, or had, memory */
	gboolean lost; /* there were parts that the device had no memory for */
};

#define bad(f, ...)                                                                          \
	({                                                                                   \
		g_set_error(&(f)->base.cause, TRACE_ERROR, TRACE_ERROR_FORMAT, __VA_ARGS__); \
		CACHE_FAILED;                                                                \
	})

static enum cache_answer call(struct recorded *f, struct npu_trace_record *c, guint64 *va)
{
	enum cache_answer answer = filter_call(&f->base, c, va);

	if (answer == CACHE_NO_MEMORY) {
		f->lost = TRUE;
		f->base.out.lost(f->base.out.data, c->size, f->site);
	}
	return answer;
}

static enum cache_answer add_area(struct recorded *f, guint64 start, guint64 end)
{
	struct piece area = { .address = start,
			      .size = end - start,
			      .name = POLICY_NAME('r', (guint32)g_tree_nnodes(f->areas) + 1) };
	enum cache_answer answer =
		call(f,
		     POLICY_CALL(RESERVE, .name = area.name, .size = area.size, .flags = 1,
				 .va = start, .has = NPU_TRACE_HAS_VA),
		     &area.va);

	by_address_put(f->areas, &area, sizeof area);
	return answer;
}

/* Where addresses go on for longer than a reservation can be, areas overlap by 1 GiB: each handle
 * lies in one as a whole. */
static enum cache_answer reserve_areas(struct recorded *f)
{
	GTreeNode *node = g_tree_node_first(f->base.trace->maps);
	enum cache_answer answer = CACHE_OK;

	for (; answer == CACHE_OK && node; node = g_tree_node_next(node)) {
		const struct span *span = g_tree_node_value(node);
		guint64 start = span->start;
		for (; answer == CACHE_OK && span->end - start > RESERVE_MAX;
		     start += RESERVE_MAX - GIB)
			answer = add_area(f, start, start + RESERVE_MAX);
		answer = answer ?: add_area(f, start, span->end);
	}
	return answer;
}

/* Where an address of the file lies: FALSE: in no reservation. */
static gboolean place(const struct recorded *f, struct piece *piece)
{
	GTreeNode *node = by_address_node(f->areas, piece->address);

	for (int i = 0; i < 2 && node; i++, node = g_tree_node_previous(node)) {
		const struct piece *area = g_tree_node_value(node);
		if (piece->address + piece->size > area->address + area->size)
			continue;
		piece->name = area->name;
		piece->name.offset = piece->address - area->address;
		piece->va = area->va + piece->name.offset;
		return TRUE;
	}
	return FALSE;
}

static enum cache_answer map_chunk(struct recorded *f, guint64 address, guint64 size)
{
	struct piece chunk = { .address = address, .size = size, .handle = ++f->base.handles };
	const struct npu_trace_name handle = POLICY_NAME('h', chunk.handle);

	if (!place(f, &chunk))
		return bad(f, "0x%" G_GINT64_MODIFIER "x lies in no reservation", address);
	if (g_tree_lookup(f->chunks, &address))
		return bad(f, "0x%" G_GINT64_MODIFIER "x is mapped already", address);
	enum cache_answer answer =
		call(f, POLICY_CALL(CREATE, .name = handle, .size = size, .page_lg2 = 21), NULL);
	if (answer != CACHE_OK)
		return answer;
	answer = call(f,
		      POLICY_CALL(MAP, .name = chunk.name, .handle = handle, .size = size,
				  .va = address, .has = NPU_TRACE_HAS_VA),
		      NULL);
	if (answer == CACHE_NO_MEMORY)
		return filter_release(&f->base, chunk.handle) ?: answer;
	if (answer == CACHE_OK) {
		by_address_put(f->chunks, &chunk, sizeof chunk);
		f->moved += size;
	}
	return answer;
}

static enum cache_answer check_part(struct recorded *f, const struct record_item *item)
{
	if (item->address % HUGE_BYTES == 0 && item->size % HUGE_BYTES == 0 && item->size > 0)
		return CACHE_OK;
	return bad(f,
		   "a part of an expandable segment at 0x%" G_GINT64_MODIFIER "x of " U64
		   " bytes: address and size must be multiples of 2 MiB",
		   item->address, item->size);
}

/* One handle for each step of the pool that it comes from: 20 MiB where the size is a multiple of
 * that, else 2 MiB. The first handle that the device has no memory for ends it, as it does an
 * allocator's attempt. */
static enum cache_answer map_range(struct recorded *f, const struct record_item *item)
{
	gboolean small = f->base.start_bit && (item->record.has & NPU_TRACE_HAS_SMALL);
	gboolean large = !small && item->size % LARGE_BYTES == 0;
	guint64 start = item->address, step;
	enum cache_answer answer = check_part(f, item);

	for (guint64 at = start; answer == CACHE_OK && at < start + item->size; at += step) {
		/* where the file unmaps a part of it and not the rest */
		GTreeNode *node = g_tree_upper_bound(f->base.trace->cuts, &at);
		const struct span *next = node ? g_tree_node_value(node) : NULL;
		gboolean cut = next && next->start < at + LARGE_BYTES;
		step = large && (at - start) % LARGE_BYTES == 0 && !cut ? LARGE_BYTES : HUGE_BYTES;
		answer = map_chunk(f, at, step);
	}
	return answer;
}

/* No handle lies across an end of it: map_range() saw to that. */
static enum cache_answer unmap_range(struct recorded *f, const struct record_item *item)
{
	enum cache_answer answer = check_part(f, item);
	GTreeNode *node;

	while (answer == CACHE_OK && (node = g_tree_lower_bound(f->chunks, &item->address))) {
		const struct piece *chunk = g_tree_node_value(node);
		if (chunk->address >= item->address + item->size)
			break;
		answer = call(f, POLICY_CALL(UNMAP, .name = chunk->name), NULL)
				 ?: filter_release(&f->base, chunk->handle);
		f->moved += chunk->size;
		g_tree_remove(f->chunks, &chunk->address);
	}
	return answer;
}

static enum cache_answer segment_alloc(struct recorded *f, const struct record_item *item)
{
	struct piece segment = { .address = item->address, .size = item->size };

	if (g_tree_lookup(f->segments, &item->address))
		return bad(f, "the segment at 0x%" G_GINT64_MODIFIER "x is there already",
			   item->address);
	enum cache_answer answer = call(f,
					POLICY_CALL(MALLOC, .size = item->size, .page_lg2 = 21,
						    .va = item->address, .has = NPU_TRACE_HAS_VA),
					&segment.va);
	if (answer == CACHE_OK) {
		by_address_put(f->segments, &segment, sizeof segment);
		f->moved = item->size;
	}
	return answer;
}

static enum cache_answer segment_free(struct recorded *f, const struct record_item *item)
{
	const struct piece *segment = g_tree_lookup(f->segments, &item->address);

	if (segment == NULL)
		return f->lost ? CACHE_OK
			       : bad(f,
				     "no segment at 0x%" G_GINT64_MODIFIER "x is there to be freed",
				     item->address);
	struct npu_trace_record *c = POLICY_CALL(MFREE, .va = segment->va);
	f->moved = segment->size;
	g_tree_remove(f->segments, &item->address);
	return call(f, c, NULL);
}

static guint64 find(const struct filter *base, guint64 address)
{
	const struct recorded *f = (const struct recorded *)base;
	GTree *const trees[] = { f->chunks, f->segments };

	for (guint t = 0; t < G_N_ELEMENTS(trees); t++) {
		GTreeNode *node = by_address_node(trees[t], address);
		const struct piece *piece = node ? g_tree_node_value(node) : NULL;
		if (piece && address - piece->address < piece->size)
			return piece->va + (address - piece->address);
	}
	return 0;
}

static enum cache_answer act(struct recorded *f, const struct record_item *item)
{
	f->site = item->site;
	f->moved = 0;
	switch (item->record.verb) {
	case NPU_TRACE_SEGMENT_ALLOC:
		return segment_alloc(f, item);
	case NPU_TRACE_SEGMENT_FREE:
		return segment_free(f, item);
	case NPU_TRACE_SEGMENT_MAP:
		return map_range(f, item);
	case NPU_TRACE_SEGMENT_UNMAP:
		return unmap_range(f, item);
	default:
		f->moved = f->lost && find(&f->base, item->address) == 0 ? 0 : item->size;
		return CACHE_OK;
	}
}

/* The event as far as there was memory for it: the sums are those of what the device gave. */
static enum cache_answer step(struct filter *base, const struct record_item *item)
{
	struct recorded *f = (struct recorded *)base;
	enum cache_answer answer = act(f, item);
	struct record_item done = *item;

	done.record.has |= base->start_bit;
	done.size = f->moved;
	if (done.size > 0 || item->size == 0)
		base->out.event(base->out.data, &done);
	return answer;
}

static enum cache_answer start(struct filter *base, const GArray *items)
{
	enum cache_answer answer = reserve_areas((struct recorded *)base);

	for (guint i = 0; answer != CACHE_FAILED && i < items->len; i++) {
		const struct record_item *item = &g_array_index(items, struct record_item, i);
		if (item->size > 0 && item->record.verb != NPU_TRACE_ALLOC)
			answer = step(base, item);
	}
	base->start_bit = 0;
	base->out.started(base->out.data);
	return answer;
}

static void close_filter(struct filter *base)
{
	struct recorded *f = (struct recorded *)base;

	g_tree_destroy(f->chunks);
	g_tree_destroy(f->segments);
	g_tree_destroy(f->areas);
	g_clear_error(&base->cause);
	g_free(f);
}

struct filter *filter_recorded(struct trace_device *trace, const struct filter_output *out)
{
	struct recorded *f = g_new0(struct recorded, 1);

	f->base = (struct filter){
		start, step, find, close_filter, trace, *out, .start_bit = NPU_TRACE_HAS_START
	};
	f->areas = by_address_tree();
	f->chunks = by_address_tree();
	f->segments = by_address_tree();
	return &f->base;
}
