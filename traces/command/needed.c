/* SPDX-License-Identifier: Apache-2.0
 *
 * Which libraries a program will get, before it runs: its file says whether it gets any, and its
 * own loader which, and by what.
 */
#include "npusim.h"

#include <elf.h>

#define HAL "libascend_hal.so"
/* The driver's function that NVIDIA's static CUDA runtime looks up by its name: programs that have
 * that runtime in them have the name, stripped or not. */
#define STATIC_CUDART "cuGetExportTable"

/* *out_loader: the loader's path, where there is one; g_free(). *out_static_cudart, where it is
 * asked for: the file, which is read for it, has NVIDIA's runtime in it. NULL, or why there are no
 * shared libraries of ours for it. A script is no obstacle: its interpreter, or what it starts, may
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
	if (out_static_cudart)
		*out_static_cudart =
			memmem(bytes, length, STATIC_CUDART, strlen(STATIC_CUDART)) != NULL;
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
 * NULL if it was not searched for. g_free() */
static char *why_this_file(char **account, const char *file)
{
	const char *why = NULL;

	for (char **line = account; *line; line++) {
		const char *trying = strstr(*line, "trying file=");

		if (strstr(*line, " search cache="))
			why = "(the loader's cache)";
		else if (strstr(*line, " search path="))
			why = strrchr(*line, '(');
		else if (trying && strcmp(trying + strlen("trying file="), file) == 0)
			return why ? g_strdup(why) : NULL;
	}
	return NULL;
}

static gboolean lies_under(const char *file, const char *folder)
{
	g_autofree char *real = realpath(file, NULL), *root = realpath(folder, NULL);

	return real && root && g_str_has_prefix(real, root) && real[strlen(root)] == '/';
}

/* Whether a file that the program gets stands for one of ours, and is another's. */
static gboolean is_foreign(const char *file, const char *folder, gboolean with_hal)
{
	g_autofree char *name = g_path_get_basename(file);
	g_autofree char *ours = g_build_filename(folder, name, NULL);

	if (strcmp(name, HAL) == 0) {
		g_autofree char *hal = part_folder(PART_HAL, NULL);
		return with_hal && !(hal && lies_under(file, hal));
	}
	return g_file_test(ours, G_FILE_TEST_EXISTS) && !lies_under(file, folder);
}

/* Of "\tNAME => FILE (0x7f...)" or "\tFILE (0x7f...)". g_free() */
static char *listed_file(const char *line)
{
	const char *arrow = strstr(line, " => "), *start = arrow ? arrow + 4 : line;
	const char *end = strstr(start, " (0x");

	while (*start == '\t' || *start == ' ')
		start++;
	return *start == '/' && end ? g_strndup(start, (gsize)(end - start)) : NULL;
}

static char *ask_loader(const char *loader, const char *path, const char *folder, gboolean with_hal)
{
	char *argv[] = { (char *)loader, (char *)"--list", (char *)path, NULL };
	g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "LD_DEBUG", "libs", TRUE);
	g_autofree char *list = NULL, *search = NULL;
	g_auto(GStrv) lines = NULL, account = NULL;
	const char *preload = g_getenv("LD_PRELOAD");
	GString *found = g_string_new(NULL);

	env = g_environ_unsetenv(env, "LD_DEBUG_OUTPUT");
	if (!g_spawn_sync(NULL, argv, env, G_SPAWN_DEFAULT, NULL, NULL, &list, &search, NULL, NULL))
		return g_string_free(found, TRUE);
	lines = g_strsplit(list, "\n", -1);
	account = g_strsplit(search, "\n", -1);
	for (char **line = lines; *line; line++) {
		g_autofree char *file = listed_file(*line), *name = NULL, *why = NULL;

		if (file == NULL || !is_foreign(file, folder, with_hal))
			continue;
		name = g_path_get_basename(file);
		why = why_this_file(account, file);
		if (why == NULL)
			why = g_strdup(preload && strstr(preload, name) ? "(LD_PRELOAD)"
									: "(needed by this path)");
		g_string_append_printf(found, "%s%s from %s %s", found->len ? ", " : "", name, file,
				       why);
	}
	return g_string_free(found, found->len == 0);
}

struct needed needed_of(const char *program, const char *folder, gboolean with_hal, gboolean cuda)
{
	g_autofree char *path = g_find_program_in_path(program), *loader = NULL;
	struct needed needed = { 0 };

	if (path)
		needed.obstacle = look_at_file(path, &loader, cuda ? &needed.static_cudart : NULL);
	if (loader)
		needed.foreign = ask_loader(loader, path, folder, with_hal);
	return needed;
}
