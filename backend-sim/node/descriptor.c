/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports blocks as file descriptors and imports them again, for the calls that pass memory over
 * sockets. The kernel tracks the references: a descriptor is a separate open file description of
 * the control segment's memfd, which holds a lock on the byte of its block. Such a lock ends when
 * the last copy of the descriptor is closed, in whatever process or socket that is; a process that
 * queries the byte's lock learns whether one is left. The file position identifies the block.
 *
 * Limits. That the last copy was closed is noticed at the next query for free memory, or when
 * memory is short. A descriptor does not keep the node itself alive: once all members have ended
 * it is invalid. A process that moves the file position (lseek, read) also makes it invalid. A
 * program that closed the node's own descriptor cannot query the locks: its blocks then count as
 * still referenced.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_marked(const struct node *node, uint32_t id)
{
	struct flock lock = block_fd_lock(id, F_RDLCK);
	char path[40];
	int fd;

	if (!own_file_is_open(&node->file)) {
		npu_message_set("node %s: no descriptor can be made of this memory: the program "
				"has closed descriptor %d, which npusim had opened",
				node->name, node->file.fd);
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->file.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && lseek(fd, (off_t)(NODE_FD_BASE + id), SEEK_SET) >= 0 &&
	    fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	npu_message_set("node %s: no descriptor can be made of this memory: %s", node->name,
			strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

drvError_t node_fd_export(struct node *node, const struct node_block *block, int *out_fd)
{
	struct block_place place;
	drvError_t error = block_enter(node, block, &place);
	int fd;

	if (error != DRV_ERROR_NONE)
		return error;
	fd = open_marked(node, block->id);
	if (fd >= 0) {
		PUT(place.record->fd, 1);
		block_unseen(node, &place);
	}
	node_unlock(node);
	if (fd < 0)
		return DRV_ERROR_FILE_OPS;
	*out_fd = fd;
	return DRV_ERROR_NONE;
}

/* Lock held. */
static bool find_fd_block(const struct node *node, int fd, uint32_t *out_id)
{
	const struct own_file file = own_file(fd);
	const off_t at = lseek(fd, 0, SEEK_CUR) - (off_t)NODE_FD_BASE;
	const uint32_t id = (uint32_t)at;
	struct block_place place;

	*out_id = id;
	return own_file_is(&file, node->control->device, node->control->inode) && at >= 0 &&
	       at < (off_t)node->id_count &&
	       block_find(node, id, block_at(node, id).record->generation, &place) &&
	       place.record->fd && !place.record->closing && block_fd_is_open(node, id);
}

drvError_t node_fd_import(struct node *node, int fd, struct node_block **out)
{
	drvError_t error = node_enter(node);
	uint32_t id;

	if (error != DRV_ERROR_NONE)
		return error;
	if (find_fd_block(node, fd, &id)) {
		struct block_place place = block_at(node, id);
		bool kept = holders_are_none_but(&place, NODE_NONE);

		*out = block_view(node, id, true);
		if (kept && node->control->fd_kept)
			PUT(node->control->fd_kept, node->control->fd_kept - 1);
	} else {
		npu_message_set("file descriptor %d stands for no memory of node %s: it is closed, "
				"something else, or of another node",
				fd, node->name);
		error = DRV_ERROR_FILE_OPS;
	}
	node_unlock(node);
	return error;
}
