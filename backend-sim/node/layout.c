/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which shapes a node can have, and where the tables of each lie in the control segment;
 * creates and maps the memfd that has it, and guards descriptors, which the program may close at
 * any time in the belief that they are its own.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

struct own_file own_file(int fd)
{
	struct own_file file = { .fd = fd };
	struct stat stat;

	if (fd >= 0 && fstat(fd, &stat) == 0) {
		file.device = stat.st_dev;
		file.inode = stat.st_ino;
	}
	return file;
}

bool own_file_is(const struct own_file *file, uint64_t device, uint64_t inode)
{
	const struct own_file now = own_file(file->fd);

	return now.inode && now.device == device && now.inode == inode;
}

bool own_file_is_open(const struct own_file *file)
{
	return own_file_is(file, file->device, file->inode);
}

void own_file_close(struct own_file *file)
{
	if (own_file_is_open(file))
		close(file->fd);
	file->fd = -1;
}

int file_make(const char *name, uint64_t bytes, char **error)
{
	const unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct rlimit limit;
	int fd;

	/* Beyond this limit the kernel sends a signal that ends the program. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < bytes) {
		*error = g_strdup_printf("%s: needs a file of %s in memory (only touched pages "
					 "cost), and this process may make files of %s at most; "
					 "raise the limit (ulimit -f unlimited)",
					 name, npu_size_text(bytes), npu_size_text(limit.rlim_cur));
		return -1;
	}
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, seals) == 0)
		return fd;
	*error = g_strdup_printf("%s: cannot make a memory file (memfd) of %s: %s", name,
				 npu_size_text(bytes), strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Accessible at the end only: where the program locks all that it will map (mlockall), the kernel
 * would make every page at once. */
void *file_map(const char *name, int fd, uint64_t offset, uint64_t bytes, char **error)
{
	void *base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

	if (base != MAP_FAILED)
		munlock(base, bytes);
	if (base == MAP_FAILED || mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) {
		*error = g_strdup_printf("%s: cannot map %s (only touched pages cost memory): %s; "
					 "is the address space limited (ulimit -v, valgrind)? "
					 "NPUSIM_DEVICES=1 NPUSIM_HBM=256M "
					 "NPUSIM_HOST_MEMORY=128M ask for little",
					 name, npu_size_text(bytes), strerror(errno));
		if (base != MAP_FAILED)
			munmap(base, bytes);
		return NULL;
	}
	madvise(base, bytes, MADV_DONTDUMP);
	madvise(base, bytes, MADV_DONTFORK);
	return base;
}

#define MEMORY_MIN_BYTES  (8 * NODE_FRAME_BYTES)
#define RESERVED_MIN      4u /* frames for page tables */
#define HOST_RESERVED_MAX 512u

static uint32_t reserved_frames(const struct node_config *shape, unsigned memory)
{
	uint32_t frames;

	if (memory != SIM_NODE_HOST)
		return (uint32_t)(shape->hbm_bytes / NODE_FRAME_BYTES - shape->usable_frames);
	frames = (uint32_t)(shape->host_bytes / NODE_FRAME_BYTES / 32);
	return CLAMP(frames, RESERVED_MIN, HOST_RESERVED_MAX);
}

/* The next table, of whole pages. NULL while the segment is not mapped. */
static void *take_table(const struct node *node, uint64_t *at, uint64_t count, size_t size)
{
	void *table = node->control ? (unsigned char *)node->control + *at : NULL;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*at += (count * size + page - 1) / page * page;
	return table;
}

static void lay_memory(struct node *node, unsigned server, unsigned number, uint64_t bytes,
		       struct memory_state *states, uint64_t *at)
{
	struct memory *m = &node->memories[server * SIM_NODE_MAX + number];
	uint64_t frames = bytes / NODE_FRAME_BYTES, words = (frames + 63) / 64;

	*m = (struct memory){
		.index = server == node->shape.server ? number : SIM_PEER(server, number),
		.server = server,
		.number = number,
		.frames = (uint32_t)frames,
		.bytes = bytes,
	};
	m->usable = m->frames - reserved_frames(&node->shape, number);
	m->id_base = node->id_count;
	node->id_count += m->frames;
	m->used = take_table(node, at, words, sizeof(*m->used));
	m->live = take_table(node, at, words, sizeof(*m->live));
	m->giant_used = take_table(node, at, (frames + NODE_GIANT_FRAMES - 1) / NODE_GIANT_FRAMES,
				   sizeof(*m->giant_used));
	m->extents = take_table(node, at, frames, sizeof(*m->extents));
	m->blocks = take_table(node, at, frames, sizeof(*m->blocks));
	if (!node->control)
		return;
	m->state = &states[server * SIM_NODE_MAX + number];
	node->memory[m->index] = m;
}

/* At multiples of a frame, so that the kernel can use huge pages. */
static void lay_files(struct node *node)
{
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++) {
		struct memory *m = &node->memories[i];

		m->file_offset = (node->file_bytes + NODE_FRAME_BYTES - 1) / NODE_FRAME_BYTES *
				 NODE_FRAME_BYTES;
		node->file_bytes = m->file_offset + file_bytes(m);
	}
}

