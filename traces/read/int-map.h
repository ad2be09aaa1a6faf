/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map from a 64-bit key and a small tag to a 64-bit value, for millions of insertions and
 * removals: its size follows the largest number of entries at one time. Most keys are addresses;
 * the tag is a device or a kind. It keeps no history (track/memory.h does) and no sums.
 */
#ifndef NPUSIM_TRACES_INT_MAP_H
#define NPUSIM_TRACES_INT_MAP_H

#include <glib.h>

struct int_map_entry {
	guint64 key; /* first: int_map_hash() */
	guint64 value;
	guint32 tag;
};

/* Of struct int_map_entry *, which g_hash_table_remove() takes as a key. */
GHashTable *int_map_new(void);
/* NULL: it is not there. Valid until the next call that changes the table. */
struct int_map_entry *int_map_find(GHashTable *map, guint64 key, guint32 tag);
/* Puts it there, in place of what is there. */
void int_map_put(GHashTable *map, guint64 key, guint32 tag, guint64 value);
/* For GHashTable, keys guint64 *: addresses that are multiples of large powers of two spread, as
 * they do not with g_int64_hash(). */
guint int_map_hash(gconstpointer key);

#endif
