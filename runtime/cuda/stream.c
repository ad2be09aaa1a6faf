/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and host functions, which are runtime/core's. Owns the order between the default
 * stream and the streams that programs created without CU_STREAM_NON_BLOCKING: work in one begins
 * when the other is idle, and the calling thread waits for that.
 */
#include "cuda-internal.h"

#include "base/lock.h"
#include "trace/names.h"

#include <stdlib.h>

#define PRIORITY_GREATEST (-5)

static struct trace_names blocking; /* by the core's handle */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool default_used;

static bool is_default(CUstream stream)
{
	return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* What the core calls the stream. */
static void *core_handle(CUstream stream)
{
	return is_default(stream) ? NULL : stream;
}

struct cuda_scope cuda_enter(CUstream stream)
{
	struct core_context *current = core_context_peek();
	struct cuda_scope scope = { .before =
					    current != NULL ? core_context_handle(current) : NULL };
	void *own = is_default(stream) ? NULL : core_stream_context(stream);

	scope.entered = own != NULL && own != scope.before && core_context_select(own, "") == 0;
	return scope;
}

void cuda_leave(struct cuda_scope *scope)
{
	if (scope->entered &&
	    (scope->before == NULL || core_context_select(scope->before, "") != 0))
		core_context_deselect();
}

CUresult cuda_stream(CUstream handle, const char *call, struct core_stream **out)
{
	CUresult code = is_default(handle) ? cuda_current(call, NULL) : cuda_unharmed(call);
	struct core_stream *stream;

	if (code != CUDA_SUCCESS)
		return code;
	if (is_default(handle))
		default_used = true;
	else if (core_stream_context(handle) == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_HANDLE, call,
				 "stream %p is no stream of this process: it was destroyed, or not "
				 "made by cuStreamCreate",
				 (void *)handle);
	return cuda_of_core(
		call, core_stream_find_any(core_handle(handle), call, out != NULL ? out : &stream));
}

/* ---- the default stream and the others ---- */

static bool is_blocking(CUstream stream)
{
	LOCKED(&lock);

	return trace_name_find(&blocking, (uintptr_t)stream) != NULL;
}

/* NULL: the default stream of the current context. What is gone needs no waiting. */
static CUresult wait_for(void *handle, const char *call)
{
	struct core_stream *stream;

	return core_stream_find_any(handle, call, &stream) != 0
		       ? CUDA_SUCCESS
		       : cuda_of_core(call, core_stream_synchronize(stream, -1, call));
}

CUresult cuda_stream_order(CUstream stream, const char *call)
{
	CUresult code = CUDA_SUCCESS;
	uint64_t *others;
	size_t count;

	if (!is_default(stream))
		return default_used && is_blocking(stream) && core_context_peek() != NULL
			       ? wait_for(NULL, call)
			       : CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	count = trace_names_list(&blocking, &others);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; code == CUDA_SUCCESS && i < count; i++)
		code = wait_for(cuda_pointer(others[i]), call);
	free(others);
	return code;
}

CUresult cuda_stream_before_sync(const char *call)
{
	CUresult code = cuda_stream_order(NULL, call);

	return code != CUDA_SUCCESS || !default_used ? code : wait_for(NULL, call);
}

/* ---- streams ---- */

