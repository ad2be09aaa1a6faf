/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads memory snapshots of PyTorch and torch_npu, pickled or as JSON: a dict with `segments`, the
 * state at the end, and `device_traces`, the last events of each device; or the list of segments
 * alone. The state at the start is the state at the end with the events undone, last first.
 */
#include "readers.h"

#define DEVICE_MAX (TRACE_DEVICE_LAST + 1)
#define KEYS_MAX   64   /* of an event, block or segment */
#define BLOCK_UNIT 512  /* the allocators' blocks are multiples */
#define TEXT_MAX   4096 /* bytes of a value, or of a text in one, that are kept */
#define ITEM_BYTES 192  /* about what is kept of an event, a block or a segment */

/* A block that was there. */
struct there {
	guint64 address;
	guint32 device, next;
	struct trace_row row;
};
struct reader {
	struct trace *trace;
	/* What was there, by address: at the end, until events are undone. */
	GTree *segments[DEVICE_MAX];
	struct int_map *blocks; /* of struct there */
	gsize room; /* events, blocks and segments that the file can still hold: each takes some of
		       its bytes */
	GHashTable *stacks; /* list of a stack -> site: a file names a stack many times */
	GError **error;
};

#define bad(r, ...)                                         \
	refuse((r)->error, TRACE_ERROR, TRACE_ERROR_FORMAT, \
	       "not a usable memory snapshot: " __VA_ARGS__)

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
		return bad(r, "%s %zu is no dict", what, index);
	if (v->list->len / 2 > KEYS_MAX)
		return bad(r, "%s %zu has more than %d keys", what, index, KEYS_MAX);
	if (r->room == 0)
		return bad(r, "it says to hold more than its size allows: one object stands for "
			      "many events");
	r->room--;
	return memory_limit_ask(ITEM_BYTES, r->error, "%s %zu", what, index);
}

static gboolean in_address_space(guint64 address, guint64 size)
{
	return address <= READERS_ADDRESS_LAST + 1 && size <= READERS_ADDRESS_LAST + 1 - address;
}

/* NULL: it is not there, or no text. */
static const struct pickle_value *get_text(const struct pickle_value *dict, const char *key)
{
	const struct pickle_value *v = pickle_get(dict, key);

	return v && v->type == PICKLE_STR ? v : NULL;
}

static guint32 read_stack(struct reader *r, const struct pickle_value *list)
{
	g_autoptr(GString) frames = g_string_new(NULL);

	for (guint i = 0; i < MIN(list->list->len, SITE_FRAMES_READ); i++) {
		const struct pickle_value *v = pickle_item(list, i);
		gint64 line = 0;
		if (v->type != PICKLE_DICT || v->list->len / 2 > KEYS_MAX)
			continue;
		const struct pickle_value *name = get_text(v, "name");
		const struct pickle_value *file = get_text(v, "filename");
		if (name == NULL && file == NULL)
			continue;
		pickle_get_int(v, "line", &line);
		site_frame_add(frames, name ? name->text : NULL, name ? name->length : 0,
			       file ? file->text : NULL, file ? file->length : 0, line);
	}
	return frames->len > 0 ? sites_add(trace_sites(r->trace), frames->str) : SITE_NONE;
}

/* The site of an event or a block. */
static guint32 read_site(struct reader *r, const struct pickle_value *of)
{
	const struct pickle_value *v = pickle_get(of, "frames");
	gpointer site;

	if (v == NULL || v->type != PICKLE_LIST || v->list->len == 0)
		return SITE_NONE;
	if (g_hash_table_lookup_extended(r->stacks, v->list, NULL, &site))
		return GPOINTER_TO_UINT(site);
	guint32 got = read_stack(r, v);
	g_hash_table_insert(r->stacks, v->list, GUINT_TO_POINTER(got));
	return got;
}

