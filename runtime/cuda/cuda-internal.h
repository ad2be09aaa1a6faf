/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CUDA face share: entry checks, codes, contexts and streams as CUDA defines
 * them. Everything below is runtime/core and the driver, in the dialect of NPU_DIALECT_CUDA.
 */
#ifndef NPUSIM_CUDA_INTERNAL_H
#define NPUSIM_CUDA_INTERNAL_H

#include "core/core.h"
#include "cuda/cuda.h"

#define CUDA_EXPORT        __attribute__((visibility("default")))
#define CUDA_GRANULE_BYTES (UINT64_C(2) << 20)

/* ---- init.c ---- */

/* The driver, after cuInit. NULL, and *code, before, and in a child that was forked afterwards. */
struct npu_driver *cuda_driver(CUresult *code);
/* Declares the driver, or returns from the calling function. */
#define CUDA_DRIVER(drv)                                   \
	CUresult drv##_code = CUDA_SUCCESS;                \
	struct npu_driver *drv = cuda_driver(&drv##_code); \
	if (drv == NULL)                                   \
	return drv##_code
#define CUDA_INITIALISED()                       \
	do {                                     \
		CUresult code_ = CUDA_SUCCESS;   \
		if (cuda_driver(&code_) == NULL) \
			return code_;            \
	} while (0)
/* The current context, or return INVALID_CONTEXT from the calling function. */
#define CUDA_CONTEXT(var)                                      \
	struct core_context *var = core_context_peek();        \
	if (var == NULL)                                       \
	return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, __func__, \
			 "no context is current in this thread")

/* Each says the failure in the log, level info, and returns the code. */
CUresult cuda_fail(CUresult code, const char *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
CUresult cuda_of_driver(const char *call, drvError_t code);
CUresult cuda_of_core(const char *call, int code);

const char *cuda_error_name(CUresult code); /* NULL: there is no such code */

/* ---- device.c ---- */

/* True for a CUdevice that is there; *logic is the driver's number of it. */
bool cuda_device(CUdevice device, uint32_t *logic);
/* The CUdevice of a driver's device; -1: it is hidden. */
int cuda_ordinal(uint32_t logic);
/* The device stays open until the process ends: memory of cuMemCreate needs no context. */
CUresult cuda_keep(uint32_t logic, const char *call);

/* ---- context.c ---- */

/* True if the context is that of a live one. */
bool cuda_context_is_live(CUcontext context);

/* ---- memory.c ---- */

/* The context ends: what was allocated in it goes. */
void cuda_memory_end_context(void *context);
/* The context in which cuMemAlloc made it; NULL: none. */
void *cuda_memory_context(uint64_t va);
bool cuda_memory_is_managed(uint64_t va);

/* ---- stream.c ---- */

/* NULL, and *code. */
struct core_stream *cuda_stream(CUstream stream, const char *call, CUresult *code);
/* What a call on that stream must wait for, as the default stream and the blocking ones do for one
 * another. */
CUresult cuda_stream_order(CUstream stream, const char *call);
/* The same for a synchronous call, which also begins when the default stream has nothing left. */
CUresult cuda_stream_before_sync(const char *call);

#endif
