/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps of msMemScope. What the driver's calls got (HAL) are segments; what a framework's pool
 * handed out (PTA, MINDSPORE, ATB ...) are blocks. A file with HAL rows alone has each of them as a
 * block, too.
 */
#include "memscope.h"

#include <string.h>

#include "format/number.h"
#include "readers.h"
#include "rows.h"
#include "sites.h"

#define NANOSECONDS_MIN (G_GINT64_CONSTANT(1) << 56) /* stamps below it are microseconds */
#define PROCESS_SHIFT   56
#define PROCESSES_MAX   256

static const char *const columns[MEMSCOPE_COLUMN_COUNT] = {
	[MEMSCOPE_ID] = "ID",
	[MEMSCOPE_EVENT] = "Event",
	[MEMSCOPE_TYPE] = "Event Type",
	[MEMSCOPE_TIME] = "Timestamp(ns)",
	[MEMSCOPE_PROCESS] = "Process Id",
	[MEMSCOPE_DEVICE] = "Device Id",
	[MEMSCOPE_PTR] = "Ptr",
	[MEMSCOPE_ATTR] = "Attr",
	[MEMSCOPE_STACK_PYTHON] = "Call Stack(Python)",
	[MEMSCOPE_STACK_C] = "Call Stack(C)",
};

struct memscope {
	struct event_sorter *sorter;
	gboolean pools;    /* rows of a pool were seen */
	GArray *processes; /* guint64: their ids, as they come */
};

const char *memscope_column_name(enum memscope_column column)
{
	return columns[column];
}

struct memscope *memscope_new(void)
{
	struct memscope *s = g_new0(struct memscope, 1);

	s->sorter = event_sorter_new();
	s->processes = g_array_new(FALSE, FALSE, sizeof(guint64));
	return s;
}

void memscope_free(struct memscope *s)
{
	if (s == NULL)
		return;
	event_sorter_free(s->sorter);
	g_array_unref(s->processes);
	g_free(s);
}

/* A part of a row's text. */
struct part {
	const char *at;
	gsize length;
};

/* The value of a key in {addr:1,size:2} or {"addr":"0x1","size":"2"}; FALSE: it has none. */
static gboolean attribute(const char *attr, const char *key, struct part *out)
{
	gsize length = strlen(key);

	for (const char *at = strstr(attr, key); at; at = strstr(at + 1, key)) {
		const char *end = at + length;
		if (at == attr || strchr("{,\" ", at[-1]) == NULL)
			continue;
		while (*end == '"' || *end == ' ')
			end++;
		if (*end != ':')
			continue;
		end += 1 + strspn(end + 1, "\" ");
		*out = (struct part){ end, strcspn(end, "\",} ") };
		return TRUE;
	}
	return FALSE;
}

static gboolean number(const char *name, struct part text, guint64 line, guint64 *out,
		       GError **error)
{
	if (number_parse(text.at, text.length, out) && *out < READERS_ADDRESS_END)
		return TRUE;
	return readers_bad(line, error, "%s is \"%.*s\", no number below 2^56", name,
			   (int)MIN(text.length, 40), text.at);
}

/* Each process has addresses of its own: those of all but the first get its number. */
static gboolean find_process(struct memscope *s, const char *text, guint64 line, guint64 *out,
			     GError **error)
{
	guint64 id = 0;
	guint i = 0;

	rows_unsigned(text, &id);
	while (i < s->processes->len && g_array_index(s->processes, guint64, i) != id)
		i++;
	if (i == PROCESSES_MAX)
		return readers_bad(line, error,
				   "the rows are of more than %d processes: split the file",
				   PROCESSES_MAX);
	if (i == s->processes->len)
		g_array_append_val(s->processes, id);
	*out = (guint64)i << PROCESS_SHIFT;
	return TRUE;
}

static gboolean is_device(const char *text, guint32 *out)
{
	guint64 id;

	if (!rows_unsigned(text, &id) || id > TRACE_DEVICE_LAST)
		return FALSE;
	*out = (guint32)id;
	return TRUE;
}

/* Counted and left out: what is of no device, and what is no memory. */
static gboolean leave_out(struct memscope *s, struct event_row *row, const char *const *fields,
			  GError **error)
{
	gboolean on_device = is_device(fields[MEMSCOPE_DEVICE], &row->device);
	const char *event = fields[MEMSCOPE_EVENT], *type = fields[MEMSCOPE_TYPE];
	g_autofree char *name =
		strcmp(event, type) == 0
			? g_strdup(event)
			: g_strdup_printf("%s %s%s", event, type,
					  !on_device && strcmp(event, "SYSTEM") != 0 ? " (host)"
										     : "");

	row->action = TRACE_OTHER;
	row->other = event_sorter_name(s->sorter, name);
	return event_sorter_add(s->sorter, row, error);
}

/* Python's stack, if there is one, else that of C. */
static guint32 find_site(struct memscope *s, const char *const *fields)
{
	const char *python = fields[MEMSCOPE_STACK_PYTHON], *c = fields[MEMSCOPE_STACK_C];
	const char *stack = *python && strcmp(python, "N/A") != 0 ? python : c;

	return *stack && strcmp(stack, "N/A") != 0
		       ? sites_add_lines(event_sorter_sites(s->sorter), stack)
		       : SITE_NONE;
}

