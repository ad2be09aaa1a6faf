/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: where lines go and which are written; and where reports go. Owns the file descriptor,
 * the level and the report file's name, all read from the environment once. It never fails, and
 * never blocks a caller if it cannot write.
 */
#include "base/base.h"
#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 1024

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static atomic_int log_level = -1;
static int log_fd = STDERR_FILENO;
static char *report_path; /* NULL: none */
static unsigned long long report_stderr[] = { ULLONG_MAX, ULLONG_MAX };

static void write_line(int fd, const char *text, size_t length)
{
	ssize_t done;

	do
		done = write(fd, text, length);
	while (done < 0 && errno == EINTR);
}

/* Copies: the program may change its environment. */
static void read_report_variables(void)
{
	const char *path = npu_var_get(NPU_VAR_REPORT_FILE, NULL);

	if (path[0] != '\0')
		report_path = strdup(path);
	sscanf(npu_var_get(NPU_VAR_REPORT_STDERR, NULL), "%llu:%llu", &report_stderr[0],
	       &report_stderr[1]);
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
	read_report_variables();
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
__attribute__((format(printf, 3, 0))) static char *format_line(char *line, enum npu_log_level level,
							       const char *format, va_list args,
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
	write_line(log_fd, text, length);
	if (text != line)
		free(text);
	errno = saved;
}

void npu_report_write(const char *text, size_t bytes)
{
	int saved = errno, fd;
	struct stat err = { 0 }, log;

	npu_log_enabled(NPU_LOG_ERROR);
	write_line(STDERR_FILENO, text, bytes);
	fstat(STDERR_FILENO, &err);
	if (log_fd != STDERR_FILENO && fstat(log_fd, &log) == 0 &&
	    (log.st_dev != err.st_dev || log.st_ino != err.st_ino))
		write_line(log_fd, text, bytes);
	if (report_path != NULL &&
	    (err.st_dev != report_stderr[0] || err.st_ino != report_stderr[1])) {
		fd = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
		if (fd >= 0) {
			write_line(fd, text, bytes);
			close(fd);
		}
	}
	errno = saved;
}
