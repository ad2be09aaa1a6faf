/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages the heaps of classic allocations: 1 GiB each, of one kind, first fit. Owns the record of
 * which pages of a heap are in use, and the frames behind 4 KiB pages.
 */
#include "memory/memory.h"
#include "memory/tables.h"

#include <string.h>

#define FRAME_PAGES 512u /* 4 KiB pages of a frame */

static struct pool *new_pool(struct bsim *bs, const char *call, const struct pool_kind *kind)
{
	struct range *range = window_take(bs, call, kind->area, RANGE_POOL, 1);
	struct pool *p;

	if (range == NULL)
		return NULL;
	p = range->pool = g_new0(struct pool, 1);
	p->kind = *kind;
	p->range = range;
	p->pages = 1u << (30 - kind->page_lg2);
	p->bits = g_new0(uint64_t, p->pages / 64);
	p->owner = g_new0(struct allocation *, p->pages);
	if (kind->page_lg2 == 12 && kind->use == NPU_PLACE_DEVICE)
		p->frame = g_new0(struct pool_frame, WINDOW_SLOTS);
	for (unsigned f = 0; p->frame != NULL && f < WINDOW_SLOTS; f++)
		p->frame[f].run_most = FRAME_PAGES;
	TAILQ_INSERT_TAIL(&bs->allocs->pools, p, link);
	return p;
}

static void end_pool(struct bsim *bs, struct pool *p)
{
	TAILQ_REMOVE(&bs->allocs->pools, p, link);
	window_drop(bs, p->range);
	g_free(p->bits);
	g_free(p->owner);
	g_free(p->frame);
	g_free(p);
}

/* The first run of `count` free pages within a frame, or p->pages. */
static unsigned find_in_frame(struct pool *p, unsigned frame, unsigned count)
{
	unsigned end = (frame + 1) * FRAME_PAGES, longest = 0, stop;

	for (unsigned page = bits_next(p->bits, frame * FRAME_PAGES, end, UINT64_MAX); page < end;
	     page = bits_next(p->bits, stop, end, UINT64_MAX)) {
		stop = bits_next(p->bits, page, end, 0);
		if (stop - page >= count)
			return page;
		longest = stop - page > longest ? stop - page : longest;
	}
	p->frame[frame].run_most = (uint16_t)longest;
	return p->pages;
}

static unsigned find_in_frames(struct pool *p, unsigned count)
{
	unsigned page = p->pages;

	for (unsigned f = p->lowest_free / FRAME_PAGES; f < WINDOW_SLOTS && page == p->pages; f++)
		if (p->frame[f].run_most >= count)
			page = find_in_frame(p, f, count);
	return page;
}

/* Where a run of `count` pages may start from `page` on: large host blocks at 2 MiB. */
static unsigned placed(const struct pool *p, unsigned page, unsigned count)
{
	if (p->kind.page_lg2 == 12 && count >= FRAME_PAGES && p->frame == NULL)
		return (page + FRAME_PAGES - 1) / FRAME_PAGES * FRAME_PAGES;
	return page;
}

/* First fit, of what fits into a frame within one; p->pages for none. */
static unsigned find_pages(struct pool *p, unsigned count)
{
	unsigned page = bits_next(p->bits, p->lowest_free, p->pages, UINT64_MAX);

	p->lowest_free = page;
	if (count > p->pages - p->used)
		return p->pages;
	if (p->frame != NULL && count <= FRAME_PAGES)
		return find_in_frames(p, count);
	while (page < p->pages) {
		unsigned taken;

		page = placed(p, page, count);
		if (page + count > p->pages)
			break;
		taken = bits_next(p->bits, page, page + count, 0);
		if (taken == page + count)
			return page;
		page = bits_next(p->bits, taken, p->pages, UINT64_MAX);
	}
	return p->pages;
}

static void mark_pages(struct pool *p, unsigned first, unsigned count, struct allocation *a)
{
	for (unsigned page = first; page < first + count; page++) {
		p->bits[page / 64] ^= UINT64_C(1) << (page % 64);
		p->owner[page] = a;
	}
	p->used += a != NULL ? count : -count;
	if (a == NULL && first < p->lowest_free)
		p->lowest_free = first;
}

/* ---- frames behind 4 KiB pages ---- */

static void put_frames(struct bsim *bs, struct pool *p, unsigned first, unsigned count)
{
	for (unsigned page = first; page < first + count; page++) {
		struct pool_frame *f = &p->frame[page / FRAME_PAGES];

		f->run_most = FRAME_PAGES; /* until somebody looks */
		if (--f->used != 0)
			continue;
		node_block_drop(bs->node, f->block);
		*f = (struct pool_frame){ .run_most = FRAME_PAGES };
	}
}

