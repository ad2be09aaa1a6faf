/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream's queues in the driver: entries go out, completions come in. Owns the numbers of
 * entries, what waits for which, and the rule that one thread at a time waits in the driver for a
 * stream's completions while the others wait for that thread.
 */
#include "core/object/stream.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/lock.h"
#include "core/object/error.h"
#include "core/object/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_DEPTH   2048u
#define IN_FLIGHT_MAX (QUEUE_DEPTH - 64u)
#define RECEIVE_MAX   64u
#define REAP_EVERY    64u
/* How long one wait in a driver that simulates nothing may take: a thread that waits there sees no
 * other's orders. */
#define SLICE_MS 100

/* ---- the queues ---- */

static drvError_t allocate(struct npu_driver *drv, struct core_stream *stream)
{
	struct halSqCqInputInfo in = {
		.type = DRV_NORMAL_TYPE,
		.sqeSize = STARS_SQE_BYTES,
		.cqeSize = 16,
		.sqeDepth = QUEUE_DEPTH,
		.cqeDepth = QUEUE_DEPTH,
		.info = { (uint32_t)stream->id },
	};
	struct halSqCqOutputInfo out = { 0 };
	struct halSqCqFreeInfo undo = { .type = DRV_NORMAL_TYPE };
	drvError_t code = npu_call(drv, halSqCqAllocate, stream->device, &in, &out);

	if (code != DRV_ERROR_NONE)
		return code;
	stream->sq = out.sqId;
	stream->cq = out.cqId;
	in.type = DRV_LOGIC_TYPE;
	in.cqeSize = sizeof(struct stars_logic_cqe);
	memset(&out, 0, sizeof(out));
	code = npu_call(drv, halSqCqAllocate, stream->device, &in, &out);
	if (code != DRV_ERROR_NONE) {
		undo.sqId = stream->sq;
		undo.cqId = stream->cq;
		npu_call(drv, halSqCqFree, stream->device, &undo);
		return code;
	}
	stream->logic_cq = out.cqId;
	return DRV_ERROR_NONE;
}

static void release(struct npu_driver *drv, struct core_stream *stream)
{
	struct halSqCqFreeInfo info = { .type = DRV_LOGIC_TYPE, .cqId = stream->logic_cq };

	npu_call(drv, halSqCqFree, stream->device, &info);
	info = (struct halSqCqFreeInfo){ .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .cqId = stream->cq };
	npu_call(drv, halSqCqFree, stream->device, &info);
}

static drvError_t bind_queues(struct npu_driver *drv, struct core_stream *stream, int prop)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID,
					     .resourceId = (uint32_t)stream->id };
	struct halResourceConfigInfo config = { .prop = prop, .value = { stream->logic_cq } };

	return npu_call(drv, halResourceConfig, stream->device, &id, &config);
}

int core_stream_open_queue(struct core_stream *stream, const char *call)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_STREAM_ID,
					     .res = { stream->priority, stream->flags } };
	struct halResourceIdOutputInfo out = { 0 };
	drvError_t code;

	if (drv == NULL)
		return CORE_API_INTERNAL;
	code = npu_call(drv, halResourceIdAlloc, stream->device, &in, &out);
	if (code != DRV_ERROR_NONE)
		return core_result(call, code);
	stream->id = (int32_t)out.resourceId;
	in.resourceId = out.resourceId;
	code = allocate(drv, stream);
	if (code == DRV_ERROR_NONE) {
		code = bind_queues(drv, stream, DRV_STREAM_BIND_LOGIC_CQ);
		if (code == DRV_ERROR_NONE)
			return CORE_OK;
		release(drv, stream);
	}
	npu_call(drv, halResourceIdFree, stream->device, &in);
	return core_result(call, code);
}

void core_stream_close_queue(struct core_stream *stream)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID,
					     .resourceId = (uint32_t)stream->id };

	if (drv == NULL)
		return;
	bind_queues(drv, stream, DRV_STREAM_UNBIND_LOGIC_CQ);
	release(drv, stream);
	npu_call(drv, halResourceIdFree, stream->device, &id);
}

