/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins and leaves a node: creates its memfd or opens that of a member, maps what this process
 * needs of it, and enters the process in the member table.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the node's file ---- */

static bool map_memory(struct node *node, struct memory *m, char **error)
{
	m->base = file_map(node->name, node->file.fd, m->file_offset, file_bytes(m), error);
	if (!m->base)
		return false;
	node->sim_memory.base[m->index] = m->base;
	node->sim_memory.bytes[m->index] = m->bytes;
	return true;
}

/* Where the program has closed it, it is opened through another member. False and a message. */
static bool have_file(struct node *node)
{
	if (own_file_is_open(&node->file))
		return true;
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		const struct member *member = &node->control->members[slot];
		struct own_file file = { .fd = -1 };

		if (slot != node->slot && !member_is_dead(node, slot))
			file = own_file(process_open(member->pid, member->fd, node->name));
		if (own_file_is(&file, node->control->head.device, node->control->head.inode)) {
			node->file = file;
			PUT(node->control->members[node->slot].fd, file.fd);
			return true;
		}
		own_file_close(&file);
	}
	npu_message_set("node %s: this program has closed descriptors that npusim had opened, and "
			"no other process of the node has them any more",
			node->name);
	return false;
}

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

bool memory_open(struct node *node, struct memory *m)
{
	g_autofree char *error = NULL;
	LOCKED(&open_lock);

	if (!m->base && have_file(node) && !map_memory(node, m, &error))
		npu_message_set("%s", error);
	return m->base;
}

int node_memory_fd(struct node *node, unsigned memory, uint64_t *out_offset)
{
	const struct memory *m = memory < SIM_MEMORY_MAX ? node->memory[memory] : NULL;

	if (!m || node_is_forked(node))
		return -1;
	LOCKED(&open_lock);
	if (!have_file(node))
		return -1;
	*out_offset = m->file_offset;
	return node->file.fd;
}

/* ---- this process's side ---- */

static struct node *node_new(const char *name)
{
	struct node *node = g_new0(struct node, 1);
	long page = sysconf(_SC_PAGESIZE);
	uint32_t *mark = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	snprintf(node->name, sizeof(node->name), "%s", name);
	node->pid = getpid();
	node->file.fd = node->socket_file.fd = -1;
	if (mark != MAP_FAILED && madvise(mark, (size_t)page, MADV_WIPEONFORK) == 0) {
		node->fork_mark = mark;
		*node->fork_mark = 1;
	} else if (mark != MAP_FAILED) {
		munmap(mark, (size_t)page);
	}
	return node;
}

