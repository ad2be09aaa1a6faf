/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes share: capacity, exported blocks, whitelists, named ranges; and what is left when
 * one of them ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/records.h"
#include "harness/test.h"
#include "node-actors.h"

#define NONE 0

static struct actor a, b, c;

static void begin(const char *test, unsigned count)
{
	struct order node = small_node(test, 256);
	struct actor *actors[] = { &a, &b, &c };

	for (unsigned i = 0; i < count; i++) {
		struct reply reply;

		*actors[i] = actor_start();
		reply = actor_do(actors[i], do_join, node);
		ASSERT_STREQ(reply.text, "");
	}
}

static void end(unsigned count)
{
	struct actor *actors[] = { &a, &b, &c };

	for (unsigned i = 0; i < count; i++)
		EXPECT_TRUE(actor_end(actors[i]));
}

static uint32_t exported(struct actor *actor, unsigned block)
{
	struct reply reply = ACT(actor, do_export, .block = block);

	EXPECT_EQ(reply.value, NONE);
	return (uint32_t)reply.usage.total_frames;
}

#define EXPECT_SAYS(code, part, ...)                      \
	do {                                              \
		struct reply reply_ = ACT(__VA_ARGS__);   \
		EXPECT_EQ(reply_.value, (int64_t)(code)); \
		EXPECT_CONTAINS(reply_.text, part);       \
	} while (0)

TEST(node_sharing, capacity_is_one_for_all)
{
	ASSERT_NO_FATAL(begin("capacity", 2));
	EXPECT_FREE(124, &a);
	EXPECT_ACT(NONE, &a, do_create, .frames = 100);
	EXPECT_FREE(24, &b);
	EXPECT_SAYS(DRV_ERROR_OUT_OF_MEMORY, "holds 209715200 (200 MiB)", &b, do_create,
		    .frames = 25);
	EXPECT_ACT(NONE, &b, do_create, .frames = 24);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(100, &b);
	EXPECT_EQ(ACT(&b, do_usage, .memory = 0).usage.own_frames, 24u);
	end(2);
}

TEST(node_sharing, what_others_keep_for_later_is_free)
{
	ASSERT_NO_FATAL(begin("caches", 2));
	for (unsigned i = 0; i < 8; i++)
		EXPECT_ACT(NONE, &a, do_create, .frames = 10, .block = i);
	for (unsigned i = 0; i < 8; i++)
		EXPECT_ACT(NONE, &a, do_drop, .block = i);
	EXPECT_ACT(NONE, &b, do_create, .frames = 124);
	EXPECT_ACT(DRV_ERROR_OUT_OF_MEMORY, &a, do_create, .frames = 10);
	EXPECT_ACT(NONE, &b, do_drop);
	EXPECT_ACT(NONE, &a, do_create, .frames = 10);
	EXPECT_ACT(NONE, &a, do_audit);
	end(2);
}

