/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim run: checks the settings, puts npusim's libraries in place, looks which libraries the
 * program will get, runs it, and says afterwards what only it can know: that no process had the
 * libraries, and what processes reported whose stderr was captured; or all of it as JUnit's XML.
 */
#include "npusim.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "backend-sim/node/node.h"
#include "show/member.h"

static gboolean cuda, in_place, home, smi, each;
/* Files for what became of the program, and for its ranks; NULL: none. */
static char *junit, *json, *rank_table;

static struct junit_program program; /* what became of it */
static const char *joined;           /* processes that had the library; NULL: none */

/* Files of this user's alone, each named by a variable, to which processes of the run write. */
enum { JOINED, REPORTS, TESTS, LOG };
static struct {
	const char *variable;
	const char **text; /* what it had at the end; NULL: nothing */
	char *path;        /* NULL: none */
} told[] = { [JOINED] = { "NPUSIM_JOIN_FILE", &joined },
	     [REPORTS] = { "NPUSIM_REPORT_FILE", &program.reports },
	     [TESTS] = { "NPUSIM_TEST_FILE", &program.notes },
	     [LOG] = { "NPUSIM_LOG_FILE", &program.text } };

/* Files of reports and of the log that are the user's own are left to him; reports of a run around
 * this one are not. */
