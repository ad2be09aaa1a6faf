/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of a history for tests of readers, which have a trace and no file.
 */
#ifndef NPUSIM_TESTS_USAGE_OF_TRACE_H
#define NPUSIM_TESTS_USAGE_OF_TRACE_H

#include "track/memory.h"

/* What was there at the start on the device of an index, in a trace that keeps it in memory. */
static inline void usage_begin(struct memory *usage, const struct trace *trace, guint device)
{
	const struct trace_device *d = g_ptr_array_index(trace->devices, device);
	struct record_item item;

	memory_init(usage, d->block_unit);
	for (guint i = 0; i < trace->starts->len; i++) {
		trace_row_item(trace, &g_array_index(trace->starts, struct trace_row, i), &item);
		if (item.device == device)
			memory_step(usage, &item);
	}
	memory_started(usage);
}

/* Adds all events of the device. */
static inline void usage_run(struct memory *usage, struct trace *trace, guint device)
{
	struct record_item item;

	if (!trace->source->rewind(trace, NULL))
		g_error("the trace cannot be read again");
	while (trace->source->next(trace, &item, NULL) > 0) {
		if (item.device == device)
			memory_step(usage, &item);
	}
}

#endif
