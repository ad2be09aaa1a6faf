/* SPDX-License-Identifier: Apache-2.0
 *
 * What vmm.c offers to the files that query mappings. No state.
 */
#ifndef NPUSIM_CUDA_VMM_H
#define NPUSIM_CUDA_VMM_H

#include "cuda-internal.h"

/* What lies at an address, at no cost. */
struct npu_place cuda_place(struct npu_driver *drv, uint64_t va);
drv_mem_handle_t *cuda_handle(CUmemGenericAllocationHandle handle);
CUresult cuda_vmm_ready(const char *call);
/* Of a handle that is live, or was, and is remembered. */
CUresult cuda_properties(const char *call, struct npu_driver *drv,
			 CUmemGenericAllocationHandle handle, CUmemAllocationProp *out);

#endif
