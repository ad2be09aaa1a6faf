/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads case files (cases/FORMAT.md) into cases, steps and expected answers. It does not know what
 * a step does, only which verbs and codes the dialect has.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

/* Codes beside a dialect's: as files have them, and as reports do. */
static const struct {
	int code;
	const char *name, *words;
} codes[] = {
	{ 0, "ok", "ok" },
	{ CASE_ANY, "any", "any answer" },
	{ CASE_EXIT, "exit", "the end of the process" },
	{ CASE_SIGNAL - SIGSEGV, "SIGSEGV", "SIGSEGV" },
	{ CASE_SIGNAL - SIGBUS, "SIGBUS", "SIGBUS" },
	{ CASE_SIGNAL - SIGKILL, "SIGKILL", "SIGKILL" },
	{ CASE_SIGNAL - SIGABRT, "SIGABRT", "SIGABRT" },
	{ CASE_SIGNAL - SIGALRM, NULL, "nothing" }, /* it took too long; no case expects that */
};

const char *case_code_text(const struct case_dialect *dialect, int code)
{
	static char text[96];

	if (code == CASE_MISSING)
		return "no such function";
	for (gsize i = 0; i < G_N_ELEMENTS(codes); i++)
		if (codes[i].code == code)
			return codes[i].words;
	g_snprintf(text, sizeof(text), "%d", code);
	if (code <= CASE_SIGNAL)
		g_snprintf(text, sizeof(text), "the end of the process (signal or status %d)",
			   CASE_SIGNAL - code);
	for (const struct case_code *known = dialect->codes; known->name != NULL; known++)
		if (known->code == code)
			g_snprintf(text, sizeof(text), "%d (%s)", code, known->name);
	return text;
}

/* The number of a code's name ("ok", "107000"). FALSE if it is none. */
static gboolean code_of(const struct case_dialect *dialect, const char *text, int *out)
{
	char *end;

	*out = (int)g_ascii_strtoll(text, &end, 10);
	if (end != text)
		return *end == '\0';
	for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
		*out = codes[i].code;
		if (g_strcmp0(text, codes[i].name) == 0)
			return TRUE;
	}
	for (const struct case_code *known = dialect->codes; known->name != NULL; known++) {
		*out = known->code;
		if (strcmp(text, known->name) == 0)
			return TRUE;
	}
	return FALSE;
}

struct reader {
	const struct case_dialect *dialect;
	const char *path;
	int line;
	GPtrArray *cases;
	struct test_case *test; /* the last one of the file */
	char *suite;
	GError **error;
};

/* FALSE, and the error: where in the file it is. */
#define fail(r, ...)                                                             \
	(g_set_error((r)->error, G_FILE_ERROR, G_FILE_ERROR_INVAL, __VA_ARGS__), \
	 g_prefix_error((r)->error, "%s:%d: ", (r)->path, (r)->line), FALSE)

static void free_case(gpointer data)
{
	struct test_case *test = data;

	g_array_unref(test->steps);
	g_ptr_array_unref(test->settings);
	g_free(test);
}

/* The words of a text, which blanks part. */
static char **words_of(const char *text)
{
	g_autofree char *stripped = g_strstrip(g_strdup(text));

	return g_regex_split_simple("[ \t]+", stripped, 0, 0);
}

/* "case NAME [processes=N] [devices=N] [FLAG]... [NAME=VALUE]..." */
static gboolean read_case(struct reader *r, const char *rest)
{
	struct test_case *test = r->test = g_new0(struct test_case, 1);
	g_auto(GStrv) parts = words_of(rest);
	gboolean bare = FALSE;

	test->dialect = r->dialect;
	test->file = g_intern_string(r->path);
	test->suite = g_intern_string(r->suite);
	test->name = g_intern_string(parts[0]);
	test->line = r->line;
	test->processes = 1;
	test->devices = 1;
	test->settings = g_ptr_array_new_with_free_func(g_free);
	test->steps = g_array_new(FALSE, FALSE, sizeof(struct case_step));
	g_ptr_array_add(r->cases, test);
	if (parts[0] == NULL)
		return fail(r, "a case needs a name");
	for (int i = 1; parts[i] != NULL; i++) {
		gboolean *flag = strcmp(parts[i], "absolute") == 0    ? &test->absolute
				 : strcmp(parts[i], "full-size") == 0 ? &test->full_size
				 : strcmp(parts[i], "numbered") == 0  ? &test->numbered
				 : strcmp(parts[i], "bare") == 0      ? &bare
								      : NULL;

		if (flag != NULL)
			*flag = TRUE;
		else if (g_str_has_prefix(parts[i], "processes="))
			test->processes = atoi(parts[i] + strlen("processes="));
		else if (g_str_has_prefix(parts[i], "devices="))
			test->devices = (unsigned)atoi(parts[i] + strlen("devices="));
		else if (strchr(parts[i], '=') != NULL)
			g_ptr_array_add(test->settings, g_strdup(parts[i]));
		else
			return fail(r, "'%s' says nothing about a case", parts[i]);
	}
	if (test->processes < 1 || test->processes > CASE_PROCESSES_MAX)
		return fail(r, "processes must be between 1 and %d", CASE_PROCESSES_MAX);
	for (int process = 0; process < test->processes && !bare; process++) {
		const char *const *first = r->dialect->beginning;

		for (; first != NULL && *first != NULL; first++) {
			struct case_step step = { r->line, process, TRUE, *first, .text = *first };

			step.docs.given = TRUE;
			g_array_append_val(test->steps, step);
		}
	}
	return TRUE;
}

