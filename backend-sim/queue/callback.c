/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls for callback queues, by which entries of a stream have the host call functions. One
 * call takes the oldest report of a group of queues, which stays with its queue until it is
 * released; a blocking function's end comes back as a command that records the event for which the
 * stream waits.
 */
#include <string.h>

#include "queue/queue.h"

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
	queue_report_drop(cq, first_of(cq));
	queue_changed_locked(c->bs);
	queue_room_locked(c->bs, dev);
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
