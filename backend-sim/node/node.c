/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining a node and leaving it: the control segment's layout, the memfds and where they are
 * mapped. Who else is there is found by node-discover.c; what is held is the business of the other
 * parts.
 */
#include "node-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN_UP(value, to) (((value) + (to)-1) / (to) * (to))
#define HBM_MIN_BYTES       (8 * NODE_FRAME_BYTES)
#define RESERVED_MIN        4u /* frames for page tables */
#define HOST_RESERVED_MAX   512u

void *node_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

char *node_text(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}

/* ---- shape and layout ---- */

static uint32_t reserved_frames(const struct node_config *shape, unsigned memory)
{
	uint32_t frames;

	if (memory != SIM_NODE_HOST)
		return (uint32_t)(shape->hbm_bytes / NODE_FRAME_BYTES - shape->usable_frames);
	frames = (uint32_t)(shape->host_bytes / NODE_FRAME_BYTES / 32);
	return frames < RESERVED_MIN        ? RESERVED_MIN
	       : frames > HOST_RESERVED_MAX ? HOST_RESERVED_MAX
					    : frames;
}

static struct layout memory_layout(uint64_t frames)
{
	struct layout layout;
	uint64_t at = 0, words = ALIGN_UP(frames, 64) / 64;

	layout.used = at;
	at += ALIGN_UP(words * sizeof(uint64_t), 4096);
	layout.live = at;
	at += ALIGN_UP(words * sizeof(uint64_t), 4096);
	layout.giant_used = at;
	at += ALIGN_UP(ALIGN_UP(frames, NODE_GIANT_FRAMES) / NODE_GIANT_FRAMES * sizeof(uint16_t),
		       4096);
	layout.extents = at;
	at += ALIGN_UP(frames * sizeof(struct extent_record), 4096);
	layout.blocks = at;
	at += ALIGN_UP(frames * sizeof(struct block_record), 4096);
	layout.bytes = at;
	return layout;
}

static void lay_memory(struct node *node, unsigned index, uint64_t bytes, uint64_t *at)
{
	struct memory *m = &node->memories[index];
	uint64_t frames = bytes / NODE_FRAME_BYTES;
	struct layout layout = memory_layout(frames);
	unsigned char *base = (unsigned char *)node->control + *at;

	*m = (struct memory){
		.index = index, .frames = (uint32_t)frames, .bytes = bytes, .file.fd = -1
	};
	m->usable = m->frames - reserved_frames(&node->shape, index);
	m->id_base = node->id_count;
	node->id_count += m->frames;
	*at += layout.bytes;
	if (!node->control)
		return;
	m->state = &node->control->memories[index];
	m->used = (uint64_t *)(base + layout.used);
	m->live = (uint64_t *)(base + layout.live);
	m->giant_used = (uint16_t *)(base + layout.giant_used);
	m->extents = (struct extent_record *)(base + layout.extents);
	m->blocks = (struct block_record *)(base + layout.blocks);
	node->memory[index] = m;
}

/* Lays everything out for node->shape; with the control segment mapped, sets the pointers. Returns
 * the segment's size. */
static uint64_t lay_out(struct node *node)
{
	uint64_t at = ALIGN_UP(sizeof(struct control), 4096), shares, names, allows;

	shares = at;
	at += ALIGN_UP(NODE_SHARES * sizeof(struct share_record), 4096);
	names = at;
	at += ALIGN_UP(NODE_NAMES * sizeof(struct name_record), 4096);
	allows = at;
	at += ALIGN_UP(NODE_ALLOWS * sizeof(struct allow_record), 4096);
	node->id_count = 0;
	for (unsigned d = 0; d < node->shape.devices; d++)
		lay_memory(node, d, node->shape.hbm_bytes, &at);
	lay_memory(node, SIM_NODE_HOST, node->shape.host_bytes, &at);
	if (node->control) {
		node->shares = (struct share_record *)((unsigned char *)node->control + shares);
		node->names = (struct name_record *)((unsigned char *)node->control + names);
		node->allows = (struct allow_record *)((unsigned char *)node->control + allows);
	}
	return at;
}

