/* SPDX-License-Identifier: Apache-2.0
 *
 * The differences between two results, or between two traces of any kinds: figures, and the places
 * where the histories of traces diverge. The second half is what its files share with each other.
 */
#ifndef NPUSIM_TRACES_DIFF_H
#define NPUSIM_TRACES_DIFF_H

#include <stdio.h>

#include "member.h"
#include "track/object-tracker.h"

/* ---- diff-result.c: figures that differ ---- */

struct differences {
	GPtrArray *rows; /* inside: their cells as text */
	JsonNode *json;  /* a list of objects, as npusim-diff(1) has it */
	guint64 equal;   /* how many do not differ */
};
void differences_init(struct differences *differences);
void differences_clear(struct differences *differences);
/* NULL is not there. */
void differences_add_whole(struct differences *differences, const char *group, const char *name,
			   enum member_kind kind, gint64 a, gint64 b);
void differences_add_text(struct differences *differences, const char *group, const char *name,
			  const char *a, const char *b);
void differences_print(const struct differences *differences, FILE *out);

/* Member by member: devices by their number, lists of things by the name that each has, series at
 * the place where they are furthest apart. What is no figure is left out. Of a list of things at
 * most `limit` that differ are told one by one. */
void diff_results(JsonNode *const results[2], guint limit, struct differences *differences);

/* ---- diff-trace.c: two traces ---- */

/* A place where they differ, as diff -u has it. */
struct align_hunk {
	guint64 start[2], count[2]; /* events of either, with those around */
	guint64 hidden[2];          /* of them, those that are not among the lines */
	GPtrArray *lines;           /* char *: "-alloc b1 size=512 device=0" */
};
struct trace_diff {
	struct trace *traces[2]; /* borrowed */
	struct differences figures;
	GArray *sizes; /* struct tracker_size: those that differ, what differs by most bytes first
			*/

	guint64 same;       /* lines in both */
	guint64 changed;    /* one line for another that does the same to another size or thing */
	guint64 removed;    /* lines of the first alone */
	guint64 added;      /* of the second alone */
	guint64 places;     /* at which they differ */
	GPtrArray *hunks;   /* struct align_hunk *, of the first such places */
	guint64 refused;    /* calls refused in one alone */
	JsonNode *refusals; /* a list of objects, as npusim-diff(1) has it: the first of them */
};
/* The traces must outlive the result. NULL and error where one cannot be read. */
struct trace_diff *trace_diff_run(struct trace *const traces[2], guint limit, GError **error);
void trace_diff_free(struct trace_diff *diff);
gboolean trace_diff_is_equal(const struct trace_diff *diff);
void trace_diff_print(const struct trace_diff *diff, guint limit, FILE *out);
/* "sizes", "refusals", "alignment", "hunks". */
extern const struct member trace_diff_members[];

/* ---- diff-align.c: two histories laid side by side in their order ---- */

/* Reads both to their ends, and holds two windows of them. Things are compared by what they are to
 * each history, never by address or number: two lines are the same if they do the same to things
 * that came from the same lines. At most `limit` hunks and refusals are kept. FALSE and error where
 * one cannot be read. */
gboolean align_run(struct trace_diff *diff, struct tracker *const trackers[2], guint limit,
		   GError **error);

#endif