/* ---- an abort ---- */

#define LEAVE_MAX_MS 2000 /* for a thread to leave the driver */

int core_stream_aborted(const struct core_stream *stream, const char *call)
{
	return core_fail(CORE_STREAM_ABORT, call,
			 "stream %d is aborted (aclrtStreamAbort): what was on it is dropped",
			 stream->id);
}

/* The thread that waits in the driver for this stream leaves when its queue is gone. */
bool core_stream_wait_leave_locked(struct core_stream *stream)
{
	UNCANCELLED;
	struct timespec until = clock_after_ms(LEAVE_MAX_MS);
	int code = 0;

	while (stream->receiving && code != ETIMEDOUT)
		code = pthread_cond_timedwait(&stream->progress, &stream->lock, &until);
	return !stream->receiving;
}

void core_stream_wait_abort_locked(struct core_stream *stream)
{
	UNCANCELLED;

	while (stream->aborting)
		pthread_cond_wait(&stream->progress, &stream->lock);
}

int core_stream_renew_queue_locked(struct core_stream *stream, const char *call)
{
	struct npu_driver *drv = core_driver();
	drvError_t code;

	if (drv == NULL)
		return CORE_API_INTERNAL;
	bind_queues(drv, stream, DRV_STREAM_UNBIND_LOGIC_CQ);
	release(drv, stream);
	core_stream_wait_leave_locked(stream);
	code = allocate(drv, stream);
	if (code == DRV_ERROR_NONE)
		code = bind_queues(drv, stream, DRV_STREAM_BIND_LOGIC_CQ);
	stream->alive = code == DRV_ERROR_NONE; /* else it has no queue left */
	return core_result(call, code);
}

/* ---- completions in ---- */

static const char *entry_name(uint8_t type)
{
	static const char *const names[] = {
		[STARS_SQE_SDMA] = "copy or fill on the device",
		[STARS_SQE_PCIE_DMA] = "copy between host and device",
		[STARS_SQE_EVENT_WAIT] = "wait for an event",
		[STARS_SQE_EVENT_RECORD] = "record of an event",
		[STARS_SQE_NOTIFY_WAIT] = "wait for a notify",
		[STARS_SQE_NOTIFY_RECORD] = "record of a notify",
		[STARS_SQE_WRITE_VALUE] = "write of a value",
		[STARS_SQE_COND] = "wait for a value",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] != NULL ? names[type]
									      : "task";
}

/* Bits of a completion's error_type, as the task scheduler defines them. */
enum { CQE_EXCEPTION = 1, CQE_TRAP = 2, CQE_TIMEOUT = 4, CQE_ERRORS = 0x3f };

/* As CANN's runtime v8.5.0 has it (src/runtime/feature/src):
 *
 *   a copy by SDMA or PCIe DMA   TS_ERROR_SDMA_ERROR      507001  task/task_info/memory_task.cc:685
 *   its time-out                 TS_ERROR_SDMA_TIMEOUT    107020  memory_task.cc:681
 *   a wait's time-out            TS_ERROR_TASK_TIMEOUT    107020 task/task_info/task_manager.cc:434
 *   an entry that is not right   TS_ERROR_TASK_SQE_ERROR  507001  task_manager.cc:435
 *   any other exception          TS_ERROR_TASK_EXCEPTION  507001  task_manager.cc:432
 *
 * which common/error_code.cc:257-271 and common/errcode_manage.cc:441-444 make these codes of. */
static int code_of(const struct stars_logic_cqe *cqe)
{
	return (cqe->error_type & CQE_TIMEOUT) != 0 ? CORE_TASK_TIMEOUT : CORE_TS_ERROR;
}

