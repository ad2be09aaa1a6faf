/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts processes that use a device on behalf of the command, so that a crash of the driver costs
 * one answer and not the command. They are connected by pipes, or run for their output.
 */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a process that is asked and answers ---- */

gboolean child_read(int fd, void *data, gsize bytes)
{
	for (gsize done = 0; done < bytes;) {
		gssize n = read(fd, (char *)data + done, bytes - done);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return FALSE;
		done += n > 0 ? (gsize)n : 0;
	}
	return TRUE;
}

gboolean child_write(int fd, const void *data, gsize bytes)
{
	for (gsize done = 0; done < bytes;) {
		gssize n = write(fd, (const char *)data + done, bytes - done);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return FALSE;
		done += n > 0 ? (gsize)n : 0;
	}
	return TRUE;
}

pid_t child_start(int *to, int *from, int *child_from, int *child_to)
{
	int orders[2], answers[2];
	pid_t pid;

	if (pipe(orders) != 0 || pipe(answers) != 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(orders[1]);
		close(answers[0]);
		*child_from = orders[0];
		*child_to = answers[1];
		return 0;
	}
	close(orders[0]);
	close(answers[1]);
	*to = orders[1];
	*from = answers[0];
	return pid;
}

/* ---- a process that writes a text ---- */

/* Without what was answered before it went wrong: the lines that begin with \001. */
static const char *complaint_in(const char *text)
{
	while (*text == '\001') {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

static void set_ending(int status, const char *text, GError **error)
{
	text = complaint_in(text);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver has not answered a call for %d seconds",
			    CHILD_ANSWER_SECONDS);
	else if (WIFSIGNALED(status))
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver's process died of signal %d (%s)", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
	else
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s",
			    text[0] != '\0' ? text : "the driver's process ended without a word");
}

gboolean child_text(gboolean (*work)(void *arg, FILE *out), void *arg, char **out_text,
		    GError **error)
{
	GString *text = g_string_new(NULL);
	int to, from, child_from, child_to, status = 0;
	char part[4096];
	ssize_t n;
	pid_t pid = child_start(&to, &from, &child_from, &child_to);

	if (pid < 0)
		g_error("no process can be started");
	if (pid == 0) {
		FILE *out = fdopen(child_to, "w");
		gboolean good;

		close(child_from);
		good = work(arg, out);
		fclose(out);
		_exit(good ? 0 : 1);
	}
	close(to);
	while ((n = read(from, part, sizeof(part))) > 0)
		g_string_append_len(text, part, n);
	close(from);
	waitpid(pid, &status, 0);
	if (status != 0) {
		set_ending(status, text->str, error);
		g_string_free(text, TRUE);
		return FALSE;
	}
	*out_text = g_string_free(text, FALSE);
	return TRUE;
}
