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
#define CUDART_FIELDS(X)
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

#define CUDART_FIELD(type, field, count, attribute) type field[count];
/* What is in between, CUDART_FIELDS(X), cudart-properties.txt has, for each version. A field of one
 * stands as an array of one, which has the same place. */
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
