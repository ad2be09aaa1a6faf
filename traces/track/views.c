/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the maps of a moment: ranges between the ends of its reservations, physical memory and
 * blocks, and runs of frames; and adds up its live blocks, first by call site, then by label.
 */
#include "memory.h"

/* Where an item of a kind begins (1) or ends (-1). */
struct edge {
	guint64 at; /* first: by_address() */
	guint kind;
	gint step;
	gboolean cuts; /* ranges on both sides are two, also where they are alike */
};

/* Adds a range, or makes the last longer by it where both are alike and nothing `cut`s them. */
static void add_range(GArray *ranges, const struct map_range *r, gboolean cut)
{
	struct map_range *last =
		ranges->len ? &g_array_index(ranges, struct map_range, ranges->len - 1) : NULL;

	if (cut || last == NULL || last->start + last->length != r->start ||
	    !last->used != !r->used || !last->live != !r->live || last->owner != r->owner) {
		g_array_append_vals(ranges, r, 1);
		return;
	}
	last->length += r->length;
	last->used += r->used;
	last->live += r->live;
}

/* Neighbours that come to little, what lies between them too, become one, until there are few
 * enough; `least`: what is little at first. */
static void merge(struct memory_map *map, guint64 least)
{
	struct map_range *r = (struct map_range *)(void *)map->ranges->data;

	map->count = map->ranges->len;
	while (map->ranges->len > MAPS_RANGES_MAX) {
		guint kept = 0;
		map->merged = map->merged ? 2 * map->merged : least;
		for (guint i = 1; i < map->ranges->len; i++) {
			guint64 span = r[i].start + r[i].length - r[kept].start;
			if (span > map->merged) {
				r[++kept] = r[i];
				continue;
			}
			r[kept].length = span;
			r[kept].used += r[i].used;
			r[kept].live += r[i].live;
			if (r[kept].owner != r[i].owner)
				r[kept].owner = FRAME_SEVERAL;
		}
		g_array_set_size(map->ranges, kept + 1);
	}
}

void address_map_init(struct memory_map *map, const struct memory *memory,
		      const struct moment *moment)
{
	g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(struct edge));
	GArray *ranges = g_array_new(FALSE, FALSE, sizeof(struct map_range));
	gint depth[ALLOCATION_KIND_COUNT] = { 0 };

#define EDGE(i) (&g_array_index(edges, struct edge, i))
	for (guint kind = 0; kind < ALLOCATION_KIND_COUNT; kind++) {
		g_autoptr(GPtrArray) items = memory_at(memory, moment, kind);
		for (guint i = 0; i < items->len; i++) {
			const struct allocation *item = g_ptr_array_index(items, i);
			/* nothing beside a classic allocation makes it larger */
			gboolean alone = kind == ALLOCATION_MEMORY && !item->mapped;
			gboolean ends = alone || kind == ALLOCATION_RESERVED;
			const struct edge both[] = { { item->address, kind, 1, alone },
						     { item->address + item->size, kind, -1,
						       ends } };
			g_array_append_vals(edges, both, G_N_ELEMENTS(both));
		}
	}
	g_array_sort(edges, by_address);
	*map = (struct memory_map){ .ranges = ranges };
	for (guint i = 0; i < edges->len;) {
		guint64 start = EDGE(i)->at;
		gboolean cut[ALLOCATION_KIND_COUNT] = { FALSE };
		for (; i < edges->len && EDGE(i)->at == start; i++) {
			depth[EDGE(i)->kind] += EDGE(i)->step;
			cut[EDGE(i)->kind] |= EDGE(i)->cuts;
		}
		guint64 bytes = i < edges->len ? EDGE(i)->at - start : 0;
		gboolean there = depth[ALLOCATION_MEMORY] > 0;
		gboolean live = there && depth[ALLOCATION_BLOCK] > 0;
		const struct map_range r = { start, bytes, there ? bytes : 0, live ? bytes : 0,
					     FRAME_NOBODY };
		if (bytes > 0 && (there || depth[ALLOCATION_RESERVED] > 0))
			add_range(ranges, &r, cut[there ? ALLOCATION_MEMORY : ALLOCATION_RESERVED]);
	}
