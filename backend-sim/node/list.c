/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and ends this user's nodes, for `npusim node`. To look, a process joins as a visitor that
 * others do not see; to end a node it needs only what the kernel lists.
 */
#include "records.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_WAIT_MS 3000
#define TERM_WAIT_MS   2000
#define KILL_WAIT_MS   5000
#define LOOK_MS        20

/* The processes that really have what their sockets name. Of struct candidate; NULL and *error. */
static GArray *find_runners(const char *name, char **error)
{
	GArray *runners = node_discover(name);

	if (!runners)
		*error = g_strdup_printf("cannot find out who runs node %s: %s", name,
					 strerror(errno));
	for (unsigned i = runners ? runners->len : 0; i-- > 0;) {
		struct candidate *runner = &g_array_index(runners, struct candidate, i);
		int fd;

		/* First, so that it is of what is looked at afterwards, or of nobody. */
		runner->start_time = process_start_time(runner->pid);
		fd = process_open(runner->pid, runner->fd, name);
		if (fd < 0)
			g_array_remove_index(runners, i);
		else
			close(fd);
	}
	return runners;
}

/* ---- listing ---- */

struct listing {
	struct node_info *info;
	unsigned slots;          /* of members: what is shared may be written over at any time */
	int entry[NODE_MEMBERS]; /* of info->members, -1: not listed */
	int fd[NODE_MEMBERS];    /* of info->members: of its node's file */
};

/* Adds a block that was exported to what a holder has. */
static void list_share(const struct node *node, const struct block_place *place,
		       const struct share_record *share, unsigned slot,
		       struct node_member_info *member)
{
	unsigned exporter = share->exporter;
	bool there = exporter < NODE_MEMBERS &&
		     share->exporter_generation == node->control->members[exporter].generation;

	if (there && exporter == slot && !share->exporter_gone) {
		member->exported++;
		return;
	}
	member->imported++;
	if (there && !share->exporter_gone && block_is_held_by(place, exporter))
		return;
	member->kept_pid = member->kept_frames == 0 || member->kept_pid == share->exporter_pid
				   ? share->exporter_pid
				   : 0;
	member->kept_frames += place->record->frames;
}

static void list_block(const struct node *node, const struct block_place *place,
		       const struct listing *listing)
{
	if (place->frame >= place->memory->usable)
		return;
	for (unsigned slot = 0; slot < listing->slots; slot++) {
		uint32_t share = GET(place->record->share);
		struct node_member_info *member;

		if (listing->entry[slot] < 0 || !block_is_held_by(place, slot))
			continue;
		member = &listing->info->members[listing->entry[slot]];
		if (place->memory->server == member->server)
			member->frames[place->memory->number] += place->record->frames;
		else
			member->remote_frames += place->record->frames;
		member->blocks++;
		if (share > 0 && share <= NODE_SHARES)
			list_share(node, place, &node->shares[share - 1], slot, member);
	}
}

/* Lock held. */
static void list_members(struct node *node, struct listing *listing)
{
	struct node_info *info = listing->info;
	struct block_place place;
	uint32_t id = NODE_NONE;

	info->members = g_new0(struct node_member_info, NODE_MEMBERS);
	listing->slots = MIN(GET(node->control->member_limit), NODE_MEMBERS);
	for (unsigned slot = 0; slot < listing->slots; slot++) {
		const struct member *member = &node->control->members[slot];
		struct node_member_info *out = &info->members[info->member_count];

		listing->entry[slot] = -1;
		if (member_is_dead(node, slot) || member->visitor)
			continue;
		listing->entry[slot] = (int)info->member_count++;
		listing->fd[listing->entry[slot]] = member->fd;
		out->pid = member->pid;
		out->start_time = member->start_time;
		out->server = member->server;
		memcpy(out->command, member->command, sizeof(out->command) - 1);
	}
	while (block_next(node, &id, &place))
		list_block(node, &place, listing);
}

/* All are asked at once, and then heard. */
static void ask_members(const char *name, struct listing *listing)
{
	struct node_member_info *members = listing->info->members;
	int64_t until = clock_ms() + ANSWER_WAIT_MS;

	for (unsigned i = 0; i < listing->info->member_count; i++) {
		listing->fd[i] = node_socket(name, members[i].pid, listing->fd[i], true);
		members[i].gone = listing->fd[i] < 0 && errno == ECONNREFUSED;
	}
	for (unsigned i = 0; i < listing->info->member_count; i++)
		if (listing->fd[i] >= 0)
			members[i].holds = node_hear(listing->fd[i], until);
}

/* Where the node cannot be joined. */
static void list_strangers(const char *name, struct node_info *out)
{
	g_autofree char *error = NULL;
	g_autoptr(GArray) runners = find_runners(name, &error);

	out->members = g_new0(struct node_member_info, runners ? runners->len : 0);
	for (unsigned i = 0; runners && i < runners->len; i++) {
		struct node_member_info *member = &out->members[out->member_count++];

		member->pid = g_array_index(runners, struct candidate, i).pid;
		member->start_time = g_array_index(runners, struct candidate, i).start_time;
		process_command(member->pid, member->command, sizeof(member->command));
	}
}

static void list_joined(struct node *node, bool ask, struct node_info *out)
{
	struct listing listing = { .info = out };

	out->shape = node->shape;
	out->lost = GET(node->control->lost);
	out->shape.name = NULL; /* out->name: this structure may move */
	if (node_enter(node) == DRV_ERROR_NONE) {
		frame_caches_empty(node);
		list_members(node, &listing);
		node_unlock(node);
		if (ask)
			ask_members(node->name, &listing);
	}
	for (unsigned i = 0; i < out->shape.servers * SIM_NODE_MAX; i++)
		if (node->memories[i].state)
			node_usage(node, node->memories[i].index,
				   &out->usage[i / SIM_NODE_MAX][i % SIM_NODE_MAX]);
}

