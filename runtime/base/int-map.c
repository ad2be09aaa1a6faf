/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map whose entries lie one behind another, where they stay until it grows; those that are
 * free are a list. Its table has their hashes and numbers, so that a search looks at one entry. The
 * hash has a random factor: a file cannot choose keys that collide.
 */
#include "trace.h"

#include <string.h>

#define ROOM_MIN 8u

/* Of the table. The highest bits of a hash say where its slot is, or from where on the first that
 * was free. */
struct int_map_slot {
	guint32 hash, entry; /* its index + 1; 0: the slot is free */
};

/* Twice as many slots as entries, at least: there is a free one. */
static guint32 mask_of(const struct int_map *m)
{
	return 2 * m->room - 1;
}

static guint32 home_of(const struct int_map *m, guint32 hash)
{
	return hash >> m->shift;
}

static void grow(struct int_map *m, guint32 room)
{
	gpointer entries = g_aligned_alloc(room, m->bytes, 64);
	struct int_map_slot *old = m->slots;
	guint32 slots = 2 * m->room;

	memcpy(entries, m->entries, m->used * m->bytes);
	g_aligned_free(m->entries);
	m->entries = entries;
	m->room = room;
	m->shift = 33 - g_bit_storage(2 * (gsize)room);
	m->slots = g_new0(struct int_map_slot, 2 * (gsize)room);
	for (guint32 i = 0; i < slots; i++) {
		guint32 at = home_of(m, old[i].hash);
		while (old[i].entry && m->slots[at].entry)
			at = (at + 1) & mask_of(m);
		if (old[i].entry)
			m->slots[at] = old[i];
	}
	g_free(old);
}

struct int_map *int_map_new(gsize bytes, GDestroyNotify drop)
{
	struct int_map *m = g_new0(struct int_map, 1);

	m->bytes = bytes;
	m->drop = drop;
	m->factor = (guint64)g_random_int() << 32 | g_random_int() | 1;
	m->entries = g_aligned_alloc(1, bytes, 64);
	grow(m, ROOM_MIN);
	return m;
}

void int_map_free(struct int_map *m)
{
	if (m == NULL)
		return;
	for (gpointer e = NULL; m->drop && (e = int_map_next(m, e));)
		m->drop(e);
	g_aligned_free(m->entries);
	g_free(m->slots);
	g_free(m);
}

static gpointer entry_at(const struct int_map *m, guint32 index)
{
	return (char *)m->entries + index * m->bytes;
}

static guint64 *key_of(gpointer entry)
{
	return entry;
}

static guint32 *tag_of(gpointer entry)
{
	return (guint32 *)(key_of(entry) + 1);
}

static guint32 hash_of(const struct int_map *m, guint64 key, guint32 tag)
{
	guint64 h = key * m->factor + tag;

	return (guint32)(((h ^ h >> 32) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

/* That of the entry, or the free one where it would be. */
static struct int_map_slot *slot_of(const struct int_map *m, guint64 key, guint32 tag, guint32 hash)
{
	for (guint32 i = home_of(m, hash);; i = (i + 1) & mask_of(m)) {
		struct int_map_slot *slot = &m->slots[i];
		if (slot->entry == 0)
			return slot;
		gpointer e = entry_at(m, slot->entry - 1);
		if (slot->hash == hash && *key_of(e) == key && *tag_of(e) == tag)
			return slot;
	}
}

gpointer int_map_find(const struct int_map *m, guint64 key, guint32 tag)
{
	guint32 entry = slot_of(m, key, tag, hash_of(m, key, tag))->entry;

	return entry ? entry_at(m, entry - 1) : NULL;
}

gpointer int_map_add(struct int_map *m, guint64 key, guint32 tag)
{
	guint32 hash = hash_of(m, key, tag);
	struct int_map_slot *slot = slot_of(m, key, tag, hash);
	gpointer e;

	if (slot->entry)
		return entry_at(m, slot->entry - 1);
	if (m->count++ == m->room) {
		grow(m, 2 * m->room);
		slot = slot_of(m, key, tag, hash);
	}
	*slot = (struct int_map_slot){ hash, m->free ? m->free : ++m->used };
	e = entry_at(m, slot->entry - 1);
	if (m->free)
		m->free = (guint32)*key_of(e);
	memset(e, 0, m->bytes);
	*key_of(e) = key;
	*tag_of(e) = tag;
	return e;
}

void int_map_put(struct int_map *m, guint64 key, guint32 tag, guint64 value)
{
	((struct int_map_entry *)int_map_add(m, key, tag))->value = value;
}

/* What would be found later than it need be, beyond the slot, moves up. */
void int_map_remove(struct int_map *m, gpointer entry)
{
	guint64 key = *key_of(entry);
	guint32 tag = *tag_of(entry);
	guint32 hole = (guint32)(slot_of(m, key, tag, hash_of(m, key, tag)) - m->slots), at = hole;

	if (m->drop)
		m->drop(entry);
	*key_of(entry) = m->free;
	m->free = m->slots[hole].entry;
	m->count--;
	while (m->slots[at = (at + 1) & mask_of(m)].entry) {
		guint32 home = home_of(m, m->slots[at].hash);
		if (((at - home) & mask_of(m)) < ((at - hole) & mask_of(m)))
			continue;
		m->slots[hole] = m->slots[at];
		hole = at;
	}
	m->slots[hole].entry = 0;
}

/* One that is free is not found, whatever is left in it. */
gpointer int_map_next(const struct int_map *m, gconstpointer after)
{
	const char *entries = m->entries;
	gsize i = after ? (gsize)((const char *)after - entries) / m->bytes + 1 : 0;

	for (; i < m->used; i++) {
		gpointer e = entry_at(m, (guint32)i);
		if (int_map_find(m, *key_of(e), *tag_of(e)) == e)
			return e;
	}
	return NULL;
}
