/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim run: checks the settings, puts npusim's libraries in place, runs the program, and says
 * afterwards what only it can know: that no process had the libraries, and what processes reported
 * whose stderr was captured; or all of it as JUnit's XML.
 */
#include "npusim.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/out-file.h"
#include "show/member.h"

/* ---- the program's processes, as they tell it ---- */

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
		failure("run", "%s; reports of processes whose stderr is captured are lost",
			error->message);
		return NULL;
	}
	close(fd);
	g_setenv(variable, path, TRUE);
	return path;
}

/* Where it is written what became of the program; NULL: nowhere. */
struct files {
	char *junit, *json;
};

/* Files of reports and of the log that are the user's own are left to him; reports of a run around
 * this one are not. */
static struct told listen(const struct files *to)
{
	struct told told = { .joined = make_file("NPUSIM_JOIN_FILE") };
	g_autofree char *id = NULL;
	struct stat st;

	if (to->junit)
		told.tests = make_file("NPUSIM_TEST_FILE");
	if ((to->junit || to->json) && !g_getenv("NPUSIM_LOG_FILE"))
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

	failure("run", "no process of this run loaded npusim's %s: %s", library, why);
}

/* What became of the program, and what was reported of it; `loaded`: whether a process had the
 * library. */
static gboolean write_summary(const char *path, const struct junit_program *program,
			      gboolean loaded, GError **error)
{
	g_autoptr(JsonBuilder) json = json_builder_new();
	gboolean exited = WIFEXITED(program->status);

	json_builder_begin_object(json);
	json_builder_set_member_name(json, "program");
	json_builder_begin_array(json);
	for (char *const *word = program->words; *word; word++)
		json_builder_add_string_value(json, *word);
	json_builder_end_array(json);
	json_number(json, exited ? "status" : "signal",
		    (guint)(exited ? WEXITSTATUS(program->status) : WTERMSIG(program->status)));
	json_builder_set_member_name(json, "seconds");
	json_builder_add_double_value(json, program->seconds);
	json_builder_set_member_name(json, "library_loaded");
	json_builder_add_boolean_value(json, loaded);
	json_text(json, "text", program->text ? program->text : "");
	json_builder_end_object(json);
	g_autoptr(JsonNode) root = json_builder_get_root(json);
	return json_write(path, root, error);
}

/* Ends `told`. `program`: NULL: it did not run. FALSE: what was asked for could not be written,
 * which was said. */
static gboolean say_what_was_told(struct told told, struct junit_program *program,
				  const struct files *to, const char *library,
				  const struct needed *needed)
{
	g_autoptr(GError) error = NULL;
	gboolean known = told.joined != NULL;
	g_autofree char *joined = take(told.joined), *reports = take(told.reports);
	g_autofree char *notes = take(told.tests), *log = take(told.log);

	if (program == NULL)
		return TRUE;
	if (reports)
		g_printerr("npusim run: reported by processes whose stderr was captured:\n%s%s",
			   reports, g_str_has_suffix(reports, "\n") ? "" : "\n");
	if (known && joined == NULL && npu_log_enabled(NPU_LOG_WARN))
		warn_of_nobody(program->words[0], library, needed);
	program->notes = notes;
	program->reports = reports;
	program->text = log ? log : reports;
	if ((to->junit == NULL || junit_write(to->junit, program, &error)) &&
	    (to->json == NULL || write_summary(to->json, program, joined != NULL, &error)))
		return TRUE;
	failure("run", "%s", error->message);
	return FALSE;
}

/* ---- the verb ---- */

static int run_as_parent(char **words, const char *folder, gboolean cuda, const struct files *to)
{
	const char *library = cuda ? "libcuda" : "libascendcl";
	gboolean model = strcmp(npu_var_get(NPU_VAR_BACKEND, NULL), "sim") == 0;
	struct needed needed = needed_of(words[0], folder, model && !cuda);
	struct told told = listen(to);
	struct junit_program program = { .words = words };
	gint64 start = g_get_monotonic_time();
	int status;

	if (needed.foreign && npu_log_enabled(NPU_LOG_WARN))
		failure("run", "%s gets %s, not npusim's: its calls go there", words[0],
			needed.foreign);
	gboolean ran = program_run("run", words, &program.status);
	program.seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
	gboolean written = say_what_was_told(told, ran ? &program : NULL, to, library, &needed);
	g_free(needed.foreign);
	status = ran ? program_end_as(program.status) : program.status;
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

static gboolean add_smi(GError **error)
{
	g_autofree char *home = part_folder(PART_HOME, error);
	g_autofree char *folder = home ? g_build_filename(home, "bin", NULL) : NULL;

	if (folder)
		add_to_list("PATH", folder, TRUE);
	return folder != NULL;
}

int cmd_run(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *node = own_node_name("run"), *junit = NULL, *json = NULL;
	gboolean cuda = FALSE, in_place = FALSE, home = FALSE, smi = FALSE;
	const GOptionEntry entries[] = {
		{ "cuda", 0, 0, G_OPTION_ARG_NONE, &cuda,
		  "put npusim's libcuda.so.1 in place instead, on a model of an H100", NULL },
		{ "home", 0, 0, G_OPTION_ARG_NONE, &home,
		  "name npusim's home by ASCEND_HOME_PATH even if another is named already", NULL },
		{ "npu-smi", 0, 0, G_OPTION_ARG_NONE, &smi,
		  "put an npu-smi in front of PATH that shows this server", NULL },
		{ "junit", 0, 0, G_OPTION_ARG_FILENAME, &junit,
		  "write the result to FILE as JUnit's XML; %p in the name: the process's number",
		  "FILE" },
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json,
		  "write a summary as JSON to FILE: status, time, what npusim reported", "FILE" },
		{ "exec", 0, 0, G_OPTION_ARG_NONE, &in_place,
		  "become the program instead of waiting for it: nothing is said at its end",
		  NULL },
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
	if ((junit || json) && in_place)
		return usage_error("run", "--junit and --json are written at the end, which --exec "
					  "leaves to the program");
	if (g_strcmp0(junit, "-") == 0 || g_strcmp0(json, "-") == 0)
		return usage_error("run", "stdout is the program's: --junit and --json want the "
					  "name of a file");
	if ((junit && !out_file_check(junit, &error)) || (json && !out_file_check(json, &error)))
		return failure("run", "%s", error->message);
	if (!model_options_apply("sim", node, &error))
		return usage_error("run", "%s", error->message);
	settle_supernode(node);
	if (cuda) /* named here, so that a record of the calls has it in its head */
		g_setenv("NPUSIM_SOC", "H100", FALSE);
	if (!run_check_settings(&error))
		return usage_error("run", "%s", error->message);
	g_autofree char *folder =
		cuda ? part_folder(PART_CUDA, &error) : home_in_place(home, &error);
	if (folder == NULL)
		return failure("run", "%s", error->message);
	if (cuda)
		add_to_list("LD_LIBRARY_PATH", folder, TRUE);
	if (smi && !add_smi(&error))
		return failure("run", "%s", error->message);
	g_setenv("NPUSIM_RUN", node, FALSE); /* traces of a run inside this one are of this one */
	if (in_place || is_traced())
		return become_program("run", argv + 1);
	const struct files to = { junit, json };
	fill_standard_files();
	return run_as_parent(argv + 1, folder, cuda, &to);
}
