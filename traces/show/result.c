/* SPDX-License-Identifier: Apache-2.0
 *
 * The table and the JSON of a replay.
 */
#include "result.h"

#include "json-out.h"
#include "result-moment.h"
#include "result-policy.h"

#define MIB (1024.0 * 1024.0)

/* ---- figures that follow from others ---- */

/* Share of physical memory that no live block used when physical memory was at its peak. */
static double fragmentation(const struct memory_usage *a)
{
	return a->peak_physical ? 1.0 - (double)MIN(a->live_at_peak_physical, a->peak_physical) /
						  a->peak_physical
				: 0;
}

/* Bytes that the second-level TLB can cover with the pages that were in use at the peak. */
static guint64 tlb_reach(const struct npu_stats *s)
{
	guint64 page = s->leaves_1g > s->leaves_2m          ? 30
		       : s->leaves_2m >= s->leaves_4k / 512 ? 21
							    : 12;
	return s->tlb_l2_entries << page;
}

/* What the page table led to, by maps and by mallocs. */
static guint64 mapped_bytes(const struct npu_stats *s)
{
	return (s->leaves_4k << 12) + (s->leaves_2m << 21) + (s->leaves_1g << 30);
}

/* ---- the table ---- */

static void row(FILE *out, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void row(FILE *out, const char *name, const char *format, ...)
{
	va_list args;
	fprintf(out, "  %-30s", name);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

static void print_events(FILE *out, const struct trace_device *t)
{
	g_autoptr(GString) text = g_string_new(NULL);
	for (int a = 0; a < TRACE_OTHER; a++) {
		if (t->counts[a])
			g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s",
					       text->len ? ", " : "", t->counts[a],
					       trace_action_name(a));
	}
	for (guint i = 0; i < t->other_names->len; i++)
		g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s (skipped)",
				       text->len ? ", " : "",
				       g_array_index(t->other_counts, guint64, i),
				       (const char *)g_ptr_array_index(t->other_names, i));
	if (text->len)
		row(out, "events", "%s", text->str);
}

/* Two kinds a line. */
static void print_calls(FILE *out, const struct replay_device *d)
{
	int shown = 0;
	row(out, "driver calls", "%" G_GUINT64_FORMAT ", %.3f ms of simulated time",
	    replay_calls(d), replay_calls_ps(d) / 1e9);
	for (int c = 0; c < MODEL_CALL_COUNT; c++) {
		if (d->window.count[c] == 0)
			continue;
		fprintf(out, "%s%-23s %7" G_GUINT64_FORMAT " x %5.1f us",
			shown % 2 ? "   " : "    ", model_call_name(c), d->window.count[c],
			d->window.ps[c] / 1e6 / d->window.count[c]);
		if (d->window.failed[c])
			fprintf(out, " (%" G_GUINT64_FORMAT " refused)", d->window.failed[c]);
		if (++shown % 2 == 0)
			fputc('\n', out);
	}
	if (shown % 2)
		fputc('\n', out);
}

static char *place_of_failure(const struct replay_device *d)
{
	if (d->failed_line)
		return g_strdup_printf("line %" G_GUINT64_FORMAT, d->failed_line);
	if (d->failed_at)
		return g_strdup_printf("event %" G_GUINT64_FORMAT, d->failed_at);
	return g_strdup("what was live at the start");
}

