/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a result as text. Most lines are templates over the table of figures; variable-length
 * lists, of events and calls, are written here.
 */
#include "show.h"

#include "base/base.h"

#define PRINTED_HOLDERS 5
#define LINE_COLUMNS    98

static void row(FILE *out, const char *label, const char *text)
{
	fprintf(out, "  %-30s%s\n", label, text);
}

/* Whose figures they are. */
struct source {
	const struct member *table;
	gconstpointer at;
};

/* A figure of the name that `text` begins with. */
static const struct member *find(const struct source *of, const char *text)
{
	g_autofree char *name = g_strndup(text, strcspn(text, "/%"));

	return members_find(of->table, name);
}

/* Of "NAME" its value; of "A%B" what share of both A is; of "A/B" how much of A a unit of B has: of
 * bytes and a time the bandwidth. */
static void append_figure(GString *out, const char *text, const struct source *of)
{
	const struct member *m = find(of, text);
	double value = m->kind == MEMBER_TEXT ? 0 : member_number(m, of->at);
	const char *operation = strpbrk(text, "/%");
	double other = operation ? member_number(find(of, operation + 1), of->at) : 0;

	if (operation && *operation == '%') {
		g_string_append_printf(out, "%.2f %%", value ? 100 * value / (value + other) : 0);
	} else if (operation && m->kind == MEMBER_BYTES) {
		g_string_append_printf(out, "%.2f GB/s", other ? value * 1e3 / other : 0);
	} else if (operation) {
		g_string_append_printf(out, "%.1f ns", other ? value / 1e3 / other : 0);
	} else if (m->kind == MEMBER_BYTES) {
		g_string_append(out, npu_size_words(value));
	} else if (m->kind == MEMBER_TIME) {
		g_string_append_printf(out, "%.3f ms", value / 1e9);
	} else if (m->kind == MEMBER_REAL) {
		g_string_append_printf(out, "%.1f %%", 100 * value);
	} else {
		g_autofree char *figure = member_text(m, of->at);
		g_string_append(out, figure);
	}
}

/* A line, in whose text {NAME} is a figure. It is shown where the figure `when` is there, and not a
 * whole 0; NULL: always. */
static void print_line(FILE *out, const char *label, const char *text, const char *when,
		       const struct source *of)
{
	const struct member *m = members_find(of->table, when);
	g_auto(GStrv) parts = g_strsplit_set(text, "{}", -1);
	g_autoptr(GString) line = g_string_new(NULL);

	if (m &&
	    (!member_has(m, of->at) || (m->kind != MEMBER_REAL && member_number(m, of->at) == 0)))
		return;
	for (guint i = 0; parts[i]; i++) {
		if (i % 2)
			append_figure(line, parts[i], of);
		else
			g_string_append(line, parts[i]);
	}
	row(out, label, line->str);
}

/* "3 alloc" */
static void add_item(GString *list, guint64 count, const char *name, const char *suffix)
{
	if (count)
		g_string_append_printf(list, "%s" U64 " %s%s", list->len ? ", " : "", count, name,
				       suffix);
}

static void print_events(FILE *out, const struct replay_device *d)
{
	const struct trace_device *t = d->trace;
	g_autoptr(GString) text = g_string_new(NULL);

	for (guint a = 0; a < TRACE_ACTIONS; a++)
		add_item(text, t->counts[trace_actions[a].verb], trace_actions[a].name, "");
	for (guint i = 0; i < t->others.list->len; i++)
		add_item(text, g_array_index(t->other_counts, guint64, i),
			 g_ptr_array_index(t->others.list, i), " (skipped)");
	if (text->len)
		row(out, "events", text->str);
}

static void print_segments(FILE *out, const struct replay_device *d)
{
	g_autoptr(GString) text = g_string_new(NULL);

	if (!policy_is_own(d->replay->options.policy))
		return;
	for (guint32 v = NPU_TRACE_SEGMENT_ALLOC; v <= NPU_TRACE_SEGMENT_UNMAP; v++)
		add_item(text, d->policy_counts[v], npu_trace_verb_name(v), "");
	if (d->filter->emptied)
		g_string_append_printf(text, "%scache emptied %s", text->len ? ", " : "",
				       npu_counted(d->filter->emptied, "time"));
	row(out, "of the policy", text->len ? text->str : "nothing");
}

