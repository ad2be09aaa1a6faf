/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs share: messages, the options of the model, and the location of the libraries.
 */
#include "npusim.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "format/memory-limit.h"
#include "npusim/npusim.h"
#include "read/sites.h"

#define VALIDATE_OPTION "validate"

static char *given[NPU_VAR_COUNT]; /* by options, for these variables */
static char *opt_memory;

#define WITH(of)      (1u << OPTIONS_OF_##of)
#define WITH_RUN      (WITH(RUN) | WITH(RECORD))
#define WITH_VALIDATE (WITH(CHECK) | WITH_RUN)
#define WITH_MODEL    (WITH(MODEL) | WITH(REPLAY) | WITH_VALIDATE)

/* By the verbs that have them. */
static const struct {
	unsigned with;
	GOptionEntry entry;
} shared[] = {
	{ WITH(READER) | WITH(REPLAY),
	  { "memory", 0, 0, G_OPTION_ARG_STRING, &opt_memory,
	    "at most SIZE of memory for what files hold (default: a quarter of the machine's)",
	    "SIZE" } },
#define SHARED(with, name, kind, var, help, value)                                          \
	{                                                                                   \
		with,                                                                       \
		{                                                                           \
			name, 0, 0, G_OPTION_ARG_##kind, &given[NPU_VAR_##var], help, value \
		}                                                                           \
	}
	SHARED(WITH(READER) | WITH(REPLAY), "site-rule", STRING, SITE_RULE,
	       "frames that match PATTERN stand for their call stacks before all others",
	       "PATTERN"),
	SHARED(WITH_MODEL, "soc", STRING, SOC, "SoC to model (default Ascend910B1)", "NAME"),
	SHARED(WITH_MODEL, "devices", STRING, DEVICES, "devices of the server, 1 to 16", "N"),
	SHARED(WITH_MODEL, "hbm", STRING, HBM, "memory of each device, such as 64G", "SIZE"),
	SHARED(WITH_MODEL, "contract", STRING, CONTRACT, "docs or driver: whose answers count",
	       "C"),
	SHARED(WITH_MODEL, "timing", STRING, TIMING, "on or off: simulate time", "T"),
	SHARED(WITH_MODEL, "backend", STRING, BACKEND, "sim, hw or auto", "B"),
	SHARED(WITH_MODEL, "node", STRING, NODE, "join the node NAME instead of a fresh one",
	       "NAME"),
	SHARED(WITH(RUN), "supernode", STRING, SUPERNODE,
	       "be a server of supernode NAME; none: a 910C in none", "NAME"),
	SHARED(WITH(RUN), "server", STRING, SERVER, "which one, 0 to 47 (default 0)", "K"),
	SHARED(WITH(RUN), "servers", STRING, SERVERS, "servers of the supernode, 1 to 48", "N"),
	SHARED(WITH(RUN), "server-from", STRING, SERVER_FROM,
	       "the launcher's variable with each process's server, or RANK/SIZE, two variables",
	       "VARIABLE"),
	SHARED(WITH_MODEL & ~WITH(RECORD), "trace", FILENAME, TRACE,
	       "record the driver calls to FILE", "FILE"),
	SHARED(WITH_VALIDATE, VALIDATE_OPTION, STRING, VALIDATE,
	       "look for errors that a device does not tell of; =strict: refuse what would harm",
	       "on"),
	SHARED(WITH_RUN, "error-exitcode", STRING, VALIDATE_EXIT,
	       "with --validate: the status of a process for which something was reported", "N"),
#undef SHARED
};

int failure(const char *verb, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_printerr("npusim %s: %s\n", verb, text);
	return NPUSIM_EXIT_FAILED;
}

int failure_of(const char *verb, const GError *error)
{
	failure(verb, "%s", error->message);
	return g_error_matches(error, TRACE_ERROR, TRACE_ERROR_MEMORY) ? NPUSIM_EXIT_MEMORY
								       : NPUSIM_EXIT_FAILED;
}

int usage_hint(const char *verb)
{
	g_printerr("'npusim %s --help' shows what it takes.\n", verb);
	return NPUSIM_EXIT_USAGE;
}

