/* SPDX-License-Identifier: Apache-2.0
 *
 * Many processes that open the same device at once, as a launcher's do, some of them killed while
 * they start: each goes through the whole start-up of the ACL.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "harness/test.h"

#define STAYING 200u
#define KILLED  60u
#define MIB     ((size_t)1 << 20)

/* Shared by all. */
static struct board {
	unsigned started, failed, victims[KILLED];
	char text[1024];
} * board;
static int barrier[2], leash[2]; /* pipes: the herd may go; the herd may end */

static void wait_for_end_of(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		continue;
}

static size_t free_bytes(void)
{
	size_t free_now = 0, total = 0;

	return aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total) == 0 ? free_now : 0;
}

/* One process: holds 2 MiB until the leash is let go. */
static void start(unsigned *done)
{
	void *memory;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(barrier[1]);
	close(leash[1]);
	wait_for_end_of(barrier[0]);
	if (aclInit(NULL) == 0 && aclrtSetDevice(0) == 0 &&
	    aclrtMalloc(&memory, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY) == 0) {
		__atomic_add_fetch(done, 1, __ATOMIC_SEQ_CST);
	} else {
		snprintf(board->text, sizeof(board->text), "%s", aclGetRecentErrMsg());
		__atomic_add_fetch(&board->failed, 1, __ATOMIC_SEQ_CST);
	}
	wait_for_end_of(leash[0]);
	_exit(0);
}

static pid_t start_one(unsigned *done)
{
	pid_t pid = fork();

	if (pid == 0)
		start(done);
	return pid;
}

static unsigned now(const unsigned *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* Their deaths are spread over the time that the others take. Returns how many came early enough.
 */
static unsigned kill_meanwhile(const pid_t *victims)
{
	unsigned early = 0;

	for (unsigned i = 0; i < KILLED; i++) {
		while (now(&board->started) < i * STAYING / KILLED && !now(&board->failed))
			usleep(200);
		early += !now(&board->victims[i]);
		kill(victims[i], SIGKILL);
	}
	return early;
}

static void bury(pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

/* What is free while the herd lives, and when it has been killed. */
static void watch(void *arg)
{
	pid_t *herd = arg;
	size_t with, wanted;

	if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0)
		_exit(2);
	with = free_bytes();
	wanted = with + STAYING * 2 * MIB;
	for (unsigned i = 0; i < STAYING; i++)
		kill(herd[i], SIGKILL);
	for (unsigned tries = 0; tries < 10000 && free_bytes() < wanted; tries++)
		usleep(1000);
	_exit(with > 0 && free_bytes() >= wanted ? 0 : 3);
}

TEST(herd, starts_while_some_are_killed)
{
	static pid_t herd[STAYING], victims[KILLED];

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_NE(board, MAP_FAILED);
	ASSERT_EQ(pipe(barrier) | pipe(leash), 0);
	for (unsigned i = 0; i < STAYING; i++) {
		herd[i] = start_one(&board->started);
		ASSERT_GT(herd[i], 0);
		if (i >= KILLED)
			continue;
		victims[i] = start_one(&board->victims[i]);
		ASSERT_GT(victims[i], 0);
	}
	close(barrier[1]);
	EXPECT_GT(kill_meanwhile(victims), 0u);
	bury(victims, KILLED);
	while (now(&board->started) + now(&board->failed) < STAYING)
		usleep(1000);
	NOTE("%s", board->text);
	EXPECT_EQ(now(&board->failed), 0u);
	EXPECT_EXIT(0, watch, herd);
	bury(herd, STAYING);
}
