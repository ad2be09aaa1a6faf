/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs share: messages, the model's options, where the libraries are.
 */
#include "npusim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config.h"

static char *opt_backend, *opt_soc, *opt_devices, *opt_hbm, *opt_contract, *opt_timing, *opt_node, *opt_trace;

static const GOptionEntry model_entries[] = {
	{ "soc", 0, 0, G_OPTION_ARG_STRING, &opt_soc, "SoC to model (default Ascend910B1)", "NAME" },
	{ "devices", 0, 0, G_OPTION_ARG_STRING, &opt_devices, "devices of the server, 1 to 16", "N" },
	{ "hbm", 0, 0, G_OPTION_ARG_STRING, &opt_hbm, "memory of each device, such as 64G", "SIZE" },
	{ "contract", 0, 0, G_OPTION_ARG_STRING, &opt_contract, "docs or driver: whose answers count", "C" },
	{ "timing", 0, 0, G_OPTION_ARG_STRING, &opt_timing, "on or off: simulate time", "T" },
	{ "backend", 0, 0, G_OPTION_ARG_STRING, &opt_backend, "sim, hw or auto", "B" },
	{ "node", 0, 0, G_OPTION_ARG_STRING, &opt_node, "join the node NAME instead of a fresh one", "NAME" },
	{ "trace", 0, 0, G_OPTION_ARG_FILENAME, &opt_trace, "record the driver calls to FILE", "FILE" },
	{ NULL, 0, 0, 0, NULL, NULL, NULL },
};

static int say(const char *verb, const char *format, va_list args)
{
	g_autofree char *text = g_strdup_vprintf(format, args);
	g_printerr("npusim %s: %s\n", verb, text);
	return NPUSIM_EXIT_FAILED;
}

int failure(const char *verb, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(verb, format, args);
	va_end(args);
	return NPUSIM_EXIT_FAILED;
}

int usage_error(const char *verb, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(verb, format, args);
	va_end(args);
	g_printerr("'npusim %s --help' shows what it takes.\n", verb);
	return NPUSIM_EXIT_USAGE;
}

GOptionGroup *model_options(void)
{
	GOptionGroup *group = g_option_group_new("model", "Options of the model:", "Show the options of the model", NULL, NULL);
	g_option_group_add_entries(group, model_entries);
	return group;
}

char *own_node_name(const char *what)
{
	return g_strdup_printf("%s-%d", what, (int) getpid());
}

static void apply(enum npu_var var, const char *given, const char *otherwise)
{
	const char *name = npu_var_info(var)->name;
	if (given)
		g_setenv(name, given, TRUE);
	else if (otherwise)
		g_setenv(name, otherwise, FALSE);
}

gboolean model_options_apply(const char *default_backend, const char *default_node, GError **error)
{
	char *text = NULL;
	apply(NPU_VAR_BACKEND, opt_backend, default_backend);
	apply(NPU_VAR_SOC, opt_soc, NULL);
	apply(NPU_VAR_DEVICES, opt_devices, NULL);
	apply(NPU_VAR_HBM, opt_hbm, NULL);
	apply(NPU_VAR_CONTRACT, opt_contract, NULL);
	apply(NPU_VAR_TIMING, opt_timing, NULL);
	apply(NPU_VAR_TRACE, opt_trace, NULL);
	apply(NPU_VAR_NODE, opt_node ? opt_node : default_node, NULL);
	if (npu_var_check_all(&text))
		return TRUE;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s", text);
	free(text);
	return FALSE;
}

gboolean parse_options(const char *parameters, const char *summary, const GOptionEntry *entries, gboolean with_model,
		       int *argc, char ***argv, int *status)
{
	g_autoptr(GOptionContext) context = g_option_context_new(parameters);
	g_autoptr(GError) error = NULL;
	const char *verb = (*argv)[0];
	g_autofree char *program = g_strdup_printf("npusim %s", verb);

	g_set_prgname(program);
	g_option_context_set_summary(context, summary);
	g_option_context_set_strict_posix(context, TRUE);
	if (entries)
		g_option_context_add_main_entries(context, entries, NULL);
	if (with_model)
		g_option_context_add_group(context, model_options());
	if (g_option_context_parse(context, argc, argv, &error))
		return TRUE;
	*status = usage_error(verb, "%s", error->message);
	return FALSE;
}

char *acl_library_folder(GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = self ? g_path_get_dirname(self) : NULL;
	const char *inside[] = { "../lib/npusim/acl", "../runtime" };

	for (gsize i = 0; bin && i < G_N_ELEMENTS(inside); i++) {
		g_autofree char *folder = g_canonicalize_filename(inside[i], bin);
		g_autofree char *file = g_build_filename(folder, "libascendcl.so", NULL);
		if (g_file_test(file, G_FILE_TEST_EXISTS))
			return g_steal_pointer(&folder);
	}
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
		    "there is no libascendcl.so in ../lib/npusim/acl or ../runtime beside %s: is npusim installed whole?",
		    bin ? bin : "this command");
	return NULL;
}
