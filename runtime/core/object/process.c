/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of the process: when the driver stack is opened, how a fork affects it, simulated
 * time. Owns the pointer to the top of the stack, through which all driver calls go.
 */
#include "core/object/process.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/lock.h"
#include "driver/module.h"

#include <stdatomic.h>
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

/* After the driver has asked for the same: handlers run last one first before a fork, and our locks
 * are the outer ones. */
static void watch_forks_locked(void)
{
	if (!fork_watched)
		pthread_atfork(before_fork, after_fork, in_child);
	fork_watched = true;
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
		npu_message_set("npusim: %s",
				error != NULL ? error : "no driver, and no memory to say why");
		if (!complained && strcmp(npu_var_get(NPU_VAR_FAILURES, NULL), "off") != 0)
			npu_log(NPU_LOG_ERROR, "%s", npu_message() + strlen("npusim: "));
		complained = true;
		npu_message_logged();
		free(error);
		return false;
	}
	watch_forks_locked();
	atomic_store_explicit(&top, drv, memory_order_release);
	return true;
}

static struct npu_driver *open_driver(void)
{
	UNCANCELLED;

	if (core_is_forked()) {
		npu_message_set("npusim: this process was forked after its parent had opened a "
				"device; no device context survives a fork: fork before the first "
				"aclrtSetDevice, or exec");
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

	watch_forks_locked();
	atomic_store(&top, drv == NULL ? NULL : npu_driver_complete(drv));
	atomic_store(&device_opened, false);
}

/* ---- time ---- */

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

/* ---- the end ---- */

struct npu_driver *core_driver_peek(void)
{
	return core_is_forked() ? NULL : atomic_load(&top);
}

void core_driver_refuse(void)
{
	atomic_store(&ended, true);
}
