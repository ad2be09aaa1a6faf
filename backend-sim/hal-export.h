/* SPDX-License-Identifier: Apache-2.0
 *
 * libascend_hal.so of npusim: backend-sim under the HAL's names. It is a small library that opens
 * backend-sim.so, so that a process that holds both libascendcl.so and libascend_hal.so has one
 * model, one address window, one set of handles.
 *
 *   hal-export.c         the functions of the seam, made of NPU_DRIVER_OPS
 *   hal-export-more.c    functions beyond the seam that answer something
 *   hal-export-absent.c  functions that callers link strongly, and that have nothing behind them
 *   hal-export-open.c    opening the model at the first call; the symbol that says whose this is
 *
 * Names that callers take weakly and that stand in none of these stay out of the library: a caller
 * does without what it does not find, but believes what it finds.
 */
#ifndef NPUSIM_HAL_EXPORT_H
#define NPUSIM_HAL_EXPORT_H

#include "npusim/driver.h"
#include "npusim/hal-ours.h"

#define HAL_EXPORT __attribute__((visibility("default")))

/* "(a, b)" as a parameter list, "()" as "(void)". */
#define HAL_PARAMETERS(...) (HAL_VOID_(__VA_ARGS__) __VA_ARGS__)
#define HAL_VOID_(...)      HAL_VOID_IF_##__VA_OPT__(NOT_EMPTY)
#define HAL_VOID_IF_        void
#define HAL_VOID_IF_NOT_EMPTY

/* The model's driver, opened at the first call of any thread. NULL, and this thread's message says
 * why, if it cannot be; tried again at the next call. */
struct npu_driver *hal_driver(void);

/* What a function answers without a model: NO_DEVICE where it answers a code, else `missing`. */
#define HAL_NO_MODEL(missing) \
	_Generic((missing), void * : hal_no_model_text, default : hal_no_model_code)(missing)
int hal_no_model_code(int missing);
const char *hal_no_model_text(const void *missing);

#endif
