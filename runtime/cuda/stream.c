/* SPDX-License-Identifier: Apache-2.0
 *
 * Offers runtime/core's streams, events and host functions to CUDA. Owns the order between the
 * default stream and the streams that programs created without CU_STREAM_NON_BLOCKING: work in one
 * begins when the other is idle, and the calling thread waits for that.
 */
#include "cuda-internal.h"

#include "base/lock.h"
#include "trace/names.h"

#include <inttypes.h>
#include <stdlib.h>

#define PRIORITY_GREATEST (-5)
#define VALUES_MAX        255u /* operations at once */

static struct trace_names blocking; /* by the core's handle */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool default_used;

static bool is_default(CUstream stream)
{
	return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

void *cuda_core_stream(CUstream stream)
{
	return is_default(stream) ? NULL : stream;
}

CUresult cuda_check_stream(CUstream handle)
{
	if (is_default(handle)) {
		default_used = true;
		return cuda_current(NULL);
	}
	return core_stream_context(handle) != NULL
		       ? CUDA_SUCCESS
		       : cuda_fail(CUDA_ERROR_INVALID_HANDLE,
				   "stream %p is no stream of this process: it was destroyed, or "
				   "not made by cuStreamCreate",
				   (void *)handle);
}

CUresult cuda_stream(CUstream handle, struct core_stream **out)
	CUDA_ANSWERS(cuda_of_core(core_stream_find_any(cuda_core_stream(handle), out)));

/* ---- the default stream and the others ---- */

static bool is_blocking(CUstream stream)
{
	LOCKED(&lock);

	return trace_name_find(&blocking, (uintptr_t)stream) != NULL;
}

/* NULL: the default stream of the current context. What is gone needs no waiting. */
static CUresult wait_for(void *handle)
{
	struct core_stream *stream;

	return core_stream_find_any(handle, &stream) != 0
		       ? CUDA_SUCCESS
		       : cuda_of_core(core_stream_synchronize(stream, -1));
}

CUresult cuda_stream_order(CUstream stream)
{
	CUresult code = CUDA_SUCCESS;
	uint64_t *others;
	size_t count;

	if (!is_default(stream))
		return default_used && is_blocking(stream) && core_context_peek() != NULL
			       ? wait_for(NULL)
			       : CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	count = trace_names_list(&blocking, &others);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; code == CUDA_SUCCESS && i < count; i++)
		code = wait_for(cuda_pointer(others[i]));
	free(others);
	return code;
}

