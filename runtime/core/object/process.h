/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's driver, for the objects and for those that end it: forks, time, the two locks of
 * the core that a fork must find free; and how most calls are refused.
 */
#ifndef NPUSIM_CORE_PROCESS_H
#define NPUSIM_CORE_PROCESS_H

#include <pthread.h>

#include "acl/acl_base.h"
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

/* What is refused has a code of the ACL. */
#define CORE_OK ACL_SUCCESS
/* The codes of most refusals. */
#define core_invalid(...)     core_fail(ACL_ERROR_RT_PARAM_INVALID, __VA_ARGS__)
#define core_no_memory(...)   core_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, __VA_ARGS__)
#define core_unsupported(...) core_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __VA_ARGS__)

#endif
