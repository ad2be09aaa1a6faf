/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two traces: their figures, from their trackers, and the sizes that differ; and writes
 * all of it as text and as the members of the JSON whose schema is in npusim-diff(1).
 */
#include "show.h"

#include <math.h>

#include "base/base.h"

/* A figure of both; `suffix` follows its name. */
static void put(struct differences *f, const char *name, const char *suffix, enum member_kind kind,
		guint64 a, guint64 b)
{
	g_autofree char *whole = g_strconcat(name, suffix, NULL);

	differences_add(f, whole, kind, json_node_init_int(json_node_alloc(), (gint64)a),
			json_node_init_int(json_node_alloc(), (gint64)b), NULL, 0);
}

static void peaks(struct differences *f, const char *level, const struct level_peak *a,
		  const struct level_peak *b)
{
	if (a->bytes == b->bytes && a->number == b->number)
		return;
	put(f, level, ", peak", MEMBER_BYTES, a->bytes, b->bytes);
	put(f, level, ", peak at event", MEMBER_PLACE, a->number, b->number);
	if (a->host_ns && b->host_ns)
		put(f, level, ", peak at time", MEMBER_TIME, a->host_ns, b->host_ns);
}

static gint64 apart(const struct tracker_size *s)
{
	return (gint64)(s->count[1] - s->count[0]);
}

static gint by_weight(gconstpointer a, gconstpointer b)
{
	const struct tracker_size *x = a, *y = b;
	double wx = fabs((double)apart(x)) * (double)x->size;
	double wy = fabs((double)apart(y)) * (double)y->size;

	return COMPARE(wy, wx) ?: tracker_size_order(x, y, NULL);
}

static void device(struct trace_diff *diff, struct tracker *const tracker[2], gint64 number)
{
	const struct tracker_device *a = tracker_device(tracker[0], number),
				    *b = tracker_device(tracker[1], number);
	const struct level *x = a->levels->of, *y = b->levels->of;
	gsize bytes = sizeof x->peak;
	gboolean distinct = memcmp(&x[LEVEL_PHYSICAL].peak, &x[LEVEL_SEGMENTS].peak, bytes) != 0 ||
			    memcmp(&y[LEVEL_PHYSICAL].peak, &y[LEVEL_SEGMENTS].peak, bytes) != 0;
	struct differences *f = &diff->figures;

	f->group = number == RECORD_NO_DEVICE ? "of no device"
		   : number < 0               ? "host"
				: g_intern_string(npu_text("device %" G_GINT64_FORMAT, number));
	for (int level = 0; level < LEVEL_RESERVED; level++) {
		const char *name = level_names[level];
		/* without calls, segments are all the physical memory that there is */
		if (level == LEVEL_PHYSICAL && !distinct)
			continue;
		put(f, name, ", at the start", MEMBER_BYTES, x[level].start, y[level].start);
		peaks(f, name, &x[level].peak, &y[level].peak);
		put(f, name, ", at the end", MEMBER_BYTES, x[level].now, y[level].now);
	}
	for (guint32 v = 0; v < NPU_TRACE_VERB_COUNT; v++) {
		const char *name = v == NPU_TRACE_NOTE ? "notes" : record_verb_name(v);
		if (v != NPU_TRACE_NOTE)
			put(f, name, "", MEMBER_COUNT, a->count[v], b->count[v]);
		put(f, name, ", refused", MEMBER_COUNT, a->failed[v], b->failed[v]);
		put(f, name, ", bytes", MEMBER_BYTES, a->bytes[v], b->bytes[v]);
	}
	/* notes and calls by their names, in the order of the alphabet */
	for (GTreeNode *n = g_tree_node_first(tracker[0]->sizes); n; n = g_tree_node_next(n)) {
		const struct tracker_size *s = g_tree_node_key(n);
		if (s->op && s->device == number)
			put(f, s->op, "", MEMBER_COUNT, s->count[0], s->count[1]);
	}
}

static void compare(struct trace_diff *diff, struct tracker *const tracker[2])
{
	static const char *const keys[] = { "soc",      "devices", "hbm",
					    "contract", "backend", "program" };

	for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
		const char *a = trace_info(diff->traces[0], keys[i]);
		const char *b = trace_info(diff->traces[1], keys[i]);
		/* a file of another kind has no head: nothing to compare */
		if (a && b)
			differences_add(&diff->figures, keys[i], MEMBER_TEXT,
					json_node_init_string(json_node_alloc(), a),
					json_node_init_string(json_node_alloc(), b), NULL, 0);
	}
	peaks(&diff->figures, "reserved address space",
	      &tracker[0]->none.levels->of[LEVEL_RESERVED].peak,
	      &tracker[1]->none.levels->of[LEVEL_RESERVED].peak);
	for (int side = 0; side < 2; side++) {
		GTreeNode *n = g_tree_node_first(tracker[side]->devices);
		for (; n; n = g_tree_node_next(n)) {
			const struct tracker_device *known = g_tree_node_value(n);
			if (side == 0 || g_tree_lookup(tracker[0]->devices, &known->device) == NULL)
				device(diff, tracker, known->device);
		}
	}
	for (GTreeNode *n = g_tree_node_first(tracker[0]->sizes); n; n = g_tree_node_next(n)) {
		const struct tracker_size *s = g_tree_node_key(n);
		if (s->op == NULL && s->count[0] != s->count[1])
			g_array_append_vals(diff->sizes, s, 1);
	}
	g_array_sort(diff->sizes, by_weight);
}

struct trace_diff *trace_diff_run(struct trace *const traces[2], guint limit, GError **error)
{
	struct trace_diff *diff = g_new0(struct trace_diff, 1);
	g_autoptr(GTree) sizes = g_tree_new_full(tracker_size_order, NULL, g_free, NULL);
	struct tracker *trackers[2];

