/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the case files: README.md has their form.
 */
#ifndef NPUSIM_TESTS_CUDA_CASE_RUN_H
#define NPUSIM_TESTS_CUDA_CASE_RUN_H

#include <stdbool.h>

#include "cuda/cuda.h"

/* What a case begins with; in the process that runs it. */
bool case_begin(bool bare);
/* False, and a line on the standard error, where the answer is another than the step says. */
bool case_run_step(const char *line);

#endif
