/* SPDX-License-Identifier: Apache-2.0
 *
 * An external merge sort: records of one size, put in any order and read in theirs, as often as
 * wanted: in memory while
 * they are few, sorted piece by piece into a file that has no name where they are many. It does not
 * know what a record is.
 */
#ifndef NPUSIM_TRACES_SPOOL_H
#define NPUSIM_TRACES_SPOOL_H

#include <glib.h>

struct spool;

/* As qsort(3) has it. Records that compare equal keep the order in which they were put. */
typedef int (*spool_compare)(const void *a, const void *b);

/* `memory_bytes`: what records may take of memory, at least a record. The file lies in $TMPDIR, or
 * in /var/tmp. */
struct spool *spool_new(gsize record_bytes, gsize memory_bytes, spool_compare compare);
void spool_free(struct spool *spool);
/* FALSE and error, which names the folder, where the file cannot be made or written. */
gboolean spool_put(struct spool *spool, const void *record, GError **error);
guint64 spool_count(const struct spool *spool);
/* Whether there is a file. */
gboolean spool_spilled(const struct spool *spool);

/* Ends putting, and goes to the first record. */
gboolean spool_rewind(struct spool *spool, GError **error);
/* 1: a record, valid until the next call; 0: the end; -1 and error. */
int spool_next(struct spool *spool, const void **out, GError **error);

#endif