/* The model has told of it in the log when it happened; of others this is the first word. */
static void note_error_locked(struct core_stream *stream, const struct stars_logic_cqe *cqe)
{
	struct npu_driver *drv = core_driver();
	bool model = drv != NULL && (drv->caps & NPU_CAP_MODEL) != 0;
	const char *why;

	if ((cqe->error_type & CQE_ERRORS) == 0 || stream->failure != CORE_OK)
		return;
	why = drv == NULL ? NULL : npu_call(drv, npusimLastMessage);
	stream->failure = code_of(cqe);
	npu_text_add(&stream->cause_text, "a %s on stream %d failed (%s, code %u)%s%s",
		     entry_name(cqe->sqe_type), stream->id,
		     (cqe->error_type & CQE_TIMEOUT) != 0 ? "time-out" : "exception",
		     cqe->error_code, why != NULL && why[0] != '\0' ? ": " : "",
		     why != NULL ? why : "");
	npu_log(model ? NPU_LOG_INFO : NPU_LOG_WARN, "%s",
		stream->cause_text != NULL ? stream->cause_text : "a task failed");
}

/* The number of the entry that a completion names; 0 if no entry in flight has that id. */
static uint64_t seq_of(const struct core_stream *stream, uint16_t task_id)
{
	uint64_t first = stream->done + 1;
	uint64_t ahead = (task_id - first) & (CORE_TASK_IDS - 1);

	return first + ahead <= stream->sent ? first + ahead : 0;
}

/* A completion stands for all entries up to its own: a stream does them in order. */
static void complete_locked(struct core_stream *stream, const struct stars_logic_cqe *cqe)
{
	uint64_t seq = seq_of(stream, cqe->task_id);

	if (seq == 0) {
		npu_log(NPU_LOG_WARN,
			"stream %d: a completion of task %u, which is not in flight; ignored",
			stream->id, cqe->task_id);
		return;
	}
	note_error_locked(stream, cqe);
	while (stream->pending_count > 0) {
		struct stream_pending *pending = &stream->pending[stream->pending_first];

		if (pending->seq > seq)
			break;
		stream->pending_first = (stream->pending_first + 1) % stream->pending_room;
		stream->pending_count--;
		if (pending->done.fn != NULL)
			pending->done.fn(pending->done.arg, cqe);
	}
	stream->done = seq;
}

/* Asks the driver for completions, the lock released meanwhile; the caller is the one receiver.
 * patience_ms is of wall time, and counts on the model, which knows no slices. */
static drvError_t receive_locked(struct core_stream *stream, int32_t timeout_ms,
				 uint32_t patience_ms)
{
	struct stars_logic_cqe cqe[RECEIVE_MAX];
	struct halReportRecvInfo info = {
		.type = DRV_LOGIC_TYPE,
		.cqId = stream->logic_cq,
		.timeout = timeout_ms,
		.cqe_addr = (uint8_t *)cqe,
		.cqe_num = RECEIVE_MAX,
		.stream_id = (uint32_t)stream->id,
		.task_id = UINT32_MAX,
	};
	struct npu_driver *drv = core_driver();
	drvError_t code = DRV_ERROR_NONE;
	struct npu_head head;

	if (drv == NULL)
		return DRV_ERROR_PROCESS_EXIT;
	stream->receiving = true;
	pthread_mutex_unlock(&stream->lock);
	if (patience_ms != UINT32_MAX)
		code = npu_call(drv, npusimAwait, stream->device, info.stream_id, info.cqId,
				patience_ms, &head);
	if (code != DRV_ERROR_WAIT_TIMEOUT)
		code = npu_call(drv, halCqReportRecv, stream->device, &info);
	pthread_mutex_lock(&stream->lock);
	stream->receiving = false;
	stream->reap_due = 0;
	for (uint32_t i = 0; code == DRV_ERROR_NONE && i < info.report_cqe_num; i++)
		complete_locked(stream, &cqe[i]);
	pthread_cond_broadcast(&stream->progress);
	return code;
}

void core_stream_reap_locked(struct core_stream *stream)
{
	while (stream->alive && !stream->receiving && stream->done < stream->sent) {
		uint64_t before = stream->done;

		if (receive_locked(stream, 0, UINT32_MAX) != DRV_ERROR_NONE ||
		    stream->done == before)
			break;
	}
}

