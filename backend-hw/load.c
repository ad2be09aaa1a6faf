/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a libascend_hal.so, opens it, and resolves what backend-hw takes from it. Decides whether
 * it can be used, and words why not. Calls nothing in it but the question for its interface's
 * version.
 */
#include "hw.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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

/* The interface that the layouts of npusim/hal.h belong to. The driver's authors raise the first
 * number when a prototype changes. */
#define API_MAJOR 7

/* The loader blames a library that the driver's needs, not the driver's own. */
static bool is_of_a_dependency(const char *path, const char *complaint)
{
	return strstr(complaint, basename(path)) == NULL && strstr(complaint, ".so") != NULL;
}

static void *open_first(const struct hw_places *places, char **error)
{
	for (unsigned i = 0; i < places->count; i++) {
		const char *path = places->path[i], *complaint;
		void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		if (handle != NULL) {
			free(*error);
			*error = NULL;
			return handle;
		}
		complaint = dlerror();
		npu_text_add(error, "%s%s", i == 0 ? "no driver: " : "; ", complaint);
		if (is_of_a_dependency(path, complaint))
			npu_text_add(error,
				     " (which %s needs: add the driver's lib64/common and "
				     "lib64/driver to LD_LIBRARY_PATH)",
				     path);
	}
	if (!places->named)
		npu_text_add(error, "; a server with Ascend devices has one, here NPUSIM_HAL can "
				    "name it, and NPUSIM_BACKEND=sim needs none");
	return NULL;
}

static void where_is_it(struct hw_library *library)
{
	struct link_map *map = NULL;

	if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL ||
	    realpath(map->l_name, library->path) == NULL)
		snprintf(library->path, sizeof(library->path), "%s",
			 map != NULL ? map->l_name : "libascend_hal.so");
	if (!hw_package_version(library->path, library->version, sizeof(library->version)))
		strcpy(library->version, "unknown");
}

static void resolve(void *handle, struct hw_symbols *out)
{
#define NPU_OP(result, missing, op, ...) *(void **)&out->op = dlsym(handle, #op);
#include "npusim/driver-ops.h"
#define HW_RESOLVE(result, op, params) *(void **)&out->op = dlsym(handle, #op);
	HW_OLD_SYMBOLS(HW_RESOLVE)
#undef HW_RESOLVE
}

/* Without one of these nothing useful runs. CANN's runtime links the most of them strongly, and
 * crashes without the other queue functions; the virtual memory functions are what npusim is for.
 * All the rest is weak there: a call answers "not supported". */
static const char *const essential[] = {
	"drvGetDevNum",       "halGetDeviceInfo",  "halMemAddressReserve",
	"halMemAddressFree",  "halMemCreate",      "halMemRelease",
	"halMemMap",          "halMemUnmap",       "halMemGetAllocationGranularity",
	"halMemAlloc",        "halMemFree",        "halMemGetInfo",
	"drvMemGetAttribute", "drvMemcpy",         "drvMemsetD8",
	"halResourceIdAlloc", "halResourceIdFree", "halResourceConfig",
	"halSqCqAllocate",    "halSqCqFree",       "halSqCqQuery",
	"halSqTaskSend",      "halCqReportRecv"
};

static bool check_essential(const struct hw_library *library, char **error)
{
	const struct hw_symbols *symbols = &library->symbols;
	unsigned count = 0;
	char *names = NULL;

	for (size_t i = 0; i < sizeof(essential) / sizeof(essential[0]); i++)
		if (dlsym(library->handle, essential[i]) == NULL) {
			npu_text_add(&names, " %s", essential[i]);
			count++;
		}
	if (symbols->halDeviceOpen == NULL &&
	    (symbols->drvMemDeviceOpen == NULL || symbols->drvDeviceOpen == NULL)) {
		npu_text_add(&names, " halDeviceOpen (or drvMemDeviceOpen and drvDeviceOpen)");
		count++;
	}
	if (count > 0)
		npu_text_add(
			error,
			"%s (driver version %s) lacks %u function%s without which nothing runs:%s",
			library->path, library->version, count, count == 1 ? "" : "s",
			names == NULL ? "" : names);
	free(names);
	return count == 0;
}

static bool check_version(struct hw_library *library, char **error)
{
	char *what = NULL;
	int major;

	if (library->ours != NULL)
		return true; /* its ABI says all; asking would open the model */
	if (library->symbols.halGetAPIVersion == NULL ||
	    library->symbols.halGetAPIVersion(&library->api) != DRV_ERROR_NONE)
		return true; /* from before there was the question */
	major = HW_API_MAJOR_OF(library->api);
	npu_text_add(&what, "%s (driver version %s) speaks interface %d.%d.%d", library->path,
		     library->version, major, HW_API_MINOR_OF(library->api),
		     HW_API_PATCH_OF(library->api));
	if (major > API_MAJOR)
		npu_text_add(error,
			     "%s, and this npusim knows up to %d.x: a newer npusim may have its "
			     "layouts",
			     what, API_MAJOR);
	else if (major < API_MAJOR)
		npu_log(NPU_LOG_WARN, "%s, older than %d.x which npusim was written against", what,
			API_MAJOR);
	free(what);
	return major <= API_MAJOR;
}

static bool check_ours(const struct hw_library *library, bool named, char **error)
{
	if (library->ours == NULL)
		return true;
	if (!named) {
		npu_text_add(error,
			     "%s is npusim's own model of a driver, and no driver; it is used if "
			     "NPUSIM_HAL names it",
			     library->path);
		return false;
	}
	if (library->ours->abi == NPUSIM_HAL_ABI)
		return true;
	npu_text_add(error,
		     "%s belongs to another version of npusim: its ABI is %u, and %u is wanted",
		     library->path, library->ours->abi, NPUSIM_HAL_ABI);
	return false;
}

bool hw_load(const struct hw_places *places, struct hw_library *out, char **error)
{
	struct hw_library library = { 0 };

	*error = NULL;
	library.handle = open_first(places, error);
	if (library.handle == NULL)
		return false;
	where_is_it(&library);
	library.ours = dlsym(library.handle, NPUSIM_HAL_SYMBOL);
	resolve(library.handle, &library.symbols);
	if (!check_ours(&library, places->named, error) || !check_essential(&library, error) ||
	    !check_version(&library, error)) {
		dlclose(library.handle);
		return false;
	}
	*out = library;
	return true;
}
