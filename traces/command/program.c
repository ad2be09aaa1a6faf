/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that the command starts as its child: in the command's own process group, so that the
 * terminal stays the program's; with the signals that the command gets; until the program's end,
 * not that of what it leaves behind. Nothing else of the program passes through here: the command
 * keeps no end of its pipes but stderr. Or one on each server, whose output does.
 */
#include "npusim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "backend-sim/node/node.h"

int become_program(char **program)
{
	execvp(program[0], program);
	int why = errno;
	failure("%s: %s", program[0], g_strerror(why));
	return why == ENOENT ? NPUSIM_EXIT_NOT_FOUND : NPUSIM_EXIT_NOT_RUNNABLE;
}

/* Of this process, as the program has to find it; and the signals that wait in it from then on. */
static struct {
	sigset_t mask;
	struct sigaction child_action;
} inherited;
static sigset_t blocked;

/* The program, or one on each server. */
static struct {
	gboolean alone; /* the one program, whose terminal this process's is */
	guint count, running;
	pid_t pid[SIM_SERVERS];      /* 0: it has ended */
	FILE *from[2 * SIM_SERVERS]; /* by server, stdout and stderr; NULL: there is none */
	gboolean ending;             /* all of them, as one has to */
	int status;                  /* waitpid()'s, of the first that failed; 0: none has */
} programs;

