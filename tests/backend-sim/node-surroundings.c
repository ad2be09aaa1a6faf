/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs do without meaning the node: they run out of descriptors and close those of others,
 * fork, become another program, cancel threads, end their main thread. None of it may cost another
 * process anything, and none of it may be taken for what it is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/records.h"
#include "harness/test.h"
#include "node-actors.h"

#define FRAMES 124 /* usable ones of a device of 256 MiB */

static struct order node;
static struct actor a, b;

static void begin(const char *test)
{
	node = small_node(test, 256);
	a = actor_start();
	b = actor_start();
	ASSERT_STREQ(actor_do(&a, do_join, node).text, "");
	ASSERT_STREQ(actor_do(&b, do_join, node).text, "");
}

/* ---- descriptors ---- */

/* From now on no file can be opened. */
static void exhaust_descriptors(const struct order *order, struct reply *reply)
{
	struct rlimit limit;

	(void)order;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 0;
	reply->value = setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(node_surroundings, no_descriptor_left_is_nobodys_death)
{
	ASSERT_NO_FATAL(begin("exhausted"));
	EXPECT_ACT(0, &b, do_create, .frames = 100);
	EXPECT_ACT(0, &b, do_write, .value = 7);
	EXPECT_ACT(0, &a, exhaust_descriptors);
	EXPECT_ACT(DRV_ERROR_OUT_OF_MEMORY, &a, do_create, .frames = 100);
	EXPECT_ACT(0, &a, do_create, .frames = 20, .block = 1);
	EXPECT_FREE(4, &a);
	EXPECT_FREE(4, &b);
	EXPECT_ACT(7, &b, do_read);
	EXPECT_ACT(0, &b, do_audit);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_FREE(24, &b);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_surroundings, no_descriptor_left_hides_no_death)
{
	ASSERT_NO_FATAL(begin("exhausted-death"));
	EXPECT_ACT(0, &b, do_create, .frames = 100);
	EXPECT_ACT(0, &a, exhaust_descriptors);
	actor_kill(&b);
	EXPECT_FREE(FRAMES, &a);
	EXPECT_TRUE(actor_end(&a));
}

TEST(node_surroundings, whitelist_that_cannot_be_checked_is_refused)
{
	struct reply reply;
	uint32_t share;

	ASSERT_NO_FATAL(begin("exhausted-allow"));
	EXPECT_ACT(0, &a, do_create, .frames = 1);
	share = (uint32_t)ACT(&a, do_export).usage.total_frames;
	EXPECT_ACT(0, &a, exhaust_descriptors);
	reply = ACT(&a, do_allow, .share = share, .pid = b.pid);
	EXPECT_EQ(reply.value, (int64_t)DRV_ERROR_NO_RESOURCES);
	EXPECT_CONTAINS(reply.text, "Too many open files");
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* What becomes of the next look at the list of sockets. */
static enum { LIST_IS_READ, LIST_FAILS, LIST_MISSES } next_list;

/* The list without members, and longer than one read of it. */
static int without_members(int list)
{
	FILE *in = fdopen(list, "r");
	int out = memfd_create("list", MFD_CLOEXEC);
	char line[512];

	while (fgets(line, sizeof(line), in))
		if (!strstr(line, "@npusim/"))
			dprintf(out, "%s", line);
	for (unsigned i = 0; i < 4096; i++)
		dprintf(out, "0: 00000002 00000000 00000000 0002 01 0 @another-%u\n", i);
	fclose(in);
	lseek(out, 0, SEEK_SET);
	return out;
}

int open(const char *path, int flags, ...)
{
	int what = LIST_IS_READ, fd;
	va_list args;

	if (!strcmp(path, "/proc/self/net/unix")) {
		what = next_list;
		next_list = LIST_IS_READ;
	}
	va_start(args, flags);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, va_arg(args, int));
	va_end(args);
	if (what == LIST_FAILS && fd >= 0) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	return what == LIST_MISSES ? without_members(fd) : fd;
}

static void join_unseeing(const struct order *order, struct reply *reply)
{
	next_list = LIST_FAILS;
	do_join(order, reply);
}

static void join_overlooking(const struct order *order, struct reply *reply)
{
	next_list = LIST_MISSES;
	do_join(order, reply);
}

TEST(node_surroundings, who_cannot_look_for_the_node_makes_no_second_one)
{
	struct actor c;
	struct reply reply;

	ASSERT_NO_FATAL(begin("unseen"));
	c = actor_start();
	reply = actor_do(&c, join_unseeing, node);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, "Too many open files");
	EXPECT_STREQ(actor_do(&c, do_join, node).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = 3);
	EXPECT_FREE(FRAMES - 3, &c);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}

