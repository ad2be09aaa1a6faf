/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks /proc about a process, for the member table and the whitelists: when it started, which
 * program it runs, whether it is exiting; and opens what it has open. Keeps no state.
 */
#include "records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/sched.h: set at the start of do_exit(), from which no thread returns. */
#define FLAG_EXITING 0x4u

/* The text of /proc/PID/NAME; false, NULL and errno. */
static bool read_file(pid_t pid, const char *name, char **out)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);

	return g_file_get_contents(path, out, NULL, NULL);
}

bool process_stat(pid_t pid, pid_t tid, struct process_stat *out)
{
	/* Of the first thread too: qemu-user makes up /proc/PID/stat of the process that asks. */
	g_autofree char *name = g_strdup_printf("task/%d/stat", tid ? tid : pid);
	g_autofree char *text = NULL;
	unsigned long long start;
	const char *rest;

	if (!read_file(pid, name, &text))
		return false;
	rest = strrchr(text, ')'); /* the command may hold spaces and parentheses */
	if (!rest || sscanf(rest + 1,
			    " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			    "%u %*d %llu",
			    &out->state, &out->flags, &out->threads, &start) != 4) {
		errno = EIO;
		return false;
	}
	out->start_time = start;
	return true;
}

/* Where /proc cannot be asked (no descriptor is left, it is hidden), the kernel still says whether
 * there is such a process or thread at all. */
static bool is_there(pid_t pid, pid_t tid)
{
	return (tid ? syscall(SYS_tgkill, pid, tid, 0) : kill(pid, 0)) == 0 || errno != ESRCH;
}

bool process_is_same(pid_t pid, uint64_t start_time)
{
	struct process_stat stat;

	return process_stat(pid, 0, &stat) ? stat.start_time == start_time : is_there(pid, 0);
}

uint64_t process_start_time(pid_t pid)
{
	struct process_stat stat;

	return pid > 0 && process_stat(pid, 0, &stat) ? stat.start_time : 0;
}

void process_command(pid_t pid, char *out, size_t size)
{
	g_autofree char *line = NULL, *comm = NULL;
	const char *text = "", *name;

	if (read_file(pid, "cmdline", &line) && *line)
		text = line;
	else if (read_file(pid, "comm", &comm))
		text = g_strchomp(comm);
	name = strrchr(text, '/');
	snprintf(out, size, "%s", name && name[1] ? name + 1 : text);
	out[strcspn(out, "\n")] = '\0';
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < 0x20)
			*c = '?';
}

/* It is on its way out, from where it does not return to its program, or is no more. */
static bool thread_has_ended(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	if (!process_stat(pid, tid, &stat))
		return !is_there(pid, tid);
	return stat.state == 'Z' || stat.state == 'X' || (stat.flags & FLAG_EXITING);
}

bool process_is_stopped(pid_t pid)
{
	struct process_stat stat;

	return process_stat(pid, 0, &stat) && (stat.state == 'T' || stat.state == 't');
}

/* Not by the owner of its files: of a process that lets nobody look, that is root. */
uid_t process_user(pid_t pid)
{
	g_autofree char *text = NULL;
	const char *line = read_file(pid, "status", &text) ? strstr(text, "\nUid:") : NULL;
	unsigned user;

	return line && sscanf(line, "\nUid: %*u %u", &user) == 1 ? user : (uid_t)-1;
}

void process_wait(pid_t pid, int ms)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	if (end.fd < 0 && errno == ESRCH)
		return;
	poll(&end, 1, ms);
	if (end.fd >= 0)
		close(end.fd);
}

/* The link of a memfd says "/memfd:NAME (deleted)". */
static bool leads_to(const char *path, const char *node)
{
	g_autofree char *start = g_strdup_printf("/memfd:" NODE_FILE "%s ", node);
	char link[256] = "";

	if (readlink(path, link, sizeof(link) - 1) < 0)
		return false;
	errno = ENOENT;
	return g_str_has_prefix(link, start);
}

static int open_path(const char *path, const char *node)
{
	struct stat stat;
	int copy;

	if (!leads_to(path, node))
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
static int open_of_threads(pid_t pid, int fd, const char *node)
{
	int copy = -1, error = ESRCH;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks) {
		errno = errno == ENOENT && is_there(pid, 0) ? EACCES : errno;
		return -1;
	}
	while (copy < 0 && (entry = readdir(tasks))) {
		int tid = atoi(entry->d_name), cause;

		if (tid <= 0 || thread_has_ended(pid, tid))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid, fd);
		copy = open_path(path, node);
		cause = errno;
		if (copy < 0 && !thread_has_ended(pid, tid) && /* meanwhile */
		    (error == ESRCH || error == ENOENT))       /* unseen by one, it may be there */
			error = cause;
	}
	closedir(tasks);
	errno = error;
	return copy;
}

int process_open(pid_t pid, int fd, const char *node)
{
	char path[64];
	int copy;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	copy = open_path(path, node);
	return copy < 0 && (errno == ENOENT || errno == EACCES) ? open_of_threads(pid, fd, node)
								: copy;
}

bool process_is_gone(const struct node *node, const struct member *member)
{
	struct own_file copy;
	bool gone;

	if (!process_is_same(member->pid, member->start_time))
		return true;
	copy = own_file(open_of_threads(member->pid, member->fd, node->name));
	gone = copy.fd < 0
		       ? errno == ENOENT || errno == ESRCH
		       : !own_file_is(&copy, node->control->head.device, node->control->head.inode);
	own_file_close(&copy);
	return gone;
}
