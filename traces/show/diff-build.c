/* SPDX-License-Identifier: Apache-2.0
 *
 * The difference of two traces as JSON. The schema is in the manual page npusim-diff(1).
 */
#include "diff-trace.h"

#include "json-out.h"

static void build_sizes(JsonBuilder *b, const GArray *sizes)
{
	json_builder_set_member_name(b, "sizes");
	json_builder_begin_array(b);
	for (guint i = 0; i < sizes->len; i++) {
		const struct trace_size *s = &g_array_index(sizes, struct trace_size, i);
		json_builder_begin_object(b);
		if (s->device >= 0)
			member_count(b, "device", (guint64)s->device);
		member_text(b, "verb", record_verb_name(s->verb));
		member_count(b, "size", s->size);
		member_count(b, "a", s->count[0]);
		member_count(b, "b", s->count[1]);
		json_builder_end_object(b);
	}
	json_builder_end_array(b);
}

/* A call that is not in one of the two has no number and no code there. */
static void build_refusals(JsonBuilder *b, const GPtrArray *refusals)
{
	static const char *const numbers[] = { "a_event", "b_event" }, *const codes[] = {
		"a_code", "b_code"
	};

	json_builder_set_member_name(b, "refusals");
	json_builder_begin_array(b);
	for (guint i = 0; i < refusals->len; i++) {
		const struct align_refusal *r = g_ptr_array_index(refusals, i);
		json_builder_begin_object(b);
		member_text(b, "call", r->text);
		for (int side = 0; side < 2; side++) {
			if (r->number[side] == 0)
				continue;
			member_count(b, numbers[side], r->number[side]);
			member_int(b, codes[side], r->code[side]);
		}
		json_builder_end_object(b);
	}
	json_builder_end_array(b);
}

static void build_hunks(JsonBuilder *b, const GPtrArray *hunks)
{
	json_builder_set_member_name(b, "hunks");
	json_builder_begin_array(b);
	for (guint i = 0; i < hunks->len; i++) {
		const struct align_hunk *h = g_ptr_array_index(hunks, i);
		json_builder_begin_object(b);
		member_count(b, "a_start", h->start[0]);
		member_count(b, "a_count", h->count[0]);
		member_count(b, "b_start", h->start[1]);
		member_count(b, "b_count", h->count[1]);
		json_builder_set_member_name(b, "lines");
		json_builder_begin_array(b);
		for (guint l = 0; l < h->lines->len; l++)
			json_builder_add_string_value(b, g_ptr_array_index(h->lines, l));
		json_builder_end_array(b);
		json_builder_end_object(b);
	}
	json_builder_end_array(b);
}

void trace_diff_build(const struct trace_diff *diff, JsonBuilder *b)
{
	const struct align *align = diff->align;

	figures_build(&diff->figures, b);
	build_sizes(b, diff->sizes);
	build_refusals(b, align->refusals);
	json_builder_set_member_name(b, "alignment");
	json_builder_begin_object(b);
	member_count(b, "same", align->same);
	member_count(b, "changed", align->changed);
	member_count(b, "removed", align->removed);
	member_count(b, "added", align->added);
	member_count(b, "places", align->places);
	member_count(b, "refused_in_one", align->refused);
	json_builder_end_object(b);
	build_hunks(b, align->hunks);
}
