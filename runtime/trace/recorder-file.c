/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a recorder writes, its header, and what happens to both in a child of fork().
 */
#include "trace/recorder-file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/line.h"

#define HEAD_BYTES 1024
#define NAMES_MAX  10000 /* of one process */

/* ---- fork ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(recorders, trace_recorder) all;

uint32_t trace_recorder_serial(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void before_fork(void)
{
	struct trace_recorder *r;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(r, &all, link)
	pthread_mutex_lock(&r->lock);
}

static void after_fork(void)
{
	struct trace_recorder *r;

	LIST_FOREACH(r, &all, link)
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&all_lock);
}

/* The child's trace is a new one. */
static void in_the_child(void)
{
	struct trace_recorder *r;

	LIST_FOREACH(r, &all, link)
	{
		if (r->fd >= 0)
			close(r->fd);
		r->fd = -1;
		r->serial = trace_recorder_serial();
		r->threads = 0;
		memset(r->numbers, 0, sizeof(r->numbers));
		trace_names_free(&r->places);
		trace_names_free(&r->handles);
		trace_names_free(&r->shares);
	}
	after_fork();
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_the_child);
}

void trace_recorder_enlist(struct trace_recorder *recorder)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, recorder, link);
	pthread_mutex_unlock(&all_lock);
}

void trace_recorder_delist(struct trace_recorder *recorder)
{
	pthread_mutex_lock(&all_lock);
	LIST_REMOVE(recorder, link);
	pthread_mutex_unlock(&all_lock);
}

/* ---- the file ---- */

/* The name that a process tries as its `turn`-th: the path with %p replaced, then with the
 * process's id and a number put in before the extension. free() */
static char *file_name(const char *path, unsigned turn)
{
	const char *mark = strstr(path, "%p"), *base, *dot;
	char pid[32], number[32] = "", *plain, *text;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (asprintf(&plain, "%.*s%s%s", (int)(mark != NULL ? mark - path : 0), path,
		     mark != NULL ? pid : "", mark != NULL ? mark + 2 : path) < 0)
		return NULL;
	if (turn == 0)
		return plain;
	base = basename(plain);
	dot = base[0] != '\0' ? strrchr(base + 1, '.') : NULL;
	dot = dot != NULL ? dot : plain + strlen(plain);
	turn += mark != NULL;
	if (turn > 1)
		snprintf(number, sizeof(number), "-%u", turn);
	if (asprintf(&text, "%.*s%s%s%s%s", (int)(dot - plain), plain, mark != NULL ? "" : ".",
		     mark != NULL ? "" : pid, number, dot) < 0)
		text = NULL;
	free(plain);
	return text;
}

/* False: the run has no name. */
static bool put_run(struct trace_text *text)
{
	bool named;
	const char *name = npu_var_get(NPU_VAR_RUN, &named);

	if (named) {
		trace_text_put(text, " run=", strlen(" run="));
		trace_text_put_value(text, name);
	}
	return named;
}

/* True if the file has the trace of a process of this run, which has ended. */
static bool is_of_this_run(const char *name)
{
	char head[HEAD_BYTES + 1], run[128];
	struct trace_text text = { .at = run, .end = run + sizeof(run) - 1 };
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, head, HEAD_BYTES) : 0;
	const char *found;

	if (fd >= 0)
		close(fd);
	head[length > 0 ? length : 0] = '\0';
	if (strncmp(head, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE)) != 0 || !put_run(&text))
		return false;
	*text.at = '\0';
	found = strstr(head, run);
	return found != NULL && isspace((unsigned char)found[text.at - run]);
}

/* The file, empty, locked for as long as it is open; -1 with errno: EEXIST where it is another
 * process's. What is no plain file is everyone's. */
static int claim(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	bool taken;
	struct stat at;

	if (fd < 0 || fstat(fd, &at) != 0 || !S_ISREG(at.st_mode))
		return fd;
	taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (!taken && !is_of_this_run(name) && ftruncate(fd, 0) == 0)
		return fd;
	close(fd);
	errno = EEXIST;
	return -1;
}

static void write_head(struct trace_recorder *recorder)
{
	char head[HEAD_BYTES], more[96];
	struct trace_text text = { .at = head, .end = head + sizeof(head) };
	int length = snprintf(more, sizeof(more), " pid=%d start=%" PRIu64, (int)getpid(),
			      recorder->start_ns);

	trace_text_put(&text, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE));
	trace_text_put(&text, "info program=", strlen("info program="));
	trace_text_put_value(&text, program_invocation_short_name);
	trace_text_put(&text, more, (size_t)length);
	put_run(&text);
	trace_text_put(&text, " ", recorder->about[0] != '\0');
	trace_text_put(&text, recorder->about, strlen(recorder->about));
	trace_text_put(&text, "\n", 1);
	trace_file_write(recorder, head, (size_t)(text.at - head));
}

const char *trace_path_problem(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat at;

	if (stat(path, &at) == 0)
		return S_ISDIR(at.st_mode)       ? "it is a folder"
		       : access(path, W_OK) != 0 ? strerror(errno)
						 : NULL;
	if (slash == NULL || slash == path)
		slash = path + (slash == path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	if (access(folder[0] == '\0' ? "." : folder, W_OK | X_OK) == 0)
		return NULL;
	return errno == ENOENT ? "its folder does not exist; make that first" : strerror(errno);
}

bool trace_file_open(struct trace_recorder *recorder)
{
	for (unsigned turn = 0; turn < NAMES_MAX; turn++) {
		char *name = file_name(recorder->path, turn);
		int code;

		if (name == NULL)
			return false;
		recorder->fd = claim(name);
		code = errno;
		if (recorder->fd >= 0 && turn > 0)
			npu_log(NPU_LOG_INFO,
				"NPUSIM_TRACE=%s is another process's; the calls of this one go to "
				"%s",
				recorder->path, name);
		free(name);
		errno = code;
		if (recorder->fd >= 0) {
			write_head(recorder);
			return true;
		}
		if (code != EEXIST)
			return false;
	}
	return false;
}

static void give_up(struct trace_recorder *recorder)
{
	npu_log(NPU_LOG_WARN, "NPUSIM_TRACE=%s cannot be written: %s; nothing more is recorded",
		recorder->path, strerror(errno));
	if (recorder->fd >= 0)
		close(recorder->fd);
	recorder->fd = -1;
	recorder->over = true;
}

void trace_file_write(struct trace_recorder *recorder, const char *text, size_t length)
{
	ssize_t done;

	if (recorder->over)
		return;
	if (recorder->fd < 0 && !trace_file_open(recorder)) {
		give_up(recorder);
		return;
	}
	do
		done = write(recorder->fd, text, length);
	while (done < 0 && errno == EINTR);
	if (done >= 0 && (size_t)done < length)
		errno = ENOSPC;
	if (done != (ssize_t)length)
		give_up(recorder);
}
