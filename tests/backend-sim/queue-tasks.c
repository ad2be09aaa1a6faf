/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries and queues that CANN's runtime alone uses: the error ring and the head behind a failed
 * task, condition code, callback queues, and copies of rows by descriptors. Layouts and order of
 * calls are those of its v8.5.0 and v9.1.0.
 */
#include <pthread.h>
#include <string.h>

#include "queue-rig.h"

static uint64_t hole; /* reserved, and nothing is mapped there */

static void open_rig(void)
{
	ASSERT_NO_FATAL(rig_open());
	hole = rig_map_part(0, 4 * MIB, 2 * MIB) + 2 * MIB;
}

/* ---- failed tasks ---- */

SETUP(failed)
{
	open_rig();
}

TEARDOWN(failed)
{
	rig_close();
}

TEST(failed, head_stays_until_the_status_is_asked)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	rig_nop(&stream, REPORT);
	rig_sdma(&stream, hole, hole + 4096, 64, QUIET);
	rig_nop(&stream, REPORT);
	rig_sdma(&stream, hole, hole + 4096, 64, QUIET);
	rig_nop(&stream, QUIET);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL), 5u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	cqe = rig_next(&stream);
	EXPECT_NE(cqe.error_type, 0);
	EXPECT_EQ(cqe.error_code, (uint32_t)TS_ERROR_SDMA_ERROR);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_NE(rig_next(&stream).error_type, 0);
	/* Who has taken it has not noted it yet, and another thread may be asking for the head. */
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 0u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 0u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_STATUS), 1u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 5u);
	rig_stream_close(&stream);
}

#define RING_ELEMENTS 3u

static uint64_t ring_open(struct rig_stream *stream, uint64_t ring)
{
	struct stars_error_ring_sqe sqe = { .header = { .type = STARS_SQE_PLACE_HOLDER,
							.sub_type = STARS_TASK_ERROR_RING },
					    .elements = RING_ELEMENTS };
	uint64_t bytes = 1;

	EXPECT_EQ(npu_call(rig, npusimPhysical, 0, ring, &sqe.address, &bytes), DRV_ERROR_NONE);
	EXPECT_EQ(rig_send(stream, &sqe, QUIET, 0), DRV_ERROR_NONE);
	return sqe.address;
}

static struct stars_error_ring ring_head(uint64_t ring)
{
	struct stars_error_ring head;

	EXPECT_EQ(npu_call(rig, drvMemcpy, (uint64_t)&head, sizeof(head), ring, sizeof(head)),
		  DRV_ERROR_NONE);
	return head;
}

static struct stars_error_element ring_element(uint64_t ring, uint32_t index)
{
	struct stars_error_element element;
	uint64_t at = ring + sizeof(struct stars_error_ring) + index * STARS_ERROR_ELEMENT_BYTES;

	EXPECT_EQ(
		npu_call(rig, drvMemcpy, (uint64_t)&element, sizeof(element), at, sizeof(element)),
		DRV_ERROR_NONE);
	return element;
}

/* Ids come back when all others were taken: what is left of an old queue is not the new one's. */
TEST(failed, head_of_a_new_queue_of_an_old_id)
{
	struct halSqCqFreeInfo end = { .type = DRV_NORMAL_TYPE };
	struct halSqCqInputInfo in = {
		.type = DRV_NORMAL_TYPE, .sqeSize = 64, .cqeSize = 16, .sqeDepth = 16
	};
	struct halSqCqOutputInfo out = { 0 };
	struct stars_logic_cqe cqe;
	struct rig_stream stream;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 64));
	rig_sdma(&stream, hole, hole, 4096, QUIET);
	rig_nop(&stream, QUIET);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 0u);
	in.info[0] = stream.id;
	end.sqId = stream.sq;
	do {
		ASSERT_EQ(npu_call(rig, halSqCqFree, 0, &end), DRV_ERROR_NONE);
		ASSERT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NONE);
		end.sqId = out.sqId;
	} while (out.sqId != stream.sq);
	rig_nop(&stream, QUIET);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	ASSERT_EQ(rig_recv(&stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 1u); /* the old one's */
	EXPECT_NE(cqe.error_type, 0);
	rig_stream_close(&stream);
}

