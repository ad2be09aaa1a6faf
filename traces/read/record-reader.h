/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of any kind as a sequence of npusim/trace.h records, for every consumer of a history:
 * first the state when its window began, then its events. A trace of npusim has names; objects
 * known by address get names in the order in which they appear. It computes no sums.
 */
#ifndef NPUSIM_TRACES_RECORD_READER_H
#define NPUSIM_TRACES_RECORD_READER_H

#include "trace.h"

struct record_reader;

/* Reads the file's summary; NULL and error where it has none. */
struct record_reader *record_reader_open(const char *path, GError **error);
void record_reader_close(struct record_reader *reader);
/* Back to the first record. */
gboolean record_reader_rewind(struct record_reader *reader, GError **error);
/* The next: 1; 0 at the end; -1 and error. */
int record_reader_next(struct record_reader *reader, struct record_item *out, GError **error);
/* Of a trace of npusim, before the first record: its lines from the first on are added to a text
 * too, up to that of the last record. */
gboolean record_reader_copy(struct record_reader *reader, GString *text, GError **error);
/* The summary, which belongs to the reader. */
struct trace *record_reader_trace(const struct record_reader *reader);
/* What the file's head says of a key, or NULL. */
const char *record_reader_info(const struct record_reader *reader, const char *key);

/* "create", "segment_map", "free_requested", .... */
const char *record_verb_name(guint32 verb);
/* "r1+2097152", "host". */
void record_name_text(const struct npu_trace_name *name, GString *out);
/* The item as a line of a trace, without stamps, addresses and site: "alloc b12 size=512 device=0".
 */
void record_text(const struct record_item *item, GString *out);

#endif
