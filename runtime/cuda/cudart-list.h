/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart's functions that are one answer of the driver: CALL(name, parameters, answer), in the
 * primary context of the thread's device unless the program has made another one current;
 * EARLY(...), which needs none. In the answers A(ptr) is a CUdeviceptr, OUT(ptr) where one is put.
 * Codes, flags and attributes have the same numbers in both of CUDA's interfaces, handles and
 * records the same layout; only what differs is written out. Parameters are those of CUDART_MAJOR.
 */

/* ---- devices ---- */

EARLY(cudaGetDeviceCount, (int *count), count_devices(count))
EARLY(cudaDriverGetVersion, (int *version), cuDriverGetVersion(version))
EARLY(cudaRuntimeGetVersion, (int *version), GIVE(version, CUDART_VERSION))
EARLY(cudaSetDevice, (int device), switch_to(device))
EARLY(cudaGetDevice, (int *device), GIVE(device, here()))
EARLY(cudaInitDevice, (int device, unsigned int flags, unsigned int is_valid),
      cuDevicePrimaryCtxRetain(&other, device)
	      ?: cuDevicePrimaryCtxSetFlags_v2(device, is_valid ? flags : 0))
EARLY(cudaSetDeviceFlags, (unsigned int flags), cuDevicePrimaryCtxSetFlags_v2(here(), flags))
EARLY(cudaGetDeviceFlags, (unsigned int *flags),
      cuDevicePrimaryCtxGetState(here(), flags, &(int){ 0 }))
EARLY(cudaDeviceReset, (void), cuDevicePrimaryCtxReset_v2(here()))
EARLY(cudaThreadExit, (void), cuDevicePrimaryCtxReset_v2(here()))
EARLY(cudaDeviceGetAttribute, (int *value, int attribute, int device),
      cuDeviceGetAttribute(value, attribute, device))
EARLY(cudaDeviceGetP2PAttribute, (int *value, int attribute, int src, int dst),
      cuDeviceGetP2PAttribute(value, attribute, src, dst))
EARLY(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
      cuDeviceCanAccessPeer(can, device, peer))
EARLY(cudaDeviceGetPCIBusId, (char *id, int length, int device),
      cuDeviceGetPCIBusId(id, length, device))
EARLY(cudaDeviceGetByPCIBusId, (int *device, const char *id), cuDeviceGetByPCIBusId(device, id))
CALL(cudaDeviceSynchronize, (void), cuCtxSynchronize())
CALL(cudaThreadSynchronize, (void), cuCtxSynchronize())
CALL(cudaDeviceGetLimit, (size_t * value, int limit), cuCtxGetLimit(value, limit))
CALL(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit(limit, value))
CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
     cuCtxGetStreamPriorityRange(least, greatest))
CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxEnablePeerAccess(other, flags))
CALL(cudaDeviceDisablePeerAccess, (int peer),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxDisablePeerAccess(other))
CALL(cudaProfilerStart, (void), cuProfilerStart())
CALL(cudaProfilerStop, (void), cuProfilerStop())
EARLY(cudaGetDriverEntryPointByVersion,
      (const char *symbol, void **function, unsigned int version, unsigned long long flags,
       CUdriverProcAddressQueryResult *status),
      cuGetProcAddress_v2(symbol, function, (int)version, flags, status))
#if CUDART_MAJOR == 11
EARLY(cudaGetDriverEntryPoint, (const char *symbol, void **function, unsigned long long flags),
      cuGetProcAddress(symbol, function, CUDART_VERSION, flags))
#else
EARLY(cudaGetDriverEntryPoint,
      (const char *symbol, void **function, unsigned long long flags,
       CUdriverProcAddressQueryResult *status),
      cuGetProcAddress_v2(symbol, function, CUDART_VERSION, flags, status))
#endif

/* ---- memory ---- */

CALL(cudaMemGetInfo, (size_t * free, size_t *total), cuMemGetInfo_v2(free, total))
CALL(cudaMalloc, (void **ptr, size_t size),
     size == 0 ? GIVE(ptr, NULL) : cuMemAlloc_v2(OUT(ptr), size))
CALL(cudaMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height),
     cuMemAllocPitch_v2(OUT(ptr), pitch, width, height, 4))
CALL(cudaMallocManaged, (void **ptr, size_t size, unsigned int flags),
     cuMemAllocManaged(OUT(ptr), size, flags))
CALL(cudaFree, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFree_v2(A(ptr)))
CALL(cudaMallocHost, (void **ptr, size_t size), cuMemAllocHost_v2(ptr, size))
CALL(cudaHostAlloc, (void **ptr, size_t size, unsigned int flags), cuMemHostAlloc(ptr, size, flags))
CALL(cudaFreeHost, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFreeHost(ptr))
CALL(cudaHostRegister, (void *ptr, size_t size, unsigned int flags),
     cuMemHostRegister_v2(ptr, size, flags))
CALL(cudaHostUnregister, (void *ptr), cuMemHostUnregister(ptr))
CALL(cudaHostGetDevicePointer, (void **ptr, void *host, unsigned int flags),
     cuMemHostGetDevicePointer_v2(OUT(ptr), host, flags))
