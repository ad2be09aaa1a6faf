/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams as objects: their slots, and the lists of those that are live.
 */
#include "core/object/stream.h"

#include "base/cancel.h"
#include "base/clock.h"
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
	void *handle = NULL;

	pthread_mutex_lock(&core_lists_lock);
	if (core_slot_handle(stream->context) == context) {
		LIST_INSERT_HEAD(&streams[stream->device], stream, link);
		atomic_fetch_add(&live[stream->device], 1);
		handle = core_pool_publish(&core_streams, stream);
		if (stream->is_default)
			atomic_store_explicit(&stream->context->default_stream, handle,
					      memory_order_release);
	}
	pthread_mutex_unlock(&core_lists_lock);
	return handle;
}

void core_stream_unlink(struct core_stream *stream)
{
	pthread_mutex_lock(&core_lists_lock);
	LIST_REMOVE(stream, link);
	atomic_fetch_sub(&live[stream->device], 1);
	pthread_cond_broadcast(&unlinked);
	pthread_mutex_unlock(&core_lists_lock);
}

struct core_stream *core_stream_take_of(struct context *context)
{
	UNCANCELLED;
	struct core_stream *taken = NULL;
	bool left = true;

	pthread_mutex_lock(&core_lists_lock);
	while (taken == NULL && left) {
		left = false;
		for (struct core_stream *stream = LIST_FIRST(&streams[context->face.device]);
		     stream != NULL && taken == NULL; stream = LIST_NEXT(stream, link)) {
			if (stream->context != context)
				continue;
			left = true;
			if (core_pool_hide(&core_streams, stream, core_slot_handle(stream)))
				taken = stream;
		}
		if (taken == NULL && left)
			pthread_cond_wait(&unlinked, &core_lists_lock);
	}
	pthread_mutex_unlock(&core_lists_lock);
	return taken;
}

void **core_stream_list(uint32_t device, unsigned *out_count)
{
	struct core_stream *stream;
	unsigned room = 0, count = 0;
	void **handles;

	pthread_mutex_lock(&core_lists_lock);
	for (stream = LIST_FIRST(&streams[device]); stream != NULL;
	     stream = LIST_NEXT(stream, link))
		room++;
	handles = calloc(room + 1, sizeof(*handles));
	stream = handles == NULL ? NULL : LIST_FIRST(&streams[device]);
	for (; stream != NULL; stream = LIST_NEXT(stream, link))
		handles[count++] = core_slot_handle(stream);
	pthread_mutex_unlock(&core_lists_lock);
	*out_count = count;
	return handles;
}