static void print_memory(FILE *out, const struct replay_device *d)
{
	const struct memory_usage *a = &d->usage;
	guint64 used = d->stats.own_peak_bytes;
	row(out, "physical memory",
	    "%.2f MiB at the start, %.2f MiB at the peak, %.2f MiB obtained since",
	    a->start_physical / MIB, a->peak_physical / MIB, a->obtained / MIB);
	if (replay_tells_live(d)) {
		row(out, "live memory", "%.2f MiB at the start, %.2f MiB at the peak",
		    a->start_live / MIB, a->peak_live / MIB);
		row(out, "fragmentation", "%.1f %% of the physical peak held no live block",
		    100 * fragmentation(a));
	}
	if (used != a->peak_physical && d->failed_size == 0)
		row(out, "on the device", "%.2f MiB at the peak, in whole pages", used / MIB);
	if (d->failed_size) {
		g_autofree char *place = place_of_failure(d);
		row(out, "OUT OF MEMORY",
		    "%s wanted %.2f MiB more than the device had (%.2f MiB in all)", place,
		    d->failed_size / MIB, d->stats.usable_bytes / MIB);
	}
}

static void print_device(FILE *out, const struct replay *replay, const struct replay_device *d)
{
	const struct npu_stats *s = &d->stats;
	guint64 mapped = mapped_bytes(s);

	fprintf(out, "\ndevice %u\n", d->device);
	print_events(out, d->trace);
	print_memory(out, d);
	result_print_policy(out, replay, d);
	print_calls(out, d);
	row(out, "page table", "%.1f KiB at the peak", s->page_table_peak_bytes / 1024.0);
	if (s->tlb_l2_entries)
		row(out, "TLB reach",
		    "%.0f MiB (%" G_GUINT64_FORMAT
		    " entries), %.1f %% of what was mapped at the peak",
		    tlb_reach(s) / MIB, s->tlb_l2_entries,
		    mapped ? MIN(100.0, 100.0 * tlb_reach(s) / mapped) : 100.0);
	result_print_moments(out, replay, d);
	if (d->usage.unmatched)
		row(out, "frees of unknown blocks", "%" G_GUINT64_FORMAT, d->usage.unmatched);
	if (d->differing)
		row(out, "results not as recorded", "%" G_GUINT64_FORMAT " calls", d->differing);
	if (d->left_out)
		row(out, "calls left out", "%" G_GUINT64_FORMAT ": what they name is not there",
		    d->left_out);
}

static void print_file(FILE *out, const char *path, const struct trace *trace)
{
	fprintf(out, "%s: %s", path, trace->kind);
	if (trace->soc)
		fprintf(out, ", recorded on %s", trace->soc);
	fprintf(out, ", %" G_GUINT64_FORMAT " events", trace->events);
	if (trace->calls)
		fprintf(out, " of which %" G_GUINT64_FORMAT " are calls", trace->calls);
	fputc('\n', out);
	if (trace->about)
		fprintf(out, "%s\n", trace->about);
	if (trace->truncated)
		fprintf(out, "the file breaks off inside its last line, which was left out\n");
	if (trace->skipped)
		fprintf(out,
			"%" G_GUINT64_FORMAT
			" line%s skipped: this npusim does not know the verb\n",
			trace->skipped, trace->skipped == 1 ? "" : "s");
}

void result_print(FILE *out, const char *path, const struct trace *trace,
		  const struct replay *replay)
{
	print_file(out, path, trace);
	fprintf(out, "replayed on %s in %.3f s: %.3f ms of simulated time\n", replay->soc,
		replay->wall_us / 1e6, replay->simulated_ps / 1e9);
	if (replay->interrupted)
		fprintf(out,
			"interrupted after %" G_GUINT64_FORMAT " events: what follows is partial\n",
			replay->done);
	for (guint d = 0; d < replay->devices->len; d++)
		print_device(out, replay, g_ptr_array_index(replay->devices, d));
}

/* ---- JSON ---- */

static void build_events(JsonBuilder *b, const struct trace_device *t)
{
	json_builder_set_member_name(b, "events");
	json_builder_begin_object(b);
	for (int a = 0; a < TRACE_OTHER; a++) {
		if (t->counts[a])
			member_count(b, trace_action_name(a), t->counts[a]);
	}
	for (guint i = 0; i < t->other_names->len; i++)
		member_count(b, g_ptr_array_index(t->other_names, i),
			     g_array_index(t->other_counts, guint64, i));
	json_builder_end_object(b);
}

