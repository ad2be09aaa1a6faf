/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines how much host memory the machine and the control groups of this process allow, and
 * leave, for messages and for the command's ceiling. Asking reserves nothing.
 */
#include "records.h"

#include <string.h>
#include <unistd.h>

/* The number after `key`, which begins a line of the file; "": the file is a number. False: there
 * is none ("max" is no limit). */
static bool read_number(const char *folder, const char *name, const char *key, uint64_t *out)
{
	g_autofree char *path = g_build_filename(folder, name, NULL), *text = NULL;
	const char *at = NULL;
	char *end = NULL;

	if (g_file_get_contents(path, &text, NULL, NULL))
		for (at = strstr(text, key); at && at != text && at[-1] != '\n';)
			at = strstr(at + 1, key);
	if (!at)
		return false;
	at += strlen(key);
	*out = g_ascii_strtoull(at, &end, 10);
	return end != at;
}

static uint64_t left_of(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

static uint64_t machine_room(void)
{
	uint64_t available, swap = 0;

	if (!read_number("/proc", "meminfo", "MemAvailable:", &available))
		return UINT64_MAX;
	read_number("/proc", "meminfo", "SwapFree:", &swap);
	return (available + swap) * 1024;
}

/* Where the kernel promises no more than it has (vm.overcommit_memory 2), more is a SIGBUS. */
static uint64_t commit_room(void)
{
	uint64_t mode, limit, used;

	if (!read_number("/proc/sys/vm", "overcommit_memory", "", &mode) || mode != 2 ||
	    !read_number("/proc", "meminfo", "CommitLimit:", &limit) ||
	    !read_number("/proc", "meminfo", "Committed_AS:", &used))
		return UINT64_MAX;
	return left_of(limit, used) * 1024;
}

/* Lines of /proc/self/cgroup are "0::GROUP" of cgroup v2, "N:CONTROLLER,memory:GROUP" of v1. */
static const struct hierarchy {
	const char *mount, *limit, *used;
} hierarchies[] = {
	{ "/sys/fs/cgroup", "memory.max", "memory.current" },
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes" },
};

/* `least`, or less where a group or one above it allows less, or has less room. */
static uint64_t least_of_groups(const struct hierarchy *h, const char *root, const char *group,
				bool room, uint64_t least)
{
	g_autofree char *mount = g_strconcat(root, h->mount, NULL);
	g_autofree char *folder = g_strconcat(mount, group, NULL);
	uint64_t limit, used, cache;

	do {
		used = cache = 0;
		if (read_number(folder, h->limit, "", &limit) &&
		    (!room || read_number(folder, h->used, "", &used))) {
			read_number(folder, "memory.stat", "inactive_file ", &cache);
			used = left_of(used, cache); /* given back when needed */
			least = MIN(least, left_of(limit, used));
		}
		*strrchr(folder, '/') = '\0';
	} while (strlen(folder) >= strlen(mount));
	return least;
}

static uint64_t least_of_all(const char *root, bool room, uint64_t least)
{
	g_autofree char *list = g_strconcat(root, "/proc/self/cgroup", NULL), *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (g_file_get_contents(list, &text, NULL, NULL))
		lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; line && *line; line++) {
		g_auto(GStrv) parts = g_strsplit(*line, ":", 3);
		g_auto(GStrv) v1 = NULL;

		if (g_strv_length(parts) < 3)
			continue;
		v1 = g_strsplit(parts[1], ",", -1);
		if (!*v1 || g_strv_contains((const char *const *)v1, "memory"))
			least = least_of_groups(&hierarchies[*v1 != NULL], root, parts[2], room,
						least);
	}
	return least;
}

uint64_t node_host_room_bytes(unsigned age_ms)
{
	static uint64_t room;
	static int64_t when;
	const int64_t now = clock_ms();
	uint64_t least, commit;

	if (__atomic_load_n(&when, __ATOMIC_ACQUIRE) + age_ms > now &&
	    __atomic_load_n(&when, __ATOMIC_RELAXED))
		return __atomic_load_n(&room, __ATOMIC_RELAXED);
	least = machine_room();
	commit = commit_room();
	least = least_of_all("", true, MIN(least, commit));
	__atomic_store_n(&room, least, __ATOMIC_RELAXED);
	__atomic_store_n(&when, now, __ATOMIC_RELEASE);
	return least;
}

uint64_t node_host_limit_bytes(const char *root)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return least_of_all(root, false, machine);
}
