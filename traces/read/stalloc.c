/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads STAlloc's logs: one line for each block that a program allocated (1) or freed (0), with
 * address, size and stream, in order; and marks of iterations and layers, which are counted.
 */
#include <stdio.h>
#include <string.h>

#include "event-sorter.h"
#include "readers.h"
#include "rows.h"

gboolean stalloc_recognise(const guint8 *bytes, gsize count)
{
	if (readers_begin_with(bytes, count, "Iteration Index"))
		return TRUE;
	if (count < 4 || (bytes[0] != '0' && bytes[0] != '1') || bytes[1] != ' ')
		return FALSE;
	for (gsize i = 2; i < count && bytes[i] != '\n'; i++) {
		if (!g_ascii_isxdigit(bytes[i]) && strchr("xX -\r", bytes[i]) == NULL)
			return FALSE;
	}
	return TRUE;
}

static gboolean read_block(struct event_sorter *sorter, const struct rows *rows, guint16 device,
			   GError **error)
{
	const char *what = rows_field(rows, 0), *stream = rows_field(rows, 3);
	const char *address = rows_field(rows, 1), *size = rows_field(rows, 2);
	struct event_row row = { .order = (gint64)rows_line(rows), .row.device = device };

	if (rows_count(rows) < 3)
		return readers_bad(rows_line(rows), error,
				   "%u fields: 1 or 0, an address, a size and a stream are wanted",
				   rows_count(rows));
	if (!readers_number(rows_line(rows), "the address", address, strlen(address),
			    &row.row.address, error) ||
	    !readers_number(rows_line(rows), "the size", size, strlen(size), &row.row.size, error))
		return FALSE;
	guint64 pointer = 0;
	if (*stream && !rows_signed(stream, &row.row.stream) && !rows_unsigned(stream, &pointer))
		return readers_bad(rows_line(rows), error, "the stream is \"%.40s\"", stream);
	row.row.stream += (gint64)pointer;
	row.row.verb = what[0] == '1' ? NPU_TRACE_ALLOC : NPU_TRACE_FREE;
	return event_sorter_add(sorter, &row, error);
}

static gboolean read_rows(struct event_sorter *sorter, struct rows *rows, guint16 device,
			  GError **error)
{
	int more;

	while ((more = rows_next(rows, error)) > 0) {
		const char *first = rows_field(rows, 0);
		struct event_row row = { .order = (gint64)rows_line(rows),
					 .row.device = device,
					 .row.verb = NPU_TRACE_NOTE };
		if (strcmp(first, "1") == 0 || strcmp(first, "0") == 0) {
			if (!read_block(sorter, rows, device, error))
				return FALSE;
		} else if (strcmp(first, "Iteration") == 0 ||
			   strcmp(rows_field(rows, 1), "Layer") == 0) {
			row.row.text = event_sorter_note(sorter, strcmp(first, "Iteration") == 0
									 ? "mark of an iteration"
									 : "mark of a layer");
			if (!event_sorter_add(sorter, &row, error))
				return FALSE;
		} else {
			return readers_bad(rows_line(rows), error,
					   "\"%.40s\": 1, 0 or a mark of an iteration or a layer "
					   "is wanted",
					   first);
		}
	}
	return more == 0;
}

struct trace *stalloc_read(struct input *input, GError **error)
{
	struct event_sorter *sorter = event_sorter_new("STAlloc log");
	struct rows *rows = rows_open(input, ' ');
	g_autofree char *name = g_path_get_basename(input_name(input));
	const char *at = strstr(name, "dev");
	guint device = 0;

	/* mem_log_dev3.txt is of device 3 */
	if (at == NULL || sscanf(at, "dev%4u", &device) != 1 || device > TRACE_DEVICE_LAST)
		device = 0;
	gboolean ok = read_rows(sorter, rows, (guint16)device, error);

	rows_close(rows);
	input_close(input);
	return event_sorter_finish(sorter, ok, FALSE, error);
}
