/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim record: runs a program and records the calls of all its processes in one trace. Each
 * process writes its own plain file while it runs; the files are merged at the end.
 */
#include "npusim.h"

#include <sys/wait.h>

/* Puts the parts of a folder together; they are gone afterwards if `remove` and it worked. */
static gboolean collect(const char *folder, const char *output, gboolean remove, GError **error)
{
	struct merge_result result;
	g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
	const char *name;

	if (dir == NULL)
		return FALSE;
	while ((name = g_dir_read_name(dir)))
		g_ptr_array_add(parts, g_build_filename(folder, name, NULL));
	if (!merge_write(parts, output, remove ? 0 : 1, &result, error)) {
		if (g_error_matches(*error, G_FILE_ERROR, G_FILE_ERROR_INVAL))
			g_prefix_error(error, "%s: ", folder);
		return FALSE;
	}
	for (guint i = 0; remove && i < parts->len; i++)
		unlink(g_ptr_array_index(parts, i));
	if (remove)
		rmdir(folder);
	g_printerr("%s: %s of %s%s\n", output, npu_counted(result.events, "event"),
		   npu_counted(result.parts, "process"),
		   result.parts == 0 ? ": the program made no call that needs a device" : "");
	if (result.broken)
		g_printerr("%u of them broke off inside a line, which was left out\n",
			   result.broken);
	return TRUE;
}

/* recorder: what is preloaded; NULL: npusim's own libraries record. */
static int record(char **program, const char *output, const char *recorder, GError **error)
{
	g_autofree char *path = recorder ? part_file(recorder, error) : home_in_place(FALSE, error);
	g_autofree char *whole = g_canonicalize_filename(output, NULL);
	g_autofree char *parts = g_strconcat(whole, ".parts", NULL); /* where processes write */
	g_autofree char *pattern = g_build_filename(parts, "part-%p.npt", NULL);
	g_autofree char *name = own_node_name();
	int status;

	if (path == NULL)
		return NPUSIM_EXIT_FAILED;
	if (recorder && strpbrk(path, " :"))
		return failure("%s: LD_PRELOAD takes no path with a blank or a colon in it", path);
	if (g_file_test(whole, G_FILE_TEST_IS_DIR))
		return failure("%s is a folder: -o wants the name of a file", whole);
	if (mkdir(parts, 0777) != 0)
		return errno == EEXIST
			       ? failure("%s is there already, of a recording that did not end: "
					 "npusim record --merge %s -o FILE makes a trace of it",
					 parts, parts)
			       : failure("%s: the folder for what the processes write cannot be "
					 "made: %s",
					 parts, g_strerror(errno));
	g_setenv("NPUSIM_TRACE", pattern, TRUE);
	g_setenv("NPUSIM_STACKS", "short", FALSE);
	g_setenv("NPUSIM_RUN", name, TRUE);
	if (recorder)
		add_to_list("LD_PRELOAD", path, TRUE);
	if (!program_run(program, FALSE, &status)) {
		rmdir(parts);
		return status;
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	g_autoptr(GError) why = NULL;
	if (collect(parts, whole, TRUE, &why))
		return status;
	failure("%s; what was recorded is in %s", why->message, parts);
	return status == 0 ? NPUSIM_EXIT_FAILED : status;
}

static char *output, *folder;
static gboolean preload, hal;

static const struct option options[] = {
	OPTION_SHORT("output", 'o', FILE, &output, "FILE",
		     "the trace (default PROGRAM.npt.gz); .gz: compressed at the end"),
	OPTION("preload", FLAG, &preload, NULL,
	       "leave the program its own ACL library, and record the calls in front of it"),
	OPTION("hal", FLAG, &hal, NULL,
	       "as --preload, one level below: record what its libraries, CANN's say, ask the "
	       "driver"),
	OPTION("merge", FILE, &folder, "FOLDER", "run nothing; put the traces in FOLDER together"),
	{ 0 },
};

static int run(char **words, GError **error)
{
	const char *recorder = hal       ? "libnpusim-record-hal.so"
			       : preload ? "libnpusim-record.so"
					 : NULL;
	gboolean own = recorder == NULL;

	if (preload && hal)
		return refuse_option(error, "--preload and --hal record two levels: give one");
	if (folder && (*words || output == NULL))
		return refuse_option(error,
				     *words ? "--merge runs no program" : "--merge needs -o FILE");
	if (folder)
		return collect(folder, output, FALSE, error) ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
	if (*words == NULL)
		return refuse_option(error, "which program?");
	if (!model_options_apply(own ? "sim" : NULL, error) || (own && !run_check_settings(error)))
		return NPUSIM_EXIT_USAGE;
	if (output == NULL) {
		g_autofree char *base = g_path_get_basename(*words);
		output = g_strconcat(base, ".npt.gz", NULL);
	}
	return record(words, output, recorder, error);
}

VERB(record, "run a program and keep what it called as a trace", "-- PROGRAM [ARGUMENT...]",
     "Runs a program on the model, as npusim run does, and writes what all its processes called to "
     "one trace. --preload: on this machine's own ACL library instead, CANN's on an Ascend server.",
     0, G_MAXINT, WITH_MODEL | WITH_VALIDATE | WITH_PROGRAM, options, run);
