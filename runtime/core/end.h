/* SPDX-License-Identifier: Apache-2.0
 *
 * How objects end, for the objects that contain them, and the own threads of streams, which run
 * host functions (callback.c): each function calls only what is below it.
 */
#ifndef NPUSIM_CORE_END_H
#define NPUSIM_CORE_END_H

#include "core/object/stream.h"

/* Ends a hidden stream: waits for its work, or drops it. */
void core_stream_end(struct core_stream *stream, bool force);
/* Ends the events of a context. */
void core_event_end_all(const struct context *context);
/* Ends a hidden context: its streams and events. `force`: pending work is dropped. */
void core_context_end(struct context *context, bool force);

/* core_stream_send_locked(), and the stream's own thread, which exists from the first on, looks
 * after what was sent until stream->attention is lowered again. */
int core_attention_send_locked(struct core_stream *stream, void *entries, unsigned count,
			       const struct core_done *done);
/* The stream ends: its thread is stopped, its subscription is gone. No lock is held. */
void core_callback_end(struct core_stream *stream);
/* True in the stream's own thread, where one must not wait for it. */
bool core_is_pump_of(const struct core_stream *stream);

#endif
