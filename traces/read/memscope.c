/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads dumps of msMemScope, as CSV and as SQLite databases. What the driver's calls allocated
 * (HAL) are segments; what a framework's pool handed out (PTA, MINDSPORE, ATB ...) are blocks. In
 * a file with only HAL rows, each of them is also a block.
 */
#include <sqlite3.h>

#include "readers.h"

#define NANOSECONDS_MIN (G_GINT64_CONSTANT(1) << 56) /* stamps below it are microseconds */
#define PROCESS_SHIFT   56
#define PROCESSES_MAX   256
#define VALUE_MAX       (16 << 20) /* bytes of one value of a database */
#define STEPS_AT_ONCE   100000
#define ROW_BYTES       256

enum { ID, EVENT, TYPE, TIME, PROCESS, DEVICE, PTR, ATTR, STACK_PYTHON, STACK_C, COLUMN_COUNT };
static const struct row_column columns[COLUMN_COUNT] = {
	[ID] = { "ID" },
	[EVENT] = { "Event" },
	[TYPE] = { "Event Type" },
	[TIME] = { "Timestamp(ns)" },
	[PROCESS] = { "Process Id" },
	[DEVICE] = { "Device Id" },
	[PTR] = { "Ptr" },
	[ATTR] = { "Attr" },
	[STACK_PYTHON] = { "Call Stack(Python)", .optional = TRUE },
	[STACK_C] = { "Call Stack(C)", .optional = TRUE },
};

struct memscope {
	struct trace *trace;
	gboolean pools; /* rows of a pool were seen */
	struct texts processes;
	struct rows table; /* of a database */
};

/* The value of a key in {addr:1,size:2} or {"addr":"0x1","size":"2"}; NULL: it has none. */
static char *attribute(const char *attr, const char *key)
{
	for (const char *at = strstr(attr, key); at; at = strstr(at + 1, key)) {
		const char *end = at + strlen(key);
		if (at == attr || strchr("{,\" ", at[-1]) == NULL)
			continue;
		end += strspn(end, "\" ");
		if (*end != ':')
			continue;
		end += 1 + strspn(end + 1, "\" ");
		return g_strndup(end, strcspn(end, "\",} "));
	}
	return NULL;
}

static gboolean is_device(const char *text, guint16 *out)
{
	guint64 id;

	if (!number_parse(text, TRACE_DEVICE_LAST, &id))
		return FALSE;
	*out = (guint16)id;
	return TRUE;
}

/* A note by its name: what is of no device, what is no memory, and accesses. */
static gboolean leave_out(struct memscope *s, struct trace_row *row, struct rows *rows)
{
	gboolean on_device = is_device(rows_field(rows, DEVICE), &row->device);
	const char *event = rows_field(rows, EVENT), *type = rows_field(rows, TYPE);
	g_autofree char *name =
		strcmp(event, type) == 0
			? g_strdup(event)
			: g_strdup_printf("%s %s%s", event, type,
					  !on_device && strcmp(event, "SYSTEM") != 0 ? " (host)"
										     : "");

	return event_sorter_add_note(s->trace, row, name, rows->error);
}

