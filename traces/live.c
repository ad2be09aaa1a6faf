/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing: an entry lies at its place or behind it without a gap, and what goes closes its
 * gap.
 */
#include "live.h"

#define SLOTS_MIN 64u

struct live {
	struct live_entry *slots;
	guint64 mask, count;
};

struct live *live_new(void)
{
	struct live *l = g_new0(struct live, 1);

	l->slots = g_new0(struct live_entry, SLOTS_MIN);
	l->mask = SLOTS_MIN - 1;
	return l;
}

void live_free(struct live *l)
{
	if (l == NULL)
		return;
	g_free(l->slots);
	g_free(l);
}

guint64 live_count(const struct live *l)
{
	return l->count;
}

guint live_hash_address(gconstpointer key)
{
	return (guint)((*(const guint64 *)key * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

static guint64 place(const struct live *l, guint64 address, guint32 tag)
{
	guint64 h = (address ^ tag * G_GUINT64_CONSTANT(0xff51afd7ed558ccd)) *
		    G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);

	return (h ^ h >> 32) & l->mask;
}

struct live_entry *live_find(const struct live *l, guint64 address, guint32 tag)
{
	for (guint64 i = place(l, address, tag); l->slots[i].used; i = (i + 1) & l->mask) {
		if (l->slots[i].address == address && l->slots[i].tag == tag)
			return &l->slots[i];
	}
	return NULL;
}

static void insert(struct live *l, const struct live_entry *entry)
{
	guint64 i = place(l, entry->address, entry->tag);

	while (l->slots[i].used)
		i = (i + 1) & l->mask;
	l->slots[i] = *entry;
}

static void grow(struct live *l)
{
	g_autofree struct live_entry *old = l->slots;
	guint64 slots = l->mask + 1;

	l->mask = 2 * slots - 1;
	l->slots = g_new0(struct live_entry, 2 * slots);
	for (guint64 i = 0; i < slots; i++) {
		if (old[i].used)
			insert(l, &old[i]);
	}
}

void live_put(struct live *l, guint64 address, guint32 tag, guint64 value)
{
	struct live_entry entry = { .address = address, .value = value, .tag = tag, .used = 1 };
	struct live_entry *known = live_find(l, address, tag);

	if (known) {
		known->value = value;
		return;
	}
	if (2 * (l->count + 1) > l->mask)
		grow(l);
	insert(l, &entry);
	l->count++;
}

void live_remove(struct live *l, struct live_entry *entry)
{
	guint64 gap = (guint64)(entry - l->slots);

	for (guint64 i = (gap + 1) & l->mask; l->slots[i].used; i = (i + 1) & l->mask) {
		guint64 home = place(l, l->slots[i].address, l->slots[i].tag);
		/* it may move unless its place lies behind the gap */
		if (((i - home) & l->mask) >= ((i - gap) & l->mask)) {
			l->slots[gap] = l->slots[i];
			gap = i;
		}
	}
	l->slots[gap] = (struct live_entry){ 0 };
	l->count--;
}
