/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and maps the memfd of a node, and guards descriptors, which the program may close at any
 * time in the belief that they are its own. It does not know what the memfd contains.
 */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
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
		*error = g_strdup_printf("%s: needs a file of %llu bytes in memory (only touched "
					 "pages cost), and this process may make files of %llu "
					 "bytes at most; raise the limit (ulimit -f unlimited)",
					 name, (unsigned long long)bytes,
					 (unsigned long long)limit.rlim_cur);
		return -1;
	}
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, seals) == 0)
		return fd;
	*error = g_strdup_printf("%s: cannot make a memory file (memfd) of %llu bytes: %s", name,
				 (unsigned long long)bytes, strerror(errno));
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
		*error = g_strdup_printf("%s: cannot map %llu bytes (only touched pages cost "
					 "memory): %s; is the address space limited (ulimit -v)?",
					 name, (unsigned long long)bytes, strerror(errno));
		if (base != MAP_FAILED)
			munmap(base, bytes);
		return NULL;
	}
	madvise(base, bytes, MADV_DONTDUMP);
	madvise(base, bytes, MADV_DONTFORK);
	return base;
}
