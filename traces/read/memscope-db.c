/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps of msMemScope that are SQLite databases: the table memscope_dump, read from memory; the
 * file is not touched.
 */
#include <sqlite3.h>
#include <string.h>

#include "memscope.h"
#include "readers.h"

gboolean memscope_db_recognise(const guint8 *bytes, gsize count)
{
	return readers_begin_with(bytes, count, "SQLite format 3");
}

static gboolean bad(sqlite3 *db, const char *what, GError **error)
{
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "not a usable database: %s: %s", what,
		    db ? sqlite3_errmsg(db) : "no memory");
	return FALSE;
}

static char *query(void)
{
	GString *text = g_string_new("SELECT ");

	for (int c = 0; c < MEMSCOPE_COLUMN_COUNT; c++)
		g_string_append_printf(text, "%s\"memscope_dump\".\"%s\"", c ? ", " : "",
				       memscope_column_name(c));
	g_string_append(text, " FROM \"memscope_dump\"");
	return g_string_free(text, FALSE);
}

static gboolean read_rows(struct memscope *scope, sqlite3 *db, sqlite3_stmt *rows, GError **error)
{
	const char *fields[MEMSCOPE_COLUMN_COUNT];
	guint64 row = 0;
	int more;

	while ((more = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int c = 0; c < MEMSCOPE_COLUMN_COUNT; c++) {
			const char *text = (const char *)sqlite3_column_text(rows, c);
			fields[c] = text ? text : "";
		}
		if (!memscope_row(scope, fields, ++row, error)) {
			g_prefix_error(error, "table memscope_dump, row by ");
			return FALSE;
		}
	}
	return more == SQLITE_DONE || bad(db, "memscope_dump", error);
}

/* The database has a copy of the bytes, which is its own. */
static gboolean open_bytes(GBytes *bytes, sqlite3 **db, GError **error)
{
	gsize count;
	const guint8 *data = g_bytes_get_data(bytes, &count);
	unsigned char *copy = NULL;

	if (sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) !=
		    SQLITE_OK ||
	    (copy = sqlite3_malloc64(count)) == NULL)
		return bad(*db, "opening it", error);
	memcpy(copy, data, count);
	if (sqlite3_deserialize(*db, "main", copy, (sqlite3_int64)count, (sqlite3_int64)count,
				SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
	    SQLITE_OK)
		return bad(*db, "opening it", error);
	return TRUE;
}

static gboolean read_database(struct memscope *scope, GBytes *bytes, GError **error)
{
	g_autofree char *text = query();
	sqlite3_stmt *rows = NULL;
	sqlite3 *db = NULL;
	gboolean ok = open_bytes(bytes, &db, error);

	if (ok && sqlite3_prepare_v2(db, text, -1, &rows, NULL) != SQLITE_OK)
		ok = bad(db, "the table memscope_dump", error);
	if (ok)
		ok = read_rows(scope, db, rows, error);
	sqlite3_finalize(rows);
	sqlite3_close(db);
	return ok;
}

struct trace *memscope_db_read(struct input *input, GError **error)
{
	g_autoptr(GBytes) bytes = input_whole(input, error);
	struct memscope *scope = memscope_new();
	gboolean ok = bytes && read_database(scope, bytes, error);

	input_close(input);
	if (ok)
		return memscope_finish(scope, "msMemScope dump (SQLite)", error);
	memscope_free(scope);
	return NULL;
}
