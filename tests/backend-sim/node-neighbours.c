/* SPDX-License-Identifier: Apache-2.0
 *
 * Poor kernels and bad neighbours: system calls that are missing or do nothing, other users who
 * bind the node's names, processes that are stopped, and namespaces that keep processes apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/records.h"
#include "harness/test.h"
#include "node-actors.h"

#define FRAMES    28 /* usable ones of a device of 64 MiB */
#define VICTIM    65534u
#define STRANGER  65533u
#define TRIES     5000 /* of a millisecond each, where nothing says when it is so far */
#define ANY_VALUE UINT32_MAX

/* ---- system calls that are missing, or do nothing ---- */

/* From now on system call order->value, with a third argument of order->share, is not done: it
 * answers the error order->pid; 0: success. */
static void refuse(const struct order *order, struct reply *reply)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)order->value, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, order->share, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)order->pid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (order->share == ANY_VALUE)
		filter[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0);
	reply->value = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

/* Free frames, as soon as they are as many. */
static void expect_free_soon(uint64_t frames, struct actor *actor)
{
	uint64_t is = 0;

	for (unsigned i = 0; i < TRIES && is != frames; i++, usleep(1000))
		is = ACT(actor, do_usage).usage.free_frames;
	EXPECT_EQ(is, frames);
}

static void die_with_the_lock(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	if (node_enter(actor_self.node) == DRV_ERROR_NONE)
		raise(SIGKILL);
}

static struct order node;
static struct actor a, b;

static void begin(const char *test)
{
	node = small_node(test, 64);
	a = actor_start();
	b = actor_start();
}

struct end_case {
	const char *label;
	bool lock, buried;
};
static const struct end_case end_cases[] = {
	{ "between calls", false, true },
	{ "with the lock", true, true },
	{ "with a parent that does not wait", false, false },
};
TEST_EACH(node_neighbours, member_without_robust_lists_is_missed, end_cases, label)
{
	const struct end_case *c = param;

	begin("norobust");
	if (ACT(&a, refuse, .value = SYS_set_robust_list, .share = ANY_VALUE, .pid = ENOSYS).value)
		SKIP("no seccomp here");
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = 20);
	EXPECT_ACT(0, &a, do_write, .value = 7);
	EXPECT_ACT(7, &a, do_read);
	EXPECT_FREE(FRAMES - 20, &b);
	if (c->lock)
		EXPECT_EQ(ACT(&a, die_with_the_lock).value, ACTOR_DIED);
	else
		kill(a.pid, SIGKILL);
	if (c->buried)
		actor_wait(&a);
	expect_free_soon(FRAMES, &b);
	EXPECT_ACT(0, &b, do_audit);
	if (!c->buried)
		actor_wait(&a);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_neighbours, member_without_robust_lists_leaves)
{
	begin("norobust-leave");
	if (ACT(&a, refuse, .value = SYS_set_robust_list, .share = ANY_VALUE, .pid = ENOSYS).value)
		SKIP("no seccomp here");
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
		EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
		EXPECT_ACT(0, &a, do_create, .frames = 3);
		EXPECT_ACT(0, &a, do_leave);
		EXPECT_FREE(FRAMES, &b); /* at once: who leaves says so */
		EXPECT_ACT(0, &b, do_leave);
	}
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* As qemu-user: MADV_REMOVE is "done". */
TEST(node_neighbours, memory_is_zero_where_removing_does_nothing)
{
	begin("noremove");
	if (ACT(&a, refuse, .value = SYS_madvise, .share = MADV_REMOVE).value)
		SKIP("no seccomp here");
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = FRAMES);
	EXPECT_ACT(0, &a, do_write, .value = 9);
	EXPECT_GE(ACT(&a, do_pages).value, 1);
	EXPECT_ACT(0, &a, do_drop);
	EXPECT_ACT(0, &a, do_pages);
	EXPECT_ACT(0, &a, do_create, .frames = FRAMES);
	EXPECT_ACT(0, &a, do_read);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* ---- other users ---- */