static drvError_t get_frames(struct bsim *bs, struct pool *p, unsigned first, unsigned count)
{
	for (unsigned page = first; page < first + count; page++) {
		struct pool_frame *f = &p->frame[page / FRAME_PAGES];

		if (f->used == 0) {
			drvError_t result =
				memory_take(bs, p->kind.memory, 1, false, "4 KiB pages", &f->block);

			if (result != DRV_ERROR_NONE) {
				put_frames(bs, p, first, page - first);
				return result;
			}
			node_block_touch(bs->node, f->block);
		}
		f->used++;
	}
	return DRV_ERROR_NONE;
}

static uint64_t page_pa(const struct pool *p, unsigned page)
{
	const struct node_block *block = p->frame[page / FRAME_PAGES].block;

	return SIM_PA(block->memory,
		      (block->extents[0].frame << NODE_FRAME_LG2) + (page % FRAME_PAGES << 12));
}

static unsigned char *page_bytes(struct bsim *bs, const struct pool *p, unsigned page)
{
	uint64_t pa = page_pa(p, page);

	return node_memory(bs->node)->base[SIM_PA_NODE(pa)] + SIM_PA_OFFSET(pa);
}

static bool map_pages(struct bsim *bs, struct pool *p, unsigned first, unsigned count)
{
	uint64_t va = p->range->va;

	for (unsigned page = first, n; page < first + count; page += n) {
		n = MIN(FRAME_PAGES - page % FRAME_PAGES, first + count - page);
		if (!tables_map_pages(bs, p->kind.memory, va + ((uint64_t)page << 12),
				      page_pa(p, page), n)) {
			tables_unmap(bs, p->kind.memory, va + ((uint64_t)first << 12),
				     (uint64_t)(page - first) << 12, 12);
			npu_message_set("halMemAlloc: no memory for page tables on device %u",
					p->kind.memory);
			return false;
		}
	}
	/* A page that was somebody's before reads as new memory again. */
	for (unsigned page = first; page < first + count; page++) {
		uint64_t *written = &p->frame[page / FRAME_PAGES].written[page % FRAME_PAGES / 64];
		uint64_t bit = UINT64_C(1) << (page % 64);

		if (bs->contents && (bs->poison != 0 || (*written & bit)))
			memset(page_bytes(bs, p, page), bs->poison, 4096);
		*written |= bit;
	}
	return true;
}

bool pool_pages_used(struct bsim *bs, const struct allocation *a)
{
	const struct pool *p = a->range->kind == RANGE_POOL ? a->range->pool : NULL;
	unsigned n, page, end;

	if (p == NULL || p->frame == NULL)
		return false;
	page = (unsigned)((a->va - a->range->va) >> 12);
	for (end = page + (unsigned)(a->bytes >> 12); page < end; page += n) {
		n = MIN(FRAME_PAGES - page % FRAME_PAGES, end - page);
		if (sim_uses(bs->sim, page_bytes(bs, p, page), (uint64_t)n << 12))
			return true;
	}
	return false;
}

/* ---- allocations ---- */

static bool same_kind(const struct pool_kind *a, const struct pool_kind *b)
{
	return a->use == b->use && a->area == b->area && a->memory == b->memory &&
	       a->page_lg2 == b->page_lg2 && a->mem_type == b->mem_type;
}

static drvError_t place_in_pool(struct bsim *bs, const char *call, const struct pool_kind *kind,
				struct allocation *a)
{
	unsigned count = (unsigned)(a->bytes >> kind->page_lg2), first = 0;
	drvError_t result = DRV_ERROR_NONE;
	struct pool *p;

	TAILQ_FOREACH(p, &bs->allocs->pools, link)
	if (same_kind(&p->kind, kind) && (first = find_pages(p, count)) != p->pages)
		break;
	if (p == NULL) {
		first = 0;
		p = new_pool(bs, call, kind);
		if (p == NULL)
			return DRV_ERROR_OUT_OF_MEMORY;
	}
	if (p->frame != NULL)
		result = get_frames(bs, p, first, count);
	if (p->frame != NULL && result == DRV_ERROR_NONE && !map_pages(bs, p, first, count)) {
		put_frames(bs, p, first, count);
		result = DRV_ERROR_OUT_OF_MEMORY;
	}
	if (result == DRV_ERROR_NONE) {
		a->va = p->range->va + ((uint64_t)first << kind->page_lg2);
		a->range = p->range;
		mark_pages(p, first, count, a);
	} else if (p->used == 0) {
		end_pool(bs, p);
	}
	return result;
}

