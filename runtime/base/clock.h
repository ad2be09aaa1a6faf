/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's clocks, and timed waits: on conditions, and for mutexes.
 */
#ifndef NPUSIM_BASE_CLOCK_H
#define NPUSIM_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* For pthread_cond_timedwait() of a clock_cond_init() condition. */
static inline struct timespec clock_at_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / UINT64_C(1000000000)),
				  .tv_nsec = (long)(ns % UINT64_C(1000000000)) };
}
static inline struct timespec clock_after_ms(uint32_t ms)
{
	return clock_at_ns(clock_now_ns() + ms * UINT64_C(1000000));
}

/* pthread_mutex_timedlock(): false where it is not free within that time. */
static inline bool clock_lock_ms(pthread_mutex_t *mutex, uint32_t ms)
{
	struct timespec until = clock_at_ns(clock_read_ns(CLOCK_REALTIME) + ms * UINT64_C(1000000));

	return pthread_mutex_timedlock(mutex, &until) == 0;
}

static inline void clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

#endif
