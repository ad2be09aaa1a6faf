/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the model of the simulated server in this process when the first device is opened. Owned
 * by bsim.c; called by device.c with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_DEVICE_H
#define NPUSIM_BSIM_DEVICE_H

#include "process/process.h"

/* Joins the node, reserves the window, builds the model; nothing where that is done. Message on
 * failure. */
drvError_t bsim_open_server_locked(struct bsim *bs);

#endif
