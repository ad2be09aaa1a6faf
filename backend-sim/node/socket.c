/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds the abstract sockets of a node, for newcomers: the one by which others find a member, and
 * the start-up lock. A member's is "npusim/UID/PIDNS/NODE/PID/FD" (numbers in hexadecimal), and
 * nobody reads it.
 *
 * Who has the socket "npusim/UID/PIDNS/NODE/lock" has the start-up lock: it reaches exactly as far
 * as discovery does. It listens, and who wants the lock connects and sleeps. To unlock is to send
 * the listening socket to the one who has slept longest: newcomers enter one by one, and each is
 * woken once. Where the holder dies, or the one that it was sent to, the kernel closes the socket,
 * and with it the connections of all who wait: they begin anew.
 */
#include "join.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

#define LOCK_WAIT_MS 20000 /* for one process that joins */
#define LOCK_QUEUE   4096

/* The start-up lock, and the connection by which it is waited for: a child that is forked meanwhile
 * must keep neither. */
static struct own_file startup_lock = { .fd = -1 }, startup_wait = { .fd = -1 };
static pthread_mutex_t startup_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Held from where a socket of the lock gets its number until that is noted, and while forking. */
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t startup_once = PTHREAD_ONCE_INIT;

char *socket_prefix(void)
{
	struct stat file = { .st_ino = 0 };

	stat("/proc/self/ns/pid", &file);
	return g_strdup_printf("npusim/%x/%x/", geteuid(), (unsigned)file.st_ino);
}

/* False, and errno: no such address can be. */
static bool make_address(const char *text, struct sockaddr_un *out, socklen_t *size)
{
	size_t length = strlen(text);

	errno = ENAMETOOLONG;
	if (length > sizeof(out->sun_path) - 1)
		return false;
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path + 1, text, length);
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	return true;
}

int node_announce(const char *name, pid_t pid, int control_fd)
{
	g_autofree char *prefix = socket_prefix();
	g_autofree char *text =
		g_strdup_printf("%s%s/%x/%x", prefix, name, (unsigned)pid, (unsigned)control_fd);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;
	struct sockaddr_un address;
	socklen_t size;

	if (fd < 0)
		return -1;
	shutdown(fd, SHUT_RDWR); /* nobody talks here */
	if (make_address(text, &address, &size) && bind(fd, (struct sockaddr *)&address, size) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* ---- the start-up lock ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&fork_mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&fork_mutex);
}

/* The thread that was joining a node is not in the child, and neither are the memories. */
static void forget_in_child(void)
{
	pthread_mutex_unlock(&fork_mutex);
	own_file_close(&startup_lock);
	own_file_close(&startup_wait);
	pthread_mutex_init(&startup_mutex, NULL);
	ranges_forget();
}

static void register_fork_handler(void)
{
	pthread_atfork(before_fork, after_fork, forget_in_child);
}

static int note_socket(struct own_file *file, int flags)
{
	pthread_mutex_lock(&fork_mutex);
	*file = own_file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
	pthread_mutex_unlock(&fork_mutex);
	return file->fd;
}

static void make_message(struct msghdr *message, void *control, size_t control_size)
{
	static char byte;
	static struct iovec bytes = { .iov_base = &byte, .iov_len = 1 };

	*message = (struct msghdr){ .msg_iov = &bytes,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = control_size };
}

/* False: the other end is closed. */
static bool send_lock(int to)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr message;
	struct cmsghdr *head;

	make_message(&message, control, sizeof(control));
	head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &startup_lock.fd, sizeof(int));
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* 0; or ECONNRESET: who had the lock died; or another error. */
static int receive_lock(int from)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct cmsghdr *head = NULL;
	struct msghdr message;
	ssize_t length;
	int error = 0, fd;

	make_message(&message, control, sizeof(control));
	pthread_mutex_lock(&fork_mutex);
	length = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (length != 1)
		error = length < 0 && errno != EAGAIN && errno != EINTR ? errno : ECONNRESET;
	else if (!(head = CMSG_FIRSTHDR(&message)) || head->cmsg_type != SCM_RIGHTS)
		error = EMFILE; /* no number is free for it */
	if (!error) {
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
		startup_lock = own_file(fd);
		listen(fd, LOCK_QUEUE); /* so that those who connect learn who has it */
	}
	pthread_mutex_unlock(&fork_mutex);
	return error;
}

