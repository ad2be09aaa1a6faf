/* SPDX-License-Identifier: Apache-2.0
 *
 * Every conformance case of a folder (CASES) as a test of its own, on a library that was built
 * (LIBRARY), in the dialect of the folder (DIALECT), under the contract that NPUSIM_CONTRACT names.
 * What CASES_PRELOAD names, a list that colons part, is loaded once before all of them; with
 * CASES_DIFFERING only those are there whose answers the contracts do not share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "traces/check/case.h"

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

extern const struct case_dialect DIALECT;
static GPtrArray *cases;
static guint registered;

static void run(const void *param)
{
	const struct test_case *test = param;
	const char *contract = getenv("NPUSIM_CONTRACT");
	gboolean driver = contract != NULL && strcmp(contract, "driver") == 0;
	struct case_result *result;

	if (test->absolute && getenv("NPUSIM_WINDOW") != NULL)
		SKIP("addresses of the default window, and NPUSIM_WINDOW moves it");
	if (test->full_size && (getenv("NPUSIM_HBM") != NULL || getenv("NPUSIM_DEVICES") != NULL))
		SKIP("needs the default devices, and NPUSIM_HBM or NPUSIM_DEVICES changes them");
#if defined(__SANITIZE_THREAD__)
	if (strstr(test->name, "_1T") != NULL || strstr(test->name, "_64T") != NULL)
		SKIP("ThreadSanitizer has these addresses");
#endif
	result = case_run(test, LIBRARY, driver, TRUE);
	if (result->status != CASE_PASSED)
		ADD_FAILURE("%s", result->text->str);
	case_result_free(result);
}

__attribute__((constructor)) static void register_cases(void)
{
	const char *preload = g_getenv("CASES_PRELOAD");
	GError *error = NULL;

	cases = case_folder_read(CASES, &DIALECT, &error);
	if (cases == NULL) {
		fprintf(stderr, "%s\n", error->message);
		exit(2);
	}
	for (guint i = 0; i < cases->len; i++) {
		const struct test_case *test = g_ptr_array_index(cases, i);

		gboolean wanted = g_getenv("CASES_DIFFERING") == NULL;

		for (guint s = 0; s < test->steps->len; s++)
			wanted |= case_step_at(test, s)->driver.given;
		if (wanted) {
			harness_register(test->suite, test->name, NULL, test->file, test->line, run,
					 test);
			registered++;
		}
	}
	if (preload != NULL) {
		g_auto(GStrv) libraries = g_strsplit(preload, ":", -1);

		case_preload((const char *const *)libraries);
	}
}

TEST(cases, are_there)
{
	EXPECT_GT(registered, getenv("CASES_DIFFERING") != NULL ? 10u : 100u);
}
