/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream's queues in the driver, for streams and copies: entries go out, completions come in.
 */
#ifndef NPUSIM_CORE_QUEUE_H
#define NPUSIM_CORE_QUEUE_H

#include "core/object/stream.h"

/* Sends entries that belong together, so that nothing comes between them. `done` has one for each
 * entry, or is NULL. */
int core_stream_send_each(struct core_stream *stream, void *entries, unsigned count,
			  const struct core_done *done, const char *call);
/* The same with the stream's lock held (it is released while there is no room). */
int core_stream_send_locked(struct core_stream *stream, void *entries, unsigned count,
			    const struct core_done *done, const char *call);
/* Waits until something completes or changes: 0, CORE_STREAM_SYNC_TIMEOUT when the deadline has
 * passed, or the code of a driver that does not answer. */
int core_stream_progress_locked(struct core_stream *stream, struct core_wait *wait);
/* Takes what is complete, without waiting. */
void core_stream_reap_locked(struct core_stream *stream);
void core_stream_reap_device(uint32_t device);
/* Makes the stream's queue, or takes it down. */
int core_stream_open_queue(struct core_stream *stream, const char *call);
void core_stream_close_queue(struct core_stream *stream);
#endif
