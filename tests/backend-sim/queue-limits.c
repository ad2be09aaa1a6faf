/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids, arguments, full queues, time-outs, ends.
 */
#include <string.h>

#include "queue-rig.h"

SETUP(queue_limits)
{
	rig_open();
}

TEARDOWN(queue_limits)
{
	rig_close();
}

/* ---- ids ---- */

static const struct id_case {
	const char *title;
	int type;
	uint32_t capacity;
	drvError_t code;
} id_cases[] = {
	{ "stream", DRV_STREAM_ID, 32768, DRV_ERROR_NO_STREAM_RESOURCES },
	{ "event", DRV_EVENT_ID, 65536, DRV_ERROR_NO_EVENT_RESOURCES },
	{ "model", DRV_MODEL_ID, 32768, DRV_ERROR_NO_MODEL_RESOURCES },
	{ "notify", DRV_NOTIFY_ID, 8192, DRV_ERROR_NO_NOTIFY_RESOURCES },
};

TEST_EACH(queue_limits, ids_run_out, id_cases, title)
{
	const struct id_case *c = param;
	struct halResourceIdInputInfo in = { .type = c->type };
	struct halResourceIdOutputInfo out;
	static unsigned char seen[65536];

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < c->capacity; i++) {
		ASSERT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, &out), DRV_ERROR_NONE);
		ASSERT_LT(out.resourceId, c->capacity);
		ASSERT_FALSE(seen[out.resourceId]++);
	}
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, &out), c->code);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), c->title);
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 1, &in, &out),
		  DRV_ERROR_NONE); /* each device has its own */
	in.resourceId = 77;
	EXPECT_EQ(npu_call(rig, halResourceIdFree, 0, &in), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halResourceIdFree, 0, &in), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, &out), DRV_ERROR_NONE);
	EXPECT_EQ(out.resourceId, 77u);
}

TEST(queue_limits, arguments_of_ids)
{
	struct halResourceIdInputInfo in = { .type = 4 };
	struct halResourceIdOutputInfo out;

	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
	in.type = DRV_EVENT_ID;
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, NULL), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, NULL, &out), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 2, &in, &out), DRV_ERROR_INVALID_DEVICE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "there are 2");
	in.tsId = 1;
	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
}

/* ---- queues ---- */

TEST(queue_limits, arguments_of_queues)
{
	uint32_t stream = rig_id(0, DRV_STREAM_ID);
	const struct halSqCqInputInfo good = {
		.type = DRV_NORMAL_TYPE, .sqeSize = 64, .sqeDepth = 4096, .info = { stream }
	};
	struct halSqCqInputInfo in = good;
	struct halSqCqOutputInfo out;

	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NONE);
	in.sqeDepth = 4097;
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "4096");
	in = good;
	in.sqeSize = 32;
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
	in = good;
	in.info[0] = stream + 1;
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_PARA_ERROR);
	in = good;
	in.type = 3;
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NOT_SUPPORT);
	in.type = DRV_CALLBACK_TYPE; /* whose reports have 32 bytes */
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
	in = (struct halSqCqInputInfo){ .type = DRV_LOGIC_TYPE, .cqeSize = 16, .cqeDepth = 16 };
	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(rig_id_config(0, DRV_STREAM_ID, stream, DRV_STREAM_BIND_LOGIC_CQ, 5),
		  DRV_ERROR_PARA_ERROR);
}

TEST(queue_limits, queries)
{
	struct halSqCqQueryInfo info = { .type = DRV_NORMAL_TYPE,
					 .prop = DRV_SQCQ_PROP_SQ_REG_BASE };
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	info.sqId = stream.sq;
	EXPECT_EQ(npu_call(rig, halSqCqQuery, 0, &info), DRV_ERROR_NONE);
	EXPECT_NE((uint64_t)info.value[0] << 32 | info.value[1], 0u);
	EXPECT_NE(info.value[2], 0u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_DEPTH), 64u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 1u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_CQE_STATUS), 0u);
	rig_nop(&stream, REPORT);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_CQE_STATUS), 1u);
	rig_next(&stream);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_CQE_STATUS), 0u);
	info.sqId = 999;
	EXPECT_EQ(npu_call(rig, halSqCqQuery, 0, &info), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "999");
}

