/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements completion queues, and the calls that wait for reports in them and take them.
 */
#include <string.h>

#include "queue/queue.h"

struct queue_cq *queue_cq_of(const struct queue_sq *sq)
{
	struct queue_device *device = &sq->bs->queues->device[sq->device];
	const struct queue_id *id = queue_table_find(&device->ids[DRV_STREAM_ID], sq->stream_id);
	struct queue_cq *cq =
		id == NULL ? NULL : queue_table_find(&device->queues[DRV_LOGIC_TYPE], id->cq);

	return cq != NULL && cq->number == id->cq_number ? cq : NULL;
}

bool queue_cq_post(struct bsim *bs, struct queue_cq *cq, const void *cqe, char *text)
{
	struct queue_report *report;

	if (cq->reports.length == cq->depth)
		return false;
	report = g_new(struct queue_report, 1);
	*report = (struct queue_report){ .link.data = report,
					 .number = bs->queues->reports++,
					 .text = text };
	memcpy(&report->logic, cqe, sizeof(report->logic));
	g_queue_push_tail_link(&cq->reports, &report->link);
	queue_changed_locked(bs);
	return true;
}

static void report_drop(struct queue_cq *cq, struct queue_report *report)
{
	g_queue_unlink(&cq->reports, &report->link);
	g_free(report->text);
	g_free(report);
}

/* ---- making and ending ---- */

drvError_t queue_cq_make_locked(struct bsim *bs, uint32_t dev, struct queue_device *device,
				const struct halSqCqInputInfo *in, uint32_t capacity,
				uint32_t *out_id)
{
	static const char call[] = "halSqCqAllocate";
	struct queue_cq *cq;

	if (in->cqeSize != sizeof(struct stars_logic_cqe) ||
	    (in->type == DRV_CALLBACK_TYPE && in->sqeSize != sizeof(cq->command)))
		return bsim_invalid("%s: cqeSize is %u and sqeSize %u: reports have %zu bytes, "
				    "commands of a callback queue %zu",
				    call, in->cqeSize, in->sqeSize, sizeof(struct stars_logic_cqe),
				    sizeof(cq->command));
	if (in->cqeDepth == 0 || in->cqeDepth > QUEUE_CQ_DEPTH)
		return bsim_invalid("%s: cqeDepth is %u: it must be from 1 to %u", call,
				    in->cqeDepth, QUEUE_CQ_DEPTH);
	cq = g_new0(struct queue_cq, 1);
	queue_table_add(&device->queues[in->type], capacity, cq, out_id);
	cq->device = dev;
	cq->id = *out_id;
	cq->depth = in->cqeDepth;
	cq->group = in->grpId;
	cq->number = ++bs->queues->cqs;
	queue_changed_locked(bs);
	return DRV_ERROR_NONE;
}

void queue_cq_drop_locked(struct bsim *bs, struct queue_cq *cq)
{
	queue_wake_locked(bs, SQ_CQ_FULL, cq->device, 0); /* what was held for it is lost with it */
	while (cq->reports.length != 0)
		report_drop(cq, cq->reports.head->data);
	g_free(cq);
	queue_changed_locked(bs);
}

/* ---- logic ones: the report of a task for which a caller waits (STARS_CQE_FLAG_MATCH) is left in
 * place for the caller that asks for that task ---- */

/* The first report that this caller gets, from `link` on: one that is for anybody, or for the
 * caller's own task; those for others are stepped over. */
static GList *next_for(GList *link, const struct halReportRecvInfo *info)
{
	for (; link != NULL; link = link->next) {
		const struct stars_logic_cqe *cqe = &((struct queue_report *)link->data)->logic;

		if ((cqe->flags & STARS_CQE_FLAG_MATCH) == 0 ||
		    (cqe->stream_id == info->stream_id && cqe->task_id == info->task_id))
			return link;
	}
	return NULL;
}

