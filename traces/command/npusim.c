/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of the npusim command, which finds the verb and runs it; and what the verbs
 * share: messages, the options of the model, and the location of the libraries.
 */
#include "npusim.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>

#include "backend-sim/node/node.h"
#include "config.h"
#include "npusim/npusim.h"
#include "read/trace.h"

#define VALIDATE_OPTION "validate"
/* The only argument of the command or a verb: what could be there instead, a line each, with a tab
 * and its description. */
#define LIST_OPTIONS "--list-options"

static const struct verb *running;
static struct option options[64];  /* all that it has, as its own table */
static char *given[NPU_VAR_COUNT]; /* by options, for these variables */
static guint64 opt_memory;

static const struct {
	guint with;       /* one of enum options_with */
	enum npu_var var; /* NPU_VAR_COUNT: none */
	struct option option;
} shared[] = {
	{ WITH_READER, NPU_VAR_COUNT,
	  OPTION_RANGE("memory", SIZE, &opt_memory, MEMORY_LIMIT_LEAST, 0, "SIZE",
		       "at most SIZE of memory for what files hold (default: a quarter of the "
		       "machine's)") },
#define SHARED(with, name, kind, var, help, value)                                          \
	{                                                                                   \
		with, NPU_VAR_##var, OPTION(name, kind, &given[NPU_VAR_##var], value, help) \
	}
	SHARED(WITH_READER, "site-rule", TEXT, SITE_RULE,
	       "frames that match PATTERN stand for their call stacks before all others",
	       "PATTERN"),
	SHARED(WITH_MODEL, "soc", TEXT, SOC, "SoC to model (default Ascend910B1)", "NAME"),
	SHARED(WITH_MODEL, "devices", TEXT, DEVICES, "devices of the server, 1 to 16", "N"),
	SHARED(WITH_MODEL, "hbm", TEXT, HBM, "memory of each device, such as 64G", "SIZE"),
	SHARED(WITH_MODEL, "contract", TEXT, CONTRACT, "docs or driver: whose answers count", "C"),
	SHARED(WITH_MODEL, "timing", TEXT, TIMING, "on or off: simulate time", "T"),
	SHARED(WITH_MODEL, "backend", TEXT, BACKEND, "sim, hw or auto", "B"),
	SHARED(WITH_MODEL, "node", TEXT, NODE, "join the node NAME instead of a fresh one", "NAME"),
	SHARED(WITH_SUPERNODE, "supernode", TEXT, SUPERNODE,
	       "be a server of supernode NAME; none: a 910C in none", "NAME"),
	SHARED(WITH_SUPERNODE, "server", TEXT, SERVER, "which one, 0 to 47 (default 0)", "K"),
	SHARED(WITH_SUPERNODE, "servers", TEXT, SERVERS, "servers of the supernode, 1 to 48", "N"),
	SHARED(WITH_SUPERNODE, "server-from", TEXT, SERVER_FROM,
	       "the launcher's variable with each process's server, or RANK/SIZE, two variables",
	       "VARIABLE"),
	SHARED(WITH_TRACE, "trace", FILE, TRACE, "record the driver calls to FILE", "FILE"),
	SHARED(WITH_VALIDATE, VALIDATE_OPTION, TEXT, VALIDATE,
	       "look for errors that a device does not tell of; =strict: refuse what would harm",
	       "on"),
	SHARED(WITH_PROGRAM, "error-exitcode", TEXT, VALIDATE_EXIT,
	       "with --validate: the status of a process for which something was reported", "N"),
#undef SHARED
};