	differences_init(&diff->figures, limit);
	diff->sizes = g_array_new(FALSE, FALSE, sizeof(struct tracker_size));
	for (int side = 0; side < 2; side++) {
		diff->traces[side] = traces[side];
		diff->figures.kinds[side] = traces[side]->kind;
		diff->figures.events[side] = traces[side]->events;
		trackers[side] = tracker_new(traces[side]->memory_calls > 0);
		trackers[side]->sizes = sizes;
		trackers[side]->side = side;
	}
	if (align_run(diff, trackers, error))
		compare(diff, trackers);
	else
		g_clear_pointer(&diff, trace_diff_free);
	tracker_free(trackers[0]);
	tracker_free(trackers[1]);
	return diff;
}

void trace_diff_free(struct trace_diff *diff)
{
	if (diff == NULL)
		return;
	differences_clear(&diff->figures);
	g_array_unref(diff->sizes);
	json_node_unref(diff->hunks);
	json_node_unref(diff->refusals);
	g_free(diff);
}

void trace_diff_print(const struct trace_diff *diff, FILE *out)
{
	guint limit = diff->figures.limit;
	JsonArray *refusals = json_node_get_array(diff->refusals);
	JsonArray *hunks = json_node_get_array(diff->hunks);

	differences_print(&diff->figures, out);
	if (diff->sizes->len > 0)
		fprintf(out, "\nsizes asked for\n");
	for (guint i = 0; i < MIN(diff->sizes->len, limit); i++) {
		const struct tracker_size *s = &g_array_index(diff->sizes, struct tracker_size, i);
		g_autofree char *group =
			s->device >= 0 ? g_strdup_printf("device %" G_GINT64_FORMAT, s->device)
				       : g_strdup(s->device == -1 ? "host" : "");
		fprintf(out,
			"  %-9s %-14s %14s  %9" G_GUINT64_FORMAT "  %9" G_GUINT64_FORMAT
			"  %+9" G_GINT64_FORMAT "\n",
			group, record_verb_name(s->verb), npu_size_words(s->size), s->count[0],
			s->count[1], apart(s));
	}
	if (diff->sizes->len > limit)
		fprintf(out, "  and %u more\n", diff->sizes->len - limit);

	if (diff->refused > 0)
		fprintf(out, "\ncalls refused in one alone\n");
	for (guint i = 0; i < json_array_get_length(refusals); i++) {
		JsonObject *r = json_array_get_object_element(refusals, i);
		gboolean of_b = result_int(r, "b_code", 0) != 0;
		fprintf(out, "  %c event %" G_GINT64_FORMAT ": %s\n", of_b ? 'B' : 'A',
			result_int(r, of_b ? "b_event" : "a_event", 0), result_text(r, "call", ""));
	}
	if (diff->refused > json_array_get_length(refusals))
		fprintf(out, "  and " U64 " more\n",
			diff->refused - json_array_get_length(refusals));

	if (diff->places == 0)
		return;
	fprintf(out,
		"\nevents: " U64 " in both, " U64 " changed, " U64 " in A alone, " U64
		" in B alone; they differ at %s\n",
		diff->same, diff->changed, diff->removed, diff->added,
		npu_counted(diff->places, "place"));
	for (guint i = 0; i < json_array_get_length(hunks); i++) {
		JsonObject *h = json_array_get_object_element(hunks, i);
		JsonArray *lines = json_object_get_array_member(h, "lines");
		fprintf(out,
			"@@ -%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT " +%" G_GINT64_FORMAT
			",%" G_GINT64_FORMAT " @@\n",
			json_object_get_int_member(h, "a_start"),
			json_object_get_int_member(h, "a_count"),
			json_object_get_int_member(h, "b_start"),
			json_object_get_int_member(h, "b_count"));
		for (guint l = 0; l < json_array_get_length(lines); l++)
			fprintf(out, "%s\n", json_array_get_string_element(lines, l));
	}
}

READ(gboolean, has_device, tracker_size, s, s->device >= 0)
READ(char *, verb_of_size, tracker_size, s, g_strdup(record_verb_name(s->verb)))

static const struct member size_members[] = {
	{ "device", MEMBER_COUNT, AT(tracker_size, device), .has = has_device },
	{ "verb", MEMBER_TEXT, .text = verb_of_size },
	{ "size", MEMBER_BYTES, AT(tracker_size, size) },
	{ "a", MEMBER_COUNT, AT(tracker_size, count[0]) },
	{ "b", MEMBER_COUNT, AT(tracker_size, count[1]) },
	{ 0 },
};

static const struct member alignment_members[] = {
	{ "same", MEMBER_COUNT, AT(trace_diff, same) },
	{ "changed", MEMBER_COUNT, AT(trace_diff, changed) },
	{ "removed", MEMBER_COUNT, AT(trace_diff, removed) },
	{ "added", MEMBER_COUNT, AT(trace_diff, added) },
	{ "places", MEMBER_COUNT, AT(trace_diff, places) },
	{ "refused_in_one", MEMBER_COUNT, AT(trace_diff, refused) },
	{ 0 },
};

const struct member trace_diff_members[] = {
	{ "sizes", MEMBER_LIST, .array = ARRAY_STRUCTS, .members = size_members,
	  AT(trace_diff, sizes) },
	{ "refusals", MEMBER_NODE, AT(trace_diff, refusals) },
	{ "alignment", MEMBER_OBJECT, .members = alignment_members },
	{ "hunks", MEMBER_NODE, AT(trace_diff, hunks) },
	{ 0 },
};
