/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams as objects: their slots, the lists of those that are live, and their queues in the
 * driver: entries go out, completions come in. Owns the numbers of entries, what waits for which,
 * and the rule that one thread at a time waits in the driver for a stream's completions while the
 * others wait for that thread. A program that waits for a stream on which nothing happens is told,
 * once per wait, which task is at its head and what would complete it; the wait goes on.
 */
#include "core/object/stream.h"

#include "base/clock.h"
#include "base/lock.h"
#include "core/object/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void prepare_stream(void *object)
{
	struct core_stream *stream = object;

	pthread_mutex_init(&stream->lock, NULL);
	clock_cond_init(&stream->progress);
}

struct core_pool core_streams =
	CORE_POOL(2, "stream", "aclrtCreateStream", struct core_stream, prepare_stream);
struct core_owned core_stream_lists[CORE_DEVICE_MAX];

unsigned core_stream_live(uint32_t device)
{
	return core_owned_live(&core_streams, device);
}

void **core_stream_list(uint32_t device, unsigned *out_count)
{
	const struct core_slot *slot;
	void **handles;
	LOCKED(&core_lists_lock);

	*out_count = 0;
	handles = calloc(core_stream_live(device) + 1u, sizeof(*handles));
	slot = handles == NULL ? NULL : LIST_FIRST(&core_stream_lists[device]);
	for (; slot != NULL; slot = LIST_NEXT(slot, sibling))
		handles[(*out_count)++] = core_slot_handle(slot);
	return handles;
}

/* ---- waits without progress ---- */

#define CHAIN_MAX 4u /* streams that wait for each other and are named */

static void add_value(char **report, const struct npu_head *head)
{
	static const char *const compares[] = { "at least", "equal to", "with a bit of",
						"with a bit that is clear in it and in" };

	npu_text_add(report,
		     "waits for a value at 0x%" PRIx64 " %s 0x%" PRIx64 ", where 0x%" PRIx64
		     " is: a write of such a value ends the wait",
		     head->va, head->compare < 4 ? compares[head->compare] : "compared with",
		     head->wanted, head->found);
}

/* False: the stream moves, or has nothing to do. */
static bool add_head(char **report, struct core_stream *stream, void **out_next)
{
	struct core_stall stall = { .next = NULL };
	struct npu_head head = { .kind = NPU_HEAD_RUNS };
	const struct core_done *first;
	unsigned task;
	drvError_t code;
	int32_t id;

	pthread_mutex_lock(&stream->lock);
	first = &stream->pending[(stream->done + 1) % CORE_QUEUE_DEPTH];
	task = (unsigned)((stream->done + 1) & (CORE_TASK_IDS - 1));
	id = stream->id;
	if (first->describe != NULL)
		first->describe(first->arg, &stall);
	pthread_mutex_unlock(&stream->lock);
	code = core_call(npusimAwait, stream->device, (uint32_t)id, stream->logic_cq, 0, &head);
	if (code != DRV_ERROR_NOT_SUPPORT &&
	    (code != DRV_ERROR_WAIT_TIMEOUT || head.kind == NPU_HEAD_NONE ||
	     head.kind == NPU_HEAD_RUNS || head.task != task))
		return false;
	npu_text_add(report, "task %u of stream %d ", task, id);
	if (stall.text[0] != '\0')
		npu_text_add(report, "%s", stall.text);
	else if (head.kind == NPU_HEAD_VALUE)
		add_value(report, &head);
	else if (head.kind == NPU_HEAD_NOTIFY)
		npu_text_add(report,
			     "waits for notify %u of device %u, which nobody has recorded: "
			     "aclrtRecordNotify ends the wait",
			     head.id, head.device);
	else if (head.kind == NPU_HEAD_STOPPED)
		npu_text_add(report, "is not done, for aclrtStreamStop has stopped the stream: "
				     "aclrtStreamAbort clears it");
	else
		npu_text_add(report, "is not done");
	*out_next = stall.next;
	return true;
}

static bool add_chain(char **report, struct core_stream *stream)
{
	const struct core_stream *first = stream;
	unsigned count = 0;

	while (stream != NULL && count < CHAIN_MAX) {
		char *head = NULL;
		void *next = NULL;
		bool stands = add_head(&head, stream, &next);

		if (stands)
			npu_text_add(report, "%s%s", count++ > 0 ? "; there " : "", head ?: "");
		free(head);
		stream = stands ? core_pool_find(&core_streams, next) : NULL;
		if (stream == first)
			break;
	}
	return count > 0;
}

static uint64_t patience_ns(void)
{
	const char *value = npu_var_get(NPU_VAR_PATIENCE, NULL);
	double seconds = strtod(value, NULL);

	return strcmp(value, "off") == 0 ? UINT64_MAX : (uint64_t)(seconds * 1e9);
}

