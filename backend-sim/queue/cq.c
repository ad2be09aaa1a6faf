/* SPDX-License-Identifier: Apache-2.0
 *
 * Logic completion queues: the reports of completed entries, and the call that takes them. The
 * report of a task for which a caller waits (STARS_CQE_FLAG_MATCH) is left in place for the caller
 * that asks for that task.
 */
#include <glib.h>
#include <string.h>

#include "process/ops.h"
#include "queue/queue.h"

struct queue_cq *queue_cq_find(struct queue_device *device, uint32_t id)
{
	return id < device->cq_slots ? device->cqs[id] : NULL;
}

bool queue_cq_post(struct queue_cq *cq, const struct stars_logic_cqe *cqe, char *text)
{
	uint32_t at = (cq->first + cq->count) % cq->depth;

	if (cq->count == cq->depth)
		return false;
	if (cq->ring == NULL)
		cq->ring = g_new(struct stars_logic_cqe, cq->depth);
	cq->ring[at] = *cqe;
	if (text != NULL && cq->texts == NULL)
		cq->texts = g_new0(char *, cq->depth);
	if (cq->texts != NULL)
		cq->texts[at] = text;
	cq->count++;
	return true;
}

/* ---- making and ending ---- */

drvError_t queue_cq_make_locked(struct bsim *bs, uint32_t dev, struct queue_device *device,
				const struct halSqCqInputInfo *in, uint32_t *out_id)
{
	static const char call[] = "halSqCqAllocate";
	struct queue_cq *cq;
	uint32_t id;

	if (in->cqeSize != sizeof(struct stars_logic_cqe))
		return bsim_invalid(
			"%s: cqeSize is %u: entries of a logic completion queue have %zu bytes",
			call, in->cqeSize, sizeof(struct stars_logic_cqe));
	if (in->cqeDepth == 0 || in->cqeDepth > QUEUE_CQ_DEPTH)
		return bsim_invalid("%s: cqeDepth is %u: it must be from 1 to %u", call,
				    in->cqeDepth, QUEUE_CQ_DEPTH);
	device->cq_ids.capacity = QUEUE_LOGIC_CQS;
	if (!queue_id_take(&device->cq_ids, &id))
		return bsim_fail(DRV_ERROR_NO_RESOURCES,
				 "%s: all %u logic completion queues of device %u are in use", call,
				 QUEUE_LOGIC_CQS, dev);
	device->cqs = queue_slots_for(device->cqs, &device->cq_slots, id);
	cq = g_new0(struct queue_cq, 1);
	cq->device = dev;
	cq->id = id;
	cq->depth = in->cqeDepth;
	cq->streams_first = QUEUE_STREAMS;
	device->cqs[id] = cq;
	queue_changed_locked(bs);
	*out_id = id;
	return DRV_ERROR_NONE;
}

/* Queues whose completion waits for room go on: what they hold is lost with the queue. */
static void wake_writers_locked(struct bsim *bs, const struct queue_cq *cq)
{
	struct queue_device *device = &bs->queues->device[cq->device];
	struct queue_sq *sq, *next;

	for (sq = TAILQ_FIRST(&bs->queues->blocked); sq != NULL; sq = next) {
		next = TAILQ_NEXT(sq, blocked_link);
		if (sq->state == SQ_CQ_FULL && sq->device == cq->device &&
		    (device->stream_cq == NULL || device->stream_cq[sq->stream_id] == cq->id ||
		     device->stream_cq[sq->stream_id] == QUEUE_NO_CQ))
			queue_kick_locked(bs, sq);
	}
}

void queue_cq_drop_locked(struct bsim *bs, struct queue_device *device, struct queue_cq *cq)
{
	device->cqs[cq->id] = NULL;
	queue_id_give(&device->cq_ids, cq->id);
	wake_writers_locked(bs, cq);
	for (uint32_t i = cq->streams_first; i < cq->streams_end; i++) {
		if (device->stream_cq[i] == cq->id)
			device->stream_cq[i] = QUEUE_NO_CQ;
	}
	for (uint32_t i = 0; cq->texts != NULL && i < cq->count; i++)
		g_free(cq->texts[(cq->first + i) % cq->depth]);
	g_free(cq->texts);
	g_free(cq->ring);
	g_free(cq);
	queue_changed_locked(bs);
}

/* ---- taking reports ---- */

/* The run of reports that this caller gets: consecutive ones that are for anybody, and at its end
 * at most one that is for the caller's own task. Reports that are for others before the run are
 * stepped over; others' after its start end it. */
