/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and destroys the contexts that programs ask for, and ends contexts of any kind.
 */
#include "core/end.h"
#include "core/object/device.h"
#include "core/object/error.h"

void core_context_end(struct context *context, bool force, const char *call)
{
	struct core_stream *stream;

	while ((stream = core_stream_take_of(context)) != NULL)
		core_stream_end(stream, force, call);
	core_event_end_all(context);
	core_pool_give(&core_contexts, context);
}

int core_context_create(int32_t user, void **out_context, const char *call)
{
	struct context *context;
	uint32_t logic;
	int code =
		core_device_logic(user, "deviceId", call, &logic) ?: core_device_hold(logic, call);

	if (code != CORE_OK)
		return code;
	context = core_context_make(user, logic, false);
	if (context == NULL) {
		core_device_drop(logic);
		return core_no_memory(call, "no memory for a context");
	}
	*out_context = core_slot_handle(context);
	return core_context_select(*out_context, call);
}

int core_context_destroy(void *handle, const char *call)
{
	struct context *context = core_pool_find(&core_contexts, handle);
	uint32_t logic;

	if (context == NULL || core_is_forked())
		return core_context_no_such(handle, call);
	if (context->face.primary)
		return core_fail(CORE_CONTEXT_NULL, call,
				 "context=%p is the primary context of device %d: aclrtResetDevice "
				 "ends that",
				 handle, context->face.user_device);
	if (!core_pool_hide(&core_contexts, context, handle))
		return core_context_no_such(handle, call);
	logic = context->face.device;
	core_context_leave(handle);
	core_context_end(context, false, call);
	core_device_drop(logic);
	return CORE_OK;
}
