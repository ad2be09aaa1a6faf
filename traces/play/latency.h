/* SPDX-License-Identifier: Apache-2.0
 *
 * A histogram of the latencies of calls: 64 bins for each doubling, so that quantiles are within
 * 1.6 percent; the minimum and the maximum are exact.
 */
#ifndef NPUSIM_TRACES_LATENCY_H
#define NPUSIM_TRACES_LATENCY_H

#include <glib.h>

#define LATENCY_BINS (64 * 59)

struct latency {
	guint64 calls, min_ps, max_ps;
	guint64 bins[LATENCY_BINS];
};

struct latency *latency_new(void);
void latency_add(struct latency *latency, guint64 ps);
/* The time that a share of the calls, 0 to 1, does not exceed. */
guint64 latency_quantile_ps(const struct latency *latency, double share);
/* The longest time that is counted in a bin. */
guint64 latency_bin_end_ps(guint bin);

#endif
