/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of files that have addresses and no names: kept one behind another, in memory or, where they
 * are many, in a temporary file, and sorted. It does not know what they mean.
 */
#ifndef NPUSIM_TRACES_ROW_LIST_H
#define NPUSIM_TRACES_ROW_LIST_H

#include <glib.h>

struct trace_row {
	guint64 address; /* first: by-address.h */
	guint64 size;
	gint64 stream, time_us;
	/* What it is sorted by, one after another; of equal ones, those that were added before. */
	gint64 order;
	guint64 serial; /* after `rank` */
	guint32 text;   /* NOTE: of trace_note(); else of trace.sites, 0: the file has none */
	guint16 device;
	guint8 rank;
	guint8 verb;      /* enum npu_trace_verb: an allocator's */
	guint8 small : 1; /* from the small pool: 2 MiB handles */
	guint8 start : 1; /* it was there when the history began */
};

/* All 0: empty. */
struct row_list {
	struct trace_row *rows;
	guint64 count, room;
	int file;    /* its descriptor + 1, where the rows are in one */
	guint looks; /* at rows of a file */
};

#define ROW_LIST_MEMORY_BYTES (4u << 20) /* rows beyond it wait in a file */

/* What lists made from now on have instead: for tests. */
void row_list_set_memory(gsize bytes);

void row_list_clear(struct row_list *list);

/* FALSE and error, which names the folder, where there is no room for it in a file. */
gboolean row_list_add(struct row_list *list, const struct trace_row *row, GError **error);

/* Valid until the next is added. Those of a file are let go of now and then. */
struct trace_row *row_list_at(struct row_list *list, guint64 index);

/* FALSE and error, as row_list_add(). Rows that are in order already take one look at each. */
gboolean row_list_sort(struct row_list *list, GError **error);

#endif