TEST(queue_limits, sends_that_cannot_be)
{
	uint8_t entries[64 * 64] = { 0 };
	struct rig_stream stream;
	struct halTaskSendInfo info = { .type = DRV_NORMAL_TYPE,
					.sqe_addr = entries,
					.sqe_num = 64 };

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	info.sqId = stream.sq;
	EXPECT_EQ(npu_call(rig, halSqTaskSend, 0, &info), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "63");
	info.sqe_num = 0;
	EXPECT_EQ(npu_call(rig, halSqTaskSend, 0, &info), DRV_ERROR_INVALID_VALUE);
	info.sqe_num = 1;
	info.sqe_addr = NULL;
	EXPECT_EQ(npu_call(rig, halSqTaskSend, 0, &info), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(npu_call(rig, halSqTaskSend, 0, NULL), DRV_ERROR_INVALID_VALUE);
}

TEST(queue_limits, many_rounds_of_a_small_queue)
{
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 4));
	for (unsigned i = 0; i < 1000; i++) {
		struct stars_logic_cqe cqe;

		rig_nop(&stream, REPORT);
		cqe = rig_next(&stream);
		ASSERT_EQ(cqe.task_id, i);
		ASSERT_EQ(cqe.sq_head, i % 4);
	}
}

TEST(queue_limits, a_full_queue_takes_no_more)
{
	struct stars_event_sqe wait = { .header.type = STARS_SQE_EVENT_WAIT };
	struct rig_stream stream;
	uint64_t before;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	wait.event_id = (uint16_t)rig_id(0, DRV_EVENT_ID);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(rig_send(&stream, &wait, QUIET, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_send(&stream, &wait, QUIET, 0), DRV_ERROR_NO_RESOURCES);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "0 of 3 entries free");
	before = rig_now();
	EXPECT_EQ(rig_send(&stream, &wait, QUIET, 20), DRV_ERROR_NO_RESOURCES);
	EXPECT_GE(rig_now() - before, UINT64_C(20000000000));
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, wait.event_id, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_send(&stream, &wait, QUIET, 0), DRV_ERROR_NONE);
	rig_finish(&stream);
}

/* Room comes when the copies at the head are done: the call lets so much time pass. */
TEST(queue_limits, waiting_for_room)
{
	uint64_t a = rig_alloc(0, 32 * MIB), b = rig_alloc(0, 32 * MIB);
	struct stars_sdma_sqe copy = { .header.type = STARS_SQE_SDMA,
				       .length = 32 * MIB,
				       .src_addr_low = (uint32_t)a,
				       .src_addr_high = (uint32_t)(a >> 32),
				       .dst_addr_low = (uint32_t)b,
				       .dst_addr_high = (uint32_t)(b >> 32) };
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4, 8));
	for (int i = 0; i < 8; i++)
		ASSERT_EQ(rig_send(&stream, &copy, QUIET, 1000), DRV_ERROR_NONE);
	while (rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD) !=
	       rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL))
		;
	rig_finish(&stream);
}

/* ---- completions ---- */

TEST(queue_limits, a_full_completion_queue_stops_the_stream)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe[8];
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 3));
	for (int i = 0; i < 8; i++)
		rig_nop(&stream, REPORT);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3u);
	for (unsigned i = 0; i < 8; i++) {
		ASSERT_EQ(rig_recv(&stream, cqe, 1, 0, &count), DRV_ERROR_NONE);
		ASSERT_EQ(count, 1u);
		EXPECT_EQ(cqe[0].task_id, i);
	}
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 8u);
	EXPECT_EQ(rig_recv(&stream, cqe, 8, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
}

TEST(queue_limits, without_a_completion_queue_reports_are_dropped)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 4));
	EXPECT_EQ(rig_id_config(0, DRV_STREAM_ID, stream.id, DRV_STREAM_UNBIND_LOGIC_CQ, 0),
		  DRV_ERROR_NONE);
	for (int i = 0; i < 10; i++)
		rig_nop(&stream, REPORT);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 10u);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
}

/* Ids are used again; a stream's queue is not. */
TEST(queue_limits, a_stream_whose_completion_queue_is_gone_has_no_later_one_of_its_id)
{
	struct halSqCqInputInfo in = { .type = DRV_LOGIC_TYPE, .cqeSize = 32, .cqeDepth = 4 };
	struct halSqCqFreeInfo info = { .type = DRV_LOGIC_TYPE };
	struct halSqCqOutputInfo out = { 0 };
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 4));
	info.cqId = stream.cq;
	for (unsigned i = 0; i < 100000 && (i == 0 || out.cqId != stream.cq); i++) {
		ASSERT_EQ(npu_call(rig, halSqCqFree, 0, &info), DRV_ERROR_NONE);
		ASSERT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NONE);
		info.cqId = out.cqId;
	}
	ASSERT_EQ(out.cqId, stream.cq);
	rig_nop(&stream, REPORT);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(rig_id_config(0, DRV_STREAM_ID, stream.id, DRV_STREAM_BIND_LOGIC_CQ, stream.cq),
		  DRV_ERROR_NONE);
	rig_nop(&stream, REPORT);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 1u);
}

TEST(queue_limits, receive_times_out)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	uint64_t before;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 4));
	before = rig_now();
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 15, &count), DRV_ERROR_WAIT_TIMEOUT);
	EXPECT_EQ(count, 0u);
	EXPECT_GE(rig_now() - before, UINT64_C(15000000000));
	EXPECT_LT(rig_now() - before, UINT64_C(16000000000));
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, -2, &count), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(rig_recv(&stream, &cqe, 0, 0, &count), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(rig_recv(&stream, NULL, 1, 0, &count), DRV_ERROR_PARA_ERROR);
}

