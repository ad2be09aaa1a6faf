/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator's segments made again: a segment is one classic allocation; a part of an expandable
 * segment is physical handles mapped into a reservation. Addresses of the file are keys; the model
 * gives its own.
 */
#include "read/by-address.h"
#include "replay.h"
#include "format/units.h"

#define HUGE_BYTES  (2 * MIB)
#define LARGE_BYTES (20 * MIB)  /* what the allocators map at a time in their large pool */
#define RESERVE_MAX (128 * GIB) /* one reservation of the driver */
#define MAPPED_KEY  (G_GUINT64_CONSTANT(1) << 63) /* of the table: beside the address */

/* A stretch of the file's addresses that one reservation of the model stands for. */
struct area {
	guint64 start, end; /* of the file, 1 GiB aligned; start first: by-address.h */
	char *va;
};
/* A handle mapped at an address of the file. */
struct chunk {
	guint64 address; /* first: the tree's key */
	guint64 size;
	void *va;
	aclrtDrvMemHandle handle;
};
struct segment {
	guint64 address; /* first: the tree's key */
	guint64 size;
	void *p;
};
struct segment_replay {
	struct replay_device *device;
	struct model_device *calls; /* where calls are counted now */
	GArray *areas;              /* struct area, by address */
	GTree *chunks;              /* of struct chunk, by address */
	GTree *segments;            /* of struct segment, by address */
	const GArray *cuts;         /* struct span: addresses where an unmapping begins or ends */
	guint64 event; /* of this device, counted from 1; 0: what was there at the start */
	guint64 line;  /* 0: the file has none */
	guint32 site;  /* of the event */
	guint64 lost;  /* parts that the model had no memory for */
};

static gboolean bad(const struct segment_replay *replay, GError **error, const char *format, ...)
	G_GNUC_PRINTF(3, 4);
static gboolean bad(const struct segment_replay *replay, GError **error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	if (replay->line)
		g_set_error(error, REPLAY_ERROR, 0, "line %" G_GUINT64_FORMAT ": %s", replay->line,
			    text);
	else if (replay->event)
		g_set_error(error, REPLAY_ERROR, 0, "device %u, event %" G_GUINT64_FORMAT ": %s",
			    replay->device->device, replay->event, text);
	else
		g_set_error(error, REPLAY_ERROR, 0, "device %u, what was live at the start: %s",
			    replay->device->device, text);
	return FALSE;
}

/* A call that the model refused. Out of memory is an answer, anything else the end. */
static gboolean refused(struct segment_replay *replay, const char *call, aclError code,
			guint64 size, GError **error)
{
	if (code != ACL_ERROR_RT_MEMORY_ALLOCATION)
		return bad(replay, error, "%s answered %d: %s", call, code, model_message());
	replay->lost++;
	replay_note_failure(replay->device, replay->event, replay->line, size, replay->site);
	return TRUE;
}

static struct allocation_table *table_of(const struct segment_replay *replay)
{
	return &replay->device->usage.table;
}

static void note_memory(const struct segment_replay *replay, guint64 address, guint64 size,
			const void *va, gboolean mapped)
{
	const struct allocation item = { .key = address | (mapped ? MAPPED_KEY : 0),
					 .address = address,
					 .size = size,
					 .va = (guintptr)va,
					 .mapped = mapped };

	allocation_table_add(table_of(replay), ALLOCATION_MEMORY, &item);
}

/* ---- reservations for the file's expandable addresses ---- */

static gboolean add_area(struct segment_replay *replay, guint64 start, guint64 end, GError **error)
{
	struct area area = { .start = start, .end = end };
	void *va;
	aclError code = model_reserve(replay->calls, &va, end - start, 0, NULL, 1);
	if (code != ACL_SUCCESS)
		return bad(replay, error,
			   "aclrtReserveMemAddress of %" G_GUINT64_FORMAT " bytes answered %d: %s",
			   end - start, code, model_message());
	area.va = va;
	g_array_append_val(replay->areas, area);
	const struct allocation item = { .key = start, .address = start, .size = end - start };
	allocation_table_add(table_of(replay), ALLOCATION_RESERVED, &item);
	return TRUE;
}

/* Where addresses go on for longer than a reservation can be, areas overlap by 1 GiB: each handle
 * lies in one as a whole. */
static gboolean reserve_areas(struct segment_replay *replay, GError **error)
{
	const GArray *spans = spans_merged(&replay->device->trace->maps, GIB);
	for (guint i = 0; i < spans->len; i++) {
		const struct span *span = &g_array_index(spans, struct span, i);
		guint64 start = span->start;
		for (; span->end - start > RESERVE_MAX; start += RESERVE_MAX - GIB) {
			if (!add_area(replay, start, start + RESERVE_MAX, error))
				return FALSE;
		}
		if (!add_area(replay, start, span->end, error))
			return FALSE;
	}
	return TRUE;
}

static void *area_va(const struct segment_replay *replay, guint64 address, guint64 size)
{
	guint above = by_address_above(replay->areas, address);
	for (guint i = above; i > 0 && i + 2 > above; i--) {
		const struct area *area = &g_array_index(replay->areas, struct area, i - 1);
		if (address + size <= area->end)
			return area->va + (address - area->start);
	}
	return NULL;
}