CALL(cudaHostGetFlags, (unsigned int *flags, void *host), cuMemHostGetFlags(flags, host))
CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *ptr),
     describe(out, ptr))
CALL(cudaMemcpy, (void *dst, const void *src, size_t size, int kind),
     check_kind(kind) ?: cuMemcpy(A(dst), A(src), size))
CALL(cudaMemcpyAsync, (void *dst, const void *src, size_t size, int kind, CUstream stream),
     check_kind(kind) ?: cuMemcpyAsync(A(dst), A(src), size, stream))
CALL(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t size),
     check_devices(dst_device, src_device) ?: cuMemcpy(A(dst), A(src), size))
CALL(cudaMemcpyPeerAsync,
     (void *dst, int dst_device, const void *src, int src_device, size_t size, CUstream stream),
     check_devices(dst_device, src_device) ?: cuMemcpyAsync(A(dst), A(src), size, stream))
CALL(cudaMemcpy2D,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
      int kind),
     check_kind(kind) ?: cuMemcpy2DUnaligned_v2(ROWS(dst, dst_pitch, src, src_pitch)))
CALL(cudaMemcpy2DAsync,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
      int kind, CUstream stream),
     check_kind(kind) ?: cuMemcpy2DAsync_v2(ROWS(dst, dst_pitch, src, src_pitch), stream))
CALL(cudaMemcpy3D, (const struct cudaMemcpy3DParms *box),
     check_pointer(box) ?: check_kind(box->kind) ?: cuMemcpy3D_v2(BOX(box)))
CALL(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *box, CUstream stream),
     check_pointer(box) ?: check_kind(box->kind) ?: cuMemcpy3DAsync_v2(BOX(box), stream))
CALL(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *box),
     check_pointer(box)
	     ?: check_devices(box->dstDevice, box->srcDevice) ?: cuMemcpy3D_v2(BOX(box)))
CALL(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *box, CUstream stream),
     check_pointer(box)
	     ?: check_devices(box->dstDevice, box->srcDevice)
	     ?: cuMemcpy3DAsync_v2(BOX(box), stream))
CALL(cudaMemset, (void *ptr, int value, size_t size),
     cuMemsetD8_v2(A(ptr), (unsigned char)value, size))
CALL(cudaMemsetAsync, (void *ptr, int value, size_t size, CUstream stream),
     cuMemsetD8Async(A(ptr), (unsigned char)value, size, stream))
CALL(cudaMemset2D, (void *ptr, size_t pitch, int value, size_t width, size_t height),
     cuMemsetD2D8_v2(A(ptr), pitch, (unsigned char)value, width, height))
CALL(cudaMemset2DAsync,
     (void *ptr, size_t pitch, int value, size_t width, size_t height, CUstream stream),
     cuMemsetD2D8Async(A(ptr), pitch, (unsigned char)value, width, height, stream))

/* ---- what is said of managed memory ---- */

#if CUDART_MAJOR == 13 /* whose functions take a place, as those of _v2 before */
#define cudaMemAdvise_v2        cudaMemAdvise
#define cudaMemPrefetchAsync_v2 cudaMemPrefetchAsync
#else
CALL(cudaMemAdvise, (const void *ptr, size_t count, CUmem_advise advice, int device),
     cuMemAdvise(A(ptr), count, advice, device))
CALL(cudaMemPrefetchAsync, (const void *ptr, size_t count, int device, CUstream stream),
     cuMemPrefetchAsync(A(ptr), count, device, stream))
#endif
CALL(cudaMemAdvise_v2, (const void *ptr, size_t count, CUmem_advise advice, CUmemLocation location),
     cuMemAdvise_v2(A(ptr), count, advice, location))
CALL(cudaMemPrefetchAsync_v2,
     (const void *ptr, size_t count, CUmemLocation location, unsigned int flags, CUstream stream),
     cuMemPrefetchAsync_v2(A(ptr), count, location, flags, stream))
CALL(cudaMemRangeGetAttribute,
     (void *data, size_t size, CUmem_range_attribute attribute, const void *ptr, size_t count),
     cuMemRangeGetAttribute(data, size, attribute, A(ptr), count))
CALL(cudaMemRangeGetAttributes,
     (void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t number, const void *ptr,
      size_t count),
     cuMemRangeGetAttributes(data, sizes, attributes, number, A(ptr), count))

/* ---- sharing ---- */

CALL(cudaIpcGetMemHandle, (CUipcMemHandle * handle, void *ptr), cuIpcGetMemHandle(handle, A(ptr)))
CALL(cudaIpcOpenMemHandle, (void **ptr, CUipcMemHandle handle, unsigned int flags),
     cuIpcOpenMemHandle_v2(OUT(ptr), handle, flags))
CALL(cudaIpcCloseMemHandle, (void *ptr), cuIpcCloseMemHandle(A(ptr)))
CALL(cudaIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event),
     cuIpcGetEventHandle(handle, event))
CALL(cudaIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle),
     cuIpcOpenEventHandle(event, handle))

