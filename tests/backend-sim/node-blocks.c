/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks and frames, as one process sees them: random requests against an oracle that knows every
 * frame, whole giants, capacity and its messages, memory that comes back zeroed, threads.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "harness/test.h"
#include "node-actors.h"

#define GIB(n) (UINT64_C(n) << 30)
#define MIB(n) (UINT64_C(n) << 20)

static struct node *node;
static struct node_config config;
static char name[64];

static void join(unsigned devices, uint64_t hbm_bytes, uint64_t usable_frames)
{
	static unsigned count;
	char *error = NULL;

	snprintf(name, sizeof(name), "test-%d-blocks-%u", getpid(), count++);
	config = (struct node_config){ .name = name,
				       .soc_name = "Ascend910B1",
				       .devices = devices,
				       .hbm_bytes = hbm_bytes,
				       .usable_frames = usable_frames,
				       .host_bytes = MIB(256) };
	ASSERT_TRUE(node_join(&config, &node, &error));
}

static void leave(void)
{
	node_leave(node);
	node = NULL;
}

static struct node_usage usage(unsigned memory)
{
	struct node_usage out;

	node_usage(node, memory, &out);
	return out;
}

static void expect_audit(void)
{
	char *wrong = node_audit(node);

	EXPECT_STREQ(wrong, NULL);
	free(wrong);
}

static struct node_block *create(unsigned memory, uint64_t frames, bool giant)
{
	struct node_block *block = NULL;

	EXPECT_EQ(node_block_create(node, memory, frames, giant, &block), DRV_ERROR_NONE);
	return block;
}

static uint64_t *at(const struct node_block *block, uint64_t frame)
{
	return (uint64_t *)(node_memory(node)->base[block->memory] + frame * NODE_FRAME_BYTES);
}

TEST(node_blocks, create_takes_and_drop_gives_back)
{
	struct node_block *block;

	ASSERT_NO_FATAL(join(2, GIB(4), 2000));
	block = create(1, 5, false);
	ASSERT_NOT_NULL(block);
	EXPECT_EQ(block->memory, 1u);
	EXPECT_EQ(block->frames, 5u);
	EXPECT_EQ(block->extent_count, 1u);
	EXPECT_EQ(usage(1).free_frames, 1995u);
	EXPECT_EQ(usage(1).own_frames, 5u);
	EXPECT_EQ(usage(0).free_frames, 2000u);
	expect_audit();
	node_block_drop(node, block);
	EXPECT_EQ(usage(1).free_frames, 2000u);
	EXPECT_EQ(usage(1).own_frames, 0u);
	expect_audit();
	leave();
}

TEST(node_blocks, dropped_block_is_not_found_when_its_place_is_used_again)
{
	struct node_block *block, stale;
	char range[65];
	uint32_t id;

	ASSERT_NO_FATAL(join(1, MIB(64), 0));
	block = create(0, 1, false);
	memcpy(&stale, block, sizeof(stale));
	node_block_drop(node, block);
	EXPECT_EQ(node_share_export(node, &stale, 0, &id), DRV_ERROR_INVALID_HANDLE);
	block = create(0, 1, false);
	EXPECT_EQ(block->id, stale.id);
	EXPECT_EQ(node_share_export(node, &stale, 0, &id), DRV_ERROR_INVALID_HANDLE);
	EXPECT_EQ(node_name_create(node, &stale, 0, 1, 0, range), DRV_ERROR_INVALID_HANDLE);
	EXPECT_CONTAINS(npu_message(), "no block any more");
	node_block_drop(node, block);
	expect_audit();
	leave();
}

