/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes an allocator's history from rows in any order, for readers of files that are not sorted:
 * rows are sorted by time, and each free gets the size of what it frees. What is freed without
 * having been allocated was live at the start. Memory use depends on what is live at one time, not
 * on the length of the history.
 */
#ifndef NPUSIM_TRACES_EVENT_SORTER_H
#define NPUSIM_TRACES_EVENT_SORTER_H

#include "trace.h"

#define EVENT_SORTER_ANY_DEVICE G_MAXUINT16 /* of a SEGMENT_FREE: as its SEGMENT_ALLOC */

/* What a reader adds to trace.unsorted: ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, and what is
 * passed on as it is: SEGMENT_MAP, SEGMENT_UNMAP, NOTE. `order` is the time, whatever its unit;
 * `text` of a SEGMENT_FREE of any device what it is noted as if there is none. */

/* Adds a NOTE of that name, at the row's time and on its device. */
gboolean event_sorter_add_note(struct trace *trace, struct trace_row *row, const char *name,
			       GError **error);

/* Adds a block from row->order to `end`; for ever, if that is before it. One that goes makes room
 * for those that come then, unless it came then itself. Where rows have times, their order is in
 * ns. */
gboolean event_sorter_add_block(struct trace *trace, struct trace_row *row, gint64 end,
				GError **error);

/* Puts the history of trace.unsorted into the trace. `doubled`: the file has segments alone, each
 * of which is a block as well. FALSE and error where a file of rows cannot be used. */
gboolean event_sorter_finish(struct trace *trace, gboolean doubled, GError **error);

#endif
