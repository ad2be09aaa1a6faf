/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a recorder writes, its header, and what happens to both in a child of fork().
 */
#include "trace/recorder-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/line.h"

#define HEAD_BYTES 1024

/* ---- fork ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_recorder *all;

uint32_t trace_recorder_serial(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void before_fork(void)
{
	pthread_mutex_lock(&all_lock);
	for (struct trace_recorder *r = all; r != NULL; r = r->next)
		pthread_mutex_lock(&r->lock);
}

static void after_fork(void)
{
	for (struct trace_recorder *r = all; r != NULL; r = r->next)
		pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&all_lock);
}

/* The child's trace is a new one. */
static void in_the_child(void)
{
	for (struct trace_recorder *r = all; r != NULL; r = r->next) {
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
	recorder->next = all;
	all = recorder;
	pthread_mutex_unlock(&all_lock);
}

void trace_recorder_delist(struct trace_recorder *recorder)
{
	pthread_mutex_lock(&all_lock);
	for (struct trace_recorder **at = &all; *at != NULL; at = &(*at)->next) {
		if (*at == recorder) {
			*at = recorder->next;
			break;
		}
	}
	pthread_mutex_unlock(&all_lock);
}

/* ---- the file ---- */

/* free() */
static char *file_name(const char *path, bool is_child)
{
	const char *mark = strstr(path, "%p");
	char *text;
	int length;

	if (mark != NULL)
		length = asprintf(&text, "%.*s%d%s", (int)(mark - path), path, (int)getpid(),
				  mark + 2);
	else if (is_child)
		length = asprintf(&text, "%s.%d", path, (int)getpid());
	else
		return strdup(path);
	return length < 0 ? NULL : text;
}

static void write_head(struct trace_recorder *recorder)
{
	char head[HEAD_BYTES], more[96];
	struct trace_text text = { .at = head, .end = head + sizeof(head) };
	int length = snprintf(more, sizeof(more), " pid=%d start=%" PRIu64 "%s", (int)getpid(),
			      recorder->start_ns, recorder->about[0] != '\0' ? " " : "");

	trace_text_put(&text, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE));
	trace_text_put(&text, "info program=", strlen("info program="));
	trace_text_put_value(&text, program_invocation_short_name);
	trace_text_put(&text, more, (size_t)length);
	trace_text_put(&text, recorder->about, strlen(recorder->about));
	trace_text_put(&text, "\n", 1);
	trace_file_write(recorder, head, (size_t)(text.at - head));
}

bool trace_file_open(struct trace_recorder *recorder, bool is_child)
{
	char *name = file_name(recorder->path, is_child);

	if (name == NULL)
		return false;
	recorder->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (recorder->fd < 0) {
		int code = errno;

		free(name);
		errno = code;
		return false;
	}
	free(name);
	write_head(recorder);
	return true;
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
	if (recorder->fd < 0 && !trace_file_open(recorder, true)) {
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
