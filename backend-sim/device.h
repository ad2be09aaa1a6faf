/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated server as one process has it: building the model at the first device's opening.
 * Owned by bsim.c; called by device.c with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_DEVICE_H
#define NPUSIM_BSIM_DEVICE_H

#include "process/process.h"

/* Joins the node, reserves the window, builds the model; nothing where that is done. Message on
 * failure. */
drvError_t bsim_open_server_locked(struct bsim *bs);

#endif
