/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds records to the model, and keeps what a replay records about each device: peaks, moments,
 * and the first out-of-memory event. Recorded calls that allocate memory are made again; if a trace
 * has none, or under a policy, a filter for each device determines the calls behind its events.
 */
#include "replay.h"

#include <math.h>

#include "sim/profile.h"

#define AHEAD        32u  /* rows of the device, */
#define AHEAD_ROWS   128u /* of so many */
#define AHEAD_BLOCKS 4096u

/* ---- a device over the events ---- */

/* Whether b has more physical memory than a, or as much and more of it live. */
static gboolean is_more(const struct memory_sums *a, const struct memory_sums *b)
{
	return b->physical != a->physical ? b->physical > a->physical : b->live > a->live;
}

static void halve(struct series *s)
{
	struct series_point *p = (struct series_point *)s->points->data;
	guint kept = 1; /* the start stays by itself */

	for (guint i = 1; i < s->points->len; i += 2) {
		gboolean next = i + 1 < s->points->len && is_more(&p[i].sums, &p[i + 1].sums);
		p[kept++] = p[i + next];
	}
	g_array_set_size(s->points, kept);
	s->stride *= 2;
}

static void series_add(struct series *s, guint64 event, const struct memory_sums *sums)
{
	struct series_point point = { .event = event, .sums = *sums }, *at;

	s->last = point;
	if (s->points->len > 1 && s->open > 0 && s->open < s->stride) {
		at = &g_array_index(s->points, struct series_point, s->points->len - 1);
		if (is_more(&at->sums, &point.sums))
			*at = point;
		s->open++;
		return;
	}
	/* the end needs a point of its own */
	if (s->points->len >= SERIES_POINTS_MAX - 1)
		halve(s);
	g_array_append_val(s->points, point);
	s->open = 1;
}

void replay_note_peak(struct replay_device *device)
{
	guint64 physical = device->memory.levels.of[LEVEL_PHYSICAL].now;
	struct npu_stats stats;
	if (physical <= device->noted_physical || !model_stats(device->device, &stats))
		return;
	device->noted_physical = physical;
	device->stats = stats;
}

static void replay_sample(struct replay_device *device, guint64 event, guint64 time_us)
{
	struct memory *memory = &device->memory;
	struct moment *peak = &memory->moments[MOMENT_PEAK];
	const struct memory_sums sums = memory_sums(memory);

	if (device->first_us == 0)
		device->first_us = time_us;
	device->outside |= sums.external < 0 && device->failed_size == 0;
	series_add(&device->series, event, &sums);
	if (!peak->reached || is_more(&peak->sums, &sums))
		memory_mark(memory, peak, event);
	for (guint m = MOMENT_OOM + 1; m < memory->moment_count; m++) {
		struct moment *moment = &memory->moments[m];
		/* a time has come with the first event that is not before it */
		if (moment->what == MOMENT_EVENT
			    ? moment->wanted == event
			    : moment->what == MOMENT_TIME && !moment->reached && time_us > 0 &&
				      time_us - MIN(time_us, device->first_us) >= moment->wanted)
			memory_mark(memory, moment, event);
	}
}

void replay_note_failure(struct replay_device *device, guint64 event, guint64 line, guint64 size,
			 guint32 site)
{
	if (device->failed_size)
		return;
	device->failed_at = event;
	device->failed_line = line;
	device->failed_size = MAX(size, 1);
	device->failed_site = site;
	model_stats(device->device, &device->failed_stats);
	memory_mark(&device->memory, &device->memory.moments[MOMENT_OOM], event);
}

gboolean replay_tells_live(const struct replay_device *device)
{
	return device->trace->counts[NPU_TRACE_ALLOC] > 0 ||
	       device->memory.levels.of[LEVEL_LIVE].start > 0;
}

gboolean replay_tells_fragmentation(const struct replay_device *device)
{
	return replay_tells_live(device) && !device->outside;
}