/* files: its stdin, stdout, stderr; NULL: ours. FALSE and the exit status: it was said why. */
static gboolean start(char **program, const int *files, int *out_status)
{
	pid_t self = getpid(), child;
	guint8 status = NPUSIM_EXIT_NOT_RUNNABLE;
	int said[2] = { -1, -1 }; /* closed by the exec that works */

	if (pipe2(said, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		*out_status = status;
		failure("%s: %s", program[0], g_strerror(errno));
		close(said[0]);
		close(said[1]);
		return FALSE;
	}
	if (child == 0) {
		/* Whoever kills the command by SIGKILL means the program, which nobody could tell.
		 * What the program has started does not inherit this. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			raise(SIGKILL);
		for (int i = 0; files && i < 3; i++)
			dup2(files[i], i);
		sigaction(SIGCHLD, &inherited.child_action, NULL);
		sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
		status = (guint8)become_program(program);
		_exit(write(said[1], &status, 1) == 1 ? status : NPUSIM_EXIT_NOT_RUNNABLE);
	}
	close(said[1]);
	gboolean failed = read(said[0], &status, 1) == 1;
	close(said[0]);
	if (failed) {
		waitpid(child, NULL, 0);
		*out_status = status;
		return FALSE;
	}
	programs.pid[programs.count++] = child;
	programs.running++;
	return TRUE;
}

/* The shell has to see that its job stopped. SIGSTOP is no terminal's: away from one, who sends it
 * to the program sends it SIGCONT too, and would not know of the command. */
static void stop_too(pid_t child, int signal_number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction action = usual;
	sigset_t one, mask;
	siginfo_t info;

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
	sigaction(signal_number, &usual, &action); /* fails for SIGSTOP, which has no handler */
	raise(signal_number);
	sigprocmask(SIG_UNBLOCK, &one, &mask); /* here it stops, until SIGCONT */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(signal_number, &action, NULL);
	/* a shell's SIGCONT went to the program too: passed on late, it would undo the next stop */
	sigemptyset(&one);
	sigaddset(&one, SIGCONT);
	if (child && sigtimedwait(&one, &info, &(struct timespec){ 0 }) == SIGCONT &&
	    waitid(P_PID, (id_t)child, &info, WCONTINUED | WNOHANG) == 0 && info.si_pid == 0)
		kill(child, SIGCONT);
}

/* Kills what has this process as its parent, the programs' orphans among it. FALSE: nothing. */
static gboolean kill_children(void)
{
	g_autofree char *text = NULL;
	gboolean killed = FALSE;

	if (!g_file_get_contents("/proc/thread-self/children", &text, NULL, NULL))
		return FALSE;
	g_auto(GStrv) pids = g_strsplit(text, " ", -1);
	for (char **pid = pids; *pid; pid++)
		killed |= **pid && kill(atoi(*pid), SIGKILL) == 0;
	return killed;
}

/* info: the signal as this process got it; NULL: it is this process's own. */
static void send_all(int number, const siginfo_t *info)
{
	for (guint k = 0; k < programs.count; k++) {
		if (programs.pid[k] == 0)
			continue;
		/* where too many are queued, without its value */
		if (!info || info->si_code != SI_QUEUE ||
		    sigqueue(programs.pid[k], number, info->si_value) != 0)
			kill(programs.pid[k], number);
	}
}

/* What a terminal's keys and its window send, the whole group got. What the one program sends to
 * its group, or the command to itself by a write to a closed pipe, it need not hear. */
static void pass_on(const siginfo_t *info)
{
	int number = info->si_signo;
	gboolean key = info->si_code == SI_KERNEL && (number == SIGINT || number == SIGQUIT ||
						      number == SIGTSTP || number == SIGWINCH);
	gboolean own =
		info->si_code <= 0 && (info->si_pid == programs.pid[0] || info->si_pid == getpid());

	programs.ending |=
		!programs.alone && (number == SIGINT || number == SIGQUIT || number == SIGTERM ||
				    number == SIGHUP || number == SIGPIPE);
	if (!key && !(own && programs.alone))
		send_all(number, info);
	if (key && number == SIGTSTP && !programs.alone)
		stop_too(0, number);
}

static void note_end(pid_t pid, int status)
{
	gboolean exited = WIFEXITED(status);
	guint k = 0;

	while (k < programs.count && programs.pid[k] != pid)
		k++;
	if (k == programs.count) /* an orphan: waited for, but not awaited */
		return;
	programs.pid[k] = 0;
	programs.running--;
	if (status == 0 || programs.status)
		return;
	programs.status = status;
	if (programs.alone || programs.ending)
		return;
	failure("the program on server %u ended with %s %d%s", k, exited ? "status" : "signal",
		exited ? WEXITSTATUS(status) : WTERMSIG(status),
		programs.running ? ": the other servers' are ended" : "");
	programs.ending = TRUE;
	send_all(SIGTERM, NULL);
}

static void wait_for_all(void)
{
	const struct timespec grace = { 5, 0 }; /* to end by themselves, once one has to */
	siginfo_t info;
	int status;
	pid_t got;

	while (programs.running > 0) {
		int number = sigtimedwait(&blocked, &info, programs.ending ? &grace : NULL);

		if (number < 0 && errno == EAGAIN)
			kill_children();
		while (number == SIGCHLD && (got = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (!WIFSTOPPED(status))
				note_end(got, status);
			else if (programs.alone && got == programs.pid[0])
				stop_too(got, WSTOPSIG(status));
		}
		if (number > 0 && number != SIGCHLD)
			pass_on(&info);
	}
}

static void become_parent(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	fflush(stdout);
	/* all but the two that stop who uses the terminal from the background */
	sigfillset(&blocked);
	sigdelset(&blocked, SIGTTIN);
	sigdelset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &inherited.mask);
	/* who ignores it has no children to wait for */
	sigaction(SIGCHLD, &usual, &inherited.child_action);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

const char *server_address(guint server)
{
	return npu_text("127.0.0.%u", server + 1);
}

/* The lines of from[of], each behind its server. */
static gpointer show_lines(gpointer of)
{
	guint pipe = GPOINTER_TO_UINT(of);
	FILE *to = pipe % 2 ? stderr : stdout;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while (programs.from[pipe] && (length = getline(&line, &room, programs.from[pipe])) > 0) {
		if (fprintf(to, "[server %u] %s%s", pipe / 2, line,
			    line[length - 1] == '\n' ? "" : "\n") >= 0 &&
		    fflush(to) == 0)
			continue;
		output_error();          /* keeps errno, for main() to say it */
		kill(getpid(), SIGPIPE); /* as the program would have met it */
	}
	free(line);
	return NULL;
}

static gboolean start_on_next(char **program, int *out_status)
{
	int files[3] = { open("/dev/null", O_RDONLY | O_CLOEXEC), -1, -1 }, ends[2];
	gboolean started = files[0] >= 0;
	guint k = programs.count;
	struct stat st;

	for (guint i = 0; i < 2 && started && (started = pipe2(ends, O_CLOEXEC) == 0); i++) {
		programs.from[2 * k + i] = fdopen(ends[0], "r");
		files[1 + i] = ends[1];
	}
	if (started) {
		g_setenv("NPUSIM_SERVER", npu_text("%u", k), TRUE);
		g_setenv("HCCL_IF_IP", server_address(k), TRUE);
		/* reports that come through the pipe are not captured */
		if (g_getenv("NPUSIM_REPORT_STDERR") && fstat(files[2], &st) == 0)
			g_setenv("NPUSIM_REPORT_STDERR",
				 npu_text("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino),
				 TRUE);
		started = start(program, files, out_status);
	} else {
		*out_status = failure("%s: %s", program[0], g_strerror(errno));
	}
	for (int i = 0; i < 3 && files[i] >= 0; i++) /* no reader waits for what did not start */
		close(files[i]);
	return started;
}

gboolean program_run(char **program, gboolean each, int *out_status)
{
	guint wanted = each ? (guint)atoi(npu_var_get(NPU_VAR_SERVERS, NULL)) : 1;
	GThread *thread[2 * SIM_SERVERS];
	gboolean fine = TRUE;

	become_parent();
	programs.alone = !each;
	while (fine && programs.count < wanted)
		fine = each ? start_on_next(program, out_status) : start(program, NULL, out_status);
	programs.ending = each && !fine;
	if (!fine)
		send_all(SIGTERM, NULL);
	if (fine && !each) { /* the program's pipes and locks end when it closes them */
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		closefrom(STDERR_FILENO + 1);
	}
	/* those of one that cannot be run have said why */
	const guint pipes = each ? 2 * (programs.count + !fine) : 0;
	for (guint i = 0; i < pipes; i++)
		thread[i] = g_thread_new("output", show_lines, GUINT_TO_POINTER(i));
	wait_for_all();
	while (programs.ending && kill_children() && waitpid(-1, NULL, 0) > 0)
		continue;
	for (guint i = 0; i < pipes; i++)
		g_thread_join(thread[i]);
	if (fine)
		*out_status = programs.status;
	return fine;
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
