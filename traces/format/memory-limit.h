/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling on the memory of a process that reads files: whoever keeps what a file says asks here
 * first. It does not count allocations: it compares what the process really holds.
 */
#ifndef NPUSIM_TRACES_MEMORY_LIMIT_H
#define NPUSIM_TRACES_MEMORY_LIMIT_H

#include <glib.h>

#define MEMORY_LIMIT_LEAST (G_GUINT64_CONSTANT(16) << 20)

/* A quarter of what this process may have at most: the machine's memory, or less where a control
 * group (v1 or v2) allows less. `root`: "", or the folder where a test has its own /proc and /sys.
 */
guint64 memory_limit_default(const char *root);
/* From now on; 0, as it is at first: none. Private memory counts: not shared memory, not files. */
void memory_limit_set(guint64 bytes);
/* What may still be had; G_MAXINT64: there is no limit. */
guint64 memory_limit_left(void);
/* To be called before `bytes` more are kept, or about as many have been: cheap, as it looks at the
 * process now and then only. FALSE and error, TRACE_ERROR_MEMORY: "FORMAT: it needs ..."; the
 * text says which part of the file wants them, and where it is. Not thread-safe. */
gboolean memory_limit_ask(guint64 bytes, GError **error, const char *format, ...)
	G_GNUC_PRINTF(3, 4);

#endif
