/* SPDX-License-Identifier: Apache-2.0
 *
 * What queues do with copies: order, the time at which bytes arrive, errors, who may reach what.
 */
#include <stdlib.h>
#include <string.h>

#include "queue-rig.h"
#include "queue/queue.h"

SETUP(queue_order)
{
	rig_open();
}

TEARDOWN(queue_order)
{
	rig_close();
}

TEST(queue_order, copies_follow_each_other)
{
	struct rig_stream stream;
	uint64_t a = rig_map(0, 2 * MIB), b = rig_alloc(0, 2 * MIB);
	unsigned char *host = rig_pinned(2 * MIB), *back = rig_pinned(2 * MIB);

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	for (size_t i = 0; i < 2 * MIB; i++)
		host[i] = (unsigned char)(i * 7 + i / 4096);
	rig_copy(&stream, a, (uint64_t)host, 2 * MIB, QUIET);
	rig_sdma(&stream, b, a, 2 * MIB, QUIET);
	rig_copy(&stream, (uint64_t)back, b, 2 * MIB, QUIET);
	rig_finish(&stream);
	EXPECT_MEMEQ(back, host, 2 * MIB);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 4u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL), 4u);
	rig_stream_close(&stream);
}

/* The idle thread may come first where this thread is not run for a millisecond; not twenty times
 * in a row. */
TEST(queue_order, bytes_arrive_at_completion)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 64 * MIB);
	volatile unsigned char *host = rig_pinned(64 * MIB);
	bool seen_old = false;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 64 * MIB, 9, 64 * MIB), DRV_ERROR_NONE);
	for (int i = 0; i < 20 && !seen_old; i++) {
		host[0] = host[64 * MIB - 1] = 1;
		rig_copy(&stream, (uint64_t)host, a, 64 * MIB, QUIET);
		seen_old = host[0] == 1 && host[64 * MIB - 1] == 1;
		rig_finish(&stream);
		ASSERT_EQ(host[0], 9);
		ASSERT_EQ(host[64 * MIB - 1], 9);
	}
	EXPECT_TRUE(seen_old);
}

TEST(queue_order, a_copy_takes_time_and_its_report_says_when)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB), before = rig_now();
	struct stars_logic_cqe first, last;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_nop(&stream, REPORT);
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	first = rig_next(&stream);
	last = rig_next(&stream);
	EXPECT_EQ(first.task_id, 0);
	EXPECT_EQ(first.stream_id, stream.id);
	EXPECT_EQ(first.sqe_type, STARS_SQE_PLACE_HOLDER);
	EXPECT_EQ(last.task_id, 1);
	EXPECT_EQ(last.sq_id, stream.sq);
	EXPECT_EQ(last.sq_head, 1);
	EXPECT_EQ(last.error_type, 0);
	EXPECT_GE(first.timestamp, before / 1000);
	EXPECT_GE(rig_now() / 1000, last.timestamp);
	/* 64 MiB at less than 4 TB/s, and at more than 1 GB/s */
	EXPECT_GT(last.timestamp - first.timestamp, 64 * MIB / 4000);
	EXPECT_LT(last.timestamp - first.timestamp, 64 * MIB);
}

/* Polling the head costs little time a call, so the copy is not done at once; it is done in the
 * end. */
TEST(queue_order, polling_the_head_ends)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 4 * MIB), b = rig_alloc(0, 4 * MIB);
	unsigned polls = 0;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_sdma(&stream, b, a, 4 * MIB, QUIET);
	while (rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD) == 0 && polls < 10000000)
		polls++;
	EXPECT_LT(polls, 10000000u);
}

static void set_idle(uint64_t ns)
{
	struct bsim *bs = bsim_of(rig);

	bsim_lock(bs);
	bs->queues->idle_ns = ns;
	bsim_unlock(bs);
}

/* However slowly this thread sends: the model must not run between the two. */
TEST(queue_order, queues_run_side_by_side)
{
	struct rig_stream one, two;
	uint64_t a = rig_alloc(0, 32 * MIB), b = rig_alloc(1, 32 * MIB);
	void *host = rig_pinned(32 * MIB);
	struct stars_logic_cqe x, y;
	uint64_t begin;

	ASSERT_NO_FATAL(rig_stream_open(&one, 0, 64, 64));
	ASSERT_NO_FATAL(rig_stream_open(&two, 1, 64, 64));
	set_idle(UINT64_C(3600000000000));
	begin = rig_now() / 1000;
	rig_copy(&one, a, (uint64_t)host, 32 * MIB, REPORT);
	rig_copy(&two, b, (uint64_t)host, 32 * MIB, REPORT);
	set_idle(1000000);
	x = rig_next(&one);
	y = rig_next(&two);
	EXPECT_LT(y.timestamp - begin, (x.timestamp - begin) * 3 / 2);
}

