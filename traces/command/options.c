/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs share: messages, the options of the model, and the location of the libraries.
 */
#include "npusim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config.h"
#include "npusim/npusim.h"

static char *opt_backend, *opt_soc, *opt_devices, *opt_hbm, *opt_contract, *opt_timing, *opt_node,
	*opt_trace;

static const GOptionEntry model_entries[] = {
	{ "soc", 0, 0, G_OPTION_ARG_STRING, &opt_soc, "SoC to model (default Ascend910B1)",
	  "NAME" },
	{ "devices", 0, 0, G_OPTION_ARG_STRING, &opt_devices, "devices of the server, 1 to 16",
	  "N" },
	{ "hbm", 0, 0, G_OPTION_ARG_STRING, &opt_hbm, "memory of each device, such as 64G",
	  "SIZE" },
	{ "contract", 0, 0, G_OPTION_ARG_STRING, &opt_contract,
	  "docs or driver: whose answers count", "C" },
	{ "timing", 0, 0, G_OPTION_ARG_STRING, &opt_timing, "on or off: simulate time", "T" },
	{ "backend", 0, 0, G_OPTION_ARG_STRING, &opt_backend, "sim, hw or auto", "B" },
	{ "node", 0, 0, G_OPTION_ARG_STRING, &opt_node, "join the node NAME instead of a fresh one",
	  "NAME" },
	{ NULL, 0, 0, 0, NULL, NULL, NULL },
};
static const GOptionEntry trace_entries[] = {
	{ "trace", 0, 0, G_OPTION_ARG_FILENAME, &opt_trace, "record the driver calls to FILE",
	  "FILE" },
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

char *own_node_name(const char *what)
{
	return g_strdup_printf("%s-%d-%08x", what, (int)getpid(), g_random_int());
}

static gboolean given_as_option[NPU_VAR_COUNT];

const char *setting_origin(enum npu_var var)
{
	bool from_env;
	npu_var_get(var, &from_env);
	return given_as_option[var] ? "option" : from_env ? "environment" : "default";
}

static void apply(enum npu_var var, const char *given, const char *otherwise)
{
	const char *name = npu_var_info(var)->name;
	given_as_option[var] = given != NULL;
	if (given)
		g_setenv(name, given, TRUE);
	else if (otherwise)
		g_setenv(name, otherwise, FALSE);
}

/* The program may go to another folder before it opens the file, and may be many processes. */
static void apply_trace(void)
{
	g_autofree char *path = opt_trace ? g_canonicalize_filename(opt_trace, NULL) : NULL;
	g_autofree char *run = opt_trace ? own_node_name("run") : NULL;
	apply(NPU_VAR_TRACE, path, NULL);
	apply(NPU_VAR_RUN, run, NULL);
}

/* What is said of a variable that an option gave, said of the option. */
static char *as_options(const char *text)
{
	GString *out = g_string_new(text);

	for (int var = 0; var < NPU_VAR_COUNT; var++) {
		const char *name = npu_var_info(var)->name;
		g_autofree char *option = g_ascii_strdown(name + strlen("NPUSIM_"), -1);
		g_autofree char *before = g_strdup_printf("%s=", name);
		g_autofree char *after = g_strdup_printf("--%s=", option);
		if (given_as_option[var] && g_string_replace(out, before, after, 0))
			g_string_replace(out, "environment: --", "--", 1);
	}
	return g_string_free(out, FALSE);
}

/* Takes text. */
static gboolean settings_wrong(char *text, GError **error)
{
	g_autofree char *said = as_options(text ? text : "a setting is not valid");

	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s", said);
	free(text);
	return FALSE;
}

gboolean run_check_settings(GError **error)
{
	char *problem = npusim_settings_check();

	return problem == NULL || settings_wrong(problem, error);
}

gboolean model_options_apply(const char *default_backend, const char *fresh_node, GError **error)
{
	char *text = NULL;
	apply(NPU_VAR_BACKEND, opt_backend, default_backend);
	apply(NPU_VAR_SOC, opt_soc, NULL);
	apply(NPU_VAR_DEVICES, opt_devices, NULL);
	apply(NPU_VAR_HBM, opt_hbm, NULL);
	apply(NPU_VAR_CONTRACT, opt_contract, NULL);
	apply(NPU_VAR_TIMING, opt_timing, NULL);
	apply(NPU_VAR_NODE, opt_node ? opt_node : fresh_node, NULL);
	apply_trace();
	return npu_var_check_all(&text) || settings_wrong(text, error);
}

gboolean parse_options(const char *parameters, const char *summary, const GOptionEntry *entries,
		       enum options_with with, int *argc, char ***argv, int *status)
{
	g_autoptr(GOptionContext) context = g_option_context_new(parameters);
	g_autoptr(GError) error = NULL;
	const char *verb = (*argv)[0];
	g_autofree char *program = g_strdup_printf("npusim %s", verb);

	g_set_prgname(program);
	g_option_context_set_summary(context, summary);
	g_option_context_set_strict_posix(context, with >= OPTIONS_OF_RUN);
	if (entries)
		g_option_context_add_main_entries(context, entries, NULL);
	if (with != OPTIONS_OWN)
		g_option_context_add_main_entries(context, model_entries, NULL);
	if (with == OPTIONS_OF_MODEL || with == OPTIONS_OF_RUN)
		g_option_context_add_main_entries(context, trace_entries, NULL);
	if (g_option_context_parse(context, argc, argv, &error))
		return TRUE;
	*status = usage_error(verb, "%s", error->message);
	return FALSE;
}

void options_clear(const GOptionEntry *entries)
{
	for (; entries->long_name; entries++) {
		if (entries->arg == G_OPTION_ARG_STRING || entries->arg == G_OPTION_ARG_FILENAME)
			g_free(*(char **)entries->arg_data);
		if (entries->arg == G_OPTION_ARG_STRING_ARRAY)
			g_strfreev(*(char ***)entries->arg_data);
	}
}

void skip_dashes(int *argc, char ***argv)
{
	if (*argc < 2 || strcmp((*argv)[1], "--") != 0)
		return;
	++*argv;
	--*argc;
}

void prepend_to_list(const char *variable, const char *entry)
{
	const char *old = g_getenv(variable);
	g_autofree char *list =
		old && *old ? g_strdup_printf("%s:%s", entry, old) : g_strdup(entry);

	g_setenv(variable, list, TRUE);
}

void append_to_list(const char *variable, const char *entry)
{
	const char *old = g_getenv(variable);
	g_autofree char *list = old && *old ? g_strdup_printf("%s:%s", old, entry) : NULL;

	g_setenv(variable, list ? list : entry, TRUE);
}

/* The first of `places`, relative to this command's folder, that has the file. */
static char *library_folder(const char *file, const char *const places[2], const char *hint,
			    GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = self ? g_path_get_dirname(self) : NULL;

	for (gsize i = 0; bin && i < 2; i++) {
		g_autofree char *folder = g_canonicalize_filename(places[i], bin);
		g_autofree char *path = g_build_filename(folder, file, NULL);
		if (g_file_test(path, G_FILE_TEST_EXISTS))
			return g_steal_pointer(&folder);
	}
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
		    "there is no %s in %s or %s beside %s: is npusim %s?", file, places[0],
		    places[1], bin ? bin : "this command", hint);
	return NULL;
}