static gboolean read_memory(struct memscope *s, struct event_row *row, const char *const *fields,
			    guint64 line, GError **error)
{
	const char *attr = fields[MEMSCOPE_ATTR], *ptr = fields[MEMSCOPE_PTR];
	gboolean gets = strcmp(fields[MEMSCOPE_EVENT], "MALLOC") == 0;
	gboolean driver = strcmp(fields[MEMSCOPE_TYPE], "HAL") == 0;
	struct part size, where = { ptr, strlen(ptr) }, address;
	guint64 process = 0;

	if ((*ptr == '\0' || strcmp(ptr, "N/A") == 0) && attribute(attr, "addr", &address))
		where = address;
	if (!number("Ptr", where, line, &row->address, error) ||
	    !find_process(s, fields[MEMSCOPE_PROCESS], line, &process, error))
		return FALSE;
	row->address |= process;
	gboolean sized = attribute(attr, "size", &size);
	if (!sized && gets)
		return readers_bad(line, error, "a MALLOC whose Attr has no size");
	/* in some versions what goes has a size below zero */
	gboolean minus = sized && !gets && *size.at == '-';
	size = sized ? (struct part){ size.at + minus, size.length - minus } : (struct part){ 0 };
	if (sized && !number("size of Attr", size, line, &row->size, error))
		return FALSE;
	s->pools |= !driver;
	if (gets)
		row->other = find_site(s, fields);
	row->action = driver ? gets ? TRACE_SEGMENT_ALLOC : TRACE_SEGMENT_FREE
		      : gets ? TRACE_ALLOC
			     : TRACE_FREE_COMPLETED;
	return event_sorter_add(s->sorter, row, error);
}

gboolean memscope_row(struct memscope *s, const char *const *fields, guint64 line, GError **error)
{
	struct event_row row = { .serial = line };
	const char *event = fields[MEMSCOPE_EVENT];
	guint64 id;

	if (!rows_signed(fields[MEMSCOPE_TIME], &row.order))
		return readers_bad(line, error, "Timestamp(ns) is \"%.40s\", no number",
				   fields[MEMSCOPE_TIME]);
	row.time_us = row.order < NANOSECONDS_MIN ? row.order : row.order / 1000;
	if (rows_unsigned(fields[MEMSCOPE_ID], &id))
		row.serial = id;
	gboolean gets = strcmp(event, "MALLOC") == 0, gives = strcmp(event, "FREE") == 0;
	gboolean driver = strcmp(fields[MEMSCOPE_TYPE], "HAL") == 0;
	if ((gets || gives) && is_device(fields[MEMSCOPE_DEVICE], &row.device))
		return read_memory(s, &row, fields, line, error);
	if (!gives || !driver || strcmp(fields[MEMSCOPE_DEVICE], "N/A") != 0)
		return leave_out(s, &row, fields, error);
	/* the driver's FREE may say no device; that of memory of the host is left out */
	row.device = EVENT_SORTER_ANY_DEVICE;
	row.other = event_sorter_name(s->sorter, "FREE HAL (host)");
	return read_memory(s, &row, fields, line, error);
}

struct trace *memscope_finish(struct memscope *s, const char *kind, GError **error)
{
	struct trace *trace =
		event_sorter_finish(g_steal_pointer(&s->sorter), kind, !s->pools, error);

	for (guint i = 0; trace && i < trace->devices->len; i++) {
		struct trace_device *device = g_ptr_array_index(trace->devices, i);
		device->of_process = TRUE;
	}
	memscope_free(s);
	return trace;
}

/* ---- CSV ---- */

gboolean memscope_recognise(const guint8 *bytes, gsize count)
{
	return readers_begin_with(bytes, count, "ID,Event,Event Type,");
}

static gboolean find_columns(const struct rows *rows, guint *at, GError **error)
{
	for (int c = 0; c < MEMSCOPE_COLUMN_COUNT; c++) {
		at[c] = 0;
		while (at[c] < rows_count(rows) && strcmp(rows_field(rows, at[c]), columns[c]) != 0)
			at[c]++;
		if (c <= MEMSCOPE_ATTR && at[c] == rows_count(rows))
			return readers_bad(rows_line(rows), error,
					   "the header has no column \"%s\"", columns[c]);
	}
	return TRUE;
}

static gboolean read_rows(struct memscope *s, struct rows *rows, GError **error)
{
	guint at[MEMSCOPE_COLUMN_COUNT];
	const char *fields[MEMSCOPE_COLUMN_COUNT];
	int more = rows_next(rows, error);

	if (more < 0 || !find_columns(rows, at, error))
		return FALSE;
	while ((more = rows_next(rows, error)) > 0) {
		if (rows_count(rows) <= at[MEMSCOPE_ATTR])
			return readers_bad(rows_line(rows), error,
					   "%u fields, and Attr is the %uth: the row breaks off",
					   rows_count(rows), at[MEMSCOPE_ATTR] + 1);
		for (int c = 0; c < MEMSCOPE_COLUMN_COUNT; c++)
			fields[c] = rows_field(rows, at[c]);
		if (!memscope_row(s, fields, rows_line(rows), error))
			return FALSE;
	}
	return more == 0;
}

struct trace *memscope_read(struct input *input, GError **error)
{
	struct memscope *s = memscope_new();
	struct rows *rows = rows_open(input, ',');
	gboolean ok = read_rows(s, rows, error);

	rows_close(rows);
	input_close(input);
	if (ok)
		return memscope_finish(s, "msMemScope dump (CSV)", error);
	memscope_free(s);
	return NULL;
}
