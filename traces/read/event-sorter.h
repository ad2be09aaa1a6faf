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

struct event_row {
	/* ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE; what is passed on as it is: SEGMENT_MAP,
	 * SEGMENT_UNMAP, NOTE. text: of trace_note(), also what a SEGMENT_FREE of any device is
	 * noted as if there is none; of trace_sites(), or 0 */
	struct trace_row row;
	gint64 order;   /* time, whatever its unit */
	guint64 serial; /* of rows of one time and rank */
	guint8 rank;    /* of rows of one time: the lower first */
};
struct event_sorter;

/* `trace`: that the rows become. */
struct event_sorter *event_sorter_new(struct trace *trace);
/* FALSE and error, which names the folder, where there is no room for them in a file. */
gboolean event_sorter_add(struct event_sorter *sorter, const struct event_row *row, GError **error);
/* A NOTE of that name, at the row's time and on its device. */
gboolean event_sorter_add_note(struct event_sorter *sorter, struct event_row *row, const char *name,
			       GError **error);
/* A block from row->order to `end`; for ever, if that is before it. One that goes makes room for
 * those that come then, unless it came then itself. Where rows have times, their order is in ns. */
gboolean event_sorter_add_block(struct event_sorter *sorter, struct event_row *row, gint64 end,
				GError **error);
/* What was there before the first row, a SEGMENT_ALLOC or an ALLOC. */
void event_sorter_start(struct event_sorter *sorter, const struct trace_row *row);
/* Puts the history into the trace, and frees the sorter. `ok`: all rows were added, else error is
 * set already. `doubled`: the file has segments alone, each of which is a block as well. FALSE and
 * error where the file of rows cannot be used. */
gboolean event_sorter_finish(struct event_sorter *sorter, gboolean ok, gboolean doubled,
			     GError **error);

#endif
