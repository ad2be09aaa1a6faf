/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: any bytes give a history or an error, and figures of the history agree with each
 * other.
 */
#include "fuzz.h"
#include "../traces/usage-of-trace.h"
#include "read/readers.h"

static void look(struct trace *trace, guint device)
{
	struct memory a;

	usage_begin(&a, trace, device);
	usage_run(&a, trace, device);
	g_assert(LEVEL_OF(a, PHYSICAL).peak.bytes >= LEVEL_OF(a, PHYSICAL).start &&
		 LEVEL_OF(a, LIVE).peak.bytes >= LEVEL_OF(a, LIVE).start);
	g_assert(LEVEL_OF(a, PHYSICAL).peak.bytes >= LEVEL_OF(a, PHYSICAL).now &&
		 LEVEL_OF(a, LIVE).peak.bytes >= LEVEL_OF(a, LIVE).now);
	g_assert(LEVEL_OF(a, PHYSICAL).peak.bytes <= G_MAXINT64 &&
		 a.levels.live_at_peak <= LEVEL_OF(a, LIVE).peak.bytes);
	memory_clear(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct input *input = input_open_bytes(bytes, count, "input", &error);
	struct trace *trace = input ? readers_read(snapshot_read, "fuzz", input, &error) : NULL;
	g_assert((trace == NULL) == (error != NULL));
	for (guint i = 0; trace && i < trace->devices->len; i++)
		look(trace, i);
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
