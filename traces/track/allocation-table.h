/* SPDX-License-Identifier: Apache-2.0
 *
 * What is at an address, now and at marked moments of the past: reservations, physical memory and
 * blocks of one device. A moment is marked when it occurs, and may be marked again; the table then
 * keeps what goes away, provided that it existed at the moment. Each step costs the same, however
 * often moments are marked. For maps and holders of a replay; sums are in memory-usage.h. It is
 * independent of the model.
 */
#ifndef NPUSIM_TRACES_ALLOCATION_TABLE_H
#define NPUSIM_TRACES_ALLOCATION_TABLE_H

#include <glib.h>

enum allocation_kind {
	ALLOCATION_RESERVED, /* addresses without memory of their own */
	ALLOCATION_MEMORY,   /* physical memory at an address: a classic allocation, or a mapping */
	ALLOCATION_BLOCK,    /* what a program was given */
	ALLOCATION_KIND_COUNT
};
struct allocation {
	guint64 key;           /* of its kind: whoever adds it chooses */
	guint64 address, size; /* where it lies, with the rounding of who gave it */
	guint64 asked;         /* BLOCK: bytes that were asked for */
	guint64 va;            /* MEMORY: where it lies in the model */
	guint64 born;          /* serial number */
	GArray *runs;          /* MEMORY: struct physical_run, once they were looked up */
	guint32 site;          /* BLOCK, MEMORY */
	guint16 holders;       /* inside: lists that it is in */
	gboolean mapped;       /* MEMORY: into a reservation */
};
/* Physical memory behind an item: consecutive bytes of the device. */
struct physical_run {
	guint64 pa, bytes;
};

enum moment_what { MOMENT_PEAK, MOMENT_OOM, MOMENT_END, MOMENT_EVENT, MOMENT_TIME };
/* Sums, all in bytes. */
struct memory_sums {
	guint64 live, physical, reserved, internal, rounding;
	gint64 external; /* below 0: blocks lie in memory that the file does not tell of */
};
struct moment {
	guint8 what;      /* enum moment_what */
	gboolean reached; /* it was marked */
	guint64 wanted;   /* EVENT: its number; TIME: microseconds since the first event */
	guint64 event;    /* when it was marked */
	guint64 serial;   /* inside */
	struct memory_sums sums;
	GPtrArray *gone[ALLOCATION_KIND_COUNT]; /* inside: was there at the moment, is not now */
};
#define MOMENTS_MAX 8

struct allocation_table {
	GHashTable *items[ALLOCATION_KIND_COUNT]; /* of struct allocation */
	struct moment moments[MOMENTS_MAX];
	guint moment_count;
	guint64 serial;
	gboolean has_blocks; /* a BLOCK was added, at any time */
	guint64 reserved;    /* bytes of addresses taken: RESERVED, and MEMORY that is not mapped */
	/* Fills item->runs in while the memory is still there; may be NULL. */
	void (*look)(struct allocation *item, gpointer data);
	gpointer data;
};

void allocation_table_init(struct allocation_table *table);
void allocation_table_clear(struct allocation_table *table);
/* Adds a moment to be marked; FALSE: there are too many. `wanted`: number of MOMENT_EVENT, or
 * microseconds of MOMENT_TIME. */
gboolean allocation_table_add_moment(struct allocation_table *table, enum moment_what what,
				     guint64 wanted);
/* What is there now is what was there at the moment. */
void allocation_table_mark(struct allocation_table *table, struct moment *moment, guint64 event,
			   const struct memory_sums *sums);

/* A copy of `item` is kept; what has its key goes. */
struct allocation *allocation_table_add(struct allocation_table *table, enum allocation_kind kind,
					const struct allocation *item);
const struct allocation *allocation_table_find(const struct allocation_table *table,
					       enum allocation_kind kind, guint64 key);
/* Looks up what moments need of an item whose memory may go. */
void allocation_table_look(struct allocation_table *table, guint64 key);
/* To be called before the memory goes, or after allocation_table_look(). FALSE: it is not there. */
gboolean allocation_table_remove(struct allocation_table *table, enum allocation_kind kind,
				 guint64 key);
/* The same of all that is still there: before the model closes. */
void allocation_table_look_all(struct allocation_table *table);

/* struct allocation * of the kind at the moment, sorted by address; borrowed. */
GPtrArray *allocation_table_at(const struct allocation_table *table, const struct moment *moment,
			       enum allocation_kind kind);

#endif
