/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of any kind as records of npusim/trace.h, one after another: what was there when its
 * window began, then its events. A trace of npusim has names; what has addresses gets names in the
 * order in which they appear. It adds nothing up (object-tracker.h does), and is for convert and
 * diff, and for replays.
 */
#ifndef NPUSIM_TRACES_RECORD_READER_H
#define NPUSIM_TRACES_RECORD_READER_H

#include "npusim/trace.h"
#include "trace.h"

#define RECORD_NO_DEVICE (-2) /* record.device of a line that has none */

struct record_item {
	struct npu_trace_record record;
	guint64 number; /* of the event, counted from 1; 0: it was there at the start */
	guint32 site;   /* of the trace's sites; 0: the file has none */
	guint device;   /* index in trace.devices; G_MAXUINT: it is on none of them */

	/* Of an allocator's event. */
	guint64 address; /* equal for what belongs together, and for nothing else in the file: its
			    own, or one made for the name; of OOM: bytes that were free */
	guint64 size;    /* also where a line that frees a segment has none */
	gint64 time_us;  /* the file's clock; 0: it has none */
};

/* Whether it tells of memory or of a block that was there when the history began. */
gboolean record_is_of_start(const struct npu_trace_record *record);

struct record_reader;

/* Reads the file's summary; NULL and error where trace_read() has none. */
struct record_reader *record_reader_open(const char *path, GError **error);
void record_reader_close(struct record_reader *reader);
/* Back to the first record. */
gboolean record_reader_rewind(struct record_reader *reader, GError **error);
/* The next: 1; 0 at the end; -1 and error. */
int record_reader_next(struct record_reader *reader, struct record_item *out, GError **error);
/* Of a trace of npusim, before the first record: its lines from the first on are added to a text
 * too, up to that of the last record. */
gboolean record_reader_copy(struct record_reader *reader, GString *text, GError **error);
struct trace *record_reader_trace(const struct record_reader *reader);
/* What the file's head says of a key, or NULL. */
const char *record_reader_info(const struct record_reader *reader, const char *key);

/* "create", "segment_map", "free_requested", .... */
const char *record_verb_name(guint32 verb);
/* "r1+2097152", "host". */
void record_name_text(const struct npu_trace_name *name, GString *out);
/* The item as a line of a trace, without its stamps: "alloc b12 size=512 device=0". */
void record_text(const struct record_item *item, GString *out);

#endif
