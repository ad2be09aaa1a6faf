/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory accesses during a replay: with each block that is handed out, or in phases, a core of the
 * model reads, and the TLBs and the HBM account for the cost.
 */
#ifndef NPUSIM_TRACES_ACCESS_H
#define NPUSIM_TRACES_ACCESS_H

#include "policy/policy.h"

enum access_pattern {
	ACCESS_NONE,
	ACCESS_SEQ,    /* the new block from its start on; in phases, all that is live */
	ACCESS_RANDOM, /* places all over what is live */
	ACCESS_HOT     /* the same, but most of them in a part of it */
};
#define ACCESS_READS       64 /* places, by default */
#define ACCESS_READS_MAX   (G_GUINT64_CONSTANT(1) << 20)
#define ACCESS_EVERY_MAX   (G_GUINT64_CONSTANT(1) << 40)
#define ACCESS_READ_BYTES  512u
#define ACCESS_HOT_TOUCHES 90 /* per cent, by default */
#define ACCESS_HOT_BYTES   10

struct access_options {
	enum access_pattern pattern;
	guint hot_touches, hot_bytes; /* HOT: per cent of the reads, per cent of what is live */
	guint64 reads;                /* RANDOM, HOT: places each time; 0: ACCESS_READS */
	guint64 every;                /* events of a phase; 0: with each block */
};
/* "none", "seq", "random", "hot", "hot:90/10". FALSE and error, with what is right, for another. */
gboolean access_parse(const char *text, struct access_options *out, GError **error);
/* As access_parse() takes it; to be freed. */
char *access_text(const struct access_options *options);

/* What the reads came to. */
struct access_figures {
	guint64 reads, bytes, ps;
	guint64 tlb_requests, tlb_hits, tlb_misses, walks, walk_ps;
	guint64 hbm_bytes, row_hits, row_misses;
};

struct access;
/* All are borrowed; `filter` knows where the block at an address of the file lies now, and NULL:
 * there. NULL: nothing is to be read. */
struct access *access_new(const struct access_options *options, guint device,
			  const struct filter *filter, struct access_figures *figures);
void access_free(struct access *access);
/* A block that lives from now on, without a read. */
void access_note(struct access *access, guint64 address, guint64 size);
/* A block that comes, and one that goes. FALSE and error: the model refused a read. */
gboolean access_come(struct access *access, guint64 address, guint64 size, GError **error);
void access_go(struct access *access, guint64 address);
/* An event is over: phases are counted in them. */
gboolean access_tick(struct access *access, GError **error);

#endif