/* ---- stream-ordered memory ---- */

EARLY(cudaDeviceGetDefaultMemPool, (CUmemoryPool * pool, int device),
      cuDeviceGetDefaultMemPool(pool, device))
EARLY(cudaDeviceGetMemPool, (CUmemoryPool * pool, int device), cuDeviceGetMemPool(pool, device))
EARLY(cudaDeviceSetMemPool, (int device, CUmemoryPool pool), cuDeviceSetMemPool(device, pool))
CALL(cudaMallocAsync, (void **ptr, size_t size, CUstream stream),
     cuMemAllocAsync(OUT(ptr), size, stream))
CALL(cudaMallocFromPoolAsync, (void **ptr, size_t size, CUmemoryPool pool, CUstream stream),
     cuMemAllocFromPoolAsync(OUT(ptr), size, pool, stream))
CALL(cudaFreeAsync, (void *ptr, CUstream stream), cuMemFreeAsync(A(ptr), stream))
CALL(cudaMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props),
     cuMemPoolCreate(pool, props))
CALL(cudaMemPoolDestroy, (CUmemoryPool pool), cuMemPoolDestroy(pool))
CALL(cudaMemPoolTrimTo, (CUmemoryPool pool, size_t keep), cuMemPoolTrimTo(pool, keep))
CALL(cudaMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
     cuMemPoolSetAttribute(pool, attribute, value))
CALL(cudaMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
     cuMemPoolGetAttribute(pool, attribute, value))
CALL(cudaMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count),
     cuMemPoolSetAccess(pool, desc, count))
CALL(cudaMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location),
     cuMemPoolGetAccess(flags, pool, location))
CALL(cudaMemPoolExportToShareableHandle,
     (void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned int flags),
     cuMemPoolExportToShareableHandle(shareable, pool, type, flags))
CALL(cudaMemPoolImportFromShareableHandle,
     (CUmemoryPool * pool, void *shareable, CUmemAllocationHandleType type, unsigned int flags),
     cuMemPoolImportFromShareableHandle(pool, shareable, type, flags))
CALL(cudaMemPoolExportPointer, (CUmemPoolPtrExportData * data, void *ptr),
     cuMemPoolExportPointer(data, A(ptr)))
CALL(cudaMemPoolImportPointer, (void **ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data),
     cuMemPoolImportPointer(OUT(ptr), pool, data))

/* ---- streams and events ---- */

CALL(cudaStreamCreate, (CUstream * stream), cuStreamCreate(stream, 0))
CALL(cudaStreamCreateWithFlags, (CUstream * stream, unsigned int flags),
     cuStreamCreate(stream, flags))
CALL(cudaStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
     cuStreamCreateWithPriority(stream, flags, priority))
CALL(cudaStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
CALL(cudaStreamSynchronize, (CUstream stream), cuStreamSynchronize(stream))
CALL(cudaStreamQuery, (CUstream stream), cuStreamQuery(stream))
CALL(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
     cuStreamWaitEvent(stream, event, flags))
CALL(cudaStreamGetFlags, (CUstream stream, unsigned int *flags), cuStreamGetFlags(stream, flags))
CALL(cudaStreamGetPriority, (CUstream stream, int *priority), cuStreamGetPriority(stream, priority))
CALL(cudaStreamGetId, (CUstream stream, unsigned long long *id), cuStreamGetId(stream, id))
CALL(cudaStreamIsCapturing, (CUstream stream, int *status), cuStreamIsCapturing(stream, status))
CALL(cudaStreamAttachMemAsync, (CUstream stream, void *ptr, size_t length, unsigned int flags),
     cuStreamAttachMemAsync(stream, A(ptr), length, flags))
CALL(cudaStreamAddCallback,
     (CUstream stream, CUstreamCallback function, void *user_data, unsigned int flags),
     cuStreamAddCallback(stream, function, user_data, flags))
CALL(cudaLaunchHostFunc, (CUstream stream, CUhostFn function, void *user_data),
     cuLaunchHostFunc(stream, function, user_data))
EARLY(cudaThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
      cuThreadExchangeStreamCaptureMode(mode))
CALL(cudaEventCreate, (CUevent * event), cuEventCreate(event, 0))
CALL(cudaEventCreateWithFlags, (CUevent * event, unsigned int flags), cuEventCreate(event, flags))
CALL(cudaEventRecord, (CUevent event, CUstream stream), cuEventRecord(event, stream))
CALL(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
     cuEventRecordWithFlags(event, stream, flags))
CALL(cudaEventQuery, (CUevent event), cuEventQuery(event))
CALL(cudaEventSynchronize, (CUevent event), cuEventSynchronize(event))
CALL(cudaEventDestroy, (CUevent event), cuEventDestroy_v2(event))
CALL(cudaEventElapsedTime, (float *ms, CUevent start, CUevent end),
     cuEventElapsedTime(ms, start, end))
CALL(cudaEventElapsedTime_v2, (float *ms, CUevent start, CUevent end),
     cuEventElapsedTime(ms, start, end))
