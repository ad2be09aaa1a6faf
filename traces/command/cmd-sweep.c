/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim sweep: hands over to sweep.py, which runs this command for each row (npusim.c: main).
 */
#include "npusim.h"

#include "config.h"

static int run(char **words, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *script = part_file("sweep.py", error);
	g_autofree char *ranks = part_file("sweep-ranks.so", NULL);
	g_autoptr(GStrvBuilder) program = g_strv_builder_new();

	if (script == NULL)
		return NPUSIM_EXIT_FAILED;
	g_strv_builder_add_many(program, "python3", script, self, NPUSIM_VERSION,
				ranks ? ranks : "sweep-ranks.so", NULL);
	g_strv_builder_addv(program, (const char **)words);
	return become_program(g_strv_builder_end(program));
}

VERB(sweep, "run bench or replay once for each choice of values", NULL, NULL, 0, 0,
     OPTIONS_NOT_READ, NULL, run);
