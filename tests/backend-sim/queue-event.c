/* SPDX-License-Identifier: Apache-2.0
 *
 * Events, notifies and values: within a queue, across queues and devices, recorded by the host.
 */
#include <string.h>

#include "queue-rig.h"

enum { GEQ, EQ, AND, NOR };

static struct rig_stream one, two;

SETUP(queue_event)
{
	rig_open();
	RETURN_IF_FATAL();
	rig_stream_open(&one, 0, 64, 64);
	rig_stream_open(&two, 1, 64, 64);
}

TEARDOWN(queue_event)
{
	rig_close();
}

static bool is_blocked(const struct rig_stream *stream, uint32_t at)
{
	for (int i = 0; i < 10; i++)
		rig_now();
	return rig_query(stream, DRV_SQCQ_PROP_SQ_HEAD) == at;
}

TEST(queue_event, wait_is_over_when_the_other_queue_records)
{
	uint32_t event = rig_id(0, DRV_EVENT_ID);
	uint64_t a = rig_alloc(0, 16 * MIB), b = rig_alloc(0, 16 * MIB);
	struct stars_logic_cqe recorded, waited;
	struct rig_stream other;

	ASSERT_NO_FATAL(rig_stream_open(&other, 0, 64, 64));
	rig_event(&other, STARS_SQE_EVENT_WAIT, 0, event, 0, REPORT);
	EXPECT_TRUE(is_blocked(&other, 0));
	rig_sdma(&one, b, a, 16 * MIB, QUIET);
	rig_event(&one, STARS_SQE_EVENT_RECORD, 0, event, 0, REPORT);
	waited = rig_next(&other);
	recorded = rig_next(&one);
	EXPECT_EQ(waited.timestamp, recorded.timestamp);
	EXPECT_EQ(waited.error_type, 0);
	EXPECT_EQ(recorded.sqe_type, STARS_SQE_EVENT_RECORD);
	/* it stays recorded: a second wait passes */
	rig_event(&other, STARS_SQE_EVENT_WAIT, 0, event, 0, REPORT);
	EXPECT_EQ(rig_next(&other).error_type, 0);
	rig_stream_close(&other);
}

TEST(queue_event, host_records_and_resets)
{
	uint32_t event = rig_id(0, DRV_EVENT_ID);

	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	EXPECT_TRUE(is_blocked(&one, 0));
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_query(&one, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RESET, 0), DRV_ERROR_NONE);
	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	EXPECT_TRUE(is_blocked(&one, 1));
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_finish(&one);
}

TEST(queue_event, a_task_resets)
{
	uint32_t event = rig_id(0, DRV_EVENT_ID);
	struct stars_write_value_sqe reset = { .header.type = STARS_SQE_WRITE_VALUE,
					       .res7 = event,
					       .sub_type = 1 };

	rig_event(&one, STARS_SQE_EVENT_RECORD, 0, event, 0, QUIET);
	ASSERT_EQ(rig_send(&one, &reset, REPORT, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&one).error_type, 0);
	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	EXPECT_TRUE(is_blocked(&one, 2));
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_finish(&one);
}

TEST(queue_event, a_fresh_id_is_not_recorded)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	uint32_t event = rig_id(0, DRV_EVENT_ID), again = UINT32_MAX;

	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	in.resourceId = event;
	EXPECT_EQ(npu_call(rig, halResourceIdFree, 0, &in), DRV_ERROR_NONE);
	for (uint32_t i = 0; i < 65536 && again != event; i++) {
		again = rig_id(0, DRV_EVENT_ID);
		ASSERT_FALSE(harness_has_failed());
	}
	ASSERT_EQ(again, event);
	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	EXPECT_TRUE(is_blocked(&one, 0));
}

TEST(queue_event, freed_while_waited_for)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID,
					     .resourceId = rig_id(0, DRV_EVENT_ID) };
	struct stars_logic_cqe cqe;

	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, in.resourceId, 0, QUIET);
	EXPECT_EQ(npu_call(rig, halResourceIdFree, 0, &in), DRV_ERROR_NONE);
	cqe = rig_next(&one);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_SQE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "not in use");
}

/* Nobody records it: the task ends with an error, after 1 s of simulated time, whoever looks. */
TEST(queue_event, time_out)
{
	uint32_t event = rig_id(0, DRV_EVENT_ID);
	uint64_t before = rig_now();
	struct stars_logic_cqe cqe;

	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, event, 1, QUIET);
	cqe = rig_next(&one);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_TIMEOUT);
	EXPECT_EQ(cqe.error_code, (unsigned)TS_ERROR_TASK_TIMEOUT);
	EXPECT_GE(rig_now() - before, UINT64_C(990000000000));
	rig_finish(&one);
}

