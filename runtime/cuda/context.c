/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: primary ones, those that programs make, and each thread's stack of them, whose top is
 * the current one. The contexts are runtime/core's; memory of cuMemCreate belongs to none.
 */
#include "cuda-internal.h"

#include <pthread.h>
#include <stdlib.h>

/* What lies under a thread's current context, which the core knows. */
struct stack {
	size_t depth;
	void *below[];
};
static pthread_key_t stack_key;

__attribute__((constructor)) static void make_key(void)
{
	pthread_key_create(&stack_key, free);
}

static CUresult push(void *context)
{
	struct stack *stack = pthread_getspecific(stack_key);
	size_t depth = stack != NULL ? stack->depth : 0;

	stack = realloc(stack, sizeof(*stack) + (depth + 1) * sizeof(void *));
	if (stack == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack->below[depth] = context;
	stack->depth = depth + 1;
	pthread_setspecific(stack_key, stack);
	return CUDA_SUCCESS;
}

/* NULL: there is nothing, or nothing live, under the current one. */
static void *pop(void)
{
	struct stack *stack = pthread_getspecific(stack_key);
	void *context = stack != NULL && stack->depth > 0 ? stack->below[--stack->depth] : NULL;

	return core_context_find(context) != NULL ? context : NULL;
}

static void *current_handle(void)
{
	struct core_context *context = core_context_peek();

	return context == NULL ? NULL : core_context_handle(context);
}

/* `dead`: the code of one that is not live. */
static CUresult find_context(const char *call, void *handle, CUresult dead,
			     const struct core_context **out)
{
	*out = core_context_find(handle);
	return *out != NULL ? CUDA_SUCCESS
			    : cuda_fail(dead, call, "context %p is no live context of this process",
					handle);
}

static CUresult select_context(const char *call, void *context)
{
	const struct core_context *found;

	if (context != NULL)
		return find_context(call, context, CUDA_ERROR_INVALID_CONTEXT, &found)
			       ?: cuda_of_core(call, core_context_select(context, call));
	core_context_deselect();
	return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	void *made = NULL;
	uint32_t logic;

	return CUDA_IS_NULL(context) ?: cuda_check_device(__func__, device, &logic)
			?: cuda_keep(logic, __func__)
			?: cuda_of_core(__func__, core_device_retain(device, &made, __func__))
			?: CUDA_GIVE(context, made);
}

static CUresult leave_primary(const char *call, CUdevice device, bool all)
{
	void *handle = NULL;
	uint32_t logic;
	bool active = false;
	CUresult code =
		cuda_check_device(call, device, &logic)
			?: cuda_of_core(call, core_device_primary_active(device, &active, call));

	if (code != CUDA_SUCCESS)
		return code;
	if (!active)
		return all ? CUDA_SUCCESS
			   : cuda_fail(CUDA_ERROR_INVALID_CONTEXT, call,
				       "the primary context of device %d is not held", device);
	if (core_device_retain(device, &handle, call) != 0)
		return CUDA_ERROR_UNKNOWN;
	core_device_reset(device, false, call);
	if (all)
		cuda_memory_end_context(handle);
	code = cuda_of_core(call, core_device_reset(device, all, call));
	if (core_context_find(handle) == NULL && !all) /* the last one left */
		cuda_memory_end_context(handle);
	return code;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
	CUDA_ANSWERS(leave_primary(__func__, device, false));
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
	CUDA_ANSWERS(leave_primary(__func__, device, true));

/* How a thread waits for a device: this model's threads always sleep. */
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	uint32_t logic;

	(void)flags;
	return cuda_check_device(__func__, device, &logic);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	uint32_t logic;
	bool is_active = false;

	return CUDA_IS_NULL(flags) ?: CUDA_IS_NULL(active)
		       ?: cuda_check_device(__func__, device, &logic)
		       ?: cuda_of_core(__func__,
				       core_device_primary_active(device, &is_active, __func__))
		       ?: CUDA_GIVE(flags, 0) ?: CUDA_GIVE(active, is_active);
}

/* ---- the stack ---- */

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	void *before = current_handle();

	if (context == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, __func__, "context is NULL");
	return select_context(__func__, context) ?: push(before);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	void *top = current_handle();

	if (top == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, __func__,
				 "no context is current in this thread");
	if (context != NULL)
		*context = top;
	return select_context(__func__, pop());
}

CUresult cuCtxSetCurrent(CUcontext context) CUDA_ANSWERS(select_context(__func__, context));
CUresult cuCtxGetCurrent(CUcontext *context)
	CUDA_ANSWERS(CUDA_IS_NULL(context) ?: CUDA_GIVE(context, current_handle()));

