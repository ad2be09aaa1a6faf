/* SPDX-License-Identifier: Apache-2.0
 *
 * The page tables of this process, one for each device, one for host memory, and its address space
 * as the kernel has it. Owns the memory of the tables (frames of the node's reserved part, divided
 * into 4 KiB tables) and turns a block's extents into leaves; the format is defined in
 * page-table.h. Takes addresses from the kernel and gives them back, makes them accessible and
 * inaccessible, and watches how many maps the kernel still allows. What the addresses are for,
 * window.c knows.
 */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE_BYTES     (UINT64_C(1) << PT_PAGE_LG2)
#define TABLES_IN_FRAME (NODE_FRAME_BYTES / TABLE_BYTES)

static struct space spaces[SIM_NODE_MAX];

struct space *tables_space(unsigned memory)
{
	return &spaces[memory];
}

static uint64_t *table_at(const struct space *space, uint64_t pa)
{
	uint64_t room;

	return (uint64_t *)sim_memory_at(node_memory(space->bs->node), pa, &room);
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
		uint64_t *table = table_at(space, pa);

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
	uint64_t *table = table_at(space, pa);

	table[0] = space->free_table_pa;
	space->free_table_pa = pa;
}

static void block_gone(void *ctx, uint64_t va)
{
	const struct space *space = ctx;
	struct mapping *m = window_mapping(space->bs->window, va);

	if (m != NULL)
		m->tables &= ~(UINT32_C(1) << space->memory);
}

void tables_open(struct bsim *bs, unsigned memory)
{
	struct space *space = &spaces[memory];
	struct pt_host host = { alloc_table, free_table, space, node_memory(bs->node) };

	*space = (struct space){ .bs = bs, .memory = memory, .table_blocks = g_ptr_array_new() };
	pt_init(&space->pt, &host);
	space->pt.block_gone = block_gone;
}

void tables_close(struct bsim *bs, unsigned memory)
{
	struct space *space = &spaces[memory];

	pt_destroy(&space->pt);
	if (bs->sim != NULL)
		sim_set_root(bs->sim, (int)memory, 0);
	for (unsigned i = 0; i < space->table_blocks->len; i++)
		node_block_drop(bs->node, space->table_blocks->pdata[i]);
	g_ptr_array_unref(space->table_blocks);
	memset(space, 0, sizeof(*space));
}

/* With what follows a change of leaves: the root may be new, the tables more than ever. */
drvError_t tables_map_leaves(struct bsim *bs, const char *call, unsigned memory, uint64_t va,
			     uint64_t pa, unsigned page_lg2, uint64_t pages, unsigned flags)
{
	struct space *space = &spaces[memory];
	uint64_t old_root = space->pt.root_pa;
	bool mapped = pt_map(&space->pt, va, pa, page_lg2, pages, flags);

	if (space->pt.root_pa != old_root)
		sim_set_root(bs->sim, (int)space->memory, space->pt.root_pa);
	space->table_peak = MAX(space->table_peak, space->pt.tables * TABLE_BYTES);
	space->leaves[(page_lg2 - 12) / 9] += mapped ? pages : 0;
	return mapped ? DRV_ERROR_NONE
		      : bsim_fail(DRV_ERROR_OUT_OF_MEMORY, "%s: no memory for page tables on %s",
				  call, bsim_memory_text(memory));
}

