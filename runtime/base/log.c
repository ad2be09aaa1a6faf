/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: where lines go and which are written. Owns the file descriptor and the level, both read
 * from the environment once. It never fails, and never blocks a caller if it cannot write.
 */
#include "base/base.h"
#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static atomic_int log_level = -1;
static int log_fd = STDERR_FILENO;

static void write_line(const char *text, size_t length)
{
	ssize_t done;

	do
		done = write(log_fd, text, length);
	while (done < 0 && errno == EINTR);
}

static void log_open(void)
{
	const char *level = npu_var_get(NPU_VAR_LOG, NULL);
	const char *path = npu_var_get(NPU_VAR_LOG_FILE, NULL);
	int chosen = NPU_LOG_WARN;

	for (int i = 0; i <= NPU_LOG_DEBUG; i++)
		if (strcmp(level, level_names[i]) == 0)
			chosen = i;
	if (path[0] != '\0' && strcmp(path, "stderr") != 0) {
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

		if (fd >= 0)
			log_fd = fd;
		else
			dprintf(STDERR_FILENO,
				"npusim[%d] warn: NPUSIM_LOG_FILE=%s cannot be opened: %s; logging "
				"to stderr\n",
				(int)getpid(), path, strerror(errno));
	}
	atomic_store_explicit(&log_level, chosen, memory_order_release);
}

bool npu_log_enabled(enum npu_log_level level)
{
	int limit = atomic_load_explicit(&log_level, memory_order_acquire);

	if (limit < 0) {
		pthread_once(&log_once, log_open);
		limit = atomic_load_explicit(&log_level, memory_order_acquire);
	}
	return (int)level <= limit;
}

/* Formats into `line`, or into memory of its own if that is too short; what comes back is free()d
 * if it is not `line`. */
static char *format_line(char *line, enum npu_log_level level, const char *format, va_list args,
			 size_t *out_length)
{
	int head = snprintf(line, LINE_BYTES, "npusim[%d] %s: ", (int)getpid(), level_names[level]);
	va_list again;
	char *text = line;
	int body;

	va_copy(again, args);
	body = vsnprintf(line + head, (size_t)(LINE_BYTES - head), format, args);
	if (body < 0)
		body = 0;
	if (head + body + 2 > LINE_BYTES) {
		text = malloc((size_t)(head + body + 2));
		if (text != NULL) {
			memcpy(text, line, (size_t)head);
			vsnprintf(text + head, (size_t)body + 1, format, again);
		} else {
			text = line;
			body = LINE_BYTES - head - 2;
		}
	}
	va_end(again);
	text[head + body] = '\n';
	*out_length = (size_t)(head + body) + 1;
	return text;
}

void npu_log(enum npu_log_level level, const char *format, ...)
{
	UNCANCELLED;
	int saved = errno;
	char line[LINE_BYTES];
	char *text;
	size_t length;
	va_list args;

	if (!npu_log_enabled(level))
		return;
	va_start(args, format);
	text = format_line(line, level, format, args, &length);
	va_end(args);
	write_line(text, length);
	if (text != line)
		free(text);
	errno = saved;
}
