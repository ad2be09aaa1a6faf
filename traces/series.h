/* SPDX-License-Identifier: Apache-2.0
 *
 * Live and physical memory over the events of a replay, thinned while it grows: of neighbouring
 * events the one with the most physical memory stays, so that the peak always does.
 */
#ifndef NPUSIM_TRACES_SERIES_H
#define NPUSIM_TRACES_SERIES_H

#include <glib.h>

#define SERIES_POINTS_MAX 2000

struct series_point {
	guint64 event; /* counted from 1; 0: the start */
	guint64 live, physical;
};
struct series {
	GArray *points; /* struct series_point */
	guint64 stride; /* events that one point stands for */
	guint64 open;   /* of them in the last point */
	struct series_point last;
};

void series_init(struct series *series);
void series_clear(struct series *series);
void series_add(struct series *series, guint64 event, guint64 live, guint64 physical);
/* Adds what was last said, if it is not there. */
void series_end(struct series *series);

#endif
