/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks by the file's addresses on one side, the model's memory on the other, the policy between
 * them.
 */
#include "replay-policy.h"

#include "cache.h"
#include "live.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)

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
struct policy_lane {
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

static enum cache_answer answered(struct policy_lane *lane, const char *call, aclError code)
{
	if (code == ACL_SUCCESS)
		return CACHE_OK;
	if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
		return CACHE_NO_MEMORY;
	if (lane->cause == NULL)
		g_set_error(&lane->cause, REPLAY_ERROR, 0,
			    "device %u, event %" G_GUINT64_FORMAT ": %s answered %d: %s",
			    lane->device->device, lane->event, call, code, model_message());
	return CACHE_FAILED;
}

/* Memory got or given back: `size` bytes in pages of `pages` bytes. */
static void count(struct policy_lane *lane, enum trace_action action, guint64 size, guint64 pages)
{
	struct account *account = &lane->device->account;

	if (action == TRACE_SEGMENT_ALLOC || action == TRACE_SEGMENT_MAP)
		account_obtain(account, size, pages);
	else
		account_return(account, size, pages);
	if (lane->calls == &lane->device->window)
		lane->device->policy_counts[action]++;
}

static void add_address(GHashTable *set, guint64 address)
{
	g_hash_table_add(set, g_memdup2(&address, sizeof address));
}

static struct ledger *ledger_of(const struct policy_lane *lane)
{
	return &lane->device->account.ledger;
}

static void note(const struct policy_lane *lane, enum ledger_kind kind, guint64 address,
		 guint64 size, gboolean mapped)
{
	const struct ledger_item item = {
		.key = address, .address = address, .size = size, .va = address, .mapped = mapped
	};

	ledger_add(ledger_of(lane), kind, &item);
}

/* ---- memory for the cache ---- */

static enum cache_answer get(gpointer data, guint64 size, gboolean giant, guint64 *address)
{
	struct policy_lane *lane = data;
	void *p = NULL;
	aclError code =
		model_malloc(lane->calls, &p, size, (int)lane->device->device, giant ? 30 : 21);
	enum cache_answer answer = answered(lane, model_call_name(MODEL_MALLOC), code);

	if (answer != CACHE_OK)
		return answer;
	*address = (guintptr)p;
	add_address(lane->segments, *address);
	count(lane, TRACE_SEGMENT_ALLOC, size, size);
	note(lane, LEDGER_MEMORY, *address, size, FALSE);
	return CACHE_OK;
}

static enum cache_answer give(gpointer data, guint64 address, guint64 size)
{
	struct policy_lane *lane = data;

	replay_note_peak(lane->device);
	count(lane, TRACE_SEGMENT_FREE, size, size);
	g_hash_table_remove(lane->segments, &address);
	ledger_remove(ledger_of(lane), LEDGER_MEMORY, address);
	return answered(lane, "aclrtFree",
			model_free(lane->calls, (void *)(guintptr)address, FALSE));
}

static enum cache_answer reserve(gpointer data, guint64 size, guint64 *address)
{
	struct policy_lane *lane = data;
	void *va = NULL;
	aclError code = model_reserve(lane->calls, &va, size, 0, NULL, 1);
	enum cache_answer answer = answered(lane, "aclrtReserveMemAddress", code);

	if (answer != CACHE_OK)
		return answer;
	*address = (guintptr)va;
	add_address(lane->stretches, *address);
	note(lane, LEDGER_RESERVED, *address, size, FALSE);
	return CACHE_OK;
}

static enum cache_answer unreserve(gpointer data, guint64 address)
{
	struct policy_lane *lane = data;

