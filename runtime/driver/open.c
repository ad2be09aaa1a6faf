/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the backend that the settings select as the driver of this process. Owns the selection
 * rules; knows backends only by name.
 */
#include "driver/layer.h"

#include "base/base.h"
#include "base/stack.h"
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct npu_backend *load_backend(const char *name, char **error)
{
	bool built = NPUSIM_HAVE_SIM || strcmp(name, "sim") != 0;
	char path[MODULE_PATH_MAX], *reason;
	const struct npu_backend *backend = driver_module_load(name, path, &reason);

	if (reason != NULL)
		npu_text_add(error, "backend '%s' cannot be used: %s", name, reason);
	else if (backend == NULL)
		npu_text_add(error, "backend '%s' cannot be used: there is no file %s%s", name,
			     path,
			     built ? ""
				   : "; this npusim was built without the model (-Dsim=disabled, "
				     "or no SystemC when it was configured)");
	free(reason);
	return backend;
}

/* The one that was opened last: the process has one backend. */
static const struct npu_backend *_Atomic backend_in_use;

static struct npu_driver *open_backend(const char *name, char **error)
{
	const struct npu_backend *backend = load_backend(name, error);
	struct npu_driver *drv = NULL;
	char *reason = NULL;

	if (backend == NULL)
		return NULL;
	npu_stack_use(0);
	drv = backend->open(&reason);
	if (drv != NULL && drv->abi != NPU_DRIVER_ABI) {
		npu_text_add(&reason, "its driver has ABI %u, this library %u", drv->abi,
			     NPU_DRIVER_ABI);
	} else if (drv != NULL) {
		backend_in_use = backend;
		drv = npu_driver_complete(drv);
		if (drv != NULL)
			return drv;
	}
	npu_text_add(error, "backend '%s' cannot be used: %s", name,
		     reason ?: "it does not say why");
	free(reason);
	return NULL;
}

/* The server's own driver where it has a device, else the model. The layers do not hear of the
 * question, which is not the program's. */
static struct npu_driver *open_auto(char **error)
{
	char *reason = NULL;
	struct npu_driver *drv = open_backend("hw", &reason);
	uint32_t devices = 0;

	if (drv != NULL && npu_call(driver_bottom(drv), drvGetDevNum, &devices) == DRV_ERROR_NONE &&
	    devices > 0) {
		npu_log(NPU_LOG_INFO, "backend hw: the server's driver, %s",
			npu_counted(devices, "device"));
		return drv;
	}
	if (drv != NULL) {
		npu_driver_close(drv);
		npu_text_add(&reason, "backend 'hw': the server's driver has no device");
	}
	npu_log(NPU_LOG_INFO, "backend sim: %s", reason ?: "");
	free(reason);
	return open_backend("sim", error);
}

struct npu_driver *npu_driver_open(const char *name, char **error)
{
	*error = NULL;
	if (name == NULL)
		name = npu_var_get(NPU_VAR_BACKEND, NULL);
	driver_warn_of_others(strcmp(name, "sim") == 0);
	if (strcmp(name, "auto") == 0)
		return open_auto(error);
	if (strcmp(name, "hw") == 0 || strcmp(name, "sim") == 0)
		return open_backend(name, error);
	npu_text_add(error,
		     "there is no backend '%s': hw is the server's own driver, sim the model, auto "
		     "takes hw where it has a device",
		     name);
	return NULL;
}

/* What a backend's description says is wrong; NULL: nothing. free() */
static char *backend_problem(const char *name)
{
	char *problem = NULL, *text = NULL;
	const struct npu_backend *backend = load_backend(name, &problem);
	char *line, *place = NULL;

	if (backend != NULL && backend->describe != NULL)
		text = backend->describe();
	for (line = text != NULL ? strtok_r(text, "\n", &place) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &place))
		if (strncmp(line, "error=", strlen("error=")) == 0)
			npu_text_add(&problem, "backend '%s' cannot be used: %s", name,
				     line + strlen("error="));
	free(text);
	return problem;
}

bool npu_settings_check(char **error)
{
	const char *name = npu_var_get(NPU_VAR_BACKEND, NULL);
	bool choose = strcmp(name, "auto") == 0;

	*error = NULL;
	if (!npu_var_check_all(error) || !driver_stack_check(error))
		return false;
	*error = backend_problem(choose ? "hw" : name);
	if (choose && *error != NULL) {
		free(*error);
		*error = backend_problem("sim");
	}
	return *error == NULL;
}

char *npu_driver_text(const struct npu_driver *top)
{
	const struct npu_backend *backend = backend_in_use;
	char *more = backend != NULL && backend->describe != NULL ? backend->describe() : NULL;
	char *text = NULL;

	npu_text_add(&text, "drivers=");
	for (const struct npu_driver *drv = top; drv != NULL; drv = drv->lower)
		npu_text_add(&text, "%s%s", drv == top ? "" : ", ", drv->name);
	npu_text_add(&text, "\n%s", more ?: "");
	free(more);
	return text;
}

/* ---- functions of libascend_hal.so that the program, or a library in LD_PRELOAD, has under the
 * same name, as tools do that watch memory: CANN's runtime calls these, so npusim does ---- */

#define HAL "libascend_hal.so"

#define NPU_OP(result, missing, op, ...)                    \
	static result(*theirs_##op) NPU_PLAIN(__VA_ARGS__); \
	static result call_##op NPU_WITH_SELF(__VA_ARGS__)  \
	{                                                   \
		(void)self;                                 \
		return theirs_##op(NPU_ARGS(__VA_ARGS__));  \
	}
#include "npusim/driver-ops.h"

/* NULL: nobody has it but a driver. */
static void *find_theirs(const char *name)
{
	void *symbol = strncmp(name, "npusim", 6) == 0 ? NULL : dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL)
		return NULL;
	if (strncmp(basename(info.dli_fname), HAL, strlen(HAL)) == 0)
		return NULL;
	npu_log(NPU_LOG_INFO, "%s of %s is called, as by CANN's runtime", name, info.dli_fname);
	return symbol;
}

/* They look for the driver's functions behind their own (RTLD_NEXT): its library must be there. */
static void show_library(void)
{
	char path[MODULE_PATH_MAX];

	if (dlopen(HAL, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) == NULL &&
	    (!driver_module_find("backend-sim", "hal/" HAL, path) ||
	     dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL))
		npu_log(NPU_LOG_WARN, "functions of " HAL " are interposed, which itself cannot be "
				      "opened");
}

struct npu_driver *driver_interposed(struct npu_driver *drv)
{
	struct layer *layer = malloc(sizeof(*layer));
	bool any = false;

	if (layer == NULL)
		return drv;
	layer_init(layer, "interposed", drv, NULL);
#define NPU_OP(result, missing, op, ...)           \
	*(void **)&theirs_##op = find_theirs(#op); \
	if (theirs_##op != NULL)                   \
		layer->below.op = call_##op, any = true;
#include "npusim/driver-ops.h"
	if (!any) {
		free(layer);
		return drv;
	}
	show_library();
	return &layer->driver;
}
