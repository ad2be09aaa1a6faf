/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim sweep: hands over to sweep.py, for which this command runs the rows.
 */
#include "npusim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "config.h"

/* Rows that sweep.py sends, to the socket that is stdin, each in a fork that has the module; its
 * status goes back, a signal that it died of below 0. */
static int run_rows(const char *module, GError **error)
{
	static char words[2 << 20]; /* sweep.py: ROW_BYTES */
	static char **row;
	gssize got, had = 0;
	int count, status;

	(void)dlopen(module, RTLD_NOW); /* where that fails, the row says why */
	while ((got = recv(STDIN_FILENO, words + had, sizeof(words) - had, 0)) > 0) {
		had = words[had + got - 1] == '\0' ? 0 : had + got;
		if (had > 0) /* the rest follows */
			continue;
		pid_t process = fork();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (process <= 0) { /* where there can be no fork, this process ends with the row */
			close(STDIN_FILENO);
			open("/dev/null", O_RDONLY);
			g_shell_parse_argv(words, &count, &row, NULL);
			/* options that are read are taken out */
			g_autofree char **left = g_memdup2(row, (count + 1u) * sizeof(*row));
			return run_named(row[0], count, left);
		}
		waitpid(process, &status, 0);
		status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
		send(STDIN_FILENO, &status, sizeof(status), MSG_NOSIGNAL);
	}
	return got < 0 ? refuse_option(error, "--rows is for sweep.py alone") : NPUSIM_EXIT_OK;
}

static int run(char **words, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *script = part_file("sweep.py", error);
	g_autoptr(GStrvBuilder) program = g_strv_builder_new();

	if (script == NULL)
		return NPUSIM_EXIT_FAILED;
	if (g_strcmp0(words[0], "--rows") == 0)
		return run_rows(words[1], error);
	g_strv_builder_add_many(program, "python3", "-S", script, self, NPUSIM_VERSION, NULL);
	g_strv_builder_addv(program, (const char **)words);
	return become_program(g_strv_builder_end(program));
}

VERB(sweep, "run bench or replay once for each choice of values", NULL, NULL, 0, 0,
     OPTIONS_NOT_READ, NULL, run);
