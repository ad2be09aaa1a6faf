/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes find a node, without a file that could become stale: by abstract sockets, which the
 * kernel lists in /proc/self/net/unix and removes with the process. A member's is
 * "npusim/UID/PIDNS/NODE/PID/FD" (numbers in hexadecimal): members are reached through
 * /proc/PID/fd/FD, which the kernel opens only for the same user. The socket itself answers one
 * question: what the process holds.
 *
 * Who has the socket "npusim/UID/PIDNS/NODE/lock" has the start-up lock: it reaches exactly as far
 * as discovery does. It listens, and who wants the lock connects and sleeps. To unlock is to send
 * the listening socket to the one who has slept longest and is not stopped: newcomers enter one by
 * one, and each is woken once. Where the holder dies, or the one that it was sent to, the kernel
 * closes the socket, and with it the connections of all who wait: they begin anew.
 *
 * Names of abstract sockets are anybody's. So the lock has some: it is taken by taking all of them,
 * in order, but for those that another user has. Two who have it at once would have to agree on no
 * name at all.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK_WAIT_MS 20000 /* for one process that joins */
#define LOCK_QUEUE   4096
#define ASKERS_MAX   16
#define LOCK_NAMES   3
#define LOCK_MUTE_MS 1000 /* a name of ours listens at once; one that does not is not ours */

static struct own_file startup_locks[LOCK_NAMES] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
/* Held while this process has the start-up lock or waits for it, and while it forks: a child must
 * keep none of the sockets. */
static pthread_mutex_t startup_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t startup_once = PTHREAD_ONCE_INIT;

static char *socket_prefix(void)
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

int node_socket(const char *name, pid_t pid, int control_fd, bool asks)
{
	g_autofree char *prefix = socket_prefix();
	g_autofree char *text =
		g_strdup_printf("%s%s/%x/%x", prefix, name, (unsigned)pid, (unsigned)control_fd);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (asks ? SOCK_NONBLOCK : 0), 0), error;
	struct sockaddr_un address;
	socklen_t size;

	if (fd < 0)
		return -1;
	if (make_address(text, &address, &size) &&
	    (asks ? connect(fd, (struct sockaddr *)&address, size) == 0
		  : bind(fd, (struct sockaddr *)&address, size) == 0 &&
			     listen(fd, ASKERS_MAX) == 0))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* ---- what a member holds ---- */

/* Who is at the other end. */
static struct ucred peer_of(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer;
}

void node_on_question(struct node *node, char *(*answer)(void *arg), void *arg)
{
	node->answer_arg = arg;
	PUT(node->answer, answer);
}

void node_answer(struct node *node)
{
	const struct timeval timeout = { .tv_sec = 1 };
	int asker = own_file_is_open(&node->socket_file)
			    ? accept4(node->socket_file.fd, NULL, NULL, SOCK_CLOEXEC)
			    : -1;
	char *text = NULL;

	if (asker < 0) { /* a visitor has none, or the program has closed it */
		sleep(1);
		return;
	}
	UNCANCELLED;
	if (peer_of(asker).uid == geteuid())
		text = GET(node->answer) ? node->answer(node->answer_arg) : g_strdup("");
	setsockopt(asker, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (text) /* its end is the sign that it is whole */
		send(asker, text, strlen(text) + 1, MSG_NOSIGNAL);
	close(asker);
	g_free(text);
}

char *node_hear(int socket, int64_t until)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	GString *text = g_string_new(NULL);
	char piece[4096];
	ssize_t got;

	while (poll(&ready, 1, (int)MAX(until - clock_ms(), 0)) > 0 &&
	       (got = read(socket, piece, sizeof(piece))) > 0)
		g_string_append_len(text, piece, got);
	close(socket);
	return g_string_free(text, text->len == 0 || text->str[text->len - 1] != '\0');
}

/* ---- the start-up lock ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&startup_mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&startup_mutex);
}

static void register_fork_handler(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

void node_watch_forks(void)
{
	pthread_once(&startup_once, register_fork_handler);
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
static bool send_lock(const struct own_file *lock, int to)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr message;
	struct cmsghdr *head;

	make_message(&message, control, sizeof(control));
	head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &lock->fd, sizeof(int));
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* Sleeps until the lock comes: 0. ECONNRESET: who had it died, or sent something else, and it is to
 * be tried for again. ETIMEDOUT: nobody sent it for LOCK_WAIT_MS. */
