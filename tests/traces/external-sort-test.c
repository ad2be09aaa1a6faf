/* SPDX-License-Identifier: Apache-2.0
 *
 * The external sort against qsort(3): any number of records, any room for them; and the table of
 * what lives against GLib's.
 */
#include <stdlib.h>
#include <string.h>

#include "read/external-sort.h"
#include "harness/test.h"
#include "read/int-map.h"

struct record {
	guint32 key;
	guint32 number; /* in the order in which they were put */
};

static int by_key(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static int by_key_then_number(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	int order = by_key(a, b);

	return order ? order : x->number < y->number ? -1 : x->number > y->number;
}

static void expect_records(struct external_sort *sort, const struct record *wanted, guint count)
{
	const void *got = NULL;

	ASSERT_TRUE(external_sort_rewind(sort, NULL));
	for (guint i = 0; i < count; i++) {
		ASSERT_EQ(external_sort_next(sort, &got, NULL), 1);
		ASSERT_TRUE(memcmp(got, &wanted[i], sizeof *wanted) == 0);
	}
	EXPECT_EQ(external_sort_next(sort, &got, NULL), 0);
	EXPECT_EQ(external_sort_next(sort, &got, NULL), 0);
}

static const struct {
	const char *name;
	guint count, room, keys;
	gboolean file;
} shapes[] = {
	{ "none", 0, 4, 10, FALSE },
	{ "one", 1, 1, 10, FALSE },
	{ "just_full", 100, 100, 50, FALSE },
	{ "one_more", 101, 100, 50, TRUE },
	{ "runs_of_one", 50, 1, 20, TRUE },
	{ "many_runs", 20000, 16, 500, TRUE },
	{ "all_alike", 1000, 64, 1, TRUE },
	{ "two_runs", 5000, 2500, 100000, TRUE },
	{ "large", 70000, 4096, 1000000, TRUE },
};

TEST_EACH(external_sort, records_come_back_in_order_again_and_again, shapes, name)
{
	const __typeof__(shapes[0]) *c = param;
	struct external_sort *sort =
		external_sort_new(sizeof(struct record), c->room * sizeof(struct record), by_key);
	g_autofree struct record *all = g_new0(struct record, c->count + 1);
	g_autoptr(GRand) random = g_rand_new_with_seed(c->count);

	for (guint i = 0; i < c->count; i++) {
		all[i] = (struct record){ g_rand_int_range(random, 0, (gint32)c->keys), i };
		ASSERT_TRUE(external_sort_put(sort, &all[i], NULL));
	}
	qsort(all, c->count, sizeof *all, by_key_then_number);
	ASSERT_NO_FATAL(expect_records(sort, all, c->count));
	ASSERT_NO_FATAL(expect_records(sort, all, c->count));
	EXPECT_EQ(external_sort_spilled(sort), c->file);
	external_sort_free(sort);
}

TEST(external_sort, a_folder_that_is_not_there_is_named)
{
	g_autofree char *before = g_strdup(g_getenv("TMPDIR"));
	struct external_sort *sort = external_sort_new(sizeof(struct record), 1, by_key);
	struct record record = { 1, 1 };
	GError *error = NULL;

	g_setenv("TMPDIR", "/there/is/none", TRUE);
	EXPECT_TRUE(external_sort_put(sort, &record, &error));
	EXPECT_FALSE(external_sort_put(sort, &record, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, "/there/is/none");
	EXPECT_CONTAINS(error->message, "TMPDIR");
	g_clear_error(&error);
	if (before)
		g_setenv("TMPDIR", before, TRUE);
	else
		g_unsetenv("TMPDIR");
	external_sort_free(sort);
}

/* ---- what lives ---- */

static void live_step(struct int_map *live, GHashTable *wanted, guint64 address, guint32 tag,
		      guint64 value)
{
	gpointer key = GSIZE_TO_POINTER(address << 4 | tag);
	struct int_map_entry *known = int_map_find(live, address, tag);

	ASSERT_EQ(known != NULL, g_hash_table_contains(wanted, key));
	if (known && value % 2 == 0) {
		ASSERT_EQ(known->value, GPOINTER_TO_SIZE(g_hash_table_lookup(wanted, key)));
		int_map_remove(live, known);
		g_hash_table_remove(wanted, key);
	} else {
		int_map_put(live, address, tag, value);
		g_hash_table_insert(wanted, key, GSIZE_TO_POINTER(value));
	}
	ASSERT_EQ(int_map_count(live), g_hash_table_size(wanted));
}

TEST(live, agrees_with_a_hash_table)
{
	g_autoptr(GHashTable) wanted = g_hash_table_new(NULL, NULL);
	g_autoptr(GRand) random = g_rand_new_with_seed(3);
	struct int_map *live = int_map_new();

	for (guint i = 0; i < 200000; i++)
		ASSERT_NO_FATAL(
			live_step(live, wanted, (guint64)g_rand_int_range(random, 0, 3000) * 512,
				  (guint32)g_rand_int_range(random, 0, 3), g_rand_int(random)));
	EXPECT_GT(int_map_count(live), 1000u);
	int_map_free(live);
}
