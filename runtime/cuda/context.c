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

static CUresult find_live(void *handle, CUresult dead, struct core_context **out)
{
	*out = core_context_find(handle);
	return *out != NULL
		       ? CUDA_SUCCESS
		       : cuda_fail(dead, "context %p is no live context of this process", handle);
}

CUresult cuda_check_context(void *handle, CUresult dead)
{
	return find_live(handle, dead, &(struct core_context *){ NULL });
}

/* NULL: the current one. Another may have ended since the door asked. */
static CUresult find_context(CUcontext handle, struct core_context **out)
{
	return handle == NULL ? cuda_current(out)
			      : find_live(handle, CUDA_ERROR_INVALID_CONTEXT, out);
}

static CUresult select_context(void *context)
{
	if (context != NULL)
		return cuda_of_core(core_context_select(context));
	core_context_deselect();
	return CUDA_SUCCESS;
}

/* ---- flags and limits: kept, and without effect ---- */

#define FLAGS_KNOWN 0xffu
#define FLAGS_WORD  7 /* of a context; those below are limits, by CUlimit */

/* 0: an H100 has none such. CUDA's documentation has the first and the third, the others are not
 * recorded. */
static const size_t default_limits[FLAGS_WORD] = { 1024, 1 << 20, 8 << 20, 0, 2048, 64, 0 };
static _Atomic uint64_t primary_flags[CORE_DEVICE_MAX]; /* which outlive the contexts */

static _Atomic uint64_t *flags_of(struct core_context *context)
{
	return context->primary ? &primary_flags[(uint32_t)context->device]
				: &context->words[FLAGS_WORD];
}

static CUresult check_flags(unsigned flags)
{
	unsigned how = flags & 7;

	return CUDA_WANT(flags <= FLAGS_KNOWN && (how & (how - 1)) == 0,
			 "flags is %#x; known are those of 0xff, and of 1, 2 and 4 one at most",
			 flags);
}

CUresult cuCtxGetFlags(unsigned int *flags)
	CUDA_ANSWERS_WITH(struct core_context *context,
			  cuda_current(&context) ?: CUDA_GIVE(flags, (unsigned)*flags_of(context)));

CUresult cuCtxSetFlags(unsigned int flags)
	CUDA_ANSWERS_WITH(struct core_context *context,
		check_flags(flags) ?: cuda_current(&context)
			?: CUDA_GIVE(flags_of(context), flags));

static CUresult check_limit(CUlimit limit, struct core_context **out)
{
	if (limit < 0 || limit > 9)
		return cuda_invalid("limit is %d; known are 0 to 9", limit);
	if (limit == 3 || limit >= FLAGS_WORD)
		return cuda_fail(CUDA_ERROR_UNSUPPORTED_LIMIT, "an H100 has no limit of number %d",
				 limit);
	return cuda_current(out);
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
	CUDA_ANSWERS_WITH(struct core_context *context,
			  check_limit(limit, &context)
				  ?: CUDA_GIVE(value,
					       context->words[limit] ?: default_limits[limit]));

CUresult cuCtxSetLimit(CUlimit limit, size_t value) /* 0: the default again */
	CUDA_ANSWERS_WITH(struct core_context *context,
			  check_limit(limit, &context) ?: CUDA_GIVE(&context->words[limit], value));

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
	CUDA_ANSWERS_WITH(void *made = NULL,
		cuda_keep(cuda_logic(device))
			?: cuda_of_core(core_device_retain(device, &made))
			?: CUDA_GIVE(context, made));

static CUresult leave_primary(CUdevice device, bool all)
{
	void *handle = NULL;
	bool active = false;
	CUresult code = cuda_of_core(core_device_primary_active(device, &active));

	if (code != CUDA_SUCCESS)
		return code;
	if (!active)
		return all ? CUDA_SUCCESS
			   : cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
				       "the primary context of device %d is not held", device);
	if (core_device_retain(device, &handle) != 0)
		return CUDA_ERROR_UNKNOWN;
	core_device_reset(device, false);
	if (all)
		cuda_memory_end_context(handle);
	code = cuda_of_core(core_device_reset(device, all));
	if (core_context_find(handle) == NULL && !all) /* the last one left */
		cuda_memory_end_context(handle);
	return code;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) CUDA_ANSWERS(leave_primary(device, false));
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) CUDA_ANSWERS(leave_primary(device, true));

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
	CUDA_ANSWERS(check_flags(flags) ?: CUDA_GIVE(&primary_flags[cuda_logic(device)], flags));

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
	CUDA_ANSWERS_WITH(bool is_active = false,
		cuda_of_core(core_device_primary_active(device, &is_active))
			?: CUDA_GIVE(flags, (unsigned)primary_flags[cuda_logic(device)])
			?: CUDA_GIVE(active, is_active));

