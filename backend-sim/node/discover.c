/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the members of a node, for newcomers and reports, without a file that could become stale:
 * by the sockets that they have bound (socket.c), which the kernel lists in /proc/net/unix and
 * removes with the process. Members are then reached through /proc/PID/fd/FD, which the kernel
 * opens only for the same user. It does not know what the descriptors contain.
 */
#include "join.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

#define LOOKS       4      /* none is overlooked */
#define LIST_BUFFER 131072 /* the kernel gives whole lines, a page of them at most */

/* ---- what the kernel lists ---- */

struct search {
	const char *name;
	char *prefix;  /* of every socket of a node */
	GArray *found; /* of struct candidate */
	bool listed;   /* sockets are, here */
	int error;     /* what is there could not be looked at */
};

static void note_error(struct search *search)
{
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		search->error = errno;
}

static void add_candidate(struct search *search, const struct candidate *candidate)
{
	if (!search->name || !strcmp(search->name, candidate->name))
		g_array_append_val(search->found, *candidate);
}

/* "NODE/PID/FD" */
static bool parse_member(const char *text, struct candidate *out)
{
	unsigned pid, fd;
	char end;

	if (sscanf(text, "%63[A-Za-z0-9._-]/%x/%x%c", out->name, &pid, &fd, &end) != 3)
		return false;
	out->pid = (pid_t)pid;
	out->fd = (int)fd;
	return pid > 0 && pid <= INT32_MAX && fd <= INT32_MAX;
}

static void search_lines(struct search *search, char *text)
{
	struct candidate candidate;
	char *place = NULL;

	for (char *line = strtok_r(text, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
		const char *name = strstr(line, search->prefix);

		search->listed |= !g_str_has_prefix(line, "Num"); /* the head of the list */
		if (name && parse_member(name + strlen(search->prefix), &candidate))
			add_candidate(search, &candidate);
	}
}

/* False: the list may have left out a socket that is there all the time, since others came or went
 * between two reads. */
static bool search_sockets(struct search *search)
{
	g_autofree char *text = g_malloc(LIST_BUFFER);
	int list = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
	unsigned reads = 0;
	ssize_t length;

	if (list < 0) {
		note_error(search);
		return true;
	}
	for (; (length = read(list, text, LIST_BUFFER - 1)) > 0; reads++) {
		text[length] = '\0';
		search_lines(search, text);
	}
	if (length < 0)
		search->error = errno;
	close(list);
	return reads <= 1;
}

/* Where sockets are not listed: every descriptor of every process of this user. */
static void search_process(struct search *search, int pid)
{
	struct candidate candidate = { .pid = pid };
	char path[64], link[PATH_MAX];
	struct dirent *entry;
	ssize_t length;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	if (!fds) {
		note_error(search);
		return;
	}
	while ((entry = readdir(fds))) {
		length = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		candidate.fd = atoi(entry->d_name);
		if (sscanf(link, "/memfd:npusim-node:%63[A-Za-z0-9._-]", candidate.name) == 1)
			add_candidate(search, &candidate);
	}
	closedir(fds);
}

static void search_processes(struct search *search)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	if (!processes) {
		note_error(search);
		return;
	}
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]))
			search_process(search, atoi(entry->d_name));
	closedir(processes);
}

GArray *node_discover(const char *name)
{
	g_autofree char *start = socket_prefix(), *prefix = g_strdup_printf(" @%s", start);
	struct search search = {
		.name = name,
		.prefix = prefix,
		.found = g_array_new(FALSE, FALSE, sizeof(struct candidate)),
	};

	for (unsigned looks = 0; looks < LOOKS && !search.found->len && !search.error; looks++)
		if (search_sockets(&search))
			break;
	if (!search.found->len && !search.listed && !search.error)
		search_processes(&search);
	if (!search.error)
		return search.found;
	g_array_unref(search.found);
	errno = search.error;
	return NULL;
}

/* ---- opening what others have ---- */

/* The link of a memfd says "/memfd:NAME (deleted)". */
static bool leads_to(const char *path, const char *file)
{
	char link[NODE_FILE_NAME + 32], start[NODE_FILE_NAME + 16];
	ssize_t length = readlink(path, link, sizeof(link) - 1);
	int start_length = snprintf(start, sizeof(start), "/memfd:%s ", file);

	if (length < 0)
		return false;
	errno = ENOENT;
	return length >= start_length && !memcmp(link, start, (size_t)start_length);
}

static int open_path(const char *path, const char *file)
{
	struct stat stat;
	int copy;

	if (!leads_to(path, file))
		return -1;
	copy = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (copy < 0)
		return -1;
	if (fstat(copy, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid())
		return copy;
	close(copy);
	errno = ENOENT;
	return -1;
}

/* Through any thread that goes on. A main thread that has ended has no files, and the process of a
 * member that ends just now lets nobody look. */
static int open_of_threads(pid_t pid, int fd, const char *file)
{
	int copy = -1, error = ESRCH;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return -1;
	while (copy < 0 && (entry = readdir(tasks))) {
		int tid = atoi(entry->d_name), cause;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid, fd);
		copy = open_path(path, file);
		cause = errno;
		if (tid > 0 && copy < 0 && !thread_has_ended(pid, tid))
			error = cause;
	}
	closedir(tasks);
	errno = error;
	return copy;
}

int node_open_descriptor(pid_t pid, int fd, const char *file)
{
	char path[64];
	int copy;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	copy = open_path(path, file);
	return copy < 0 && (errno == ENOENT || errno == EACCES) ? open_of_threads(pid, fd, file)
								: copy;
}
