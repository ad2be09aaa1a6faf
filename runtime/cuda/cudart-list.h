/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart's functions that are one answer of the driver: CALL(name, parameters, answer), in the
 * primary context of the thread's device unless the program has made another one current;
 * EARLY(...), which needs none. SAME and EARLY_SAME(name, function): the driver's function, whose
 * device pointers are void *. PAIR(name, check, function, function_async, arguments,
 * parameters...): name, and name##Async in a stream. In the answers A(ptr) is a CUdeviceptr,
 * OUT(ptr) where one is put. Codes, flags and attributes have the same numbers in both of CUDA's
 * interfaces, handles and records the same layout; only what differs is written out. Parameters are
 * those of CUDART_MAJOR.
 */

EARLY(cudaGetDeviceCount, (int *count), count_devices(count))
EARLY_SAME(cudaDriverGetVersion, cuDriverGetVersion)
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
EARLY_SAME(cudaDeviceGetAttribute, cuDeviceGetAttribute)
EARLY_SAME(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute)
EARLY_SAME(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer)
EARLY_SAME(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId)
EARLY_SAME(cudaDeviceGetByPCIBusId, cuDeviceGetByPCIBusId)
SAME(cudaDeviceSynchronize, cuCtxSynchronize)
SAME(cudaThreadSynchronize, cuCtxSynchronize)
SAME(cudaDeviceGetLimit, cuCtxGetLimit)
SAME(cudaDeviceSetLimit, cuCtxSetLimit)
SAME(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange)
CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxEnablePeerAccess(other, flags))
CALL(cudaDeviceDisablePeerAccess, (int peer),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxDisablePeerAccess(other))
SAME(cudaProfilerStart, cuProfilerStart)
SAME(cudaProfilerStop, cuProfilerStop)
EARLY_SAME(cudaGetDriverEntryPointByVersion, cuGetProcAddress_v2)
#if CUDART_MAJOR == 11
EARLY(cudaGetDriverEntryPoint, (const char *symbol, void **function, unsigned long long flags),
      cuGetProcAddress(symbol, function, CUDART_VERSION, flags))
#else
EARLY(cudaGetDriverEntryPoint,
      (const char *symbol, void **function, unsigned long long flags,
       CUdriverProcAddressQueryResult *status),
      cuGetProcAddress_v2(symbol, function, CUDART_VERSION, flags, status))
#endif
SAME(cudaMemGetInfo, cuMemGetInfo_v2)
CALL(cudaMalloc, (void **ptr, size_t size),
     size == 0 ? GIVE(ptr, NULL) : cuMemAlloc_v2(OUT(ptr), size))
CALL(cudaMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height),
     cuMemAllocPitch_v2(OUT(ptr), pitch, width, height, 4))
SAME(cudaMallocManaged, cuMemAllocManaged)
CALL(cudaFree, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFree_v2(A(ptr)))
SAME(cudaMallocHost, cuMemAllocHost_v2)
SAME(cudaHostAlloc, cuMemHostAlloc)
CALL(cudaFreeHost, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFreeHost(ptr))
SAME(cudaHostRegister, cuMemHostRegister_v2)
SAME(cudaHostUnregister, cuMemHostUnregister)
SAME(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2)
SAME(cudaHostGetFlags, cuMemHostGetFlags)
CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *ptr),
     describe(out, ptr))
PAIR(cudaMemcpy, check_kind(kind), cuMemcpy, cuMemcpyAsync, (A(dst), A(src), size), void *dst,
     const void *src, size_t size, int kind)
PAIR(cudaMemcpyPeer, check_devices(dst_device, src_device), cuMemcpy, cuMemcpyAsync,
     (A(dst), A(src), size), void *dst, int dst_device, const void *src, int src_device,
     size_t size)
PAIR(cudaMemcpy2D, check_kind(kind), cuMemcpy2D_v2, cuMemcpy2DAsync_v2,
     (ROWS(dst, dst_pitch, src, src_pitch)), void *dst, size_t dst_pitch, const void *src,
     size_t src_pitch, size_t width, size_t height, int kind)
PAIR(cudaMemcpy3D, check_pointer(box) ?: check_kind(box->kind), cuMemcpy3D_v2, cuMemcpy3DAsync_v2,
     (BOX(box)), const struct cudaMemcpy3DParms *box)
PAIR(cudaMemcpy3DPeer, check_pointer(box) ?: check_devices(box->dstDevice, box->srcDevice),
     cuMemcpy3D_v2, cuMemcpy3DAsync_v2, (BOX(box)), const struct cudaMemcpy3DPeerParms *box)
PAIR(cudaMemset, CUDA_SUCCESS, cuMemsetD8_v2, cuMemsetD8Async, (A(ptr), (unsigned char)value, size),
     void *ptr, int value, size_t size)
PAIR(cudaMemset2D, CUDA_SUCCESS, cuMemsetD2D8_v2, cuMemsetD2D8Async,
     (A(ptr), pitch, (unsigned char)value, width, height), void *ptr, size_t pitch, int value,
     size_t width, size_t height)
CALL(cudaMalloc3D, (struct cudaPitchedPtr * out, struct cudaExtent extent),
     allocate_box(out, extent))
