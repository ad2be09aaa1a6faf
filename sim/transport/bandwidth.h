/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth that requests share, booked in slices of time, each of which records how much of it is
 * taken. Requests arrive with times that differ by what their translation or their read took, so
 * one that is booked later may be ready, and served, earlier. Plain code: no kernel, no data. The
 * L2 has one of these, and every link one per direction.
 */
#ifndef NPUSIM_SIM_TRANSPORT_BANDWIDTH_H
#define NPUSIM_SIM_TRANSPORT_BANDWIDTH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

#define BANDWIDTH_NONE (UINT64_C(1) << 63) /* in none of the times that are asked for */

struct bandwidth_slice {
	uint64_t number, taken_ps;
};

struct bandwidth {
	unsigned slice_lg2;          /* 2^slice_lg2 ps each */
	uint64_t slice_ps, mask;     /* mask + 1 of them are remembered */
	uint64_t origin_ps;          /* where slice 0 begins: nothing is asked for before it */
	uint64_t oldest;             /* number of the first slice that is remembered; all ones:
					there are none yet */
	uint64_t full_from, full_to; /* slices that are known to be full: no need to look */
	struct bandwidth_slice *slice;
	/* the slice that was looked for last; begin_ps is BANDWIDTH_NONE: none */
	uint64_t begin_ps, stop_ps;
	struct bandwidth_slice *at;
};

/* All of it free. The slices are had at the first booking. What is asked for a time before the
 * oldest slice is served as from there: 2^(slice_lg2 + count_lg2) ps before the latest booking. */
void bandwidth_init(struct bandwidth *bandwidth, unsigned slice_lg2, unsigned count_lg2,
		    uint64_t origin_ps);
/* Nothing is taken any more. All zero is allowed. */
void bandwidth_clear(struct bandwidth *bandwidth);

/* bandwidth_take(), slice by slice. */
uint64_t bandwidth_take_slices(struct bandwidth *b, uint64_t ps, uint64_t from_ps,
			       uint64_t *out_end_ps);

static inline struct bandwidth_slice *bandwidth_slice_at(struct bandwidth *b, uint64_t number)
{
	struct bandwidth_slice *slice = &b->slice[number & b->mask];

	if (G_UNLIKELY(slice->number != number)) {
		*slice = (struct bandwidth_slice){ number, 0 };
		if (number > b->oldest + b->mask)
			b->oldest = number - b->mask;
	}
	return slice;
}

/* Notes the slice that has the time; false where it is no longer remembered. */
static inline bool bandwidth_find(struct bandwidth *b, uint64_t at_ps)
{
	uint64_t since = at_ps - b->origin_ps, number = since >> b->slice_lg2;

	if (G_UNLIKELY(number < b->oldest))
		return false;
	b->begin_ps = at_ps - (since & (b->slice_ps - 1));
	b->stop_ps = b->begin_ps + b->slice_ps;
	b->at = bandwidth_slice_at(b, number);
	return true;
}

/* Takes ps of the time from from_ps on, the earliest that is free. Returns since when (from_ps
 * where ps is 0); *out_end_ps: until when. No slice is ever taken for more than its length. Within
 * a slice the order is not kept: two that come in its middle may overlap there. */
static inline uint64_t bandwidth_take(struct bandwidth *b, uint64_t ps, uint64_t from_ps,
				      uint64_t *out_end_ps)
{
	uint64_t start;

	if (G_UNLIKELY(!ps) ||
	    (from_ps - b->begin_ps >= b->slice_ps && !bandwidth_find(b, from_ps)))
		return bandwidth_take_slices(b, ps, from_ps, out_end_ps);
	/* Mostly it fits into the first slice, and leaves room there. */
	start = MAX(b->begin_ps + b->at->taken_ps, from_ps);
	if (G_UNLIKELY(start + ps >= b->stop_ps))
		return bandwidth_take_slices(b, ps, from_ps, out_end_ps);
	b->at->taken_ps += ps;
	*out_end_ps = start + ps;
	return start;
}

G_END_DECLS

#endif
