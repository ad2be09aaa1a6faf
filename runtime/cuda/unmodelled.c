/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that exist for programs to link with, and are not modelled: each answers NOT_SUPPORTED
 * and logs once what is missing. The parameters are ignored.
 */
#include "cuda-internal.h"
#include "cuda-names.h"

static CUresult missing(const char *symbol, _Atomic int *told, const void *site)
{
	if ((*told)++ == 0)
		npu_log(NPU_LOG_WARN,
			"%s is not modelled: npusim's CUDA has memory, streams and events, and no "
			"modules, kernels, graphs, arrays, multicast or pools",
			symbol);
	cuda_note(symbol, CUDA_ERROR_NOT_SUPPORTED, site);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The parameters are nobody's, so the prototypes have none. */
#define MISSING(symbol, name, since)                                         \
	CUresult symbol(void);                                               \
	CUDA_EXPORT CUresult symbol(void)                                    \
	{                                                                    \
		static _Atomic int told;                                     \
                                                                             \
		return missing(#symbol, &told, __builtin_return_address(0)); \
	}
CUDA_UNMODELLED(MISSING)
