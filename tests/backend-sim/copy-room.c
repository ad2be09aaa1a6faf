/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine with little memory left: large writes to device memory that nothing has touched yet are
 * refused with a message, and not answered by the kernel's killer. This program says itself how
 * much is left.
 */
#include "queue-rig.h"

#include "node/node.h"

static uint64_t room = UINT64_MAX;
static unsigned last_age_ms; /* how old the last answer could be */

uint64_t node_host_room_bytes(unsigned age_ms)
{
	last_age_ms = age_ms;
	return room;
}

SETUP(copy_room)
{
	room = UINT64_MAX;
	rig_open();
}

TEARDOWN(copy_room)
{
	rig_close();
}

TEST(copy_room, fill_of_untouched_memory)
{
	uint64_t a = rig_map(0, 128 * MIB);

	room = 100 * MIB;
	EXPECT_EQ(npu_call(rig, drvMemsetD8, a, 128 * MIB, 1, 128 * MIB), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "this machine's memory");
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "128 MiB");
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "100 MiB");
	EXPECT_EQ(npu_call(rig, drvMemsetD8, a, 80 * MIB, 1, 80 * MIB), DRV_ERROR_NONE);
	EXPECT_GT(last_age_ms, NODE_ROOM_MS); /* under the lock: what was read before it */
	room = 60 * MIB;                      /* 80 MiB are there already: 48 are missing */
	EXPECT_EQ(npu_call(rig, drvMemsetD8, a, 128 * MIB, 1, 128 * MIB), DRV_ERROR_NONE);
	room = 0; /* all is there */
	EXPECT_EQ(npu_call(rig, drvMemsetD8, a, 128 * MIB, 2, 128 * MIB), DRV_ERROR_NONE);
}

TEST(copy_room, copy_of_a_queue)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB);
	struct rig_stream stream;

	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 16, 16));
	room = 10 * MIB;
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, STARS_ERROR_EXCEPTION);
	EXPECT_LE(last_age_ms, NODE_ROOM_MS); /* nobody has asked for it before */
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "this machine's memory");
	room = UINT64_MAX;
	rig_sdma(&stream, b, a, 64 * MIB, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
}
