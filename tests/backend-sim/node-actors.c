/* SPDX-License-Identifier: Apache-2.0
 *
 * The children behind node-actors.h: a loop that reads an order, carries it out and replies.
 */
#include "node-actors.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define ACTOR_WAIT_MS 60000

#ifdef __SANITIZE_THREAD__
/* Else each process that ends with a thread alive sleeps for a second first. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=0";
}
#endif

struct actor_state actor_self;

struct packet {
	order_fn order;
	struct order what;
};

static bool read_all(int fd, void *out, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(fd, (char *)out + at, bytes - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static void act(int fd)
{
	struct packet packet;

	while (read_all(fd, &packet, sizeof(packet))) {
		struct reply reply = { .value = 0 };

		packet.order(&packet.what, &reply);
		if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
			break;
	}
	_exit(0);
}

struct actor actor_start(void)
{
	struct actor actor;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	actor.fd = pair[0];
	actor.pid = fork();
	if (actor.pid < 0)
		abort();
	if (actor.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		act(pair[1]);
	}
	close(pair[1]);
	return actor;
}

int actor_wait(struct actor *actor)
{
	int status = 0;
	void *list;
	size_t bytes;

	while (waitpid(actor->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	close(actor->fd);
	actor->fd = -1;
	/* Under qemu-user the kernel tells nobody: members look for the dead every 5 ms. */
	if (syscall(SYS_get_robust_list, 0, &list, &bytes) != 0)
		usleep(20000);
	return status;
}

bool actor_end(struct actor *actor)
{
	if (actor->fd < 0)
		return true;
	shutdown(actor->fd, SHUT_WR);
	return actor_wait(actor) == 0;
}

void actor_kill(struct actor *actor)
{
	kill(actor->pid, SIGKILL);
	actor_wait(actor);
}

