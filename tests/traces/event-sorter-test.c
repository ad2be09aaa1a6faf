/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of rows against qsort(3): any number of them, in memory or in a file; and the table of
 * what lives against GLib's.
 */
#include <stdlib.h>

#include "harness/test.h"
#include "read/readers.h"

static int by_key(const void *a, const void *b)
{
	const struct trace_row *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->serial != y->serial)
		return x->serial < y->serial ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void expect_rows(struct trace *trace, const struct trace_row *wanted, guint count)
{
	struct record_item item;

	ASSERT_TRUE(trace_rewind(trace, NULL));
	for (guint i = 0; i < count; i++) {
		ASSERT_EQ(trace_next(trace, &item, NULL), 1);
		ASSERT_TRUE(item.address == wanted[i].address && item.size == wanted[i].size);
	}
	EXPECT_EQ(trace_next(trace, &item, NULL), 0);
}

static const struct {
	const char *name;
	guint count, room, keys;
} shapes[] = {
	{ "none", 0, 4, 10 },
	{ "one", 1, 1, 10 },
	{ "just_full", 100, 100, 50 },
	{ "one_more", 101, 100, 50 },
	{ "room_for_one", 50, 1, 20 },
	{ "many", 20000, 16, 500 },
	{ "all_alike", 1000, 64, 1 },
	{ "half", 5000, 2500, 100000 },
	{ "large", 70000, 4096, 1000000 },
};

TEST_EACH(event_sorter, rows_come_back_in_order_again_and_again, shapes, name)
{
	const __typeof__(shapes[0]) *c = param;
	g_autofree struct trace_row *all = g_new0(struct trace_row, c->count + 1);
	g_autoptr(GRand) random = g_rand_new_with_seed(c->count);

	row_list_set_memory(c->room * sizeof(struct trace_row));
	struct trace *trace = trace_new("rows");
	for (guint i = 0; i < c->count; i++) {
		/* each at an address of its own, in the order in which they are added */
		all[i] = (struct trace_row){
			.address = (i + 1) * 512,
			.size = i + 1,
			.verb = NPU_TRACE_ALLOC,
			.order = g_rand_int_range(random, 0, (gint32)c->keys) - 5,
			.rank = (guint8)g_rand_int_range(random, 0, 3),
			.serial = G_MAXUINT64 - (guint64)g_rand_int_range(random, 0, 2),
		};
		ASSERT_TRUE(row_list_add(&trace->unsorted, &all[i], NULL));
	}
	ASSERT_TRUE(event_sorter_finish(trace, FALSE, NULL));
	qsort(all, c->count, sizeof *all, by_key);
	ASSERT_NO_FATAL(expect_rows(trace, all, c->count));
	ASSERT_NO_FATAL(expect_rows(trace, all, c->count));
	trace_free(trace);
	row_list_set_memory(ROW_LIST_MEMORY_BYTES);
}

TEST(event_sorter, a_folder_that_is_not_there_is_named)
{
	g_autofree char *before = g_strdup(g_getenv("TMPDIR"));
	const struct trace_row row = { .verb = NPU_TRACE_ALLOC };
	g_autoptr(GError) error = NULL;

	row_list_set_memory(sizeof row);
	struct trace *trace = trace_new("rows");
	g_setenv("TMPDIR", "/there/is/none", TRUE);
	EXPECT_TRUE(row_list_add(&trace->unsorted, &row, &error));
	EXPECT_FALSE(row_list_add(&trace->unsorted, &row, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, "/there/is/none");
	EXPECT_CONTAINS(error->message, "TMPDIR");
	trace_free(trace);
	if (before)
		g_setenv("TMPDIR", before, TRUE);
	else
		g_unsetenv("TMPDIR");
	row_list_set_memory(ROW_LIST_MEMORY_BYTES);
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
	ASSERT_EQ(live->count, g_hash_table_size(wanted));
}

TEST(live, agrees_with_a_hash_table)
{
	g_autoptr(GHashTable) wanted = g_hash_table_new(NULL, NULL);
	g_autoptr(GRand) random = g_rand_new_with_seed(3);
	struct int_map *live = int_map_new(sizeof(struct int_map_entry), NULL);
	guint seen = 0;

	for (guint i = 0; i < 200000; i++)
		ASSERT_NO_FATAL(
			live_step(live, wanted, (guint64)g_rand_int_range(random, 0, 3000) * 512,
				  (guint32)g_rand_int_range(random, 0, 3), g_rand_int(random)));
	EXPECT_GT(live->count, 1000u);
	for (struct int_map_entry *e = NULL; (e = int_map_next(live, e)); seen++) {
		gconstpointer key = GSIZE_TO_POINTER(e->key << 4 | e->tag);
		ASSERT_EQ(e->value, GPOINTER_TO_SIZE(g_hash_table_lookup(wanted, key)));
		ASSERT_EQ(int_map_at(live, int_map_number(live, e)), (void *)e);
	}
	EXPECT_EQ(seen, live->count);
	int_map_free(live);
}

/* A large table lies in pages of its own. */
TEST(live, keeps_what_it_has_while_it_grows)
{
	struct int_map *live = int_map_new(sizeof(struct int_map_entry), NULL);

	for (guint64 i = 0; i < 100000; i++)
		int_map_put(live, i * 512, 1, i);
	for (guint64 i = 0; i < 100000; i++) {
		struct int_map_entry *e = int_map_find(live, i * 512, 1);
		ASSERT_TRUE(e != NULL);
		ASSERT_EQ(e->value, i);
		ASSERT_EQ(int_map_number(live, e), i + 1);
	}
	int_map_free(live);
}
