/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion queues, and the call that takes the reports of completed entries from a logic one. The
 * report of a task for which a caller waits (STARS_CQE_FLAG_MATCH) is left in place for the caller
 * that asks for that task.
 */
#include <glib.h>
#include <string.h>

#include "process/ops.h"
#include "queue/queue.h"

struct queue_cq *queue_cq_of(const struct queue_sq *sq)
{
	const struct queue_id *id = queue_table_find(
		&sq->bs->queues->device[sq->device].ids[DRV_STREAM_ID], sq->stream_id);

	return id == NULL ? NULL : id->cq;
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

void queue_report_drop(struct queue_cq *cq, struct queue_report *report)
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
	queue_changed_locked(bs);
	return DRV_ERROR_NONE;
}

void queue_room_locked(struct bsim *bs, unsigned device)
{
	struct queue_sq *sq, *next;

	for (sq = TAILQ_FIRST(&bs->queues->blocked); sq != NULL; sq = next) {
		next = TAILQ_NEXT(sq, blocked_link);
		if (sq->state == SQ_CQ_FULL && sq->device == device)
			queue_kick_locked(bs, sq);
	}
}

void queue_cq_drop_locked(struct bsim *bs, struct queue_device *device, struct queue_cq *cq)
{
	queue_room_locked(bs, cq->device); /* what was held for it is lost with it */
	for (uint32_t i = 0; i < device->ids[DRV_STREAM_ID].slots; i++) {
		struct queue_id *stream = device->ids[DRV_STREAM_ID].at[i];

		if (stream != NULL && stream->cq == cq)
			stream->cq = NULL;
	}
	while (cq->reports.length != 0)
		queue_report_drop(cq, cq->reports.head->data);
	g_free(cq);
	queue_changed_locked(bs);
}

/* ---- taking reports ---- */

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
		queue_report_drop(cq, report);
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
	queue_room_locked(bs, dev);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}
