/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim home: says where the folder is that looks like an installation of CANN, writes one, and
 * puts it where CANN and the driver would be. Also what of it npusim run tells its program.
 */
#include "npusim.h"

#include "home-environment.h"

#define MARK "share/info/npusim/version.info" /* no other home has it */

char *home_in_place(gboolean over, GError **error)
{
	enum { SET, FIRST };
	static const struct {
		int how;
		const char *name, *path;
	} variables[] = {
#define HOME_VARIABLE(how, name, path) { how, name, path },
		HOME_VARIABLES(HOME_VARIABLE)
	};
	gboolean model = strcmp(npu_var_get(NPU_VAR_BACKEND, NULL), "sim") == 0;
	g_autofree char *hal = model ? part_folder(HAL, NULL) : NULL;
	g_autofree char *home = part_folder(HOME, error), *only_linked = NULL;
	char *acl = home ? part_folder(ACL, error) : NULL;

	if (acl == NULL)
		return NULL;
	only_linked = g_build_filename(home, "lib64", NULL);
	if (hal)
		add_to_list("LD_LIBRARY_PATH", hal, TRUE);
	add_to_list("LD_LIBRARY_PATH", acl, TRUE);
	add_to_list("LD_LIBRARY_PATH", only_linked, FALSE);
	/* One home is told of, not some of this and some of that. */
	if (!over && (g_getenv("ASCEND_HOME_PATH") || g_getenv("ASCEND_TOOLKIT_HOME")))
		return acl;
	for (gsize i = 0; i < G_N_ELEMENTS(variables); i++) {
		g_autofree char *value = g_canonicalize_filename(variables[i].path, home);

		if (variables[i].how == SET)
			g_setenv(variables[i].name, value, over);
		else
			add_to_list(variables[i].name, value, TRUE);
	}
	return acl;
}

/* Programs refuse folders that others may write. */
static gboolean make_folder(const char *path, GError **error)
{
	return g_mkdir_with_parents(path, 0755) == 0 ||
	       refuse_file(error, errno, "%s cannot be made: %s", path, g_strerror(errno));
}

static gboolean make_link(const char *target, const char *path, GError **error)
{
	return ((unlink(path) == 0 || errno == ENOENT) && symlink(target, path) == 0) ||
	       refuse_file(error, errno, "%s cannot be made a link: %s", path, g_strerror(errno));
}

static gboolean copy_folder(const char *from, const char *to, const char *home, GError **error)
{
	g_autoptr(GDir) names = g_dir_open(from, 0, error);
	gboolean done = names != NULL && make_folder(to, error);
	gsize length = strlen(home);
	const char *name;

	while (done && (name = g_dir_read_name(names)) != NULL) {
		g_autofree char *source = g_build_filename(from, name, NULL);
		g_autofree char *copy = g_build_filename(to, name, NULL), *text = NULL;

		if (g_file_test(source, G_FILE_TEST_IS_SYMLINK)) {
			/* inside the home it stays one of the copy; others lead to npusim's */
			text = g_file_read_link(source, error);
			g_autofree char *target = text ? g_canonicalize_filename(text, from) : NULL;
			gboolean inside =
				text && strncmp(target, home, length) == 0 && target[length] == '/';
			done = text && make_link(inside ? text : target, copy, error);
		} else if (g_file_test(source, G_FILE_TEST_IS_DIR)) {
			done = copy_folder(source, copy, home, error);
		} else {
			done = g_file_get_contents(source, &text, NULL, error) &&
			       g_file_set_contents_full(
				       copy, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
		}
	}
	return done;
}

/* Links to parts of the home. */
static const struct place {
	const char *path, *part;
} places[] = {
	{ "usr/local/Ascend/cann-" HOME_VERSION, "." },
	{ "usr/local/Ascend/cann", "." },
	{ "usr/local/Ascend/latest", "." },
	{ "usr/local/Ascend/ascend-toolkit/latest", "." },
	{ "usr/local/Ascend/ascend-toolkit/set_env.sh", "set_env.sh" },
	{ "usr/local/Ascend/driver", "driver" },
	{ "etc/ascend_install.info", "driver/ascend_install.info" },
};

enum pass { CHECK, MAKE, REMOVE };

static int visit_places(const char *home, const char *root, enum pass pass, GError **error)
{
	int status = NPUSIM_EXIT_OK;

	for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
		const struct place *place = &places[i];
		g_autofree char *path = g_build_filename(root, place->path, NULL);
		g_autofree char *folder = g_path_get_dirname(path);
		g_autofree char *target = g_canonicalize_filename(place->part, home);
		g_autofree char *is = g_file_read_link(path, NULL);
		gboolean ours = g_strcmp0(is, target) == 0;
		struct stat st;
		gboolean there = lstat(path, &st) == 0;

		if (pass == CHECK && there && !ours)
			return failure("%s is there, and not npusim's: --system is for machines "
				       "without CANN and its driver",
				       path);
		if (pass == MAKE &&
		    (!make_folder(folder, error) || !make_link(target, path, error)))
			return NPUSIM_EXIT_FAILED;
		if (pass == REMOVE && there && !ours)
			status = failure("%s is not of this npusim, and stays", path);
		else if (pass == REMOVE && ours && unlink(path) != 0)
			status = failure("%s: %s", path, g_strerror(errno));
	}
	return status;
}

