/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps pthread_cancel() out of calls: a thread that is cancelled in one ends when the call has
 * returned. Otherwise it would leave with our locks held, and every other thread would wait for
 * them.
 */
#ifndef NPUSIM_BASE_CANCEL_H
#define NPUSIM_BASE_CANCEL_H

#include <pthread.h>

static inline int cancel_hold(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_let(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* A declaration: until the end of the block. */
#define UNCANCELLED \
	__attribute__((cleanup(cancel_let), unused)) const int cancel_before = cancel_hold()

#endif