static const int watchable[] = { SIGINT, SIGPIPE, SIGTERM, SIGHUP };
static gsize watched; /* the first of them */
static struct sigaction unwatched[G_N_ELEMENTS(watchable)];
static volatile sig_atomic_t interrupt;

static void on_interrupt(int number)
{
	interrupt = number;
}

/* Who ignores a signal goes on ignoring it. */
void interrupts_watch(gboolean termination)
{
	watched = termination ? G_N_ELEMENTS(watchable) : 2;
	for (gsize i = 0; i < watched; i++) {
		const struct sigaction action = { .sa_handler = watchable[i] == SIGPIPE
									? SIG_IGN
									: on_interrupt,
						  .sa_flags = (int)SA_RESETHAND | SA_RESTART };
		sigaction(watchable[i], NULL, &unwatched[i]);
		if (unwatched[i].sa_handler != SIG_IGN)
			sigaction(watchable[i], &action, NULL);
	}
}

void interrupts_leave(void)
{
	for (gsize i = 0; i < watched; i++)
		sigaction(watchable[i], &unwatched[i], NULL);
}

int interrupted(void)
{
	return interrupt ? interrupt : output_error() ? SIGPIPE : 0;
}

int interrupt_status(void)
{
	return interrupt ? 128 + interrupt : NPUSIM_EXIT_FAILED;
}

int output_error(void)
{
	static int first;
	struct pollfd reader = { .fd = STDOUT_FILENO, .events = POLLOUT };

	if ((fflush(stdout) == 0 && !ferror(stdout)) || first != 0)
		return first;
	/* a print before may have failed, and others have set errno since: a pipe tells itself */
	int why = errno ? errno : EIO;
	first = poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) ? EPIPE : why;
	return first;
}

char *own_node_name(const char *what)
{
	return g_strdup_printf("%s-%d-%08x", what, (int)getpid(), g_random_int());
}

const char *setting_origin(enum npu_var var)
{
	bool from_env;
	npu_var_get(var, &from_env);
	return given[var] ? "option" : from_env ? "environment" : "default";
}

static const char *option_of(int var)
{
	for (gsize i = 0; i < G_N_ELEMENTS(shared); i++)
		if (shared[i].entry.arg_data == &given[var])
			return shared[i].entry.long_name;
	return NULL;
}

/* What is said of a variable that an option gave, said of the option. */
static char *as_options(const char *text)
{
	GString *out = g_string_new(text);

	for (int var = 0; var < NPU_VAR_COUNT; var++) {
		const char *option = given[var] ? option_of(var) : NULL;
		g_autofree char *before = g_strdup_printf("%s=", npu_var_info(var)->name);
		g_autofree char *after = g_strdup_printf("--%s=", option ? option : "");
		if (option && g_string_replace(out, before, after, 0))
			g_string_replace(out, "environment: --", "--", 1);
	}
	return g_string_free(out, FALSE);
}

/* Takes text. */
static gboolean settings_wrong(char *text, GError **error)
{
	g_autofree char *said = as_options(text ? text : "a setting is not valid");

	free(text);
	return refuse_option(error, "%s", said);
}

gboolean run_check_settings(GError **error)
{
	char *problem = npusim_settings_check();

	return problem == NULL || settings_wrong(problem, error);
}

gboolean model_options_apply(const char *default_backend, const char *fresh_node, GError **error)
{
	char *text = NULL;

	if (!given[NPU_VAR_NODE])
		given[NPU_VAR_NODE] = g_strdup(fresh_node);
	if (default_backend)
		g_setenv(npu_var_info(NPU_VAR_BACKEND)->name, default_backend, FALSE);
	if (given[NPU_VAR_TRACE]) {
		/* the program may go to another folder before it opens the file, and may be many
		 * processes */
		g_autofree char *path = given[NPU_VAR_TRACE];
		given[NPU_VAR_TRACE] = g_canonicalize_filename(path, NULL);
		given[NPU_VAR_RUN] = own_node_name("run");
	}
	for (int var = 0; var < NPU_VAR_COUNT; var++)
		if (given[var])
			g_setenv(npu_var_info(var)->name, given[var], TRUE);
	if (!npu_var_check_all(&text))
		return settings_wrong(text, error);
	if (!given[NPU_VAR_VALIDATE_EXIT] ||
	    strcmp(npu_var_get(NPU_VAR_VALIDATE, NULL), "off") != 0)
		return TRUE;
	return refuse_option(
		error,
		"--error-exitcode=%s is the status of a validated program: give --validate, too",
		given[NPU_VAR_VALIDATE_EXIT]);
}

