/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on streams: creating, finding, waiting, ending; and copies and fills as their entries:
 * the splitting of long ones, and the host buffer from which a fill reads its pattern, which lives
 * until the entries are done.
 */
#include "base/lock.h"
#include "core/end.h"
#include "core/object/stream.h"
#include "core/object/process.h"
#include "driver/layer.h"

#include <stdlib.h>
#include <string.h>

/* ---- made ---- */

static void forget_failure_locked(struct core_stream *stream)
{
	stream->failure = CORE_OK;
	free(stream->cause_text);
	stream->cause_text = NULL;
}

/* With a fresh queue. */
static void be_empty_locked(struct core_stream *stream)
{
	stream->sent = stream->done = 0;
	stream->stopped = stream->aborting = false;
	forget_failure_locked(stream);
}

/* All but the lock and the condition, which are of the slot. */
static void be_born_locked(struct core_stream *stream, struct context *context)
{
	stream->slot.context = context;
	stream->device = context->face.device;
	stream->alive = true;
	stream->life++;
	stream->stop_on_failure = stream->failed = false;
	be_empty_locked(stream);
	stream->receiving = false;
	stream->reap_due = 0;
	stream->subscriber = NULL;
	stream->host_funcs = false;
	stream->attention = 0;
	STAILQ_INIT(&stream->ready);
	stream->pump_started = stream->pump_stop = false;
}

static int make_stream(uint32_t priority, uint32_t flags, bool is_default, void **out_stream)
{
	void *owner, *handle = NULL;
	struct context *context = core_context_look(&owner);
	struct core_stream *stream;
	int code;

	if (context == NULL)
		return core_context_none();
	if (is_default && (*out_stream = atomic_load(&context->default_stream)) != NULL)
		return CORE_OK;
	if (core_stream_live(context->face.device) >= CORE_STREAM_MAX)
		return core_fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
				 "device %d has %u streams, all that there are",
				 context->face.user_device, CORE_STREAM_MAX);
	stream = core_pool_take(&core_streams);
	if (stream == NULL)
		return core_no_memory("no memory for a stream");
	pthread_mutex_lock(&stream->lock);
	be_born_locked(stream, context);
	stream->is_default = is_default;
	stream->priority = priority;
	stream->flags = flags;
	code = core_stream_open_queue(stream);
	pthread_mutex_unlock(&stream->lock);
	if (code == CORE_OK)
		handle = core_owned_link(&core_streams, &core_stream_lists[stream->device], stream,
					 owner, is_default ? &context->default_stream : NULL);
	if (handle != NULL) {
		*out_stream = handle;
		return CORE_OK;
	}
	/* Nobody finds it, but who had the slot's last stream may still look at this one. */
	pthread_mutex_lock(&stream->lock);
	stream->alive = false;
	pthread_mutex_unlock(&stream->lock);
	if (code == CORE_OK)
		core_stream_close_queue(stream);
	core_pool_give(&core_streams, stream);
	return code
		       ?: core_fail(ACL_ERROR_RT_CONTEXT_NULL,
				    "the current context ended while a stream of it was made");
}

int core_stream_create(uint32_t priority, uint32_t flags, void **out_stream)
{
	return make_stream(priority, flags, false, out_stream);
}

/* Made at the first use: a program that only maps memory needs no queue. */
int core_stream_default(void **out_stream)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	void *owner;
	struct context *context = core_context_look(&owner);

	if (context != NULL &&
	    (*out_stream = atomic_load_explicit(&context->default_stream, memory_order_acquire)))
		return CORE_OK;
	LOCKED(&making);
	return make_stream(0, 0, true, out_stream);
}

/* ---- found ---- */

int core_stream_find_any(void *handle, struct core_stream **out)
{
	int code = core_context_peek() == NULL ? core_context_none() : CORE_OK;

	*out = NULL;
	if (code == CORE_OK && handle == NULL)
		code = core_stream_default(&handle);
	if (code != CORE_OK)
		return code;
	*out = core_pool_find(&core_streams, handle);
	return *out != NULL ? CORE_OK
			    : core_pool_missing(&core_streams, handle, ACL_ERROR_RT_PARAM_INVALID);
}

void *core_stream_context(void *handle)
{
	const struct core_stream *stream = core_pool_find(&core_streams, handle);

	return stream == NULL ? NULL : core_slot_handle(stream->slot.context);
}

