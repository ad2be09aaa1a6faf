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

#endif