CUresult cuda_stream_before_sync(void)
{
	CUresult code = cuda_stream_order(NULL);

	return code != CUDA_SUCCESS || !default_used ? code : wait_for(NULL);
}

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	bool added;
	void *made = NULL;
	CUresult code =
		cuda_current(NULL)
			?: CUDA_WANT(flags <= CU_STREAM_NON_BLOCKING,
				     "flags is %u; known are 0 and 1 (non-blocking)", flags);

	priority = priority > 0 ? 0 : priority < PRIORITY_GREATEST ? PRIORITY_GREATEST : priority;
	code = code
		       ?: cuda_of_core(core_stream_create((unsigned)(-PRIORITY_GREATEST + priority),
							  0, &made));
	if (code != CUDA_SUCCESS)
		return code;
	pthread_mutex_lock(&lock);
	added = flags != CU_STREAM_DEFAULT ||
		trace_name_add(&blocking,
			       (struct trace_name){ .key = (uintptr_t)made, .bytes = 1 });
	pthread_mutex_unlock(&lock);
	if (!added) {
		core_stream_destroy(made, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_GIVE(stream, made);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
	CUDA_ANSWERS(cuStreamCreateWithPriority(stream, flags, 0));

CUresult cuStreamDestroy_v2(CUstream stream)
{
	CUresult code = is_default(stream) ? cuda_fail(CUDA_ERROR_INVALID_HANDLE,
						       "the default stream cannot be destroyed")
					   : cuda_check_stream(stream);

	if (code != CUDA_SUCCESS)
		return code;
	pthread_mutex_lock(&lock);
	trace_name_take(&blocking, (uintptr_t)stream, NULL);
	pthread_mutex_unlock(&lock);
	return cuda_of_core(core_stream_destroy(stream, false));
}

CUresult cuStreamQuery(CUstream handle)
	CUDA_ANSWERS_WITH(struct core_stream *stream; bool idle,
		cuda_stream(handle, &stream)
			?: cuda_of_core(core_stream_query(stream, &idle))
			?: (idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY));

CUresult cuStreamSynchronize(CUstream handle)
{
	struct core_stream *stream;

	return cuda_pools_settle(cuda_stream(handle, &stream)
					 ?: cuda_of_core(core_stream_synchronize(stream, -1)));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
	CUDA_ANSWERS(CUDA_GIVE(flags, is_default(stream) || is_blocking(stream)
					      ? CU_STREAM_DEFAULT
					      : CU_STREAM_NON_BLOCKING));

CUresult cuStreamGetPriority(CUstream handle, int *priority)
	CUDA_ANSWERS_WITH(struct core_stream *stream,
			  cuda_stream(handle, &stream)
				  ?: CUDA_GIVE(priority,
					       is_default(handle)
						       ? 0
						       : (int)core_stream_facts(stream).priority +
								 PRIORITY_GREATEST));

/* The doors have made the stream's context the current one. */
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
	CUDA_ANSWERS((void)stream, cuCtxGetCurrent(context));
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
	CUDA_ANSWERS(cuStreamGetCtx(stream, context) ?: CUDA_GIVE_IF(green, NULL));
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
	CUDA_ANSWERS((void)stream, cuCtxGetDevice(device));

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	void *handle = cuda_core_stream(stream);
	CUresult code = handle == NULL ? cuda_of_core(core_stream_default(&handle)) : CUDA_SUCCESS;

	return code ?: CUDA_GIVE(id, (uintptr_t)handle); /* which no other stream ever has */
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) /* graphs are not modelled */
	CUDA_ANSWERS((void)stream, CUDA_GIVE(status, 0));

/* ---- host functions ---- */

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user_data)
	CUDA_ANSWERS(cuda_stream_order(stream)
			     ?: cuda_of_core(core_callback_launch_host(function, user_data,
								       cuda_core_stream(stream))));

struct stream_callback {
	CUstreamCallback function;
	CUstream stream;
	void *user_data;
};

static void run_callback(void *arg)
{
	struct stream_callback *callback = arg;

	callback->function(callback->stream, CUDA_SUCCESS, callback->user_data);
	free(callback);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *user_data,
			     unsigned int flags)
{
	struct stream_callback *callback;
	CUresult code = cuda_no_flags(flags);

	if (code != CUDA_SUCCESS)
		return code;
	callback = malloc(sizeof(*callback));
	if (callback == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*callback = (struct stream_callback){ function, stream, user_data };
	code = cuLaunchHostFunc(stream, run_callback, callback);
	if (code != CUDA_SUCCESS)
		free(callback);
	return code;
}

/* ---- values ---- */

/* Both kinds of operations have their words in the same places. */
static CUresult value_entry(const CUstreamBatchMemOpParams *op, union stars_sqe *out)
{
	CUstreamBatchMemOpType type = op->operation;
	bool narrow = type <= CU_STREAM_MEM_OP_WRITE_VALUE_32;
	bool writes =
		type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	uint64_t va = op->waitValue.address;
	uint64_t value = narrow ? op->waitValue.value : op->waitValue.value64;
	unsigned bytes = narrow ? 4 : 8, flags = op->waitValue.flags;

	*out = (union stars_sqe){ .header.type = STARS_SQE_PLACE_HOLDER };
	if (type == CU_STREAM_MEM_OP_BARRIER) /* entries of a stream are in order as it is */
		return CUDA_SUCCESS;
	if (type == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES ||
	    (!writes && flags & CU_STREAM_WAIT_VALUE_FLUSH))
		return cuda_fail(CUDA_ERROR_NOT_SUPPORTED,
				 "remote writes cannot be flushed: the device's attribute 98 is 0");
	if (type < CU_STREAM_MEM_OP_WAIT_VALUE_32 || type > CU_STREAM_MEM_OP_BARRIER ||
	    flags > (writes ? 1u : CU_STREAM_WAIT_VALUE_NOR))
		return cuda_invalid("operation %d, flags %#x: known are 1 to 6, and 0 to %d",
				    (int)type, flags, writes ? 1 : CU_STREAM_WAIT_VALUE_NOR);
	if (va == 0 || va % bytes != 0 || cuda_place(va).kind == NPU_PLACE_MANAGED ||
	    cuda_is_loose(va))
		return cuda_invalid("0x%" PRIx64
				    " must be a multiple of %u, in memory of a device or in "
				    "page-locked or registered memory of the host",
				    va, bytes);
	if (writes)
		out->write = (struct stars_write_value_sqe){
			.header.type = STARS_SQE_WRITE_VALUE,
			.write_addr_low = (uint32_t)va,
			.write_addr_high = ((uint32_t)(va >> 32) & 0x1ffffu) |
					   (narrow ? 2u : 3u) << 20 | 1u << 31,
			.value = { (uint32_t)value, (uint32_t)(value >> 32) },
		};
	else
		out->wait = (struct stars_value_wait_sqe){
			.header.type = STARS_SQE_COND,
			.magic = STARS_VALUE_WAIT_MAGIC,
			.compare = flags == CU_STREAM_WAIT_VALUE_GEQ ? STARS_WAIT_CYCLIC : flags,
			.addr = va,
			.value = value,
			.narrow = narrow,
		};
	return CUDA_CALL(npusimCheckCopy, va, 0, bytes);
}

static CUresult send_values(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *ops)
{
	union stars_sqe entries[VALUES_MAX];
	struct core_stream *stream;
	CUresult code = cuda_stream(handle, &stream);

	for (unsigned i = 0; i < count && code == CUDA_SUCCESS; i++)
		code = value_entry(&ops[i], &entries[i]);
	if (code != CUDA_SUCCESS || count == 0)
		return code;
	return cuda_stream_order(handle)
		       ?: cuda_of_core(core_stream_send(stream, entries, count, NULL, NULL));
}

#define VALUE(name, kind, bits)                                                                  \
	CUresult cuStream##name##Value##bits##_v2(CUstream stream, CUdeviceptr addr,             \
						  uint##bits##_t value, unsigned int flags)      \
	{                                                                                        \
		CUstreamBatchMemOpParams op = { .waitValue = { CU_STREAM_MEM_OP_##kind##_##bits, \
							       addr,                             \
							       { .value64 = value },             \
							       flags } };                        \
                                                                                                 \
		return send_values(stream, 1, &op);                                              \
	}
VALUE(Wait, WAIT_VALUE, 32)
VALUE(Wait, WAIT_VALUE, 64)
VALUE(Write, WRITE_VALUE, 32)
VALUE(Write, WRITE_VALUE, 64)

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
			       unsigned int flags)
	CUDA_ANSWERS(CUDA_WANT(count <= VALUES_MAX && flags == 0,
			       "count %u, flags %u: at most %u, and no flags", count, flags,
			       VALUES_MAX)
			     ?: send_values(stream, count, ops));

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	uint32_t want = CORE_EVENT_SYNC;
	void *made = NULL;
	CUresult code =
		cuda_current(NULL)
			?: CUDA_WANT(flags <= 7 && (flags & 6) != CU_EVENT_INTERPROCESS,
				     "flags is %u; known are 1, 2 and 6, and their sums: an event "
				     "between processes has no times",
				     flags);

	if (!(flags & CU_EVENT_DISABLE_TIMING))
		want |= CORE_EVENT_TIME_LINE;
	code = code ?: cuda_of_core(core_event_create(CORE_EVENT_AGAIN, want, &made));
	if (code == CUDA_SUCCESS && flags & CU_EVENT_INTERPROCESS) {
		code = cuda_ipc_make(made);
		if (code != CUDA_SUCCESS)
			core_event_destroy(made);
	}
	return code ?: CUDA_GIVE(event, made);
}