static void build_calls(JsonBuilder *b, const struct replay_device *d)
{
	member_count(b, "vmm_calls", replay_calls(d));
	member_count(b, "vmm_time_ns", replay_calls_ps(d) / 1000);
	json_builder_set_member_name(b, "vmm_calls_by_kind");
	json_builder_begin_object(b);
	for (int c = 0; c < MODEL_CALL_COUNT; c++) {
		if (d->window.count[c] == 0)
			continue;
		json_builder_set_member_name(b, model_call_name(c));
		json_builder_begin_object(b);
		member_count(b, "calls", d->window.count[c]);
		member_count(b, "refused", d->window.failed[c]);
		member_count(b, "time_ns", d->window.ps[c] / 1000);
		result_build_latency(b, d->window.latency[c]);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
}

static void build_device(JsonBuilder *b, const struct replay *replay, const struct replay_device *d)
{
	const struct memory_usage *a = &d->usage;
	json_builder_begin_object(b);
	member_count(b, "device", d->device);
	build_events(b, d->trace);
	member_count(b, "start_physical_bytes", a->start_physical);
	member_count(b, "start_live_bytes", a->start_live);
	member_count(b, "peak_physical_bytes", a->peak_physical);
	member_count(b, "peak_live_bytes", a->peak_live);
	member_count(b, "obtained_bytes", a->obtained);
	member_count(b, "live_at_physical_peak_bytes", a->live_at_peak_physical);
	if (replay_tells_live(d))
		member_real(b, "fragmentation", fragmentation(a));
	member_count(b, "device_peak_bytes", d->stats.own_peak_bytes);
	member_count(b, "device_bytes", d->stats.usable_bytes);
	build_calls(b, d);
	member_count(b, "page_table_bytes", d->stats.page_table_peak_bytes);
	member_count(b, "tlb_reach_bytes", tlb_reach(&d->stats));
	member_count(b, "mapped_bytes_at_peak", mapped_bytes(&d->stats));
	member_count(b, "unknown_frees", a->unmatched);
	member_count(b, "differing_results", d->differing);
	member_count(b, "calls_left_out", d->left_out);
	result_build_policy_device(b, replay, d);
	result_build_failure(b, replay, d);
	result_build_moments(b, replay, d);
	json_builder_end_object(b);
}

static JsonNode *build(const char *path, const struct trace *trace, const struct replay *replay)
{
	g_autoptr(JsonBuilder) b = json_builder_new();
	g_autofree char *name = g_filename_display_name(path);
	json_builder_begin_object(b);
	member_count(b, "schema", RESULT_SCHEMA_VERSION);
	member_text(b, "program", "npusim replay");
	member_text(b, "file", name);
	member_text(b, "kind", trace->kind);
	member_text(b, "soc", replay->soc);
	if (trace->soc)
		member_text(b, "recorded_soc", trace->soc);
	if (trace->about)
		member_text(b, "about", trace->about);
	member_count(b, "events", trace->events);
	member_count(b, "events_done", replay->done);
	result_build_policy(b, replay);
	member_count(b, "simulated_ns", replay->simulated_ps / 1000);
	member_count(b, "wall_us", (guint64)replay->wall_us);
	member_bool(b, "complete", !replay->interrupted);
	json_builder_set_member_name(b, "devices");
	json_builder_begin_array(b);
	for (guint d = 0; d < replay->devices->len; d++)
		build_device(b, replay, g_ptr_array_index(replay->devices, d));
	json_builder_end_array(b);
	json_builder_end_object(b);
	return json_builder_get_root(b);
}

gboolean result_write_json(const char *file, const char *path, const struct trace *trace,
			   const struct replay *replay, GError **error)
{
	JsonNode *root = build(path, trace, replay);
	gboolean ok = json_out_write(root, file, error);

	json_node_unref(root);
	return ok;
}
