/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of CUDA's runtime API that npusim's libcudart has: names, values and prototypes.
 */
#ifndef NPUSIM_CUDART_H
#define NPUSIM_CUDART_H

#include <stddef.h>

typedef int cudaError_t;
#define CUDART_INVALID_MEMCPY_DIRECTION 21 /* cudaErrorInvalidMemcpyDirection */

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMalloc(void **ptr, size_t size);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMallocHost(void **ptr, size_t size);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, int kind);
cudaError_t cudaMemset(void *ptr, int value, size_t count);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);

#endif