static void node_free(struct node *node)
{
	frame_cache_end(node);
	for (unsigned i = 0; i < SIM_MEMORY_MAX; i++) {
		const struct memory *m = node->memory[i];

		if (m && m->base)
			munmap(m->base, file_bytes(m));
	}
	g_free(node->memories);
	if (node->views)
		munmap(node->views, node->id_count * sizeof(*node->views));
	if (node->control)
		munmap(node->control, node->control_bytes);
	own_file_close(&node->file);
	own_file_close(&node->socket_file);
	if (node->fork_mark)
		munmap(node->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
	free(node);
}

/* ---- making a node ---- */

static void write_header(struct node *node)
{
	struct node_header *head = &node->control->head;

	head->version = NODE_VERSION;
	head->file_bytes = node->file_bytes;
	head->device = node->file.device;
	head->inode = node->file.inode;
	head->shape = node->shape;
	head->shape.name = NULL;
	node_rebuild(node);
	PUT(head->magic, NODE_MAGIC);
}

static bool map_control(struct node *node, char **error)
{
	void *views;

	layout_set(node);
	node->control = file_map("the node's control segment", node->file.fd, 0,
				 node->control_bytes, error);
	if (!node->control)
		return false;
	layout_set(node);
	views = mmap(NULL, node->id_count * sizeof(*node->views), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (views == MAP_FAILED)
		return node_refuse(error, "node %s: no memory for its table of blocks: %s",
				   node->name, strerror(errno));
	node->views = views;
	return true;
}

static bool node_make(struct node *node, const struct node_config *config, char **error)
{
	g_autofree char *name = g_strconcat(NODE_FILE, node->name, NULL);

	node->shape = *config;
	layout_set(node);
	node->file = own_file(file_make(name, node->file_bytes, error));
	if (node->file.fd < 0 || !map_control(node, error))
		return false;
	write_header(node);
	return true;
}

/* ---- joining one that runs ---- */

/* Whoever has written to the segment: what is followed from there leads into its tables, and comes
 * to an end. The lock is not needed: a block that changes meanwhile is passed over. */
static bool tables_are_sound(const struct node *node)
{
	const struct control *control = node->control;
	uint32_t shares = GET(control->share_limit), id = NODE_NONE;
	uint32_t generation, count, share;
	bool sound = GET(control->member_limit) <= NODE_MEMBERS && shares <= NODE_SHARES;
	struct block_place place;

	while (sound && block_next(node, &id, &place)) {
		const struct memory *m = place.memory;
		uint32_t left = m->frames, first = place.frame;

		generation = GET(place.record->generation);
		for (; first < m->frames; first = GET(m->extents[first].next), left -= count) {
			count = GET(m->extents[first].count);
			if (count == 0 || count > MIN(left, m->frames - first))
				break;
		}
		share = GET(place.record->share); /* before its limit, which grows first */
		sound = (first == NODE_NONE && share <= GET(control->share_limit)) ||
			!block_find(node, id, generation, &place);
	}
	return sound;
}

/* Maps and checks the control segment. False: it is gone, or cannot be used (*error). A sealed file
 * cannot shrink under the mapping. */
static bool read_control(struct node *node, pid_t pid, char **error)
{
	const unsigned server = node->shape.server;
	const int fd = node->file.fd, seals = fcntl(fd, F_GET_SEALS);
	struct node_header head;
	struct stat file;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return false;
	if (head.magic == NODE_MAGIC && head.version != NODE_VERSION)
		return node_refuse(
			error,
			"node %s is run by another version of npusim (process %d); end it "
			"with `npusim node --reset %s`, or choose another NPUSIM_NODE",
			node->name, pid, node->name);
	node->shape = head.shape;
	node->shape.name = node->name;
	node->shape.server = NODE_NONE;
	node->shape.soc_name[sizeof(head.shape.soc_name) - 1] = '\0';
	if (server != NODE_NONE && server >= head.shape.servers)
		return node_refuse(
			error,
			"supernode %s has servers 0 to %u, and this process is to belong "
			"to server %u (NPUSIM_SERVER)",
			node->name, head.shape.servers - 1, server);
	if (head.magic == NODE_MAGIC && config_check(&node->shape, error) &&
	    (node->shape.server = head.shape.servers == 1 ? 0 : server, fstat(fd, &file)) == 0 &&
	    (layout_set(node), node->file_bytes) == head.file_bytes &&
	    (uint64_t)file.st_size == head.file_bytes &&
	    own_file_is(&node->file, head.device, head.inode)) {
		if (!map_control(node, error))
			return false;
		if (tables_are_sound(node))
			return true;
	}
	free(*error);
	return node_refuse(error,
			   "node %s: the control segment of process %d is damaged; end it with "
			   "`npusim node --reset %s`",
			   node->name, pid, node->name);
}

static bool anyone_lives(struct node *node)
{
	for (unsigned slot = 0; slot < node->control->member_limit; slot++) {
		if (member_is_dead(node, slot) || GET(node->control->members[slot].left))
			continue;
		member_check(node, slot);
		if (!member_is_dead(node, slot))
			return true;
	}
	return false;
}

static bool attach_through(struct node *node, const struct candidate *candidate, char **error)
{
	node->file = own_file(process_open(candidate->pid, candidate->fd, node->name));
	if (node->file.fd < 0) {
		int cause = errno;

		/* Any user may bind any name. */
		if (cause == ENOENT || cause == ESRCH || process_user(candidate->pid) != geteuid())
			return false;
		return node_refuse(
			error,
			"node %s: process %d runs it, and its descriptors cannot be opened: %s",
			node->name, candidate->pid, strerror(cause));
	}
	return read_control(node, candidate->pid, error) && anyone_lives(node);
}

/* A node that runs, joined as that server (a single one has no number). NULL: none (no *error), or
 * none that may be used (*error: why the first was refused). Without the start-up lock the answer
 * may be old at once, and joining corrects it. */
static struct node *find_running(const char *name, unsigned server, char **error)
{
	g_autoptr(GArray) candidates = node_discover(name);

	if (!candidates)
		*error = g_strdup_printf("node %s: cannot find out whether it runs: %s", name,
					 strerror(errno));
	for (unsigned i = 0; candidates && i < candidates->len; i++) {
		struct node *node = node_new(name);
		char *refused = NULL;

		node->shape.server = server;
		if (attach_through(node, &g_array_index(candidates, struct candidate, i),
				   &refused)) {
			g_clear_pointer(error, free);
			return node;
		}
		node_free(node);
		if (*error)
			free(refused);
		else
			*error = refused;
	}
	return NULL;
}

/* ---- joining ---- */

static bool check_shape(const struct node *node, const struct node_config *asked, char **error)
{
	const struct node_config *shape = &node->shape;
	const struct member *first = NULL;

	if (node->control->lost >> shape->server & 1)
		return node_refuse(error,
				   "server %u of supernode %s was stopped (`npusim node --stop`), "
				   "and does not come back while the supernode runs; end that with "
				   "`npusim node --reset %s`",
				   shape->server, node->name, node->name);
	if ((asked->servers > 1) != (shape->servers > 1))
		return node_refuse(error,
				   "node %s runs as %s, and %s is asked for: choose another %s, or "
				   "end it with `npusim node --reset %s`",
				   node->name, shape->servers > 1 ? "a supernode" : "one server",
				   asked->servers > 1 ? "a supernode" : "one server",
				   asked->servers > 1 ? "NPUSIM_SUPERNODE" : "NPUSIM_NODE",
				   node->name);
	if (!asked->explicit_shape ||
	    (!strcmp(asked->soc_name, shape->soc_name) && asked->devices == shape->devices &&
	     asked->servers == shape->servers && asked->hbm_bytes == shape->hbm_bytes &&
	     asked->host_bytes == shape->host_bytes))
		return true;
	for (unsigned slot = 0; slot < node->control->member_limit && !first; slot++)
		if (!member_is_dead(node, slot))
			first = &node->control->members[slot];
	return node_refuse(
		error,
		"node %s runs with %s of %s, %s of HBM each, %s of host memory "
		"(process %d, %s), and %s of %s, %s each, %s of host memory, "
		"are asked for; ask for the same, choose another NPUSIM_NODE, or end the node with "
		"`npusim node --reset %s`",
		node->name, npu_counted(shape->devices, "device"), shape->soc_name,
		npu_size_text(shape->hbm_bytes), npu_size_text(shape->host_bytes),
		first ? first->pid : 0, first ? first->command : "?",
		npu_counted(asked->devices, "device"), asked->soc_name,
		npu_size_text(asked->hbm_bytes), npu_size_text(asked->host_bytes), node->name);
}

/* A child forked in an earlier membership may have its socket, and the name of its descriptor. */
static bool announce(struct node *node)
{
	for (unsigned tries = 0; tries < 64; tries++) {
		int fd = node_socket(node->name, node->pid, node->file.fd, false);

		node->socket_file = own_file(fd);
		if (fd >= 0 || errno != EADDRINUSE)
			break;
		fd = fcntl(node->file.fd, F_DUPFD_CLOEXEC, node->file.fd + 1);
		if (fd < 0)
			break;
		close(node->file.fd);
		node->file.fd = fd;
	}
	return node->socket_file.fd >= 0;
}

static bool become_member(struct node *node, bool visitor, char **error)
{
	struct process_stat self = { .start_time = 0 }; /* there may be no /proc */

	if (!process_stat(node->pid, 0, &self) && errno != ENOENT)
		return node_refuse(error, "node %s: cannot look at this process in /proc: %s",
				   node->name, strerror(errno));
	node->start_time = self.start_time;
	if (visitor || announce(node))
		return member_add(node, visitor, error);
	return node_refuse(error,
			   "node %s: cannot bind the socket by which others find this process: %s",
			   node->name, strerror(errno));
}

static bool map_own_memories(struct node *node, char **error)
{
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i] && !map_memory(node, node->memory[i], error))
			return false;
	return true;
}

