/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the layers of a process that NPUSIM_FAULT, NPUSIM_VALIDATE and NPUSIM_TRACE ask for, and
 * ends them.
 */
#include "driver/stack.h"

#include "base/base.h"
#include "driver/layer.h"
#include "driver/module.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A module of its own: a process that does not validate does not load it. NULL: it is not loaded,
 * dlerror() says why. */
static const struct validate_module *validation(int flags)
{
	char path[MODULE_PATH_MAX] = "npusim-validate.so";
	void *module;

	driver_module_find("runtime/validate", "npusim-validate.so", path);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
	return module == NULL ? NULL : dlsym(module, VALIDATE_SYMBOL);
}

static struct npu_driver *open_validation(struct npu_driver *lower, const char *mode, char **error)
{
	bool off = strcmp(mode, "off") == 0;
	const struct validate_module *module = off ? NULL : validation(0);

	if (module != NULL)
		return module->open(lower, mode, error);
	if (!off)
		npu_text_add(error, "NPUSIM_VALIDATE=%s: %s", mode, dlerror());
	return off ? lower : NULL;
}

static bool check_validation(const char *mode, char **error)
{
	bool off = strcmp(mode, "off") == 0;
	const struct validate_module *module = off ? NULL : validation(0);

	if (module != NULL)
		return module->check(error);
	if (!off)
		npu_text_add(error, "NPUSIM_VALIDATE=%s: %s", mode, dlerror());
	return off;
}

void driver_stack_exit(int status)
{
	const struct validate_module *module = validation(RTLD_NOLOAD);

	if (module != NULL)
		module->exit(status);
	/* glibc goes on with what is left of the end, and keeps this status */
	exit(status);
}

static const struct {
	enum npu_var var;
	struct npu_driver *(*open)(struct npu_driver *lower, const char *text, char **error);
	bool (*check)(const char *text, char **error);
} layers[] = { { NPU_VAR_FAULT, fault_layer_open, fault_layer_check },
	       { NPU_VAR_VALIDATE, open_validation, check_validation },
	       { NPU_VAR_TRACE, trace_layer_open, trace_layer_check } };
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

bool driver_stack_check(char **error)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		bool wanted;
		const char *text = npu_var_get(layers[i].var, &wanted);

		if (wanted && !layers[i].check(text, error))
			return false;
	}
	return true;
}

struct npu_driver *driver_stack_open(struct npu_driver *bottom, char **error)
{
	struct npu_driver *top = bottom;

	*error = NULL;
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		bool wanted;
		const char *text = npu_var_get(layers[i].var, &wanted);
		struct npu_driver *upper = wanted ? layers[i].open(top, text, error) : top;

		if (upper == NULL) {
			driver_stack_end(top);
			return NULL;
		}
		top = upper;
	}
	return top;
}

void driver_stack_share(struct npu_driver *top)
{
	for (; top->lower != NULL; top = top->lower)
		top->close = NULL;
}

void driver_stack_end(struct npu_driver *top)
{
	while (top->lower != NULL) {
		struct layer *layer = (struct layer *)top;

		top = top->lower;
		layer->hooks->end(layer);
	}
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
