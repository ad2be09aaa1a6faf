/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver object over a library: each function of the seam is the driver's own, called straight.
 * A function that the driver lacks answers as CANN's runtime does for a weak symbol, and the
 * thread's message says which it was. Rewrites no argument and no answer. And what the module
 * exports: opening the server's driver, and describing it.
 */
#include "hw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "driver/layer.h"

struct hw {
	struct npu_driver driver; /* first: the driver's self is the hw */
	struct hw_library library;
};

/* The function that this thread's last call missed. */
static __thread const char *missed;

static struct hw *hw_of(struct npu_driver *self)
{
	return (struct hw *)self;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NPU_OP(result, missing, op, ...)                                                 \
	static result hw_##op NPU_WITH_SELF(__VA_ARGS__)                                 \
	{                                                                                \
		const struct hw_symbols *driver = &hw_of(self)->library.symbols;         \
                                                                                         \
		missed = driver->op == NULL ? #op : NULL;                                \
		return driver->op == NULL ? missing : driver->op(NPU_ARGS(__VA_ARGS__)); \
	}
#include "npusim/driver-ops.h"

static drvError_t old_device_open(struct npu_driver *self, uint32_t dev, halDevOpenIn *in,
				  halDevOpenOut *out)
{
	const struct hw_symbols *driver = &hw_of(self)->library.symbols;
	void *info[2] = {
		NULL
	}; /* struct drvDevInfo, an int; room for what takes the type at its word */
	int result;

	missed = NULL;
	if (out != NULL)
		memset(out, 0, sizeof(*out));
	result = driver->drvMemDeviceOpen(dev, 0);
	if (result != DRV_ERROR_NONE)
		return result;
	result = driver->drvDeviceOpen(info, dev);
	if (result != DRV_ERROR_NONE && driver->drvMemDeviceClose != NULL)
		driver->drvMemDeviceClose(dev);
	return result;
}

static drvError_t old_device_close(struct npu_driver *self, uint32_t dev, halDevCloseIn *in)
{
	const struct hw_symbols *driver = &hw_of(self)->library.symbols;
	drvError_t result;

	missed = "halDeviceClose";
	if (driver->drvDeviceClose == NULL || driver->drvMemDeviceClose == NULL)
		return DRV_ERROR_NOT_SUPPORT;
	missed = NULL;
	result = driver->drvDeviceClose(dev);
	return result != DRV_ERROR_NONE ? result : driver->drvMemDeviceClose(dev);
}

/* A vendor's driver words nothing: what can be said is which function it lacks. */
static const char *vendor_message(struct npu_driver *self)
{
	static __thread char text[PATH_MAX + 256];
	const struct hw_library *library = &hw_of(self)->library;

	if (missed == NULL)
		return NULL;
	snprintf(text, sizeof(text), "the driver has no %s: %s is of version %s", missed,
		 library->path, library->version);
	return text;
}

static void hw_close(struct npu_driver *self)
{
	struct hw *hw = hw_of(self);

	if (hw->library.ours != NULL)
		hw->library.ours->close();
	free(hw);
}

struct npu_driver *hw_driver_new(const struct hw_library *library, uint32_t caps)
{
	struct hw *hw = calloc(1, sizeof(*hw));

	if (hw == NULL)
		return NULL;
	hw->library = *library;
	hw->driver = (struct npu_driver){
		.abi = NPU_DRIVER_ABI,
		.size = sizeof(struct npu_driver),
		.name = "hw",
		.caps = caps,
		.close = hw_close,
#define NPU_OP(result, missing, op, ...) .op = hw_##op,
#include "npusim/driver-ops.h"
	};
	if (library->symbols.halDeviceOpen == NULL) {
		hw->driver.halDeviceOpen = old_device_open;
		hw->driver.halDeviceClose = old_device_close;
	}
	if (library->symbols.npusimLastMessage == NULL)
		hw->driver.npusimLastMessage = vendor_message;
	return &hw->driver;
}

char *hw_missing_names(const struct hw_symbols *have)
{
	char *names = NULL;

#define NPU_OP(result, missing, op, ...)                        \
	if (have->op == NULL && strncmp(#op, "npusim", 6) != 0) \
		npu_text_add(&names, names == NULL ? "%s" : " %s", #op);
#include "npusim/driver-ops.h"
	return names;
}

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
