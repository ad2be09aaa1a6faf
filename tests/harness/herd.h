/* SPDX-License-Identifier: Apache-2.0
 *
 * A herd: many processes that do the same at the same moment, some of them killed meanwhile. Who
 * includes this file says how many stay and how many are killed.
 */
#ifndef NPUSIM_TESTS_HERD_H
#define NPUSIM_TESTS_HERD_H

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

#if !defined(STAYING) || !defined(KILLED)
#error "STAYING and KILLED are missing"
#endif

/* Shared by all. */
static struct board {
	unsigned done, failed, buried, victims[KILLED];
	char text[2048]; /* why one has failed */
} * board;
static pid_t herd[STAYING], victims[KILLED];

static void herd_wait_for_end_of(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		continue;
}

/* `work` answers NULL, or why it failed. */
static pid_t herd_start_one(const int *barrier, const int *leash, const char *(*work)(void),
			    unsigned *done)
{
	pid_t pid = fork();
	const char *why;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(barrier[1]);
	close(leash[1]);
	herd_wait_for_end_of(barrier[0]);
	why = work();
	if (why != NULL)
		snprintf(board->text, sizeof(board->text), "%s", why);
	__atomic_add_fetch(why != NULL ? &board->failed : done, 1, __ATOMIC_SEQ_CST);
	herd_wait_for_end_of(leash[0]);
	_exit(0);
}

static unsigned herd_now(const unsigned *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static void herd_bury(const pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

/* Lets all do their work, kills victims one after another, spread over the time that the others
 * take, and returns when all that stay have done theirs. At least one comes early enough. */
static void herd_run(const char *(*work)(void))
{
	int barrier[2], leash[2]; /* pipes: the herd may go; the herd may end */
	unsigned early = 0;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_NE(board, MAP_FAILED);
	ASSERT_EQ(pipe(barrier) | pipe(leash), 0);
	for (unsigned i = 0; i < STAYING; i++) {
		herd[i] = herd_start_one(barrier, leash, work, &board->done);
		ASSERT_GT(herd[i], 0);
		if (i >= KILLED)
			continue;
		victims[i] = herd_start_one(barrier, leash, work, &board->victims[i]);
		ASSERT_GT(victims[i], 0);
	}
	close(barrier[1]);
	for (unsigned i = 0; i < KILLED; i++) {
		while (herd_now(&board->done) < i * STAYING / KILLED && !herd_now(&board->failed))
			usleep(200);
		early += !herd_now(&board->victims[i]);
		kill(victims[i], SIGKILL);
	}
	EXPECT_GT(early, 0u);
	herd_bury(victims, KILLED);
	__atomic_store_n(&board->buried, 1, __ATOMIC_SEQ_CST);
	while (herd_now(&board->done) + herd_now(&board->failed) < STAYING)
		usleep(1000);
	NOTE("%s", board->text);
	EXPECT_EQ(herd_now(&board->failed), 0u);
}

static void herd_kill(void)
{
	for (unsigned i = 0; i < STAYING; i++)
		kill(herd[i], SIGKILL);
}

#endif