static bool bind_lock(const struct sockaddr_un *address, socklen_t size)
{
	if (note_socket(&startup_lock, SOCK_NONBLOCK) >= 0 &&
	    bind(startup_lock.fd, (const struct sockaddr *)address, size) == 0)
		return listen(startup_lock.fd, LOCK_QUEUE) == 0;
	return false;
}

/* Connects to whom has the lock. 0, or an error: ECONNREFUSED and EPROTOTYPE, it does not listen;
 * EAGAIN: LOCK_WAIT_MS are over. */
static int connect_lock(const struct sockaddr_un *address, socklen_t size, pid_t *out_holder)
{
	const struct timeval timeout = { .tv_sec = LOCK_WAIT_MS / 1000 };
	struct ucred holder;
	socklen_t length = sizeof(holder);

	if (note_socket(&startup_wait, 0) < 0 ||
	    setsockopt(startup_wait.fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    connect(startup_wait.fd, (const struct sockaddr *)address, size) != 0 ||
	    getsockopt(startup_wait.fd, SOL_SOCKET, SO_PEERCRED, &holder, &length) != 0)
		return errno;
	*out_holder = holder.pid;
	return 0;
}

/* Sleeps until the lock comes: 0. ECONNRESET: it is to be tried for again. ETIMEDOUT: nobody sent
 * it for LOCK_WAIT_MS. */
static int wait_for_lock(void)
{
	struct pollfd wait = { .fd = startup_wait.fd, .events = POLLIN };
	const int64_t end = clock_ms() + LOCK_WAIT_MS;
	int ready;

	do {
		int64_t left = end - clock_ms();

		ready = poll(&wait, 1, left > 0 ? (int)left : 0);
	} while (ready < 0 && errno == EINTR);
	return ready > 0 ? receive_lock(wait.fd) : ready < 0 ? errno : ETIMEDOUT;
}

/* 0 or an error; ETIMEDOUT: one process has had the lock for LOCK_WAIT_MS. */
static int take_lock(const struct sockaddr_un *address, socklen_t size)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	int64_t refused_since = 0;
	pid_t holder = 0, before = 0;

	for (;;) {
		int error;

		if (bind_lock(address, size))
			return 0;
		error = errno;
		own_file_close(&startup_lock);
		if (error != EADDRINUSE)
			return error;
		error = connect_lock(address, size, &holder);
		if (error == 0 && before && holder == before)
			error = ETIMEDOUT;
		else if (error == 0)
			error = wait_for_lock();
		own_file_close(&startup_wait);
		switch (error) {
		case ETIMEDOUT:
			if (before == holder)
				return ETIMEDOUT;
			before = holder;
			break;
		case ECONNREFUSED: /* it was just bound, or has just been closed */
		case EPROTOTYPE:   /* an earlier version of npusim has it */
			if (!refused_since)
				refused_since = clock_ms();
			if (clock_ms() - refused_since > LOCK_WAIT_MS)
				return ETIMEDOUT;
			nanosleep(&pause, NULL);
			continue;
		case ECONNRESET:
		case EINTR:
			before = 0;
			break;
		case EAGAIN:
			return ETIMEDOUT;
		default:
			return error;
		}
		refused_since = 0;
	}
}

bool node_startup_lock(const char *name, char **error)
{
	g_autofree char *prefix = socket_prefix();
	g_autofree char *text = g_strdup_printf("%s%s/lock", prefix, name);
	struct sockaddr_un address;
	socklen_t size;
	int cause;

	pthread_once(&startup_once, register_fork_handler);
	pthread_mutex_lock(&startup_mutex);
	cause = make_address(text, &address, &size) ? take_lock(&address, size) : errno;
	if (!cause)
		return true;
	if (cause == ETIMEDOUT)
		*error = g_strdup_printf(
			"node %s: another process has been joining it for %d s (it "
			"holds the abstract socket \"@%s\"; `ss -xap | grep npusim` "
			"names it); end that process, or choose another NPUSIM_NODE",
			name, LOCK_WAIT_MS / 1000, text);
	else
		*error = g_strdup_printf("node %s: cannot bind the abstract socket \"@%s\": %s",
					 name, text, strerror(cause));
	pthread_mutex_unlock(&startup_mutex);
	return false;
}

void node_startup_unlock(void)
{
	bool sent = false;
	int next;

	while (!sent && own_file_is_open(&startup_lock) &&
	       (next = accept4(startup_lock.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		sent = send_lock(next);
		close(next);
	}
	own_file_close(&startup_lock);
	pthread_mutex_unlock(&startup_mutex);
}
