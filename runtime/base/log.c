/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: where lines go and which are written; and where reports go. Owns the file descriptor,
 * the level and the report file's name, all read from the environment once. It never fails, and
 * never blocks a caller if it cannot write.
 */
#include "base/base.h"
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 6144 /* what is longer is cut */

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

void npu_log(enum npu_log_level level, const char *format, ...)
{
	UNCANCELLED;
	int saved = errno, head, body;
	char line[LINE_BYTES];
	va_list args;

	if (!npu_log_enabled(level))
		return;
	head = snprintf(line, sizeof(line), "npusim[%d] %s: ", (int)getpid(), level_names[level]);
	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	if (body < 0)
		body = 0;
	if (head + body > LINE_BYTES - 2)
		body = LINE_BYTES - 2 - head;
	line[head + body] = '\n';
	write_line(log_fd, line, (size_t)(head + body) + 1);
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
