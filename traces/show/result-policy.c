/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies, samples and accesses, in the table and in JSON.
 */
#include "result-policy.h"

#include <string.h>

#include "json-out.h"

static const enum npu_trace_verb segment_verbs[] = { NPU_TRACE_SEGMENT_ALLOC,
						     NPU_TRACE_SEGMENT_FREE, NPU_TRACE_SEGMENT_MAP,
						     NPU_TRACE_SEGMENT_UNMAP };

/* ---- the table ---- */

static void print_segments(FILE *out, const struct replay_device *d)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (guint i = 0; i < G_N_ELEMENTS(segment_verbs); i++) {
		guint64 n = d->policy_counts[segment_verbs[i]];
		if (n)
			g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s",
					       text->len ? ", " : "", n,
					       npu_trace_verb_name(segment_verbs[i]));
	}
	if (d->emptied)
		g_string_append_printf(text, "%scache emptied %" G_GUINT64_FORMAT " times",
				       text->len ? ", " : "", d->emptied);
	fprintf(out, "  %-30s%s\n", "of the policy", text->len ? text->str : "nothing");
	if (d->lost_blocks)
		fprintf(out, "  %-30s%" G_GUINT64_FORMAT "\n", "blocks without memory",
			d->lost_blocks);
}

static double share(guint64 part, guint64 rest)
{
	return part + rest ? (double)part / (double)(part + rest) : 0;
}

static void print_access(FILE *out, const struct replay *replay, const struct replay_device *d)
{
	const struct access_figures *a = &d->access;

	fprintf(out, "  %-30s%.1f MiB in %" G_GUINT64_FORMAT " reads, %.3f ms, %.2f GB/s\n",
		replay->access.pattern == ACCESS_SEQ   ? "read one after another"
		: replay->access.pattern == ACCESS_HOT ? "read, most in a hot part"
						       : "read at random",
		a->bytes / (1024.0 * 1024.0), a->reads, a->ps / 1e9,
		a->ps ? a->bytes * 1e3 / a->ps : 0.0);
	fprintf(out, "  %-30s%.2f %%\n  %-30s%.2f %%\n", "TLB Hit Rate",
		100 * share(a->tlb_hits, a->tlb_misses), "TLB Miss Rate",
		100 * share(a->tlb_misses, a->tlb_hits));
	fprintf(out, "  %-30s%" G_GUINT64_FORMAT ", %.1f ns each\n", "page walks", a->walks,
		a->walks ? a->walk_ps / 1e3 / a->walks : 0.0);
	fprintf(out, "  %-30s%.2f %%\n", "HBM row hits", 100 * share(a->row_hits, a->row_misses));
}

static gboolean has_moves(const struct replay_device *d)
{
	for (int m = 0; m < MODEL_MOVE_COUNT; m++) {
		if (d->moves.count[m] > 0)
			return TRUE;
	}
	return FALSE;
}

static void print_moves(FILE *out, const struct replay_device *d)
{
	for (int m = 0; m < MODEL_MOVE_COUNT; m++) {
		if (d->moves.count[m] == 0)
			continue;
		g_autofree char *name = g_strdelimit(g_strdup(model_move_name(m)), "_", ' ');
		fprintf(out, "  %-30s%" G_GUINT64_FORMAT " x, %.1f MiB, %.3f ms, %.2f GB/s", name,
			d->moves.count[m], d->moves.bytes[m] / (1024.0 * 1024.0),
			d->moves.ps[m] / 1e9,
			d->moves.ps[m] ? d->moves.bytes[m] * 1e3 / d->moves.ps[m] : 0.0);
		if (d->moves.failed[m])
			fprintf(out, " (%" G_GUINT64_FORMAT " refused)", d->moves.failed[m]);
		fputc('\n', out);
	}
}

void result_print_policy(FILE *out, const struct replay *replay, const struct replay_device *d)
{
	if (policy_is_own(replay->policy))
		print_segments(out, d);
	if (replay->access.pattern != ACCESS_NONE && d->access.reads > 0)
		print_access(out, replay, d);
	print_moves(out, d);
}

/* ---- JSON ---- */

