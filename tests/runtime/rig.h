/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of runtime/core share: a fresh runtime over a fresh fake driver for each test, and
 * what must be left of it at the end.
 */
#ifndef NPUSIM_TESTS_RUNTIME_RIG_H
#define NPUSIM_TESTS_RUNTIME_RIG_H

#include <stdlib.h>

#include "core/end.h"
#include "core/object/context.h"
#include "core/object/process.h"
#include "fake/fake-driver.h"
#include "harness/test.h"

static struct npu_driver *rig;

static inline void rig_open(unsigned devices)
{
	unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	rig = fake_driver_open(devices);
	core_driver_use(rig);
	core_called = "call";
}

/* The stream, or NULL and why. */
static inline struct core_stream *rig_find(void *handle, int *code)
{
	struct core_stream *stream;

	*code = core_stream_find(handle, &stream);
	return stream;
}

static inline struct core_stream *rig_find_any(void *handle, int *code)
{
	struct core_stream *stream;

	*code = core_stream_find_any(handle, &stream);
	return stream;
}

/* Hides any context that is published; NULL: none is. */
static inline struct context *rig_hide_context(void)
{
	for (uint32_t i = 0; i < core_contexts.slots; i++) {
		char *chunk = core_contexts.chunk[i / CORE_POOL_CHUNK_SLOTS];
		void *slot = chunk + i % CORE_POOL_CHUNK_SLOTS * core_contexts.bytes;

		if (core_pool_hide(slot, core_slot_handle(slot)))
			return slot;
	}
	return NULL;
}

/* Ends the runtime, and checks that it gave all back to the driver. */
static inline void rig_close(void)
{
	struct context *context;

	for (uint32_t logic = 0; logic < CORE_DEVICE_MAX; logic++) {
		core_devices[logic].set = 0;
		core_devices[logic].primary = NULL;
	}
	while ((context = rig_hide_context()) != NULL) {
		uint32_t logic = context->face.device;

		core_context_end(context, true);
		core_device_drop(logic);
	}
	for (uint32_t logic = 0; logic < CORE_DEVICE_MAX; logic++) {
		if (core_devices[logic].kept)
			core_device_drop(logic);
		core_devices[logic].kept = false;
	}
	core_visible_use("ASCEND_RT_VISIBLE_DEVICES", false);
	core_driver_use(NULL);
	EXPECT_EQ(fake_live_ids(rig), 0);
	EXPECT_EQ(fake_live_queues(rig), 0);
	for (unsigned d = 0; d < FAKE_DEVICES; d++)
		EXPECT_FALSE(fake_is_open(rig, d));
	npu_driver_close(rig);
	core_context_follow(-1);
	core_last_error(true);
	npu_message_clear();
	core_called = "";
}

#endif