static gboolean takes_word(const GOptionEntry *entries, const char *option)
{
	for (; entries->long_name; entries++)
		if (entries->arg != G_OPTION_ARG_NONE &&
		    (strcmp(option + 1 + (option[1] == '-'), entries->long_name) == 0 ||
		     (option[1] == entries->short_name && option[2] == '\0')))
			return TRUE;
	return FALSE;
}

/* GOption has no option that takes a word after '=' alone: it would take the program's name. */
static void complete_validate(const GOptionEntry *entries, int argc, char **argv)
{
	static char on[] = "--" VALIDATE_OPTION "=on";

	for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--" VALIDATE_OPTION) == 0)
			argv[i] = on;
		else
			i += takes_word(entries, argv[i]);
	}
}

/* What every verb has that reads files. The replays of a report get its rule by the environment. */
static gboolean apply_reading(enum options_with with, GError **error)
{
	guint64 bytes = 0;

	if (with != OPTIONS_OF_READER && with != OPTIONS_OF_REPLAY)
		return TRUE;
	if (opt_memory == NULL)
		bytes = memory_limit_default("");
	else if (!npu_parse_size(opt_memory, &bytes) || bytes < MEMORY_LIMIT_LEAST)
		return refuse_option(error, "--memory=%s: it is a size of at least 16M, such as 2G",
				     opt_memory);
	memory_limit_set(bytes);
	if (given[NPU_VAR_SITE_RULE])
		g_setenv(npu_var_info(NPU_VAR_SITE_RULE)->name, given[NPU_VAR_SITE_RULE], TRUE);
	const char *rule = npu_var_get(NPU_VAR_SITE_RULE, NULL);
	if (*rule == '\0' || sites_set_rule(rule, error))
		return TRUE;
	g_prefix_error(error, "%s%s: a regular expression is wanted, such as /src/model: ",
		       given[NPU_VAR_SITE_RULE] ? "--site-rule=" : "NPUSIM_SITE_RULE=", rule);
	return FALSE;
}

/* All options of a verb. */
static GArray *entries_of(const GOptionEntry *own, enum options_with with)
{
	GArray *all = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));

	for (; own && own->long_name; own++)
		g_array_append_vals(all, own, 1);
	for (gsize i = 0; i < G_N_ELEMENTS(shared); i++)
		if (shared[i].with >> with & 1)
			g_array_append_vals(all, &shared[i].entry, 1);
	return all;
}

/* Of GLib's "Unknown option --sock=x": the option that may be meant, or NULL. */
static const char *option_meant(const GError *error, const GArray *entries)
{
	const char *said = g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)
				   ? strstr(error->message, "--")
				   : NULL;
	g_autofree char *word = said ? g_strndup(said + 2, strcspn(said + 2, "=")) : NULL;
	g_autofree const char **names = g_new(const char *, entries->len);

	for (guint i = 0; i < entries->len; i++)
		names[i] = g_array_index(entries, GOptionEntry, i).long_name;
	return word ? npu_nearest(word, names, entries->len) : NULL;
}

gboolean parse_options(const char *parameters, const char *summary, const GOptionEntry *entries,
		       enum options_with with, int *argc, char ***argv, int *status)
{
	g_autoptr(GOptionContext) context = g_option_context_new(parameters);
	g_autoptr(GError) error = NULL;
	const char *verb = (*argv)[0];
	g_autofree char *program = g_strdup_printf("npusim %s", verb);
	g_autoptr(GArray) all = entries_of(entries, with);
	const GOptionEntry *options = (const GOptionEntry *)(void *)all->data;

