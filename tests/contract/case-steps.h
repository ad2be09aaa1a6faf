/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that carry steps out share: the step at hand, its words and options, calling the
 * library.
 */
#ifndef NPUSIM_TESTS_CONTRACT_CASE_STEPS_H
#define NPUSIM_TESTS_CONTRACT_CASE_STEPS_H

#include "case.h"

#include "acl/acl.h"

struct step {
	void *library;
	const struct case_step *text;
	struct case_answer *answer;
	const char *function; /* called last */
	bool broken;          /* the step itself is wrong: a word without a value, say */
};
struct verb {
	const char *name;
	void (*run)(struct step *step);
};
extern const struct verb memory_verbs[];   /* case-steps-memory.c; ends with a NULL name */
extern const struct verb transfer_verbs[]; /* case-steps-transfer.c */

/* The library's function, or NULL (the answer says so). */
void *step_function(struct step *step, const char *name);
/* Calls function `name` of the library with its own prototype; the result is the step's code. */
#define CALL(step, name, ...)                                                             \
	((step)->answer->code = __extension__({                                           \
		 __typeof__(name) *f_ = (__typeof__(name) *)step_function((step), #name); \
		 f_ == NULL ? CASE_MISSING : f_(__VA_ARGS__);                             \
	 }))

/* Word `index` after the verb, options not counted; "0" beyond the last. As number, pointer. */
const char *step_word(struct step *step, int index);
uint64_t step_number(struct step *step, int index);
void *step_pointer(struct step *step, int index);
/* Option NAME=VALUE as text or number, or what it is without. */
const char *step_option(struct step *step, const char *name, const char *without);
uint64_t step_option_number(struct step *step, const char *name, uint64_t without);
/* Gives a value to the variable that word `index` names. */
void step_set(struct step *step, int index, uint64_t value);
/* The same, for all processes, with bytes beside the number. */
void step_publish(struct step *step, int index, uint64_t value, const void *bytes, size_t size);
/* The value that the step shows, in printf's form. */
void step_show(struct step *step, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "same" or "other" than the variable of option same-as=. Nothing without the option. */
void step_show_same(struct step *step, uint64_t value);

/* on=, to=, for=: "device:1", "host", "numa:0", "type-7:2"; device:0 without. */
aclrtMemLocation step_location(struct step *step, const char *option);
/* as=, on=, handle-type=, allocation=, reserve=. */
aclrtPhysicalMemProp step_prop(struct step *step);
aclrtMemAccessDesc step_access(struct step *step);
int step_attr_of(const char *name);
const char *step_attr_name(int attr);
const char *step_location_name(int type);

#endif
