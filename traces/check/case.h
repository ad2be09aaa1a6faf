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
extern const struct case_dialect case_acl;

/* What a library said, or what it is to say. Texts of cases are interned. */
struct case_said {
	gboolean given;    /* docs not given: any answer will do; driver not given: as docs */
	int code, cause;   /* cause: the driver's code behind it, where the library tells; or 0 */
	const char *value; /* to be said; NULL: not looked at; tokens; "*" is any token */
	guint64 ns;        /* of the host */
};
struct case_step {
	int line;
	int process;     /* 0: A */
	gboolean begins; /* of the dialect's beginning: where it fails, the case ends */
	/* The verb first; options "name=value" among the rest; a blank between. */
	const char *words;
	struct case_said docs, driver;
	const char *text; /* the step as written */
};
struct test_case {
	const struct case_dialect *dialect;
	const char *file, *suite, *name;
	int line;
	int processes;
	unsigned devices;    /* so many it needs */
	gboolean numbered;   /* answers have the driver's numbers of devices from 0 on */
	gboolean absolute;   /* uses absolute addresses of the default window */
	gboolean full_size;  /* needs the default devices with all their memory */
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

/* 60; a driver that takes longer for one step hangs, and its process is ended. */
extern gint64 case_step_seconds;
/* New processes, as many as the case has, that run its steps or others, one at a time: with its
 * settings, and with the library open. Where that fails, each step answers so. `test` and
 * `library` stay. */
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
/* The result of a case that was skipped, or, without a reason, is still to run. */
struct case_result *case_result_new(const struct test_case *test, const char *skipped);
/* Fails it, and begins a line of its text with the step. */
GString *case_result_fail(struct case_result *result, const struct case_step *step);
void case_result_free(struct case_result *result);
/* Loads libraries into this process without a call to them, so that the processes of cases have
 * them from their start, which is most of what a short case costs. NULL ends the list; what cannot
 * be loaded is left to the case. */
void case_preload(const char *const *libraries);

/* ---- steps (case-step.c): what a dialect consists of, and what its steps can use in the process
 * that runs them: the words of the current step, its variables, and calls of the library ---- */

#define STEP_OUTS        8 /* memory that calls write to: "out" or "out0", "out1", ... */
#define STEP_RESULT      7 /* the one of ">N" */
#define CASE_STEP_LENGTH 1024

struct step {
	const struct case_dialect *dialect;
	void *library;
	char **words; /* the verb first; ends with NULL */
	struct case_answer *answer;
	uint64_t (*clock_ps)(void); /* the one that counts; NULL: the host's */
	const char *function;       /* called last */
	gboolean broken;            /* the step itself is wrong: a word without a value, say */
	uint64_t out[STEP_OUTS][64];
	int result;    /* the word of the variable that out[STEP_RESULT] becomes, at the end; 0 */
	uint8_t *host; /* memory of this process, `size` bytes, for what a step copies */
	uint64_t size;
};

/* A step calls one function of the library, and shows or keeps what that gave. Arguments are words
 * (step_call()); behind ";" is what else the step takes: $N, ?N, a word that may be missing, and
 * NAME=. NULL: it takes anything. `then` runs if the call answered 0, or alone where there is no
 * function; it may make calls of its own. */
struct case_verb {
	const char *name, *function, *arguments;
	void (*then)(struct step *step);
};
struct case_code {
	int code;
	const char *name;
};
struct case_dialect {
	const struct case_verb *verbs; /* ends with a NULL name */
	const struct case_code *codes; /* likewise */
	const char *const *beginning;  /* steps before the first, ends with NULL; or NULL */
	const char *message;           /* function that says why the last call failed; or NULL */
	const char *cause; /* function that has the driver's code behind that; or NULL */
	const char *clock; /* function that has the picoseconds that count; or NULL: the host's */
	/* The argument that a word of the dialect stands for, such as "prop". FALSE: none. */
	gboolean (*argument)(struct step *step, const char *word, uint64_t *out);
};

/* Runs a step in this process, which has the library open as `library`. */
void case_step_run(const struct case_dialect *dialect, void *library, char **words,
		   struct case_answer *answer);
/* Why the words are no step of the dialect: g_free(). NULL: they are one. */
char *case_step_wrong(const struct case_dialect *dialect, char **words);
/* The variable, made (0) if it is new. */
struct case_variable *case_variable(const char *name);

/* A sum of numbers with K, M, G, T, and variables. FALSE: some have no value, and count as 0. */
gboolean case_number(const char *text, uint64_t *out);

/* Word `index` after the verb, from 1, options not counted; 0 beyond the last. */
uint64_t step_number(struct step *step, int index);
uint64_t step_value(struct step *step, const char *text);
/* Option NAME=VALUE as text or number, or what it is without. */
const char *step_option(struct step *step, const char *name, const char *without);
uint64_t step_option_number(struct step *step, const char *name, uint64_t without);
/* The place of a text in a list of words apart by a space, or the number that it is; of NULL: what
 * it is without. */
int step_choice(struct step *step, const char *text, const char *words, int without);
/* The word at a place of such a list, or what there is instead; static. */
const char *step_word_at(const char *words, unsigned place, const char *otherwise);

/* Calls a function of the library with up to ten arguments, words apart by a space:
 *   $N         the number that word N stands for      N            a number
 *   >N         memory for what becomes the value of the variable that word N names
 *   NAME=WORD  option NAME, or without it what WORD stands for
 *   &NAME      where a variable is                    blobN        the bytes of variable N
 *   out, outN  memory                                 read         memory of word 2's size, or 1
 *   size       of it                                  written      as many of byte 2 as word 3 says
 *   bound      word 1 as the place in "minimum recommended", or a number
 *   and the words of the dialect. Returns the code, which is the step's from then on. */
int step_call(struct step *step, const char *function, const char *arguments);

/* Gives a value to the variable that word `index` names. */
void step_set(struct step *step, int index, uint64_t value);
/* "out" becomes the variable that word 1 names, for all processes: a number and bytes. */
void step_publish(struct step *step);
/* The value that the step shows, in printf's form. */
void step_show(struct step *step, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* "4M", "1G", "-2M", "17": the way values are shown; static. */
const char *step_size_text(int64_t bytes);

/* What calls gave, for `then`: "out" as a number, a size, or access to memory; "out" and "out1" as
 * the place of an address (word 1) in its range, and the range's size; the bytes that were read,
 * first and last, and "mixed" if those between differ from both; of option same-as=, whether the
 * result is that variable's value. */
void step_show_number(struct step *step);
void step_show_size(struct step *step);
void step_show_access(struct step *step);
void step_show_range(struct step *step);
void step_show_bytes(struct step *step);
void step_show_same(struct step *step);
/* Keeps the free memory that "out" has, and shows what was taken since, by whomever. */
void step_mark(struct step *step);
void step_show_used(struct step *step);

#endif
