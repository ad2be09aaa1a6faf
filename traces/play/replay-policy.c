/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks by the file's addresses on one side, the model's memory on the other, the policy between
 * them.
 */
#include "replay-policy.h"

#include "policy/cache.h"
#include "read/int-map.h"
#include "format/units.h"

/* A block of the history. */
struct held {
	guint64 address;           /* of the file; first: the table's key */
	struct cache_block *block; /* of the cache, or */
	guint64 own, size;         /* a classic allocation of its own */
};
/* Physical memory that is mapped. */
struct handle {
	guint64 address; /* first: the table's key */
	aclrtDrvMemHandle handle;
};
struct policy_replay {
	struct replay_device *device;
	const struct policy_options *options;
	struct model_device *calls; /* where calls are counted now */
	struct cache *cache;        /* NULL: native */
	GHashTable *blocks;         /* of struct held */
	GHashTable *handles;        /* of struct handle */
	GHashTable *segments;       /* addresses, guint64 * */
	GHashTable *stretches;      /* the same */
	guint64 event, line;        /* for messages */
	guint64 history;            /* blocks handed out and gone so far */
	guint empty_next;           /* in options->empty_at */
	gboolean in_burst;
	GError *cause; /* of CACHE_FAILED */
};

/* ---- answers ---- */

static enum cache_answer answered(struct policy_replay *replay, const char *call, aclError code)
{
	if (code == ACL_SUCCESS)
		return CACHE_OK;
	if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
		return CACHE_NO_MEMORY;
	if (replay->cause == NULL)
		g_set_error(&replay->cause, REPLAY_ERROR, 0,
			    "device %u, event %" G_GUINT64_FORMAT ": %s answered %d: %s",
			    replay->device->device, replay->event, call, code, model_message());
	return CACHE_FAILED;
}

/* Memory got or given back: `size` bytes in pages of `pages` bytes. */
static void count(struct policy_replay *replay, enum trace_action action, guint64 size,
		  guint64 pages)
{
	struct memory_usage *usage = &replay->device->usage;

	if (action == TRACE_SEGMENT_ALLOC || action == TRACE_SEGMENT_MAP)
		memory_usage_obtain(usage, size, pages);
	else
		memory_usage_return(usage, size, pages);
	if (replay->calls == &replay->device->window)
		replay->device->policy_counts[action]++;
}

static void add_address(GHashTable *set, guint64 address)
{
	g_hash_table_add(set, g_memdup2(&address, sizeof address));
}

static struct allocation_table *table_of(const struct policy_replay *replay)
{
	return &replay->device->usage.table;
}

static void note(const struct policy_replay *replay, enum allocation_kind kind, guint64 address,
		 guint64 size, gboolean mapped)
{
	const struct allocation item = {
		.key = address, .address = address, .size = size, .va = address, .mapped = mapped
	};

	allocation_table_add(table_of(replay), kind, &item);
}

/* ---- memory for the cache ---- */

static enum cache_answer get(gpointer data, guint64 size, gboolean giant, guint64 *address)
{
	struct policy_replay *replay = data;
	void *p = NULL;
	aclError code =
		model_malloc(replay->calls, &p, size, (int)replay->device->device, giant ? 30 : 21);
	enum cache_answer answer = answered(replay, model_call_name(MODEL_MALLOC), code);

	if (answer != CACHE_OK)
		return answer;
	*address = (guintptr)p;
	add_address(replay->segments, *address);
	count(replay, TRACE_SEGMENT_ALLOC, size, size);
	note(replay, ALLOCATION_MEMORY, *address, size, FALSE);
	return CACHE_OK;
}

static enum cache_answer give(gpointer data, guint64 address, guint64 size)
{
	struct policy_replay *replay = data;

	replay_note_peak(replay->device);
	count(replay, TRACE_SEGMENT_FREE, size, size);
	g_hash_table_remove(replay->segments, &address);
	allocation_table_remove(table_of(replay), ALLOCATION_MEMORY, address);
	return answered(replay, "aclrtFree",
			model_free(replay->calls, (void *)(guintptr)address, FALSE));
}

static enum cache_answer reserve(gpointer data, guint64 size, guint64 *address)
{
	struct policy_replay *replay = data;
	void *va = NULL;
	aclError code = model_reserve(replay->calls, &va, size, 0, NULL, 1);
	enum cache_answer answer = answered(replay, "aclrtReserveMemAddress", code);