TEST(failed, tasks_are_told_in_the_error_ring)
{
	struct stars_event_sqe unknown = { .header.type = 15 };
	struct stars_error_ring_sqe end = { .header = { .type = STARS_SQE_PLACE_HOLDER,
							.sub_type = STARS_TASK_ERROR_RING },
					    .end = 1 };
	struct rig_stream stream;
	struct stars_error_ring head;
	struct stars_error_element element;
	uint16_t copy, bad;
	uint32_t read_to = 2;
	uint64_t ring = rig_alloc(0, 2 * MIB);

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(npu_call(rig, drvMemsetD8, ring, 2 * MIB, 0x77, 2 * MIB), DRV_ERROR_NONE);
	ring_open(&stream, ring);
	head = ring_head(ring);
	EXPECT_EQ(head.magic, STARS_ERROR_RING_MAGIC);
	EXPECT_EQ(head.head, 0u);
	EXPECT_EQ(head.tail, 0u);
	EXPECT_EQ(head.elements, RING_ELEMENTS);
	EXPECT_EQ(head.element_bytes, STARS_ERROR_ELEMENT_BYTES);
	/* With the host: the runtime does not look for an element. */
	rig_copy(&stream, hole, hole, 64, REPORT);
	EXPECT_EQ(ring_head(ring).tail, 0u);
	copy = rig_sdma(&stream, hole, hole + 4096, 64, QUIET);
	bad = stream.tasks;
	ASSERT_EQ(rig_send(&stream, &unknown, QUIET, 0), DRV_ERROR_NONE);
	EXPECT_EQ(ring_head(ring).tail, 2u);
	element = ring_element(ring, 0);
	EXPECT_EQ(element.kind, (uint32_t)STARS_RING_SDMA);
	EXPECT_EQ(element.about[8], stream.id);
	EXPECT_EQ(element.about[9], copy);
	element = ring_element(ring, 1);
	EXPECT_EQ(element.kind, (uint32_t)STARS_RING_SQE);
	EXPECT_EQ(element.about[0], stream.id);
	EXPECT_EQ(element.about[3], bad);
	EXPECT_EQ(element.about[8] & 0x3f, 15);
	/* It is full; then it is read. */
	rig_sdma(&stream, hole, hole + 4096, 64, QUIET);
	EXPECT_EQ(ring_head(ring).tail, 2u);
	ASSERT_EQ(npu_call(rig, drvMemcpy, ring + 4, 4, (uint64_t)&read_to, 4), DRV_ERROR_NONE);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 1, QUIET);
	for (int reports = 0; reports < 5; reports++)
		EXPECT_NE(rig_next(&stream).error_type, 0);
	EXPECT_EQ(ring_head(ring).tail, 0u);
	element = ring_element(ring, 2);
	EXPECT_EQ(element.kind, (uint32_t)STARS_RING_WAIT);
	EXPECT_EQ(element.about[0], STARS_SQE_EVENT_WAIT);
	EXPECT_EQ(element.about[1], stream.id);
	EXPECT_EQ(element.about[3], stream.tasks - 1);
	EXPECT_EQ(element.about[10], 1u);
	ASSERT_EQ(rig_send(&stream, &end, QUIET, 0), DRV_ERROR_NONE);
	rig_sdma(&stream, hole, hole + 4096, 64, QUIET);
	EXPECT_EQ(ring_head(ring).tail, 0u);
	rig_stream_close(&stream);
}

/* ---- condition code ---- */

SETUP(condition)
{
	open_rig();
}

TEARDOWN(condition)
{
	rig_close();
}

/* Instructions as the runtime encodes them. */
struct code {
	uint32_t words[64];
	unsigned count;
};

