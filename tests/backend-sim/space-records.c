/* SPDX-License-Identifier: Apache-2.0
 *
 * The two bookkeepings of addresses never differ: what the records say of an address, the
 * page tables say, over random runs of everything that changes either, in both dialects. No call is
 * expected to succeed: whatever it answers, the two must agree afterwards.
 */
#include "sim/table-check.h"
#include "space-rig.h"

#include <string.h>

#define SPANS       5u
#define SPAN_SLOTS  24u
#define HANDLES     12u
#define ALLOCATIONS 8u
#define STEPS       6000u
#define SLOT        (2 * MIB)

static struct {
	uint64_t span[SPANS];
	drv_mem_handle_t *handle[HANDLES];
	uint64_t slots[HANDLES];
	uint64_t allocation[ALLOCATIONS];
} have;
static uint64_t seed;

static unsigned dice(unsigned sides)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % sides;
}

static void open_dialect(enum npu_dialect dialect)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	ASSERT_NO_FATAL(space_open_closed("docs", NULL));
	EXPECT_CODE(DRV_ERROR_NONE, npusimSetDialect, dialect);
	for (unsigned d = 0; d < SPACE_DEVICES; d++)
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, d, &in, &out);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 0, 1, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 1, 0, 0);
	memset(&have, 0, sizeof(have));
}

/* ---- steps ---- */

static void step_span(uint64_t *span)
{
	void *va = NULL;

	if (*span == 0)
		CALL(halMemAddressReserve, &va, (1 + dice(SPAN_SLOTS)) * SLOT, 0, NULL, 1);
	if (*span == 0 || CALL(halMemAddressFree, at(*span)) == DRV_ERROR_NONE)
		*span = (uintptr_t)va;
}

static void step_handle(unsigned i)
{
	struct drv_mem_prop prop = space_prop(dice(2));

	if (have.handle[i] != NULL) {
		CALL(halMemRelease, have.handle[i]);
		have.handle[i] = NULL;
		return;
	}
	if (dice(4) == 0)
		prop = (struct drv_mem_prop){ .side = MEM_HOST_SIDE,
					      .pg_type = MEM_HUGE_PAGE_TYPE,
					      .mem_type = MEM_DDR_TYPE };
	have.slots[i] = 1 + dice(6);
	if (CALL(halMemCreate, &have.handle[i], have.slots[i] * SLOT, &prop, 0) != DRV_ERROR_NONE)
		have.handle[i] = NULL;
}

static void step_map(uint64_t span, unsigned i)
{
	uint64_t va = span + dice(SPAN_SLOTS) * SLOT;

	if (span == 0 || have.handle[i] == NULL)
		return;
	if (dice(3) == 0)
		CALL(halMemMapNoAccess, at(va), have.slots[i] * SLOT, 0, have.handle[i], 0);
	else
		CALL(halMemMap, at(va), have.slots[i] * SLOT, 0, have.handle[i], 0);
}

static void step_access(uint64_t va)
{
	static const drv_mem_access_type types[] = { MEM_ACCESS_TYPE_NONE, MEM_ACCESS_TYPE_READ,
						     MEM_ACCESS_TYPE_READWRITE,
						     MEM_ACCESS_TYPE_READWRITE };
	struct npu_place place = space_place(va);
	struct drv_mem_access_desc desc = { .type = types[dice(4)],
					    .location = { .id = dice(2), .side = MEM_DEV_SIDE } };

	if (dice(4) == 0)
		desc.location = (struct drv_mem_location){ .id = 0, .side = MEM_HOST_SIDE };
	CALL(halMemSetAccess, at(place.base), place.bytes, &desc, 1);
}

static void step_allocation(uint64_t *allocation)
{
	static const uint64_t sizes[] = { 5 * KIB, 300 * KIB, 3 * MIB, 700 * MIB };
	static const uint64_t flags[] = { 0, MEM_PAGE_HUGE, MEM_PAGE_GIANT };
	bool host = dice(5) == 0;
	void *va = NULL;

	if (*allocation != 0)
		EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(*allocation));
	else
		CALL(halMemAlloc, &va, sizes[dice(host ? 3 : 4)],
		     host ? MEM_HOST_VAL << MEM_VIRT_BIT
			  : MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | flags[dice(3)] | dice(2));
	*allocation = (uintptr_t)va;
}

static void step(void)
{
	uint64_t *span = &have.span[dice(SPANS)];
	uint64_t va = *span + dice(SPAN_SLOTS) * SLOT;
	unsigned what = dice(32);

	if (what == 0)
		step_span(span);
	else if (what < 6)
		step_handle(dice(HANDLES));
	else if (what < 15)
		step_map(*span, dice(HANDLES));
	else if (what < 21)
		CALL(halMemUnmap, at(dice(2) ? va : space_place(va).base));
	else if (what < 28)
		step_access(va);
	else
		step_allocation(&have.allocation[dice(ALLOCATIONS)]);
}

/* ---- the comparison ---- */

static const unsigned spaces[] = { 0, 1, SIM_NODE_HOST };

struct counted {
	uint64_t leaves[SIM_NODE_MAX];
};

static uint64_t block_pa(const struct node_block *block, uint64_t offset)
{
	uint64_t frame = offset >> NODE_FRAME_LG2;
	unsigned i = 0;

	while (frame >= block->extents[i].count)
		frame -= block->extents[i++].count;
	return SIM_PA(block->memory, (block->extents[i].frame + frame) << NODE_FRAME_LG2) +
	       offset % NODE_FRAME_BYTES;
}