#undef EDGE
	for (guint i = 0; i < ranges->len; i++) {
		const struct map_range *r = &g_array_index(ranges, struct map_range, i);
		map->live += r->live;
		if (r->live == 0)
			map->largest_free = MAX(map->largest_free, r->used);
	}
	merge(map, 4096);
}

static void add_frames(GArray *frames, const struct physical_run *run, guint64 owner)
{
	guint64 end = run->pa + run->bytes, to;

	for (guint64 at = run->pa; at < end; at = to) {
		guint64 number = at / MAPS_FRAME_BYTES;
		if (number >= frames->len)
			g_array_set_size(frames, (guint)number + 1);
		struct map_range *f = &g_array_index(frames, struct map_range, number);
		to = MIN(end, (number + 1) * MAPS_FRAME_BYTES);
		f->owner = f->used == 0 || f->owner == owner ? owner : FRAME_SEVERAL;
		f->used += to - at;
	}
}

void frame_map_init(struct memory_map *map, const struct memory *memory,
		    const struct moment *moment, guint64 device_bytes)
{
	g_autoptr(GPtrArray) items = memory_at(memory, moment, ALLOCATION_MEMORY);
	g_autoptr(GArray) frames = g_array_new(FALSE, TRUE, sizeof(struct map_range));

	*map = (struct memory_map){ 0 };
	for (guint i = 0; i < items->len; i++) {
		const struct allocation *m = g_ptr_array_index(items, i);
		for (guint r = 0; m->runs && r < m->runs->len; r++)
			add_frames(frames, &g_array_index(m->runs, struct physical_run, r),
				   m->address);
	}
	if (frames->len == 0)
		return;
	g_array_set_size(frames, (guint)MAX(device_bytes / MAPS_FRAME_BYTES, frames->len));
	map->ranges = g_array_new(FALSE, FALSE, sizeof(struct map_range));
	for (guint i = 0; i < frames->len; i++) {
		struct map_range *f = &g_array_index(frames, struct map_range, i);
		f->start = i;
		f->length = 1;
		add_range(map->ranges, f, f->owner == FRAME_SEVERAL);
	}
	merge(map, 2);
}

void holders_add(GArray *sums, const struct memory *memory, const struct moment *moment, int sign)
{
	g_autoptr(GPtrArray) blocks = memory_at(
		memory, moment, memory->has_blocks ? ALLOCATION_BLOCK : ALLOCATION_MEMORY);

	for (guint i = 0; i < blocks->len; i++) {
		const struct allocation *b = g_ptr_array_index(blocks, i);
		struct site_sum *sum = &g_array_index(sums, struct site_sum,
						      b->site < sums->len ? b->site : SITE_NONE);
		sum->bytes += sign * (gint64)(memory->has_blocks && b->asked ? b->asked : b->size);
		sum->blocks += sign;
	}
}

/* Where sums are equal, by the number: the order of the file. */
static gint by_bytes(gconstpointer a, gconstpointer b)
{
	const struct holder *x = a, *y = b;

	return COMPARE(y->bytes, x->bytes) ?: COMPARE(x->label, y->label);
}

GArray *holders_of(const struct memory *memory, const struct moment *moment,
		   const struct sites *sites)
{
	GArray *out = g_array_new(FALSE, TRUE, sizeof(struct holder));
	g_autoptr(GArray) sums = g_array_new(FALSE, TRUE, sizeof(struct site_sum));

	if (sites == NULL)
		return out;
	g_array_set_size(sums, sites_count(sites));
	holders_add(sums, memory, moment, 1);
	g_array_set_size(out, sites_labels(sites));
	for (guint32 s = 0; s < sums->len; s++) {
		const struct site_sum *sum = &g_array_index(sums, struct site_sum, s);
		guint32 label = sites_label(sites, s);
		struct holder *h = &g_array_index(out, struct holder, label);
		h->sites = sites;
		h->label = label;
		if (sum->blocks > 0 && (h->blocks == 0 || (guint64)sum->bytes > h->site_bytes)) {
			h->site = s;
			h->site_bytes = (guint64)sum->bytes;
		}
		h->bytes += (guint64)sum->bytes;
		h->blocks += (guint64)sum->blocks;
	}
	for (guint i = out->len; i-- > 0;) {
		if (g_array_index(out, struct holder, i).blocks == 0)
			g_array_remove_index_fast(out, i);
	}
	g_array_sort(out, by_bytes);
	return out;
}
