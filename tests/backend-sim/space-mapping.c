/* SPDX-License-Identifier: Apache-2.0
 *
 * Mappings: what is checked, who may reach one, what lies in the page tables; and a random run of
 * reserve, create, map, unmap, release against a plain model, the tables walked page by page.
 */
#include "memory/memory.h"
#include "sim/table-check.h"
#include "space-rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool no_maps_left;

bool __real_host_maps_left(uint64_t pieces);
bool __wrap_host_maps_left(uint64_t pieces);

bool __wrap_host_maps_left(uint64_t pieces)
{
	return !no_maps_left && __real_host_maps_left(pieces);
}

SETUP(mapping)
{
	space_open("docs", NULL);
}

TEARDOWN(mapping)
{
	space_close();
}

/* Where the page table of a space says that va lies; 0 for nowhere. */
static uint64_t walk(unsigned space, uint64_t va)
{
	struct pt_leaf leaf;

	return pt_walk(&tables_space(space)->pt, va, &leaf) ? leaf.pa : 0;
}

static uint64_t handle_pa(const drv_mem_handle_t *h, uint64_t offset)
{
	for (unsigned i = 0; i < h->block->extent_count; i++) {
		uint64_t bytes = h->block->extents[i].count << NODE_FRAME_LG2;

		if (offset < bytes)
			return SIM_PA(h->block->memory,
				      (h->block->extents[i].frame << NODE_FRAME_LG2) + offset);
		offset -= bytes;
	}
	return 0;
}

TEST(mapping, tables_say_what_was_mapped)
{
	uint64_t a = space_reserve(1 * GIB, 0);
	drv_mem_handle_t *h = space_create(0, 20 * MIB);

	space_map(a + 512 * MIB, 20 * MIB, h);
	for (uint64_t off = 0; off < 20 * MIB; off += 2 * MIB)
		EXPECT_EQ(walk(0, a + 512 * MIB + off + 5), handle_pa(h, off) + 5);
	EXPECT_EQ(walk(0, a + 532 * MIB), 0);
	EXPECT_EQ(walk(1, a + 512 * MIB), 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a + 512 * MIB));
	EXPECT_EQ(walk(0, a + 512 * MIB), 0);
	EXPECT_EQ(tables_space(0)->pt.tables, 1); /* the root */
}

TEST(mapping, arguments_that_are_refused)
{
	uint64_t a = space_reserve(8 * MIB, 0), p = space_alloc(2 * MIB, 0x24400);
	drv_mem_handle_t *h = space_create(0, 4 * MIB), *none = NULL;

	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, NULL, 4 * MIB, 0, h, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 0, 0, h, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 4 * MIB, 0, none, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 2 * MIB, 2 * MIB, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "offset is 2097152 (2 MiB)");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 4 * MIB, 0, h, 1);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a + 4096), 4 * MIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "not a multiple of 2 MiB");
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a + 6 * MIB), 4 * MIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "ends 2097152 (2 MiB) behind the reservation");
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a + 8 * MIB), 4 * MIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "is not reserved");
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(p), 4 * MIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "the allocation at");
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, &a, 4 * MIB, 0, h, 0);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(UINT64_MAX - 1), 4 * MIB, 0, h, 0);
	space_map(a, 4 * MIB, h);
	EXPECT_CODE(DRV_ERROR_IOCRL_FAIL, halMemMap, at(a), 4 * MIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "is mapped already");
	EXPECT_CODE(DRV_ERROR_IOCRL_FAIL, halMemMap, at(a + 2 * MIB), 4 * MIB, 0, h, 0);
	space_map(a + 4 * MIB, 4 * MIB, h);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemUnmap, at(a + 2 * MIB));
	EXPECT_CONTAINS(MESSAGE(), "2097152 (2 MiB) into the mapping");
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemUnmap, at(p));
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemUnmap, NULL);
}

TEST(mapping, a_reservation_belongs_to_its_first_device)
{
	uint64_t a = space_reserve(4 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 2 * MIB), *k = space_create(1, 2 * MIB);

	space_map(a, 2 * MIB, h);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a + 2 * MIB), 2 * MIB, 0, k, 0);
	EXPECT_CONTAINS(MESSAGE(), "was bound to device 0 by its first mapping");
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a), 2 * MIB, 0, k, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(a));
	EXPECT_EQ(space_reserve(4 * MIB, 0), a);
	space_map(a, 2 * MIB, k);
	EXPECT_EQ(walk(1, a), handle_pa(k, 0));
}

