/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one case: one process for each letter, the steps one after another in the order of the
 * file, and each answer compared with what the contract in question expects. Values that one
 * process publishes (shareable handles, keys, process ids) reach the others before the next step.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case-step.h"
#include "child.h"

#define STEP_SECONDS 60

struct worker {
	pid_t pid;
	int to, from;
	gboolean ended;
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
	gboolean good;
};

void case_preload(const char *const *libraries)
{
	for (; *libraries != NULL; libraries++)
		/* cppcheck-suppress leakReturnValNotUsed ; it stays loaded on purpose */
		(void)dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
}

/* ---- in a worker ---- */

static void begin(const struct test_case *test, void *library)
{
	const char *const *verb = test->dialect->beginning;

	for (; !test->bare && *verb != NULL; verb++) {
		char *words[] = { (char *)*verb, NULL };
		struct case_step step = { .argc = 1, .argv = words, .text = words[0] };
		struct case_answer answer = { 0 };

		case_step_run(test->dialect, library, &step, &answer);
		if (answer.code != 0) {
			fprintf(stderr, "case: '%s' answers %s\n", *verb,
				case_code_text(test->dialect, answer.code));
			exit(4);
		}
	}
}

/* A signal that the case expects is no news for people. */
static void expect_signals(const struct test_case *test)
{
	gboolean expected = FALSE;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (guint s = 0; s < test->steps->len; s++)
		expected |= case_step_at(test, s)->docs.code <= CASE_SIGNAL &&
			    case_step_at(test, s)->docs.code > CASE_EXIT;
	if (expected && null >= 0)
		dup2(null, STDERR_FILENO);
	close(null);
}

static void work(struct run *run, int from, int to)
{
	void *library;
	struct order order;

	for (guint i = 0; i < run->test->settings->len; i++) {
		g_auto(GStrv) parts = g_strsplit(g_ptr_array_index(run->test->settings, i), "=", 2);

		g_setenv(parts[0], parts[1], TRUE);
	}
	g_setenv("NPUSIM_LEAKS", "off", FALSE);    /* most cases end in the middle of things */
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* many a step is to fail */
	g_setenv("NPUSIM_CONTRACT", run->options->driver ? "driver" : "docs", TRUE);
	library = dlopen(run->options->library, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "case: %s\n", dlerror());
		exit(3);
	}
	expect_signals(run->test);
	alarm(STEP_SECONDS);
	begin(run->test, library);
	while (child_read(from, &order, sizeof(order))) {
		struct case_answer answer = { 0 };

		if (order.step < 0) {
			*case_variable(order.learned.name) = order.learned;
			continue;
		}
		alarm(STEP_SECONDS);
		case_step_run(run->test->dialect, library,
			      case_step_at(run->test, (guint)order.step), &answer);
		alarm(0);
		if (!child_write(to, &answer, sizeof(answer)))
			break;
	}
	exit(0);
}

/* ---- in the parent ---- */

static gboolean start(struct run *run, int index)
{
	struct worker *worker = &run->workers[index];
	int from, to;

	worker->pid = child_start(&worker->to, &worker->from, &from, &to);
	if (worker->pid != 0)
		return worker->pid > 0;
	for (int i = 0; i < index; i++) { /* else they would not see the parent's end */
		close(run->workers[i].to);
		close(run->workers[i].from);
	}
	work(run, from, to);
	return FALSE;
}

static void tell(struct run *run, const struct case_variable *value)
{
	struct order order = { .step = -1, .learned = *value };

	for (int i = 0; i < run->test->processes; i++)
		if (!run->workers[i].ended)
			child_write(run->workers[i].to, &order, sizeof(order));
}

static void ask(struct run *run, const struct case_step *step, struct case_answer *answer)
{
	struct worker *worker = &run->workers[step->process];
	struct order order = { .step = (int)(step - case_step_at(run->test, 0)) };
	int status = 0;

	memset(answer, 0, sizeof(*answer));
	if (!worker->ended && child_write(worker->to, &order, sizeof(order)) &&
	    child_read(worker->from, answer, sizeof(*answer))) {
		if (answer->published.name[0] != '\0')
			tell(run, &answer->published);
		return;
	}
	answer->code = CASE_SIGNAL;
	if (!worker->ended) {
		worker->ended = TRUE;
		waitpid(worker->pid, &status, 0);
		answer->code = CASE_SIGNAL - (WIFSIGNALED(status) ? WTERMSIG(status)
								  : 1000 + WEXITSTATUS(status));
	}
}

/* Token by token; "*" in what is wanted is any token. */
static gboolean values_agree(const char *wanted, const char *got)
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
			return FALSE;
		wanted += w;
		got += g;
	}
}

static void report(struct run *run, const struct case_step *step, const char *format, ...)
	G_GNUC_PRINTF(3, 4);
static void report(struct run *run, const struct case_step *step, const char *format, ...)
{
	g_autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	run->good = FALSE;
	run->options->failed(run->options->arg, run->test, step, text);
}

static void check(struct run *run, const struct case_step *step, const struct case_answer *answer)
{
	const struct case_expect *want =
		run->options->driver && step->driver.given ? &step->driver : &step->docs;
	gboolean answered = answer->code > CASE_SIGNAL && answer->code != CASE_MISSING;
	g_autofree char *wanted = g_strdup(case_code_text(run->test->dialect, want->code));
	const char *value = want->value;

	if (!want->given) /* asked to be compared alone */
		return;
	if (want->code == CASE_ANY ? !answered : want->code != answer->code)
		report(run, step, "answered %s%s%s; expected %s%s%s",
		       case_code_text(run->test->dialect, answer->code),
		       answer->complaint[0] == '\0' ? "" : ": ", answer->complaint, wanted,
		       value == NULL ? "" : ": ", value == NULL ? "" : value);
	else if (value != NULL && !values_agree(value, answer->value))
		report(run, step, "answered %s: %s; expected the value %s", wanted, answer->value,
		       value);
	else if (run->options->messages && answer->unexplained && want->code != CASE_ANY)
		report(run, step, "answered %s, but %s", wanted, answer->complaint);
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

gboolean case_run(const struct test_case *test, const struct case_options *options)
{
	struct run run = { .test = test, .options = options, .good = TRUE };
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	struct case_answer answer;

	for (int i = 0; i < test->processes; i++)
		if (!start(&run, i)) {
			report(&run, case_step_at(test, 0), "no process can be started");
			finish(&run);
			return FALSE;
		}
	for (int i = 0; i < test->processes; i++) {
		struct case_variable pid = { .number = (uint64_t)run.workers[i].pid };

		snprintf(pid.name, sizeof(pid.name), "pid%c", 'A' + i);
		tell(&run, &pid);
	}
	for (guint i = 0; i < test->steps->len; i++) {
		const struct case_step *step = case_step_at(test, i);
		struct timespec before_step, after_step;

		clock_gettime(CLOCK_MONOTONIC, &before_step);
		ask(&run, step, &answer);
		clock_gettime(CLOCK_MONOTONIC, &after_step);
		if (options->answered != NULL)
			options->answered(
				options->arg, test, step, &answer,
				(uint64_t)((after_step.tv_sec - before_step.tv_sec) * 1000000000 +
					   after_step.tv_nsec - before_step.tv_nsec));
		check(&run, step, &answer);
	}
	finish(&run);
	signal(SIGPIPE, before);
	return run.good;
}
