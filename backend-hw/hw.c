/* SPDX-License-Identifier: Apache-2.0
 *
 * What the module exports: opening the server's driver, and describing it.
 */
#include "hw.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "driver/layer.h"

static struct npu_driver *open_driver(char **error)
{
	struct hw_places places;
	struct hw_library library;
	struct npu_driver *driver, *top;
	uint32_t caps = 0;

	hw_find(npu_var_get(NPU_VAR_HAL, NULL), HW_INSTALL_INFO, HW_DEFAULT_ROOT, &places);
	if (!hw_load(&places, &library, error))
		return NULL;
	if (library.ours == NULL)
		npu_var_warn_unknown();
	npu_log(NPU_LOG_INFO, "%s, driver version %s", library.path, library.version);
	if (library.ours != NULL && !library.ours->open(&caps, error))
		return NULL;
	driver = hw_driver_new(&library, caps);
	if (driver == NULL) {
		if (library.ours != NULL)
			library.ours->close();
		*error = strdup("no memory");
		return NULL;
	}
	/* Over our own library there are the layers of the model below. */
	top = library.ours != NULL ? driver : driver_stack_open(driver, error);
	if (top == NULL)
		driver->close(driver);
	return top;
}

static char *describe(void)
{
	struct hw_places places;
	struct hw_library library;
	char *error = NULL, *text = NULL, *missing, *model = NULL;
	int api;

	hw_find(npu_var_get(NPU_VAR_HAL, NULL), HW_INSTALL_INFO, HW_DEFAULT_ROOT, &places);
	if (!hw_load(&places, &library, &error)) {
		npu_text_add(&text, "error=%s\n", error == NULL ? "no memory" : error);
		free(error);
		return text;
	}
	api = library.api;
	missing = hw_missing_names(&library.symbols);
	if (library.ours != NULL) {
		model = library.ours->describe();
		library.symbols.halGetAPIVersion(&api);
	}
	npu_text_add(&text, "file=%s\ndriver_version=%s\n", library.path, library.version);
	if (api != 0)
		npu_text_add(&text, "interface=%d.%d.%d\n", HW_API_MAJOR_OF(api),
			     HW_API_MINOR_OF(api), HW_API_PATCH_OF(api));
	npu_text_add(&text, "vendor=%s\nmissing=%s\n%s",
		     library.ours != NULL ? "npusim" : "the server's own",
		     missing == NULL ? "" : missing, model == NULL ? "" : model);
	free(model);
	free(missing);
	return text;
}

__attribute__((visibility("default"))) extern const struct npu_backend npusim_backend_1;
const struct npu_backend npusim_backend_1 = {
	.abi = NPU_DRIVER_ABI,
	.size = sizeof(struct npu_backend),
	.name = "hw",
	.open = open_driver,
	.describe = describe,
};
