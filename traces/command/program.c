/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that the command starts as its child: in the command's own process group, so that the
 * terminal stays the program's; with the signals that the command gets; until the program's end,
 * not that of what it leaves behind. Nothing else of the program passes through here: the command
 * keeps no end of its pipes but stderr.
 */
#include "npusim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

int become_program(char **program)
{
	execvp(program[0], program);
	int why = errno;
	failure("%s: %s", program[0], g_strerror(why));
	return why == ENOENT ? NPUSIM_EXIT_NOT_FOUND : NPUSIM_EXIT_NOT_RUNNABLE;
}

gboolean is_traced(void)
{
	g_autofree char *text = NULL;
	const char *tracer = g_file_get_contents("/proc/self/status", &text, NULL, NULL)
				     ? strstr(text, "\nTracerPid:")
				     : NULL;

	return tracer && atoi(tracer + strlen("\nTracerPid:")) != 0;
}

/* Of this process, as the program has to find it. */
struct inherited {
	sigset_t mask;
	struct sigaction child_action;
};

/* -1: it was said why; *out_status is the exit status. */
static pid_t start(char **program, const struct inherited *inherited, int *out_status)
{
	pid_t self = getpid(), child;
	guint8 status = NPUSIM_EXIT_NOT_RUNNABLE;
	int said[2]; /* closed by the exec that works */

	if (pipe2(said, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		*out_status = status;
		failure("%s: %s", program[0], g_strerror(errno));
		return -1;
	}
	if (child == 0) {
		/* Whoever kills the command by SIGKILL means the program, which nobody could tell.
		 * What the program has started does not inherit this. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			raise(SIGKILL);
		sigaction(SIGCHLD, &inherited->child_action, NULL);
		sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
		status = (guint8)become_program(program);
		_exit(write(said[1], &status, 1) == 1 ? status : NPUSIM_EXIT_NOT_RUNNABLE);
	}
	close(said[1]);
	if (read(said[0], &status, 1) == 1) {
		waitpid(child, NULL, 0);
		*out_status = status;
		child = -1;
	}
	close(said[0]);
	return child;
}

/* The shell has to see that its job stopped. SIGSTOP is no terminal's: away from one, who sends it
 * to the program sends it SIGCONT too, and would not know of the command. */
static void stop_too(pid_t child, int signal_number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction action;
	sigset_t one, mask;

	if (signal_number == SIGSTOP) {
		int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
		pid_t group = terminal >= 0 ? tcgetpgrp(terminal) : -1;

		if (terminal >= 0)
			close(terminal);
		if (group <= 0 || (group != getpgrp() && group != getpgid(child)))
			return;
	}
	sigemptyset(&one);
	sigaddset(&one, signal_number);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &usual, &action);
	raise(signal_number);
	sigprocmask(SIG_UNBLOCK, &one, &mask); /* here it stops, until SIGCONT */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &action, NULL);
}

/* What a terminal's keys and its window send, the whole group got; what the program sends to its
 * group, or the command to itself by a write to a closed pipe, the program need not hear. */
static int wait_for_end(pid_t child, const sigset_t *signals)
{
	siginfo_t info;
	int status;
	pid_t got;

	for (;;) {
		int number = sigwaitinfo(signals, &info);
		gboolean key = number == SIGINT || number == SIGQUIT || number == SIGTSTP ||
			       number == SIGWINCH;

		/* orphans that the program left are waited for, too, but not awaited */
		while (number == SIGCHLD && (got = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (got == child && !WIFSTOPPED(status))
				return status;
			if (got == child)
				stop_too(child, WSTOPSIG(status));
		}
		if (number < 0 || number == SIGCHLD || (key && info.si_code == SI_KERNEL) ||
		    (info.si_code <= 0 && (info.si_pid == child || info.si_pid == getpid())))
			continue;
		if (info.si_code == SI_QUEUE)
			sigqueue(child, number, info.si_value);
		else
			kill(child, number);
	}
}

gboolean program_run(char **program, int *out_status)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct inherited inherited;
	sigset_t blocked;
	const char *name;

	fflush(stdout);
	/* all but the two that stop who uses the terminal from the background */
	sigfillset(&blocked);
	sigdelset(&blocked, SIGTTIN);
	sigdelset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &inherited.mask);
	/* who ignores it has no children to wait for */
	sigaction(SIGCHLD, &usual, &inherited.child_action);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t child = start(program, &inherited, out_status);
	if (child < 0)
		return FALSE;
	/* the program's pipes and locks end when it closes them; what the command opened for itself
	 * is close-on-exec */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	g_autoptr(GDir) open_files = g_dir_open("/proc/self/fd", 0, NULL);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	while (open_files && (name = g_dir_read_name(open_files)) != NULL) {
		int fd = atoi(name);
		if (fd > STDERR_FILENO && fcntl(fd, F_GETFD) == 0)
			close(fd);
	}
	*out_status = wait_for_end(child, &blocked);
	return TRUE;
}

int program_end_as(int status)
{
	const struct rlimit none = { 0, 0 };
	int signal_number = WTERMSIG(status);
	sigset_t one;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* the program's core is enough */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
	sigemptyset(&one);
	sigaddset(&one, signal_number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + signal_number; /* the first process of a container does not die of it */
}
