/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and maps the memfds of a node, and guards their descriptors, which the program may close
 * at any time in the belief that they are its own. It does not know what the memfds contain.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
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

/* Address ranges that an earlier membership of this process used: a later one maps its memories
 * there again, so that joining and leaving does not use up the address space. */
struct range {
	void *base;
	uint64_t bytes;
	bool used;
};
static struct range ranges[64];
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

void *range_take(uint64_t bytes)
{
	void *base = NULL;

	pthread_mutex_lock(&ranges_lock);
	for (unsigned i = 0; !base && i < G_N_ELEMENTS(ranges); i++)
		if (ranges[i].base && !ranges[i].used && ranges[i].bytes == bytes) {
			ranges[i].used = true;
			base = ranges[i].base;
		}
	pthread_mutex_unlock(&ranges_lock);
	return base;
}

void range_give(void *base, uint64_t bytes)
{
	struct range *at = NULL;

	pthread_mutex_lock(&ranges_lock);
	for (unsigned i = 0; i < G_N_ELEMENTS(ranges); i++)
		if (ranges[i].base == base || (!at && !ranges[i].base))
			at = &ranges[i];
	if (at)
		*at = (struct range){ .base = base, .bytes = bytes };
	pthread_mutex_unlock(&ranges_lock);
}

void ranges_forget(void)
{
	memset(ranges, 0, sizeof(ranges));
	pthread_mutex_init(&ranges_lock, NULL);
}

/* Accessible at the end only: where the program locks all that it will map (mlockall), the kernel
 * would make every page at once. */
void *file_map(const char *name, int fd, uint64_t bytes, void *at, char **error)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	void *base = mmap(at, bytes, PROT_NONE, flags, fd, 0);

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