static int32_t receive_timeout(uint64_t deadline_ns, uint64_t now_ns, bool model)
{
	uint64_t ms =
		deadline_ns == UINT64_MAX ? UINT64_MAX : (deadline_ns - now_ns + 999999) / 1000000;

	if (!model && ms > SLICE_MS)
		return SLICE_MS;
	return ms > INT32_MAX ? -1 : (int32_t)ms;
}

static void wait_for_receiver_locked(struct core_stream *stream, uint32_t most_ms)
{
	UNCANCELLED;
	struct timespec until;

	if (most_ms == UINT32_MAX) {
		pthread_cond_wait(&stream->progress, &stream->lock);
		return;
	}
	until = clock_after_ms(most_ms);
	pthread_cond_timedwait(&stream->progress, &stream->lock, &until);
}

int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait)
{
	struct npu_driver *drv = core_driver();
	bool limited = wait->deadline_ns != UINT64_MAX;
	bool model = drv != NULL && (drv->caps & NPU_CAP_MODEL) != 0;
	uint64_t now = limited ? core_now_ns() : 0;
	uint32_t patience_ms = core_stall_due_locked(stream, wait);
	drvError_t code = DRV_ERROR_NONE;

	if (stream->aborting) /* the wait began meanwhile; the queue that it would ask goes */
		return core_stream_aborted(stream, wait->call != NULL ? wait->call : "npusim");
	if (limited && now >= wait->deadline_ns)
		return CORE_STREAM_SYNC_TIMEOUT;
	/* The deadline is one of simulated time, which the wait for another thread does not know:
	 * look again soon. */
	if (stream->receiving)
		wait_for_receiver_locked(stream, limited ? 2 : patience_ms);
	else
		code = receive_locked(stream, receive_timeout(wait->deadline_ns, now, model),
				      model ? patience_ms : UINT32_MAX);
	if (code != DRV_ERROR_NONE && code != DRV_ERROR_WAIT_TIMEOUT)
		return core_result(wait->call != NULL ? wait->call : "npusim", code);
	core_stall_tell_locked(stream, wait);
	return CORE_OK;
}

/* ---- entries out ---- */

static bool remember_locked(struct core_stream *stream, uint64_t seq, const struct core_done *done)
{
	struct stream_pending *pending;

	if (done == NULL || done->fn == NULL)
		return true;
	if (stream->pending_count == stream->pending_room) {
		unsigned room = stream->pending_room == 0 ? 64 : stream->pending_room * 2;
		struct stream_pending *grown = calloc(room, sizeof(*grown));

		if (grown == NULL)
			return false;
		for (unsigned i = 0; i < stream->pending_count; i++)
			grown[i] =
				stream->pending[(stream->pending_first + i) % stream->pending_room];
		free(stream->pending);
		stream->pending = grown;
		stream->pending_first = 0;
		stream->pending_room = room;
	}
	pending = &stream->pending[(stream->pending_first + stream->pending_count) %
				   stream->pending_room];
	pending->seq = seq;
	pending->done = *done;
	stream->pending_count++;
	return true;
}

static int lost(const struct core_stream *stream, const struct core_wait *wait, const char *call)
{
	if (core_wait_is_aborted(stream, wait))
		return core_stream_aborted(stream, call);
	return core_invalid(call,
			    "stream %d was destroyed while the call waited for room in its queue",
			    stream->id);
}

static int make_room_locked(struct core_stream *stream, unsigned count, const char *call)
{
	struct core_wait wait = core_wait_begin(stream, UINT64_MAX, call);

	if (stream->aborting)
		return core_stream_aborted(stream, call);
	if (stream->reap_due++ >= REAP_EVERY)
		core_stream_reap_locked(stream);
	while (core_wait_holds(stream, &wait) &&
	       stream->sent - stream->done + count > IN_FLIGHT_MAX) {
		int code = core_stream_progress_locked(stream, &wait);

		if (code != CORE_OK)
			return code;
	}
	return core_wait_holds(stream, &wait) ? CORE_OK : lost(stream, &wait, call);
}

