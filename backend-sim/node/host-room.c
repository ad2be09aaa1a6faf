/* SPDX-License-Identifier: Apache-2.0
 *
 * Says how much of the host's memory the machine and the control groups of this process leave, for
 * messages. Nothing is reserved by asking.
 */
#include "node.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRESH_NS 50000000ll

static bool read_number(const char *path, uint64_t *out)
{
	FILE *file = fopen(path, "re");
	unsigned long long value;
	bool found = false;

	if (!file)
		return false;
	if (fscanf(file, "%llu", &value) == 1) { /* "max" is no number, and no limit */
		*out = value;
		found = true;
	}
	fclose(file);
	return found;
}

/* The value after `key` in a file of lines "key value". */
static uint64_t read_key(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	unsigned long long value = 0;
	size_t length = strlen(key);
	char line[256];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length) && sscanf(line + length, "%llu", &value) == 1)
			break;
	fclose(file);
	return value;
}

static uint64_t machine_room(void)
{
	uint64_t available = read_key("/proc/meminfo", "MemAvailable:");

	return available ? (available + read_key("/proc/meminfo", "SwapFree:")) * 1024 : UINT64_MAX;
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

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
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
		least = least_of(room, least);
		slash = strrchr(path + root - 1, '/');
		if (slash)
			*slash = '\0';
	} while (slash && strlen(path) >= root);
	return least;
}

static uint64_t control_group_room(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t least = UINT64_MAX, room;
	char line[PATH_MAX];

	if (!file)
		return least;
	while (fgets(line, sizeof(line), file)) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (!strcmp(names, ":"))
			room = groups_room("/sys/fs/cgroup", group, "memory.max", "memory.current");
		else if (!strcmp(names, ":memory"))
			room = groups_room("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
					   "memory.usage_in_bytes");
		else
			continue;
		least = least_of(room, least);
	}
	fclose(file);
	return least;
}

uint64_t node_host_room_bytes(void)
{
	static uint64_t room;
	static int64_t when;
	struct timespec now;
	uint64_t least;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	ns = now.tv_sec * 1000000000ll + now.tv_nsec;
	if (__atomic_load_n(&when, __ATOMIC_ACQUIRE) + FRESH_NS > ns &&
	    __atomic_load_n(&when, __ATOMIC_RELAXED))
		return __atomic_load_n(&room, __ATOMIC_RELAXED);
	least = least_of(least_of(control_group_room(), machine_room()), commit_room());
	__atomic_store_n(&room, least, __ATOMIC_RELAXED);
	__atomic_store_n(&when, ns, __ATOMIC_RELEASE);
	return least;
}
