/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the model behind libascend_hal.so: obtains a driver from backend-sim.so at the first call,
 * with the layers of the process. Owns the symbol that identifies whose library this is.
 */
#include "hal.h"

#include "base/base.h"
#include "driver/layer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(struct npu_driver *) driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;  /* struct npusim_hal's open() less close(), and the program itself; lock */
static bool direct;     /* the program's own call opened the model: it stays; lock */
static bool fork_ready; /* lock */
static atomic_bool complained;

/* A child that is forked while another thread opens the model finds the lock free, and opens its
 * own. Nothing is locked before a fork: the model's own handlers would meet that lock in the other
 * order. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static const struct npu_backend *load_model(char **error)
{
	char path[MODULE_PATH_MAX];
	const struct npu_backend *backend = driver_module_load("sim", path, error);
	Dl_info own;

	if (backend != NULL || *error != NULL)
		return backend;
	if (path[0] == '\0' || dladdr((void *)load_model, &own) == 0)
		*error = strdup("libascend_hal.so of npusim cannot tell where its own file is");
	else
		npu_text_add(error,
			     "%s belongs to %s, which is not there: npusim's libraries stay "
			     "together, link to this one instead of copying it",
			     own.dli_fname, path);
	return NULL;
}

/* ---- opening ---- */

static struct npu_driver *open_locked(char **error)
{
	struct npu_driver *drv = atomic_load_explicit(&driver, memory_order_acquire);
	const struct npu_backend *backend;

	if (drv != NULL)
		return drv;
	if (!fork_ready) {
		fork_ready = true;
		pthread_atfork(NULL, NULL, in_child);
	}
	driver_warn_of_others(true);
	backend = load_model(error);
	drv = backend == NULL ? NULL : backend->open(error);
	if (drv != NULL && drv->size < sizeof(*drv)) {
		npu_driver_close(drv);
		*error = strdup("backend-sim.so has fewer functions than libascend_hal.so: they "
				"belong to different versions of npusim");
		drv = NULL;
	}
	if (drv != NULL)
		atomic_store_explicit(&driver, drv, memory_order_release);
	return drv;
}

/* Counts the user: the program, which is one for good, or backend-hw. */
static struct npu_driver *open_for(bool program, char **error)
{
	struct npu_driver *drv;

	pthread_mutex_lock(&lock);
	drv = open_locked(error);
	if (drv != NULL) {
		users += !program || !direct;
		direct = direct || program;
	}
	pthread_mutex_unlock(&lock);
	return drv;
}

static struct npu_driver *open_at_first_call(void)
{
	char *error = NULL;
	struct npu_driver *drv = open_for(true, &error);

	if (drv != NULL)
		return drv;
	npu_message_set("the model of the driver cannot be used: %s",
			error == NULL ? "no memory" : error);
	if (!atomic_exchange(&complained, true))
		npu_log(NPU_LOG_ERROR, "%s", npu_message());
	npu_message_logged();
	free(error);
	return NULL;
}

struct npu_driver *hal_driver(void)
{
	struct npu_driver *drv = atomic_load_explicit(&driver, memory_order_acquire);

	return __builtin_expect(drv != NULL, 1) ? drv : open_at_first_call();
}

/* ---- for backend-hw ---- */

static bool open_for_backend(uint32_t *out_caps, char **error)
{
	struct npu_driver *drv;

	*error = NULL;
	drv = open_for(false, error);
	if (drv != NULL)
		*out_caps = drv->caps;
	return drv != NULL;
}

static void close_for_backend(void)
{
	struct npu_driver *drv = NULL;

	pthread_mutex_lock(&lock);
	if (users > 0 && --users == 0)
		drv = atomic_exchange(&driver, NULL);
	pthread_mutex_unlock(&lock);
	npu_driver_close(drv);
}

static char *describe_model(void)
{
	char *error = NULL, *text = NULL;
	const struct npu_backend *backend = load_model(&error);

	if (backend != NULL)
		text = backend->describe();
	free(error);
	return text;
}

const struct npusim_hal npusim_hal_is_ours = {
	.abi = NPUSIM_HAL_ABI,
	.size = sizeof(struct npusim_hal),
	.open = open_for_backend,
	.close = close_for_backend,
	.describe = describe_model,
};
