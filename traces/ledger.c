/* SPDX-License-Identifier: Apache-2.0
 *
 * Items have serial numbers; a moment is the serial number that it was marked at. What goes and is
 * not younger than a moment goes on its list. To mark a moment is to empty its list.
 */
#include "ledger.h"

#include "live.h"

void ledger_init(struct ledger *l)
{
	*l = (struct ledger){ 0 };
	for (int k = 0; k < LEDGER_KIND_COUNT; k++)
		l->items[k] = g_hash_table_new(live_hash_address, g_int64_equal);
}

static void release(gpointer data)
{
	struct ledger_item *item = data;

	if (--item->holders > 0)
		return;
	if (item->runs)
		g_array_unref(item->runs);
	g_free(item);
}

void ledger_clear(struct ledger *l)
{
	GHashTableIter iter;
	gpointer item;

	for (guint m = 0; m < l->moment_count; m++) {
		for (int k = 0; k < LEDGER_KIND_COUNT; k++)
			g_ptr_array_unref(l->moments[m].gone[k]);
	}
	for (int k = 0; k < LEDGER_KIND_COUNT; k++) {
		g_hash_table_iter_init(&iter, l->items[k]);
		while (g_hash_table_iter_next(&iter, &item, NULL))
			release(item);
		g_hash_table_unref(l->items[k]);
	}
}

/* ---- moments ---- */

gboolean ledger_add_moment(struct ledger *l, enum ledger_what what, guint64 wanted)
{
	if (l->moment_count == LEDGER_MOMENTS_MAX)
		return FALSE;
	struct ledger_moment *m = &l->moments[l->moment_count++];
	*m = (struct ledger_moment){ .what = (guint8)what, .wanted = wanted };
	for (int k = 0; k < LEDGER_KIND_COUNT; k++)
		m->gone[k] = g_ptr_array_new_with_free_func(release);
	return TRUE;
}

struct ledger_moment *ledger_find_moment(struct ledger *l, enum ledger_what what)
{
	for (guint m = 0; m < l->moment_count; m++) {
		if (l->moments[m].what == what)
			return &l->moments[m];
	}
	return NULL;
}

void ledger_mark(struct ledger *l, struct ledger_moment *m, guint64 event,
		 const struct ledger_sums *sums)
{
	for (int k = 0; k < LEDGER_KIND_COUNT; k++) {
		if (m->gone[k]->len > 0)
			g_ptr_array_set_size(m->gone[k], 0);
	}
	m->reached = TRUE;
	m->serial = l->serial;
	m->event = event;
	m->sums = *sums;
}

static gboolean was_there(const struct ledger_moment *m, const struct ledger_item *item)
{
	return m->reached && item->born <= m->serial;
}

/* ---- items ---- */

static gboolean takes_addresses(enum ledger_kind kind, const struct ledger_item *item)
{
	return kind == LEDGER_RESERVED || (kind == LEDGER_MEMORY && !item->mapped);
}

struct ledger_item *ledger_add(struct ledger *l, enum ledger_kind kind,
			       const struct ledger_item *item)
{
	struct ledger_item *kept = g_memdup2(item, sizeof *item);

	ledger_remove(l, kind, item->key);
	kept->born = ++l->serial;
	kept->holders = 1;
	if (takes_addresses(kind, kept))
		l->reserved += kept->size;
	g_hash_table_add(l->items[kind], kept);
	return kept;
}

const struct ledger_item *ledger_find(const struct ledger *l, enum ledger_kind kind, guint64 key)
{
	return g_hash_table_lookup(l->items[kind], &key);
}

static void look(const struct ledger *l, struct ledger_item *item)
{
	for (guint m = 0; l->look && item->runs == NULL && m < l->moment_count; m++) {
		if (was_there(&l->moments[m], item))
			l->look(item, l->data);
	}
}

void ledger_look(struct ledger *l, guint64 key)
{
	struct ledger_item *item = g_hash_table_lookup(l->items[LEDGER_MEMORY], &key);

	if (item)
		look(l, item);
}

gboolean ledger_remove(struct ledger *l, enum ledger_kind kind, guint64 key)
{
	struct ledger_item *item = g_hash_table_lookup(l->items[kind], &key);

	if (item == NULL)
		return FALSE;
	g_hash_table_remove(l->items[kind], &key);
	if (takes_addresses(kind, item))
		l->reserved -= item->size;
	if (kind == LEDGER_MEMORY)
		look(l, item);
	for (guint m = 0; m < l->moment_count; m++) {
		if (!was_there(&l->moments[m], item))
			continue;
		item->holders++;
		g_ptr_array_add(l->moments[m].gone[kind], item);
	}
	release(item);
	return TRUE;
}

void ledger_look_all(struct ledger *l)
{
	GHashTableIter iter;
	gpointer item;

	g_hash_table_iter_init(&iter, l->items[LEDGER_MEMORY]);
	while (g_hash_table_iter_next(&iter, &item, NULL))
		look(l, item);
}

static gint by_address(gconstpointer a, gconstpointer b)
{
	const struct ledger_item *x = *(struct ledger_item *const *)a;
	const struct ledger_item *y = *(struct ledger_item *const *)b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->born < y->born ? -1 : x->born > y->born;
}

GPtrArray *ledger_at(const struct ledger *l, const struct ledger_moment *m, enum ledger_kind kind)
{
	GPtrArray *out = g_ptr_array_new();
	GHashTableIter iter;
	gpointer item;

	for (guint i = 0; i < m->gone[kind]->len; i++)
		g_ptr_array_add(out, m->gone[kind]->pdata[i]);
	g_hash_table_iter_init(&iter, l->items[kind]);
	while (g_hash_table_iter_next(&iter, &item, NULL)) {
		if (was_there(m, item))
			g_ptr_array_add(out, item);
	}
	g_ptr_array_sort(out, by_address);
	return out;
}
