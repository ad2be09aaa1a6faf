/* SPDX-License-Identifier: Apache-2.0
 *
 * Maintains the page tables of this process: one for each device, one for host memory. Owns the
 * memory of the tables (frames of the node's reserved part, divided into 4 KiB tables) and turns a
 * block's extents into leaves. The format is defined in page-table.h.
 */

#include "memory/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TABLE_BYTES      (UINT64_C(1) << PT_PAGE_LG2)
#define TABLES_IN_FRAME  (NODE_FRAME_BYTES / TABLE_BYTES)
#define ADDRESS_SPACE_ID 1u /* one address space a device in this process's simulation */

static struct space spaces[SIM_NODE_MAX];

struct space *tables_space(unsigned memory)
{
	return &spaces[memory];
}

static void *table_at(void *ctx, uint64_t pa)
{
	const struct space *space = ctx;

	return node_memory(space->bs->node)->base[SIM_PA_NODE(pa)] + SIM_PA_OFFSET(pa);
}

/* One more frame for tables. */
static bool add_frame(struct space *space)
{
	struct node_block *block;

	if (node_table_frame(space->bs->node, space->memory, &block) != DRV_ERROR_NONE)
		return false;
	g_ptr_array_add(space->table_blocks, block);
	space->fresh_table_pa = SIM_PA(space->memory, block->extents[0].frame << NODE_FRAME_LG2);
	space->fresh_tables = TABLES_IN_FRAME;
	return true;
}

static uint64_t alloc_table(void *ctx)
{
	struct space *space = ctx;
	uint64_t pa = space->free_table_pa;

	if (pa != 0) {
		uint64_t *table = table_at(ctx, pa);

		space->free_table_pa = table[0];
		table[0] = 0;
		return pa;
	}
	if (space->fresh_tables == 0 && !add_frame(space))
		return 0;
	pa = space->fresh_table_pa;
	space->fresh_table_pa += TABLE_BYTES;
	space->fresh_tables--;
	return pa;
}

static void free_table(void *ctx, uint64_t pa)
{
	struct space *space = ctx;
	uint64_t *table = table_at(ctx, pa);

	table[0] = space->free_table_pa;
	space->free_table_pa = pa;
}

void tables_open(struct bsim *bs, unsigned memory)
{
	struct space *space = &spaces[memory];
	struct pt_host host = { alloc_table, free_table, table_at, space };

	*space = (struct space){ .bs = bs, .memory = memory, .table_blocks = g_ptr_array_new() };
	pt_init(&space->pt, &host);
}

void tables_close(struct bsim *bs, unsigned memory)
{
	struct space *space = &spaces[memory];

	pt_destroy(&space->pt);
	if (bs->sim != NULL)
		sim_set_root(bs->sim, (int)memory, ADDRESS_SPACE_ID, 0);
	for (unsigned i = 0; i < space->table_blocks->len; i++)
		node_block_drop(bs->node, space->table_blocks->pdata[i]);
	g_ptr_array_unref(space->table_blocks);
	memset(space, 0, sizeof(*space));
}

/* With what follows a change of leaves: the root may be new, the tables more than ever. */
static bool map_leaves(struct bsim *bs, struct space *space, uint64_t va, uint64_t pa,
		       unsigned page_lg2, uint64_t pages, unsigned flags)
{
	uint64_t old_root = space->pt.root_pa;
	bool mapped = pt_map(&space->pt, va, pa, page_lg2, pages, flags);

	if (space->pt.root_pa != old_root)
		sim_set_root(bs->sim, (int)space->memory, ADDRESS_SPACE_ID, space->pt.root_pa);
	space->table_peak = MAX(space->table_peak, space->pt.tables * TABLE_BYTES);
	space->leaves[(page_lg2 - 12) / 9] += mapped ? pages : 0;
	return mapped;
}

bool tables_map(struct bsim *bs, unsigned memory, uint64_t va, uint64_t bytes,
		const struct node_block *block, unsigned flags)
{
	unsigned page_lg2 = block->giant ? PT_GIANT_LG2 : PT_HUGE_LG2;
	uint64_t done = 0;

	for (unsigned i = 0; i < block->extent_count && done < bytes; i++) {
		uint64_t part = MIN(block->extents[i].count << NODE_FRAME_LG2, bytes - done);
		uint64_t pa = SIM_PA(block->memory, block->extents[i].frame << NODE_FRAME_LG2);

		if (!map_leaves(bs, &spaces[memory], va + done, pa, page_lg2, part >> page_lg2,
				flags)) {
			tables_unmap(bs, memory, va, done, page_lg2);
			return false;
		}
		done += part;
	}
	return true;
}

bool tables_map_pages(struct bsim *bs, unsigned memory, uint64_t va, uint64_t pa, uint64_t pages)
{
	return map_leaves(bs, &spaces[memory], va, pa, PT_PAGE_LG2, pages, PT_WRITE);
}

void tables_unmap(struct bsim *bs, unsigned memory, uint64_t va, uint64_t bytes, unsigned page_lg2)
{
	struct space *space = &spaces[memory];

	if (bytes == 0)
		return;
	pt_unmap(&space->pt, va, bytes);
	sim_invalidate(bs->sim, (int)memory, va, bytes);
	space->leaves[(page_lg2 - 12) / 9] -= bytes >> page_lg2;
}

bool tables_open_to_cpu(struct bsim *bs, uint64_t va, uint64_t bytes,
			const struct node_block *block)
{
	uint64_t done = 0, offset = 0;
	int fd = node_memory_fd(bs->node, block->memory, &offset);

	if (!host_maps_left(block->extent_count))
		return false;
	for (unsigned i = 0; i < block->extent_count && done < bytes; i++) {
		uint64_t part = MIN(block->extents[i].count << NODE_FRAME_LG2, bytes - done);
		void *p = (void *)(uintptr_t)(va + done);

		if (mmap(p, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
			 fd, (off_t)(offset + (block->extents[i].frame << NODE_FRAME_LG2))) ==
		    MAP_FAILED) {
			int cause = errno;

			window_close_to_cpu(va, bytes);
			errno = cause;
			return false;
		}
		madvise(p, part, MADV_DONTDUMP);
		madvise(p, part, MADV_DONTFORK);
		done += part;
	}
	return true;
}