/* Calls and copies. */
static void print_calls(FILE *out, const struct replay_device *d)
{
	for (enum model_call c = 0; c < MODEL_CALL_COUNT; c++) {
		const struct call_figures *f = &d->window.calls[c];
		const struct source of = { figures_calls, f };
		g_autofree char *name = g_strdelimit(g_strdup(model_call_names[c]), "_", ' ');
		const char *figures = c < MODEL_MOVES
					      ? "{calls} x, {time_ns}"
					      : "{calls} x, {bytes}, {time_ns}, {bytes/time_ns}";
		g_autofree char *text =
			g_strconcat(figures, f->refused ? " ({refused} refused)" : "", NULL);
		print_line(out, name, text, "calls", &of);
	}
}

/* Words, which are taken over, on lines that are not too long; NULL: none. */
static void print_words(FILE *out, char *taken)
{
	g_autofree char *text = taken;
	g_auto(GStrv) words = g_strsplit(text ?: "", " ", -1);
	int column = 0;

	for (guint i = 0; words[i]; i++) {
		int length = (int)g_utf8_strlen(words[i], -1);
		gboolean begins = i == 0 || column + 1 + length > LINE_COLUMNS;
		int space = !begins ? 1 : i == 0 ? 2 : 4;
		fprintf(out, "%s%*s%s", begins && i > 0 ? "\n" : "", space, "", words[i]);
		column = (begins ? 0 : column) + space + length;
	}
	if (column > 0)
		fputc('\n', out);
}

static void print_recorded_oom(FILE *out, const struct replay_device *d)
{
	print_words(out, recorded_oom_words(&d->memory.file.oom));
}

static void print_moments(FILE *out, const struct replay_device *d)
{
	const struct memory *memory = &d->memory;
	struct moment_view v;

	for (guint m = 0; m < memory->moment_count; m++) {
		const struct moment *moment = &memory->moments[m];
		if (!moment->reached) {
			if (moment->what >= MOMENT_EVENT)
				fprintf(out, "  --at " U64 "%s\n", moment->wanted,
					moment->what == MOMENT_EVENT
						? ": the device has no such event"
						: "us: no event of the device is so late, or the "
						  "file has no times");
			continue;
		}
		moment_view_init(&v, d, moment);
		print_words(out, moment_words(&v));
		for (guint i = 0; i < v.holders->len && i < PRINTED_HOLDERS; i++) {
			const struct holder *h = &g_array_index(v.holders, struct holder, i);
			fprintf(out, "    %10s %8" G_GUINT64_FORMAT " block%s  %s\n",
				npu_size_words(h->bytes), h->blocks, h->blocks == 1 ? " " : "s",
				sites_label_text(h->sites, h->label));
		}
		moment_view_clear(&v);
	}
}

static void print_reads(FILE *out, const struct replay_device *d)
{
	const struct source of = { figures_access, &d->access };
	enum access_pattern pattern = d->replay->options.access.pattern;

	print_line(out,
		   pattern == ACCESS_SEQ   ? "read one after another"
		   : pattern == ACCESS_HOT ? "read, most in a hot part"
					   : "read at random",
		   "{bytes} in {reads} reads, {time_ns}, {bytes/time_ns}", "reads", &of);
}