/* While sockets come and go, the kernel's list may leave out one that is there all the time. */
TEST(node_surroundings, who_overlooks_the_node_looks_again)
{
	struct actor c;

	ASSERT_NO_FATAL(begin("overlooked"));
	c = actor_start();
	EXPECT_STREQ(actor_do(&c, join_overlooking, node).text, "");
	EXPECT_ACT(0, &a, do_create, .frames = 3);
	EXPECT_FREE(FRAMES - 3, &c);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}

/* As a program that becomes a daemon: all are closed, and others come under their numbers. */
static void replace_descriptors(const struct order *order, struct reply *reply)
{
	int null = open("/dev/null", O_RDWR);
	char path[64], link[64];

	(void)order;
	for (int fd = 3; fd < 256; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, link, sizeof(link) - 1);
		link[length < 0 ? 0 : length] = '\0';
		if (strncmp(link, "/memfd:npusim", 13) && fd != actor_self.node->socket_file.fd)
			continue;
		if (dup2(null, fd) != fd)
			abort();
		reply->value++;
	}
	close(null);
}

static void count_null(const struct order *order, struct reply *reply)
{
	struct stat null, file;

	(void)order;
	stat("/dev/null", &null);
	for (int fd = 3; fd < 256; fd++)
		reply->value += fstat(fd, &file) == 0 && file.st_rdev == null.st_rdev;
}

TEST(node_surroundings, leaving_closes_nothing_of_the_programs)
{
	int64_t count;

	ASSERT_NO_FATAL(begin("replaced"));
	EXPECT_ACT(2, &a, replace_descriptors); /* the node's file, the socket */
	count = ACT(&a, count_null).value;
	EXPECT_ACT(0, &a, do_leave);
	EXPECT_ACT(count, &a, count_null);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

static void put_fifo_under_control(const struct order *order, struct reply *reply)
{
	char path[64];

	(void)order;
	snprintf(path, sizeof(path), "/tmp/node-fifo-%d", getpid());
	if (mkfifo(path, 0600) != 0)
		abort();
	reply->value = dup2(open(path, O_RDWR), actor_self.node->file.fd) < 0;
	unlink(path);
}

TEST(node_surroundings, export_of_a_foreign_descriptor_is_refused)
{
	struct reply reply;

	ASSERT_NO_FATAL(begin("fifo"));
	EXPECT_ACT(0, &a, do_create, .frames = 4);
	EXPECT_ACT(0, &a, put_fifo_under_control);
	reply = ACT(&a, do_fd_export);
	EXPECT_EQ(reply.value, (int64_t)DRV_ERROR_FILE_OPS);
	EXPECT_CONTAINS(reply.text, "has closed");
	EXPECT_ACT(0, &a, do_drop);
	EXPECT_FREE(FRAMES, &b);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* ---- names of nodes ---- */

/* What is left where a process of a node forked a child, died, and its number was given to a
 * process of another node. */
static void announce_for_another(const struct order *order, struct reply *reply)
{
	reply->value = node_socket(order->node, order->pid, (int)order->value, false) < 0;
}

TEST(node_surroundings, member_is_listed_once_however_many_ask)
{
	int name = node_socket("asked", getpid(), 3, false), askers[3];
	g_autoptr(GArray) found = NULL;

	ASSERT_GE(name, 0);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_GE(askers[i] = node_socket("asked", getpid(), 3, true), 0);
	found = node_discover("asked");
	ASSERT_NOT_NULL(found);
	EXPECT_EQ(found->len, 1u);
	for (unsigned i = 0; i < 3; i++)
		close(askers[i]);
	close(name);
}

static void get_control_fd(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = actor_self.node->file.fd;
}

TEST(node_surroundings, stale_name_leads_to_no_other_node)
{
	struct order other = small_node("stale", 64);
	struct actor child, c;
	char *error = NULL;

	ASSERT_NO_FATAL(begin("stale-other"));
	child = actor_start();
	c = actor_start();
	other.pid = a.pid;
	other.value = (uint64_t)ACT(&a, get_control_fd).value;
	EXPECT_EQ(actor_do(&child, announce_for_another, other).value, 0);
	EXPECT_FALSE(node_reset(other.node, &error));
	EXPECT_CONTAINS(error, "no process of this user");
	free(error);
	EXPECT_STREQ(actor_do(&c, do_join, other).text, "");
	EXPECT_FREE(28, &c);
	EXPECT_FREE(FRAMES, &a);
	EXPECT_TRUE(actor_end(&c));
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&child));
}

