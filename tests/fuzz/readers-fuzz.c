/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of other programs' files, READER one of them: any bytes give a history or an error,
 * figures of the history agree with each other, and it is the same history where its rows do not
 * fit into memory.
 */
#include <string.h>

#include "fuzz.h"
#include "../traces/usage-of-trace.h"
#include "read/readers.h"

#define FEW_BYTES 512 /* a few rows */

static void look(struct trace *trace)
{
	g_autofree struct memory *usages = g_new0(struct memory, trace->devices->len + 1);
	struct record_item item;
	guint64 events = 0;

	for (guint i = 0; i < trace->devices->len; i++)
		usage_begin(&usages[i], trace, i);
	g_assert(trace_rewind(trace, NULL));
	while (trace_next(trace, &item, NULL) > 0) {
		if (item.number == 0)
			continue;
		memory_step(&usages[item.device], &item);
		events++;
	}
	g_assert(events == trace->events);
	for (guint i = 0; i < trace->devices->len; i++) {
		struct memory *a = &usages[i];
		g_assert(a->unmatched == 0 &&
			 LEVEL_OF(*a, PHYSICAL).peak.bytes >= LEVEL_OF(*a, PHYSICAL).now &&
			 LEVEL_OF(*a, LIVE).peak.bytes >= LEVEL_OF(*a, LIVE).now);
		memory_clear(a);
	}
}

static struct trace *read_bytes(const uint8_t *bytes, size_t count, gsize memory, GError **error)
{
	struct input *input = input_open_bytes(bytes, count, "input", error);

	row_list_set_memory(memory);
	return input ? readers_read(READER, "fuzz", input, error) : NULL;
}

/* The next record of both; FALSE at the end. */
static gboolean same_event(struct trace *a, struct trace *b)
{
	struct record_item x, y;
	int more = trace_next(b, &y, NULL);

	g_assert(trace_next(a, &x, NULL) == more);
	if (more > 0)
		g_assert(x.device == y.device && x.record.verb == y.record.verb &&
			 x.record.has == y.record.has && x.address == y.address &&
			 x.size == y.size && x.record.stream == y.record.stream &&
			 x.time_us == y.time_us);
	return more > 0;
}

static void compare(struct trace *a, struct trace *b)
{
	g_assert(a->events == b->events && a->devices->len == b->devices->len);
	for (guint i = 0; i < a->devices->len; i++) {
		const struct trace_device *x = g_ptr_array_index(a->devices, i);
		const struct trace_device *y = g_ptr_array_index(b->devices, i);
		g_assert(x->device == y->device &&
			 memcmp(x->counts, y->counts, sizeof x->counts) == 0);
	}
	g_assert(trace_rewind(a, NULL) && trace_rewind(b, NULL));
	while (same_event(a, b))
		continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GError) again = NULL;
	struct trace *trace = read_bytes(bytes, count, ROW_LIST_MEMORY_BYTES, &error);
	struct trace *spilled = read_bytes(bytes, count, FEW_BYTES, &again);

	g_assert((trace == NULL) == (error != NULL));
	g_assert((trace == NULL) == (spilled == NULL));
	if (trace) {
		look(trace);
		look(spilled);
		compare(trace, spilled);
	}
	trace_free(trace);
	trace_free(spilled);
	return 0;
}
