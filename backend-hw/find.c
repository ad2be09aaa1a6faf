/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a driver's library may lie, and which version of the driver it belongs to. Opens no
 * library.
 */
#include "hw.h"

#include <stdio.h>
#include <string.h>

#define LIBRARY  "libascend_hal.so"
#define IN_ROOT  "/driver/lib64/driver/" LIBRARY
#define TEXT_MAX 512
#define SPACE    " \t\r\n"

/* The value of "key=..." in a file of such lines, without white space around it. */
static bool read_key(const char *path, const char *key, char *out, size_t room)
{
	char line[TEXT_MAX];
	const size_t length = strlen(key);
	bool found = false;
	FILE *file = fopen(path, "re");

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
		const char *value = line + length + 1;
		size_t size;

		if (strncasecmp(line, key, length) != 0 || line[length] != '=')
			continue;
		value += strspn(value, SPACE);
		for (size = strlen(value); size > 0 && strchr(SPACE, value[size - 1]) != NULL;)
			size--;
		found = size > 0 && size < room;
		if (found)
			snprintf(out, room, "%.*s", (int)size, value);
	}
	if (file != NULL)
		fclose(file);
	return found;
}

static void add(struct hw_places *places, const char *root, const char *file)
{
	char *path = places->path[places->count];
	int length = snprintf(path, PATH_MAX, "%s%s", root, file);
	bool fresh = length < PATH_MAX;

	for (unsigned i = 0; i < places->count; i++)
		fresh = fresh && strcmp(places->path[i], path) != 0;
	places->count += fresh;
}

void hw_find(const char *named, const char *install_info, const char *default_root,
	     struct hw_places *out)
{
	char root[PATH_MAX - sizeof(IN_ROOT) - 1];

	out->count = 0;
	out->named = named[0] != '\0';
	if (out->named) {
		add(out, "", named);
		return;
	}
	add(out, "", LIBRARY);
	if (read_key(install_info, "Driver_Install_Path_Param", root, sizeof(root)))
		add(out, root, IN_ROOT);
	add(out, default_root, IN_ROOT);
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
	snprintf(out, room, version[0] != '\0' && inner[0] != '\0' ? "%s (%s)" : "%s%s", version,
		 inner);
	return out[0] != '\0';
}