static int receive_lock(struct own_file *lock, int from)
{
	const int64_t end = clock_ms() + LOCK_WAIT_MS;
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct cmsghdr *head;
	struct msghdr message;
	ssize_t length;
	int fd;

	do {
		make_message(&message, control, sizeof(control));
		length = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR && clock_ms() < end);
	if (length < 0)
		return errno == EAGAIN || errno == EINTR ? ETIMEDOUT : errno;
	head = CMSG_FIRSTHDR(&message);
	if (length == 0 || !head || head->cmsg_type != SCM_RIGHTS) /* EMFILE: no number is free */
		return message.msg_flags & MSG_CTRUNC ? EMFILE : ECONNRESET;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	*lock = own_file(fd);
	listen(fd, LOCK_QUEUE); /* so that those who connect learn who has it */
	return 0;
}

static bool bind_lock(struct own_file *lock, const struct sockaddr_un *address, socklen_t size)
{
	*lock = own_file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	return lock->fd >= 0 && bind(lock->fd, (const struct sockaddr *)address, size) == 0 &&
	       listen(lock->fd, LOCK_QUEUE) == 0;
}

/* Connects to whom has the lock. 0, or an error: ECONNREFUSED and EPROTOTYPE, it does not listen;
 * EAGAIN: LOCK_WAIT_MS are over; EPERM: another user. */
static int connect_lock(struct own_file *wait, const struct sockaddr_un *address, socklen_t size,
			struct ucred *out_holder)
{
	const struct timeval timeout = { .tv_sec = LOCK_WAIT_MS / 1000 };

