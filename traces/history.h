/* SPDX-License-Identifier: Apache-2.0
 *
 * A history put together from rows in any order: sorted by time, and each free given the size of
 * what it frees. What is freed without having been allocated was live at the start. Many rows wait
 * in a file (spool.h), and are put together again whenever the events are read: a history takes
 * memory for what lives at a time, not for its length. It is for readers of files that are not in
 * order; its sizes are in a table of live.h.
 */
#ifndef NPUSIM_TRACES_HISTORY_H
#define NPUSIM_TRACES_HISTORY_H

#include "trace.h"

#define HISTORY_ANY_DEVICE G_MAXUINT32 /* of a SEGMENT_FREE: as its SEGMENT_ALLOC */

struct history_row {
	gint64 order;   /* time, whatever its unit */
	guint64 serial; /* of rows of one time and rank */
	guint64 address, size;
	gint64 stream, time_us;
	guint32 device;
	guint32 other; /* OTHER: history_name(); ALLOC, SEGMENT_ALLOC: of history_sites(), or 0 */
	guint8 rank;   /* of rows of one time: the lower first */
	guint8 action; /* enum trace_action: ALLOC, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE,
			  OTHER */
};
struct history;

#define HISTORY_MEMORY_BYTES (16u << 20) /* rows beyond it wait in a file */
/* What histories made from now on have instead: for tests. */
void history_set_memory(gsize bytes);

struct history *history_new(void);
void history_free(struct history *history);
guint32 history_name(struct history *history, const char *name);
/* Where blocks were asked for; the trace will have it, if anything is in it. */
struct sites *history_sites(struct history *history);
/* FALSE and error where there is no room for them in a file. */
gboolean history_add(struct history *history, const struct history_row *row, GError **error);
/* The history as a trace, which takes it over, on failure too. `doubled`: the file has segments
 * alone, each of which is a block as well. NULL and error where the file of rows cannot be read. */
struct trace *history_finish(struct history *history, const char *kind, gboolean doubled,
			     GError **error);

/* The events, by time. `trace`: what history_finish() made of it. */
gboolean history_rewind(struct history *history, GError **error);
/* 1: an event, and the index of its device in trace->devices; 0: the end; -1 and error. */
int history_next(struct history *history, const struct trace *trace, guint *out_device,
		 struct trace_event *out, GError **error);

#endif
