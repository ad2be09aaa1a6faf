/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that was given back: who did, for messages, and what of it is in use. The host's stays
 * until the work is done that was sent before, a device's until the copies end that have translated
 * addresses to it.
 */
#include "memory/memory.h"

#include <inttypes.h>

void gone_note_locked(struct bsim *bs, bool host, uint64_t va, uint64_t bytes, const char *call)
{
	struct alloc_table *t = bs->allocs;

	t->gone[host][t->gone_count[host]++ % ALLOC_GONE_MAX] = (struct gone_range){
		.end = va + bytes, .bytes = bytes, .gone = bsim_made_locked(bs), .call = call
	};
}

const char *gone_text_locked(const struct bsim *bs, uint64_t va, uint64_t since)
{
	const struct alloc_table *t = bs->allocs;
	const struct gone_range *last = NULL;

	for (unsigned i = 0; t != NULL && i < 2 * ALLOC_GONE_MAX; i++) {
		bool host = i >= ALLOC_GONE_MAX;
		const struct gone_range *gone = &t->gone[host][i % ALLOC_GONE_MAX];

		if (gone->end - va - 1 >= gone->bytes || gone->gone.number <= since)
			continue;
		last = gone;
		since = gone->gone.number;
	}
	return last == NULL
		       ? NULL
		       : npu_text("[0x%" PRIx64 ", 0x%" PRIx64 ") was given back by %s%s%s%s",
				  last->end - last->bytes, last->end,
				  last->gone.stack ? "" : last->call, last->gone.stack ? "" : ", ",
				  bsim_made_text(&last->gone, true),
				  since < bs->handles->reset
					  ? "; a device was reset since, which ends what it has"
					  : "");
}

BSIM_QUESTION(npusimGaveBack, (uint64_t, va), (uint64_t, bytes), (const char *, by))
{
	if (bs->allocs != NULL)
		gone_note_locked(bs, true, va, bytes, by);
	return DRV_ERROR_NONE;
}

/* ---- what is in use ---- */

static bool frames_used(struct bsim *bs, const struct node_block *block)
{
	const unsigned char *base = node_memory(bs->node)->base[block->memory];

	if (block->leaving != 0)
		return true;
	for (unsigned i = 0; i < block->extent_count; i++)
		if (sim_uses(bs->sim, base + (block->extents[i].frame << NODE_FRAME_LG2),
			     block->extents[i].count << NODE_FRAME_LG2))
			return true;
	return false;
}

static bool allocation_used(struct bsim *bs, const struct allocation *a)
{
	return a->filling         ? true
	       : a->block != NULL ? frames_used(bs, a->block)
				  : pool_pages_used(bs, a);
}

bool gone_hold_locked(struct bsim *bs, struct allocation *a)
{
	bool pinned = a->kind == NPU_PLACE_PINNED, host = pinned || a->kind == NPU_PLACE_REGISTERED;

	a->held = !host || bs->uses == NULL ? 0 : bs->uses(bs, a->va, a->bytes);
	if (a->held == 0 && !pinned && !allocation_used(bs, a))
		return false;
	a->gone_number = bs->call_number;
	LIST_REMOVE(a, link);
	LIST_INSERT_HEAD(&bs->allocs->held, a, link);
	bs->allocs->count[a->kind]--;
	bs->allocs->bytes[a->kind] -= a->bytes;
	return true;
}

void gone_release_locked(struct bsim *bs, uint64_t va, uint64_t bytes, uint64_t sent)
{
	struct allocation *a;

	LIST_FOREACH(a, &bs->allocs->held, link)
	if (a->held != 0 && a->gone_number > sent && a->va < va + bytes && va < a->va + a->bytes)
		a->held--;
}

void gone_end_pools_locked(struct bsim *bs)
{
	GSList *pools = g_steal_pointer(&bs->allocs->gone_pools);

	bs->sim_lock.release(bs);
	g_slist_free_full(pools, (GDestroyNotify)pool_free);
	bs->sim_lock.take(bs);
}

void gone_end_locked(struct bsim *bs)
{
	struct allocation_list pinned = LIST_HEAD_INITIALIZER(pinned);
	struct alloc_table *t = bs->allocs;
	struct mapping *mappings = LIST_FIRST(&t->gone_mappings), *m;
	struct allocation *a, *next;
	GSList *blocks = NULL;
	gpointer number;

	LIST_INIT(&t->gone_mappings);
	for (a = LIST_FIRST(&t->held); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->held != 0 || allocation_used(bs, a))
			continue;
		if (a->kind != NPU_PLACE_PINNED) {
			allocation_finish(bs, a);
			continue;
		}
		LIST_REMOVE(a, link);
		LIST_INSERT_HEAD(&pinned, a, link);
	}
	for (unsigned i = t->gone_blocks->len; i-- > 0;) {
		struct node_block *block = t->gone_blocks->pdata[i];

		if (frames_used(bs, block))
			continue;
		g_ptr_array_remove_index_fast(t->gone_blocks, i);
		if (node_block_leave(bs->node, block))
			blocks = g_slist_prepend(blocks, block);
	}
	if (blocks == NULL && mappings == NULL && LIST_EMPTY(&pinned))
		return;
	/* Nobody finds these any more, nor has their frames and addresses before the end. */
	number = GSIZE_TO_POINTER(++bs->leaves);
	bs->leaving = g_slist_append(bs->leaving, number);
	bs->sim_lock.release(bs);
	for (const GSList *block = blocks; block != NULL; block = block->next)
		node_block_clean(bs->node, block->data);
	LIST_FOREACH(a, &pinned, link)
	window_close_to_cpu(a->va, a->bytes);
	for (m = mappings; m != NULL; m = LIST_NEXT(m, link))
		window_close_to_cpu(m->va, mapping_bytes(m));
	bs->sim_lock.take(bs);
	bs->leaving = g_slist_remove(bs->leaving, number);
	while ((a = LIST_FIRST(&pinned)) != NULL)
		allocation_finish(bs, a);
	while ((m = mappings) != NULL) {
		mappings = LIST_NEXT(m, link);
		m->left->leaving--;
		mapping_finish(bs->window, m);
	}
	g_slist_free(blocks);
}

void gone_close_locked(struct bsim *bs)
{
	struct alloc_table *t = bs->allocs;
	struct allocation *a;

	LIST_FOREACH(a, &t->held, link)
	a->held = 0;
	gone_end_locked(bs); /* but for what the model's engines have begun to use */
	while (!LIST_EMPTY(&t->held))
		allocation_finish(bs, LIST_FIRST(&t->held));
	for (unsigned i = 0; i < t->gone_blocks->len; i++)
		node_block_drop(bs->node, t->gone_blocks->pdata[i]);
	g_ptr_array_free(t->gone_blocks, TRUE);
}
