/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory touched while a history is replayed: with each block that is handed out, a core of the
 * model reads, and the TLBs and the HBM say what it cost.
 */
#ifndef NPUSIM_TRACES_ACCESS_H
#define NPUSIM_TRACES_ACCESS_H

#include "model.h"
#include "trace.h"

enum access_pattern {
	ACCESS_NONE,
	ACCESS_SEQ,   /* the new block from its start on */
	ACCESS_RANDOM /* places all over what is live */
};
/* FALSE and error, with the names that are known, for another. */
gboolean access_parse(const char *name, enum access_pattern *out, GError **error);
const char *access_name(enum access_pattern pattern);

/* What the reads came to. */
struct access_figures {
	guint64 reads, bytes, ps;
	guint64 tlb_requests, tlb_hits, tlb_misses, walks;
	guint64 hbm_bytes, row_hits, row_misses;
};

struct access;
/* Where the block at the file's address lies now; 0: nowhere. */
typedef guint64 (*access_find)(gconstpointer data, guint64 address);

struct access *access_new(enum access_pattern pattern, guint device, access_find find,
			  gconstpointer data, struct access_figures *figures);
void access_free(struct access *access);
/* A block that lives from now on, without a read. */
void access_note(struct access *access, guint64 address, guint64 size);
/* After an event was replayed. FALSE and error: the model refused a read. */
gboolean access_step(struct access *access, const struct trace_event *event, GError **error);

#endif
