/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the memory of the process with the ceiling, and finds how much the machine and the
 * control groups allow.
 */
#include "input.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

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
		      "%s: it needs more memory than the %.1f MiB that --memory allows (%.1f MiB "
		      "are in use)",
		      part, (double)limit / (1 << 20), (double)in_use / (1 << 20));
}

/* The least number in a control group's file and those of the groups around it; "max" is none. */
static guint64 least_of_groups(const char *folder, const char *group, const char *name,
			       guint64 least)
{
	g_autofree char *at = g_strdup(group);

	for (;;) {
		g_autofree char *path = g_build_filename(folder, at, name, NULL);
		g_autofree char *text = NULL;
		guint64 bytes;
		if (g_file_get_contents(path, &text, NULL, NULL) &&
		    g_ascii_string_to_unsigned(g_strstrip(text), 10, 0, G_MAXUINT64, &bytes, NULL))
			least = MIN(least, bytes);
		char *slash = strrchr(at, '/');
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

guint64 memory_limit_default(const char *root)
{
	g_autofree char *groups = g_strconcat(root, "/proc/self/cgroup", NULL), *text = NULL;
	g_autofree char *v2 = g_strconcat(root, "/sys/fs/cgroup", NULL);
	g_autofree char *v1 = g_strconcat(v2, "/memory", NULL);
	guint64 all = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE);
	g_auto(GStrv) lines =
		g_file_get_contents(groups, &text, NULL, NULL) ? g_strsplit(text, "\n", -1) : NULL;

	for (char **line = lines; line && *line; line++) {
		g_auto(GStrv) parts = g_strsplit(*line, ":", 3); /* number, controllers, group */
		if (g_strv_length(parts) < 3)
			continue;
		g_auto(GStrv) controllers = g_strsplit(parts[1], ",", -1);
		if (parts[1][0] == '\0')
			all = least_of_groups(v2, parts[2], "memory.max", all);
		else if (g_strv_contains((const char *const *)controllers, "memory"))
			all = least_of_groups(v1, parts[2], "memory.limit_in_bytes", all);
	}
	return MAX(all / 4, MEMORY_LIMIT_LEAST);
}
