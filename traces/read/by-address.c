/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders arrays and trees by address. Sets of ranges are lists that are sorted and merged whenever
 * they have doubled.
 */
#include "by-address.h"

gint by_address(gconstpointer a, gconstpointer b)
{
	guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

	return x < y ? -1 : x > y;
}

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
	(void)unused;
	return by_address(a, b);
}

GTree *by_address_tree(GDestroyNotify free_key, GDestroyNotify free_value)
{
	return g_tree_new_full(compare, NULL, free_key, free_value);
}

guint by_address_above(const GArray *sorted, guint64 address)
{
	gsize bytes = g_array_get_element_size((GArray *)sorted);
	guint low = 0, high = sorted->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;
		if (*(const guint64 *)(const void *)(sorted->data + middle * bytes) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

GTreeNode *by_address_node(GTree *tree, guint64 address)
{
	GTreeNode *above = g_tree_upper_bound(tree, &address);

	return above ? g_tree_node_previous(above) : g_tree_node_last(tree);
}

#define MERGE_FROM 1024

void spans_init(struct spans *s)
{
	*s = (struct spans){ .list = g_array_new(FALSE, FALSE, sizeof(struct span)) };
}

void spans_clear(struct spans *s)
{
	g_array_unref(s->list);
}

static void merge(struct spans *s, guint64 gap)
{
	struct span *span = (struct span *)(void *)s->list->data;
	guint kept = 0;

	g_array_sort(s->list, by_address);
	for (guint i = 0; i < s->list->len; i++) {
		if (kept > 0 && (span[i].start <= span[kept - 1].end ||
				 span[i].start - span[kept - 1].end <= gap))
			span[kept - 1].end = MAX(span[kept - 1].end, span[i].end);
		else
			span[kept++] = span[i];
	}
	g_array_set_size(s->list, kept);
	s->sorted = kept;
}

void spans_add(struct spans *s, guint64 start, guint64 end)
{
	struct span span = { .start = start, .end = end };
	if (s->list->len > 0) {
		struct span *last = &g_array_index(s->list, struct span, s->list->len - 1);
		if (start >= last->start && end <= last->end)
			return;
	}
	g_array_append_val(s->list, span);
	if (s->list->len >= MERGE_FROM && s->list->len / 2 >= s->sorted)
		merge(s, 0);
}

const GArray *spans_merged(struct spans *s, guint64 gap)
{
	merge(s, gap);
	return s->list;
}
