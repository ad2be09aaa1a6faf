/* SPDX-License-Identifier: Apache-2.0
 *
 * The as-recorded policy: derives the calls behind an allocator's own segments. A segment is one
 * classic allocation; a part of an expandable segment is a set of physical handles mapped into a
 * reservation.
 */
#include "policy.h"
#include "format/units.h"

#define HUGE_BYTES  (2 * MIB)
#define LARGE_BYTES (20 * MIB)  /* what the allocators map at a time in their large pool */
#define RESERVE_MAX (128 * GIB) /* one reservation of the driver */

/* A stretch of the file's addresses that one reservation stands for; its number is its index + 1.
 */
struct area {
	guint64 start, end; /* of the file, 1 GiB aligned; start first: by-address.h */
	guint64 va;
};
/* A classic segment, or a handle mapped. */
struct piece {
	guint64 address; /* of the file; first: the tree's key */
	guint64 size, va;
	struct npu_trace_name name; /* of the segment; of the place of the mapping */
	guint32 handle;
};
struct recorded {
	struct filter base;
	GArray *areas;                /* struct area, by address */
	GTree *chunks;                /* of struct piece: handles mapped, by address */
	GTree *segments;              /* of struct piece: classic segments */
	const GArray *cuts;           /* struct span: addresses where an unmapping begins or ends */
	guint32 handles, allocations; /* numbers given out */
	guint32 site;                 /* of the event */
	guint32 start;                /* NPU_TRACE_HAS_START while it is rebuilt */
	guint64 moved;                /* bytes of the event that have, or had, memory */
	gboolean lost;                /* there were parts that the device had no memory for */
};

#define bad(error, ...) refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, __VA_ARGS__)

/* TRUE: it is made, or there was no memory for it, which *lost says where it is wanted. */
static gboolean call(struct recorded *f, struct npu_trace_record c, guint64 *va, gboolean *lost,
		     GError **error)
{
	guint64 got = 0;

	c.has |= f->start | NPU_TRACE_HAS_DEVICE;
	c.device = f->base.trace->device;
	c.process = f->base.trace->device + 1;
	enum cache_answer answer = f->base.out.call(f->base.out.data, &c, va ? va : &got, error);
	if (answer == CACHE_NO_MEMORY) {
		f->lost = TRUE;
		f->base.out.lost(f->base.out.data, c.size, f->site);
	}
	if (lost)
		*lost = answer == CACHE_NO_MEMORY;
	return answer != CACHE_FAILED;
}

static gboolean add_area(struct recorded *f, guint64 start, guint64 end, GError **error)
{
	struct area area = { .start = start, .end = end };
	const struct npu_trace_record c = { .verb = NPU_TRACE_RESERVE,
					    .has = NPU_TRACE_HAS_VA,
					    .name = { .kind = 'r', .number = f->areas->len + 1 },
					    .size = end - start,
					    .flags = 1,
					    .va = start };

	if (!call(f, c, &area.va, NULL, error))
		return FALSE;
	g_array_append_val(f->areas, area);
	return TRUE;
}

/* Where addresses go on for longer than a reservation can be, areas overlap by 1 GiB: each handle
 * lies in one as a whole. */
static gboolean reserve_areas(struct recorded *f, GError **error)
{
	const GArray *spans = spans_merged(&f->base.trace->maps, GIB);

	for (guint i = 0; i < spans->len; i++) {
		const struct span *span = &g_array_index(spans, struct span, i);
		guint64 start = span->start;
		for (; span->end - start > RESERVE_MAX; start += RESERVE_MAX - GIB) {
			if (!add_area(f, start, start + RESERVE_MAX, error))
				return FALSE;
		}
		if (!add_area(f, start, span->end, error))
			return FALSE;
	}
	return TRUE;
}

/* Where an address of the file lies: FALSE: in no reservation. */
static gboolean place(const struct recorded *f, struct piece *piece)
{
	guint above = by_address_above(f->areas, piece->address);

	for (guint i = above; i > 0 && i + 2 > above; i--) {
		const struct area *area = &g_array_index(f->areas, struct area, i - 1);
		if (piece->address + piece->size > area->end)
			continue;
		piece->name = (struct npu_trace_name){ .kind = 'r',
						       .number = i,
						       .offset = piece->address - area->start };
		piece->va = area->va + piece->name.offset;
		return TRUE;
	}
	return FALSE;
}

