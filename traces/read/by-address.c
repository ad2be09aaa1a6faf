/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders arrays and trees by address. Ranges of a set are merged as they come, so that it grows
 * with the stretches that are apart, not with what was added.
 */
#include "trace.h"

gint by_address(gconstpointer a, gconstpointer b)
{
	return COMPARE(*(const guint64 *)a, *(const guint64 *)b);
}

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
	(void)unused;
	return by_address(a, b);
}

GTree *by_address_tree(void)
{
	return g_tree_new_full(compare, NULL, NULL, g_free);
}

void by_address_put(GTree *tree, gconstpointer item, gsize bytes)
{
	gpointer kept = g_memdup2(item, bytes);

	g_tree_replace(tree, kept, kept);
}

GTreeNode *by_address_node(GTree *tree, guint64 address)
{
	GTreeNode *above = g_tree_upper_bound(tree, &address);

	return above ? g_tree_node_previous(above) : g_tree_node_last(tree);
}

void spans_add(GTree *spans, guint64 start, guint64 end, guint64 gap)
{
	struct span all = { .start = start, .end = end };
	GTreeNode *node;

	while ((node = by_address_node(spans, all.end + gap))) {
		const struct span *span = g_tree_node_value(node);
		if (span->start <= all.start && span->end >= all.end)
			return;
		if (span->end + gap < all.start)
			break;
		all.start = MIN(all.start, span->start);
		all.end = MAX(all.end, span->end);
		g_tree_remove(spans, &span->start);
	}
	by_address_put(spans, &all, sizeof all);
}