static void put(struct code *code, uint32_t word)
{
	code->words[code->count++] = word;
}

static void put_immediate(struct code *code, unsigned from, unsigned to, uint32_t value)
{
	put(code, 0x13 | to << 7 | from << 15 | value << 20);
}

static void put_high(struct code *code, unsigned to, uint64_t value)
{
	put(code, 0x5b | to << 7 | (uint32_t)(value >> 49) << 17);
}

static void put_low(struct code *code, unsigned to, uint64_t value)
{
	put(code, 0x5b | to << 7 | 1u << 12 | (uint32_t)(value >> 32 & 0x1ffff) << 15);
	put(code, (uint32_t)value);
}

static void put_value(struct code *code, unsigned to, uint64_t value)
{
	put_high(code, to, value);
	put_low(code, to, value);
}

static void put_branch(struct code *code, unsigned how, unsigned a, unsigned b, unsigned target)
{
	put_value(code, 1, target >> 4);
	put(code, 0x73 | 1u << 12 | 1u << 15 | 3u << 20); /* jump_pc = r1 */
	put(code, 0x63 | (target & 15) << 7 | how << 12 | a << 15 | b << 20);
}

enum { LOAD_AT = 7, GOTO_AT = 31, END_AT = 33 };

/* ConstructMemWaitValueInstr2: load, combine with one value, compare with the other; 15 times; then
 * back to entry `head` of queue `sq`. */
static struct code wait_code(uint64_t va, unsigned how, uint64_t value, uint32_t sq, uint32_t head)
{
	static const unsigned branch[] = { 5, 0, 1, 1 }, reverse[] = { 4, 1, 0, 0 },
			      combine[] = { 6, 6, 7, 6 };
	uint64_t with = how < 2 ? 0 : value, wanted = how < 2 ? value : how == 2 ? 0 : UINT64_MAX;
	struct code code = { .count = 0 };

	put_immediate(&code, 0, 3, 0);
	put_value(&code, 5, wanted);
	put_immediate(&code, 0, 4, 0);
	put_low(&code, 4, 15);
	EXPECT_EQ(code.count, (unsigned)LOAD_AT);
	put(&code, 0x07 | 2u << 7 | 3u << 12 | (uint32_t)(va >> 32) << 15);
	put(&code, (uint32_t)va);
	put_value(&code, 1, with);
	put(&code, 0x33 | 2u << 7 | combine[how] << 12 | 2u << 15 | 1u << 20);
	put_branch(&code, branch[how], 2, 5, END_AT);
	put_immediate(&code, 3, 3, 1);
	put_branch(&code, 5, 3, 4, GOTO_AT);
	put_immediate(&code, 0, 0, 0);
	put_immediate(&code, 0, 0, 0);
	put_branch(&code, reverse[how], 2, 5, LOAD_AT);
	EXPECT_EQ(code.count, (unsigned)GOTO_AT);
	put(&code, 0x2b | 5u << 7);
	put(&code, sq | head << 16);
	put_immediate(&code, 0, 0, 0);
	return code;
}

/* An entry that calls code at va. */
static void send_condition(struct rig_stream *stream, uint64_t va, unsigned words)
{
	struct {
		struct stars_sqe_header header;
		uint32_t res[2], code[12];
	} sqe = { .header.type = STARS_SQE_COND, .res[1] = 0x80fe0000 };
	struct code call = { .count = 0 };

	put_value(&call, 1, va);
	put_value(&call, 2, words);
	put(&call, 0x6b | 1u << 15 | 2u << 20);
	while (call.count < 12)
		put_immediate(&call, 0, 0, 0);
	memcpy(sqe.code, call.words, sizeof(sqe.code));
	EXPECT_EQ(rig_send(stream, &sqe, REPORT, 0), DRV_ERROR_NONE);
}

static void put_code(uint64_t va, const struct code *code)
{
	ASSERT_EQ(npu_call(rig, drvMemcpy, va, sizeof(code->words), (uint64_t)code->words,
			   sizeof(code->words)),
		  DRV_ERROR_NONE);
}