/* ---- those that programs make ---- */

static CUresult create(CUcontext *context, CUdevice device)
{
	const char *call = "cuCtxCreate";
	void *before = current_handle(), *made = NULL;
	uint32_t logic;

	return cuda_null(call, "context", context) ?: cuda_check_device(call, device, &logic)
			?: cuda_keep(logic, call)
			?: cuda_of_core(call, core_context_create(device, &made, call))
			?: push(before) ?: CUDA_GIVE(context, made);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	return create(context, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int affinities, unsigned int flags,
			CUdevice device)
{
	(void)affinity, (void)affinities, (void)flags;
	return create(context, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
	(void)params, (void)flags;
	return create(context, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	const struct core_context *found;
	CUresult code = find_context(__func__, context, CUDA_ERROR_INVALID_CONTEXT, &found);

	if (code != CUDA_SUCCESS)
		return code;
	if (found->primary)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, __func__,
				 "context %p is a primary one: cuDevicePrimaryCtxRelease ends that",
				 (void *)context);
	bool current = current_handle() == (void *)context;
	core_device_synchronize(found->device, -1, __func__);
	cuda_memory_end_context(context);
	if (current)
		cuCtxPopCurrent_v2(NULL);
	return cuda_of_core(__func__, core_context_destroy(context, __func__));
}

/* ---- about the current one ---- */

CUresult cuCtxGetDevice(CUdevice *device)
{
	struct core_context *context;

	return CUDA_IS_NULL(device) ?: cuda_current(__func__, &context)
			?: CUDA_GIVE(device, context->user_device);
}

CUresult cuCtxGetFlags(unsigned int *flags)
	CUDA_ANSWERS(CUDA_IS_NULL(flags) ?: cuda_current(__func__, NULL) ?: CUDA_GIVE(flags, 0));

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	void *asked = context != NULL ? (void *)context : current_handle();
	const struct core_context *found;

	return CUDA_IS_NULL(id)
			?: find_context(__func__, asked, CUDA_ERROR_CONTEXT_IS_DESTROYED, &found)
			?: CUDA_GIVE(id, (uintptr_t)asked);
}

CUresult cuCtxSynchronize(void)
{
	struct core_context *context;

	return cuda_pools_settle(
		cuda_current(__func__, &context)
			?: cuda_of_core(__func__,
					core_device_synchronize(context->device, -1, __func__)));
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
	if (version == NULL || (context != NULL && core_context_find(context) == NULL))
		return cuda_fail(version == NULL ? CUDA_ERROR_INVALID_VALUE
						 : CUDA_ERROR_INVALID_CONTEXT,
				 __func__, "context is %p", (void *)context);
	return CUDA_GIVE(version, 3020);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUresult code = cuda_current(__func__, NULL);

	if (code != CUDA_SUCCESS)
		return code;
	if (least != NULL)
		*least = 0;
	if (greatest != NULL)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- captures and a profiler, which there are none of ---- */

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode current;
	CUstreamCaptureMode before = current;

	if (mode == NULL || *mode < 0 || *mode > 2)
		return cuda_invalid(__func__, "mode is %d; known are 0 to 2", mode ? *mode : -1);
	current = *mode;
	return CUDA_GIVE(mode, before);
}

CUresult cuProfilerInitialize(const char *config, const char *output, int mode)
{
	(void)config, (void)output, (void)mode;
	return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void) CUDA_ANSWERS(CUDA_SUCCESS);
CUresult cuProfilerStop(void) CUDA_ANSWERS(CUDA_SUCCESS);

/* ---- peers ---- */

static CUresult set_peer(const char *call, CUcontext peer, bool enable)
{
	struct core_context *own = core_context_peek(), *other = core_context_find(peer);
	uint32_t status = 0;

	if (own == NULL || other == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT, call, "%s",
				 own == NULL ? "no context is current in this thread"
					     : "peer is no live context");
	if (own->device == other->device)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, call, "both contexts are of device %d",
				 own->user_device);
	npu_call(core_driver(), drvGetP2PStatus, own->device, other->device, &status);
	if (enable && status != 0)
		return cuda_fail(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, call, "it is enabled");
	if (!enable && status == 0)
		return cuda_fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, call, "it is not enabled");
	return enable ? CUDA_CALL(call, halDeviceEnableP2P, own->device, other->device, 0)
		      : CUDA_CALL(call, halDeviceDisableP2P, own->device, other->device, 0);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	if (flags != 0)
		return cuda_invalid(__func__, "flags is %u; it must be 0", flags);
	return set_peer(__func__, peer, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) CUDA_ANSWERS(set_peer(__func__, peer, false));