void actor_tell(struct actor *actor, order_fn order, const struct order *what)
{
	struct packet packet = { .order = order, .what = *what };

	if (send(actor->fd, &packet, sizeof(packet), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		abort();
}

struct reply actor_hear(struct actor *actor)
{
	struct pollfd ready = { .fd = actor->fd, .events = POLLIN };
	struct reply reply;

	if (poll(&ready, 1, ACTOR_WAIT_MS) == 0)
		reply = (struct reply){ .value = ACTOR_SILENT, .text = "no answer: it is blocked" };
	else if (!read_all(actor->fd, &reply, sizeof(reply)))
		reply = (struct reply){ .value = ACTOR_DIED };
	return reply;
}

struct reply actor_do(struct actor *actor, order_fn order, struct order what)
{
	actor_tell(actor, order, &what);
	return actor_hear(actor);
}

struct order small_node(const char *test, unsigned hbm_mib)
{
	struct order order = { .block = 0 };

	snprintf(order.node, sizeof(order.node), "test-%d-%s", getpid(), test);
	snprintf(order.config.soc_name, sizeof(order.config.soc_name), "Ascend910B1");
	order.config.devices = 2;
	order.config.hbm_bytes = (uint64_t)hbm_mib << 20;
	order.config.host_bytes = UINT64_C(128) << 20;
	return order;
}

/* ---- orders ---- */

static void say(struct reply *reply, drvError_t error)
{
	reply->value = error;
	if (error != DRV_ERROR_NONE)
		snprintf(reply->text, sizeof(reply->text), "%s", npu_message());
}

void do_join(const struct order *order, struct reply *reply)
{
	char *error;

	memcpy(actor_self.name, order->node, sizeof(actor_self.name));
	actor_self.config = order->config;
	actor_self.config.name = actor_self.name;
	if (node_join(&actor_self.config, &actor_self.node, &error))
		return;
	reply->value = 1;
	snprintf(reply->text, sizeof(reply->text), "%s", error);
	free(error);
}

void do_leave(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	for (unsigned i = 0; i < ACTOR_BLOCKS; i++) {
		free(actor_self.blocks[i]);
		actor_self.blocks[i] = NULL;
	}
	node_leave(actor_self.node);
	actor_self.node = NULL;
}

void do_create(const struct order *order, struct reply *reply)
{
	say(reply, node_block_create(actor_self.node, order->memory, order->frames, order->giant,
				     &actor_self.blocks[order->block]));
}

void do_table(const struct order *order, struct reply *reply)
{
	say(reply,
	    node_table_frame(actor_self.node, order->memory, &actor_self.blocks[order->block]));
}

void do_drop(const struct order *order, struct reply *reply)
{
	(void)reply;
	node_block_drop(actor_self.node, actor_self.blocks[order->block]);
	actor_self.blocks[order->block] = NULL;
}

static uint64_t *place(const struct node_block *block, unsigned extent, bool end)
{
	const struct node_extent *e = &block->extents[extent];
	uint64_t at = e->frame * NODE_FRAME_BYTES +
		      (end ? e->count * NODE_FRAME_BYTES - sizeof(uint64_t) : 0);

	return (uint64_t *)(node_memory(actor_self.node)->base[block->memory] + at);
}

void do_write(const struct order *order, struct reply *reply)
{
	const struct node_block *block = actor_self.blocks[order->block];

	(void)reply;
	node_block_touch(actor_self.node, block);
	for (unsigned i = 0; i < block->extent_count; i++) {
		*place(block, i, false) = order->value;
		*place(block, i, true) = order->value;
	}
}

void do_read(const struct order *order, struct reply *reply)
{
	const struct node_block *block = actor_self.blocks[order->block];

	reply->value = (int64_t)*place(block, 0, false);
	for (unsigned i = 0; i < block->extent_count; i++)
		if ((int64_t)*place(block, i, false) != reply->value ||
		    (int64_t)*place(block, i, true) != reply->value)
			reply->value = -1;
}

void do_usage(const struct order *order, struct reply *reply)
{
	node_usage(actor_self.node, order->memory, &reply->usage);
}

void do_pages(const struct order *order, struct reply *reply)
{
	uint64_t offset = 0;
	int fd = node_memory_fd(actor_self.node, 0, &offset);
	off_t at = (off_t)offset, end = at + (off_t)node_memory(actor_self.node)->bytes[0], stop;

	(void)order;
	for (; (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end; at = stop) {
		stop = lseek(fd, at, SEEK_HOLE);
		reply->value += (stop - at) / getpagesize();
	}
}

void do_export(const struct order *order, struct reply *reply)
{
	uint32_t id = 0;

	say(reply, node_share_export(actor_self.node, actor_self.blocks[order->block],
				     order->device, &id));
	reply->usage.total_frames = id;
}

void do_allow(const struct order *order, struct reply *reply)
{
	say(reply, node_share_allow(actor_self.node, order->share, NULL, 0, &order->pid, 1));
}

void do_open(const struct order *order, struct reply *reply)
{
	say(reply, node_share_set_open(actor_self.node, order->share, NULL));
}

void do_info(const struct order *order, struct reply *reply)
{
	say(reply, node_share_info(actor_self.node, order->share, NULL, &reply->info));
}

void do_import(const struct order *order, struct reply *reply)
{
	say(reply,
	    node_share_import(actor_self.node, order->share, 0, &actor_self.blocks[order->block]));
}

void do_name(const struct order *order, struct reply *reply)
{
	say(reply, node_name_create(actor_self.node, actor_self.blocks[order->block],
				    order->frame * NODE_FRAME_BYTES,
				    order->frames * NODE_FRAME_BYTES, order->device, reply->text));
}

void do_name_destroy(const struct order *order, struct reply *reply)
{
	say(reply, node_name_destroy(actor_self.node, order->name));
}

void do_name_allow(const struct order *order, struct reply *reply)
{
	say(reply, node_share_allow(actor_self.node, 0, order->name, 0, &order->pid, 1));
}

void do_name_open(const struct order *order, struct reply *reply)
{
	say(reply, node_share_set_open(actor_self.node, 0, order->name));
}

void do_name_info(const struct order *order, struct reply *reply)
{
	say(reply, node_share_info(actor_self.node, 0, order->name, &reply->info));
}

void do_name_import(const struct order *order, struct reply *reply)
{
	say(reply, node_name_import(actor_self.node, order->name, &reply->info,
				    &actor_self.blocks[order->block]));
}

void do_fd_export(const struct order *order, struct reply *reply)
{
	say(reply,
	    node_fd_export(actor_self.node, actor_self.blocks[order->block], &actor_self.fd));
}

void do_fd_import(const struct order *order, struct reply *reply)
{
	say(reply,
	    node_fd_import(actor_self.node, actor_self.fd, &actor_self.blocks[order->block]));
}

void do_fd_close(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = close(actor_self.fd);
}

void do_audit(const struct order *order, struct reply *reply)
{
	char *wrong = node_audit(actor_self.node);

	(void)order;
	reply->value = wrong != NULL;
	snprintf(reply->text, sizeof(reply->text), "%s", wrong ? wrong : "");
	free(wrong);
}
