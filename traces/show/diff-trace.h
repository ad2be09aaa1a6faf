/* SPDX-License-Identifier: Apache-2.0
 *
 * Two traces of whatever kinds: what they came to, and where their histories part.
 */
#ifndef NPUSIM_TRACES_DIFF_TRACE_H
#define NPUSIM_TRACES_DIFF_TRACE_H

#include "diff-align.h"
#include "diff-figures.h"

/* A size that one of them asked for more often. */
struct trace_size {
	gint64 device;
	guint32 verb;
	guint64 size, count[2];
};
struct trace_diff {
	struct trace *traces[2]; /* borrowed */
	struct figures figures;
	GArray *sizes; /* struct trace_size: those that differ, what differs by most bytes first */
	struct align *align;
};

/* The readers must outlive the result. NULL and error where one cannot be read. */
struct trace_diff *trace_diff_run(struct record_reader *const readers[2], guint limit,
				  struct progress *progress, GError **error);
void trace_diff_free(struct trace_diff *diff);
gboolean trace_diff_is_equal(const struct trace_diff *diff);

void trace_diff_print(const struct trace_diff *diff, guint limit, FILE *out);
/* The members "figures", "sizes", "refusals", "alignment", "hunks". */
void trace_diff_build(const struct trace_diff *diff, JsonBuilder *builder);

#endif
