/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds modules and loads backends, for all libraries of npusim that open one.
 */
#include "driver/layer.h"

#include "base/base.h"
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool own_folder(char *out)
{
	Dl_info info;
	char *slash;

	if (dladdr((void *)own_folder, &info) == 0 || info.dli_fname == NULL)
		return false;
	/* A program that was found through PATH names itself without a folder. */
	if (realpath(info.dli_fname, out) == NULL) {
		ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - 1);

		if (length < 0)
			return false;
		out[length] = '\0';
	}
	slash = strrchr(out, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

bool driver_module_find(const char *build_folder, const char *file, char *out)
{
	const size_t root = strlen(NPUSIM_BUILD_ROOT);
	char folder[PATH_MAX];
	static const char *const places[] = { ".", "..", "../lib/npusim" };

	if (!own_folder(folder))
		return false;
	if (strncmp(folder, NPUSIM_BUILD_ROOT, root) == 0 &&
	    (folder[root] == '/' || folder[root] == '\0')) {
		snprintf(out, MODULE_PATH_MAX, "%s/%s/%s", NPUSIM_BUILD_ROOT, build_folder, file);
		if (access(out, F_OK) == 0)
			return true;
	}
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int length = snprintf(out, MODULE_PATH_MAX, "%s/%s/%s", folder, places[i], file);

		if (length < MODULE_PATH_MAX && access(out, F_OK) == 0)
			return true;
	}
	snprintf(out, MODULE_PATH_MAX, "%s/../%s", folder, file);
	return false;
}

/* A namespace of the dynamic linker has a C library of its own, whose keys of thread-specific data
 * are numbered from 0 again, in the same threads: each overwrites what the other keeps. */
static bool is_in_base_namespace(char **error)
{
	Lmid_t where = LM_ID_BASE;
	Dl_info own;
	void *library;

	if (dladdr((void *)is_in_base_namespace, &own) == 0)
		return true;
	library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (library == NULL)
		return true;
	dlinfo(library, RTLD_DI_LMID, &where);
	dlclose(library);
	if (where != LM_ID_BASE)
		npu_text_add(error,
			     "%s was loaded by dlmopen() into namespace %ld, whose C library "
			     "shares the keys of pthread_setspecific() with the program's: npusim "
			     "cannot work there; load it by dlopen()",
			     own.dli_fname, (long)where);
	return where == LM_ID_BASE;
}

const struct npu_backend *driver_module_load(const char *name, char *path, char **error)
{
	const struct npu_backend *backend;
	char folder[32], file[32];
	void *module;

	path[0] = '\0';
	*error = NULL;
	snprintf(folder, sizeof(folder), "backend-%s", name);
	snprintf(file, sizeof(file), "backend-%s.so", name);
	if (!is_in_base_namespace(error) || !driver_module_find(folder, file, path))
		return NULL;
	module = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE); /* itself is bound at once */
	if (module == NULL) {
		npu_text_add(error, "%s", dlerror());
		return NULL;
	}
	backend = dlsym(module, NPU_BACKEND_SYMBOL);
	if (backend != NULL && backend->abi == NPU_DRIVER_ABI)
		return backend;
	npu_text_add(error, "%s has no %s of ABI %u: it belongs to another version of npusim", path,
		     NPU_BACKEND_SYMBOL, NPU_DRIVER_ABI);
	return NULL;
}
