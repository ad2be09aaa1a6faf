/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that hold something to the end of a block, whatever leaves it: a mutex; and calls
 * free of pthread_cancel(). A thread that is cancelled in a call ends when the call has returned:
 * otherwise it would leave with our locks held, and every other thread would wait for them.
 */
#ifndef NPUSIM_BASE_LOCK_H
#define NPUSIM_BASE_LOCK_H

#include <pthread.h>

static inline pthread_mutex_t *lock_hold(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void lock_let(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* A declaration: from here to the end of the block. */
#define LOCKED(mutex) \
	__attribute__((cleanup(lock_let), unused)) pthread_mutex_t *const locked = lock_hold(mutex)

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