int core_stream_find(void *handle, struct core_stream **out)
{
	int code = core_stream_find_any(handle, out), owner;
	struct core_context *context = core_context_peek();

	if (*out == NULL || context == NULL || (*out)->slot.context == core_context_of(context))
		return code;
	owner = (*out)->slot.context->face.user_device;
	*out = NULL;
	return core_fail(
		ACL_ERROR_RT_STREAM_CONTEXT,
		"stream=%p belongs to another context (device %d) than the calling thread's "
		"current one (device %d); call aclrtSetDevice or aclrtSetCurrentContext first",
		handle, owner, context->user_device);
}

struct core_stream_facts core_stream_facts(const struct core_stream *stream)
{
	return (struct core_stream_facts){ stream->id, stream->priority, stream->flags,
					   stream->sq, stream->cq,       stream->logic_cq };
}

bool core_stream_set_stop(struct core_stream *stream, bool stop)
{
	LOCKED(&stream->lock);

	if (stream->stop_on_failure && (!stop || stream->failed))
		return false;
	stream->stop_on_failure = stop;
	stream->slot.context->stops |= stop;
	return true;
}

/* ---- used ---- */

/* Until all that was sent when it was called is complete. */
static int wait_locked(struct core_stream *stream, uint64_t deadline_ns)
{
	struct core_wait wait = core_wait_begin(stream, deadline_ns);
	uint64_t target = stream->sent;
	int code = CORE_OK;

	while (code == CORE_OK && core_wait_holds(stream, &wait) && stream->done < target)
		code = core_stream_progress_locked(stream, &wait);
	if (core_wait_is_aborted(stream, &wait))
		code = core_stream_aborted(stream);
	else if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
		core_fail(code, "stream %d has %llu tasks that are not done in time", stream->id,
			  (unsigned long long)(target - stream->done));
	return code;
}

#define BATCH 64u

int core_stream_send(struct core_stream *stream, void *entries, unsigned count,
		     void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg)
{
	struct core_done done[BATCH] = { { 0 } };
	uint8_t *entry = entries;
	int code = CORE_OK;

	LOCKED(&stream->lock);
	while (code == CORE_OK && count > 0) {
		unsigned batch = count < BATCH ? count : BATCH;

		if (batch == count)
			done[batch - 1] = (struct core_done){ .fn = keep, .arg = arg };
		code = core_stream_send_locked(stream, entry, batch, done);
		entry += batch * STARS_SQE_BYTES;
		count -= batch;
	}
	/* The caller frees what the entries point to: none of them may still be on its way. Where
	 * the context has stopped they may be for ever, and CANN does not wait either. */
	if (code != CORE_OK && atomic_load(&stream->slot.context->failure) == CORE_OK)
		wait_locked(stream, UINT64_MAX);
	return code;
}

static int take_error_locked(struct core_stream *stream)
{
	int code = stream->failure;

	if (code != CORE_OK)
		core_fail(code, "%s", stream->cause_text ?: "a task failed");
	forget_failure_locked(stream);
	return code ?: core_context_stopped(stream->slot.context);
}

static int synchronize_until(struct core_stream *stream, uint64_t deadline_ns, uint64_t *end_ns)
{
	uint64_t target;
	int code = CORE_OK;

	if (core_is_pump_of(stream))
		return core_invalid("stream %d waits for the callback that makes this call: it "
				    "would wait for ever",
				    stream->id);
	LOCKED(&stream->lock);
	target = stream->sent;
	if (atomic_load(&stream->slot.context->failure) == CORE_OK) {
		code = wait_locked(stream, deadline_ns);
		if (code == CORE_OK)
			core_order(stream->device, NPU_ORDER_STREAM, stream->sq, target);
		if (code == CORE_OK && stream->done_ns > *end_ns)
			*end_ns = stream->done_ns;
	}
	return code ?: take_error_locked(stream);
}

int core_stream_synchronize(struct core_stream *stream, int32_t timeout_ms)
{
	uint64_t since = core_now_ns(), end = since;
	int code = synchronize_until(stream, core_deadline_ns(timeout_ms), &end);

	if (end > since)
		core_spend(NPU_WORK_HOST_WAKE);
	return code;
}

int core_stream_query(struct core_stream *stream, bool *out_idle)
{
	LOCKED(&stream->lock);

	core_stream_reap_locked(stream);
	*out_idle = stream->done == stream->sent;
	if (*out_idle)
		core_order(stream->device, NPU_ORDER_STREAM, stream->sq, stream->sent);
	return core_context_stopped(stream->slot.context);
}