static CUresult of_event(int code)
{
	CUresult result = cuda_of_core(code);

	return result == CUDA_ERROR_INVALID_VALUE || code == 507000 /* never recorded */
		       ? CUDA_ERROR_INVALID_HANDLE
		       : result;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult code = of_event(core_event_destroy(event));

	if (code == CUDA_SUCCESS)
		cuda_ipc_end(event);
	return code;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct cuda_slot *shared = cuda_ipc_slot(event);
	CUresult code = cuda_stream_order(stream);

	if (code == CUDA_SUCCESS && shared != NULL)
		return cuda_ipc_record(shared, stream);
	return code ?: of_event(core_event_record(event, cuda_core_stream(stream)));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
	CUDA_ANSWERS((void)flags, cuEventRecord(event, stream));

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	const struct cuda_slot *shared = cuda_ipc_slot(event);
	struct core_stream *found;
	CUresult code = cuda_stream(stream, &found);

	(void)flags;
	if (code == CUDA_SUCCESS && shared != NULL)
		return cuda_ipc_wait(shared, found);
	return code ?: of_event(core_event_wait(event, cuda_core_stream(stream), 0));
}

CUresult cuEventQuery(CUevent event)
{
	const struct cuda_slot *shared = cuda_ipc_slot(event);
	bool done = true;
	CUresult code = shared != NULL ? cuda_ipc_query(shared, false)
				       : of_event(core_event_query(event, false, &done));

	return code == CUDA_SUCCESS && !done ? CUDA_ERROR_NOT_READY : code;
}

CUresult cuEventSynchronize(CUevent event)
	CUDA_ANSWERS_WITH(const struct cuda_slot *shared = cuda_ipc_slot(event),
			  cuda_pools_settle(shared != NULL
						    ? cuda_ipc_query(shared, true)
						    : of_event(core_event_synchronize(event, -1))));

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	bool first = false, last = false;
	CUresult code = of_event(core_event_query(start, false, &first))
				?: of_event(core_event_query(end, false, &last));

	if (code == CUDA_SUCCESS && !(first && last))
		return CUDA_ERROR_NOT_READY;
	return code ?: of_event(core_event_elapsed(start, end, ms));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
	CUDA_ANSWERS(cuEventElapsedTime(ms, start, end));
