/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart: CUDA's runtime API on top of libcuda.so.1, which does and checks everything; the
 * functions of cudart-list.h are its own. Built once for each major version of CUDA. Owns each
 * thread's device and last error, and nothing else.
 */
#include "cudart.h"

#include <string.h>

#define EXPORT    __attribute__((visibility("default")))
#define KIND_LAST 4 /* cudaMemcpyDefault */

static __thread int current_device;
static __thread cudaError_t last_error;

/* ---- errors ---- */

static struct cuda_error find_error(cudaError_t code)
{
	switch (code) {
		CUDART_ERRORS(CUDA_ERROR_CASE)
	default:
		return (struct cuda_error){ "unrecognized error code", "unrecognized error code" };
	}
}

EXPORT const char *cudaGetErrorName(cudaError_t error) CUDA_ANSWERS(find_error(error).name);
EXPORT const char *cudaGetErrorString(cudaError_t error) CUDA_ANSWERS(find_error(error).text);
EXPORT cudaError_t cudaPeekAtLastError(void) CUDA_ANSWERS(last_error);

EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t code = last_error;

	last_error = 0;
	return code;
}

static cudaError_t done(const char *outer, CUresult code, const void *site)
{
	npusimEnd(outer, code, find_error((cudaError_t)code).name, site);
	if (code != CUDA_SUCCESS)
		last_error = (cudaError_t)code;
	return (cudaError_t)code;
}

/* ---- devices ---- */

/* A reference on the primary context for each time that a thread comes to the device from another:
 * cudaDeviceReset ends them all. */
static CUresult switch_to(int device)
{
	CUcontext before = NULL, context = NULL;
	CUresult code = cuCtxGetCurrent(&before) ?: cuDevicePrimaryCtxRetain(&context, device);

	code = code
		       ?: (context == before ? cuDevicePrimaryCtxRelease_v2(device)
					     : cuCtxSetCurrent(context));
	if (code == CUDA_SUCCESS)
		current_device = device;
	return code;
}

/* A context that the program made current itself is left alone. */
static CUresult enter(void)
{
	CUcontext context = NULL;
	CUresult code = cuInit(0) ?: cuCtxGetCurrent(&context);

	return code != CUDA_SUCCESS || context != NULL ? code : switch_to(current_device);
}

/* The device of the current context, whoever made it so. */
static int here(void)
{
	CUcontext context = NULL;
	int device = current_device;

	if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL)
		cuCtxGetDevice(&device);
	return device;
}

static CUresult check_pointer(const void *pointer)
{
	return pointer != NULL ? CUDA_SUCCESS
			       : npusimFail(CUDA_ERROR_INVALID_VALUE, "a pointer is NULL");
}

static CUresult count_devices(int *out)
{
	CUresult code = cuDeviceGetCount(out);

	return code == CUDA_SUCCESS && *out == 0 ? CUDA_ERROR_NO_DEVICE : code;
}

static CUresult check_devices(int first, int second)
{
	int device;

	return cuDeviceGet(&device, first) ?: cuDeviceGet(&device, second);
}

/* The first `size` bytes of the record: CUDA 12 has the function of CUDA 11 too, whose record is
 * the beginning of its own. */
static CUresult describe_device(struct cudaDeviceProp *out, size_t size, int device)
{
	static const struct {
		size_t at, size;
		int count, attribute;
	} fields[] = {
#define PLACE(type, field, count, attribute) \
	{ offsetof(struct cudaDeviceProp, field), sizeof(type), count, attribute },
		CUDART_FIELDS(PLACE)
	};
	size_t total = 0;
	CUresult code = check_pointer(out) ?: cuDeviceTotalMem_v2(&total, device);
	if (code != CUDA_SUCCESS)
		return code;
	memset(out, 0, size);
	out->totalGlobalMem = total;
	code = cuDeviceGetName(out->name, sizeof(out->name), device)
		       ?: cuDeviceGetUuid_v2(&out->uuid, device);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		for (int j = 0; fields[i].at < size && j < fields[i].count; j++) {
			char *to = (char *)out + fields[i].at + (size_t)j * fields[i].size;
			int value = 0;

			code = code
				       ?: cuDeviceGetAttribute(&value, fields[i].attribute + j,
							       device);
			memcpy(to, &(size_t){ (size_t)value }, fields[i].size); /* little-endian */
		}
	return code;
}

