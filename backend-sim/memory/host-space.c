/* SPDX-License-Identifier: Apache-2.0
 *
 * The address space of this process: takes addresses from the kernel and gives them back, makes
 * them inaccessible, and watches how many maps the kernel still allows. What the addresses are for,
 * window.c knows.
 */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MAPS_LIMIT   "/proc/sys/vm/max_map_count"
#define MAPS_DEFAULT 65530u /* include/linux/mm.h */
#define MAPS_COUNTED 64u    /* one count serves for such a part of them */

/* ---- addresses ---- */

/* Straight to the kernel: sanitizers look at every address that mmap() gives, and end the program
 * if it is not one that they leave to programs; here it is only asked for. */
static void *map_nothing(uint64_t va, uint64_t bytes, int flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return (void *)syscall(SYS_mmap, va, bytes, PROT_NONE, flags, -1, 0);
}

void window_host_give(uint64_t va, uint64_t bytes)
{
	syscall(SYS_munmap, va, bytes);
}

void window_host_keep(uint64_t va, uint64_t bytes)
{
	map_nothing(va, bytes, MAP_FIXED);
	syscall(SYS_madvise, va, bytes, MADV_DONTDUMP);
}

bool window_host_take(uint64_t va, uint64_t bytes)
{
	void *want = (void *)(uintptr_t)va, *got;

	if (!host_maps_left(1))
		return false;
	got = map_nothing(va, bytes, MAP_FIXED_NOREPLACE);
	if (got == MAP_FAILED)
		return false;
	if (got != want) { /* a kernel that takes the address for a hint */
		window_host_give((uintptr_t)got, bytes);
		errno = EEXIST;
		return false;
	}
	syscall(SYS_madvise, got, bytes, MADV_DONTDUMP);
	return true;
}

uint64_t window_host_find(uint64_t bytes, uint64_t align)
{
	void *got = host_maps_left(1) ? map_nothing(0, bytes + align, 0) : MAP_FAILED;
	uint64_t start = (uintptr_t)got, va = (start + align - 1) / align * align;

	if (got == MAP_FAILED)
		return 0;
	if (va > start)
		window_host_give(start, va - start);
	if (start + align > va)
		window_host_give(va + bytes, start + align - va);
	if (va > WINDOW_HOST_END - bytes) { /* a host with more bits of address */
		window_host_give(va, bytes);
		errno = ENOMEM;
		return 0;
	}
	syscall(SYS_madvise, va, bytes, MADV_DONTDUMP);
	return va;
}

void window_close_to_cpu(uint64_t va, uint64_t bytes)
{
	void *p = (void *)(uintptr_t)va;

	/* cppcheck-suppress leakReturnValNotUsed ; it is p */
	if (mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED) {
		/* No room for one more map of the host: the pages must not stay readable all the
		 * same. */
		mprotect(p, bytes, PROT_NONE);
		return;
	}
	madvise(p, bytes, MADV_DONTDUMP);
}

const char *window_host_occupant(uint64_t va, uint64_t bytes)
{
	const char *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps != NULL && found == NULL && fgets(line, sizeof(line), maps) != NULL) {
		uint64_t start, end;
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &start, &end,
			   &name) < 2)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (start < va + bytes && end > va)
			found = npu_text("[0x%" PRIx64 ", 0x%" PRIx64 ") is %.80s", start, end,
					 line[name] != '\0' ? line + name : "an anonymous mapping");
	}
	if (maps != NULL)
		fclose(maps);
	return found
		       ?: "nothing lies there; a limit on address space (ulimit -v) may be in the "
			  "way";
}

/* ---- how many maps ---- */

/* As far as was counted, and pieces that are left for us before the next count: the program makes
 * maps, too. A piece between two that are closed takes two maps. */
static struct {
	uint64_t limit, used, left;
} maps;

static void count_maps(void)
{
	g_autofree char *limit = NULL, *list = NULL;

	maps.limit = g_file_get_contents(MAPS_LIMIT, &limit, NULL, NULL) ? strtoull(limit, NULL, 10)
									 : MAPS_DEFAULT;
	maps.used = 0;
	g_file_get_contents("/proc/self/maps", &list, NULL, NULL);
	for (const char *at = list; at != NULL && (at = strchr(at, '\n')) != NULL; at++)
		maps.used++;
	maps.left = maps.limit - maps.limit / 8;
	maps.left = maps.left > maps.used ? (maps.left - maps.used) / 2 : 0;
	if (maps.left > maps.limit / MAPS_COUNTED)
		maps.left = maps.limit / MAPS_COUNTED;
}

bool host_maps_left(uint64_t pieces)
{
	if (pieces > maps.left)
		count_maps();
	if (maps.left == 0 || maps.used + 2 * pieces > maps.limit - maps.limit / 8) {
		errno = EMLINK; /* which no call for memory sets */
		return false;
	}
	maps.left -= pieces < maps.left ? pieces : maps.left;
	return true;
}

const char *host_map_problem(int error)
{
	if (error == ENOMEM)
		count_maps();
	if (error != EMLINK && (error != ENOMEM || maps.used + 16 < maps.limit))
		return strerror(error);
	return npu_text(
		"of the %" PRIu64 " maps that a process may have (vm.max_map_count), %" PRIu64
		" are in use, and the last %" PRIu64 " are left to the program; raise the limit "
		"(sysctl -w vm.max_map_count=%" PRIu64 ") or map larger pieces",
		maps.limit, maps.used, maps.limit / 8, maps.limit * 4);
}
