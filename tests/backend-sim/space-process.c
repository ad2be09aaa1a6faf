/* SPDX-License-Identifier: Apache-2.0
 *
 * The process around the driver: what is left at the end, fork, the reset of a device, threads, and
 * what is known before a device is open.
 */
#include "space-rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUGE (MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE)

TEARDOWN(process)
{
	space_close();
}

/* ---- what is left ---- */

struct lines {
	unsigned count;
	char text[4096];
};

static void add_line(void *arg, const char *line)
{
	struct lines *l = arg;

	l->count++;
	strncat(l->text, line, sizeof(l->text) - strlen(l->text) - 2);
	strcat(l->text, "\n");
}

TEST(process, leaks_are_counted_and_named)
{
	struct lines none = { 0, "" }, some = { 0, "" }, all = { 0, "" };
	drv_mem_handle_t *h;
	uint64_t a;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	EXPECT_CODE(DRV_ERROR_NONE, npusimLeaks, add_line, &none, true);
	EXPECT_STREQ(none.text, "");
	a = space_reserve(1 * GIB, 0);
	h = space_create(1, 4 * MIB);
	space_map(a, 4 * MIB, h);
	space_create(0, 2 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
	EXPECT_CODE(DRV_ERROR_NONE, npusimSpend, NPU_WORK_EVENT); /* counts as none */
	space_alloc(2 * MIB, HUGE);
	EXPECT_CODE(DRV_ERROR_NONE, npusimLeaks, add_line, &some, false);
	EXPECT_EQ(some.count, 4);
	EXPECT_CONTAINS(some.text, "1 reservation: 1073741824 (1 GiB) of addresses");
	EXPECT_CONTAINS(some.text, "1 mapping: 4194304 (4 MiB) still mapped");
	EXPECT_CONTAINS(some.text,
			"2 handles: 6291456 (6 MiB) of physical memory still held, 1 of");
	EXPECT_CONTAINS(some.text, "1 device allocation: 2097152 (2 MiB) not freed");
	EXPECT_CODE(DRV_ERROR_NONE, npusimLeaks, add_line, &all, true);
	EXPECT_EQ(all.count, 4 + 5);
	EXPECT_CONTAINS(all.text, "4194304 (4 MiB), device 1, of handle");
	EXPECT_CONTAINS(all.text, "device 0, by driver call 8, ");
}

/* ---- fork ---- */

static uint64_t parents_va;

static void call_after_fork(void *arg)
{
	void *va = NULL;
	uint32_t count = 0;

	(void)arg;
	EXPECT_CODE(DRV_ERROR_PROCESS_EXIT, halMemAddressReserve, &va, 2 * MIB, 0, NULL, 0);
	EXPECT_CONTAINS(MESSAGE(), "forked");
	EXPECT_CODE(DRV_ERROR_PROCESS_EXIT, halMemUnmap, at(parents_va));
	EXPECT_CODE(DRV_ERROR_NONE, drvGetDevNum, &count);
	EXPECT_EQ(count, 2);
	space_close();
}

static void open_after_fork(void *arg)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	(void)arg;
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 0, &in, &out);
	EXPECT_NE(space_reserve(2 * MIB, 0), 0);
	space_close();
}

TEST(process, a_forked_child_is_told_so)
{
	ASSERT_NO_FATAL(space_open("docs", NULL));
	parents_va = space_reserve(2 * MIB, 0);
	space_map(parents_va, 2 * MIB, space_create(0, 2 * MIB));
	EXPECT_EXIT(0, call_after_fork, NULL);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(parents_va));
}

static void reach_parents_memory(void *arg)
{
	int ends[2];

	(void)arg;
	ASSERT_EQ(pipe(ends), 0);
	EXPECT_EQ(syscall(SYS_write, ends[1], at(parents_va), 1), -1);
}