/* A value as text; what is in a list or a dict in it too, until it is too long. */
static void put_value(GString *out, const struct pickle_value *v, guint depth)
{
	gboolean dict = v->type == PICKLE_DICT, list = dict || v->type == PICKLE_LIST;

	if (v->type == PICKLE_STR)
		g_string_append_len(out, v->text, MIN(v->length, TEXT_MAX));
	else if (v->type == PICKLE_BOOL)
		g_string_append(out, v->integer ? "True" : "False");
	else if (v->type == PICKLE_INT)
		g_string_append_printf(out, "%" G_GINT64_FORMAT, v->integer);
	else if (v->type == PICKLE_FLOAT)
		g_string_append_printf(out, "%g", v->real);
	for (guint i = 0; list && depth < 2 && out->len < TEXT_MAX && i < v->list->len; i++) {
		g_string_append(out, dict && i % 2 ? ": " : i == 0 ? "" : depth ? ", " : "\n");
		put_value(out, pickle_item(v, i), depth + 1);
	}
}

/* The same as a text of its own, NULL for none; `depth`: 0, or 1 for a list in one line. */
static char *value_text(const struct pickle_value *v, guint depth)
{
	if (v == NULL)
		return NULL;
	g_autoptr(GString) text = g_string_new(NULL);
	put_value(text, v, depth);
	g_string_truncate(text, MIN(text->len, TEXT_MAX));
	return g_utf8_make_valid(text->str, (gssize)text->len);
}

/* What else an event tells: trace_row.more. */
static gboolean read_more(struct reader *r, const struct pickle_value *entry, guint32 *out)
{
	static const char *const keys[] = { "user_metadata", "compile_context", "forward_frames" };
	g_autoptr(GString) text = NULL;

	for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
		g_autofree char *value = value_text(pickle_get(entry, keys[i]), 0);
		text = value && text == NULL ? g_string_new(NULL) : text;
		if (value && *value && strcmp(value, "N/A") != 0)
			g_string_append_printf(text, "%s%s: %s", text->len ? "\n" : "", keys[i],
					       value);
	}
	if (text == NULL || text->len == 0)
		return TRUE;
	*out = trace_note(r->trace, text->str) + 1;
	return memory_limit_ask(text->len, r->error, "what its events tell");
}

static gboolean read_event(struct reader *r, guint device, const struct pickle_value *entry,
			   gsize index)
{
	struct trace_row e = { .device = (guint16)device };

	if (!take_dict(r, entry, "event", index))
		return FALSE;
	const struct pickle_value *name = get_text(entry, "action");
	if (name == NULL)
		return bad(r, "device_traces[%u][%zu] has no action", device, index);
	guint a = 0;
	while (a < TRACE_ACTIONS && !pickle_is(name, trace_actions[a].name))
		a++;
	e.verb = a < TRACE_ACTIONS ? (guint8)trace_actions[a].verb : NPU_TRACE_NOTE;
	gboolean has_address =
		get_size(entry, e.verb == NPU_TRACE_OOM ? "device_free" : "addr", &e.address);
	gboolean has_size = get_size(entry, "size", &e.size);
	if (e.verb != NPU_TRACE_OOM && e.verb != NPU_TRACE_NOTE) {
		const char *action = trace_actions[a].name;
		if (!has_address || !has_size)
			return bad(r, "device_traces[%u][%zu] (%s) has no valid %s", device, index,
				   action, has_address ? "size" : "addr");
		if (!in_address_space(e.address, e.size))
			return bad(r,
				   "device_traces[%u][%zu] (%s) runs past the end of the address "
				   "space",
				   device, index, action);
	}
	pickle_get_int(entry, "stream", &e.stream);
	pickle_get_int(entry, "time_us", &e.time_us);
	if (!read_more(r, entry, &e.more))
		return FALSE;
	if (e.verb != NPU_TRACE_NOTE) {
		e.text = read_site(r, entry);
	} else {
		g_autofree char *note = g_strndup(name->text, MIN(name->length, SITE_TEXT_MAX));
		e.text = trace_note(r->trace, note);
	}
	return trace_add_row(r->trace, &e, r->error);
}

static gboolean read_events(struct reader *r, const struct pickle_value *traces)
{
	if (traces == NULL)
		return TRUE;
	if (traces->type != PICKLE_LIST)
		return bad(r, "device_traces is no list");
	if (traces->list->len > DEVICE_MAX)
		return bad(r, "it has %u devices, more than %d", traces->list->len, DEVICE_MAX);
	for (gsize d = 0; d < traces->list->len; d++) {
		const struct pickle_value *list = pickle_item(traces, d);
		if (list->type != PICKLE_LIST)
			return bad(r, "device_traces[%zu] is no list", d);
		for (gsize i = 0; i < list->list->len; i++) {
			if (!read_event(r, (guint)d, pickle_item(list, i), i))
				return FALSE;
		}
	}
	return TRUE;
}

