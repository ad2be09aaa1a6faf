/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay's frame: the model opened and closed, one device after another, what is common to both
 * kinds of event.
 */
#include "replay.h"

#include "npusim/npusim.h"
#include "replay-engine.h"

GQuark replay_error_quark(void)
{
	return g_quark_from_static_string("npusim-replay");
}

gboolean replay_tick(struct replay_run *run)
{
	struct replay *replay = run->replay;
	replay->done++;
	if (run->options->progress == NULL ||
	    run->options->progress(replay->done, run->trace->events, run->options->data))
		return TRUE;
	replay->interrupted = TRUE;
	return FALSE;
}

void replay_note_peak(struct replay_device *device)
{
	guint64 physical = device->usage.physical;
	struct npu_stats stats;
	if (physical <= device->noted_physical || !model_stats(device->device, &stats))
		return;
	device->noted_physical = physical;
	device->stats = stats;
}

static void mark(struct replay_device *device, struct moment *moment, guint64 event,
		 const struct memory_sums *sums)
{
	allocation_table_mark(&device->usage.table, moment, event, sums);
}

/* A time has come with the first event that is not before it. */
static gboolean has_come(const struct replay_device *device, const struct moment *m, guint64 event,
			 guint64 time_us)
{
	if (m->what == MOMENT_EVENT)
		return m->wanted == event;
	return m->what == MOMENT_TIME && !m->reached && time_us > 0 &&
	       time_us - MIN(time_us, device->first_us) >= m->wanted;
}

void replay_sample(struct replay_device *device, guint64 event, guint64 time_us)
{
	struct allocation_table *table = &device->usage.table;
	struct moment *peak = &table->moments[0];
	struct memory_sums sums;

	if (device->first_us == 0)
		device->first_us = time_us;
	memory_usage_sums(&device->usage, &sums);
	device->outside |= sums.external < 0;
	series_add(&device->series, event, &sums);
	if (!peak->reached || series_is_more(&peak->sums, &sums))
		mark(device, peak, event, &sums);
	for (guint m = 2; m < table->moment_count; m++) {
		if (has_come(device, &table->moments[m], event, time_us))
			mark(device, &table->moments[m], event, &sums);
	}
}

void replay_note_failure(struct replay_device *device, guint64 event, guint64 line, guint64 size,
			 guint32 site)
{
	struct memory_sums sums;

	if (device->failed_size)
		return;
	device->failed_at = event;
	device->failed_line = line;
	device->failed_size = MAX(size, 1);
	device->failed_site = site;
	model_stats(device->device, &device->failed_stats);
	memory_usage_sums(&device->usage, &sums);
	mark(device, &device->usage.table.moments[1], event, &sums);
}

void replay_note_end(struct replay_device *device)
{
	struct allocation_table *table = &device->usage.table;
	struct memory_sums sums;

	replay_note_peak(device);
	memory_usage_sums(&device->usage, &sums);
	for (guint m = 2; m < table->moment_count; m++) {
		if (table->moments[m].what == MOMENT_END)
			mark(device, &table->moments[m], device->series.last.event, &sums);
	}
	allocation_table_look_all(table);
}

gboolean replay_tells_live(const struct replay_device *device)
{
	return device->trace->counts[TRACE_ALLOC] > 0 || device->usage.start_live > 0;
}

gboolean replay_tells_fragmentation(const struct replay_device *device)
{
	return replay_tells_live(device) && !device->outside;
}

guint64 replay_calls(const struct replay_device *device)
{
	guint64 sum = 0;
	for (int c = 0; c < MODEL_CALL_COUNT; c++)
		sum += device->window.count[c];
	return sum;
}

guint64 replay_calls_ps(const struct replay_device *device)
{
	guint64 sum = 0;
	for (int c = 0; c < MODEL_CALL_COUNT; c++)
		sum += device->window.ps[c];
	return sum;
}

struct replay_device *replay_find(const struct replay *replay, gint64 device)
{
	for (guint i = 0; i < replay->devices->len; i++) {
		struct replay_device *known = g_ptr_array_index(replay->devices, i);
		if ((gint64)known->device == device)
			return known;
	}
	return NULL;
}

static void device_free(gpointer data)
{
	struct replay_device *device = data;
	memory_usage_clear(&device->usage);
	series_clear(&device->series);
	model_device_clear(&device->window);
	g_free(device);
}