/* Wall time in ms until tell_stall_locked() has to say something of this wait; UINT32_MAX: never.
 */
static uint32_t stall_due_locked(const struct core_stream *stream, struct core_wait *wait)
{
	uint64_t now, passed, left_ms;

	if (wait->quiet || wait->deadline_ns != UINT64_MAX)
		return UINT32_MAX;
	if (wait->since_ns == 0)
		wait->patience_ns = patience_ns();
	if (wait->patience_ns == UINT64_MAX)
		return UINT32_MAX;
	now = clock_now_ns();
	if (wait->since_ns == 0 || wait->seen != stream->done) {
		wait->since_ns = now;
		wait->seen = stream->done;
	}
	passed = now - wait->since_ns;
	if (passed >= wait->patience_ns)
		return 0;
	left_ms = (wait->patience_ns - passed) / 1000000 + 1;
	return left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
}

/* Warns, once a wait, if it is due and the stream stands: who waits, for which task, and what would
 * end it. The lock is released meanwhile. */
static void tell_stall_locked(struct core_stream *stream, struct core_wait *wait)
{
	bool findable = core_slot_handle(stream) != NULL && !stream->is_default;
	char *report = NULL;

	if (!core_wait_holds(stream, wait) || stall_due_locked(stream, wait) != 0)
		return;
	pthread_mutex_unlock(&stream->lock);
	npu_text_add(&report,
		     "%s has waited for stream %d for %.3g s in which nothing of it was done: ",
		     core_called, stream->id, (double)wait->patience_ns * 1e-9);
	if (add_chain(&report, stream)) {
		if (findable)
			npu_text_add(&report,
				     "; aclrtDestroyStreamForce drops what is queued on a stream");
		npu_log(NPU_LOG_WARN, "%s", report ?: core_called);
		wait->patience_ns = UINT64_MAX;
	} else {
		wait->since_ns = clock_now_ns();
	}
	free(report);
	pthread_mutex_lock(&stream->lock);
}

#define IN_FLIGHT_MAX (CORE_QUEUE_DEPTH - 64u)
#define RECEIVE_MAX   64u
#define REAP_EVERY    64u
/* How long one wait in a driver that simulates nothing may take: a thread that waits there sees no
 * other's orders. */
#define SLICE_MS 100

/* ---- the queues ---- */

static drvError_t bind_queues(struct core_stream *stream, int prop)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID,
					     .resourceId = (uint32_t)stream->id };
	struct halResourceConfigInfo config = { .prop = prop, .value = { stream->logic_cq } };

	return core_call(halResourceConfig, stream->device, &id, &config);
}

static void release(struct core_stream *stream)
{
	struct halSqCqFreeInfo info = { .type = DRV_LOGIC_TYPE, .cqId = stream->logic_cq };

	bind_queues(stream, DRV_STREAM_UNBIND_LOGIC_CQ);
	core_call(halSqCqFree, stream->device, &info);
	info = (struct halSqCqFreeInfo){ .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .cqId = stream->cq };
	core_call(halSqCqFree, stream->device, &info);
	stream->sq = stream->cq = stream->logic_cq = UINT32_MAX; /* others may get the numbers */
}

static drvError_t allocate(struct core_stream *stream)
{
	struct halSqCqInputInfo in = {
		.type = DRV_NORMAL_TYPE,
		.sqeSize = STARS_SQE_BYTES,
		.cqeSize = 16,
		.sqeDepth = CORE_QUEUE_DEPTH,
		.cqeDepth = CORE_QUEUE_DEPTH,
		.info = { (uint32_t)stream->id },
	};
	struct halSqCqOutputInfo out = { 0 };
	struct halSqCqFreeInfo undo = { .type = DRV_NORMAL_TYPE };
	drvError_t code = core_call(halSqCqAllocate, stream->device, &in, &out);

	if (code != DRV_ERROR_NONE)
		return code;
	stream->sq = undo.sqId = out.sqId;
	stream->cq = undo.cqId = out.cqId;
	in.type = DRV_LOGIC_TYPE;
	in.cqeSize = sizeof(struct stars_logic_cqe);
	memset(&out, 0, sizeof(out));
	code = core_call(halSqCqAllocate, stream->device, &in, &out);
	if (code != DRV_ERROR_NONE) {
		core_call(halSqCqFree, stream->device, &undo);
		return code;
	}
	stream->logic_cq = out.cqId;
	code = bind_queues(stream, DRV_STREAM_BIND_LOGIC_CQ);
	if (code != DRV_ERROR_NONE)
		release(stream);
	else
		core_order(stream->device, NPU_ORDER_STREAM, stream->sq, 0);
	return code;
}