/* A key that was set twice has its last value. */
static void build_options(JsonBuilder *b, const struct policy_options *policy)
{
	json_builder_set_member_name(b, "options");
	json_builder_begin_object(b);
	for (guint i = 0; policy && i < policy->given->len; i++) {
		const char *setting = g_ptr_array_index(policy->given, i);
		const char *equals = strchr(setting, '=');
		g_autofree char *key = g_strndup(setting, (gsize)(equals - setting));
		member_text(b, key, equals + 1);
	}
	json_builder_end_object(b);
}

void result_build_policy(JsonBuilder *b, const struct replay *replay)
{
	const struct policy_options *policy = replay->policy;

	member_text(b, "policy", policy_name(policy ? policy->kind : POLICY_AS_RECORDED));
	if (policy_is_own(replay->policy))
		member_text(b, "page", policy->page_1g ? "1g" : "2m");
	build_options(b, policy);
	g_autofree char *access = access_text(&replay->access);
	member_text(b, "access", access);
	if (replay->access.every > 0)
		member_count(b, "access_every", replay->access.every);
}

#define SUM(member) G_STRUCT_OFFSET(struct series_point, sums.member)

/* What of it is lost to whom is left out where the file's blocks lie in memory that the file does
 * not tell of, or where it has no blocks. */
static void build_series(JsonBuilder *b, const struct replay_device *d)
{
	const GArray *points = d->series.points;

	json_builder_set_member_name(b, "series");
	json_builder_begin_object(b);
	member_column(b, "event", points, G_STRUCT_OFFSET(struct series_point, event));
	member_column(b, "live_bytes", points, SUM(live));
	member_column(b, "physical_bytes", points, SUM(physical));
	member_column(b, "reserved_bytes", points, SUM(reserved));
	if (replay_tells_fragmentation(d)) {
		member_column(b, "internal_bytes", points, SUM(internal));
		member_column(b, "external_bytes", points, SUM(external));
		member_column(b, "page_rounding_bytes", points, SUM(rounding));
	}
	json_builder_end_object(b);
}

static void build_segments(JsonBuilder *b, const struct replay_device *d)
{
	json_builder_set_member_name(b, "policy_events");
	json_builder_begin_object(b);
	for (guint i = 0; i < G_N_ELEMENTS(segment_verbs); i++)
		member_count(b, npu_trace_verb_name(segment_verbs[i]),
			     d->policy_counts[segment_verbs[i]]);
	member_count(b, "empty_cache", d->emptied);
	json_builder_end_object(b);
	member_count(b, "blocks_without_memory", d->lost_blocks);
}

static void build_access(JsonBuilder *b, const struct access_figures *a)
{
	json_builder_set_member_name(b, "access");
	json_builder_begin_object(b);
	member_count(b, "reads", a->reads);
	member_count(b, "bytes", a->bytes);
	member_count(b, "time_ns", a->ps / 1000);
	member_count(b, "tlb_requests", a->tlb_requests);
	member_count(b, "tlb_hits", a->tlb_hits);
	member_count(b, "tlb_misses", a->tlb_misses);
	member_count(b, "walks", a->walks);
	member_count(b, "walk_ns", a->walk_ps / 1000);
	member_count(b, "hbm_bytes", a->hbm_bytes);
	member_count(b, "row_hits", a->row_hits);
	member_count(b, "row_misses", a->row_misses);
	json_builder_end_object(b);
}

static void build_moves(JsonBuilder *b, const struct model_moves *moves)
{
	json_builder_set_member_name(b, "copies");
	json_builder_begin_object(b);
	for (int m = 0; m < MODEL_MOVE_COUNT; m++) {
		if (moves->count[m] == 0)
			continue;
		json_builder_set_member_name(b, model_move_name(m));
		json_builder_begin_object(b);
		member_count(b, "calls", moves->count[m]);
		member_count(b, "refused", moves->failed[m]);
		member_count(b, "bytes", moves->bytes[m]);
		member_count(b, "time_ns", moves->ps[m] / 1000);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
}

void result_build_policy_device(JsonBuilder *b, const struct replay *replay,
				const struct replay_device *d)
{
	if (policy_is_own(replay->policy))
		build_segments(b, d);
	if (replay->access.pattern != ACCESS_NONE)
		build_access(b, &d->access);
	if (has_moves(d))
		build_moves(b, &d->moves);
	build_series(b, d);
}
