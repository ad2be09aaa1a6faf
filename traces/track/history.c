/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a device's live blocks by address, and compares each event with them.
 */
#include "history.h"

struct block {
	guint64 address; /* first: by-address.h */
	guint64 size, line, event;
};

void history_init(struct history *h)
{
	*h = (struct history){ .blocks = by_address_tree(NULL, g_free) };
}

void history_clear(struct history *h)
{
	g_tree_destroy(h->blocks);
	g_free(h->first);
}

char *history_place(guint64 line, guint64 event)
{
	return line    ? g_strdup_printf("line %" G_GUINT64_FORMAT, line)
	       : event ? g_strdup_printf("event %" G_GUINT64_FORMAT, event)
		       : g_strdup("the start");
}

/* `there`: the block that it meets; NULL: none is where one should be. */
static void contradict(struct history *h, const struct record_item *item, guint64 event,
		       const struct block *there)
{
	gboolean has_va = (item->record.has & NPU_TRACE_HAS_VA) != 0;
	g_autoptr(GString) what = g_string_new(NULL);

	if (h->contradictions++ > 0)
		return;
	if (has_va)
		g_string_printf(what, "0x%" G_GINT64_MODIFIER "x", item->record.va);
	else
		record_name_text(&item->record.name, what);
	g_autofree char *place = history_place(item->record.line, event);
	if (there == NULL) {
		h->first = g_strdup_printf("%s frees %s, where no block is live: it was freed "
					   "before, or handed out before the file begins",
					   place, what->str);
		return;
	}
	g_autofree char *since = history_place(there->line, there->event);
	g_autofree char *at =
		has_va ? g_strdup_printf(" at 0x%" G_GINT64_MODIFIER "x", there->address)
		       : g_strdup("");
	h->first = g_strdup_printf("%s allocates %" G_GUINT64_FORMAT " bytes, %s, over the block "
				   "of %" G_GUINT64_FORMAT " bytes%s that is live since %s",
				   place, item->size, what->str, there->size, at, since);
}

static void block_remove(struct history *h, const struct block *block)
{
	guint64 address = block->address;

	h->live -= MIN(h->live, block->size);
	g_tree_remove(h->blocks, &address);
}

static const struct block *block_at(struct history *h, guint64 address, guint64 size)
{
	GTreeNode *node = by_address_node(h->blocks, address + MAX(size, 1) - 1);
	const struct block *b = node ? g_tree_node_value(node) : NULL;

	return b && (b->address >= address || address - b->address < b->size) ? b : NULL;
}

static void on_alloc(struct history *h, const struct record_item *item, guint64 event)
{
	const struct npu_trace_record *r = &item->record;
	/* addresses that stand for names have no extent */
	gboolean placed = (r->has & NPU_TRACE_HAS_VA) && r->va == item->address;
	const struct block *there = block_at(h, item->address, placed ? item->size : 1);

	if (there && !placed && there->address != item->address)
		there = NULL;
	if (there) {
		contradict(h, item, event, there);
		block_remove(h, there);
	}
	const struct block new = { item->address, item->size, r->line, event };
	struct block *block = g_memdup2(&new, sizeof new);
	h->live += MIN(item->size, G_MAXINT64 - MIN(h->live, G_MAXINT64));
	g_tree_replace(h->blocks, &block->address, block);
}

void history_step(struct history *h, const struct record_item *item, guint64 event)
{
	const struct block *there;

	switch (item->record.verb) {
	case NPU_TRACE_ALLOC:
		on_alloc(h, item, event);
		break;
	case NPU_TRACE_FREE:
		there = g_tree_lookup(h->blocks, &item->address);
		if (there)
			block_remove(h, there);
		else
			contradict(h, item, event, NULL);
		break;
	case NPU_TRACE_SEGMENT_ALLOC:
	case NPU_TRACE_SEGMENT_MAP:
		h->physical += MIN(item->size, G_MAXINT64 - MIN(h->physical, G_MAXINT64));
		break;
	case NPU_TRACE_SEGMENT_FREE:
	case NPU_TRACE_SEGMENT_UNMAP:
		h->physical -= MIN(h->physical, item->size);
		break;
	case NPU_TRACE_OOM:
		if (h->oom.event)
			break;
		h->oom = (struct recorded_oom){ event, item->size, item->record.free_bytes,
						h->physical, h->live };
		break;
	default:
		break;
	}
}
