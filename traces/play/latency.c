/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the latencies of calls in a histogram, whose bins are indexed by the seven highest bits
 * of a time.
 */
#include "latency.h"

#define SUB_LG2 6
#define SUBS    (1u << SUB_LG2)

struct latency *latency_new(void)
{
	struct latency *l = g_new0(struct latency, 1);

	l->min_ps = G_MAXUINT64;
	return l;
}

guint64 latency_bin_end_ps(guint bin)
{
	if (bin < SUBS)
		return bin;
	guint shift = bin / SUBS - 1;
	return ((guint64)(bin % SUBS + SUBS + 1) << shift) - 1;
}

void latency_add(struct latency *l, guint64 ps)
{
	guint shift = ps < SUBS ? 0 : g_bit_storage(ps) - 1 - SUB_LG2;

	l->calls++;
	l->bins[ps < SUBS ? ps : (shift + 1) * SUBS + (ps >> shift) - SUBS]++;
	l->min_ps = MIN(l->min_ps, ps);
	l->max_ps = MAX(l->max_ps, ps);
}

guint64 latency_quantile_ps(const struct latency *l, double share)
{
	double wanted = share * (double)l->calls;
	guint64 seen = 0;

	for (guint b = 0; b < LATENCY_BINS; b++) {
		seen += l->bins[b];
		if (seen > 0 && (double)seen >= wanted)
			return CLAMP(latency_bin_end_ps(b), l->min_ps, l->max_ps);
	}
	return l->max_ps;
}
