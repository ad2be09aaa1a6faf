/* SPDX-License-Identifier: Apache-2.0
 *
 * What a history says by itself: physical and live memory of one device, event by event, and what
 * of the physical memory is lost to whom: the sums of a replay. Which blocks live it asks its
 * ledger (ledger.h). It asks no model, and knows addresses, not names: the sums of records with
 * names, for convert and diff, are those of books.h.
 */
#ifndef NPUSIM_TRACES_ACCOUNT_H
#define NPUSIM_TRACES_ACCOUNT_H

#include "ledger.h"
#include "trace.h"

struct account {
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
	struct ledger ledger; /* blocks, by the address that the file has; memory and reservations
				 are whoever's who gets them */
};

void account_init(struct account *account, const struct trace_device *device);
void account_step(struct account *account, const struct trace_event *event);
void account_clear(struct account *account);

/* An ALLOC that lies at `address` and takes `taken` bytes. */
void account_block(struct account *account, const struct trace_event *event, guint64 address,
		   guint64 taken);
/* A block of the start that lies elsewhere than the file says. */
void account_place(struct account *account, guint64 key, guint64 address, guint64 taken);
/* Physical memory for `size` bytes, in whole pages `pages` bytes. */
void account_obtain(struct account *account, guint64 size, guint64 pages);
void account_return(struct account *account, guint64 size, guint64 pages);
void account_sums(const struct account *account, struct ledger_sums *out);

/* Bytes of the pages that an aclrtMalloc of `size` bytes takes: of 4 KiB up to 1 MiB, of 2 MiB
 * above. */
guint64 account_pages(guint64 size);
/* Up to a multiple. */
guint64 account_round(guint64 size, guint64 to);

#endif
