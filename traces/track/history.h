/* SPDX-License-Identifier: Apache-2.0
 *
 * What the file itself says of one device, whatever serves the blocks in a replay: where its events
 * contradict each other, and where it ran out of memory when it was recorded.
 */
#ifndef NPUSIM_TRACES_HISTORY_H
#define NPUSIM_TRACES_HISTORY_H

#include "read/record-reader.h"

struct history {
	GTree *blocks;    /* inside: those that are live, by address */
	guint64 physical; /* bytes of segments */
	guint64 live;     /* bytes of blocks */
	guint64 contradictions;
	char *first; /* the first of them in words, with its place; NULL: none */
	struct recorded_oom {
		guint64 event; /* from 1; 0: there is none */
		guint64 asked, free_bytes, physical, live;
	} oom; /* the first */
};

void history_init(struct history *history);
void history_clear(struct history *history);
/* Adds an allocator's event, number `event` of the device from 1; 0: it was there at the start. */
void history_step(struct history *history, const struct record_item *item, guint64 event);
/* "line 3"; where that is 0, "event 17"; "the start". */
char *history_place(guint64 line, guint64 event);

#endif
