/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps of msMemScope. What the driver's calls got (HAL) are segments; what a framework's pool
 * handed out (PTA, MINDSPORE, ATB ...) are blocks. A file with HAL rows alone has each of them as a
 * block, too.
 */
#include "memscope.h"

#include <string.h>

#include "readers.h"
#include "rows.h"

#define UNKNOWN         G_MAXUINT32
#define NANOSECONDS_MIN (G_GINT64_CONSTANT(1) << 56) /* stamps below it are microseconds */

static const char *const columns[MEMSCOPE_COLUMN_COUNT] = {
	[MEMSCOPE_ID] = "ID",
	[MEMSCOPE_EVENT] = "Event",
	[MEMSCOPE_TYPE] = "Event Type",
	[MEMSCOPE_TIME] = "Timestamp(ns)",
	[MEMSCOPE_DEVICE] = "Device Id",
	[MEMSCOPE_PTR] = "Ptr",
	[MEMSCOPE_ATTR] = "Attr",
};

struct memscope {
	struct history *history;
	gboolean pools;      /* rows of a pool were seen */
	GArray *driver;      /* struct history_row: HAL rows; device UNKNOWN: as its MALLOC */
	GHashTable *devices; /* address of a HAL MALLOC -> device + 1 */
};

const char *memscope_column_name(enum memscope_column column)
{
	return columns[column];
}

struct memscope *memscope_new(void)
{
	struct memscope *s = g_new0(struct memscope, 1);

	s->history = history_new();
	s->driver = g_array_new(FALSE, FALSE, sizeof(struct history_row));
	s->devices = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	return s;
}

void memscope_free(struct memscope *s)
{
	if (s == NULL)
		return;
	history_free(s->history);
	g_array_unref(s->driver);
	g_hash_table_unref(s->devices);
	g_free(s);
}

/* The value of a key in {addr:1,size:2} or {"addr":"0x1","size":"2"}; NULL: it has none. */
static char *attribute(const char *attr, const char *key)
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
		return g_strndup(end, strcspn(end, "\",} "));
	}
	return NULL;
}

static gboolean number(const char *name, const char *text, guint64 line, guint64 *out,
		       GError **error)
{
	if (rows_unsigned(text, out) && *out <= READERS_ADDRESS_END)
		return TRUE;
	return readers_bad(line, error, "%s is \"%.40s\", no number below 2^56", name, text);
}

static gboolean is_device(const char *text, guint32 *out)
{
	guint64 id;

	if (!g_ascii_string_to_unsigned(text, 10, 0, TRACE_DEVICE_LAST, &id, NULL))
		return FALSE;
	*out = (guint32)id;
	return TRUE;
}

/* Counted and left out: what is of no device, and what is no memory. */
static void leave_out(struct memscope *s, struct history_row *row, const char *const *fields)
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
	row->other = history_name(s->history, name);
	history_add(s->history, row);
}

static gboolean read_memory(struct memscope *s, struct history_row *row, const char *const *fields,
			    guint64 line, GError **error)
{
	const char *attr = fields[MEMSCOPE_ATTR], *ptr = fields[MEMSCOPE_PTR];
	gboolean gets = strcmp(fields[MEMSCOPE_EVENT], "MALLOC") == 0;
	gboolean driver = strcmp(fields[MEMSCOPE_TYPE], "HAL") == 0;
	g_autofree char *size = attribute(attr, "size"), *address = attribute(attr, "addr");
	const char *where = *ptr && strcmp(ptr, "N/A") != 0 ? ptr : address ? address : ptr;

	if (!number("Ptr", where, line, &row->address, error))
		return FALSE;
	if (size == NULL && gets)
		return readers_bad(line, error, "a MALLOC whose Attr has no size");
	/* in some versions what goes has a size below zero */
	if (size &&
	    !number("size of Attr", size + (!gets && *size == '-'), line, &row->size, error))
		return FALSE;
	if (!driver) {
		s->pools = TRUE;
		row->action = gets ? TRACE_ALLOC : TRACE_FREE_COMPLETED;
		history_add(s->history, row);
		return TRUE;
	}
	row->action = gets ? TRACE_SEGMENT_ALLOC : TRACE_SEGMENT_FREE;
	if (gets)
		g_hash_table_insert(s->devices, g_memdup2(&row->address, sizeof row->address),
				    GUINT_TO_POINTER(row->device + 1));
	g_array_append_vals(s->driver, row, 1);
	return TRUE;
}

gboolean memscope_row(struct memscope *s, const char *const *fields, guint64 line, GError **error)
{
	struct history_row row = { .serial = line };
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
	if (!gives || !driver || strcmp(fields[MEMSCOPE_DEVICE], "N/A") != 0) {
		leave_out(s, &row, fields);
		return TRUE;
	}
	row.device = UNKNOWN;
	return read_memory(s, &row, fields, line, error);
}

/* The driver's FREE may say no device: its MALLOC did. */
static void find_device(struct memscope *s, struct history_row *row)
{
	guint found = GPOINTER_TO_UINT(g_hash_table_lookup(s->devices, &row->address));

	if (row->device != UNKNOWN)
		return;
	row->device = found ? found - 1 : 0;
	if (found)
		return;
	row->action = TRACE_OTHER;
	row->other = history_name(s->history, "FREE HAL (host)");
}

static void add_driver(struct memscope *s, struct history_row *row)
{
	find_device(s, row);
	struct history_row block = *row;

	history_add(s->history, row);
	if (s->pools || row->action == TRACE_OTHER)
		return;
	block.rank = row->action == TRACE_SEGMENT_ALLOC;
	block.action = block.rank ? TRACE_ALLOC : TRACE_FREE_COMPLETED;
	history_add(s->history, &block);
}

struct trace *memscope_finish(struct memscope *s, const char *kind)
{
	for (guint i = 0; i < s->driver->len; i++)
		add_driver(s, &g_array_index(s->driver, struct history_row, i));
	struct trace *trace = history_finish(g_steal_pointer(&s->history), kind);
	for (guint i = 0; i < trace->devices->len; i++) {
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
		if (at[c] == rows_count(rows))
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
		return memscope_finish(s, "msMemScope dump (CSV)");
	memscope_free(s);
	return NULL;
}

/* ---- what readers share ---- */

gboolean readers_begin_with(const guint8 *bytes, gsize count, const char *text)
{
	gsize length = strlen(text);

	return count >= length && memcmp(bytes, text, length) == 0;
}

gboolean readers_bad(guint64 line, GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %" G_GUINT64_FORMAT ": %s", line,
		    valid);
	return FALSE;
}