static void listen(void)
{
	g_autoptr(GError) error = NULL;
	gboolean own = g_getenv("NPUSIM_REPORT_FILE") && !g_getenv("NPUSIM_REPORT_STDERR");
	struct stat st;
	const gboolean wanted[G_N_ELEMENTS(told)] = {
		[JOINED] = TRUE,
		[REPORTS] = !own && fstat(STDERR_FILENO, &st) == 0,
		[TESTS] = junit != NULL,
		[LOG] = (junit || json) && !g_getenv("NPUSIM_LOG_FILE"),
	};

	if (wanted[REPORTS])
		g_setenv("NPUSIM_REPORT_STDERR",
			 npu_text("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino), TRUE);
	for (gsize i = 0; i < G_N_ELEMENTS(told); i++) {
		if (!wanted[i])
			continue;
		int fd = g_file_open_tmp("npusim-run-XXXXXX", &told[i].path,
					 error == NULL ? &error : NULL);
		if (fd < 0)
			fd = g_mkstemp(told[i].path = g_strdup("/tmp/npusim-run-XXXXXX"));
		if (fd >= 0) {
			close(fd);
			g_setenv(told[i].variable, told[i].path, TRUE);
		} else {
			g_unsetenv(told[i].variable);
			g_clear_pointer(&told[i].path, g_free);
		}
	}
	if (error != NULL)
		failure("%s; %s", error->message,
			told[JOINED].path ? "/tmp is used instead of TMPDIR"
					  : "reports of processes whose stderr is captured are "
					    "lost; set TMPDIR to a folder that takes files");
}

/* The driver's function that NVIDIA's static CUDA runtime looks up by its name: programs that have
 * that runtime in them have the name, stripped or not. */
#define STATIC_CUDART "cuGetExportTable"

/* *out_loader: the loader's path, where there is one; g_free(). *out_static_cudart, with --cuda:
 * the file, which is read for it, has NVIDIA's runtime in it. NULL, or why there are no shared
 * libraries of ours for it. A script is no obstacle: its interpreter, or what it starts, may
 * get them. */
static const char *look_at_file(const char *path, char **out_loader, gboolean *out_static_cudart)
{
	g_autoptr(GMappedFile) file = g_mapped_file_new(path, FALSE, NULL);
	const char *bytes = file ? g_mapped_file_get_contents(file) : NULL;
	gsize length = file ? g_mapped_file_get_length(file) : 0;
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)bytes;
	struct stat st;

	if (bytes == NULL || length < sizeof(*head) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return NULL;
	*out_static_cudart = cuda && memmem(bytes, length, STATIC_CUDART, strlen(STATIC_CUDART));
	if (head->e_ident[EI_CLASS] != ELFCLASS64)
		return "is a 32-bit program";
	if (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
		return "is a set-user-ID or set-group-ID program, for which LD_LIBRARY_PATH and "
		       "NPUSIM_ variables do not count";
	for (guint i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr part;
		guint64 at = head->e_phoff + (guint64)i * head->e_phentsize;

		if (at > length - sizeof(part))
			return NULL;
		memcpy(&part, bytes + at, sizeof(part));
		if (part.p_type == PT_INTERP && part.p_offset < length &&
		    part.p_filesz <= length - part.p_offset) {
			*out_loader = g_strndup(bytes + part.p_offset, part.p_filesz);
			return NULL;
		}
	}
	return "is linked statically";
}

/* What its account of the search (LD_DEBUG=libs) says of a file:
 *     search path=/opt/cann		(RPATH from file ./program)
 *      trying file=/opt/cann/libascendcl.so
 * NULL if it was not searched for. */
static char *why_this_file(const char *account, const char *file)
{
	g_autofree char *trying = g_strconcat("trying file=", file, "\n", NULL);
	const char *at = strstr(account, trying);
	const char *search = at ? g_strrstr_len(account, at - account, "\t search ") : NULL;
	g_autofree char *line = search ? g_strndup(search, strcspn(search, "\n")) : g_strdup("");

	return g_strdup(strstr(line, " cache=") ? "(the loader's cache)" : strrchr(line, '('));
}

/* Whether a file that the program gets stands for one of ours, and is another's. */
static gboolean is_foreign(const char *file, const char *folder, gboolean with_hal)
{
	g_autofree char *name = g_path_get_basename(file);
	g_autofree char *ours = strcmp(name, HAL) != 0 ? g_build_filename(folder, name, NULL)
				: with_hal             ? part_file(HAL, NULL)
						       : NULL;
	struct stat own, got;

	return ours && stat(ours, &own) == 0 && stat(file, &got) == 0 &&
	       (own.st_dev != got.st_dev || own.st_ino != got.st_ino);
}

static char *ask_loader(const char *loader, const char *path, const char *folder, gboolean with_hal)
{
	char *argv[] = { (char *)loader, (char *)"--list", (char *)path, NULL };
	g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "LD_DEBUG", "libs", TRUE);
	g_autofree char *list = NULL, *search = NULL;
	const char *preload = g_getenv("LD_PRELOAD");

	env = g_environ_unsetenv(env, "LD_DEBUG_OUTPUT");
	if (!g_spawn_sync(NULL, argv, env, G_SPAWN_DEFAULT, NULL, NULL, &list, &search, NULL, NULL))
		return NULL;
	g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
	GString *found = g_string_new(NULL);
	for (char **line = lines; *line; line++) {
		/* "\tNAME => FILE (0x7f...)" or "\tFILE (0x7f...)" */
		const char *arrow = strstr(*line, " => ");
		g_auto(GStrv) parts = g_strsplit(arrow ? arrow + 4 : g_strchug(*line), " (0x", 2);
		const char *file = parts[0] ? parts[0] : "";

		if (*file != '/' || parts[1] == NULL || !is_foreign(file, folder, with_hal))
			continue;
		g_autofree char *name = g_path_get_basename(file);
		g_autofree char *why = why_this_file(search, file);
		const char *unsought =
			preload && strstr(preload, name) ? "(LD_PRELOAD)" : "(needed by this path)";
		g_string_append_printf(found, "%s%s from %s %s", found->len ? ", " : "", name, file,
				       why ?: unsought);
	}
	return g_string_free(found, found->len == 0);
}

static gboolean write_summary(GError **error)
{
	g_autoptr(JsonBuilder) builder = json_builder_new();
	gboolean exited = WIFEXITED(program.status);

	json_builder_begin_object(builder);
	json_list(builder, "program");
	for (char *const *word = program.words; *word; word++)
		json_builder_add_string_value(builder, *word);
	json_builder_end_array(builder);
	json_number(builder, exited ? "status" : "signal",
		    (guint)(exited ? WEXITSTATUS(program.status) : WTERMSIG(program.status)));
	json_builder_set_member_name(builder, "seconds");
	json_builder_add_double_value(builder, program.seconds);
	json_builder_set_member_name(builder, "library_loaded");
	json_builder_add_boolean_value(builder, joined != NULL);
	json_text(builder, "text", program.text ?: "");
	json_builder_end_object(builder);
	return json_write(json, builder, error);
}

/* Ends `told`. FALSE: what was asked for could not be written, which was said. */
static gboolean say_what_was_told(const char *library, const char *obstacle, const char *foreign)
{
	g_autoptr(GError) error = NULL;

	for (gsize i = 0; i < G_N_ELEMENTS(told); i++) {
		char *text = NULL;

		if (told[i].path == NULL)
			continue;
		if (g_file_get_contents(told[i].path, &text, NULL, NULL) && *text == '\0')
			g_clear_pointer(&text, g_free);
		*told[i].text = text;
		unlink(told[i].path);
	}
	if (!program.ran)
		return TRUE;
	program.text = program.text ?: program.reports;
	if (program.reports)
		g_printerr("npusim run: reported by processes whose stderr was captured:\n%s%s",
			   program.reports, g_str_has_suffix(program.reports, "\n") ? "" : "\n");
	if (told[JOINED].path && !joined && npu_log_enabled(NPU_LOG_WARN))
		failure("no process of this run loaded npusim's %s: %s %s%s", library,
			program.words[0],
			obstacle  ? obstacle
			: foreign ? "gets "
				  : "may have no use for it; or a script puts another "
				    "folder in front of LD_LIBRARY_PATH, as CANN's "
				    "set_env.sh does, or another file is opened by its path",
			foreign && !obstacle ? foreign : "");
	if ((junit == NULL || junit_write(junit, &program, &error)) &&
	    (json == NULL || write_summary(&error)))
		return TRUE;
	failure("%s", error->message);
	return FALSE;
}

static int run_as_parent(char **words, const char *folder)
{
	const char *library = cuda ? "libcuda" : "libascendcl";
	gboolean model = strcmp(npu_var_get(NPU_VAR_BACKEND, NULL), "sim") == 0;
	g_autofree char *path = g_find_program_in_path(words[0]), *loader = NULL;
	const char *obstacle = NULL;     /* why it can get no libraries; NULL: none is known */
	g_autofree char *foreign = NULL; /* those of others' that it gets in npusim's place */
	gboolean static_cudart = FALSE;
	gint64 start = g_get_monotonic_time();
	int status;

	program.words = words;
	listen();
	if (path)
		obstacle = look_at_file(path, &loader, &static_cudart);
	if (loader)
		foreign = ask_loader(loader, path, folder, model && !cuda);
	if (foreign && npu_log_enabled(NPU_LOG_WARN))
		failure("%s gets %s, not npusim's: its calls go there", words[0], foreign);
	if (static_cudart && npu_log_enabled(NPU_LOG_WARN))
		failure("%s has NVIDIA's static CUDA runtime in it, which asks the driver for "
			"more than CUDA documents: relink it with -cudart shared, so that "
			"npusim's libcudart takes its place",
			words[0]);
	program.ran = program_run(words, each, &program.status);
	program.seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
	gboolean written = say_what_was_told(library, obstacle, foreign);
	status = program.ran ? program_end_as(program.status) : program.status;
	return status == NPUSIM_EXIT_OK && !written ? NPUSIM_EXIT_FAILED : status;
}

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
	OPTION("each", FLAG, &each, NULL, "run the program once on each of --servers"),
	OPTION("rank-table", OUTPUT, &rank_table, "FILE", "write HCCL's rank table of --servers"),
	OPTION("exec", FLAG, &in_place, NULL,
	       "become the program instead of waiting for it: nothing is said at its end"),
	{ 0 },
};

/* Whether a debugger, or strace, follows this process, and would lose the program in a child. */
static gboolean is_traced(void)
{
	g_autofree char *text = NULL;
	const char *tracer = g_file_get_contents("/proc/self/status", &text, NULL, NULL)
				     ? strstr(text, "\nTracerPid:")
				     : NULL;

	return tracer && atoi(tracer + strlen("\nTracerPid:")) != 0;
}

/* HCCL's rank table, with a rank a device; and its variable, if that is not set. */
static gboolean write_rank_table(guint servers, guint devices, GError **error)
{
	g_autofree char *path = g_canonicalize_filename(rank_table, NULL), *text = NULL;
	g_autoptr(GVariant) table = NULL;
	GVariantBuilder list, pod, ranks;

	g_setenv("RANK_TABLE_FILE", path, FALSE);
	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	g_variant_builder_init(&pod, G_VARIANT_TYPE("aa{ss}"));
	for (guint k = 0; k < servers; k++) {
		const char *ip = server_address(k);

		g_variant_builder_init(&ranks, G_VARIANT_TYPE("aa{ss}"));
		for (guint i = 0; i < devices; i++)
			g_variant_builder_add_parsed(
				&ranks,
				"{'device_id':%s,'super_device_id':%s,'device_ip':%s,'rank_id':%s}",
				npu_text("%u", i), npu_text("%u", node_sdid(k, i)),
				npu_text("192.%u.2.%u", k, 199 - i),
				npu_text("%u", k * devices + i));
		g_variant_builder_add_parsed(&list,
					     "{'server_id':<%s>,'host_ip':<%s>,'device':<%*>}", ip,
					     ip, g_variant_builder_end(&ranks));
		g_variant_builder_add_parsed(&pod, "{'server_id':%s}", ip);
	}
	table = g_variant_ref_sink(g_variant_new_parsed(
		"{'version':<'1.2'>,'status':<'completed'>,'server_count':<%s>,'server_list':<%*>,"
		"'super_pod_list':<[{'super_pod_id':<'0'>,'server_list':<%*>}]>}",
		npu_text("%u", servers), g_variant_builder_end(&list),
		g_variant_builder_end(&pod)));
	text = json_gvariant_serialize_data(table, NULL);
	return out_file_write(rank_table, text, strlen(text), error);
}

static int run(char **words, GError **error)
{
	g_autofree char *node = own_node_name();

	if ((junit || json) && in_place)
		return refuse_option(error, "--junit and --json are written at the end, which "
					    "--exec leaves to the program");
	if (g_strcmp0(junit, "-") == 0 || g_strcmp0(json, "-") == 0 ||
	    g_strcmp0(rank_table, "-") == 0)
		return refuse_option(error, "stdout is the program's: --junit, --json and "
					    "--rank-table want the name of a file");
	if (!model_options_apply("sim", error))
		return NPUSIM_EXIT_FAILED;
	/* servers without a name are one supernode of this run; programs take the host's address
	 * for the server: each has its own */
	const char *server = g_getenv("NPUSIM_SERVER"), *servers = g_getenv("NPUSIM_SERVERS");
	if ((each || rank_table) && !servers)
		return refuse_option(error, "--each and --rank-table go with --servers");
	if (each && (server || g_getenv("NPUSIM_SERVER_FROM") || in_place))
		return refuse_option(error,
				     "--each goes without --server, --server-from and --exec");
	if (servers)
		g_setenv("NPUSIM_SUPERNODE", node, FALSE);
	if (server)
		g_setenv("HCCL_IF_IP", server_address((guint)atoi(server)), FALSE);
	if (rank_table) /* which says how many devices there are: no other shape will do */
		g_setenv("NPUSIM_DEVICES", "16", FALSE);
	if (cuda) /* named here, so that a record of the calls has it in its head */
		g_setenv("NPUSIM_SOC", "H100", FALSE);
	if (!run_check_settings(error))
		return NPUSIM_EXIT_USAGE;
	if (rank_table &&
	    !write_rank_table((guint)atoi(servers), (guint)atoi(g_getenv("NPUSIM_DEVICES")), error))
		return NPUSIM_EXIT_FAILED;
	g_autofree char *folder =
		cuda ? part_folder("libcuda.so.1", error) : home_in_place(home, error);
	if (folder == NULL)
		return NPUSIM_EXIT_FAILED;
	if (cuda)
		add_to_list("LD_LIBRARY_PATH", folder, TRUE);
	g_autofree char *installed = smi ? part_folder(HOME, error) : NULL;
	g_autofree char *bin = installed ? g_build_filename(installed, "bin", NULL) : NULL;
	if (bin)
		add_to_list("PATH", bin, TRUE);
	else if (smi)
		return NPUSIM_EXIT_FAILED;
	g_setenv("NPUSIM_RUN", node, FALSE); /* traces of a run inside this one are of this one */
	if (in_place || (is_traced() && !each))
		return become_program(words);
	/* files that are opened later are not those that the program finds closed */
	int fd;
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	return run_as_parent(words, folder);
}

VERB(run, "run a program on the model of an Ascend server", "-- PROGRAM [ARGUMENT...]",
     "Runs a program with npusim's libascendcl.so in place of CANN's, on a fresh simulated server "
     "that its\nchildren share.",
     1, G_MAXINT, WITH_MODEL | WITH_TRACE | WITH_VALIDATE | WITH_PROGRAM | WITH_SUPERNODE, options,
     run);
