/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace or a result as another kind of file: where it is written to, and a writer for each kind.
 * All read their input once, line by line.
 */
#ifndef NPUSIM_TRACES_CONVERT_H
#define NPUSIM_TRACES_CONVERT_H

#include "books.h"

/* ---- convert-out.c: a file that is there whole or not at all ---- */

struct convert_file {
	char *path; /* as it was given; "-": standard output */
	char *temp; /* what is written to */
	gboolean renames, gzip;
};
/* A name beside the file's, unless that is no regular file. An interrupt removes what is there. */
void convert_file_begin(struct convert_file *file, const char *path);
/* The file takes its name if `ok`, else nothing is left of it. Ends `file`. FALSE and error. */
gboolean convert_file_end(struct convert_file *file, gboolean ok, GError **error);

struct convert_out {
	GString *text; /* to be added to, then convert_out_flush() */
	/* below: convert-out.c alone */
	void *gzip;
	struct convert_file file;
	int failed; /* errno */
};
gboolean convert_out_open(struct convert_out *out, const char *path, GError **error);
/* Writes when there is enough; `all`: in any case. What fails, convert_out_close() tells. */
void convert_out_flush(struct convert_out *out, gboolean all);
/* Ends `out`; FALSE and error, and nothing is left, if it did not all get there or `ok` is FALSE
 * (then error is set already). */
gboolean convert_out_close(struct convert_out *out, gboolean ok, GError **error);
/* With its quotes. */
void convert_json_text(GString *out, const char *text);

/* ---- the writers ---- */

struct convert_job {
	struct feed *feed;
	struct books *books;
	const char *source, *target;
	gint device;   /* -1: all */
	gboolean ends; /* in the middle: an interrupt */
	void (*progress)(guint64 done, gpointer data);
	gpointer data;
	guint64 next_progress;
};
/* The next line that is of the device that is wanted: 1, 0, -1 and error. */
int convert_next(struct convert_job *job, struct books_line *out, GError **error);
/* Whether a line is one of those that are wanted. */
gboolean convert_wants(const struct convert_job *job, const struct books_line *line);

gboolean convert_to_trace(struct convert_job *job, GError **error);
gboolean convert_to_chrome(struct convert_job *job, GError **error);
gboolean convert_to_csv(struct convert_job *job, GError **error);
/* A result: its figures, or its series, a row each sample. device: -1: all. */
gboolean convert_result_to_csv(const char *source, const char *target, gboolean series, gint device,
			       GError **error);

#endif
