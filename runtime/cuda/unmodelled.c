/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that exist for programs to link with, and are not modelled: each answers NOT_SUPPORTED
 * and logs once what is missing. The parameters are ignored.
 */
#include "unmodelled.h"

#include "cuda-internal.h"

static CUresult missing(const char *symbol, _Atomic int *told)
{
	if ((*told)++ == 0)
		npu_log(NPU_LOG_WARN,
			"%s is not modelled: npusim's CUDA has memory, streams and events, and no "
			"modules, kernels, graphs, arrays, multicast or pools",
			symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define MISSING(symbol, name, since)            \
	CUDA_EXPORT CUresult symbol(void)       \
	{                                       \
		static _Atomic int told;        \
                                                \
		return missing(#symbol, &told); \
	}
CUDA_UNMODELLED(MISSING)
