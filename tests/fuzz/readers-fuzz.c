/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of other programs' files, READER one of them: any bytes give a history or an error,
 * and figures of the history agree with each other.
 */
#include "account.h"
#include "fuzz.h"
#include "readers.h"

static void look(const struct trace_device *device)
{
	struct account a;

	account_init(&a, device);
	for (guint i = 0; i < device->events->len; i++)
		account_step(&a, &g_array_index(device->events, struct trace_event, i));
	g_assert(a.unmatched == 0 && a.peak_physical >= a.physical && a.peak_live >= a.live);
	account_clear(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct input *input = input_open_bytes(bytes, count, "input", &error);
	struct trace *trace = input ? READER(input, &error) : NULL;

	g_assert((trace == NULL) == (error != NULL));
	for (guint i = 0; trace && i < trace->devices->len; i++)
		look(g_ptr_array_index(trace->devices, i));
	g_clear_error(&error);
	trace_free(trace);
	return 0;
}