TEST(mapping, giant_pages_are_leaves_of_one_gib)
{
	struct drv_mem_prop prop = space_prop(0);
	uint64_t a = space_reserve(3 * GIB, 0);
	drv_mem_handle_t *h = NULL;
	struct pt_leaf leaf;

	prop.pg_type = MEM_GIANT_PAGE_TYPE;
	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, &h, 5 * MIB, &prop, 0);
	RETURN_IF_FATAL();
	EXPECT_EQ(h->bytes, 1 * GIB);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a + 2 * MIB), GIB, 0, h, 0);
	EXPECT_CONTAINS(MESSAGE(), "multiples of 1 GiB");
	space_map(a + GIB, GIB, h);
	ASSERT_TRUE(pt_walk(&tables_space(0)->pt, a + 2 * GIB - 1, &leaf));
	EXPECT_EQ(leaf.page_lg2, PT_GIANT_LG2);
	EXPECT_EQ(tables_space(0)->leaves[2], 1);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a + GIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_EQ(tables_space(0)->leaves[2], 0);
}

/* ---- handles -----------------------------------------------------------------------------------
 */

TEST(mapping, references_keep_memory)
{
	uint64_t before = space_free_frames(0), a = space_reserve(4 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 2 * MIB), *again = NULL;

	space_map(a, 2 * MIB, h);
	space_map(a + 2 * MIB, 2 * MIB, h);
	EXPECT_CODE(DRV_ERROR_NONE, halMemRetainAllocationHandle, &again, at(a));
	EXPECT_EQ(again, h);
	EXPECT_CODE(DRV_ERROR_NOT_EXIST, halMemRetainAllocationHandle, &again, at(a + MIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemRelease, h);
	EXPECT_CONTAINS(MESSAGE(), "released too often");
	EXPECT_EQ(before - space_free_frames(0), 1);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	EXPECT_EQ(before - space_free_frames(0), 1);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a + 2 * MIB));
	EXPECT_EQ(space_free_frames(0), before);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemRelease, h);
	EXPECT_CONTAINS(MESSAGE(), "was freed by driver call");
}

TEST(mapping, a_handle_that_is_none_gets_its_code)
{
	uint64_t a = space_reserve(2 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 2 * MIB);
	struct drv_mem_prop prop;
	uint64_t made_up[] = { 1,
			       8,
			       (uintptr_t)h + 1,
			       (uintptr_t)h + 192,
			       (uintptr_t)h - 192,
			       (uintptr_t)&prop,
			       UINT64_MAX,
			       a };

	for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++) {
		drv_mem_handle_t *bad = at(made_up[i]);

		EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemRelease, bad);
		EXPECT_CONTAINS(MESSAGE(), "was never given out");
		EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 2 * MIB, 0, bad, 0);
		EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemGetAllocationPropertiesFromHandle, &prop,
			    bad);
	}
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 2 * MIB, 0, h, 0);
	for (unsigned i = 0; i < 5000; i++) { /* its address is not given to another soon */
		drv_mem_handle_t *other = space_create(0, 2 * MIB);

		if (i < 4000)
			ASSERT_NE(other, h);
		EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, other);
	}
}

