/* SPDX-License-Identifier: Apache-2.0
 *
 * What the module exports: opening the server's driver, and describing it.
 */
#include "hw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "driver/module.h"

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

static void describe_library(FILE *out, const struct hw_library *library)
{
	char *missing = hw_missing_names(&library->symbols);
	char *model = library->ours != NULL ? library->ours->describe() : NULL;
	int api = library->api;

	if (library->ours != NULL)
		library->symbols.halGetAPIVersion(&api);

	fprintf(out, "file=%s\n", library->path);
	fprintf(out, "driver_version=%s\n", library->version);
	if (api != 0)
		fprintf(out, "interface=%d.%d.%d\n", api >> 16 & 0xff, api >> 8 & 0xff, api & 0xff);
	fprintf(out, "vendor=%s\n", library->ours != NULL ? "npusim" : "the server's own");
	fprintf(out, "missing=%s\n", missing == NULL ? "" : missing);
	if (model != NULL)
		fputs(model, out);
	free(model);
	free(missing);
}

static char *describe(void)
{
	struct hw_places places;
	struct hw_library library;
	char *error = NULL, *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return NULL;
	hw_find(npu_var_get(NPU_VAR_HAL, NULL), HW_INSTALL_INFO, HW_DEFAULT_ROOT, &places);
	if (hw_load(&places, &library, &error))
		describe_library(out, &library);
	else
		fprintf(out, "error=%s\n", error == NULL ? "no memory" : error);
	free(error);
	fclose(out);
	return text;
}

__attribute__((visibility("default"))) const struct npu_backend npusim_backend_1 = {
	.abi = NPU_DRIVER_ABI,
	.size = sizeof(struct npu_backend),
	.name = "hw",
	.open = open_driver,
	.describe = describe,
};