static CUresult create(const char *call, CUstream *stream, unsigned int flags, int priority)
{
	bool added;
	void *made = NULL;
	CUresult code = cuda_null(call, "stream", stream) ?: cuda_current(call, NULL);

	if (code != CUDA_SUCCESS)
		return code;
	if (flags > CU_STREAM_NON_BLOCKING)
		return cuda_invalid(call, "flags is %u; known are 0 and 1 (non-blocking)", flags);
	if (priority > 0)
		priority = 0;
	if (priority < PRIORITY_GREATEST)
		priority = PRIORITY_GREATEST;
	code = cuda_of_core(call, core_stream_create((unsigned)(-PRIORITY_GREATEST + priority), 0,
						     &made, call));
	if (code != CUDA_SUCCESS)
		return code;
	pthread_mutex_lock(&lock);
	added = flags != CU_STREAM_DEFAULT ||
		trace_name_add(&blocking,
			       (struct trace_name){ .key = (uintptr_t)made, .bytes = 1 });
	pthread_mutex_unlock(&lock);
	if (!added) {
		core_stream_destroy(made, false, call);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*stream = made;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
	CUDA_ANSWERS(create(__func__, stream, flags, 0));
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
	CUDA_ANSWERS(create(__func__, stream, flags, priority));

CUresult cuStreamDestroy_v2(CUstream stream)
{
	const char *call = "cuStreamDestroy";
	CUresult code;
	CUDA_IN_CONTEXT_OF(stream);

	if (is_default(stream))
		return cuda_fail(CUDA_ERROR_INVALID_HANDLE, call,
				 "the default stream cannot be destroyed");
	code = cuda_stream(stream, call, NULL);
	if (code != CUDA_SUCCESS)
		return code;
	pthread_mutex_lock(&lock);
	trace_name_take(&blocking, (uintptr_t)stream, NULL);
	pthread_mutex_unlock(&lock);
	return cuda_of_core(call, core_stream_destroy(stream, false, call));
}

CUresult cuStreamQuery(CUstream handle)
{
	struct core_stream *stream;
	bool idle = false;
	CUDA_IN_CONTEXT_OF(handle);
	CUresult code =
		cuda_stream(handle, __func__, &stream)
			?: cuda_of_core(__func__, core_stream_query(stream, &idle, __func__));

	return code == CUDA_SUCCESS && !idle ? CUDA_ERROR_NOT_READY : code;
}

CUresult cuStreamSynchronize(CUstream handle)
{
	struct core_stream *stream;
	CUDA_IN_CONTEXT_OF(handle);

	return cuda_pools_settle(
		cuda_stream(handle, __func__, &stream)
			?: cuda_of_core(__func__, core_stream_synchronize(stream, -1, __func__)));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	CUDA_IN_CONTEXT_OF(stream);

	return CUDA_IS_NULL(flags) ?: cuda_stream(stream, __func__, NULL)
			?: CUDA_GIVE(flags,
				     is_default(stream) || is_blocking(stream)
					     ? CU_STREAM_DEFAULT
					     : CU_STREAM_NON_BLOCKING);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	struct core_stream *stream;
	CUDA_IN_CONTEXT_OF(handle);

	return CUDA_IS_NULL(priority) ?: cuda_stream(handle, __func__, &stream)
			?: CUDA_GIVE(priority,
				     is_default(handle) ? 0
							: (int)core_stream_facts(stream).priority +
								  PRIORITY_GREATEST);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	CUDA_IN_CONTEXT_OF(stream);
	struct core_context *own;

	return CUDA_IS_NULL(context) ?: cuda_stream(stream, __func__, NULL)
			?: cuda_current(__func__, &own)
			?: CUDA_GIVE(context, core_context_handle(own));
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	CUDA_IN_CONTEXT_OF(stream);
	void *handle = core_handle(stream);
	CUresult code = CUDA_IS_NULL(id) ?: cuda_stream(stream, __func__, NULL);

	if (code == CUDA_SUCCESS && handle == NULL)
		code = cuda_of_core(__func__, core_stream_default(&handle, __func__));
	return code ?: CUDA_GIVE(id, (uintptr_t)handle); /* which no other stream ever has */
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	CUDA_IN_CONTEXT_OF(stream);

	return CUDA_IS_NULL(status) ?: cuda_stream(stream, __func__, NULL)
			?: CUDA_GIVE(status, 0); /* graphs are not modelled */
}

/* ---- host functions ---- */

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user_data)
{
	CUDA_IN_CONTEXT_OF(stream);

	return CUDA_IS_NULL(function) ?: cuda_stream(stream, __func__, NULL)
		       ?: cuda_stream_order(stream, __func__)
		       ?: cuda_of_core(__func__,
				       core_callback_launch_host(function, user_data,
								 core_handle(stream), __func__));
}

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
	CUresult code;

	if (function == NULL || flags != 0)
		return cuda_invalid(__func__, "%s",
				    function == NULL ? "callback is NULL" : "flags must be 0");
	callback = malloc(sizeof(*callback));
	if (callback == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*callback = (struct stream_callback){ function, stream, user_data };
	code = cuLaunchHostFunc(stream, run_callback, callback);
	if (code != CUDA_SUCCESS)
		free(callback);
	return code;
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	uint32_t want = CORE_EVENT_SYNC;
	void *made = NULL;
	CUresult code = CUDA_IS_NULL(event) ?: cuda_current(__func__, NULL);

	if (code != CUDA_SUCCESS)
		return code;
	if (flags > 7)
		return cuda_invalid(__func__, "flags is %u; known are 1, 2 and 4, and their sums",
				    flags);
	if (!(flags & CU_EVENT_DISABLE_TIMING))
		want |= CORE_EVENT_TIME_LINE;
	code = cuda_of_core(__func__, core_event_create(CORE_EVENT_AGAIN, want, &made, __func__));
	return code ?: CUDA_GIVE(event, made);
}

static CUresult of_event(const char *call, int code)
{
	CUresult result = cuda_unharmed(call) ?: cuda_of_core(call, code);

	return result == CUDA_ERROR_INVALID_VALUE || code == 507000 /* never recorded */
		       ? CUDA_ERROR_INVALID_HANDLE
		       : result;
}

CUresult cuEventDestroy_v2(CUevent event)
	CUDA_ANSWERS(of_event("cuEventDestroy", core_event_destroy(event, "cuEventDestroy")));

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	CUDA_IN_CONTEXT_OF(stream);

	return cuda_stream(stream, __func__, NULL)
		       ?: cuda_stream_order(stream, __func__)
		       ?: of_event(__func__,
				   core_event_record(event, core_handle(stream), __func__));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	(void)flags;
	return cuEventRecord(event, stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	CUDA_IN_CONTEXT_OF(stream);

	(void)flags;
	return cuda_stream(stream, __func__, NULL)
		       ?: of_event(__func__,
				   core_event_wait(event, core_handle(stream), 0, __func__));
}

CUresult cuEventQuery(CUevent event)
{
	bool done = false;
	CUresult code = of_event(__func__, core_event_query(event, false, &done, __func__));

	return code == CUDA_SUCCESS && !done ? CUDA_ERROR_NOT_READY : code;
}

CUresult cuEventSynchronize(CUevent event)
	CUDA_ANSWERS(cuda_pools_settle(of_event(__func__,
						core_event_synchronize(event, -1, __func__))));

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	bool first = false, last = false;
	CUresult code = CUDA_IS_NULL(ms)
			?: of_event(__func__, core_event_query(start, false, &first, __func__))
			?: of_event(__func__, core_event_query(end, false, &last, __func__));

	if (code == CUDA_SUCCESS && !(first && last))
		return CUDA_ERROR_NOT_READY;
	return code ?: of_event(__func__, core_event_elapsed(start, end, ms, __func__));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
	CUDA_ANSWERS(cuEventElapsedTime(ms, start, end));