int core_stream_open_queue(struct core_stream *stream)
{
	struct halResourceIdInputInfo in = { .type = DRV_STREAM_ID,
					     .res = { stream->priority, stream->flags } };
	struct halResourceIdOutputInfo out = { 0 };
	drvError_t code = core_call(halResourceIdAlloc, stream->device, &in, &out);

	if (code != DRV_ERROR_NONE)
		return core_result(code);
	stream->id = (int32_t)out.resourceId;
	in.resourceId = out.resourceId;
	code = allocate(stream);
	if (code != DRV_ERROR_NONE)
		core_call(halResourceIdFree, stream->device, &in);
	return core_result(code);
}

void core_stream_close_queue(struct core_stream *stream)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID,
					     .resourceId = (uint32_t)stream->id };

	release(stream);
	core_call(halResourceIdFree, stream->device, &id);
}

/* ---- an abort ---- */

#define LEAVE_MAX_MS 2000 /* for a thread to leave the driver */

int core_stream_aborted(const struct core_stream *stream)
{
	return core_fail(ACL_ERROR_RT_STREAM_ABORT,
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

int core_stream_renew_queue_locked(struct core_stream *stream)
{
	drvError_t code;

	release(stream);
	core_stream_wait_leave_locked(stream);
	code = allocate(stream);
	stream->alive = code == DRV_ERROR_NONE; /* else it has no queue left */
	return core_result(code);
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
		[STARS_SQE_WRITE_VALUE] = "write of a value or record of a notify",
		[STARS_SQE_COND] = "wait for a value",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] != NULL ? names[type]
									      : "task";
}

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
	return (cqe->error_type & STARS_ERROR_TIMEOUT) != 0 ? ACL_ERROR_RT_TASK_TIMEOUT
							    : ACL_ERROR_RT_TS_ERROR;
}

/* The model has told of it in the log when it happened; of others this is the first word. */
static void note_error_locked(struct core_stream *stream, const struct stars_logic_cqe *cqe)
{
	struct npu_driver *drv = core_driver();
	bool model = drv != NULL && (drv->caps & NPU_CAP_MODEL) != 0;
	int code = code_of(cqe), none = CORE_OK;
	const char *why;

	if ((cqe->error_type & STARS_ERROR_MASK) == 0)
		return;
	stream->failed = atomic_load(&stream->slot.context->stops);
	if (stream->failed)
		atomic_compare_exchange_strong(&stream->slot.context->failure, &none, code);
	if (stream->failure != CORE_OK)
		return;
	why = drv == NULL ? NULL : npu_call(drv, npusimLastMessage);
	stream->failure = code;
	npu_text_add(&stream->cause_text, "a %s on stream %d failed (%s, code %u)%s%s",
		     entry_name(cqe->sqe_type), stream->id,
		     (cqe->error_type & STARS_ERROR_TIMEOUT) != 0 ? "time-out" : "exception",
		     cqe->error_code, why != NULL && why[0] != '\0' ? ": " : "", why ?: "");
	npu_log(model ? NPU_LOG_INFO : NPU_LOG_WARN, "%s", stream->cause_text ?: "a task failed");
}

void core_stream_complete_locked(struct core_stream *stream, uint64_t last,
				 const struct stars_logic_cqe *cqe)
{
	for (uint64_t seq = stream->done + 1; seq <= last; seq++) {
		struct core_done *pending = &stream->pending[seq % CORE_QUEUE_DEPTH];
		struct core_done done = *pending;

		*pending = (struct core_done){ 0 };
		if (done.fn != NULL)
			done.fn(done.arg, cqe);
	}
	stream->done = last;
}

/* A completion stands for all entries up to its own: a stream does them in order. */
static void take_locked(struct core_stream *stream, const struct stars_logic_cqe *cqe)
{
	uint64_t first = stream->done + 1;
	uint64_t last = first + ((cqe->task_id - first) & (CORE_TASK_IDS - 1));

	if (last > stream->sent) {
		npu_log(NPU_LOG_WARN,
			"stream %d: a completion of task %u, which is not in flight; ignored",
			stream->id, cqe->task_id);
		return;
	}
	stream->done_ns = cqe->timestamp;
	note_error_locked(stream, cqe);
	core_stream_complete_locked(stream, last, cqe);
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
	drvError_t code = DRV_ERROR_NONE;
	struct npu_head head;

	stream->receiving = true;
	pthread_mutex_unlock(&stream->lock);
	if (patience_ms != UINT32_MAX)
		code = core_call(npusimAwait, stream->device, info.stream_id, info.cqId,
				 patience_ms, &head);
	if (code != DRV_ERROR_WAIT_TIMEOUT)
		code = core_call(halCqReportRecv, stream->device, &info);
	pthread_mutex_lock(&stream->lock);
	stream->receiving = false;
	stream->reap_due = 0;
	for (uint32_t i = 0; code == DRV_ERROR_NONE && i < info.report_cqe_num; i++)
		take_locked(stream, &cqe[i]);
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
	struct timespec until = clock_after_ms(most_ms);

	if (most_ms == UINT32_MAX)
		pthread_cond_wait(&stream->progress, &stream->lock);
	else
		pthread_cond_timedwait(&stream->progress, &stream->lock, &until);
}

