/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on devices (set, reset and retain, which create and end their primary contexts), and
 * on the contexts that programs ask for.
 */
#include "base/lock.h"
#include "core/end.h"
#include "core/object/context.h"

void core_context_end(struct context *context, bool force)
{
	struct core_stream *stream;

	while ((stream = core_owned_take(&core_stream_lists[context->face.device], context)) !=
	       NULL)
		core_stream_end(stream, force);
	core_event_end_all(context);
	core_pool_give(&core_contexts, context);
}

/* A context that is one user more of its device. */
static int make_context_locked(int32_t user, uint32_t logic, bool primary, void **out)
{
	struct context *context;
	int code = core_device_hold_locked(logic);

	if (code != CORE_OK)
		return code;
	context = core_context_make(user, logic, primary);
	if (context == NULL) {
		core_device_drop_locked(logic);
		return core_no_memory("no memory for a context");
	}
	*out = core_slot_handle(context);
	return CORE_OK;
}

/* One aclrtSetDevice more: *out_context is the primary context. */
static int set_once(int32_t user, const char *argument, uint32_t *out_logic, void **out_context)
{
	int code = core_device_logic(user, argument, out_logic);

	if (code != CORE_OK)
		return code;
	LOCKED(&core_setup_lock);
	*out_context = core_device_primary(*out_logic);
	if (core_devices[*out_logic].set == 0)
		code = make_context_locked(user, *out_logic, true, out_context);
	if (code == CORE_OK) {
		core_devices[*out_logic].set++;
		atomic_store_explicit(&core_devices[*out_logic].primary, *out_context,
				      memory_order_release);
	}
	return code;
}

int core_device_set(int32_t user)
{
	void *context;
	uint32_t logic;
	int code = set_once(user, "deviceId", &logic, &context);

	if (code == CORE_OK)
		core_context_follow(logic);
	return code;
}

int core_device_retain(int32_t user, void **out_context)
{
	uint32_t logic;

	return set_once(user, "device", &logic, out_context);
}

int core_device_keep(uint32_t logic)
{
	int code = CORE_OK;

	if (logic >= CORE_DEVICE_MAX)
		return core_fail(ACL_ERROR_RT_INVALID_DEVICEID, "device %u does not exist", logic);
	if (core_devices[logic].kept)
		return CORE_OK;
	LOCKED(&core_setup_lock);
	if (!core_devices[logic].kept) {
		code = core_device_hold_locked(logic);
		core_devices[logic].kept = code == CORE_OK;
	}
	return code;
}

int core_device_reset(int32_t user, bool force)
{
	struct context *context;
	void *handle = NULL;
	uint32_t logic;
	int code = core_device_logic(user, "deviceId", &logic);

	if (code != CORE_OK)
		return code;
	pthread_mutex_lock(&core_setup_lock);
	if (core_devices[logic].set == 0) {
		code = core_fail(
			ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
			"deviceId=%d is not set: each aclrtSetDevice can be taken back once", user);
	} else if (force || --core_devices[logic].set == 0) {
		core_devices[logic].set = 0;
		handle = atomic_exchange(&core_devices[logic].primary, NULL);
	}
	pthread_mutex_unlock(&core_setup_lock);
	context = core_pool_find(&core_contexts, handle);
	if (context == NULL || !core_pool_hide(context, handle))
		return code;
	/* Outside of the lock: its work may have callbacks that set devices. */
	core_context_end(context, false);
	core_device_drop(logic);
	return CORE_OK;
}

int core_device_primary_active(int32_t user, bool *out_active)
{
	uint32_t logic;

	return core_device_logic(user, "deviceId", &logic)
		       ?: CORE_GIVE(out_active, core_device_primary(logic) != NULL);
}

int core_context_create(int32_t user, void **out_context)
{
	uint32_t logic;
	int code = core_device_logic(user, "deviceId", &logic);

	if (code != CORE_OK)
		return code;
	pthread_mutex_lock(&core_setup_lock);
	code = make_context_locked(user, logic, false, out_context);
	pthread_mutex_unlock(&core_setup_lock);
	return code ?: core_context_select(*out_context);
}

int core_context_destroy(void *handle)
{
	struct context *context = core_pool_find(&core_contexts, handle);
	uint32_t logic;

	if (context == NULL)
		return core_pool_missing(&core_contexts, handle, ACL_ERROR_RT_CONTEXT_NULL);
	if (context->face.primary)
		return core_fail(ACL_ERROR_RT_CONTEXT_NULL,
				 "context=%p is the primary context of device %d: aclrtResetDevice "
				 "ends that",
				 handle, context->face.user_device);
	if (!core_pool_hide(context, handle))
		return core_pool_missing(&core_contexts, handle, ACL_ERROR_RT_CONTEXT_NULL);
	logic = context->face.device;
	core_context_leave(handle);
	core_context_end(context, false);
	core_device_drop(logic);
	return CORE_OK;
}