drvError_t tables_map(struct bsim *bs, const char *call, unsigned memory, uint64_t va,
		      uint64_t bytes, const struct node_block *block, unsigned flags)
{
	unsigned page_lg2 = block->giant ? PT_GIANT_LG2 : PT_HUGE_LG2;
	drvError_t result = DRV_ERROR_NONE;
	uint64_t done = 0, part;

	for (unsigned i = 0; i < block->extent_count && done < bytes; i++, done += part) {
		uint64_t pa = SIM_PA(block->memory, block->extents[i].frame << NODE_FRAME_LG2);

		part = MIN(block->extents[i].count << NODE_FRAME_LG2, bytes - done);
		result = tables_map_leaves(bs, call, memory, va + done, pa, page_lg2,
					   part >> page_lg2, flags);
		if (result != DRV_ERROR_NONE) {
			tables_unmap(bs, memory, va, done, page_lg2);
			break;
		}
	}
	return result;
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

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MAPS_LIMIT   "/proc/sys/vm/max_map_count"
#define MAPS_DEFAULT 65530u /* include/linux/mm.h */
#define MAPS_COUNTED 64u    /* one count serves for such a part of them */

/* Straight to the kernel: sanitizers look at every address that mmap() gives, and end the program
 * if it is not one that they leave to programs; here it is only asked for. */
static void *map_nothing(uint64_t va, uint64_t bytes, int flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return (void *)syscall(SYS_mmap, va, bytes, PROT_NONE, flags, -1, 0);
}

void window_host_give(uint64_t va, uint64_t bytes)
{
	syscall(SYS_munmap, va, bytes);
}

void window_close_to_cpu(uint64_t va, uint64_t bytes)
{
	if (map_nothing(va, bytes, MAP_FIXED) != MAP_FAILED)
		syscall(SYS_madvise, va, bytes, MADV_DONTDUMP);
	else /* no more maps can be had: the pages must not stay readable all the same */
		syscall(SYS_mprotect, va, bytes, PROT_NONE);
}

bool window_host_take(uint64_t va, uint64_t bytes)
{
	void *want = (void *)(uintptr_t)va, *got;

	if (!host_maps_left(1))
		return false;
	got = map_nothing(va, bytes, MAP_FIXED_NOREPLACE);
	if (got == MAP_FAILED)
		return false;
	if (got != want) { /* a kernel that takes the address for a hint */
		window_host_give((uintptr_t)got, bytes);
		errno = EEXIST;
		return false;
	}
	syscall(SYS_madvise, got, bytes, MADV_DONTDUMP);
	return true;
}

uint64_t window_host_find(uint64_t bytes, uint64_t align)
{
	void *got = host_maps_left(1) ? map_nothing(0, bytes + align, 0) : MAP_FAILED;
	uint64_t start = (uintptr_t)got, va = (start + align - 1) / align * align;

	if (got == MAP_FAILED)
		return 0;
	if (va > start)
		window_host_give(start, va - start);
	if (start + align > va)
		window_host_give(va + bytes, start + align - va);
	if (va > WINDOW_HOST_END - bytes) { /* a host with more bits of address */
		window_host_give(va, bytes);
		errno = ENOMEM;
		return 0;
	}
	syscall(SYS_madvise, va, bytes, MADV_DONTDUMP);
	return va;
}

const char *window_host_occupant(uint64_t va, uint64_t bytes)
{
	const char *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps != NULL && found == NULL && fgets(line, sizeof(line), maps) != NULL) {
		uint64_t start, end;
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &start, &end,
			   &name) < 2)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (start < va + bytes && end > va)
			found = npu_text("[0x%" PRIx64 ", 0x%" PRIx64 ") is %.80s", start, end,
					 line[name] != '\0' ? line + name : "an anonymous mapping");
	}
	if (maps != NULL)
		fclose(maps);
	return found
		       ?: "nothing lies there; a limit on address space (ulimit -v) may be in the "
			  "way";
}

/* As far as was counted, and pieces that are left for us before the next count (the first few need
 * none): the program makes maps, too. A piece between two that are closed takes two maps. */
static struct {
	uint64_t limit, used, left;
} maps = { .limit = MAPS_DEFAULT, .left = 4 };

static void count_maps(void)
{
	g_autofree char *limit = NULL, *list = NULL;

	maps.limit = g_file_get_contents(MAPS_LIMIT, &limit, NULL, NULL) ? strtoull(limit, NULL, 10)
									 : MAPS_DEFAULT;
	maps.used = 0;
	g_file_get_contents("/proc/self/maps", &list, NULL, NULL);
	for (const char *at = list; at != NULL && (at = strchr(at, '\n')) != NULL; at++)
		maps.used++;
	maps.left = maps.limit - maps.limit / 8;
	maps.left = maps.left > maps.used ? (maps.left - maps.used) / 2 : 0;
	if (maps.left > maps.limit / MAPS_COUNTED)
		maps.left = maps.limit / MAPS_COUNTED;
}

bool host_maps_left(uint64_t pieces)
{
	if (pieces > maps.left)
		count_maps();
	if (maps.left == 0 || maps.used + 2 * pieces > maps.limit - maps.limit / 8) {
		errno = EMLINK; /* which no call for memory sets */
		return false;
	}
	maps.left -= pieces < maps.left ? pieces : maps.left;
	return true;
}

const char *host_map_problem(int error)
{
	if (error == ENOMEM)
		count_maps();
	if (error != EMLINK && (error != ENOMEM || maps.used + 16 < maps.limit))
		return strerror(error);
	return npu_text(
		"of the %" PRIu64 " maps that a process may have (vm.max_map_count), %" PRIu64
		" are in use, and the last %" PRIu64 " are left to the program; raise the limit "
		"(sysctl -w vm.max_map_count=%" PRIu64 ") or map larger pieces",
		maps.limit, maps.used, maps.limit / 8, maps.limit * 4);
}
