/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim traces (FORMAT.md), line by line: the reader holds one piece of the file, whatever its
 * length.
 */
#ifndef NPUSIM_TRACES_FORMAT_H
#define NPUSIM_TRACES_FORMAT_H

#include "input.h"
#include "trace.h"

/* FORMAT.md has the verbs and their keys. */
enum trace_verb {
	TRACE_CALL_DEVICE,
	TRACE_CALL_RESERVE,
	TRACE_CALL_UNRESERVE,
	TRACE_CALL_CREATE,
	TRACE_CALL_RELEASE,
	TRACE_CALL_RETAIN,
	TRACE_CALL_MAP,
	TRACE_CALL_UNMAP,
	TRACE_CALL_ACCESS,
	TRACE_CALL_EXPORT,
	TRACE_CALL_IMPORT,
	TRACE_CALL_MALLOC,
	TRACE_CALL_MFREE,
	TRACE_CALL_COPY,
	TRACE_CALL_FILL,
	TRACE_CALL_OTHER,
	TRACE_CALL_COUNT,
	TRACE_EVENT = TRACE_CALL_COUNT /* of the allocator above: trace_record.event */
};
/* A thing that a trace names: kind r, h, s, a or b, 0 for none, '-' for memory of the host. */
struct trace_name {
	char kind;
	guint32 number;
	guint64 offset;
};
struct trace_record {
	guint64 line;    /* in the file, for messages */
	guint64 host_ns; /* 0: not recorded */
	guint32 process, thread;
	guint8 verb;                               /* enum trace_verb */
	guint8 page_lg2;                           /* 12, 21, 30 */
	gboolean reset;                            /* DEVICE: op=reset */
	gint32 device;                             /* -1: the host */
	gint32 code;                               /* recorded result */
	struct trace_name name;                    /* what the line is about */
	struct trace_name handle, share, at, from; /* handle=, share=, at= or dst=, src= */
	guint64 size, align, hint, flags, rounded;
	struct trace_event event; /* TRACE_EVENT; its addresses are unique in the file */
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
int format_next(struct format_reader *reader, struct trace_record *out, GError **error);

/* Reads all lines once, and keeps the reader, rewound, with their summary. Takes the input over. */
struct trace *format_read(struct input *input, GError **error);

#endif
