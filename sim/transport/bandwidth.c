/* SPDX-License-Identifier: Apache-2.0
 *
 * Books requests that take more than part of one slice, and manages the memory of the slices.
 */
#include "bandwidth.h"

#include <glib.h>

void bandwidth_init(struct bandwidth *bandwidth, unsigned slice_lg2, unsigned count_lg2,
		    uint64_t origin_ps)
{
	*bandwidth = (struct bandwidth){ .slice_lg2 = slice_lg2,
					 .slice_ps = UINT64_C(1) << slice_lg2,
					 .mask = (UINT64_C(1) << count_lg2) - 1,
					 .origin_ps = origin_ps,
					 .oldest = UINT64_MAX,
					 .begin_ps = BANDWIDTH_NONE };
}

void bandwidth_clear(struct bandwidth *bandwidth)
{
	g_clear_pointer(&bandwidth->slice, g_free);
	bandwidth->oldest = UINT64_MAX;
	bandwidth->begin_ps = BANDWIDTH_NONE;
}

uint64_t bandwidth_take_slices(struct bandwidth *b, uint64_t ps, uint64_t from_ps,
			       uint64_t *out_end_ps)
{
	uint64_t length = b->slice_ps, at = from_ps - b->origin_ps;
	uint64_t start = UINT64_MAX, number = at >> b->slice_lg2, first, end;

	b->begin_ps = BANDWIDTH_NONE;
	if (!b->slice) {
		b->slice = g_new0(struct bandwidth_slice, b->mask + 1);
		b->oldest = b->full_from = b->full_to = 0;
	}
	first = MAX(number, b->oldest);
	if (first >= b->full_from && first < b->full_to)
		first = b->full_to;
	if (ps && first != number)
		at = first << b->slice_lg2;
	end = at;
	for (number = first; ps; number++) {
		uint64_t stop = (number + 1) << b->slice_lg2, took;
		struct bandwidth_slice *slice = bandwidth_slice_at(b, number);

		at = MAX(at, stop - length + slice->taken_ps);
		if (at < stop) {
			took = MIN(ps, stop - at);
			start = MIN(start, at);
			slice->taken_ps += took;
			ps -= took;
			end = at + took;
		}
		if (slice->taken_ps == length) {
			b->full_from = number == b->full_to ? b->full_from : number;
			b->full_to = number + 1;
		}
		at = stop;
	}
	*out_end_ps = end + b->origin_ps;
	return MIN(start, end) + b->origin_ps;
}
