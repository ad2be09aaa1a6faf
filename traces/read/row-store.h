/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in a private database of SQLite, which has them in a temporary file where they are many:
 * they come back sorted, as often as wanted.
 */
#ifndef NPUSIM_TRACES_ROW_STORE_H
#define NPUSIM_TRACES_ROW_STORE_H

#include <glib.h>

/* A record of a file that has addresses and no names, as it waits to be read. */
struct trace_row {
	guint64 address; /* first: by-address.h */
	guint64 size;
	gint64 stream, time_us;
	guint32 text; /* NOTE: of trace_note(); else of trace.sites, 0: the file has none */
	guint16 device;
	guint8 verb;      /* enum npu_trace_verb: an allocator's */
	guint8 small : 1; /* from the small pool: 2 MiB handles */
	guint8 start : 1; /* it was there when the history began */
};

#define ROW_STORE_MEMORY_BYTES (4u << 20) /* rows beyond it wait in a file */
/* What stores made from now on have instead: for tests. */
void row_store_set_memory(gsize bytes);

struct row_store;
struct row_store *row_store_new(void);
void row_store_free(struct row_store *store);
/* To come behind those of a lower order, of one order those of a lower rank, then of a lower
 * serial, then those that were added before. FALSE and error, which names the folder, where there
 * is no room for it in a file. */
gboolean row_store_add(struct row_store *store, const struct trace_row *row, gint64 order,
		       guint8 rank, guint64 serial, GError **error);
/* Back to the first. FALSE and error. */
gboolean row_store_rewind(struct row_store *store, GError **error);
/* 1: a row; 0: the end; -1 and error. */
int row_store_next(struct row_store *store, struct trace_row *out, GError **error);

#endif
