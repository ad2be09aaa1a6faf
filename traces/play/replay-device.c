/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what a replay records about a device: peaks, moments, and the first out-of-memory event.
 */
#include "replay.h"

/* Whether b has more physical memory than a, or as much and more of it live. */
static gboolean is_more(const struct memory_sums *a, const struct memory_sums *b)
{
	return b->physical != a->physical ? b->physical > a->physical : b->live > a->live;
}

/* The one that says more: of two alike, the first. */
static const struct series_point *more(const struct series_point *a, const struct series_point *b)
{
	return is_more(&a->sums, &b->sums) ? b : a;
}

static void halve(struct series *s)
{
	struct series_point *p = (struct series_point *)s->points->data;
	guint kept = 1; /* the start stays by itself */

	for (guint i = 1; i < s->points->len; i += 2)
		p[kept++] = i + 1 < s->points->len ? *more(&p[i], &p[i + 1]) : p[i];
	g_array_set_size(s->points, kept);
	s->stride *= 2;
}

static void series_add(struct series *s, guint64 event, const struct memory_sums *sums)
{
	struct series_point point = { .event = event, .sums = *sums }, *at;

	s->last = point;
	if (s->points->len > 1 && s->open > 0 && s->open < s->stride) {
		at = &g_array_index(s->points, struct series_point, s->points->len - 1);
		*at = *more(at, &point);
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
	guint64 physical = device->memory.physical;
	struct npu_stats stats;
	if (physical <= device->noted_physical || !model_stats(device->device, &stats))
		return;
	device->noted_physical = physical;
	device->stats = stats;
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
		if (has_come(device, &memory->moments[m], event, time_us))
			memory_mark(memory, &memory->moments[m], event);
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

void replay_note_end(struct replay_device *device)
{
	struct memory *memory = &device->memory;

	replay_note_peak(device);
	for (guint m = MOMENT_OOM + 1; m < memory->moment_count; m++) {
		if (memory->moments[m].what == MOMENT_END)
			memory_mark(memory, &memory->moments[m], device->series.last.event);
	}
	memory_look_all(memory);
}

gboolean replay_tells_live(const struct replay_device *device)
{
	return device->trace->counts[NPU_TRACE_ALLOC] > 0 || device->memory.start_live > 0;
}

gboolean replay_tells_fragmentation(const struct replay_device *device)
{
	return replay_tells_live(device) && !device->outside;
}

struct call_figures replay_calls(const struct replay_device *device, enum model_call first,
				 enum model_call end)
{
	struct call_figures sum = { 0 };

	for (enum model_call c = first; c < end; c++) {
		sum.calls += device->window.calls[c].calls;
		sum.ps += device->window.calls[c].ps;
	}
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

/* Where an item's memory lies on the device. */
static void look(struct allocation *item, gpointer data)
{
	const struct replay_device *device = data;
	struct physical_run run;

	item->runs = g_array_new(FALSE, FALSE, sizeof run);
	for (guint64 at = 0; at < item->size; at += run.bytes) {
		run.bytes = item->size - at;
		if (npusim_physical((int)device->device, item->va + at, &run.pa, &run.bytes) != 0)
			return;
		g_array_append_val(item->runs, run);
	}
}

/* The peak is the first moment, the first lack of memory the second. */
struct replay_device *replay_device_new(struct trace_device *trace, const struct moment *moments,
					guint count)
{
	struct replay_device *device = g_new0(struct replay_device, 1);
	struct memory *memory = &device->memory;

	device->trace = trace;
	device->device = trace->device;
	memory_init(memory, trace->block_unit);
	memory_add_moment(memory, MOMENT_PEAK, 0);
	memory_add_moment(memory, MOMENT_OOM, 0);
	for (guint m = 0; m < count; m++)
		memory_add_moment(memory, moments[m].what, moments[m].wanted);
	memory->look = look;
	memory->data = device;
	device->series.points = g_array_new(FALSE, FALSE, sizeof(struct series_point));
	device->series.stride = 1;
	return device;
}

void replay_device_free(gpointer data)
{
	struct replay_device *device = data;

	memory_clear(&device->memory);
	g_array_unref(device->series.points);
	model_device_clear(&device->window);
	g_free(device);
}

void replay_finish(struct replay_device *device)
{
	const struct series *s = &device->series;
	const guint n = s->points->len;
	struct npu_stats last;

	if (n > 0 && g_array_index(s->points, struct series_point, n - 1).event != s->last.event)
		g_array_append_val(s->points, s->last);
	if (!model_stats(device->device, &last))
		return;
	if (device->stats.size == 0)
		device->stats = last;
	device->stats.page_table_peak_bytes = last.page_table_peak_bytes;
	device->stats.own_peak_bytes = last.own_peak_bytes;
}
