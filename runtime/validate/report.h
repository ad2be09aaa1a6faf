/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: which rules are on, what is written where, equal ones counted. Any thread.
 */
#ifndef NPUSIM_VALIDATE_REPORT_H
#define NPUSIM_VALIDATE_REPORT_H

#include <stdbool.h>

#include "base/stack.h"

enum validate_rule {
#define VALIDATE_RULE(rule, id, finds, why, right) VALIDATE_##rule,
#include "validate/rules.h"
	VALIDATE_RULE_COUNT
};

struct report {
	enum validate_rule rule;
	npu_stack now; /* of the call that the report is about */
	const char
		*then; /* what the other stack is: "the copy was queued by"; NULL: there is none */
	npu_stack before; /* the other stack */
	npu_stack made;   /* where the object was made; 0: not said */
};

/* Reads the settings. False and *error (free()): a rule that does not exist, a file that cannot be
 * written. */
bool report_open(char **error);
bool report_wanted(enum validate_rule rule);
/* One report: a sentence, then the stacks, to be written by the thread's next report_flush(). Equal
 * ones (rule and stacks; without stacks the sentence) are counted, and written once. */
void report_make(const struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the calling thread's reports; no lock is held, and the call that they are about is over:
 * how long that takes changes none of its answers. */
void report_flush(void);
/* The sums, at the end of the process; the exit status that NPUSIM_VALIDATE_EXIT asks for, or 0. */
int report_end(void);

#endif
