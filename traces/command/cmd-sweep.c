/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim sweep: hands over to sweep.py, which runs this command for each row.
 */
#include "npusim.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "config.h"

int cmd_sweep(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *script = part_file(PART_SWEEP, &error);
	g_autofree char *ranks = part_file(PART_RANKS, NULL);
	g_autoptr(GStrvBuilder) words = g_strv_builder_new();

	if (argc > 2 && strcmp(argv[1], "--row") == 0) { /* it ends with the sweep */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		argv[1] = self;
		return become_program("sweep", argv + 1);
	}
	if (script == NULL)
		return failure_of("sweep", error);
	g_strv_builder_add_many(words, "python3", script, self, NPUSIM_VERSION,
				ranks ? ranks : "sweep-ranks.so", NULL);
	g_strv_builder_addv(words, (const char **)argv + 1);
	return become_program("sweep", g_strv_builder_end(words));
}
