/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's driver, for the objects and for those that end it: forks, time, the two locks of
 * the core that a fork must find free; and the aclErrors that the core returns.
 */
#ifndef NPUSIM_CORE_PROCESS_H
#define NPUSIM_CORE_PROCESS_H

#include <pthread.h>

#include "core/core.h"

/* Devices and contexts come and go; outside of it, no lock of the core but that of opening. */
extern pthread_mutex_t core_setup_lock;
/* Which streams and events belong to which context; inside of it, no lock of the core. */
extern pthread_mutex_t core_lists_lock;

/* Tests: this driver from now on, instead of one that is opened; NULL: one that is opened. */
void core_driver_use(struct npu_driver *drv);
/* A device was opened: forks survive it no more. */
void core_device_was_opened(void);
uint64_t core_now_ns(void);
/* timeout_ms < 0: UINT64_MAX. */
uint64_t core_deadline_ns(int32_t timeout_ms);

/* The aclErrors that runtime/core answers; it knows no face's headers. */
enum core_error {
	CORE_OK = 0,
	CORE_PARAM_INVALID = 107000,
	CORE_INVALID_DEVICE = 107001,
	CORE_CONTEXT_NULL = 107002,
	CORE_STREAM_CONTEXT = 107003,
	CORE_EVENT_TIMESTAMP_INVALID = 107006,
	CORE_STREAM_SUBSCRIBE = 107011,
	CORE_THREAD_SUBSCRIBE = 107012,
	CORE_STREAM_NO_CALLBACK = 107015,
	CORE_INVALID_HANDLE = 107017,
	CORE_TASK_TIMEOUT = 107020,
	CORE_STREAM_ABORT = 107023,
	CORE_NOT_SUPPORT = 207000,
	CORE_MEMORY_ALLOCATION = 207001,
	CORE_NO_DEVICE = 207004,
	CORE_NO_EVENT = 207007,
	CORE_NO_STREAM = 207008,
	CORE_API_INTERNAL = 500000,
	CORE_INTERNAL = 507000,
	CORE_TS_ERROR = 507001,
	CORE_CONTEXT_RELEASE = 507007,
	CORE_REPORT_TIMEOUT = 507012,
	CORE_DEVICE_SETUP = 507033,
	CORE_STREAM_SYNC_TIMEOUT = 507046,
	CORE_EVENT_SYNC_TIMEOUT = 507047
};
/* The codes of most refusals. */
#define core_invalid(...)     core_fail(CORE_PARAM_INVALID, __VA_ARGS__)
#define core_no_memory(...)   core_fail(CORE_MEMORY_ALLOCATION, __VA_ARGS__)
#define core_unsupported(...) core_fail(CORE_NOT_SUPPORT, __VA_ARGS__)

#endif