	if (answer != CACHE_OK)
		return answer;
	*address = (guintptr)va;
	add_address(replay->stretches, *address);
	note(replay, ALLOCATION_RESERVED, *address, size, FALSE);
	return CACHE_OK;
}

static enum cache_answer unreserve(gpointer data, guint64 address)
{
	struct policy_replay *replay = data;

	g_hash_table_remove(replay->stretches, &address);
	allocation_table_remove(table_of(replay), ALLOCATION_RESERVED, address);
	return answered(replay, "aclrtReleaseMemAddress",
			model_unreserve(replay->calls, (void *)(guintptr)address));
}

static enum cache_answer create_all(struct policy_replay *replay, GArray *handles, guint64 n,
				    guint64 step)
{
	aclrtDrvMemHandle handle;
	aclError code = ACL_SUCCESS;

	while (handles->len < n) {
		code = model_create(replay->calls, &handle, step, (int)replay->device->device,
				    step >= GIB ? 30 : 21);
		if (code != ACL_SUCCESS)
			break;
		g_array_append_val(handles, handle);
	}
	enum cache_answer answer = answered(replay, "aclrtMallocPhysical", code);
	for (guint i = 0; code != ACL_SUCCESS && i < handles->len; i++)
		model_release(replay->calls, g_array_index(handles, aclrtDrvMemHandle, i));
	return answer;
}

/* As torch_npu does: all handles are made, then all of them mapped. */
static enum cache_answer map(gpointer data, guint64 address, guint64 size, guint64 step)
{
	struct policy_replay *replay = data;
	g_autoptr(GArray) handles = g_array_new(FALSE, FALSE, sizeof(aclrtDrvMemHandle));
	enum cache_answer answer = create_all(replay, handles, size / step, step);

	for (guint i = 0; i < handles->len && answer == CACHE_OK; i++) {
		struct handle h = { .address = address + i * step,
				    .handle = g_array_index(handles, aclrtDrvMemHandle, i) };
		aclError code =
			model_map(replay->calls, (void *)(guintptr)h.address, step, h.handle);
		answer = answered(replay, "aclrtMapMem", code);
		if (answer != CACHE_OK)
			break;
		g_hash_table_add(replay->handles, g_memdup2(&h, sizeof h));
		note(replay, ALLOCATION_MEMORY, h.address, step, TRUE);
	}
	if (answer == CACHE_OK)
		count(replay, TRACE_SEGMENT_MAP, size, size);
	return answer;
}

static aclError unmap_one(struct policy_replay *replay, struct model_device *calls, guint64 address)
{
	struct handle *h = g_hash_table_lookup(replay->handles, &address);
	aclError code = model_unmap(calls, (void *)(guintptr)address);

	return code == ACL_SUCCESS ? model_release(calls, h->handle) : code;
}

static enum cache_answer unmap(gpointer data, guint64 address, guint64 size, guint64 step)
{
	struct policy_replay *replay = data;
	enum cache_answer answer = CACHE_OK;

	replay_note_peak(replay->device);
	count(replay, TRACE_SEGMENT_UNMAP, size, size);
	for (guint64 at = address; at < address + size && answer == CACHE_OK; at += step) {
		allocation_table_remove(table_of(replay), ALLOCATION_MEMORY, at);
		answer = answered(replay, "aclrtUnmapMem", unmap_one(replay, replay->calls, at));
		g_hash_table_remove(replay->handles, &at);
	}
	return answer;
}

/* ---- blocks ---- */

/* Bytes of the pages that an aclrtMalloc of `size` bytes takes. */
static guint64 in_pages(const struct policy_replay *replay, guint64 size)
{
	return replay->options->page_1g ? round_up(size, GIB) : memory_usage_pages(size);
}

static enum cache_answer own_alloc(struct policy_replay *replay, struct held *held)
{
	guint64 pages = in_pages(replay, MAX(held->size, 1));
	void *p = NULL;
	aclError code =
		model_malloc(replay->calls, &p, MAX(held->size, 1), (int)replay->device->device,
			     replay->options->page_1g ? 30 : 21);
	enum cache_answer answer = answered(replay, model_call_name(MODEL_MALLOC), code);

	if (answer != CACHE_OK)
		return answer;
	held->own = (guintptr)p;
	count(replay, TRACE_SEGMENT_ALLOC, held->size, pages);
	note(replay, ALLOCATION_MEMORY, held->own, pages, FALSE);
	return CACHE_OK;
}

