/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart: the few entry points of CUDA's runtime API that memory programs use, on top of
 * libcuda.so.1. Owns each thread's device and last error. A device's primary context is retained
 * at the first call that needs it, and kept.
 */
#include "cudart.h"

#include "cuda/cuda.h"

#include <pthread.h>

#define EXPORT     __attribute__((visibility("default")))
#define DEVICE_MAX 64
#define KIND_LAST  4 /* cudaMemcpyDefault */

static __thread int current_device;
static __thread cudaError_t last_error;
static CUcontext contexts[DEVICE_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The values are those of the driver's codes, as far as these calls answer them. */
static cudaError_t done(CUresult code)
{
	if (code != CUDA_SUCCESS)
		last_error = (cudaError_t)code;
	return (cudaError_t)code;
}

/* The body of a function that is one answer of the driver. */
#define ANSWERS(...)                      \
	{                                 \
		return done(__VA_ARGS__); \
	}

static CUresult hold(int device, CUcontext *out)
{
	CUresult code = cuInit(0);

	if (code == CUDA_SUCCESS && (device < 0 || device >= DEVICE_MAX))
		code = CUDA_ERROR_INVALID_DEVICE;
	if (code != CUDA_SUCCESS)
		return code;
	pthread_mutex_lock(&lock);
	if (contexts[device] == NULL)
		code = cuDevicePrimaryCtxRetain(&contexts[device], device);
	*out = contexts[device];
	pthread_mutex_unlock(&lock);
	return code;
}

/* A context that the program made current itself is left alone. */
static CUresult enter(void)
{
	CUcontext context = NULL;
	CUresult code = cuInit(0) ?: cuCtxGetCurrent(&context);

	if (code != CUDA_SUCCESS || context != NULL)
		return code;
	return hold(current_device, &context) ?: cuCtxSetCurrent(context);
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) ANSWERS(cuInit(0) ?: cuDeviceGetCount(count));

EXPORT cudaError_t cudaSetDevice(int device)
{
	CUcontext context;
	CUresult code = hold(device, &context) ?: cuCtxSetCurrent(context);

	if (code == CUDA_SUCCESS)
		current_device = device;
	return done(code);
}

EXPORT cudaError_t cudaGetDevice(int *device)
{
	CUcontext context = NULL;

	if (device == NULL)
		return done(CUDA_ERROR_INVALID_VALUE);
	if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL)
		return done(cuCtxGetDevice(device));
	*device = current_device;
	return done(cuInit(0));
}

EXPORT cudaError_t cudaDeviceSynchronize(void) ANSWERS(enter() ?: cuCtxSynchronize());

EXPORT cudaError_t cudaMalloc(void **ptr, size_t size)
{
	CUdeviceptr made = 0;
	CUresult code = enter();

	if (code == CUDA_SUCCESS && ptr == NULL)
		code = CUDA_ERROR_INVALID_VALUE;
	if (code == CUDA_SUCCESS && size > 0)
		code = cuMemAlloc_v2(&made, size);
	if (code == CUDA_SUCCESS)
		*ptr = (void *)(uintptr_t)made;
	return done(code);
}

EXPORT cudaError_t cudaFree(void *ptr)
	ANSWERS(enter() ?: (ptr == NULL ? CUDA_SUCCESS : cuMemFree_v2((uintptr_t)ptr)));
EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
	ANSWERS(enter() ?: cuMemAllocHost_v2(ptr, size));
EXPORT cudaError_t cudaFreeHost(void *ptr)
	ANSWERS(enter() ?: (ptr == NULL ? CUDA_SUCCESS : cuMemFreeHost(ptr)));

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, int kind)
{
	CUresult code = enter();

	if (code == CUDA_SUCCESS && (kind < 0 || kind > KIND_LAST))
		code = (CUresult)CUDART_INVALID_MEMCPY_DIRECTION;
	return done(code ?: cuMemcpy((uintptr_t)dst, (uintptr_t)src, count));
}

EXPORT cudaError_t cudaMemset(void *ptr, int value, size_t count)
	ANSWERS(enter() ?: cuMemsetD8_v2((uintptr_t)ptr, (unsigned char)value, count));
EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
	ANSWERS(enter() ?: cuMemGetInfo_v2(free, total));

/* ---- errors ---- */

EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t code = last_error;

	last_error = 0;
	return code;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	return cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS ? text
									: "unrecognized error code";
}

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	const char *name;

	return cuGetErrorName((CUresult)error, &name) == CUDA_SUCCESS ? name
								      : "unrecognized error code";
}