/* Else it could write there when the frames are another process's. */
TEST(process, a_forked_child_has_none_of_the_servers_memory)
{
	ASSERT_NO_FATAL(space_open("docs", NULL));
	parents_va = space_reserve(2 * MIB, 0);
	space_map(parents_va, 2 * MIB, space_create_host(2 * MIB));
	*(volatile char *)at(parents_va) = 1;
	EXPECT_EXIT(0, reach_parents_memory, NULL);
	EXPECT_EQ(*(volatile char *)at(parents_va), 1);
}

TEST(process, fork_before_the_first_device_just_works)
{
	ASSERT_NO_FATAL(space_open_closed("docs", NULL));
	EXPECT_EXIT(0, open_after_fork, NULL);
	open_after_fork(NULL);
}

static void *call_for_ever(void *arg)
{
	uint64_t a = space_reserve(2 * MIB, 0);
	drv_mem_handle_t *h = space_create(0, 2 * MIB);

	while (!__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE)) {
		CALL(halMemMap, at(a), 2 * MIB, 0, h, 0);
		CALL(halMemUnmap, at(a));
	}
	return NULL;
}

TEST(process, fork_while_another_thread_calls_does_not_hang)
{
	pthread_t thread;
	bool stop = false;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	ASSERT_EQ(pthread_create(&thread, NULL, call_for_ever, &stop), 0);
	for (unsigned i = 0; i < 20; i++)
		EXPECT_EXIT(0, call_after_fork, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* ---- devices ---- */

TEST(process, a_reset_ends_what_the_device_had)
{
	halDevCloseIn in = { { 0 } };
	halDevOpenIn open = { { 0 } };
	uint64_t frames, a, b, p;
	drv_mem_handle_t *h, *k, *other = NULL;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	frames = space_free_frames(0);
	a = space_reserve(4 * MIB, 0);
	b = space_reserve(4 * MIB, 0);
	h = space_create(0, 4 * MIB);
	k = space_create(1, 4 * MIB);
	space_map(a, 4 * MIB, h);
	space_map(b, 4 * MIB, k);
	p = space_alloc(64, HUGE);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 0, 1, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceClose, 0, &in);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halDeviceClose, 0, &in);
	EXPECT_EQ(space_free_frames(0), frames);
	EXPECT_CODE(DRV_ERROR_PARA_ERROR, halMemUnmap, at(a));
	EXPECT_CONTAINS(MESSAGE(), "a device was reset");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemRelease, h);
	EXPECT_CONTAINS(MESSAGE(), "was destroyed when device 0 was reset by driver call");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemFree, at(p));
	EXPECT_CODE(DRV_ERROR_NONE, halMemRetainAllocationHandle, &other, at(b));
	EXPECT_EQ(other, k);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(a));
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 0, &open, NULL);
	a = space_reserve(4 * MIB, 0);
	space_map(a, 4 * MIB, space_create(0, 4 * MIB));
}

