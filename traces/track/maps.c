/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the maps of a moment from its sorted lists of reservations, physical memory and blocks.
 */
#include "maps.h"

/* ---- addresses ---- */

static gboolean is_pure(const struct map_range *r)
{
	return (r->physical == 0 || r->physical == r->bytes) &&
	       (r->live == 0 || r->live == r->bytes);
}

static gboolean is_like(const struct map_range *a, const struct map_range *b)
{
	return is_pure(a) && is_pure(b) && !a->alone == !b->alone &&
	       (a->physical == 0) == (b->physical == 0) && (a->live == 0) == (b->live == 0);
}

static void add_range(GArray *ranges, guint64 start, guint64 end, guint64 physical, guint64 live,
		      gboolean alone)
{
	struct map_range r = { .address = start,
			       .bytes = end - start,
			       .physical = physical,
			       .live = live,
			       .alone = alone };

	if (start >= end)
		return;
	g_array_append_val(ranges, r);
}

/* Unites the last range with the one before it, if they are parts of one thing. */
static void settle(GArray *ranges, guint first)
{
	if (ranges->len < first + 2)
		return;
	struct map_range *last = &g_array_index(ranges, struct map_range, ranges->len - 1);
	struct map_range *before = last - 1;

	if (before->address + before->bytes != last->address || !is_like(before, last))
		return;
	before->bytes += last->bytes;
	before->physical += last->physical;
	before->live += last->live;
	g_array_set_size(ranges, ranges->len - 1);
}

/* [start, end) of memory, cut by the blocks that lie in it; *at: the first block that may. */
static void add_memory(GArray *ranges, const GPtrArray *blocks, guint *at, guint64 start,
		       guint64 end, gboolean alone)
{
	guint64 here = start;
	guint first = alone ? ranges->len : 0;

	for (; *at < blocks->len; (*at)++) {
		const struct allocation *b = g_ptr_array_index(blocks, *at);
		guint64 block_end = b->address + b->size;
		if (block_end <= here)
			continue;
		if (b->address >= end)
			break;
		guint64 from = MAX(b->address, here), to = MIN(block_end, end);
		add_range(ranges, here, from, from - here, 0, alone);
		settle(ranges, first);
		add_range(ranges, from, to, to - from, to - from, alone);
		settle(ranges, first);
		here = to;
		if (block_end > end)
			break;
	}
	add_range(ranges, here, end, end > here ? end - here : 0, 0, alone);
	settle(ranges, first);
}

static GArray *memory_ranges(const GPtrArray *memory, const GPtrArray *blocks)
{
	GArray *ranges = g_array_new(FALSE, FALSE, sizeof(struct map_range));
	guint64 end = 0;
	guint at = 0;

	for (guint i = 0; i < memory->len; i++) {
		const struct allocation *m = g_ptr_array_index(memory, i);
		guint64 start = MAX(m->address, end);
		end = MAX(end, m->address + m->size);
		if (start < end)
			add_memory(ranges, blocks, &at, start, end, !m->mapped);
	}
	return ranges;
}

/* What of reservations has no memory goes between. */
static GArray *with_reserved(const GArray *memory, const GPtrArray *reserved)
{
	GArray *out = g_array_new(FALSE, FALSE, sizeof(struct map_range));
	guint64 here = 0;
	guint at = 0;

	for (guint i = 0; i < reserved->len; i++) {
		const struct allocation *r = g_ptr_array_index(reserved, i);
		guint64 end = r->address + r->size;
		for (; at < memory->len; at++) {
			struct map_range m = g_array_index(memory, struct map_range, at);
			if (m.address >= end)
				break;
			add_range(out, MAX(here, r->address), m.address, 0, 0, FALSE);
			g_array_append_val(out, m);
			here = m.address + m.bytes;
		}
		add_range(out, MAX(here, r->address), end, 0, 0, FALSE);
		here = MAX(here, end);
	}
	for (; at < memory->len; at++)
		g_array_append_val(out, g_array_index(memory, struct map_range, at));
	return out;
}

/* Neighbours that come to no more than `limit` bytes, what lies between them too, become one. */
static void merge_ranges(GArray *ranges, guint64 limit)
{
	struct map_range *r = (struct map_range *)(void *)ranges->data;
	guint kept = 0;

	for (guint i = 1; i < ranges->len; i++) {
		guint64 span = r[i].address + r[i].bytes - r[kept].address;
		if (span > limit) {
			r[++kept] = r[i];
			continue;
		}
		r[kept].bytes = span;
		r[kept].physical += r[i].physical;
		r[kept].live += r[i].live;
	}
	g_array_set_size(ranges, kept + 1);
}

struct address_map *address_map_new(const struct allocation_table *table,
				    const struct moment *moment)
{
	struct address_map *map = g_new0(struct address_map, 1);
	g_autoptr(GPtrArray) reserved = allocation_table_at(table, moment, ALLOCATION_RESERVED);
	g_autoptr(GPtrArray) memory = allocation_table_at(table, moment, ALLOCATION_MEMORY);
	g_autoptr(GPtrArray) blocks = allocation_table_at(table, moment, ALLOCATION_BLOCK);
	g_autoptr(GArray) ranges = memory_ranges(memory, blocks);

	for (guint i = 0; i < ranges->len; i++) {
		const struct map_range *r = &g_array_index(ranges, struct map_range, i);
		map->live += r->live;
		if (r->live == 0)
			map->largest_free = MAX(map->largest_free, r->bytes);
	}
	map->ranges = with_reserved(ranges, reserved);
	map->count = map->ranges->len;
	while (map->ranges->len > MAPS_RANGES_MAX) {
		map->merged_bytes = map->merged_bytes ? 2 * map->merged_bytes : 4096;
		merge_ranges(map->ranges, map->merged_bytes);
	}
	return map;
}

