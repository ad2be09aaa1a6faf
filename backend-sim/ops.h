/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of the driver's functions as this backend implements them: bsim_NAME for each NAME of
 * NPU_DRIVER_OPS. Which file has which is said in process/process.h. Nothing here but the prototypes.
 */
#ifndef NPUSIM_BSIM_OPS_H
#define NPUSIM_BSIM_OPS_H

#include "npusim/driver.h"

#define BSIM_PROTOTYPE(ret, missing, op, params, args) ret bsim_##op NPU_WITH_SELF params;
NPU_DRIVER_OPS(BSIM_PROTOTYPE)
#undef BSIM_PROTOTYPE

#endif
