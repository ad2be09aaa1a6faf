/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the backend that the settings select as the driver of this process. Owns the selection
 * rules; knows backends only by name.
 */
#include "driver/module.h"
#include "driver/stack.h"

#include "base/base.h"
#include "config.h"

#include <stdio.h>
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

/* ---- selection ---- */

/* The one that was opened last: the process has one backend. */
static const struct npu_backend *_Atomic backend_in_use;

static struct npu_driver *open_backend(const char *name, char **error)
{
	const struct npu_backend *backend = load_backend(name, error);
	struct npu_driver *drv = NULL;
	char *reason = NULL;

	if (backend == NULL)
		return NULL;
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
		     reason != NULL ? reason : "it does not say why");
	free(reason);
	return NULL;
}

/* The server's own driver where it has a device, else the model. The layers do not hear of the
 * question, which is not the program's. */
static struct npu_driver *open_auto(char **error)
{
	char *reason = NULL;
	struct npu_driver *drv = open_backend("hw", &reason), *bottom = drv;
	uint32_t devices = 0;

	while (bottom != NULL && bottom->lower != NULL)
		bottom = bottom->lower;
	if (drv != NULL && npu_call(bottom, drvGetDevNum, &devices) == DRV_ERROR_NONE &&
	    devices > 0) {
		npu_log(NPU_LOG_INFO, "backend hw: the server's driver, %u devices", devices);
		return drv;
	}
	if (drv != NULL) {
		npu_driver_close(drv);
		npu_text_add(&reason, "backend 'hw': the server's driver has no device");
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
	npu_text_add(error,
		     "there is no backend '%s': hw is the server's own driver, sim the model, auto "
		     "takes hw where it has a device",
		     name);
	return NULL;
}

struct npu_driver *npu_driver_open(const char *name, char **error)
{
	*error = NULL;
	if (name == NULL)
		name = npu_var_get(NPU_VAR_BACKEND, NULL);
	driver_warn_of_others(strcmp(name, "sim") == 0);
	return open_named(name, error);
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
