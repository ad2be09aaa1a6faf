/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of libascend_hal.so that the program, or a library in LD_PRELOAD, has under the same
 * name, as tools do that watch memory: CANN's runtime calls these, so npusim does.
 */
#include "driver/layer.h"
#include "driver/module.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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
	const char *file;
	Dl_info info;

	if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL)
		return NULL;
	file = strrchr(info.dli_fname, '/');
	file = file != NULL ? file + 1 : info.dli_fname;
	if (strncmp(file, HAL, strlen(HAL)) == 0)
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
	static const struct layer_hooks plain = { .end = layer_free };
	struct layer *layer = malloc(sizeof(*layer));
	bool any = false;

	if (layer == NULL)
		return drv;
	layer_init(layer, "interposed", drv, &plain);
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
