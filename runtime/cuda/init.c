/* SPDX-License-Identifier: Apache-2.0
 *
 * cuInit, versions, and the translation from codes of the driver and of the core to those of CUDA.
 * Owns whether the process has called cuInit.
 */
#include "cuda-internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool initialised;

/* ---- codes ---- */

CUresult cuda_fail(CUresult code, const char *call, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!npu_log_enabled(NPU_LOG_INFO))
		return code;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	npu_log(NPU_LOG_INFO, "%s: %s: %s", call, cuda_error_name(code), text);
	return code;
}

static CUresult of_driver(drvError_t code)
{
	switch (code) {
	case DRV_ERROR_NONE:
		return CUDA_SUCCESS;
	case DRV_ERROR_OUT_OF_MEMORY:
	case DRV_ERROR_MALLOC_FAIL:
	case DRV_ERROR_NO_RESOURCES:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case DRV_ERROR_NO_DEVICE:
		return CUDA_ERROR_NO_DEVICE;
	case DRV_ERROR_INVALID_DEVICE:
		return CUDA_ERROR_INVALID_DEVICE;
	case DRV_ERROR_NOT_SUPPORT:
		return CUDA_ERROR_NOT_SUPPORTED;
	case DRV_ERROR_OPER_NOT_PERMITTED:
		return CUDA_ERROR_NOT_PERMITTED;
	case DRV_ERROR_PROCESS_EXIT:
		return CUDA_ERROR_DEINITIALIZED;
	case DRV_ERROR_FILE_OPS:
	case DRV_ERROR_OPEN_FAILED:
	case DRV_ERROR_INNER_ERR:
		return CUDA_ERROR_UNKNOWN;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuda_of_driver(const char *call, drvError_t code)
{
	const char *text;

	if (code == DRV_ERROR_NONE)
		return CUDA_SUCCESS;
	if (!npu_log_enabled(NPU_LOG_INFO))
		return of_driver(code);
	text = npu_call(core_driver(), npusimLastMessage);
	return cuda_fail(of_driver(code), call, "%s", text != NULL ? text : "the driver refuses");
}

static CUresult of_core(int code)
{
	switch (code) {
	case 0:
		return CUDA_SUCCESS;
	case 107000: /* ACL_ERROR_RT_PARAM_INVALID */
		return CUDA_ERROR_INVALID_VALUE;
	case 107001: /* ACL_ERROR_RT_INVALID_DEVICEID */
	case 507033: /* ACL_ERROR_RT_DEV_SETUP_ERROR */
		return CUDA_ERROR_INVALID_DEVICE;
	case 107002: /* ACL_ERROR_RT_CONTEXT_NULL */
		return CUDA_ERROR_INVALID_CONTEXT;
	case 107003: /* ACL_ERROR_RT_STREAM_CONTEXT */
	case 107006: /* ACL_ERROR_RT_EVENT_TIMESTOMP_INVALID */
		return CUDA_ERROR_INVALID_HANDLE;
	case 107020: /* ACL_ERROR_RT_TASK_TIMEOUT */
	case 507046: /* ACL_ERROR_RT_STREAM_SYNC_TIMEOUT */
	case 507047: /* ACL_ERROR_RT_EVENT_SYNC_TIMEOUT */
		return CUDA_ERROR_NOT_READY;
	case 207000: /* ACL_ERROR_RT_FEATURE_NOT_SUPPORT */
		return CUDA_ERROR_NOT_SUPPORTED;
	case 207001: /* ACL_ERROR_RT_MEMORY_ALLOCATION */
	case 207007: /* ACL_ERROR_RT_NO_EVENT_RESOURCE */
	case 207008: /* ACL_ERROR_RT_NO_STREAM_RESOURCE */
		return CUDA_ERROR_OUT_OF_MEMORY;
	case 207004: /* ACL_ERROR_RT_NO_DEVICE */
	case 500000: /* ACL_ERROR_INTERNAL_ERROR */
		return CUDA_ERROR_NO_DEVICE;
	case 507007: /* ACL_ERROR_RT_CONTEXT_RELEASE_ERROR */
		return CUDA_ERROR_INVALID_CONTEXT;
	case 507013: /* ACL_ERROR_RT_SYS_DMA_ERROR */
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	default:
		return CUDA_ERROR_UNKNOWN;
	}
}

CUresult cuda_of_core(const char *call, int code)
{
	return code == 0 ? CUDA_SUCCESS : cuda_fail(of_core(code), call, "%s", npu_message());
}

/* ---- the beginning ---- */

struct npu_driver *cuda_driver(CUresult *code)
{
	struct npu_driver *drv = NULL;

	if (__builtin_expect(atomic_load_explicit(&initialised, memory_order_acquire), 1) &&
	    !core_is_forked())
		drv = core_driver();
	if (drv == NULL)
		*code = CUDA_ERROR_NOT_INITIALIZED;
	return drv;
}

CUDA_EXPORT CUresult cuInit(unsigned int flags)
{
	struct npu_driver *drv;
	drvError_t result;

	if (flags != 0)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "flags is %u; it must be 0",
				 flags);
	if (core_is_forked())
		return cuda_fail(CUDA_ERROR_NOT_INITIALIZED, __func__,
				 "this process was forked from one that used a device");
	if (atomic_load(&initialised))
		return CUDA_SUCCESS;
	core_visible_use("CUDA_VISIBLE_DEVICES", true);
	drv = core_driver();
	if (drv == NULL) {
		npu_log(NPU_LOG_ERROR, "cuInit: %s", npu_message());
		return CUDA_ERROR_NO_DEVICE;
	}
	result = npu_call(drv, npusimSetDialect, NPU_DIALECT_CUDA);
	if (result != DRV_ERROR_NONE) {
		npu_log(NPU_LOG_ERROR, "cuInit: the %s backend cannot serve CUDA: %s", drv->name,
			result == DRV_ERROR_NOT_SUPPORT ? "only the model (NPUSIM_BACKEND=sim) can"
							: npu_call(drv, npusimLastMessage));
		return CUDA_ERROR_NO_DEVICE;
	}
	atomic_store_explicit(&initialised, true, memory_order_release);
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (version == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "version is NULL");
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}
