/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of msMemScope, from a CSV file or a database.
 */
#ifndef NPUSIM_TRACES_MEMSCOPE_H
#define NPUSIM_TRACES_MEMSCOPE_H

#include "event-sorter.h"

enum memscope_column {
	MEMSCOPE_ID,
	MEMSCOPE_EVENT,
	MEMSCOPE_TYPE,
	MEMSCOPE_TIME,
	MEMSCOPE_PROCESS,
	MEMSCOPE_DEVICE,
	MEMSCOPE_PTR,
	MEMSCOPE_ATTR,
	MEMSCOPE_STACK_PYTHON,
	MEMSCOPE_STACK_C,
	MEMSCOPE_COLUMN_COUNT
};
const char *memscope_column_name(enum memscope_column column);

struct memscope;
struct memscope *memscope_new(void);
void memscope_free(struct memscope *scope);
/* `line`: of the file, or the row's number. FALSE and error where the row is damaged. */
gboolean memscope_row(struct memscope *scope, const char *const *fields, guint64 line,
		      GError **error);
/* Ends `scope`, on failure too. */
struct trace *memscope_finish(struct memscope *scope, const char *kind, GError **error);

#endif