/* Consecutive ones, and at their end at most one that is the caller's own. */
static void take_reports(struct queue_cq *cq, struct halReportRecvInfo *info)
{
	GList *link = next_for(cq->reports.head, info), *next;
	bool told = false, last = false;

	for (; link != NULL && !last && info->report_cqe_num < info->cqe_num; link = next) {
		struct queue_report *report = link->data;

		next = next_for(link->next, info);
		last = (report->logic.flags & STARS_CQE_FLAG_MATCH) != 0 || next != link->next;
		memcpy(info->cqe_addr + info->report_cqe_num++ * sizeof(report->logic),
		       &report->logic, sizeof(report->logic));
		/* Who looks at the first error of a stream finds its cause. */
		if (report->text != NULL && !told)
			npu_message_set("%s", report->text);
		told = told || report->text != NULL;
		report_drop(cq, report);
	}
}

struct recv_wait {
	const struct queue_table *queues;
	const struct halReportRecvInfo *info;
	struct queue_cq *cq; /* which it was: the id may be given to another meanwhile */
	bool gone;
};

static bool recv_ready(void *arg)
{
	struct recv_wait *wait = arg;

	wait->gone = wait->gone || queue_table_find(wait->queues, wait->info->cqId) != wait->cq;
	return wait->gone || next_for(wait->cq->reports.head, wait->info) != NULL;
}

static drvError_t recv_check(const char *call, const struct halReportRecvInfo *info)
{
	if (info->type != DRV_LOGIC_TYPE)
		return bsim_unsupported(
			"%s: type is %d: reports are made in logic completion queues, type %d",
			call, info->type, DRV_LOGIC_TYPE);
	if (info->timeout < -1)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: timeout is %d ms: it must be -1 (no limit), 0 or more", call,
				 info->timeout);
	if (info->cqe_addr == NULL || info->cqe_num == 0)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: cqe_addr is %p and cqe_num %u: give room for one report",
				 call, (void *)info->cqe_addr, info->cqe_num);
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halCqReportRecv, SIM_CALL_QUERY, (uint32_t, dev), (struct halReportRecvInfo *, info))
{
	struct bsim *bs = c->bs;
	struct recv_wait wait = { .info = info };
	drvError_t result;

	if (info == NULL)
		return bsim_null(c->name, "info");
	info->report_cqe_num = 0;
	result = recv_check(c->name, info);
	if (result != DRV_ERROR_NONE)
		return result;
	wait.cq = queue_find_locked(c, dev, info->tsId, info->type, DRV_LOGIC_TYPE, info->cqId);
	if (wait.cq == NULL)
		return c->result;
	wait.queues = &bs->queues->device[dev].queues[DRV_LOGIC_TYPE];
	if (!recv_ready(&wait)) {
		if (info->timeout == 0)
			return DRV_ERROR_NONE;
		result = queue_wait_locked(bs, recv_ready, &wait, info->timeout, QUEUE_NO_LIMIT);
	}
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		return bsim_fail(result, "%s: no report within %d ms of simulated time", c->name,
				 info->timeout);
	if (result == DRV_ERROR_NONE && wait.gone)
		return bsim_invalid("%s: the completion queue %u was freed by another thread",
				    c->name, info->cqId);
	if (result != DRV_ERROR_NONE)
		return result;
	take_reports(wait.cq, info);
	queue_wake_locked(bs, SQ_CQ_FULL, dev, 0);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}

/* ---- npusimAwait: a wait for a report that takes no simulated time and gives up after a wall
 * time, and what the head of a stream is waiting for. It takes no report and changes nothing ----
 */