/* 27 * 2^64 ps and 9.8 ms. */
TEST(queue_event, time_out_of_years_is_none)
{
	struct stars_logic_cqe cqe;
	struct rig_stream stream;
	uint32_t count;

	rig_stream_open(&stream, 0, 16, 16);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 498062090, REPORT);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 50, &count), DRV_ERROR_WAIT_TIMEOUT);
	rig_stream_close(&stream);
}

TEST(queue_event, one_record_of_a_notify_frees_one_waiter)
{
	uint32_t notify = rig_id(0, DRV_NOTIFY_ID);
	struct stars_logic_cqe cqe;
	struct rig_stream three;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&three, 0, 64, 64));
	rig_event(&one, STARS_SQE_NOTIFY_WAIT, 0, notify, 0, REPORT);
	rig_event(&three, STARS_SQE_NOTIFY_WAIT, 0, notify, 0, REPORT);
	rig_event(&two, STARS_SQE_NOTIFY_RECORD, 0, notify, 0, QUIET);
	EXPECT_EQ(rig_next(&one).sqe_type, STARS_SQE_NOTIFY_WAIT);
	EXPECT_EQ(rig_recv(&three, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(rig_id_config(0, DRV_NOTIFY_ID, notify, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&three).error_type, 0);
	/* recorded before anybody waits: kept for one */
	rig_event(&two, STARS_SQE_NOTIFY_RECORD, 0, notify, 0, QUIET);
	rig_event(&one, STARS_SQE_NOTIFY_WAIT, 0, notify, 0, QUIET);
	rig_event(&one, STARS_SQE_NOTIFY_WAIT, 0, notify, 1, QUIET);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_TIMEOUT);
}

TEST(queue_event, reserved_bytes_of_a_record_mean_no_other_device)
{
	struct stars_event_sqe sqe = { .header.type = STARS_SQE_NOTIFY_RECORD, .res2 = 2 };

	sqe.event_id = (uint16_t)rig_id(0, DRV_NOTIFY_ID);
	ASSERT_EQ(rig_send(&one, &sqe, REPORT, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&one).error_type, 0);
	rig_event(&one, STARS_SQE_NOTIFY_WAIT, 0, sqe.event_id, 0, REPORT);
	EXPECT_EQ(rig_next(&one).error_type, 0);
}

/* As CANN's runtime records one of another process: by its register, and on its device. */
TEST(queue_event, notify_of_another_device_by_its_register)
{
	struct stars_write_value_sqe sqe = { .header.type = STARS_SQE_WRITE_VALUE,
					     .res3 = 1,
					     .sub_type = STARS_WRITE_NOTIFY,
					     .value = { 1 } };
	struct drvNotifyInfo info = { 0 };
	struct rig_stream there;

	ASSERT_NO_FATAL(rig_stream_open(&there, 1, 64, 64));
	while (info.notifyId < 600) /* in the second table */
		info.notifyId = rig_id(1, DRV_NOTIFY_ID);
	ASSERT_EQ(npu_call(rig, drvNotifyIdAddrOffset, 1, &info), DRV_ERROR_NONE);
	sqe.write_addr_low = (uint32_t)(0x500000 + info.devAddrOffset);
	rig_event(&there, STARS_SQE_NOTIFY_WAIT, 1, info.notifyId, 0, REPORT);
	EXPECT_TRUE(is_blocked(&there, 0));
	ASSERT_EQ(rig_send(&one, &sqe, REPORT, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&one).error_type, 0);
	EXPECT_EQ(rig_next(&there).error_type, 0);
	sqe.res3 = 0; /* device 0 has no notify of that id */
	ASSERT_EQ(rig_send(&one, &sqe, REPORT, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_SQE);
	rig_stream_close(&there);
}

TEST(queue_event, ids_of_another_kind_or_device)
{
	uint32_t notify = rig_id(0, DRV_NOTIFY_ID);
	struct stars_logic_cqe cqe;

	rig_event(&one, STARS_SQE_EVENT_WAIT, 0, notify, 0, QUIET); /* no event has that id */
	cqe = rig_next(&one);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_SQE);
	rig_event(&two, STARS_SQE_NOTIFY_RECORD, 1, notify, 0, QUIET); /* nor has device 1 */
	EXPECT_EQ(rig_next(&two).error_type, STARS_ERROR_SQE);
	EXPECT_EQ(rig_id_config(0, DRV_STREAM_ID, one.id, DRV_ID_RECORD, 0), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, 65535, DRV_ID_RECORD, 0), DRV_ERROR_PARA_ERROR);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "event 65535 of device 0");
}