/* The text of a device, from above. */
static const struct {
	const char *label, *text, *when; /* as print_line() has them; or */
	void (*print)(FILE *out, const struct replay_device *d);
	enum { OF_DEVICE, OF_FAILURE, OF_ACCESS } of;
} lines[] = {
	{ .print = print_events },
	{ "physical memory",
	  .text = "{start_physical_bytes} at the start, {peak_physical_bytes} at the peak, "
		  "{obtained_bytes} obtained since" },
	{ "live memory", .text = "{start_live_bytes} at the start, {peak_live_bytes} at the peak",
	  "fragmentation" },
	{ "fragmentation", .text = "{fragmentation} of the physical peak held no live block",
	  "fragmentation" },
	{ "on the device", .text = "{device_peak_bytes} at the peak, in whole pages",
	  "is_rounded" },
	{ "OUT OF MEMORY",
	  .text = "{place} wanted {bytes} more than the device had ({all_bytes} in all)", "bytes",
	  .of = OF_FAILURE },
	{ .print = print_recorded_oom },
	{ .print = print_segments },
	{ "blocks without memory", .text = "{blocks_without_memory}", "blocks_without_memory" },
	{ .print = print_reads },
	{ "TLB Hit Rate", .text = "{tlb_hits%tlb_misses}", "reads", .of = OF_ACCESS },
	{ "TLB Miss Rate", .text = "{tlb_misses%tlb_hits}", "reads", .of = OF_ACCESS },
	{ "page walks", .text = "{walks}, {walk_ns/walks} each", "reads", .of = OF_ACCESS },
	{ "HBM row hits", .text = "{row_hits%row_misses}", "reads", .of = OF_ACCESS },
	{ "driver calls", .text = "{vmm_calls}, {vmm_time_ns} of simulated time" },
	{ .print = print_calls },
	{ "page table", .text = "{page_table_bytes} at the peak" },
	{ "TLB reach",
	  .text = "{tlb_reach_bytes} ({tlb_entries} entries), {tlb_share} of what was mapped "
		  "at the peak",
	  "tlb_entries" },
	{ .print = print_moments },
	{ "frees of unknown blocks", .text = "{unknown_frees}", "unknown_frees" },
	{ "contradictions", .text = "{contradictions}, the first: {first_contradiction}",
	  "contradictions" },
	{ "results not as recorded", .text = "{differing_results} calls", "differing_results" },
	{ "calls left out", .text = "{calls_left_out}: what they name is not there",
	  "calls_left_out" },
};

void result_times_text(GString *out, const struct replay_match *matches)
{
	for (guint v = 0; v < REPLAY_MATCHES; v++) {
		const struct source of = { figures_call_times, &matches[v] };

		if (matches[v].recorded.calls == 0)
			continue;
		g_autofree char *apart = member_text(find(&of, "typically_apart"), of.at);
		g_string_append_printf(out,
				       "recorded %s: " U64 " x, median %.3f us, predicted %.3f us; "
				       "typically apart by a factor of %s\n",
				       npu_trace_verb_name(v), matches[v].recorded.calls,
				       member_number(find(&of, "recorded_ns"), of.at) / 1e6,
				       member_number(find(&of, "predicted_ns"), of.at) / 1e6,
				       apart);
	}
}

void result_print(FILE *out, const struct result *result)
{
	const struct replay *replay = result->replay;
	const struct trace *trace = result->trace;
	g_autoptr(GString) times = g_string_new(NULL);

	fprintf(out, "%s: %s", result->path, trace->kind);
	if (trace->soc)
		fprintf(out, ", recorded on %s", trace->soc);
	fprintf(out, ", %s", npu_counted(trace->events, "event"));
	if (trace->calls)
		fprintf(out, ", %s among them", npu_counted(trace->calls, "call"));
	fputc('\n', out);
	if (trace->about)
		fprintf(out, "%s\n", trace->about);
	if (trace->truncated)
		fprintf(out, "the file breaks off inside its last line, which was left out\n");
	if (trace->skipped)
		fprintf(out, "%s skipped: this npusim does not know the verb\n",
			npu_counted(trace->skipped, "line"));
	fprintf(out, "replayed on %s in %.3f s: %.3f ms of simulated time\n", replay->soc,
		replay->wall_us / 1e6, replay->simulated_ps / 1e9);
	if (replay->stall_ps)
		fprintf(out, "%.3f ms of it are stalls of the driver where it creates memory\n",
			replay->stall_ps / 1e9);
	result_times_text(times, replay->options.matches);
	fputs(times->str, out);
	if (replay->interrupted)
		fprintf(out, "interrupted after %s: what follows is partial\n",
			npu_counted(replay->done, "event"));
	for (guint i = 0; i < replay->devices->len; i++) {
		const struct replay_device *d = g_ptr_array_index(replay->devices, i);
		const struct source sources[] = { [OF_DEVICE] = { figures_device, d },
						  [OF_FAILURE] = { figures_failure, d },
						  [OF_ACCESS] = { figures_access, &d->access } };
		fprintf(out, "\ndevice %u\n", d->device);
		for (guint l = 0; l < G_N_ELEMENTS(lines); l++) {
			if (lines[l].print)
				lines[l].print(out, d);
			else
				print_line(out, lines[l].label, lines[l].text, lines[l].when,
					   &sources[lines[l].of]);
		}
	}
}
