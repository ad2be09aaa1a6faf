/* SPDX-License-Identifier: Apache-2.0
 *
 * backend-hw inside: a libascend_hal.so that was found and resolved, and the driver over it.
 */
#ifndef NPUSIM_HW_H
#define NPUSIM_HW_H

#include <limits.h>

#include "npusim/driver.h"

/* ---- load.c ---- */

#define HW_INSTALL_INFO "/etc/ascend_install.info"
#define HW_DEFAULT_ROOT "/usr/local/Ascend"
#define HW_PLACES_MAX   4

/* What to hand to dlopen(), in this order. */
struct hw_places {
	bool named; /* by NPUSIM_HAL: then it is the only one */
	unsigned count;
	char path[HW_PLACES_MAX][PATH_MAX];
};
/* `named`: NPUSIM_HAL's value, "" where it is not set. `install_info`: the file in which the
 * driver's installer notes its folder; `default_root`: the folder where it does not. */
void hw_find(const char *named, const char *install_info, const char *default_root,
	     struct hw_places *out);
/* The version of the driver package that a libascend_hal.so (a path as realpath() gives it) belongs
 * to: what version.info two folders above it says, such as "25.2.0 (V100R001C23SPC005B219)".
 * False where there is none. */
bool hw_package_version(const char *library, char *out, size_t room);

/* X(result type, name, (parameters)): how drivers from before halDeviceOpen open a device. */
#define HW_OLD_SYMBOLS(X)                                         \
	X(int, drvMemDeviceOpen, (uint32_t dev, int fd))          \
	X(int, drvMemDeviceClose, (uint32_t dev))                 \
	X(drvError_t, drvDeviceOpen, (void **info, uint32_t dev)) \
	X(drvError_t, drvDeviceClose, (uint32_t dev))

struct hw_symbols {
#define NPU_OP(result, missing, op, ...) result(*op) NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"
#define HW_POINTER(result, op, params) result(*op) params;
	HW_OLD_SYMBOLS(HW_POINTER)
#undef HW_POINTER
};

#define HW_API_MAJOR_OF(api) ((api) >> 16 & 0xff)
#define HW_API_MINOR_OF(api) ((api) >> 8 & 0xff)
#define HW_API_PATCH_OF(api) ((api)&0xff)

struct hw_library {
	void *handle;
	char path[PATH_MAX];           /* of the file */
	char version[128];             /* of the driver package, or "unknown" */
	int api;                       /* halGetAPIVersion's answer; 0 if the driver has none */
	const struct npusim_hal *ours; /* NULL: a vendor's */
	struct hw_symbols symbols;     /* missing ones are NULL */
};
/* Opens the first of the places at which there is a library. False, nothing kept open and *error
 * (free()) otherwise: what was tried and what the loader said; or the file and all essential names
 * that it lacks; or that it is npusim's own, which only NPUSIM_HAL may name; or that it speaks a
 * newer interface than this backend. A library that was opened is never closed: a driver has
 * threads. */
bool hw_load(const struct hw_places *places, struct hw_library *out, char **error);

/* ---- hw.c ---- */

/* The driver object over a library, which is copied. caps: what our own library said when it was
 * opened; 0 of a vendor's. NULL: no memory. */
struct npu_driver *hw_driver_new(const struct hw_library *library, uint32_t caps);
/* Names that the library has not, separated by blanks; NULL for none; free(). */
char *hw_missing_names(const struct hw_symbols *symbols);

#endif
