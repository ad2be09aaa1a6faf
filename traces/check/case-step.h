/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between the case runner and a dialect: what a dialect consists of, and what its
 * steps can use in the process that runs them, namely the words of the current step, its
 * variables, and calls of the library.
 */
#ifndef NPUSIM_TRACES_CHECK_CASE_STEP_H
#define NPUSIM_TRACES_CHECK_CASE_STEP_H

#include "case.h"

#define STEP_OUTS        8 /* memory that calls write to: "out" or "out0", "out1", ... */
#define STEP_RESULT      7 /* the one of ">N" */
#define CASE_STEP_LENGTH 1024

struct step {
	const struct case_dialect *dialect;
	void *library;
	char **words; /* the verb first; ends with NULL */
	struct case_answer *answer;
	const char *function; /* called last */
	gboolean broken;      /* the step itself is wrong: a word without a value, say */
	uint64_t out[STEP_OUTS][64];
	int result;    /* the word of the variable that out[STEP_RESULT] becomes, at the end; 0 */
	uint8_t *host; /* memory of this process, `size` bytes, for what a step copies */
	uint64_t size;
};

/* A step calls one function of the library, and shows or keeps what that gave. Arguments are words
 * (step_call()). `then` runs if the call answered 0, or alone where there is no function; it may
 * make calls of its own. */
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
	const char *const *beginning;  /* verbs before the first step, ends with NULL; or NULL */
	const char *message;           /* function that says why the last call failed; or NULL */
	const char *cause; /* function that has the driver's code behind that; or NULL */
	const char *clock; /* function that has the picoseconds that count; or NULL: the host's */
	/* The argument that a word of the dialect stands for, such as "prop". FALSE: no such word.
	 */
	gboolean (*argument)(struct step *step, const char *word, uint64_t *out);
};

/* Runs a step in this process, which has the library open as `library`. */
void case_step_run(const struct case_dialect *dialect, void *library, char **words,
		   struct case_answer *answer);
/* NULL: there is none of this name. */
const struct case_verb *case_verb(const struct case_dialect *dialect, const char *name);
/* The variable, made (0) if it is new. */
struct case_variable *case_variable(const char *name);

/* A sum of terms, which are numbers with K, M, G, T, or variables. FALSE: some have no value, and
 * count as 0. */
gboolean case_number(const char *text, uint64_t *out);

/* Word `index` after the verb, from 1, options not counted; "0" beyond the last. And as a number.
 */
const char *step_word(struct step *step, int index);
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
/* The same, for all processes, with bytes whose first are the number. */
void step_publish(struct step *step, int index, const uint64_t *value);
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
