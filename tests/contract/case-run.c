/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one case: a process of its own for each letter, steps one after the other in the order of
 * the file, answers compared with what the contract in question expects. Values that one process
 * publishes (shareable handles, keys, process ids) reach the others before the next step.
 */
#include "case.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_SECONDS 60

struct worker {
	pid_t pid;
	int to, from;
	bool ended;
};
/* What a worker is told: run a step, or learn a value. */
struct order {
	int step; /* -1: learn */
	struct case_variable learned;
};
struct run {
	const struct test_case *test;
	const struct case_options *options;
	struct worker workers[CASE_PROCESSES_MAX];
	bool good;
};

static bool transfer(int fd, void *data, size_t bytes, bool out)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = out ? write(fd, (char *)data + done, bytes - done)
				: read(fd, (char *)data + done, bytes - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* ---- in a worker ---- */

static void apply_settings(const struct test_case *test)
{
	for (int i = 0; i < CASE_SETTINGS_MAX && test->settings[i] != NULL; i++) {
		char *setting = strdup(test->settings[i]), *value = strchr(setting, '=');

		*value++ = '\0';
		setenv(setting, value, 1);
		free(setting);
	}
}

static void work(struct run *run, int from, int to)
{
	void *library;
	struct order order;
	struct case_answer answer;

	apply_settings(run->test);
	setenv("NPUSIM_LEAKS", "off", 0); /* most cases end in the middle of things */
	setenv("NPUSIM_CONTRACT", run->options->driver ? "driver" : "docs", 1);
	library = dlopen(run->options->library, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "case: %s\n", dlerror());
		exit(3);
	}
	while (transfer(from, &order, sizeof(order), false)) {
		if (order.step < 0) {
			struct case_variable *known = case_variable(order.learned.name);

			if (known != NULL)
				*known = order.learned;
			continue;
		}
		memset(&answer, 0, sizeof(answer));
		alarm(STEP_SECONDS);
		case_step_run(library, &run->test->steps[order.step], &answer);
		alarm(0);
		if (!transfer(to, &answer, sizeof(answer), true))
			break;
	}
	exit(0);
}

/* ---- in the parent ---- */

static bool start(struct run *run, int index)
{
	int orders[2], answers[2];
	pid_t pid;

	if (pipe(orders) != 0 || pipe(answers) != 0)
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < index; i++) { /* else they would not see the parent's end */
			close(run->workers[i].to);
			close(run->workers[i].from);
		}
		close(orders[1]);
		close(answers[0]);
		work(run, orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	run->workers[index] = (struct worker){ .pid = pid, .to = orders[1], .from = answers[0] };
	return pid > 0;
}

static void tell(struct run *run, const struct case_variable *value)
{
	struct order order = { .step = -1, .learned = *value };

	for (int i = 0; i < run->test->processes; i++)
		if (!run->workers[i].ended)
			transfer(run->workers[i].to, &order, sizeof(order), true);
}

static void tell_pids(struct run *run)
{
	for (int i = 0; i < run->test->processes; i++) {
		struct case_variable pid = { .number = (uint64_t)run->workers[i].pid };

		snprintf(pid.name, sizeof(pid.name), "pid%c", 'A' + i);
		tell(run, &pid);
	}
}

static void ask(struct run *run, const struct case_step *step, struct case_answer *answer)
{
	struct worker *worker = &run->workers[step->process];
	struct order order = { .step = (int)(step - run->test->steps) };
	int status = 0;

	memset(answer, 0, sizeof(*answer));
	if (!worker->ended && transfer(worker->to, &order, sizeof(order), true) &&
	    transfer(worker->from, answer, sizeof(*answer), false)) {
		if (answer->published.name[0] != '\0')
			tell(run, &answer->published);
		return;
	}
	answer->code = CASE_SIGNAL;
	if (!worker->ended) {
		worker->ended = true;
		waitpid(worker->pid, &status, 0);
		answer->code = CASE_SIGNAL - (WIFSIGNALED(status) ? WTERMSIG(status)
								  : 1000 + WEXITSTATUS(status));
	}
}

/* Token by token; "*" in what is wanted is any token. */
static bool values_agree(const char *wanted, const char *got)
{
	for (;;) {
		size_t w, g;

		wanted += strspn(wanted, " ");
		got += strspn(got, " ");
		w = strcspn(wanted, " ");
		g = strcspn(got, " ");
		if (w == 0 || g == 0)
			return w == g;
		if (!(w == 1 && *wanted == '*') && (w != g || strncmp(wanted, got, w) != 0))
			return false;
		wanted += w;
		got += g;
	}
}

__attribute__((format(printf, 3, 4))) static void
report(struct run *run, const struct case_step *step, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run->good = false;
	run->options->failed(run->options->arg, run->test, step, text);
}

static void check(struct run *run, const struct case_step *step, const struct case_answer *answer)
{
	const struct case_expect *want =
		run->options->driver && step->driver.given ? &step->driver : &step->docs;
	bool answered = answer->code > CASE_SIGNAL && answer->code != CASE_MISSING;
	char wanted[128], *value = want->value;

	snprintf(wanted, sizeof(wanted), "%s", case_code_text(want->code));
	if (want->code == CASE_ANY ? !answered : want->code != answer->code)
		report(run, step, "answered %s%s%s; expected %s%s%s", case_code_text(answer->code),
		       answer->complaint[0] == '\0' ? "" : ": ", answer->complaint, wanted,
		       value == NULL ? "" : ": ", value == NULL ? "" : value);
	else if (value != NULL && !values_agree(value, answer->value))
		report(run, step, "answered %s: %s; expected the value %s", wanted, answer->value,
		       value);
	else if (run->options->messages && answer->unexplained && want->code != CASE_ANY)
		report(run, step, "answered %s, but %s", wanted, answer->complaint);
}

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void finish(struct run *run)
{
	for (int i = 0; i < run->test->processes; i++) {
		struct worker *worker = &run->workers[i];

		if (worker->pid <= 0)
			continue;
		close(worker->to);
		close(worker->from);
		if (!worker->ended)
			waitpid(worker->pid, NULL, 0);
	}
}

bool case_run(const struct test_case *test, const struct case_options *options)
{
	struct run run = { .test = test, .options = options, .good = true };
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	struct case_answer answer;

	for (int i = 0; i < test->processes; i++)
		if (!start(&run, i)) {
			report(&run, &test->steps[0], "no process can be started");
			finish(&run);
			return false;
		}
	tell_pids(&run);
	for (int i = 0; i < test->step_count; i++) {
		uint64_t start = host_ns();

		ask(&run, &test->steps[i], &answer);
		if (options->answered != NULL)
			options->answered(options->arg, test, &test->steps[i], &answer,
					  host_ns() - start);
		check(&run, &test->steps[i], &answer);
	}
	finish(&run);
	signal(SIGPIPE, before);
	return run.good;
}