TEST(mapping, create_checks_its_property)
{
	drv_mem_handle_t *h = NULL;
	struct drv_mem_prop good = space_prop(0), prop;
	struct {
		uint32_t side, devid, pg_type, mem_type;
		uint64_t reserve;
		drvError_t code;
	} cases[] = {
		{ 3, 0, 1, 0, 0, DRV_ERROR_INVALID_VALUE },
		{ 1, 64, 1, 0, 0, DRV_ERROR_INVALID_VALUE },
		{ 1, 2, 1, 0, 0, DRV_ERROR_INVALID_DEVICE },
		{ 1, 0, 3, 0, 0, DRV_ERROR_INVALID_VALUE },
		{ 1, 0, 1, 5, 0, DRV_ERROR_INVALID_VALUE },
		{ 1, 0, 1, 0, 7, DRV_ERROR_INVALID_VALUE },
		{ 0, 1, 1, 1, 0, DRV_ERROR_NOT_SUPPORT },
		{ 0, 0, 2, 1, 0, DRV_ERROR_NOT_SUPPORT },
		{ 1, 0, 2, 4, 0, DRV_ERROR_NOT_SUPPORT },
		{ 2, 99, 1, 1, 0, DRV_ERROR_PARA_ERROR },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		NOTE("case %zu", i);
		prop = (struct drv_mem_prop){
			cases[i].side,    cases[i].devid,    APP_MODULE_ID,
			cases[i].pg_type, cases[i].mem_type, cases[i].reserve
		};
		EXPECT_CODE(cases[i].code, halMemCreate, &h, 2 * MIB, &prop, 0);
	}
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemCreate, NULL, 2 * MIB, &good, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemCreate, &h, 0, &good, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemCreate, &h, 2 * MIB, NULL, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemCreate, &h, 2 * MIB, &good, 1);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemCreate, &h, TIB, &good, 0);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemCreate, &h, SIZE_MAX - 2 * MIB + 1, &good, 0);
	EXPECT_NULL(h);
	prop = (struct drv_mem_prop){ .side = 2, .devid = UINT32_MAX, .pg_type = 1, .mem_type = 3 };
	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, &h, 2 * MIB, &prop, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemGetAllocationPropertiesFromHandle, &good, h);
	EXPECT_MEMEQ(&good, &prop, sizeof(prop));
}

/* ---- access ------------------------------------------------------------------------------------
 */

static drvError_t grant(uint64_t va, uint64_t bytes, unsigned side, unsigned id, int type)
{
	struct drv_mem_access_desc desc = { (drv_mem_access_type)type, { id, side }, { 0 } };

	return CALL(halMemSetAccess, at(va), bytes, &desc, 1);
}

static uint64_t access_of(uint64_t va, unsigned side, unsigned id)
{
	struct drv_mem_location where = { id, side };
	uint64_t flags = 99;

	EXPECT_CODE(DRV_ERROR_NONE, halMemGetAccess, at(va), &where, &flags);
	return flags;
}

