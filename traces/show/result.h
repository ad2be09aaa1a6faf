/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a replay as text for people. (For programs there is JSON: figures.h has its table,
 * and npusim-replay(1) its schema.)
 */
#ifndef NPUSIM_TRACES_RESULT_H
#define NPUSIM_TRACES_RESULT_H

#include <stdio.h>

#include "figures.h"

void result_print(FILE *out, const struct result *result);

#endif
