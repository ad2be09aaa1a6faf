/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one case: one process for each letter, the steps one after another in the order of the
 * file, and each answer compared with what the contract in question expects. A driver that crashes
 * or hangs takes down one of these processes, never the one that asks. Values that one process
 * publishes (shareable handles, keys, process ids) reach the others before the next step.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

gint64 case_step_seconds = 60;

/* What a process is told: to run a step, or where that is "" to learn a value. */
struct order {
	char step[CASE_STEP_LENGTH];
	struct case_variable learned;
};
struct case_processes {
	const struct test_case *test;
	struct {
		pid_t pid;      /* 0: it cannot be started */
		int line;       /* a socket; -1: it has ended */
		gboolean begun; /* the library is open, or does not open */
	} of[CASE_PROCESSES_MAX];
};

void case_preload(const char *const *libraries)
{
	for (; *libraries != NULL; libraries++)
		/* cppcheck-suppress leakReturnValNotUsed ; it stays loaded on purpose */
		(void)dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
}

/* A message is whole, or the other side has ended. */
static gboolean give(int line, const void *message, size_t bytes)
{
	return send(line, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static gboolean take(int line, void *message, size_t bytes)
{
	return TEMP_FAILURE_RETRY(recv(line, message, bytes, 0)) == (ssize_t)bytes;
}

/* ---- in a process of the case ---- */

static void work(const struct test_case *test, const char *path, int line)
{
	struct case_answer trouble = { 0 }; /* the answer to all steps where there is no library */
	gboolean expected = FALSE;
	struct order order;

	for (guint i = 0; test->settings != NULL && i < test->settings->len; i++)
		putenv(g_ptr_array_index(test->settings, i));
	g_setenv("NPUSIM_LEAKS", "off", FALSE);    /* most cases end in the middle of things */
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* many a step is to fail */
	for (guint s = 0; test->steps != NULL && s < test->steps->len; s++)
		expected |= case_step_at(test, s)->docs.code <= CASE_SIGNAL &&
			    case_step_at(test, s)->docs.code > CASE_EXIT;
	/* a signal that the case expects is no news for people */
	if (expected && freopen("/dev/null", "w", stderr) == NULL)
		exit(1);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		trouble.code = CASE_MISSING;
		g_strlcpy(trouble.complaint, dlerror(), sizeof(trouble.complaint));
	}
	give(line, &trouble, sizeof(trouble)); /* it has begun */
	while (take(line, &order, sizeof(order))) {
		struct case_answer answer = trouble;
		g_auto(GStrv) words = g_strsplit(order.step, " ", -1);

		if (words[0] == NULL) {
			*case_variable(order.learned.name) = order.learned;
			continue;
		}
		if (library != NULL)
			case_step_run(test->dialect, library, words, &answer);
		if (!give(line, &answer, sizeof(answer)))
			break;
	}
	exit(0);
}

/* ---- in the process that asks ---- */

static void tell(struct case_processes *all, const struct case_variable *value)
{
	struct order order = { .learned = *value };

	for (int i = 0; i < all->test->processes; i++)
		give(all->of[i].line, &order, sizeof(order)); /* or to nobody */
}

void case_tell(struct case_processes *all, const char *name, uint64_t number)
{
	struct case_variable value = { .number = number };

	g_strlcpy(value.name, name, sizeof(value.name));
	tell(all, &value);
}

struct case_processes *case_start(const struct test_case *test, const char *library)
{
	const struct timeval limit = { .tv_sec = case_step_seconds };
	struct case_processes *all = g_new0(struct case_processes, 1);
	pid_t self = getpid();
	int lines[2];

	all->test = test;
	fflush(NULL);
	for (int i = 0; i < test->processes; i++) {
		all->of[i].line = -1;
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines) != 0)
			continue;
		setsockopt(lines[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != self)
				raise(SIGKILL);
			close(lines[0]);
			for (int other = 0; other < i; other++) /* they are to see their end */
				close(all->of[other].line);
			work(test, library, lines[1]);
		}
		close(lines[1]);
		all->of[i].pid = MAX(pid, 0);
		if (pid > 0)
			all->of[i].line = lines[0];
		else
			close(lines[0]);
	}
	for (int i = 0; i < test->processes; i++) {
		char name[] = { 'p', 'i', 'd', (char)('A' + i), '\0' };

		case_tell(all, name, (uint64_t)all->of[i].pid);
	}
	return all;
}

static gint64 limit_us(void)
{
	return g_get_monotonic_time() + case_step_seconds * G_USEC_PER_SEC;
}

/* Of a process whose line is closed. Returns waitpid()'s status; SIGALRM, where it has not ended by
 * itself until then. */
static int wait_for_end(pid_t pid, gint64 until_us)
{
	int status = 0, forced = 0;

	for (gulong nap_us = 100; waitpid(pid, &status, WNOHANG) == 0;
	     nap_us = MIN(2 * nap_us, 10000)) {
		g_usleep(nap_us);
		if (g_get_monotonic_time() < until_us)
			continue;
		if (forced != 0) /* a driver holds it in the kernel */
			break;
		kill(pid, SIGKILL);
		forced = SIGALRM;
		until_us = limit_us();
	}
	return forced ?: status;
}

static void ask_process(struct case_processes *all, int process, const char *step,
			struct case_answer *out)
{
	struct order order = { 0 };
	int *line = &all->of[process].line, status;
	gboolean *begun = &all->of[process].begun;

