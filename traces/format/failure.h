/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of files and of options, as the readers and the command word them.
 */
#ifndef NPUSIM_TRACES_FAILURE_H
#define NPUSIM_TRACES_FAILURE_H

#include <errno.h>
#include <glib.h>
#include <string.h>

#define U64 "%" G_GUINT64_FORMAT /* of printf() */

/* Errors of a file's content; those of the file itself are G_FILE_ERROR. */
#define TRACE_ERROR (trace_error_quark())
enum trace_error {
	TRACE_ERROR_FORMAT,  /* damaged, or not of the kind that it says */
	TRACE_ERROR_UNKNOWN, /* no reader knows it */
	TRACE_ERROR_MEMORY   /* reading it takes more than the limit: memory-limit.h */
};
GQuark trace_error_quark(void);

/* Sets the error. Always FALSE. */
#define refuse(error, domain, code, ...)                       \
	({                                                     \
		g_set_error(error, domain, code, __VA_ARGS__); \
		FALSE;                                         \
	})
/* The same of an option's value, and of what errno says of a file. */
#define refuse_option(error, ...) \
	refuse(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, __VA_ARGS__)
#define refuse_file(error, code, ...) \
	refuse(error, G_FILE_ERROR, (gint)g_file_error_from_errno(code), __VA_ARGS__)

#endif