static bool is_full(drvError_t code)
{
	return code == DRV_ERROR_SQID_FULL || code == DRV_ERROR_QUEUE_FULL ||
	       code == DRV_ERROR_OUT_OF_CMD_SLOT || code == DRV_ERROR_TRY_AGAIN ||
	       code == DRV_ERROR_WAIT_TIMEOUT;
}

/* Waits may take for ever; npusim's own entry has no credit. */
static void give_credit(uint8_t *entry)
{
	const struct stars_sqe_header *header = (const struct stars_sqe_header *)(void *)entry;

	if (header->type == STARS_SQE_EVENT_WAIT || header->type == STARS_SQE_NOTIFY_WAIT)
		entry[STARS_CREDIT_OFFSET] = STARS_CREDIT_FOREVER;
	else if (header->type != STARS_SQE_COND)
		entry[STARS_CREDIT_OFFSET] = STARS_CREDIT_DEFAULT;
}

static int submit_locked(struct core_stream *stream, uint8_t *entries, unsigned count,
			 const char *call)
{
	struct halTaskSendInfo info = {
		.type = DRV_NORMAL_TYPE,
		.sqId = stream->sq,
		.sqe_addr = entries,
		.sqe_num = count,
	};
	struct core_wait wait = core_wait_begin(stream, UINT64_MAX, call);
	struct npu_driver *drv = core_driver();

	if (drv == NULL)
		return CORE_API_INTERNAL;
	for (unsigned i = 0; i < count; i++) {
		struct stars_sqe_header *header =
			(struct stars_sqe_header *)(void *)(entries + i * STARS_SQE_BYTES);

		header->stream_id = (uint16_t)stream->id;
		header->task_id = (uint16_t)((stream->sent + 1 + i) & (CORE_TASK_IDS - 1));
		header->wr_cqe = 1;
		give_credit(entries + i * STARS_SQE_BYTES);
	}
	for (;;) {
		drvError_t code = npu_call(drv, halSqTaskSend, stream->device, &info);
		int error;

		if (code == DRV_ERROR_NONE)
			return CORE_OK;
		if (!is_full(code) || stream->done == stream->sent)
			return core_result(call, code);
		error = core_stream_progress_locked(stream, &wait);
		if (error != CORE_OK)
			return error;
		if (!core_wait_holds(stream, &wait))
			return lost(stream, &wait, call);
	}
}

int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done, const char *call)
{
	int code = make_room_locked(stream, count, call);
	struct core_wait wait;

	code = code ?: submit_locked(stream, entries, count, call);
	if (code != CORE_OK)
		return code;
	wait = core_wait_begin(stream, UINT64_MAX, call);
	for (unsigned i = 0; done != NULL && i < count; i++) {
		if (remember_locked(stream, stream->sent + 1 + i, &done[i]))
			continue;
		/* The host has no memory left: wait for the entry here, and tell at once. */
		stream->sent += count;
		while (core_wait_holds(stream, &wait) && stream->done < stream->sent &&
		       core_stream_progress_locked(stream, &wait) == CORE_OK)
			;
		for (; i < count; i++)
			if (done[i].fn != NULL)
				done[i].fn(done[i].arg, NULL);
		return CORE_OK;
	}
	stream->sent += count;
	return CORE_OK;
}

int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done, const char *call)
{
	LOCKED(&stream->lock);

	return core_stream_send_locked(stream, entries, count, done, call);
}

void core_stream_reap(struct core_stream *stream)
{
	LOCKED(&stream->lock);

	core_stream_reap_locked(stream);
}

void core_stream_reap_device(uint32_t device)
{
	unsigned count = 0;
	void **handles = core_stream_list(device, &count);

	for (unsigned i = 0; i < count; i++) {
		struct core_stream *stream = core_pool_find(&core_streams, handles[i]);

		if (stream != NULL)
			core_stream_reap(stream);
	}
	free(handles);
}
