/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps contexts, and which one is current in each thread. A thread follows either one context, or
 * whichever is the primary context of one device: as in CANN, a device that was reset and set
 * again is current again in the threads that had set it.
 */
#include "core/object/context.h"

#include "base/lock.h"

#include <stddef.h>
#include <string.h>

struct core_pool core_contexts =
	CORE_POOL(1, "context", "aclrtCreateContext", struct context, NULL);

static __thread struct {
	void *explicit_context; /* handle */
	int64_t device_plus_1;  /* primary context of that device; 0: none */
} current;

struct context *core_context_of(const struct core_context *face)
{
	return (struct context *)((char *)(uintptr_t)face - offsetof(struct context, face));
}

void *core_context_handle(const struct core_context *context)
{
	return core_slot_handle(core_context_of(context));
}

struct context *core_context_make(int32_t user, uint32_t logic, bool primary)
{
	struct context *context = core_pool_take(&core_contexts);

	if (context == NULL)
		return NULL;
	context->face.user_device = user;
	context->face.device = logic;
	context->face.primary = primary;
	for (size_t i = 0; i < sizeof(context->face.words) / sizeof(context->face.words[0]); i++)
		context->face.words[i] = 0;
	atomic_store(&context->default_stream, NULL);
	atomic_store(&context->stops, false);
	atomic_store(&context->failure, CORE_OK);
	core_pool_publish(&core_contexts, context);
	return context;
}

/* CANN v9.1.0, too, keeps mode and failure by context (src/runtime/core/src/stream/stream.cc:4139
 * and 4179, context/context.cc:2349); nothing but the context's end takes them away. */
int core_context_stopped(const struct context *context)
{
	int code = atomic_load(&context->failure);

	if (code == CORE_OK)
		return CORE_OK;
	return core_fail(code,
			 "a task failed with %d, and the context has a stream of "
			 "ACL_STOP_ON_FAILURE: it takes no more work; reset the device, or destroy "
			 "the context",
			 code);
}

void core_context_follow(int64_t logic)
{
	current.explicit_context = NULL;
	current.device_plus_1 = logic + 1;
}

struct context *core_context_look(void **out_handle)
{
	*out_handle = current.device_plus_1 > 0
			      ? core_device_primary((uint32_t)(current.device_plus_1 - 1))
			      : current.explicit_context;
	return core_pool_find(&core_contexts, *out_handle);
}

struct core_context *core_context_peek(void)
{
	void *handle;
	struct context *context = core_context_look(&handle);

	return context == NULL ? NULL : &context->face;
}

void core_context_deselect(void)
{
	core_context_follow(-1);
}

struct core_context *core_context_find(void *handle)
{
	struct context *context = core_pool_find(&core_contexts, handle);

	return context == NULL ? NULL : &context->face;
}

int core_context_none(void)
{
	if (core_is_forked())
		core_driver(); /* says so */
	else if (current.device_plus_1 > 0 || current.explicit_context != NULL)
		npu_message_set(
			"no current context: the thread's was destroyed or its device reset; call "
			"aclrtSetDevice or aclrtSetCurrentContext in this thread");
	else
		npu_message_set("no current context: call aclrtSetDevice or aclrtSetCurrentContext "
				"in this thread first");
	npu_message_prefix("%s: ", core_called);
	return core_last_error_note(ACL_ERROR_RT_CONTEXT_NULL);
}

void core_context_leave(const void *handle)
{
	if (current.explicit_context == handle)
		current.explicit_context = NULL;
}

int core_context_select(void *handle)
{
	if (core_pool_find(&core_contexts, handle) == NULL)
		return core_pool_missing(&core_contexts, handle, ACL_ERROR_RT_CONTEXT_NULL);
	current.explicit_context = handle;
	current.device_plus_1 = 0;
	return CORE_OK;
}

static pthread_cond_t unlinked = PTHREAD_COND_INITIALIZER; /* core_lists_lock */

unsigned core_owned_live(const struct core_pool *pool, uint32_t device)
{
	return device < CORE_DEVICE_MAX ? atomic_load(&pool->live[device]) : 0;
}

void *core_owned_link(struct core_pool *pool, struct core_owned *list, void *object,
		      const void *context, _Atomic(void *) *also)
{
	struct core_slot *slot = object;
	void *handle;
	LOCKED(&core_lists_lock);

	if (core_slot_handle(slot->context) != context)
		return NULL;
	LIST_INSERT_HEAD(list, slot, sibling);
	atomic_fetch_add(&pool->live[slot->context->face.device], 1);
	handle = core_pool_publish(pool, slot);
	if (also != NULL)
		atomic_store_explicit(also, handle, memory_order_release);
	return handle;
}

void core_owned_unlink(struct core_pool *pool, void *object)
{
	struct core_slot *slot = object;
	LOCKED(&core_lists_lock);

	LIST_REMOVE(slot, sibling);
	atomic_fetch_sub(&pool->live[slot->context->face.device], 1);
	pthread_cond_broadcast(&unlinked);
}

void *core_owned_take(const struct core_owned *list, const struct context *context)
{
	UNCANCELLED;
	struct core_slot *slot;
	LOCKED(&core_lists_lock);

	for (;;) {
		bool left = false;

		LIST_FOREACH(slot, list, sibling)
		{
			if (slot->context != context)
				continue;
			left = true;
			if (core_pool_hide(slot, core_slot_handle(slot)))
				return slot;
		}
		if (!left)
			return NULL;
		pthread_cond_wait(&unlinked, &core_lists_lock);
	}
}

struct device core_devices[CORE_DEVICE_MAX];

/* In the order of CANN's runtime; what an older driver lacks of it does no harm. */
static int open_device(uint32_t logic)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out = { { 0 } };
	struct halCapabilityInfo capability;
	uint32_t ssid = 0;
	drvError_t code;

	if (core_check_driver() != CORE_OK)
		return ACL_ERROR_INTERNAL_ERROR;
	code = core_call(halDeviceOpen, logic, &in, &out);
	if (code != DRV_ERROR_NONE) {
		core_result_about(code, npu_text("device %u cannot be opened: ", logic));
		return core_last_error_change(ACL_ERROR_RT_DEV_SETUP_ERROR);
	}
	core_device_was_opened();
	core_call(drvMemSmmuQuery, logic, &ssid);
	memset(&capability, 0, sizeof(capability));
	core_call(halGetChipCapability, logic, &capability);
	return CORE_OK;
}

int core_device_hold_locked(uint32_t logic)
{
	int code = core_devices[logic].users == 0 ? open_device(logic) : CORE_OK;

	core_devices[logic].users += code == CORE_OK;
	return code;
}

void core_device_drop_locked(uint32_t logic)
{
	halDevCloseIn in = { { 0 } };

	if (core_devices[logic].users > 0 && --core_devices[logic].users == 0)
		core_call(halDeviceClose, logic, &in);
}

void core_device_drop(uint32_t logic)
{
	LOCKED(&core_setup_lock);

	core_device_drop_locked(logic);
}

void *core_device_primary(uint32_t logic)
{
	return logic < CORE_DEVICE_MAX
		       ? atomic_load_explicit(&core_devices[logic].primary, memory_order_acquire)
		       : NULL;
}