	errno = 0;
	g_strlcpy(order.step, step, sizeof(order.step));
	if (*line >= 0 && !*begun)
		*begun = take(*line, out, sizeof(*out));
	memset(out, 0, sizeof(*out));
	if (*line >= 0 && *begun && give(*line, &order, sizeof(order)) &&
	    take(*line, out, sizeof(*out))) {
		if (out->published.name[0] != '\0')
			tell(all, &out->published);
		return;
	}
	out->code = CASE_SIGNAL;
	if (all->of[process].pid == 0)
		g_strlcpy(out->complaint, "no process can be started", sizeof(out->complaint));
	if (*line < 0)
		return;
	gint64 until_us = errno == EAGAIN ? 0 : limit_us();
	close(*line);
	*line = -1;
	status = wait_for_end(all->of[process].pid, until_us);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		g_snprintf(out->complaint, sizeof(out->complaint),
			   "%s%s%s has had no answer for %d seconds", *begun ? "'" : "",
			   *begun ? step : "the opening of the library", *begun ? "'" : "",
			   (int)case_step_seconds);
	out->code -= WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

gboolean case_need(struct case_processes *all, int process, const char *step,
		   struct case_answer *out, GError **error)
{
	ask_process(all, process, step, out);
	if (out->code == 0)
		return TRUE;
	g_autofree char *text = g_strdup_printf("'%s' answers %s", step,
						case_code_text(all->test->dialect, out->code));
	g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    out->complaint[0] != '\0' ? out->complaint : text);
	return FALSE;
}

void case_end(struct case_processes *all)
{
	gint64 until_us = limit_us();

	for (int i = 0; i < all->test->processes; i++)
		if (all->of[i].line >= 0)
			close(all->of[i].line);
	for (int i = 0; i < all->test->processes; i++)
		if (all->of[i].line >= 0)
			wait_for_end(all->of[i].pid, until_us);
	g_free(all);
}

struct case_result *case_result_new(const struct test_case *test, const char *skipped)
{
	struct case_result *result = g_new0(struct case_result, 1);

	result->test = test;
	result->status = skipped != NULL ? CASE_SKIPPED : CASE_PASSED;
	result->text = g_string_new(skipped);
	result->answers = g_array_new(FALSE, FALSE, sizeof(struct case_said));
	return result;
}

GString *case_result_fail(struct case_result *result, const struct case_step *step)
{
	g_autofree char *file = g_path_get_basename(result->test->file);

	result->status = CASE_FAILED;
	g_string_append_printf(result->text, "%s%s:%d: %s%s: ", result->text->len > 0 ? "\n" : "",
			       file, step->line, step->text,
			       step->begins ? ", with which cases begin" : "");
	return result->text;
}

void case_result_free(struct case_result *result)
{
	g_string_free(result->text, TRUE);
	g_array_unref(result->answers);
	g_free(result);
}

/* Word by word; "*" in what is wanted is any word. */
static gboolean values_agree(const char *wanted, const char *got)
{
	g_auto(GStrv) w = g_strsplit(wanted, " ", -1), g = g_strsplit(got, " ", -1);
	guint i = 0;

	while (w[i] != NULL && g[i] != NULL && (strcmp(w[i], "*") == 0 || strcmp(w[i], g[i]) == 0))
		i++;
	return w[i] == NULL && g[i] == NULL;
}

static void check(struct case_result *result, const struct case_step *step,
		  const struct case_answer *answer, gboolean driver, gboolean messages)
{
	const struct case_dialect *dialect = result->test->dialect;
	const struct case_said *want = driver && step->driver.given ? &step->driver : &step->docs;
	gboolean answered = answer->code > CASE_SIGNAL && answer->code != CASE_MISSING;
	g_autofree char *wanted = g_strdup(case_code_text(dialect, want->code));
	const char *value = want->value;

	if (!want->given) /* asked to be compared alone */
		return;
	if (want->code == CASE_ANY ? !answered : want->code != answer->code) {
		/* what a process does not do once it has ended is no news */
		if (answer->code != CASE_SIGNAL || result->text->len == 0)
			g_string_append_printf(
				case_result_fail(result, step), "answered %s%s%s; expected %s%s%s",
				case_code_text(dialect, answer->code),
				answer->complaint[0] == '\0' ? "" : ": ", answer->complaint, wanted,
				value == NULL ? "" : ": ", value == NULL ? "" : value);
	} else if (value != NULL && !values_agree(value, answer->value)) {
		g_string_append_printf(case_result_fail(result, step),
				       "answered %s: %s; expected the value %s", wanted,
				       answer->value, value);
	} else if (messages && answer->unexplained && want->code != CASE_ANY) {
		g_string_append_printf(case_result_fail(result, step),
				       "answered %s, but its message does not name the call: '%s'",
				       wanted, answer->complaint);
	}
}

struct case_result *case_run(const struct test_case *test, const char *library, gboolean driver,
			     gboolean messages)
{
	struct case_result *result = case_result_new(test, NULL);
	struct case_processes *processes = case_start(test, library);
	struct case_answer answer;

	for (guint i = 0; i < test->steps->len; i++) {
		const struct case_step *step = case_step_at(test, i);
		gint64 start_us = g_get_monotonic_time();

		ask_process(processes, step->process, step->words, &answer);
		struct case_said said = { TRUE, answer.code, answer.cause,
					  g_intern_string(answer.value),
					  (guint64)(g_get_monotonic_time() - start_us) * 1000 };
		g_array_append_val(result->answers, said);
		result->ns += said.ns;
		check(result, step, &answer, driver, messages);
		if (step->begins && answer.code != 0)
			break;
	}
	case_end(processes);
	return result;
}
