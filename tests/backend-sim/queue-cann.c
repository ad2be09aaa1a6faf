/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that CANN's runtime makes of a driver when a device is set, used and reset, in its
 * order and with its arguments: what it waits for must come.
 */
#include <string.h>

#include "queue-rig.h"

/* Types of tasks that place holders carry. */
enum {
	TASK_MAINTENANCE = 6,
	TASK_ALLOC_DSA = 0x1d,
	TASK_RING_BUFFER = 0x53,
	TASK_STARS_VERSION = 0x61
};

#define POOL_FLAG UINT64_C(0x0700000000924400) /* huge, HBM, runtime, 512 bytes aligned */
#define HOST_FLAG UINT64_C(0x2100000000900800) /* aclrtMallocHost */

SETUP(queue_cann)
{
	rig_open();
}

TEARDOWN(queue_cann)
{
	rig_close();
}

static uint64_t pool(uint64_t bytes)
{
	void *va = NULL;

	if (npu_call(rig, halMemAlloc, &va, bytes, POOL_FLAG) != DRV_ERROR_NONE)
		ADD_FAILURE("%s", npu_call(rig, npusimLastMessage));
	return (uint64_t)va;
}

static uint16_t send_task(struct rig_stream *stream, uint16_t task_type, int report)
{
	struct {
		struct stars_sqe_header header;
		uint32_t rest[14];
	} sqe = { .header = { .type = STARS_SQE_PLACE_HOLDER, .sub_type = task_type } };
	uint16_t id = stream->tasks;

	EXPECT_EQ(rig_send(stream, &sqe, report, 3000), DRV_ERROR_NONE);
	return id;
}

static void wait_for_head(const struct rig_stream *stream)
{
	uint32_t tail = rig_query(stream, DRV_SQCQ_PROP_SQ_TAIL), head;

	for (int polls = 0; polls < 1000000; polls++) {
		head = rig_query(stream, DRV_SQCQ_PROP_SQ_HEAD);
		ASSERT_NE(head, 0xffffu);
		if (head == tail)
			return;
	}
	FAIL("the head stands at %u and the tail at %u", head, tail);
}

static void make_stream(struct rig_stream *stream)
{
	struct halSqCqQueryInfo info = { .type = DRV_NORMAL_TYPE,
					 .prop = DRV_SQCQ_PROP_SQ_REG_BASE };
	uint64_t flags = pool(2), table = pool(32768), entry;

	ASSERT_EQ(npu_call(rig, drvMemsetD8, flags, 2, 0, 2), DRV_ERROR_NONE);
	ASSERT_NO_FATAL(rig_stream_open(stream, 0, 4096, 4096));
	info.sqId = stream->sq;
	ASSERT_EQ(npu_call(rig, halSqCqQuery, 0, &info), DRV_ERROR_NONE);
	entry = (uint64_t)info.value[0] << 32 | info.value[1];
	ASSERT_NE(entry, 0u);
	ASSERT_EQ(npu_call(rig, drvMemcpy, table + 8 * stream->sq, 8, (DVdeviceptr)&entry, 8),
		  DRV_ERROR_NONE);
}

/* An id, and no queue. */
static void make_dsa_stream(void)
{
	struct halSqCqInputInfo in = { .type = DRV_NORMAL_TYPE,
				       .sqeSize = 64,
				       .cqeSize = 16,
				       .sqeDepth = 2048,
				       .flag = TSDRV_FLAG_ONLY_SQCQ_ID };
	struct halSqCqOutputInfo out = { 0 };
	uint8_t sqe[64] = { STARS_SQE_PLACE_HOLDER };
	struct halTaskSendInfo info = { .type = DRV_NORMAL_TYPE, .sqe_addr = sqe, .sqe_num = 1 };

	in.info[0] = rig_id(0, DRV_STREAM_ID);
	ASSERT_EQ(npu_call(rig, halSqCqAllocate, 0, &in, &out), DRV_ERROR_NONE);
	info.sqId = out.sqId;
	EXPECT_EQ(npu_call(rig, halSqTaskSend, 0, &info), DRV_ERROR_NOT_SUPPORT);
}

