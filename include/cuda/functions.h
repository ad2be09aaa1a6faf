/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the driver API that npusim models, in one list: X(symbol, version of CUDA since
 * which its name means it, parameters). The name, under which cuGetProcAddress knows it, is the
 * symbol without _v and a number. Included by cuda.h, which makes prototypes of it.
 */
#ifndef NPUSIM_CUDA_FUNCTIONS_H
#define NPUSIM_CUDA_FUNCTIONS_H

#define CUDA_FUNCTIONS_BASE(X)                                                                     \
	X(cuInit, 2000, (unsigned int flags))                                                      \
	X(cuDriverGetVersion, 2020, (int *version))                                                \
	X(cuGetErrorName, 6000, (CUresult error, const char **name))                               \
	X(cuGetErrorString, 6000, (CUresult error, const char **text))                             \
	X(cuGetProcAddress, 11030,                                                                 \
	  (const char *symbol, void **function, int version, uint64_t flags))                      \
	X(cuGetProcAddress_v2, 12000,                                                              \
	  (const char *symbol, void **function, int version, uint64_t flags,                       \
	   CUdriverProcAddressQueryResult *status))                                                \
	X(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                     \
	X(cuDeviceGetCount, 2000, (int *count))                                                    \
	X(cuDeviceGetName, 2000, (char *name, int length, CUdevice device))                        \
	X(cuDeviceGetUuid, 9020, (CUuuid * uuid, CUdevice device))                                 \
	X(cuDeviceGetUuid_v2, 11040, (CUuuid * uuid, CUdevice device))                             \
	X(cuDeviceTotalMem_v2, 3020, (size_t * bytes, CUdevice device))                            \
	X(cuDeviceGetAttribute, 2000, (int *value, CUdevice_attribute attribute, CUdevice device)) \
	X(cuDeviceComputeCapability, 2000, (int *major, int *minor, CUdevice device))              \
	X(cuDeviceCanAccessPeer, 4000, (int *can, CUdevice device, CUdevice peer))                 \
	X(cuDeviceGetP2PAttribute, 8000,                                                           \
	  (int *value, CUdevice_P2PAttribute attribute, CUdevice src, CUdevice dst))               \
	X(cuDeviceGetPCIBusId, 4010, (char *id, int length, CUdevice device))                      \
	X(cuDeviceGetByPCIBusId, 4010, (CUdevice * device, const char *id))                        \
	X(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                  \
	X(cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))                                  \
	X(cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device))                                    \
	X(cuDevicePrimaryCtxSetFlags_v2, 11000, (CUdevice device, unsigned int flags))             \
	X(cuDevicePrimaryCtxGetState, 7000, (CUdevice device, unsigned int *flags, int *active))   \
	X(cuCtxCreate_v2, 3020, (CUcontext * context, unsigned int flags, CUdevice device))        \
	X(cuCtxCreate_v3, 11040,                                                                   \
	  (CUcontext * context, void *affinity, int affinities, unsigned int flags,                \
	   CUdevice device))                                                                       \
	X(cuCtxCreate_v4, 12050,                                                                   \
	  (CUcontext * context, void *params, unsigned int flags, CUdevice device))                \
	X(cuCtxDestroy_v2, 4000, (CUcontext context))                                              \
	X(cuCtxPushCurrent_v2, 4000, (CUcontext context))                                          \
	X(cuCtxPopCurrent_v2, 4000, (CUcontext * context))                                         \
	X(cuCtxSetCurrent, 4000, (CUcontext context))                                              \
	X(cuCtxGetCurrent, 4000, (CUcontext * context))                                            \
	X(cuCtxGetDevice, 2000, (CUdevice * device))                                               \
	X(cuCtxGetFlags, 7000, (unsigned int *flags))                                              \
	X(cuCtxGetId, 12000, (CUcontext context, unsigned long long *id))                          \
	X(cuCtxSynchronize, 2000, (void))                                                          \
	X(cuProfilerInitialize, 4000, (const char *config, const char *output, int mode))          \
	X(cuProfilerStart, 4000, (void))                                                           \
	X(cuProfilerStop, 4000, (void))                                                            \
	X(cuCtxGetApiVersion, 3020, (CUcontext context, unsigned int *version))                    \
	X(cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))                          \
	X(cuCtxEnablePeerAccess, 4000, (CUcontext peer, unsigned int flags))                       \
	X(cuCtxDisablePeerAccess, 4000, (CUcontext peer))

