/* SPDX-License-Identifier: Apache-2.0
 *
 * Two histories laid side by side in their order: which lines are in both, which in one, and where
 * they part first. Things are compared by what they are to each history, never by address or
 * number: two lines are the same if they do the same to things that came from the same lines. What
 * it holds of the histories is two windows.
 */
#ifndef NPUSIM_TRACES_DIFF_ALIGN_H
#define NPUSIM_TRACES_DIFF_ALIGN_H

#include "track/object-tracker.h"
#include "command/progress.h"

/* A place where they differ, as diff -u has it. */
struct align_hunk {
	guint64 start[2], count[2]; /* events of either, with those around */
	guint64 hidden[2];          /* of them, those that are not among the lines */
	GPtrArray *lines;           /* char *: "-alloc b1 size=512 device=0" */
};
/* A call that was refused in one of them alone. */
struct align_refusal {
	guint64 number[2]; /* of the event; 0: there is none */
	gint32 code[2];
	char *text;
};
struct align {
	guint64 same;        /* lines in both */
	guint64 changed;     /* one line for another that does the same to another size or thing */
	guint64 removed;     /* lines of the first alone */
	guint64 added;       /* of the second alone */
	guint64 places;      /* at which they differ */
	GPtrArray *hunks;    /* struct align_hunk *, of the first such places */
	guint64 refused;     /* calls refused in one alone */
	GPtrArray *refusals; /* struct align_refusal *, the first of them */
};

struct align_side {
	struct record_reader *reader;
	struct tracker *tracker;
};
/* Reads both to their ends. At most `limit` hunks and refusals are kept. NULL and error where one
 * cannot be read. */
struct align *align_run(const struct align_side sides[2], guint limit, struct progress *progress,
			GError **error);
void align_free(struct align *align);

#endif
