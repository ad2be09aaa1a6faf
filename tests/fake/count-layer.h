/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that counts the calls that it forwards: it tells how often the layers above call down.
 */
#ifndef NPUSIM_TESTS_COUNT_LAYER_H
#define NPUSIM_TESTS_COUNT_LAYER_H

#include "driver/layer.h"

struct npu_driver *count_layer_open(struct npu_driver *lower);
uint64_t count_layer_calls(struct npu_driver *drv, enum driver_op op);

#endif