/* ---- the state at the end ---- */

static void put_there(struct reader *r, const struct trace_row *row)
{
	if (row->verb == NPU_TRACE_ALLOC)
		((struct there *)int_map_add(r->blocks, row->address, row->device))->row = *row;
	else
		by_address_put(r->segments[row->device], row, sizeof *row);
}

static gboolean read_blocks(struct reader *r, guint16 device, const struct pickle_value *segment,
			    gsize index)
{
	const struct pickle_value *blocks = pickle_get(segment, "blocks");
	guint64 address = 0, requested;

	if (blocks == NULL || blocks->type != PICKLE_LIST)
		return bad(r, "segments[%zu] has no list blocks", index);
	get_size(segment, "address", &address);
	for (gsize i = 0; i < blocks->list->len; i++) {
		const struct pickle_value *b = pickle_item(blocks, i);
		guint64 size = 0;
		if (!take_dict(r, b, "block", i))
			return FALSE;
		/* older files have no address: blocks follow one another */
		get_size(b, "address", &address);
		if (!get_size(b, "size", &size) || !in_address_space(address, size))
			return bad(r, "segments[%zu].blocks[%zu] has no valid size", index, i);
		if (!pickle_is(pickle_get(b, "state"), "inactive")) {
			struct trace_row block = { .address = address,
						   .size = size,
						   .text = read_site(r, b),
						   .device = device,
						   .start = TRUE,
						   .verb = NPU_TRACE_ALLOC };
			if (get_size(b, "requested_size", &requested) && requested <= size)
				block.size = requested;
			block.over = (guint32)MIN(size - block.size, G_MAXUINT32);
			put_there(r, &block);
		}
		address += size;
	}
	return TRUE;
}

static gboolean read_segment(struct reader *r, const struct pickle_value *s, gsize index)
{
	struct trace_row segment = { .verb = NPU_TRACE_SEGMENT_ALLOC, .start = TRUE };
	gint64 id = 0, flag = 0;

	if (!take_dict(r, s, "segment", index))
		return FALSE;
	if (!get_size(s, "address", &segment.address) ||
	    !get_size(s, "total_size", &segment.size) ||
	    !in_address_space(segment.address, segment.size))
		return bad(r, "segments[%zu] has no valid address and total_size", index);
	if (pickle_get(s, "device") &&
	    (!pickle_get_int(s, "device", &id) || id < 0 || id >= DEVICE_MAX))
		return bad(r, "segments[%zu] has no valid device", index);
	pickle_get_int(s, "is_expandable", &flag);
	pickle_get_int(s, "stream", &segment.stream);
	segment.device = (guint16)id;
	segment.small = pickle_is(pickle_get(s, "segment_type"), "small");
	segment.text = read_site(r, s);
	g_autofree char *pool = value_text(pickle_get(s, "segment_pool_id"), 1);
	if (pool && strcmp(pool, "0, 0") != 0)
		segment.over = trace_note(r->trace, pool) + 1;
	if (flag)
		segment.verb = NPU_TRACE_SEGMENT_MAP;
	trace_device(r->trace, (guint)id);
	put_there(r, &segment);
	return read_blocks(r, segment.device, s, index);
}

/* ---- back to the start: events undone ---- */

/* Takes [address, address + size) out of the tree, and cuts what sticks out. Returns its pool. */
static guint32 remove_range(GTree *tree, guint64 address, guint64 size)
{
	GTreeNode *node;
	guint32 pool = 0;

	while (size > 0 && (node = by_address_node(tree, address + size - 1))) {
		struct trace_row left = *(const struct trace_row *)g_tree_node_value(node);
		struct trace_row right = left;
		guint64 end = left.address + left.size;
		if (end <= address)
			break;
		pool = left.over;
		g_tree_remove(tree, &right.address);
		left.size = address - MIN(left.address, address);
		if (left.size > 0)
			by_address_put(tree, &left, sizeof left);
		right.address = address + size;
		right.size = end - MIN(end, right.address);
		if (right.size > 0)
			by_address_put(tree, &right, sizeof right);
	}
	return pool;
}

