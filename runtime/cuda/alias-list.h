/* SPDX-License-Identifier: Apache-2.0
 *
 * Second names of modelled functions: X(name, symbol). The unversioned ones are those of the first
 * API, whose pointers had 32 bits: here they are the current ones. The others are for programs that
 * are compiled for a default stream a thread, which is the one default stream here.
 */
#ifndef NPUSIM_CUDA_ALIAS_LIST_H
#define NPUSIM_CUDA_ALIAS_LIST_H

#define CUDA_ALIASES(X)                                              \
	X(cuCtxCreate, cuCtxCreate_v2)                               \
	X(cuCtxDestroy, cuCtxDestroy_v2)                             \
	X(cuCtxPopCurrent, cuCtxPopCurrent_v2)                       \
	X(cuCtxPushCurrent, cuCtxPushCurrent_v2)                     \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)   \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)       \
	X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2) \
	X(cuDeviceTotalMem, cuDeviceTotalMem_v2)                     \
	X(cuEventDestroy, cuEventDestroy_v2)                         \
	X(cuMemAlloc, cuMemAlloc_v2)                                 \
	X(cuMemAllocHost, cuMemAllocHost_v2)                         \
	X(cuMemAllocPitch, cuMemAllocPitch_v2)                       \
	X(cuMemFree, cuMemFree_v2)                                   \
	X(cuMemGetAddressRange, cuMemGetAddressRange_v2)             \
	X(cuMemGetInfo, cuMemGetInfo_v2)                             \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2)   \
	X(cuMemHostRegister, cuMemHostRegister_v2)                   \
	X(cuMemcpy2D, cuMemcpy2D_v2)                                 \
	X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2)                       \
	X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2)               \
	X(cuMemcpyDtoD, cuMemcpyDtoD_v2)                             \
	X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)                   \
	X(cuMemcpyDtoH, cuMemcpyDtoH_v2)                             \
	X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                   \
	X(cuMemcpyHtoD, cuMemcpyHtoD_v2)                             \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                   \
	X(cuMemsetD16, cuMemsetD16_v2)                               \
	X(cuMemsetD2D16, cuMemsetD2D16_v2)                           \
	X(cuMemsetD2D32, cuMemsetD2D32_v2)                           \
	X(cuMemsetD2D8, cuMemsetD2D8_v2)                             \
	X(cuMemsetD32, cuMemsetD32_v2)                               \
	X(cuMemsetD8, cuMemsetD8_v2)                                 \
	X(cuStreamDestroy, cuStreamDestroy_v2)                       \
	X(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags)       \
	X(cuEventRecord_ptsz, cuEventRecord)                         \
	X(cuLaunchHostFunc_ptsz, cuLaunchHostFunc)                   \
	X(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2)               \
	X(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned_v2)       \
	X(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2)                         \
	X(cuMemcpyAsync_ptsz, cuMemcpyAsync)                         \
	X(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2)           \
	X(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2)                     \
	X(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2)           \
	X(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2)                     \
	X(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2)           \
	X(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2)                     \
	X(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync)                 \
	X(cuMemcpyPeer_ptds, cuMemcpyPeer)                           \
	X(cuMemcpy_ptds, cuMemcpy)                                   \
	X(cuMemsetD16Async_ptsz, cuMemsetD16Async)                   \
	X(cuMemsetD16_v2_ptds, cuMemsetD16_v2)                       \
	X(cuMemsetD2D16Async_ptsz, cuMemsetD2D16Async)               \
	X(cuMemsetD2D16_v2_ptds, cuMemsetD2D16_v2)                   \
	X(cuMemsetD2D32Async_ptsz, cuMemsetD2D32Async)               \
	X(cuMemsetD2D32_v2_ptds, cuMemsetD2D32_v2)                   \
	X(cuMemsetD2D8Async_ptsz, cuMemsetD2D8Async)                 \
	X(cuMemsetD2D8_v2_ptds, cuMemsetD2D8_v2)                     \
	X(cuMemsetD32Async_ptsz, cuMemsetD32Async)                   \
	X(cuMemsetD32_v2_ptds, cuMemsetD32_v2)                       \
	X(cuMemsetD8Async_ptsz, cuMemsetD8Async)                     \
	X(cuMemsetD8_v2_ptds, cuMemsetD8_v2)                         \
	X(cuStreamAddCallback_ptsz, cuStreamAddCallback)             \
	X(cuStreamGetCtx_ptsz, cuStreamGetCtx)                       \
	X(cuStreamGetFlags_ptsz, cuStreamGetFlags)                   \
	X(cuStreamGetPriority_ptsz, cuStreamGetPriority)             \
	X(cuStreamIsCapturing_ptsz, cuStreamIsCapturing)             \
	X(cuStreamQuery_ptsz, cuStreamQuery)                         \
	X(cuStreamSynchronize_ptsz, cuStreamSynchronize)             \
	X(cuStreamWaitEvent_ptsz, cuStreamWaitEvent)

#endif
