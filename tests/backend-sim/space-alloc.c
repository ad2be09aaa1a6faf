/* SPDX-License-Identifier: Apache-2.0
 *
 * Classic allocations: pages, frames and addresses; memory information; registered host memory;
 * names.
 */
#include "memory/memory.h"
#include "space-rig.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE (MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM)
#define HUGE   (DEVICE | MEM_PAGE_HUGE)
#define PINNED (MEM_HOST_VAL << MEM_VIRT_BIT)
#define GIANT  (DEVICE | MEM_PAGE_GIANT)

SETUP(alloc)
{
	space_open("docs", NULL);
}

TEARDOWN(alloc)
{
	space_close();
}

static unsigned leaf_of(unsigned device, uint64_t va)
{
	struct pt_leaf leaf;

	return pt_walk(&tables_space(device)->pt, va, &leaf) ? leaf.page_lg2 : 0;
}

static void write_bytes(uint64_t va, int value, uint64_t bytes)
{
	EXPECT_CODE(DRV_ERROR_NONE, drvMemsetD8, va, bytes, (uint8_t)value, bytes);
}

static int read_byte(uint64_t va)
{
	unsigned char byte = 0xee;

	EXPECT_CODE(DRV_ERROR_NONE, drvMemcpy, (uintptr_t)&byte, 1, va, 1);
	return byte;
}

/* Pages of 4 KiB go where the first run is that has room, a frame's in one frame: over a random run
 * of allocations the same as by looking at every page. */
#define HEAP_PAGES  262144u
#define FRAME_PAGES 512u
#define LIVE        2000u

static unsigned first_fit(const bool *used, unsigned count)
{
	unsigned run = 0;

	for (unsigned page = 0; page < HEAP_PAGES; page++) {
		if (count <= FRAME_PAGES && page % FRAME_PAGES == 0)
			run = 0;
		run = used[page] ? 0 : run + 1;
		if (run == count)
			return page + 1 - count;
	}
	return HEAP_PAGES;
}

static struct {
	uint64_t va;
	unsigned pages;
} live[LIVE];

/* The allocation that lies at any page of it, or none. */
static void expect_found(uint64_t va)
{
	uint64_t base = 0, size = 0;
	unsigned n = 0;

	while (n < LIVE && va - live[n].va >= live[n].pages * UINT64_C(4096))
		n++;
	EXPECT_EQ(CALL(halMemGetAddressRange, va, &base, &size),
		  n < LIVE ? DRV_ERROR_NONE : DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(base, n < LIVE ? live[n].va : 0);
	EXPECT_EQ(size, n < LIVE ? live[n].pages * UINT64_C(4096) : 0);
}

TEST(alloc, small_ones_are_first_fit)
{
	bool *used = calloc(HEAP_PAGES, sizeof(*used));
	uint64_t first = space_alloc(1, DEVICE), heap = first / GIB * GIB;
	uint32_t random = 1;

	CALL(halMemFree, at(first));
	for (unsigned i = 0; i < 4 * LIVE; i++) {
		unsigned n, pages;

		random = random * 1664525 + 1013904223;
		n = random >> 8 & 0xffff;
		pages = n % 31 == 0 ? 1 + n % 2000 : n % 7 == 0 ? 1 + n % 512 : 1 + n % 12;
		n %= LIVE;
		if (live[n].va != 0) {
			EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(live[n].va));
			memset(&used[(live[n].va - heap) / 4096], false, live[n].pages);
		}
		live[n].pages = pages;
		live[n].va = space_alloc(pages * 4096, DEVICE);
		ASSERT_EQ(live[n].va, heap + first_fit(used, pages) * UINT64_C(4096));
		memset(&used[(live[n].va - heap) / 4096], true, pages);
		expect_found(heap + (random >> 8) % (HEAP_PAGES / 2) * UINT64_C(4096));
	}
	for (unsigned n = 0; n < LIVE; n++)
		if (live[n].va != 0)
			EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(live[n].va));
	free(used);
}

TEST(alloc, each_kind_has_its_pages)
{
	uint64_t frames = space_free_frames(1);
	uint64_t small = space_alloc(1, DEVICE | 1), other = space_alloc(4097, DEVICE | 1);
	uint64_t huge = space_alloc(3 * MIB, HUGE | 1), large = space_alloc(600 * MIB, HUGE | 1);
	uint64_t giant = space_alloc(2 * MIB, GIANT | 1);

	EXPECT_EQ(leaf_of(1, small), 12);
	EXPECT_EQ(leaf_of(1, huge + 3 * MIB), 21);
	EXPECT_EQ(leaf_of(1, large), 21);
	EXPECT_EQ(leaf_of(1, giant + GIB - 1), 30);
	EXPECT_EQ(large % GIB, 0);
	EXPECT_EQ(other - small, 4096);
	EXPECT_EQ(frames - space_free_frames(1), 1 + 2 + 300 + 512);
	EXPECT_EQ(space_place(other + 8191).kind, NPU_PLACE_DEVICE);
	EXPECT_EQ(space_place(other + 8192).kind, NPU_PLACE_FREE);
	EXPECT_EQ(space_place(huge).owner, 1);
	write_bytes(large + 599 * MIB, 3, MIB);
	EXPECT_EQ(read_byte(large + 600 * MIB - 1), 3);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(small));
	EXPECT_EQ(frames - space_free_frames(1), 1 + 2 + 300 + 512);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(other));
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(huge));
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(large));
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(giant));
	EXPECT_EQ(space_free_frames(1), frames);
	EXPECT_EQ(tables_space(1)->leaves[0], 0);
	EXPECT_EQ(tables_space(1)->pt.tables, 1);
	EXPECT_EQ(space_alloc(1, DEVICE | 1), small); /* an empty heap is kept for the next */
}

