/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams as objects: their slots, and the lists of those that are live.
 */
#include "core/object/stream.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/lock.h"
#include "core/object/process.h"

#include <stdlib.h>

static void prepare_stream(void *object)
{
	struct core_stream *stream = object;

	pthread_mutex_init(&stream->lock, NULL);
	clock_cond_init(&stream->progress);
}

struct core_pool core_streams = CORE_POOL(2, struct core_stream, prepare_stream);

static atomic_uint live[CORE_DEVICE_MAX];

unsigned core_stream_live(uint32_t device)
{
	return device < CORE_DEVICE_MAX ? atomic_load(&live[device]) : 0;
}

static LIST_HEAD(, core_stream) streams[CORE_DEVICE_MAX]; /* core_lists_lock */
static pthread_cond_t unlinked = PTHREAD_COND_INITIALIZER;

void *core_stream_link(struct core_stream *stream, const void *context)
{
	void *handle;
	LOCKED(&core_lists_lock);

	if (core_slot_handle(stream->context) != context)
		return NULL;
	LIST_INSERT_HEAD(&streams[stream->device], stream, link);
	atomic_fetch_add(&live[stream->device], 1);
	handle = core_pool_publish(&core_streams, stream);
	if (stream->is_default)
		atomic_store_explicit(&stream->context->default_stream, handle,
				      memory_order_release);
	return handle;
}

void core_stream_unlink(struct core_stream *stream)
{
	LOCKED(&core_lists_lock);

	LIST_REMOVE(stream, link);
	atomic_fetch_sub(&live[stream->device], 1);
	pthread_cond_broadcast(&unlinked);
}

struct core_stream *core_stream_take_of(struct context *context)
{
	UNCANCELLED;
	struct core_stream *stream;
	LOCKED(&core_lists_lock);

	for (;;) {
		bool left = false;

		LIST_FOREACH(stream, &streams[context->face.device], link)
		{
			if (stream->context != context)
				continue;
			left = true;
			if (core_pool_hide(&core_streams, stream, core_slot_handle(stream)))
				return stream;
		}
		if (!left)
			return NULL;
		pthread_cond_wait(&unlinked, &core_lists_lock);
	}
}

void **core_stream_list(uint32_t device, unsigned *out_count)
{
	struct core_stream *stream;
	unsigned room = 0, count = 0;
	void **handles;
	LOCKED(&core_lists_lock);

	LIST_FOREACH(stream, &streams[device], link)
	room++;
	handles = calloc(room + 1, sizeof(*handles));
	stream = handles == NULL ? NULL : LIST_FIRST(&streams[device]);
	for (; stream != NULL; stream = LIST_NEXT(stream, link))
		handles[count++] = core_slot_handle(stream);
	*out_count = count;
	return handles;
}
