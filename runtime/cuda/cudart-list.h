/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart's functions that are one answer of the driver: CALL(name, parameters, answer), in the
 * primary context of the thread's device unless the program has made another one current;
 * EARLY(...), which needs none. SAME and EARLY_SAME(name, function): the driver's function, whose
 * device pointers are void *; where the names are the same, too, the build finds it (exports.py).
 * PAIR(name, check, function, function_async, arguments, parameters...): name, and name##Async in a
 * stream. In the answers A(ptr) is a CUdeviceptr, OUT(ptr) where one is put. Codes, flags and
 * attributes have the same numbers in both of CUDA's interfaces, handles and records the same
 * layout; only what differs is written out. Parameters are those of CUDART_MAJOR.
 */

EARLY(cudaGetDeviceCount, (int *count), count_devices(count))
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
SAME(cudaDeviceSynchronize, cuCtxSynchronize)
SAME(cudaThreadSynchronize, cuCtxSynchronize)
SAME(cudaDeviceGetLimit, cuCtxGetLimit)
SAME(cudaDeviceSetLimit, cuCtxSetLimit)
SAME(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange)
EARLY(cudaGetDeviceProperties, (struct cudaDeviceProp * out, int device),
      describe_device(out, FIRST_BYTES, device))
EARLY(cudaGetDeviceProperties_v2, (struct cudaDeviceProp * out, int device),
      describe_device(out, sizeof(*out), device))
CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxEnablePeerAccess(other, flags))
CALL(cudaDeviceDisablePeerAccess, (int peer),
     cuDevicePrimaryCtxRetain(&other, peer) ?: cuCtxDisablePeerAccess(other))
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
CALL(cudaMalloc, (void **ptr, size_t size),
     size == 0 ? GIVE(ptr, NULL) : cuMemAlloc_v2(OUT(ptr), size))
CALL(cudaMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height),
     cuMemAllocPitch_v2(OUT(ptr), pitch, width, height, 4))
CALL(cudaFree, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFree_v2(A(ptr)))
CALL(cudaFreeHost, (void *ptr), ptr == NULL ? CUDA_SUCCESS : cuMemFreeHost(ptr))
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
CALL(cudaStreamCreate, (CUstream * stream), cuStreamCreate(stream, 0))
SAME(cudaStreamCreateWithFlags, cuStreamCreate)
CALL(cudaEventCreate, (CUevent * event), cuEventCreate(event, 0))
SAME(cudaEventCreateWithFlags, cuEventCreate)
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, const void *kernel, int threads, size_t shared),
     count_blocks(blocks, kernel, threads, shared, 0))
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
     (int *blocks, const void *kernel, int threads, size_t shared, unsigned int flags),
     count_blocks(blocks, kernel, threads, shared, flags))
