/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines how much host memory the machine and the control groups of this process leave, for
 * messages. Asking reserves nothing.
 */
#include "node.h"

#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FRESH_NS 50000000ll

static bool read_number(const char *path, uint64_t *out)
{
	g_autofree char *text = NULL;
	char *end = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return false;
	*out = g_ascii_strtoull(text, &end, 10);
	return end != text; /* "max" is no number, and no limit */
}

/* The value after `key` in a file of lines "key value". */
static uint64_t read_key(const char *path, const char *key)
{
	g_autofree char *text = NULL;
	const char *at = NULL;

	if (g_file_get_contents(path, &text, NULL, NULL))
		for (at = strstr(text, key); at && at != text && at[-1] != '\n';)
			at = strstr(at + 1, key);
	return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Where the kernel promises no more than it has (vm.overcommit_memory 2), a page beyond that is a
 * SIGBUS. */
static uint64_t commit_room(void)
{
	uint64_t mode, limit, used;

	if (!read_number("/proc/sys/vm/overcommit_memory", &mode) || mode != 2)
		return UINT64_MAX;
	limit = read_key("/proc/meminfo", "CommitLimit:");
	used = read_key("/proc/meminfo", "Committed_AS:");
	if (limit == 0)
		return UINT64_MAX;
	return limit > used ? (limit - used) * 1024 : 0;
}

static uint64_t group_room(const char *folder, const char *limit_name, const char *used_name)
{
	uint64_t limit, used, cache;
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, limit_name);
	if (!read_number(path, &limit))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/%s", folder, used_name);
	if (!read_number(path, &used))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	cache = read_key(path, "inactive_file "); /* given back when needed */
	used = used > cache ? used - cache : 0;
	return limit > used ? limit - used : 0;
}

/* The least room of a group and all above it. */
static uint64_t groups_room(const char *mount, const char *group, const char *limit_name,
			    const char *used_name)
{
	size_t root = strlen(mount);
	uint64_t least = UINT64_MAX, room;
	char path[PATH_MAX];
	char *slash;

	snprintf(path, sizeof(path), "%s%s", mount, group);
	do {
		room = group_room(path, limit_name, used_name);
		least = MIN(room, least);
		slash = strrchr(path + root - 1, '/');
		if (slash)
			*slash = '\0';
	} while (slash && strlen(path) >= root);
	return least;
}

/* "0::GROUP" of cgroup v2, "N:memory:GROUP" of v1. */
static uint64_t control_group_room(void)
{
	g_autofree char *text = NULL;
	uint64_t least = UINT64_MAX, room;

	if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
		return least;
	for (char *line = text, *next; *line; line = next) {
		char *names = strchr(line, ':'), *group;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		group = names ? strchr(names + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		room = UINT64_MAX;
		if (!strcmp(names, ":"))
			room = groups_room("/sys/fs/cgroup", group, "memory.max", "memory.current");
		else if (!strcmp(names, ":memory"))
			room = groups_room("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
					   "memory.usage_in_bytes");
		least = MIN(least, room);
	}
	return least;
}

uint64_t node_host_room_bytes(void)
{
	static uint64_t room;
	static int64_t when;
	struct timespec now;
	uint64_t machine, commit, group;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	ns = now.tv_sec * 1000000000ll + now.tv_nsec;
	if (__atomic_load_n(&when, __ATOMIC_ACQUIRE) + FRESH_NS > ns &&
	    __atomic_load_n(&when, __ATOMIC_RELAXED))
		return __atomic_load_n(&room, __ATOMIC_RELAXED);
	machine = read_key("/proc/meminfo", "MemAvailable:");
	machine = machine ? (machine + read_key("/proc/meminfo", "SwapFree:")) * 1024 : UINT64_MAX;
	commit = commit_room();
	group = control_group_room();
	group = MIN(group, MIN(machine, commit));
	__atomic_store_n(&room, group, __ATOMIC_RELAXED);
	__atomic_store_n(&when, ns, __ATOMIC_RELEASE);
	return group;
}
