/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of runtime/core share: a fresh runtime over a fresh fake driver for each test, and
 * what must be left of it at the end.
 */
#ifndef NPUSIM_TESTS_RUNTIME_RIG_H
#define NPUSIM_TESTS_RUNTIME_RIG_H

#include <stdlib.h>

#include "core/object/context.h"
#include "core/object/error.h"
#include "core/object/process.h"
#include "fake/fake-driver.h"
#include "harness/test.h"

static struct npu_driver *rig;

static inline void rig_open(unsigned devices)
{
	unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	rig = fake_driver_open(devices);
	core_driver_use(rig);
}

/* Ends the runtime, and checks that it gave all back to the driver. */
static inline void rig_close(void)
{
	core_shutdown();
	EXPECT_EQ(fake_live_ids(rig), 0);
	EXPECT_EQ(fake_live_queues(rig), 0);
	for (unsigned d = 0; d < FAKE_DEVICES; d++)
		EXPECT_FALSE(fake_is_open(rig, d));
	npu_driver_close(rig);
	core_context_follow(-1);
	core_last_error_take();
	npu_message_clear();
}

#endif
