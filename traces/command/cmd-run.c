/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim run: checks the settings, puts npusim's libraries in place, runs the program, and says
 * afterwards what only it can know: that no process had the libraries, and what processes reported
 * whose stderr was captured; or all of it as JUnit's XML.
 */
#include "npusim.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "show/member.h"

struct told {
	char *joined, *reports, *tests, *log; /* files; NULL: none */
};

/* A file of this user's alone, named by the variable; NULL: it cannot be made. */
static char *make_file(const char *variable)
{
	g_autoptr(GError) error = NULL;
	char *path = NULL;
	int fd = g_file_open_tmp("npusim-run-XXXXXX", &path, &error);

	if (fd < 0) {
		g_unsetenv(variable);
		failure("%s; reports of processes whose stderr is captured are lost",
			error->message);
		return NULL;
	}
	close(fd);
	g_setenv(variable, path, TRUE);
	return path;
}

/* Where it is written what became of the program; NULL: nowhere. */
static char *junit, *json;

/* Files of reports and of the log that are the user's own are left to him; reports of a run around
 * this one are not. */
static struct told listen(void)
{
	struct told told = { .joined = make_file("NPUSIM_JOIN_FILE") };
	g_autofree char *id = NULL;
	struct stat st;

	if (junit)
		told.tests = make_file("NPUSIM_TEST_FILE");
	if ((junit || json) && !g_getenv("NPUSIM_LOG_FILE"))
		told.log = make_file("NPUSIM_LOG_FILE");
	if (told.joined == NULL || fstat(STDERR_FILENO, &st) != 0 ||
	    (g_getenv("NPUSIM_REPORT_FILE") && !g_getenv("NPUSIM_REPORT_STDERR")))
		return told;
	id = g_strdup_printf("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	g_setenv("NPUSIM_REPORT_STDERR", id, TRUE);
	told.reports = make_file("NPUSIM_REPORT_FILE");
	return told;
}

/* What the file has, NULL: nothing; it is gone afterwards. g_free() */
static char *take(char *path)
{
	char *text = NULL;

	if (path && g_file_get_contents(path, &text, NULL, NULL) && *text == '\0')
		g_clear_pointer(&text, g_free);
	if (path)
		unlink(path);
	g_free(path);
	return text;
}

static void warn_of_nobody(const char *program, const char *library, const struct needed *needed)
{
	g_autofree char *why =
		needed->obstacle ? g_strdup_printf("%s %s", program, needed->obstacle)
		: needed->foreign
			? g_strdup_printf("%s gets %s", program, needed->foreign)
			: g_strdup_printf("%s may have no use for it; or a script puts another "
					  "folder in front of LD_LIBRARY_PATH, as CANN's "
					  "set_env.sh does, or another file is opened by its path",
					  program);

	failure("no process of this run loaded npusim's %s: %s", library, why);
}

/* What became of the program, and what was reported of it; `loaded`: whether a process had the
 * library. */
static gboolean write_summary(const char *path, const struct junit_program *program,
			      gboolean loaded, GError **error)
{
	g_autoptr(JsonBuilder) builder = json_builder_new();
	gboolean exited = WIFEXITED(program->status);

	json_builder_begin_object(builder);
	json_builder_set_member_name(builder, "program");
	json_builder_begin_array(builder);
	for (char *const *word = program->words; *word; word++)
		json_builder_add_string_value(builder, *word);
	json_builder_end_array(builder);
	json_number(builder, exited ? "status" : "signal",
		    (guint)(exited ? WEXITSTATUS(program->status) : WTERMSIG(program->status)));
	json_builder_set_member_name(builder, "seconds");
	json_builder_add_double_value(builder, program->seconds);
	json_builder_set_member_name(builder, "library_loaded");
	json_builder_add_boolean_value(builder, loaded);
	json_text(builder, "text", program->text ? program->text : "");
	json_builder_end_object(builder);
	return json_write(path, builder, error);
}

/* Ends `told`. FALSE: what was asked for could not be written, which was said. */
static gboolean say_what_was_told(struct told told, struct junit_program *program,
				  const char *library, const struct needed *needed)
{
	g_autoptr(GError) error = NULL;
	gboolean known = told.joined != NULL;
	g_autofree char *joined = take(told.joined), *reports = take(told.reports);
	g_autofree char *notes = take(told.tests), *log = take(told.log);

	if (!program->ran)
		return TRUE;
	if (reports)
		g_printerr("npusim run: reported by processes whose stderr was captured:\n%s%s",
			   reports, g_str_has_suffix(reports, "\n") ? "" : "\n");
	if (known && joined == NULL && npu_log_enabled(NPU_LOG_WARN))
		warn_of_nobody(program->words[0], library, needed);
	program->notes = notes;
	program->reports = reports;
	program->text = log ? log : reports;
	if ((junit == NULL || junit_write(junit, program, &error)) &&
	    (json == NULL || write_summary(json, program, joined != NULL, &error)))
		return TRUE;
	failure("%s", error->message);
	return FALSE;
}

static int run_as_parent(char **words, const char *folder, gboolean cuda)
{
	const char *library = cuda ? "libcuda" : "libascendcl";
	gboolean model = strcmp(npu_var_get(NPU_VAR_BACKEND, NULL), "sim") == 0;
	struct needed needed = needed_of(words[0], folder, model && !cuda, cuda);
	struct told told = listen();
	struct junit_program program = { .words = words };
	gint64 start = g_get_monotonic_time();
	int status;

	if (needed.foreign && npu_log_enabled(NPU_LOG_WARN))
		failure("%s gets %s, not npusim's: its calls go there", words[0], needed.foreign);
	if (needed.static_cudart && npu_log_enabled(NPU_LOG_WARN))
		failure("%s has NVIDIA's static CUDA runtime in it, which asks the driver for "
			"more than CUDA documents: relink it with -cudart shared, so that "
			"npusim's libcudart takes its place",
			words[0]);
	program.ran = program_run(words, &program.status);
	program.seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
	gboolean written = say_what_was_told(told, &program, library, &needed);
	g_free(needed.foreign);
	status = program.ran ? program_end_as(program.status) : program.status;
	return status == NPUSIM_EXIT_OK && !written ? NPUSIM_EXIT_FAILED : status;
}

/* Files that are opened later are not those that the program finds closed. */
static void fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
}