/* ---- values ---- */

static uint64_t peek(uint64_t va)
{
	uint64_t value = 0;

	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)&value, sizeof(value), va, sizeof(value)),
		  DRV_ERROR_NONE);
	return value;
}

TEST(queue_event, values_of_every_size)
{
	uint64_t a = rig_map(0, 2 * MIB);

	for (unsigned lg2 = 0; lg2 <= 5; lg2++) {
		ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 64, 0xee, 64), DRV_ERROR_NONE);
		rig_write(&one, a + 32, UINT64_C(0x1122334455667788), lg2, QUIET);
		rig_finish(&one);
		EXPECT_EQ(peek(a + 32),
			  lg2 >= 3 ? UINT64_C(0x1122334455667788)
				   : (UINT64_C(0x1122334455667788) &
				      ((UINT64_C(1) << (8 << lg2)) - 1)) |
					     (UINT64_C(0xeeeeeeeeeeeeeeee) << (8 << lg2)));
		EXPECT_EQ(peek(a + 24), UINT64_C(0xeeeeeeeeeeeeeeee));
		EXPECT_EQ(peek(a + 40), lg2 >= 4 ? 0 : UINT64_C(0xeeeeeeeeeeeeeeee));
	}
}

TEST(queue_event, value_addresses)
{
	uint64_t a = rig_map(0, 2 * MIB), far = rig_map(1, 2 * MIB);
	uint64_t *pinned = rig_pinned(4096), plain = 0;

	rig_write(&one, (uint64_t)pinned, 5, 3, QUIET);
	rig_finish(&one);
	EXPECT_EQ(*pinned, 5u);
	rig_write(&one, a + 4, 5, 3, QUIET);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_SQE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "multiple");
	rig_write(&one, a + 2 * MIB, 5, 3, QUIET);
	EXPECT_EQ(rig_next(&one).error_code, (unsigned)TS_ERROR_TASK_EXCEPTION);
	rig_write(&one, (uint64_t)&plain, 5, 3, QUIET);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "aclrtMallocHost");
	EXPECT_EQ(plain, 0u);
	rig_write(&one, far, 5, 3, QUIET);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_EXCEPTION);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "PeerAccess");
}

TEST(queue_event, wait_for_a_value_that_a_task_writes)
{
	uint64_t a = rig_alloc(0, 2 * MIB), big = rig_alloc(1, 16 * MIB),
		 other = rig_alloc(1, 16 * MIB);
	struct stars_logic_cqe waited, wrote;

	ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 4096, 0, 4096), DRV_ERROR_NONE);
	rig_peer(1, 0);
	rig_wait_value(&one, a, GEQ, 7, REPORT);
	EXPECT_TRUE(is_blocked(&one, 0));
	rig_write(&two, a, 6, 3, QUIET);
	EXPECT_TRUE(is_blocked(&one, 0));
	rig_sdma(&two, big, other, 16 * MIB, QUIET);
	rig_write(&two, a, 8, 3, REPORT);
	waited = rig_next(&one);
	wrote = rig_next(&two);
	EXPECT_EQ(waited.timestamp, wrote.timestamp);
	EXPECT_EQ(waited.error_type, 0);
}

TEST(queue_event, wait_for_a_value_that_copies_bring)
{
	uint64_t a = rig_alloc(0, 2 * MIB), value = 0xf0;

	ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 4096, 0, 4096), DRV_ERROR_NONE);
	rig_wait_value(&one, a + 8, AND, 0x10, QUIET);
	EXPECT_TRUE(is_blocked(&one, 0));
	ASSERT_EQ(npu_call(rig, drvMemcpy, a + 8, 8, (DVdeviceptr)&value, 8),
		  DRV_ERROR_NONE); /* synchronous */
	rig_finish(&one);
	uint64_t *pinned = rig_pinned(4096);

	*pinned = ~UINT64_C(0);
	rig_wait_value(&one, (uint64_t)pinned, NOR, 0, QUIET);
	EXPECT_TRUE(is_blocked(&one, 2));
	*pinned = 1; /* by the CPU: the next call sees it */
	rig_finish(&one);
	rig_wait_value(&one, (uint64_t)pinned, EQ, 1, QUIET);
	rig_finish(&one);
}

TEST(queue_event, the_value_goes_while_it_is_waited_for)
{
	uint64_t a = rig_map(0, 2 * MIB);

	rig_wait_value(&one, a, EQ, 7, QUIET);
	EXPECT_TRUE(is_blocked(&one, 0));
	ASSERT_EQ(npu_call(rig, halMemUnmap, (void *)a), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&one).error_type, STARS_ERROR_EXCEPTION);
}