static struct node *join_locked(const struct node_config *config, char **error)
{
	struct node *node = find_running(config->name, config->server, error);
	bool joined;

	if (!node && *error)
		return NULL;
	joined = node != NULL;
	node = node ?: node_new(config->name);
	if ((joined || node_make(node, config, error)) && map_own_memories(node, error) &&
	    check_shape(node, config, error) && become_member(node, false, error))
		return node;
	node_free(node);
	return NULL;
}

/* What others left is given back at once, so that dead members never fill the table. */
static void recover_others(struct node *node)
{
	if (node_enter(node) == DRV_ERROR_NONE)
		node_unlock(node);
}

bool node_join(struct node_config *config, struct node **out, char **error)
{
	struct node *node;

	*error = NULL;
	if (!config_check(config, error) || !node_startup_lock(config->name, error))
		return false;
	node = join_locked(config, error);
	node_startup_unlock();
	if (!node)
		return false;
	recover_others(node);
	if (node->slot == NODE_MEMBERS - 1) { /* which the next newcomer needs */
		node_leave(node);
		return node_join(config, out, error);
	}
	node->shape.name = node->name;
	node->shape.explicit_shape = config->explicit_shape;
	*config = node->shape;
	*out = node;
	return true;
}

struct node *node_attach(const char *name, char **error)
{
	struct node *node;

