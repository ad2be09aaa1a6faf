/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and host functions, which are runtime/core's. Owns the order between the default
 * stream and the streams that programs created without CU_STREAM_NON_BLOCKING: work in one begins
 * when the other is idle, and the calling thread waits for that.
 */
#include "cuda-internal.h"

#include <pthread.h>
#include <stdlib.h>

#define PRIORITY_GREATEST (-5)

struct blocking {
	void *stream; /* of the core */
	struct blocking *next;
};
static struct blocking *blocking;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned blocking_count;
static _Atomic bool default_used;

static bool is_default(CUstream stream)
{
	return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

struct core_stream *cuda_stream(CUstream handle, const char *call, CUresult *code)
{
	int error = 0;
	struct core_stream *stream;

	if (is_default(handle))
		default_used = true;
	if (core_context_peek() == NULL && is_default(handle)) {
		*code = cuda_fail(CUDA_ERROR_INVALID_CONTEXT, call,
				  "no context is current in this thread");
		return NULL;
	}
	stream = is_default(handle) ? core_stream_find(NULL, call, &error)
				    : core_stream_find_any(handle, call, &error);
	if (stream == NULL)
		*code = is_default(handle)
				? cuda_of_core(call, error)
				: cuda_fail(CUDA_ERROR_INVALID_HANDLE, call, "%s", npu_message());
	return stream;
}

/* ---- the default stream and the others ---- */

static bool take_blocking(void *stream, bool remove)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct blocking **at = &blocking; *at != NULL && !found; at = &(*at)->next) {
		struct blocking *one = *at;

		if (one->stream != stream)
			continue;
		found = true;
		if (remove) {
			*at = one->next;
			free(one);
			blocking_count--;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* The i-th; NULL beyond the last. */
static void *blocking_at(unsigned i)
{
	void *stream = NULL;

	pthread_mutex_lock(&lock);
	for (struct blocking *one = blocking; one != NULL && stream == NULL; one = one->next)
		if (i-- == 0)
			stream = one->stream;
	pthread_mutex_unlock(&lock);
	return stream;
}

static CUresult wait_for(void *handle, const char *call)
{
	int error;
	struct core_stream *stream = core_stream_find_any(handle, call, &error);

	return stream == NULL ? CUDA_SUCCESS
			      : cuda_of_core(call, core_stream_synchronize(stream, -1, call));
}

CUresult cuda_stream_order(CUstream stream, const char *call)
{
	CUresult code = CUDA_SUCCESS;
	struct core_stream *own;
	void *other;

	if (!is_default(stream)) {
		int error;

		if (!default_used || !take_blocking(stream, false) || core_context_peek() == NULL)
			return CUDA_SUCCESS;
		own = core_stream_find(NULL, call, &error);
		return own == NULL ? CUDA_SUCCESS
				   : cuda_of_core(call, core_stream_synchronize(own, -1, call));
	}
	for (unsigned i = 0;
	     code == CUDA_SUCCESS && blocking_count > 0 && (other = blocking_at(i)) != NULL; i++)
		code = wait_for(other, call);
	return code;
}

CUresult cuda_stream_before_sync(const char *call)
{
	CUresult code = cuda_stream_order(NULL, call);
	struct core_stream *own;
	int error;

	if (code != CUDA_SUCCESS || !default_used)
		return code;
	own = core_stream_find(NULL, call, &error);
	return own == NULL ? CUDA_SUCCESS
			   : cuda_of_core(call, core_stream_synchronize(own, -1, call));
}

/* ---- streams ---- */

static CUresult create(const char *call, CUstream *stream, unsigned int flags, int priority)
{
	struct blocking *one = NULL;
	void *made = NULL;
	CUresult code;

	CUDA_INITIALISED();
	if (core_context_peek() == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, call,
				 "no context is current in this thread");
	if (stream == NULL || flags > CU_STREAM_NON_BLOCKING)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, call, "stream %p, flags %u",
				 (void *)stream, flags);
	if (flags == CU_STREAM_DEFAULT && (one = calloc(1, sizeof(*one))) == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (priority > 0)
		priority = 0;
	if (priority < PRIORITY_GREATEST)
		priority = PRIORITY_GREATEST;
	code = cuda_of_core(call, core_stream_create((unsigned)(-PRIORITY_GREATEST + priority), 0,
						     &made, call));
	if (code != CUDA_SUCCESS) {
		free(one);
		return code;
	}
	if (one != NULL) {
		one->stream = made;
		pthread_mutex_lock(&lock);
		one->next = blocking;
		blocking = one;
		blocking_count++;
		pthread_mutex_unlock(&lock);
	}
	*stream = made;
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return create(__func__, stream, flags, 0);
}

CUDA_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	return create(__func__, stream, flags, priority);
}

CUDA_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	if (is_default(stream))
		return cuda_fail(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy",
				 "the default stream cannot be destroyed");
	if (cuda_stream(stream, "cuStreamDestroy", &code) == NULL)
		return code;
	take_blocking(stream, true);
	return cuda_of_core("cuStreamDestroy",
			    core_stream_destroy(stream, false, "cuStreamDestroy"));
}

