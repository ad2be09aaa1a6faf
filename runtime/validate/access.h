/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses of queued work that the host does not know to be done: the ranges, and which of them
 * meet another. Under the caller's lock.
 */
#ifndef NPUSIM_VALIDATE_ACCESS_H
#define NPUSIM_VALIDATE_ACCESS_H

#include "base/stack.h"
#include "validate/order.h"

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

struct accesses {
	GArray *sorted;   /* of struct access, by begin */
	uint64_t longest; /* bytes of one; never too small */
	const struct order *order;
};

struct accesses *accesses_new(const struct order *order);
void accesses_free(struct accesses *accesses);
/* Takes the place of an earlier access of its stream to the same range that is no more than it, but
 * of none with a hash or a mark, or that is closed. */
void accesses_add(struct accesses *accesses, const struct access *access);
/* Forgets what the host knows to be done; calls fn for each of it that has a hash or a mark, or is
 * closed. */
void accesses_settle(struct accesses *accesses, void (*fn)(void *arg, const struct access *access),
		     void *arg);

/* Which accesses a search finds, in the order of their addresses. */
struct access_search {
	uint64_t begin, end;       /* a byte in [begin, end) */
	bool writes;               /* these alone */
	const struct clock *after; /* what has not happened before it; NULL: all */
	bool surely;               /* ... nor may come after it */
	guint next;                /* 0 at first */
};
/* The next; NULL: there is none. */
struct access *accesses_next(const struct accesses *accesses, struct access_search *search);
/* Whether any, or a write, has a byte in [begin, end). */
bool accesses_meet(const struct accesses *accesses, uint64_t begin, uint64_t end, bool write);
/* Takes the hashes of those that have a byte in [begin, end): others than the program may change
 * what they read. all: their marks, too, and they are not closed any more: the program may know
 * that they are done. */
void accesses_unwatch(struct accesses *accesses, uint64_t begin, uint64_t end, bool all);

#endif
