/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of the functions that are not modelled: without parameters, since these are ignored.
 */
#ifndef NPUSIM_CUDA_UNMODELLED_H
#define NPUSIM_CUDA_UNMODELLED_H

#include "cuda/cuda.h"
#include "unmodelled-list.h"

#define CUDA_UNMODELLED_PROTOTYPE(symbol, name, since) CUresult symbol(void);
CUDA_UNMODELLED(CUDA_UNMODELLED_PROTOTYPE)
#undef CUDA_UNMODELLED_PROTOTYPE

#endif
