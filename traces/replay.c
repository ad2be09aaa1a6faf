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

void replay_sample(struct replay_device *device, guint64 event)
{
	series_add(&device->series, event, device->account.live, device->account.physical);
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
	g_free(device);
}

/* A trace that is about no device is replayed on device 0. */
static void add_devices(struct replay *replay, struct trace *trace)
{
	if (trace->devices->len == 0)
		trace_device(trace, 0);
	for (guint d = 0; d < trace->devices->len; d++) {
		struct replay_device *device = g_new0(struct replay_device, 1);
		device->trace = g_ptr_array_index(trace->devices, d);
		device->device = device->trace->device;
		account_init(&device->account, device->trace);
		series_init(&device->series);
		g_ptr_array_add(replay->devices, device);
	}
}

static gboolean run_device(struct replay_run *run, struct replay_device *device, GError **error)
{
	const GArray *events = device->trace->events;
	struct track *track = track_open(device, run->options);
	gboolean ok = track_start(track, error);
	for (guint i = 0; ok && i < events->len; i++) {
		ok = track_step(track, &g_array_index(events, struct trace_event, i), 0, error);
		if (!replay_tick(run))
			break;
	}
	track_close(track);
	return ok;
}

static gboolean run_all(struct replay_run *run, GError **error)
{
	if (run->trace->format)
		return replay_lines(run, error);
	for (guint d = 0; d < run->replay->devices->len && !run->replay->interrupted; d++) {
		if (!run_device(run, g_ptr_array_index(run->replay->devices, d), error))
			return FALSE;
	}
	return TRUE;
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
	replay->access = options->access;
	replay->devices = g_ptr_array_new_with_free_func(device_free);
	add_devices(replay, trace);
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