/* The leaf of each space at va against what the records say. */
static void compare_leaf(uint64_t va, uint64_t pa, uint32_t tables, uint32_t writers,
			 struct counted *counted)
{
	struct pt_leaf leaf;

	for (unsigned i = 0; i < 3; i++) {
		bool there = tables >> spaces[i] & 1;

		ASSERT_EQ(pt_walk(&tables_space(spaces[i])->pt, va, &leaf), there);
		counted->leaves[spaces[i]] +=
			there && (va & ((UINT64_C(1) << leaf.page_lg2) - 1)) == 0;
		if (there && pa != 0)
			ASSERT_EQ(leaf.pa, pa);
		if (there && spaces[i] != SIM_NODE_HOST)
			ASSERT_EQ((leaf.flags & PT_WRITE) != 0, (writers >> spaces[i] & 1) != 0);
	}
}

static void compare_mapping(const struct mapping *m, struct counted *counted)
{
	for (uint64_t off = 0; off < mapping_bytes(m); off += SLOT) {
		struct npu_place p = space_place(m->va + off + 5);
		uint32_t host = m->tables & UINT32_C(1) << SIM_NODE_HOST;

		ASSERT_EQ(p.kind, NPU_PLACE_MAPPED);
		ASSERT_EQ(p.base, m->va);
		ASSERT_EQ(p.bytes, mapping_bytes(m));
		ASSERT_EQ(p.cpu, m->cpu);
		ASSERT_NO_FATAL(compare_leaf(m->va + off, block_pa(m->handle->block, off),
					     p.readers | host, p.writers, counted));
	}
}

static void compare_allocation(const struct allocation *a, struct counted *counted)
{
	bool device = a->kind == NPU_PLACE_DEVICE;
	uint32_t tables = device ? UINT32_C(1) << a->memory : 0;
	uint64_t page = UINT64_C(1) << a->page_lg2;

	for (uint64_t off = 0; off < a->bytes; off += page) {
		struct npu_place p = space_place(a->va + off);

		ASSERT_EQ(p.kind, a->kind);
		ASSERT_EQ(p.base, a->va);
		ASSERT_EQ(p.page_bytes, page);
		ASSERT_NO_FATAL(compare_leaf(a->va + off, a->block ? block_pa(a->block, off) : 0,
					     tables, tables, counted));
	}
}

static void compare_all(void)
{
	struct bsim *bs = bsim_of(drv);
	struct counted counted = { { 0 } };
	const struct allocation *a;
	const struct mapping *m;

	EACH_OF(LIST, m, bs->window->mappings)
	ASSERT_NO_FATAL(compare_mapping(m, &counted));
	EACH_OF(LIST, a, bs->allocs->live)
	ASSERT_NO_FATAL(compare_allocation(a, &counted));
	for (unsigned i = 0; i < 3; i++) {
		const struct space *s = tables_space(spaces[i]);
		uint64_t leaves = 0;

		ASSERT_TRUE(pt_check(&s->pt, &leaves));
		ASSERT_EQ(leaves, counted.leaves[spaces[i]]); /* none without a record */
		ASSERT_EQ(s->leaves[0] + s->leaves[1] + s->leaves[2], leaves);
	}
}

/* A copy goes where the records say that bytes are, and nowhere else. */
static void compare_copy(void)
{
	uint64_t va = have.span[dice(SPANS)] + dice(SPAN_SLOTS) * SLOT + 64 * dice(100);
	struct npu_place p = space_place(va);
	char bytes[64];

	if (va < GIB)
		return;
	if (p.kind == NPU_PLACE_MAPPED)
		ASSERT_EQ(CALL(drvMemcpy, (uintptr_t)bytes, 64, va, 64) == DRV_ERROR_NONE,
			  p.readers != 0 || p.cpu);
	else if (p.kind == NPU_PLACE_RESERVED || p.kind == NPU_PLACE_FREE)
		ASSERT_EQ(CALL(drvMemcpy, (uintptr_t)bytes, 64, va, 64), DRV_ERROR_IOCRL_FAIL);
}

static void random_run(enum npu_dialect dialect, uint64_t start)
{
	ASSERT_NO_FATAL(open_dialect(dialect));
	seed = start;
	for (unsigned i = 0; i < STEPS && !harness_has_failed(); i++) {
		NOTE("seed %llu, step %u", (unsigned long long)start, i);
		step();
		if (i % 7 == 0)
			ASSERT_NO_FATAL(compare_copy());
		if (i % 61 == 0)
			ASSERT_NO_FATAL(compare_all());
	}
	ASSERT_NO_FATAL(compare_all());
	for (unsigned d = 0; d < SPACE_DEVICES; d++) {
		halDevCloseIn in = { 0 };

		EXPECT_CODE(DRV_ERROR_NONE, halDeviceClose, d, &in);
		ASSERT_NO_FATAL(compare_all());
	}
	space_close();
}

TEARDOWN(records)
{
	space_close();
}

struct run_case {
	const char *title;
	enum npu_dialect dialect;
	uint64_t seed;
};
static const struct run_case runs[] = {
	{ "window", NPU_DIALECT_WINDOW, 20261128 },
	{ "window_again", NPU_DIALECT_WINDOW, 7 },
	{ "cuda", NPU_DIALECT_CUDA, 20261128 },
	{ "cuda_again", NPU_DIALECT_CUDA, 7 },
};

TEST_EACH(records, agree_with_the_page_tables, runs, title)
{
	const struct run_case *run = param;

	random_run(run->dialect, run->seed);
}