	*error = NULL;
	if (!node_startup_lock(name, error))
		return NULL;
	node = find_running(name, NODE_NONE, error);
	if (node && !become_member(node, true, error))
		g_clear_pointer(&node, node_free);
	node_startup_unlock();
	if (node) {
		member_check_all(node);
		recover_others(node);
	}
	return node;
}

bool node_find_shape(const char *name, struct node_config *out)
{
	g_autofree char *error = NULL;
	struct node *node = find_running(name, NODE_NONE, &error);

	if (node) {
		*out = node->shape;
		out->name = NULL;
		out->server = 0;
		node_free(node);
	}
	return node != NULL;
}

void node_leave(struct node *node)
{
	struct block_place place;
	uint32_t id = NODE_NONE;

	if (!node || node_is_forked(node))
		return;
	if (node_enter(node) == DRV_ERROR_NONE) {
		frame_cache_empty(node, node->slot);
		while (block_next(node, &id, &place))
			if (block_is_held_by(&place, node->slot) && block_leave(node, id)) {
				node_unlock(node);
				block_end(node, id);
				node_lock(node);
			}
		node_unlock(node);
	}
	member_remove(node);
	node_free(node);
}

const struct sim_memory *node_memory(const struct node *node)
{
	return &node->sim_memory;
}

uint64_t node_lost_servers(struct node *node)
{
	const uint64_t lost = GET(node->control->lost);

	if (lost == node->lost_seen)
		return lost;
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++)
		if (node->memories[i].state && lost >> i / SIM_NODE_MAX & 1)
			node->sim_memory.base[node->memories[i].index] = NULL;
	node->lost_seen = lost;
	return lost;
}
