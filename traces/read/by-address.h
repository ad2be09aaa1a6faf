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
/* Keeps a copy, by g_free(), in place of what has its address. */
void by_address_put(GTree *tree, gconstpointer item, gsize bytes);
/* The last node whose address is not above, or NULL. */
GTreeNode *by_address_node(GTree *tree, guint64 address);

/* A set of address ranges is such a tree of these. */
struct span {
	guint64 start, end; /* half-open */
	guint32 number;     /* for its owner; 0 at first */
};
/* Adds [start, end), one with those from which it is apart by no more than `gap`. */
void spans_add(GTree *spans, guint64 start, guint64 end, guint64 gap);

#endif
