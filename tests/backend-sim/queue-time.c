/* SPDX-License-Identifier: Apache-2.0
 *
 * The same calls take the same simulated time, to the picosecond, in every process that makes them.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "queue-rig.h"

static uint64_t elapsed_of_a_scene(void)
{
	uint64_t a, b, begin;
	struct rig_stream one, two;
	uint32_t notify;
	void *host;

	rig_open();
	a = rig_map(0, 8 * MIB);
	b = rig_map(1, 8 * MIB);
	host = rig_pinned(8 * MIB);
	rig_peer(1, 0);
	rig_stream_open(&one, 0, 64, 64);
	rig_stream_open(&two, 1, 64, 64);
	notify = rig_id(1, DRV_NOTIFY_ID);
	begin = rig_now();
	rig_copy(&one, a, (uint64_t)host, 8 * MIB, QUIET);
	rig_event(&one, STARS_SQE_NOTIFY_RECORD, 1, notify, 0, QUIET);
	rig_event(&two, STARS_SQE_NOTIFY_WAIT, 1, notify, 0, QUIET);
	rig_sdma(&two, b, a, 8 * MIB, QUIET);
	rig_copy(&two, (uint64_t)host, b, 8 * MIB, QUIET);
	rig_finish(&one);
	rig_finish(&two);
	return rig_now() - begin;
}

static uint64_t in_a_child(void)
{
	uint64_t ps = 0;
	int ends[2], status = -1;
	pid_t pid;

	if (pipe(ends) != 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		ps = elapsed_of_a_scene();
		_exit(write(ends[1], &ps, sizeof(ps)) != sizeof(ps) || harness_has_failed());
	}
	close(ends[1]);
	if (read(ends[0], &ps, sizeof(ps)) != sizeof(ps) || waitpid(pid, &status, 0) != pid ||
	    status != 0)
		ADD_FAILURE("the child of the scene ended with %d", status);
	close(ends[0]);
	return ps;
}

/* Where the machine stops a process for a millisecond its idle thread comes between: most runs must
 * agree, not all. */
TEST(queue_time, the_same_calls_take_the_same_time)
{
	uint64_t first = in_a_child(), second = in_a_child(), agree = 0;

	EXPECT_GT(first, 0u);
	for (int i = 0; i < 6; i++) {
		uint64_t next = in_a_child();

		agree += next == first || next == second;
	}
	EXPECT_GE(agree, 3u);
}
