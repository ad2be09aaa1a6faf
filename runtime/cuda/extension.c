/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim's own functions for programs of CUDA: those of include/npusim/npusim.h that say so.
 */
#include "cuda-internal.h"

#include "npusim/npusim.h"

static int tell_block(const char *call, const void *ptr, size_t size)
{
	CUresult code = cuda_null(call, "ptr", ptr) ?: cuda_initialised();

	if (code == CUDA_SUCCESS)
		npu_call(core_driver(), npusimTellBlock, (uintptr_t)ptr, size);
	return (int)code;
}

int npusimBlock(const void *ptr, size_t size)
{
	if (size == 0)
		return (int)cuda_invalid(__func__, "size is 0");
	return tell_block(__func__, ptr, size);
}

int npusimBlockFree(const void *ptr)
{
	return tell_block(__func__, ptr, 0);
}

int npusimMark(const char *name)
{
	CUresult code = CUDA_IS_NULL(name) ?: cuda_initialised();

	if (code == CUDA_SUCCESS)
		npu_call(core_driver(), npusimMark, name); /* NOT_SUPPORT: nobody compares */
	return (int)code;
}