/* "STEP [| ANSWER] [| docs ANSWER] [| driver ANSWER]"; an answer is "CODE[: VALUE]" */
static gboolean read_step(struct reader *r, const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, "|", -1), argv = NULL;
	const char *words = parts[0];
	struct case_step step = { .line = r->line,
				  .docs = { .given = TRUE },
				  .text = g_intern_string(text) };

	if (r->test == NULL)
		return fail(r, "a step before the first case");
	if (words[0] >= 'A' && words[0] < 'A' + CASE_PROCESSES_MAX && words[1] == '>') {
		step.process = words[0] - 'A';
		words += 2;
	}
	if (step.process >= r->test->processes)
		return fail(r, "the case has no process %c", 'A' + step.process);
	if (strlen(text) >= CASE_STEP_LENGTH)
		return fail(r, "a step has at most %d characters", CASE_STEP_LENGTH - 1);
	for (char **part = parts + 1; *part != NULL; part++) {
		const char *answer = g_strstrip(*part);
		gboolean driver = g_str_has_prefix(answer, "driver ");

		answer += driver ? 7 : g_str_has_prefix(answer, "docs ") ? 5 : 0;
		struct case_said *expect = driver ? &step.driver : &step.docs;
		g_auto(GStrv) said = g_strsplit(answer, ":", 2);
		if (said[0] == NULL || !code_of(r->dialect, g_strstrip(said[0]), &expect->code))
			return fail(r, "'%s' is no answer; say ok, any, a number, or a signal",
				    said[0] == NULL ? "" : said[0]);
		expect->given = TRUE;
		expect->value = g_intern_string(said[1] == NULL ? NULL : g_strstrip(said[1]));
	}
	argv = words_of(words);
	if (argv[0] == NULL)
		return fail(r, "'' is no step");
	g_autofree char *joined = g_strjoinv(" ", argv);
	step.words = g_intern_string(joined);
	g_array_append_val(r->test->steps, step);
	gboolean all = g_str_has_prefix(joined, "all ");
	g_auto(GStrv) steps = g_strsplit(joined + (all ? 4 : 0), " ; ", all ? -1 : 1);
	for (char **one = steps; *one != NULL; one++) {
		g_auto(GStrv) its = words_of(*one);
		g_autofree char *why = all && g_strcmp0(its[0], "all") == 0
					       ? g_strdup("'all' is no step of 'all'")
					       : case_step_wrong(r->dialect, its);
		if (why != NULL)
			return fail(r, "%s", why);
	}
	return TRUE;
}

static gboolean read_file(struct reader *r)
{
	g_autofree char *text = NULL, *suite = g_path_get_basename(r->path);
	g_auto(GStrv) lines = NULL;
	gboolean good = TRUE;

	if (!g_file_get_contents(r->path, &text, NULL, NULL))
		return fail(r, "cannot be opened");
	suite[strcspn(suite, ".")] = '\0'; /* the file's name without its ending */
	r->suite = g_strcanon(suite, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS, '_');
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; good && *line != NULL; line++) {
		(*line)[strcspn(*line, "#\r")] = '\0';
		g_strstrip(*line);
		r->line++;
		if (g_str_has_prefix(*line, "case "))
			good = read_case(r, *line + 5);
		else if (**line != '\0')
			good = read_step(r, *line);
	}
	return good;
}

GPtrArray *case_folder_read(const char *path, const struct case_dialect *dialect, GError **error)
{
	g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(free_case);
	struct dirent **names = NULL;
	int count = scandir(path, &names, NULL, versionsort);
	gboolean good = count >= 0;

	if (!good)
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "%s: %s",
			    path, g_strerror(errno));
	for (int i = 0; i < count; i++) {
		g_autofree char *file = g_build_filename(path, names[i]->d_name, NULL);
		struct reader r = {
			.dialect = dialect, .path = file, .cases = cases, .error = error
		};

		if (good && g_str_has_suffix(file, ".case"))
			good = read_file(&r);
		free(names[i]);
	}
	free(names);
	if (good && cases->len == 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "%s has no *.case file", path);
	return good && cases->len > 0 ? g_steal_pointer(&cases) : NULL;
}
