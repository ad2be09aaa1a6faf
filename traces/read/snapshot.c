/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory snapshots of PyTorch and torch_npu: a pickled dict with `segments`, the state at the end,
 * and `device_traces`, the last events of each device. The state at the start is the state at the
 * end with the events undone, last first.
 */
#include "by-address.h"
#include "pickle.h"
#include "sites.h"
#include "trace.h"

#define DEVICE_MAX  (TRACE_DEVICE_LAST + 1)
#define KEYS_MAX    64                            /* of an event, block or segment */
#define BLOCK_UNIT  512                           /* the allocators' blocks are multiples */
#define ADDRESS_END (G_GUINT64_CONSTANT(1) << 56) /* of any device's addresses */

struct reader {
	struct trace *trace;
	gsize room; /* events, blocks and segments that the file can still hold: each takes some of
		       its bytes */
	GHashTable *stacks; /* struct pickle_list * -> site: a file names a stack many times */
	GError **error;
};

static gboolean bad(struct reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean bad(struct reader *r, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(r->error, TRACE_ERROR, TRACE_ERROR_FORMAT, "not a usable memory snapshot: %s",
		    text);
	return FALSE;
}

gboolean snapshot_recognise(const guint8 *bytes, gsize count)
{
	return count >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

static gboolean get_size(const struct pickle_value *dict, const char *key, guint64 *out)
{
	gint64 v;
	if (!pickle_get_int(dict, key, &v) || v < 0)
		return FALSE;
	*out = (guint64)v;
	return TRUE;
}

/* Whether a list's element is a dict that may be looked at. A pickle can name one object many
 * times: neither many large dicts nor many events may come out of a few bytes. */
static gboolean take_dict(struct reader *r, const struct pickle_value *v, const char *what,
			  gsize index)
{
	if (v->type != PICKLE_DICT)
		return bad(r, "%s %" G_GSIZE_FORMAT " is no dict", what, index);
	if (v->list->count / 2 > KEYS_MAX)
		return bad(r, "%s %" G_GSIZE_FORMAT " has more than %d keys", what, index,
			   KEYS_MAX);
	if (r->room == 0)
		return bad(r, "it says to hold more than its size allows: one object stands for "
			      "many events");
	r->room--;
	return TRUE;
}

static gboolean in_address_space(guint64 address, guint64 size)
{
	return address <= ADDRESS_END && size <= ADDRESS_END - address;
}

/* ---- call sites ---- */

static gboolean get_text(const struct pickle_value *dict, const char *key, const char **out,
			 gsize *length)
{
	const struct pickle_value *v = pickle_get(dict, key);

	if (v == NULL || v->type != PICKLE_STR)
		return FALSE;
	*out = v->string->text;
	*length = v->string->length;
	return TRUE;
}

static guint32 read_stack(struct reader *r, const struct pickle_list *list)
{
	g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(struct site_frame));

	for (gsize i = 0; i < list->count; i++) {
		const struct pickle_value *v = &list->items[i];
		struct site_frame f = { 0 };
		if (v->type != PICKLE_DICT || v->list->count / 2 > KEYS_MAX)
			continue;
		gboolean named = get_text(v, "name", &f.name, &f.name_length);
		if (!get_text(v, "filename", &f.file, &f.file_length) && !named)
			continue;
		if (!pickle_get_int(v, "line", &f.line))
			f.line = 0;
		g_array_append_val(frames, f);
	}
	if (frames->len == 0)
		return SITE_NONE;
	if (r->trace->sites == NULL)
		r->trace->sites = sites_new();
	return sites_add(r->trace->sites, (const struct site_frame *)(void *)frames->data,
			 frames->len);
}

/* The site of an event or a block. */
static guint32 read_site(struct reader *r, const struct pickle_value *of)
{
	const struct pickle_value *v = pickle_get(of, "frames");
	gpointer site;

	if (v == NULL || v->type != PICKLE_LIST || v->list->count == 0)
		return SITE_NONE;
	if (g_hash_table_lookup_extended(r->stacks, v->list, NULL, &site))
		return GPOINTER_TO_UINT(site);
	guint32 got = read_stack(r, v->list);
	g_hash_table_insert(r->stacks, v->list, GUINT_TO_POINTER(got));
	return got;
}

/* ---- events ---- */

static enum trace_action action_of(const struct pickle_value *name)
{
	for (int a = 0; a < TRACE_OTHER; a++) {
		if (pickle_is(name, trace_action_name(a)))
			return a;
	}
	return TRACE_OTHER;
}

static gboolean read_event(struct reader *r, struct trace_device *device,
			   const struct pickle_value *entry, gsize index)
{
	struct trace_event e = { 0 };
	gint64 n;

	if (!take_dict(r, entry, "event", index))
		return FALSE;
	const struct pickle_value *name = pickle_get(entry, "action");
	if (name == NULL || name->type != PICKLE_STR)
		return bad(r, "device_traces[%u][%" G_GSIZE_FORMAT "] has no action",
			   device->device, index);
	e.action = action_of(name);
	gboolean has_address =
		get_size(entry, e.action == TRACE_OOM ? "device_free" : "addr", &e.address);
	gboolean has_size = get_size(entry, "size", &e.size);
	if (e.action < TRACE_OOM && (!has_address || !has_size))
		return bad(r, "device_traces[%u][%" G_GSIZE_FORMAT "] (%s) has no valid %s",
			   device->device, index, trace_action_name(e.action),
			   has_address ? "size" : "addr");
	if (e.action < TRACE_OOM && !in_address_space(e.address, e.size))
		return bad(r,
			   "device_traces[%u][%" G_GSIZE_FORMAT
			   "] (%s) runs past the end of the address space",
			   device->device, index, trace_action_name(e.action));
	e.stream = pickle_get_int(entry, "stream", &n) ? n : 0;
	e.time_us = pickle_get_int(entry, "time_us", &n) ? n : 0;
	if (e.action == TRACE_ALLOC || e.action == TRACE_SEGMENT_ALLOC ||
	    e.action == TRACE_SEGMENT_MAP || e.action == TRACE_OOM)
		e.site = read_site(r, entry);
	if (e.action == TRACE_OTHER)
		trace_device_add_other(device, &e, name->string->text, name->string->length, TRUE);
	else
		trace_device_add(device, &e, TRUE);
	return TRUE;
}

static gboolean read_events(struct reader *r, const struct pickle_value *traces)
{
	if (traces == NULL || traces->type != PICKLE_LIST)
		return bad(r, "it has no list device_traces");
	if (traces->list->count > DEVICE_MAX)
		return bad(r, "it has %" G_GSIZE_FORMAT " devices, more than %d",
			   traces->list->count, DEVICE_MAX);
	for (gsize d = 0; d < traces->list->count; d++) {
		const struct pickle_value *list = &traces->list->items[d];
		if (list->type != PICKLE_LIST)
			return bad(r, "device_traces[%" G_GSIZE_FORMAT "] is no list", d);
		if (list->list->count == 0)
			continue;
		struct trace_device *device = trace_device(r->trace, (guint)d);
		for (gsize i = 0; i < list->list->count; i++) {
			if (!read_event(r, device, &list->list->items[i], i))
				return FALSE;
		}
		r->trace->events += device->events->len;
	}
	return TRUE;
}

/* ---- the state at the end ---- */

static gboolean read_blocks(struct reader *r, struct trace_device *device,
			    const struct pickle_value *segment, gsize index)
{
	const struct pickle_value *blocks = pickle_get(segment, "blocks");
	guint64 address = 0, requested;

	if (blocks == NULL || blocks->type != PICKLE_LIST)
		return bad(r, "segments[%" G_GSIZE_FORMAT "] has no list blocks", index);
	get_size(segment, "address", &address);
	for (gsize i = 0; i < blocks->list->count; i++) {
		const struct pickle_value *b = &blocks->list->items[i];
		guint64 size = 0;
		if (!take_dict(r, b, "block", i))
			return FALSE;
		/* older files have no address: blocks follow one another */
		get_size(b, "address", &address);
		if (!get_size(b, "size", &size) || !in_address_space(address, size))
			return bad(r,
				   "segments[%" G_GSIZE_FORMAT "].blocks[%" G_GSIZE_FORMAT
				   "] has no valid size",
				   index, i);
		if (!pickle_is(pickle_get(b, "state"), "inactive")) {
			struct trace_block block = { .address = address,
						     .size = size,
						     .site = read_site(r, b) };
			if (get_size(b, "requested_size", &requested) && requested <= size)
				block.size = requested;
			g_array_append_val(device->blocks, block);
		}
		address += size;
	}
	return TRUE;
}

static gboolean read_segment(struct reader *r, const struct pickle_value *s, gsize index)
{
	struct trace_range range = { 0 };
	gint64 id = 0, flag = 0, stream = 0;

	if (!take_dict(r, s, "segment", index))
		return FALSE;
	if (!get_size(s, "address", &range.address) || !get_size(s, "total_size", &range.size) ||
	    !in_address_space(range.address, range.size))
		return bad(r, "segments[%" G_GSIZE_FORMAT "] has no valid address and total_size",
			   index);
	if (pickle_get(s, "device") &&
	    (!pickle_get_int(s, "device", &id) || id < 0 || id >= DEVICE_MAX))
		return bad(r, "segments[%" G_GSIZE_FORMAT "] has no valid device", index);
	pickle_get_int(s, "is_expandable", &flag);
	pickle_get_int(s, "stream", &stream);
	range.expandable = flag != 0;
	range.small = pickle_is(pickle_get(s, "segment_type"), "small");
	range.stream = stream;
	struct trace_device *device = trace_device(r->trace, (guint)id);
	g_array_append_val(device->ranges, range);
	return read_blocks(r, device, s, index);
}

static gboolean read_segments(struct reader *r, const struct pickle_value *segments)
{
	if (segments == NULL || segments->type != PICKLE_LIST)
		return bad(r, "it has no list segments");
	for (gsize i = 0; i < segments->list->count; i++) {
		if (!read_segment(r, &segments->list->items[i], i))
			return FALSE;
	}
	return TRUE;
}

/* ---- back to the start: trees by address, events undone ---- */

/* The range of the tree that holds `address`, or NULL. */
static struct trace_range *range_at(GTree *tree, guint64 address)
{
	GTreeNode *node = by_address_node(tree, address);
	struct trace_range *r = node ? g_tree_node_value(node) : NULL;
	return r && address - r->address < r->size ? r : NULL;
}

static void range_insert(GTree *tree, struct trace_range range)
{
	struct trace_range *r = g_memdup2(&range, sizeof range);
	g_tree_replace(tree, &r->address, r);
}

/* Takes [address, address + size) out of the tree, cutting what sticks out on either side. */
static void range_remove(GTree *tree, guint64 address, guint64 size)
{
	guint64 at = address, end = address + size;
	while (at < end) {
		struct trace_range *r = range_at(tree, at);
		if (r == NULL) {
			guint64 key = at;
			GTreeNode *next = g_tree_upper_bound(tree, &key);
			if (next == NULL)
				return;
			at = ((struct trace_range *)g_tree_node_value(next))->address;
			continue;
		}
		struct trace_range old = *r;
		g_tree_remove(tree, &old.address);
		struct trace_range part = old;
		part.size = at - old.address;
		if (part.size > 0)
			range_insert(tree, part);
		guint64 old_end = old.address + old.size;
		part.address = MIN(end, old_end);
		part.size = old_end - part.address;
		if (part.size > 0)
			range_insert(tree, part);
		at = old_end;
	}
}

static void undo(const struct trace_event *e, GTree *ranges, GTree *blocks)
{
	struct trace_block *block;
	switch (e->action) {
	case TRACE_SEGMENT_ALLOC:
	case TRACE_SEGMENT_MAP:
		range_remove(ranges, e->address, e->size);
		break;
	case TRACE_SEGMENT_FREE:
	case TRACE_SEGMENT_UNMAP:
		range_insert(ranges,
			     (struct trace_range){ .address = e->address,
						   .size = e->size,
						   .stream = e->stream,
						   .expandable = e->action == TRACE_SEGMENT_UNMAP,
						   .small = e->size % (20u << 20) != 0 });
		break;
	case TRACE_ALLOC:
		g_tree_remove(blocks, &e->address);
		break;
	case TRACE_FREE_COMPLETED:
		block = g_new0(struct trace_block, 1);
		*block = (struct trace_block){ .address = e->address, .size = e->size };
		g_tree_replace(blocks, &block->address, block);
		break;
	default:
		break;
	}
}

static gboolean collect_range(gpointer key, gpointer value, gpointer array)
{
	(void)key;
	g_array_append_vals(array, value, 1);
	return FALSE;
}

static void note_maps(struct trace_device *device)
{
	for (guint i = 0; i < device->ranges->len; i++) {
		const struct trace_range *r = &g_array_index(device->ranges, struct trace_range, i);
		if (r->expandable)
			trace_device_note_map(device, r->address, r->size);
	}
}

static void rewind_device(struct trace_device *device)
{
	GTree *ranges = by_address_tree(NULL, g_free);
	GTree *blocks = by_address_tree(NULL, g_free);

	for (guint i = 0; i < device->ranges->len; i++)
		range_insert(ranges, g_array_index(device->ranges, struct trace_range, i));
	for (guint i = 0; i < device->blocks->len; i++) {
		struct trace_block *b =
			g_memdup2(&g_array_index(device->blocks, struct trace_block, i), sizeof *b);
		g_tree_replace(blocks, &b->address, b);
	}
	for (guint i = device->events->len; i > 0; i--)
		undo(&g_array_index(device->events, struct trace_event, i - 1), ranges, blocks);
	g_array_set_size(device->ranges, 0);
	g_array_set_size(device->blocks, 0);
	g_tree_foreach(ranges, collect_range, device->ranges);
	g_tree_foreach(blocks, collect_range, device->blocks);
	g_tree_destroy(ranges);
	g_tree_destroy(blocks);
	note_maps(device);
}

struct trace *snapshot_read(const guint8 *bytes, gsize count, GError **error)
{
	struct pickle *pickle = pickle_read(bytes, count, error);
	if (pickle == NULL)
		return NULL;
	struct trace *trace = trace_new("memory snapshot of PyTorch or torch_npu");
	struct reader r = { .trace = trace,
			    .room = count,
			    .stacks = g_hash_table_new(NULL, NULL),
			    .error = error };
	const struct pickle_value *root = pickle_root(pickle);
	gboolean ok = root->type == PICKLE_DICT || bad(&r, "it is no dict");
	ok = ok && read_events(&r, pickle_get(root, "device_traces")) &&
	     read_segments(&r, pickle_get(root, "segments"));
	g_hash_table_unref(r.stacks);
	pickle_free(pickle);
	if (!ok) {
		trace_free(trace);
		return NULL;
	}
	for (guint i = 0; i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		device->block_unit = BLOCK_UNIT;
		rewind_device(device);
	}
	return trace;
}
