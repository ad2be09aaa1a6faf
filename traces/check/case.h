/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance cases: what a library that calls itself libascendcl.so, or libcuda.so.1, must answer,
 * as data (cases/FORMAT.md). Both use one language, with a dialect each: its steps and its codes.
 *
 * Nothing here knows npusim or a test framework.
 */
#ifndef NPUSIM_TRACES_CHECK_CASE_H
#define NPUSIM_TRACES_CHECK_CASE_H

#include <glib.h>
#include <stdint.h>

#define CASE_PROCESSES_MAX 4

/* Codes beside those of the library. */
#define CASE_ANY     (-1000001) /* expected: any code, but an answer */
#define CASE_MISSING (-1000002) /* answered: the library has no such function */
#define CASE_EXIT    (-1001100) /* ended with status 0 */
#define CASE_SIGNAL  (-1000100) /* died: CASE_SIGNAL - number */

struct case_dialect;
extern const struct case_dialect case_acl, case_cuda;

/* What a library said, or what it is to say. */
struct case_said {
	gboolean given;  /* docs not given: any answer will do; driver not given: as docs */
	int code, cause; /* cause: the driver's code behind it, where the library tells; or 0 */
	char *value;     /* to be said; NULL: not looked at; tokens; "*" is any token */
	guint64 ns;      /* of the host */
};
struct case_step {
	int line;
	int process; /* 0: A */
	char **argv; /* argv[0]: the verb; options "name=value" among the rest; ends with NULL */
	struct case_said docs, driver;
	char *text; /* the step as written */
};
struct test_case {
	const struct case_dialect *dialect;
	char *file, *suite, *name;
	int line;
	int processes;
	unsigned devices;    /* so many it needs */
	gboolean numbered;   /* answers have the driver's numbers of devices from 0 on */
	gboolean absolute;   /* uses absolute addresses of the default window */
	gboolean full_size;  /* needs the default devices with all their memory */
	gboolean bare;       /* without the steps that the dialect begins with */
	GPtrArray *settings; /* NAME=VALUE for the environment of its processes */
	GArray *steps;       /* of struct case_step */
};

/* The cases of a folder's *.case files: an array of struct test_case *, which frees
 * them. NULL and error: names file, line and what is wrong there. */
GPtrArray *case_folder_read(const char *path, const struct case_dialect *dialect, GError **error);
/* "107001 (ACL_ERROR_RT_INVALID_DEVICEID)" and the like; a static buffer. */
const char *case_code_text(const struct case_dialect *dialect, int code);

/* The case's step at an index. */
static inline const struct case_step *case_step_at(const struct test_case *test, guint index)
{
	return &g_array_index(test->steps, struct case_step, index);
}

/* ---- running (case-run.c) ---- */

struct case_variable {
	char name[24];
	uint64_t number;
	uint8_t blob[128]; /* fabric handles, keys */
};
/* What a step answered, as it travels from the process that ran it. */
struct case_answer {
	int code, cause;
	char value[4096];
	char complaint[2048]; /* "", the message of a refusal, or what is wrong with the step */
	gboolean unexplained; /* a refusal whose message does not name the call */
	double call_ns;       /* of the function called last, by the library's clock */
	struct case_variable published; /* name "": nothing for the other processes */
};

/* New processes, as many as the case has, that run its steps or others, one at a time: with its
 * settings, and with the library open. Where that, or what the dialect begins with, fails, each
 * step answers so. `test` and `library` stay. */
struct case_processes *case_start(const struct test_case *test, const char *library);
/* Runs a step, words apart by a space, in a process, and tells all what it publishes. FALSE and
 * error: why it did not succeed. */
gboolean case_need(struct case_processes *processes, int process, const char *step,
		   struct case_answer *out, GError **error);
/* Sets a variable in all of them. */
void case_tell(struct case_processes *processes, const char *name, uint64_t number);
void case_end(struct case_processes *processes);

enum case_status { CASE_PASSED, CASE_FAILED, CASE_SKIPPED };
struct case_result {
	const struct test_case *test;
	unsigned device; /* whoever runs cases on several sets it */
	enum case_status status;
	GString *text;   /* why it failed or was skipped; lines */
	GArray *answers; /* of struct case_said, of each step; of a case that did not run, none */
	guint64 ns;      /* of all */
};
/* Runs a case in new processes. driver: the driver's contract counts, else the documents';
 * messages: a refusal must leave a message that names the call. */
struct case_result *case_run(const struct test_case *test, const char *library, gboolean driver,
			     gboolean messages);
/* The result of a case that did not run. */
struct case_result *case_result_new(const struct test_case *test);
/* Fails it, and begins a line of its text with the step. */
GString *case_result_fail(struct case_result *result, const struct case_step *step);
void case_result_free(struct case_result *result);
/* Loads libraries into this process without a call to them, so that the processes of cases have
 * them from their start, which is most of what a short case costs. NULL ends the list; what cannot
 * be loaded is left to the case. */
void case_preload(const char *const *libraries);

#endif