CALL(cudaMemset3D, (struct cudaPitchedPtr at, int value, struct cudaExtent extent),
     fill_box(at, value, extent, NULL))
CALL(cudaMemset3DAsync,
     (struct cudaPitchedPtr at, int value, struct cudaExtent extent, CUstream stream),
     fill_box(at, value, extent, &stream))
#if CUDART_MAJOR == 13 /* whose functions take a place, as those of _v2 before */
#define cudaMemAdvise_v2        cudaMemAdvise
#define cudaMemPrefetchAsync_v2 cudaMemPrefetchAsync
SAME(cudaMemcpyBatchAsync, cuMemcpyBatchAsync_v2)
#else
SAME(cudaMemcpyBatchAsync, cuMemcpyBatchAsync)
SAME(cudaMemAdvise, cuMemAdvise)
SAME(cudaMemPrefetchAsync, cuMemPrefetchAsync)
#endif
SAME(cudaMemAdvise_v2, cuMemAdvise_v2)
SAME(cudaMemPrefetchAsync_v2, cuMemPrefetchAsync_v2)
SAME(cudaMemRangeGetAttribute, cuMemRangeGetAttribute)
SAME(cudaMemRangeGetAttributes, cuMemRangeGetAttributes)
SAME(cudaIpcGetMemHandle, cuIpcGetMemHandle)
SAME(cudaIpcOpenMemHandle, cuIpcOpenMemHandle_v2)
SAME(cudaIpcCloseMemHandle, cuIpcCloseMemHandle)
SAME(cudaIpcGetEventHandle, cuIpcGetEventHandle)
SAME(cudaIpcOpenEventHandle, cuIpcOpenEventHandle)
EARLY_SAME(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)
EARLY_SAME(cudaDeviceGetMemPool, cuDeviceGetMemPool)
EARLY_SAME(cudaDeviceSetMemPool, cuDeviceSetMemPool)
SAME(cudaMallocAsync, cuMemAllocAsync)
SAME(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync)
SAME(cudaFreeAsync, cuMemFreeAsync)
SAME(cudaMemPoolCreate, cuMemPoolCreate)
SAME(cudaMemPoolDestroy, cuMemPoolDestroy)
SAME(cudaMemPoolTrimTo, cuMemPoolTrimTo)
SAME(cudaMemPoolSetAttribute, cuMemPoolSetAttribute)
SAME(cudaMemPoolGetAttribute, cuMemPoolGetAttribute)
SAME(cudaMemPoolSetAccess, cuMemPoolSetAccess)
SAME(cudaMemPoolGetAccess, cuMemPoolGetAccess)
CALL(cudaMemPoolExportToShareableHandle,
     (void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned int flags),
     cuMemPoolExportToShareableHandle(shareable, pool, type, flags))
CALL(cudaMemPoolImportFromShareableHandle,
     (CUmemoryPool * pool, void *shareable, CUmemAllocationHandleType type, unsigned int flags),
     cuMemPoolImportFromShareableHandle(pool, shareable, type, flags))
SAME(cudaMemPoolExportPointer, cuMemPoolExportPointer)
SAME(cudaMemPoolImportPointer, cuMemPoolImportPointer)
CALL(cudaStreamCreate, (CUstream * stream), cuStreamCreate(stream, 0))
SAME(cudaStreamCreateWithFlags, cuStreamCreate)
SAME(cudaStreamCreateWithPriority, cuStreamCreateWithPriority)
SAME(cudaStreamDestroy, cuStreamDestroy_v2)
SAME(cudaStreamSynchronize, cuStreamSynchronize)
SAME(cudaStreamQuery, cuStreamQuery)
SAME(cudaStreamWaitEvent, cuStreamWaitEvent)
SAME(cudaStreamGetFlags, cuStreamGetFlags)
SAME(cudaStreamGetPriority, cuStreamGetPriority)
SAME(cudaStreamGetId, cuStreamGetId)
SAME(cudaStreamGetDevice, cuStreamGetDevice)
SAME(cudaStreamIsCapturing, cuStreamIsCapturing)
SAME(cudaStreamAttachMemAsync, cuStreamAttachMemAsync)
SAME(cudaStreamAddCallback, cuStreamAddCallback)
SAME(cudaLaunchHostFunc, cuLaunchHostFunc)
EARLY_SAME(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode)
CALL(cudaEventCreate, (CUevent * event), cuEventCreate(event, 0))
SAME(cudaEventCreateWithFlags, cuEventCreate)
SAME(cudaEventRecord, cuEventRecord)
SAME(cudaEventRecordWithFlags, cuEventRecordWithFlags)
SAME(cudaEventQuery, cuEventQuery)
SAME(cudaEventSynchronize, cuEventSynchronize)
SAME(cudaEventDestroy, cuEventDestroy_v2)
SAME(cudaEventElapsedTime, cuEventElapsedTime)
SAME(cudaEventElapsedTime_v2, cuEventElapsedTime)
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, const void *kernel, int threads, size_t shared),
     count_blocks(blocks, kernel, threads, shared, 0))
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
     (int *blocks, const void *kernel, int threads, size_t shared, unsigned int flags),
     count_blocks(blocks, kernel, threads, shared, flags))