TEST(node_sharing, killed_process_gives_all_back)
{
	ASSERT_NO_FATAL(begin("killed", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 100);
	EXPECT_ACT(NONE, &a, do_write, .value = 9);
	EXPECT_ACT(NONE, &a, do_create, .frames = 24, .block = 1);
	EXPECT_ACT(NONE, &a, do_table, .block = 2);
	EXPECT_FREE(0, &b);
	actor_kill(&a);
	EXPECT_ACT(NONE, &b, do_create, .frames = 124);
	EXPECT_ACT(0, &b, do_read);
	EXPECT_ACT(NONE, &b, do_audit);
	end(0);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_sharing, import_sees_the_bytes_and_outlives_the_exporter)
{
	uint32_t share;

	ASSERT_NO_FATAL(begin("import", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 3);
	EXPECT_ACT(NONE, &a, do_write, .value = 71);
	share = exported(&a, 0);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_ACT(NONE, &b, do_import, .share = share);
	EXPECT_ACT(71, &b, do_read);
	EXPECT_ACT(NONE, &b, do_write, .value = 72);
	EXPECT_ACT(72, &a, do_read);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(121, &a);
	EXPECT_SAYS(DRV_ERROR_BUSY, "has freed the memory", &b, do_import, .share = share,
		    .block = 1);
	actor_kill(&a);
	EXPECT_SAYS(DRV_ERROR_BUSY, "or has ended", &b, do_import, .share = share, .block = 1);
	EXPECT_ACT(72, &b, do_read);
	EXPECT_FREE(121, &b);
	EXPECT_ACT(NONE, &b, do_drop);
	EXPECT_FREE(124, &b);
	EXPECT_SAYS(DRV_ERROR_INVALID_HANDLE, "no share", &b, do_import, .share = share);
	EXPECT_ACT(NONE, &b, do_create, .frames = 124);
	EXPECT_ACT(0, &b, do_read);
	EXPECT_ACT(NONE, &b, do_audit);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_sharing, imports_end_in_any_order)
{
	uint32_t share;

	ASSERT_NO_FATAL(begin("order", 3));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	share = exported(&a, 0);
	EXPECT_ACT(NONE, &a, do_open, .share = share);
	EXPECT_ACT(NONE, &b, do_import, .share = share, .block = 0);
	EXPECT_ACT(NONE, &b, do_import, .share = share, .block = 1);
	EXPECT_ACT(NONE, &c, do_import, .share = share, .block = 0);
	EXPECT_ACT(NONE, &b, do_drop, .block = 0);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(123, &c);
	EXPECT_ACT(NONE, &b, do_drop, .block = 1);
	EXPECT_FREE(123, &b);
	EXPECT_ACT(NONE, &c, do_drop);
	EXPECT_FREE(124, &b);
	EXPECT_ACT(NONE, &c, do_audit);
	end(3);
}

TEST(node_sharing, exporter_that_imports_keeps_the_block_but_not_the_export)
{
	uint32_t share;

	ASSERT_NO_FATAL(begin("own-import", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	share = exported(&a, 0);
	EXPECT_ACT(NONE, &a, do_open, .share = share);
	EXPECT_ACT(NONE, &a, do_import, .share = share, .block = 1);
	EXPECT_TRUE(ACT(&a, do_info, .share = share).info.exporter_is_me);
	EXPECT_ACT(NONE, &a, do_drop, .block = 0);
	EXPECT_ACT(DRV_ERROR_BUSY, &b, do_import, .share = share);
	EXPECT_FREE(123, &b);
	EXPECT_ACT(NONE, &a, do_drop, .block = 1);
	EXPECT_FREE(124, &b);
	end(2);
}

TEST(node_sharing, codes_of_the_whitelist)
{
	uint32_t share, open;

	ASSERT_NO_FATAL(begin("whitelist", 3));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	EXPECT_ACT(NONE, &a, do_create, .frames = 1, .block = 1);
	share = exported(&a, 0);
	open = exported(&a, 1);
	EXPECT_NE(share, open);
	EXPECT_SAYS(DRV_ERROR_PARA_ERROR, "exported already", &a, do_export, .block = 0);
	EXPECT_SAYS(DRV_ERROR_INVALID_HANDLE, "no share 12345", &b, do_import, .share = 12345);
	EXPECT_ACT(DRV_ERROR_INVALID_HANDLE, &a, do_allow, .share = 12345, .pid = b.pid);
	EXPECT_SAYS(DRV_ERROR_IOCRL_FAIL, "not on the whitelist", &b, do_import, .share = share);
	EXPECT_SAYS(DRV_ERROR_IOCRL_FAIL, "only process", &b, do_allow, .share = share,
		    .pid = b.pid);
	EXPECT_ACT(DRV_ERROR_IOCRL_FAIL, &b, do_open, .share = share);
	EXPECT_SAYS(DRV_ERROR_PARA_ERROR, "pids are 0", &a, do_allow, .share = share, .pid = 0);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_SAYS(DRV_ERROR_OPER_NOT_PERMITTED, "cannot be disabled", &a, do_open,
		    .share = share);
	EXPECT_ACT(NONE, &a, do_open, .share = open);
	EXPECT_SAYS(DRV_ERROR_OPER_NOT_PERMITTED, "disabled", &a, do_allow, .share = open,
		    .pid = b.pid);
	EXPECT_ACT(NONE, &b, do_import, .share = share);
	EXPECT_SAYS(DRV_ERROR_PARA_ERROR, "exported already", &b, do_export, .block = 0);
	EXPECT_ACT(DRV_ERROR_IOCRL_FAIL, &c, do_import, .share = share);
	EXPECT_ACT(NONE, &c, do_import, .share = open);
	EXPECT_ACT(NONE, &a, do_audit);
	end(3);
}

/* The pid is right and the process another: what the whitelist has is the start time of a process
 * of an earlier life. */
static void age_whitelist(const struct order *order, struct reply *reply);

TEST(node_sharing, used_again_pid_is_refused)
{
	uint32_t share;

	ASSERT_NO_FATAL(begin("reused-pid", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	share = exported(&a, 0);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_ACT(NONE, &a, age_whitelist, .share = share, .pid = b.pid);
	EXPECT_SAYS(DRV_ERROR_IOCRL_FAIL, "before this process started", &b, do_import,
		    .share = share);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_ACT(NONE, &b, do_import, .share = share);
	end(2);
}

TEST(node_sharing, pid_without_process_is_never_meant)
{
	uint32_t share;

	ASSERT_NO_FATAL(begin("no-process", 1));
	b = actor_start();
	actor_kill(&b);
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	share = exported(&a, 0);
	EXPECT_ACT(NONE, &a, do_allow, .share = share, .pid = b.pid);
	EXPECT_ACT(NONE, &a, do_audit);
	end(1);
}

TEST(node_sharing, ids_do_not_come_back_soon)
{
	uint32_t first, id = 0;

	ASSERT_NO_FATAL(begin("ids", 1));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	first = exported(&a, 0);
	for (unsigned i = 0; i < 5000; i++) {
		ACT(&a, do_drop);
		ACT(&a, do_create, .frames = 1);
		id = (uint32_t)ACT(&a, do_export).usage.total_frames;
		ASSERT_NE(id, first);
	}
	EXPECT_ACT(DRV_ERROR_INVALID_HANDLE, &a, do_info, .share = first);
	EXPECT_ACT(NONE, &a, do_info, .share = id);
	EXPECT_ACT(NONE, &a, do_audit);
	end(1);
}

static void export_all(const struct order *order, struct reply *reply)
{
	static struct node_block *blocks[60000];
	uint32_t share, n = (uint32_t)order->frames;

	(void)reply;
	for (uint32_t i = 0; i < n; i++) {
		reply->value +=
			node_block_create(actor_self.node, order->memory, 1, false, &blocks[i]);
		reply->value += node_share_export(actor_self.node, blocks[i], 0, &share);
		reply->value += node_share_allow(actor_self.node, share, NULL, 0,
						 (int[]){ 1, 2, getpid() }, 3);
	}
	for (uint32_t i = 0; i < n; i++)
		node_block_drop(actor_self.node, blocks[i]);
}

TEST(node_sharing, many_exports_at_once)
{
	struct order node = small_node("many", 40960);

	a = actor_start();
	ASSERT_EQ(actor_do(&a, do_join, node).value, NONE);
	EXPECT_ACT(NONE, &a, export_all, .frames = 20000);
	EXPECT_ACT(NONE, &a, export_all, .frames = 20000, .memory = 1);
	EXPECT_ACT(NONE, &a, do_audit);
	end(1);
}

/* ---- named ranges ---- */

TEST(node_sharing, named_ranges)
{
	struct reply reply;
	struct order order = { .frame = 1, .frames = 2, .device = 1 };

	ASSERT_NO_FATAL(begin("names", 3));
	EXPECT_ACT(NONE, &a, do_create, .frames = 4);
	EXPECT_ACT(NONE, &a, do_write, .value = 5);
	reply = actor_do(&a, do_name, order);
	ASSERT_EQ(reply.value, NONE);
	EXPECT_EQ(strlen(reply.text), 64u);
	memcpy(order.name, reply.text, sizeof(order.name));
	reply = actor_do(&b, do_name_info, order);
	EXPECT_EQ(reply.value, NONE);
	EXPECT_EQ(reply.info.offset, NODE_FRAME_BYTES);
	EXPECT_EQ(reply.info.bytes, 2 * NODE_FRAME_BYTES);
	EXPECT_EQ(reply.info.device, 1u);
	EXPECT_EQ(reply.info.exporter_pid, a.pid);
	EXPECT_FALSE(reply.info.exporter_is_me);
	EXPECT_EQ(actor_do(&b, do_name_import, order).value, DRV_ERROR_IOCRL_FAIL);
	order.pid = b.pid;
	EXPECT_EQ(actor_do(&b, do_name_allow, order).value, DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(actor_do(&a, do_name_allow, order).value, NONE);
	EXPECT_EQ(actor_do(&a, do_name_open, order).value, DRV_ERROR_OPER_NOT_PERMITTED);
	EXPECT_EQ(actor_do(&c, do_name_import, order).value, DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(actor_do(&b, do_name_import, order).value, NONE);
	EXPECT_ACT(5, &b, do_read);
	EXPECT_EQ(actor_do(&b, do_name_destroy, order).value, DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(actor_do(&a, do_name_destroy, order).value, NONE);
	EXPECT_EQ(actor_do(&a, do_name_destroy, order).value, DRV_ERROR_PARA_ERROR);
	EXPECT_EQ(actor_do(&b, do_name_info, order).value, DRV_ERROR_PARA_ERROR);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(120, &b);
	EXPECT_ACT(5, &b, do_read);
	EXPECT_ACT(NONE, &b, do_audit);
	end(3);
}

TEST(node_sharing, names_end_with_the_memory_or_the_process)
{
	struct order order = { .frames = 1 }, other;
	struct reply reply;

	ASSERT_NO_FATAL(begin("names-end", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	reply = actor_do(&a, do_name, order);
	memcpy(order.name, reply.text, sizeof(order.name));
	other = order;
	reply = actor_do(&a, do_name, other);
	memcpy(other.name, reply.text, sizeof(other.name));
	EXPECT_STRNE(order.name, other.name);
	EXPECT_EQ(actor_do(&a, do_name_open, order).value, NONE);
	other.pid = b.pid;
	EXPECT_EQ(actor_do(&a, do_name_allow, other).value, NONE);
	EXPECT_EQ(actor_do(&b, do_name_import, order).value, NONE);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_EQ(actor_do(&b, do_name_import, order).value, DRV_ERROR_BUSY);
	actor_kill(&a);
	reply = actor_do(&b, do_name_import, order);
	EXPECT_EQ(reply.value, DRV_ERROR_PARA_ERROR);
	EXPECT_CONTAINS(reply.text, "has no name");
	snprintf(other.name, sizeof(other.name), "no name at all");
	EXPECT_EQ(actor_do(&b, do_name_info, other).value, DRV_ERROR_PARA_ERROR);
	EXPECT_ACT(NONE, &b, do_drop);
	EXPECT_FREE(124, &b);
	EXPECT_ACT(NONE, &b, do_audit);
	EXPECT_TRUE(actor_end(&b));
}

/* ---- servers that were stopped ---- */

static void do_allow_server_1(const struct order *order, struct reply *reply)
{
	reply->value = node_share_allow(actor_self.node, 0, order->name, 1, &order->pid, 1);
}

static void do_stop_server_1(const struct order *order, struct reply *reply)
{
	char *error = NULL;

	reply->value = !node_stop_server(order->node, 1, &error);
	snprintf(reply->text, sizeof(reply->text), "%s", error ? error : "");
	free(error);
}

static void do_scan(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	node_scan(actor_self.node);
}

static void count_names(const struct order *order, struct reply *reply)
{
	const struct node *node = actor_self.node;

	(void)order;
	reply->value = node_enter(actor_self.node) == DRV_ERROR_NONE ? 0 : -1;
	for (uint32_t i = 0; i < node->control->share_limit; i++)
		reply->value += node->shares[i].named;
	node_unlock(actor_self.node);
}

static void count_lost_members(const struct order *order, struct reply *reply)
{
	(void)order;
	for (unsigned slot = 0; slot < actor_self.node->control->member_limit; slot++)
		reply->value += actor_self.node->control->members[slot].state == MEMBER_LOST;
}

/* Its names go at once; what it imported, after the exporter has dropped it and a scan, and with
 * that the place in the table: what it had of its own server keeps none. */
TEST(node_sharing, stopped_server_leaves_nothing_after_a_scan)
{
	struct order node = small_node("stopped", 256), name = { .frames = 1 };
	struct reply reply;

	a = actor_start();
	b = actor_start();
	c = actor_start();
	node.config.servers = 2;
	ASSERT_STREQ(actor_do(&a, do_join, node).text, "");
	node.config.server = 1;
	ASSERT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_ACT(NONE, &a, do_create, .frames = 1);
	reply = actor_do(&a, do_name, name);
	memcpy(name.name, reply.text, sizeof(name.name));
	name.pid = b.pid;
	EXPECT_EQ(actor_do(&a, do_allow_server_1, name).value, NONE);
	EXPECT_EQ(actor_do(&b, do_name_import, name).value, NONE);
	EXPECT_ACT(NONE, &b, do_create, .block = 1, .frames = 1);
	EXPECT_ACT(NONE, &b, do_name, .block = 1, .frames = 1);
	EXPECT_ACT(2, &a, count_names);
	EXPECT_STREQ(actor_do(&c, do_stop_server_1, node).text, "");
	actor_wait(&b);
	EXPECT_ACT(1, &a, count_names);
	EXPECT_ACT(NONE, &a, do_scan);
	EXPECT_ACT(1, &a, count_lost_members); /* the exporter holds the memory */
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(123, &a);
	EXPECT_ACT(NONE, &a, do_scan);
	EXPECT_FREE(124, &a);
	EXPECT_ACT(0, &a, count_lost_members);
	EXPECT_ACT(NONE, &a, do_audit);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&c));
}

/* ---- descriptors ------------------------------------------------------------------------------
 */

static void leave_to_child(const struct order *order, struct reply *reply)
{
	pid_t pid = fork();

	(void)order;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	reply->value = pid;
}

static void close_control(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	if (dup2(STDERR_FILENO, actor_self.node->file.fd) < 0)
		abort();
}

TEST(node_sharing, descriptor_keeps_the_memory)
{
	pid_t child;

	ASSERT_NO_FATAL(begin("fd", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 5);
	EXPECT_ACT(NONE, &a, do_write, .value = 17);
	EXPECT_ACT(NONE, &a, do_fd_export);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(119, &b);
	EXPECT_ACT(NONE, &a, do_fd_import);
	EXPECT_ACT(17, &a, do_read);
	EXPECT_ACT(NONE, &b, do_audit);
	child = (pid_t)ACT(&a, leave_to_child).value;
	actor_kill(&a);
	EXPECT_FREE(119, &b); /* a child of the dead one still has it */
	EXPECT_ACT(NONE, &b, do_audit);
	kill(child, SIGKILL);
	for (unsigned i = 0; i < 1000 && kill(child, 0) == 0; i++)
		usleep(1000); /* it is not our child: init buries it */
	EXPECT_FREE(124, &b);
	EXPECT_ACT(NONE, &b, do_create, .frames = 124);
	EXPECT_ACT(0, &b, do_read);
	EXPECT_ACT(NONE, &b, do_audit);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_sharing, descriptor_is_not_lost_with_the_control_descriptor)
{
	ASSERT_NO_FATAL(begin("fd-control", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 5);
	EXPECT_ACT(NONE, &a, do_fd_export);
	EXPECT_ACT(NONE, &a, close_control);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(119, &a);
	EXPECT_FREE(119, &b);
	EXPECT_ACT(NONE, &a, do_fd_close);
	EXPECT_FREE(124, &b);
	end(2);
}

/* ---- fork, exec, exit ---- */

enum { SEEN, UNSEEN }; /* by pthread_atfork()'s handlers */

static void fork_and_call(const struct order *order, struct reply *reply)
{
	struct node_block *block;
	int status, pipe_fds[2];
	pid_t pid;

	if (pipe(pipe_fds))
		abort();
	pid = order->value == UNSEEN ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (pid == 0) {
		drvError_t error = node_block_create(actor_self.node, 0, 1, false, &block);
		bool good = error == DRV_ERROR_PROCESS_EXIT && node_is_forked(actor_self.node);

		node_block_drop(actor_self.node, NULL);
		node_leave(actor_self.node);
		good = good && write(pipe_fds[1], npu_message(), strlen(npu_message())) > 0;
		_exit(good ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	close(pipe_fds[1]);
	reply->value = status;
	if (read(pipe_fds[0], reply->text, sizeof(reply->text) - 1) < 0)
		reply->value = -1;
	close(pipe_fds[0]);
}

TEST(node_sharing, forked_child_gets_an_error_and_the_parent_goes_on)
{
	ASSERT_NO_FATAL(begin("fork", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 2);
	EXPECT_ACT(NONE, &a, do_write, .value = 3);
	EXPECT_SAYS(0, "do not survive a fork", &a, fork_and_call);
	EXPECT_SAYS(0, "do not survive a fork", &a, fork_and_call, .value = UNSEEN);
	EXPECT_ACT(3, &a, do_read);
	EXPECT_FREE(122, &b);
	EXPECT_ACT(NONE, &a, do_drop);
	EXPECT_FREE(124, &b);
	end(2);
}

TEST(node_sharing, children_of_an_earlier_membership_are_not_in_the_way)
{
	struct order node = small_node("children", 256);
	pid_t children[3];

	ASSERT_NO_FATAL(begin("children", 1));
	for (unsigned i = 0; i < 3; i++) {
		children[i] = (pid_t)ACT(&a, leave_to_child).value;
		EXPECT_ACT(NONE, &a, do_leave);
		EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	}
	for (unsigned i = 0; i < 3; i++)
		kill(children[i], SIGKILL);
	end(1);
}

static void become_another_program(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	execl("/bin/bash", "bash", "-c",
	      "for i in {3..60}; do eval \"exec $i</dev/null\"; done; exec sleep 60", NULL);
	abort();
}

TEST(node_sharing, exec_ends_the_membership)
{
	struct order nothing = { .block = 0 };

	ASSERT_NO_FATAL(begin("exec", 2));
	EXPECT_ACT(NONE, &a, do_create, .frames = 50);
	EXPECT_ACT(NONE, &a, do_write, .value = 3);
	actor_tell(&a, become_another_program, &nothing);
	EXPECT_EQ(actor_hear(&a).value, ACTOR_DIED); /* its end of the channel closes at exec */
	usleep(100000);                              /* until it has files under all numbers */
	EXPECT_FREE(124, &b);
	EXPECT_ACT(NONE, &b, do_audit);
	EXPECT_EQ(kill(a.pid, 0), 0);
	actor_kill(&a);
	EXPECT_TRUE(actor_end(&b));
}

TEST(node_sharing, leaving_and_joining_again)
{
	struct order node = small_node("again", 256);
	uint32_t share;

	ASSERT_NO_FATAL(begin("again", 2));
	for (unsigned i = 0; i < 300; i++) { /* more often than there are places */
		ASSERT_EQ(ACT(&a, do_create, .frames = 3).value, NONE);
		ASSERT_EQ(ACT(&a, do_write, .value = 3).value, NONE);
		ASSERT_EQ(ACT(&a, do_leave).value, NONE);
		ASSERT_EQ(actor_do(&a, do_join, node).value, NONE);
	}
	EXPECT_FREE(124, &b);
	EXPECT_ACT(NONE, &b, do_create, .frames = 124);
	EXPECT_ACT(0, &b, do_read);
	share = exported(&b, 0);
	EXPECT_ACT(NONE, &b, do_allow, .share = share, .pid = a.pid);
	EXPECT_ACT(NONE, &a, do_import, .share = share);
	EXPECT_ACT(NONE, &b, do_audit);
	end(2);
}

static void age_whitelist(const struct order *order, struct reply *reply)
{
	(void)reply;
	for (uint32_t i = 0; i < 4 * actor_self.node->control->share_limit; i++)
		if (actor_self.node->allows[i].pid == order->pid)
			actor_self.node->allows[i].start_time--;
}