TEST(alloc, small_pages_read_as_zeros_again)
{
	uint64_t keep = space_alloc(64, DEVICE), a = space_alloc(64, DEVICE);

	write_bytes(a, 0xff, 64);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(a));
	EXPECT_EQ(space_alloc(64, DEVICE), a);
	EXPECT_EQ(read_byte(a + 63), 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(keep));
}

TEST(alloc, pinned_memory_is_the_programs)
{
	uint64_t p = space_alloc(3 * MIB, PINNED), q = space_alloc(100, PINNED);
	struct DVattribute attr;

	memset(at(p), 0x31, 3 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, drvMemGetAttribute, p + MIB, &attr);
	EXPECT_EQ(attr.memType, DV_MEM_LOCK_HOST);
	EXPECT_EQ(space_place(q).kind, NPU_PLACE_PINNED);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(p));
	EXPECT_EQ(space_alloc(3 * MIB, PINNED), p);
	EXPECT_EQ(*(char *)at(p), 0);
	EXPECT_EQ(space_alloc(5 * GIB, PINNED) % GIB, 0);
}

TEST(alloc, refusals_say_why)
{
	uint64_t p = space_alloc(4 * MIB, HUGE), r = space_reserve(2 * MIB, 0);
	void *va = NULL;

	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAlloc, NULL, 64, HUGE);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAlloc, &va, 0, HUGE);
	EXPECT_CODE(DRV_ERROR_INVALID_DEVICE, halMemAlloc, &va, 64, HUGE | 7);
	EXPECT_CODE(DRV_ERROR_NOT_SUPPORT, halMemAlloc, &va, 64, MEM_SVM_VAL);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemAlloc, &va, 64 * GIB, HUGE);
	EXPECT_CONTAINS(MESSAGE(), "halMemAlloc: ");
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemAlloc, &va, UINT64_MAX, HUGE);
	EXPECT_NULL(va);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, NULL);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(p + 2 * MIB));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, &p);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(r));
	EXPECT_CONTAINS(MESSAGE(), "aclrtReleaseMemAddress");
	space_map(r, 2 * MIB, space_create(0, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(r));
	EXPECT_EQ(space_place(r).kind, NPU_PLACE_MAPPED);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(p));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(p));
}

TEST(alloc, information_counts_frames)
{
	struct MemInfo info, after;
	uint64_t p;

	EXPECT_CODE(DRV_ERROR_NONE, halMemGetInfo, 0, MEM_INFO_TYPE_HBM_SIZE, &info);
	EXPECT_EQ(info.phy_info.huge_total, bsim_of(drv)->config.usable_frames * 2 * MIB);
	EXPECT_EQ(info.phy_info.total, 0);
	p = space_alloc(10 * MIB, HUGE);
	EXPECT_CODE(DRV_ERROR_NONE, halMemGetInfo, 0, MEM_INFO_TYPE_HBM_P2P_SIZE, &after);
	EXPECT_EQ(info.phy_info.huge_free - after.phy_info.huge_free, 10 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, halMemGetInfo, 0, MEM_INFO_TYPE_DDR_SIZE, &info);
	EXPECT_EQ(info.phy_info.huge_total, 0);
	EXPECT_CODE(DRV_ERROR_NOT_SUPPORT, halMemGetInfo, 0, 9, &info);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemGetInfo, 0, 12, &info);
	EXPECT_CODE(DRV_ERROR_INVALID_DEVICE, halMemGetInfo, 2, MEM_INFO_TYPE_HBM_SIZE, &info);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemGetInfo, 0, MEM_INFO_TYPE_HBM_SIZE, NULL);
	EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(p));
}

