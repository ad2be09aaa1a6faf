/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a text file, split into fields: comma-separated with quotes that may contain commas and
 * line ends, or separated by spaces. It is independent of the columns.
 */
#ifndef NPUSIM_TRACES_ROWS_H
#define NPUSIM_TRACES_ROWS_H

#include "format/input.h"

struct rows;

/* separator: ',' with quotes, ' ' any number of blanks and no quotes. `input` is borrowed. */
struct rows *rows_open(struct input *input, char separator);
void rows_close(struct rows *rows);
/* The next row that is not empty: 1; 0 at the end; -1 and error with the line. What was there
 * before is gone. */
int rows_next(struct rows *rows, GError **error);
/* Of the row: fields, and the line that it begins in. */
guint rows_count(const struct rows *rows);
const char *rows_field(const struct rows *rows, guint index); /* "" beyond the last */
guint64 rows_line(const struct rows *rows);
/* Of a header: the index of a column, G_MAXUINT if it has none. */
guint rows_column(const struct rows *rows, const char *name);
/* The same of several; FALSE and error where one is not there. */
gboolean rows_columns(const struct rows *rows, const char *const *names, guint count, guint *out,
		      GError **error);

/* Text to numbers as number_parse() has them; signed: also with a minus. */
gboolean rows_unsigned(const char *text, guint64 *out);
gboolean rows_signed(const char *text, gint64 *out);
/* A number that may have digits behind a point: times `unit`, rounded. */
gboolean rows_scaled(const char *text, guint64 unit, gint64 *out);

#endif
