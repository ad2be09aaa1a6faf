/* SPDX-License-Identifier: Apache-2.0
 *
 * The memfd of a node, with its descriptor and mappings in this process.
 */
#ifndef NPUSIM_NODE_FILE_H
#define NPUSIM_NODE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor of ours. Programs close descriptors that are not theirs, and open others under the
 * same number. */
struct own_file {
	int fd;
	uint64_t device, inode;
};

struct own_file own_file(int fd);
bool own_file_is(const struct own_file *file, uint64_t device, uint64_t inode);
bool own_file_is_open(const struct own_file *file);
/* Closes it, if it is open; what the program has under the number stays. */
void own_file_close(struct own_file *file);
/* A sealed memfd of that size. -1 and *error. */
int file_make(const char *name, uint64_t bytes, char **error);
/* Maps a part of it, not for children. NULL and *error. */
void *file_map(const char *name, int fd, uint64_t offset, uint64_t bytes, char **error);

#endif