struct replay_device *replay_find(const struct replay *replay, gint64 device)
{
	guint at = trace_device_index(replay->trace, device);

	return at == G_MAXUINT ? NULL : g_ptr_array_index(replay->devices, at);
}

/* Where an item's memory lies on the device. */
static void look(struct allocation *item, gpointer data)
{
	struct replay_device *device = data;
	struct physical_run run;

	item->runs = g_array_new(FALSE, FALSE, sizeof run);
	for (guint64 at = 0; at < item->size; at += run.bytes) {
		run.bytes = item->size - at;
		if (npusim_physical((int)device->device, item->key + at, &run.pa, &run.bytes) != 0)
			return;
		g_array_append_val(item->runs, run);
		const struct replay_run row = { item->since, device->memory.levels.event,
						item->address + at, run.pa, run.bytes };
		if (device->runs && device->runs->len < REPLAY_RUNS_MAX)
			g_array_append_val(device->runs, row);
	}
}

/* The peak is the first moment, the first lack of memory the second. */
static struct replay_device *replay_device_new(struct replay *replay, struct trace_device *trace)
{
	const struct replay_options *options = &replay->options;
	struct replay_device *device = g_new0(struct replay_device, 1);
	struct memory *memory = &device->memory;

	device->replay = replay;
	device->trace = trace;
	device->device = trace->device;
	memory_init(memory, replay->trace->block_unit);
	memory_add_moment(memory, MOMENT_PEAK, 0);
	memory_add_moment(memory, MOMENT_OOM, 0);
	for (guint m = 0; m < options->moment_count; m++)
		memory_add_moment(memory, options->moments[m].what, options->moments[m].wanted);
	memory->look = options->frames ? look : NULL;
	memory->data = device;
	device->series.points = g_array_new(FALSE, FALSE, sizeof(struct series_point));
	device->series.stride = 1;
	device->start = g_array_new(FALSE, FALSE, sizeof(struct record_item));
	if (options->each) {
		device->window.each = g_array_new(FALSE, FALSE, sizeof(struct model_once));
		device->window.event = &memory->levels.event;
		device->runs = g_array_new(FALSE, FALSE, sizeof(struct replay_run));
		memory->look_all = TRUE;
	}
	return device;
}

static void replay_device_free(gpointer data)
{
	struct replay_device *device = data;

	memory_clear(&device->memory);
	g_array_unref(device->series.points);
	g_array_unref(device->start);
	g_clear_pointer(&device->runs, g_array_unref);
	g_clear_pointer(&device->window.each, g_array_unref);
	if (device->filter)
		device->filter->close(device->filter);
	g_free(device);
}

/* While all is there still. */
static void replay_finish(struct replay_device *device)
{
	const struct series *s = &device->series;
	struct memory *memory = &device->memory;
	const guint n = s->points->len;
	struct npu_stats last;

	replay_note_peak(device);
	for (guint m = MOMENT_OOM + 1; m < memory->moment_count; m++) {
		if (memory->moments[m].what == MOMENT_END)
			memory_mark(memory, &memory->moments[m], s->last.event);
	}
	memory->levels.event = s->last.event + 1;
	memory_look_all(memory);
	g_clear_pointer(&device->reads, access_free);
	if (n > 0 && g_array_index(s->points, struct series_point, n - 1).event != s->last.event)
		g_array_append_val(s->points, s->last);
	if (!model_stats(device->device, &last))
		return;
	if (device->stats.size == 0)
		device->stats = last;
	device->stats.page_table_peak_bytes = last.page_table_peak_bytes;
	device->stats.own_peak_bytes = last.own_peak_bytes;
}

#define DEVICE(replay, i) ((struct replay_device *)g_ptr_array_index((replay)->devices, i))
#define ITEM(device, i)   (&g_array_index((device)->start, struct record_item, i))

/* ---- what a filter says ---- */