char *acl_library_folder(GError **error)
{
	const char *const places[] = { "../lib/npusim/acl", "../runtime" };

	return library_folder("libascendcl.so", places, "installed whole", error);
}

char *cuda_library_folder(GError **error)
{
	const char *const places[] = { "../lib/npusim/cuda", "../runtime/cuda" };

	return library_folder("libcuda.so.1", places, "installed whole", error);
}

char *hal_library_folder(GError **error)
{
	const char *const places[] = { "../lib/npusim/hal", "../backend-sim/hal" };

	return library_folder("libascend_hal.so", places, "built with the model", error);
}

char *home_folder(GError **error)
{
	const char *const places[] = { "../lib/npusim/home", "../runtime/home/home" };

	return library_folder("set_env.sh", places, "installed whole", error);
}

static char *library(const char *file, const char *const places[2], const char *hint,
		     GError **error)
{
	g_autofree char *folder = library_folder(file, places, hint, error);

	return folder ? g_build_filename(folder, file, NULL) : NULL;
}

char *preload_library(GError **error)
{
	const char *const places[] = { "../lib/npusim/preload", "record" };

	return library("libnpusim-record.so", places, "installed whole", error);
}

char *model_module(GError **error)
{
	const char *const places[] = { "../lib/npusim", "../backend-sim" };

	return library("backend-sim.so", places, "built with the model", error);
}

char *bench_module(GError **error)
{
	const char *const places[] = { "../lib/npusim", "../sim" };

	return library("bench.so", places, "built with the model", error);
}
