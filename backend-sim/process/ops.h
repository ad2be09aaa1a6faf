/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of the driver's functions as this backend implements them: bsim_NAME for each NAME of
 * npusim/driver-ops.h. process/process.h says which file has which.
 */
#ifndef NPUSIM_BSIM_OPS_H
#define NPUSIM_BSIM_OPS_H

#include "npusim/driver.h"

#define NPU_OP(result, missing, op, ...) result bsim_##op NPU_WITH_SELF(__VA_ARGS__);
#include "npusim/driver-ops.h"

#endif
