/* SPDX-License-Identifier: Apache-2.0
 *
 * Order and search of structs whose first member is their address, a guint64, in arrays sorted by
 * it and in trees whose keys are pointers to it; and sets of address ranges.
 */
#ifndef NPUSIM_TRACES_BY_ADDRESS_H
#define NPUSIM_TRACES_BY_ADDRESS_H

#include <glib.h>

/* A GCompareFunc; what it compares may be anything that begins with its address. */
gint by_address(gconstpointer a, gconstpointer b);
/* An empty tree in that order, which frees its values. */
GTree *by_address_tree(GDestroyNotify free_key, GDestroyNotify free_value);

/* Index of the first element whose address lies above; the length if there is none. */
guint by_address_above(const GArray *sorted, guint64 address);
/* The last node whose address is not above, or NULL. */
GTreeNode *by_address_node(GTree *tree, guint64 address);

/* A set of address ranges, gathered in any order: memory grows with the stretches that are apart,
 * not with what was added. */
struct span {
	guint64 start, end; /* half-open; start first: as above */
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
