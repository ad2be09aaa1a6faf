/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's driver, for the objects and for those that end it: forks, time, and the two locks
 * of the core that a fork must find free.
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
/* From now on calls are refused: the process is ending. */
void core_driver_refuse(void);
/* A device was opened: forks survive it no more. */
void core_device_was_opened(void);
uint64_t core_now_ns(void);
/* timeout_ms < 0: UINT64_MAX. */
uint64_t core_deadline_ns(int32_t timeout_ms);

#endif
