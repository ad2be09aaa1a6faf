/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded, makes a program's host look like one with pages of 64 KiB, which kernels for arm64
 * may have: what sysconf() says, what mmap() and its kin refuse, and how far they reach. The C
 * library's own memory stays as it is: of a page of which it has a part, the rest counts as there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((uintptr_t)64 << 10)
#define PART ((uintptr_t)4 << 10)

#define FIXED (MAP_FIXED | MAP_FIXED_NOREPLACE)

static uintptr_t whole(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool refused(const void *at, uintptr_t also)
{
	if ((uintptr_t)at % PAGE == 0 && also % PAGE == 0)
		return false;
	errno = EINVAL;
	return true;
}

long sysconf(int name)
{
	static long (*next)(int);

	if (name == _SC_PAGESIZE)
		return (long)PAGE;
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "sysconf");
	return next(name);
}

void *host_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
__asm__(".globl mmap, mmap64\n.set mmap, host_mmap\n.set mmap64, host_mmap"); /* with either off_t
									       */

void *host_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	uintptr_t room = whole(bytes), start = (uintptr_t)at;

	if (refused(flags & FIXED ? at : NULL, (uintptr_t)offset))
		return MAP_FAILED;
	if ((flags & FIXED) == 0) { /* where pages are free */
		start = (uintptr_t)syscall(SYS_mmap, start / PAGE * PAGE, room + PAGE, PROT_NONE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (start == (uintptr_t)MAP_FAILED)
			return MAP_FAILED;
		syscall(SYS_munmap, start, whole(start) - start);
		syscall(SYS_munmap, whole(start) + room, start + PAGE - whole(start));
		start = whole(start);
		flags |= MAP_FIXED;
	}
	return (void *)syscall(SYS_mmap, start, room, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes)
{
	return refused(at, 0) ? -1 : (int)syscall(SYS_munmap, at, whole(bytes));
}

int mprotect(void *at, size_t bytes, int protection)
{
	return refused(at, 0) ? -1 : (int)syscall(SYS_mprotect, at, whole(bytes), protection);
}

void *mremap(void *at, size_t old_bytes, size_t bytes, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	if (refused(at, (uintptr_t)to))
		return MAP_FAILED;
	return (void *)syscall(SYS_mremap, at, whole(old_bytes), whole(bytes), flags, to);
}

/* A page is there if a part of it is. */
static long of_parts(long number, uintptr_t page, uintptr_t argument)
{
	long result = -1;

	for (uintptr_t part = page; result != 0 && part < page + PAGE; part += PART)
		result = syscall(number, part, PART, argument);
	return result;
}

int madvise(void *at, size_t bytes, int advice)
{
	if (refused(at, 0))
		return -1;
	if (syscall(SYS_madvise, at, whole(bytes), advice) == 0)
		return 0;
	for (uintptr_t page = 0; page < whole(bytes); page += PAGE)
		if (of_parts(SYS_madvise, (uintptr_t)at + page, (uintptr_t)advice) != 0)
			return -1;
	return 0;
}

int mincore(void *at, size_t bytes, unsigned char *pages)
{
	if (refused(at, 0))
		return -1;
	for (uintptr_t page = 0; page < whole(bytes); page += PAGE)
		if (of_parts(SYS_mincore, (uintptr_t)at + page, (uintptr_t)pages++) != 0)
			return -1;
	return 0;
}
