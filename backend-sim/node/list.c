/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports on this user's nodes, and ending one. To look, a process joins as a visitor, which others
 * do not see; to end a node it needs nothing but what the kernel lists.
 */
#include "node-private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TERM_WAIT_MS 2000
#define KILL_WAIT_MS 5000

/* ---- listing ---- */

struct listing {
	struct node_info *info;
	int entry[NODE_MEMBERS]; /* of info->members, -1: not listed */
};

static void list_block(struct node *node, uint32_t id, void *arg)
{
	struct listing *listing = arg;
	struct block_place place = block_at(node, id);
	const struct share_record *share =
		place.record->share ? &node->shares[place.record->share - 1] : NULL;

	if (place.frame >= place.memory->usable)
		return;
	for (unsigned slot = 0; slot < NODE_MEMBERS; slot++) {
		struct node_member_info *member;

		if (listing->entry[slot] < 0 || !block_is_held_by(place.record, slot))
			continue;
		member = &listing->info->members[listing->entry[slot]];
		member->frames[place.memory->index] += place.record->frames;
		member->blocks++;
		member->shares +=
			share && share->exporter == slot &&
			share->exporter_generation == node->control->members[slot].generation;
	}
}

/* Lock held. */
static void list_members(struct node *node, struct listing *listing)
{
	struct node_info *info = listing->info;

	info->members = node_alloc(NODE_MEMBERS * sizeof(*info->members));
	for (unsigned slot = 0; slot < NODE_MEMBERS; slot++) {
		const struct member *member = &node->control->members[slot];
		struct node_member_info *out = &info->members[info->member_count];

		listing->entry[slot] = -1;
		if (member_is_dead(node, slot) || member->visitor)
			continue;
		listing->entry[slot] = (int)info->member_count++;
		out->pid = member->pid;
		out->start_time = member->start_time;
		memcpy(out->command, member->command, sizeof(out->command));
	}
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i])
			block_for_each(node, node->memory[i], list_block, listing);
}

/* What the kernel lists, where the node cannot be joined: another version of npusim runs it. */
static void list_strangers(const char *name, struct node_info *out)
{
	char file[NODE_FILE_NAME];
	unsigned count;
	struct candidate *candidates;

	if (!node_discover(name, &candidates, &count))
		return;
	node_control_name(name, file);
	out->members = node_alloc((count + 1) * sizeof(*out->members));
	for (unsigned i = 0; i < count; i++) {
		struct node_member_info *member = &out->members[out->member_count];
		int fd = node_open_descriptor(candidates[i].pid, candidates[i].fd, file);

		if (fd < 0)
			continue;
		close(fd);
		member->pid = candidates[i].pid;
		member->start_time = process_start_time(member->pid);
		process_command(member->pid, member->command, sizeof(member->command));
		out->member_count++;
	}
	free(candidates);
}

static void list_joined(struct node *node, struct node_info *out)
{
	struct listing listing = { .info = out };

	out->shape = *node_shape(node);
	out->shape.name = NULL; /* out->name: this structure may move */
	if (node_enter(node) == DRV_ERROR_NONE) {
		pockets_empty(node);
		list_members(node, &listing);
		node_unlock(node);
	}
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i])
			node_usage(node, i, &out->usage[i]);
}

/* False: nobody runs the node any more. */
static bool list_node(const char *name, struct node_info *out)
{
	char *error = NULL;
	struct node *node;
	bool gone;

	*out = (struct node_info){ .member_count = 0 };
	snprintf(out->name, sizeof(out->name), "%s", name);
	node = node_attach(name, &gone, &error);
	if (node) {
		list_joined(node, out);
		node_leave(node);
	} else if (!gone) {
		list_strangers(name, out);
	}
	free(error);
	if (out->member_count)
		return true;
	free(out->members);
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct candidate *)a)->name, ((const struct candidate *)b)->name);
}

