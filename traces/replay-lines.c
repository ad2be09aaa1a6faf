/* SPDX-License-Identifier: Apache-2.0
 *
 * An npusim trace, line after line, as it lies in the file. Where it has calls that get memory,
 * they are made again, and what the allocator above says of its segments is for the record; where
 * it has none, its segments are made.
 */
#include "format.h"
#include "replay-track.h"

struct lines {
	struct replay_run *run;
	struct player *player; /* NULL: segments are made */
	GPtrArray
		*tracks; /* of each device of the replay, in its order; none where calls are made */
};

static gboolean open_lines(struct lines *l, struct replay_run *run, GError **error)
{
	*l = (struct lines){ .run = run,
			     .tracks =
				     g_ptr_array_new_with_free_func((GDestroyNotify)track_close) };
	if (run->trace->memory_calls > 0 && !track_is_policy(run->options)) {
		l->player = player_open(run);
		return TRUE;
	}
	for (guint i = 0; i < run->replay->devices->len; i++) {
		struct track *track =
			track_open(g_ptr_array_index(run->replay->devices, i), run->options);
		g_ptr_array_add(l->tracks, track);
		if (!track_start(track, error))
			return FALSE;
	}
	return TRUE;
}

static void close_lines(struct lines *l)
{
	if (l->player)
		player_close(l->player);
	g_ptr_array_unref(l->tracks);
}

static struct track *track_of(const struct lines *l, const struct replay_device *device)
{
	for (guint i = 0; i < l->tracks->len; i++) {
		if (g_ptr_array_index(l->run->replay->devices, i) == device)
			return g_ptr_array_index(l->tracks, i);
	}
	return NULL;
}

static gboolean is_about_segments(const struct trace_event *e)
{
	return e->action == TRACE_SEGMENT_ALLOC || e->action == TRACE_SEGMENT_FREE ||
	       e->action == TRACE_SEGMENT_MAP || e->action == TRACE_SEGMENT_UNMAP;
}

static gboolean event(struct lines *l, const struct trace_record *record, GError **error)
{
	struct replay_device *device = replay_find(l->run->replay, record->device);
	if (record->code != 0 || device == NULL)
		return TRUE;
	if (l->player == NULL)
		return track_step(track_of(l, device), &record->event, record->line, error);
	if (!is_about_segments(&record->event))
		account_step(&device->account, &record->event);
	return TRUE;
}

/* Calls name no device: all are looked at. */
static void sample_all(const struct replay_run *run, guint64 time_us)
{
	for (guint i = 0; i < run->replay->devices->len; i++)
		replay_sample(g_ptr_array_index(run->replay->devices, i), run->replay->done + 1,
			      time_us);
}

gboolean replay_lines(struct replay_run *run, GError **error)
{
	struct trace_record record;
	struct lines l;
	int more = 1;
	gboolean ok = open_lines(&l, run, error);

	while (ok && (more = format_next(run->trace->format, &record, error)) > 0) {
		record.event.time_us = (gint64)(record.host_ns / 1000);
		if (record.verb == TRACE_EVENT)
			ok = event(&l, &record, error);
		else if (l.player)
			ok = player_step(l.player, &record, error);
		if (l.player)
			sample_all(run, record.host_ns / 1000);
		if (!replay_tick(run))
			break;
	}
	close_lines(&l);
	return ok && more >= 0;
}
