/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from numbers to numbers for everything that tracks addresses. Open addressing with linear
 * probing: an entry lies at its home slot or after it without a gap, and a removal closes its gap.
 */
#include "int-map.h"

#define SLOTS_MIN 64u

struct int_map {
	struct int_map_entry *slots;
	guint64 mask, count;
};

struct int_map *int_map_new(void)
{
	struct int_map *m = g_new0(struct int_map, 1);

	m->slots = g_new0(struct int_map_entry, SLOTS_MIN);
	m->mask = SLOTS_MIN - 1;
	return m;
}

void int_map_free(struct int_map *m)
{
	if (m == NULL)
		return;
	g_free(m->slots);
	g_free(m);
}

guint64 int_map_count(const struct int_map *m)
{
	return m->count;
}

guint int_map_hash(gconstpointer key)
{
	return (guint)((*(const guint64 *)key * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

static guint64 place(const struct int_map *m, guint64 key, guint32 tag)
{
	guint64 h = (key ^ tag * G_GUINT64_CONSTANT(0xff51afd7ed558ccd)) *
		    G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);

	return (h ^ h >> 32) & m->mask;
}

struct int_map_entry *int_map_find(const struct int_map *m, guint64 key, guint32 tag)
{
	for (guint64 i = place(m, key, tag); m->slots[i].used; i = (i + 1) & m->mask) {
		if (m->slots[i].key == key && m->slots[i].tag == tag)
			return &m->slots[i];
	}
	return NULL;
}

static void insert(struct int_map *m, const struct int_map_entry *entry)
{
	guint64 i = place(m, entry->key, entry->tag);

	while (m->slots[i].used)
		i = (i + 1) & m->mask;
	m->slots[i] = *entry;
}

static void grow(struct int_map *m)
{
	g_autofree struct int_map_entry *old = m->slots;
	guint64 slots = m->mask + 1;

	m->mask = 2 * slots - 1;
	m->slots = g_new0(struct int_map_entry, 2 * slots);
	for (guint64 i = 0; i < slots; i++) {
		if (old[i].used)
			insert(m, &old[i]);
	}
}

void int_map_put(struct int_map *m, guint64 key, guint32 tag, guint64 value)
{
	struct int_map_entry entry = { .key = key, .value = value, .tag = tag, .used = 1 };
	struct int_map_entry *known = int_map_find(m, key, tag);

	if (known) {
		known->value = value;
		return;
	}
	if (2 * (m->count + 1) > m->mask)
		grow(m);
	insert(m, &entry);
	m->count++;
}

void int_map_remove(struct int_map *m, struct int_map_entry *entry)
{
	guint64 gap = (guint64)(entry - m->slots);

	for (guint64 i = (gap + 1) & m->mask; m->slots[i].used; i = (i + 1) & m->mask) {
		guint64 home = place(m, m->slots[i].key, m->slots[i].tag);
		/* it may move unless its place lies behind the gap */
		if (((i - home) & m->mask) >= ((i - gap) & m->mask)) {
			m->slots[gap] = m->slots[i];
			gap = i;
		}
	}
	m->slots[gap] = (struct int_map_entry){ 0 };
	m->count--;
}
