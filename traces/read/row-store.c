/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps rows in SQLite, and words its errors.
 */
#include "row-store.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "format/input.h"
#include "format/memory-limit.h"

struct row_store {
	sqlite3 *db;
	sqlite3_stmt *insert, *sorted;
	guint64 count;
};

static gsize memory_bytes = ROW_STORE_MEMORY_BYTES;

void row_store_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

/* FALSE and error: what SQLite cannot do. */
static gboolean failed(struct row_store *s, GError **error)
{
	if (sqlite3_errcode(s->db) == SQLITE_NOMEM &&
	    !memory_limit_ask(G_MAXINT64, error, "its %" G_GUINT64_FORMAT " rows", s->count))
		return FALSE;
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
		      "%s: a temporary file for rows that do not fit into memory cannot be used: "
		      "%s; TMPDIR names another folder",
		      temp_file_folder(), sqlite3_errmsg(s->db));
}

/* An empty name: a file that nobody else sees, which is there once its pages fill the cache. What
 * fails here makes the first row fail. */
struct row_store *row_store_new(void)
{
	struct row_store *s = g_new0(struct row_store, 1);
	g_autofree char *set_up =
		g_strdup_printf("PRAGMA journal_mode = OFF;"
				"PRAGMA page_size = 16384;"
				"PRAGMA cache_size = -%" G_GSIZE_FORMAT ";"
				"CREATE TABLE rows(time, rank, serial, number, row, "
				"PRIMARY KEY(time, rank, serial, number)) WITHOUT ROWID;"
				"BEGIN",
				memory_bytes / 1024 + 1);

	if (sqlite3_open_v2("", &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) == SQLITE_OK)
		sqlite3_exec(s->db, set_up, NULL, NULL, NULL);
	sqlite3_prepare_v2(s->db, "INSERT INTO rows VALUES(?, ?, ?, ?, ?)", -1, &s->insert, NULL);
	sqlite3_prepare_v2(s->db, "SELECT row FROM rows ORDER BY time, rank, serial, number", -1,
			   &s->sorted, NULL);
	return s;
}

void row_store_free(struct row_store *s)
{
	if (s == NULL)
		return;
	sqlite3_finalize(s->insert);
	sqlite3_finalize(s->sorted);
	sqlite3_close(s->db);
	g_free(s);
}

gboolean row_store_add(struct row_store *s, const struct trace_row *row, gint64 order, guint8 rank,
		       guint64 serial, GError **error)
{
	if (s->count == memory_bytes / sizeof *row) {
		/* SQLite would take another folder silently */
		int fd = temp_file_open(error);
		if (fd < 0)
			return FALSE;
		close(fd);
	}
	s->count++;
	sqlite3_bind_int64(s->insert, 1, order);
	sqlite3_bind_int(s->insert, 2, rank);
	sqlite3_bind_int64(s->insert, 3, (gint64)(serial ^ G_GUINT64_CONSTANT(1) << 63));
	sqlite3_bind_int64(s->insert, 4, (gint64)s->count);
	sqlite3_bind_blob(s->insert, 5, row, sizeof *row, SQLITE_STATIC);
	sqlite3_step(s->insert);
	return sqlite3_reset(s->insert) == SQLITE_OK || failed(s, error);
}

gboolean row_store_rewind(struct row_store *s, GError **error)
{
	return sqlite3_reset(s->sorted) == SQLITE_OK || failed(s, error);
}

int row_store_next(struct row_store *s, struct trace_row *out, GError **error)
{
	int more = sqlite3_step(s->sorted);

	if (more == SQLITE_ROW)
		memcpy(out, sqlite3_column_blob(s->sorted, 0), sizeof *out);
	return more == SQLITE_ROW ? 1 : more == SQLITE_DONE || failed(s, error) ? 0 : -1;
}