	*wait = own_file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (wait->fd < 0 ||
	    setsockopt(wait->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    setsockopt(wait->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    connect(wait->fd, (const struct sockaddr *)address, size) != 0)
		return errno;
	*out_holder = peer_of(wait->fd);
	return out_holder->uid == geteuid() ? 0 : EPERM;
}

/* 0, or an error; ETIMEDOUT: one process had it for LOCK_WAIT_MS; EPERM: it is another user's. */
static int take_name(struct own_file *lock, const struct sockaddr_un *address, socklen_t size,
		     struct ucred *holder)
{
	int64_t until = 0;
	pid_t before = 0;

	for (;;) {
		struct own_file wait;
		bool mute;
		int error;

		if (bind_lock(lock, address, size))
			return 0;
		error = errno;
		own_file_close(lock);
		if (error != EADDRINUSE)
			return error;
		error = connect_lock(&wait, address, size, holder);
		/* It was just bound, or has just been closed; or it is a socket of another kind. */
		mute = error == ECONNREFUSED || error == EPROTOTYPE;
		if (before != (mute ? -1 : holder->pid)) {
			before = mute ? -1 : holder->pid;
			until = clock_ms() + (mute ? LOCK_MUTE_MS : LOCK_WAIT_MS);
		}
		if ((mute || error == 0) && clock_ms() >= until)
			error = mute ? EPERM : EAGAIN;
		else if (error == 0)
			error = receive_lock(lock, wait.fd);
		own_file_close(&wait);
		if (error == EAGAIN)
			return ETIMEDOUT;
		if (error == ETIMEDOUT)
			until = 0;
		else if (error == ECONNREFUSED || error == EPROTOTYPE || error == ECONNRESET ||
			 error == EINTR)
			g_usleep(200);
		else
			return error;
	}
}

/* As many of the names as are ours to take. 0, or an error. */
static int take_lock(const char *text, struct ucred *holder)
{
	struct sockaddr_un address;
	socklen_t size;
	int error = EPERM;

	for (unsigned i = 0; i < LOCK_NAMES; i++) {
		g_autofree char *name = i ? g_strdup_printf("%s%u", text, i) : g_strdup(text);
		int cause = make_address(name, &address, &size)
				    ? take_name(&startup_locks[i], &address, size, holder)
				    : errno;

		if (cause && cause != EPERM)
			return cause;
		error = cause ? error : 0;
	}
	return error;
}

/* To the first who waits; who is stopped would keep all out, and asks again when he goes on. */
static void pass_lock(struct own_file *lock)
{
	bool sent = false;
	int next;

	while (!sent && own_file_is_open(lock) &&
	       (next = accept4(lock->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		sent = !process_is_stopped(peer_of(next).pid) && send_lock(lock, next);
		close(next);
	}
	own_file_close(lock);
}

/* The first name last: where others wait. */
void node_startup_unlock(void)
{
	for (unsigned i = LOCK_NAMES; i-- > 0;)
		pass_lock(&startup_locks[i]);
	pthread_mutex_unlock(&startup_mutex);
}

bool node_startup_lock(const char *name, char **error)
{
	g_autofree char *prefix = socket_prefix();
	g_autofree char *text = g_strdup_printf("%s%s/lock", prefix, name);
	struct ucred holder = { .pid = 0 };
	int cause;

	node_watch_forks();
	pthread_mutex_lock(&startup_mutex);
	cause = take_lock(text, &holder);
	if (!cause)
		return true;
	if (cause == ETIMEDOUT || (cause == EPERM && !holder.pid))
		*error = g_strdup_printf(
			"node %s: %s keeps others from joining it (it holds the abstract socket "
			"\"@%s\"); end that process, or choose another NPUSIM_NODE",
			name,
			holder.pid ? npu_text("process %d", holder.pid)
				   : "a process (`ss -xap` shows which)",
			text);
	else if (cause == EPERM)
		*error = g_strdup_printf(
			"node %s: another user (process %d, user %d) has bound the abstract "
			"sockets \"@%s\" by which processes join; choose another NPUSIM_NODE",
			name, holder.pid, (int)holder.uid, text);
	else
		*error = g_strdup_printf("node %s: cannot bind the abstract socket \"@%s\": %s",
					 name, text, strerror(cause));
	node_startup_unlock();
	return false;
}

#define LOOKS       4      /* none is overlooked */
#define LIST_BUFFER 131072 /* the kernel gives whole lines, a page of them at most */
#define LIST_FULL   3840   /* at least so much of a page, unless there are no more */

/* ---- what the kernel lists ---- */

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

/* "ADDRESS: REFERENCES PROTOCOL FLAGS ...", with the kernel's __SO_ACCEPTCON */
static bool lists_listener(const char *line)
{
	unsigned flags;

	return sscanf(line, "%*s %*s %*s %x", &flags) == 1 && (flags & 0x10000);
}

/* Listening sockets whose name begins with the prefix, of that node, or of all with NULL. */
static void search_lines(char *text, const char *prefix, const char *node, GArray *found)
{
	struct candidate candidate;
	char *place = NULL;

	for (char *line = strtok_r(text, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
		const char *name = strstr(line, prefix);

		/* A connection that waits to be accepted has the name, too. */
		if (name && lists_listener(line) &&
		    parse_member(name + strlen(prefix), &candidate) &&
		    (!node || !strcmp(node, candidate.name)))
			g_array_append_val(found, candidate);
	}
}

GArray *node_discover(const char *name)
{
	g_autofree char *start = socket_prefix(), *prefix = g_strdup_printf(" @%s", start);
	g_autofree char *text = g_malloc(LIST_BUFFER);
	g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct candidate));

	/* A list of several reads may leave out a socket that is there all the time, since others
	 * came or went between two. */
	for (unsigned looks = 0, reads = 2; looks < LOOKS && !found->len && reads > 1; looks++) {
		int list = open("/proc/self/net/unix", O_RDONLY | O_CLOEXEC), error;
		ssize_t length;

		if (list < 0 && errno != ENOENT)
			return NULL;
		if (list < 0) /* there is no /proc: nobody can be reached */
			break;
		for (reads = 0, length = LIST_FULL; length >= LIST_FULL; reads++) {
			length = read(list, text, LIST_BUFFER - 1);
			text[MAX(length, 0)] = '\0';
			search_lines(text, prefix, name, found);
		}
		error = errno;
		close(list);
		errno = error;
		if (length < 0)
			return NULL;
	}
	return g_steal_pointer(&found);
}
