/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer over a program that sends its entries itself: what it knows to be done is
 * what its queue's head has passed, though a runtime in the same process tells of other queues.
 */
#include "queue-rig.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 8u

static char file[] = "/tmp/queue-validated-XXXXXX";

/* Races so far. */
static unsigned races(void)
{
	g_autofree char *text = NULL;
	unsigned found = 0;

	EXPECT_TRUE(g_file_get_contents(file, &text, NULL, NULL));
	for (const char *at = text; (at = strstr(at, "\"race\"")) != NULL; at++)
		found++;
	return found;
}

/* Sends a copy to `target`; the program reads it after the head has passed the entry, or at once.
 */
static void copy_and_read(struct rig_stream *stream, uint64_t target, uint64_t source, bool waits)
{
	char read[64];
	unsigned tail;

	rig_sdma(stream, target, source, sizeof(read), QUIET);
	tail = rig_query(stream, DRV_SQCQ_PROP_SQ_TAIL);
	while (waits && rig_query(stream, DRV_SQCQ_PROP_SQ_HEAD) != tail)
		usleep(100);
	EXPECT_EQ(npu_call(rig, drvMemcpy, (uint64_t)(uintptr_t)read, sizeof(read), target,
			   sizeof(read)),
		  DRV_ERROR_NONE);
}

TEST(validated, a_head_that_has_passed_is_a_wait)
{
	halDevOpenIn in = { { 0 } };
	halDevCloseIn close_in = { { 0 } };
	halDevOpenOut out;
	struct rig_stream runtime, own, again[2];
	uint64_t source, target;

	close(mkstemp(file));
	setenv("NPUSIM_VALIDATE", "on", 1);
	setenv("NPUSIM_VALIDATE_FILE", file, 1);
	rig_open();
	source = rig_alloc(0, MIB);
	target = rig_alloc(0, MIB);
	EXPECT_EQ(npu_call(rig, drvMemsetD8, source, MIB, 3, MIB), DRV_ERROR_NONE);
	rig_stream_open(&runtime, 0, DEPTH, DEPTH);
	rig_stream_open(&own, 0, DEPTH, DEPTH);
	EXPECT_EQ(npu_call(rig, npusimOrder, 0, NPU_ORDER_STREAM, runtime.sq, 0), DRV_ERROR_NONE);
	for (unsigned i = 0; i < 3 * DEPTH; i++)
		copy_and_read(&own, target, source, true);
	EXPECT_EQ(races(), 0u);
	copy_and_read(&own, target, source, false);
	EXPECT_EQ(races(), 1u);
	/* A runtime's queue: its waits are those that it tells of. */
	copy_and_read(&runtime, target + 4096, source, true);
	EXPECT_EQ(races(), 2u);
	rig_stream_close(&runtime);
	/* A device's close ends its queues: the next of the same id counts anew. */
	for (unsigned i = 0; i < DEPTH - 3; i++)
		copy_and_read(&own, target, source, true);
	EXPECT_EQ(npu_call(rig, halDeviceClose, 0, &close_in), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halDeviceOpen, 0, &in, &out), DRV_ERROR_NONE);
	source = rig_alloc(0, MIB);
	target = rig_alloc(0, MIB);
	EXPECT_EQ(npu_call(rig, drvMemsetD8, source, MIB, 3, MIB), DRV_ERROR_NONE);
	for (unsigned i = 0; i < 2; i++)
		rig_stream_open(&again[i], 0, DEPTH, DEPTH);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < DEPTH - 3; k++)
			copy_and_read(&again[i], target, source, true);
	EXPECT_EQ(races(), 2u);
	rig_close();
	rig_end(); /* before the layer's end, which is that of the process */
	unlink(file);
}
