/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay's frame: the model opened and closed, one device after another, what is common to both
 * kinds of event.
 */
#include "replay.h"

#include "npusim/npusim.h"
#include "replay-track.h"

#define PROGRESS_EVERY 64

GQuark replay_error_quark(void)
{
	return g_quark_from_static_string("npusim-replay");
}

gboolean replay_tick(struct replay_run *run)
{
	struct replay *replay = run->replay;
	replay->done++;
	if (replay->done < run->next_progress || run->options->progress == NULL)
		return TRUE;
	run->next_progress = replay->done + PROGRESS_EVERY;
	if (run->options->progress(replay->done, run->trace->events, run->options->data))
		return TRUE;
	replay->interrupted = TRUE;
	return FALSE;
}

void replay_note_peak(struct replay_device *device)
{
	guint64 physical = device->account.physical;
	struct npu_stats stats;
	if (physical <= device->noted_physical || !model_stats(device->device, &stats))
		return;
	device->noted_physical = physical;
	device->stats = stats;
}

static void mark(struct replay_device *device, struct ledger_moment *moment, guint64 event,
		 const struct ledger_sums *sums)
{
	ledger_mark(&device->account.ledger, moment, event, sums);
}

/* A time has come with the first event that is not before it. */
static gboolean has_come(const struct replay_device *device, const struct ledger_moment *m,
			 guint64 event, guint64 time_us)
{
	if (m->what == LEDGER_EVENT)
		return m->wanted == event;
	return m->what == LEDGER_TIME && !m->reached && time_us > 0 &&
	       time_us - MIN(time_us, device->first_us) >= m->wanted;
}

void replay_sample(struct replay_device *device, guint64 event, guint64 time_us)
{
	struct ledger *ledger = &device->account.ledger;
	struct ledger_moment *peak = &ledger->moments[0];
	struct ledger_sums sums;

	if (device->first_us == 0)
		device->first_us = time_us;
	account_sums(&device->account, &sums);
	device->outside |= sums.external < 0;
	series_add(&device->series, event, &sums);
	if (!peak->reached || series_is_more(&peak->sums, &sums))
		mark(device, peak, event, &sums);
	for (guint m = 2; m < ledger->moment_count; m++) {
		if (has_come(device, &ledger->moments[m], event, time_us))
			mark(device, &ledger->moments[m], event, &sums);
	}
}

void replay_note_failure(struct replay_device *device, guint64 event, guint64 line, guint64 size,
			 guint32 site)
{
	struct ledger_sums sums;

	if (device->failed_size)
		return;
	device->failed_at = event;
	device->failed_line = line;
	device->failed_size = MAX(size, 1);
	device->failed_site = site;
	model_stats(device->device, &device->failed_stats);
	account_sums(&device->account, &sums);
	mark(device, &device->account.ledger.moments[1], event, &sums);
}

void replay_note_end(struct replay_device *device)
{
	struct ledger *ledger = &device->account.ledger;
	struct ledger_sums sums;

	replay_note_peak(device);
	account_sums(&device->account, &sums);
	for (guint m = 2; m < ledger->moment_count; m++) {
		if (ledger->moments[m].what == LEDGER_END)
			mark(device, &ledger->moments[m], device->series.last.event, &sums);
	}
	ledger_look_all(ledger);
}

gboolean replay_is_policy(const struct replay *replay)
{
	return replay->policy && replay->policy->kind != POLICY_AS_RECORDED;
}

gboolean replay_tells_live(const struct replay_device *device)
{
	return device->trace->counts[TRACE_ALLOC] > 0 || device->account.start_live > 0;
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

struct replay_device *replay_find(const struct replay *replay, gint32 device)
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
	account_clear(&device->account);
	series_clear(&device->series);
	model_device_clear(&device->window);
	g_free(device);
}

/* Where an item's memory lies on the device. */
static void look(struct ledger_item *item, gpointer data)
{
	const struct replay_device *device = data;
	struct ledger_run run;

	item->runs = g_array_new(FALSE, FALSE, sizeof run);
	for (guint64 at = 0; at < item->size; at += run.bytes) {
		run.bytes = item->size - at;
		if (!model_physical(device->device, item->va + at, &run.pa, &run.bytes))
			return;
		g_array_append_val(item->runs, run);
	}
}

/* The peak is the first moment, the first lack of memory the second. */
static void add_moments(struct ledger *ledger, const struct replay_options *options)
{
	ledger_add_moment(ledger, LEDGER_PEAK, 0);
	ledger_add_moment(ledger, LEDGER_OOM, 0);
	for (guint m = 0; m < options->moment_count; m++)
		ledger_add_moment(ledger, options->moments[m].what, options->moments[m].wanted);
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
		account_init(&device->account, device->trace);
		add_moments(&device->account.ledger, options);
		device->account.ledger.look = look;
		device->account.ledger.data = device;
		device->window.timed = TRUE;
		series_init(&device->series);
		g_ptr_array_add(replay->devices, device);
	}
}

/* The devices' tracks, in the order of the replay's devices. */
static GPtrArray *open_tracks(struct replay_run *run, GError **error)
{
	GPtrArray *tracks = g_ptr_array_new_with_free_func((GDestroyNotify)track_close);

	for (guint d = 0; d < run->replay->devices->len; d++) {
		struct track *track =
			track_open(g_ptr_array_index(run->replay->devices, d), run->options);
		g_ptr_array_add(tracks, track);
		if (track_start(track, error))
			continue;
		g_ptr_array_unref(tracks);
		return NULL;
	}
	return tracks;
}

static gboolean run_events(struct replay_run *run, GError **error)
{
	GPtrArray *tracks = open_tracks(run, error);
	struct trace_event event;
	gboolean ok = tracks && trace_rewind(run->trace, error);
	guint device;
	int more = 1;

	while (ok && (more = trace_next(run->trace, &device, &event, error)) > 0) {
		ok = track_step(g_ptr_array_index(tracks, device), &event, 0, error);
		if (!replay_tick(run))
			break;
	}
	g_clear_pointer(&tracks, g_ptr_array_unref);
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
	if (track_is_policy(options) && !has_blocks(trace, error))
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
	g_free(replay->contract);
	g_free(replay->backend);
	g_free(replay);
}
