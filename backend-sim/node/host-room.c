/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines how much host memory the machine and the control groups of this process leave, for
 * messages. Asking reserves nothing.
 */
#include "records.h"

#include <string.h>

#define FRESH_MS 50

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

/* Where the kernel promises no more than it has (vm.overcommit_memory 2), a page beyond that is a
 * SIGBUS. */
static uint64_t commit_room(void)
{
	uint64_t mode, limit, used;

	if (!read_number("/proc/sys/vm", "overcommit_memory", "", &mode) || mode != 2 ||
	    !read_number("/proc", "meminfo", "CommitLimit:", &limit) ||
	    !read_number("/proc", "meminfo", "Committed_AS:", &used))
		return UINT64_MAX;
	return left_of(limit, used) * 1024;
}

/* Lines of /proc/self/cgroup are "0::GROUP" of cgroup v2, "N:memory:GROUP" of v1. */
static const struct hierarchy {
	const char *controllers, *mount, *limit, *used;
} hierarchies[] = {
	{ "", "/sys/fs/cgroup", "memory.max", "memory.current" },
	{ "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes" },
};

/* The least room of a group and all above it. */
static uint64_t group_room(const struct hierarchy *h, const char *group)
{
	g_autofree char *folder = g_strconcat(h->mount, group, NULL);
	uint64_t least = UINT64_MAX, limit, used, cache;
	char *slash;

	do {
		cache = 0;
		if (read_number(folder, h->limit, "", &limit) &&
		    read_number(folder, h->used, "", &used)) {
			read_number(folder, "memory.stat", "inactive_file ", &cache);
			used = left_of(used, cache); /* given back when needed */
			least = MIN(least, left_of(limit, used));
		}
		slash = strrchr(folder, '/');
		*slash = '\0';
	} while (strlen(folder) >= strlen(h->mount));
	return least;
}

static uint64_t control_group_room(void)
{
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	uint64_t least = UINT64_MAX;

	if (g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
		lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; line && *line; line++) {
		g_auto(GStrv) parts = g_strsplit(*line, ":", 3);

		for (unsigned i = 0; i < G_N_ELEMENTS(hierarchies); i++)
			if (g_strv_length(parts) == 3 &&
			    !strcmp(parts[1], hierarchies[i].controllers))
				least = MIN(least, group_room(&hierarchies[i], parts[2]));
	}
	return least;
}

uint64_t node_host_room_bytes(void)
{
	static uint64_t room;
	static int64_t when;
	const int64_t now = clock_ms();
	uint64_t least;

	if (__atomic_load_n(&when, __ATOMIC_ACQUIRE) + FRESH_MS > now &&
	    __atomic_load_n(&when, __ATOMIC_RELAXED))
		return __atomic_load_n(&room, __ATOMIC_RELAXED);
	least = MIN(machine_room(), commit_room());
	least = MIN(least, control_group_room());
	__atomic_store_n(&room, least, __ATOMIC_RELAXED);
	__atomic_store_n(&when, now, __ATOMIC_RELEASE);
	return least;
}
