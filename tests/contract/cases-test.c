/* SPDX-License-Identifier: Apache-2.0
 *
 * Every case of cases/ as a test of its own, on the library that was built, under the contract that
 * NPUSIM_CONTRACT names.
 */
#include "case.h"
#include "harness/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case may say that a process ends by SIGSEGV: a sanitizer is not to answer that in its own way.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_segv=0";
}
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "handle_segv=0";
}

static struct case_list list;

static void failed(void *arg, const struct test_case *test, const struct case_step *step,
		   const char *text)
{
	(void)arg;
	ADD_FAILURE("%s:%d: %s\n  %s", test->file, step->line, step->text, text);
}

static void run(const void *param)
{
	const struct test_case *test = &list.cases[(size_t)(uintptr_t)param];
	const char *contract = getenv("NPUSIM_CONTRACT");
	struct case_options options = { .library = LIBASCENDCL,
					.messages = true,
					.failed = failed };

	options.driver = contract != NULL && strcmp(contract, "driver") == 0;
	if (test->absolute && getenv("NPUSIM_WINDOW") != NULL)
		SKIP("addresses of the default window, and NPUSIM_WINDOW moves it");
	if (test->full_size && (getenv("NPUSIM_HBM") != NULL || getenv("NPUSIM_DEVICES") != NULL))
		SKIP("needs the default devices, and NPUSIM_HBM or NPUSIM_DEVICES changes them");
	case_run(test, &options);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

__attribute__((constructor)) static void register_cases(void)
{
	DIR *folder = opendir(CASES);
	struct dirent *entry;
	char *paths[64], path[1024], *error;
	size_t count = 0;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		size_t length = strlen(entry->d_name);

		if (length < 6 || strcmp(entry->d_name + length - 5, ".case") != 0 || count == 64)
			continue;
		snprintf(path, sizeof(path), "%s/%s", CASES, entry->d_name);
		paths[count++] = strdup(path);
	}
	if (folder != NULL)
		closedir(folder);
	qsort(paths, count, sizeof(paths[0]), by_name);
	for (size_t i = 0; i < count; i++) {
		if (!case_file_read(paths[i], &list, &error)) {
			fprintf(stderr, "%s\n", error);
			exit(2);
		}
		free(paths[i]);
	}
	for (int i = 0; i < list.count; i++)
		harness_register(list.cases[i].suite, list.cases[i].name, NULL, list.cases[i].file,
				 list.cases[i].line, run, (void *)(uintptr_t)i);
}

TEST(cases, are_there)
{
	EXPECT_GT(list.count, 100);
}
