/* SPDX-License-Identifier: Apache-2.0
 *
 * The translation of a driver's code for programs: to an aclError, and to words.
 */
#ifndef NPUSIM_DRIVER_CODE_H
#define NPUSIM_DRIVER_CODE_H

#include "npusim/hal.h"

/* As CANN's runtime translates it (its errcode_manage): one table, tested as a table. */
int driver_code_acl(drvError_t code);
/* "out of memory"; NULL: a code without a name. */
const char *driver_code_name(drvError_t code);

#endif
