/* SPDX-License-Identifier: Apache-2.0
 *
 * User ids and logic ids: how ASCEND_RT_VISIBLE_DEVICES maps to the driver's devices. Owns the
 * list as it was when the driver was first asked. The rules are those of CANN's runtime: ascending
 * numbers; the list ends at the first entry that is not the number of a device; a list that is not
 * ascending, or has no device, hides all.
 */
#include "base/lock.h"
#include "core/object/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct visible {
	bool known, set;
	uint32_t devices; /* of the driver */
	uint32_t count;   /* that the program may use */
	uint32_t logic[CORE_DEVICE_MAX];
	const char *wrong; /* why all are hidden */
	char value[256];   /* of the variable */
	char text[512];
} visible;
static pthread_mutex_t visible_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *variable = "ASCEND_RT_VISIBLE_DEVICES"; /* visible_lock */
static bool any_order;

static bool has_device(const struct visible *v, uint32_t id)
{
	for (uint32_t i = 0; i < v->count; i++)
		if (v->logic[i] == id)
			return true;
	return false;
}

static void parse_list(struct visible *v)
{
	char *end = v->value;

	while (v->count < v->devices) {
		const char *entry = end + (v->count > 0);
		unsigned long id = strtoul(entry, &end, 10);
		size_t length = strcspn(entry, ",");

		if (!isdigit((unsigned char)entry[0]) || end != entry + length ||
		    id >= v->devices) {
			if (length > 0 || entry[0] != '\0')
				npu_log(NPU_LOG_WARN,
					"%s=%s: '%.*s' is no device (there are 0 to %u): it and "
					"what follows it are ignored, %u of the list are used",
					variable, v->value, (int)length, entry, v->devices - 1,
					v->count);
			break;
		}
		if (any_order ? has_device(v, (uint32_t)id)
			      : v->count > 0 && id <= v->logic[v->count - 1]) {
			v->wrong = has_device(v, (uint32_t)id) ? "has a device twice"
							       : "is not ascending";
			v->count = 0;
			return;
		}
		v->logic[v->count++] = (uint32_t)id;
		if (*end == '\0')
			break;
	}
	if (v->count == 0)
		v->wrong = "names no device that is there";
}

static int learn_locked(struct npu_driver *drv)
{
	const char *value = secure_getenv(variable);
	struct visible v = { .known = true, .set = value != NULL };
	drvError_t code = npu_call(drv, drvGetDevNum, &v.devices);
	size_t length = 0;

	if (code != DRV_ERROR_NONE)
		return core_result("npusim: asking for the number of devices", code);
	if (v.devices > CORE_DEVICE_MAX)
		v.devices = CORE_DEVICE_MAX;
	if (v.set) {
		snprintf(v.value, sizeof(v.value), "%s", value);
		parse_list(&v);
	}
	if (v.wrong != NULL)
		npu_log(NPU_LOG_WARN, "%s=%s %s: no device can be used", variable, v.value,
			v.wrong);
	for (; !v.set && v.count < v.devices; v.count++)
		v.logic[v.count] = v.count;
	for (uint32_t i = 0; i < v.count && length < sizeof(v.text); i++)
		length += (size_t)snprintf(v.text + length, sizeof(v.text) - length, "%s%u -> %u",
					   i > 0 ? ", " : "", i, v.logic[i]);
	visible = v;
	return CORE_OK;
}

/* NULL, message set, where the driver does not answer; it is asked again at the next call. */
static const struct visible *learn(void)
{
	struct npu_driver *drv = core_driver();

	if (drv == NULL)
		return NULL;
	LOCKED(&visible_lock);
	return visible.known || learn_locked(drv) == CORE_OK ? &visible : NULL;
}

void core_visible_use(const char *name, bool in_any_order)
{
	LOCKED(&visible_lock);

	variable = name;
	any_order = in_any_order;
	visible.known = false;
}

int core_device_count(uint32_t *out_user_count, uint32_t *out_logic_count)
{
	const struct visible *v = learn();

	if (v == NULL)
		return CORE_API_INTERNAL;
	if (v->wrong != NULL) {
		npu_message_set("%s=%s %s; it must be a list of devices from 0 to %u, ascending, "
				"such as 0,1",
				variable, v->value, v->wrong, v->devices - 1);
		return core_last_error_note(CORE_NO_DEVICE);
	}
	*out_user_count = v->count;
	*out_logic_count = v->devices;
	return CORE_OK;
}

bool core_user_to_logic(int32_t user, uint32_t *out_logic)
{
	const struct visible *v = learn();
	const char *range;

	if (v == NULL)
		return false;
	if (user >= 0 && (uint32_t)user < v->count) {
		*out_logic = v->logic[user];
		return true;
	}
	range = v->count == 0 ? "there is none" : npu_text("valid are 0 to %u", v->count - 1);
	if (!v->set)
		npu_message_set("device %d does not exist: %s", user, range);
	else if (v->wrong != NULL)
		npu_message_set("device %d cannot be used: %s=%s %s", user, variable, v->value,
				v->wrong);
	else
		npu_message_set("device %d does not exist: %s. These are user ids, indices of "
				"%s=%s; user id -> driver's logic id: %s",
				user, range, variable, v->value, v->text);
	return false;
}

bool core_logic_to_user(uint32_t logic, int32_t *out_user)
{
	const struct visible *v = learn();

	if (v == NULL)
		return false;
	for (uint32_t i = 0; i < v->count; i++) {
		if (v->logic[i] == logic) {
			*out_user = (int32_t)i;
			return true;
		}
	}
	if (logic >= v->devices)
		npu_message_set("logic device %u does not exist: the driver has 0 to %u", logic,
				v->devices - 1);
	else
		npu_message_set("logic device %u is hidden from this program by %s=%s; user id -> "
				"logic id: %s",
				logic, variable, v->value, v->text);
	return false;
}

const char *core_visible_text(void)
{
	const struct visible *v = learn();

	return v == NULL ? "" : v->text;
}

int core_device_logic(int32_t user, const char *argument, const char *call, uint32_t *out_logic)
{
	const struct visible *v;

	if (core_user_to_logic(user, out_logic))
		return CORE_OK;
	if (core_driver() == NULL) {
		npu_message_prefix("%s: ", call);
		return CORE_API_INTERNAL;
	}
	npu_message_prefix("%s: %s=%d: ", call, argument, user);
	core_last_error_note(CORE_INVALID_DEVICE);
	v = learn();
	for (uint32_t own = 0; v != NULL && own < v->count; own++)
		if (v->logic[own] == (uint32_t)user)
			core_order(0, NPU_ORDER_OTHER_ID, v->logic[own], own);
	return CORE_INVALID_DEVICE;
}
