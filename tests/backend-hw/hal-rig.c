/* SPDX-License-Identifier: Apache-2.0
 *
 * The rig of the tests of libascend_hal.so.
 */
#include "hal-rig.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_DEPTH 4096u

bool hal_called[HAL_OP_COUNT];
static struct hw_library library;

__attribute__((constructor)) static void small_server(void)
{
	setenv("NPUSIM_DEVICES", "2", 1);
	setenv("NPUSIM_HBM", "8G", 1);
}

const struct hw_symbols *hal(void)
{
	struct hw_places places;
	char *error = NULL;

	if (library.handle != NULL)
		return &library.symbols;
	hw_find(LIBASCEND_HAL, "/nonexistent", "/nonexistent", &places);
	if (!hw_load(&places, &library, &error)) {
		harness_fail((struct harness_site){ __FILE__, __LINE__, true }, "%s", error);
		exit(1);
	}
	return &library.symbols;
}

void *hal_symbol(const char *name)
{
	hal();
	return dlsym(library.handle, name);
}

const char *hal_op_name(enum hal_op op)
{
	static const char *const names[] = {
#define NPU_OP(result, missing, op, ...) #op,
#include "npusim/driver-ops.h"
	};

	return names[op];
}

void hal_stream_open(struct hal_stream *stream, uint32_t dev)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID };
	struct halResourceIdOutputInfo id_out = { 0 };
	struct halSqCqInputInfo in = { .type = DRV_NORMAL_TYPE,
				       .sqeSize = STARS_SQE_BYTES,
				       .cqeSize = 16,
				       .sqeDepth = QUEUE_DEPTH,
				       .cqeDepth = QUEUE_DEPTH };
	struct halSqCqOutputInfo out = { 0 };
	struct halResourceConfigInfo bind = { .prop = DRV_STREAM_BIND_LOGIC_CQ };

	*stream = (struct hal_stream){ .dev = dev };
	EXPECT_HAL(HAL(halResourceIdAlloc)(dev, &id, &id_out));
	stream->id = id.resourceId = id_out.resourceId;
	in.info[0] = stream->id;
	EXPECT_HAL(HAL(halSqCqAllocate)(dev, &in, &out));
	stream->sq = out.sqId;
	stream->cq = out.cqId;
	in.type = DRV_LOGIC_TYPE;
	in.cqeSize = sizeof(struct stars_logic_cqe);
	EXPECT_HAL(HAL(halSqCqAllocate)(dev, &in, &out));
	stream->logic_cq = bind.value[0] = out.cqId;
	EXPECT_HAL(HAL(halResourceConfig)(dev, &id, &bind));
}

void hal_stream_close(struct hal_stream *stream)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID, .resourceId = stream->id };
	struct halResourceConfigInfo unbind = { .prop = DRV_STREAM_UNBIND_LOGIC_CQ };
	struct halSqCqFreeInfo info = { .type = DRV_LOGIC_TYPE, .cqId = stream->logic_cq };

	EXPECT_HAL(HAL(halResourceConfig)(stream->dev, &id, &unbind));
	EXPECT_HAL(HAL(halSqCqFree)(stream->dev, &info));
	info = (struct halSqCqFreeInfo){ .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .cqId = stream->cq };
	EXPECT_HAL(HAL(halSqCqFree)(stream->dev, &info));
	EXPECT_HAL(HAL(halResourceIdFree)(stream->dev, &id));
}

uint16_t hal_send(struct hal_stream *stream, void *entry, bool report)
{
	struct stars_sqe_header *header = entry;
	struct halTaskSendInfo info = { .type = DRV_NORMAL_TYPE,
					.sqId = stream->sq,
					.timeout = 1000,
					.sqe_addr = entry,
					.sqe_num = 1 };

	header->stream_id = (uint16_t)stream->id;
	header->task_id = stream->tasks;
	header->wr_cqe = report;
	EXPECT_HAL(HAL(halSqTaskSend)(stream->dev, &info));
	return stream->tasks++;
}

uint32_t hal_query(struct hal_stream *stream, int prop)
{
	struct halSqCqQueryInfo info = {
		.type = DRV_NORMAL_TYPE, .sqId = stream->sq, .cqId = stream->cq, .prop = prop
	};

	EXPECT_HAL(HAL(halSqCqQuery)(stream->dev, &info));
	return info.value[0];
}

bool hal_wait_for_head(struct hal_stream *stream)
{
	time_t end = time(NULL) + 10;

	while (hal_query(stream, DRV_SQCQ_PROP_SQ_HEAD) != stream->tasks % QUEUE_DEPTH) {
		if (time(NULL) > end)
			return false;
	}
	return true;
}

unsigned hal_receive(struct hal_stream *stream, struct stars_logic_cqe *out, unsigned room)
{
	struct halReportRecvInfo info = { .type = DRV_LOGIC_TYPE,
					  .cqId = stream->logic_cq,
					  .cqe_addr = (uint8_t *)out,
					  .cqe_num = room,
					  .stream_id = stream->id,
					  .task_id = 0xffff };

	EXPECT_HAL(HAL(halCqReportRecv)(stream->dev, &info));
	return info.report_cqe_num;
}

void *hal_alloc(uint32_t dev, uint64_t bytes)
{
	void *va = NULL;

	EXPECT_HAL(HAL(halMemAlloc)(&va, bytes, UINT64_C(0x2100000000924400) | dev));
	return va;
}