static bool check_config(struct node_config *config, char **error)
{
	uint64_t most = UINT64_C(1) << SIM_NODE_LG2, frames = config->hbm_bytes / NODE_FRAME_BYTES;

	if (!config->name || !node_name_is_valid(config->name))
		*error = node_text("NPUSIM_NODE is \"%s\": a node's name has 1 to %u characters, "
				   "letters, digits, '.', "
				   "'_' and '-'",
				   config->name ? config->name : "", NODE_NAME_MAX);
	else if (config->devices < 1 || config->devices > 16)
		*error = node_text("node %s: %u devices asked for; 1 to 16 are possible",
				   config->name, config->devices);
	else if (config->hbm_bytes % NODE_FRAME_BYTES || config->hbm_bytes < HBM_MIN_BYTES ||
		 config->hbm_bytes > most)
		*error = node_text("node %s: %llu bytes of HBM a device asked for; multiples of 2 "
				   "MiB from %llu MiB to 8 "
				   "TiB are possible",
				   config->name, (unsigned long long)config->hbm_bytes,
				   (unsigned long long)(HBM_MIN_BYTES >> 20));
	else if (config->host_bytes % NODE_FRAME_BYTES || config->host_bytes < HBM_MIN_BYTES ||
		 config->host_bytes > most)
		*error = node_text("node %s: %llu bytes of host memory asked for; multiples of 2 "
				   "MiB from %llu MiB to 8 "
				   "TiB are possible",
				   config->name, (unsigned long long)config->host_bytes,
				   (unsigned long long)(HBM_MIN_BYTES >> 20));
	else {
		if (config->usable_frames == 0 || config->usable_frames > frames - RESERVED_MIN)
			config->usable_frames = frames - RESERVED_MIN;
		return true;
	}
	return false;
}

/* ---- files ---- */

static void memory_name(const struct node *node, unsigned memory, char out[NODE_FILE_NAME])
{
	if (memory == SIM_NODE_HOST)
		snprintf(out, NODE_FILE_NAME, "npusim-host:%s", node->name);
	else
		snprintf(out, NODE_FILE_NAME, "npusim-hbm%u:%s", memory, node->name);
}

void node_control_name(const char *name, char out[NODE_FILE_NAME])
{
	snprintf(out, NODE_FILE_NAME, "npusim-node:%s", name);
}

static bool map_memory(struct node *node, struct memory *m, int fd, char **error)
{
	char name[NODE_FILE_NAME];

	memory_name(node, m->index, name);
	/* A range that cannot be mapped may be anybody's by now: it is not given back. */
	m->base = file_map(name, fd, m->bytes, range_take(m->bytes), error);
	if (!m->base)
		return false;
	m->file = own_file(fd);
	node->sim_memory.base[m->index] = m->base;
	node->sim_memory.bytes[m->index] = m->bytes;
	return true;
}

/* ---- this process's side ---- */

static struct node *node_new(const char *name)
{
	struct node *node = node_alloc(sizeof(*node));
	long page = sysconf(_SC_PAGESIZE);
	void *mark;

	snprintf(node->name, sizeof(node->name), "%s", name);
	node->pid = getpid();
	node->control_file.fd = node->socket_file.fd = -1;
	mark = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
	pocket_end(node);
	for (unsigned i = 0; i < SIM_NODE_MAX; i++) {
		struct memory *m = node->memory[i];

		if (m && m->base)
			range_give(m->base, m->bytes);
		if (m)
			own_file_close(&m->file);
	}
	if (node->views)
		munmap(node->views, node->id_count * sizeof(*node->views));
	if (node->control)
		munmap(node->control, node->control_bytes);
	own_file_close(&node->control_file);
	own_file_close(&node->socket_file);
	if (node->fork_mark)
		munmap(node->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
	free(node);
}

static bool make_views(struct node *node, char **error)
{
	void *views = mmap(NULL, node->id_count * sizeof(*node->views), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (views == MAP_FAILED) {
		*error = node_text("node %s: no memory for its table of blocks: %s", node->name,
				   strerror(errno));
		return false;
	}
	node->views = views;
	return true;
}

/* ---- making a node ---- */

static void write_header(struct node *node)
{
	struct control *control = node->control;

	control->version = NODE_VERSION;
	control->segment_bytes = node->control_bytes;
	control->device = node->control_file.device;
	control->inode = node->control_file.inode;
	memcpy(control->name, node->name, sizeof(control->name));
	memcpy(control->soc_name, node->shape.soc_name, sizeof(control->soc_name));
	control->devices = node->shape.devices;
	control->hbm_bytes = node->shape.hbm_bytes;
	control->usable_frames = node->shape.usable_frames;
	control->host_bytes = node->shape.host_bytes;
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i]) {
			control->memories[i].device = node->memory[i]->file.device;
			control->memories[i].inode = node->memory[i]->file.inode;
		}
	node_rebuild(node);
	PUT(control->magic, NODE_MAGIC);
}