static enum cache_answer own_free(struct policy_replay *replay, const struct held *held)
{
	replay_note_peak(replay->device);
	count(replay, TRACE_SEGMENT_FREE, held->size, in_pages(replay, MAX(held->size, 1)));
	allocation_table_remove(table_of(replay), ALLOCATION_MEMORY, held->own);
	return answered(replay, "aclrtFree",
			model_free(replay->calls, (void *)(guintptr)held->own, FALSE));
}

static void note_lost(struct policy_replay *replay, guint64 size, guint32 site)
{
	replay->device->lost_blocks++;
	replay_note_failure(replay->device, replay->event, replay->line, size, site);
}

/* Whether the block has memory; where it lies and what it takes of it. */
static gboolean lies(const struct held *held, guint64 *address, guint64 *taken)
{
	*address = held->block ? cache_block_address(held->block) : held->own;
	*taken = held->block ? cache_block_size(held->block) : held->size;
	return *address != 0;
}

static gboolean failed(struct policy_replay *replay, enum cache_answer answer, GError **error)
{
	if (answer != CACHE_FAILED)
		return TRUE;
	g_propagate_error(error, g_steal_pointer(&replay->cause));
	return FALSE;
}

/* NULL: a call that makes no sense. What finds no memory is kept as a block that lies nowhere. */
static const struct held *hand_out(struct policy_replay *replay, const struct trace_event *e,
				   GError **error)
{
	struct held held = { .address = e->address, .size = e->size }, *kept;
	enum cache_answer answer =
		replay->cache ? cache_alloc(replay->cache, e->size, e->stream, &held.block)
			      : own_alloc(replay, &held);

	if (answer == CACHE_NO_MEMORY)
		note_lost(replay, e->size, e->site);
	if (!failed(replay, answer, error))
		return NULL;
	kept = g_memdup2(&held, sizeof held);
	g_hash_table_add(replay->blocks, kept);
	return kept;
}

static gboolean take_back(struct policy_replay *replay, guint64 address, GError **error)
{
	struct held *held = g_hash_table_lookup(replay->blocks, &address);
	enum cache_answer answer = CACHE_OK;

	if (held == NULL)
		return TRUE;
	if (held->block)
		cache_release(replay->cache, held->block);
	else if (held->own)
		answer = own_free(replay, held);
	g_hash_table_remove(replay->blocks, &address);
	return failed(replay, answer, error);
}

static gboolean alloc(struct policy_replay *replay, const struct trace_event *e, GError **error)
{
	replay->history++;
	if (g_hash_table_contains(replay->blocks, &e->address) &&
	    !take_back(replay, e->address, error))
		return FALSE;
	const struct held *held = hand_out(replay, e, error);
	guint64 address, taken;
	if (held && lies(held, &address, &taken))
		memory_usage_block(&replay->device->usage, e, address, taken);
	return held != NULL;
}

static gboolean completed(struct policy_replay *replay, const struct trace_event *e, GError **error)
{
	const struct held *held = g_hash_table_lookup(replay->blocks, &e->address);
	guint64 address, taken;

	replay->history++;
	/* a block that found no memory was not live */
	if (held == NULL || lies(held, &address, &taken))
		memory_usage_step(&replay->device->usage, e);
	return take_back(replay, e->address, error);
}

/* ---- when the cache is emptied ---- */

static gboolean empty(struct policy_replay *replay, GError **error)
{
	if (replay->cache == NULL)
		return TRUE;
	replay->device->emptied++;
	return failed(replay, cache_empty(replay->cache), error);
}

static gboolean empty_where_said(struct policy_replay *replay, GError **error)
{
	const GArray *at = replay->options->empty_at;

	while (replay->options->empty == POLICY_EMPTY_AT && replay->empty_next < at->len &&
	       g_array_index(at, guint64, replay->empty_next) <= replay->history) {
		replay->empty_next++;
		if (!empty(replay, error))
			return FALSE;
	}
	return TRUE;
}

static gboolean empty_where_recorded(struct policy_replay *replay, const struct trace_event *e,
				     GError **error)
{
	gboolean gives = e->action == TRACE_SEGMENT_FREE || e->action == TRACE_SEGMENT_UNMAP;
	gboolean begins = gives && !replay->in_burst;

	replay->in_burst = gives;
	if (!begins || replay->options->empty != POLICY_EMPTY_RECORDED ||
	    replay->device->trace->of_process)
		return TRUE;
	return empty(replay, error);
}

/* ---- the replay ---- */

