/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file, plain or gzip, piece by piece, line by line, or as a whole; the numbers in
 * lines and what is said of damaged ones; temporary files; the errors of files and of options, and
 * the ceiling on memory; units; and the reader of npusim's own format.
 */
#ifndef NPUSIM_TRACES_INPUT_H
#define NPUSIM_TRACES_INPUT_H

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "npusim/trace.h"

#define U64 "%" G_GUINT64_FORMAT /* of printf() */

/* Errors of a file's content; those of the file itself are G_FILE_ERROR. */
#define TRACE_ERROR (trace_error_quark())
enum trace_error {
	TRACE_ERROR_FORMAT,  /* damaged, or not of the kind that it says */
	TRACE_ERROR_UNKNOWN, /* no reader knows it */
	TRACE_ERROR_MEMORY   /* reading it takes more than the limit on memory */
};
GQuark trace_error_quark(void);

/* Sets the error. Always FALSE. */
#define refuse(error, domain, code, ...)                       \
	({                                                     \
		g_set_error(error, domain, code, __VA_ARGS__); \
		FALSE;                                         \
	})
/* The same of an option's value, and of what errno says of a file. */
#define refuse_option(error, ...) \
	refuse(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, __VA_ARGS__)
#define refuse_file(error, code, ...) \
	refuse(error, G_FILE_ERROR, (gint)g_file_error_from_errno(code), __VA_ARGS__)

struct input;

/* Opens a file; one that begins as gzip does is inflated while it is read. What can be read only
 * once, standard input ("-") or a pipe, is kept in a temporary file, so that the path may be opened
 * as often as wanted: not beside threads that open inputs. NULL and error, which names the file. */
struct input *input_open(const char *path, GError **error);
/* The same over a file descriptor, which is taken over, on failure too; below 0: errno says why. A
 * pipe is taken into memory at once. `name` stands for the path in messages. */
struct input *input_open_fd(int fd, const char *name, GError **error);
/* The same over a copy of bytes. */
struct input *input_open_bytes(const void *bytes, gsize count, const char *name, GError **error);
void input_close(struct input *input);

/* Reads up to `room` bytes: less only at the end. -1 and error if the file cannot be read, or the
 * gzip stream is damaged or ends early (with the offset in the file). */
gssize input_take(struct input *input, guint8 *into, gsize room, GError **error);
/* Back to the first byte. */
void input_rewind(struct input *input);
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
/* A number up to `last`: decimal, or hexadecimal with 0x. FALSE: the text as a whole is none. */
gboolean number_parse(const char *text, guint64 last, guint64 *out);
/* The same; FALSE and the error, which calls it `what`. */
gboolean line_number(guint64 line, const char *what, const char *text, guint64 last, guint64 *out,
		     GError **error);

/* ---- temporary files: unnamed; in $TMPDIR, or in /var/tmp, since /tmp is often in memory ---- */

/* -1 and error, which names the folder. */
int temp_file_open(GError **error);

/* Sets the error from errno; `what`: "read". Always FALSE. */
gboolean temp_file_failed(const char *what, GError **error);

/* ---- memory-limit.c: the ceiling on the memory of a process that reads files: whoever keeps what
 * a file says asks here first. It compares what the process really holds, not allocations. ---- */

#define MEMORY_LIMIT_LEAST (G_GUINT64_CONSTANT(16) << 20)

/* The default: a quarter of what this process may have at most, but not too little to work. */
guint64 memory_limit_default(guint64 most);
/* From now on; 0, as it is at first: none. Private memory counts: not shared memory, not files. */
void memory_limit_set(guint64 bytes);
/* What may still be had; G_MAXINT64: there is no limit. */
guint64 memory_limit_left(void);
/* To be called before `bytes` more are kept, or about as many have been: cheap, as it looks at the
 * process now and then only. FALSE and error, TRACE_ERROR_MEMORY: "FORMAT: it needs ..."; the
 * text says which part of the file wants them, and where it is. Not thread-safe. */
gboolean memory_limit_ask(guint64 bytes, GError **error, const char *format, ...)
	G_GNUC_PRINTF(3, 4);

/* ---- trace-reader.c: the reader of npusim/trace.h over an input, with GError ---- */

#define FORMAT_MAGIC "npusim-trace"

/* Takes the input over, on failure too. Errors name the line, those of the input the file. */
struct npu_trace_reader *trace_reader_new(struct input *input, GError **error);
/* As npu_trace_reader_next(). */
int trace_reader_take(struct npu_trace_reader *reader, struct npu_trace_record *out,
		      GError **error);
gboolean trace_reader_rewind(struct npu_trace_reader *reader, GError **error);
/* From the next rewind on, each whole line that is read is added to a text as well, as it is in the
 * file, with its end: also those that are no records. */
void trace_reader_copy(struct npu_trace_reader *reader, GString *text);

/* ---- byte units that are powers of two, and rounding to them ---- */

#define KIB (G_GUINT64_CONSTANT(1) << 10)
#define MIB (G_GUINT64_CONSTANT(1) << 20)
#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* Up to a multiple. */
static inline guint64 round_up(guint64 size, guint64 to)
{
	return size / to * to + (size % to ? to : 0);
}

/* Bytes of the pages that aclrtMalloc takes for `size`: of 4 KiB up to 1 MiB, of 2 MiB above. */
static inline guint64 malloc_pages(guint64 size)
{
	return round_up(size, size > MIB ? 2 * MIB : 4 * KIB);
}

#endif
