/* SPDX-License-Identifier: Apache-2.0
 *
 * Input files of the command: what can be read only once, standard input ("-") or a pipe, is kept,
 * so that a verb may open it as often as it needs.
 */
#ifndef NPUSIM_TRACES_IN_FILE_H
#define NPUSIM_TRACES_IN_FILE_H

#include <glib.h>

/* To be called for each path that was given, before it is opened by that name (input.h); one that
 * is given twice is the same twice. What can be read twice, or is not there, is left alone. FALSE
 * and error. */
gboolean in_file_keep(const char *path, GError **error);

#endif