void layout_set(struct node *node)
{
	struct memory_state *states;
	uint64_t at = 0;

	if (!node->memories)
		node->memories = g_new0(struct memory, node->shape.servers * SIM_NODE_MAX);
	take_table(node, &at, 1, sizeof(struct control));
	states = take_table(node, &at, node->shape.servers * SIM_NODE_MAX, sizeof(*states));
	node->shares = take_table(node, &at, NODE_SHARES, sizeof(*node->shares));
	node->allows = take_table(node, &at, NODE_ALLOWS, sizeof(*node->allows));
	node->notifies = take_table(
		node, &at, (uint64_t)node->shape.servers * node->shape.devices * NODE_NOTIFIES,
		sizeof(*node->notifies));
	node->id_count = 0;
	for (unsigned server = 0; server < node->shape.servers; server++) {
		for (unsigned d = 0; d < node->shape.devices; d++)
			lay_memory(node, server, d, node->shape.hbm_bytes, states, &at);
		lay_memory(node, server, SIM_NODE_HOST, node->shape.host_bytes, states, &at);
	}
	node->control_bytes = node->file_bytes = at;
	lay_files(node);
}

static bool bytes_fit(const struct node_config *config, const char *of_what, uint64_t bytes,
		      uint64_t most, char **error)
{
	if (bytes % NODE_FRAME_BYTES == 0 && bytes >= MEMORY_MIN_BYTES && bytes <= most)
		return true;
	return node_refuse(
		error, "node %s: %s %s asked for; multiples of 2 MiB from %s to %s are possible%s",
		config->name, npu_size_text(bytes), of_what, npu_size_text(MEMORY_MIN_BYTES),
		npu_size_text(most),
		config->servers > 1 ? " in a supernode, where other servers address "
				      "them through a window of that size"
				    : "");
}

bool config_check(struct node_config *config, char **error)
{
	uint64_t frames = config->hbm_bytes / NODE_FRAME_BYTES;
	const char *name = config->name ?: "";
	size_t length = strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-");
	bool alone = config->servers <= 1;

	config->servers = config->servers ?: 1;
	if (length < 1 || length > NODE_NAME_MAX || name[length])
		return node_refuse(error,
				   "NPUSIM_NODE is \"%s\": a node's name has 1 to %u characters, "
				   "letters, digits, '.', '_' and '-'",
				   name, NODE_NAME_MAX);
	if (config->devices < 1 || config->devices > 16)
		return node_refuse(error, "node %s: %u devices asked for; 1 to 16 are possible",
				   config->name, config->devices);
	if (config->servers > SIM_SERVERS)
		return node_refuse(error, "node %s: %u servers asked for; 1 to %u are possible",
				   config->name, config->servers, SIM_SERVERS);
	if (config->server != NODE_NONE && config->server >= config->servers)
		return node_refuse(error, "node %s: server %u asked for; it has servers 0 to %u",
				   config->name, config->server, config->servers - 1);
	if (!bytes_fit(config, "of HBM a device", config->hbm_bytes,
		       UINT64_C(1) << (alone ? SIM_NODE_LG2 : SIM_PEER_LG2), error) ||
	    !bytes_fit(config, "of host memory", config->host_bytes,
		       alone ? UINT64_C(1) << SIM_HOST_LG2 : SIM_PEER_HOST, error))
		return false;
	if (config->usable_frames == 0 || config->usable_frames > frames - RESERVED_MIN)
		config->usable_frames = frames - RESERVED_MIN;
	return true;
}
