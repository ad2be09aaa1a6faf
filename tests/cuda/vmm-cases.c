/* SPDX-License-Identifier: Apache-2.0
 *
 * The case files: a test a case, each in a process of its own.
 */
#include "case-run.h"
#include "harness/test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS_MAX 64
#define CASES_MAX 256
#define LINE_MAX_ 256

struct case_text {
	char name[96];
	bool bare;
	unsigned steps;
	char *step[STEPS_MAX];
};
static struct case_text cases[CASES_MAX];
static unsigned case_count;

static void run_case(void *arg)
{
	const struct case_text *c = arg;

	alarm(60);
	if (!case_begin(c->bare)) {
		fprintf(stderr, "the beginning failed\n");
		_exit(1);
	}
	for (unsigned i = 0; i < c->steps; i++)
		if (!case_run_step(c->step[i]))
			_exit(1);
	_exit(0);
}

static void test_case(const void *param)
{
	struct case_text *c = (struct case_text *)(uintptr_t)param;

#if defined(__SANITIZE_THREAD__)
	if (strstr(c->name, "_1T") != NULL || strstr(c->name, "_64T") != NULL)
		SKIP("ThreadSanitizer has these addresses");
#endif
	EXPECT_EXIT(0, run_case, c);
}

static void add_line(const char *file, char *line)
{
	struct case_text *c = case_count > 0 ? &cases[case_count - 1] : NULL;
	char bare[8] = "";

	line[strcspn(line, "#\n")] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	if (*line == '\0')
		return;
	if (strncmp(line, "case ", 5) != 0) {
		if (c == NULL || c->steps == STEPS_MAX)
			abort();
		c->step[c->steps++] = strdup(line);
		return;
	}
	if (case_count == CASES_MAX)
		abort();
	c = &cases[case_count++];
	sscanf(line + 5, "%95s %7s", c->name, bare);
	c->bare = strcmp(bare, "bare") == 0;
	harness_register("cuda_cases", file, c->name, __FILE__, __LINE__, test_case, c);
}

__attribute__((constructor)) static void read_files(void)
{
	static const char *const files[] = {
		"basic", "reserve", "create", "map", "access", "handle"
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[512], line[LINE_MAX_];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s.case", CASES, files[i]);
		file = fopen(path, "re");
		if (file == NULL)
			abort();
		while (fgets(line, sizeof(line), file) != NULL)
			add_line(files[i], line);
		fclose(file);
	}
}
