/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance cases: what a library that calls itself libascendcl.so must answer, as data
 * (cases/FORMAT.md). Owns the form of a parsed case and of an answer. case-file.c reads files,
 * case-value.c evaluates what stands in a step, case-steps*.c carry steps out, case-run.c runs a
 * case in processes of its own. Nothing here knows npusim or a test framework.
 */
#ifndef NPUSIM_TESTS_CONTRACT_CASE_H
#define NPUSIM_TESTS_CONTRACT_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASE_ARGS_MAX      16
#define CASE_PROCESSES_MAX 4
#define CASE_SETTINGS_MAX  4
#define CASE_TEXT_MAX      512

/* Codes beside those of the ACL. */
#define CASE_ANY     (-1000001) /* expected: any code, but an answer */
#define CASE_MISSING (-1000002) /* answered: the library has no such function */
#define CASE_EXIT    (-1001100) /* ended with status 0 */
#define CASE_SIGNAL  (-1000100) /* died: CASE_SIGNAL - number */

struct case_expect {
	bool given;
	int code;
	char *value; /* NULL: not looked at; tokens; "*" is any token */
};
struct case_step {
	int line;
	int process; /* 0: A */
	int argc;
	char *argv[CASE_ARGS_MAX]; /* argv[0]: the verb; options "name=value" among the rest */
	struct case_expect docs, driver; /* driver not given: as docs */
	char *text;                      /* the step as written */
};
struct test_case {
	char *file, *suite, *name;
	int line;
	int processes;
	bool absolute;                     /* uses absolute addresses of the default window */
	bool full_size;                    /* needs the default devices with all their memory */
	char *settings[CASE_SETTINGS_MAX]; /* NAME=VALUE for the environment of its processes */
	int step_count;
	struct case_step *steps;
};
struct case_list {
	int count;
	struct test_case *cases;
};

/* Appends the cases of a file. False and *error (free()): names file, line and what is wrong there.
 */
bool case_file_read(const char *path, struct case_list *list, char **error);
/* "107001 (ACL_ERROR_RT_INVALID_DEVICEID)" and the like; a static buffer. */
const char *case_code_text(int code);

/* ---- values of a process (case-value.c) ---- */

struct case_variable {
	char name[24];
	uint64_t number;
	uint8_t blob[128]; /* fabric handles, keys */
};
/* The variable, made (0) if it is new. NULL: too many. */
struct case_variable *case_variable(const char *name);
/* Sums of terms: numbers with K, M, G, T; names. False (a message on stderr) for a name that has no
 * value yet. */
bool case_number(const char *text, uint64_t *out);
/* "4M", "1G", "-2M", "17": the way values are shown. */
void case_size_text(int64_t bytes, char out[32]);

/* ---- steps (case-steps.c) ---- */

/* What a step answered, as it travels from the process that ran it. */
struct case_answer {
	int code;
	char value[256];
	char complaint[CASE_TEXT_MAX];  /* "", the message of a refusal, or what is wrong with the
					   step */
	bool unexplained;               /* a refusal whose message does not name the call */
	struct case_variable published; /* name "": nothing for the other processes */
};
bool case_verb_known(const char *verb);
/* Runs a step in this process, which has the library open as `library`. */
void case_step_run(void *library, const struct case_step *step, struct case_answer *answer);

/* ---- running (case-run.c) ---- */

struct case_options {
	const char *library; /* path or name of libascendcl.so */
	bool driver;         /* the driver's contract, else the documents' */
	bool messages;       /* a refusal must leave a message that names the call */
	/* A step that did not answer as expected: one line of text. */
	void (*failed)(void *arg, const struct test_case *test, const struct case_step *step,
		       const char *text);
	/* NULL, or what every step answered, and how long that took in the host's time. */
	void (*answered)(void *arg, const struct test_case *test, const struct case_step *step,
			 const struct case_answer *answer, uint64_t ns);
	void *arg;
};
/* Runs a case in new processes. True if all its steps answered as expected. */
bool case_run(const struct test_case *test, const struct case_options *options);

#endif