static bool map_control(struct node *node, char **error)
{
	node->control_bytes = lay_out(node);
	node->control = file_map("the node's control segment", node->control_file.fd,
				 node->control_bytes, NULL, error);
	if (!node->control)
		return false;
	lay_out(node);
	return make_views(node, error);
}

static bool node_make(struct node *node, const struct node_config *config, char **error)
{
	char name[NODE_FILE_NAME];

	node->shape = *config;
	node->control_bytes = lay_out(node);
	node_control_name(node->name, name);
	node->control_file = own_file(file_make(name, node->control_bytes, error));
	if (node->control_file.fd < 0 || !map_control(node, error))
		return false;
	for (unsigned i = 0; i < SIM_NODE_MAX; i++) {
		struct memory *m = node->memory[i];
		int fd;

		if (!m)
			continue;
		memory_name(node, i, name);
		fd = file_make(name, m->bytes, error);
		if (fd < 0)
			return false;
		if (!map_memory(node, m, fd, error)) {
			close(fd);
			return false;
		}
	}
	write_header(node);
	return true;
}

/* ---- joining one that runs ---- */

enum meeting { MEETING_JOINED, MEETING_GONE, MEETING_REFUSED };

/* A sealed file cannot shrink under the mapping. */
static bool read_header(int fd, struct control *out)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) &&
	       pread(fd, out, offsetof(struct control, lock), 0) ==
		       offsetof(struct control, lock) &&
	       out->magic == NODE_MAGIC;
}

static bool is_whole(struct node *node, const struct control *head)
{
	struct stat file;

	return fstat(node->control_file.fd, &file) == 0 && lay_out(node) == head->segment_bytes &&
	       (uint64_t)file.st_size == head->segment_bytes &&
	       own_file_is(&node->control_file, head->device, head->inode);
}

static enum meeting check_header(struct node *node, const struct candidate *candidate,
				 const struct control *head, char **error)
{
	if (head->version != NODE_VERSION) {
		*error =
			node_text("node %s is run by another version of npusim (process %d); end "
				  "it with `npusim node --reset %s`, or choose another NPUSIM_NODE",
				  node->name, candidate->pid, node->name);
		return MEETING_REFUSED;
	}
	node->shape = (struct node_config){ .devices = head->devices,
					    .hbm_bytes = head->hbm_bytes,
					    .usable_frames = head->usable_frames,
					    .host_bytes = head->host_bytes };
	memcpy(node->shape.soc_name, head->soc_name, sizeof(head->soc_name) - 1);
	node->shape.name = node->name;
	if (check_config(&node->shape, error) && is_whole(node, head))
		return MEETING_JOINED;
	free(*error);
	*error = node_text("node %s: the control segment of process %d is damaged; end it with "
			   "`npusim node --reset %s`",
			   node->name, candidate->pid, node->name);
	return MEETING_REFUSED;
}

static enum meeting meet_header(struct node *node, const struct candidate *candidate, char **error)
{
	struct control *head = node_alloc(sizeof(*head));
	enum meeting meeting = read_header(node->control_file.fd, head)
				       ? check_header(node, candidate, head, error)
				       : MEETING_GONE;

	free(head);
	return meeting;
}

static bool anyone_lives(const struct node *node)
{
	for (unsigned slot = 0; slot < node->control->member_limit; slot++)
		if (!member_is_dead(node, slot) && !GET(node->control->members[slot].left))
			return true;
	return false;
}

/* Opens a memory through any other member that lives. -1: there is none. */
static int open_through_members(const struct node *node, const struct memory *m)
{
	char name[NODE_FILE_NAME];

	memory_name(node, m->index, name);
	for (unsigned slot = 0; slot < node->control->member_limit; slot++) {
		const struct member *member = &node->control->members[slot];
		struct own_file file;

		if (member_is_dead(node, slot) || GET(member->left))
			continue;
		file = own_file(
			node_open_descriptor(member->pid, member->memory_fd[m->index], name));
		if (own_file_is(&file, m->state->device, m->state->inode))
			return file.fd;
		own_file_close(&file);
	}
	return -1;
}

