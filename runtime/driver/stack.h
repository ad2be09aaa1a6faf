/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of a process, for the module that holds the driver at their bottom (struct npu_backend
 * in driver.h says who that is).
 */
#ifndef NPUSIM_DRIVER_STACK_H
#define NPUSIM_DRIVER_STACK_H

#include "npusim/driver.h"

/* Puts the layers that the environment asks for over `bottom`: NPUSIM_FAULT, NPUSIM_VALIDATE, and
 * above them NPUSIM_TRACE, so that the record shows what the program was told. The top, which is
 * `bottom` where there is no layer. NULL and *error (free()): `bottom` is as it was. */
struct npu_driver *driver_stack_open(struct npu_driver *bottom, char **error);
/* Whether their settings are valid; opens nothing. False, and *error (free()). */
bool driver_stack_check(char **error);

/* For a destructor: the process ends with this status, and a validation says its last words before.
 */
void driver_stack_exit(int status);

/* For a bottom that several open: npu_driver_close() of the stack closes only the bottom, which
 * calls driver_stack_end() at its last close. */
void driver_stack_share(struct npu_driver *top);
/* Ends the layers above the bottom. */
void driver_stack_end(struct npu_driver *top);

#endif