TEST(process, before_a_device_is_open)
{
	struct drv_mem_prop prop = space_prop(0);
	struct MemInfo info;
	drv_mem_handle_t *h = NULL;
	char soc[50];
	uint32_t count = 0, id = 0;
	uint64_t now = 1;
	int64_t value = 0, total = 0;
	void *va = NULL;
	int can = 7;

	ASSERT_NO_FATAL(space_open_closed("docs", NULL));
	EXPECT_CODE(DRV_ERROR_NONE, drvGetDevNum, &count);
	EXPECT_EQ(count, 2);
	EXPECT_CODE(DRV_ERROR_NONE, halGetSocVersion, 0, soc, 50);
	EXPECT_STREQ(soc, "Ascend910B1");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halGetSocVersion, 0, soc, 11);
	EXPECT_CODE(DRV_ERROR_NONE, halGetDeviceInfo, 1, MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM,
		    &value);
	EXPECT_EQ(value, 24);
	EXPECT_CODE(DRV_ERROR_INVALID_DEVICE, halGetDeviceInfo, 2, 0, 0, &value);
	EXPECT_CODE(DRV_ERROR_NOT_SUPPORT, halGetDeviceInfo, 0, 99, 0, &value);
	EXPECT_CODE(DRV_ERROR_NONE, halGetHostID, &id);
	EXPECT_EQ(id, BSIM_HOST_ID);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceCanAccessPeer, &can, 0, 1);
	EXPECT_EQ(can, 1);
	EXPECT_CODE(DRV_ERROR_NONE, npusimNow, &now);
	EXPECT_EQ(now, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemAddressReserve, &va, 2 * MIB, 0, NULL, 1);
	EXPECT_CONTAINS(MESSAGE(), "aclrtSetDevice");
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemCreate, &h, 2 * MIB, &prop, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemGetInfo, 0, MEM_INFO_TYPE_HBM_SIZE, &info);
	EXPECT_CODE(DRV_ERROR_INVALID_DEVICE, halDeviceOpen, 2, NULL, NULL);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemUnmap, at(4096));
	/* what monitors ask, who open none: joins the node, and no more */
	EXPECT_CODE(DRV_ERROR_NONE, halGetDeviceInfo, 1, MODULE_TYPE_MEMORY, 0, &total);
	EXPECT_CODE(DRV_ERROR_NONE, halGetDeviceInfo, 1, MODULE_TYPE_MEMORY, INFO_TYPE_FREE_BYTES,
		    &value);
	EXPECT_GT(total, 0);
	EXPECT_EQ(value, total);
	EXPECT_CODE(DRV_ERROR_INVALID_DEVICE, halGetDeviceInfo, 2, MODULE_TYPE_MEMORY,
		    INFO_TYPE_FREE_BYTES, &value);
	EXPECT_CODE(DRV_ERROR_INVALID_HANDLE, halMemCreate, &h, 2 * MIB, &prop, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 1, NULL, NULL);
	EXPECT_CODE(DRV_ERROR_NONE, halGetDeviceInfo, 1, MODULE_TYPE_MEMORY, INFO_TYPE_FREE_BYTES,
		    &value);
	EXPECT_LE(value, total);
}

extern const struct npu_backend npusim_backend_1;

TEST(process, a_soc_that_is_not_known_is_named)
{
	char *error = NULL;

	setenv("NPUSIM_SOC", "Ascend910Z9", 1);
	EXPECT_NULL(npusim_backend_1.open(&error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error, "Ascend910Z9");
	EXPECT_CONTAINS(error, "Ascend910B4-1");
	free(error);
	unsetenv("NPUSIM_SOC");
}

static void nothing_more(struct space_other *self)
{
	(void)self;
}

/* Without a shape of its own, a process takes that of the node that runs; with another one it
 * fails. */
TEST(process, takes_the_shape_of_the_running_node)
{
	struct space_other other;
	char *error = NULL;
	uint32_t count = 0;

	ASSERT_NO_FATAL(space_other_start(&other, nothing_more));
	ASSERT_NO_FATAL(space_other_value(&other));
	unsetenv("NPUSIM_DEVICES");
	unsetenv("NPUSIM_HBM");
	drv = npusim_backend_1.open(&error);
	ASSERT_NOT_NULL(drv);
	EXPECT_CODE(DRV_ERROR_NONE, drvGetDevNum, &count);
	EXPECT_EQ(count, SPACE_DEVICES);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 1, NULL, NULL);
	EXPECT_EQ(bsim_of(drv)->config.hbm_bytes, 4 * GIB);
	space_close();
	setenv("NPUSIM_DEVICES", "3", 1);
	drv = npusim_backend_1.open(&error);
	ASSERT_NOT_NULL(drv);
	EXPECT_CODE(DRV_ERROR_OPEN_FAILED, halDeviceOpen, 0, NULL, NULL);
	EXPECT_CONTAINS(MESSAGE(), "the simulated server cannot be opened: ");
	space_other_end(&other);
}