static char *root;
static gboolean in_system, away;

static const struct option options[] = {
	OPTION("system", FLAG, &in_system, NULL,
	       "put it where CANN and the driver would be: /usr/local/Ascend, "
	       "/etc/ascend_install.info"),
	OPTION("remove", FLAG, &away, NULL, "undo --system"),
	OPTION("root", FILE, &root, "FOLDER",
	       "with --system: the file system below FOLDER, such as an image"),
	{ 0 },
};

static int run(char **words, GError **error)
{
	if (in_system && *words)
		return refuse_option(error, "%s is one word too many beside --system", *words);
	if (!in_system && (away || root))
		return refuse_option(error, "--%s goes with --system", away ? "remove" : "root");
	g_autofree char *home = part_folder(HOME, error);
	if (home == NULL)
		return NPUSIM_EXIT_FAILED;
	if (*words) {
		g_autofree char *to = g_canonicalize_filename(*words, NULL);
		g_autofree char *mark = g_build_filename(to, MARK, NULL);
		g_autoptr(GDir) names = g_dir_open(to, 0, NULL);
		struct stat a, b;

		if (stat(home, &a) == 0 && stat(to, &b) == 0 && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			return failure("%s is npusim's own home", to);
		if (names ? g_dir_read_name(names) && !g_file_test(mark, G_FILE_TEST_EXISTS)
			  : g_file_test(to, G_FILE_TEST_EXISTS))
			return failure("%s is neither an empty folder nor a home of npusim", to);
		return copy_folder(home, to, home, error) ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
	}
	if (!in_system) {
		g_print("%s\n", home);
		return NPUSIM_EXIT_OK;
	}
	const char *system = root ? root : "/";
	g_autofree char *device = g_build_filename(system, "dev/davinci_manager", NULL);
	g_autofree char *kit = g_build_filename(system, "usr/local/Ascend/ascend-toolkit", NULL);
	g_autofree char *ascend = g_path_get_dirname(kit);
	if (!away && g_file_test(device, G_FILE_TEST_EXISTS))
		return failure("%s is there: this machine has an Ascend driver", device);
	int status = visit_places(home, system, away ? REMOVE : CHECK, error);
	if (away) {
		rmdir(kit);
		rmdir(ascend);                 /* what others keep there stays */
	} else if (status == NPUSIM_EXIT_OK) { /* all places are known to be free */
		status = visit_places(home, system, MAKE, error);
	}
	return status;
}

VERB(home, "show or write the folder that looks like an installation of CANN", "[FOLDER]",
     "Says where npusim's home is, a folder that looks like an installation of CANN, or writes one "
     "to FOLDER.",
     0, 1, 0, options, run);