int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait)
{
	struct npu_driver *drv = core_driver();
	bool limited = wait->deadline_ns != UINT64_MAX;
	bool model = drv != NULL && (drv->caps & NPU_CAP_MODEL) != 0;
	uint64_t now = limited ? core_now_ns() : 0;
	uint32_t patience_ms = stall_due_locked(stream, wait);
	drvError_t code = DRV_ERROR_NONE;

	if (stream->aborting) /* the wait began meanwhile; the queue that it would ask goes */
		return core_stream_aborted(stream);
	if (limited && now >= wait->deadline_ns)
		return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
	/* The deadline is one of simulated time, which the wait for another thread does not know:
	 * look again soon. */
	if (stream->receiving)
		wait_for_receiver_locked(stream, limited ? 2 : patience_ms);
	else
		code = receive_locked(stream, receive_timeout(wait->deadline_ns, now, model),
				      model ? patience_ms : UINT32_MAX);
	if (code != DRV_ERROR_NONE && code != DRV_ERROR_WAIT_TIMEOUT)
		return core_result(code);
	tell_stall_locked(stream, wait);
	return CORE_OK;
}

/* ---- entries out ---- */

static int lost(const struct core_stream *stream, const struct core_wait *wait)
{
	if (core_wait_is_aborted(stream, wait))
		return core_stream_aborted(stream);
	return core_invalid("stream %d was destroyed while the call waited for room in its queue",
			    stream->id);
}

static int make_room_locked(struct core_stream *stream, unsigned count)
{
	struct core_wait wait = core_wait_begin(stream, UINT64_MAX);

	if (stream->aborting)
		return core_stream_aborted(stream);
	if (stream->reap_due++ >= REAP_EVERY)
		core_stream_reap_locked(stream);
	while (core_wait_holds(stream, &wait) &&
	       stream->sent - stream->done + count > IN_FLIGHT_MAX) {
		int code = core_stream_progress_locked(stream, &wait);

		if (code != CORE_OK)
			return code;
	}
	return core_wait_holds(stream, &wait) ? CORE_OK : lost(stream, &wait);
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

static int submit_locked(struct core_stream *stream, uint8_t *entries, unsigned count)
{
	struct halTaskSendInfo info = {
		.type = DRV_NORMAL_TYPE,
		.sqId = stream->sq,
		.sqe_addr = entries,
		.sqe_num = count,
	};
	struct core_wait wait = core_wait_begin(stream, UINT64_MAX);

	for (unsigned i = 0; i < count; i++) {
		struct stars_sqe_header *header =
			(struct stars_sqe_header *)(void *)(entries + i * STARS_SQE_BYTES);

		header->stream_id = (uint16_t)stream->id;
		header->task_id = (uint16_t)((stream->sent + 1 + i) & (CORE_TASK_IDS - 1));
		header->wr_cqe = 1;
		give_credit(entries + i * STARS_SQE_BYTES);
	}
	for (;;) {
		drvError_t code = core_call(halSqTaskSend, stream->device, &info);
		int error;

		if (code == DRV_ERROR_NONE)
			return CORE_OK;
		if (!is_full(code) || stream->done == stream->sent)
			return core_result(code);
		error = core_stream_progress_locked(stream, &wait);
		if (error != CORE_OK)
			return error;
		if (!core_wait_holds(stream, &wait))
			return lost(stream, &wait);
	}
}

int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done)
{
	int code = core_context_stopped(stream->slot.context) ?: make_room_locked(stream, count);

	code = code ?: submit_locked(stream, entries, count);
	if (code != CORE_OK)
		return code;
	for (unsigned i = 0; i < count; i++) {
		stream->sent++;
		if (done != NULL)
			stream->pending[stream->sent % CORE_QUEUE_DEPTH] = done[i];
	}
	return CORE_OK;
}

int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done)
{
	LOCKED(&stream->lock);

	return core_stream_send_locked(stream, entries, count, done);
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

/* ---- ids of events ---- */

int core_event_id_take(uint32_t device, uint32_t *out_id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out = { 0 };

	return core_result(core_call(halResourceIdAlloc, device, &in, &out))
		       ?: CORE_GIVE(out_id, out.resourceId);
}

void core_event_id_give(uint32_t device, uint32_t id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };

	core_call(halResourceIdFree, device, &in);
}

void core_event_id_record(uint32_t device, uint32_t id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RECORD };

	core_call(halResourceConfig, device, &in, &config);
}
