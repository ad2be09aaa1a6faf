/* SPDX-License-Identifier: Apache-2.0
 *
 * An external merge sort of records of one size, which are added in any order and can be read in
 * sorted order as often as needed. Small inputs are sorted in memory; large ones run by run into
 * an unnamed file. It does not know what a record is.
 */
#ifndef NPUSIM_TRACES_EXTERNAL_SORT_H
#define NPUSIM_TRACES_EXTERNAL_SORT_H

#include <glib.h>

struct external_sort;

/* As qsort(3) has it. Records that compare equal keep the order in which they were put. */
typedef int (*external_sort_compare)(const void *a, const void *b);

/* `memory_bytes`: what records may take of memory, at least a record. */
struct external_sort *external_sort_new(gsize record_bytes, gsize memory_bytes,
					external_sort_compare compare);
void external_sort_free(struct external_sort *sort);
/* FALSE and error, which names the folder, where the file cannot be made or written. */
gboolean external_sort_put(struct external_sort *sort, const void *record, GError **error);
/* Whether there is a file. */
gboolean external_sort_spilled(const struct external_sort *sort);

/* Ends putting, and goes to the first record. */
gboolean external_sort_rewind(struct external_sort *sort, GError **error);
/* 1: a record, valid until the next call; 0: the end; -1 and error. */
int external_sort_next(struct external_sort *sort, const void **out, GError **error);

#endif