TEST(process, host_memory_is_as_large_as_the_variable_says)
{
	struct drv_mem_prop prop = { .side = MEM_HOST_SIDE };
	drv_mem_handle_t *h;
	char *error = NULL;

	setenv("NPUSIM_HOST_MEMORY", "256M", 1);
	ASSERT_NO_FATAL(space_open("docs", NULL));
	EXPECT_EQ(bsim_of(drv)->config.host_bytes, 256 * MIB);
	space_create_host(200 * MIB);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemCreate, &h, 200 * MIB, &prop, 0);
	space_close();
	setenv("NPUSIM_HOST_MEMORY", "64M", 1);
	EXPECT_NULL(npusim_backend_1.open(&error));
	EXPECT_CONTAINS(error, "NPUSIM_HOST_MEMORY=64M: the host's memory is a multiple of 2 MiB");
	free(error);
	unsetenv("NPUSIM_HOST_MEMORY");
}

/* Of each device in each process, from its opening to its close; a profile may say so, too. */
TEST(process, holds_what_a_runtime_would)
{
	static const char profile[] = "/tmp/npusim-holds.ini";
	uint64_t all, held;
	FILE *file;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	all = space_free_frames(0);
	space_close();
	setenv("NPUSIM_RUNTIME_MEMORY", "29M", 1);
	ASSERT_NO_FATAL(space_open("docs", NULL));
	EXPECT_EQ(space_free_frames(0), all - 15);
	EXPECT_EQ(space_free_frames(1), all - 15);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 0, NULL, NULL); /* once more: no more */
	EXPECT_EQ(space_free_frames(0), all - 15);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceClose, 0, NULL);
	EXPECT_EQ(space_free_frames(0), all);
	space_close();
	unsetenv("NPUSIM_RUNTIME_MEMORY");
	file = fopen(profile, "w");
	ASSERT_NOT_NULL(file);
	fputs("[Profile]\nbase=Ascend910B1\n[SoCInfo]\nruntime_bytes=30M\n", file);
	fclose(file);
	ASSERT_NO_FATAL(space_open("docs", profile));
	held = space_free_frames(0);
	unlink(profile);
	EXPECT_EQ(held, all - 15);
	space_close();
	unsetenv("NPUSIM_SOC");
}

TEST(process, statistics_count_calls_and_pages)
{
	struct npu_stats s = { .size = sizeof(s) };
	uint64_t a;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	a = space_reserve(8 * MIB, 0);
	space_map(a, 8 * MIB, space_create(0, 8 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, npusimGetStats, 0, &s);
	EXPECT_EQ(s.call_count[SIM_CALL_MAP], 1);
	EXPECT_EQ(s.call_count[SIM_CALL_CREATE], 1);
	EXPECT_EQ(s.leaves_2m, 4);
	EXPECT_EQ(s.mapped_bytes, 8 * MIB);
	EXPECT_EQ(s.own_bytes, 8 * MIB);
	EXPECT_EQ(s.page_table_bytes, 3 * 4096);
	EXPECT_EQ(s.usable_bytes - s.used_bytes, space_free_frames(0) * 2 * MIB);
	EXPECT_GT(s.now_ps, 0);
	EXPECT_EQ(s.size, sizeof(s));
	s.size = 16;
	EXPECT_CODE(DRV_ERROR_NONE, npusimGetStats, 1, &s);
	EXPECT_EQ(s.size, 16);
}

/* How long a reset holds the lock does not depend on what other devices have. */
TEST(process, reset_looks_at_no_record_of_another_device)
{
	struct bsim *bs;
	struct allocation *allocation;
	struct mapping *mapping;
	struct drv_mem_handle *h;
	uint64_t frames, a[2];
	void *host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *trap = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *out;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	frames = space_free_frames(0);
	for (unsigned d = 0; d < 2; d++) {
		a[d] = space_reserve(2 * MIB, 0);
		space_alloc(2 * MIB, HUGE | d);
		space_map(a[d], 2 * MIB, space_create(d, 2 * MIB));
		EXPECT_CODE(DRV_ERROR_NONE, halHostRegister, host, 4096, HOST_MEM_MAP_DEV, d, &out);
	}
	bs = bsim_of(drv);
	allocation = LIST_FIRST(&bs->allocs->live[1]);
	mapping = LIST_FIRST(&bs->window->mappings[1]);
	h = TAILQ_FIRST(&bs->handles->live[1]);
	LIST_FIRST(&bs->allocs->live[1]) = trap;
	LIST_FIRST(&bs->window->mappings[1]) = trap;
	TAILQ_FIRST(&bs->handles->live[1]) = trap;
	EXPECT_CODE(DRV_ERROR_NONE, halHostUnregister, host, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halHostRegister, host, 4096, HOST_MEM_MAP_DEV, 0, &out);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceClose, 0, NULL);
	LIST_FIRST(&bs->allocs->live[1]) = allocation;
	LIST_FIRST(&bs->window->mappings[1]) = mapping;
	TAILQ_FIRST(&bs->handles->live[1]) = h;
	EXPECT_EQ(space_free_frames(0), frames);
	EXPECT_EQ(space_place(a[0]).kind, NPU_PLACE_RESERVED);
	EXPECT_EQ(space_place(a[1]).kind, NPU_PLACE_MAPPED);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halHostUnregister, host, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halHostUnregister, host, 1);
	munmap(host, 4096);
	munmap(trap, 4096);
}

