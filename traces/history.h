/* SPDX-License-Identifier: Apache-2.0
 *
 * A history put together from rows in any order: sorted by time, and each free given the size of
 * what it frees. What is freed without having been allocated was live at the start.
 */
#ifndef NPUSIM_TRACES_HISTORY_H
#define NPUSIM_TRACES_HISTORY_H

#include "trace.h"

struct history_row {
	gint64 order;  /* time, whatever its unit */
	guint8 rank;   /* of rows of one time: the lower first */
	guint8 action; /* enum trace_action: ALLOC, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE,
			  OTHER */
	guint32 device;
	guint32 other;  /* OTHER: history_name() */
	guint64 serial; /* of rows of one time and rank */
	guint64 address, size;
	gint64 stream, time_us;
};
struct history;

struct history *history_new(void);
void history_free(struct history *history);
guint32 history_name(struct history *history, const char *name);
void history_add(struct history *history, const struct history_row *row);
/* The history as a trace; ends `history`. */
struct trace *history_finish(struct history *history, const char *kind);

#endif
