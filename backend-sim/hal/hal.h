/* SPDX-License-Identifier: Apache-2.0
 *
 * libascend_hal.so of npusim: backend-sim under the HAL's names. It is a small library that opens
 * backend-sim.so, so that a process that holds both libascendcl.so and libascend_hal.so has one
 * model, one address window, one set of handles.
 *
 *   functions.c   opening the model at the first call; the functions of the seam, made of
 *                 driver-ops.h, a few more that answer, and those of unmodelled.h
 *   dcmi.c        libdcmi.so, a library above that one: the driver's management libraries
 *   unmodelled.h  functions that callers link strongly, and that have nothing behind them
 *
 * Names that callers take weakly and that stand in none of these stay out of the library: a caller
 * does without what it does not find, but believes what it finds.
 */
#ifndef NPUSIM_HAL_EXPORT_H
#define NPUSIM_HAL_EXPORT_H

#include "npusim/driver.h"

#define HAL_EXPORT __attribute__((visibility("default")))

/* Beyond the seam. */
HAL_EXPORT drvError_t drvDeviceStatus(uint32_t dev, int *status);
HAL_EXPORT drvError_t halMemcpy(void *dst, size_t dst_size, void *src, size_t count,
				struct memcpy_info *info);
HAL_EXPORT DVresult drvMemAddressTranslate(DVdeviceptr vptr, uint64_t *pptr);
HAL_EXPORT DVresult drvMemDestroyAddr(struct DMA_ADDR *ptr);
HAL_EXPORT drvError_t drvCloseIpcNotify(const char *name, void *info);
HAL_EXPORT void drvDfxShowReport(uint32_t dev);
HAL_EXPORT void drvFlushCache(uint64_t base, uint32_t length);
HAL_EXPORT extern int g_devmm_mem_dev;
HAL_EXPORT extern const struct npusim_hal npusim_hal_is_ours;

#endif