void address_map_free(struct address_map *map)
{
	if (map == NULL)
		return;
	g_array_unref(map->ranges);
	g_free(map);
}

/* ---- frames ---- */

struct piece {
	guint64 pa, bytes, owner;
};

static gint by_pa(gconstpointer a, gconstpointer b)
{
	const struct piece *x = a, *y = b;

	return x->pa < y->pa ? -1 : x->pa > y->pa;
}

static GArray *pieces_of(const GPtrArray *memory)
{
	GArray *pieces = g_array_new(FALSE, FALSE, sizeof(struct piece));

	for (guint i = 0; i < memory->len; i++) {
		const struct allocation *m = g_ptr_array_index(memory, i);
		for (guint r = 0; m->runs && r < m->runs->len; r++) {
			const struct physical_run *run =
				&g_array_index(m->runs, struct physical_run, r);
			struct piece p = { run->pa, run->bytes, m->address };
			g_array_append_val(pieces, p);
		}
	}
	g_array_sort(pieces, by_pa);
	return pieces;
}

static void add_run(GArray *runs, const struct frame_run *run)
{
	struct frame_run *last =
		runs->len ? &g_array_index(runs, struct frame_run, runs->len - 1) : NULL;

	if (run->count == 0)
		return;
	if (last && last->owner == run->owner && last->frame + last->count == run->frame) {
		last->count += run->count;
		last->used += run->used;
		last->tail = run->tail;
		return;
	}
	g_array_append_vals(runs, run, 1);
}

/* A piece that begins in the frame which the last run ends with shares that frame. */
static guint64 share_frame(GArray *runs, const struct piece *p, guint64 frame)
{
	struct frame_run *last =
		runs->len ? &g_array_index(runs, struct frame_run, runs->len - 1) : NULL;
	guint64 part = MIN(p->bytes, (frame + 1) * MAPS_FRAME_BYTES - p->pa);

	if (last == NULL || last->frame + last->count <= frame)
		return 0;
	if (last->owner == p->owner) {
		last->used += part;
		last->tail += part;
		return part;
	}
	struct frame_run shared = { .frame = frame,
				    .count = 1,
				    .used = last->tail + part,
				    .owner = FRAME_SEVERAL,
				    .tail = last->tail + part };
	last->count--;
	last->used -= last->tail;
	if (last->count == 0)
		g_array_set_size(runs, runs->len - 1);
	g_array_append_val(runs, shared);
	return part;
}

static void add_piece(GArray *runs, const struct piece *p)
{
	guint64 shared = share_frame(runs, p, p->pa / MAPS_FRAME_BYTES);
	guint64 pa = p->pa + shared, bytes = p->bytes - shared;

	if (bytes == 0)
		return;
	guint64 first = pa / MAPS_FRAME_BYTES, last = (pa + bytes - 1) / MAPS_FRAME_BYTES;
	const struct frame_run *before =
		runs->len ? &g_array_index(runs, struct frame_run, runs->len - 1) : NULL;
	guint64 end = before ? before->frame + before->count : 0;
	const struct frame_run none = { .frame = end, .count = first > end ? first - end : 0 };
	const struct frame_run run = { .frame = first,
				       .count = last - first + 1,
				       .used = bytes,
				       .owner = p->owner,
				       .tail = MIN(bytes, pa + bytes - last * MAPS_FRAME_BYTES) };
	add_run(runs, &none);
	add_run(runs, &run);
}

static void merge_runs(GArray *runs, guint64 limit)
{
	struct frame_run *r = (struct frame_run *)(void *)runs->data;
	guint kept = 0;

	for (guint i = 1; i < runs->len; i++) {
		if (r[kept].count + r[i].count > limit) {
			r[++kept] = r[i];
			continue;
		}
		r[kept].count += r[i].count;
		r[kept].used += r[i].used;
		r[kept].owner = r[kept].owner == r[i].owner ? r[i].owner : FRAME_SEVERAL;
	}
	g_array_set_size(runs, kept + 1);
}

struct frame_map *frame_map_new(const struct allocation_table *table, const struct moment *moment,
				guint64 device_bytes)
{
	g_autoptr(GPtrArray) memory = allocation_table_at(table, moment, ALLOCATION_MEMORY);
	g_autoptr(GArray) pieces = pieces_of(memory);

	if (pieces->len == 0)
		return NULL;
	struct frame_map *map = g_new0(struct frame_map, 1);
	map->runs = g_array_new(FALSE, FALSE, sizeof(struct frame_run));
	for (guint i = 0; i < pieces->len; i++)
		add_piece(map->runs, &g_array_index(pieces, struct piece, i));
	const struct frame_run *last =
		&g_array_index(map->runs, struct frame_run, map->runs->len - 1);
	guint64 end = last->frame + last->count, frames = device_bytes / MAPS_FRAME_BYTES;
	const struct frame_run rest = { .frame = end, .count = frames > end ? frames - end : 0 };
	add_run(map->runs, &rest);
	map->count = map->runs->len;
	while (map->runs->len > MAPS_RANGES_MAX) {
		map->merged_frames = map->merged_frames ? 2 * map->merged_frames : 2;
		merge_runs(map->runs, map->merged_frames);
	}
	return map;
}

void frame_map_free(struct frame_map *map)
{
	if (map == NULL)
		return;
	g_array_unref(map->runs);
	g_free(map);
}
