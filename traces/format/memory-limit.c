/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the memory of the process with the ceiling.
 */
#include "input.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"

#define LOOK_EVERY (2u << 20)

static guint64 limit;
static guint64 in_use, asked; /* when last looked, and since */

static guint64 private_bytes(void)
{
	guint64 resident = 0, shared = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u " U64 " " U64, &resident, &shared) != 2)
		resident = shared = 0;
	if (file)
		fclose(file);
	return (resident - MIN(shared, resident)) * (guint64)sysconf(_SC_PAGESIZE);
}

void memory_limit_set(guint64 bytes)
{
	limit = bytes;
	in_use = asked = 0;
}

guint64 memory_limit_left(void)
{
	guint64 now = private_bytes();

	return limit == 0 ? G_MAXINT64 : limit - MIN(now, limit);
}

gboolean memory_limit_ask(guint64 bytes, GError **error, const char *format, ...)
{
	va_list args;

	asked += MIN(bytes, G_MAXINT64 - asked);
	if (limit == 0 || (asked < LOOK_EVERY && in_use + asked <= limit))
		return TRUE;
	asked = MIN(bytes, G_MAXINT64);
	in_use = private_bytes();
	/* what was freed may be here still */
	if (in_use + asked > limit && malloc_trim(0))
		in_use = private_bytes();
	if (in_use + asked <= limit)
		return TRUE;
	va_start(args, format);
	g_autofree char *part = g_strdup_vprintf(format, args);
	va_end(args);
	return refuse(error, TRACE_ERROR, TRACE_ERROR_MEMORY,
		      "%s: it needs more memory than the %s that --memory allows (%s are in use)",
		      part, npu_size_words(limit), npu_size_words(in_use));
}

guint64 memory_limit_default(guint64 most)
{
	return MAX(most / 4, MEMORY_LIMIT_LEAST);
}
