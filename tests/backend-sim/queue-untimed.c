/* SPDX-License-Identifier: Apache-2.0
 *
 * NPUSIM_TIMING=off: all that is sent is done on return, in order; only waits for others last, and
 * they end in wall time.
 */
#include <stdlib.h>
#include <string.h>

#include "queue-rig.h"

__attribute__((constructor)) static void no_time(void)
{
	setenv("NPUSIM_TIMING", "off", 1);
}

SETUP(queue_untimed)
{
	rig_open();
}

TEARDOWN(queue_untimed)
{
	rig_close();
}

TEST(queue_untimed, work_is_done_on_return)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 2 * MIB), b = rig_map(0, 2 * MIB);
	unsigned char *host = rig_pinned(2 * MIB);

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4096, 64));
	memset(host, 7, 2 * MIB);
	for (int i = 0; i < 1000; i++) {
		rig_copy(&stream, a, (uint64_t)host, 4096, QUIET);
		rig_sdma(&stream, b, a, 4096, QUIET);
		host[0]++;
		rig_copy(&stream, (uint64_t)host + 4096, b, 4096, QUIET);
		ASSERT_EQ(host[4096], (unsigned char)(host[0] - 1));
	}
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 3000u);
	EXPECT_EQ(rig_now(), 0u);
}

TEST(queue_untimed, many_entries_wait_behind_one)
{
	struct rig_stream stream;
	uint64_t a = rig_alloc(0, 2 * MIB), b = rig_alloc(0, 2 * MIB);
	uint32_t event = rig_id(0, DRV_EVENT_ID);

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 4096, 64));
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	for (int i = 0; i < 4000; i++)
		rig_sdma(&stream, b, a, 64, QUIET);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 0u);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, event, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), 4001u);
}

TEST(queue_untimed, time_outs_end)
{
	struct rig_stream stream;
	struct stars_logic_cqe cqe;
	uint32_t count;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	EXPECT_EQ(rig_recv(&stream, &cqe, 1, 30, &count), DRV_ERROR_WAIT_TIMEOUT);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, rig_id(0, DRV_EVENT_ID), 1, QUIET);
	EXPECT_EQ(rig_next(&stream).error_type, STARS_ERROR_TIMEOUT);
}

/* Each row is a job, and done inside the last one's end: they must not pile up on the stack. */
TEST(queue_untimed, as_many_rows_as_an_entry_takes)
{
	enum { ROWS = 65535, ROW = 64 };
	uint64_t device = rig_alloc(0, 8 * MIB);
	unsigned char *host = rig_pinned(8 * MIB);
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };
	struct stars_pcie_dma_sqe sqe = { .header.type = STARS_SQE_PCIE_DMA, .convert = 1 };
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	struct rig_stream stream;
	unsigned char last = 0;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	memset(host, 0x3c, 8 * MIB);
	copy.copy2dAsync.copy2dInfo = (struct drvMem2D){ .dst = (void *)device,
							 .dpitch = ROW,
							 .src = (void *)host,
							 .spitch = ROW,
							 .width = ROW,
							 .height = ROWS + 1,
							 .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	copy.copy2dAsync.dmaAddr = &dma;
	ASSERT_EQ(npu_call(rig, halMemcpy2D, &copy), DRV_ERROR_NONE);
	EXPECT_EQ(dma.phyAddr.len, (unsigned)ROWS); /* one is left */
	sqe.sq_addr_low = (uint32_t)(uint64_t)dma.phyAddr.src;
	sqe.sq_tail_ptr = (uint16_t)dma.phyAddr.len;
	EXPECT_EQ(rig_send(&stream, &sqe, REPORT, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	ASSERT_EQ(npu_call(rig, drvMemcpy, (uint64_t)&last, 1, device + ROWS * ROW - 1, 1),
		  DRV_ERROR_NONE);
	EXPECT_EQ(last, 0x3c);
}
