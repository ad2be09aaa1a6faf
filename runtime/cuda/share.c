/* SPDX-License-Identifier: Apache-2.0
 *
 * Shareable handles: POSIX file descriptors. The driver's descriptors are real ones, which pass
 * over sockets, keep memory alive and are the program's to close. Fabric handles answer as without
 * an IMEX channel.
 */
#include "cuda-internal.h"

#include <string.h>

static CUresult check_type(const char *call, CUmemAllocationHandleType type)
{
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_SUCCESS;
	return cuda_invalid(call, "type is %d; memory is shared as a file descriptor (1)",
			    (int)type);
}

CUDA_EXPORT CUresult cuMemExportToShareableHandle(void *shareable,
						  CUmemGenericAllocationHandle handle,
						  CUmemAllocationHandleType type,
						  unsigned long long flags)
{
	struct MemShareHandle share;
	CUmemAllocationProp prop;
	CUresult code;

	if (shareable == NULL || handle == 0 || flags != 0)
		return cuda_invalid(__func__, "%s",
				    shareable == NULL ? "shareable is NULL"
				    : handle == 0     ? "handle is 0"
						      : "flags must be 0");
	code = check_type(__func__, type) ?: cuda_properties(__func__, handle, &prop);
	if (code != CUDA_SUCCESS)
		return code;
	if (((unsigned)prop.requestedHandleTypes & (unsigned)type) == 0)
		return cuda_invalid(__func__,
				    "handle 0x%llx was not made to be shared: "
				    "prop.requestedHandleTypes was %d, and %d is asked for",
				    handle, (int)prop.requestedHandleTypes, (int)type);
	code = CUDA_CALL(__func__, halMemExportToShareableHandleV2, cuda_handle(handle),
			 MEM_HANDLE_TYPE_POSIX, 0, &share);
	if (code == CUDA_SUCCESS)
		memcpy(shareable, &share, sizeof(int));
	return code;
}

CUDA_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
						    void *shareable, CUmemAllocationHandleType type)
{
	struct MemShareHandle share = { { 0 } };
	drv_mem_handle_t *made = NULL;
	int fd = (int)(intptr_t)shareable;
	CUresult code = CUDA_IS_NULL(handle) ?: CUDA_IS_NULL(shareable);

	if (code != CUDA_SUCCESS)
		return code;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return cuda_fail(CUDA_ERROR_NOT_PERMITTED, __func__,
				 "fabric handles need an IMEX channel, and there is none");
	code = check_type(__func__, type) ?: cuda_vmm_ready(__func__);
	if (code != CUDA_SUCCESS)
		return code;
	memcpy(&share, &fd, sizeof(fd));
	code = CUDA_CALL(__func__, halMemImportFromShareableHandleV2, MEM_HANDLE_TYPE_POSIX, &share,
			 0, &made);
	if (code == CUDA_SUCCESS)
		*handle = (uintptr_t)made;
	return code;
}
