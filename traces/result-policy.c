/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies, samples and accesses, in the table and in JSON.
 */
#include "result-policy.h"

#include <string.h>

static const enum trace_action segment_actions[] = { TRACE_SEGMENT_ALLOC, TRACE_SEGMENT_FREE,
						     TRACE_SEGMENT_MAP, TRACE_SEGMENT_UNMAP };

static gboolean is_policy(const struct replay *replay)
{
	return replay->policy && replay->policy->kind != POLICY_AS_RECORDED;
}

/* ---- the table ---- */

static void print_segments(FILE *out, const struct replay_device *d)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (guint i = 0; i < G_N_ELEMENTS(segment_actions); i++) {
		guint64 n = d->policy_counts[segment_actions[i]];
		if (n)
			g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s",
					       text->len ? ", " : "", n,
					       trace_action_name(segment_actions[i]));
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
		replay->access == ACCESS_SEQ ? "read one after another" : "read at random",
		a->bytes / (1024.0 * 1024.0), a->reads, a->ps / 1e9,
		a->ps ? a->bytes * 1e3 / a->ps : 0.0);
	fprintf(out, "  %-30s%.2f %% hits, %" G_GUINT64_FORMAT " walks; HBM rows %.1f %% hits\n",
		"TLBs", 100 * share(a->tlb_hits, a->tlb_misses), a->walks,
		100 * share(a->row_hits, a->row_misses));
}

void result_print_policy(FILE *out, const struct replay *replay, const struct replay_device *d)
{
	if (is_policy(replay))
		print_segments(out, d);
	if (replay->access != ACCESS_NONE && d->access.reads > 0)
		print_access(out, replay, d);
}

/* ---- JSON ---- */

static void member_int(JsonBuilder *b, const char *name, guint64 value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_int_value(b, (gint64)value);
}

static void member_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_string_value(b, value);
}

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
	if (is_policy(replay))
		member_text(b, "page", policy->page_1g ? "1g" : "2m");
	build_options(b, policy);
	member_text(b, "access", access_name(replay->access));
}

static void build_column(JsonBuilder *b, const char *name, const GArray *points, gsize offset)
{
	json_builder_set_member_name(b, name);
	json_builder_begin_array(b);
	for (guint i = 0; i < points->len; i++) {
		const char *p = (const char *)&g_array_index(points, struct series_point, i);
		json_builder_add_int_value(b, (gint64) * (const guint64 *)(p + offset));
	}
	json_builder_end_array(b);
}

static void build_series(JsonBuilder *b, const struct series *series)
{
	json_builder_set_member_name(b, "series");
	json_builder_begin_object(b);
	build_column(b, "event", series->points, G_STRUCT_OFFSET(struct series_point, event));
	build_column(b, "live_bytes", series->points, G_STRUCT_OFFSET(struct series_point, live));
	build_column(b, "physical_bytes", series->points,
		     G_STRUCT_OFFSET(struct series_point, physical));
	json_builder_end_object(b);
}

static void build_segments(JsonBuilder *b, const struct replay_device *d)
{
	json_builder_set_member_name(b, "policy_events");
	json_builder_begin_object(b);
	for (guint i = 0; i < G_N_ELEMENTS(segment_actions); i++)
		member_int(b, trace_action_name(segment_actions[i]),
			   d->policy_counts[segment_actions[i]]);
	member_int(b, "empty_cache", d->emptied);
	json_builder_end_object(b);
	member_int(b, "blocks_without_memory", d->lost_blocks);
}

static void build_access(JsonBuilder *b, const struct access_figures *a)
{
	json_builder_set_member_name(b, "access");
	json_builder_begin_object(b);
	member_int(b, "reads", a->reads);
	member_int(b, "bytes", a->bytes);
	member_int(b, "time_ns", a->ps / 1000);
	member_int(b, "tlb_requests", a->tlb_requests);
	member_int(b, "tlb_hits", a->tlb_hits);
	member_int(b, "tlb_misses", a->tlb_misses);
	member_int(b, "walks", a->walks);
	member_int(b, "hbm_bytes", a->hbm_bytes);
	member_int(b, "row_hits", a->row_hits);
	member_int(b, "row_misses", a->row_misses);
	json_builder_end_object(b);
}

void result_build_policy_device(JsonBuilder *b, const struct replay *replay,
				const struct replay_device *d)
{
	if (is_policy(replay))
		build_segments(b, d);
	if (replay->access != ACCESS_NONE)
		build_access(b, &d->access);
	build_series(b, &d->series);
}
