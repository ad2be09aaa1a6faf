/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim run: sets the environment up and becomes the program, so that signals and the exit status
 * are its own.
 */
#include "npusim.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* As a shell has them. */
enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

static void prepend_path(const char *variable, const char *folder)
{
	const char *old = g_getenv(variable);
	g_autofree char *path =
		old && *old ? g_strdup_printf("%s:%s", folder, old) : g_strdup(folder);
	g_setenv(variable, path, TRUE);
}

int cmd_run(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *node = own_node_name("run");
	gboolean cuda = FALSE;
	const GOptionEntry entries[] = {
		{ "cuda", 0, 0, G_OPTION_ARG_NONE, &cuda,
		  "put npusim's libcuda.so.1 in place instead, on a model of an H100", NULL },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("-- PROGRAM [ARGUMENT...]",
			   "Runs a program with npusim's libascendcl.so in place of CANN's, on a "
			   "fresh simulated server that its\n"
			   "children share.",
			   entries, OPTIONS_OF_RUN, &argc, &argv, &status))
		return status;
	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argv++;
		argc--;
	}
	if (argc < 2)
		return usage_error("run", "which program?");
	if (!model_options_apply("sim", node, &error))
		return usage_error("run", "%s", error->message);
	if (cuda) /* named here, so that a record of the calls has it in its head */
		g_setenv("NPUSIM_SOC", "H100", FALSE);
	g_autofree char *folder = cuda ? cuda_library_folder(&error) : acl_library_folder(&error);
	if (folder == NULL)
		return failure("run", "%s", error->message);
	prepend_path("LD_LIBRARY_PATH", folder);
	execvp(argv[1], argv + 1);
	status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
	failure("run", "%s: %s", argv[1], g_strerror(errno));
	return status;
}