	*status = NPUSIM_EXIT_OK;
	if (*argc == 2 && strcmp((*argv)[1], LIST_OPTIONS) == 0) {
		for (const GOptionEntry *e = options; e->long_name; e++)
			g_print("--%s%s\t%s\n", e->long_name,
				e->arg == G_OPTION_ARG_NONE ? "" : "=", e->description);
		return FALSE;
	}
	g_set_prgname(program);
	g_option_context_set_summary(context, summary);
	g_option_context_set_strict_posix(context, with >= OPTIONS_OF_RUN);
	g_option_context_add_main_entries(context, options, NULL);
	if (with >= OPTIONS_OF_CHECK)
		complete_validate(options, *argc, *argv);
	if (g_option_context_parse(context, argc, argv, &error) && apply_reading(with, &error))
		return TRUE;
	const char *meant = option_meant(error, all);
	*status = usage_error(verb, "%s%s%s%s", error->message, meant ? ": is --" : "",
			      meant ? meant : "", meant ? " meant?" : "");
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

void json_text(JsonBuilder *json, const char *name, const char *value)
{
	json_builder_set_member_name(json, name);
	json_builder_add_string_value(json, value);
}

void json_number(JsonBuilder *json, const char *name, guint64 value)
{
	json_builder_set_member_name(json, name);
	json_builder_add_int_value(json, (gint64)value);
}

void skip_dashes(int *argc, char ***argv)
{
	if (*argc < 2 || strcmp((*argv)[1], "--") != 0)
		return;
	++*argv;
	--*argc;
}

void add_to_list(const char *variable, const char *entry, gboolean first)
{
	const char *old = g_getenv(variable);
	g_autofree char *list =
		old && *old ? g_strjoin(":", first ? entry : old, first ? old : entry, NULL)
			    : g_strdup(entry);

	g_setenv(variable, list, TRUE);
}

/* Of each part a file, and where its folder is from this command's: installed, in the build tree.
 */
static const struct {
	const char *file, *installed, *built, *hint;
} parts[] = {
	[PART_ACL] = { "libascendcl.so", "../lib/npusim/acl", "../runtime", "installed whole" },
	[PART_CUDA] = { "libcuda.so.1", "../lib/npusim/cuda", "../runtime/cuda",
			"installed whole" },
	[PART_HAL] = { "libascend_hal.so", "../lib/npusim/hal", "../backend-sim/hal",
		       "built with the model" },
	[PART_HOME] = { "set_env.sh", "../lib/npusim/home", "../runtime/home/home",
			"installed whole" },
	[PART_RECORD] = { "libnpusim-record.so", "../lib/npusim/preload", "record",
			  "installed whole" },
	[PART_MODEL] = { "backend-sim.so", "../lib/npusim", "../backend-sim",
			 "built with the model" },
	[PART_BENCH] = { "bench.so", "../lib/npusim", "../sim", "built with the model" },
	[PART_SWEEP] = { "sweep.py", "../lib/npusim", ".", "installed whole" },
	[PART_RANKS] = { "sweep-ranks.so", "../lib/npusim", ".", "built with an MPI" },
};

char *part_folder(enum npusim_part part, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = self ? g_path_get_dirname(self) : NULL;
	const char *const places[] = { parts[part].installed, parts[part].built };

	for (gsize i = 0; bin && i < G_N_ELEMENTS(places); i++) {
		g_autofree char *folder = g_canonicalize_filename(places[i], bin);
		g_autofree char *path = g_build_filename(folder, parts[part].file, NULL);
		if (g_file_test(path, G_FILE_TEST_EXISTS))
			return g_steal_pointer(&folder);
	}
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
		    "there is no %s in %s or %s beside %s: is npusim %s?", parts[part].file,
		    places[0], places[1], bin ? bin : "this command", parts[part].hint);
	return NULL;
}

char *part_file(enum npusim_part part, GError **error)
{
	g_autofree char *folder = part_folder(part, error);

	return folder ? g_build_filename(folder, parts[part].file, NULL) : NULL;
}
