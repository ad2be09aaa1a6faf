/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of the process: when the driver stack is opened, how a fork affects it, simulated
 * time, what it still holds at its end, how calls are refused, and the numbers of devices. Owns the
 * pointer to the top of the stack, through which all driver calls go.
 */
#include "core/object/process.h"

#include "base/clock.h"
#include "base/lock.h"
#include "driver/layer.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t core_setup_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t core_lists_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic(struct npu_driver *) top;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool fork_watched; /* open_lock */
static bool complained;   /* open_lock */
static atomic_bool device_opened, forked, ended;

/* ---- fork ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&open_lock);
	pthread_mutex_lock(&core_setup_lock);
	pthread_mutex_lock(&core_lists_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&core_lists_lock);
	pthread_mutex_unlock(&core_setup_lock);
	pthread_mutex_unlock(&open_lock);
}

/* Asking how many devices there are, and then forking, is what many programs do: a driver that has
 * no device open goes on in the child. */
static void in_child(void)
{
	if (atomic_load(&device_opened)) {
		atomic_store(&forked, true);
		atomic_store(&top, NULL);
	}
	after_fork();
}

void core_order(uint32_t device, enum npu_order what, uint32_t id, uint64_t value)
{
	struct npu_driver *drv = core_driver_peek();

	if (drv != NULL)
		npu_call(drv, npusimOrder, device, what, id, value);
}

bool core_is_forked(void)
{
	return atomic_load_explicit(&forked, memory_order_relaxed);
}

void core_device_was_opened(void)
{
	atomic_store(&device_opened, true);
}

/* ---- the driver ---- */

/* CANN's documents make rules for its own functions, not for CUDA's, nor for a callback's calls. */
static bool is_documented(void)
{
	return strncmp(core_called, "acl", 3) == 0 || strncmp(core_called, "rt", 2) == 0;
}

/* The driver has asked for forks before: handlers run last one first before a fork, and our locks
 * are the outer ones. */
static void use_locked(struct npu_driver *drv)
{
	if (!fork_watched)
		pthread_atfork(before_fork, after_fork, in_child);
	fork_watched = true;
	/* libcuda.so has no such function: what libascendcl.so has said stays */
	if (drv != NULL && (drv->caps & NPU_CAP_MODEL) && strncmp(core_called, "cu", 2) != 0)
		npu_call(drv, npusimDocumentedBy, is_documented);
	atomic_store_explicit(&top, drv, memory_order_release);
}

static bool open_locked(void)
{
	char *error = NULL;
	struct npu_driver *drv = NULL;

	if (npu_var_check_all(&error))
		drv = npu_driver_open(NULL, &error);
	if (drv != NULL)
		drv = driver_interposed(drv);
	if (drv == NULL) {
		npu_message_set("npusim: %s", error ?: "no driver, and no memory to say why");
		if (!complained && strcmp(npu_var_get(NPU_VAR_FAILURES, NULL), "off") != 0)
			npu_log(NPU_LOG_ERROR, "%s", npu_message() + strlen("npusim: "));
		complained = true;
		npu_message_logged();
		free(error);
		return false;
	}
	use_locked(drv);
	return true;
}

static struct npu_driver *open_driver(void)
{
	UNCANCELLED;

	if (core_is_forked()) {
		npu_message_set("npusim: this process was forked after its parent had opened a "
				"device, and no device survives fork(): open it in the child "
				"alone, or start the child by spawn (Python: multiprocessing's "
				"'spawn') or exec()");
		return NULL;
	}
	if (atomic_load(&ended)) {
		npu_message_set("npusim: the process is ending");
		return NULL;
	}
	LOCKED(&open_lock);
	return atomic_load(&top) != NULL || open_locked() ? atomic_load(&top) : NULL;
}

struct npu_driver *core_driver(void)
{
	struct npu_driver *drv = atomic_load_explicit(&top, memory_order_acquire);

	return __builtin_expect(drv != NULL, 1) ? drv : open_driver();
}

void core_driver_use(struct npu_driver *drv)
{
	LOCKED(&open_lock);

	use_locked(drv == NULL ? NULL : npu_driver_complete(drv));
	atomic_store(&device_opened, false);
}

uint64_t core_now_ps(void)
{
	struct npu_driver *drv = atomic_load_explicit(&top, memory_order_acquire);
	uint64_t ps;

	if (drv != NULL && npu_call(drv, npusimNow, &ps) == DRV_ERROR_NONE)
		return ps;
	return clock_now_ns() * 1000;
}

uint64_t core_now_ns(void)
{
	return core_now_ps() / 1000;
}

uint64_t core_deadline_ns(int32_t timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX
			      : core_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
}

struct npu_driver *core_driver_peek(void)
{
	return core_is_forked() ? NULL : atomic_load(&top);
}

static void leak_line(void *arg, const char *text)
{
	unsigned *lines = arg;

	if ((*lines)++ == 0)
		npu_log(NPU_LOG_WARN, "left at the end of the process (NPUSIM_LEAKS=full lists "
				      "all, off says nothing):");
	npu_log(NPU_LOG_WARN, "  %s", text);
}

/* The status that the process is to end with where NPUSIM_LEAKS=fail, and something is left; else
 * 0. */