struct policy_replay *policy_replay_open(struct replay_device *device,
					 const struct policy_options *options)
{
	struct policy_replay *replay = g_new0(struct policy_replay, 1);
	struct cache_memory memory = { get, give, reserve, unreserve, map, unmap, replay, 0 };
	struct npu_stats stats;

	replay->device = device;
	replay->options = options;
	replay->calls = &device->setup;
	replay->blocks = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	replay->handles = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	replay->segments = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	replay->stretches = g_hash_table_new_full(int_map_hash, g_int64_equal, g_free, NULL);
	if (model_stats(device->device, &stats))
		memory.total = stats.usable_bytes;
	if (options->kind != POLICY_NATIVE)
		replay->cache = cache_new(options, &memory);
	return replay;
}

/* The stream of the recorded range that holds an address. */
static gint64 stream_at(const GArray *ranges, guint64 address, guint *hint)
{
	for (; *hint < ranges->len; (*hint)++) {
		const struct trace_range *r = &g_array_index(ranges, struct trace_range, *hint);
		if (address < r->address + r->size)
			return r->stream;
	}
	return ranges->len ? g_array_index(ranges, struct trace_range, ranges->len - 1).stream : 0;
}

static gboolean start_block(struct policy_replay *replay, const struct trace_block *b,
			    gint64 stream, GError **error)
{
	const struct trace_event e = { .address = b->address,
				       .size = b->size,
				       .stream = stream,
				       .site = b->site,
				       .action = TRACE_ALLOC };
	const struct trace_event gone = { .address = b->address, .action = TRACE_FREE_COMPLETED };
	const struct held *held = hand_out(replay, &e, error);
	struct memory_usage *a = &replay->device->usage;
	guint64 address, taken;

	if (held == NULL)
		return FALSE;
	if (lies(held, &address, &taken))
		memory_usage_place(a, b->address, address, taken);
	else
		memory_usage_step(a, &gone);
	return TRUE;
}

gboolean policy_replay_start(struct policy_replay *replay, GError **error)
{
	const struct trace_device *trace = replay->device->trace;
	struct memory_usage *a = &replay->device->usage;
	guint hint = 0;

	a->physical = a->peak_physical = a->rounding = 0;
	for (guint i = 0; i < trace->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(trace->blocks, struct trace_block, i);
		gint64 stream = stream_at(trace->ranges, b->address, &hint);
		if (!start_block(replay, b, stream, error))
			return FALSE;
	}
	a->start_physical = a->physical;
	a->obtained = 0;
	a->start_live = a->peak_live = a->live_at_peak_physical = a->live;
	replay->calls = &replay->device->window;
	return empty_where_said(replay, error);
}

gboolean policy_replay_step(struct policy_replay *replay, const struct trace_event *event,
			    guint64 line, GError **error)
{
	replay->event++;
	replay->line = line;
	if (!empty_where_recorded(replay, event, error))
		return FALSE;
	if (event->action == TRACE_ALLOC && !alloc(replay, event, error))
		return FALSE;
	if (event->action == TRACE_FREE_COMPLETED && !completed(replay, event, error))
		return FALSE;
	return empty_where_said(replay, error);
}

guint64 policy_replay_find(const struct policy_replay *replay, guint64 address)
{
	const struct held *held = g_hash_table_lookup(replay->blocks, &address);

	if (held == NULL)
		return 0;
	return held->block ? cache_block_address(held->block) : held->own;
}

/* ---- the end ---- */

static void free_own(struct policy_replay *replay, struct model_device *unused)
{
	GHashTableIter iter;
	gpointer key;

	g_hash_table_iter_init(&iter, replay->blocks);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		const struct held *held = key;
		if (held->own)
			model_free(unused, (void *)(guintptr)held->own, FALSE);
	}
}

void policy_replay_close(struct policy_replay *replay)
{
	struct model_device unused = { 0 };
	GHashTableIter iter;
	gpointer key;

	replay_note_end(replay->device);
	free_own(replay, &unused);
	g_hash_table_iter_init(&iter, replay->handles);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		unmap_one(replay, &unused, *(guint64 *)key);
	g_hash_table_iter_init(&iter, replay->segments);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		model_free(&unused, (void *)(guintptr)(*(guint64 *)key), FALSE);
	g_hash_table_iter_init(&iter, replay->stretches);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		model_unreserve(&unused, (void *)(guintptr)(*(guint64 *)key));
	if (replay->cache)
		cache_free(replay->cache);
	g_hash_table_unref(replay->blocks);
	g_hash_table_unref(replay->handles);
	g_hash_table_unref(replay->segments);
	g_hash_table_unref(replay->stretches);
	g_clear_error(&replay->cause);
	g_free(replay);
}
