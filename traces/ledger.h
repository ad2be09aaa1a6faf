/* SPDX-License-Identifier: Apache-2.0
 *
 * What is there at an address, now and at moments of the past: reservations, physical memory and
 * blocks of one device. A moment is marked when it is there, and may be marked again; the ledger
 * then keeps what goes away, as long as it was there at the moment. Each step costs the same,
 * however often moments are marked. It is for maps and holders of a replay; sums are account.h's,
 * and a table of sizes without a past is live.h. It knows no model.
 */
#ifndef NPUSIM_TRACES_LEDGER_H
#define NPUSIM_TRACES_LEDGER_H

#include <glib.h>

enum ledger_kind {
	LEDGER_RESERVED, /* addresses without memory of their own */
	LEDGER_MEMORY,   /* physical memory at an address: a classic allocation, or a mapping */
	LEDGER_BLOCK,    /* what a program was given */
	LEDGER_KIND_COUNT
};
struct ledger_item {
	guint64 key;           /* of its kind: whoever adds it chooses */
	guint64 address, size; /* where it lies, with the rounding of who gave it */
	guint64 asked;         /* BLOCK: bytes that were asked for */
	guint64 va;            /* MEMORY: where it lies in the model */
	guint64 born;          /* serial number */
	GArray *runs;          /* MEMORY: struct ledger_run, once they were looked up */
	guint32 site;          /* BLOCK */
	guint16 holders;       /* inside: lists that it is in */
	gboolean mapped;       /* MEMORY: into a reservation */
};
/* Physical memory behind an item: consecutive bytes of the device. */
struct ledger_run {
	guint64 pa, bytes;
};

enum ledger_what { LEDGER_PEAK, LEDGER_OOM, LEDGER_END, LEDGER_EVENT, LEDGER_TIME };
/* Sums, all in bytes. */
struct ledger_sums {
	guint64 live, physical, reserved, internal, rounding;
	gint64 external; /* below 0: blocks lie in memory that the file does not tell of */
};
struct ledger_moment {
	guint8 what;      /* enum ledger_what */
	gboolean reached; /* it was marked */
	guint64 wanted;   /* EVENT: its number; TIME: microseconds since the first event */
	guint64 event;    /* when it was marked */
	guint64 serial;   /* inside */
	struct ledger_sums sums;
	GPtrArray *gone[LEDGER_KIND_COUNT]; /* inside: was there at the moment, is not now */
};
#define LEDGER_MOMENTS_MAX 8

struct ledger {
	GHashTable *items[LEDGER_KIND_COUNT]; /* of struct ledger_item */
	struct ledger_moment moments[LEDGER_MOMENTS_MAX];
	guint moment_count;
	guint64 serial;
	guint64 reserved; /* bytes of addresses taken: RESERVED, and MEMORY that is not mapped */
	/* Fills item->runs in while the memory is still there; may be NULL. */
	void (*look)(struct ledger_item *item, gpointer data);
	gpointer data;
};

void ledger_init(struct ledger *ledger);
void ledger_clear(struct ledger *ledger);
/* Adds a moment to be marked; FALSE: there are too many. `wanted`: number of LEDGER_EVENT, or
 * microseconds of LEDGER_TIME. */
gboolean ledger_add_moment(struct ledger *ledger, enum ledger_what what, guint64 wanted);
/* NULL: there is none of the kind. */
struct ledger_moment *ledger_find_moment(struct ledger *ledger, enum ledger_what what);
/* What is there now is what was there at the moment. */
void ledger_mark(struct ledger *ledger, struct ledger_moment *moment, guint64 event,
		 const struct ledger_sums *sums);

/* A copy of `item` is kept; what has its key goes. */
struct ledger_item *ledger_add(struct ledger *ledger, enum ledger_kind kind,
			       const struct ledger_item *item);
const struct ledger_item *ledger_find(const struct ledger *ledger, enum ledger_kind kind,
				      guint64 key);
/* Looks up what moments need of an item whose memory may go. */
void ledger_look(struct ledger *ledger, guint64 key);
/* To be called before the memory goes, or after ledger_look(). FALSE: it is not there. */
gboolean ledger_remove(struct ledger *ledger, enum ledger_kind kind, guint64 key);
/* The same of all that is still there: before the model closes. */
void ledger_look_all(struct ledger *ledger);

/* struct ledger_item * of the kind at the moment, sorted by address; borrowed. */
GPtrArray *ledger_at(const struct ledger *ledger, const struct ledger_moment *moment,
		     enum ledger_kind kind);

#endif
