/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries that CANN's runtime alone uses: the error ring and the head behind a failed task, and
 * condition code. Layouts are those of its v8.5.0.
 */
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

TEST(failed, head_stays_until_the_completion_is_taken)
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
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3u);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_NE(rig_next(&stream).error_type, 0);
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

static void expect_failure(struct rig_stream *stream, const char *words)
{
	struct stars_logic_cqe cqe = rig_next(stream);

	EXPECT_NE(cqe.error_type, 0);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), words);
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
