/* SPDX-License-Identifier: Apache-2.0
 *
 * One order for arrays and trees.
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
