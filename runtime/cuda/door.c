/* SPDX-License-Identifier: Apache-2.0
 *
 * The doors of the CUDA face: the exported functions. Each calls its namesake inside, once the
 * process has called cuInit, none of its pointers is NULL that may not be, and its devices and
 * handles are there, in its stream's context; and notes for the log where the program called it if
 * that fails.
 * Behind some is nothing: they exist for programs to link with, answer NOT_SUPPORTED, and log once
 * what is missing. libcudart's doors are in cudart.c. A call from inside another is not the
 * program's.
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

/* All that has to do with memory, streams or events, but for what only asks what something is. */
static bool uses_contexts(const char *call)
{
	if (strncmp(call, "cuMemGetAllocation", 18) == 0 || strncmp(call, "cuMemHostGet", 12) == 0)
		return false;
	return strncmp(call, "cuMem", 5) == 0 || strncmp(call, "cuStream", 8) == 0 ||
	       strncmp(call, "cuEvent", 7) == 0 || strncmp(call, "cuIpc", 5) == 0 ||
	       strncmp(call, "cuLaunch", 8) == 0;
}

/* What programs try, and go on without. */
static bool is_expected(CUresult code)
{
	return code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_NOT_SUPPORTED ||
	       code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUDA_OWN const char *npusimBegin(const char *call)
{
	const char *outer = core_called;

	if (*outer == '\0')
		core_called = call;
	return outer;
}

CUDA_OWN CUresult npusimEnd(const char *outer, CUresult code, const char *name, const void *site)
{
	/* NOT_READY is the answer of a query. */
	if (__builtin_expect(code != CUDA_SUCCESS, 0) && code != CUDA_ERROR_NOT_READY &&
	    *outer == '\0')
		npu_failure_note(&(struct npu_failure){ .call = core_called,
							.code = (int)code,
							.name = name ?: cuda_find_error(code).name,
							.site = site,
							.expected = is_expected(code) });
	core_called = outer;
	return code;
}

struct scope {
	void *before;
	bool entered;
};

static struct scope enter(CUstream stream)
{
	struct core_context *current = core_context_peek();
	struct scope scope = { .before = current != NULL ? core_context_handle(current) : NULL };
	void *own = cuda_core_stream(stream) == NULL ? NULL : core_stream_context(stream);

	scope.entered = own != NULL && own != scope.before && core_context_select(own) == 0;
	return scope;
}

static void leave(struct scope *scope)
{
	if (scope->entered && (scope->before == NULL || core_context_select(scope->before) != 0))
		core_context_deselect();
}

#define DOOR(call, params, args)                                                  \
	CUresult door_##call params __asm__(#call);                               \
	CUDA_EXPORT CUresult door_##call params                                   \
	{                                                                         \
		const char *outer = npusimBegin(#call);                           \
		__attribute__((cleanup(leave), unused)) struct scope scope =      \
			enter(CUDA_STREAM_##call);                                \
		CUresult code = cuda_initialised();                               \
                                                                                  \
		if (code == CUDA_SUCCESS && uses_contexts(#call))                 \
			code = cuda_unharmed();                                   \
		else if (is_early(#call))                                         \
			code = CUDA_SUCCESS;                                      \
		if (code == CUDA_SUCCESS)                                         \
			code = CUDA_CHECKS_##call call args;                      \
		return npusimEnd(outer, code, NULL, __builtin_return_address(0)); \
	}
CUDA_DOORS(DOOR)

CUDA_OWN CUresult npusimMissing(_Atomic int *told)
{
	if ((*told)++ == 0)
		npu_log(NPU_LOG_WARN, "%s is not modelled: %s", core_called,
			strcmp(core_called, "cuGetExportTable") == 0
				? "it is what NVIDIA's static CUDA runtime starts with; relink "
				  "with -cudart shared, so that npusim's libcudart takes its place"
				: "npusim's CUDA has memory, streams and events, and no modules, "
				  "kernels, graphs, arrays or multicast");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* No code reads the parameters, so the prototypes have none. */
#define MISSING(symbol, name, since)                                                              \
	CUresult symbol(void);                                                                    \
	CUDA_EXPORT CUresult symbol(void)                                                         \
	{                                                                                         \
		static _Atomic int told;                                                          \
		const char *outer = npusimBegin(#symbol);                                         \
                                                                                                  \
		return npusimEnd(outer, npusimMissing(&told), NULL, __builtin_return_address(0)); \
	}
CUDA_UNMODELLED(MISSING)
