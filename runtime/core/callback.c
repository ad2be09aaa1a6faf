/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on callbacks: subscribing a thread to a stream, launching, processing.
 */
#include "core/object/stream.h"

#include "base/lock.h"
#include "core/object/error.h"

int core_callback_launch(void (*fn)(void *arg), void *arg, bool block, void *handle,
			 const char *call)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, call, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->host_funcs)
		return core_fail(CORE_STREAM_SUBSCRIBE, call,
				 "stream %d has used aclrtLaunchHostFunc: a stream takes one kind "
				 "of callback or the other",
				 stream->id);
	if (stream->subscriber == NULL)
		return core_fail(
			CORE_STREAM_NO_CALLBACK, call,
			"no thread subscribes to stream %d; call aclrtSubscribeReport first",
			stream->id);
	return core_callback_launch_locked(stream, fn, arg, block, call);
}

int core_callback_launch_host(void (*fn)(void *arg), void *arg, void *handle, const char *call)
{
	struct core_stream *stream;
	int code = core_stream_find(handle, call, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber != NULL)
		return core_fail(CORE_STREAM_SUBSCRIBE, call,
				 "a thread subscribes to stream %d (aclrtSubscribeReport): a "
				 "stream takes one kind of callback or the other",
				 stream->id);
	stream->host_funcs = true; /* at once: the lock is released while there is no room */
	return core_callback_launch_locked(stream, fn, arg, true, call);
}

int core_callback_subscribe(uint64_t thread, void *handle, const char *call)
{
	struct core_stream *stream;
	int code = core_stream_find_any(handle, call, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber != NULL || stream->host_funcs)
		return core_fail(
			CORE_STREAM_SUBSCRIBE, call, "stream %d %s", stream->id,
			stream->host_funcs
				? "has used aclrtLaunchHostFunc: a stream takes one kind of "
				  "callback or the other"
				: "has a subscriber already; call aclrtUnSubscribeReport first");
	stream->subscriber = core_subscriber_join(thread);
	return stream->subscriber != NULL ? CORE_OK
					  : core_no_memory(call, "no memory for a subscription");
}

int core_callback_unsubscribe(uint64_t thread, void *handle, const char *call)
{
	struct core_stream *stream;
	int code = core_stream_find_any(handle, call, &stream);

	if (code != CORE_OK)
		return code;
	LOCKED(&stream->lock);
	if (stream->subscriber == NULL)
		return core_fail(CORE_STREAM_SUBSCRIBE, call, "no thread subscribes to stream %d",
				 stream->id);
	if (core_subscriber_thread(stream->subscriber) != thread)
		return core_fail(CORE_THREAD_SUBSCRIBE, call,
				 "threadId=%llu does not subscribe to stream %d: thread %llu does",
				 (unsigned long long)thread, stream->id,
				 (unsigned long long)core_subscriber_thread(stream->subscriber));
	core_subscriber_leave(stream->subscriber);
	stream->subscriber = NULL;
	return CORE_OK;
}

int core_callback_process(int32_t timeout_ms, const char *call)
{
	int code = core_subscriber_process(timeout_ms);

	if (code == CORE_THREAD_SUBSCRIBE)
		return core_fail(code, call,
				 "the calling thread subscribes to no stream; call "
				 "aclrtSubscribeReport with pthread_self() first");
	if (code == CORE_REPORT_TIMEOUT)
		return core_fail(code, call, "no callback came within %d ms", timeout_ms);
	return CORE_OK;
}
