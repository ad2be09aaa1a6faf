/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the fake driver share. The prototypes come from the list that backend-hw
 * resolves: a function of the fake that differs from it does not compile.
 */
#ifndef NPUSIM_TESTS_FAKE_HAL_PRIVATE_H
#define NPUSIM_TESTS_FAKE_HAL_PRIVATE_H

#include "hw.h"

#define NPU_OP(result, missing, op, ...) result op NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"
#define FAKE_PROTOTYPE(ret, op, params) ret op params;
HW_OLD_SYMBOLS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

/* The defect of the function that is called: its code, after it slept or died; 0: go on. */
drvError_t fake_enter(const char *name);
void fake_count(int change);

#define FAKE_ENTER()                                       \
	do {                                               \
		drvError_t defect_ = fake_enter(__func__); \
                                                           \
		if (defect_ != DRV_ERROR_NONE)             \
			return defect_;                    \
	} while (0)

#endif
