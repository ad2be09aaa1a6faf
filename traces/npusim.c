/* SPDX-License-Identifier: Apache-2.0
 *
 * The npusim command: finds the verb.
 */
#include "npusim.h"

#include <locale.h>
#include <string.h>

#include "config.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{ "run", cmd_run, "run a program on the model of an Ascend server" },
	{ "replay", cmd_replay, "replay a memory snapshot or a trace on the model" },
	{ "node", cmd_node, "list the simulated servers, their processes, and who holds how much" },
	{ "info", cmd_info, "show the backend, the devices, and every setting with its origin" },
};

static void print_help(void)
{
	g_print("npusim: an Ascend 910B or 910C without the silicon\n\n"
		"Usage: npusim VERB [options] ...\n\n");
	for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++)
		g_print("  %-8s %s\n", verbs[i].name, verbs[i].help);
	g_print("\n'npusim VERB --help' shows a verb's options, 'npusim --version' the version.\n");
}

int main(int argc, char **argv)
{
	setlocale(LC_ALL, "");
	if (argc < 2) {
		print_help();
		return NPUSIM_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		g_print("npusim %s\n", NPUSIM_VERSION);
		return NPUSIM_EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		print_help();
		return NPUSIM_EXIT_OK;
	}
	for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	g_printerr("npusim: there is no verb '%s'; 'npusim --help' lists them\n", argv[1]);
	return NPUSIM_EXIT_USAGE;
}
