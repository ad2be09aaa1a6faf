/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of a history for tests of readers, which have a trace and no file.
 */
#ifndef NPUSIM_TESTS_USAGE_OF_TRACE_H
#define NPUSIM_TESTS_USAGE_OF_TRACE_H

#include "track/memory.h"

#define LEVEL_OF(usage, kind) ((usage).levels.of[LEVEL_##kind])

/* The trace's records, at most `room`: those of the start, or those behind; their number. */
static inline guint take_records(struct trace *trace, gboolean start, struct record_item *out,
				 guint room)
{
	guint count = 0;

	if (!trace_rewind(trace, NULL))
		g_error("the trace cannot be read again");
	while (count < room && trace_next(trace, &out[count], NULL) > 0)
		count += (out[count].number == 0) == start;
	return count;
}

static inline void usage_add(struct memory *usage, struct trace *trace, guint device,
			     gboolean start)
{
	struct record_item item;

	if (!trace_rewind(trace, NULL))
		g_error("the trace cannot be read again");
	while (trace_next(trace, &item, NULL) > 0) {
		if (item.device == device && (item.number == 0) == start)
			memory_step(usage, &item);
	}
}

/* What was there at the start on the device of an index. */
static inline void usage_begin(struct memory *usage, struct trace *trace, guint device)
{
	memory_init(usage, trace->block_unit);
	usage_add(usage, trace, device, TRUE);
	memory_started(usage);
}

/* Adds all events of the device. */
static inline void usage_run(struct memory *usage, struct trace *trace, guint device)
{
	usage_add(usage, trace, device, FALSE);
}

#endif
