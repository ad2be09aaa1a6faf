/* SPDX-License-Identifier: Apache-2.0
 *
 * cuInit, versions, names of codes, the translation from codes of the driver and of the core to
 * those of CUDA, and npusim's own functions for programs of CUDA. Owns whether the process has
 * called cuInit.
 */
#include "cuda-internal.h"

#include "npusim/npusim.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_bool initialised, harmed;

CUresult cuda_fail(CUresult code, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	npu_message_set("%s: %s", core_called, text);
	return code;
}
/* For libcudart. */
extern __typeof__(cuda_fail) npusimFail __attribute__((alias("cuda_fail"), visibility("default")));

struct cuda_error cuda_find_error(CUresult code)
{
	switch ((int)code) {
		CUDA_ERRORS(CUDA_ERROR_CASE)
	default:
		return (struct cuda_error){ NULL, NULL };
	}
}

static CUresult give(const char **out, const char *value)
{
	*out = value;
	return value != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
	CUDA_ANSWERS(give(name, cuda_find_error(error).name));
CUresult cuGetErrorString(CUresult error, const char **text)
	CUDA_ANSWERS(give(text, cuda_find_error(error).text));

/* What a code of the driver, or of the core, is in CUDA: no code is both's. */
static const struct {
	int code;
	CUresult cuda;
} translations[] = {
	{ DRV_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY },
	{ DRV_ERROR_MALLOC_FAIL, CUDA_ERROR_OUT_OF_MEMORY },
	{ DRV_ERROR_NO_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY },
	{ DRV_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE },
	{ DRV_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE },
	{ DRV_ERROR_NOT_SUPPORT, CUDA_ERROR_NOT_SUPPORTED },
	{ DRV_ERROR_OPER_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED },
	{ DRV_ERROR_PROCESS_EXIT, CUDA_ERROR_DEINITIALIZED },
	{ DRV_ERROR_FILE_OPS, CUDA_ERROR_UNKNOWN },
	{ DRV_ERROR_OPEN_FAILED, CUDA_ERROR_UNKNOWN },
	{ DRV_ERROR_INNER_ERR, CUDA_ERROR_UNKNOWN },
	{ 107000, CUDA_ERROR_INVALID_VALUE },   /* ACL_ERROR_RT_PARAM_INVALID */
	{ 107001, CUDA_ERROR_INVALID_DEVICE },  /* ACL_ERROR_RT_INVALID_DEVICEID */
	{ 107002, CUDA_ERROR_INVALID_CONTEXT }, /* ACL_ERROR_RT_CONTEXT_NULL */
	{ 107003, CUDA_ERROR_INVALID_HANDLE },  /* ACL_ERROR_RT_STREAM_CONTEXT */
	{ 107006, CUDA_ERROR_INVALID_HANDLE },  /* ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID */
	{ 107020, CUDA_ERROR_NOT_READY },       /* ACL_ERROR_RT_TASK_TIMEOUT */
	{ 207000, CUDA_ERROR_NOT_SUPPORTED },   /* ACL_ERROR_RT_FEATURE_NOT_SUPPORT */
	{ 207001, CUDA_ERROR_OUT_OF_MEMORY },   /* ACL_ERROR_RT_MEMORY_ALLOCATION */
	{ 207004, CUDA_ERROR_NO_DEVICE },       /* ACL_ERROR_RT_NO_DEVICE */
	{ 207007, CUDA_ERROR_OUT_OF_MEMORY },   /* ACL_ERROR_RT_NO_EVENT_RESOURCE */
	{ 207008, CUDA_ERROR_OUT_OF_MEMORY },   /* ACL_ERROR_RT_NO_STREAM_RESOURCE */
	{ 500000, CUDA_ERROR_NO_DEVICE },       /* ACL_ERROR_INTERNAL_ERROR */
	{ 507001, CUDA_ERROR_ILLEGAL_ADDRESS }, /* ACL_ERROR_RT_TS_ERROR */
	{ 507007, CUDA_ERROR_INVALID_CONTEXT }, /* ACL_ERROR_RT_CONTEXT_RELEASE_ERROR */
	{ 507033, CUDA_ERROR_INVALID_DEVICE },  /* ACL_ERROR_RT_DEV_SETUP_ERROR */
	{ 507046, CUDA_ERROR_NOT_READY },       /* ACL_ERROR_RT_STREAM_SYNC_TIMEOUT */
	{ 507047, CUDA_ERROR_NOT_READY },       /* ACL_ERROR_RT_EVENT_SYNC_TIMEOUT */
};

static CUresult translate(int code, CUresult otherwise)
{
	for (size_t i = 0; i < sizeof(translations) / sizeof(translations[0]); i++)
		if (translations[i].code == code)
			return translations[i].cuda;
	return otherwise;
}

/* Without the name of the driver's function, which is not one of CUDA's. */
CUresult cuda_of_driver(drvError_t code)
{
	const char *text, *colon;
	CUresult result;

	if (code == DRV_ERROR_NONE)
		return CUDA_SUCCESS;
	result = translate(code, CUDA_ERROR_INVALID_VALUE);
	text = npu_call(core_driver(), npusimLastMessage);
	if (text == NULL)
		return cuda_fail(result, "the driver refuses");
	colon = strncmp(text, "hal", 3) == 0 || strncmp(text, "drv", 3) == 0 ? strchr(text, ':')
									     : NULL;
	return cuda_fail(result, "%s", colon != NULL && colon[1] == ' ' ? colon + 2 : text);
}

CUresult cuda_of_core(int code)
{
	CUresult result = code == 0 ? CUDA_SUCCESS : translate(code, CUDA_ERROR_UNKNOWN);

	if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
		atomic_store(&harmed, true);
	return result;
}

CUresult cuda_initialised(void)
{
	if (__builtin_expect(atomic_load_explicit(&initialised, memory_order_acquire), 1) &&
	    core_driver() != NULL)
		return CUDA_SUCCESS;
	return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuda_unharmed(void)
{
	if (__builtin_expect(!atomic_load_explicit(&harmed, memory_order_relaxed), 1))
		return CUDA_SUCCESS;
	return cuda_fail(CUDA_ERROR_ILLEGAL_ADDRESS,
			 "an earlier copy met memory that is not there: that ends all contexts of "
			 "the process, which must be started again");
}

CUresult cuda_current(struct core_context **out)
{
	struct core_context *context = core_context_peek();

	if (out != NULL)
		*out = context;
	return context != NULL ? cuda_unharmed()
			       : cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
					   "no context is current in this thread: cuCtxSetCurrent "
					   "makes one so");
}

CUresult cuda_null(const char *argument, const void *value)
	CUDA_ANSWERS(CUDA_WANT(value != NULL, "%s is NULL", argument));

CUresult cuda_no_flags(unsigned long long flags)
	CUDA_ANSWERS(CUDA_WANT(flags == 0, "flags is %llu; it must be 0", flags));

CUresult cuInit(unsigned int flags)
{
	struct npu_driver *drv;
	drvError_t result;
	CUresult code = cuda_no_flags(flags);

	if (code != CUDA_SUCCESS)
		return code;
	if (atomic_load(&initialised) || core_is_forked())
		return cuda_initialised();
	npu_message_words(npu_cuda_words);
	core_visible_use("CUDA_VISIBLE_DEVICES", true);
	drv = core_driver();
	if (drv == NULL)
		return CUDA_ERROR_NO_DEVICE;
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

CUresult cuDriverGetVersion(int *version) CUDA_ANSWERS(CUDA_GIVE(version, CUDA_VERSION));

#define TELL(pointer, op, ...) \
	(cuda_null(#pointer, pointer) ?: cuda_initialised() \
	 ?: (npu_call(core_driver(), op, __VA_ARGS__), CUDA_SUCCESS))
#define DOOR(call, params, ...)                                                               \
	int call params                                                                       \
	{                                                                                     \
		const char *outer = npusimBegin(#call);                                       \
                                                                                              \
		return (int)npusimEnd(outer, __VA_ARGS__, NULL, __builtin_return_address(0)); \
	}
DOOR(npusimBlock, (const void *ptr, size_t size),
     size == 0 ? cuda_invalid("size is 0") : TELL(ptr, npusimTellBlock, (uintptr_t)ptr, size))
DOOR(npusimBlockFree, (const void *ptr), TELL(ptr, npusimTellBlock, (uintptr_t)ptr, 0))
DOOR(npusimMark, (const char *name), TELL(name, npusimMark, name)) /* or nobody compares */