TEST(mapping, the_owner_has_access_and_peers_are_granted_it)
{
	uint64_t a = space_reserve(4 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 4 * MIB);

	space_map(a, 4 * MIB, h);
	EXPECT_EQ(access_of(a + MIB, MEM_DEV_SIDE, 0), MEM_ACCESS_TYPE_READWRITE);
	EXPECT_EQ(access_of(a, MEM_DEV_SIDE, 1), MEM_ACCESS_TYPE_NONE);
	EXPECT_EQ(access_of(a, MEM_HOST_SIDE, 0), MEM_ACCESS_TYPE_NONE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 0, 3), DRV_ERROR_NONE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 1, 3), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(MESSAGE(), "aclrtDeviceEnablePeerAccess(0, 0)");
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 1, 0, 0);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 1, 3), DRV_ERROR_NONE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 1, 3), DRV_ERROR_NONE);
	EXPECT_EQ(access_of(a, MEM_DEV_SIDE, 1), MEM_ACCESS_TYPE_READWRITE);
	EXPECT_EQ(walk(1, a + 3 * MIB), handle_pa(h, 3 * MIB));
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 9, 3), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 64, 3), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_HOST_SIDE, 1, 3), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_HOST_NUMA_SIDE, 0, 3), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 0, 2), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(grant(a, 4 * MIB, MEM_DEV_SIDE, 0, 1), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(grant(a, 2 * MIB, MEM_DEV_SIDE, 0, 3), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(grant(a + 2 * MIB, 2 * MIB, MEM_DEV_SIDE, 0, 3), DRV_ERROR_PARA_ERROR);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	EXPECT_EQ(walk(1, a), 0);
}

TEST(mapping, the_cpu_sees_the_same_bytes_once_it_may)
{
	uint64_t a = space_reserve(4 * MIB, 0), b = space_reserve(4 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 4 * MIB);

	space_map(a, 4 * MIB, h);
	space_map(b, 4 * MIB, h);
	ASSERT_EQ(grant(a, 4 * MIB, MEM_HOST_SIDE, 0, 3), DRV_ERROR_NONE);
	ASSERT_EQ(grant(b, 4 * MIB, MEM_HOST_SIDE, 0, 3), DRV_ERROR_NONE);
	memset(at(a), 0x5a, 4 * MIB);
	EXPECT_MEMEQ(at(a), at(b), 4 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	EXPECT_EQ(((unsigned char *)at(b))[4 * MIB - 1], 0x5a);
}

/* Takes maps of the kernel until `left` are left. Returns how many pages they take; 0: too many. */
static size_t fill_maps(size_t left, unsigned char **out)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	size_t limit = 0, used = 0, pages;
	int byte;

	if (file == NULL || fscanf(file, "%zu", &limit) != 1 || limit > 300000)
		limit = 0;
	if (file != NULL)
		fclose(file);
	file = fopen("/proc/self/maps", "re");
	while (file != NULL && (byte = getc(file)) != EOF)
		used += byte == '\n';
	if (file != NULL)
		fclose(file);
	if (limit < used + left)
		return 0;
	pages = limit - used - left;
	*out = mmap(NULL, pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; *out != MAP_FAILED && i < pages; i += 2)
		mprotect(*out + i * 4096, 4096, PROT_READ);
	return *out == MAP_FAILED ? 0 : pages;
}

#define GRANTS 1200u

/* A process has so many maps (vm.max_map_count), and its own allocator needs some. */
TEST(mapping, host_grants_leave_maps_to_the_program)
{
	uint64_t a = space_reserve(2 * GRANTS * 2 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 2 * MIB);
	unsigned char *filler;
	size_t pages, granted = 0;
	void *own;

	for (unsigned i = 0; i < GRANTS; i++)
		space_map(a + 2 * i * 2 * MIB, 2 * MIB, h);
	pages = fill_maps(65530 / 8 + 100, &filler);
	if (pages == 0)
		SKIP("vm.max_map_count cannot be read, or is large");
	while (granted < GRANTS &&
	       grant(a + 2 * granted * 2 * MIB, 2 * MIB, MEM_HOST_SIDE, 0, 3) == DRV_ERROR_NONE)
		granted++;
	ASSERT_LT(granted, (size_t)GRANTS);
	EXPECT_EQ(grant(a + 2 * granted * 2 * MIB, 2 * MIB, MEM_HOST_SIDE, 0, 3),
		  DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(MESSAGE(), "vm.max_map_count");
	EXPECT_CONTAINS(MESSAGE(), "are left to the program");
	for (unsigned i = 0; i < 1000; i++) {
		own = mmap(NULL, 8192, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		ASSERT_NE(own, MAP_FAILED);
	}
	munmap(filler, pages * 4096);
	EXPECT_EQ(grant(a + 2 * granted * 2 * MIB, 2 * MIB, MEM_HOST_SIDE, 0, 3), DRV_ERROR_NONE);
}

TEST(mapping, host_memory_is_the_cpus_at_once)
{
	uint64_t a = space_reserve(2 * MIB, 0);
	drv_mem_handle_t *h = space_create_host(2 * MIB), *k = space_create(0, 2 * MIB);
	struct DVattribute attr;

	space_map(a, 2 * MIB, h);
	memset(at(a), 7, 2 * MIB);
	EXPECT_EQ(access_of(a, MEM_HOST_SIDE, 0), MEM_ACCESS_TYPE_READWRITE);
	EXPECT_EQ(space_place(a).owner, NPU_OWNER_HOST);
	EXPECT_CODE(DRV_ERROR_NONE, drvMemGetAttribute, a + 5, &attr);
	EXPECT_EQ(attr.memType, DV_MEM_LOCK_HOST);
	EXPECT_EQ(attr.pageSize, 4096);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemMap, at(a), 2 * MIB, 0, k, 0);
	EXPECT_CONTAINS(MESSAGE(), "bound to the host");
}

/* A map that fails leaves nothing behind, in records and tables. */
TEST(mapping, host_memory_that_the_cpu_cannot_have)
{
	uint64_t a = space_reserve(GIB, 0);
	drv_mem_handle_t *h = space_create_host(2 * MIB);
	const struct granule *g = &bsim_of(drv)->window->granules[a / GIB];

	no_maps_left = true;
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemMap, at(a), 2 * MIB, 0, h, 0);
	no_maps_left = false;
	EXPECT_NULL(g->slots);
	EXPECT_NULL(bsim_of(drv)->window->unused);
	EXPECT_EQ(walk(SIM_NODE_HOST, a), 0u);
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemMap, at(a), 2 * MIB, 0, h, 0);
	space_map(a, 2 * MIB, space_create_host(2 * MIB));
	memset(at(a), 7, 2 * MIB);
}

