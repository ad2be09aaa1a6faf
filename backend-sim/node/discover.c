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
#define LOOKS        4

/* The start-up lock: a child that is forked while it is held must not keep it. */
static struct own_file startup_lock = { .fd = -1 };
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
	int error; /* what is there could not be looked at */
};

static void note_error(struct search *search)
{
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		search->error = errno;
}

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
	if (ferror(list))
		search->error = errno;
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

static void look_at_sockets(struct search *search)
{
	FILE *list = fopen("/proc/net/unix", "re");

	if (list) {
		search_sockets(search, list);
		fclose(list);
	} else {
		note_error(search);
	}
}

bool node_discover(const char *name, struct candidate **out, unsigned *out_count)
{
	struct search search = { .name = name };

	/* While sockets come and go, the list may leave out one that is there all the time. */
	for (unsigned look = 0; look < LOOKS && search.count == 0 && !search.error; look++)
		look_at_sockets(&search);
	/* Who is about to join holds the lock: where not even that is listed, sockets are not. */
	if (search.count == 0 && !search.saw_lock && !search.error)
		search_processes(&search);
	if (search.error) {
		free(search.found);
		errno = search.error;
		return false;
	}
	*out = search.found;
	*out_count = search.count;
	return true;
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

/* ---- sockets ---- */

static bool bind_abstract(int fd, const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(text);

	if (length > sizeof(address.sun_path) - 1) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(address.sun_path + 1, text, length);
	return bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0;
}

/* Nobody talks here. */
static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	return fd;
}

int node_announce(const char *name, pid_t pid, int control_fd)
{
	int fd = make_socket(), error;
	char text[128];

	snprintf(text, sizeof(text), "npusim/%x/%x/%s/%x/%x", geteuid(), pid_namespace(), name,
		 (unsigned)pid, (unsigned)control_fd);
	if (fd < 0 || bind_abstract(fd, text))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The thread that was joining a node is not in the child, and neither are the memories. */
static void forget_in_child(void)
{
	own_file_close(&startup_lock);
	pthread_mutex_init(&startup_mutex, NULL);
	ranges_forget();
}

static void register_fork_handler(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

static bool take_startup_lock(const char *text)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	unsigned waits = 0;

	startup_lock = own_file(make_socket()); /* noted first, then bound: for a child */
	if (startup_lock.fd < 0)
		return false;
	while (!bind_abstract(startup_lock.fd, text)) {
		if (errno != EADDRINUSE || ++waits == LOCK_WAIT_MS * 5)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

bool node_startup_lock(const char *name, char **error)
{
	char text[128];

	snprintf(text, sizeof(text), "npusim/%x/%x/%s/lock", geteuid(), pid_namespace(), name);
	pthread_once(&startup_once, register_fork_handler);
	pthread_mutex_lock(&startup_mutex);
	if (take_startup_lock(text))
		return true;
	if (errno == EADDRINUSE)
		*error = node_text("node %s: another process has been joining it for %d s (it "
				   "holds the abstract socket \"@%s\"; `ss -xap | grep npusim` "
				   "names it); end that process, or choose another NPUSIM_NODE",
				   name, LOCK_WAIT_MS / 1000, text);
	else
		*error = node_text("node %s: cannot bind the abstract socket \"@%s\": %s", name,
				   text, strerror(errno));
	node_startup_unlock();
	return false;
}

void node_startup_unlock(void)
{
	own_file_close(&startup_lock);
	pthread_mutex_unlock(&startup_mutex);
}
