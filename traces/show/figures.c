/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures of a result and its devices: the objects from the innermost outwards, each
 * preceded by the figures that are derived from others. show/manual.py reads the rows' names and
 * sentences for the manual page.
 */
#include "show.h"

#include <math.h>

static const struct member histogram[] = {
	{ "up_to_ns", MEMBER_COUNT, .array = ARRAY_COLUMN },
	{ "calls", MEMBER_COUNT, .array = ARRAY_COLUMN,
	  .manual = "Lists of equal length: the upper bound of each bucket, and the number of "
		    "calls that took longer than the previous bound and at most this one. The "
		    "bounds divide each power of two of picoseconds into four equal parts; buckets "
		    "without calls are left out." },
	{ 0 },
};

/* Bins of a quarter of a doubling; those without calls are left out. */
#define FINE_BINS 16

static void build_histogram(JsonBuilder *b, gconstpointer at)
{
	const struct latency *l = at;

	for (int list = 0; list < 2; list++) {
		json_list(b, histogram[list].name);
		for (guint bin = 0; bin < LATENCY_BINS; bin += FINE_BINS) {
			guint64 count = 0, end = latency_bin_end_ps(bin + FINE_BINS - 1) / 1000;
			for (guint i = 0; i < FINE_BINS; i++)
				count += l->bins[bin + i];
			if (count > 0)
				json_builder_add_int_value(b, (gint64)(list ? count : end));
		}
		json_builder_end_array(b);
	}
}

READ(gint64, quantile_50, latency, l, (gint64)latency_quantile_ps(l, 0.5))
READ(gint64, quantile_90, latency, l, (gint64)latency_quantile_ps(l, 0.9))
READ(gint64, quantile_99, latency, l, (gint64)latency_quantile_ps(l, 0.99))

static const struct member latency[] = {
	{ "min_ns", MEMBER_TIME, AT(latency, min_ps) },
	{ "p50_ns", MEMBER_TIME, .whole = quantile_50 },
	{ "p90_ns", MEMBER_TIME, .whole = quantile_90 },
	{ "p99_ns", MEMBER_TIME, .whole = quantile_99 },
	{ "max_ns", MEMBER_TIME, AT(latency, max_ps),
	  "The minimum, the 50th, 90th and 99th percentiles, and the maximum. Minimum and maximum "
	  "are exact; the percentiles are within 1.6 per cent and never too small." },
	{ "histogram", MEMBER_OBJECT, .build = build_histogram, .members = histogram,
	  .no_figure = TRUE, .manual = "The distribution: an object with the two members below." },
	{ 0 },
};

READ(gboolean, moves, call_figures, c, c->latency.calls == 0)

const struct member figures_calls[] = {
	{ "calls", MEMBER_COUNT, AT(call_figures, calls), "The number of calls." },
	{ "refused", MEMBER_COUNT, AT(call_figures, refused),
	  "The number of them that the model refused with an error." },
	{ "bytes", MEMBER_BYTES, .has = moves, AT(call_figures, bytes),
	  "Of copies and fills: what they moved." },
	{ "time_ns", MEMBER_TIME, AT(call_figures, ps), "The total time spent in them." },
	{ "latency", MEMBER_OBJECT, AT(call_figures, latency), .unless_0 = TRUE, .members = latency,
	  .manual = "Of other calls: how long they took, refused or not, an object with the "
		    "members below." },
	{ 0 },
};