/* An area of the file's addresses must be there; any other call may find no memory. */
static enum cache_answer on_call(gpointer data, const struct npu_trace_record *c, guint64 *out_va,
				 GError **error)
{
	struct replay *replay = ((const struct replay_device *)data)->replay;
	gboolean area = c->verb == NPU_TRACE_RESERVE && !policy_is_own(replay->options.policy);
	gint32 code = player_call(replay, c);

	if (code == ACL_SUCCESS) {
		*out_va = replay->got;
		return CACHE_OK;
	}
	if (code == ACL_ERROR_RT_MEMORY_ALLOCATION && !area)
		return CACHE_NO_MEMORY;
	g_set_error(error, MODEL_ERROR, MODEL_ERROR_CALL, "%s of " U64 " bytes answered %d: %s",
		    model_last_call(), c->size, code, model_message());
	return CACHE_FAILED;
}

static void on_event(gpointer data, const struct record_item *item)
{
	struct replay_device *device = data;

	memory_step(&device->memory, item);
	if (segment_change(item->record.verb) != 0 && !(item->record.has & NPU_TRACE_HAS_START))
		device->policy_counts[item->record.verb]++;
}

static void on_started(gpointer data)
{
	memory_started(&((struct replay_device *)data)->memory);
}

static void on_lost(gpointer data, guint64 size, guint32 site)
{
	struct replay_device *device = data;

	device->lost_blocks++;
	replay_note_failure(device, device->memory.levels.event, device->line, size, site);
}

/* FALSE and error, which says where in the file, where the filter's answer is CACHE_FAILED. */
static gboolean answered(struct replay_device *device, enum cache_answer answer, GError **error)
{
	if (answer != CACHE_FAILED)
		return TRUE;
	g_autofree char *place = history_place(device->line, device->memory.levels.event);
	g_propagate_prefixed_error(error, g_steal_pointer(&device->filter->cause),
				   "device %u, %s: ", device->device, place);
	return FALSE;
}

static gboolean is_block(const struct record_item *item)
{
	return item->record.verb == NPU_TRACE_ALLOC;
}

static gboolean device_start(struct replay_device *device, GError **error)
{
	const struct policy_options *policy = device->replay->options.policy;
	gboolean recorded = device->replay->recorded;
	struct filter_output out = { on_call, on_event, on_started, on_lost, device, 0 };
	struct npu_stats stats;

	/* the sums of memory are those of the segments that a filter got, from none on */
	for (guint i = 0; i < device->start->len; i++) {
		memory_step_file(&device->memory, ITEM(device, i));
		if (recorded || is_block(ITEM(device, i)))
			memory_step(&device->memory, ITEM(device, i));
	}
	if (!recorded) {
		if (model_stats(device->device, &stats))
			out.total = stats.usable_bytes;
		device->filter = policy_is_own(policy)
					 ? filter_allocator(policy, device->trace, &out)
					 : filter_recorded(device->trace, &out);
	}
	device->reads = access_new(device);
	if (recorded) {
		memory_started(&device->memory);
		return TRUE;
	}
	gboolean ok = answered(device, device->filter->start(device->filter, device->start), error);
	for (guint i = 0; ok && device->reads && i < device->start->len; i++) {
		if (is_block(ITEM(device, i)))
			access_note(device->reads, ITEM(device, i)->address, ITEM(device, i)->size);
	}
	replay_sample(device, 0, 0);
	return ok;
}

/* Of many blocks few are in the processor's caches: what the next rows need comes at once, and not
 * one after another. */
static void look_ahead(const struct replay_device *device)
{
	guint64 addresses[AHEAD], at[AHEAD];
	guint count = 0;

	for (guint i = 0; count < AHEAD && i < AHEAD_ROWS; i++) {
		const struct trace_row *row = trace_ahead(device->replay->trace, i);
		if (row && row->device == device->device)
			addresses[count++] = row->address;
	}
	memory_soon(&device->memory, addresses, count, at);
	if (device->filter->blocks)
		int_map_soon(device->filter->blocks, addresses, count);
	npusim_freed_soon(at, count);
}