TEST(mapping, attributes_stay_with_the_reservation)
{
	uint64_t a = space_reserve(4 * MIB, 0);
	DVdeviceptr base = 0;
	size_t size = 0;
	struct DVattribute attr;
	drv_mem_handle_t *again = NULL;

	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, drvMemGetAttribute, a, &attr);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemRetainAllocationHandle, &again, at(a));
	space_map(a + 2 * MIB, 2 * MIB, space_create(1, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, drvMemGetAttribute, a, &attr);
	EXPECT_EQ(attr.devId, 1);
	EXPECT_EQ(attr.memType, DV_MEM_LOCK_DEV);
	EXPECT_EQ(attr.pageSize, 2 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, halMemGetAddressRange, a + 3 * MIB, &base, &size);
	EXPECT_EQ(base, a + 2 * MIB);
	EXPECT_EQ(size, 2 * MIB);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemGetAddressRange, a, &base, &size);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a + 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, drvMemGetAttribute, a, &attr);
	EXPECT_EQ(attr.devId, 1);
	EXPECT_CODE(DRV_ERROR_NOT_EXIST, halMemRetainAllocationHandle, &again, at(a + 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(a));
	EXPECT_CODE(DRV_ERROR_NOT_EXIST, drvMemGetAttribute, a, &attr);
	EXPECT_CODE(DRV_ERROR_NONE, drvMemGetAttribute, (uintptr_t)&attr, &attr);
	EXPECT_EQ(attr.memType, DV_MEM_USER_MALLOC);
}

/* ---- a random run against a model --------------------------------------------------------------
 */

#define SPANS   6u
#define SLOTS   64u
#define HANDLES 12u
#define STEPS   30000u

struct model_handle {
	drv_mem_handle_t *handle; /* NULL: none */
	unsigned device, slots, maps;
	bool released;
};

struct model_span {
	uint64_t va; /* 0: none */
	unsigned slots;
	int bound;
	int owner[SLOTS]; /* handle of the page, or -1 */
	int start[SLOTS]; /* first page of its mapping */
};

static struct model_handle handles[HANDLES];
static struct model_span spans[SPANS];
static uint64_t seed;

static unsigned dice(unsigned sides)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % sides;
}

static void step_span(struct model_span *s)
{
	unsigned used = 0;

	if (s->va == 0) {
		s->slots = 1 + dice(SLOTS);
		s->va = space_reserve(s->slots * 2 * MIB, 0);
		s->bound = -1;
		memset(s->owner, -1, sizeof(s->owner));
		return;
	}
	for (unsigned i = 0; i < s->slots; i++)
		used += s->owner[i] >= 0;
	EXPECT_CODE(used > 0 ? DRV_ERROR_BUSY : DRV_ERROR_NONE, halMemAddressFree, at(s->va));
	if (used == 0)
		s->va = 0;
}

static void step_handle(struct model_handle *h)
{
	if (h->handle == NULL) {
		h->device = dice(2);
		h->slots = 1 + dice(8);
		h->handle = space_create(h->device, h->slots * 2 * MIB);
		h->released = false;
		h->maps = 0;
		return;
	}
	EXPECT_CODE(h->released ? DRV_ERROR_INVALID_VALUE : DRV_ERROR_NONE, halMemRelease,
		    h->handle);
	h->released = true;
	if (h->maps == 0)
		h->handle = NULL;
}

