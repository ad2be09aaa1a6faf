/* SPDX-License-Identifier: Apache-2.0
 *
 * Where copies and fills move no bytes (NPUSIM_CONTENTS=off), some get into memory all the same:
 * what they were written to is clean when the next one has it.
 */
#include <stdlib.h>

#include "memory/memory.h"
#include "queue-rig.h"
#include "queue/queue.h"

enum { IN_SMALL_PAGES, IN_HUGE_PAGES, MAPPED, KINDS };

static struct rig_stream stream;
static struct memory {
	uint64_t va;
	drv_mem_handle_t *handle;
} memory[KINDS];

SETUP(copy_contents)
{
	setenv("NPUSIM_CONTENTS", "off", 1);
	rig_open();
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
}

TEARDOWN(copy_contents)
{
	rig_stream_close(&stream);
	rig_close();
	rig_end(); /* the next one begins as this one did */
}

static void take(void)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };
	void *small = NULL, *at = NULL;

	ASSERT_EQ(npu_call(rig, halMemAlloc, &small, 4096, RIG_DEVICE_FLAG), DRV_ERROR_NONE);
	memory[IN_SMALL_PAGES].va = (uint64_t)small;
	memory[IN_HUGE_PAGES].va = rig_alloc(0, 2 * MIB);
	ASSERT_EQ(npu_call(rig, halMemAddressReserve, &at, 2 * MIB, 0, NULL, MEM_HUGE_PAGE_TYPE),
		  DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemCreate, &memory[MAPPED].handle, 2 * MIB, &prop, 0),
		  DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemMap, at, 2 * MIB, 0, memory[MAPPED].handle, 0),
		  DRV_ERROR_NONE);
	memory[MAPPED].va = (uint64_t)at;
}

static void give(void)
{
	for (unsigned i = 0; i < MAPPED; i++)
		EXPECT_EQ(npu_call(rig, halMemFree, (void *)memory[i].va), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halMemUnmap, (void *)memory[MAPPED].va), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halMemRelease, memory[MAPPED].handle), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halMemAddressFree, (void *)memory[MAPPED].va), DRV_ERROR_NONE);
}

/* Where the model has the byte at va. */
static const uint64_t *bytes_at(uint64_t va, uint64_t *out_pa)
{
	const struct space *space = tables_space(0);
	struct pt_leaf leaf = { 0 };
	uint64_t room;

	EXPECT_TRUE(pt_walk(&space->pt, va, &leaf));
	*out_pa = leaf.pa;
	return (const uint64_t *)(void *)sim_memory_at(node_memory(bsim_of(rig)->node), leaf.pa,
						       &room);
}

static void write_value(uint64_t va, uint64_t pa)
{
	(void)pa;
	rig_write(&stream, va, 7, 3, REPORT);
}

static void set_ring(uint64_t va, uint64_t pa)
{
	struct stars_error_ring_sqe sqe = { .header = { .type = STARS_SQE_PLACE_HOLDER,
							.sub_type = STARS_TASK_ERROR_RING },
					    .elements = 1,
					    .address = pa };

	(void)va;
	EXPECT_EQ(rig_send(&stream, &sqe, REPORT, 1000), DRV_ERROR_NONE);
}

static void write_and_give(void (*write)(uint64_t va, uint64_t pa), uint32_t first_word)
{
	const uint64_t *bytes[KINDS];
	uint64_t pa;

	ASSERT_NO_FATAL(take());
	for (unsigned i = 0; i < KINDS; i++) {
		bytes[i] = bytes_at(memory[i].va, &pa);
		EXPECT_EQ(*bytes[i], 0u);
		write(memory[i].va, pa);
		EXPECT_EQ(rig_next(&stream).error_type, 0);
		EXPECT_EQ((uint32_t)*bytes[i], first_word);
	}
	give();
	for (unsigned i = 0; i < KINDS; i++)
		EXPECT_EQ(*bytes[i], 0u);
}

TEST(copy_contents, values)
{
	write_and_give(write_value, 7);
	write_and_give(write_value, 7);
}

TEST(copy_contents, errors_of_tasks)
{
	write_and_give(set_ring, STARS_ERROR_RING_MAGIC);
}

TEST(copy_contents, cpu)
{
	struct drv_mem_access_desc host = { .type = MEM_ACCESS_TYPE_READWRITE,
					    .location.side = MEM_HOST_SIDE };
	const uint64_t *bytes;
	uint64_t pa;

	ASSERT_NO_FATAL(take());
	bytes = bytes_at(memory[MAPPED].va, &pa);
	ASSERT_EQ(npu_call(rig, halMemSetAccess, (void *)memory[MAPPED].va, 2 * MIB, &host, 1),
		  DRV_ERROR_NONE);
	*(uint64_t *)memory[MAPPED].va = 7;
	EXPECT_EQ(*bytes, 7u);
	give();
	EXPECT_EQ(*bytes, 0u);
}

/* What is known of written bytes goes with them. */
TEST(copy_contents, told)
{
	struct npu_written written = { 0 };
	uint64_t *word;

	ASSERT_NO_FATAL(take());
	for (unsigned i = 0; i < KINDS; i++) {
		EXPECT_EQ(npu_call(rig, npusimWritten, memory[i].va, &written), DRV_ERROR_NONE);
		ASSERT_TRUE(written.bits != NULL);
		word = &written.bits[written.at / 8 / 64];
		EXPECT_EQ(*word, 0u);
		*word = 1;
	}
	give();
	EXPECT_EQ(*word, 0u);
	ASSERT_NO_FATAL(take());
	for (unsigned i = 0; i < KINDS; i++) {
		EXPECT_EQ(npu_call(rig, npusimWritten, memory[i].va, &written), DRV_ERROR_NONE);
		EXPECT_EQ(written.bits[written.at / 8 / 64], 0u);
	}
	give();
}

/* Where a program's memory lies, of which its times depend. */
static uint64_t places(const char *contents)
{
	uint64_t va[32] = { 0 }, seed = 1, sum = 0, pa;

	rig_end();
	setenv("NPUSIM_CONTENTS", contents, 1);
	rig_open();
	for (unsigned i = 0; i < 400; i++) {
		unsigned at = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 59;

		if (va[at] != 0)
			EXPECT_EQ(npu_call(rig, halMemFree, (void *)va[at]), DRV_ERROR_NONE);
		va[at] = rig_alloc(0, (1 + (seed >> 40) % 3) * 2 * MIB);
		(void)bytes_at(va[at], &pa);
		sum = sum * 31 + pa / MIB;
	}
	return sum;
}

TEST(copy_contents, places_do_not_depend_on_it)
{
	uint64_t without;

	rig_stream_close(&stream);
	without = places("off");
	EXPECT_EQ(places("on"), without);
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
}

TEST(copy_contents, copies_and_fills)
{
	uint64_t pa, value = 7;
	const uint64_t *bytes;

	ASSERT_NO_FATAL(take());
	bytes = bytes_at(memory[IN_HUGE_PAGES].va, &pa);
	EXPECT_EQ(npu_call(rig, drvMemcpy, memory[IN_HUGE_PAGES].va, 8, (uintptr_t)&value, 8),
		  DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, drvMemsetD8, memory[IN_HUGE_PAGES].va, 8, 7, 8), DRV_ERROR_NONE);
	EXPECT_EQ(*bytes, 0u);
	give();
}
