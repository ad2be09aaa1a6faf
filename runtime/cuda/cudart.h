/* SPDX-License-Identifier: Apache-2.0
 *
 * What npusim's libcudart models of CUDA's runtime API: layouts and prototypes, of version
 * CUDART_MAJOR (11, 12 or 13).
 */
#ifndef NPUSIM_CUDART_H
#define NPUSIM_CUDART_H

#include "cuda-names.h"
#include "cuda/cuda.h"

#ifdef CUDART_NAMES
#include CUDART_NAMES
#else /* for libcuda.so.1 */
#define CUDART_MAJOR 13
#define CUDART_EARLY_SAME(X)
#define CUDART_SAME(X)
#endif
/* The last of each major, which any program of that major may need. */
#define CUDART_VERSION (CUDART_MAJOR == 11 ? 11080 : CUDART_MAJOR == 12 ? 12090 : CUDA_VERSION)

typedef int cudaError_t; /* the driver's code; in addition: */
#define CUDART_INVALID_MEMCPY_DIRECTION 21

/* The body of a function that is one answer. */
#define CUDA_ANSWERS(...)           \
	{                           \
		return __VA_ARGS__; \
	}
#define CUDA_ANSWERS_WITH(variables, ...) \
	{                                 \
		variables;                \
		return __VA_ARGS__;       \
	}

