/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by interposed-test.py, as tools that watch memory are: functions of the driver that
 * tell of each call and pass it on to the driver's own.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "npusim/driver.h"

#define SHOWN __attribute__((visibility("default")))

static __thread unsigned depth;

static void *next(const char *name)
{
	fprintf(stderr, "%s depth %u\n", name, depth);
	return dlsym(RTLD_NEXT, name);
}

SHOWN drvError_t halMemCreate(drv_mem_handle_t **handle, size_t size,
			      const struct drv_mem_prop *prop, uint64_t flag);
drvError_t halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop,
			uint64_t flag)
{
	__typeof__(halMemCreate) *real = next("halMemCreate");
	drvError_t code;

	depth++;
	code = real == NULL ? DRV_ERROR_NOT_EXIST : real(handle, size, prop, flag);
	depth--;
	return code;
}

SHOWN drvError_t halMemAlloc(void **out, unsigned long long size, unsigned long long flag);
drvError_t halMemAlloc(void **out, unsigned long long size, unsigned long long flag)
{
	__typeof__(halMemAlloc) *real = next("halMemAlloc");
	drvError_t code;

	depth++;
	code = real == NULL ? DRV_ERROR_NOT_EXIST : real(out, size, flag);
	depth--;
	return code;
}
