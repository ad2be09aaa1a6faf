/* SPDX-License-Identifier: Apache-2.0
 *
 * What harness.cpp and child.c share: children of a test. Tests do not include it.
 */
#ifndef NPUSIM_TESTS_HARNESS_PRIVATE_H
#define NPUSIM_TESTS_HARNESS_PRIVATE_H

#include "test.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	HARNESS_ENDING_LENGTH = 128,    /* of a described ending, with its NUL */
	HARNESS_CHILD_FAILED = 70,      /* status of a child in which a check failed */
	HARNESS_CHILD_SECONDS = 60,     /* until a child is killed */
	HARNESS_CHILD_STDERR = 1 << 20, /* bytes that harness_last_stderr() keeps */
};

/* Writes "exits with status 3" or "dies of SIGSEGV (11)". */
void harness_describe_ending(enum harness_ending ending, int number,
			     char text[HARNESS_ENDING_LENGTH]);

/* Runs function(arg) in a child, with its standard error kept; true if it ended as named by
 * `ending` and `number`. Writes what it did to `out_text` in any case. */
bool harness_run_child(void (*function)(void *arg), void *arg, enum harness_ending ending,
		       int number, char out_text[HARNESS_ENDING_LENGTH]);

#ifdef __cplusplus
}
#endif

#endif
