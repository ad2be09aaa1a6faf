/* SPDX-License-Identifier: Apache-2.0
 *
 * Order and search of structs whose first member is their address, a guint64, in arrays sorted by
 * it and in trees whose keys are pointers to it; sets of address ranges; and a hash map whose keys
 * are addresses and other numbers. They keep no history (track/memory.h does) and no sums.
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

/* ---- from a 64-bit key and a small tag, as a device or a kind, to a 64-bit value, for millions of
 * insertions and removals: its size follows the largest number of entries at one time ---- */

struct int_map_entry {
	guint64 key; /* first: int_map_hash() */
	guint64 value;
	guint32 tag;
};

/* Of struct int_map_entry *, which g_hash_table_remove() takes as a key. */
GHashTable *int_map_new(void);
/* The same whose entries go by a function, which must g_free() them. */
GHashTable *int_map_of(GDestroyNotify free_entry);
/* NULL: it is not there. Valid until the next call that changes the table. */
struct int_map_entry *int_map_find(GHashTable *map, guint64 key, guint32 tag);
/* Puts it there, in place of what is there. */
void int_map_put(GHashTable *map, guint64 key, guint32 tag, guint64 value);
/* For GHashTable, keys guint64 *: addresses that are multiples of large powers of two spread, as
 * they do not with g_int64_hash(). */
guint int_map_hash(gconstpointer key);

#endif
