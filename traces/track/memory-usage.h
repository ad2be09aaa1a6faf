/* SPDX-License-Identifier: Apache-2.0
 *
 * What a history itself says about memory: physical and live memory of one device, event by event,
 * and which parts of the physical memory are lost to what: the sums of a replay. It asks its table
 * which blocks are live (allocation-table.h). It is independent of the model, and knows addresses,
 * not names: the sums of records with names, for convert and diff, are in object-tracker.h.
 */
#ifndef NPUSIM_TRACES_MEMORY_USAGE_H
#define NPUSIM_TRACES_MEMORY_USAGE_H

#include "allocation-table.h"
#include "read/record-reader.h"

struct memory_usage {
	guint64 start_physical, start_live; /* when the window began */
	guint64 physical, live;             /* now */
	guint64 peak_physical, peak_live;
	guint64 live_at_peak_physical; /* live bytes when physical memory was at its peak: what
					  fragmentation is told from */
	guint64 obtained;              /* physical bytes got since the start */
	guint64 unmatched; /* frees of blocks that the history does not know, and blocks handed out
			      twice */
	guint64 taken;     /* by live blocks, with the rounding of who gave them */
	guint64 rounding;  /* of `physical`: what pages are larger than what was asked for */
	guint unit;        /* blocks are multiples of it, as far as the file tells */
	struct allocation_table table; /* blocks, by the address that the file has; memory and
				 reservations are whoever's who gets them */
};

/* `unit`: of the allocator's blocks; 0: not known. */
void memory_usage_init(struct memory_usage *usage, guint unit);
/* What there was at the start has been added: the window begins. */
void memory_usage_started(struct memory_usage *usage);
/* Adds an allocator's event. Where it has `rounded`, that is what it takes, and a block lies at
 * `va`: a block of the start that is known already is placed anew. */
void memory_usage_step(struct memory_usage *usage, const struct record_item *item);
void memory_usage_clear(struct memory_usage *usage);

/* Physical memory for `size` bytes, in whole pages `pages` bytes. */
void memory_usage_obtain(struct memory_usage *usage, guint64 size, guint64 pages);
void memory_usage_return(struct memory_usage *usage, guint64 size, guint64 pages);
void memory_usage_sums(const struct memory_usage *usage, struct memory_sums *out);

#endif
