/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements halMemAlloc, halMemFree and memory information. Owns the meaning of an allocation's
 * flags, and the heaps that allocations of up to 512 MiB are cut from: 1 GiB each, of one kind,
 * first fit, with a record of which pages are in use, and the frames behind 4 KiB pages.
 */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/int-map.h"

#define ALLOC "halMemAlloc"
#define FREE  "halMemFree"

#define SIDE_MASK           UINT64_C(0xf)
#define LARGEST             (UINT64_C(1) << 43)
#define CHECKED_ADDRESS_MAX 1024u
#define FRAME_PAGES         512u /* 4 KiB pages of a frame */
#define RECORDS_MIN         ((size_t)8 << 10)

/* ---- heaps ---- */

void pool_free(struct pool *p)
{
	munmap(p->owner, p->pages * sizeof(*p->owner));
	g_free(p->frame);
	g_free(p);
}

static void end_pool(struct bsim *bs, struct pool *p)
{
	TAILQ_REMOVE(&bs->allocs->pools, p, link);
	if (p->range != NULL)
		window_drop(bs, p->range);
	bs->allocs->gone_pools = g_slist_prepend(bs->allocs->gone_pools, p);
}

static bool same_kind(const struct pool_kind *a, const struct pool_kind *b)
{
	return memcmp(a, b, sizeof(*a)) == 0; /* there is no padding */
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

/* One without addresses. Lets go of the lock, as the kernel clears its memory: the call is made
 * again, and another's may have made one. */
static drvError_t new_pool_locked(struct bsim *bs, const char *call, const struct pool_kind *kind)
{
	bool huge = bs->allocs->bytes[kind->use] >= WINDOW_GIB;
	unsigned pages = 1u << (30 - kind->page_lg2);
	struct allocation **owner;
	struct pool *p;

	bs->sim_lock.release(bs);
	owner = npu_pages_new(pages * sizeof(*owner), huge);
	if (owner == NULL) {
		bs->sim_lock.take(bs);
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "%s: this host has no memory for a heap: %s", call,
				 host_map_problem(ENOMEM));
	}
	for (unsigned i = 0; i < (huge ? pages : 1); i += FRAME_PAGES)
		owner[i] = NULL; /* touched */
	p = g_malloc0(sizeof(*p) + pages / 64 * sizeof(p->bits[0]));
	p->kind = *kind;
	p->pages = pages;
	p->owner = owner;
	if (kind->page_lg2 == 12 && kind->use == NPU_PLACE_DEVICE)
		p->frame = g_new0(struct pool_frame, pages / FRAME_PAGES);
	if (kind->page_lg2 == 21 || p->frame != NULL)
		p->leaves = pages / FRAME_PAGES;
	for (unsigned i = 0; i < 2 * p->leaves; i++)
		p->room[i] = FRAME_PAGES;
	bs->sim_lock.take(bs);
	TAILQ_INSERT_TAIL(&bs->allocs->pools, p, link);
	if (has_spare(bs, p))
		end_pool(bs, p);
	return DRV_ERROR_RESUME;
}

static void set_room(struct pool *p, unsigned at, unsigned longest)
{
	p->room[at] = (uint16_t)longest;
	for (; at > 1 && p->room[at / 2] != MAX(p->room[at], p->room[at ^ 1]); at /= 2)
		p->room[at / 2] = MAX(p->room[at], p->room[at ^ 1]);
}

/* The first run of `count` free pages within 512, or p->pages. */
static unsigned find_in_leaves(struct pool *p, unsigned count)
{
	while (p->room[1] >= count) {
		unsigned at = 1, end, page, longest;

		while (at < p->leaves)
			at = 2 * at + (p->room[2 * at] < count);
		end = (at - p->leaves + 1) * FRAME_PAGES;
		page = bits_run(p->bits, end - FRAME_PAGES, end, count, &longest);
		if (page < end)
			return page;
		set_room(p, at, longest);
	}
	return p->pages;
}