static gboolean release(struct recorded *f, const struct piece *chunk, GError **error)
{
	const struct npu_trace_record c = { .verb = NPU_TRACE_RELEASE,
					    .name = { .kind = 'h', .number = chunk->handle } };

	return call(f, c, NULL, NULL, error);
}

/* Sets *lost where the device has no memory left. */
static gboolean map_chunk(struct recorded *f, guint64 address, guint64 size, gboolean *lost,
			  GError **error)
{
	struct piece chunk = { .address = address, .size = size, .handle = ++f->handles };
	struct npu_trace_record c = { .verb = NPU_TRACE_CREATE,
				      .name = { .kind = 'h', .number = chunk.handle },
				      .size = size,
				      .page_lg2 = 21 };

	if (!place(f, &chunk))
		return bad(error, "0x%" G_GINT64_MODIFIER "x lies in no reservation", address);
	if (g_tree_lookup(f->chunks, &address))
		return bad(error, "0x%" G_GINT64_MODIFIER "x is mapped already", address);
	if (!call(f, c, NULL, lost, error) || *lost)
		return *lost;
	c = (struct npu_trace_record){ .verb = NPU_TRACE_MAP,
				       .has = NPU_TRACE_HAS_VA,
				       .name = chunk.name,
				       .handle = c.name,
				       .size = size,
				       .va = address };
	if (!call(f, c, NULL, lost, error))
		return FALSE;
	if (*lost)
		return release(f, &chunk, error);
	struct piece *kept = g_memdup2(&chunk, sizeof chunk);
	g_tree_insert(f->chunks, &kept->address, kept);
	f->moved += size;
	return TRUE;
}

static gboolean check_part(const struct record_item *item, GError **error)
{
	if (item->address % HUGE_BYTES == 0 && item->size % HUGE_BYTES == 0 && item->size > 0)
		return TRUE;
	return bad(error,
		   "a part of an expandable segment at 0x%" G_GINT64_MODIFIER "x of " U64
		   " bytes: address and size must be multiples of 2 MiB",
		   item->address, item->size);
}

/* One handle for each step of the pool that it comes from: 20 MiB where the size is a multiple of
 * that, else 2 MiB. The first handle that the device has no memory for ends it, as it does an
 * allocator's attempt. */
static gboolean map_range(struct recorded *f, const struct record_item *item, GError **error)
{
	gboolean small = f->start && (item->record.has & NPU_TRACE_HAS_SMALL);
	gboolean large = !small && item->size % LARGE_BYTES == 0, lost = FALSE;
	guint64 start = item->address;

	if (!check_part(item, error))
		return FALSE;
	for (guint64 at = start; at < start + item->size && !lost;) {
		/* where the file unmaps a part of it and not the rest */
		guint above = by_address_above(f->cuts, at);
		gboolean cut = above < f->cuts->len &&
			       g_array_index(f->cuts, struct span, above).start < at + LARGE_BYTES;
		guint64 step =
			large && (at - start) % LARGE_BYTES == 0 && !cut ? LARGE_BYTES : HUGE_BYTES;
		if (!map_chunk(f, at, step, &lost, error))
			return FALSE;
		at += step;
	}
	return TRUE;
}

/* No handle lies across an end of it: map_range() saw to that. */
static gboolean unmap_range(struct recorded *f, const struct record_item *item, GError **error)
{
	GTreeNode *node;

	if (!check_part(item, error))
		return FALSE;
	while ((node = g_tree_lower_bound(f->chunks, &item->address)) != NULL) {
		const struct piece *chunk = g_tree_node_value(node);
		if (chunk->address >= item->address + item->size)
			break;
		const struct npu_trace_record c = { .verb = NPU_TRACE_UNMAP, .name = chunk->name };
		if (!call(f, c, NULL, NULL, error) || !release(f, chunk, error))
			return FALSE;
		f->moved += chunk->size;
		g_tree_remove(f->chunks, &chunk->address);
	}
	return TRUE;
}