int core_device_synchronize(uint32_t device, const struct core_context *context, int32_t timeout_ms)
{
	uint64_t deadline = core_deadline_ns(timeout_ms), since = core_now_ns(), end = since;
	const struct context *only = context == NULL ? NULL : core_context_of(context);
	int first = only == NULL ? CORE_OK : core_context_stopped(only);
	unsigned count = 0;
	void **handles;

	if (first != CORE_OK)
		return first;
	handles = core_stream_list(device, &count);
	if (handles == NULL)
		return core_no_memory("no memory to list the device's streams");
	for (unsigned i = 0; i < count; i++) {
		struct core_stream *stream = core_pool_find(&core_streams, handles[i]);
		int code = CORE_OK;

		if (stream != NULL &&
		    (only == NULL ? atomic_load(&stream->slot.context->failure) == CORE_OK
				  : stream->slot.context == only))
			code = synchronize_until(stream, deadline, &end);
		if (first == CORE_OK)
			first = code;
		if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
			break;
	}
	free(handles);
	if (end > since)
		core_spend(NPU_WORK_HOST_WAKE);
	return first;
}

/* ---- ended ---- */

static int stop_locked(struct core_stream *stream)
{
	int code = core_result(core_call(npusimStop, stream->device, stream->sq));

	stream->stopped |= code == CORE_OK;
	return code;
}

int core_stream_abort(void *handle)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, &stream);

	if (code != CORE_OK)
		return code;
	if (core_is_pump_of(stream))
		return core_invalid("stream %d cannot be aborted in a callback of its own",
				    stream->id);
	LOCKED(&stream->lock);
	code = stream->aborting ? core_stream_aborted(stream) : stop_locked(stream);
	if (code == CORE_OK) {
		stream->aborting = true;
		stream->aborts++;
		pthread_cond_broadcast(&stream->progress);
		code = core_stream_renew_queue_locked(stream);
		core_stream_complete_locked(stream, stream->sent, NULL);
		be_empty_locked(stream);
		pthread_cond_broadcast(&stream->progress);
	}
	return code;
}

/* CANN sends the command by the default stream, and waits for it. */
int core_stream_stop(void *handle)
{
	struct core_stream *stream, *by;
	int code = core_stream_find(handle, &stream);

	if (code != CORE_OK)
		return code;
	if (stream->is_default)
		return core_invalid("stream=%p is a default stream, which cannot be stopped",
				    handle);
	code = core_stream_find(NULL, &by) ?: core_stream_synchronize(by, -1);
	LOCKED(&stream->lock);
	return code ?: stop_locked(stream);
}

void core_stream_end(struct core_stream *stream, bool force)
{
	bool left;

	pthread_mutex_lock(&stream->lock);
	core_stream_wait_abort_locked(stream);
	if (force || stream->stopped || atomic_load(&stream->slot.context->failure) != CORE_OK)
		core_stream_reap_locked(stream); /* what failed is told */
	else
		wait_locked(stream, UINT64_MAX);
	stream->alive = false;
	pthread_cond_broadcast(&stream->progress);
	pthread_mutex_unlock(&stream->lock);
	core_stream_close_queue(stream);
	pthread_mutex_lock(&stream->lock);
	left = core_stream_wait_leave_locked(stream);
	core_stream_complete_locked(stream, stream->sent, NULL);
	pthread_cond_broadcast(&stream->progress);
	if (stream->failure != CORE_OK)
		npu_log(NPU_LOG_INFO, "stream %d ended with an error that nobody asked for: %s",
			stream->id, stream->cause_text ?: "");
	pthread_mutex_unlock(&stream->lock);
	core_callback_end(stream);
	core_owned_unlink(&core_streams, stream);
	if (left)
		core_pool_give(&core_streams, stream);
	else
		npu_log(NPU_LOG_WARN,
			"stream %d: a thread stays in the driver, waiting for its work",
			stream->id);
}

int core_stream_destroy(void *handle, bool force)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, &stream);

	if (code != CORE_OK)
		return code;
	if (stream->is_default)
		return core_invalid("stream=%p is a default stream: it goes with its context, "
				    "aclrtResetDevice or aclrtDestroyContext",
				    handle);
	if (core_is_pump_of(stream))
		return core_invalid("stream=%p cannot be destroyed in a callback of its own",
				    handle);
	if (!core_pool_hide(stream, handle))
		return core_invalid("stream=%p is being destroyed by another thread", handle);
	core_stream_end(stream, force);
	return CORE_OK;
}