static void look_locked(struct bsim *bs, const struct queue_device *device, uint32_t stream,
			struct npu_head *out)
{
	static const enum npu_head_kind kinds[] = {
		[SQ_READY] = NPU_HEAD_RUNS,       [SQ_BUSY] = NPU_HEAD_RUNS,
		[SQ_WAIT_EVENT] = NPU_HEAD_EVENT, [SQ_WAIT_NOTIFY] = NPU_HEAD_NOTIFY,
		[SQ_WAIT_VALUE] = NPU_HEAD_VALUE, [SQ_CQ_FULL] = NPU_HEAD_REPORT,
		[SQ_DONE] = NPU_HEAD_RUNS,
	};
	const struct queue_table *sqs = &device->queues[DRV_NORMAL_TYPE];
	const struct stars_value_wait_sqe *value;
	struct queue_sq *sq = NULL;

	*out = (struct npu_head){ .kind = NPU_HEAD_NONE };
	for (uint32_t i = 0; i < sqs->slots && (sq == NULL || sq->stream_id != stream); i++)
		sq = sqs->at[i];
	if (sq == NULL || sq->stream_id != stream || sq->head == sq->tail)
		return;
	value = &sq->ring[sq->head].wait;
	out->task = value->header.task_id;
	out->device = sq->wait_device;
	out->id = sq->wait_id;
	out->kind = sq->stopped ? NPU_HEAD_STOPPED : kinds[sq->state];
	if (out->kind != NPU_HEAD_VALUE)
		return;
	if (value->magic != STARS_VALUE_WAIT_MAGIC) { /* code does not say what it waits for */
		out->kind = NPU_HEAD_RUNS;
		return;
	}
	out->va = value->addr;
	out->wanted = value->value;
	out->compare = value->compare;
	out->found = queue_value_locked(bs, sq);
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

BSIM_QUESTION(npusimAwait, (uint32_t, dev), (uint32_t, stream), (uint32_t, cq), (uint32_t, wall_ms),
	      (struct npu_head *, out))
{
	UNCANCELLED;
	struct await await = { .id = cq };
	drvError_t result =
		BSIM_GIVEN(call, out) ?: queue_device_find_locked(bs, call, dev, 0, &await.device);

	if (result != DRV_ERROR_NONE)
		return result;
	await.cq = queue_table_find(&await.device->queues[DRV_LOGIC_TYPE], cq);
	result = queue_wait_locked(bs, is_over, &await, -1, wall_ms);
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		look_locked(bs, await.device, stream, out);
	return result;
}

/* ---- callback queues, by which entries of a stream have the host call functions: the oldest
 * report of a group of queues stays with its queue until it is released; a blocking function's end
 * comes back as a command that records the event for which the stream waits ---- */

/* The queue that the arguments `of` name by their member `id`; NULL, and c->result says why. */
#define FIND(c, dev, of, id)                                                                     \
	((of) == NULL ? ((c)->result = bsim_null((c)->name, #of), NULL)                          \
		      : queue_find_locked((c), (dev), (of)->tsId, (of)->type, DRV_CALLBACK_TYPE, \
					  (of)->id))

struct group_wait {
	const struct queue_device *device;
	uint64_t closings; /* of the device, when the wait began */
	uint32_t group;
	struct queue_cq *first; /* with the oldest report */
	bool gone;
};

static struct queue_report *first_of(const struct queue_cq *cq)
{
	return cq->reports.head->data;
}

static bool has_report(void *arg)
{
	struct group_wait *wait = arg;
	const struct queue_table *callbacks = &wait->device->queues[DRV_CALLBACK_TYPE];

	wait->first = NULL;
	wait->gone = wait->device->closings != wait->closings;
	for (uint32_t i = 0; i < callbacks->slots && !wait->gone; i++) {
		struct queue_cq *cq = callbacks->at[i];

		if (cq != NULL && cq->group == wait->group && !cq->shown &&
		    cq->reports.length != 0 &&
		    (wait->first == NULL || first_of(cq)->number < first_of(wait->first)->number))
			wait->first = cq;
	}
	return wait->gone || wait->first != NULL;
}

QUEUE_CALL(halCqReportIrqWait, SIM_CALL_QUERY, (uint32_t, dev), (struct halReportInfoInput *, in),
	   (struct halReportInfoOutput *, out))
{
	struct queue_device *device = NULL;
	struct group_wait wait;
	drvError_t result;

	if (in == NULL || out == NULL || out->cqIdBitmap == NULL ||
	    out->cqIdBitmapSize < QUEUE_CALLBACKS / 64 || in->type != DRV_CALLBACK_TYPE)
		return bsim_invalid("%s: in is %p and out %p: type must be %d, and cqIdBitmap have "
				    "%u words at least",
				    c->name, (void *)in, (void *)out, DRV_CALLBACK_TYPE,
				    QUEUE_CALLBACKS / 64);
	result = queue_device_find_locked(c->bs, c->name, dev, in->tsId, &device);
	if (result != DRV_ERROR_NONE)
		return result;
	wait = (struct group_wait){ .device = device,
				    .closings = device->closings,
				    .group = in->grpId };
	result = queue_wait_locked(c->bs, has_report, &wait, in->timeout, QUEUE_NO_LIMIT);
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		return bsim_fail(result, "%s: no callback within %d ms of simulated time", c->name,
				 in->timeout);
	if (result == DRV_ERROR_NONE && wait.gone)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 "%s: device %u was closed by another thread", c->name, dev);
	if (result != DRV_ERROR_NONE)
		return result;
	wait.first->shown = true;
	memset(out->cqIdBitmap, 0, out->cqIdBitmapSize * sizeof(*out->cqIdBitmap));
	out->cqIdBitmap[wait.first->id / 64] = UINT64_C(1) << wait.first->id % 64;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halCqReportGet, SIM_CALL_QUERY, (uint32_t, dev), (struct halReportGetInput *, in),
	  (struct halReportGetOutput *, out))
{
	struct queue_cq *cq = FIND(c, dev, in, cqId);

	if (cq == NULL || out == NULL)
		return c->result ?: bsim_null(c->name, "out");
	*out = (struct halReportGetOutput){ .count = cq->shown };
	if (cq->shown)
		out->reportPtr = &first_of(cq)->callback;
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halReportRelease, SIM_CALL_QUERY, (uint32_t, dev), (struct halReportReleaseInfo *, info))
{
	struct queue_cq *cq = FIND(c, dev, info, cqId);

	if (cq == NULL)
		return c->result;
	if (info->count != 1 || !cq->shown)
		return bsim_invalid("%s: count is %u: %d reports of callback queue %u are taken",
				    c->name, info->count, cq->shown, info->cqId);
	cq->shown = false;
	report_drop(cq, first_of(cq));
	queue_changed_locked(c->bs);
	queue_wake_locked(c->bs, SQ_CQ_FULL, dev, 0);
	queue_run_locked(c->bs, sim_host_ps(c->bs->sim));
	return DRV_ERROR_NONE;
}

BSIM_CALL(halSqMemGet, SIM_CALL_QUERY, (uint32_t, dev), (struct halSqMemGetInput *, in),
	  (struct halSqMemGetOutput *, out))
{
	struct queue_cq *cq = FIND(c, dev, in, sqId);

	if (cq == NULL || out == NULL)
		return c->result ?: bsim_null(c->name, "out");
	*out = (struct halSqMemGetOutput){ .cmdCount = 1, .cmdPtr = &cq->command };
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halSqMsgSend, SIM_CALL_SUBMIT, (uint32_t, dev), (struct halSqMsgInfo *, info))
{
	struct queue_cq *cq = FIND(c, dev, info, sqId);

	if (cq == NULL)
		return c->result;
	if (info->cmdCount != 1 || cq->command.type != STARS_COMMAND_RECORD)
		return bsim_unsupported("%s: cmdCount is %u and the command's type %u: one of type "
					"%d, which records an event, is modelled",
					c->name, info->cmdCount, cq->command.type,
					STARS_COMMAND_RECORD);
	return queue_id_record_locked(c, dev, DRV_EVENT_ID, cq->command.event_id);
}
