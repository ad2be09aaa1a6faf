/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim home: says where the folder is that looks like an installation of CANN, writes one, and
 * puts it where CANN and the driver would be. Also what of it npusim run tells its program.
 */
#include "npusim.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home-environment.h"

#define MARK "share/info/npusim/version.info" /* no other home has it */

/* ---- what a program is told ---- */

static void tell_of_home(const char *home, gboolean over)
{
	enum { SET, FIRST };
	static const struct {
		int how;
		const char *name, *path;
	} variables[] = {
#define HOME_VARIABLE(how, name, path) { how, name, path },
		HOME_VARIABLES(HOME_VARIABLE)
	};

	/* One home is told of, not some of this and some of that. */
	if (!over && (g_getenv("ASCEND_HOME_PATH") || g_getenv("ASCEND_TOOLKIT_HOME")))
		return;
	for (gsize i = 0; i < G_N_ELEMENTS(variables); i++) {
		g_autofree char *value = g_canonicalize_filename(variables[i].path, home);

		if (variables[i].how == SET)
			g_setenv(variables[i].name, value, over);
		else
			add_to_list(variables[i].name, value, TRUE);
	}
}

char *home_in_place(gboolean over, GError **error)
{
	gboolean model = strcmp(npu_var_get(NPU_VAR_BACKEND, NULL), "sim") == 0;
	g_autofree char *hal = model ? part_folder(PART_HAL, NULL) : NULL;
	g_autofree char *home = part_folder(PART_HOME, error), *only_linked = NULL;
	char *acl = home ? part_folder(PART_ACL, error) : NULL;

	if (acl == NULL)
		return NULL;
	only_linked = g_build_filename(home, "lib64", NULL);
	if (hal)
		add_to_list("LD_LIBRARY_PATH", hal, TRUE);
	add_to_list("LD_LIBRARY_PATH", acl, TRUE);
	add_to_list("LD_LIBRARY_PATH", only_linked, FALSE);
	tell_of_home(home, over);
	return acl;
}

/* ---- a copy ---- */

static gboolean fails(GError **error, const char *path, const char *what)
{
	return refuse(error, G_FILE_ERROR, g_file_error_from_errno(errno), "%s cannot be %s: %s",
		      path, what, g_strerror(errno));
}

/* Programs refuse folders that others may write. */
static gboolean make_folder(const char *path, GError **error)
{
	return g_mkdir_with_parents(path, 0755) == 0 || fails(error, path, "made");
}

static gboolean make_link(const char *target, const char *path, GError **error)
{
	return (unlink(path) == 0 || errno == ENOENT) && symlink(target, path) == 0
		       ? TRUE
		       : fails(error, path, "made a link");
}

static gboolean make_file(const char *text, const char *path, GError **error)
{
	return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644,
					error);
}

/* A link inside of the home stays one of the copy; the others lead to npusim's own files. */
static gboolean copy_link(const char *from, const char *to, const char *home, GError **error)
{
	g_autofree char *text = g_file_read_link(from, error);
	g_autofree char *folder = g_path_get_dirname(from), *target = NULL;
	gsize length = strlen(home);

	if (text == NULL)
		return FALSE;
	target = g_canonicalize_filename(text, folder);
	return make_link(strncmp(target, home, length) == 0 && target[length] == '/' ? text
										     : target,
			 to, error);
}

static gboolean copy_folder(const char *from, const char *to, const char *home, GError **error)
{
	g_autoptr(GDir) names = g_dir_open(from, 0, error);
	const char *name;
	gboolean done = names != NULL && make_folder(to, error);

	while (done && (name = g_dir_read_name(names)) != NULL) {
		g_autofree char *source = g_build_filename(from, name, NULL);
		g_autofree char *copy = g_build_filename(to, name, NULL), *text = NULL;

		if (g_file_test(source, G_FILE_TEST_IS_SYMLINK))
			done = copy_link(source, copy, home, error);
		else if (g_file_test(source, G_FILE_TEST_IS_DIR))
			done = copy_folder(source, copy, home, error);
		else
			done = g_file_get_contents(source, &text, NULL, error) &&
			       make_file(text, copy, error);
	}
	return done;
}

static gboolean is_free(const char *folder)
{
	g_autoptr(GDir) names = g_dir_open(folder, 0, NULL);
	g_autofree char *mark = g_build_filename(folder, MARK, NULL);

	return names == NULL
		       ? !g_file_test(folder, G_FILE_TEST_EXISTS)
		       : g_dir_read_name(names) == NULL || g_file_test(mark, G_FILE_TEST_EXISTS);
}

