/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that was given back and is in use. Host memory stays until the work is done that was sent
 * before it was freed, a device's until the copies end that have translated addresses to it. And a
 * short history of who gave which range of the host's back, for messages.
 */
#include "memory/memory.h"
#include "process/ops.h"

#include <inttypes.h>

/* ---- history ---- */

static void note(struct bsim *bs, uint64_t va, uint64_t bytes, const char *call)
{
	struct alloc_table *t = bs->allocs;

	t->gone[t->gone_count++ % ALLOC_GONE_MAX] = (struct gone_range){
		.va = va, .bytes = bytes, .number = bs->call_number, .call = call
	};
}

const char *gone_text_locked(const struct bsim *bs, uint64_t va)
{
	const struct alloc_table *t = bs->allocs;

	for (uint64_t i = t == NULL ? 0 : t->gone_count, n = 0; i-- > 0 && n < ALLOC_GONE_MAX;
	     n++) {
		const struct gone_range *gone = &t->gone[i % ALLOC_GONE_MAX];

		if (va - gone->va < gone->bytes)
			return npu_text("[0x%" PRIx64 ", 0x%" PRIx64
					") was given back by %s, driver call %" PRIu64,
					gone->va, gone->va + gone->bytes, gone->call, gone->number);
	}
	return NULL;
}

BSIM_QUESTION(npusimGaveBack, (uint64_t, va), (uint64_t, bytes), (const char *, call))
{
	if (bs->allocs != NULL)
		note(bs, va, bytes, call);
	return DRV_ERROR_NONE;
}

/* ---- what copies and queued work still use ---- */

static bool frames_used(struct bsim *bs, const struct node_block *block)
{
	const unsigned char *base = node_memory(bs->node)->base[block->memory];

	for (unsigned i = 0; i < block->extent_count; i++)
		if (sim_uses(bs->sim, base + (block->extents[i].frame << NODE_FRAME_LG2),
			     block->extents[i].count << NODE_FRAME_LG2))
			return true;
	return false;
}

static bool allocation_used(struct bsim *bs, const struct allocation *a)
{
	return a->block != NULL ? frames_used(bs, a->block) : pool_pages_used(bs, a);
}

bool gone_hold_locked(struct bsim *bs, struct allocation *a)
{
	bool pinned = a->kind == NPU_PLACE_PINNED, host = pinned || a->kind == NPU_PLACE_REGISTERED;

	if (host)
		note(bs, pinned ? a->va : a->host_va + a->opened_offset, a->asked,
		     bs->cuda != NULL ? "cuMemFreeHost"
		     : pinned         ? "aclrtFreeHost"
				      : "aclrtHostUnregister");
	a->held = !host || bs->uses == NULL ? 0 : bs->uses(bs, a->va, a->bytes);
	if (a->held == 0 && (host || !allocation_used(bs, a)))
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
	struct allocation *next;

	for (struct allocation *a = LIST_FIRST(&bs->allocs->held); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->held != 0 && a->gone_number > sent && a->va < va + bytes &&
		    va < a->va + a->bytes && --a->held == 0)
			allocation_finish(bs, a);
	}
}

void gone_block_locked(struct bsim *bs, struct node_block *block)
{
	if (frames_used(bs, block))
		g_ptr_array_add(bs->allocs->gone_blocks, block);
	else
		node_block_drop(bs->node, block);
}

void gone_end_locked(struct bsim *bs)
{
	GPtrArray *gone = bs->allocs->gone_blocks;
	struct allocation *next;

	for (unsigned i = gone->len; i-- > 0;)
		if (!frames_used(bs, gone->pdata[i]))
			node_block_drop(bs->node, g_ptr_array_remove_index_fast(gone, i));
	for (struct allocation *a = LIST_FIRST(&bs->allocs->held); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->held == 0 && !allocation_used(bs, a))
			allocation_finish(bs, a);
	}
}