/* ---- the stack ---- */

CUresult cuCtxPushCurrent_v2(CUcontext context)
	CUDA_ANSWERS_WITH(void *before = current_handle(), select_context(context) ?: push(before));

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	void *top = current_handle();

	if (top == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
				 "no context is current in this thread");
	return CUDA_GIVE_IF(context, top) ?: select_context(pop());
}

CUresult cuCtxSetCurrent(CUcontext context) CUDA_ANSWERS(select_context(context));
CUresult cuCtxGetCurrent(CUcontext *context) CUDA_ANSWERS(CUDA_GIVE(context, current_handle()));

/* ---- those that programs make ---- */

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	void *before = current_handle(), *made = NULL;

	return check_flags(flags) ?: cuda_keep(cuda_logic(device))
			?: cuda_of_core(core_context_create(device, &made))
			?: push(before) ?: CUDA_GIVE(flags_of(core_context_find(made)), flags)
			?: CUDA_GIVE(context, made);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int affinities, unsigned int flags,
			CUdevice device)
	CUDA_ANSWERS((void)affinity, (void)affinities, cuCtxCreate_v2(context, flags, device));
CUresult cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
	CUDA_ANSWERS((void)params, cuCtxCreate_v2(context, flags, device));

CUresult cuCtxDestroy_v2(CUcontext context)
{
	struct core_context *found;
	CUresult code = find_context(context, &found);

	if (code != CUDA_SUCCESS)
		return code;
	if (found->primary)
		return cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
				 "context %p is a primary one: cuDevicePrimaryCtxRelease ends that",
				 (void *)context);
	bool current = current_handle() == (void *)context;
	core_device_synchronize(found->device, found, -1);
	cuda_memory_end_context(context);
	if (current)
		cuCtxPopCurrent_v2(NULL);
	return cuda_of_core(core_context_destroy(context));
}

/* ---- about the current one ---- */

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
	CUDA_ANSWERS_WITH(struct core_context *found,
			  find_context(context, &found) ?: CUDA_GIVE(device, found->user_device));

CUresult cuCtxGetDevice(CUdevice *device) CUDA_ANSWERS(cuCtxGetDevice_v2(device, NULL));

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
	CUDA_ANSWERS_WITH(void *asked = context != NULL ? (void *)context : current_handle(),
			  cuda_check_context(asked, CUDA_ERROR_CONTEXT_IS_DESTROYED)
				  ?: CUDA_GIVE(id, (uintptr_t)asked));

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct core_context *found;

	return cuda_pools_settle(
		find_context(context, &found)
			?: cuda_unharmed()
			?: cuda_of_core(core_device_synchronize(found->device, found, -1)));
}

CUresult cuCtxSynchronize(void) CUDA_ANSWERS(cuCtxSynchronize_v2(NULL));

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
	CUDA_ANSWERS((void)context, CUDA_GIVE(version, 3020));

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
	CUDA_ANSWERS(cuda_current(NULL) ?: CUDA_GIVE_IF(least, 0) ?: CUDA_GIVE_IF(greatest, -5));

/* ---- captures and a profiler, which there are none of ---- */

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode current;
	CUstreamCaptureMode before = current;

	if (*mode < 0 || *mode > 2)
		return cuda_invalid("mode is %d; known are 0 to 2", *mode);
	current = *mode;
	return CUDA_GIVE(mode, before);
}

CUresult cuProfilerInitialize(const char *config, const char *output, int mode)
	CUDA_ANSWERS((void)config, (void)output, (void)mode, CUDA_SUCCESS);
CUresult cuProfilerStart(void) CUDA_ANSWERS(CUDA_SUCCESS);
CUresult cuProfilerStop(void) CUDA_ANSWERS(CUDA_SUCCESS);

/* ---- peers ---- */

static CUresult set_peer(CUcontext peer, bool enable)
{
	struct core_context *own, *other;
	uint32_t status = 0;
	CUresult code = cuda_current(&own) ?: find_context(peer, &other);

	if (code != CUDA_SUCCESS)
		return code;
	if (own->device == other->device)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, "both contexts are of device %d",
				 own->user_device);
	npu_call(core_driver(), drvGetP2PStatus, own->device, other->device, &status);
	if (enable == (status != 0))
		return cuda_fail(enable ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
					: CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
				 "it is%s enabled", enable ? "" : " not");
	return enable ? CUDA_CALL(halDeviceEnableP2P, own->device, other->device, 0)
		      : CUDA_CALL(halDeviceDisableP2P, own->device, other->device, 0);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
	CUDA_ANSWERS(cuda_no_flags(flags) ?: set_peer(peer, true));
CUresult cuCtxDisablePeerAccess(CUcontext peer) CUDA_ANSWERS(set_peer(peer, false));
