/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements npusimAwait: a wait for a report that takes no simulated time and gives up after a
 * wall time, and the query for what the head of a stream is waiting for. It takes no report and
 * changes nothing.
 */
#include "process/ops.h"
#include "queue/queue.h"

#include <string.h>

#define CALL "npusimAwait"

static struct queue_sq *sq_of_stream(const struct queue_device *device, uint32_t stream)
{
	for (uint32_t i = 0; i < device->queues[DRV_NORMAL_TYPE].slots; i++) {
		struct queue_sq *sq = device->queues[DRV_NORMAL_TYPE].at[i];

		if (sq != NULL && sq->stream_id == stream)
			return sq;
	}
	return NULL;
}

static void look_locked(struct bsim *bs, const struct queue_device *device, uint32_t stream,
			struct npu_head *out)
{
	struct queue_sq *sq = sq_of_stream(device, stream);
	const struct stars_value_wait_sqe *value;

	*out = (struct npu_head){ .kind = NPU_HEAD_NONE };
	if (sq == NULL || sq->head == sq->tail)
		return;
	value = &sq->ring[sq->head].wait;
	out->task = value->header.task_id;
	out->device = sq->wait_device;
	out->id = sq->wait_id;
	if (sq->stopped) {
		out->kind = NPU_HEAD_STOPPED;
		return;
	}
	switch (sq->state) {
	case SQ_WAIT_EVENT:
		out->kind = NPU_HEAD_EVENT;
		break;
	case SQ_WAIT_NOTIFY:
		out->kind = NPU_HEAD_NOTIFY;
		break;
	case SQ_WAIT_VALUE: /* condition code does not say what it waits for */
		if (value->magic != STARS_VALUE_WAIT_MAGIC) {
			out->kind = NPU_HEAD_RUNS;
			break;
		}
		out->kind = NPU_HEAD_VALUE;
		out->va = value->addr;
		out->wanted = value->value;
		out->compare = value->compare;
		out->found = queue_value_locked(bs, sq);
		break;
	case SQ_CQ_FULL:
		out->kind = NPU_HEAD_REPORT;
		break;
	default:
		out->kind = NPU_HEAD_RUNS;
		break;
	}
}

struct await {
	struct queue_device *device;
	const struct queue_cq *cq;
	uint32_t id;
};

static bool is_over(void *arg)
{
	const struct await *await = arg;
	const struct queue_cq *cq =
		queue_table_find(&await->device->queues[DRV_LOGIC_TYPE], await->id);

	return cq != await->cq || cq == NULL || cq->reports.length != 0;
}

drvError_t bsim_npusimAwait(struct npu_driver *self, uint32_t dev, uint32_t stream, uint32_t cq,
			    uint32_t wall_ms, struct npu_head *out)
{
	UNCANCELLED;
	struct bsim *bs = bsim_of(self);
	struct await await = { .id = cq };
	drvError_t result;

	if (out == NULL)
		return bsim_null(CALL, "out");
	bsim_lock(bs);
	result = queue_device_find_locked(bs, CALL, dev, 0, &await.device);
	if (result == DRV_ERROR_NONE) {
		await.cq = queue_table_find(&await.device->queues[DRV_LOGIC_TYPE], cq);
		result = queue_wait_locked(bs, is_over, &await, -1, wall_ms);
	}
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		look_locked(bs, await.device, stream, out);
	bsim_unlock(bs);
	return result;
}
