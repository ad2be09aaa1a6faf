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
	uint64_t begin, end; /* addresses, [begin, end) */
	unsigned stream;     /* index in order.h */
	bool write;
	uint64_t number; /* of the entry in its stream */
	uint64_t taint;  /* of its clock: what it waits for may be anybody */
	npu_stack stack; /* where it was queued */
};

struct accesses; /* sorted by address */

struct accesses *accesses_new(void);
void accesses_free(struct accesses *accesses);
unsigned accesses_count(const struct accesses *accesses);
/* Takes the place of an earlier access of its stream to the same range that is no more than it. */
void accesses_add(struct accesses *accesses, const struct access *access);
/* Forgets what the host knows to be done. */
void accesses_settle(struct accesses *accesses, const struct order *order);

typedef void (*access_fn)(void *arg, const struct access *access);
/* Calls fn for each that has a byte in [begin, end) and has not happened before `clock`; reads only
 * if `write`; `or_after`: those that may come after as well. */
void accesses_unordered(const struct accesses *accesses, const struct order *order,
			const struct clock *clock, uint64_t begin, uint64_t end, bool write,
			bool or_after, access_fn fn, void *arg);

#endif