static drvError_t predict_map(const struct model_span *s, unsigned slot,
			      const struct model_handle *h)
{
	if (slot + h->slots > s->slots)
		return DRV_ERROR_PARA_ERROR;
	if (s->bound >= 0 && (unsigned)s->bound != h->device)
		return DRV_ERROR_PARA_ERROR;
	for (unsigned i = slot; i < slot + h->slots; i++)
		if (s->owner[i] >= 0)
			return DRV_ERROR_IOCRL_FAIL;
	return DRV_ERROR_NONE;
}

static void step_map(struct model_span *s, struct model_handle *h)
{
	unsigned slot = s->va == 0 ? 0 : dice(s->slots);
	drvError_t code;

	if (s->va == 0 || h->handle == NULL)
		return;
	code = predict_map(s, slot, h);
	EXPECT_CODE(code, halMemMap, at(s->va + slot * 2 * MIB), h->slots * 2 * MIB, 0, h->handle,
		    0);
	if (code != DRV_ERROR_NONE)
		return;
	s->bound = (int)h->device;
	h->maps++;
	for (unsigned i = slot; i < slot + h->slots; i++) {
		s->owner[i] = (int)(h - handles);
		s->start[i] = (int)slot;
	}
}

static void step_unmap(struct model_span *s)
{
	unsigned slot = s->va == 0 ? 0 : dice(s->slots);
	struct model_handle *h;
	bool starts;

	if (s->va == 0)
		return;
	starts = s->owner[slot] >= 0 && s->start[slot] == (int)slot;
	EXPECT_CODE(starts ? DRV_ERROR_NONE : DRV_ERROR_PARA_ERROR, halMemUnmap,
		    at(s->va + slot * 2 * MIB));
	if (!starts)
		return;
	h = &handles[s->owner[slot]];
	for (unsigned i = slot; i < slot + h->slots; i++)
		s->owner[i] = -1;
	if (--h->maps == 0 && h->released)
		h->handle = NULL;
}

/* Every page of every span: what the tables say, and what places say. */
static void check_everything(uint64_t frames[2])
{
	uint64_t held[2] = { 0, 0 }, leaves = 0, counted = 0;

	for (unsigned i = 0; i < HANDLES; i++)
		if (handles[i].handle != NULL)
			held[handles[i].device] += handles[i].slots;
	for (unsigned d = 0; d < 2; d++)
		ASSERT_EQ(space_free_frames(d) + held[d], frames[d]);
	for (unsigned k = 0; k < SPANS; k++) {
		const struct model_span *s = &spans[k];

		for (unsigned i = 0; s->va != 0 && i < s->slots; i++) {
			uint64_t va = s->va + i * 2 * MIB + 77;
			const struct model_handle *h =
				s->owner[i] < 0 ? NULL : &handles[s->owner[i]];

			leaves += h != NULL;
			for (unsigned d = 0; d < 2; d++)
				ASSERT_EQ(
					walk(d, va),
					h != NULL && h->device == d
						? handle_pa(h->handle,
							    (i - (unsigned)s->start[i]) * 2 * MIB) +
							  77
						: 0);
			ASSERT_EQ(space_place(va).kind,
				  h != NULL ? NPU_PLACE_MAPPED : NPU_PLACE_RESERVED);
		}
	}
	for (unsigned d = 0; d < 2; d++) {
		uint64_t n = 0;

		ASSERT_TRUE(pt_check(&tables_space(d)->pt, &n));
		counted += n;
	}
	ASSERT_EQ(counted, leaves);
}

TEST(mapping, agrees_with_a_model_over_a_random_run)
{
	uint64_t frames[2] = { space_free_frames(0), space_free_frames(1) };

	seed = 20260728;
	memset(handles, 0, sizeof(handles));
	memset(spans, 0, sizeof(spans));
	for (unsigned step = 0; step < STEPS && !harness_has_failed(); step++) {
		struct model_span *s = &spans[dice(SPANS)];
		struct model_handle *h = &handles[dice(HANDLES)];
		unsigned what = dice(20);

		NOTE("step %u", step);
		if (what == 0)
			step_span(s);
		else if (what < 4)
			step_handle(h);
		else if (what < 12)
			step_map(s, h);
		else
			step_unmap(s);
		if (step % 97 == 0)
			ASSERT_NO_FATAL(check_everything(frames));
	}
	ASSERT_NO_FATAL(check_everything(frames));
}