/* The host's time stands far behind the work when it asks: the work did not wait for it. */
TEST(queue_order, work_does_not_wait_for_the_host)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 16 * MIB), b = rig_alloc(0, 16 * MIB), first;
	struct stars_logic_cqe cqe[4];

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	for (int i = 0; i < 4; i++)
		rig_sdma(&stream, b, a, 16 * MIB, REPORT);
	while (rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD) == 0)
		ASSERT_EQ(npu_call(rig, drvMemsetD8, (DVdeviceptr)cqe, sizeof(cqe), 0, sizeof(cqe)),
			  DRV_ERROR_NONE);
	rig_pinned(512 * MIB); /* some calls that take long */
	rig_alloc(0, 512 * MIB);
	for (int i = 0; i < 4; i++)
		cqe[i] = rig_next(&stream);
	first = cqe[1].timestamp - cqe[0].timestamp;
	EXPECT_NEAR(cqe[2].timestamp - cqe[1].timestamp, first, first * 0.2);
	EXPECT_NEAR(cqe[3].timestamp - cqe[2].timestamp, first, first * 0.2);
}

/* ---- errors ---- */

TEST(queue_order, fault_is_reported_and_the_queue_goes_on)
{
	struct rig_stream stream;
	uint64_t hole = rig_map_part(0, 4 * MIB, 2 * MIB), a = rig_alloc(0, 4 * MIB);
	struct stars_logic_cqe cqe;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_sdma(&stream, hole, a, 4 * MIB, QUIET); /* reported although nobody asked */
	rig_sdma(&stream, hole, a, 2 * MIB, REPORT);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.task_id, 0);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_EXCEPTION);
	EXPECT_EQ(cqe.error_code, (unsigned)TS_ERROR_SDMA_ERROR);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "stream ");
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "dst");
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "not mapped");
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 0u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 1u);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.task_id, 1);
	EXPECT_EQ(cqe.error_type, 0);
}

TEST(queue_order, the_first_error_is_the_one_that_is_told)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe[2];
	uint64_t a = rig_alloc(0, 2 * MIB), hole = rig_map_part(0, 4 * MIB, 2 * MIB) + 2 * MIB;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_copy(&stream, a, hole + 0x1000, 10, QUIET);
	rig_copy(&stream, a, hole + 0x2000, 10, QUIET);
	EXPECT_EQ(rig_recv(&stream, cqe, 2, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 2u);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage),
			npu_text("0x%llx", (unsigned long long)hole + 0x1000));
}

/* What is unmapped while the copy runs or waits. */
TEST(queue_order, unmapped_before_its_turn)
{
	struct rig_stream stream;
	uint64_t a = rig_map(0, 2 * MIB), b = rig_alloc(0, 64 * MIB), c = rig_alloc(0, 64 * MIB);
	struct stars_logic_cqe cqe;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_sdma(&stream, b, c, 64 * MIB, QUIET);
	rig_sdma(&stream, b, a, 2 * MIB, REPORT);
	ASSERT_EQ(npu_call(rig, halMemUnmap, (void *)a), DRV_ERROR_NONE);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "src");
}

TEST(queue_order, entries_that_are_not_understood)
{
	static const uint8_t types[] = { 0, 1, 12, 20, 21, 63 };
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	for (size_t i = 0; i < sizeof(types); i++) {
		struct stars_value_wait_sqe sqe = { .header.type = (uint8_t)(types[i] & 63) };
		struct stars_logic_cqe cqe;

		ASSERT_EQ(rig_send(&stream, &sqe, QUIET, 0), DRV_ERROR_NONE);
		cqe = rig_next(&stream);
		EXPECT_EQ(cqe.error_type, STARS_ERROR_SQE);
		EXPECT_EQ(cqe.error_code, (unsigned)TS_ERROR_TASK_SQE_ERROR);
		EXPECT_EQ(cqe.sqe_type, types[i]);
		EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "modelled");
	}
	rig_finish(&stream);
}

TEST(queue_order, copies_that_are_not_plain)
{
	struct rig_stream stream;
	struct stars_sdma_sqe reduce = { .header.type = STARS_SQE_SDMA, .control = 0x71 };
	struct stars_pcie_dma_sqe converted = { .header.type = STARS_SQE_PCIE_DMA, .convert = 1 };

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(rig_send(&stream, &reduce, QUIET, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&stream).error_type, STARS_ERROR_SQE);
	ASSERT_EQ(rig_send(&stream, &converted, QUIET, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&stream).error_type, STARS_ERROR_SQE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "descriptors");
}

/* ---- two devices ---- */

TEST(queue_order, another_device_needs_peer_access)
{
	struct rig_stream stream;
	uint64_t a = rig_map(0, 2 * MIB), b = rig_map(1, 2 * MIB);
	struct stars_logic_cqe cqe;
	unsigned char found = 0;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 1, 64, 64));
	ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 2 * MIB, 21, 2 * MIB), DRV_ERROR_NONE);
	rig_sdma(&stream, b, a, 2 * MIB, REPORT);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "aclrtDeviceEnablePeerAccess(0");
	rig_peer(1, 0);
	rig_sdma(&stream, b, a, 2 * MIB, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)&found, 1, b + 2 * MIB - 1, 1),
		  DRV_ERROR_NONE);
	EXPECT_EQ(found, 21);
}

TEST(queue_order, program_memory_of_the_wrong_kind)
{
	static const char constant[4096] = "read only";
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 2 * MIB);
	struct stars_logic_cqe cqe;
	char *plain = strdup("pageable memory is copied too");

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_copy(&stream, a, (uint64_t)plain, strlen(plain), REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	rig_copy(&stream, (uint64_t)constant, a, 10, REPORT);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "no writable memory");
	rig_copy(&stream, a, 0x1000, 10, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "no readable memory");
	free(plain);
}
