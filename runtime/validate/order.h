/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens before what: a vector clock a stream, and one for the host, whose threads count as
 * one that makes calls in the order in which they enter. Edges come from the queue's entries and
 * from what the runtime tells of the program's waits; simulated time plays no part.
 *
 * Where an edge cannot be known (a value that somebody may write, an event that is recorded later)
 * the clock is tainted: nothing that comes later in it is called unordered, with what came before
 * or comes after, until all queues have been empty. Errors may be missed so; none is invented.
 *
 * And the accesses on their way: which of them meet another. Under the caller's lock.
 */
#ifndef NPUSIM_VALIDATE_ORDER_H
#define NPUSIM_VALIDATE_ORDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"

struct clock {
	uint64_t *at; /* by stream: the last entry that has happened before */
	unsigned count;
	uint64_t taint; /* number of the last wait whose edge is not known; 0: none */
};

struct order_stream {
	uint32_t dev, id;
	unsigned index;
	uint64_t base; /* entries of the streams that had this index before */
	uint64_t sent; /* of all that had it */
	uint16_t last_task;
	uint64_t host_version; /* of the host's clock, joined last */
	struct clock clock;
	GArray *edges; /* of struct order_edge: what the waits brought, oldest first */
	bool live;
};

struct order {
	GPtrArray *streams; /* of struct order_stream, by index; an index is used again */
	GHashTable *by_id;  /* (dev, id) -> live struct order_stream */
	GHashTable *events; /* by name */
	struct clock host;
	uint64_t host_version;    /* counts changes of what the host knows */
	uint64_t taints, settled; /* numbers of waits; up to which nothing matters any more */
	GArray *sorted;           /* of struct access, on their way, by begin */
	uint64_t longest;         /* bytes of one of them; never too small */
};

struct order *order_new(void);
void order_free(struct order *order);

/* The live stream of that id; made where there is none. */
struct order_stream *order_stream(struct order *order, uint32_t dev, uint32_t id);
/* The last that had an index. */
static inline const struct order_stream *order_stream_at(const struct order *order, unsigned index)
{
	return g_ptr_array_index(order->streams, index);
}
/* The stream of an index in words; see npu_text(). */
const char *order_stream_text(const struct order *order, unsigned index);
/* Its queue is gone, and all of its work with it. */
void order_stream_end(struct order *order, uint32_t dev, uint32_t id);

/* The stream's next entry: its number. Everything that the host knows happened before it. */
uint64_t order_entry(struct order *order, struct order_stream *stream, uint16_t task);
/* That entry records an event, waits for one, waits for a value. */
void order_record(struct order *order, struct order_stream *stream, uint64_t event);
void order_wait(struct order *order, struct order_stream *stream, uint64_t event);
void order_value_wait(struct order *order, struct order_stream *stream);
/* What has the clock may be what was waited for by anybody whose edge is not known. */
void order_resolve(struct order *order, const struct clock *clock);

/* Events are named by device and id; a notify by its id with NOTIFY set. */
#define ORDER_NOTIFY UINT64_C(0x80000000)
static inline uint64_t order_event_name(uint32_t dev, uint32_t id)
{
	return (uint64_t)dev << 32 | id;
}
/* The host records it; it is not recorded any more; its id is given back. */
void order_host_record(struct order *order, uint64_t event);
void order_event_reset(struct order *order, uint64_t event);
void order_event_end(struct order *order, uint64_t event);
/* The host records `event` when `source` has happened. */
void order_relay(struct order *order, uint64_t event, uint64_t source);

/* The host knows that entries of a stream up to the number are done: counted as order_entry() does,
 * or since the stream's queue was made (of_queue). */
void order_seen(struct order *order, struct order_stream *stream, uint64_t number, bool of_queue);
void order_seen_event(struct order *order, uint64_t event);
/* By the task id of a completion. */
void order_seen_task(struct order *order, struct order_stream *stream, uint16_t task);

/* Whether the entry has happened before whatever comes next in the clock. */
bool order_is_before(const struct order *order, unsigned stream, uint64_t number,
		     const struct clock *clock);
/* Whether a clock's taint still matters. */
bool order_is_tainted(const struct order *order, uint64_t taint);
/* If the host knows all entries to be done, what was not known does not matter any more. */
void order_quiet(struct order *order);

/* ---- accesses of queued work that the host does not know to be done ---- */

struct access {
	uint64_t begin, end;  /* addresses, [begin, end) */
	uint64_t number;      /* of the entry in its stream */
	uint64_t taint;       /* of its clock: what it waits for may be anybody */
	uint64_t hash;        /* of its bytes, as they were queued, where it is `hashed` */
	npu_stack stack;      /* where it was queued */
	uint32_t stream : 23; /* index in order.h */
	uint32_t mark : 6;    /* a write of memory that others have: struct npu_write; 0: none */
	uint32_t write : 1;
	uint32_t hashed : 1; /* a read of memory of the host, which the program is to leave alone */
	uint32_t closed : 1; /* its pages are, to the program */
};

/* Takes the place of an earlier access of its stream to the same range that is no more than it, but
 * of none with a hash or a mark, or that is closed. */
void accesses_add(struct order *order, const struct access *access);
/* Which accesses a search finds, in the order of their addresses. */
struct access_search {
	uint64_t begin, end;       /* a byte in [begin, end) */
	bool writes;               /* these alone */
	const struct clock *after; /* what has not happened before it; NULL: all */
	bool surely;               /* ... nor may come after it */
	guint next;                /* 0 at first */
};
/* The next; NULL: there is none. */
struct access *accesses_next(const struct order *order, struct access_search *search);
/* Whether any, or a write, has a byte in [begin, end). */
bool accesses_meet(const struct order *order, uint64_t begin, uint64_t end, bool write);
/* Takes the hashes of those that have a byte in [begin, end): others than the program may change
 * what they read. all: their marks, too, and they are not closed any more: the program may know
 * that they are done. */
void accesses_unwatch(struct order *order, uint64_t begin, uint64_t end, bool all);

#endif
