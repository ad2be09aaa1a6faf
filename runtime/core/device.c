/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of this process: which are open, how often each was set, its primary context. A device is
 * open while it has users: its primary context, and each context of aclrtCreateContext.
 */
#include "core-private.h"

#include <string.h>

struct device {
	unsigned users;          /* contexts; core_setup_lock */
	bool kept;               /* core_device_keep() is one of the users; core_setup_lock */
	unsigned set;            /* aclrtSetDevice less aclrtResetDevice; core_setup_lock */
	_Atomic(void *) primary; /* handle */
};
static struct device devices[CORE_DEVICE_MAX];

/* In the order of CANN's runtime; what an older driver lacks of it does no harm. */
static int open_device(struct npu_driver *drv, uint32_t logic, const char *call)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out = { { 0 } };
	struct halCapabilityInfo capability;
	uint32_t ssid = 0;
	drvError_t code = npu_call(drv, halDeviceOpen, logic, &in, &out);

	if (code != DRV_ERROR_NONE) {
		core_result(call, code);
		npu_message_prefix("device %u cannot be opened: ", logic);
		core_last_error_note(CORE_DEVICE_SETUP);
		return CORE_DEVICE_SETUP;
	}
	core_device_was_opened();
	npu_call(drv, drvMemSmmuQuery, logic, &ssid);
	memset(&capability, 0, sizeof(capability));
	npu_call(drv, halGetChipCapability, logic, &capability);
	return CORE_OK;
}

int core_device_hold_locked(uint32_t logic, const char *call)
{
	struct npu_driver *drv = core_driver();
	int code;

	if (drv == NULL)
		return CORE_API_INTERNAL;
	if (devices[logic].users == 0) {
		code = open_device(drv, logic, call);
		if (code != CORE_OK)
			return code;
	}
	devices[logic].users++;
	return CORE_OK;
}

void core_device_drop_locked(uint32_t logic)
{
	struct npu_driver *drv = core_driver();
	halDevCloseIn in = { { 0 } };

	if (devices[logic].users == 0 || --devices[logic].users > 0 || drv == NULL)
		return;
	npu_call(drv, halDeviceClose, logic, &in);
}

void *core_device_primary(uint32_t logic)
{
	return logic < CORE_DEVICE_MAX
		       ? atomic_load_explicit(&devices[logic].primary, memory_order_acquire)
		       : NULL;
}

static int make_primary_locked(int32_t user, uint32_t logic, const char *call)
{
	struct context *context;
	int code = core_device_hold_locked(logic, call);

	if (code != CORE_OK)
		return code;
	context = core_context_make(user, logic, true);
	if (context == NULL) {
		core_device_drop_locked(logic);
		return core_fail(CORE_MEMORY_ALLOCATION, call, "no memory for a context");
	}
	atomic_store_explicit(&devices[logic].primary, core_slot_handle(context),
			      memory_order_release);
	return CORE_OK;
}

int core_device_set(int32_t user, const char *call)
{
	uint32_t logic;
	int code = core_device_logic(user, "deviceId", call, &logic);

	if (code != CORE_OK)
		return code;
	pthread_mutex_lock(&core_setup_lock);
	if (devices[logic].set == 0)
		code = make_primary_locked(user, logic, call);
	if (code == CORE_OK)
		devices[logic].set++;
	pthread_mutex_unlock(&core_setup_lock);
	if (code == CORE_OK)
		core_context_follow(logic);
	return code;
}

int core_device_retain(int32_t user, void **out_context, const char *call)
{
	uint32_t logic;
	int code = core_device_logic(user, "device", call, &logic);

	if (code != CORE_OK)
		return code;
	pthread_mutex_lock(&core_setup_lock);
	if (devices[logic].set == 0)
		code = make_primary_locked(user, logic, call);
	if (code == CORE_OK) {
		devices[logic].set++;
		*out_context = core_device_primary(logic);
	}
	pthread_mutex_unlock(&core_setup_lock);
	return code;
}

int core_device_keep(uint32_t logic, const char *call)
{
	int code = CORE_OK;

	if (logic >= CORE_DEVICE_MAX)
		return core_fail(CORE_INVALID_DEVICE, call, "device %u does not exist", logic);
	pthread_mutex_lock(&core_setup_lock);
	if (!devices[logic].kept) {
		code = core_device_hold_locked(logic, call);
		devices[logic].kept = code == CORE_OK;
	}
	pthread_mutex_unlock(&core_setup_lock);
	return code;
}

/* Takes the primary context off the device, for whoever is to end it. */
static struct context *take_primary_locked(uint32_t logic)
{
	void *handle = atomic_exchange(&devices[logic].primary, NULL);
	struct context *context = core_pool_find(&core_contexts, handle);

	if (context == NULL || !core_pool_hide(&core_contexts, context, handle))
		return NULL;
	return context;
}

int core_device_reset(int32_t user, bool force, const char *call)
{
	struct context *context = NULL;
	uint32_t logic;
	int code = core_device_logic(user, "deviceId", call, &logic);

	if (code != CORE_OK)
		return code;
	pthread_mutex_lock(&core_setup_lock);
	if (devices[logic].set == 0) {
		pthread_mutex_unlock(&core_setup_lock);
		return core_fail(
			CORE_CONTEXT_RELEASE, call,
			"deviceId=%d is not set: each aclrtSetDevice can be taken back once", user);
	}
	devices[logic].set = force ? 0 : devices[logic].set - 1;
	if (devices[logic].set == 0)
		context = take_primary_locked(logic);
	pthread_mutex_unlock(&core_setup_lock);
	if (context == NULL)
		return CORE_OK;
	/* Outside of the lock: its work may have callbacks that set devices. */
	core_context_end(context, false, call);
	pthread_mutex_lock(&core_setup_lock);
	core_device_drop_locked(logic);
	pthread_mutex_unlock(&core_setup_lock);
	return CORE_OK;
}

int core_device_primary_active(int32_t user, bool *out_active, const char *call)
{
	uint32_t logic;
	int code = core_device_logic(user, "deviceId", call, &logic);

	if (code == CORE_OK)
		*out_active = core_device_primary(logic) != NULL;
	return code;
}

void core_device_shutdown(void)
{
	struct context *context;

	pthread_mutex_lock(&core_setup_lock);
	for (uint32_t logic = 0; logic < CORE_DEVICE_MAX; logic++) {
		devices[logic].set = 0;
		atomic_store(&devices[logic].primary, NULL);
	}
	pthread_mutex_unlock(&core_setup_lock);
	while ((context = core_pool_hide_any(&core_contexts)) != NULL) {
		uint32_t logic = context->face.device;

		core_context_end(context, true, "npusim");
		pthread_mutex_lock(&core_setup_lock);
		core_device_drop_locked(logic);
		pthread_mutex_unlock(&core_setup_lock);
	}
	pthread_mutex_lock(&core_setup_lock);
	for (uint32_t logic = 0; logic < CORE_DEVICE_MAX; logic++) {
		if (devices[logic].kept)
			core_device_drop_locked(logic);
		devices[logic].kept = false;
	}
	pthread_mutex_unlock(&core_setup_lock);
	core_visible_forget();
}
