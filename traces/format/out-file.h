/* SPDX-License-Identifier: Apache-2.0
 *
 * Output files of the command: a file that exists complete or not at all, standard output ("-"),
 * or something that is not a regular file, such as a pipe or /dev/full, which is written to but
 * never replaced; and JSON and the lines of traces in them.
 */
#ifndef NPUSIM_TRACES_OUT_FILE_H
#define NPUSIM_TRACES_OUT_FILE_H

#include <json-glib/json-glib.h>

#include "npusim/trace.h"

/* Whether such a file could be made, as far as it and its folder tell. FALSE and error. */
gboolean out_file_check(const char *path, GError **error);

struct out_stream {
	GString *text; /* to be added to, then out_stream_flush() */
	/* below: out-file.c alone */
	void *gzip;
	char *path; /* as it was given; "-": standard output */
	char *file; /* behind all links */
	char *temp; /* what is written to, and takes its name; NULL: it is written itself */
	int failed; /* errno */
};
/* Writes to a name beside the file's, unless that is no regular file. An interrupt removes what is
 * there. What a symbolic link leads to is written, also where it is not there yet. FALSE and error:
 * it cannot be made, or a link in a sticky folder belongs to somebody else than the caller and the
 * folder's owner, who could make it lead anywhere (fs.protected_symlinks of Linux has the same
 * rule). */
gboolean out_stream_open(struct out_stream *out, const char *path, GError **error);
/* Writes when there is enough; `all`: in any case. What fails, out_stream_close() tells. */
void out_stream_flush(struct out_stream *out, gboolean all);
/* Ends `out`: the file takes its name. FALSE and error, and nothing is left, if it did not all get
 * there or `ok` is FALSE (then error is set already). */
gboolean out_stream_close(struct out_stream *out, gboolean ok, GError **error);
/* All of it at once. FALSE and error, which names the file. */
gboolean out_file_write(const char *path, const char *text, gsize length, GError **error);

/* Adds a value, which is taken over, as json-glib writes it: in one line, or `pretty`. It is valid
 * whatever its texts hold: U+FFFD stands for what is no UTF-8. */
void out_json(GString *out, JsonNode *value, gboolean pretty);
/* The same of a variant, in one line. */
void out_json_variant(GString *out, GVariant *value);
/* Between a list's "[" or the value before and the next, which gets a line of its own. */
void out_json_next(GString *out);

/* As a line of a trace; FALSE and error: the record cannot be one. */
gboolean out_trace_line(GString *out, const struct npu_trace_record *record, GError **error);
/* The same of what its head says; `process`: that it is about, or 0. */
void out_trace_info(GString *out, guint32 process, const char *key, const char *value);

/* ---- merge.c: merges traces of processes that ran at the same time into one: by host time, with
 * processes numbered, and with one name for each share ---- */

struct merge_result {
	guint parts;    /* traces that were put together */
	guint64 events; /* lines of them that are events */
	guint broken;   /* traces that break off inside their last line */
};

/* Writes the traces among files as one to `path`, compressed if the name ends in .gz; the file is
 * there whole or not at all. FALSE and error, also where fewer than `least` of them are traces. */
gboolean merge_write(GPtrArray *parts, const char *path, guint least, struct merge_result *result,
		     GError **error);

#endif
