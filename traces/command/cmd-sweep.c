/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim sweep: hands over to sweep.py, for which this command runs the rows (npusim.c: main).
 */
#include "npusim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "config.h"

#define ROW_BYTES (128u << 10)
#define BENCH     "bench.so"
#define MODEL     "backend-sim.so"

char **sweep_next_row(const char *verb)
{
	gboolean is_bench = strcmp(verb, verb_bench.name) == 0;
	g_autofree char *module = part_file(is_bench ? BENCH : MODEL, NULL);
	static char words[ROW_BYTES]; /* with a NUL behind each */
	GStrvBuilder *row = g_strv_builder_new();
	pid_t process = 1;
	ssize_t got = 0;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (module)
		dlopen(module, RTLD_NOW); /* where it fails, the row says why */
	while (process > 0 && (got = read(STDIN_FILENO, words, sizeof(words))) > 0) {
		process = fork();
		if (process > 0 && (waitpid(process, &status, 0) != process ||
				    write(STDIN_FILENO, &status, sizeof(status)) < 0))
			return NULL;
	}
	if (got <= 0)
		return NULL;
	/* where there can be no other process, this one runs the row, and ends */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(STDIN_FILENO);
	open("/dev/null", O_RDONLY);
	for (const char *word = words; word < words + got; word += strlen(word) + 1)
		g_strv_builder_add(row, word);
	return g_strv_builder_end(row);
}

static int run(char **words, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *script = part_file("sweep.py", error);
	g_autofree char *ranks = part_file("sweep-ranks.so", NULL), *acl = part_file(ACL, NULL);
	g_autofree char *bench = part_file(BENCH, NULL), *model = part_file(MODEL, NULL);
	g_autoptr(GStrvBuilder) program = g_strv_builder_new();

	if (script == NULL)
		return NPUSIM_EXIT_FAILED;
	g_strv_builder_add_many(program, "python3", script, self, NPUSIM_VERSION,
				ranks ?: "sweep-ranks.so", bench ?: "", model ?: "", acl ?: "",
				NULL);
	g_strv_builder_addv(program, (const char **)words);
	return become_program(g_strv_builder_end(program));
}

VERB(sweep, "run bench or replay once for each choice of values", NULL, NULL, 0, 0,
     OPTIONS_NOT_READ, NULL, run);
