/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a text file, split into fields: comma-separated with a header and quotes that may contain
 * commas and line ends, or separated by spaces. It is independent of the columns.
 */
#ifndef NPUSIM_TRACES_ROWS_H
#define NPUSIM_TRACES_ROWS_H

#include "format/input.h"

/* What the rows are read for. */
struct row_column {
	const char *name, *other; /* in the header: either of them; other may be NULL */
	gboolean optional;        /* no row needs it */
	guint64 unit;             /* what its numbers are multiplied by: number_scaled() */
};
struct rows {
	GError **error; /* that what follows sets */
	guint64 line;   /* that the row begins in */
	const struct row_column *columns;
	guint *at;         /* where each is among the fields; G_MAXUINT: there is none */
	GPtrArray *fields; /* of the row */
	/* below: rows.c alone */
	struct input *input;
	char separator;
	guint needed;          /* fields that a row needs at least */
	const char *needed_by; /* column */
	GString *text;         /* of the row: the fields lie in it */
};

/* Takes each row that is not empty. separator: ',' with quotes and a header, in which the columns
 * are found; ' ' any number of blanks, no quotes, and the columns in their order. FALSE and error:
 * the header lacks a column, a row breaks off in front of one, or what `take` says. */
gboolean rows_read(struct input *input, char separator, const struct row_column *columns,
		   guint count, gboolean (*take)(struct rows *rows, gpointer data), gpointer data,
		   GError **error);
/* "" where it is not there. */
const char *rows_field(const struct rows *rows, guint column);
/* Sets the error, with the line. Always FALSE. */
#define rows_bad(rows, ...) line_bad((rows)->line, (rows)->error, __VA_ARGS__)
/* The field as an address or a size; FALSE and error. */
gboolean rows_number(const struct rows *rows, guint column, guint64 *out);

/* As number_parse(), also with a minus. */
gboolean number_signed(const char *text, gint64 *out);
/* A number that may have digits behind a point: times `unit`, rounded. */
gboolean number_scaled(const char *text, guint64 unit, gint64 *out);

#endif