#define CUDA_FUNCTIONS_STREAM(X)                                                                   \
	X(cuStreamCreate, 2000, (CUstream * stream, unsigned int flags))                           \
	X(cuStreamCreateWithPriority, 5050, (CUstream * stream, unsigned int flags, int priority)) \
	X(cuStreamDestroy_v2, 4000, (CUstream stream))                                             \
	X(cuStreamQuery, 2000, (CUstream stream))                                                  \
	X(cuStreamSynchronize, 2000, (CUstream stream))                                            \
	X(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned int flags))           \
	X(cuStreamGetFlags, 5050, (CUstream stream, unsigned int *flags))                          \
	X(cuStreamGetPriority, 5050, (CUstream stream, int *priority))                             \
	X(cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))                            \
	X(cuStreamIsCapturing, 10000, (CUstream stream, int *status))                              \
	X(cuStreamAddCallback, 5000,                                                               \
	  (CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags))       \
	X(cuLaunchHostFunc, 10000, (CUstream stream, CUhostFn function, void *user_data))          \
	X(cuEventCreate, 2000, (CUevent * event, unsigned int flags))                              \
	X(cuEventDestroy_v2, 4000, (CUevent event))                                                \
	X(cuEventRecord, 2000, (CUevent event, CUstream stream))                                   \
	X(cuEventRecordWithFlags, 11010, (CUevent event, CUstream stream, unsigned int flags))     \
	X(cuEventQuery, 2000, (CUevent event))                                                     \
	X(cuEventSynchronize, 2000, (CUevent event))                                               \
	X(cuEventElapsedTime, 2000, (float *ms, CUevent start, CUevent end))                       \
	X(cuEventElapsedTime_v2, 12080, (float *ms, CUevent start, CUevent end))

#define CUDA_FUNCTIONS_MEMORY(X)                                                                   \
	X(cuMemGetInfo_v2, 3020, (size_t * free, size_t * total))                                  \
	X(cuMemAlloc_v2, 3020, (CUdeviceptr * ptr, size_t size))                                   \
	X(cuMemAllocPitch_v2, 3020,                                                                \
	  (CUdeviceptr * ptr, size_t * pitch, size_t width, size_t height, unsigned int element))  \
	X(cuMemFree_v2, 3020, (CUdeviceptr ptr))                                                   \
	X(cuMemAllocManaged, 6000, (CUdeviceptr * ptr, size_t size, unsigned int flags))           \
	X(cuMemGetAddressRange_v2, 3020, (CUdeviceptr * base, size_t * size, CUdeviceptr ptr))     \
	X(cuMemAllocHost_v2, 3020, (void **ptr, size_t size))                                      \
	X(cuMemFreeHost, 2000, (void *ptr))                                                        \
	X(cuMemHostAlloc, 2020, (void **ptr, size_t size, unsigned int flags))                     \
	X(cuMemHostGetDevicePointer_v2, 3020, (CUdeviceptr * ptr, void *host, unsigned int flags)) \
	X(cuMemHostGetFlags, 2030, (unsigned int *flags, void *host))                              \
	X(cuMemHostRegister_v2, 6050, (void *host, size_t size, unsigned int flags))               \
	X(cuMemHostUnregister, 4000, (void *host))                                                 \
	X(cuPointerGetAttribute, 4000,                                                             \
	  (void *data, CUpointer_attribute attribute, CUdeviceptr ptr))                            \
	X(cuPointerGetAttributes, 7000,                                                            \
	  (unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr))     \
	X(cuPointerSetAttribute, 6000,                                                             \
	  (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr))

