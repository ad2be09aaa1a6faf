/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at JSON before a parser builds it: how deep it is, what it takes, and whose file it is.
 */
#ifndef NPUSIM_TRACES_JSON_SCAN_H
#define NPUSIM_TRACES_JSON_SCAN_H

#include <glib.h>

#define JSON_DEPTH_MAX 128

/* What people have who want a replay of it; each is told by the names of its members. */
enum json_kind {
	JSON_OTHER,
	JSON_SNAPSHOT, /* of torch.cuda.memory._snapshot(), saved as JSON */
	JSON_SEGMENTS, /* of torch.cuda.memory_snapshot(): a list of segments */
	JSON_TIMELINE, /* of Kineto, or another one for Chrome */
};

/* What such a file is, and what to do instead; NULL of JSON_OTHER. It ends a sentence that begins
 * with "it is". */
const char *json_kind_words(enum json_kind kind);
/* The kind, as far as the first bytes of a file tell. */
enum json_kind json_kind_of(const guint8 *bytes, gsize count);
/* The same of a whole text that json-glib, which recurses, is to build. FALSE and error, with the
 * line and the column: it is nested more than JSON_DEPTH_MAX deep, has comments, which are none of
 * JSON, or needs more than the limit on memory (memory-limit.h). */
gboolean json_scan(const guint8 *bytes, gsize count, enum json_kind *out, GError **error);

#endif