TEST(node_blocks, requests_that_cannot_be)
{
	struct node_block *block = NULL;

	ASSERT_NO_FATAL(join(2, GIB(4), 2000));
	EXPECT_EQ(node_block_create(node, 2, 1, false, &block), DRV_ERROR_INVALID_DEVICE);
	EXPECT_CONTAINS(npu_message(), "2 devices");
	EXPECT_EQ(node_block_create(node, 99, 1, false, &block), DRV_ERROR_INVALID_DEVICE);
	EXPECT_EQ(node_block_create(node, 0, 0, false, &block), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(node_block_create(node, 0, 513, true, &block), DRV_ERROR_INVALID_VALUE);
	EXPECT_NULL(block);
	leave();
}

TEST(node_blocks, out_of_memory_says_who_holds_it)
{
	struct node_block *big, *small = NULL;
	char holder[64];

	ASSERT_NO_FATAL(join(1, GIB(4), 2000));
	big = create(0, 1500, false);
	snprintf(holder, sizeof(holder), "process %d (", getpid());
	EXPECT_EQ(node_block_create(node, 0, 501, false, &small), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(npu_message(), "device 0");
	EXPECT_CONTAINS(npu_message(), "1050673152 (1002 MiB) are asked for, and 1048576000 (1000 "
				       "MiB) of 4194304000 (about 3.91 GiB) are free");
	EXPECT_CONTAINS(npu_message(), holder);
	EXPECT_CONTAINS(npu_message(), "holds 3145728000 (about 2.93 GiB)");
	EXPECT_EQ(node_block_create(node, 0, 1024, true, &small), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(npu_message(), "2 pages of 1 GiB are asked for, and 0 are free");
	EXPECT_EQ(node_block_create(node, 0, UINT64_C(1) << 43, false, &small),
		  DRV_ERROR_OUT_OF_MEMORY); /* 2^64 bytes */
	EXPECT_CONTAINS(npu_message(), ": 18446744073707454464 (about 16777216.00 TiB) are asked");
	small = create(0, 500, false);
	EXPECT_EQ(usage(0).free_frames, 0u);
	EXPECT_EQ(usage(0).largest_free_run, 0u);
	node_block_drop(node, small);
	node_block_drop(node, big);
	expect_audit();
	leave();
}

TEST(node_blocks, memory_comes_back_zeroed)
{
	struct node_block *block;
	uint64_t frame;

	ASSERT_NO_FATAL(join(1, MIB(64), 0));
	EXPECT_EQ(usage(0).total_frames, 28u);
	for (unsigned round = 0; round < 3; round++) {
		block = create(0, 28, false);
		frame = block->extents[0].frame;
		for (unsigned f = 0; f < 28; f++) {
			EXPECT_EQ(at(block, frame + f)[0], 0u);
			EXPECT_EQ(at(block, frame + f)[NODE_FRAME_BYTES / 8 - 1], 0u);
		}
		node_block_touch(node, block);
		memset(at(block, frame), 0x5a, 28 * NODE_FRAME_BYTES);
		node_block_drop(node, block);
	}
	leave();
}

TEST(node_blocks, table_frames_come_from_the_reserved_part)
{
	struct node_block *tables[8], *none = NULL;

	ASSERT_NO_FATAL(join(1, MIB(64), 24));
	for (unsigned i = 0; i < 8; i++) {
		ASSERT_EQ(node_table_frame(node, 0, &tables[i]), DRV_ERROR_NONE);
		EXPECT_GE(tables[i]->extents[0].frame, 24u);
		EXPECT_EQ(*at(tables[i], tables[i]->extents[0].frame), 0u);
		*at(tables[i], tables[i]->extents[0].frame) = 7;
	}
	EXPECT_EQ(node_table_frame(node, 0, &none), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(npu_message(), "page tables (8 frames");
	EXPECT_EQ(usage(0).free_frames, 24u);
	EXPECT_EQ(usage(0).own_frames, 0u);
	node_block_drop(node, tables[3]);
	ASSERT_EQ(node_table_frame(node, 0, &tables[3]), DRV_ERROR_NONE);
	EXPECT_EQ(*at(tables[3], tables[3]->extents[0].frame), 0u);
	ASSERT_EQ(node_table_frame(node, SIM_NODE_HOST, &none), DRV_ERROR_NONE);
	expect_audit();
	for (unsigned i = 0; i < 8; i++)
		node_block_drop(node, tables[i]);
	node_block_drop(node, none);
	leave();
}

TEST(node_blocks, whole_giants_are_kept_as_long_as_possible)
{
	struct node_block *ones[600], *giant, *piece;

	ASSERT_NO_FATAL(join(1, GIB(4), 2000)); /* 3 giants and 464 frames */
	EXPECT_EQ(usage(0).free_giants, 3u);
	for (unsigned i = 0; i < 464; i++)
		ones[i] = create(0, 1, false);
	EXPECT_EQ(usage(0).free_giants, 3u);
	for (unsigned i = 464; i < 600; i++)
		ones[i] = create(0, 1, false);
	EXPECT_EQ(usage(0).free_giants, 2u);
	piece = create(0, 376, false); /* fills the broken one */
	EXPECT_EQ(piece->extent_count, 1u);
	EXPECT_EQ(usage(0).free_giants, 2u);
	giant = create(0, 1024, true);
	EXPECT_TRUE(giant->giant);
	EXPECT_EQ(giant->extent_count, 1u);
	EXPECT_EQ(giant->extents[0].frame % NODE_GIANT_FRAMES, 0u);
	EXPECT_EQ(usage(0).free_frames, 0u);
	for (unsigned i = 0; i < 600; i += 2)
		node_block_drop(node, ones[i]);
	node_block_drop(node, piece);
	EXPECT_EQ(usage(0).free_giants, 0u);
	for (unsigned i = 1; i < 600; i += 2)
		node_block_drop(node, ones[i]);
	EXPECT_EQ(usage(0).free_giants, 1u);
	node_block_drop(node, giant);
	EXPECT_EQ(usage(0).free_giants, 3u);
	expect_audit();
	leave();
}

TEST(node_blocks, scattered_frames_are_found)
{
	struct node_block *ones[1000], *all;

	ASSERT_NO_FATAL(join(1, GIB(2), 1000));
	for (unsigned i = 0; i < 1000; i++)
		ones[i] = create(0, 1, false);
	for (unsigned i = 0; i < 1000; i += 2)
		node_block_drop(node, ones[i]);
	EXPECT_EQ(usage(0).largest_free_run, 1u);
	all = create(0, 500, false);
	ASSERT_NOT_NULL(all);
	EXPECT_EQ(all->extent_count, 500u);
	expect_audit();
	node_block_touch(node, all);
	node_block_drop(node, all);
	EXPECT_EQ(usage(0).free_frames, 500u);
	for (unsigned i = 1; i < 1000; i += 2)
		node_block_drop(node, ones[i]);
	leave();
}

/* ---- random requests against an oracle ---- */

#define ORACLE_BLOCKS 300
#define ORACLE_FRAMES 2500

struct oracle {
	struct node_block *blocks[ORACLE_BLOCKS];
	bool used[ORACLE_FRAMES];
	unsigned used_count, partial_giants;
};

static void oracle_mark(struct oracle *oracle, const struct node_block *block, bool used)
{
	uint64_t frames = 0;

	for (unsigned i = 0; i < block->extent_count; i++) {
		const struct node_extent *e = &block->extents[i];

		frames += e->count;
		ASSERT_LE(e->frame + e->count, (uint64_t)ORACLE_FRAMES);
		if (block->giant)
			ASSERT_EQ((e->frame | e->count) % NODE_GIANT_FRAMES, 0u);
		for (uint64_t f = e->frame; f < e->frame + e->count; f++) {
			ASSERT_EQ(oracle->used[f], !used);
			oracle->used[f] = used;
		}
	}
	ASSERT_EQ(frames, block->frames);
	oracle->used_count += used ? (unsigned)frames : -(unsigned)frames;
}

static unsigned oracle_giants(const struct oracle *oracle)
{
	unsigned giants = 0;

	for (unsigned g = 0; (g + 1) * NODE_GIANT_FRAMES <= ORACLE_FRAMES; g++)
		giants += !memchr(&oracle->used[g * NODE_GIANT_FRAMES], true, NODE_GIANT_FRAMES);
	return giants;
}

static void oracle_check(const struct oracle *oracle)
{
	struct node_usage now = usage(0);
	unsigned run = 0, largest = 0;

	for (unsigned f = 0; f < ORACLE_FRAMES; f++) {
		run = oracle->used[f] ? 0 : run + 1;
		largest = run > largest ? run : largest;
	}
	ASSERT_EQ(now.free_frames, ORACLE_FRAMES - oracle->used_count);
	ASSERT_EQ(now.own_frames, oracle->used_count);
	ASSERT_EQ(now.free_giants, oracle_giants(oracle));
	ASSERT_EQ(now.largest_free_run, largest);
}

static void oracle_create(struct oracle *oracle, struct node_block **out, uint64_t frames,
			  bool giant)
{
	unsigned before = oracle_giants(oracle), left = ORACLE_FRAMES - oracle->used_count, outside,
		 needed;
	bool fits = giant ? frames / NODE_GIANT_FRAMES <= before : frames <= left;
	drvError_t error = node_block_create(node, 0, frames, giant, out);

	ASSERT_EQ(error, fits ? DRV_ERROR_NONE : DRV_ERROR_OUT_OF_MEMORY);
	if (!fits)
		return;
	ASSERT_NO_FATAL(oracle_mark(oracle, *out, true));
	outside = left - before * NODE_GIANT_FRAMES;
	needed = giant ? (unsigned)frames / NODE_GIANT_FRAMES
		 : frames > outside
			 ? ((unsigned)frames - outside + NODE_GIANT_FRAMES - 1) / NODE_GIANT_FRAMES
			 : 0;
	ASSERT_EQ(before - oracle_giants(oracle),
		  needed); /* no giant is broken that could be spared */
}

static void oracle_round(struct oracle *oracle, unsigned *seed)
{
	struct node_block **slot = &oracle->blocks[(unsigned)rand_r(seed) % ORACLE_BLOCKS];
	unsigned kind = (unsigned)rand_r(seed) % 10, size = (unsigned)rand_r(seed);

	if (*slot) {
		ASSERT_NO_FATAL(oracle_mark(oracle, *slot, false));
		node_block_drop(node, *slot);
		*slot = NULL;
	} else if (kind == 0) {
		ASSERT_NO_FATAL(
			oracle_create(oracle, slot, (1 + size % 3) * NODE_GIANT_FRAMES, true));
	} else {
		ASSERT_NO_FATAL(oracle_create(
			oracle, slot, kind < 5 ? 1 : 1 + size % (kind < 9 ? 40 : 1200), false));
	}
}

TEST(node_blocks, random_requests_against_an_oracle)
{
	static struct oracle oracle;
	unsigned seed = 20261128;

	oracle = (struct oracle){ .used_count = 0 };
	ASSERT_NO_FATAL(join(1, GIB(5), ORACLE_FRAMES));
	for (unsigned round = 0; round < 20000; round++) {
		NOTE("round %u", round);
		ASSERT_NO_FATAL(oracle_round(&oracle, &seed));
		if (round % 50 == 0)
			ASSERT_NO_FATAL(oracle_check(&oracle));
		if (round % 2000 == 0)
			expect_audit();
	}
	for (unsigned i = 0; i < ORACLE_BLOCKS; i++)
		node_block_drop(node, oracle.blocks[i]);
	EXPECT_EQ(usage(0).free_frames, (uint64_t)ORACLE_FRAMES);
	EXPECT_EQ(usage(0).free_giants, (uint64_t)ORACLE_FRAMES / NODE_GIANT_FRAMES);
	expect_audit();
	leave();
}

/* ---- threads ---- */

static void *churn(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	struct node_block *blocks[8] = { NULL };

	for (unsigned round = 0; round < 3000; round++) {
		struct node_block **slot = &blocks[(unsigned)rand_r(&seed) % 8];

		if (*slot) {
			node_block_drop(node, *slot);
			*slot = NULL;
		} else if (node_block_create(node, 0, 1 + (unsigned)rand_r(&seed) % 9, false,
					     slot) != DRV_ERROR_NONE) {
			*slot = NULL;
		} else if (round % 8 == 0) {
			node_block_touch(node, *slot);
			EXPECT_EQ(*at(*slot, (*slot)->extents[0].frame), 0u);
			*at(*slot, (*slot)->extents[0].frame) = round + 1;
		}
	}
	for (unsigned i = 0; i < 8; i++)
		node_block_drop(node, blocks[i]);
	return NULL;
}

TEST(node_blocks, threads_side_by_side)
{
	unsigned seeds[4] = { 1, 2, 3, 4 };
	pthread_t threads[4];

	ASSERT_NO_FATAL(join(1, MIB(256), 100));
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, &seeds[i]);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(usage(0).free_frames, 100u);
	EXPECT_EQ(usage(0).own_frames, 0u);
	expect_audit();
	leave();
}

/* ---- leaving ---- */

/* 128 TiB of addresses, or the 2 TiB that ThreadSanitizer leaves, are not enough for as many
 * memberships that leave something behind. */
#ifdef __SANITIZE_THREAD__
#define LARGE GIB(64)
#else
#define LARGE GIB(2048)
#endif
TEST(node_blocks, leave_gives_all_back)
{
	for (unsigned round = 0; round < 40; round++) {
		struct node_block *block;

		ASSERT_NO_FATAL(join(2, LARGE, 31216));
		block = create(0, 100, false);
		EXPECT_EQ(*at(block, block->extents[0].frame), 0u);
		node_block_touch(node, block);
		*at(block, block->extents[0].frame) = 1;
		leave();
		free(block);
	}
	node_leave(NULL);
}

TEST(node_blocks, memory_fd_is_the_memory)
{
	struct node_block *block;
	uint64_t value = 0;
	uint64_t offset = 0;
	int fd;

	ASSERT_NO_FATAL(join(1, MIB(64), 0));
	block = create(0, 1, false);
	node_block_touch(node, block);
	*at(block, block->extents[0].frame) = 4711;
	fd = node_memory_fd(node, 0, &offset);
	offset += block->extents[0].frame * NODE_FRAME_BYTES;
	EXPECT_EQ(pread(fd, &value, sizeof(value), (off_t)offset), (ssize_t)sizeof(value));
	EXPECT_EQ(value, 4711u);
	EXPECT_EQ(node_memory_fd(node, 5, &offset), -1);
	EXPECT_EQ(close(fd), 0); /* as a program that closes all it finds */
	EXPECT_EQ(node_memory_fd(node, 0, &offset), -1);
	EXPECT_CONTAINS(npu_message(), "closed descriptors");
	node_block_drop(node, block);
	block = create(0, 1, false);
	EXPECT_EQ(*at(block, block->extents[0].frame), 0u);
	node_block_drop(node, block);
	leave();
}

TEST(node_blocks, host_room_is_known)
{
	EXPECT_GT(node_host_room_bytes(NODE_ROOM_MS), MIB(1));
	EXPECT_LT(node_host_room_bytes(NODE_ROOM_MS), GIB(1) << 20);
}