static int write_home(const char *home, const char *folder)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *to = g_canonicalize_filename(folder, NULL);
	struct stat a, b;

	if (stat(home, &a) == 0 && stat(to, &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return failure("home", "%s is npusim's own home", to);
	if (!is_free(to))
		return failure("home", "%s is neither an empty folder nor a home of npusim", to);
	if (!copy_folder(home, to, home, &error))
		return failure("home", "%s", error->message);
	return NPUSIM_EXIT_OK;
}

/* ---- the places of CANN and of the driver ---- */

/* Links to a part of the home; the file is a text. */
static const struct place {
	const char *path, *part, *text;
} places[] = {
	{ "usr/local/Ascend/cann-" HOME_VERSION, ".", NULL },
	{ "usr/local/Ascend/cann", ".", NULL },
	{ "usr/local/Ascend/latest", ".", NULL },
	{ "usr/local/Ascend/ascend-toolkit/latest", ".", NULL },
	{ "usr/local/Ascend/ascend-toolkit/set_env.sh", "set_env.sh", NULL },
	{ "usr/local/Ascend/driver", "driver", NULL },
	{ "etc/ascend_install.info", NULL,
	  "Driver_Install_Path_Param=/usr/local/Ascend\n"
	  "Driver_Install_Type=full\n"
	  "UserName=root\nUserGroup=root\n" },
};

/* What is at a place already. */
enum found { NOTHING, OURS, FOREIGN };

static enum found look(const struct place *place, const char *path, const char *target)
{
	g_autofree char *found = g_file_read_link(path, NULL);
	struct stat st;

	if (lstat(path, &st) != 0)
		return NOTHING;
	if (place->text && !g_file_get_contents(path, &found, NULL, NULL))
		return FOREIGN;
	return found && strcmp(found, place->text ? place->text : target) == 0 ? OURS : FOREIGN;
}

/* Nothing is written before all places are known to be free. */
static int install(const char *home, const char *root, gboolean check)
{
	g_autofree char *device = g_build_filename(root, "dev/davinci_manager", NULL);

	if (check && g_file_test(device, G_FILE_TEST_EXISTS))
		return failure("home", "%s is there: this machine has an Ascend driver", device);
	for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
		const struct place *place = &places[i];
		g_autoptr(GError) error = NULL;
		g_autofree char *path = g_build_filename(root, place->path, NULL);
		g_autofree char *folder = g_path_get_dirname(path);
		g_autofree char *target = g_canonicalize_filename(place->part ?: ".", home);

		if (check && look(place, path, target) == FOREIGN)
			return failure("home",
				       "%s is there, and not npusim's: --system is for machines "
				       "without CANN and its driver",
				       path);
		if (!check && (!make_folder(folder, &error) ||
			       !(place->text ? make_file(place->text, path, &error)
					     : make_link(target, path, &error))))
			return failure("home", "%s", error->message);
	}
	return check ? install(home, root, FALSE) : NPUSIM_EXIT_OK;
}

static int uninstall(const char *home, const char *root)
{
	int status = NPUSIM_EXIT_OK;

	for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
		g_autofree char *path = g_build_filename(root, places[i].path, NULL);
		g_autofree char *target = g_canonicalize_filename(places[i].part ?: ".", home);
		enum found found = look(&places[i], path, target);

		if (found == FOREIGN)
			status = failure("home", "%s is not of this npusim, and stays", path);
		else if (found == OURS && unlink(path) != 0)
			status = failure("home", "%s: %s", path, g_strerror(errno));
	}
	static const char *const folders[] = { "usr/local/Ascend/ascend-toolkit",
					       "usr/local/Ascend" };
	for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
		g_autofree char *folder = g_build_filename(root, folders[i], NULL);
		rmdir(folder); /* what others keep there stays */
	}
	return status;
}

/* ---- the verb ---- */

int cmd_home(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *root = NULL;
	gboolean in_system = FALSE, away = FALSE;
	const GOptionEntry entries[] = {
		{ "system", 0, 0, G_OPTION_ARG_NONE, &in_system,
		  "put it where CANN and the driver would be: /usr/local/Ascend, "
		  "/etc/ascend_install.info",
		  NULL },
		{ "remove", 0, 0, G_OPTION_ARG_NONE, &away, "undo --system", NULL },
		{ "root", 0, 0, G_OPTION_ARG_FILENAME, &root,
		  "with --system: the file system below FOLDER, such as an image", "FOLDER" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("[FOLDER]",
			   "Says where npusim's home is, a folder that looks like an installation "
			   "of CANN, or writes one to FOLDER.",
			   entries, OPTIONS_OWN, &argc, &argv, &status))
		return status;
	skip_dashes(&argc, &argv);
	if (argc > 2 || (in_system && argc > 1))
		return usage_error("home", "%s is one word too many", argv[argc - 1]);
	if (!in_system && (away || root))
		return usage_error("home", "--%s goes with --system", away ? "remove" : "root");
	g_autofree char *home = part_folder(PART_HOME, &error);
	if (home == NULL)
		return failure("home", "%s", error->message);
	if (in_system && away)
		return uninstall(home, root ?: "/");
	if (in_system)
		return install(home, root ?: "/", TRUE);
	if (argc > 1)
		return write_home(home, argv[1]);
	g_print("%s\n", home);
	return NPUSIM_EXIT_OK;
}
