/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads case files (cases/FORMAT.md): lines to cases, steps and expected answers. What a step does
 * is not known here, only which verbs there are.
 */
#include "case.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "SIGSEGV", SIGSEGV }, { "SIGBUS", SIGBUS }, { "SIGKILL", SIGKILL }, { "SIGABRT", SIGABRT }
};

#define CODE(name)          \
	{                   \
		name, #name \
	}
static const struct {
	int code;
	const char *name;
} codes[] = {
	{ 0, "ok" },
	CODE(ACL_ERROR_INVALID_PARAM),
	CODE(ACL_ERROR_REPEAT_INITIALIZE),
	CODE(ACL_ERROR_REPEAT_FINALIZE),
	CODE(ACL_ERROR_FEATURE_UNSUPPORTED),
	CODE(ACL_ERROR_INTERNAL_ERROR),
	CODE(ACL_ERROR_RT_PARAM_INVALID),
	CODE(ACL_ERROR_RT_INVALID_DEVICEID),
	CODE(ACL_ERROR_RT_CONTEXT_NULL),
	CODE(ACL_ERROR_RT_STREAM_CONTEXT),
	CODE(ACL_ERROR_RT_INVALID_MEMORY_TYPE),
	CODE(ACL_ERROR_RT_INVALID_HANDLE),
	CODE(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
	CODE(ACL_ERROR_RT_MEMORY_ALLOCATION),
	CODE(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL),
	CODE(ACL_ERROR_RT_NO_PERMISSION),
	CODE(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR),
	CODE(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT),
	CODE(ACL_ERROR_RT_DRV_INTERNAL_ERROR),
	CODE(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
	CODE(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED),
};

const char *case_code_text(int code)
{
	static char text[96];

	if (code == CASE_MISSING)
		return "no such function";
	if (code == CASE_ANY)
		return "any answer";
	if (code == CASE_EXIT)
		return "the end of the process";
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (code == CASE_SIGNAL - signals[i].number)
			return signals[i].name;
	if (code <= CASE_SIGNAL) {
		snprintf(text, sizeof(text), "the end of the process (signal or status %d)",
			 CASE_SIGNAL - code);
		return text;
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (code == codes[i].code) {
			snprintf(text, sizeof(text), "%d (%s)", code, codes[i].name);
			return code == 0 ? "ok" : text;
		}
	snprintf(text, sizeof(text), "%d", code);
	return text;
}

/* The number of a code's name ("ok", "107000"). False if it is none. */
static bool code_of(const char *text, int *out)
{
	char *end;

	if (strcmp(text, "ok") == 0 || strcmp(text, "any") == 0) {
		*out = text[0] == 'o' ? 0 : CASE_ANY;
		return true;
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(text, signals[i].name) == 0) {
			*out = CASE_SIGNAL - signals[i].number;
			return true;
		}
	if (strcmp(text, "exit") == 0) {
		*out = CASE_EXIT;
		return true;
	}
	*out = (int)strtol(text, &end, 10);
	return end != text && *end == '\0';
}

/* ---- lines ---- */

struct reader {
	const char *path;
	int line;
	struct case_list *list;
	char *suite;
	char **error;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reader *r, const char *format, ...)
{
	char text[400], *all = malloc(1024);
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (all != NULL)
		snprintf(all, 1024, "%s:%d: %s", r->path, r->line, text);
	*r->error = all;
	return false;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static struct test_case *last(struct reader *r)
{
	return r->list->count == 0 ? NULL : &r->list->cases[r->list->count - 1];
}

/* "case NAME [processes=N] [absolute] [full-size] [with NAME=VALUE]..." */
static bool read_case(struct reader *r, char *rest)
{
	struct test_case *more =
		realloc(r->list->cases, (size_t)(r->list->count + 1) * sizeof(*more));
	struct test_case *test;
	int settings = 0;
	char *word = strtok(rest, " \t");

	if (more == NULL || word == NULL)
		return fail(r, "a case needs a name");
	r->list->cases = more;
	test = &more[r->list->count++];
	*test = (struct test_case){ .file = strdup(r->path),
				    .suite = strdup(r->suite),
				    .name = strdup(word),
				    .line = r->line,
				    .processes = 1 };
	while ((word = strtok(NULL, " \t")) != NULL) {
		if (strncmp(word, "processes=", 10) == 0)
			test->processes = atoi(word + 10);
		else if (strcmp(word, "absolute") == 0)
			test->absolute = true;
		else if (strcmp(word, "full-size") == 0)
			test->full_size = true;
		else if (strchr(word, '=') != NULL && settings < CASE_SETTINGS_MAX)
			test->settings[settings++] = strdup(word);
		else
			return fail(r, "'%s' says nothing about a case", word);
	}
	if (test->processes < 1 || test->processes > CASE_PROCESSES_MAX)
		return fail(r, "processes must be between 1 and %d", CASE_PROCESSES_MAX);
	return true;
}

/* "CODE[: VALUE]" */
static bool read_expect(struct reader *r, char *text, struct case_expect *out)
{
	char *colon = strchr(text, ':');

	if (colon != NULL)
		*colon++ = '\0';
	out->given = true;
	out->value = colon == NULL ? NULL : strdup(trim(colon));
	if (!code_of(trim(text), &out->code))
		return fail(r, "'%s' is no answer; say ok, any, a number, or a signal", trim(text));
	return true;
}

/* "| ANSWER" or "| docs ANSWER | driver ANSWER" */
static bool read_answers(struct reader *r, char *text, struct case_step *step)
{
	step->docs = (struct case_expect){ .given = true };
	for (char *next; text != NULL; text = next) {
		next = strchr(text, '|');
		if (next != NULL)
			*next++ = '\0';
		text = trim(text);
		if (strncmp(text, "driver ", 7) == 0) {
			if (!read_expect(r, text + 7, &step->driver))
				return false;
		} else if (!read_expect(r, strncmp(text, "docs ", 5) == 0 ? text + 5 : text,
					&step->docs)) {
			return false;
		}
	}
	return true;
}

static bool read_step(struct reader *r, char *text)
{
	struct test_case *test = last(r);
	struct case_step *more, step = { .line = r->line, .text = strdup(text) };
	char *answers = strchr(text, '|');

	if (test == NULL || test->suite == NULL)
		return fail(r, "a step before the first case");
	if (answers != NULL)
		*answers++ = '\0';
	if (text[0] >= 'A' && text[0] < 'A' + CASE_PROCESSES_MAX && text[1] == '>') {
		step.process = text[0] - 'A';
		text += 2;
	}
	if (step.process >= test->processes)
		return fail(r, "the case has no process %c", 'A' + step.process);
	for (char *word = strtok(text, " \t"); word != NULL; word = strtok(NULL, " \t")) {
		if (step.argc == CASE_ARGS_MAX)
			return fail(r, "more than %d words", CASE_ARGS_MAX);
		step.argv[step.argc++] = strdup(word);
	}
	if (step.argc == 0 || !case_verb_known(step.argv[0]))
		return fail(r, "'%s' is no step", step.argc == 0 ? "" : step.argv[0]);
	if (!read_answers(r, answers, &step))
		return false;
	more = realloc(test->steps, (size_t)(test->step_count + 1) * sizeof(*more));
	if (more == NULL)
		return fail(r, "no memory");
	test->steps = more;
	more[test->step_count++] = step;
	return true;
}

static bool read_line(struct reader *r, char *text)
{
	text[strcspn(text, "#\r\n")] = '\0';
	text = trim(text);
	if (*text == '\0')
		return true;
	return strncmp(text, "case ", 5) == 0 ? read_case(r, text + 5) : read_step(r, text);
}

/* The suite is the file's name without its ending. */
static char *suite_of(const char *path)
{
	const char *name = strrchr(path, '/');
	char *suite = strdup(name == NULL ? path : name + 1);

	if (suite != NULL) {
		suite[strcspn(suite, ".")] = '\0';
		for (char *c = suite; *c != '\0'; c++)
			*c = isalnum((unsigned char)*c) ? *c : '_';
	}
	return suite;
}

bool case_file_read(const char *path, struct case_list *list, char **error)
{
	struct reader r = { .path = path, .list = list, .error = error, .suite = suite_of(path) };
	FILE *file = fopen(path, "r");
	char text[CASE_TEXT_MAX];
	bool good = file != NULL || fail(&r, "cannot be opened");

	while (good && fgets(text, sizeof(text), file) != NULL) {
		r.line++;
		good = strlen(text) + 1 < sizeof(text) ? read_line(&r, text)
						       : fail(&r, "the line is too long");
	}
	if (file != NULL)
		fclose(file);
	free(r.suite);
	return good;
}