#define CALLS_MEMBER(call, name)                                                                \
	{ name, MEMBER_OBJECT, AT(replay_device, window.calls[MODEL_##call]), .unless_0 = TRUE, \
	  .members = figures_calls },
static const struct member calls_by_kind[] = { MODEL_MEMORY_CALLS(CALLS_MEMBER){ 0 } };
static const struct member moves_by_kind[] = { MODEL_MOVE_CALLS(CALLS_MEMBER){ 0 } };

const struct member figures_access[] = {
	{ "reads", MEMBER_COUNT, AT(access_figures, reads) },
	{ "bytes", MEMBER_BYTES, AT(access_figures, bytes) },
	{ "time_ns", MEMBER_TIME, AT(access_figures, ps),
	  "The number of reads by cores, their bytes, and the time that they took." },
	{ "tlb_requests", MEMBER_COUNT, AT(access_figures, tlb_requests) },
	{ "tlb_hits", MEMBER_COUNT, AT(access_figures, tlb_hits) },
	{ "tlb_misses", MEMBER_COUNT, AT(access_figures, tlb_misses),
	  "Lookups in the TLBs, their hits and their misses." },
	{ "walks", MEMBER_COUNT, AT(access_figures, walks) },
	{ "walk_ns", MEMBER_TIME, AT(access_figures, walk_ps),
	  "Page table walks, and the total time spent in them." },
	{ "hbm_bytes", MEMBER_BYTES, AT(access_figures, hbm_bytes), "Bytes read from HBM." },
	{ "row_hits", MEMBER_COUNT, AT(access_figures, row_hits) },
	{ "row_misses", MEMBER_COUNT, AT(access_figures, row_misses),
	  "HBM accesses that hit an open row, and that did not." },
	{ 0 },
};

READ(gboolean, failed_at_event, replay_device, d, d->failed_line == 0)
READ(gboolean, knows_device, replay_device, d, d->failed_stats.size != 0)
READ(gint64, device_free, replay_device, d,
     (gint64)(d->failed_stats.usable_bytes -
	      MIN(d->failed_stats.used_bytes, d->failed_stats.usable_bytes)))
READ(char *, place_of_failure, replay_device, d,
     d->failed_at || d->failed_line ? history_place(d->failed_line, d->failed_at)
				    : g_strdup("what was live at the start"))
READ(char *, site_of_failure, replay_device, d,
     g_strdup(site_text(d->replay->trace->sites, d->failed_site)))

const struct member figures_failure[] = {
	{ "line", MEMBER_PLACE, .unless_0 = TRUE, AT(replay_device, failed_line),
	  "The line of the trace, if it has calls." },
	{ "event", MEMBER_PLACE, .has = failed_at_event, AT(replay_device, failed_at),
	  "Otherwise the number of the event in the device's history, counted from 1 (0: the state "
	  "when the window began)." },
	{ "bytes", MEMBER_BYTES, AT(replay_device, failed_size), "The size that was requested." },
	{ "site", MEMBER_TEXT, .text = site_of_failure,
	  .manual = "The call site of the request, if the file records it." },
	{ "device_free_bytes", MEMBER_BYTES, .has = knows_device, .whole = device_free,
	  .manual = "The free memory of the device at that time." },
	{ "largest_free_frames_bytes", MEMBER_BYTES, .has = knows_device,
	  AT(replay_device, failed_stats.largest_free_bytes), "The longest run of free frames." },
	{ "free_1g_pages", MEMBER_COUNT, .has = knows_device,
	  AT(replay_device, failed_stats.free_giants),
	  "The number of pages of 1 GiB that could be allocated." },
	{ "place", MEMBER_TEXT, .text = place_of_failure, .in_text_only = TRUE },
	{ "all_bytes", MEMBER_BYTES, AT(replay_device, stats.usable_bytes), .in_text_only = TRUE },
	{ 0 },
};

static const struct member figures_recorded_oom[] = {
	{ "event", MEMBER_PLACE, AT(recorded_oom, event),
	  "The number of the event in the device's history, counted from 1." },
	{ "bytes", MEMBER_BYTES, AT(recorded_oom, asked),
	  "The size that the allocator asked the device for." },
	{ "device_free_bytes", MEMBER_BYTES, AT(recorded_oom, free_bytes),
	  "The free memory of the device at that time." },
	{ "physical_bytes", MEMBER_BYTES, AT(recorded_oom, physical),
	  "The memory that the allocator held." },
	{ "live_bytes", MEMBER_BYTES, AT(recorded_oom, live), "What of it blocks used." },
	{ 0 },
};

#define PEAK(d) ((d)->memory.levels.of[LEVEL_PHYSICAL].peak.bytes)

/* Share of physical memory that no live block used when physical memory was at its peak. */
READ(double, fragmentation, replay_device, d,
     PEAK(d) ? 1.0 - (double)MIN(d->memory.levels.live_at_peak, PEAK(d)) / PEAK(d) : 0)

/* Bytes that the second-level TLB can cover with the pages that were in use at the peak. */
static gint64 tlb_reach(gconstpointer at)
{
	const struct npu_stats *s = &((const struct replay_device *)at)->stats;
	guint64 page = s->leaves_1g > s->leaves_2m          ? 30
		       : s->leaves_2m >= s->leaves_4k / 512 ? 21
							    : 12;
	return (gint64)(s->tlb_l2_entries << page);
}

/* What the page table led to, by maps and by mallocs. */
READ(gint64, mapped, replay_device, d,
     (gint64)((d->stats.leaves_4k << 12) + (d->stats.leaves_2m << 21) + (d->stats.leaves_1g << 30)))
READ(gint64, device_number, replay_device, d, d->device)
READ(gboolean, has_each, replay_device, d, d->window.each != NULL)
READ(gboolean, has_moves, replay_device, d, d->window.moves.calls > 0)
READ(double, tlb_share, replay_device, d, MIN(1, (double)tlb_reach(d) / MAX((double)mapped(d), 1)))
READ(gint64, is_rounded, replay_device, d,
     d->failed_size == 0 && d->stats.own_peak_bytes != PEAK(d))
READ(gboolean, tells_live, replay_device, d, replay_tells_live(d))
READ(gboolean, tells_losses, replay_device, d, replay_tells_fragmentation(d))
READ(gboolean, has_policy, replay_device, d, policy_is_own(d->replay->options.policy))
READ(gboolean, has_access, replay_device, d, d->replay->options.access.pattern != ACCESS_NONE)
READ(gboolean, has_failure, replay_device, d, d->failed_size != 0)

static void build_events(JsonBuilder *b, gconstpointer at)
{
	const struct trace_device *t = ((const struct replay_device *)at)->trace;

	for (guint a = 0; a < TRACE_ACTIONS; a++) {
		guint64 count = t->counts[trace_actions[a].verb];
		if (count > 0)
			json_number(b, trace_actions[a].name, count);
	}
	for (guint i = 0; i < t->others.list->len; i++)
		json_number(b, g_ptr_array_index(t->others.list, i),
			    g_array_index(t->other_counts, guint64, i));
}

static void build_moments(JsonBuilder *b, gconstpointer at)
{
	const struct replay_device *d = at;
	const struct memory *memory = &d->memory;
	struct moment_view v;

	for (guint m = 0; m < memory->moment_count; m++) {
		if (!memory->moments[m].reached)
			continue;
		moment_view_init(&v, d, &memory->moments[m]);
		members_build_object(b, figures_moment, &v);
		moment_view_clear(&v);
	}
}

#define POLICY_EVENT(verb) AT(replay_device, policy_counts[verb])

static const struct member policy_events[] = {
	{ "segment_alloc", MEMBER_COUNT, POLICY_EVENT(NPU_TRACE_SEGMENT_ALLOC) },
	{ "segment_free", MEMBER_COUNT, POLICY_EVENT(NPU_TRACE_SEGMENT_FREE) },
	{ "segment_map", MEMBER_COUNT, POLICY_EVENT(NPU_TRACE_SEGMENT_MAP) },
	{ "segment_unmap", MEMBER_COUNT, POLICY_EVENT(NPU_TRACE_SEGMENT_UNMAP),
	  "How often the allocator obtained and released memory." },
	{ "empty_cache", MEMBER_COUNT, VIA(replay_device, filter, filter, emptied),
	  "How often its cache was emptied." },
	{ 0 },
};

#define OF_POINT(part) COLUMN(replay_device, series.points, series_point, part)

static const struct member series[] = {
	{ "event", MEMBER_PLACE, OF_POINT(event), "The number of the event; 0 is the start." },
	{ "live_bytes", MEMBER_BYTES, OF_POINT(sums.live) },
	{ "physical_bytes", MEMBER_BYTES, OF_POINT(sums.physical) },
	{ "reserved_bytes", MEMBER_BYTES, OF_POINT(sums.reserved),
	  "As defined under MEMORY below." },
	{ "internal_bytes", MEMBER_BYTES, OF_POINT(sums.internal), .has = tells_losses },
	{ "external_bytes", MEMBER_BYTES, OF_POINT(sums.external), .has = tells_losses },
	{ "page_rounding_bytes", MEMBER_BYTES, .has = tells_losses, OF_POINT(sums.rounding),
	  "Likewise, if the file records what was live and all of it lay in memory that the file "
	  "also records." },
	{ 0 },
};

#define OF_ONCE(part) COLUMN(replay_device, window.each, model_once, part)

static void build_functions(JsonBuilder *b, gconstpointer at)
{
	(void)at;
	for (int c = 0; c < MODEL_CALL_COUNT; c++)
		json_builder_add_string_value(b, model_call_names[c]);
}

static const struct member each_call[] = {
	{ "functions", MEMBER_LIST, .build = build_functions,
	  .manual = "The names of functions, and of the members of `copies`." },
	{ "event", MEMBER_PLACE, OF_ONCE(event), "The event that a call was made for." },
	{ "function", MEMBER_PLACE, OF_ONCE(call), "Its function, a place in `functions`." },
	{ "took_ns", MEMBER_COUNT, OF_ONCE(ns), "The simulated time that it took." },
	{ 0 },
};

#define OF_RUN(part) COLUMN(replay_device, runs, replay_run, part)

static const struct member frames[] = {
	{ "since", MEMBER_PLACE, OF_RUN(since) },
	{ "until", MEMBER_PLACE, OF_RUN(until),
	  "The event from which and the one before which it lay there." },
	{ "address", MEMBER_PLACE, OF_RUN(address), "Its address, as in `address_map`." },
	{ "physical", MEMBER_PLACE, OF_RUN(pa), "Its place in the memory of the device." },
	{ "bytes", MEMBER_BYTES, OF_RUN(bytes), "Its size." },
	{ 0 },
};

#define OF_LEVEL(kind, part) AT(replay_device, memory.levels.of[LEVEL_##kind].part)

const struct member figures_device[] = {
	{ "device", MEMBER_COUNT, .whole = device_number, .manual = "The number of the device." },
	{ "events", MEMBER_MAP, .build = build_events,
	  .manual = "An object: the number of events of each action in the file, by the name of "
		    "the action." },
	{ "start_physical_bytes", MEMBER_BYTES, OF_LEVEL(PHYSICAL, start),
	  "Physical memory when the window began." },
	{ "start_live_bytes", MEMBER_BYTES, OF_LEVEL(LIVE, start),
	  "The requested sizes of the blocks that were live when the window began." },
	{ "peak_physical_bytes", MEMBER_BYTES, OF_LEVEL(PHYSICAL, peak.bytes),
	  "The peak of physical memory." },
	{ "peak_live_bytes", MEMBER_BYTES, OF_LEVEL(LIVE, peak.bytes), "The peak of live memory." },
	{ "obtained_bytes", MEMBER_BYTES, OF_LEVEL(PHYSICAL, got),
	  "The total physical memory obtained since the window began." },
	{ "live_at_physical_peak_bytes", MEMBER_BYTES,
	  AT(replay_device, memory.levels.live_at_peak),
	  "The most live memory while physical memory was at its peak." },
	{ "fragmentation", MEMBER_REAL, .has = tells_live, .real = fragmentation,
	  .manual = "The fraction of the physical peak that held no live block, 0 to 1; left out "
		    "if the file does not record what was live." },
	{ "device_peak_bytes", MEMBER_BYTES, AT(replay_device, stats.own_peak_bytes),
	  "The most memory of the model's device that the replay held, in whole pages." },
	{ "device_bytes", MEMBER_BYTES, AT(replay_device, stats.usable_bytes),
	  "The memory of the model's device that programs can allocate." },
	{ "vmm_calls", MEMBER_COUNT, AT(replay_device, window.all.calls),
	  "The number of calls since the window began that allocate, free, map or unmap memory." },
	{ "vmm_time_ns", MEMBER_TIME, AT(replay_device, window.all.ps),
	  "The total time spent in them." },
	{ "vmm_calls_by_kind", MEMBER_OBJECT, .members = calls_by_kind,
	  .manual = "An object with one member, itself an object, for each ACL function that was "
		    "called, such as aclrtMapMem." },
	{ "page_table_bytes", MEMBER_BYTES, AT(replay_device, stats.page_table_peak_bytes),
	  "The peak size of its page table." },
	{ "tlb_reach_bytes", MEMBER_BYTES, .whole = tlb_reach,
	  .manual = "The memory that the second-level TLB covers with pages of the size in use at "
		    "the peak." },
	{ "mapped_bytes_at_peak", MEMBER_BYTES, .whole = mapped,
	  .manual = "The memory mapped in the page table when physical memory was at its peak, by "
		    "maps and by classic allocations." },
	{ "unknown_frees", MEMBER_COUNT, AT(replay_device, memory.unmatched),
	  "The number of blocks that were freed without having been allocated, or allocated "
	  "twice." },
	{ "contradictions", MEMBER_COUNT, AT(replay_device, memory.file.contradictions),
	  "The number of the file's events that free what is not live, or allocate over a live "
	  "block." },
	{ "first_contradiction", MEMBER_TEXT, AT(replay_device, memory.file.first),
	  "The first of them in words, with its event or line, if there is one." },
	{ "differing_results", MEMBER_COUNT, AT(replay_device, differing),
	  "The number of recorded calls that the model answered differently." },
	{ "calls_left_out", MEMBER_COUNT, AT(replay_device, left_out),
	  "The number of recorded calls that were skipped because an object that they name does "
	  "not exist." },
	{ "policy_events", MEMBER_OBJECT, .has = has_policy, .members = policy_events,
	  .manual = "Only under a policy: an object that counts the allocator's actions since the "
		    "window began." },
	{ "blocks_without_memory", MEMBER_COUNT, .has = has_policy, AT(replay_device, lost_blocks),
	  "Only under a policy: the number of blocks for which the device had no memory." },
	{ "access", MEMBER_OBJECT, .has = has_access, .members = figures_access,
	  AT(replay_device, access),
	  "Only if cores read (`--access`): an object with the results of the reads." },
	{ "copies", MEMBER_OBJECT, .has = has_moves, .members = moves_by_kind,
	  .manual = "Only if recorded copies or fills were repeated: an object with those of the "
		    "members `host_to_host , host_to_device , device_to_host , device_to_device` "
		    "and `fill` that occurred, each an object. Copies between two devices count "
		    "for the destination device." },
	{ "series", MEMBER_OBJECT, .members = series,
	  .manual = "An object with lists of equal length, at most 2000 entries. A longer history "
		    "is thinned out: of adjacent events, the one with the most physical memory is "
		    "kept and, if that is equal, the one with the most live memory." },
	{ "each_call", MEMBER_OBJECT, .has = has_each, .members = each_call,
	  .manual = "Only with `--each-call`: lists of equal length, one entry for each call that "
		    "`vmm_calls` or `copies` counts; from 20000 on, of two calls the longer one." },
	{ "frames", MEMBER_OBJECT, .has = has_each, .members = frames,
	  .manual = "Only with `--each-call`: lists of equal length, one entry for each piece of "
		    "physical memory that lay at an address, at most 20000." },
	{ "out_of_memory", MEMBER_OBJECT, .has = has_failure, .members = figures_failure,
	  .manual = "Only if the device ran out of memory: an object that describes the first such "
		    "event." },
	{ "recorded_out_of_memory", MEMBER_OBJECT, .unless_0 = TRUE,
	  .members = figures_recorded_oom, AT(replay_device, memory.file.oom),
	  "Only if the file records that the device ran out of memory: an object with what the "
	  "file says of the first such event." },
	{ "moments", MEMBER_LIST, .build = build_moments, .members = figures_moment,
	  .manual = "A list of objects, one for each point in the history that is shown: the peak, "
		    "the first out-of-memory event if there was one, and the points that `--at` "
		    "names, if the device's history contains them." },
	{ "is_rounded", MEMBER_FLAG, .whole = is_rounded, .in_text_only = TRUE },
	{ "tlb_entries", MEMBER_COUNT, AT(replay_device, stats.tlb_l2_entries),
	  .in_text_only = TRUE },
	{ "tlb_share", MEMBER_REAL, .real = tlb_share, .in_text_only = TRUE },
	{ 0 },
};

READ(gint64, schema, result, w, RESULT_SCHEMA_VERSION)
READ(char *, program, result, w, g_strdup(RESULT_PROGRAM))
READ(char *, file, result, w, g_filename_display_name(w->path))
READ(char *, policy, result, w, g_strdup(policy_names[w->replay->options.policy->kind]))
READ(char *, page, result, w,
     policy_is_own(w->replay->options.policy)
	     ? g_strdup(w->replay->options.policy->page_1g ? "1g" : "2m")
	     : NULL)
READ(char *, access_pattern, result, w, access_text(&w->replay->options.access))
READ(gint64, complete, result, w, !w->replay->interrupted)

/* A key that was set twice has its last value. */
static void build_options(JsonBuilder *b, gconstpointer at)
{
	const GPtrArray *given = ((const struct result *)at)->replay->options.policy->given;

	for (guint i = 0; i < given->len; i++) {
		const char *setting = g_ptr_array_index(given, i);
		const char *equals = strchr(setting, '=');
		g_autofree char *key = g_strndup(setting, (gsize)(equals - setting));
		json_text(b, key, equals + 1);
	}
}

READ(gint64, time_recorded, replay_match, m,
     (gint64)MIN(latency_quantile_ps(&m->recorded, 0.5) * 1e3, 9e18))
READ(gint64, time_predicted, replay_match, m, (gint64)latency_quantile_ps(&m->predicted, 0.5))
READ(char *, times_apart, replay_match, m,
     g_strdup_printf("%.2f", exp(m->logs / m->recorded.calls)))

const struct member figures_call_times[] = {
	{ "calls", MEMBER_COUNT, AT(replay_match, recorded.calls) },
	{ "recorded_ns", MEMBER_TIME, .whole = time_recorded },
	{ "predicted_ns", MEMBER_TIME, .whole = time_predicted,
	  .manual = "The number of calls, and their median time, recorded and on the model." },
	{ "typically_apart", MEMBER_TEXT,
	  .manual = "The factor by which the two differ, as text: the geometric mean of the calls.",
	  .text = times_apart },
	{ 0 },
};

static void build_times(JsonBuilder *b, gconstpointer at)
{
	const struct replay_match *matches = ((const struct result *)at)->replay->options.matches;

	for (guint v = 0; v < REPLAY_MATCHES; v++) {
		if (matches[v].recorded.calls == 0)
			continue;
		json_builder_set_member_name(b, npu_trace_verb_name(v));
		members_build_object(b, figures_call_times, &matches[v]);
	}
}

#define OF_REPLAY(part) VIA(result, replay, replay, part)
#define OF_TRACE(part)  VIA(result, trace, trace, part)

const struct member figures_result[] = {
	{ "schema", MEMBER_COUNT, .whole = schema, .manual = "The schema's version: 2." },
	{ "program", MEMBER_TEXT, .text = program, .no_figure = TRUE,
	  .manual = ".Qq npusim replay ." },
	{ "file", MEMBER_TEXT, .text = file, .no_figure = TRUE,
	  .manual = "The name of the file, as given." },
	{ "kind", MEMBER_TEXT, .no_figure = TRUE, OF_TRACE(kind), "The kind of file, as text." },
	{ "soc", MEMBER_TEXT, OF_REPLAY(soc), "The SoC of the model." },
	{ "recorded_soc", MEMBER_TEXT, OF_TRACE(soc),
	  "The SoC on which the file was recorded, if the file says so." },
	{ "about", MEMBER_TEXT, .no_figure = TRUE, OF_TRACE(about),
	  "A description of what was recorded, if the file has one." },
	{ "events", MEMBER_COUNT, OF_TRACE(events), "The number of events in the file." },
	{ "events_done", MEMBER_COUNT, OF_REPLAY(done),
	  "The number of events that were replayed." },
	{ "policy", MEMBER_TEXT, .text = policy,
	  .manual = "The allocator that served the blocks: `--policy`." },
	{ "page", MEMBER_TEXT, .text = page,
	  .manual = "The page size of the policy, \"2m\" or \"1g\"; left out as recorded." },
	{ "options", MEMBER_MAP, .build = build_options,
	  .manual = "An object with the key and value of each `--set`, as text." },
	{ "access", MEMBER_TEXT, .text = access_pattern,
	  .manual = "The access pattern: `--access`." },
	{ "access_every", MEMBER_COUNT, .unless_0 = TRUE, OF_REPLAY(options.access.every),
	  "The number of events in a phase, `--access-every`; left out if reads happen with each "
	  "block." },
	{ "call_times", MEMBER_MAP, .build = build_times, .members = figures_call_times,
	  .manual = "An object with one member, itself an object, for each kind of call of which "
		    "the file tells how long it took, such as create." },
	{ "simulated_ns", MEMBER_TIME, OF_REPLAY(simulated_ps),
	  "Simulated time from the first event to the last." },
	{ "create_stall_ns", MEMBER_TIME, OF_REPLAY(stall_ps),
	  "What of it are stalls where memory is created: `DriverCalls.create_stall_ns`." },
	{ "wall_us", MEMBER_COUNT, .no_figure = TRUE, OF_REPLAY(wall_us),
	  "The time that the replay took on the host, in microseconds." },
	{ "complete", MEMBER_FLAG, .whole = complete,
	  .manual = "False if the replay was interrupted." },
	{ "devices", MEMBER_LIST, .array = ARRAY_POINTERS, .members = figures_device,
	  .no_figure = TRUE, OF_REPLAY(devices),
	  "A list of objects, one for each device that the file uses." },
	{ 0 },
};
