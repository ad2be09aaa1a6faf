/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator's segments made again: a segment is one classic allocation; a part of an expandable
 * segment is physical handles mapped into a reservation. Addresses of the file are keys; the model
 * gives its own.
 */
#include "replay.h"

#define MIB         (G_GUINT64_CONSTANT(1) << 20)
#define GIB         (G_GUINT64_CONSTANT(1) << 30)
#define HUGE_BYTES  (2 * MIB)
#define LARGE_BYTES (20 * MIB)  /* what the allocators map at a time in their large pool */
#define RESERVE_MAX (128 * GIB) /* one reservation of the driver */
#define MAPPED_KEY  (G_GUINT64_CONSTANT(1) << 63) /* of the ledger: beside the address */

/* A stretch of the file's addresses that one reservation of the model stands for. */
struct area {
	guint64 start, end; /* of the file, 1 GiB aligned */
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
struct lane {
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

static gboolean bad(const struct lane *lane, GError **error, const char *format, ...)
	G_GNUC_PRINTF(3, 4);
static gboolean bad(const struct lane *lane, GError **error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	if (lane->line)
		g_set_error(error, REPLAY_ERROR, 0, "line %" G_GUINT64_FORMAT ": %s", lane->line,
			    text);
	else if (lane->event)
		g_set_error(error, REPLAY_ERROR, 0, "device %u, event %" G_GUINT64_FORMAT ": %s",
			    lane->device->device, lane->event, text);
	else
		g_set_error(error, REPLAY_ERROR, 0, "device %u, what was live at the start: %s",
			    lane->device->device, text);
	return FALSE;
}

/* A call that the model refused. Out of memory is an answer, anything else the end. */
static gboolean refused(struct lane *lane, const char *call, aclError code, guint64 size,
			GError **error)
{
	if (code != ACL_ERROR_RT_MEMORY_ALLOCATION)
		return bad(lane, error, "%s answered %d: %s", call, code, model_message());
	lane->lost++;
	replay_note_failure(lane->device, lane->event, lane->line, size, lane->site);
	return TRUE;
}

static struct ledger *ledger_of(const struct lane *lane)
{
	return &lane->device->account.ledger;
}

static void note_memory(const struct lane *lane, guint64 address, guint64 size, const void *va,
			gboolean mapped)
{
	const struct ledger_item item = { .key = address | (mapped ? MAPPED_KEY : 0),
					  .address = address,
					  .size = size,
					  .va = (guintptr)va,
					  .mapped = mapped };

	ledger_add(ledger_of(lane), LEDGER_MEMORY, &item);
}

/* ---- reservations for the file's expandable addresses ---- */

static gint by_address(gconstpointer a, gconstpointer b, gpointer unused)
{
	guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;
	(void)unused;
	return x < y ? -1 : x > y;
}

static gboolean add_area(struct lane *lane, guint64 start, guint64 end, GError **error)
{
	struct area area = { .start = start, .end = end };
	void *va;
	aclError code = model_reserve(lane->calls, &va, end - start, 0, NULL, 1);
	if (code != ACL_SUCCESS)
		return bad(lane, error,
			   "aclrtReserveMemAddress of %" G_GUINT64_FORMAT " bytes answered %d: %s",
			   end - start, code, model_message());
	area.va = va;
	g_array_append_val(lane->areas, area);
	const struct ledger_item item = { .key = start, .address = start, .size = end - start };
	ledger_add(ledger_of(lane), LEDGER_RESERVED, &item);
	return TRUE;
}

/* Where addresses go on for longer than a reservation can be, areas overlap by 1 GiB: each handle
 * lies in one as a whole. */
static gboolean reserve_areas(struct lane *lane, GError **error)
{
	const GArray *spans = spans_merged(&lane->device->trace->maps, GIB);
	for (guint i = 0; i < spans->len; i++) {
		const struct span *span = &g_array_index(spans, struct span, i);
		guint64 start = span->start;
		for (; span->end - start > RESERVE_MAX; start += RESERVE_MAX - GIB) {
			if (!add_area(lane, start, start + RESERVE_MAX, error))
				return FALSE;
		}
		if (!add_area(lane, start, span->end, error))
			return FALSE;
	}
	return TRUE;
}

static void *area_va(const struct lane *lane, guint64 address, guint64 size)
{
	guint low = 0, high = lane->areas->len;
	while (low < high) { /* the first area that begins above the address */
		guint middle = low + (high - low) / 2;
		if (g_array_index(lane->areas, struct area, middle).start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (guint i = low; i > 0 && i + 2 > low; i--) {
		const struct area *area = &g_array_index(lane->areas, struct area, i - 1);
		if (address + size <= area->end)
			return area->va + (address - area->start);
	}
	return NULL;
}

/* ---- parts of expandable segments ---- */

/* Sets *lost where the model has no memory left. */
static gboolean map_chunk(struct lane *lane, guint64 address, guint64 size, gboolean *lost,
			  GError **error)
{
	struct chunk chunk = { .address = address,
			       .size = size,
			       .va = area_va(lane, address, size) };

	if (chunk.va == NULL)
		return bad(lane, error, "0x%" G_GINT64_MODIFIER "x lies in no reservation",
			   address);
	if (g_tree_lookup(lane->chunks, &address))
		return bad(lane, error, "0x%" G_GINT64_MODIFIER "x is mapped already", address);
	aclError code =
		model_create(lane->calls, &chunk.handle, size, (int)lane->device->device, 21);
	*lost = code != ACL_SUCCESS;
	if (*lost)
		return refused(lane, "aclrtMallocPhysical", code, size, error);
	code = model_map(lane->calls, chunk.va, size, chunk.handle);
	*lost = code != ACL_SUCCESS;
	if (*lost) {
		struct model_device unused = { 0 };
		gboolean go_on = refused(lane, "aclrtMapMem", code, size, error);
		model_release(&unused, chunk.handle);
		return go_on;
	}
	struct chunk *kept = g_memdup2(&chunk, sizeof chunk);
	g_tree_insert(lane->chunks, &kept->address, kept);
	note_memory(lane, address, size, kept->va, TRUE);
	return TRUE;
}

/* Whether the file unmaps a part of [address, address + size) and not the rest. */
static gboolean is_cut(const struct lane *lane, guint64 address, guint64 size)
{
	guint low = 0, high = lane->cuts->len;
	while (low < high) { /* the first cut above the address */
		guint middle = low + (high - low) / 2;
		if (g_array_index(lane->cuts, struct span, middle).start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lane->cuts->len &&
	       g_array_index(lane->cuts, struct span, low).start < address + size;
}

static gboolean check_part(const struct lane *lane, guint64 address, guint64 size, GError **error)
{
	if (address % HUGE_BYTES == 0 && size % HUGE_BYTES == 0 && size > 0)
		return TRUE;
	return bad(lane, error,
		   "a part of an expandable segment at 0x%" G_GINT64_MODIFIER
		   "x of %" G_GUINT64_FORMAT " bytes: address and size must be multiples of 2 MiB",
		   address, size);
}

/* One handle for each step of the pool that it comes from: 20 MiB where the size is a multiple of
 * that, else 2 MiB. The first handle that the device has no memory for ends it, as it does an
 * allocator's attempt. */
static gboolean map_range(struct lane *lane, guint64 address, guint64 size, gboolean small,
			  GError **error)
{
	gboolean large = !small && size % LARGE_BYTES == 0, lost = FALSE;
	if (!check_part(lane, address, size, error))
		return FALSE;
	for (guint64 at = address; at < address + size && !lost;) {
		guint64 step =
			large && (at - address) % LARGE_BYTES == 0 && !is_cut(lane, at, LARGE_BYTES)
				? LARGE_BYTES
				: HUGE_BYTES;
		if (!map_chunk(lane, at, step, &lost, error))
			return FALSE;
		at += step;
	}
	return TRUE;
}

static gboolean unmap_chunk(struct lane *lane, struct chunk *chunk, GError **error)
{
	ledger_remove(ledger_of(lane), LEDGER_MEMORY, chunk->address | MAPPED_KEY);
	aclError code = model_unmap(lane->calls, chunk->va);
	if (code != ACL_SUCCESS)
		return bad(lane, error, "aclrtUnmapMem answered %d: %s", code, model_message());
	code = model_release(lane->calls, chunk->handle);
	if (code != ACL_SUCCESS)
		return bad(lane, error, "aclrtFreePhysical answered %d: %s", code, model_message());
	g_tree_remove(lane->chunks, &chunk->address);
	return TRUE;
}

/* No handle lies across an end of it: map_range() saw to that. */
static gboolean unmap_range(struct lane *lane, guint64 address, guint64 size, GError **error)
{
	guint64 end = address + size;
	if (!check_part(lane, address, size, error))
		return FALSE;
	for (;;) {
		GTreeNode *node = g_tree_lower_bound(lane->chunks, &address);
		struct chunk *chunk = node ? g_tree_node_value(node) : NULL;
		if (chunk == NULL || chunk->address >= end)
			return TRUE;
		if (!unmap_chunk(lane, chunk, error))
			return FALSE;
	}
}

/* ---- classic segments ---- */

static gboolean segment_alloc(struct lane *lane, guint64 address, guint64 size, GError **error)
{
	struct segment segment = { .address = address, .size = size };
	if (g_tree_lookup(lane->segments, &address))
		return bad(lane, error, "the segment at 0x%" G_GINT64_MODIFIER "x is there already",
			   address);
	aclError code = model_malloc(lane->calls, &segment.p, size, (int)lane->device->device, 21);
	if (code != ACL_SUCCESS)
		return refused(lane, model_call_name(MODEL_MALLOC), code, size, error);
	struct segment *kept = g_memdup2(&segment, sizeof segment);
	g_tree_insert(lane->segments, &kept->address, kept);
	note_memory(lane, address, account_pages(size), kept->p, FALSE);
	return TRUE;
}

static gboolean segment_free(struct lane *lane, guint64 address, GError **error)
{
	struct segment *segment = g_tree_lookup(lane->segments, &address);
	if (segment == NULL)
		return lane->lost > 0 ||
		       bad(lane, error,
			   "no segment at 0x%" G_GINT64_MODIFIER "x is there to be freed", address);
	ledger_remove(ledger_of(lane), LEDGER_MEMORY, address);
	aclError code = model_free(lane->calls, segment->p, FALSE);
	g_tree_remove(lane->segments, &address);
	return code == ACL_SUCCESS ||
	       bad(lane, error, "aclrtFree answered %d: %s", code, model_message());
}

/* ---- the lane ---- */

struct lane *lane_open(struct replay_device *device)
{
	struct lane *lane = g_new0(struct lane, 1);
	lane->device = device;
	lane->calls = &device->setup;
	lane->areas = g_array_new(FALSE, FALSE, sizeof(struct area));
	lane->chunks = g_tree_new_full(by_address, NULL, NULL, g_free);
	lane->segments = g_tree_new_full(by_address, NULL, NULL, g_free);
	lane->cuts = spans_merged(&device->trace->cuts, 0);
	return lane;
}

gboolean lane_start(struct lane *lane, GError **error)
{
	const GArray *ranges = lane->device->trace->ranges;
	if (!reserve_areas(lane, error))
		return FALSE;
	for (guint i = 0; i < ranges->len; i++) {
		const struct trace_range *r = &g_array_index(ranges, struct trace_range, i);
		gboolean ok = r->size == 0 ? TRUE
			      : r->expandable
				      ? map_range(lane, r->address, r->size, r->small, error)
				      : segment_alloc(lane, r->address, r->size, error);
		if (!ok)
			return FALSE;
	}
	lane->calls = &lane->device->window;
	return TRUE;
}

static gboolean step(struct lane *lane, const struct trace_event *e, GError **error)
{
	switch (e->action) {
	case TRACE_SEGMENT_ALLOC:
		return segment_alloc(lane, e->address, e->size, error);
	case TRACE_SEGMENT_FREE:
		return segment_free(lane, e->address, error);
	case TRACE_SEGMENT_MAP:
		return map_range(lane, e->address, e->size, FALSE, error);
	case TRACE_SEGMENT_UNMAP:
		return unmap_range(lane, e->address, e->size, error);
	default:
		return TRUE;
	}
}

gboolean lane_step(struct lane *lane, const struct trace_event *event, guint64 line, GError **error)
{
	lane->event++;
	lane->line = line;
	lane->site = event->site;
	if (event->action == TRACE_SEGMENT_FREE || event->action == TRACE_SEGMENT_UNMAP)
		replay_note_peak(lane->device);
	/* what finds no memory is counted as the file has it, and noted before */
	gboolean ok = step(lane, event, error);
	account_step(&lane->device->account, event);
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

/* The last entry of the tree that begins at or below the address. */
static gconstpointer entry_at(GTree *tree, guint64 address)
{
	GTreeNode *node = g_tree_upper_bound(tree, &address);
	node = node ? g_tree_node_previous(node) : g_tree_node_last(tree);
	return node ? g_tree_node_value(node) : NULL;
}

guint64 lane_find(const struct lane *lane, guint64 address)
{
	const struct chunk *chunk = entry_at(lane->chunks, address);
	const struct segment *segment = entry_at(lane->segments, address);
	if (chunk && address - chunk->address < chunk->size)
		return (guintptr)chunk->va + (address - chunk->address);
	if (segment && address - segment->address < segment->size)
		return (guintptr)segment->p + (address - segment->address);
	return 0;
}

void lane_close(struct lane *lane)
{
	struct model_device unused = { 0 };

	replay_note_end(lane->device);
	g_tree_foreach(lane->chunks, release_chunk, NULL);
	g_tree_foreach(lane->segments, release_segment, NULL);
	for (guint i = 0; i < lane->areas->len; i++)
		model_unreserve(&unused, g_array_index(lane->areas, struct area, i).va);
	g_tree_destroy(lane->chunks);
	g_tree_destroy(lane->segments);
	g_array_unref(lane->areas);
	g_free(lane);
}
