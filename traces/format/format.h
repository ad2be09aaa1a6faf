/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim traces (FORMAT.md), line by line: the reader holds one piece of the file, whatever its
 * length.
 */
#ifndef NPUSIM_TRACES_FORMAT_H
#define NPUSIM_TRACES_FORMAT_H

#include "input.h"
#include "npusim/trace.h"
#include "read/trace.h"

/* A line of the file. `record.device` is at most G_MAXINT32: there is no larger one. */
struct format_line {
	struct npu_trace_record record; /* texts: valid until the next line */
	struct trace_event event;       /* where the verb is an allocator's; its addresses are
					   unique in the file */
};

struct format_reader;

/* True if the first bytes of a file are those of a trace. */
gboolean format_recognise(const guint8 *bytes, gsize count);
/* A reader at the first line. Takes the input over, on failure too. NULL and error: no trace, or a
 * version that is not known. */
struct format_reader *format_open(struct input *input, GError **error);
void format_close(struct format_reader *reader);
gboolean format_rewind(struct format_reader *reader, GError **error);
/* The next call or event: 1; 0 at the end; -1 and error, with the line, where one is not valid. */
int format_next(struct format_reader *reader, struct format_line *out, GError **error);

/* The same, with what was there at the start. */
int format_next_line(struct format_reader *reader, struct format_line *out, GError **error);

/* Reads all lines once, and keeps the reader, rewound, with their summary. Takes the input over. */
struct trace *format_read(struct input *input, GError **error);

#endif
