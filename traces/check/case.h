/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance cases: what a library that calls itself libascendcl.so, or libcuda.so.1, must answer,
 * as data (cases/FORMAT.md). Both use one language, with a dialect each: its steps and its codes.
 *
 *   case-file.c               reads the files
 *   case-run.c                runs a case in processes of its own, and compares its answers
 *   case-step.c               words, numbers, variables, calls: the parts of every step
 *   acl-steps.c, cuda-steps.c the steps of a dialect
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

struct case_expect {
	gboolean given; /* docs not given: any answer will do */
	int code;
	char *value; /* NULL: not looked at; tokens; "*" is any token */
};
struct case_step {
	int line;
	int process; /* 0: A */
	int argc;
	char **argv; /* argv[0]: the verb; options "name=value" among the rest */
	struct case_expect docs, driver; /* driver not given: as docs */
	char *text;                      /* the step as written */
};
struct test_case {
	const struct case_dialect *dialect;
	char *file, *suite, *name;
	int line;
	int processes;
	unsigned devices;    /* so many it needs at least, besides those that its steps name */
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
	int code;
	char value[256];
	char complaint[512];  /* "", the message of a refusal, or what is wrong with the step */
	gboolean unexplained; /* a refusal whose message does not name the call */
	struct case_variable published; /* name "": nothing for the other processes */
};
struct case_options {
	const char *library; /* path or name */
	gboolean driver;     /* the driver's contract, else the documents' */
	gboolean messages;   /* a refusal must leave a message that names the call */
	/* A step that did not answer as expected: one line of text. */
	void (*failed)(void *arg, const struct test_case *test, const struct case_step *step,
		       const char *text);
	/* NULL, or what every step answered, and how long that took in the host's time. */
	void (*answered)(void *arg, const struct test_case *test, const struct case_step *step,
			 const struct case_answer *answer, uint64_t ns);
	void *arg;
};
/* Runs a case in new processes. TRUE if all its steps answered as expected. */
gboolean case_run(const struct test_case *test, const struct case_options *options);
/* Loads libraries into this process without a call to them, so that the processes of cases have
 * them from their start, which is most of what a short case costs. NULL ends the list; what cannot
 * be loaded is left to the case. */
void case_preload(const char *const *libraries);

#endif