/* First fit, of what fits into a frame within one, large host blocks at 2 MiB; p->pages: none. */
static unsigned find_pages(struct pool *p, unsigned count)
{
	unsigned page;

	if (p->leaves != 0 && count <= FRAME_PAGES)
		return find_in_leaves(p, count);
	if (count > p->pages - p->used)
		return p->pages;
	page = p->lowest_free = bits_next(p->bits, p->lowest_free, p->pages, UINT64_MAX);
	while (page < p->pages) {
		unsigned taken;

		if (p->kind.page_lg2 == 12 && count >= FRAME_PAGES && p->frame == NULL)
			page = (page + FRAME_PAGES - 1) / FRAME_PAGES * FRAME_PAGES;
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
	for (unsigned page = first; page < first + count;) {
		uint64_t *word = &p->bits[page / 64];

		p->owner[page] = a;
		*word ^= bits_of_word(&page, first + count);
	}
	p->used += a != NULL ? count : -count;
	if (a == NULL && first < p->lowest_free)
		p->lowest_free = first;
	for (unsigned leaf = first / FRAME_PAGES;
	     a == NULL && p->leaves != 0 && leaf <= (first + count - 1) / FRAME_PAGES; leaf++) {
		unsigned from = leaf * FRAME_PAGES, end = from + FRAME_PAGES;

		from = bits_back(p->bits, from, MAX(first, from));
		end = bits_next(p->bits, MIN(first + count, end), end, 0);
		set_room(p, p->leaves + leaf, MAX(p->room[p->leaves + leaf], end - from));
	}
}

/* ---- frames behind 4 KiB pages ---- */

/* Of pages from `page` on, up to `end`, those in its frame. */
static unsigned pages_in_frame(unsigned page, unsigned end)
{
	return MIN(FRAME_PAGES - page % FRAME_PAGES, end - page);
}

/* `fresh`: those that go were taken for these pages, and nobody has them. */
static void put_frames(struct bsim *bs, struct pool *p, unsigned first, unsigned count, bool fresh)
{
	for (unsigned page = first, n; page < first + count; page += n) {
		struct pool_frame *f = &p->frame[page / FRAME_PAGES];

		n = pages_in_frame(page, first + count);
		f->used -= n;
		if (f->used != 0)
			continue;
		if (fresh)
			node_block_drop(bs->node, f->block);
		else
			gone_block_locked(bs, f->block);
		*f = (struct pool_frame){ .block = NULL };
	}
}

static drvError_t get_frames(struct bsim *bs, struct pool *p, unsigned first, unsigned count)
{
	for (unsigned page = first, n; page < first + count; page += n) {
		struct pool_frame *f = &p->frame[page / FRAME_PAGES];

		n = pages_in_frame(page, first + count);
		if (f->used == 0) {
			drvError_t result = memory_take(bs, p->kind.memory, 1, false, &f->block);

			if (result != DRV_ERROR_NONE) {
				put_frames(bs, p, first, page - first, true);
				return result;
			}
			bs->allocs->frames_taken++;
			block_mapped_locked(bs, f->block);
			f->pa = SIM_PA(f->block->memory,
				       f->block->extents[0].frame << NODE_FRAME_LG2);
		}
		f->used += n;
	}
	return DRV_ERROR_NONE;
}

static uint64_t page_pa(const struct pool *p, unsigned page)
{
	return p->frame[page / FRAME_PAGES].pa + (page % FRAME_PAGES << 12);
}

static unsigned char *page_bytes(struct bsim *bs, const struct pool *p, unsigned page)
{
	uint64_t pa = page_pa(p, page);

	return node_memory(bs->node)->base[SIM_PA_NODE(pa)] + SIM_PA_OFFSET(pa);
}

static drvError_t map_pages(struct bsim *bs, struct pool *p, unsigned first, unsigned count)
{
	uint64_t va = p->range->va;

	for (unsigned page = first, n; page < first + count; page += n) {
		drvError_t result;

		n = pages_in_frame(page, first + count);
		result = tables_map_leaves(bs, ALLOC, p->kind.memory, va + ((uint64_t)page << 12),
					   page_pa(p, page), PT_PAGE_LG2, n, PT_WRITE);
		if (result == DRV_ERROR_NONE)
			continue;
		tables_unmap(bs, p->kind.memory, va + ((uint64_t)first << 12),
			     (uint64_t)(page - first) << 12, 12);
		put_frames(bs, p, first, count, true);
		return result;
	}
	return DRV_ERROR_NONE;
}

/* A page that was somebody's before reads as new memory again. Lets go of the lock: the allocation
 * stays, and its neighbours in a frame have other bits. */
static void fill_pages_locked(struct bsim *bs, struct allocation *a)
{
	const struct pool *p = a->range->pool;
	unsigned page = (unsigned)((a->va - a->range->va) >> 12);
	unsigned end = page + (unsigned)(a->bytes >> 12);

	a->filling = bs->contents && a->bytes > SIM_FEW_BYTES;
	if (a->filling)
		bs->sim_lock.release(bs);
	while (page < end) {
		uint64_t *written = &p->frame[page / FRAME_PAGES].written[page % FRAME_PAGES / 64];
		unsigned word = page / 64 * 64;
		uint64_t bits = bits_of_word(&page, end);
		uint64_t old = __atomic_fetch_or(written, bits, __ATOMIC_RELAXED) & bits;

		for (old = bs->poison != 0 ? bits : old; bs->contents && old != 0; old &= old - 1)
			memset(page_bytes(bs, p, word + (unsigned)__builtin_ctzll(old)), bs->poison,
			       4096);
	}
	if (a->filling)
		bs->sim_lock.take(bs);
	a->filling = false;
}

bool pool_pages_used(struct bsim *bs, const struct allocation *a)
{
	const struct pool *p = a->range->kind == RANGE_POOL ? a->range->pool : NULL;
	unsigned n, page, end;

	if (p == NULL || p->frame == NULL)
		return false;
	page = (unsigned)((a->va - a->range->va) >> 12);
	for (end = page + (unsigned)(a->bytes >> 12); page < end; page += n) {
		n = pages_in_frame(page, end);
		if (sim_uses(bs->sim, page_bytes(bs, p, page), (uint64_t)n << 12))
			return true;
	}
	return false;
}

/* ---- allocations in heaps ---- */

static drvError_t place_in_pool(struct bsim *bs, const char *call, const struct pool_kind *kind,
				struct allocation *a)
{
	unsigned count = (unsigned)(a->bytes >> kind->page_lg2), first = 0;
	drvError_t result = DRV_ERROR_NONE;
	struct pool *p;

	TAILQ_FOREACH(p, &bs->allocs->pools, link)
	if (same_kind(&p->kind, kind) && (first = find_pages(p, count)) != p->pages)
		break;
	if (p == NULL)
		return new_pool_locked(bs, call, kind);
	if (p->range == NULL) {
		p->range = window_take(bs, call, kind->area, RANGE_POOL, 1);
		if (p->range == NULL)
			return DRV_ERROR_OUT_OF_MEMORY;
		p->range->pool = p;
	}
	if (p->frame != NULL)
		result = get_frames(bs, p, first, count) ?: map_pages(bs, p, first, count);
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

/* As many again as there are, up to a huge page of them. Lets go of the lock, as the kernel clears
 * their memory: the call is made again. */
static drvError_t new_records_locked(struct bsim *bs, const char *call)
{
	struct alloc_table *t = bs->allocs;
	size_t bytes = CLAMP(t->record_bytes, RECORDS_MIN, NPU_HUGE_PAGE);
	size_t count = bytes / sizeof(struct allocation);
	struct allocation *records;

	bs->sim_lock.release(bs);
	records = aligned_alloc(bytes, bytes); /* where LeakSanitizer looks for pointers */
	if (records != NULL && bytes == NPU_HUGE_PAGE)
		madvise(records, bytes, MADV_HUGEPAGE);
	for (size_t i = 0; records != NULL && i < count; i++)
		records[i].link.le_next = &records[i + 1];
	bs->sim_lock.take(bs);
	if (records == NULL)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "%s: this host has no memory for records of allocations", call);
	records[count - 1].link.le_next = t->free;
	t->free = records;
	t->records = g_slist_prepend(t->records, records);
	t->record_bytes += bytes;
	return DRV_ERROR_RESUME;
}

static void record_free(struct alloc_table *t, struct allocation *a)
{
	a->link.le_next = t->free;
	t->free = a;
}

struct allocation *allocation_new(struct bsim *bs, const char *call, const struct pool_kind *kind,
				  uint64_t bytes, drvError_t *out_error)
{
	struct allocation *a = bs->allocs->free;

	if (a == NULL) {
		*out_error = new_records_locked(bs, call);
		return NULL;
	}
	bs->allocs->free = LIST_NEXT(a, link);
	*a = (struct allocation){ .kind = kind->use };
	a->memory = kind->memory;
	a->page_lg2 = kind->page_lg2;
	a->bytes = bytes;
	*out_error = bytes > WINDOW_LARGE ? place_alone(bs, call, kind, a)
					  : place_in_pool(bs, call, kind, a);
	if (*out_error != DRV_ERROR_NONE) {
		record_free(bs->allocs, a);
		return NULL;
	}
	a->made = bsim_made_locked(bs);
	LIST_INSERT_HEAD(&bs->allocs->live[a->memory], a, link);
	bs->allocs->count[a->kind]++;
	bs->allocs->bytes[a->kind] += a->bytes;
	fault_install();
	return a;
}

static void leave_pool(struct bsim *bs, struct allocation *a)
{
	struct pool *p = a->range->pool;
	unsigned first = (unsigned)((a->va - a->range->va) >> p->kind.page_lg2);
	unsigned count = (unsigned)(a->bytes >> p->kind.page_lg2);

	if (p->frame != NULL)
		put_frames(bs, p, first, count, false);
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
	record_free(bs->allocs, a);
}

void allocation_finish(struct bsim *bs, struct allocation *a)
{
	if (!a->unmapped && (a->kind == NPU_PLACE_DEVICE || a->kind == NPU_PLACE_OPENED))
		tables_unmap(bs, a->memory, a->va, a->bytes, a->page_lg2);
	if (a->block != NULL)
		gone_block_locked(bs, a->block);
	allocation_drop(bs, a);
}

void allocation_end(struct bsim *bs, struct allocation *a)
{
	if (!gone_hold_locked(bs, a))
		allocation_finish(bs, a);
}

const struct node_block *allocation_frame(const struct allocation *a, uint64_t va)
{
	if (a->block != NULL)
		return a->block;
	return a->range->pool->frame[(va - a->range->va) >> NODE_FRAME_LG2].block;
}

static unsigned end_all(struct bsim *bs, const struct allocation_list *list)
{
	unsigned ended = 0;

	for (; !LIST_EMPTY(list); ended++)
		allocation_end(bs, LIST_FIRST(list));
	return ended;
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
	for (unsigned i = 0; i < G_N_ELEMENTS(t->live); i++)
		(void)end_all(bs, &t->live[i]);
	gone_close_locked(bs);
	while (!TAILQ_EMPTY(&t->pools))
		end_pool(bs, TAILQ_FIRST(&t->pools));
	g_slist_free_full(t->gone_pools, (GDestroyNotify)pool_free);
	g_slist_free_full(t->records, free);
	g_free(t);
	bs->allocs = NULL;
}

void memory_written_locked(struct bsim *bs)
{
	const struct allocation *a;
	const struct mapping *m;
	const struct pool *p;

	if (bs->writes)
		return;
	bs->writes = true;
	EACH_OF(LIST, m, bs->window->mappings)
	block_mapped_locked(bs, m->handle->block);
	TAILQ_FOREACH(p, &bs->allocs->pools, link)
	for (unsigned i = 0; p->frame != NULL && i < p->leaves; i++)
		if (p->frame[i].block != NULL)
			block_mapped_locked(bs, p->frame[i].block);
	EACH_OF(LIST, a, bs->allocs->live)
	if (a->block != NULL)
		block_mapped_locked(bs, a->block);
	LIST_FOREACH(a, &bs->allocs->held, link)
	if (a->block != NULL)
		block_mapped_locked(bs, a->block);
}

/* ---- allocate ---- */

static drvError_t decode(struct bsim *bs, uint64_t flag, struct pool_kind *out)
{
	uint64_t side = flag >> MEM_VIRT_BIT & SIDE_MASK;
	unsigned device = flag & MEM_DEVID_MASK;

	if (side == MEM_HOST_VAL) {
		*out = (struct pool_kind){ .use = NPU_PLACE_PINNED,
					   .area = WINDOW_NORMAL,
					   .memory = SIM_NODE_HOST,
					   .page_lg2 = 12 };
		return DRV_ERROR_NONE;
	}
	if (side != MEM_DEV_VAL && side != MEM_DVPP_VAL)
		return bsim_unsupported(ALLOC ": flag 0x%" PRIx64 " asks for side %" PRIu64
					      "; 1 (device), 2 (host) and 3 (DVPP) are modelled, "
					      "shared virtual memory is not",
					flag, side);
	if (!bsim_require_device_locked(bs, ALLOC, device))
		return DRV_ERROR_INVALID_DEVICE;
	if (flag & MEM_PAGE_GIANT && !bs->profile.giant_pages)
		return bsim_unsupported(ALLOC ": flag 0x%" PRIx64
					      " asks for 1 GiB pages, which a %s does not have",
					flag, bs->profile.soc_name);
	*out = (struct pool_kind){
		.use = NPU_PLACE_DEVICE,
		.area = flag & MEM_READONLY         ? WINDOW_READ_ONLY
			: flag & MEM_HOST_RW_DEV_RO ? WINDOW_DEVICE_READ_ONLY
						    : WINDOW_NORMAL,
		.memory = device,
		.page_lg2 = flag & (MEM_PAGE_HUGE | MEM_PAGE_GIANT) ? 21 : 12,
		.mem_type = flag & MEM_ADVISE_TS ? MEM_ADVISE_TS
						 : flag & (MEM_TYPE_HBM | MEM_ADVISE_P2P),
	};
	return DRV_ERROR_NONE;
}

void block_poison(struct bsim *bs, const struct node_block *block)
{
	uint64_t bytes = block->frames << NODE_FRAME_LG2;

	if (bs->poison == 0 || !bs->contents || block->memory == SIM_NODE_HOST)
		return;
	if (bytes > node_host_room_bytes(NODE_ROOM_MS)) {
		npu_log(NPU_LOG_WARN,
			"NPUSIM_POISON: %s of device %u stay zeros: this machine's memory has no "
			"room for them",
			npu_size_text(bytes), block->memory);
		return;
	}
	node_block_touch(bs->node, block);
	for (unsigned i = 0; i < block->extent_count; i++)
		memset(node_memory(bs->node)->base[block->memory] +
			       ((uint64_t)block->extents[i].frame << NODE_FRAME_LG2),
		       bs->poison, (uint64_t)block->extents[i].count << NODE_FRAME_LG2);
}

drvError_t allocation_back(struct bsim *bs, const char *call, struct allocation *a,
			   struct node_block *block)
{
	drvError_t result = tables_map(bs, call, a->memory, a->va, a->bytes, block, PT_WRITE);

	if (result == DRV_ERROR_NONE) {
		a->block = block;
		a->page_lg2 = block->giant ? 30 : 21;
		block_mapped_locked(bs, block);
	}
	return result;
}

/* Pages of the allocation's own: device memory in 2 MiB and 1 GiB pages. */
static drvError_t back_alone(struct bsim *bs, struct allocation *a, bool giant)
{
	struct node_block *block;
	drvError_t result = bsim_pass(
		ALLOC, memory_take(bs, a->memory, a->bytes >> NODE_FRAME_LG2, giant, &block));

	if (result != DRV_ERROR_NONE)
		return result;
	result = allocation_back(bs, ALLOC, a, block);
	if (result == DRV_ERROR_NONE)
		block_poison(bs, block);
	else
		node_block_drop(bs->node, block);
	return result;
}

static drvError_t back_pinned(struct allocation *a)
{
	void *p = (void *)(uintptr_t)a->va;

	if (host_maps_left(1) &&
	    mmap(p, a->bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		return DRV_ERROR_NONE;
	npu_message_set(ALLOC ": this host has no %s for pinned memory: %s",
			npu_size_text(a->bytes), host_map_problem(errno));
	window_close_to_cpu(a->va, a->bytes);
	return DRV_ERROR_OUT_OF_MEMORY;
}

BSIM_CALL(halMemAlloc, SIM_CALL_ALLOC, (void **, pp), (unsigned long long, size),
	  (unsigned long long, flag))
{
	struct bsim *bs = c->bs;
	struct pool_kind kind = { .use = NPU_PLACE_DEVICE };
	bool giant;
	struct allocation *a;
	uint64_t page, taken;
	drvError_t result;

	if (pp == NULL || size == 0)
		return bsim_invalid(ALLOC ": %s", pp == NULL ? "pp is NULL" : "size is 0");
	result = bsim_require_open_locked(bs, ALLOC) ?: decode(bs, flag, &kind);
	if (result != DRV_ERROR_NONE)
		return result;
	if (size > LARGEST)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 ALLOC ": size %s is more than any memory of this server",
				 npu_size_text(size));
	if (size > WINDOW_LARGE && kind.use == NPU_PLACE_DEVICE)
		kind.page_lg2 = 21; /* heaps of its own take whole frames */
	giant = kind.use == NPU_PLACE_DEVICE && (flag & MEM_PAGE_GIANT);
	page = giant ? WINDOW_GIB : UINT64_C(1) << kind.page_lg2;
	if (kind.use == NPU_PLACE_PINNED)
		page = MAX(page, (uint64_t)sysconf(_SC_PAGESIZE)); /* as it opens to the CPU */
	taken = bs->allocs->frames_taken;
	a = allocation_new(bs, ALLOC, &kind, (size + page - 1) / page * page, &result);
	if (a == NULL)
		return result;
	taken = bs->allocs->frames_taken - taken; /* others take some while pages are filled */
	a->asked = size;
	if (a->kind == NPU_PLACE_PINNED)
		result = back_pinned(a);
	else if (kind.page_lg2 == 21)
		result = back_alone(bs, a, giant);
	else
		fill_pages_locked(bs, a);
	if (result != DRV_ERROR_NONE) {
		allocation_drop(bs, a);
		return result;
	}
	c->page_lg2 = a->page_lg2;
	c->pages = a->bytes >> a->page_lg2;
	if (kind.use == NPU_PLACE_DEVICE && a->page_lg2 == 12 && taken == 0) {
		/* The process has the frames: no message, and what was measured has one. */
		c->pages--;
		c->page_lg2 = 0;
	}
	*pp = (void *)(uintptr_t)a->va;
	return DRV_ERROR_NONE;
}

/* ---- free ---- */

unsigned alloc_end_device(struct bsim *bs, unsigned device)
{
	unsigned ended = end_all(bs, &bs->allocs->live[device]) +
			 end_all(bs, &bs->allocs->live[ALLOC_REGISTERED(device)]);
	struct allocation *a;

	LIST_FOREACH(a, &bs->allocs->held, link)
	a->unmapped |= a->memory == device; /* with all that its tables have */
	for (struct pool *p = TAILQ_FIRST(&bs->allocs->pools), *after; p != NULL; p = after) {
		after = TAILQ_NEXT(p, link);
		if (p->used == 0 && p->kind.memory == device)
			end_pool(bs, p);
	}
	return ended;
}

static drvError_t find_to_free(struct bsim *bs, uint64_t va, struct allocation **out)
{
	struct npu_place p;

	*out = allocation_at(bs->window, va);
	if (*out != NULL && (*out)->va == va &&
	    ((*out)->kind == NPU_PLACE_DEVICE || (*out)->kind == NPU_PLACE_PINNED))
		return DRV_ERROR_NONE;
	p = place_at(bs, va);
	if (place_is_reserved(&p))
		return bsim_invalid(FREE ": %s, which this call does not free: unmap it, free the "
					 "handle, and free the reservation (aclrtUnmapMem, "
					 "aclrtFreePhysical, aclrtReleaseMemAddress)",
				    place_text_locked(bs, va));
	if (*out == NULL)
		return bsim_invalid(FREE ": pp %s", place_text_locked(bs, va));
	return bsim_invalid(FREE ": pp %s; %s", place_text_locked(bs, va),
			    (*out)->kind != NPU_PLACE_OPENED
				    ? "this call takes the start of what halMemAlloc gave"
			    : bs->cuda != NULL ? "cuIpcCloseMemHandle closes it"
					       : "aclrtIpcMemClose closes it");
}

BSIM_CALL(halMemFree, SIM_CALL_FREE, (void *, pp))
{
	static const char *const names[2][2] = { { "aclrtFree", "aclrtFreeHost" },
						 { "cuMemFree", "cuMemFreeHost" } };
	struct allocation *a;
	drvError_t result = BSIM_GIVEN(FREE, pp) ?: bsim_require_open_locked(c->bs, FREE)
			    ?: find_to_free(c->bs, (uintptr_t)pp, &a);

	if (result != DRV_ERROR_NONE)
		return result;
	c->page_lg2 = a->page_lg2;
	c->pages = a->bytes >> a->page_lg2;
	gone_note_locked(c->bs, a->kind == NPU_PLACE_PINNED, a->va, a->bytes,
			 names[c->bs->cuda != NULL][a->kind == NPU_PLACE_PINNED]);
	allocation_end(c->bs, a);
	return DRV_ERROR_NONE;
}

/* ---- information ---- */

static void fill_pool(struct bsim *bs, unsigned memory, struct MemPhyInfo *out)
{
	struct node_usage usage;

	node_usage(bs->node, memory, &usage);
	*out = (struct MemPhyInfo){
		.huge_total = usage.total_frames << NODE_FRAME_LG2,
		.huge_free = usage.free_frames << NODE_FRAME_LG2,
		.giant_total =
			bs->profile.giant_pages ? usage.total_frames / NODE_GIANT_FRAMES << 30 : 0,
		.giant_free = bs->profile.giant_pages ? usage.free_giants << 30 : 0,
	};
}

/* Bits of mem_type: 1 << MEM_DEV_VAL, 1 << MEM_DVPP_VAL, and 1 << 4 for reserved addresses. */
static drvError_t check_addresses(struct bsim *bs, struct MemAddrInfo *info)
{
	if (info->addr == NULL || info->cnt == 0 || info->cnt > CHECKED_ADDRESS_MAX)
		return bsim_invalid("halMemGetInfo: addr_info has %u addresses at %p; 1 to %u can "
				    "be checked at once",
				    info->cnt, (void *)info->addr, CHECKED_ADDRESS_MAX);
	info->flag = 1;
	for (unsigned i = 0; i < info->cnt; i++) {
		struct npu_place p = place_at(bs, (uintptr_t)info->addr[i]);
		unsigned bit = place_is_reserved(&p)         ? 1u << 4
			       : npu_place_is_translated(&p) ? 1u << MEM_DEV_VAL
							     : 0;

		if ((info->mem_type & bit) == 0)
			info->flag = 0;
	}
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemGetInfo, SIM_CALL_QUERY, (DVdevice, dev), (unsigned int, type),
	  (struct MemInfo *, info))
{
	struct bsim *bs = c->bs;
	drvError_t result = BSIM_GIVEN(c->name, info) ?: bsim_require_open_locked(bs, c->name);

	if (result != DRV_ERROR_NONE)
		return result;
	if (dev >= bs->devices)
		return bsim_no_device(bs, c->name, "device", dev);
	switch (type) {
	case MEM_INFO_TYPE_HBM_SIZE:
	case MEM_INFO_TYPE_HBM_P2P_SIZE: /* the same memory: what peers may reach is no pool of its
					    own */
		fill_pool(bs, dev, &info->phy_info);
		return DRV_ERROR_NONE;
	case MEM_INFO_TYPE_DDR_SIZE:
	case MEM_INFO_TYPE_DDR_P2P_SIZE: /* the 910B and 910C have HBM alone */
		memset(&info->phy_info, 0, sizeof(info->phy_info));
		return DRV_ERROR_NONE;
	case MEM_INFO_TYPE_ADDR_CHECK:
		return check_addresses(bs, &info->addr_info);
	default:
		npu_message_set("%s: type is %u; modelled are 1 to 5 (sizes of DDR and HBM, P2P "
				"too, and address check)",
				c->name, type);
		return type < MEM_INFO_TYPE_MAX ? DRV_ERROR_NOT_SUPPORT : DRV_ERROR_INVALID_VALUE;
	}
}
