/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings about waits on streams that make no progress.
 */
#ifndef NPUSIM_CORE_STALL_H
#define NPUSIM_CORE_STALL_H

#include "core/object/stream.h"

/* Wall time in ms until core_stall_tell_locked() has something to say of this wait; UINT32_MAX:
 * never. */
uint32_t core_stall_due_locked(const struct core_stream *stream, struct core_wait *wait);
/* Warns, once a wait, if it is due and the stream stands: who waits, for which task, and what would
 * end it. The lock is released meanwhile. */
void core_stall_tell_locked(struct core_stream *stream, struct core_wait *wait);

#endif