	g_hash_table_remove(lane->stretches, &address);
	ledger_remove(ledger_of(lane), LEDGER_RESERVED, address);
	return answered(lane, "aclrtReleaseMemAddress",
			model_unreserve(lane->calls, (void *)(guintptr)address));
}

static enum cache_answer create_all(struct policy_lane *lane, GArray *handles, guint64 n,
				    guint64 step)
{
	aclrtDrvMemHandle handle;
	aclError code = ACL_SUCCESS;

	while (handles->len < n) {
		code = model_create(lane->calls, &handle, step, (int)lane->device->device,
				    step >= GIB ? 30 : 21);
		if (code != ACL_SUCCESS)
			break;
		g_array_append_val(handles, handle);
	}
	enum cache_answer answer = answered(lane, "aclrtMallocPhysical", code);
	for (guint i = 0; code != ACL_SUCCESS && i < handles->len; i++)
		model_release(lane->calls, g_array_index(handles, aclrtDrvMemHandle, i));
	return answer;
}

/* As torch_npu does: all handles are made, then all of them mapped. */
static enum cache_answer map(gpointer data, guint64 address, guint64 size, guint64 step)
{
	struct policy_lane *lane = data;
	g_autoptr(GArray) handles = g_array_new(FALSE, FALSE, sizeof(aclrtDrvMemHandle));
	enum cache_answer answer = create_all(lane, handles, size / step, step);

	for (guint i = 0; i < handles->len && answer == CACHE_OK; i++) {
		struct handle h = { .address = address + i * step,
				    .handle = g_array_index(handles, aclrtDrvMemHandle, i) };
		aclError code = model_map(lane->calls, (void *)(guintptr)h.address, step, h.handle);
		answer = answered(lane, "aclrtMapMem", code);
		if (answer != CACHE_OK)
			break;
		g_hash_table_add(lane->handles, g_memdup2(&h, sizeof h));
		note(lane, LEDGER_MEMORY, h.address, step, TRUE);
	}
	if (answer == CACHE_OK)
		count(lane, TRACE_SEGMENT_MAP, size, size);
	return answer;
}

static aclError unmap_one(struct policy_lane *lane, struct model_device *calls, guint64 address)
{
	struct handle *h = g_hash_table_lookup(lane->handles, &address);
	aclError code = model_unmap(calls, (void *)(guintptr)address);

	return code == ACL_SUCCESS ? model_release(calls, h->handle) : code;
}

static enum cache_answer unmap(gpointer data, guint64 address, guint64 size, guint64 step)
{
	struct policy_lane *lane = data;
	enum cache_answer answer = CACHE_OK;

	replay_note_peak(lane->device);
	count(lane, TRACE_SEGMENT_UNMAP, size, size);
	for (guint64 at = address; at < address + size && answer == CACHE_OK; at += step) {
		ledger_remove(ledger_of(lane), LEDGER_MEMORY, at);
		answer = answered(lane, "aclrtUnmapMem", unmap_one(lane, lane->calls, at));
		g_hash_table_remove(lane->handles, &at);
	}
	return answer;
}

/* ---- blocks ---- */

/* Bytes of the pages that an aclrtMalloc of `size` bytes takes. */
static guint64 in_pages(const struct policy_lane *lane, guint64 size)
{
	return lane->options->page_1g ? account_round(size, GIB) : account_pages(size);
}

static enum cache_answer own_alloc(struct policy_lane *lane, struct held *held)
{
	guint64 pages = in_pages(lane, MAX(held->size, 1));
	void *p = NULL;
	aclError code = model_malloc(lane->calls, &p, MAX(held->size, 1), (int)lane->device->device,
				     lane->options->page_1g ? 30 : 21);
	enum cache_answer answer = answered(lane, model_call_name(MODEL_MALLOC), code);

