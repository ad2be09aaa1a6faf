/* SPDX-License-Identifier: Apache-2.0
 *
 * Which driver serves this process: finds backend modules beside this library's own file, opens the
 * one that is asked for, and stacks the wrappers that the environment names. Owns the selection
 * rules; knows no backend but by name.
 */
#include "core/core.h"

#include "config.h"
#include "driver-wrap.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Adds to *error, which may be NULL: one line each. */
static void say(char **error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(char **error, const char *format, ...)
{
	char *text, *both;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (*error == NULL || text == NULL) {
		*error = *error == NULL ? text : *error;
		return;
	}
	if (asprintf(&both, "%s\n%s", *error, text) >= 0) {
		free(*error);
		*error = both;
	}
	free(text);
}

#define MODULE_PATH_MAX (PATH_MAX + 64)

/* ---- where modules lie ---- */

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

static bool is_under(const char *folder, const char *root)
{
	size_t length = strlen(root);

	return strncmp(folder, root, length) == 0 &&
	       (folder[length] == '/' || folder[length] == '\0');
}

/* The first that is there: of an installed libascendcl.so, of the build tree, of an installed
 * program. */
static bool find_module(const char *name, char *out)
{
	char folder[PATH_MAX];
	static const char *const places[] = { "..", "../lib/npusim" };

	if (!own_folder(folder))
		return false;
	if (is_under(folder, NPUSIM_BUILD_ROOT)) {
		snprintf(out, MODULE_PATH_MAX, "%s/backend-%s/backend-%s.so", NPUSIM_BUILD_ROOT,
			 name, name);
		if (access(out, F_OK) == 0)
			return true;
	}
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int length = snprintf(out, MODULE_PATH_MAX, "%s/%s/backend-%s.so", folder,
				      places[i], name);

		if (length < MODULE_PATH_MAX && access(out, F_OK) == 0)
			return true;
	}
	snprintf(out, MODULE_PATH_MAX, "%s/../backend-%s.so", folder, name);
	return false;
}

/* A module is never unloaded: its threads, its thread-local memory and its simulation live as long
 * as the process. */
static const struct npu_backend *load_module(const char *name, char **error)
{
	char path[MODULE_PATH_MAX] = "";
	const struct npu_backend *backend;
	void *module;

	if (!find_module(name, path)) {
		say(error, "backend '%s' cannot be used: there is no file %s%s", name, path,
		    NPUSIM_HAVE_SIM || strcmp(name, "sim") != 0
			    ? ""
			    : "; this npusim was built without the model (-Dsim=disabled, or no "
			      "SystemC when it was configured)");
		return NULL;
	}
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (module == NULL) {
		say(error, "backend '%s' cannot be used: %s", name, dlerror());
		return NULL;
	}
	backend = dlsym(module, NPU_BACKEND_SYMBOL);
	if (backend == NULL || backend->abi != NPU_DRIVER_ABI) {
		say(error,
		    "backend '%s' cannot be used: %s has no %s of ABI %u; it belongs to another "
		    "version of npusim",
		    name, path, NPU_BACKEND_SYMBOL, NPU_DRIVER_ABI);
		return NULL;
	}
	return backend;
}

/* ---- selection ---- */

/* The one that was opened last: the process has one backend. */
static const struct npu_backend *_Atomic backend_in_use;

static struct npu_driver *open_backend(const char *name, char **error)
{
	const struct npu_backend *backend = load_module(name, error);
	struct npu_driver *drv, *whole;
	char *reason = NULL;

	if (backend == NULL)
		return NULL;
	drv = backend->open(&reason);
	if (drv == NULL) {
		say(error, "backend '%s' cannot be used: %s", name,
		    reason != NULL ? reason : "it does not say why");
		free(reason);
		return NULL;
	}
	if (drv->abi != NPU_DRIVER_ABI) {
		say(error, "backend '%s' cannot be used: its driver has ABI %u, this library %u",
		    name, drv->abi, NPU_DRIVER_ABI);
		return NULL;
	}
	backend_in_use = backend;
	npu_driver_complete(drv);
	if (drv->size >= sizeof(*drv))
		return drv;
	whole = driver_adapt(drv);
	if (whole == NULL)
		say(error, "backend '%s' cannot be used: no memory", name);
	return whole;
}

/* The server's own driver where it has a device, else the model. */
static struct npu_driver *open_auto(char **error)
{
	char *reason = NULL;
	struct npu_driver *drv = open_backend("hw", &reason);
	uint32_t devices = 0;

	if (drv != NULL && npu_call(drv, drvGetDevNum, &devices) == DRV_ERROR_NONE && devices > 0) {
		npu_log(NPU_LOG_INFO, "backend hw: the server's driver, %u devices", devices);
		return drv;
	}
	if (drv != NULL) {
		npu_driver_close(drv);
		say(&reason, "backend 'hw': the server's driver has no device");
	}
	npu_log(NPU_LOG_INFO, "backend sim: %s", reason != NULL ? reason : "");
	free(reason);
	return open_backend("sim", error);
}

static struct npu_driver *open_named(const char *name, char **error)
{
	if (strcmp(name, "auto") == 0)
		return open_auto(error);
	if (strcmp(name, "hw") == 0 || strcmp(name, "sim") == 0)
		return open_backend(name, error);
	say(error,
	    "there is no backend '%s': hw is the server's own driver, sim the model, auto takes hw "
	    "where it has a device",
	    name);
	return NULL;
}

/* Puts `drv` under what the variable asks for. NULL and *error if that cannot be; `drv` is closed
 * then. */
static struct npu_driver *wrap(struct npu_driver *drv, enum npu_var var,
			       struct npu_driver *(*open)(struct npu_driver *lower,
							  const char *text, char **error),
			       char **error)
{
	bool from_env;
	const char *text = npu_var_get(var, &from_env);
	struct npu_driver *upper;

	if (drv == NULL || !from_env)
		return drv;
	upper = open(drv, text, error);
	if (upper == NULL)
		npu_driver_close(drv);
	return upper;
}

struct npu_driver *npu_driver_open(const char *name, char **error)
{
	struct npu_driver *drv;

	*error = NULL;
	drv = open_named(name != NULL ? name : npu_var_get(NPU_VAR_BACKEND, NULL), error);
	/* Faults below the trace: the record shows what the program was told. */
	drv = wrap(drv, NPU_VAR_FAULT, fault_driver_open, error);
	return wrap(drv, NPU_VAR_TRACE, trace_driver_open, error);
}

void npu_driver_close(struct npu_driver *drv)
{
	while (drv != NULL) {
		struct npu_driver *lower = drv->lower;

		if (drv->close != NULL)
			drv->close(drv);
		drv = lower;
	}
}

char *core_backend_text(const struct npu_driver *top)
{
	const struct npu_backend *backend = backend_in_use;
	char *more = backend != NULL && backend->describe != NULL ? backend->describe() : NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out != NULL) {
		fputs("drivers=", out);
		for (const struct npu_driver *drv = top; drv != NULL; drv = drv->lower)
			fprintf(out, "%s%s", drv == top ? "" : ", ", drv->name);
		fprintf(out, "\n%s", more != NULL ? more : "");
		fclose(out);
	}
	free(more);
	return text;
}