/* ---- parts of expandable segments ---- */

/* Sets *lost where the model has no memory left. */
static gboolean map_chunk(struct segment_replay *replay, guint64 address, guint64 size,
			  gboolean *lost, GError **error)
{
	struct chunk chunk = { .address = address,
			       .size = size,
			       .va = area_va(replay, address, size) };

	if (chunk.va == NULL)
		return bad(replay, error, "0x%" G_GINT64_MODIFIER "x lies in no reservation",
			   address);
	if (g_tree_lookup(replay->chunks, &address))
		return bad(replay, error, "0x%" G_GINT64_MODIFIER "x is mapped already", address);
	aclError code =
		model_create(replay->calls, &chunk.handle, size, (int)replay->device->device, 21);
	*lost = code != ACL_SUCCESS;
	if (*lost)
		return refused(replay, "aclrtMallocPhysical", code, size, error);
	code = model_map(replay->calls, chunk.va, size, chunk.handle);
	*lost = code != ACL_SUCCESS;
	if (*lost) {
		struct model_device unused = { 0 };
		gboolean go_on = refused(replay, "aclrtMapMem", code, size, error);
		model_release(&unused, chunk.handle);
		return go_on;
	}
	struct chunk *kept = g_memdup2(&chunk, sizeof chunk);
	g_tree_insert(replay->chunks, &kept->address, kept);
	note_memory(replay, address, size, kept->va, TRUE);
	return TRUE;
}

/* Whether the file unmaps a part of [address, address + size) and not the rest. */
static gboolean is_cut(const struct segment_replay *replay, guint64 address, guint64 size)
{
	guint above = by_address_above(replay->cuts, address);
	return above < replay->cuts->len &&
	       g_array_index(replay->cuts, struct span, above).start < address + size;
}

static gboolean check_part(const struct segment_replay *replay, guint64 address, guint64 size,
			   GError **error)
{
	if (address % HUGE_BYTES == 0 && size % HUGE_BYTES == 0 && size > 0)
		return TRUE;
	return bad(replay, error,
		   "a part of an expandable segment at 0x%" G_GINT64_MODIFIER
		   "x of %" G_GUINT64_FORMAT " bytes: address and size must be multiples of 2 MiB",
		   address, size);
}

/* One handle for each step of the pool that it comes from: 20 MiB where the size is a multiple of
 * that, else 2 MiB. The first handle that the device has no memory for ends it, as it does an
 * allocator's attempt. */
static gboolean map_range(struct segment_replay *replay, guint64 address, guint64 size,
			  gboolean small, GError **error)
{
	gboolean large = !small && size % LARGE_BYTES == 0, lost = FALSE;
	if (!check_part(replay, address, size, error))
		return FALSE;
	for (guint64 at = address; at < address + size && !lost;) {
		guint64 step = large && (at - address) % LARGE_BYTES == 0 &&
					       !is_cut(replay, at, LARGE_BYTES)
				       ? LARGE_BYTES
				       : HUGE_BYTES;
		if (!map_chunk(replay, at, step, &lost, error))
			return FALSE;
		at += step;
	}
	return TRUE;
}

static gboolean unmap_chunk(struct segment_replay *replay, struct chunk *chunk, GError **error)
{
	allocation_table_remove(table_of(replay), ALLOCATION_MEMORY, chunk->address | MAPPED_KEY);
	aclError code = model_unmap(replay->calls, chunk->va);
	if (code != ACL_SUCCESS)
		return bad(replay, error, "aclrtUnmapMem answered %d: %s", code, model_message());
	code = model_release(replay->calls, chunk->handle);
	if (code != ACL_SUCCESS)
		return bad(replay, error, "aclrtFreePhysical answered %d: %s", code,
			   model_message());
	g_tree_remove(replay->chunks, &chunk->address);
	return TRUE;
}

/* No handle lies across an end of it: map_range() saw to that. */
static gboolean unmap_range(struct segment_replay *replay, guint64 address, guint64 size,
			    GError **error)
{
	guint64 end = address + size;
	if (!check_part(replay, address, size, error))
		return FALSE;
	for (;;) {
		GTreeNode *node = g_tree_lower_bound(replay->chunks, &address);
		struct chunk *chunk = node ? g_tree_node_value(node) : NULL;
		if (chunk == NULL || chunk->address >= end)
			return TRUE;
		if (!unmap_chunk(replay, chunk, error))
			return FALSE;
	}
}

/* ---- classic segments ---- */

static gboolean segment_alloc(struct segment_replay *replay, guint64 address, guint64 size,
			      GError **error)
{
	struct segment segment = { .address = address, .size = size };
	if (g_tree_lookup(replay->segments, &address))
		return bad(replay, error,
			   "the segment at 0x%" G_GINT64_MODIFIER "x is there already", address);
	aclError code =
		model_malloc(replay->calls, &segment.p, size, (int)replay->device->device, 21);
	if (code != ACL_SUCCESS)
		return refused(replay, model_call_name(MODEL_MALLOC), code, size, error);
	struct segment *kept = g_memdup2(&segment, sizeof segment);
	g_tree_insert(replay->segments, &kept->address, kept);
	note_memory(replay, address, memory_usage_pages(size), kept->p, FALSE);
	return TRUE;
}