static gboolean segment_alloc(struct recorded *f, const struct record_item *item, GError **error)
{
	struct piece segment = { .address = item->address,
				 .size = item->size,
				 .name = { .kind = 'a', .number = ++f->allocations } };
	const struct npu_trace_record c = { .verb = NPU_TRACE_MALLOC,
					    .has = NPU_TRACE_HAS_VA,
					    .name = segment.name,
					    .size = item->size,
					    .page_lg2 = 21,
					    .va = item->address };
	gboolean lost;

	if (g_tree_lookup(f->segments, &item->address))
		return bad(error, "the segment at 0x%" G_GINT64_MODIFIER "x is there already",
			   item->address);
	if (!call(f, c, &segment.va, &lost, error) || lost)
		return lost;
	struct piece *kept = g_memdup2(&segment, sizeof segment);
	g_tree_insert(f->segments, &kept->address, kept);
	f->moved = item->size;
	return TRUE;
}

static gboolean segment_free(struct recorded *f, const struct record_item *item, GError **error)
{
	const struct piece *segment = g_tree_lookup(f->segments, &item->address);
	struct npu_trace_record c = { .verb = NPU_TRACE_MFREE };

	if (segment == NULL)
		return f->lost ||
		       bad(error, "no segment at 0x%" G_GINT64_MODIFIER "x is there to be freed",
			   item->address);
	c.name = segment->name;
	f->moved = segment->size;
	g_tree_remove(f->segments, &item->address);
	return call(f, c, NULL, NULL, error);
}

static guint64 find_in(GTree *tree, guint64 address)
{
	GTreeNode *node = by_address_node(tree, address);
	const struct piece *piece = node ? g_tree_node_value(node) : NULL;

	return piece && address - piece->address < piece->size
		       ? piece->va + (address - piece->address)
		       : 0;
}

static guint64 find(const struct filter *base, guint64 address)
{
	const struct recorded *f = (const struct recorded *)base;
	guint64 mapped = find_in(f->chunks, address);

	return mapped ? mapped : find_in(f->segments, address);
}

static gboolean act(struct recorded *f, const struct record_item *item, GError **error)
{
	f->site = item->site;
	f->moved = 0;
	switch (item->record.verb) {
	case NPU_TRACE_SEGMENT_ALLOC:
		return segment_alloc(f, item, error);
	case NPU_TRACE_SEGMENT_FREE:
		return segment_free(f, item, error);
	case NPU_TRACE_SEGMENT_MAP:
		return map_range(f, item, error);
	case NPU_TRACE_SEGMENT_UNMAP:
		return unmap_range(f, item, error);
	default:
		f->moved = f->lost && find(&f->base, item->address) == 0 ? 0 : item->size;
		return TRUE;
	}
}

/* The event as far as there was memory for it: the sums are those of what the device gave. */
static gboolean pass(struct recorded *f, const struct record_item *item, GError **error)
{
	gboolean ok = act(f, item, error);
	struct record_item done = *item;

	done.record.has |= f->start;
	done.size = f->moved;
	if (done.size > 0 || item->size == 0)
		f->base.out.event(f->base.out.data, &done);
	return ok;
}

static gboolean start(struct filter *base, const GArray *items, GError **error)
{
	struct recorded *f = (struct recorded *)base;
	gboolean ok = reserve_areas(f, error);

	for (guint i = 0; ok && i < items->len; i++) {
		const struct record_item *item = &g_array_index(items, struct record_item, i);
		if (item->size > 0 && item->record.verb != NPU_TRACE_ALLOC)
			ok = pass(f, item, error);
	}
	f->start = 0;
	base->out.started(base->out.data);
	return ok;
}

static gboolean step(struct filter *base, const struct record_item *item, GError **error)
{
	return pass((struct recorded *)base, item, error);
}

static void close_filter(struct filter *base)
{
	struct recorded *f = (struct recorded *)base;

	g_tree_destroy(f->chunks);
	g_tree_destroy(f->segments);
	g_array_unref(f->areas);
	g_free(f);
}

struct filter *filter_recorded(struct trace_device *trace, const struct filter_output *out)
{
	struct recorded *f = g_new0(struct recorded, 1);

	f->base = (struct filter){ start, step, find, close_filter, trace, *out, 0 };
	f->areas = g_array_new(FALSE, FALSE, sizeof(struct area));
	f->chunks = by_address_tree(NULL, g_free);
	f->segments = by_address_tree(NULL, g_free);
	f->cuts = spans_merged(&trace->cuts, 0);
	f->start = NPU_TRACE_HAS_START;
	return &f->base;
}
