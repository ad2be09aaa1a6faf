/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: any bytes give a history or an error, and figures of the history agree with each
 * other.
 */
#include "fuzz.h"
#include "../traces/usage-of-events.h"

static void look(const struct trace_device *device)
{
	struct memory_usage a;
	usage_begin(&a, device);
	for (guint i = 0; i < device->events->len; i++)
		usage_event(&a, &g_array_index(device->events, struct trace_event, i));
	g_assert(a.peak_physical >= a.start_physical && a.peak_live >= a.start_live);
	g_assert(a.peak_physical >= a.physical && a.peak_live >= a.live);
	g_assert(a.peak_physical <= G_MAXINT64 && a.live_at_peak_physical <= a.peak_live);
	memory_usage_clear(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct trace *trace = snapshot_read(bytes, count, &error);
	g_assert((trace == NULL) == (error != NULL));
	for (guint i = 0; trace && i < trace->devices->len; i++)
		look(g_ptr_array_index(trace->devices, i));
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
