/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of the process's driver model, from the environment variables, and the shape of the
 * server that they and a running node determine. Errors are strings, to be freed with free().
 */
#ifndef NPUSIM_BSIM_SETTINGS_H
#define NPUSIM_BSIM_SETTINGS_H

#include "process/process.h"

/* Reads every variable. False, and *error. */
bool settings_read(struct bsim *bs, char **error);
/* Joins the node, if that has not happened yet, and takes over its shape. OPEN_FAILED and a
 * message where that cannot be. */
drvError_t settings_join_locked(struct bsim *bs);
/* Where neither SoC, devices nor HBM were given: takes the shape of the node of that name that runs
 * already. Once. */
void settings_learn_shape_locked(struct bsim *bs);
/* No device is open. The SoC is the dialect's where none was named. */
drvError_t settings_set_dialect_locked(struct bsim *bs, enum npu_dialect dialect);
/* Moves GLib's words into *error; false. */
bool settings_take_words(char **error, char *why);

#endif