struct cuda_error {
	const char *name, *text;
};
#define CUDA_ERROR_CASE(code, name, text) \
	case code:                        \
		return (struct cuda_error){ #name, text };

/* ---- libcuda.so.1's functions for libcudart (door.c, init.c) ---- */

/* The thread is in that call, unless it is in another, whose name is the answer, or "". */
const char *npusimBegin(const char *call);
/* Ends it with that code, which it answers. The log has a failure of the outermost call, by the
 * code's name (NULL: cuda.h's), at that address of the program. */
CUresult npusimEnd(const char *outer, CUresult code, const char *name, const void *site);
/* Sets the thread's message, after the name of the call it is in, and answers the code. */
CUresult npusimFail(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NOT_SUPPORTED, which the log explains the first time that *told has come. */
CUresult npusimMissing(_Atomic int *told);

/* ---- records ---- */

struct cudaPos {
	size_t x, y, z;
};
struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct cudaExtent {
	size_t width, height, depth;
};
struct cudaMemcpy3DParms {
	void *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	void *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	int kind;
};
struct cudaMemcpy3DPeerParms {
	void *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	int srcDevice;
	void *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	int dstDevice;
	struct cudaExtent extent;
};
struct cudaPointerAttributes {
	enum { CUDART_UNREGISTERED, CUDART_HOST, CUDART_DEVICE, CUDART_MANAGED } type;
	int device;
	void *devicePointer, *hostPointer;
#if CUDART_MAJOR >= 13
	long reserved[8];
#endif
};

/* X(type, field, how many, attribute of the driver that the first has; the others follow) in the
 * order of the record; OLD(...) are those that CUDA 13 has no longer, NEW(...) those that CUDA 11
 * has not. */
#define CUDART_PROPERTIES(X, OLD, NEW)                             \
	X(size_t, sharedMemPerBlock, 1, 8)                         \
	X(int, regsPerBlock, 1, 12)                                \
	X(int, warpSize, 1, 10)                                    \
	X(size_t, memPitch, 1, 11)                                 \
	X(int, maxThreadsPerBlock, 1, 1)                           \
	X(int, maxThreadsDim, 3, 2)                                \
	X(int, maxGridSize, 3, 5)                                  \
	OLD(int, clockRate, 1, 13)                                 \
	X(size_t, totalConstMem, 1, 9)                             \
	X(int, major, 1, 75)                                       \
	X(int, minor, 1, 76)                                       \
	X(size_t, textureAlignment, 1, 14)                         \
	X(size_t, texturePitchAlignment, 1, 51)                    \
	OLD(int, deviceOverlap, 1, 15)                             \
	X(int, multiProcessorCount, 1, 16)                         \
	OLD(int, kernelExecTimeoutEnabled, 1, 17)                  \
	X(int, integrated, 1, 18)                                  \
	X(int, canMapHostMemory, 1, 19)                            \
	OLD(int, computeMode, 1, 20)                               \
	X(int, maxTexture1D, 1, 21)                                \
	X(int, maxTexture1DMipmap, 1, 77)                          \
	OLD(int, maxTexture1DLinear, 1, 69)                        \
	X(int, maxTexture2D, 2, 22)                                \
	X(int, maxTexture2DMipmap, 2, 73)                          \
	X(int, maxTexture2DLinear, 3, 70)                          \
	X(int, maxTexture2DGather, 2, 45)                          \
	X(int, maxTexture3D, 3, 24)                                \
	X(int, maxTexture3DAlt, 3, 47)                             \
	X(int, maxTextureCubemap, 1, 52)                           \
	X(int, maxTexture1DLayered, 2, 42)                         \
	X(int, maxTexture2DLayered, 3, 27)                         \
	X(int, maxTextureCubemapLayered, 2, 53)                    \
	X(int, maxSurface1D, 1, 55)                                \
	X(int, maxSurface2D, 2, 56)                                \
	X(int, maxSurface3D, 3, 58)                                \
	X(int, maxSurface1DLayered, 2, 61)                         \
	X(int, maxSurface2DLayered, 3, 63)                         \
	X(int, maxSurfaceCubemap, 1, 66)                           \
	X(int, maxSurfaceCubemapLayered, 2, 67)                    \
	X(size_t, surfaceAlignment, 1, 30)                         \
	X(int, concurrentKernels, 1, 31)                           \
	X(int, ECCEnabled, 1, 32)                                  \
	X(int, pciBusID, 1, 33)                                    \
	X(int, pciDeviceID, 1, 34)                                 \
	X(int, pciDomainID, 1, 50)                                 \
	X(int, tccDriver, 1, 35)                                   \
	X(int, asyncEngineCount, 1, 40)                            \
	X(int, unifiedAddressing, 1, 41)                           \
	OLD(int, memoryClockRate, 1, 36)                           \
	X(int, memoryBusWidth, 1, 37)                              \
	X(int, l2CacheSize, 1, 38)                                 \
	X(int, persistingL2CacheMaxSize, 1, 108)                   \
	X(int, maxThreadsPerMultiProcessor, 1, 39)                 \
	X(int, streamPrioritiesSupported, 1, 78)                   \
	X(int, globalL1CacheSupported, 1, 79)                      \
	X(int, localL1CacheSupported, 1, 80)                       \
	X(size_t, sharedMemPerMultiprocessor, 1, 81)               \
	X(int, regsPerMultiprocessor, 1, 82)                       \
	X(int, managedMemory, 1, 83)                               \
	X(int, isMultiGpuBoard, 1, 84)                             \
	X(int, multiGpuBoardGroupID, 1, 85)                        \
	X(int, hostNativeAtomicSupported, 1, 86)                   \
	OLD(int, singleToDoublePrecisionPerfRatio, 1, 87)          \
	X(int, pageableMemoryAccess, 1, 88)                        \
	X(int, concurrentManagedAccess, 1, 89)                     \
	X(int, computePreemptionSupported, 1, 90)                  \
	X(int, canUseHostPointerForRegisteredMem, 1, 91)           \
	X(int, cooperativeLaunch, 1, 95)                           \
	OLD(int, cooperativeMultiDeviceLaunch, 1, 96)              \
	X(size_t, sharedMemPerBlockOptin, 1, 97)                   \
	X(int, pageableMemoryAccessUsesHostPageTables, 1, 100)     \
	X(int, directManagedMemAccessFromHost, 1, 101)             \
	X(int, maxBlocksPerMultiProcessor, 1, 106)                 \
	X(int, accessPolicyMaxWindowSize, 1, 109)                  \
	X(size_t, reservedSharedMemPerBlock, 1, 111)               \
	NEW(int, hostRegisterSupported, 1, 99)                     \
	NEW(int, sparseCudaArraySupported, 1, 112)                 \
	NEW(int, hostRegisterReadOnlySupported, 1, 113)            \
	NEW(int, timelineSemaphoreInteropSupported, 1, 114)        \
	NEW(int, memoryPoolsSupported, 1, 115)                     \
	NEW(int, gpuDirectRDMASupported, 1, 116)                   \
	NEW(unsigned int, gpuDirectRDMAFlushWritesOptions, 1, 117) \
	NEW(int, gpuDirectRDMAWritesOrdering, 1, 118)              \
	NEW(unsigned int, memoryPoolSupportedHandleTypes, 1, 119)  \
	NEW(int, deferredMappingCudaArraySupported, 1, 121)        \
	NEW(int, ipcEventSupported, 1, 125)                        \
	NEW(int, clusterLaunch, 1, 120)                            \
	NEW(int, unifiedFunctionPointers, 1, 129)

#define CUDART_FIELD(type, field, count, attribute) type field[count];
#define CUDART_NO_FIELD(type, field, count, attribute)
#if CUDART_MAJOR == 11
#define CUDART_FIELDS(X) CUDART_PROPERTIES(X, X, CUDART_NO_FIELD)
#elif CUDART_MAJOR == 12
#define CUDART_FIELDS(X) CUDART_PROPERTIES(X, X, X)
#else
#define CUDART_FIELDS(X) CUDART_PROPERTIES(X, CUDART_NO_FIELD, X)
#endif
/* A field of one stands as an array of one, which has the same place. */
struct cudaDeviceProp {
	char name[256];
	CUuuid uuid;
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem;
	CUDART_FIELDS(CUDART_FIELD)
#if CUDART_MAJOR == 12
	int reserved[63];
#elif CUDART_MAJOR > 12
	int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
	unsigned int gpuPciDeviceID, gpuPciSubsystemID;
	int hostNumaMultinodeIpcSupported, reserved[56];
#endif
};

#define CALL(name, params, ...) cudaError_t name params;
#define EARLY                   CALL
#define SAME(name, function)    CALL(name, CUDART_PARAMETERS_##function)
#define EARLY_SAME              SAME
#define PAIR(name, check, now, in_stream, arguments, ...) \
	CALL(name, (__VA_ARGS__)) CALL(name##Async, (__VA_ARGS__, CUstream stream))
#include "cudart-list.h"
CUDART_EARLY_SAME(EARLY_SAME)
CUDART_SAME(SAME)
#undef CALL
#undef EARLY
#undef SAME
#undef EARLY_SAME
#undef PAIR

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);

#endif