int failure(const char *format, ...)
{
	const char *colour = npu_colour(NPU_LOG_ERROR, STDERR_FILENO);
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_printerr("%snpusim %s:%s %s\n", colour, running->name, NPU_COLOUR_END(colour), text);
	return NPUSIM_EXIT_FAILED;
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
		struct sigaction action = { .sa_flags = (int)SA_RESETHAND | SA_RESTART };

		action.sa_handler = watchable[i] == SIGPIPE ? SIG_IGN : on_interrupt;
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

char *own_node_name(void)
{
	return g_strdup_printf("%s-%d-%08x", running->name, (int)getpid(), g_random_int());
}

const char *setting_origin(enum npu_var var)
{
	bool from_env;
	npu_var_get(var, &from_env);
	return given[var] ? "option" : from_env ? "environment" : "default";
}

/* FALSE and error; the text says of a variable what is to be said of the option that gave it. */
static gboolean settings_wrong(const char *text, GError **error)
{
	g_autoptr(GString) said = g_string_new(text ? text : "a setting is not valid");

	for (gsize i = 0; i < G_N_ELEMENTS(shared); i++) {
		if (shared[i].var == NPU_VAR_COUNT || given[shared[i].var] == NULL)
			continue;
		const char *before = npu_text("%s=", npu_var_info(shared[i].var)->name);
		const char *after = npu_text("--%s=", shared[i].option.name);
		if (g_string_replace(said, before, after, 0))
			g_string_replace(said, "environment: --", "--", 1);
	}
	return refuse_option(error, "%s", said->str);
}

gboolean run_check_settings(GError **error)
{
	g_autofree char *problem = npusim_settings_check();

	return problem == NULL || settings_wrong(problem, error);
}

gboolean model_options_apply(const char *default_backend, GError **error)
{
	g_autofree char *text = NULL;

	if (default_backend) {
		given[NPU_VAR_NODE] = given[NPU_VAR_NODE] ?: own_node_name();
		g_setenv(npu_var_info(NPU_VAR_BACKEND)->name, default_backend, FALSE);
	}
	if (given[NPU_VAR_TRACE]) {
		/* the program may change folders before it opens the file, or be many processes */
		g_autofree char *path = given[NPU_VAR_TRACE];
		given[NPU_VAR_TRACE] = g_canonicalize_filename(path, NULL);
		given[NPU_VAR_RUN] = own_node_name();
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

static const struct option *find_option(const char *word)
{
	for (const struct option *o = options; o->name; o++)
		if (strcmp(word + 1 + (word[1] == '-'), o->name) == 0 ||
		    (word[1] == o->letter && word[2] == '\0'))
			return o;
	return NULL;
}

static gboolean read_number(const struct option *o, const char *text, GError **error)
{
	guint64 most = o->most ? o->most : G_MAXINT64, value;
	gboolean is_size = o->kind == OPTION_SIZE;
	const char *first = is_size ? npu_size_words(o->least) : npu_text(U64, o->least);

	if ((is_size ? npu_parse_size(text, &value)
		     : g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &value, NULL)) &&
	    value >= o->least && value <= most) {
		*(guint64 *)o->to = value;
		return TRUE;
	}
	return refuse_option(error, "--%s=%s: a whole number from %s %s%s is wanted%s", o->name,
			     text, first, o->most ? "to " : "on",
			     !o->most  ? ""
			     : is_size ? npu_size_words(most)
				       : npu_text(U64, most),
			     is_size ? ", with K, M, G or T behind it for powers of 1024" : "");
}

/* What GLib does not read itself. */
static gboolean read_value(const char *name, const char *text, gpointer unused, GError **error)
{
	const struct option *o = find_option(name);
	guint *place = o->to;

	(void)unused;
	if (o->kind != OPTION_CHOICE)
		return read_number(o, text, error);
	g_autofree char *all = g_strjoinv(", ", (char **)o->words);
	for (guint i = 0; o->words[i]; i++)
		if (g_ascii_strcasecmp(text, o->words[i]) == 0) {
			*place = i;
			return TRUE;
		}
	return refuse_option(error, "--%s=%s: it must be one of %s%s", o->name, text, all,
			     npu_meant(text, o->words, g_strv_length((char **)o->words), ""));
}

/* Adds to "Unknown option --sock=x" the option that may be meant. */
static void add_option_meant(GError *error)
{
	const char *said = strstr(error->message, "--");
	g_autofree char *word = said ? g_strndup(said + 2, strcspn(said + 2, "=")) : NULL;
	const char *names[G_N_ELEMENTS(options)];
	guint count = 0;

	for (; options[count].name; count++)
		names[count] = options[count].name;
	if (word)
		said = npu_meant(word, names, count, "--");
	g_autofree char *text = error->message;
	error->message = g_strconcat(text, word ? said : "", NULL);
}

/* FALSE and error; the arguments are left. */
static gboolean read_options(int *argc, char ***argv, GError **error)
{
	static char on[] = "--" VALIDATE_OPTION "=on";
	g_autoptr(GOptionContext) context = g_option_context_new(running->parameters);
	g_autoptr(GArray) entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
	g_autoptr(GError) why = NULL;

	for (const struct option *o = options; o->name; o++) {
		GOptionEntry entry = { o->name, o->letter, 0,       (GOptionArg)o->kind,
				       o->to,   o->help,   o->value };
		if (o->kind == OPTION_OUTPUT) {
			entry.arg = G_OPTION_ARG_FILENAME;
		} else if (o->kind > OPTION_OUTPUT) {
			entry.arg = G_OPTION_ARG_CALLBACK;
			entry.flags = G_OPTION_FLAG_FILENAME;
			entry.arg_data = (gpointer)read_value;
		}
		g_array_append_val(entries, entry);
	}
	g_set_prgname(npu_text("npusim %s", running->name));
	g_option_context_set_summary(context, running->summary);
	g_option_context_set_strict_posix(context, (running->with & WITH_PROGRAM) != 0);
	g_option_context_add_main_entries(context, (GOptionEntry *)(void *)entries->data, NULL);
	/* GOption has no option with a word after '=' alone: it would take the program's name */
	for (int i = 1; running->with & WITH_VALIDATE && i < *argc && (*argv)[i][0] == '-' &&
			strcmp((*argv)[i], "--") != 0;
	     i++) {
		const struct option *o = find_option((*argv)[i]);

		if (strcmp((*argv)[i], "--" VALIDATE_OPTION) == 0)
			(*argv)[i] = on;
		else
			i += o && o->kind != OPTION_FLAG;
	}
	if (!g_option_context_parse(context, argc, argv, error)) {
		if (g_error_matches(*error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION))
			add_option_meant(*error);
		return FALSE;
	}
	if (*argc > 1 && strcmp((*argv)[1], "--") == 0) {
		++*argv;
		--*argc;
	}
	(*argv)[*argc] = NULL;
	if (*argc - 1 > running->most)
		return refuse_option(error, "it takes %s, and '%s' is one word too many",
				     *running->parameters ? running->parameters : "no argument",
				     (*argv)[running->most + 1]);
	if (*argc - 1 < running->least)
		return refuse_option(error, "it takes %s", running->parameters);
	for (const struct option *o = options; o->name; o++) { /* before what may take long */
		char *const *path = o->to;
		if (o->kind == OPTION_OUTPUT && *path && !out_file_check(*path, error))
			return FALSE;
	}
	if (!(running->with & WITH_READER))
		return TRUE;
	/* the replays of a report get its rule by the environment */
	memory_limit_set(opt_memory ?: memory_limit_default(node_host_limit_bytes("")));
	if (given[NPU_VAR_SITE_RULE])
		g_setenv(npu_var_info(NPU_VAR_SITE_RULE)->name, given[NPU_VAR_SITE_RULE], TRUE);
	const char *rule = npu_var_get(NPU_VAR_SITE_RULE, NULL);
	if (*rule == '\0' || sites_set_rule(rule, &why))
		return TRUE;
	return refuse_option(error, "%s%s: a regular expression is wanted, such as /src/model: %s",
			     given[NPU_VAR_SITE_RULE] ? "--site-rule=" : "NPUSIM_SITE_RULE=", rule,
			     why->message);
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_USAGE;
	guint count = 0;

	running = verb;
	for (const struct option *o = verb->options; o && o->name; o++)
		options[count++] = *o;
	for (gsize i = 0; i < G_N_ELEMENTS(shared); i++)
		if (shared[i].with & verb->with)
			options[count++] = shared[i].option;
	g_assert(count < G_N_ELEMENTS(options)); /* the last one is empty */
	if (verb->with != OPTIONS_NOT_READ && argc == 2 && strcmp(argv[1], LIST_OPTIONS) == 0) {
		for (const struct option *o = options; o->name; o++)
			g_print("--%s%s\t%s\n", o->name, o->kind == OPTION_FLAG ? "" : "=",
				o->help);
		return NPUSIM_EXIT_OK;
	}
	if (verb->with == OPTIONS_NOT_READ || read_options(&argc, &argv, &error))
		status = verb->run(argv + 1, &error);
	if (error == NULL)
		return status;
	failure("%s", error->message);
	if (g_error_matches(error, TRACE_ERROR, TRACE_ERROR_MEMORY))
		return NPUSIM_EXIT_MEMORY;
	if (error->domain != G_OPTION_ERROR)
		return verb->trouble ?: NPUSIM_EXIT_FAILED;
	g_printerr("'npusim %s --help' shows what it takes.\n", verb->name);
	return NPUSIM_EXIT_USAGE;
}

void add_to_list(const char *variable, const char *entry, gboolean first)
{
	const char *old = g_getenv(variable);
	g_autofree char *list =
		old && *old ? g_strjoin(":", first ? entry : old, first ? old : entry, NULL)
			    : g_strdup(entry);

	g_setenv(variable, list, TRUE);
}

/* Files, and where the folder of each is from this command's: installed, in the build tree. A path
 * that the build knew is for a command that lies in its tree. */
static const struct part {
	const char *file, *installed, *built, *with; /* what it is built with; NULL: anything */
} parts[] = {
	{ "libascendcl.so", "../lib/npusim/acl", "../runtime", NULL },
	{ "libcuda.so.1", "../lib/npusim/cuda", "../runtime/cuda", NULL },
	{ "libascend_hal.so", "../lib/npusim/hal", "../backend-sim/hal", "the model" },
	{ "set_env.sh", "../lib/npusim/home", "../runtime/home/home", NULL },
	{ "libnpusim-record.so", "../lib/npusim/preload", "record", NULL },
	{ "libnpusim-record-hal.so", "../lib/npusim/preload", "../backend-hw", "backend-hw" },
	{ "backend-sim.so", "../lib/npusim", "../backend-sim", "the model" },
	{ "bench.so", "../lib/npusim", "../sim", "the model" },
	{ "sweep.py", "../lib/npusim", ".", NULL },
	{ "map.case", "../share/npusim/cases/acl", NPUSIM_CHECK_CASES, NULL },
};

char *part_folder(const char *name, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = self ? g_path_get_dirname(self) : NULL;
	const struct part *part = parts;

	while (strcmp(part->file, name) != 0) /* no other is asked for */
		part++;
	const char *const places[] = { part->installed, part->built };

	for (gsize i = 0; bin && i < G_N_ELEMENTS(places); i++) {
		if (g_path_is_absolute(places[i]) && !g_str_has_prefix(bin, NPUSIM_BUILD_ROOT "/"))
			continue;
		g_autofree char *folder = g_canonicalize_filename(places[i], bin);
		g_autofree char *path = g_build_filename(folder, name, NULL);
		if (g_file_test(path, G_FILE_TEST_EXISTS))
			return g_steal_pointer(&folder);
	}
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
		    "there is no %s in %s or %s beside %s: is npusim %s%s?", name, places[0],
		    places[1], bin ? bin : "this command",
		    part->with ? "built with " : "installed whole", part->with ?: "");
	return NULL;
}

char *part_file(const char *name, GError **error)
{
	g_autofree char *folder = part_folder(name, error);

	return folder ? g_build_filename(folder, name, NULL) : NULL;
}

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

int run_named(const char *name, int argc, char **argv)
{
	const char *names[G_N_ELEMENTS(verbs)];

	for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
		names[i] = verbs[i]->name;
		if (strcmp(name, names[i]) == 0)
			return run_verb(verbs[i], argc, argv);
	}
	g_printerr("npusim: there is no verb '%s'%s; 'npusim --help' lists them\n", name,
		   npu_meant(name, names, G_N_ELEMENTS(verbs), ""));
	return NPUSIM_EXIT_USAGE;
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
	const char *word = argc > 1 ? argv[1] : "";
	gboolean help = strcmp(word, "help") == 0;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C"); /* figures read the same everywhere */
	on_exit(check_output, NULL);
	if (argc < 2) {
		print_help(stderr);
		return NPUSIM_EXIT_USAGE;
	}
	if (help && argc > 2) { /* as VERB --help */
		char option[] = "--help", *words[] = { argv[2], option, NULL };
		return run_named(argv[2], 2, words);
	}
	if (strcmp(word, LIST_OPTIONS) == 0) /* for a shell that completes words */
		for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++)
			printf("%s\t%s\n", verbs[i]->name, verbs[i]->help);
	else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		printf("npusim %s\n", NPUSIM_VERSION);
	else if (help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		print_help(stdout);
	else
		return run_named(word, argc - 1, argv + 1);
	return NPUSIM_EXIT_OK;
}
