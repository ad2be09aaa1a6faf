/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend modules: where the build and the installation place them, and how one is loaded; and the
 * library that this is linked into among the libraries of the process.
 */
#ifndef NPUSIM_DRIVER_MODULE_H
#define NPUSIM_DRIVER_MODULE_H

#include <limits.h>

#include "npusim/driver.h"

#define MODULE_PATH_MAX (PATH_MAX + 64)

enum module_state {
	MODULE_LOADED,
	MODULE_ABSENT,  /* there is no file */
	MODULE_UNUSABLE /* the loader refuses it, or it belongs to another version: *error */
};
/* Loads backend-NAME.so, which lies beside the library or program that this function is linked
 * into, or in its build tree. path[MODULE_PATH_MAX] is where it was looked for, "" if that is not
 * known. A module is never unloaded: its threads, its thread-local memory and its simulation live
 * as long as the process. */
enum module_state driver_module_load(const char *name, char *path, const struct npu_backend **out,
				     char **error);

/* Warns, the first time, of each library of the process that has the name of one of ours and is
 * another: which file, and what brought it in. with_hal: libascend_hal.so too, since the model is
 * about to serve the calls. */
void driver_warn_of_others(bool with_hal);

#endif
