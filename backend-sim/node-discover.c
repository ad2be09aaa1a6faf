/* SPDX-License-Identifier: Apache-2.0
 *
 * How members find each other without a file that could go stale. Each member binds, and never
 * reads, an abstract socket "npusim/UID/PIDNS/NODE/PID/FD" (numbers in hexadecimal); the kernel
 * lists those in /proc/net/unix and removes them with the process. Members are then reached through
 * /proc/PID/fd/FD, which the kernel opens for the same user only. The start-up lock is such a
 * socket too: it reaches exactly as far as discovery does. Knows nothing of what lies in the
 * descriptors.
 */
#include "node-private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_MS 20000

/* The start-up lock's descriptor: a child that is forked while it is held must not keep it. */
static int startup_lock_fd = -1;
static pthread_mutex_t startup_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t startup_once = PTHREAD_ONCE_INIT;

bool node_name_is_valid(const char *name)
{
	size_t length = strlen(name);

	if (length < 1 || length > NODE_NAME_MAX)
		return false;
	for (; *name; name++)
		if (!isascii((unsigned char)*name) ||
		    (!isalnum((unsigned char)*name) && !strchr("._-", *name)))
			return false;
	return true;
}

static unsigned pid_namespace(void)
{
	struct stat file;

	return stat("/proc/self/ns/pid", &file) == 0 ? (unsigned)file.st_ino : 0;
}

/* ---- what the kernel lists ---- */

struct search {
	const char *name;
	bool saw_lock; /* a start-up lock: sockets are listed here */
	struct candidate *found;
	unsigned count, capacity;
};

static void add_candidate(struct search *search, const struct candidate *candidate)
{
	if (search->name && strcmp(search->name, candidate->name))
		return;
	if (search->count == search->capacity) {
		search->capacity = search->capacity ? 2 * search->capacity : 16;
		search->found = realloc(search->found, search->capacity * sizeof(*search->found));
		if (!search->found)
			abort();
	}
	search->found[search->count++] = *candidate;
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

static void search_sockets(struct search *search, FILE *list)
{
	char prefix[64], *line = NULL;
	struct candidate candidate;
	size_t size = 0;

	snprintf(prefix, sizeof(prefix), " @npusim/%x/%x/", geteuid(), pid_namespace());
	while (getline(&line, &size, list) > 0) {
		const char *name = strstr(line, prefix);

		line[strcspn(line, "\n")] = '\0';
		if (!name)
			continue;
		if (parse_member(name + strlen(prefix), &candidate))
			add_candidate(search, &candidate);
		else if (strstr(name, "/lock"))
			search->saw_lock = true;
	}
	free(line);
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
	if (!fds)
		return;
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

	if (!processes)
		return;
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]))
			search_process(search, atoi(entry->d_name));
	closedir(processes);
}

struct candidate *node_discover(const char *name, unsigned *out_count)
{
	struct search search = { .name = name };
	FILE *list = fopen("/proc/net/unix", "re");

	if (list) {
		search_sockets(&search, list);
		fclose(list);
	}
	/* Who is about to join holds the lock: where not even that is listed, sockets are not. */
	if (search.count == 0 && !search.saw_lock)
		search_processes(&search);
	*out_count = search.count;
	return search.found;
}

int node_open_descriptor(pid_t pid, int fd)
{
	static const char memfd[] = "/memfd:npusim-";
	char path[64], link[PATH_MAX];
	struct stat file;
	ssize_t length;
	int copy;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	length = readlink(path, link, sizeof(link));
	if (length < 0)
		return -1;
	errno = ENOENT;
	if ((size_t)length < sizeof(memfd) - 1 || memcmp(link, memfd, sizeof(memfd) - 1))
		return -1;
	copy = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (copy < 0)
		return -1;
	if (fstat(copy, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid())
		return copy;
	close(copy);
	errno = ENOENT;
	return -1;
}

/* ---- sockets ---- */

static int bind_abstract(const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(text);
	int fd, error;

	if (length > sizeof(address.sun_path) - 1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path + 1, text, length);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	shutdown(fd, SHUT_RDWR); /* nobody talks here */
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int node_announce(const char *name, pid_t pid, int control_fd)
{
	char text[128];

	snprintf(text, sizeof(text), "npusim/%x/%x/%s/%x/%x", geteuid(), pid_namespace(), name,
		 (unsigned)pid, (unsigned)control_fd);
	return bind_abstract(text);
}

static void drop_lock_in_child(void)
{
	if (startup_lock_fd >= 0)
		close(startup_lock_fd);
	startup_lock_fd = -1;
	/* The thread that held it is not in the child. */
	pthread_mutex_init(&startup_mutex, NULL);
}

static void register_fork_handler(void)
{
	pthread_atfork(NULL, NULL, drop_lock_in_child);
}

int node_startup_lock(const char *name, char **error)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	unsigned waits = 0;
	char text[128];
	int fd;

	snprintf(text, sizeof(text), "npusim/%x/%x/%s/lock", geteuid(), pid_namespace(), name);
	pthread_once(&startup_once, register_fork_handler);
	pthread_mutex_lock(&startup_mutex);
	while ((fd = bind_abstract(text)) < 0 && errno == EADDRINUSE && ++waits < LOCK_WAIT_MS * 5)
		nanosleep(&pause, NULL);
	startup_lock_fd = fd;
	if (fd >= 0)
		return fd;
	if (errno == EADDRINUSE)
		*error = node_text("node %s: another process has been joining it for %d s (it "
				   "holds the abstract "
				   "socket \"@%s\"; `ss -xap | grep npusim` names it); end that "
				   "process, or choose "
				   "another NPUSIM_NODE",
				   name, LOCK_WAIT_MS / 1000, text);
	else
		*error = node_text("node %s: cannot bind the abstract socket \"@%s\": %s", name,
				   text, strerror(errno));
	pthread_mutex_unlock(&startup_mutex);
	return -1;
}

void node_startup_unlock(int lock)
{
	startup_lock_fd = -1;
	close(lock);
	pthread_mutex_unlock(&startup_mutex);
}
