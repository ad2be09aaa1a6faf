/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a driver's library may lie, and which version of the driver it belongs to. Opens no
 * library.
 */
#include "hw.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY  "libascend_hal.so"
#define IN_ROOT  "driver/lib64/driver/" LIBRARY
#define TEXT_MAX 512

/* The value of "key=..." in a file of such lines, without white space around it. */
static bool read_key(const char *path, const char *key, char *out, size_t room)
{
	char line[TEXT_MAX];
	size_t length = strlen(key);
	bool found = false;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL) {
		char *value = line + length, *end = line + strlen(line);

		if (strncasecmp(line, key, length) != 0 || *value != '=')
			continue;
		value++;
		while (isspace((unsigned char)*value))
			value++;
		while (end > value && isspace((unsigned char)end[-1]))
			*--end = '\0';
		found = *value != '\0' && (size_t)(end - value) < room;
		if (found)
			memcpy(out, value, (size_t)(end - value) + 1);
	}
	fclose(file);
	return found;
}

__attribute__((format(printf, 2, 3))) static void add(struct hw_places *places, const char *format,
						      ...)
{
	char path[PATH_MAX];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (length >= (int)sizeof(path))
		return;
	for (unsigned i = 0; i < places->count; i++)
		if (strcmp(places->path[i], path) == 0)
			return;
	memcpy(places->path[places->count++], path, (size_t)length + 1);
}

void hw_find(const char *named, const char *install_info, const char *default_root,
	     struct hw_places *out)
{
	char root[PATH_MAX - sizeof(IN_ROOT) - 1];

	out->count = 0;
	out->named = named[0] != '\0';
	if (out->named) {
		add(out, "%s", named);
		return;
	}
	add(out, "%s", LIBRARY);
	if (read_key(install_info, "Driver_Install_Path_Param", root, sizeof(root)))
		add(out, "%s/%s", root, IN_ROOT);
	add(out, "%s/%s", default_root, IN_ROOT);
}

bool hw_package_version(const char *library, char *out, size_t room)
{
	char path[PATH_MAX + sizeof("/version.info")], version[64] = "", inner[64] = "";
	char *slash;

	snprintf(path, sizeof(path), "%s", library);
	for (int levels = 0; levels < 3; levels++) {
		slash = strrchr(path, '/');
		if (slash == NULL)
			return false;
		*slash = '\0';
	}
	strcat(path, "/version.info");
	read_key(path, "Version", version, sizeof(version));
	read_key(path, "Innerversion", inner, sizeof(inner));
	if (version[0] == '\0' && inner[0] == '\0')
		return false;
	if (version[0] == '\0' || inner[0] == '\0')
		snprintf(out, room, "%s%s", version, inner);
	else
		snprintf(out, room, "%s (%s)", version, inner);
	return true;
}