static gboolean read_memory(struct memscope *s, struct trace_row *row, struct rows *rows,
			    gboolean gets, gboolean driver)
{
	const char *attr = rows_field(rows, ATTR), *ptr = rows_field(rows, PTR);
	g_autofree char *address =
		*ptr == '\0' || strcmp(ptr, "N/A") == 0 ? attribute(attr, "addr") : NULL;
	g_autofree char *size = attribute(attr, "size");
	gboolean access = strcmp(rows_field(rows, EVENT), "ACCESS") == 0;
	guint64 n;

	/* what does not say where is a note all the same */
	if (access && (!number_parse(address ? address : ptr, READERS_ADDRESS_LAST, &n) ||
		       size == NULL || !number_parse(size, READERS_ADDRESS_LAST, &n)))
		return leave_out(s, row, rows);
	if (!line_number(rows->line, "Ptr", address ? address : ptr, READERS_ADDRESS_LAST,
			 &row->address, rows->error))
		return FALSE;
	/* each process has addresses of its own: those of all but the first get its number */
	guint32 number = texts_add(&s->processes, g_strdup(rows_field(rows, PROCESS)));
	if (number >= PROCESSES_MAX) {
		row->address = 0;
		return access ? leave_out(s, row, rows)
			      : rows_bad(rows,
					 "the rows are of more than %d processes: split the file",
					 PROCESSES_MAX);
	}
	row->address |= (guint64)number << PROCESS_SHIFT;
	if (size == NULL && gets)
		return rows_bad(rows, "a MALLOC whose Attr has no size");
	/* in some versions what goes has a size below zero */
	if (size && !line_number(rows->line, "size of Attr", size + (!gets && *size == '-'),
				 READERS_ADDRESS_LAST, &row->size, rows->error))
		return FALSE;
	if (access)
		return leave_out(s, row, rows);
	s->pools |= !driver;
	/* Python's stack, if there is one, else that of C */
	for (guint c = STACK_PYTHON; gets && c <= STACK_C && row->text == SITE_NONE; c++) {
		const char *stack = rows_field(rows, c);
		if (*stack && strcmp(stack, "N/A") != 0)
			row->text = sites_add(trace_sites(s->trace), stack);
	}
	if (driver)
		row->verb = gets ? NPU_TRACE_SEGMENT_ALLOC : NPU_TRACE_SEGMENT_FREE;
	else
		row->verb = gets ? NPU_TRACE_ALLOC : NPU_TRACE_FREE;
	return row_list_add(&s->trace->unsorted, row, rows->error);
}

/* rows->line: of a database the row's number. */
static gboolean read_row(struct rows *rows, gpointer data)
{
	struct memscope *s = data;
	struct trace_row row = { .serial = rows->line };
	const char *event = rows_field(rows, EVENT), *device = rows_field(rows, DEVICE);
	const char *time = rows_field(rows, TIME);
	gboolean gets = strcmp(event, "MALLOC") == 0, gives = strcmp(event, "FREE") == 0;
	gboolean driver = strcmp(rows_field(rows, TYPE), "HAL") == 0;
	gboolean access = strcmp(event, "ACCESS") == 0;

	if (!number_signed(time, &row.order))
		return rows_bad(rows, "Timestamp(ns) is \"%.40s\", no number", time);
	row.time_us = row.order < NANOSECONDS_MIN ? row.order : row.order / 1000;
	number_parse(rows_field(rows, ID), G_MAXUINT64, &row.serial);
	if ((gets || gives || access) && is_device(device, &row.device))
		return read_memory(s, &row, rows, gets, driver);
	if (!gives || !driver || strcmp(device, "N/A") != 0)
		return leave_out(s, &row, rows);
	/* the driver's FREE may say no device; that of memory of the host is left out */
	row.device = EVENT_SORTER_ANY_DEVICE;
	row.text = trace_note(s->trace, "FREE HAL (host)");
	return read_memory(s, &row, rows, gets, driver);
}

/* ---- SQLite: the table memscope_dump, read from memory; the file is not touched ---- */

static gboolean bad(sqlite3 *db, const char *what, GError **error)
{
	/* what it was refused is more than is left */
	if (sqlite3_errcode(db) == SQLITE_NOMEM &&
	    !memory_limit_ask(G_MAXINT64, error, "the database, %s", what))
		return FALSE;
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "not a usable database: %s: %s", what,
		      db == NULL ? "no memory"
		      : sqlite3_errcode(db) == SQLITE_INTERRUPT
			      ? "it takes more steps than a table in a file of this size: a view "
				"without an end?"
		      : sqlite3_errcode(db) == SQLITE_TOOBIG ? "a value of more than 16 MiB"
							     : sqlite3_errmsg(db));
}

