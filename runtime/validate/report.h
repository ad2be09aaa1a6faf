/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: which rules are on, which reports are suppressed, what is written where, equal ones
 * counted. Any thread.
 */
#ifndef NPUSIM_VALIDATE_REPORT_H
#define NPUSIM_VALIDATE_REPORT_H

#include <glib.h>
#include <stdbool.h>

#include "base/stack.h"
#include "npusim/npusim.h"

enum validate_rule {
#define VALIDATE_RULE(rule, id, finds, why, right) VALIDATE_##rule,
#include "validate/rules.h"
	VALIDATE_RULE_COUNT
};

/* The rules in words: rules.h. */
struct validate_rule_words {
	const char *id, *finds, *why, *right;
};
extern const struct validate_rule_words validate_rules[VALIDATE_RULE_COUNT];

struct report {
	enum validate_rule rule;
	npu_stack now; /* of the call that the report is about */
	const char
		*then; /* what the other stack is: "the copy was queued by"; NULL: there is none */
	npu_stack before; /* the other stack */
	npu_stack made;   /* where the object was made; 0: not said */
};

/* What report_make() takes: REPORT(LEAK, stack of the call, .made = ...). */
#define REPORT(name, stack, ...) \
	(&(struct report){ .rule = VALIDATE_##name, .now = (stack), ##__VA_ARGS__ })

/* Reads the settings; `check`: looks at them only, and opens and keeps nothing. False and *error
 * (free()): a rule that does not exist, a file that cannot be read or written. */
bool report_open(bool check, char **error);
bool report_wanted(enum validate_rule rule);
/* The program is one of CUDA: reports name cu* functions where aclrt* ones would be right. */
void report_in_cuda(void);
/* One report: a sentence, then the stacks, to be written by the thread's next report_flush(). Equal
 * ones (rule and stacks; without stacks the sentence) are counted, and written once. */
void report_make(const struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the calling thread's reports; no lock is held, and the call that they are about is over:
 * how long that takes changes none of its answers. */
void report_flush(void);
/* Whole lines beside the reports: a table. */
void report_add_lines(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Who is called with each report that is written; NULL: nobody. */
void report_listen(npusim_report_fn fn, void *arg);
/* The sums, at the end of the process; the exit status that NPUSIM_VALIDATE_EXIT asks for, or 0. */
int report_end(void);
/* Around a fork(); a child has no reports yet. */
void report_before_fork(void);
void report_after_fork(bool child);

/* ---- form.c: the file of reports ---- */

bool form_open(bool check, char **error);
bool form_is_open(void);
/* `function`: of said->file and line. */
void form_add(const struct report *report, const struct npusim_report *said, const char *function);
/* A file whose name has the process id is the child's own. */
void form_after_fork(void);

/* A suppression leaves it out. */
bool suppress_has(const struct report *report);

#endif
