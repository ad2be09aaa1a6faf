/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of any kind as records of npusim/trace.h, one after another: what was there when its
 * window began, then its events. A trace of npusim has names; what has addresses gets names in the
 * order in which they appear. It keeps no account (books.h does), and is for convert and diff; a
 * replay reads trace.h and format.h.
 */
#ifndef NPUSIM_TRACES_FEED_H
#define NPUSIM_TRACES_FEED_H

#include "npusim/trace.h"
#include "trace.h"

#define FEED_NO_DEVICE (-2) /* record.device of a line that has none */

struct feed_item {
	struct npu_trace_record record;
	guint64 number; /* of the event, counted from 1; 0: it was there at the start */
	guint32 site;   /* of the trace's sites, where the record has no text; 0: none */
};
struct feed;

/* Reads the file's summary; NULL and error where trace_read() has none. */
struct feed *feed_open(const char *path, GError **error);
void feed_close(struct feed *feed);
/* The next: 1; 0 at the end; -1 and error. */
int feed_next(struct feed *feed, struct feed_item *out, GError **error);
struct trace *feed_trace(const struct feed *feed);
/* What the file's head says of a key, or NULL. */
const char *feed_info(const struct feed *feed, const char *key);

/* Whether a file begins as JSON does: a result, not a trace. FALSE and error: it cannot be read. */
gboolean feed_is_json(const char *path, gboolean *out, GError **error);

/* Whether a verb is of an allocator above, not a call. */
static inline gboolean feed_is_event(guint32 verb)
{
	return verb >= NPU_TRACE_SEGMENT_ALLOC;
}
/* "create", "segment_map", "free_requested", .... */
const char *feed_verb_name(guint32 verb);
/* The item as a line of a trace, without its stamps: "alloc b12 size=512 device=0". */
void feed_text(const struct feed_item *item, GString *out);

#endif
