/* SPDX-License-Identifier: Apache-2.0
 *
 * What is logged while a test listens: standard error goes to a file meanwhile.
 */
#ifndef NPUSIM_TESTS_RUNTIME_HEARD_H
#define NPUSIM_TESTS_RUNTIME_HEARD_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *heard_file;
static int heard_before;

static inline void heard_begin(void)
{
	heard_file = tmpfile();
	heard_before = dup(STDERR_FILENO);
	dup2(fileno(heard_file), STDERR_FILENO);
}

static inline void heard_end(void)
{
	dup2(heard_before, STDERR_FILENO);
	close(heard_before);
	fclose(heard_file);
}

/* All so far. */
static inline const char *heard(void)
{
	static char text[8192];
	ssize_t length = pread(fileno(heard_file), text, sizeof(text) - 1, 0);

	text[length < 0 ? 0 : length] = '\0';
	return text;
}

/* Listens until the words come. */
static inline void heard_await(const char *words)
{
	while (strstr(heard(), words) == NULL)
		usleep(1000);
}

static inline unsigned heard_count(const char *words)
{
	unsigned count = 0;

	for (const char *at = heard(); (at = strstr(at, words)) != NULL; at++)
		count++;
	return count;
}

#endif