/* What a multiprocessor holds at once by the device's limits: the registers and the shared memory
 * of the kernel itself, whose code is not here, count as none. */
static CUresult count_blocks(int *out, const void *kernel, int threads, size_t shared,
			     unsigned int flags)
{
	struct cudaDeviceProp of;
	int room, warp, most;
	CUresult code = check_pointer(out) ?: check_pointer(kernel)
			?: describe_device(&of, sizeof(of), here());

	if (code == CUDA_SUCCESS && (threads <= 0 || flags > 1))
		code = npusimFail(CUDA_ERROR_INVALID_VALUE,
				  "blockSize %d, flags %u: it must be above 0, they 0 or 1",
				  threads, flags);
	if (code != CUDA_SUCCESS)
		return code;
	*out = 0;
	if (threads > *of.maxThreadsPerBlock || shared > *of.sharedMemPerBlockOptin)
		return CUDA_SUCCESS;
	warp = *of.warpSize;
	most = *of.maxThreadsPerMultiProcessor / ((threads + warp - 1) / warp * warp);
	room = (int)(*of.sharedMemPerMultiprocessor / (shared + *of.reservedSharedMemPerBlock));
	most = most < room ? most : room;
	*out = most < *of.maxBlocksPerMultiProcessor ? most : *of.maxBlocksPerMultiProcessor;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult check_kind(int kind)
{
	return kind >= 0 && kind <= KIND_LAST
		       ? CUDA_SUCCESS
		       : npusimFail((CUresult)CUDART_INVALID_MEMCPY_DIRECTION,
				    "kind is %d; known are 0 to %d", kind, KIND_LAST);
}

static CUresult describe(struct cudaPointerAttributes *out, const void *ptr)
{
	CUpointer_attribute asked[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
					CU_POINTER_ATTRIBUTE_HOST_POINTER };
	struct cudaPointerAttributes found = { 0 };
	int type = 0, managed = 0;
	void *answers[] = { &type, &managed, &found.device, &found.devicePointer,
			    &found.hostPointer };
	CUresult code =
		check_pointer(out) ?: cuPointerGetAttributes(5, asked, answers, (uintptr_t)ptr);

	if (code != CUDA_SUCCESS)
		return code;
	if (managed)
		found.type = CUDART_MANAGED;
	else if (type == CU_MEMORYTYPE_HOST)
		found.type = CUDART_HOST;
	else if (type == CU_MEMORYTYPE_DEVICE)
		found.type = CUDART_DEVICE;
	*out = found;
	return CUDA_SUCCESS;
}

#define A(ptr)   ((CUdeviceptr)(uintptr_t)(ptr))
#define OUT(ptr) ((CUdeviceptr *)(void *)(ptr))

static CUresult allocate_box(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	struct cudaPitchedPtr made = { .xsize = extent.width, .ysize = extent.height };
	size_t rows;
	CUresult code = check_pointer(out);

	if (code == CUDA_SUCCESS && __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (code == CUDA_SUCCESS && extent.width != 0 && rows != 0)
		code = cuMemAllocPitch_v2(OUT(&made.ptr), &made.pitch, extent.width, rows, 4);
	if (code == CUDA_SUCCESS)
		*out = made;
	return code;
}

/* stream: NULL for a synchronous call. */
static CUresult fill_box(struct cudaPitchedPtr at, int value, struct cudaExtent extent,
			 const CUstream *stream)
{
	CUresult code = CUDA_SUCCESS;

	for (size_t z = 0; z < extent.depth && code == CUDA_SUCCESS; z++) {
		CUdeviceptr to = A(at.ptr) + z * at.pitch * at.ysize;
		unsigned char byte = (unsigned char)value;

		code = stream == NULL
			       ? cuMemsetD2D8_v2(to, at.pitch, byte, extent.width, extent.height)
			       : cuMemsetD2D8Async(to, at.pitch, byte, extent.width, extent.height,
						   *stream);
	}
	return code;
}

/* ---- the functions ---- */

#define GIVE(out, value) (check_pointer(out) ?: (*(out) = (value), CUDA_SUCCESS))
#define ROWS(dst, dst_pitch, src, src_pitch)                       \
	(&(CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_UNIFIED, \
			   .srcDevice = A(src),                    \
			   .srcPitch = src_pitch,                  \
			   .dstMemoryType = CU_MEMORYTYPE_UNIFIED, \
			   .dstDevice = A(dst),                    \
			   .dstPitch = dst_pitch,                  \
			   .WidthInBytes = width,                  \
			   .Height = height })

/* What cudaMemcpy3DParms and cudaMemcpy3DPeerParms have in common. */
#define SIDE(box, side)                                                                       \
	.side##XInBytes = (box)->side##Pos.x, .side##Y = (box)->side##Pos.y,                  \
	.side##Z = (box)->side##Pos.z,                                                        \
	.side##MemoryType = (box)->side##Array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED, \
	.side##Device = A((box)->side##Ptr.ptr), .side##Pitch = (box)->side##Ptr.pitch,       \
	.side##Height = (box)->side##Ptr.ysize
#define BOX(box)                                                                                \
	(&(CUDA_MEMCPY3D){ SIDE(box, src), SIDE(box, dst), .WidthInBytes = (box)->extent.width, \
			   .Height = (box)->extent.height, .Depth = (box)->extent.depth })

#define ANSWER(first, name, ...)                                                         \
	{                                                                                \
		CUcontext other __attribute__((unused)) = NULL;                          \
		const char *outer = npusimBegin(#name);                                  \
                                                                                         \
		return done(outer, first ?: (__VA_ARGS__), __builtin_return_address(0)); \
	}
#define CALL(name, params, ...)  EXPORT cudaError_t name params ANSWER(enter(), name, __VA_ARGS__)
#define EARLY(name, params, ...) EXPORT cudaError_t name params ANSWER(cuInit(0), name, __VA_ARGS__)
#define SAME(name, function) \
	CALL(name, CUDART_PARAMETERS_##function, function CUDART_ARGUMENTS_##function)
#define WITH_STREAM(...) (__VA_ARGS__, stream)
#define PAIR(name, check, now, in_stream, arguments, ...) \
	CALL(name, (__VA_ARGS__), check ?: now arguments) \
	CALL(name##Async, (__VA_ARGS__, CUstream stream), check ?: in_stream WITH_STREAM arguments)
#define EARLY_SAME(name, function) \
	EARLY(name, CUDART_PARAMETERS_##function, function CUDART_ARGUMENTS_##function)
#if CUDART_MAJOR == 12
#define FIRST_BYTES offsetof(struct cudaDeviceProp, hostRegisterSupported)
#else
#define FIRST_BYTES sizeof(struct cudaDeviceProp)
#endif
#include "cudart-list.h"
CUDART_EARLY_SAME(EARLY_SAME)
CUDART_SAME(SAME)

/* A record that is returned in memory, which a function that is not modelled would not give. */
struct cudaChannelFormatDesc {
	int x, y, z, w, kind;
};
EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind);
EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
	CUDA_ANSWERS((struct cudaChannelFormatDesc){ x, y, z, w, kind });

/* ---- kernels ---- */

/* What programs of nvcc call before main(), and around a launch: they may have kernels, and fail
 * when they launch one. */
#define HARMLESS(name)          \
	EXPORT long name(void); \
	EXPORT long name(void) CUDA_ANSWERS(0)
CUDART_HARMLESS(HARMLESS)

EXPORT void **__cudaRegisterFatBinary(void);
EXPORT void **__cudaRegisterFatBinary(void)
{
	static void *handle;

	return &handle;
}

/* ---- not modelled ---- */

#define MISSING(name)                                                                  \
	EXPORT cudaError_t name(void);                                                 \
	EXPORT cudaError_t name(void)                                                  \
	{                                                                              \
		static _Atomic int told;                                               \
		const char *outer = npusimBegin(#name);                                \
                                                                                       \
		return done(outer, npusimMissing(&told), __builtin_return_address(0)); \
	}
CUDART_UNMODELLED(MISSING)

/* ---- for a default stream a thread, which is the one default stream here ---- */

#define TWIN(name, suffix) \
	extern __typeof__(name) name##suffix __attribute__((alias(#name), visibility("default")));
CUDART_TWINS(TWIN)
