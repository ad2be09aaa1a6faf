/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program did, as JUnit's XML: as one test, or as the tests that it tells of.
 */
#ifndef NPUSIM_TRACES_JUNIT_H
#define NPUSIM_TRACES_JUNIT_H

#include <glib.h>

struct junit_program {
	char *const *words; /* the program and its arguments */
	double seconds;
	int status;          /* waitpid()'s */
	const char *notes;   /* what NPUSIM_TEST_FILE has: lines of JSON; NULL: nothing */
	const char *text;    /* what npusim has said of it; NULL: nothing */
	const char *reports; /* of that, what may have ended it, as far as nobody has shown it */
};
/* `path`: %p in it is this process. A program that tells of no test is one itself, and so is one
 * that fails in none of them; a test that has begun and not ended has the program's failure. FALSE
 * and error, which names the file. */
gboolean junit_write(const char *path, const struct junit_program *program, GError **error);

#endif
