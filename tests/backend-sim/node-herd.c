/* SPDX-License-Identifier: Apache-2.0
 *
 * A herd: as many processes as a node can have, and half as many again that are killed while they
 * join, all released at once. Built with a small table of members; NODE_MEMBERS in the compiler's
 * arguments makes it as large as the product's.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/members.h"
#include "harness/test.h"
#include "node-actors.h"

#define PLACES  (NODE_MEMBERS - 1) /* the last one is for whoever buries the dead */
#define STAYING (PLACES - 2)       /* beside the two actors */
#define KILLED  (PLACES / 2)

/* Shared by all. */
static struct board {
	unsigned joined, failed, words[KILLED];
	char text[2048];
} * board;
static int barrier[2], leash[2]; /* pipes: the herd may go; the herd may end */
static struct order node;

static void wait_for_end_of(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		continue;
}

static void be_one_of_them(unsigned *done)
{
	struct reply reply = { .value = 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(barrier[1]);
	close(leash[1]);
	wait_for_end_of(barrier[0]);
	do_join(&node, &reply);
	if (reply.value) {
		snprintf(board->text, sizeof(board->text), "%s", reply.text);
		__atomic_add_fetch(&board->failed, 1, __ATOMIC_SEQ_CST);
	} else {
		__atomic_add_fetch(done, 1, __ATOMIC_SEQ_CST);
	}
	wait_for_end_of(leash[0]);
	_exit(0);
}

static pid_t start_one(unsigned *done)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid == 0)
		be_one_of_them(done);
	return pid;
}

static unsigned now(const unsigned *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* Kills one after another while the others join. Returns how many had not joined yet. */
static unsigned kill_meanwhile(const pid_t *victims)
{
	unsigned early = 0;

	for (unsigned i = 0; i < KILLED; i++) {
		/* Their deaths are spread over the time that the others take. */
		while (now(&board->joined) < i * STAYING / KILLED && !now(&board->failed))
			usleep(200);
		early += !now(&board->words[i]);
		kill(victims[i], SIGKILL);
	}
	return early;
}

static void bury(const pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

static void create_and_drop(const struct order *order, struct reply *reply)
{
	for (unsigned i = 0; i < order->value && reply->value == 0; i++) {
		do_create(order, reply);
		do_drop(order, reply);
	}
}

TEST(node_herd, joins_while_some_are_killed_up_to_the_limit)
{
	static pid_t herd[STAYING], victims[KILLED];
	struct actor a = actor_start(), b = actor_start(), late = actor_start();
	struct reply reply;
	char limit[32];

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_NE(board, MAP_FAILED);
	ASSERT_EQ(pipe(barrier) | pipe(leash), 0);
	node = small_node("herd", 256);
	for (unsigned i = 0; i < STAYING; i++) {
		herd[i] = start_one(&board->joined);
		if (i < KILLED)
			victims[i] = start_one(&board->words[i]);
	}
	close(barrier[1]);
	EXPECT_GT(kill_meanwhile(victims), 0u);
	bury(victims, KILLED);
	while (now(&board->joined) + now(&board->failed) < STAYING)
		usleep(1000);
	NOTE("%s", board->text);
	EXPECT_EQ(now(&board->failed), 0u);

	EXPECT_STREQ(actor_do(&late, do_join, node).text, ""); /* and buries the last ones */
	EXPECT_ACT(0, &late, do_leave);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_ACT(0, &a, create_and_drop, .frames = 3, .value = 100);
	EXPECT_ACT(0, &b, do_create, .frames = 5); /* as one of many: beyond the first 64 */
	EXPECT_FREE(124 - 5, &a);
	reply = actor_do(&late, do_join, node);
	EXPECT_EQ(reply.value, 1);
	snprintf(limit, sizeof(limit), "%u processes use it", PLACES);
	EXPECT_CONTAINS(reply.text, limit);
	EXPECT_CONTAINS(reply.text, "which is the limit");

	for (unsigned i = 0; i < STAYING; i++)
		kill(herd[i], SIGKILL);
	actor_kill(&b);
	bury(herd, STAYING);
	EXPECT_STREQ(actor_do(&late, do_join, node).text, ""); /* nobody has called since */
	EXPECT_FREE(124, &late);
	EXPECT_ACT(0, &late, do_audit);
	EXPECT_TRUE(actor_end(&late));
	EXPECT_TRUE(actor_end(&a));
}
