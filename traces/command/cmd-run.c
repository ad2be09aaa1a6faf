/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim run: sets up the environment and then executes the program in its own place, so that
 * signals and the exit status are the program's.
 */
#include "npusim.h"

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
	skip_dashes(&argc, &argv);
	if (argc < 2)
		return usage_error("run", "which program?");
	if (!model_options_apply("sim", node, &error))
		return usage_error("run", "%s", error->message);
	if (cuda) /* named here, so that a record of the calls has it in its head */
		g_setenv("NPUSIM_SOC", "H100", FALSE);
	g_autofree char *folder = cuda ? cuda_library_folder(&error) : acl_library_folder(&error);
	if (folder == NULL)
		return failure("run", "%s", error->message);
	prepend_to_list("LD_LIBRARY_PATH", folder);
	return become_program("run", argv + 1);
}
