/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file, plain or gzip, piece by piece, line by line, or as a whole; the numbers in
 * lines and what is said of damaged ones; temporary files. It is independent of the format.
 */
#ifndef NPUSIM_TRACES_INPUT_H
#define NPUSIM_TRACES_INPUT_H

#include "failure.h"

struct input;

/* Opens a file; one that begins as gzip does is inflated while it is read. What cannot be read
 * twice (a pipe) is taken into memory at once. NULL and error, which names the file, otherwise. */
struct input *input_open(const char *path, GError **error);
/* The same over a file descriptor, which is taken over, on failure too. `name` stands for the path
 * in messages. */
struct input *input_open_fd(int fd, const char *name, GError **error);
/* The same over a copy of bytes. */
struct input *input_open_bytes(const void *bytes, gsize count, const char *name, GError **error);
/* Keeps what can be read only once, standard input ("-") or a pipe, so that the path may be opened
 * as often as wanted; to be called for each path that was given, before it is opened. One that is
 * given twice is the same twice; what can be read twice, or is not there, is left alone. Not beside
 * threads that open inputs. FALSE and error. */
gboolean input_keep(const char *path, GError **error);
void input_close(struct input *input);

/* Reads up to `room` bytes: less only at the end. -1 and error if the file cannot be read, or the
 * gzip stream is damaged or ends early (with the offset in the file). */
gssize input_take(struct input *input, guint8 *into, gsize room, GError **error);
/* Back to the first byte. */
gboolean input_rewind(struct input *input, GError **error);
const char *input_name(const struct input *input);

/* All the bytes, from the first. NULL and error as above, and where it is more than 4 GiB. */
GBytes *input_whole(struct input *input, GError **error);

/* ---- lines ---- */

/* A line, with a zero in place of its end; the text may be changed, and is gone with the next. */
struct input_line {
	char *text;
	gsize length;
	guint64 number; /* from 1 */
	gboolean whole; /* FALSE: the file breaks off inside it */
};
/* The next line: 1; 0 at the end; -1 and error, also where it has a zero byte or is longer than
 * `most`. Not between input_take() and input_rewind(). */
int input_line(struct input *input, gsize most, struct input_line *out, GError **error);

/* Sets the error, "line 7: ..." in printable characters. Always FALSE. */
gboolean line_bad(guint64 line, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* A number up to `last`: decimal, or hexadecimal with 0x. FALSE where the text as a whole is none.
 */
gboolean number_parse(const char *text, guint64 last, guint64 *out);
/* The same; FALSE and the error, which calls it `what`. */
gboolean line_number(guint64 line, const char *what, const char *text, guint64 last, guint64 *out,
		     GError **error);

/* ---- temporary files: unnamed; in $TMPDIR, or in /var/tmp, since /tmp is often in memory ---- */

/* -1 and error, which names the folder. */
int temp_file_open(GError **error);

/* Sets the error from errno; `what`: "read". Always FALSE. */
gboolean temp_file_failed(const char *what, GError **error);

#endif
