/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of address ranges, gathered in any order: memory grows with the stretches that are apart,
 * not with what was added.
 */
#ifndef NPUSIM_TRACES_SPANS_H
#define NPUSIM_TRACES_SPANS_H

#include <glib.h>

struct span {
	guint64 start, end; /* half-open; start first: by-address.h */
};
struct spans {
	GArray *list; /* struct span */
	guint sorted; /* as many as were merged last time */
};

void spans_init(struct spans *spans);
void spans_clear(struct spans *spans);
/* Adds [start, end). */
void spans_add(struct spans *spans, guint64 start, guint64 end);
/* Sorted, apart from each other by more than `gap`. */
const GArray *spans_merged(struct spans *spans, guint64 gap);

#endif