/* What the state told of a block or a segment, its event has from now on. */
static void undo(struct reader *r, struct trace_row *e)
{
	struct trace_row gone = {
		.address = e->address, .size = e->size, .device = e->device, .start = TRUE
	};
	struct there *block;

	switch (e->verb) {
	case NPU_TRACE_SEGMENT_ALLOC:
	case NPU_TRACE_SEGMENT_MAP:
		e->over = remove_range(r->segments[e->device], e->address, e->size);
		break;
	case NPU_TRACE_SEGMENT_FREE:
	case NPU_TRACE_SEGMENT_UNMAP:
		gone.verb = e->verb == NPU_TRACE_SEGMENT_FREE ? NPU_TRACE_SEGMENT_ALLOC
							      : NPU_TRACE_SEGMENT_MAP;
		gone.stream = e->stream;
		gone.small = e->size % (20u << 20) != 0;
		put_there(r, &gone);
		break;
	case NPU_TRACE_ALLOC:
		block = int_map_find(r->blocks, e->address, e->device);
		e->over = block ? block->row.over : 0;
		if (block)
			int_map_remove(r->blocks, block);
		break;
	case NPU_TRACE_FREE:
		gone.verb = NPU_TRACE_ALLOC;
		put_there(r, &gone);
		break;
	default:
		break;
	}
}

static gboolean find_start(struct reader *r)
{
	struct row_list *rows = &r->trace->rows;
	const struct there *block = NULL;
	gboolean ok = TRUE;

	for (guint64 left = rows->count; ok && left > 0; left--) {
		undo(r, row_list_at(rows, left - 1));
		ok = memory_limit_ask(ITEM_BYTES, r->error,
				      "what was live before event " U64 " of device_traces", left);
	}
	for (guint d = 0; d < DEVICE_MAX; d++) {
		GTreeNode *at = g_tree_node_first(r->segments[d]);
		for (; ok && at; at = g_tree_node_next(at))
			ok = trace_add_row(r->trace, g_tree_node_value(at), r->error);
	}
	while (ok && (block = int_map_next(r->blocks, block)))
		ok = trace_add_row(r->trace, &block->row, r->error);
	return ok;
}

static gboolean read_pickle(struct reader *r, const struct pickle_value *root)
{
	/* what memory_snapshot() gives is the list alone */
	const struct pickle_value *segments =
		root->type == PICKLE_LIST ? root : pickle_get(root, "segments");

	if (root->type != PICKLE_DICT && root->type != PICKLE_LIST)
		return bad(r, "it is no dict and no list");
	if (!read_events(r, pickle_get(root, "device_traces")))
		return FALSE;
	if (segments == NULL || segments->type != PICKLE_LIST)
		return bad(r, "it has no list segments");
	for (gsize i = 0; i < segments->list->len; i++) {
		if (!read_segment(r, pickle_item(segments, i), i))
			return FALSE;
	}
	if (!find_start(r))
		return FALSE;
	r->trace->settings = value_text(pickle_get(root, "allocator_settings"), 0);
	r->trace->block_unit = BLOCK_UNIT;
	if (r->trace->events == 0 && r->trace->starts > 0)
		r->trace->about = g_strdup(
			"it has no history: torch.cuda.memory._record_memory_history() was not "
			"on before the work, so what was live when it was taken is all it tells");
	return TRUE;
}

gboolean snapshot_read(struct trace *trace, struct input *input, GError **error)
{
	struct reader r = { .trace = trace,
			    .blocks = int_map_new(sizeof(struct there), NULL),
			    .stacks = g_hash_table_new(NULL, NULL),
			    .error = error };
	for (guint d = 0; d < DEVICE_MAX; d++)
		r.segments[d] = by_address_tree();
	struct pickle *pickle = pickle_read_input(input, &r.room, error);
	gboolean ok = pickle && read_pickle(&r, pickle_root(pickle));

	pickle_free(pickle);
	for (guint d = 0; d < DEVICE_MAX; d++)
		g_tree_destroy(r.segments[d]);
	int_map_free(r.blocks);
	g_hash_table_unref(r.stacks);
	return ok;
}
