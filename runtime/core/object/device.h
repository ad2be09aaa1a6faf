/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices are open, and who uses each: a device is open while it has users, its primary
 * context and each context of aclrtCreateContext.
 */
#ifndef NPUSIM_CORE_DEVICE_H
#define NPUSIM_CORE_DEVICE_H

#include "core/object/process.h"

#include <stdatomic.h>

struct device {
	unsigned users;          /* contexts; core_setup_lock */
	bool kept;               /* core_device_keep() is one of the users; core_setup_lock */
	unsigned set;            /* aclrtSetDevice less aclrtResetDevice; core_setup_lock */
	_Atomic(void *) primary; /* handle of its primary context */
};
extern struct device core_devices[CORE_DEVICE_MAX];

/* One more, one less user of a device: opens it at the first, closes it at the last.
 * core_setup_lock is held. */
int core_device_hold_locked(uint32_t logic, const char *call);
void core_device_drop_locked(uint32_t logic);
/* The same, with the lock. */
void core_device_drop(uint32_t logic);
/* The handle of the device's primary context, or NULL. Any thread. */
void *core_device_primary(uint32_t logic);

#endif
