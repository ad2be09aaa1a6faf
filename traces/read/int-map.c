/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from numbers to numbers for everything that tracks addresses: a set of entries.
 */
#include "int-map.h"

struct int_map {
	GHashTable *entries; /* struct int_map_entry * */
};

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

struct int_map *int_map_new(void)
{
	struct int_map *m = g_new0(struct int_map, 1);

	m->entries = g_hash_table_new_full(entry_hash, entry_equal, g_free, NULL);
	return m;
}

void int_map_free(struct int_map *m)
{
	if (m)
		g_hash_table_unref(m->entries);
	g_free(m);
}

guint64 int_map_count(const struct int_map *m)
{
	return g_hash_table_size(m->entries);
}

struct int_map_entry *int_map_find(const struct int_map *m, guint64 key, guint32 tag)
{
	const struct int_map_entry entry = { .key = key, .tag = tag };

	return g_hash_table_lookup(m->entries, &entry);
}

void int_map_put(struct int_map *m, guint64 key, guint32 tag, guint64 value)
{
	const struct int_map_entry entry = { .key = key, .value = value, .tag = tag };

	g_hash_table_add(m->entries, g_memdup2(&entry, sizeof entry));
}

void int_map_remove(struct int_map *m, struct int_map_entry *entry)
{
	g_hash_table_remove(m->entries, entry);
}
