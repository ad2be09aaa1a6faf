/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver for tests of what lies above drivers: devices that open and close, and queues that
 * execute entries when the test lets them. It moves no bytes, simulates no time and has no memory;
 * what it lacks answers DRV_ERROR_NOT_SUPPORT.
 */
#ifndef NPUSIM_TESTS_FAKE_DRIVER_H
#define NPUSIM_TESTS_FAKE_DRIVER_H

#include <stdbool.h>

#include "npusim/driver.h"

#define FAKE_DEVICES 4

/* A new driver with `devices` devices, the first four of which are real. It ends with its close().
 */
struct npu_driver *fake_driver_open(unsigned devices);

/* While it is held, no queue executes anything. */
void fake_hold(struct npu_driver *drv, bool hold);
/* The next entry of this type fails: error_type and error_code of its completion. */
void fake_fail_next(struct npu_driver *drv, uint8_t sqe_type, uint8_t error_type,
		    uint32_t error_code);
/* halSqTaskSend answers `code` so many times. */
void fake_refuse_sends(struct npu_driver *drv, drvError_t code, unsigned times);

bool fake_is_open(struct npu_driver *drv, unsigned dev);
unsigned fake_opened(struct npu_driver *drv, unsigned dev); /* how often */
/* Ids, queues and events that were allocated and not freed, of all devices. */
unsigned fake_live_ids(struct npu_driver *drv);
unsigned fake_live_queues(struct npu_driver *drv);
/* Entries that were executed, in order, of the types given: "record 3 placeholder 1 ..." is for
 * failures; counts only. */
unsigned fake_executed(struct npu_driver *drv, uint8_t sqe_type);

#endif