static void set_value(uint64_t va, uint64_t value)
{
	ASSERT_EQ(npu_call(rig, drvMemcpy, va, 8, (uint64_t)&value, 8), DRV_ERROR_NONE);
}

static const struct wait_case {
	const char *name;
	uint64_t value, before, after;
} waits[] = {
	{ "at_least", 5, 4, 9 },
	{ "equal", UINT64_C(0xfedcba9876543210), 4, UINT64_C(0xfedcba9876543210) },
	{ "and", 6, 9, 2 },
	{ "nor", ~UINT64_C(8), 8, 1 },
};

TEST_EACH(condition, value_wait, waits, name)
{
	const struct wait_case *row = param;
	unsigned how = (unsigned)(row - waits);
	uint64_t memory = rig_alloc(0, 2 * MIB), flag = memory + 4096;
	struct rig_stream stream;
	struct code code;
	uint32_t first;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 8, 8));
	for (int round = 0; round < 9; round++) { /* round the end of the ring */
		set_value(memory, row->before);
		first = rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL);
		code = wait_code(memory, how, row->value, stream.sq, first);
		put_code(memory + 8192, &code);
		rig_write(&stream, flag, 0, 3, QUIET);
		send_condition(&stream, memory + 8192, code.count);
		EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), (first + 1) % 8);
		set_value(memory + 64, row->after); /* another one */
		EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), (first + 1) % 8);
		set_value(memory, row->after);
		EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), (first + 2) % 8);
		EXPECT_EQ(rig_next(&stream).error_type, 0);
	}
	rig_stream_close(&stream);
}

/* v9.1.0's code goes on where v8.5.0's ends: reads the tail of its queue from a register until
 * entry `last` has been sent, then skips it. */
static void put_skip(struct code *code, const struct rig_stream *stream, uint32_t last,
		     uint32_t next)
{
	struct halSqCqQueryInfo info = { .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .prop = DRV_SQCQ_PROP_SQ_REG_BASE };
	unsigned again = code->count;

	ASSERT_EQ(npu_call(rig, halSqCqQuery, stream->device, &info), DRV_ERROR_NONE);
	put(code, 0x07 | 2u << 7 | 3u << 12 | info.value[0] << 15);
	put(code, info.value[1] + 8);
	put_value(code, 3, last);
	put_branch(code, 0, 2, 3, again);
	put(code, 0x2b | 5u << 7);
	put(code, stream->sq | next << 16);
}

TEST(condition, value_wait_of_four_entries)
{
	uint64_t memory = rig_alloc(0, 2 * MIB), flag = memory + 4096;
	struct rig_stream stream;
	struct code code;
	uint32_t first;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 8, 8));
	for (int round = 0; round < 9; round++) { /* round the end of the ring */
		set_value(memory, 4);
		first = rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL);
		code = wait_code(memory, 0, 5, stream.sq, (first + 1) % 8);
		ASSERT_NO_FATAL(put_skip(&code, &stream, (first + 3) % 8, (first + 4) % 8));
		put_code(memory + 8192, &code);
		rig_nop(&stream, QUIET);
		rig_write(&stream, flag, 0, 3, QUIET);
		send_condition(&stream, memory + 8192, code.count);
		rig_nop(&stream, QUIET);
		EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), (first + 2) % 8);
		set_value(memory, 5);
		EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), (first + 4) % 8);
		EXPECT_EQ(rig_next(&stream).error_type, 0);
	}
	rig_stream_close(&stream);
}

static void expect_failure(struct rig_stream *stream, const char *words)
{
	struct stars_logic_cqe cqe = rig_next(stream);

	EXPECT_NE(cqe.error_type, 0);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), words);
}

