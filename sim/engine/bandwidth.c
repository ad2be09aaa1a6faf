/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a bandwidth's slices; booking is in the header.
 */
#include "bandwidth.h"

#include <glib.h>

void bandwidth_init(struct bandwidth *bandwidth, unsigned slice_lg2, unsigned count_lg2,
		    uint64_t origin_ps)
{
	*bandwidth = (struct bandwidth){ .slice_lg2 = slice_lg2,
					 .count_lg2 = count_lg2,
					 .origin_ps = origin_ps };
}

void bandwidth_clear(struct bandwidth *bandwidth)
{
	g_clear_pointer(&bandwidth->slice, g_free);
}

void bandwidth_allocate(struct bandwidth *bandwidth)
{
	bandwidth->slice = g_new0(struct bandwidth_slice, (gsize)1 << bandwidth->count_lg2);
}
