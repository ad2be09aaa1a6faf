/* SPDX-License-Identifier: Apache-2.0
 *
 * The doors of the CUDA face: the exported functions. Each calls its namesake inside, once the
 * process has called cuInit, and notes for the log where the program called it if that fails.
 * Behind some is nothing: they exist for programs to link with, answer NOT_SUPPORTED, and log once
 * what is missing.
 */
#include "cuda-internal.h"
#include "cuda-names.h"

#include <string.h>

/* What needs no cuInit. */
static bool is_early(const char *call)
{
	return strcmp(call, "cuInit") == 0 || strcmp(call, "cuDriverGetVersion") == 0 ||
	       strncmp(call, "cuGetError", 10) == 0 || strncmp(call, "cuGetProcAddress", 16) == 0;
}

/* What programs try, and go on without. */
static bool is_expected(CUresult code)
{
	return code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_NOT_SUPPORTED ||
	       code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

static void note(const char *call, CUresult code, const void *site)
{
	if (code == CUDA_ERROR_NOT_READY)
		return; /* the answer of a query */
	npu_failure_note(&(struct npu_failure){ .call = call,
						.code = (int)code,
						.name = cuda_error_name(code),
						.site = site,
						.expected = is_expected(code) });
}

#define DOOR(call, params, args)                                        \
	CUresult door_##call params __asm__(#call);                     \
	CUDA_EXPORT CUresult door_##call params                         \
	{                                                               \
		const char *outer = cuda_call;                          \
		CUresult code = cuda_initialised();                     \
                                                                        \
		cuda_call = #call;                                      \
		if (code == CUDA_SUCCESS || is_early(#call))            \
			code = call args;                               \
		if (__builtin_expect(code != CUDA_SUCCESS, 0))          \
			note(#call, code, __builtin_return_address(0)); \
		cuda_call = outer;                                      \
		return code;                                            \
	}
CUDA_DOORS(DOOR)

/* ---- not modelled ---- */

static CUresult missing(const char *symbol, _Atomic int *told, const void *site)
{
	if ((*told)++ == 0)
		npu_log(NPU_LOG_WARN,
			"%s is not modelled: npusim's CUDA has memory, streams and events, and no "
			"modules, kernels, graphs, arrays or multicast",
			symbol);
	note(symbol, CUDA_ERROR_NOT_SUPPORTED, site);
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