/* ---- what a member holds ---- */

static char of[] = "of";

static char *say_pid(void *arg)
{
	return g_strdup_printf("%s %d", (const char *)arg, (int)getpid());
}

static void answer_questions(const struct order *order, struct reply *reply)
{
	(void)order;
	node_on_question(actor_self.node, say_pid, of);
	reply->value = actor_self.node->file.fd;
}

/* What a member answers within `ms`, and whether it is gone; g_free(). */
static char *asked(const struct actor *actor, int fd, int ms, bool *gone)
{
	int socket = node_socket(node.node, actor->pid, fd, true);

	*gone = socket < 0 && errno == ECONNREFUSED;
	return socket < 0 ? NULL : node_hear(socket, clock_ms() + ms);
}

TEST(node_surroundings, member_says_what_it_holds)
{
	g_autofree char *first = NULL, *more = NULL, *none = NULL, *text = NULL;
	bool gone;
	int fd;

	ASSERT_NO_FATAL(begin("asked"));
	fd = (int)ACT(&a, answer_questions).value;
	text = g_strdup_printf("of %d", (int)a.pid);
	first = asked(&a, fd, 20000, &gone);
	EXPECT_STREQ(first, text);
	more = asked(&b, (int)ACT(&b, get_control_fd).value, 20000, &gone);
	EXPECT_STREQ(more, ""); /* it has no answer, and holds nothing */
	kill(a.pid, SIGSTOP);
	while (!process_is_stopped(a.pid))
		usleep(1000);
	none = asked(&a, fd, 50, &gone);
	EXPECT_TRUE(none == NULL && !gone);
	kill(a.pid, SIGCONT);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(asked(&a, fd, 50, &gone) == NULL && gone);
	EXPECT_TRUE(actor_end(&b));
}

/* ---- fork ---- */

static bool join_as_child(const struct order *order)
{
	struct reply reply = { .value = 0 };

	do_join(order, &reply);
	return reply.value == 0;
}

/* Where the parent had its memories, the child has its own; a node that it joins stays away. */
static int be_child(const struct order *order, const struct sim_memory *before)
{
	unsigned char *mine[3];
	const unsigned memories[] = { 0, 1, SIM_NODE_HOST };

	for (unsigned i = 0; i < 3; i++) {
		mine[i] = mmap(before->base[memories[i]], 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (mine[i] != before->base[memories[i]])
			return 1;
		memset(mine[i], 0x55, 4096);
	}
	if (!join_as_child(order))
		return 2;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned at = 0; at < 4096; at++)
			if (mine[i][at] != 0x55)
				return 3;
	return 0;
}

static void leave_and_fork(const struct order *order, struct reply *reply)
{
	struct sim_memory before = *node_memory(actor_self.node);
	int status;
	pid_t pid;

	do_leave(order, reply);
	pid = fork();
	if (pid == 0)
		_exit(be_child(order, &before));
	waitpid(pid, &status, 0);
	reply->value = status;
}

