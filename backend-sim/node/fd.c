/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks as file descriptors. The kernel keeps the account: a descriptor is an opening of the
 * control segment's memfd of its own that has a lock on the byte of its block. Such a lock (of an
 * open file description) ends when the last copy of the descriptor is closed, in whatever process
 * or socket that is; whoever asks for the byte's lock learns whether one is left. The position in
 * the file says which block it is.
 *
 * Limits. That the last copy was closed is noticed at the next question for free memory, or when
 * memory is short. A descriptor does not keep the node itself: where all members have ended it
 * stands for nothing. A process that moves the position (lseek, read) has made it stand for
 * nothing, too. A program that closed the node's own descriptor cannot ask: then blocks count as
 * kept.
 */
#include "node-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FD_BASE (INT64_C(1) << 40) /* beyond every byte of the segment */

static struct flock lock_of(uint32_t id, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = FD_BASE + id, .l_len = 1
	};
}

bool fd_is_open(const struct node *node, uint32_t id)
{
	struct flock lock = lock_of(id, F_WRLCK);

	return !own_file_is_open(&node->control_file) ||
	       fcntl(node->control_file.fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool block_has_no_holder(const struct block_record *record)
{
	uint64_t any = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		any |= record->holders[w];
	return any == 0;
}

static int open_marked(const struct node *node, uint32_t id)
{
	struct flock lock = lock_of(id, F_RDLCK);
	char path[40];
	int fd;

	if (!own_file_is_open(&node->control_file)) {
		npu_message_set("node %s: no descriptor can be made of this memory: the program "
				"has closed descriptor %d, which npusim had opened",
				node->name, node->control_file.fd);
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->control_file.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && lseek(fd, (off_t)(FD_BASE + id), SEEK_SET) >= 0 &&
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
	drvError_t error = node_enter(node);
	int fd = -1;

	if (error != DRV_ERROR_NONE)
		return error;
	if (!block_find(node, block->id, block->generation, &place)) {
		npu_message_set("node %s: block %u is no block any more", node->name, block->id);
		error = DRV_ERROR_INVALID_HANDLE;
	} else {
		fd = open_marked(node, block->id);
		error = fd < 0 ? DRV_ERROR_FILE_OPS : DRV_ERROR_NONE;
	}
	if (fd >= 0)
		PUT(place.record->fd, 1);
	node_unlock(node);
	if (fd >= 0)
		*out_fd = fd;
	return error;
}

/* Lock held. */
static bool find_block(const struct node *node, int fd, uint32_t *out_id)
{
	const struct own_file file = own_file(fd);
	struct block_place place;
	off_t at = lseek(fd, 0, SEEK_CUR);
	uint64_t id;

	if (!own_file_is(&file, node->control->device, node->control->inode) || at < (off_t)FD_BASE)
		return false;
	id = (uint64_t)at - FD_BASE;
	if (id >= node->id_count)
		return false;
	place = block_at(node, (uint32_t)id);
	if (!block_find(node, (uint32_t)id, place.record->generation, &place) ||
	    !place.record->fd || place.record->closing || !fd_is_open(node, (uint32_t)id))
		return false;
	*out_id = (uint32_t)id;
	return true;
}

drvError_t node_fd_import(struct node *node, int fd, struct node_block **out)
{
	drvError_t error = node_enter(node);
	uint32_t id;

	if (error != DRV_ERROR_NONE)
		return error;
	if (find_block(node, fd, &id)) {
		bool kept = block_has_no_holder(block_at(node, id).record);

		*out = block_view(node, id, true);
		if (kept && node->control->fd_kept)
			PUT(node->control->fd_kept, node->control->fd_kept - 1);
	} else {
		npu_message_set("file descriptor %d stands for no memory of node %s: it is closed, "
				"something else, or of "
				"another node",
				fd, node->name);
		error = DRV_ERROR_FILE_OPS;
	}
	node_unlock(node);
	return error;
}