TEST(condition, skips_no_work)
{
	uint64_t memory = rig_alloc(0, 2 * MIB);
	struct rig_stream stream;
	struct code code;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	code = wait_code(memory, 0, 5, stream.sq, 0);
	ASSERT_NO_FATAL(put_skip(&code, &stream, 1, 2));
	set_value(memory, 4);
	put_code(memory + 8192, &code);
	send_condition(&stream, memory + 8192, code.count);
	rig_write(&stream, memory + 4096, 1, 3, QUIET);
	set_value(memory, 5);
	expect_failure(&stream, "goes to entry 2");
	rig_finish(&stream);
	rig_stream_close(&stream);
}

TEST(condition, what_it_cannot_be)
{
	uint64_t memory = rig_alloc(0, 2 * MIB);
	struct code code = { .words = { 0x7b }, .count = 1 }; /* LOOP */
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	put_code(memory, &code);
	send_condition(&stream, memory, 1);
	expect_failure(&stream, "instruction 0x0000007b");
	code = (struct code){ .words = { 0x2b, stream.sq | 40u << 16 }, .count = 2 };
	put_code(memory, &code);
	send_condition(&stream, memory, 2);
	expect_failure(&stream, "goes to entry 40");
	code = (struct code){ .words = { 0x63 }, .count = 1 }; /* to itself, for ever */
	put_code(memory, &code);
	send_condition(&stream, memory, 1);
	expect_failure(&stream, "instruction 0x00000063");
	send_condition(&stream, hole, 4);
	expect_failure(&stream, "is not mapped");
	code = wait_code(hole, 0, 1, stream.sq, 4);
	put_code(memory, &code);
	send_condition(&stream, memory, code.count);
	expect_failure(&stream, "is not mapped");
	rig_finish(&stream);
	rig_stream_close(&stream);
}

/* ---- callback queues ---- */

SETUP(callback)
{
	open_rig();
}

TEARDOWN(callback)
{
	rig_close();
}

static uint32_t queue_open(uint32_t group, uint32_t depth)
{
	struct halSqCqInputInfo in = { .type = DRV_CALLBACK_TYPE,
				       .sqeSize = sizeof(struct stars_callback_command),
				       .cqeSize = sizeof(struct stars_callback_cqe),
				       .sqeDepth = 1,
				       .cqeDepth = depth,
				       .grpId = group };
	struct halSqCqOutputInfo out = { 0 };

	EXPECT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NONE);
	return out.cqId;
}

static drvError_t queue_close(uint32_t id)
{
	struct halSqCqFreeInfo info = { .type = DRV_CALLBACK_TYPE, .sqId = id, .cqId = id };

	return npu_call(rig, halSqCqFree, 0, &info);
}

static void send_callback(struct rig_stream *stream, uint32_t queue, uint64_t data, bool block,
			  uint32_t event)
{
	struct stars_callback_sqe sqe = { .header.type = STARS_SQE_AICPU,
					  .cq_id = (uint16_t)queue,
					  .stream_id = (uint16_t)stream->id,
					  .event_id = (uint16_t)event,
					  .is_block = block,
					  .task_id = stream->tasks,
					  .function = UINT64_C(0x7f0123456789),
					  .data = data,
					  .topic = STARS_TOPIC_CALLBACK << 12 };

	EXPECT_EQ(rig_send(stream, &sqe, REPORT, 0), DRV_ERROR_NONE);
}

static drvError_t wait_for_report(uint32_t group, int32_t timeout_ms, uint64_t bits[16])
{
	struct halReportInfoInput in = { .type = DRV_CALLBACK_TYPE,
					 .grpId = group,
					 .timeout = timeout_ms };
	struct halReportInfoOutput out = { .cqIdBitmap = bits, .cqIdBitmapSize = 16 };

	return npu_call(rig, halCqReportIrqWait, 0, &in, &out);
}

/* The report of the queue, which is released. */
static struct stars_callback_cqe take_report(uint32_t queue)
{
	struct halReportGetInput in = { .type = DRV_CALLBACK_TYPE, .cqId = queue };
	struct halReportGetOutput out = { 0 };
	struct halReportReleaseInfo release = { .type = DRV_CALLBACK_TYPE,
						.cqId = queue,
						.count = 2 };
	struct stars_callback_cqe report = { 0 };

