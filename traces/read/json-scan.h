/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at JSON before a parser builds it: how deep it is, what it takes, and whose file it is.
 */
#ifndef NPUSIM_TRACES_JSON_SCAN_H
#define NPUSIM_TRACES_JSON_SCAN_H

#include <glib.h>

#define JSON_DEPTH_MAX 128

/* Each is told by the names of its members. */
enum json_kind {
	JSON_OTHER,
	JSON_SNAPSHOT, /* of PyTorch's or torch_npu's _snapshot() or memory_snapshot() */
	JSON_TIMELINE, /* of Kineto, or another one for Chrome */
};

/* The kind, as far as the first bytes of a file tell. */
enum json_kind json_kind_of(const guint8 *bytes, gsize count);
/* The same of a whole text that json-glib, which recurses, is to build. FALSE and error, with the
 * line and the column: it is nested more than JSON_DEPTH_MAX deep, has comments, which are none of
 * JSON, or needs more than the limit on memory (memory-limit.h). */
gboolean json_scan(const guint8 *bytes, gsize count, enum json_kind *out, GError **error);

#endif
