/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of other programs' files, READER one of them: any bytes give a history or an error,
 * figures of the history agree with each other, and it is the same history where its rows do not
 * fit into memory.
 */
#include <string.h>

#include "read/event-sorter.h"
#include "fuzz.h"
#include "../traces/usage-of-events.h"
#include "read/readers.h"

#define FEW_BYTES 512 /* a few rows */

static void look(struct trace *trace)
{
	g_autofree struct memory_usage *usages =
		g_new0(struct memory_usage, trace->devices->len + 1);
	struct trace_event event;
	guint64 events = 0;
	guint device;

	for (guint i = 0; i < trace->devices->len; i++)
		usage_begin(&usages[i], g_ptr_array_index(trace->devices, i));
	g_assert(trace_rewind(trace, NULL));
	for (; trace_next(trace, &device, &event, NULL) > 0; events++)
		usage_event(&usages[device], &event);
	g_assert(events == trace->events);
	for (guint i = 0; i < trace->devices->len; i++) {
		struct memory_usage *a = &usages[i];
		g_assert(a->unmatched == 0 && a->peak_physical >= a->physical &&
			 a->peak_live >= a->live);
		memory_usage_clear(a);
	}
}

static struct trace *read_bytes(const uint8_t *bytes, size_t count, gsize memory, GError **error)
{
	struct input *input = input_open_bytes(bytes, count, "input", error);

	event_sorter_set_memory(memory);
	return input ? READER(input, error) : NULL;
}

static void same_event(struct trace *a, struct trace *b)
{
	struct trace_event x = { 0 }, y = { 0 };
	guint in_a = 0, in_b = 0;
	int more = trace_next(b, &in_b, &y, NULL);

	/* in memory it goes device after device: of one device all is comparable */
	g_assert(trace_next(a, &in_a, &x, NULL) == more);
	if (more > 0 && a->devices->len == 1)
		g_assert(in_a == in_b && x.action == y.action && x.address == y.address &&
			 x.size == y.size && x.stream == y.stream && x.time_us == y.time_us);
}

static void compare(struct trace *a, struct trace *b)
{
	g_assert(a->events == b->events && a->devices->len == b->devices->len);
	for (guint i = 0; i < a->devices->len; i++) {
		const struct trace_device *x = g_ptr_array_index(a->devices, i);
		const struct trace_device *y = g_ptr_array_index(b->devices, i);
		g_assert(x->device == y->device && x->blocks->len == y->blocks->len &&
			 x->ranges->len == y->ranges->len &&
			 memcmp(x->counts, y->counts, sizeof x->counts) == 0);
	}
	g_assert(trace_rewind(a, NULL) && trace_rewind(b, NULL));
	for (guint64 i = 0; i <= a->events; i++)
		same_event(a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GError) again = NULL;
	struct trace *trace = read_bytes(bytes, count, EVENT_SORTER_MEMORY_BYTES, &error);
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