/* Servers without a name are one supernode of this run. Programs take the host's address for the
 * server: each has its own. */
static void settle_supernode(const char *node)
{
	bool known;
	const char *server = npu_var_get(NPU_VAR_SERVER, &known);
	g_autofree char *address = g_strdup_printf("127.0.0.%d", atoi(server) + 1);

	if (g_getenv("NPUSIM_SERVERS"))
		g_setenv("NPUSIM_SUPERNODE", node, FALSE);
	if (known)
		g_setenv("HCCL_IF_IP", address, FALSE);
}

static gboolean cuda, in_place, home, smi;

static const struct option options[] = {
	OPTION("cuda", FLAG, &cuda, NULL,
	       "put npusim's libcuda.so.1 in place instead, on a model of an H100"),
	OPTION("home", FLAG, &home, NULL,
	       "name npusim's home by ASCEND_HOME_PATH even if another is named already"),
	OPTION("npu-smi", FLAG, &smi, NULL,
	       "put an npu-smi in front of PATH that shows this server"),
	OPTION("junit", OUTPUT, &junit, "FILE",
	       "write the result to FILE as JUnit's XML; %p in the name: the process's number"),
	OPTION("json", OUTPUT, &json, "FILE",
	       "write a summary as JSON to FILE: status, time, what npusim reported"),
	OPTION("exec", FLAG, &in_place, NULL,
	       "become the program instead of waiting for it: nothing is said at its end"),
	{ 0 },
};

static int run(char **words, GError **error)
{
	g_autofree char *node = own_node_name();

	if ((junit || json) && in_place)
		return refuse_option(error, "--junit and --json are written at the end, which "
					    "--exec leaves to the program");
	if (g_strcmp0(junit, "-") == 0 || g_strcmp0(json, "-") == 0)
		return refuse_option(error, "stdout is the program's: --junit and --json want the "
					    "name of a file");
	if (!model_options_apply("sim", TRUE, error))
		return NPUSIM_EXIT_FAILED;
	settle_supernode(node);
	if (cuda) /* named here, so that a record of the calls has it in its head */
		g_setenv("NPUSIM_SOC", "H100", FALSE);
	if (!run_check_settings(error))
		return NPUSIM_EXIT_USAGE;
	g_autofree char *folder = cuda ? part_folder(PART_CUDA, error) : home_in_place(home, error);
	if (folder == NULL)
		return NPUSIM_EXIT_FAILED;
	if (cuda)
		add_to_list("LD_LIBRARY_PATH", folder, TRUE);
	g_autofree char *installed = smi ? part_folder(PART_HOME, error) : NULL;
	g_autofree char *bin = installed ? g_build_filename(installed, "bin", NULL) : NULL;
	if (bin)
		add_to_list("PATH", bin, TRUE);
	else if (smi)
		return NPUSIM_EXIT_FAILED;
	g_setenv("NPUSIM_RUN", node, FALSE); /* traces of a run inside this one are of this one */
	if (in_place || is_traced())
		return become_program(words);
	fill_standard_files();
	return run_as_parent(words, folder, cuda);
}

VERB(run, "run a program on the model of an Ascend server", "-- PROGRAM [ARGUMENT...]",
     "Runs a program with npusim's libascendcl.so in place of CANN's, on a fresh simulated server "
     "that its\nchildren share.",
     1, G_MAXINT, OPTIONS_OF_RUN, options, run, NPUSIM_EXIT_FAILED);