static void become(const struct order *order, struct reply *reply)
{
	const uid_t user = (uid_t)order->value;

	reply->value = setresgid(user, user, user) || setresuid(user, user, user) ||
		       prctl(PR_SET_DUMPABLE, 1); /* as after exec */
}

/* A socket of that name of the user's node; -1: it cannot be. */
static int bind_name(uid_t user, const char *of, const char *tail)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *text = address.sun_path + 1;
	struct stat space = { .st_ino = 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	stat("/proc/self/ns/pid", &space);
	snprintf(text, sizeof(address.sun_path) - 1, "npusim/%x/%x/%s/%s", user,
		 (unsigned)space.st_ino, of, tail);
	return bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text)))
		       ? -1
		       : fd;
}

/* Binds the victim's names of the node: one of a member, and order->frames of the start-up lock;
 * every other one listens. */
static void squat(const struct order *order, struct reply *reply)
{
	for (unsigned i = 0; i <= order->frames && !reply->value; i++) {
		char tail[32] = "lock";
		int fd;

		if (i == 0)
			snprintf(tail, sizeof(tail), "%x/3", (unsigned)getpid());
		else if (i > 1)
			snprintf(tail, sizeof(tail), "lock%u", i - 1);
		fd = bind_name(VICTIM, order->node, tail);
		reply->value = fd < 0;
		if (i % 2)
			listen(fd, 1);
	}
}

static void begin_as_two_users(const char *test)
{
	begin(test);
	ASSERT_EQ(ACT(&a, become, .value = STRANGER).value, 0);
	ASSERT_EQ(ACT(&b, become, .value = VICTIM).value, 0);
}

TEST(node_neighbours, names_of_another_user_keep_nobody_off)
{
	struct actor c;

	if (geteuid() != 0)
		SKIP("needs root, to become two other users");
	ASSERT_NO_FATAL(begin_as_two_users("squat"));
	c = actor_start();
	ASSERT_EQ(ACT(&c, become, .value = VICTIM).value, 0);
	node.frames = 2;
	EXPECT_EQ(actor_do(&a, squat, node).value, 0);
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&c, do_join, node).text, "");
	EXPECT_ACT(0, &b, do_create, .frames = 5);
	EXPECT_FREE(FRAMES - 5, &c);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}