	EXPECT_EQ(npu_call(rig, halCqReportGet, 0, &in, &out), DRV_ERROR_NONE);
	EXPECT_EQ(out.count, 1u);
	if (out.count == 1)
		memcpy(&report, out.reportPtr, sizeof(report));
	EXPECT_EQ(npu_call(rig, halReportRelease, 0, &release), DRV_ERROR_INVALID_VALUE);
	release.count = 1;
	EXPECT_EQ(npu_call(rig, halReportRelease, 0, &release), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halCqReportGet, 0, &in, &out), DRV_ERROR_NONE);
	EXPECT_EQ(out.count, 0u);
	return report;
}

static drvError_t send_command(uint32_t queue, int type, uint32_t event)
{
	struct halSqMemGetInput in = { .type = DRV_CALLBACK_TYPE, .sqId = queue, .cmdCount = 1 };
	struct halSqMemGetOutput out = { 0 };
	struct halSqMsgInfo info = { .type = DRV_CALLBACK_TYPE, .sqId = queue, .cmdCount = 1 };
	struct stars_callback_command command = { .type = (uint8_t)type,
						  .event_id = (uint16_t)event };

	EXPECT_EQ(npu_call(rig, halSqMemGet, 0, &in, &out), DRV_ERROR_NONE);
	EXPECT_EQ(out.cmdCount, 1u);
	memcpy((void *)out.cmdPtr, &command, sizeof(command));
	return npu_call(rig, halSqMsgSend, 0, &info);
}

TEST(callback, blocking_stops_the_stream_until_the_function_has_returned)
{
	uint32_t queue = queue_open(3, 16), event = rig_id(0, DRV_EVENT_ID);
	struct stars_callback_cqe report;
	struct rig_stream stream;
	uint64_t bits[16];

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	send_callback(&stream, queue, 42, true, event);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	rig_nop(&stream, REPORT);
	EXPECT_EQ(wait_for_report(4, 1, bits), DRV_ERROR_WAIT_TIMEOUT); /* another group */
	ASSERT_EQ(wait_for_report(3, -1, bits), DRV_ERROR_NONE);
	EXPECT_EQ(bits[queue / 64], UINT64_C(1) << queue % 64);
	report = take_report(queue);
	EXPECT_EQ(report.phase >> 4, queue);
	EXPECT_EQ(report.stream_id, stream.id);
	EXPECT_EQ(report.task_id, 0u);
	EXPECT_EQ(report.is_block, 1u);
	EXPECT_EQ(report.event_id, event);
	EXPECT_EQ(report.function, UINT64_C(0x7f0123456789));
	EXPECT_EQ(report.data, 42u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 1u);
	EXPECT_EQ(send_command(queue, 7, event), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(send_command(queue, STARS_COMMAND_RECORD, event + 1), DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(send_command(queue, STARS_COMMAND_RECORD, event), DRV_ERROR_NONE);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3u);
	rig_stream_close(&stream);
	EXPECT_EQ(queue_close(queue), DRV_ERROR_NONE);
	EXPECT_EQ(queue_close(queue), DRV_ERROR_PARA_ERROR);
}

TEST(callback, queue_without_room_stops_its_streams)
{
	uint32_t queue = queue_open(0, 2), other = queue_open(0, 2);
	struct rig_stream stream;
	uint64_t bits[16];

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	for (uint64_t i = 0; i < 6; i++)
		send_callback(&stream, i == 1 ? other : queue, i, false, 0);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3u);
	for (uint64_t i = 0; i < 6; i++) {
		ASSERT_EQ(wait_for_report(0, 0, bits), DRV_ERROR_NONE);
		EXPECT_EQ(take_report(i == 1 ? other : queue).data, i);
	}
	EXPECT_EQ(wait_for_report(0, 0, bits), DRV_ERROR_WAIT_TIMEOUT);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 6u);
	/* A queue that goes lets its streams go on, and its reports go with it. */
	for (uint64_t i = 0; i < 3; i++)
		send_callback(&stream, queue, i, false, 0);
	EXPECT_EQ(queue_close(queue), DRV_ERROR_NONE);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_TAIL), 9u);
	EXPECT_EQ(wait_for_report(0, 0, bits), DRV_ERROR_WAIT_TIMEOUT);
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_NE(rig_next(&stream).error_type, 0); /* no such queue any more */
	rig_stream_close(&stream);
}

