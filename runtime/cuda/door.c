/* SPDX-License-Identifier: Apache-2.0
 *
 * The doors of the CUDA face: the exported functions. Each calls its namesake inside, once the
 * process has called cuInit, and notes for the log where the program called it if that fails.
 * Behind some is nothing: they exist for programs to link with, answer NOT_SUPPORTED, and log once
 * what is missing. libcudart has its own doors (cudart.c): what they call here is not told twice.
 */
#include "cuda-internal.h"
#include "cuda-names.h"

#include <string.h>

/* libcudart is in the middle of a call of the program's, whose failure it tells itself. */
static __thread bool in_cudart;

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

static void note(const char *call, CUresult code, const char *name, const void *site)
{
	if (in_cudart || code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY)
		return; /* not the program's call; the answer of a query */
	npu_failure_note(&(struct npu_failure){ .call = call,
						.code = (int)code,
						.name = name,
						.site = site,
						.expected = is_expected(code) });
}

/* ---- libcudart's ---- */

CUDA_EXPORT void npusimCudartBegin(void);
CUDA_EXPORT void npusimCudartBegin(void)
{
	in_cudart = true;
}

CUDA_EXPORT void npusimCudartEnd(const char *call, CUresult code, const char *name,
				 const void *site);
CUDA_EXPORT void npusimCudartEnd(const char *call, CUresult code, const char *name,
				 const void *site)
{
	in_cudart = false;
	note(call, code, name, site);
}

/* ---- cuda.h's ---- */

#define DOOR(call, params, args)                                                               \
	CUresult door_##call params __asm__(#call);                                            \
	CUDA_EXPORT CUresult door_##call params                                                \
	{                                                                                      \
		CUresult code = cuda_initialised();                                            \
                                                                                               \
		if (code == CUDA_SUCCESS || is_early(#call))                                   \
			code = call args;                                                      \
		if (__builtin_expect(code != CUDA_SUCCESS, 0))                                 \
			note(#call, code, cuda_error_name(code), __builtin_return_address(0)); \
		return code;                                                                   \
	}
CUDA_DOORS(DOOR)

/* ---- not modelled ---- */

CUDA_EXPORT CUresult npusimMissing(const char *symbol, _Atomic int *told);
CUDA_EXPORT CUresult npusimMissing(const char *symbol, _Atomic int *told)
{
	if ((*told)++ == 0)
		npu_log(NPU_LOG_WARN, "%s is not modelled: %s", symbol,
			strcmp(symbol, "cuGetExportTable") == 0
				? "it is what NVIDIA's static CUDA runtime starts with; relink "
				  "with -cudart shared, so that npusim's libcudart takes its place"
				: "npusim's CUDA has memory, streams and events, and no modules, "
				  "kernels, graphs, arrays or multicast");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The parameters are nobody's, so the prototypes have none. */
#define MISSING(symbol, name, since)                                                     \
	CUresult symbol(void);                                                           \
	CUDA_EXPORT CUresult symbol(void)                                                \
	{                                                                                \
		static _Atomic int told;                                                 \
		CUresult code = npusimMissing(#symbol, &told);                           \
                                                                                         \
		note(#symbol, code, cuda_error_name(code), __builtin_return_address(0)); \
		return code;                                                             \
	}
CUDA_UNMODELLED(MISSING)
