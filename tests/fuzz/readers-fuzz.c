/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of other programs' files, READER one of them: any bytes give a history or an error,
 * figures of the history agree with each other, and it is the same history where its rows do not
 * fit into memory.
 */
#include <string.h>

#include "read/event-sorter.h"
#include "fuzz.h"
#include "../traces/usage-of-trace.h"
#include "read/readers.h"

#define FEW_BYTES 512 /* a few rows */

static void look(struct trace *trace)
{
	g_autofree struct memory *usages =
		g_new0(struct memory, trace->devices->len + 1);
	struct record_item item;
	guint64 events = 0;

	for (guint i = 0; i < trace->devices->len; i++)
		usage_begin(&usages[i], trace, i);
	g_assert(trace->source->rewind(trace, NULL));
	for (; trace->source->next(trace, &item, NULL) > 0; events++)
		memory_step(&usages[item.device], &item);
	g_assert(events == trace->events);
	for (guint i = 0; i < trace->devices->len; i++) {
		struct memory *a = &usages[i];
		g_assert(a->unmatched == 0 && a->peak_physical >= a->physical &&
			 a->peak_live >= a->live);
		memory_clear(a);
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
	struct record_item x, y;
	int more = b->source->next(b, &y, NULL);

	/* in memory it goes device after device: of one device all is comparable */
	g_assert(a->source->next(a, &x, NULL) == more);
	if (more > 0 && a->devices->len == 1)
		g_assert(x.device == y.device && x.record.verb == y.record.verb &&
			 x.address == y.address && x.size == y.size &&
			 x.record.stream == y.record.stream && x.time_us == y.time_us);
}

static void compare(struct trace *a, struct trace *b)
{
	g_assert(a->events == b->events && a->devices->len == b->devices->len &&
		 a->starts->len == b->starts->len);
	g_assert(a->starts->len == 0 || memcmp(a->starts->data, b->starts->data,
					       a->starts->len * sizeof(struct trace_row)) == 0);
	for (guint i = 0; i < a->devices->len; i++) {
		const struct trace_device *x = g_ptr_array_index(a->devices, i);
		const struct trace_device *y = g_ptr_array_index(b->devices, i);
		g_assert(x->device == y->device &&
			 memcmp(x->counts, y->counts, sizeof x->counts) == 0);
	}
	g_assert(a->source->rewind(a, NULL) && b->source->rewind(b, NULL));
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
