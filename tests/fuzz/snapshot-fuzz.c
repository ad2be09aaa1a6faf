/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: any bytes give a history or an error, and figures of the history agree with each
 * other.
 */
#include "fuzz.h"
#include "read/readers.h"
#include "track/memory-usage.h"

static void look(struct trace *trace, guint device)
{
	struct memory_usage a;
	struct trace_event event;
	guint on;

	memory_usage_init(&a, g_ptr_array_index(trace->devices, device));
	g_assert(trace_rewind(trace, NULL));
	while (trace_next(trace, &on, &event, NULL) > 0) {
		if (on == device)
			memory_usage_step(&a, &event);
	}
	g_assert(a.peak_physical >= a.start_physical && a.peak_live >= a.start_live);
	g_assert(a.peak_physical >= a.physical && a.peak_live >= a.live);
	g_assert(a.peak_physical <= G_MAXINT64 && a.live_at_peak_physical <= a.peak_live);
	memory_usage_clear(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct input *input = input_open_bytes(bytes, count, "input", &error);
	struct trace *trace = input ? snapshot_read(input, &error) : NULL;
	g_assert((trace == NULL) == (error != NULL));
	g_assert(trace == NULL || trace_adapt(trace, NULL));
	for (guint i = 0; trace && i < trace->devices->len; i++)
		look(trace, i);
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
