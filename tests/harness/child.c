/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a function in a forked child and tells how it ended. Judges and words nothing else.
 */
#include "harness-private.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 2 /* apart, where the kernel or a filter has no pidfd */

static char *last_stderr;

const char *harness_last_stderr(void)
{
	return last_stderr != NULL ? last_stderr : "";
}

void harness_describe_ending(enum harness_ending ending, int number,
			     char text[HARNESS_ENDING_LENGTH])
{
	const char *name = ending == HARNESS_DIES_BY_SIGNAL ? sigabbrev_np(number) : NULL;

	if (ending == HARNESS_EXITS)
		snprintf(text, HARNESS_ENDING_LENGTH, "exits with status %d", number);
	else
		snprintf(text, HARNESS_ENDING_LENGTH, "dies of SIG%s (%d)",
			 name != NULL ? name : "?", number);
}

/* A sanitizer turns a deadly signal into an exit with status 1. In the child the signal itself is
 * wanted, so its handlers go; those of the code under test stay. */
static void drop_sanitizer_handlers(void)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
		struct sigaction action;
		Dl_info info;
		void *handler;

		if (sigaction(deadly[i], NULL, &action) != 0 || action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			continue;
		memcpy(&handler, &action.sa_sigaction, sizeof(handler));
		if (dladdr(handler, &info) == 0)
			continue;
		if ((info.dli_sname != NULL && strstr(info.dli_sname, "sanitizer") != NULL) ||
		    (info.dli_fname != NULL && (strstr(info.dli_fname, "/libasan.so") != NULL ||
						strstr(info.dli_fname, "/libtsan.so") != NULL ||
						strstr(info.dli_fname, "/libubsan.so") != NULL)))
			signal(deadly[i], SIG_DFL);
	}
}

static _Noreturn void be_child(void (*function)(void *arg), void *arg, int stderr_fd)
{
	const struct rlimit no_core = { 0, 0 };
	const bool failed_before = harness_has_failed();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	dup2(stderr_fd, STDERR_FILENO);
	drop_sanitizer_handlers();
	function(arg);
	fflush(NULL);
	_exit(harness_has_failed() && !failed_before ? HARNESS_CHILD_FAILED : 0);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool wait_for(pid_t pid, int *out_status)
{
	struct pollfd child = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	const int64_t end = now_ms() + HARNESS_CHILD_SECONDS * 1000;
	int64_t left;
	pid_t got;

	while ((got = waitpid(pid, out_status, WNOHANG)) == 0 && (left = end - now_ms()) > 0)
		poll(&child, 1, child.fd >= 0 ? (int)left : LOOK_MS);
	if (got == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, out_status, 0);
	}
	if (child.fd >= 0)
		close(child.fd);
	return got == pid;
}

static void keep_stderr(int fd)
{
	size_t length = 0;

	free(last_stderr);
	last_stderr = calloc(1, HARNESS_CHILD_STDERR + 1);
	while (last_stderr != NULL && length < HARNESS_CHILD_STDERR) {
		ssize_t got = pread(fd, last_stderr + length, HARNESS_CHILD_STDERR - length,
				    (off_t)length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
}

bool harness_run_child(void (*function)(void *arg), void *arg, enum harness_ending ending,
		       int number, char out_text[HARNESS_ENDING_LENGTH])
{
	int fd = memfd_create("stderr of a test's child", MFD_CLOEXEC);
	int status = 0;
	enum harness_ending got_ending;
	int got_number;
	pid_t pid;

	fflush(NULL);
	pid = fd < 0 ? -1 : fork();
	if (pid == 0)
		be_child(function, arg, fd);
	if (pid < 0) {
		snprintf(out_text, HARNESS_ENDING_LENGTH, "never ran: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}

	bool ended = wait_for(pid, &status);

	keep_stderr(fd);
	close(fd);
	if (!ended) {
		snprintf(out_text, HARNESS_ENDING_LENGTH, "ran for %d s and was killed",
			 HARNESS_CHILD_SECONDS);
		return false;
	}
	got_ending = WIFSIGNALED(status) ? HARNESS_DIES_BY_SIGNAL : HARNESS_EXITS;
	got_number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	harness_describe_ending(got_ending, got_number, out_text);
	return got_ending == ending && got_number == number;
}