static void take_reports(const struct rig_stream *stream, uint16_t last)
{
	struct stars_logic_cqe cqe = { .task_id = UINT16_MAX };
	uint32_t count;

	while (cqe.task_id != last) {
		ASSERT_EQ(rig_query(stream, DRV_SQCQ_PROP_SQ_CQE_STATUS), 1u);
		ASSERT_EQ(rig_recv(stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
		ASSERT_EQ(count, 1u);
		EXPECT_EQ(cqe.error_type, 0);
		EXPECT_EQ(cqe.error_code, 0u);
	}
	EXPECT_EQ(rig_query(stream, DRV_SQCQ_PROP_SQ_CQE_STATUS), 0u);
	ASSERT_EQ(rig_recv(stream, &cqe, 1, 0, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 0u);
}

static void set_device(struct rig_stream *primary, uint64_t *ring)
{
	static const uint64_t pools[] = {
		32768, 2096640, 6356992, 1966080, 3018752, 65536, 2097152
	};
	static unsigned char image[2 << 20], back[10240];

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		EXPECT_EQ(pool(pools[i]) % 512, 0u);
	ASSERT_NO_FATAL(make_stream(primary));
	ASSERT_NO_FATAL(make_dsa_stream());
	send_task(primary, TASK_STARS_VERSION, REPORT);
	ASSERT_NO_FATAL(wait_for_head(primary));
	ASSERT_NO_FATAL(take_reports(primary, 0));
	*ring = pool(sizeof(image));
	memset(image, 0x11, sizeof(image));
	ASSERT_EQ(npu_call(rig, drvMemcpy, *ring, sizeof(image), (DVdeviceptr)image, sizeof(image)),
		  DRV_ERROR_NONE);
	send_task(primary, TASK_RING_BUFFER, QUIET);
	ASSERT_NO_FATAL(wait_for_head(primary));
	ASSERT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)back, sizeof(back), *ring, sizeof(back)),
		  DRV_ERROR_NONE);
	EXPECT_MEMEQ(back, image, sizeof(back));
	send_task(primary, TASK_ALLOC_DSA, REPORT);
}

static void reset_device(struct rig_stream *primary, uint64_t ring)
{
	ASSERT_EQ(npu_call(rig, halMemFree, (void *)ring), DRV_ERROR_NONE);
	send_task(primary, TASK_RING_BUFFER, QUIET);
	ASSERT_NO_FATAL(wait_for_head(primary));
	ASSERT_NO_FATAL(take_reports(primary, (uint16_t)(primary->tasks - 2)));
	send_task(primary, TASK_MAINTENANCE, REPORT);
	ASSERT_NO_FATAL(take_reports(primary, (uint16_t)(primary->tasks - 1)));
	ASSERT_EQ(rig_id_config(0, DRV_STREAM_ID, primary->id, DRV_STREAM_UNBIND_LOGIC_CQ,
				primary->cq),
		  DRV_ERROR_NONE);
	rig_stream_close(primary);
}

TEST(queue_cann, set_and_reset_device)
{
	for (int round = 0; round < 3; round++) {
		struct rig_stream primary;
		uint64_t ring;

		ASSERT_NO_FATAL(set_device(&primary, &ring));
		ASSERT_NO_FATAL(reset_device(&primary, ring));
		rig_close();
		ASSERT_NO_FATAL(rig_open());
	}
}

/* aclrtMallocHost, copies in all directions and a fill on a stream with events, as the runtime
 * writes them. */
TEST(queue_cann, asynchronous_copies)
{
	struct rig_stream primary, stream;
	uint64_t ring, a, b, start, end;
	unsigned char *host = NULL, *pattern;
	struct stars_logic_cqe first, last;
	struct stars_sdma_sqe d2d = { .header.type = STARS_SQE_SDMA, .length = 2 * MIB };
	uint32_t id = 0;

	ASSERT_NO_FATAL(set_device(&primary, &ring));
	ASSERT_NO_FATAL(make_stream(&stream));
	a = pool(2 * MIB);
	b = rig_map(0, 2 * MIB);
	ASSERT_EQ(npu_call(rig, halMemAlloc, (void **)&host, 4 * MIB, HOST_FLAG), DRV_ERROR_NONE);
	pattern = host + 2 * MIB;
	memset(host, 0, 2 * MIB);
	memset(pattern, 0x6b, 2 * MIB);
	id = rig_id(0, DRV_EVENT_ID);
	rig_event(&stream, STARS_SQE_EVENT_RECORD, 0, id, 0, REPORT);
	rig_copy(&stream, a, (uint64_t)pattern, 2 * MIB, REPORT); /* fill */
	d2d.control = 0x78 << 8;                                  /* stream valid, security bits */
	d2d.src_addr_low = (uint32_t)a;
	d2d.src_addr_high = (uint32_t)(a >> 32);
	d2d.dst_addr_low = (uint32_t)b;
	d2d.dst_addr_high = (uint32_t)(b >> 32);
	ASSERT_EQ(rig_send(&stream, &d2d, QUIET, 3000), DRV_ERROR_NONE);
	rig_copy(&stream, (uint64_t)host, b, 2 * MIB, REPORT);
	rig_event(&stream, STARS_SQE_EVENT_RECORD, 0, id, 0, REPORT);
	ASSERT_NO_FATAL(wait_for_head(&stream));
	EXPECT_MEMEQ(host, pattern, 2 * MIB);
	first = rig_next(&stream);
	start = first.timestamp;
	rig_next(&stream);
	rig_next(&stream);
	last = rig_next(&stream);
	end = last.timestamp;
	EXPECT_EQ(last.sqe_type, STARS_SQE_EVENT_RECORD);
	EXPECT_GT(end, start);
	ASSERT_EQ(npu_call(rig, halMemFree, host), DRV_ERROR_NONE);
	rig_stream_close(&stream);
	ASSERT_NO_FATAL(reset_device(&primary, ring));
}