static uint32_t run_for(const struct queue_cq *cq, uint32_t stream, uint32_t task, uint32_t limit,
			uint32_t *out_start)
{
	uint32_t start = 0, length = 0;

	for (uint32_t i = 0; i < cq->count && length < limit; i++) {
		const struct stars_logic_cqe *cqe = &cq->ring[(cq->first + i) % cq->depth];
		bool reserved = (cqe->flags & STARS_CQE_FLAG_MATCH) != 0,
		     mine = cqe->stream_id == stream && cqe->task_id == task;

		if (reserved && !mine && length != 0)
			break;
		if (reserved && !mine)
			continue;
		if (length++ == 0)
			start = i;
		if (reserved)
			break;
	}
	*out_start = start;
	return length;
}

/* Copies a report out. True, and the thread's message is set, if it is the first of a failed task
 * in this call: who looks at the first error of a stream finds its cause. */
static bool take_one(struct queue_cq *cq, uint32_t index, uint8_t *out, bool told)
{
	uint32_t at = (cq->first + index) % cq->depth;

	memcpy(out, &cq->ring[at], sizeof(cq->ring[at]));
	if (cq->texts == NULL || cq->texts[at] == NULL)
		return told;
	if (!told)
		npu_message_set("%s", cq->texts[at]);
	g_free(cq->texts[at]);
	cq->texts[at] = NULL;
	return true;
}

/* The hole behind the run is closed by what lies before it. */
static void close_hole(struct queue_cq *cq, uint32_t start, uint32_t length)
{
	for (uint32_t i = start; i-- > 0;) {
		uint32_t from = (cq->first + i) % cq->depth,
			 to = (cq->first + i + length) % cq->depth;

		cq->ring[to] = cq->ring[from];
		if (cq->texts != NULL) {
			cq->texts[to] = cq->texts[from];
			cq->texts[from] = NULL;
		}
	}
	cq->first = (cq->first + length) % cq->depth;
	cq->count -= length;
}

struct recv_wait {
	struct queue_device *device;
	const struct halReportRecvInfo *info;
	const struct queue_cq *cq; /* which it was: the id may be given to another meanwhile */
	bool gone;
};

static bool recv_ready(void *arg)
{
	struct recv_wait *wait = arg;
	struct queue_cq *cq = queue_cq_find(wait->device, wait->info->cqId);
	uint32_t start;

	wait->gone = wait->gone || cq != wait->cq;
	return wait->gone ||
	       run_for(cq, wait->info->stream_id, wait->info->task_id, 1, &start) != 0;
}

static drvError_t recv_check(struct bsim *bs, const char *call, uint32_t dev,
			     const struct halReportRecvInfo *info, struct queue_device **out)
{
	drvError_t result;

	if (info->type != DRV_LOGIC_TYPE)
		return bsim_unsupported(
			"%s: type is %d: reports are made in logic completion queues, type %d",
			call, info->type, DRV_LOGIC_TYPE);
	result = queue_device_find_locked(bs, call, dev, info->tsId, out);
	if (result != DRV_ERROR_NONE)
		return result;
	if (queue_cq_find(*out, info->cqId) == NULL)
		return bsim_invalid(
			"%s: cqId is %u: device %u has no logic completion queue of that id", call,
			info->cqId, dev);
	if (info->timeout < -1)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: timeout is %d ms: it must be -1 (no limit), 0 or more", call,
				 info->timeout);
	if (info->cqe_addr == NULL || info->cqe_num == 0)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: %s: there must be room for one report at least", call,
				 info->cqe_num == 0 ? "cqe_num is 0" : "cqe_addr is NULL");
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halCqReportRecv, SIM_CALL_QUERY, (uint32_t, dev), (struct halReportRecvInfo *, info))
{
	struct bsim *bs = c->bs;
	static const char call[] = "halCqReportRecv";
	struct queue_device *device = NULL;
	struct recv_wait wait = { .info = info };
	uint32_t start, length;
	bool told = false;
	drvError_t result;

	if (info == NULL)
		return bsim_null(call, "info");
	info->report_cqe_num = 0;
	result = recv_check(bs, call, dev, info, &device);
	if (result != DRV_ERROR_NONE)
		return result;
	wait.device = device;
	wait.cq = queue_cq_find(device, info->cqId);
	if (!recv_ready(&wait)) {
		if (info->timeout == 0)
			return DRV_ERROR_NONE;
		result = queue_wait_locked(bs, recv_ready, &wait, info->timeout);
	}
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		return bsim_fail(result, "%s: no report within %d ms of simulated time", call,
				 info->timeout);
	if (result == DRV_ERROR_NONE && wait.gone)
		return bsim_invalid("%s: the completion queue %u was freed by another thread", call,
				    info->cqId);
	if (result != DRV_ERROR_NONE)
		return result;
	struct queue_cq *cq = queue_cq_find(device, info->cqId);

	length = run_for(cq, info->stream_id, info->task_id, info->cqe_num, &start);
	for (uint32_t i = 0; i < length; i++)
		told = take_one(cq, start + i, info->cqe_addr + i * sizeof(struct stars_logic_cqe),
				told);
	close_hole(cq, start, length);
	info->report_cqe_num = length;
	wake_writers_locked(bs, cq);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}
