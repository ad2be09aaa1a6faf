/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of a history that is in memory, for tests of readers.
 */
#ifndef NPUSIM_TESTS_USAGE_OF_EVENTS_H
#define NPUSIM_TESTS_USAGE_OF_EVENTS_H

#include "track/memory-usage.h"

static inline void usage_event(struct memory_usage *usage, const struct trace_event *event)
{
	static const guint32 verbs[TRACE_ACTION_COUNT] = {
		[TRACE_ALLOC] = NPU_TRACE_ALLOC,
		[TRACE_FREE_REQUESTED] = NPU_TRACE_FREE_REQUESTED,
		[TRACE_FREE_COMPLETED] = NPU_TRACE_FREE,
		[TRACE_SEGMENT_ALLOC] = NPU_TRACE_SEGMENT_ALLOC,
		[TRACE_SEGMENT_FREE] = NPU_TRACE_SEGMENT_FREE,
		[TRACE_SEGMENT_MAP] = NPU_TRACE_SEGMENT_MAP,
		[TRACE_SEGMENT_UNMAP] = NPU_TRACE_SEGMENT_UNMAP,
		[TRACE_OOM] = NPU_TRACE_OOM,
		[TRACE_OTHER] = NPU_TRACE_NOTE,
	};
	const struct record_item item = { .record = { .verb = verbs[event->action] },
					  .address = event->address,
					  .size = event->size };

	memory_usage_step(usage, &item);
}

/* With what was there at the start. */
static inline void usage_begin(struct memory_usage *usage, const struct trace_device *device)
{
	memory_usage_init(usage, device->block_unit);
	for (guint i = 0; i < device->ranges->len; i++) {
		const struct trace_range *r = &g_array_index(device->ranges, struct trace_range, i);
		usage_event(usage, &(struct trace_event){ .action = TRACE_SEGMENT_ALLOC,
							  .size = r->size });
	}
	for (guint i = 0; i < device->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(device->blocks, struct trace_block, i);
		usage_event(usage, &(struct trace_event){ .action = TRACE_ALLOC,
							  .address = b->address,
							  .size = b->size });
	}
	memory_usage_started(usage);
}

#endif