static gboolean segment_free(struct segment_replay *replay, guint64 address, GError **error)
{
	struct segment *segment = g_tree_lookup(replay->segments, &address);
	if (segment == NULL)
		return replay->lost > 0 ||
		       bad(replay, error,
			   "no segment at 0x%" G_GINT64_MODIFIER "x is there to be freed", address);
	allocation_table_remove(table_of(replay), ALLOCATION_MEMORY, address);
	aclError code = model_free(replay->calls, segment->p, FALSE);
	g_tree_remove(replay->segments, &address);
	return code == ACL_SUCCESS ||
	       bad(replay, error, "aclrtFree answered %d: %s", code, model_message());
}

/* ---- the replay ---- */

struct segment_replay *segment_replay_open(struct replay_device *device)
{
	struct segment_replay *replay = g_new0(struct segment_replay, 1);
	replay->device = device;
	replay->calls = &device->setup;
	replay->areas = g_array_new(FALSE, FALSE, sizeof(struct area));
	replay->chunks = by_address_tree(NULL, g_free);
	replay->segments = by_address_tree(NULL, g_free);
	replay->cuts = spans_merged(&device->trace->cuts, 0);
	return replay;
}

gboolean segment_replay_start(struct segment_replay *replay, GError **error)
{
	const GArray *ranges = replay->device->trace->ranges;
	if (!reserve_areas(replay, error))
		return FALSE;
	for (guint i = 0; i < ranges->len; i++) {
		const struct trace_range *r = &g_array_index(ranges, struct trace_range, i);
		gboolean ok = r->size == 0 ? TRUE
			      : r->expandable
				      ? map_range(replay, r->address, r->size, r->small, error)
				      : segment_alloc(replay, r->address, r->size, error);
		if (!ok)
			return FALSE;
	}
	replay->calls = &replay->device->window;
	return TRUE;
}

static gboolean step(struct segment_replay *replay, const struct trace_event *e, GError **error)
{
	switch (e->action) {
	case TRACE_SEGMENT_ALLOC:
		return segment_alloc(replay, e->address, e->size, error);
	case TRACE_SEGMENT_FREE:
		return segment_free(replay, e->address, error);
	case TRACE_SEGMENT_MAP:
		return map_range(replay, e->address, e->size, FALSE, error);
	case TRACE_SEGMENT_UNMAP:
		return unmap_range(replay, e->address, e->size, error);
	default:
		return TRUE;
	}
}

gboolean segment_replay_step(struct segment_replay *replay, const struct trace_event *event,
			     guint64 line, GError **error)
{
	replay->event++;
	replay->line = line;
	replay->site = event->site;
	if (event->action == TRACE_SEGMENT_FREE || event->action == TRACE_SEGMENT_UNMAP)
		replay_note_peak(replay->device);
	/* what finds no memory is counted as the file has it, and noted before */
	gboolean ok = step(replay, event, error);
	memory_usage_step(&replay->device->usage, event);
	return ok;
}

static gboolean release_chunk(gpointer key, gpointer value, gpointer data)
{
	struct chunk *chunk = value;
	struct model_device unused = { 0 };
	(void)key;
	(void)data;
	model_unmap(&unused, chunk->va);
	model_release(&unused, chunk->handle);
	return FALSE;
}

static gboolean release_segment(gpointer key, gpointer value, gpointer data)
{
	struct segment *segment = value;
	struct model_device unused = { 0 };
	(void)key;
	(void)data;
	model_free(&unused, segment->p, FALSE);
	return FALSE;
}

static gconstpointer entry_at(GTree *tree, guint64 address)
{
	GTreeNode *node = by_address_node(tree, address);
	return node ? g_tree_node_value(node) : NULL;
}

guint64 segment_replay_find(const struct segment_replay *replay, guint64 address)
{
	const struct chunk *chunk = entry_at(replay->chunks, address);
	const struct segment *segment = entry_at(replay->segments, address);
	if (chunk && address - chunk->address < chunk->size)
		return (guintptr)chunk->va + (address - chunk->address);
	if (segment && address - segment->address < segment->size)
		return (guintptr)segment->p + (address - segment->address);
	return 0;
}

void segment_replay_close(struct segment_replay *replay)
{
	struct model_device unused = { 0 };

	replay_note_end(replay->device);
	g_tree_foreach(replay->chunks, release_chunk, NULL);
	g_tree_foreach(replay->segments, release_segment, NULL);
	for (guint i = 0; i < replay->areas->len; i++)
		model_unreserve(&unused, g_array_index(replay->areas, struct area, i).va);
	g_tree_destroy(replay->chunks);
	g_tree_destroy(replay->segments);
	g_array_unref(replay->areas);
	g_free(replay);
}