TEST(node_neighbours, who_has_all_names_is_named)
{
	struct reply reply;
	char who[64];

	if (geteuid() != 0)
		SKIP("needs root, to become two other users");
	ASSERT_NO_FATAL(begin_as_two_users("squat-all"));
	node.frames = 3;
	EXPECT_EQ(actor_do(&a, squat, node).value, 0);
	reply = actor_do(&b, do_join, node);
	EXPECT_EQ(reply.value, 1);
	snprintf(who, sizeof(who), "another user (process %d, user %u)", a.pid, STRANGER);
	EXPECT_CONTAINS(reply.text, who);
	EXPECT_CONTAINS(reply.text, "choose another NPUSIM_NODE");
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* ---- processes of this user that are no members ---- */

static unsigned sockets_of(const char *name)
{
	FILE *list = fopen("/proc/net/unix", "re");
	unsigned count = 0;
	char line[512];

	while (fgets(line, sizeof(line), list))
		count += strstr(line, name) != NULL;
	fclose(list);
	return count;
}

/* Has the start-up lock, and never passes it on. */
static void hold_falsely(const struct order *order, struct reply *reply)
{
	int lock = bind_name(geteuid(), order->node, "lock"), next;

	reply->value = lock < 0 || listen(lock, 8) != 0;
	while (order->giant && (next = accept(lock, NULL, NULL)) >= 0) {
		send(next, order->name, strlen(order->name), MSG_NOSIGNAL);
		close(next);
	}
	while (order->frames)
		pause();
}

TEST(node_neighbours, who_holds_the_lock_falsely_is_named)
{
	static const struct order holders[] = {
		{ .node = "mute", .frames = 1 },
		{ .node = "closes", .giant = true },
		{ .node = "says", .giant = true, .name = "x" },
	};
	struct actor holder[3], joiner[3];

	for (unsigned i = 0; i < 3; i++) {
		struct order hold = holders[i];

		node = small_node(holders[i].node, 64);
		memcpy(hold.node, node.node, sizeof(hold.node));
		holder[i] = actor_start();
		joiner[i] = actor_start();
		actor_tell(&holder[i], hold_falsely, &hold);
		for (unsigned try = 0; try < TRIES && sockets_of(node.node) == 0; try++)
			usleep(1000);
		actor_tell(&joiner[i], do_join, &node);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct reply reply = actor_hear(&joiner[i]);
		char who[128];

		NOTE("%s", holders[i].node);
		snprintf(who, sizeof(who), ": process %d keeps others from joining it (it holds",
			 holder[i].pid);
		EXPECT_EQ(reply.value, 1);
		EXPECT_CONTAINS(reply.text, who);
		EXPECT_CONTAINS(reply.text, "end that process, or choose another NPUSIM_NODE");
		actor_kill(&holder[i]);
		actor_kill(&joiner[i]);
	}
}

TEST(node_neighbours, names_that_do_not_listen_are_said)
{
	struct reply reply;
	int lock[3];

	begin("deaf");
	for (unsigned i = 0; i < 3; i++) {
		char tail[8] = "lock";

		if (i)
			snprintf(tail, sizeof(tail), "lock%u", i);
		lock[i] = bind_name(geteuid(), node.node, tail);
		EXPECT_GE(lock[i], 0);
	}
	reply = actor_do(&a, do_join, node);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, ": a process (`ss -xap` shows which) keeps others from");
	for (unsigned i = 0; i < 3; i++)
		close(lock[i]);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* ---- processes that are stopped ---- */

static void lock(const struct order *order, struct reply *reply)
{
	char *error = NULL;

	reply->value = !node_startup_lock(order->node, &error);
	free(error);
}

static void unlock(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	node_startup_unlock();
}

/* Tells it to join, and returns when it waits for the lock. */
static void join_later(struct actor *actor)
{
	unsigned before = sockets_of(node.node);

	actor_tell(actor, do_join, &node);
	for (unsigned i = 0; i < TRIES && sockets_of(node.node) == before; i++)
		usleep(1000);
}

TEST(node_neighbours, who_waits_and_is_stopped_keeps_nobody_out)
{
	struct actor c = actor_start();
	siginfo_t info;

	begin("stopped");
	EXPECT_EQ(actor_do(&c, lock, node).value, 0);
	join_later(&a);
	kill(a.pid, SIGSTOP);
	EXPECT_EQ(waitid(P_PID, (id_t)a.pid, &info, WSTOPPED), 0);
	join_later(&b);
	EXPECT_ACT(0, &c, unlock);
	EXPECT_STREQ(actor_hear(&b).text, "");
	kill(a.pid, SIGCONT);
	EXPECT_STREQ(actor_hear(&a).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = 2);
	EXPECT_FREE(FRAMES - 2, &b);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}

/* ---- namespaces ---- */

static void leave_network(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = unshare(CLONE_NEWNET);
}

TEST(node_neighbours, who_finds_nothing_hears_how_many_are_there)
{
	struct reply reply;
	uint32_t share;

	begin("split");
	if (ACT(&b, leave_network).value != 0)
		SKIP("no network namespace can be made here");
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = 5);
	EXPECT_FREE(FRAMES, &b);
	share = (uint32_t)ACT(&a, do_export).usage.total_frames;
	EXPECT_ACT(0, &a, do_open, .share = share);
	reply = ACT(&b, do_import, .share = share);
	EXPECT_EQ(reply.value, (int64_t)DRV_ERROR_INVALID_HANDLE);
	EXPECT_CONTAINS(reply.text, "1 member in this pid and network namespace (pid:[");
	EXPECT_CONTAINS(reply.text, "npusim-node(1)");
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}
