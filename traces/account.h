/* SPDX-License-Identifier: Apache-2.0
 *
 * What a history says by itself: physical and live memory of one device, event by event. It asks no
 * model.
 */
#ifndef NPUSIM_TRACES_ACCOUNT_H
#define NPUSIM_TRACES_ACCOUNT_H

#include "trace.h"

struct account {
	guint64 start_physical, start_live; /* when the window began */
	guint64 physical, live;             /* now */
	guint64 peak_physical, peak_live;
	guint64 live_at_peak_physical; /* live bytes when physical memory was at its peak: what
					  fragmentation is told from */
	guint64 obtained;              /* physical bytes got since the start */
	guint64 unmatched;  /* frees of blocks that the history does not know, and blocks handed out
			       twice */
	GHashTable *blocks; /* live blocks: address -> size */
};

void account_init(struct account *account, const struct trace_device *device);
void account_step(struct account *account, const struct trace_event *event);
void account_clear(struct account *account);

#endif