TEST(alloc, agrees_with_a_model_over_a_random_run)
{
	enum { COUNT = 64 };
	uint64_t va[COUNT] = { 0 }, bytes[COUNT], frames = space_free_frames(0);
	unsigned char mark[COUNT];

	srand(7);
	for (unsigned step = 0; step < 4000 && !harness_has_failed(); step++) {
		unsigned i = (unsigned)rand() % COUNT;

		NOTE("step %u", step);
		if (va[i] == 0) {
			bool huge = rand() % 4 == 0;

			bytes[i] = 1 + (uint64_t)rand() % (huge ? 8 * MIB : MIB);
			mark[i] = (unsigned char)(1 + rand() % 255);
			va[i] = space_alloc(bytes[i], huge ? HUGE : DEVICE);
			EXPECT_EQ(read_byte(va[i] + bytes[i] - 1), 0);
			write_bytes(va[i], mark[i], 1);
			write_bytes(va[i] + bytes[i] - 1, mark[i], 1);
		} else {
			EXPECT_EQ(read_byte(va[i]), mark[i]);
			EXPECT_EQ(read_byte(va[i] + bytes[i] - 1), mark[i]);
			EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(va[i]));
			va[i] = 0;
		}
	}
	for (unsigned i = 0; i < COUNT; i++)
		if (va[i] != 0)
			EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(va[i]));
	EXPECT_EQ(space_free_frames(0), frames);
	for (const struct pool *p = TAILQ_FIRST(&bsim_of(drv)->allocs->pools); p != NULL;
	     p = TAILQ_NEXT(p, link))
		EXPECT_EQ(p->used, 0);
}

/* ---- registered host memory ---- */

TEST(alloc, registered_memory_is_copied_through_the_devices_address)
{
	static unsigned char mine[3 * 4096];
	unsigned char *start = mine + 100;
	uint64_t p = space_alloc(4096, DEVICE);
	void *dev = NULL, *again = NULL;

	EXPECT_CODE(DRV_ERROR_NONE, halHostRegister, start, 5000, HOST_MEM_MAP_DEV, 0, &dev);
	EXPECT_NE(dev, start);
	EXPECT_EQ(space_place((uintptr_t)dev + 7).kind, NPU_PLACE_REGISTERED);
	EXPECT_EQ(space_place((uintptr_t)dev + 7).host_va, (uintptr_t)start + 7);
	start[4999] = 0x42;
	EXPECT_CODE(DRV_ERROR_NONE, drvMemcpy, p, 1, (uintptr_t)dev + 4999, 1);
	EXPECT_EQ(read_byte(p), 0x42);
	EXPECT_CODE(DRV_ERROR_BUSY, halHostRegister, start + 4999, 1, HOST_MEM_MAP_DEV, 0, &again);
	EXPECT_CODE(DRV_ERROR_NONE, halHostRegister, start + 5000, 1, HOST_MEM_MAP_DEV, 0, &again);
	EXPECT_CODE(DRV_ERROR_NONE, halHostRegister, start, 5000, HOST_MEM_MAP_DEV, 1, &again);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halHostUnregister, start + 1, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halHostUnregister, start, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halHostUnregister, start, 0);
	EXPECT_EQ(space_place((uintptr_t)again).kind, NPU_PLACE_REGISTERED);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halHostRegister, at(p), 64, HOST_MEM_MAP_DEV, 0, &dev);
	EXPECT_CODE(DRV_ERROR_NOT_SUPPORT, halHostRegister, start, 64, HOST_IO_MAP_DEV, 0, &dev);
}

/* ---- names ---- */

static void name_it(struct space_other *self)
{
	uint64_t p = space_alloc(6 * MIB, HUGE), small = space_alloc(64, DEVICE), v;
	char name[65];
	int nobody = 0;

	write_bytes(p + 3 * MIB, 0x66, 1);
	EXPECT_CODE(DRV_ERROR_NONE, halShmemCreateHandle, p + 3 * MIB, 2 * MIB, name, 65);
	EXPECT_CODE(DRV_ERROR_NONE, halShmemSetAttribute, name, 1, 1);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemSetPidHandle, name, &nobody, -1);
	EXPECT_CONTAINS(MESSAGE(), "num is -1");
	memcpy(self->text, name, sizeof(name));
	EXPECT_CODE(DRV_ERROR_NONE, halShmemCreateHandle, small, 64, name, 65);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemCreateHandle, p, 7 * MIB, name, 65);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemCreateHandle, p, MIB, name, 64);
	v = space_reserve(2 * MIB, 0);
	space_map(v, 2 * MIB, space_create(0, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemCreateHandle, v, 2 * MIB, name, 65);
	EXPECT_CONTAINS(MESSAGE(), "aclrtMemExportToShareableHandle");
}

TEST(names, another_process_opens_one)
{
	struct space_other other;
	DVdeviceptr va = 0;

	ASSERT_NO_FATAL(space_other_start(&other, name_it));
	ASSERT_NO_FATAL(space_open("docs", NULL));
	ASSERT_NO_FATAL(space_other_value(&other));
	EXPECT_CODE(DRV_ERROR_NONE, halShmemOpenHandleByDevId, 0, other.text, &va);
	EXPECT_EQ(read_byte(va), 0x66);
	EXPECT_TRUE(space_place(va).imported);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(va));
	EXPECT_CONTAINS(MESSAGE(), "; aclrtIpcMemClose closes it");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemCloseHandle, va + 1);
	EXPECT_CODE(DRV_ERROR_NONE, halShmemCloseHandle, va);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halShmemCloseHandle, va);
	EXPECT_CONTAINS(MESSAGE(), "was given back by aclrtIpcMemClose, ");
	space_other_end(&other);
	space_close();
}
