/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the items at each address with serial numbers; a moment is the serial number at which it
 * was marked. An item that goes away and is not younger than a moment is put on that moment's
 * list. Marking a moment anew empties its list.
 */
#include "allocation-table.h"

#include "read/int-map.h"

void allocation_table_init(struct allocation_table *t)
{
	*t = (struct allocation_table){ 0 };
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++)
		t->items[k] = g_hash_table_new(int_map_hash, g_int64_equal);
}

static void release(gpointer data)
{
	struct allocation *item = data;

	if (--item->holders > 0)
		return;
	if (item->runs)
		g_array_unref(item->runs);
	g_free(item);
}

void allocation_table_clear(struct allocation_table *t)
{
	GHashTableIter iter;
	gpointer item;

	for (guint m = 0; m < t->moment_count; m++) {
		for (int k = 0; k < ALLOCATION_KIND_COUNT; k++)
			g_ptr_array_unref(t->moments[m].gone[k]);
	}
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++) {
		g_hash_table_iter_init(&iter, t->items[k]);
		while (g_hash_table_iter_next(&iter, &item, NULL))
			release(item);
		g_hash_table_unref(t->items[k]);
	}
}

/* ---- moments ---- */

gboolean allocation_table_add_moment(struct allocation_table *t, enum moment_what what,
				     guint64 wanted)
{
	if (t->moment_count == MOMENTS_MAX)
		return FALSE;
	struct moment *m = &t->moments[t->moment_count++];
	*m = (struct moment){ .what = (guint8)what, .wanted = wanted };
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++)
		m->gone[k] = g_ptr_array_new_with_free_func(release);
	return TRUE;
}

void allocation_table_mark(struct allocation_table *t, struct moment *m, guint64 event,
			   const struct memory_sums *sums)
{
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++) {
		if (m->gone[k]->len > 0)
			g_ptr_array_set_size(m->gone[k], 0);
	}
	m->reached = TRUE;
	m->serial = t->serial;
	m->event = event;
	m->sums = *sums;
}

static gboolean was_there(const struct moment *m, const struct allocation *item)
{
	return m->reached && item->born <= m->serial;
}

/* ---- items ---- */

static gboolean takes_addresses(enum allocation_kind kind, const struct allocation *item)
{
	return kind == ALLOCATION_RESERVED || (kind == ALLOCATION_MEMORY && !item->mapped);
}

struct allocation *allocation_table_add(struct allocation_table *t, enum allocation_kind kind,
					const struct allocation *item)
{
	struct allocation *kept = g_memdup2(item, sizeof *item);

	allocation_table_remove(t, kind, item->key);
	kept->born = ++t->serial;
	kept->holders = 1;
	t->has_blocks |= kind == ALLOCATION_BLOCK;
	if (takes_addresses(kind, kept))
		t->reserved += kept->size;
	g_hash_table_add(t->items[kind], kept);
	return kept;
}

const struct allocation *allocation_table_find(const struct allocation_table *t,
					       enum allocation_kind kind, guint64 key)
{
	return g_hash_table_lookup(t->items[kind], &key);
}

static void look(const struct allocation_table *t, struct allocation *item)
{
	for (guint m = 0; t->look && item->runs == NULL && m < t->moment_count; m++) {
		if (was_there(&t->moments[m], item))
			t->look(item, t->data);
	}
}

void allocation_table_look(struct allocation_table *t, guint64 key)
{
	struct allocation *item = g_hash_table_lookup(t->items[ALLOCATION_MEMORY], &key);

	if (item)
		look(t, item);
}

gboolean allocation_table_remove(struct allocation_table *t, enum allocation_kind kind, guint64 key)
{
	struct allocation *item = g_hash_table_lookup(t->items[kind], &key);

	if (item == NULL)
		return FALSE;
	g_hash_table_remove(t->items[kind], &key);
	if (takes_addresses(kind, item))
		t->reserved -= item->size;
	if (kind == ALLOCATION_MEMORY)
		look(t, item);
	for (guint m = 0; m < t->moment_count; m++) {
		if (!was_there(&t->moments[m], item))
			continue;
		item->holders++;
		g_ptr_array_add(t->moments[m].gone[kind], item);
	}
	release(item);
	return TRUE;
}

void allocation_table_look_all(struct allocation_table *t)
{
	GHashTableIter iter;
	gpointer item;

	g_hash_table_iter_init(&iter, t->items[ALLOCATION_MEMORY]);
	while (g_hash_table_iter_next(&iter, &item, NULL))
		look(t, item);
}

static gint by_address(gconstpointer a, gconstpointer b)
{
	const struct allocation *x = *(struct allocation *const *)a;
	const struct allocation *y = *(struct allocation *const *)b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->born < y->born ? -1 : x->born > y->born;
}

GPtrArray *allocation_table_at(const struct allocation_table *t, const struct moment *m,
			       enum allocation_kind kind)
{
	GPtrArray *out = g_ptr_array_new();
	GHashTableIter iter;
	gpointer item;

	for (guint i = 0; i < m->gone[kind]->len; i++)
		g_ptr_array_add(out, m->gone[kind]->pdata[i]);
	g_hash_table_iter_init(&iter, t->items[kind]);
	while (g_hash_table_iter_next(&iter, &item, NULL)) {
		if (was_there(m, item))
			g_ptr_array_add(out, item);
	}
	g_ptr_array_sort(out, by_address);
	return out;
}
