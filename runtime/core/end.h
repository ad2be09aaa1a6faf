/* SPDX-License-Identifier: Apache-2.0
 *
 * How objects end, for the objects that contain them: each function calls only what is below it.
 */
#ifndef NPUSIM_CORE_END_H
#define NPUSIM_CORE_END_H

#include "core/object/stream.h"

/* Ends a hidden stream: waits for its work, or drops it. */
void core_stream_end(struct core_stream *stream, bool force, const char *call);
/* Ends the events of a context. */
void core_event_end_all(struct context *context);
/* Ends a hidden context: its streams and events. `force`: pending work is dropped. */
void core_context_end(struct context *context, bool force, const char *call);

#endif
