/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of the npusim command, which finds the verb and runs it.
 */
#include "npusim.h"

#include <locale.h>

#include "config.h"

static const struct verb *const verbs[] = {
	&verb_run,     &verb_replay,  &verb_record, &verb_report, &verb_diff,
	&verb_convert, &verb_check,   &verb_bench,  &verb_sweep,  &verb_profile,
	&verb_node,    &verb_explain, &verb_home,   &verb_info,
};

static void print_help(FILE *out)
{
	fputs("npusim: an Ascend 910B or 910C without the silicon\n\n"
	      "Usage: npusim VERB [options] ...\n\n",
	      out);
	for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++)
		fprintf(out, "  %-8s %s\n", verbs[i]->name, verbs[i]->help);
	fputs("\n'npusim VERB --help' shows a verb's options, 'npusim --version' the version.\n",
	      out);
}

static gboolean is_one_of(const char *text, const char *a, const char *b)
{
	return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static int run_verb(const char *name, int argc, char **argv)
{
	const char *names[G_N_ELEMENTS(verbs)];

	for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
		names[i] = verbs[i]->name;
		if (strcmp(name, names[i]) == 0)
			return verb_start(verbs[i], argc, argv);
	}
	g_printerr("npusim: there is no verb '%s'%s; 'npusim --help' lists them\n", name,
		   nearest_words(name, names, G_N_ELEMENTS(verbs), ""));
	return NPUSIM_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return NPUSIM_EXIT_USAGE;
	}
	if (is_one_of(argv[1], "--version", "-V")) {
		printf("npusim %s\n", NPUSIM_VERSION);
		return NPUSIM_EXIT_OK;
	}
	if (strcmp(argv[1], LIST_OPTIONS) == 0) { /* for a shell that completes words */
		for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++)
			printf("%s\t%s\n", verbs[i]->name, verbs[i]->help);
		return NPUSIM_EXIT_OK;
	}
	if (argc > 2 && strcmp(argv[1], "help") == 0) { /* as VERB --help */
		char help[] = "--help", *words[] = { argv[2], help, NULL };
		return run_verb(argv[2], 2, words);
	}
	if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return NPUSIM_EXIT_OK;
	}
	return run_verb(argv[1], argc - 1, argv + 1);
}

/* A full disk, a closed pipe. GLib ends the process after --help itself. */
static void check_output(int status, void *unused)
{
	(void)unused;
	if (output_error() == 0)
		return;
	g_printerr("npusim: the output cannot be written: %s\n", g_strerror(output_error()));
	if (status == NPUSIM_EXIT_OK)
		_exit(NPUSIM_EXIT_FAILED);
}

int main(int argc, char **argv)
{
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C"); /* figures read the same everywhere */
	on_exit(check_output, NULL);
	return run(argc, argv);
}
