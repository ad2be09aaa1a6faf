/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges traces of processes that ran at the same time into one: by host time, with processes
 * numbered, and with one name for each share.
 */
#ifndef NPUSIM_TRACES_MERGE_H
#define NPUSIM_TRACES_MERGE_H

#include <glib.h>

struct merge_result {
	guint parts;    /* traces that were put together */
	guint64 events; /* lines of them that are events */
	guint broken;   /* traces that break off inside their last line */
};

/* The traces in a folder, by name; others are left out. NULL and error if it cannot be read. */
GPtrArray *merge_find(const char *folder, GError **error);
/* Writes the traces (plain files) as one to `path`, compressed if the name ends in .gz; the file is
 * there whole or not at all. FALSE and error, also where fewer than `least` of them are traces. */
gboolean merge_write(GPtrArray *parts, const char *path, guint least, struct merge_result *result,
		     GError **error);

#endif
