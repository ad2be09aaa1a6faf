/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from numbers to numbers for everything that tracks addresses: a set of entries.
 */
#include "int-map.h"

guint int_map_hash(gconstpointer key)
{
	return (guint)((*(const guint64 *)key * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

static guint entry_hash(gconstpointer entry)
{
	return int_map_hash(entry) ^ ((const struct int_map_entry *)entry)->tag;
}

static gboolean entry_equal(gconstpointer a, gconstpointer b)
{
	const struct int_map_entry *x = a, *y = b;

	return x->key == y->key && x->tag == y->tag;
}

GHashTable *int_map_new(void)
{
	return g_hash_table_new_full(entry_hash, entry_equal, g_free, NULL);
}

struct int_map_entry *int_map_find(GHashTable *m, guint64 key, guint32 tag)
{
	const struct int_map_entry entry = { .key = key, .tag = tag };

	return g_hash_table_lookup(m, &entry);
}

void int_map_put(GHashTable *m, guint64 key, guint32 tag, guint64 value)
{
	const struct int_map_entry entry = { .key = key, .value = value, .tag = tag };

	g_hash_table_add(m, g_memdup2(&entry, sizeof entry));
}