/* ---- copies and fills, of addresses that the faces have checked ---- */

#define PIECE_BYTES   (UINT64_C(2) << 30) /* of one entry: SDMA counts in 32 bits */
#define PATTERN_BYTES UINT64_C(65536)
#define MEMORY_MAX    (UINT64_C(1) << 43)

void core_sender_init(struct core_sender *sender, struct core_stream *stream)
{
	sender->stream = stream;
	sender->error = CORE_OK;
	sender->count = 0;
}

int core_sender_flush(struct core_sender *sender,
		      void (*keep)(void *arg, const struct stars_logic_cqe *cqe), void *arg)
{
	if (sender->error == CORE_OK && sender->count > 0)
		sender->error =
			core_stream_send(sender->stream, sender->entries, sender->count, keep, arg);
	sender->count = 0;
	return sender->error;
}

union stars_sqe *core_sender_add(struct core_sender *sender)
{
	if (sender->count == sizeof(sender->entries) / sizeof(sender->entries[0]))
		core_sender_flush(sender, NULL, NULL);
	return memset(&sender->entries[sender->count++], 0, sizeof(sender->entries[0]));
}

int core_check_length(uint64_t bytes)
{
	if (bytes <= MEMORY_MAX)
		return CORE_OK;
	return core_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
			 "%s is longer than any memory, or runs over the end of the address space",
			 npu_size_text(bytes));
}

void core_sender_copy(struct core_sender *sender, uint64_t dst, uint64_t src, uint64_t bytes,
		      bool on_device)
{
	sender->error = sender->error ?: core_check_length(bytes);
	for (uint64_t done = 0; done < bytes && sender->error == CORE_OK; done += PIECE_BYTES) {
		uint64_t now = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
		union stars_sqe *entry = core_sender_add(sender);

		entry->header.type = (on_device ? STARS_SQE_SDMA : STARS_SQE_PCIE_DMA) & 0x3f;
		if (on_device) {
			entry->sdma.control = STARS_SDMA_COPY_CONTROL;
			entry->sdma.length = (uint32_t)now;
		} else {
			entry->dma.length = now;
		}
		driver_entry_set_copy(entry, dst + done, src + done);
	}
}

int core_stream_copy(struct core_stream *stream, uint64_t dst, uint64_t src, uint64_t bytes,
		     bool on_device)
{
	struct core_sender sender;

	core_sender_init(&sender, stream);
	core_sender_copy(&sender, dst, src, bytes, on_device);
	return core_sender_flush(&sender, NULL, NULL);
}

void *core_buffer_make(uint64_t bytes, int *error)
{
	void *made = NULL;

	*error = core_result(core_call(halMemAlloc, &made, bytes,
				       (MEM_HOST_VAL << MEM_VIRT_BIT) |
					       ((uint64_t)RUNTIME_MODULE_ID << MEM_MODULE_ID_BIT)));
	if (*error == CORE_OK)
		core_order(0, NPU_ORDER_OWN, 0, (uintptr_t)made);
	return made;
}

void core_buffer_free(void *buffer, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	core_call(halMemFree, buffer);
}

/* A piece of the pattern from the host, then the device doubles what it has. */
int core_stream_fill(struct core_stream *stream, uint64_t dst, uint32_t pattern, uint64_t bytes)
{
	uint64_t piece = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
	struct core_sender sender;
	int code = core_check_length(bytes);
	uint8_t *buffer = code == CORE_OK ? core_buffer_make(piece, &code) : NULL;

	if (code != CORE_OK)
		return code;
	for (uint64_t i = 0; i < piece; i++)
		buffer[i] = (uint8_t)(pattern >> (i % 4 * 8));
	core_sender_init(&sender, stream);
	core_sender_copy(&sender, dst, (uintptr_t)buffer, piece, false);
	for (uint64_t done = piece, now; done < bytes; done += now) {
		now = bytes - done < done ? bytes - done : done;
		now = now < PIECE_BYTES ? now : PIECE_BYTES;
		core_sender_copy(&sender, dst + done, dst, now, true);
	}
	if (core_sender_flush(&sender, core_buffer_free, buffer) != CORE_OK)
		core_buffer_free(buffer, NULL);
	return sender.error;
}
