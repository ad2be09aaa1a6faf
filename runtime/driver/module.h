/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: where the build and the installation place them, and how a backend is loaded; and the
 * library that this is linked into among the libraries of the process.
 */
#ifndef NPUSIM_DRIVER_MODULE_H
#define NPUSIM_DRIVER_MODULE_H

#include <limits.h>
#include <stdbool.h>

#include "npusim/driver.h"

#define MODULE_PATH_MAX (PATH_MAX + 64)

/* Where the module `file` is: in build_folder of the build tree, or beside the library or program
 * that this function is linked into. False: it is not there; out[MODULE_PATH_MAX] is then where it
 * should be. */
bool driver_module_find(const char *build_folder, const char *file, char *out);

/* Loads backend-NAME.so, which lies beside the library or program that this function is linked
 * into, or in its build tree. path[MODULE_PATH_MAX] is where it was looked for, "" if that is not
 * known. NULL, and *error (free()): the loader refuses it, it belongs to another version, or this
 * namespace of the loader cannot have one; *error NULL: there is no file. A module is never
 * unloaded: its threads, its thread-local memory and its simulation live as long as the process. */
const struct npu_backend *driver_module_load(const char *name, char *path, char **error);

/* The driver, or one over it that calls the functions of the driver's names that others have put in
 * front of libascend_hal.so, if there are any. */
struct npu_driver *driver_interposed(struct npu_driver *drv);

/* Warns, the first time, of each library of the process that has the name of one of ours and is
 * another: which file, and what brought it in. with_hal: libascend_hal.so too, since the model is
 * about to serve the calls. */
void driver_warn_of_others(bool with_hal);

/* ---- the layers of a process, for the module that holds the driver at their bottom: struct
 * npu_backend in driver.h says who that is (stack.c) ---- */

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