TEST(node_surroundings, child_of_a_former_member_joins_beside_its_own_memory)
{
	ASSERT_NO_FATAL(begin("heir"));
	EXPECT_EQ(actor_do(&a, leave_and_fork, node).value, 0);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

static void *fork_a_child(void *forking)
{
	pid_t pid;

	sem_post(forking);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return (void *)(intptr_t)pid;
}

static void fork_while_joining(const struct order *order, struct reply *reply)
{
	char *error = NULL;
	bool locked = node_startup_lock(order->node, &error);
	pthread_t forker;
	sem_t forking;
	void *pid;

	sem_init(&forking, 0, 0);
	if (!locked || pthread_create(&forker, NULL, fork_a_child, &forking) != 0)
		abort();
	sem_wait(&forking);
	usleep(20000);
	node_startup_unlock();
	pthread_join(forker, &pid);
	reply->value = (intptr_t)pid;
}

TEST(node_surroundings, child_of_a_newcomer_keeps_nobody_out)
{
	pid_t child;

	ASSERT_NO_FATAL(begin("newcomer"));
	child = (pid_t)actor_do(&a, fork_while_joining, node).value;
	ACT(&b, do_leave);
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	kill(child, SIGKILL);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* ---- exec ---- */

static int joined[2]; /* a pipe: the next program has joined */

/* What an actor becomes: a program that joins the same node, and stays. Its descriptors come under
 * the same numbers, as they mostly do. */
__attribute__((constructor)) static void be_the_next_program(void)
{
	const char *name = getenv("NODE_TEST_BECOME"), *fd = getenv("NODE_TEST_FD"),
		   *tell = getenv("NODE_TEST_TELL");
	struct order order = small_node("", 256);
	struct reply reply = { .value = 0 };

	if (!name || !fd || !tell)
		return;
	while (open("/dev/null", O_RDWR) < atoi(fd) - 4) /* the start-up lock takes three, too */
		continue;
	snprintf(order.node, sizeof(order.node), "%s", name);
	order.frames = 7;
	do_join(&order, &reply);
	if (reply.value == 0 && actor_self.node->file.fd == atoi(fd))
		do_create(&order, &reply);
	if (actor_self.blocks[0] && write(atoi(tell), "", 1) == 1)
		pause();
	_exit(1);
}

static void become_the_next_program(const struct order *order, struct reply *reply)
{
	char fd[16], tell[16];

	(void)reply;
	snprintf(tell, sizeof(tell), "%d", joined[1]);
	setenv("NODE_TEST_TELL", tell, 1);
	snprintf(fd, sizeof(fd), "%d", actor_self.node->file.fd);
	setenv("NODE_TEST_FD", fd, 1);
	setenv("NODE_TEST_BECOME", order->node, 1);
	execl("/proc/self/exe", "next", NULL);
	abort();
}

static void lock_and_become(const struct order *order, struct reply *reply)
{
	if (node_enter(actor_self.node) == DRV_ERROR_NONE)
		become_the_next_program(order, reply);
}

struct exec_case {
	const char *label;
	order_fn become;
};
static const struct exec_case exec_cases[] = {
	{ "between calls", become_the_next_program },
	{ "with the lock", lock_and_become },
};
TEST_EACH(node_surroundings, program_that_execs_a_member_is_a_new_one, exec_cases, label)
{
	const struct exec_case *c = param;
	struct pollfd ready = { .events = POLLIN };

	ASSERT_EQ(pipe(joined), 0);
	ready.fd = joined[0];
	ASSERT_NO_FATAL(begin("become"));
	EXPECT_ACT(0, &a, do_create, .frames = 50);
	EXPECT_ACT(0, &a, do_write, .value = 3);
	actor_tell(&a, c->become, &node);
	EXPECT_EQ(actor_hear(&a).value, ACTOR_DIED); /* its end of the channel closes at exec */
	EXPECT_EQ(poll(&ready, 1, 20000), 1);        /* nobody else has called since */
	close(joined[0]);
	close(joined[1]);
	EXPECT_FREE(FRAMES - 7, &b);
	EXPECT_ACT(0, &b, do_audit);
	actor_kill(&a);
	EXPECT_TRUE(actor_end(&b));
}

static void become_a_program_with_our_files(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	fcntl(actor_self.node->file.fd, F_SETFD, 0);
	execl("/bin/sleep", "sleep", "60", NULL);
	abort();
}

static void create_and_drop(const struct order *order, struct reply *reply)
{
	for (unsigned i = 0; i < order->value && reply->value == 0; i++) {
		do_create(order, reply);
		do_drop(order, reply);
	}
}

/* The kernel says that a member ended, and its process cannot be told from one that ends just now:
 * what it had is not given away, and the others go on. */
TEST(node_surroundings, death_that_is_not_sure_stops_nobody)
{
	ASSERT_NO_FATAL(begin("unsure"));
	EXPECT_ACT(0, &a, do_create, .frames = 50);
	actor_tell(&a, become_a_program_with_our_files, &node);
	EXPECT_EQ(actor_hear(&a).value, ACTOR_DIED);
	EXPECT_ACT(0, &b, create_and_drop, .frames = 5, .value = 4000);
	EXPECT_FREE(FRAMES - 50, &b);
	actor_kill(&a);
	EXPECT_FREE(FRAMES, &b);
	EXPECT_TRUE(actor_end(&b));
}

/* ---- threads ---- */

static void *ask_for_too_much(void *arg)
{
	struct node_block *block;

	(void)arg;
	for (;;)
		node_block_create(actor_self.node, 0, FRAMES + 1, false, &block);
	return NULL;
}

static void cancel_a_caller(const struct order *order, struct reply *reply)
{
	pthread_t thread;
	void *result;

	(void)order;
	if (pthread_create(&thread, NULL, ask_for_too_much, NULL) || pthread_cancel(thread))
		abort();
	pthread_join(thread, &result);
	reply->value = result != PTHREAD_CANCELED;
}

TEST(node_surroundings, cancelled_thread_lets_the_lock_go)
{
	ASSERT_NO_FATAL(begin("cancel"));
	EXPECT_ACT(0, &a, cancel_a_caller);
	actor_tell(&b, do_usage, &node);
	EXPECT_EQ(actor_hear(&b).usage.free_frames, (uint64_t)FRAMES);
	EXPECT_ACT(0, &a, do_audit);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void end_main_thread(const struct order *order, struct reply *reply)
{
	pthread_t thread;

	(void)order;
	(void)reply;
	signal(SIGTERM, SIG_IGN);
	if (pthread_create(&thread, NULL, stay, NULL))
		abort();
	syscall(SYS_exit, 0);
}

TEST(node_surroundings, process_without_its_main_thread_is_a_member)
{
	struct process_stat stat = { .state = '?' };
	char *error = NULL;

	ASSERT_NO_FATAL(begin("headless"));
	EXPECT_ACT(0, &a, do_create, .frames = 50);
	EXPECT_TRUE(actor_end(&b));
	actor_tell(&a, end_main_thread, &node);
	for (unsigned i = 0; i < 1000 && stat.state != 'Z'; i++, usleep(1000))
		ASSERT_TRUE(process_stat(a.pid, 0, &stat));
	b = actor_start();
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_FREE(FRAMES - 50, &b);
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(node_reset(node.node, &error));
	EXPECT_NULL(error);
	EXPECT_EQ(WTERMSIG(actor_wait(&a)), SIGKILL);
}

/* ---- users ---- */

static void become_ordinary(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = geteuid() == 0 &&
		       (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
			prctl(PR_SET_DUMPABLE, 1)); /* as after exec */
}

/* Takes the kernel long to give back. */
static void fill_memory(const struct order *order, struct reply *reply)
{
	size_t bytes = (size_t)256 << 20;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)order;
	if (memory == MAP_FAILED)
		abort();
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	memset(memory, 1, bytes);
	reply->value = memory[bytes - 1] != 1;
}

TEST(node_surroundings, ordinary_user_joins_while_a_member_is_torn_down)
{
	struct order order = small_node("teardown", 64);

	for (unsigned round = 0; round < 5; round++) {
		a = actor_start();
		b = actor_start();
		EXPECT_ACT(0, &a, become_ordinary);
		EXPECT_ACT(0, &b, become_ordinary);
		EXPECT_STREQ(actor_do(&a, do_join, order).text, "");
		EXPECT_ACT(0, &a, fill_memory);
		kill(a.pid, SIGKILL);
		usleep(1000 * round);
		EXPECT_STREQ(actor_do(&b, do_join, order).text, "");
		EXPECT_FREE(28, &b);
		EXPECT_TRUE(actor_end(&b));
		actor_wait(&a);
	}
}

/* ---- memory ---- */

static void lock_memory(const struct order *order, struct reply *reply)
{
	const struct node_block *block = actor_self.blocks[order->block];

	reply->value = mlock(node_memory(actor_self.node)->base[0] +
				     block->extents[0].frame * NODE_FRAME_BYTES,
			     block->frames * NODE_FRAME_BYTES);
}

TEST(node_surroundings, locked_memory_goes_back_to_the_host)
{
	ASSERT_NO_FATAL(begin("mlock"));
	EXPECT_ACT(0, &a, do_create, .frames = 8);
	if (ACT(&a, lock_memory).value != 0)
		SKIP("memory cannot be locked here (ulimit -l)");
	EXPECT_ACT(0, &a, do_write, .value = 1);
	EXPECT_GE(ACT(&a, do_pages).value, 1);
	EXPECT_ACT(0, &a, do_drop);
	EXPECT_ACT(0, &b, do_pages);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

static void lock_all_to_come(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value =
		mlockall(MCL_FUTURE) != 0 ||
		mmap(NULL, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

TEST(node_surroundings, untouched_memory_costs_nothing_where_all_is_locked)
{
	struct actor c;

	ASSERT_NO_FATAL(begin("mlockall"));
	c = actor_start();
	if (ACT(&c, lock_all_to_come).value != 0)
		SKIP("this much memory cannot be locked here (ulimit -l)");
	EXPECT_STREQ(actor_do(&c, do_join, node).text, "");
	EXPECT_ACT(0, &c, do_pages);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}
