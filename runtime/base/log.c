/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: where lines go and which are written; where reports go; and the calls of the program
 * that failed, of which it tells each kind once, and their number at the end. Owns the file
 * descriptor, the level and the report file's name, all read from the environment once, and a table
 * of kinds, each a site and a code, which does not grow: what finds no place in it is counted
 * alone. It never fails, and never blocks a caller if it cannot write.
 */
#include "base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/stack.h"

#define LINE_BYTES 6144 /* what is longer is cut */

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static atomic_int log_level = -1;
static int log_fd = STDERR_FILENO;
static const char *log_colours[] = { "", "", "", "" };
static char *report_path; /* NULL: none */
static unsigned long long report_stderr[] = { ULLONG_MAX, ULLONG_MAX };

const char *npu_colour(enum npu_log_level level, int fd)
{
	static const char *const colours[] = { "\033[31m", "\033[33m", "", "" };
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	bool shows = term && strcmp(term, "dumb") != 0 && !(none && none[0]) && isatty(fd);

	return shows ? colours[level] : "";
}

static void log_open(void)
{
	const char *level = npu_var_get(NPU_VAR_LOG, NULL);
	const char *path = npu_var_get(NPU_VAR_LOG_FILE, NULL);
	const char *reports = npu_var_get(NPU_VAR_REPORT_FILE, NULL);
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
	for (int i = 0; i <= NPU_LOG_DEBUG; i++)
		log_colours[i] = npu_colour(i, log_fd);
	if (reports[0] != '\0')
		report_path = strdup(reports); /* the program may change its environment */
	sscanf(npu_var_get(NPU_VAR_REPORT_STDERR, NULL), "%llu:%llu", &report_stderr[0],
	       &report_stderr[1]);
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
	head = snprintf(line, sizeof(line), "%snpusim[%d] %s:%s ", log_colours[level],
			(int)getpid(), level_names[level], NPU_COLOUR_END(log_colours[level]));
	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	if (body < 0)
		body = 0;
	if (head + body > LINE_BYTES - 2)
		body = LINE_BYTES - 2 - head;
	line[head + body] = '\n';
	(void)TEMP_FAILURE_RETRY(write(log_fd, line, (size_t)(head + body) + 1));
	errno = saved;
}

void npu_report_write(const char *text, size_t bytes)
{
	int saved = errno, fd;
	struct stat err = { 0 }, log;

	npu_log_enabled(NPU_LOG_ERROR);
	(void)TEMP_FAILURE_RETRY(write(STDERR_FILENO, text, bytes));
	fstat(STDERR_FILENO, &err);
	if (log_fd != STDERR_FILENO && fstat(log_fd, &log) == 0 &&
	    (log.st_dev != err.st_dev || log.st_ino != err.st_ino))
		(void)TEMP_FAILURE_RETRY(write(log_fd, text, bytes));
	if (report_path != NULL &&
	    (err.st_dev != report_stderr[0] || err.st_ino != report_stderr[1])) {
		fd = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
		if (fd >= 0) {
			(void)TEMP_FAILURE_RETRY(write(fd, text, bytes));
			close(fd);
		}
	}
	errno = saved;
}

#define KIND_MAX    256u
#define TEXT_BYTES  5120
#define FIRST_BYTES 1024

static _Atomic uint64_t kinds[KIND_MAX]; /* 0: free */
static _Atomic uint64_t failures, expected, kind_count;
static char first_text[FIRST_BYTES];
static atomic_bool first_is_there;
static bool is_off; /* begin() */

static void in_child(void)
{
	memset((void *)kinds, 0, sizeof(kinds));
	atomic_store(&failures, 0);
	atomic_store(&expected, 0);
	atomic_store(&kind_count, 0);
	atomic_store(&first_is_there, false);
}

static void begin(void)
{
	is_off = strcmp(npu_var_get(NPU_VAR_FAILURES, NULL), "off") == 0;
	pthread_atfork(NULL, NULL, in_child);
}

/* True for the first of its kind that finds a place. */
static bool is_new_kind(const struct npu_failure *failure)
{
	uint64_t key =
		((uint64_t)(uintptr_t)failure->site ^ (uint64_t)(unsigned)failure->code << 48) *
			UINT64_C(0x9e3779b97f4a7c15) |
		1;

	for (unsigned i = 0; i < KIND_MAX; i++) {
		_Atomic uint64_t *place = &kinds[((key >> 32) + i) % KIND_MAX];
		uint64_t found = atomic_load_explicit(place, memory_order_relaxed);

		if (found == 0 && atomic_compare_exchange_strong(place, &found, key)) {
			atomic_fetch_add(&kind_count, 1);
			return true;
		}
		if (found == key)
			return false;
	}
	return false;
}

/* "aclrtUnmapMem: virPtr is ... (107000 ACL_ERROR_RT_PARAM_INVALID, at prog+0x11f3)" */
static void describe(const struct npu_failure *failure, const char *text, char *out, size_t room)
{
	const char *call = failure->call, *name = failure->name, *file = NULL;
	bool named = text != NULL && strncmp(text, call, strlen(call)) == 0;
	char *by = npu_stack_words(npu_stack_here());
	Dl_info info = { 0 };

	if (dladdr(failure->site, &info) != 0 && info.dli_fname != NULL)
		file = basename(info.dli_fname);
	snprintf(out, room, "%s%s%s (%d%s%s, at %s+%#zx%s%s)", named ? "" : call,
		 named          ? ""
		 : text != NULL ? ": "
				: " failed",
		 text ?: "", failure->code, name != NULL ? " " : "", name ?: "", file ?: "",
		 (size_t)((uintptr_t)failure->site - (uintptr_t)info.dli_fbase),
		 by != NULL ? " by " : "", by ?: "");
	free(by);
}

static void note(const struct npu_failure *failure)
{
	bool logged = false, is_new = is_new_kind(failure);
	const char *text = failure->text ?: npu_message_next(&logged);
	enum npu_log_level level =
		is_new && !failure->expected && !logged ? NPU_LOG_WARN : NPU_LOG_INFO;
	char line[TEXT_BYTES];
	bool is_first;

	if (failure->expected)
		atomic_fetch_add(&expected, 1);
	is_first = atomic_fetch_add(&failures, 1) == 0;
	if (!is_first && !npu_log_enabled(level))
		return;
	describe(failure, text, line, sizeof(line));
	npu_log(level, "%s", line);
	if (is_first) {
		memcpy(first_text, line, sizeof(first_text) - 1);
		atomic_store(&first_is_there, true);
	}
}

void npu_failure_note(const struct npu_failure *failure)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, begin);
	if (!is_off)
		note(failure);
	errno = saved;
}

__attribute__((destructor)) static void end_of_process(void)
{
	uint64_t count = atomic_load(&failures), kind = atomic_load(&kind_count);
	uint64_t tried = atomic_load(&expected);
	char more[64] = "";

	if (count == 0)
		return;
	if (tried > 0)
		snprintf(more, sizeof(more), ", %" PRIu64 " of them such as programs try", tried);
	npu_log(NPU_LOG_WARN, "%s of %s%s%s; the first: %s", npu_counted(count, "failure"),
		npu_counted(kind, "kind"), kind == KIND_MAX ? " or more" : "", more,
		atomic_load(&first_is_there) ? first_text : "?");
}