static int report_leaks(struct npu_driver *drv)
{
	const char *mode = npu_var_get(NPU_VAR_LEAKS, NULL);
	bool fails = strncmp(mode, "fail", strlen("fail")) == 0;
	unsigned lines = 0;

	if (strcmp(mode, "off") == 0)
		return 0;
	npu_call(drv, npusimLeaks, leak_line, &lines, fails || strcmp(mode, "full") == 0);
	if (!fails || lines == 0)
		return 0;
	return mode[4] == ':' ? atoi(mode + strlen("fail:")) : 1;
}

/* Other threads may still be inside of the driver, waiting for work that never ends: they are left
 * alone, and so is the driver. What the process holds goes with it. */
__attribute__((destructor)) static void end_of_process(void)
{
	struct npu_driver *drv = core_driver_peek();
	int status = drv != NULL ? report_leaks(drv) : 0;

	atomic_store(&ended, drv != NULL);
	if (status != 0)
		driver_stack_exit(status);
}

/* ---- how calls are refused: the code, the message that begins with the call's name, and the
 * thread's last error ---- */

__thread const char *core_called = "";
static __thread int last_error;
static __thread drvError_t driver_code;

int core_last_error_note(int code)
{
	driver_code = DRV_ERROR_NONE;
	if (code >= ACL_ERROR_RT_PARAM_INVALID)
		last_error = code;
	return code;
}

int core_last_error_change(int code)
{
	return last_error = code;
}

int core_driver_code(void)
{
	return driver_code;
}

int core_last_error(bool take)
{
	int code = last_error;

	last_error = take ? CORE_OK : code;
	return code;
}

/* Why the driver has answered that. */
static const char *reason_of(struct npu_driver *drv, drvError_t code)
{
	const char *text = npu_call(drv, npusimLastMessage);

	return text != NULL && text[0] != '\0'
		       ? text
		       : npu_text("the driver answers %d (%s)", code,
				  driver_code_name(code) ?: "a code without a name");
}

static int no_driver(void)
{
	npu_message_prefix("%s: ", core_called);
	return core_last_error_note(ACL_ERROR_INTERNAL_ERROR);
}

int core_result_about(drvError_t code, const char *about)
{
	struct npu_driver *drv = core_driver_peek();

	if (code == CORE_NO_DRIVER)
		return no_driver();
	if (drv == NULL) /* a callback of the call has forked */
		return core_check_driver();
	npu_message_set("%s: %s%s", core_called, about, reason_of(drv, code));
	int result = core_last_error_note(driver_code_acl(code));
	driver_code = code;
	return result;
}

int core_check_driver(void)
{
	return core_driver() != NULL ? CORE_OK : no_driver();
}

int core_fail(int code, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	npu_message_set("%s: %s", core_called, text);
	return core_last_error_note(code);
}

/* ---- user ids and logic ids ---- */

/* How ASCEND_RT_VISIBLE_DEVICES maps to the driver's devices, as it was when the driver was first
 * asked. The rules are those of CANN's runtime: ascending numbers; the list ends at the first entry
 * that is not the number of a device; a list that is not ascending, or has no device, hides all. */
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

	if (code != DRV_ERROR_NONE) {
		npu_message_set("npusim: asking for the number of devices: %s",
				reason_of(drv, code));
		return core_last_error_note(driver_code_acl(code));
	}
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
	int code = core_check_driver();
	const struct visible *v = code == CORE_OK ? learn() : NULL;

	if (v == NULL)
		return code ?: core_fail(ACL_ERROR_INTERNAL_ERROR, "%s", npu_message());
	if (v->wrong != NULL)
		return core_fail(ACL_ERROR_RT_NO_DEVICE,
				 "%s=%s %s; it must be a list of devices from 0 to %u, ascending, "
				 "such as 0,1",
				 variable, v->value, v->wrong, v->devices - 1);
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

int core_logic_to_user(uint32_t logic, int32_t *out_user)
{
	const struct visible *v = learn();

	if (v == NULL)
		return core_fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s", npu_message());
	for (uint32_t i = 0; i < v->count; i++) {
		if (v->logic[i] == logic) {
			*out_user = (int32_t)i;
			return CORE_OK;
		}
	}
	if (logic >= v->devices)
		return core_fail(ACL_ERROR_RT_INVALID_DEVICEID,
				 "logic device %u does not exist: the driver has 0 to %u", logic,
				 v->devices - 1);
	return core_fail(ACL_ERROR_RT_INVALID_DEVICEID,
			 "logic device %u is hidden from this program by %s=%s; user id -> logic "
			 "id: %s",
			 logic, variable, v->value, v->text);
}

const char *core_visible_text(void)
{
	const struct visible *v = learn();

	return v == NULL ? "" : v->text;
}

int core_device_logic(int32_t user, const char *argument, uint32_t *out_logic)
{
	const struct visible *v;
	int code = core_check_driver();

	if (code != CORE_OK || core_user_to_logic(user, out_logic))
		return code;
	v = learn();
	for (uint32_t own = 0; v != NULL && own < v->count; own++)
		if (v->logic[own] == (uint32_t)user)
			core_order(0, NPU_ORDER_OTHER_ID, v->logic[own], own);
	core_user_to_logic(user, out_logic); /* who heard of that may have left other messages */
	npu_message_prefix("%s: %s=%d: ", core_called, argument, user);
	return core_last_error_note(ACL_ERROR_RT_INVALID_DEVICEID);
}