static void *call_when_told(void *arg)
{
	uint64_t bits[16];

	*(drvError_t *)arg = wait_for_report(9, -1, bits);
	return NULL;
}

TEST(callback, thread_waits_for_another_threads_entry)
{
	uint32_t queue = queue_open(9, 2);
	struct rig_stream stream;
	drvError_t code = -1;
	pthread_t thread;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(pthread_create(&thread, NULL, call_when_told, &code), 0);
	send_callback(&stream, queue, 1, false, 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(code, DRV_ERROR_NONE);
	EXPECT_EQ(take_report(queue).data, 1u);
	rig_stream_close(&stream);
}

TEST(callback, kernels_are_refused)
{
	struct stars_callback_sqe sqe = { .header.type = STARS_SQE_AICPU, .topic = 5u << 12 };
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(rig_send(&stream, &sqe, REPORT, 0), DRV_ERROR_NONE);
	expect_failure(&stream, "topic 5");
	rig_stream_close(&stream);
}

/* ---- rows by descriptors ---- */

SETUP(descriptors)
{
	open_rig();
}

TEARDOWN(descriptors)
{
	rig_close();
}

enum { WIDTH = 96, HEIGHT = 40, HOST_PITCH = 128, DEVICE_PITCH = 512 };

static drvError_t convert(struct DMA_ADDR *dma, uint64_t device, void *host, bool to_device,
			  uint64_t done)
{
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };
	struct drvMem2D *rows = &copy.copy2dAsync.copy2dInfo;

	*rows = (struct drvMem2D){ .dst = to_device ? (void *)device : host,
				   .dpitch = to_device ? DEVICE_PITCH : HOST_PITCH,
				   .src = to_device ? host : (void *)device,
				   .spitch = to_device ? HOST_PITCH : DEVICE_PITCH,
				   .width = WIDTH,
				   .height = HEIGHT,
				   .fixed_size = done,
				   .direction = to_device ? DRV_MEMCPY_HOST_TO_DEVICE
							  : DRV_MEMCPY_DEVICE_TO_HOST };
	copy.copy2dAsync.dmaAddr = dma;
	*dma = (struct DMA_ADDR){ .offsetAddr.devid = 0 };
	return npu_call(rig, halMemcpy2D, &copy);
}

static drvError_t destroy(struct DMA_ADDR *dma)
{
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_ASYNC_DESTROY, .copy2dAsync.dmaAddr = dma };

	return npu_call(rig, halMemcpy2D, &copy);
}

static void send_rows(struct rig_stream *stream, const struct DMA_ADDR *dma)
{
	struct stars_pcie_dma_sqe sqe = { .header.type = STARS_SQE_PCIE_DMA,
					  .sq_addr_low = (uint32_t)(uint64_t)dma->phyAddr.src,
					  .sq_addr_high =
						  (uint32_t)((uint64_t)dma->phyAddr.src >> 32),
					  .sq_tail_ptr = (uint16_t)dma->phyAddr.len,
					  .convert = 1 };

	EXPECT_EQ(rig_send(stream, &sqe, REPORT, 0), DRV_ERROR_NONE);
}