/* For sqlite3_exec(), which stops where the answer is not 0; the error is set then. */
static int on_row(void *data, int count, char **values, char **names)
{
	struct memscope *s = data;
	struct rows *rows = &s->table;

	(void)names;
	if (!memory_limit_ask(ROW_BYTES, rows->error, "table memscope_dump, row " U64, rows->line))
		return 1;
	g_ptr_array_set_size(rows->fields, 0);
	for (int c = 0; c < count; c++)
		g_ptr_array_add(rows->fields, values[c] ? values[c] : (gpointer) "");
	rows->line++;
	if (read_row(rows, s))
		return 0;
	g_prefix_error(rows->error, "table memscope_dump, row by ");
	return 1;
}

/* The work that a file's size is worth; a table takes about a step for each of its bytes. */
static int on_steps(void *left)
{
	return --*(gint64 *)left < 0;
}

/* `left`: how often STEPS_AT_ONCE steps may be made. The bytes are read where they are. */
static gboolean open_bytes(GBytes *bytes, sqlite3 **db, gint64 *left, GError **error)
{
	gsize count;
	const guint8 *data = g_bytes_get_data(bytes, &count);

	sqlite3_hard_heap_limit64((sqlite3_int64)MAX(memory_limit_left(), 1));
	*left = (gint64)(100 + 16 * count / STEPS_AT_ONCE);
	if (sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) !=
	    SQLITE_OK)
		return bad(*db, "opening it", error);
	sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_progress_handler(*db, STEPS_AT_ONCE, on_steps, left);
	if (sqlite3_deserialize(*db, "main", (unsigned char *)data, (sqlite3_int64)count,
				(sqlite3_int64)count, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
		return bad(*db, "opening it", error);
	return TRUE;
}

static gboolean read_database(struct memscope *scope, GBytes *bytes, GError **error)
{
	g_autoptr(GString) text = g_string_new("SELECT ");
	g_autoptr(GPtrArray) fields = g_ptr_array_new();
	guint at[COLUMN_COUNT];
	sqlite3 *db = NULL;
	gint64 left;
	gboolean ok = open_bytes(bytes, &db, &left, error);

	for (guint c = 0; c < COLUMN_COUNT; c++) {
		at[c] = c;
		g_string_append_printf(text, "%s\"memscope_dump\".\"%s\"", c ? ", " : "",
				       columns[c].name);
	}
	g_string_append(text, " FROM \"memscope_dump\"");
	scope->table =
		(struct rows){ .error = error, .columns = columns, .at = at, .fields = fields };
	int code = ok ? sqlite3_exec(db, text->str, on_row, scope, NULL) : SQLITE_ABORT;
	if (code != SQLITE_OK && code != SQLITE_ABORT) {
		gboolean goes = scope->table.line > 0 || code == SQLITE_INTERRUPT ||
				code == SQLITE_TOOBIG || code == SQLITE_NOMEM;
		g_autofree char *where =
			g_strdup_printf("memscope_dump, behind row " U64, scope->table.line);
		bad(db, goes ? where : "the table memscope_dump", error);
	}
	sqlite3_close(db);
	sqlite3_hard_heap_limit64(0);
	return code == SQLITE_OK;
}

/* `bytes`: of a database; NULL: `input` has CSV. */
static gboolean read_rows(struct trace *trace, struct input *input, GBytes *bytes, GError **error)
{
	struct memscope s = { .trace = trace };
	gboolean ok;

	texts_init(&s.processes);
	ok = bytes ? read_database(&s, bytes, error)
		   : rows_read(input, ',', columns, COLUMN_COUNT, read_row, &s, error);
	texts_clear(&s.processes);
	ok = ok && event_sorter_finish(trace, !s.pools, error);
	for (guint i = 0; i < trace->devices->len; i++)
		((struct trace_device *)g_ptr_array_index(trace->devices, i))->of_process = TRUE;
	return ok;
}

gboolean memscope_read(struct trace *trace, struct input *input, GError **error)
{
	return read_rows(trace, input, NULL, error);
}

gboolean memscope_db_read(struct trace *trace, struct input *input, GError **error)
{
	g_autoptr(GBytes) bytes = input_whole(input, error);

	return bytes && read_rows(trace, NULL, bytes, error);
}