/* False: nobody runs the node any more. */
static bool list_node(const char *name, bool ask, struct node_info *out)
{
	g_autofree char *error = NULL;
	struct node *node;

	*out = (struct node_info){ .shape.servers = 1 };
	out->usage = g_malloc0_n(SIM_SERVERS, sizeof(*out->usage));
	snprintf(out->name, sizeof(out->name), "%s", name);
	node = node_attach(name, &error);
	if (node) {
		list_joined(node, ask, out);
		node_leave(node);
	} else if (error) {
		list_strangers(name, out);
		snprintf(out->refused, sizeof(out->refused), "%s", error);
	}
	if (out->member_count)
		return true;
	free(out->members);
	g_free(out->usage);
	return false;
}

bool node_list(const char *only, struct node_info **out, unsigned *out_count, char **error)
{
	g_autoptr(GArray) candidates = node_discover(only);
	const struct candidate *all;
	unsigned nodes = 0;

	*error = NULL;
	if (!candidates)
		return node_refuse(error, "cannot find out which nodes run: %s", strerror(errno));
	g_array_sort(candidates, (GCompareFunc)strcmp); /* the name is the first member */
	all = (const struct candidate *)(void *)candidates->data;
	*out = g_new0(struct node_info, candidates->len + 1);
	for (unsigned i = 0; i < candidates->len; i++)
		if ((i == 0 || strcmp(all[i].name, all[i - 1].name) != 0) &&
		    list_node(all[i].name, only == NULL, &(*out)[nodes]))
			nodes++;
	*out_count = nodes;
	return true;
}

void node_list_free(struct node_info *list, unsigned count)
{
	for (unsigned i = 0; list && i < count; i++) {
		for (unsigned m = 0; m < list[i].member_count; m++)
			g_free(list[i].members[m].holds);
		free(list[i].members);
		g_free(list[i].usage);
	}
	free(list);
}

/* ---- ending ---- */

static bool has_ended(const struct candidate *runner)
{
	struct process_stat stat;

	return !process_is_same(runner->pid, runner->start_time) ||
	       (process_stat(runner->pid, 0, &stat) && (stat.state == 'Z' || stat.state == 'X') &&
		stat.threads <= 1);
}

/* Returns how many have not ended after that time. */
static unsigned signal_all(const GArray *runners, int number, int wait_ms)
{
	const struct candidate *all = (const struct candidate *)(void *)runners->data;
	const int64_t end = clock_ms() + wait_ms;
	unsigned left = 0;

	for (unsigned i = 0; i < runners->len; i++)
		if (!has_ended(&all[i]))
			kill(all[i].pid, number);
	for (unsigned i = 0; i < runners->len; i++) {
		while (!has_ended(&all[i]) && clock_ms() < end)
			process_wait(all[i].pid, LOOK_MS);
		left += !has_ended(&all[i]);
	}
	return left;
}

/* SIGTERM, then SIGKILL. False and *error: some do not end. */
static bool end_runners(const char *name, const GArray *runners, char **error)
{
	unsigned left;

	for (unsigned i = 0; i < runners->len; i++)
		if (g_array_index(runners, struct candidate, i).pid == getpid())
			return node_refuse(error, "node %s: this very process runs it", name);
	left = signal_all(runners, SIGTERM, TERM_WAIT_MS);
	if (left)
		left = signal_all(runners, SIGKILL, KILL_WAIT_MS);
	return !left ||
	       node_refuse(error, "node %s: %u of its %s cannot be ended, not even by SIGKILL",
			   name, left, npu_counted(runners->len, "process"));
}

bool node_reset(const char *name, char **error)
{
	g_autoptr(GArray) victims = find_runners(name, error);

	if (victims && victims->len)
		return end_runners(name, victims, error);
	return victims && node_refuse(error,
				      "no process of this user runs a node of the name %s; "
				      "`npusim node` lists those that run",
				      name);
}

/* From here on nobody joins the server, and others do not reach it. */
static bool mark_lost(struct node *node, unsigned server, char **error)
{
	const uint64_t bit = UINT64_C(1) << server;

	if (node->shape.servers == 1 || server >= node->shape.servers)
		return node_refuse(error, "node %s has no server %u to stop: it is %s", node->name,
				   server,
				   node->shape.servers == 1
					   ? "no supernode (end it with `npusim node --reset`)"
					   : npu_text("a supernode of servers 0 to %u",
						      node->shape.servers - 1));
	if (GET(node->control->lost) & bit)
		return node_refuse(error, "server %u of supernode %s was stopped already", server,
				   node->name);
	if (node_enter(node) != DRV_ERROR_NONE)
		return node_refuse(error, "%s", npu_message());
	PUT(node->control->lost, node->control->lost | bit);
	node_unlock(node);
	return true;
}

bool node_stop_server(const char *name, unsigned server, char **error)
{
	g_autoptr(GArray) victims = NULL;
	struct node *node = node_attach(name, error);

	if (!node)
		return !*error &&
		       node_refuse(error, "no process of this user runs supernode %s", name);
	if (mark_lost(node, server, error))
		victims = find_runners(name, error);
	for (unsigned i = victims ? victims->len : 0; i-- > 0;)
		if (!server_has(node, server, g_array_index(victims, struct candidate, i).pid))
			g_array_remove_index(victims, i);
	node_leave(node);
	return victims && end_runners(name, victims, error);
}