/* The time-out is simulated time: 64 MiB take longer than a millisecond of it, and far less in wall
 * time. */
TEST(queue_limits, receive_times_out_while_work_goes_on)
{
	uint64_t a = rig_alloc(0, 256 * MIB);
	void *host = rig_pinned(256 * MIB);
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	drvError_t code;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 4));
	for (unsigned tries = 0; tries < 50; tries++) { /* a busy machine may wake us too late */
		rig_copy(&stream, (uint64_t)host, a, 256 * MIB, REPORT);
		code = rig_recv(&stream, &cqe, 1, 1, &count);
		if (code != DRV_ERROR_NONE)
			break;
	}
	EXPECT_EQ(code, DRV_ERROR_WAIT_TIMEOUT);
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 10000, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 1u);
}

static drvError_t recv_task(const struct rig_stream *stream, uint16_t task,
			    struct stars_logic_cqe *out, uint32_t room, uint32_t *out_count)
{
	struct halReportRecvInfo info = { .type = DRV_LOGIC_TYPE,
					  .cqId = stream->cq,
					  .cqe_addr = (uint8_t *)out,
					  .cqe_num = room,
					  .stream_id = stream->id,
					  .task_id = task };
	drvError_t code = npu_call(rig, halCqReportRecv, stream->device, &info);

	*out_count = info.report_cqe_num;
	return code;
}

/* Tasks that somebody waits for: their reports are for who asks for them. */
TEST(queue_limits, reports_of_tasks_that_are_waited_for)
{
	struct stars_event_sqe waited = { .header = { .type = STARS_SQE_PLACE_HOLDER,
						      .stream_id = STARS_SYNC_TASK_FLAG } };
	struct stars_logic_cqe cqe[8];
	struct rig_stream stream;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	rig_nop(&stream, REPORT);                                         /* 0 */
	ASSERT_EQ(rig_send(&stream, &waited, REPORT, 0), DRV_ERROR_NONE); /* 1 */
	rig_nop(&stream, REPORT);                                         /* 2 */
	waited.header.stream_id = STARS_SYNC_TASK_FLAG;
	ASSERT_EQ(rig_send(&stream, &waited, REPORT, 0), DRV_ERROR_NONE); /* 3 */
	EXPECT_EQ(rig_recv(&stream, cqe, 8, 0, &count), DRV_ERROR_NONE);
	ASSERT_EQ(count, 1u);
	EXPECT_EQ(cqe[0].task_id, 0);
	EXPECT_EQ(rig_recv(&stream, cqe, 8, 0, &count), DRV_ERROR_NONE);
	ASSERT_EQ(count, 1u);
	EXPECT_EQ(cqe[0].task_id, 2);
	EXPECT_EQ(rig_recv(&stream, cqe, 8, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(recv_task(&stream, 3, cqe, 8, &count), DRV_ERROR_NONE);
	ASSERT_EQ(count, 1u);
	EXPECT_EQ(cqe[0].task_id, 3);
	EXPECT_EQ(cqe[0].stream_id, stream.id);
	EXPECT_EQ(cqe[0].flags, STARS_CQE_FLAG_MATCH);
	EXPECT_EQ(recv_task(&stream, 1, cqe, 8, &count), DRV_ERROR_NONE);
	ASSERT_EQ(count, 1u);
	EXPECT_EQ(cqe[0].task_id, 1);
}

/* ---- ends ---- */

TEST(queue_limits, a_queue_ends_with_work_under_way)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct rig_stream stream, other;
	unsigned char found = 0;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	ASSERT_NO_FATAL(rig_stream_open(&other, 0, 16, 16));
	ASSERT_EQ(npu_call(rig, drvMemsetD8, a, 64 * MIB, 4, 64 * MIB), DRV_ERROR_NONE);
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	rig_sdma(&stream, a, b, 64 * MIB, REPORT);
	rig_stream_close(&stream);
	rig_finish(&other);
	rig_sdma(&other, b, a, 64, QUIET); /* behind the first on the same engine */
	rig_finish(&other);
	ASSERT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)&found, 1, b + 64 * MIB - 1, 1),
		  DRV_ERROR_NONE);
	EXPECT_EQ(found, 4);
}

TEST(queue_limits, the_driver_ends_with_work_under_way)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 0, QUIET);
	rig_end();
	rig_open();
	RETURN_IF_FATAL();
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	rig_finish(&stream);
}

TEST(queue_limits, a_device_ends_with_work_under_way)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 0, QUIET);
	rig_close();
	rig_open();
	RETURN_IF_FATAL();
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	rig_finish(&stream);
}