static gboolean device_step(struct replay_device *device, const struct record_item *item,
			    GError **error)
{
	guint32 verb = item->record.verb;

	device->memory.levels.event++;
	device->line = item->record.line;
	if (device->memory.items[ALLOCATION_BLOCK]->count >= AHEAD_BLOCKS &&
	    device->memory.levels.event % AHEAD == 0)
		look_ahead(device);
	memory_step_file(&device->memory, item);
	if (!policy_is_own(device->replay->options.policy) && segment_change(verb) < 0)
		replay_note_peak(device);
	gboolean ok = answered(device, device->filter->step(device->filter, item), error);
	replay_sample(device, device->memory.levels.event, (guint64)MAX(item->time_us, 0));
	/* the file's first lack of memory is the moment until the replay has one of its own */
	if (verb == NPU_TRACE_OOM && !device->memory.moments[MOMENT_OOM].reached)
		memory_mark(&device->memory, &device->memory.moments[MOMENT_OOM],
			    device->memory.levels.event);
	if (device->reads == NULL || !ok)
		return ok;
	if (verb == NPU_TRACE_FREE)
		access_go(device->reads, item->address);
	if (verb == NPU_TRACE_ALLOC &&
	    !access_come(device->reads, item->address, item->size, error))
		return FALSE;
	return access_tick(device->reads, error);
}

/* ---- records ---- */

/* How a call's time compares with the recorded one. A copy's is that of its submission. */
static void note_time(struct replay *replay, const struct npu_trace_record *call, guint64 before)
{
	struct replay_match *match = replay->options.matches;
	guint64 ps = npusim_now_ps() - before;

	if (match == NULL || call->verb >= REPLAY_MATCHES || call->took_ns == 0 ||
	    call->code != 0 || ps == 0)
		return;
	match += call->verb;
	latency_add(&match->recorded, call->took_ns);
	latency_add(&match->predicted, ps);
	match->logs += fabs(log((double)call->took_ns * 1e3 / (double)ps));
}

/* Calls name no device: all are looked at. */
static gboolean step_recorded(struct replay *replay, const struct record_item *item, GError **error)
{
	struct replay_device *device = replay_find(replay, item->record.device);
	guint64 event = replay->done + 1;
	gboolean ok = TRUE;

	for (guint i = 0; i < replay->devices->len; i++)
		DEVICE(replay, i)->memory.levels.event = event;
	if (!trace_verbs[item->record.verb].event) {
		guint64 before = item->record.took_ns > 0 ? npusim_now_ps() : 0;

		ok = player_step(replay, item, error);
		note_time(replay, &item->record, before);
	} else if (item->record.code == 0 && device && segment_change(item->record.verb) == 0) {
		memory_step(&device->memory, item);
	}
	if (item->record.code == 0 && device)
		memory_step_file(&device->memory, item);
	for (guint i = 0; i < replay->devices->len; i++)
		replay_sample(DEVICE(replay, i), event, (guint64)item->time_us);
	return ok;
}

static gboolean step(struct replay *replay, struct record_item *item, GError **error)
{
	/* what an event takes is for its policy to say */
	if (trace_verbs[item->record.verb].event)
		item->record.has &= ~(guint32)NPU_TRACE_HAS_ROUNDED;
	item->record.device = MIN(item->record.device, G_MAXINT32);
	if (replay->recorded)
		return step_recorded(replay, item, error);
	if (item->device == G_MAXUINT || item->record.code != 0 ||
	    !trace_verbs[item->record.verb].event)
		return TRUE;
	return device_step(DEVICE(replay, item->device), item, error);
}

