/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of the driver's functions as this backend implements them: bsim_NAME for each NAME of
 * npusim/driver-ops.h. process/process.h says which file has which.
 */
#ifndef NPUSIM_BSIM_OPS_H
#define NPUSIM_BSIM_OPS_H

#include "process/process.h"

#define NPU_OP(result, missing, op, ...) result bsim_##op NPU_WITH_SELF(__VA_ARGS__);
#include "npusim/driver-ops.h"

/* Defines a function that is a call: BSIM_CALL(halMemRelease, SIM_CALL_RELEASE, (drv_mem_handle_t
 * *, handle)) and a body, which runs between bsim_begin() and bsim_end(). It has `struct bsim_call
 * *c`, with its name in c->name, and returns the result. BSIM_OPEN_CALL: one that needs an open
 * device before all else. */
#define BSIM_CALL(op, cost, ...) BSIM_CALL_BEGUN_BY(bsim_begin(self, cost), op, __VA_ARGS__)
#define BSIM_OPEN_CALL(op, cost, ...) \
	BSIM_CALL_BEGUN_BY(bsim_begin_open(self, cost, #op), op, __VA_ARGS__)
#define BSIM_CALL_BEGUN_BY(begin, op, ...)                                           \
	static drvError_t op##_locked(struct bsim_call *c, NPU_PARAMS(__VA_ARGS__)); \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__)                              \
	{                                                                            \
		struct bsim_call begun = begin;                                      \
                                                                                     \
		begun.name = #op;                                                    \
		if (begun.result == DRV_ERROR_NONE)                                  \
			begun.result = op##_locked(&begun, NPU_ARGS(__VA_ARGS__));   \
		return bsim_end(&begun);                                             \
	}                                                                            \
	static drvError_t op##_locked(struct bsim_call *c, NPU_PARAMS(__VA_ARGS__))

/* The same of a question that is no call, costs no time and is not counted: what watches must not
 * change what it sees. The body has `struct bsim *bs`, whose lock is held, and its name in `call`.
 */
#define BSIM_QUESTION(op, ...)                                                                     \
	static drvError_t op##_locked(struct bsim *bs, const char *call, NPU_PARAMS(__VA_ARGS__)); \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__)                                            \
	{                                                                                          \
		struct bsim *bs = bsim_of(self);                                                   \
		drvError_t result;                                                                 \
                                                                                                   \
		bsim_lock(bs);                                                                     \
		result = op##_locked(bs, #op, NPU_ARGS(__VA_ARGS__));                              \
		bsim_unlock(bs);                                                                   \
		return result;                                                                     \
	}                                                                                          \
	static drvError_t op##_locked(struct bsim *bs, __attribute__((unused)) const char *call,   \
				      NPU_PARAMS(__VA_ARGS__))

#endif