/* Where an item's memory lies on the device. */
static void look(struct allocation *item, gpointer data)
{
	const struct replay_device *device = data;
	struct physical_run run;

	item->runs = g_array_new(FALSE, FALSE, sizeof run);
	for (guint64 at = 0; at < item->size; at += run.bytes) {
		run.bytes = item->size - at;
		if (!model_physical(device->device, item->va + at, &run.pa, &run.bytes))
			return;
		g_array_append_val(item->runs, run);
	}
}

/* The peak is the first moment, the first lack of memory the second. */
static void add_moments(struct allocation_table *table, const struct replay_options *options)
{
	allocation_table_add_moment(table, MOMENT_PEAK, 0);
	allocation_table_add_moment(table, MOMENT_OOM, 0);
	for (guint m = 0; m < options->moment_count; m++)
		allocation_table_add_moment(table, options->moments[m].what,
					    options->moments[m].wanted);
}

/* A trace that is about no device is replayed on device 0. */
static void add_devices(struct replay *replay, struct trace *trace,
			const struct replay_options *options)
{
	if (trace->devices->len == 0)
		trace_device(trace, 0);
	for (guint d = 0; d < trace->devices->len; d++) {
		struct replay_device *device = g_new0(struct replay_device, 1);
		device->trace = g_ptr_array_index(trace->devices, d);
		device->device = device->trace->device;
		memory_usage_init(&device->usage, device->trace);
		add_moments(&device->usage.table, options);
		device->usage.table.look = look;
		device->usage.table.data = device;
		device->window.timed = TRUE;
		series_init(&device->series);
		g_ptr_array_add(replay->devices, device);
	}
}

static gboolean run_events(struct replay_run *run, GError **error)
{
	GPtrArray *engines = replay_engines_open(run, error);
	struct trace_event event;
	gboolean ok = engines && trace_rewind(run->trace, error);
	guint device;
	int more = 1;

	while (ok && (more = trace_next(run->trace, &device, &event, error)) > 0) {
		ok = replay_engine_step(g_ptr_array_index(engines, device), &event, 0, error);
		if (!replay_tick(run))
			break;
	}
	g_clear_pointer(&engines, g_ptr_array_unref);
	return ok && more >= 0;
}

static gboolean run_all(struct replay_run *run, GError **error)
{
	return run->trace->format ? replay_lines(run, error) : run_events(run, error);
}

static void finish_device(struct replay_device *device)
{
	struct npu_stats last;
	series_end(&device->series);
	if (!model_stats(device->device, &last))
		return;
	if (device->stats.size == 0)
		device->stats = last;
	device->stats.page_table_peak_bytes = last.page_table_peak_bytes;
	device->stats.own_peak_bytes = last.own_peak_bytes;
}

/* A policy hands out blocks: there must be some. */
static gboolean has_blocks(const struct trace *trace, GError **error)
{
	for (guint d = 0; d < trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(trace->devices, d);
		if (device->counts[TRACE_ALLOC] > 0 || device->blocks->len > 0)
			return TRUE;
	}
	g_set_error(
		error, REPLAY_ERROR, 0,
		"the file tells of no blocks that an allocator handed out, which a policy needs: "
		"use --policy as-recorded");
	return FALSE;
}

struct replay *replay_run(struct trace *trace, const struct replay_options *options, GError **error)
{
	if (policy_is_own(options->policy) && !has_blocks(trace, error))
		return NULL;
	struct replay *replay = g_new0(struct replay, 1);
	struct replay_run run = { .trace = trace, .replay = replay, .options = options };

	replay->policy = options->policy;
	replay->sites = trace->sites;
	replay->access = options->access;
	replay->devices = g_ptr_array_new_with_free_func(device_free);
	add_devices(replay, trace, options);
	const struct replay_device *last =
		g_ptr_array_index(replay->devices, replay->devices->len - 1);
	guint devices = last->device + 1;
	if (!model_open(devices, error)) {
		replay_free(replay);
		return NULL;
	}
	replay->soc = g_strdup(aclrtGetSocName());
	gint64 wall = g_get_monotonic_time();
	guint64 simulated = npusim_now_ps();
	gboolean ok = run_all(&run, error);
	replay->wall_us = g_get_monotonic_time() - wall;
	replay->simulated_ps = npusim_now_ps() - simulated;
	for (guint d = 0; d < replay->devices->len; d++)
		finish_device(g_ptr_array_index(replay->devices, d));
	model_close(devices);
	if (ok)
		return replay;
	replay_free(replay);
	return NULL;
}

void replay_free(struct replay *replay)
{
	if (replay == NULL)
		return;
	g_ptr_array_unref(replay->devices);
	g_free(replay->soc);
	g_free(replay);
}