static gboolean run_all(struct replay *replay, GError **error)
{
	struct record_item item;
	gboolean ok = TRUE;
	int more = 1;

	replay->tracker = tracker_new(TRUE);
	for (guint d = 0; ok && d < replay->devices->len; d++)
		ok = device_start(DEVICE(replay, d), error);
	while (ok && !replay->interrupted && (more = trace_next(replay->trace, &item, error)) > 0) {
		if (item.number == 0)
			continue;
		ok = step(replay, &item, error);
		replay->done++;
		replay->interrupted = replay->options.progress &&
				      !replay->options.progress(replay->done, replay->options.data);
	}
	for (guint d = 0; d < replay->devices->len; d++)
		replay_finish(DEVICE(replay, d));
	player_close(replay);
	return ok && more >= 0;
}

/* Memory before blocks, each by address. */
static gint by_place(gconstpointer a, gconstpointer b)
{
	const struct record_item *x = a, *y = b;
	gint order = is_block(x) - is_block(y);

	return order ? order : by_address(&x->address, &y->address);
}

/* A trace of npusim may say anywhere what was there; others begin with it. */
static gboolean read_starts(struct replay *replay, GError **error)
{
	guint64 left = replay->trace->starts;
	struct record_item item;
	int more = 1;

	while (left > 0 && (more = trace_next(replay->trace, &item, error)) > 0) {
		if (item.number > 0 || item.record.code != 0 || item.device == G_MAXUINT)
			continue;
		/* texts go with the line */
		item.record.op = item.record.site = NULL;
		g_array_append_val(DEVICE(replay, item.device)->start, item);
		left--;
	}
	for (guint d = 0; d < replay->devices->len; d++)
		g_array_sort(DEVICE(replay, d)->start, by_place);
	return more >= 0 && trace_rewind(replay->trace, error);
}

/* A policy hands out blocks: there must be some. */
static gboolean has_blocks(const struct replay *replay, GError **error)
{
	for (guint d = 0; d < replay->devices->len; d++) {
		const struct replay_device *device = DEVICE(replay, d);
		guint items = device->start->len;
		if (device->trace->counts[NPU_TRACE_ALLOC] > 0 ||
		    (items > 0 && is_block(ITEM(device, items - 1))))
			return TRUE;
	}
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT,
		      "the file tells of no blocks that an allocator handed out, which a policy "
		      "needs: use --policy as-recorded");
}

static gboolean run_on_model(struct replay *replay, GError **error)
{
	guint devices = DEVICE(replay, replay->devices->len - 1)->device + 1;
	struct npu_stats stats;

	if (!model_open(devices, error))
		return FALSE;
	replay->soc = g_strdup(aclrtGetSocName());
	gint64 wall = g_get_monotonic_time();
	guint64 simulated = npusim_now_ps();
	gboolean ok = run_all(replay, error);
	replay->wall_us = g_get_monotonic_time() - wall;
	replay->simulated_ps = npusim_now_ps() - simulated;
	if (model_stats(0, &stats))
		replay->stall_ps = stats.call_ps[SIM_CALL_STALL];
	model_close(devices);
	return ok;
}

struct replay *replay_run(struct trace *trace, const struct replay_options *options, GError **error)
{
	gboolean own = policy_is_own(options->policy);
	struct replay *replay = g_new0(struct replay, 1);

	replay->options = *options;
	replay->trace = trace;
	replay->recorded = trace->memory_calls > 0 && !own;
	replay->devices = g_ptr_array_new_with_free_func(replay_device_free);
	/* a trace that is about no device is replayed on device 0 */
	if (trace->devices->len == 0)
		trace_device(trace, 0);
	for (guint d = 0; d < trace->devices->len; d++)
		g_ptr_array_add(replay->devices,
				replay_device_new(replay, g_ptr_array_index(trace->devices, d)));
	trace->nameless = TRUE; /* it goes by addresses */
	if (!read_starts(replay, error) || (own && !has_blocks(replay, error)) ||
	    !run_on_model(replay, error))
		g_clear_pointer(&replay, replay_free);
	trace->nameless = FALSE;
	return replay;
}

void replay_free(struct replay *replay)
{
	if (replay == NULL)
		return;
	g_ptr_array_unref(replay->devices);
	g_free(replay->soc);
	g_free(replay);
}