TEST(descriptors, copy_rows_both_ways)
{
	uint64_t device = rig_alloc(0, 2 * MIB);
	unsigned char *host = rig_pinned(2 * HEIGHT * HOST_PITCH),
		      *back = host + HEIGHT * HOST_PITCH;
	struct DMA_ADDR to, rest, from;
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	for (int i = 0; i < HEIGHT * HOST_PITCH; i++) {
		host[i] = (unsigned char)(i * 7);
		back[i] = 0xee;
	}
	ASSERT_EQ(convert(&to, device, host, true, 0), DRV_ERROR_NONE);
	EXPECT_EQ(to.fixed_size, (unsigned)(WIDTH * HEIGHT));
	EXPECT_EQ(to.phyAddr.len, (unsigned)HEIGHT);
	ASSERT_EQ(convert(&from, device, back, false, 0), DRV_ERROR_NONE);
	send_rows(&stream, &to);
	send_rows(&stream, &from);
	rig_finish(&stream);
	for (int row = 0; row < HEIGHT; row++) {
		EXPECT_MEMEQ(back + row * HOST_PITCH, host + row * HOST_PITCH, WIDTH);
		EXPECT_EQ(back[row * HOST_PITCH + WIDTH], 0xee); /* between the rows: nothing */
	}
	/* Those that others have not converted. */
	memset(back, 0xee, HEIGHT * HOST_PITCH);
	ASSERT_EQ(convert(&rest, device, back, false, WIDTH * 30), DRV_ERROR_NONE);
	EXPECT_EQ(rest.fixed_size, (unsigned)(WIDTH * 10));
	send_rows(&stream, &rest);
	rig_finish(&stream);
	EXPECT_EQ(back[29 * HOST_PITCH], 0xee);
	EXPECT_MEMEQ(back + 30 * HOST_PITCH, host + 30 * HOST_PITCH, WIDTH);
	EXPECT_EQ(destroy(&to), DRV_ERROR_NONE);
	EXPECT_EQ(destroy(&to), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(destroy(&from), DRV_ERROR_NONE);
	EXPECT_EQ(destroy(&rest), DRV_ERROR_NONE);
	send_rows(&stream, &from);
	expect_failure(&stream, "halMemcpy2D has not made them");
	rig_stream_close(&stream);
}

/* The runtime frees its buffer when the call is through: what descriptors name stays. */
TEST(descriptors, keep_host_memory_that_is_freed)
{
	uint64_t device = rig_alloc(0, 2 * MIB), flag = rig_alloc(0, 2 * MIB);
	unsigned char *host = NULL, back[WIDTH];
	struct DMA_ADDR dma;
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 64, 64));
	ASSERT_EQ(npu_call(rig, halMemAlloc, (void **)&host, MIB, MEM_HOST_VAL << MEM_VIRT_BIT),
		  DRV_ERROR_NONE);
	memset(host, 0x5c, MIB);
	ASSERT_EQ(convert(&dma, device, host, true, 0), DRV_ERROR_NONE);
	set_value(flag, 0);
	rig_wait_value(&stream, flag, 1, 1, QUIET);
	send_rows(&stream, &dma);
	ASSERT_EQ(npu_call(rig, halMemFree, host), DRV_ERROR_NONE);
	set_value(flag, 1);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	ASSERT_EQ(npu_call(rig, drvMemcpy, (uint64_t)back, WIDTH,
			   device + (HEIGHT - 1) * DEVICE_PITCH, WIDTH),
		  DRV_ERROR_NONE);
	for (int i = 0; i < WIDTH; i++)
		ASSERT_EQ(back[i], 0x5c);
	EXPECT_EQ(destroy(&dma), DRV_ERROR_NONE);
	rig_stream_close(&stream);
}

TEST(descriptors, are_refused_where_rows_are_not_mapped)
{
	unsigned char *host = rig_pinned(HEIGHT * HOST_PITCH);
	uint64_t device = rig_alloc(0, 2 * MIB);
	struct DMA_ADDR dma;

	EXPECT_EQ(convert(&dma, hole, host, true, 0), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(convert(&dma, device, host, true, WIDTH + 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(convert(&dma, device, host, true, WIDTH * HEIGHT), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(convert(&dma, device, host, false, 0), DRV_ERROR_NONE);
}
