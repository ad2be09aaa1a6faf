/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory over the events of a replay, thinned out as it grows: of adjacent events the one with the
 * most physical memory is kept, so that the peak always remains.
 */
#ifndef NPUSIM_TRACES_SERIES_H
#define NPUSIM_TRACES_SERIES_H

#include "allocation-table.h"

#define SERIES_POINTS_MAX 2000

struct series_point {
	guint64 event; /* counted from 1; 0: the start */
	struct memory_sums sums;
};
struct series {
	GArray *points; /* struct series_point */
	guint64 stride; /* events that one point stands for */
	guint64 open;   /* of them in the last point */
	struct series_point last;
};

void series_init(struct series *series);
void series_clear(struct series *series);
void series_add(struct series *series, guint64 event, const struct memory_sums *sums);
/* Adds what was last said, if it is not there. */
void series_end(struct series *series);
/* Whether b has more physical memory than a, or as much and more of it live. */
gboolean series_is_more(const struct memory_sums *a, const struct memory_sums *b);

#endif
