/* SPDX-License-Identifier: Apache-2.0
 *
 * An npusim trace, line after line, as it lies in the file. Where it has calls that get memory,
 * they are made again, and what the allocator above says of its segments is for the record; where
 * it has none, its segments are made.
 */
#include "replay-engine.h"

struct lines {
	struct replay_run *run;
	struct call_replay *calls; /* NULL: segments are made */
	GPtrArray *engines; /* of each device of the replay, in its order; NULL beside calls */
};

static gboolean open_lines(struct lines *l, struct replay_run *run, GError **error)
{
	*l = (struct lines){ .run = run };
	if (run->trace->memory_calls > 0 && !policy_is_own(run->options->policy)) {
		l->calls = call_replay_open(run);
		return TRUE;
	}
	l->engines = replay_engines_open(run, error);
	return l->engines != NULL;
}

static void close_lines(struct lines *l)
{
	if (l->calls)
		call_replay_close(l->calls);
	g_clear_pointer(&l->engines, g_ptr_array_unref);
}

static struct replay_engine *engine_of(const struct lines *l, const struct replay_device *device)
{
	for (guint i = 0; i < l->engines->len; i++) {
		if (g_ptr_array_index(l->run->replay->devices, i) == device)
			return g_ptr_array_index(l->engines, i);
	}
	return NULL;
}

static gboolean is_about_segments(const struct trace_event *e)
{
	return e->action == TRACE_SEGMENT_ALLOC || e->action == TRACE_SEGMENT_FREE ||
	       e->action == TRACE_SEGMENT_MAP || e->action == TRACE_SEGMENT_UNMAP;
}

static gboolean event(struct lines *l, const struct format_line *line, GError **error)
{
	struct replay_device *device = replay_find(l->run->replay, line->record.device);
	if (line->record.code != 0 || device == NULL)
		return TRUE;
	if (l->calls == NULL)
		return replay_engine_step(engine_of(l, device), &line->event, line->record.line,
					  error);
	if (!is_about_segments(&line->event))
		memory_usage_step(&device->usage, &line->event);
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
	struct format_line line;
	struct lines l;
	int more = 1;
	gboolean ok = open_lines(&l, run, error);

	while (ok && (more = trace_next_line(run->trace, &line, error)) > 0) {
		if (trace_verbs[line.record.verb].event)
			ok = event(&l, &line, error);
		else if (l.calls)
			ok = call_replay_step(l.calls, &line.record, error);
		if (l.calls)
			sample_all(run, line.record.host_ns / 1000);
		if (!replay_tick(run))
			break;
	}
	close_lines(&l);
	return ok && more >= 0;
}
