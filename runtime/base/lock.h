/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds a mutex to the end of a block: whatever leaves the block releases it.
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

#endif
