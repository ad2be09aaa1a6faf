/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a device in the driver for its first user, and closes it after its last.
 */
#include "core/object/device.h"

#include "base/lock.h"
#include "core/object/error.h"

#include <string.h>

struct device core_devices[CORE_DEVICE_MAX];

/* In the order of CANN's runtime; what an older driver lacks of it does no harm. */
static int open_device(uint32_t logic, const char *call)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out = { { 0 } };
	struct halCapabilityInfo capability;
	uint32_t ssid = 0;
	drvError_t code;

	if (core_driver() == NULL)
		return CORE_API_INTERNAL;
	code = core_call(halDeviceOpen, logic, &in, &out);
	if (code != DRV_ERROR_NONE) {
		core_result(call, code);
		npu_message_prefix("device %u cannot be opened: ", logic);
		return core_last_error_note(CORE_DEVICE_SETUP);
	}
	core_device_was_opened();
	core_call(drvMemSmmuQuery, logic, &ssid);
	memset(&capability, 0, sizeof(capability));
	core_call(halGetChipCapability, logic, &capability);
	return CORE_OK;
}

int core_device_hold_locked(uint32_t logic, const char *call)
{
	int code = core_devices[logic].users == 0 ? open_device(logic, call) : CORE_OK;

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