/* Access that others granted it: it is found, with no look at what they have besides. */
static const struct granted {
	const char *title;
	uint32_t pages;
	uint64_t bytes;
} grants[] = { { "2m", MEM_HUGE_PAGE_TYPE, 4 * MIB }, { "1g", MEM_GIANT_PAGE_TYPE, GIB } };

TEST_EACH(process, reset_takes_what_others_granted, grants, title)
{
	const struct granted *granted = param;
	struct drv_mem_prop prop = space_prop(1);
	struct drv_mem_access_desc desc = { MEM_ACCESS_TYPE_READWRITE, { 0, MEM_DEV_SIDE }, { 0 } };
	void *trap = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	drv_mem_handle_t *h;
	struct mapping *all;
	struct pt_leaf leaf;
	uint64_t a;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	prop.pg_type = granted->pages;
	a = space_reserve(granted->bytes, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, &h, granted->bytes, &prop, 0);
	space_map(a, granted->bytes, h);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 0, 1, 0);
		EXPECT_CODE(DRV_ERROR_NONE, halMemSetAccess, at(a), granted->bytes, &desc, 1);
		EXPECT_TRUE(pt_walk(&tables_space(0)->pt, a + granted->bytes - 1, &leaf));
		EXPECT_EQ(space_place(a).readers, 3u);
		all = LIST_FIRST(&bsim_of(drv)->window->mappings[1]);
		LIST_FIRST(&bsim_of(drv)->window->mappings[1]) = trap;
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceClose, 0, NULL);
		LIST_FIRST(&bsim_of(drv)->window->mappings[1]) = all;
		EXPECT_EQ(space_place(a).readers, 2u);
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, 0, NULL, NULL);
		EXPECT_FALSE(pt_walk(&tables_space(0)->pt, a, &leaf));
	}
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	munmap(trap, 4096);
}

/* ---- threads ---- */

static void *work(void *arg)
{
	unsigned device = (unsigned)(uintptr_t)arg % 2;

	for (unsigned i = 0; i < 300; i++) {
		uint64_t a = space_reserve(4 * MIB, 0), p = space_alloc(1 + i * 100, HUGE | device);
		drv_mem_handle_t *h = space_create(device, 4 * MIB);

		space_map(a, 4 * MIB, h);
		EXPECT_EQ(space_place(a).owner, device);
		EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, h);
		EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
		EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(a));
		EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(p));
	}
	return NULL;
}

TEST(process, threads_call_side_by_side)
{
	pthread_t threads[4];
	uint64_t frames;

	ASSERT_NO_FATAL(space_open("docs", NULL));
	frames = space_free_frames(0) + space_free_frames(1);
	for (uintptr_t i = 0; i < 4; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, work, at(i)), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(space_free_frames(0) + space_free_frames(1), frames);
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		EXPECT_NULL(LIST_FIRST(&bsim_of(drv)->window->mappings[i]));
}