static enum meeting open_memory(struct node *node, struct memory *m, char **error)
{
	int fd = open_through_members(node, m);

	if (fd < 0 && !anyone_lives(node))
		return MEETING_GONE;
	if (fd < 0) {
		*error = node_text("node %s: its memories cannot be opened through any of its "
				   "processes (%s): did a program "
				   "close descriptors that it had not opened?",
				   node->name, strerror(errno));
		return MEETING_REFUSED;
	}
	if (map_memory(node, m, fd, error))
		return MEETING_JOINED;
	close(fd);
	return MEETING_REFUSED;
}

static enum meeting meet(struct node *node, const struct candidate *candidate, char **error)
{
	enum meeting meeting;
	char name[NODE_FILE_NAME];

	node_control_name(node->name, name);
	node->control_file = own_file(node_open_descriptor(candidate->pid, candidate->fd, name));
	if (node->control_file.fd < 0) {
		if (errno == ENOENT || errno == ESRCH)
			return MEETING_GONE;
		*error = node_text(
			"node %s: process %d runs it, and its descriptors cannot be opened: %s",
			node->name, candidate->pid, strerror(errno));
		return MEETING_REFUSED;
	}
	meeting = meet_header(node, candidate, error);
	if (meeting != MEETING_JOINED)
		return meeting;
	if (!map_control(node, error))
		return MEETING_REFUSED;
	member_check_all(node);
	if (!anyone_lives(node))
		return MEETING_GONE;
	for (unsigned i = 0; i < SIM_NODE_MAX && meeting == MEETING_JOINED; i++)
		if (node->memory[i])
			meeting = open_memory(node, node->memory[i], error);
	return meeting;
}

/* A node that runs, with its memories mapped. NULL: none (no *error), or none that may be used
 * (*error). */
static struct node *find_running(const char *name, char **error)
{
	unsigned count;
	struct candidate *candidates;
	struct node *found = NULL;
	char *refused = NULL;

	if (!node_discover(name, &candidates, &count)) {
		*error = node_text("node %s: cannot find out whether it runs: %s", name,
				   strerror(errno));
		return NULL;
	}
	for (unsigned i = 0; i < count && !found; i++) {
		struct node *node = node_new(name);
		char *text = NULL;

		if (meet(node, &candidates[i], &text) == MEETING_JOINED) {
			found = node;
			continue;
		}
		node_free(node);
		if (refused)
			free(text);
		else
			refused = text;
	}
	free(candidates);
	if (found)
		free(refused);
	else
		*error = refused;
	return found;
}

/* ---- joining ---- */

static bool check_shape(const struct node *node, const struct node_config *asked, char **error)
{
	const struct node_config *shape = &node->shape;
	const struct member *first = NULL;

	if (!asked->explicit_shape ||
	    (!strcmp(asked->soc_name, shape->soc_name) && asked->devices == shape->devices &&
	     asked->hbm_bytes == shape->hbm_bytes))
		return true;
	for (unsigned slot = 0; slot < node->control->member_limit && !first; slot++)
		if (!member_is_dead(node, slot))
			first = &node->control->members[slot];
	*error = node_text("node %s runs with %u devices of %s, %llu MiB of HBM each (process %d, "
			   "%s), and %u devices of %s, "
			   "%llu MiB each, are asked for; ask for the same, choose another "
			   "NPUSIM_NODE, or end the node with "
			   "`npusim node --reset %s`",
			   node->name, shape->devices, shape->soc_name,
			   (unsigned long long)(shape->hbm_bytes >> 20), first ? first->pid : 0,
			   first ? first->command : "?", asked->devices, asked->soc_name,
			   (unsigned long long)(asked->hbm_bytes >> 20), node->name);
	return false;
}

/* A child that was forked in an earlier membership may have its socket, and with it the name of the
 * same descriptor. */
static bool announce(struct node *node)
{
	for (unsigned tries = 0; tries < 64; tries++) {
		int fd;

		fd = node_announce(node->name, node->pid, node->control_file.fd);
		node->socket_file = own_file(fd);
		if (fd >= 0 || errno != EADDRINUSE)
			break;
		fd = fcntl(node->control_file.fd, F_DUPFD_CLOEXEC, node->control_file.fd + 1);
		if (fd < 0)
			break;
		close(node->control_file.fd);
		node->control_file.fd = fd;
	}
	return node->socket_file.fd >= 0;
}

