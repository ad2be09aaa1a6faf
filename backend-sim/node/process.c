/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks /proc about a process, for the member table and the whitelists: when it started, which
 * program it runs, whether it is exiting. Keeps no state.
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

/* include/linux/sched.h: set at the start of do_exit(), from where no thread returns to its
 * program. */
#define FLAG_EXITING 0x4u

static ssize_t read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	do {
		length = read(fd, out, size - 1);
	} while (length < 0 && errno == EINTR);
	close(fd);
	if (length >= 0)
		out[length] = '\0';
	return length;
}

bool process_stat(pid_t pid, pid_t tid, struct process_stat *out)
{
	char path[64], text[1024] = "";
	unsigned long long start;
	const char *rest;

	/* Of the first thread too: qemu-user makes up /proc/PID/stat of the process that asks. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid ? tid : pid);
	if (read_file(path, text, sizeof(text)) < 0)
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
	char path[64], text[4096];
	ssize_t length;
	const char *name;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	length = read_file(path, text, sizeof(text));
	if (length <= 0) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		length = read_file(path, text, sizeof(text));
	}
	if (length <= 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	name = strrchr(text, '/');
	snprintf(out, size, "%s", name && name[1] ? name + 1 : text);
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < 0x20)
			*c = '?';
}

bool thread_has_ended(pid_t pid, pid_t tid)
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
	char path[64], text[1024];
	const char *line;
	unsigned user;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (read_file(path, text, sizeof(text)) < 0)
		return (uid_t)-1;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %*u %u", &user) == 1 ? user : (uid_t)-1;
}

bool process_is_gone(pid_t pid, uint64_t start_time, int fd, uint64_t device, uint64_t inode)
{
	struct dirent *entry;
	struct stat file;
	bool gone = true;
	char path[64];
	DIR *tasks;
	pid_t tid;

	if (!process_is_same(pid, start_time))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return !is_there(pid, 0);
	while (gone && (entry = readdir(tasks))) {
		if ((tid = atoi(entry->d_name)) <= 0 || thread_has_ended(pid, tid))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid, fd);
		if (stat(path, &file) == 0)
			gone = file.st_dev != device || file.st_ino != inode;
		else
			gone = errno == ENOENT || errno == ESRCH; /* unseen, it may be there */
	}
	closedir(tasks);
	return gone;
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