#define CUDA_FUNCTIONS_COPY(X)                                                                     \
	X(cuMemcpy, 4000, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))                        \
	X(cuMemcpyPeer, 4000,                                                                      \
	  (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,         \
	   size_t bytes))                                                                          \
	X(cuMemcpyHtoD_v2, 3020, (CUdeviceptr dst, const void *src, size_t bytes))                 \
	X(cuMemcpyDtoH_v2, 3020, (void *dst, CUdeviceptr src, size_t bytes))                       \
	X(cuMemcpyDtoD_v2, 3020, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))                 \
	X(cuMemcpy2D_v2, 3020, (const CUDA_MEMCPY2D *copy))                                        \
	X(cuMemcpy2DUnaligned_v2, 3020, (const CUDA_MEMCPY2D *copy))                               \
	X(cuMemcpyAsync, 4000, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))  \
	X(cuMemcpyPeerAsync, 4000,                                                                 \
	  (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,         \
	   size_t bytes, CUstream stream))                                                         \
	X(cuMemcpyHtoDAsync_v2, 3020,                                                              \
	  (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))                       \
	X(cuMemcpyDtoHAsync_v2, 3020, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoDAsync_v2, 3020,                                                              \
	  (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                       \
	X(cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D *copy, CUstream stream))                  \
	X(cuMemsetD8_v2, 3020, (CUdeviceptr dst, unsigned char value, size_t count))               \
	X(cuMemsetD16_v2, 3020, (CUdeviceptr dst, unsigned short value, size_t count))             \
	X(cuMemsetD32_v2, 3020, (CUdeviceptr dst, unsigned int value, size_t count))               \
	X(cuMemsetD2D8_v2, 3020,                                                                   \
	  (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height))       \
	X(cuMemsetD2D16_v2, 3020,                                                                  \
	  (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height))      \
	X(cuMemsetD2D32_v2, 3020,                                                                  \
	  (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height))        \
	X(cuMemsetD8Async, 3020,                                                                   \
	  (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))                   \
	X(cuMemsetD16Async, 3020,                                                                  \
	  (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream))                  \
	X(cuMemsetD32Async, 3020,                                                                  \
	  (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream))                    \
	X(cuMemsetD2D8Async, 3020,                                                                 \
	  (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,        \
	   CUstream stream))                                                                       \
	X(cuMemsetD2D16Async, 3020,                                                                \
	  (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,       \
	   CUstream stream))                                                                       \
	X(cuMemsetD2D32Async, 3020,                                                                \
	  (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,         \
	   CUstream stream))

#define CUDA_FUNCTIONS_VMM(X)                                                                      \
	X(cuMemAddressReserve, 10020,                                                              \
	  (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr addr,                     \
	   unsigned long long flags))                                                              \
	X(cuMemAddressFree, 10020, (CUdeviceptr ptr, size_t size))                                 \
	X(cuMemCreate, 10020,                                                                      \
	  (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,    \
	   unsigned long long flags))                                                              \
	X(cuMemRelease, 10020, (CUmemGenericAllocationHandle handle))                              \
	X(cuMemMap, 10020,                                                                         \
	  (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,       \
	   unsigned long long flags))                                                              \
	X(cuMemUnmap, 10020, (CUdeviceptr ptr, size_t size))                                       \
	X(cuMemSetAccess, 10020,                                                                   \
	  (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count))               \
	X(cuMemGetAccess, 10020,                                                                   \
	  (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr))             \
	X(cuMemGetAllocationGranularity, 10020,                                                    \
	  (size_t * granularity, const CUmemAllocationProp *prop,                                  \
	   CUmemAllocationGranularity_flags option))                                               \
	X(cuMemGetAllocationPropertiesFromHandle, 10020,                                           \
	  (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle))                       \
	X(cuMemRetainAllocationHandle, 11000, (CUmemGenericAllocationHandle * handle, void *addr)) \
	X(cuMemExportToShareableHandle, 10020,                                                     \
	  (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,   \
	   unsigned long long flags))                                                              \
	X(cuMemImportFromShareableHandle, 10020,                                                   \
	  (CUmemGenericAllocationHandle * handle, void *shareable,                                 \
	   CUmemAllocationHandleType type))

#define CUDA_FUNCTIONS(X)        \
	CUDA_FUNCTIONS_BASE(X)   \
	CUDA_FUNCTIONS_STREAM(X) \
	CUDA_FUNCTIONS_MEMORY(X) \
	CUDA_FUNCTIONS_COPY(X)   \
	CUDA_FUNCTIONS_VMM(X)

#endif
