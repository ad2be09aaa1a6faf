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
#include <stdint.h>

G_BEGIN_DECLS

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
};

/* All of it free. The slices are had at the first booking. What is asked for a time before the
 * oldest slice is served as from there: 2^(slice_lg2 + count_lg2) ps before the latest booking. */
void bandwidth_init(struct bandwidth *bandwidth, unsigned slice_lg2, unsigned count_lg2,
		    uint64_t origin_ps);
/* Nothing is taken any more. All zero is allowed. */
void bandwidth_clear(struct bandwidth *bandwidth);

static inline struct bandwidth_slice *bandwidth_slice_at(struct bandwidth *b, uint64_t number)
{
	struct bandwidth_slice *slice = &b->slice[number & b->mask];

	if (G_UNLIKELY(slice->number != number)) {
		slice->number = number;
		slice->taken_ps = 0;
		if (number > b->oldest + b->mask)
			b->oldest = number - b->mask;
	}
	return slice;
}

/* bandwidth_take(), slice by slice. */
uint64_t bandwidth_take_slices(struct bandwidth *b, uint64_t ps, uint64_t from_ps,
			       uint64_t *out_end_ps);

/* Takes ps of the time from from_ps on, the earliest that is free. Returns since when (from_ps
 * where ps is 0); *out_end_ps: until when. No slice is ever taken for more than its length. Within
 * a slice the order is not kept: two that come in its middle may overlap there. */
static inline uint64_t bandwidth_take(struct bandwidth *b, uint64_t ps, uint64_t from_ps,
				      uint64_t *out_end_ps)
{
	uint64_t at = from_ps - b->origin_ps, number = at >> b->slice_lg2, start;
	uint64_t begin = at & -b->slice_ps;
	struct bandwidth_slice *slice;

	if (G_UNLIKELY(!ps || number < b->oldest))
		return bandwidth_take_slices(b, ps, from_ps, out_end_ps);
	/* Mostly it fits into the first slice, and leaves room there. */
	slice = bandwidth_slice_at(b, number);
	start = begin + slice->taken_ps;
	start = start > at ? start : at;
	if (G_UNLIKELY(start + ps >= begin + b->slice_ps))
		return bandwidth_take_slices(b, ps, from_ps, out_end_ps);
	slice->taken_ps += ps;
	*out_end_ps = start + ps + b->origin_ps;
	return start + b->origin_ps;
}

G_END_DECLS

#endif