bool node_list(struct node_info **out, unsigned *out_count, char **error)
{
	unsigned count, nodes = 0;
	struct candidate *candidates;
	struct node_info *list;

	*error = NULL;
	if (!node_discover(NULL, &candidates, &count)) {
		*error = node_text("cannot find out which nodes run: %s", strerror(errno));
		return false;
	}
	list = node_alloc((count + 1) * sizeof(*list));
	if (count)
		qsort(candidates, count, sizeof(*candidates), compare_names);
	for (unsigned i = 0; i < count; i++)
		if ((i == 0 || strcmp(candidates[i].name, candidates[i - 1].name)) &&
		    list_node(candidates[i].name, &list[nodes]))
			nodes++;
	free(candidates);
	*out = list;
	*out_count = nodes;
	return true;
}

void node_list_free(struct node_info *list, unsigned count)
{
	for (unsigned i = 0; list && i < count; i++)
		free(list[i].members);
	free(list);
}

/* ---- ending ---- */

struct victim {
	pid_t pid;
	uint64_t start_time;
	int fd; /* pidfd, or -1 where the kernel has none */
};

static bool victim_is_gone(const struct victim *victim)
{
	struct process_stat stat;

	if (!process_stat(victim->pid, 0, &stat))
		return !process_is_same(victim->pid, victim->start_time);
	return stat.start_time != victim->start_time ||
	       ((stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1);
}

static void send_signal(const struct victim *victim, int number)
{
	if (victim_is_gone(victim))
		return;
	if (victim->fd >= 0)
		syscall(SYS_pidfd_send_signal, victim->fd, number, NULL, 0);
	else
		kill(victim->pid, number);
}

/* The processes that really have what their socket names; a pidfd first, so that it is of what is
 * looked at afterwards, or of nobody. */
static unsigned find_victims(const char *name, struct victim **out, char **error)
{
	unsigned count = 0, victims = 0;
	char file[NODE_FILE_NAME];
	struct candidate *candidates = NULL;
	struct victim *list;

	if (!node_discover(name, &candidates, &count))
		*error = node_text("cannot find out who runs node %s: %s", name, strerror(errno));
	node_control_name(name, file);
	list = node_alloc((count + 1) * sizeof(*list));
	for (unsigned i = 0; i < count; i++) {
		struct victim victim = { .pid = candidates[i].pid };
		int fd;

		victim.fd = (int)syscall(SYS_pidfd_open, victim.pid, 0);
		victim.start_time = process_start_time(victim.pid);
		fd = node_open_descriptor(candidates[i].pid, candidates[i].fd, file);
		if (fd >= 0) {
			close(fd);
			list[victims++] = victim;
		} else if (victim.fd >= 0) {
			close(victim.fd);
		}
	}
	free(candidates);
	*out = list;
	return victims;
}

static unsigned signal_all(const struct victim *victims, unsigned count, int number,
			   unsigned wait_ms)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	unsigned left = count;

	for (unsigned i = 0; i < count; i++)
		send_signal(&victims[i], number);
	for (unsigned waited = 0; left && waited < wait_ms; waited += 2) {
		nanosleep(&pause, NULL);
		left = 0;
		for (unsigned i = 0; i < count; i++)
			left += !victim_is_gone(&victims[i]);
	}
	return left;
}

bool node_reset(const char *name, char **error)
{
	struct victim *victims;
	unsigned count, left = 0;

	*error = NULL;
	count = find_victims(name, &victims, error);
	if (count == 0 && !*error)
		*error = node_text("no process of this user runs a node of the name %s; `npusim "
				   "node` lists those that run",
				   name);
	for (unsigned i = 0; i < count && !*error; i++)
		if (victims[i].pid == getpid())
			*error = node_text("node %s: this very process runs it", name);
	if (!*error) {
		left = signal_all(victims, count, SIGTERM, TERM_WAIT_MS);
		if (left)
			left = signal_all(victims, count, SIGKILL, KILL_WAIT_MS);
		if (left)
			*error = node_text(
				"node %s: %u of its %u processes do not end, not even by SIGKILL",
				name, left, count);
	}
	for (unsigned i = 0; i < count; i++)
		if (victims[i].fd >= 0)
			close(victims[i].fd);
	free(victims);
	return !*error;
}