	if (answer != CACHE_OK)
		return answer;
	held->own = (guintptr)p;
	count(lane, TRACE_SEGMENT_ALLOC, held->size, pages);
	note(lane, LEDGER_MEMORY, held->own, pages, FALSE);
	return CACHE_OK;
}

static enum cache_answer own_free(struct policy_lane *lane, const struct held *held)
{
	replay_note_peak(lane->device);
	count(lane, TRACE_SEGMENT_FREE, held->size, in_pages(lane, MAX(held->size, 1)));
	ledger_remove(ledger_of(lane), LEDGER_MEMORY, held->own);
	return answered(lane, "aclrtFree",
			model_free(lane->calls, (void *)(guintptr)held->own, FALSE));
}

static void note_lost(struct policy_lane *lane, guint64 size, guint32 site)
{
	lane->device->lost_blocks++;
	replay_note_failure(lane->device, lane->event, lane->line, size, site);
}

/* Whether the block has memory; where it lies and what it takes of it. */
static gboolean lies(const struct held *held, guint64 *address, guint64 *taken)
{
	*address = held->block ? cache_block_address(held->block) : held->own;
	*taken = held->block ? cache_block_size(held->block) : held->size;
	return *address != 0;
}

static gboolean failed(struct policy_lane *lane, enum cache_answer answer, GError **error)
{
	if (answer != CACHE_FAILED)
		return TRUE;
	g_propagate_error(error, g_steal_pointer(&lane->cause));
	return FALSE;
}

/* NULL: a call that makes no sense. What finds no memory is kept as a block that lies nowhere. */
static const struct held *hand_out(struct policy_lane *lane, const struct trace_event *e,
				   GError **error)
{
	struct held held = { .address = e->address, .size = e->size }, *kept;
	enum cache_answer answer =
		lane->cache ? cache_alloc(lane->cache, e->size, e->stream, &held.block)
			    : own_alloc(lane, &held);

	if (answer == CACHE_NO_MEMORY)
		note_lost(lane, e->size, e->site);
	if (!failed(lane, answer, error))
		return NULL;
	kept = g_memdup2(&held, sizeof held);
	g_hash_table_add(lane->blocks, kept);
	return kept;
}

static gboolean take_back(struct policy_lane *lane, guint64 address, GError **error)
{
	struct held *held = g_hash_table_lookup(lane->blocks, &address);
	enum cache_answer answer = CACHE_OK;

	if (held == NULL)
		return TRUE;
	if (held->block)
		cache_release(lane->cache, held->block);
	else if (held->own)
		answer = own_free(lane, held);
	g_hash_table_remove(lane->blocks, &address);
	return failed(lane, answer, error);
}

static gboolean alloc(struct policy_lane *lane, const struct trace_event *e, GError **error)
{
	lane->history++;
	if (g_hash_table_contains(lane->blocks, &e->address) && !take_back(lane, e->address, error))
		return FALSE;
	const struct held *held = hand_out(lane, e, error);
	guint64 address, taken;
	if (held && lies(held, &address, &taken))
		account_block(&lane->device->account, e, address, taken);
	return held != NULL;
}

static gboolean completed(struct policy_lane *lane, const struct trace_event *e, GError **error)
{
	const struct held *held = g_hash_table_lookup(lane->blocks, &e->address);
	guint64 address, taken;

	lane->history++;
	/* a block that found no memory was not live */
	if (held == NULL || lies(held, &address, &taken))
		account_step(&lane->device->account, e);
	return take_back(lane, e->address, error);
}

/* ---- when the cache is emptied ---- */

static gboolean empty(struct policy_lane *lane, GError **error)
{
	if (lane->cache == NULL)
		return TRUE;
	lane->device->emptied++;
	return failed(lane, cache_empty(lane->cache), error);
}

static gboolean empty_where_said(struct policy_lane *lane, GError **error)
{
	const GArray *at = lane->options->empty_at;

	while (lane->options->empty == POLICY_EMPTY_AT && lane->empty_next < at->len &&
	       g_array_index(at, guint64, lane->empty_next) <= lane->history) {
		lane->empty_next++;
		if (!empty(lane, error))
			return FALSE;
	}
	return TRUE;
}

static gboolean empty_where_recorded(struct policy_lane *lane, const struct trace_event *e,
				     GError **error)
{
	gboolean gives = e->action == TRACE_SEGMENT_FREE || e->action == TRACE_SEGMENT_UNMAP;
	gboolean begins = gives && !lane->in_burst;

	lane->in_burst = gives;
	if (!begins || lane->options->empty != POLICY_EMPTY_RECORDED ||
	    lane->device->trace->of_process)
		return TRUE;
	return empty(lane, error);
}

/* ---- the lane ---- */

struct policy_lane *policy_lane_open(struct replay_device *device,
				     const struct policy_options *options)
{
	struct policy_lane *lane = g_new0(struct policy_lane, 1);
	struct cache_memory memory = { get, give, reserve, unreserve, map, unmap, lane, 0 };
	struct npu_stats stats;

	lane->device = device;
	lane->options = options;
	lane->calls = &device->setup;
	lane->blocks = g_hash_table_new_full(live_hash_address, g_int64_equal, g_free, NULL);
	lane->handles = g_hash_table_new_full(live_hash_address, g_int64_equal, g_free, NULL);
	lane->segments = g_hash_table_new_full(live_hash_address, g_int64_equal, g_free, NULL);
	lane->stretches = g_hash_table_new_full(live_hash_address, g_int64_equal, g_free, NULL);
	if (model_stats(device->device, &stats))
		memory.total = stats.usable_bytes;
	if (options->kind != POLICY_NATIVE)
		lane->cache = cache_new(options, &memory);
	return lane;
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

static gboolean start_block(struct policy_lane *lane, const struct trace_block *b, gint64 stream,
			    GError **error)
{
	const struct trace_event e = { .address = b->address,
				       .size = b->size,
				       .stream = stream,
				       .site = b->site,
				       .action = TRACE_ALLOC };
	const struct trace_event gone = { .address = b->address, .action = TRACE_FREE_COMPLETED };
	const struct held *held = hand_out(lane, &e, error);
	struct account *a = &lane->device->account;
	guint64 address, taken;

	if (held == NULL)
		return FALSE;
	if (lies(held, &address, &taken))
		account_place(a, b->address, address, taken);
	else
		account_step(a, &gone);
	return TRUE;
}

gboolean policy_lane_start(struct policy_lane *lane, GError **error)
{
	const struct trace_device *trace = lane->device->trace;
	struct account *a = &lane->device->account;
	guint hint = 0;

	a->physical = a->peak_physical = a->rounding = 0;
	for (guint i = 0; i < trace->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(trace->blocks, struct trace_block, i);
		gint64 stream = stream_at(trace->ranges, b->address, &hint);
		if (!start_block(lane, b, stream, error))
			return FALSE;
	}
	a->start_physical = a->physical;
	a->obtained = 0;
	a->start_live = a->peak_live = a->live_at_peak_physical = a->live;
	lane->calls = &lane->device->window;
	return empty_where_said(lane, error);
}

gboolean policy_lane_step(struct policy_lane *lane, const struct trace_event *event, guint64 line,
			  GError **error)
{
	lane->event++;
	lane->line = line;
	if (!empty_where_recorded(lane, event, error))
		return FALSE;
	if (event->action == TRACE_ALLOC && !alloc(lane, event, error))
		return FALSE;
	if (event->action == TRACE_FREE_COMPLETED && !completed(lane, event, error))
		return FALSE;
	return empty_where_said(lane, error);
}

guint64 policy_lane_find(const struct policy_lane *lane, guint64 address)
{
	const struct held *held = g_hash_table_lookup(lane->blocks, &address);

	if (held == NULL)
		return 0;
	return held->block ? cache_block_address(held->block) : held->own;
}

/* ---- the end ---- */

static void free_own(struct policy_lane *lane, struct model_device *unused)
{
	GHashTableIter iter;
	gpointer key;

	g_hash_table_iter_init(&iter, lane->blocks);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		const struct held *held = key;
		if (held->own)
			model_free(unused, (void *)(guintptr)held->own, FALSE);
	}
}

void policy_lane_close(struct policy_lane *lane)
{
	struct model_device unused = { 0 };
	GHashTableIter iter;
	gpointer key;

	replay_note_end(lane->device);
	free_own(lane, &unused);
	g_hash_table_iter_init(&iter, lane->handles);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		unmap_one(lane, &unused, *(guint64 *)key);
	g_hash_table_iter_init(&iter, lane->segments);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		model_free(&unused, (void *)(guintptr)(*(guint64 *)key), FALSE);
	g_hash_table_iter_init(&iter, lane->stretches);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		model_unreserve(&unused, (void *)(guintptr)(*(guint64 *)key));
	if (lane->cache)
		cache_free(lane->cache);
	g_hash_table_unref(lane->blocks);
	g_hash_table_unref(lane->handles);
	g_hash_table_unref(lane->segments);
	g_hash_table_unref(lane->stretches);
	g_clear_error(&lane->cause);
	g_free(lane);
}
