/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that use a device on behalf of the command: a driver that crashes or hangs takes down
 * one of them, never the command.
 */
#ifndef NPUSIM_TRACES_CHECK_CHILD_H
#define NPUSIM_TRACES_CHECK_CHILD_H

#include <glib.h>
#include <stdio.h>
#include <sys/types.h>

#define CHILD_ANSWER_SECONDS 60 /* a driver that takes longer for one call hangs */

/* Starts a process that dies with this one, with a pipe to it and one from it. Returns 0 in it, its
 * id here, below 0 where there can be none. */
pid_t child_start(int *to, int *from, int *child_from, int *child_to);
/* FALSE at the end of the other side. */
gboolean child_read(int fd, void *data, gsize bytes);
gboolean child_write(int fd, const void *data, gsize bytes);

/* Runs work(arg, file) in a process of its own and gives what it wrote to the file. FALSE and error
 * if it died, or returned FALSE: then what it wrote is the message. */
gboolean child_text(gboolean (*work)(void *arg, FILE *out), void *arg, char **out_text,
		    GError **error);

#endif