static drvError_t place_alone(struct bsim *bs, const char *call, const struct pool_kind *kind,
			      struct allocation *a)
{
	a->range = window_take(bs, call, kind->area, RANGE_ALLOCATION,
			       (a->bytes + WINDOW_GIB - 1) / WINDOW_GIB);
	if (a->range == NULL)
		return DRV_ERROR_OUT_OF_MEMORY;
	a->range->allocation = a;
	a->va = a->range->va;
	return DRV_ERROR_NONE;
}

struct allocation *allocation_new(struct bsim *bs, const char *call, const struct pool_kind *kind,
				  uint64_t bytes, drvError_t *out_error)
{
	struct allocation *a = g_new0(struct allocation, 1);

	a->kind = kind->use;
	a->memory = kind->memory;
	a->page_lg2 = kind->page_lg2;
	a->bytes = bytes;
	*out_error = bytes > WINDOW_LARGE ? place_alone(bs, call, kind, a)
					  : place_in_pool(bs, call, kind, a);
	if (*out_error != DRV_ERROR_NONE) {
		g_free(a);
		return NULL;
	}
	a->made = bsim_made_locked(bs);
	LIST_INSERT_HEAD(&bs->allocs->all, a, link);
	bs->allocs->count[a->kind]++;
	bs->allocs->bytes[a->kind] += a->bytes;
	fault_install();
	return a;
}

/* One empty heap of a kind is kept: the next allocation need not make it again. */
static bool has_spare(const struct bsim *bs, const struct pool *empty)
{
	const struct pool *p;

	TAILQ_FOREACH(p, &bs->allocs->pools, link)
	if (p != empty && p->used == 0 && same_kind(&p->kind, &empty->kind))
		return true;
	return false;
}

void pool_end_empty(struct bsim *bs, unsigned memory)
{
	struct pool *next;

	for (struct pool *p = TAILQ_FIRST(&bs->allocs->pools); p != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->used == 0 && p->kind.memory == memory)
			end_pool(bs, p);
	}
}

static void leave_pool(struct bsim *bs, struct allocation *a)
{
	struct pool *p = a->range->pool;
	unsigned first = (unsigned)((a->va - a->range->va) >> p->kind.page_lg2);
	unsigned count = (unsigned)(a->bytes >> p->kind.page_lg2);

	if (p->frame != NULL) {
		tables_unmap(bs, p->kind.memory, a->va, a->bytes, 12);
		put_frames(bs, p, first, count);
	}
	mark_pages(p, first, count, NULL);
	if (p->used == 0 && has_spare(bs, p))
		end_pool(bs, p);
}

void allocation_drop(struct bsim *bs, struct allocation *a)
{
	if (a->range->kind == RANGE_POOL)
		leave_pool(bs, a);
	else
		window_drop(bs, a->range);
	LIST_REMOVE(a, link);
	if (a->gone_number == 0) { /* else when it was freed */
		bs->allocs->count[a->kind]--;
		bs->allocs->bytes[a->kind] -= a->bytes;
	}
	g_free(a);
}

const struct node_block *allocation_frame(const struct allocation *a, uint64_t va)
{
	if (a->block != NULL)
		return a->block;
	return a->range->pool->frame[(va - a->range->va) >> NODE_FRAME_LG2].block;
}

void alloc_table_open(struct bsim *bs)
{
	bs->allocs = g_new0(struct alloc_table, 1);
	TAILQ_INIT(&bs->allocs->pools);
	bs->allocs->gone_blocks = g_ptr_array_new();
}

void alloc_table_close(struct bsim *bs)
{
	struct alloc_table *t = bs->allocs;

	if (t == NULL)
		return;
	while (!LIST_EMPTY(&t->all))
		allocation_finish(bs, LIST_FIRST(&t->all));
	while (!LIST_EMPTY(&t->held))
		allocation_finish(bs, LIST_FIRST(&t->held));
	while (!TAILQ_EMPTY(&t->pools))
		end_pool(bs, TAILQ_FIRST(&t->pools));
	for (unsigned i = 0; i < t->gone_blocks->len; i++)
		node_block_drop(bs->node, t->gone_blocks->pdata[i]);
	g_ptr_array_free(t->gone_blocks, TRUE);
	g_free(t);
	bs->allocs = NULL;
}