static bool become_member(struct node *node, bool visitor, char **error)
{
	struct process_stat self = { .start_time = 0 }; /* there may be no /proc */

	if (!process_stat(node->pid, 0, &self) && errno != ENOENT) {
		*error = node_text("node %s: cannot look at this process in /proc: %s", node->name,
				   strerror(errno));
		return false;
	}
	node->start_time = self.start_time;
	if (visitor || announce(node))
		return member_add(node, visitor, error);
	*error = node_text("node %s: cannot bind the socket by which others find this process: %s",
			   node->name, strerror(errno));
	return false;
}

static struct node *join_locked(const struct node_config *config, char **error)
{
	struct node *node = find_running(config->name, error);

	if (!node && !*error) {
		node = node_new(config->name);
		if (!node_make(node, config, error)) {
			node_free(node);
			return NULL;
		}
	}
	if (!node)
		return NULL;
	if (!check_shape(node, config, error) || !become_member(node, false, error)) {
		node_free(node);
		return NULL;
	}
	return node;
}

/* What others left is given back at once, so that the table of members never fills up with dead
 * ones. */
static void recover_others(struct node *node)
{
	member_check_all(node);
	if (node_enter(node) == DRV_ERROR_NONE)
		node_unlock(node);
}

bool node_join(struct node_config *config, struct node **out, char **error)
{
	struct node *node;

	*error = NULL;
	if (!check_config(config, error) || !node_startup_lock(config->name, error))
		return false;
	node = join_locked(config, error);
	node_startup_unlock();
	if (!node)
		return false;
	recover_others(node);
	node->shape.name = node->name;
	node->shape.explicit_shape = config->explicit_shape;
	*config = node->shape;
	*out = node;
	return true;
}

struct node *node_attach(const char *name, bool *gone, char **error)
{
	struct node *node;

	*error = NULL;
	*gone = false;
	if (!node_startup_lock(name, error))
		return NULL;
	node = find_running(name, error);
	*gone = !node && !*error;
	if (node && !become_member(node, true, error)) {
		node_free(node);
		node = NULL;
	}
	node_startup_unlock();
	if (node)
		recover_others(node);
	return node;
}

bool node_find_shape(const char *name, struct node_config *out)
{
	char *error = NULL;
	bool locked = node_startup_lock(name, &error);
	struct node *node = locked ? find_running(name, &error) : NULL;

	if (node) {
		*out = node->shape;
		out->name = NULL;
		node_free(node);
	}
	if (locked)
		node_startup_unlock();
	free(error);
	return node != NULL;
}

static void drop_hold(struct node *node, uint32_t id, void *arg)
{
	(void)arg;
	if (block_is_held_by(block_at(node, id).record, node->slot))
		block_leave(node, id);
}

void node_leave(struct node *node)
{
	if (!node)
		return;
	if (!node_is_forked(node)) {
		if (node_enter(node) == DRV_ERROR_NONE) {
			pocket_empty(node, node->slot);
			for (unsigned i = 0; i < SIM_NODE_MAX; i++)
				if (node->memory[i])
					block_for_each(node, node->memory[i], drop_hold, NULL);
			node_unlock(node);
		}
		member_remove(node);
		node_free(node);
	}
}

bool node_is_forked(const struct node *node)
{
	if (node->fork_mark)
		return __atomic_load_n(node->fork_mark, __ATOMIC_RELAXED) == 0;
	return getpid() != node->pid;
}

const struct node_config *node_shape(const struct node *node)
{
	return &node->shape;
}

const struct sim_memory *node_memory(const struct node *node)
{
	return &node->sim_memory;
}

int node_memory_fd(const struct node *node, unsigned memory)
{
	struct memory *m = memory < SIM_NODE_MAX ? node->memory[memory] : NULL;

	if (!m || node_is_forked(node))
		return -1;
	if (own_file_is_open(&m->file))
		return m->file.fd;
	m->file.fd = open_through_members(node, m);
	if (m->file.fd < 0)
		npu_message_set("node %s: this program has closed descriptors that npusim had "
				"opened, and no other process "
				"of the node has them any more",
				node->name);
	return m->file.fd;
}