CUDA_EXPORT CUresult cuStreamQuery(CUstream handle)
{
	CUresult code = CUDA_SUCCESS;
	struct core_stream *stream;
	bool idle = false;

	CUDA_INITIALISED();
	stream = cuda_stream(handle, __func__, &code);
	if (stream == NULL)
		return code;
	code = cuda_of_core(__func__, core_stream_query(stream, &idle, __func__));
	return code == CUDA_SUCCESS && !idle ? CUDA_ERROR_NOT_READY : code;
}

CUDA_EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
	CUresult code = CUDA_SUCCESS;
	struct core_stream *stream;

	CUDA_INITIALISED();
	stream = cuda_stream(handle, __func__, &code);
	return stream == NULL
		       ? code
		       : cuda_of_core(__func__, core_stream_synchronize(stream, -1, __func__));
}

CUDA_EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	if (flags == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "flags is NULL");
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	*flags = is_default(stream) || take_blocking(stream, false) ? CU_STREAM_DEFAULT
								    : CU_STREAM_NON_BLOCKING;
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	CUresult code = CUDA_SUCCESS;
	struct core_stream *stream;

	CUDA_INITIALISED();
	if (priority == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "priority is NULL");
	stream = cuda_stream(handle, __func__, &code);
	if (stream == NULL)
		return code;
	*priority = is_default(handle) ? 0 : (int)core_stream_priority(stream) + PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	CUDA_CONTEXT(current);
	if (context == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "context is NULL");
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	*context = core_context_handle(current);
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	if (status == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "status is NULL");
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	*status = 0; /* graphs are not modelled */
	return CUDA_SUCCESS;
}

/* ---- host functions ---- */

CUDA_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user_data)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	if (function == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "function is NULL");
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	code = cuda_stream_order(stream, __func__);
	return code != CUDA_SUCCESS
		       ? code
		       : cuda_of_core(__func__,
				      core_callback_launch_host(function, user_data,
								is_default(stream) ? NULL : stream,
								__func__));
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

CUDA_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function,
					 void *user_data, unsigned int flags)
{
	struct stream_callback *callback;
	CUresult code;

	CUDA_INITIALISED();
	if (function == NULL || flags != 0)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "%s",
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

CUDA_EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	uint32_t want = CORE_EVENT_SYNC;
	void *made = NULL;
	CUresult code;

	CUDA_INITIALISED();
	CUDA_CONTEXT(context);
	(void)context;
	if (event == NULL || flags > 7)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "event %p, flags %u",
				 (void *)event, flags);
	if (!(flags & CU_EVENT_DISABLE_TIMING))
		want |= CORE_EVENT_TIME_LINE;
	code = cuda_of_core(__func__, core_event_create(CORE_EVENT_AGAIN, want, &made, __func__));
	if (code == CUDA_SUCCESS)
		*event = made;
	return code;
}

static CUresult of_event(const char *call, int code)
{
	CUresult result = cuda_of_core(call, code);

	return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_INVALID_HANDLE : result;
}

CUDA_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	CUDA_INITIALISED();
	return of_event("cuEventDestroy", core_event_destroy(event, "cuEventDestroy"));
}

CUDA_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	code = cuda_stream_order(stream, __func__);
	return code != CUDA_SUCCESS
		       ? code
		       : of_event(__func__,
				  core_event_record(event, is_default(stream) ? NULL : stream,
						    __func__));
}

CUDA_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	(void)flags;
	return cuEventRecord(event, stream);
}

CUDA_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	CUresult code = CUDA_SUCCESS;

	CUDA_INITIALISED();
	(void)flags;
	if (cuda_stream(stream, __func__, &code) == NULL)
		return code;
	return of_event(__func__,
			core_event_wait(event, is_default(stream) ? NULL : stream, 0, __func__));
}

CUDA_EXPORT CUresult cuEventQuery(CUevent event)
{
	bool done = false;
	CUresult code;

	CUDA_INITIALISED();
	code = of_event(__func__, core_event_query(event, false, &done, __func__));
	return code == CUDA_SUCCESS && !done ? CUDA_ERROR_NOT_READY : code;
}

CUDA_EXPORT CUresult cuEventSynchronize(CUevent event)
{
	CUDA_INITIALISED();
	return of_event(__func__, core_event_synchronize(event, -1, __func__));
}

CUDA_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	bool done = false;
	CUresult code;

	CUDA_INITIALISED();
	if (ms == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "ms is NULL");
	code = of_event(__func__, core_event_query(start, false, &done, __func__));
	if (code == CUDA_SUCCESS && done)
		code = of_event(__func__, core_event_query(end, false, &done, __func__));
	if (code == CUDA_SUCCESS && !done)
		return CUDA_ERROR_NOT_READY;
	return code != CUDA_SUCCESS
		       ? code
		       : of_event(__func__, core_event_elapsed(start, end, ms, __func__));
}

CUDA_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime(ms, start, end);
}
