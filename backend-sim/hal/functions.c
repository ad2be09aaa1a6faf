/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements libascend_hal.so, backend-sim under the HAL's names: a small library that opens the
 * model, a driver from backend-sim.so with the layers of the process, at the first call, so that a
 * process that holds libascendcl.so, too, has one model, one address window, one set of handles. It
 * has the functions of the seam, the few beyond it that have an answer, and those that callers link
 * strongly, with nothing behind them. Names that callers take weakly and that are none of these
 * stay out: a caller does without what it does not find, but believes what it finds. Owns the
 * symbol that identifies whose library this is.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/lock.h"
#include "driver/layer.h"

#define DEVICE_WORKS 1
#define HAL_EXPORT   __attribute__((visibility("default")))

/* Beyond the seam, and without a code that is looked at. */
HAL_EXPORT drvError_t drvCloseIpcNotify(const char *name, void *info);
HAL_EXPORT void drvDfxShowReport(uint32_t dev);
HAL_EXPORT void drvFlushCache(uint64_t base, uint32_t length);
HAL_EXPORT extern int g_devmm_mem_dev;
HAL_EXPORT extern const struct npusim_hal npusim_hal_is_ours;

/* ---- opening ---- */

static _Atomic(struct npu_driver *) driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* struct npusim_hal's open() less close(), and the program's own calls that opened it, for which it
 * stays; lock */
static unsigned users;
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

static struct npu_driver *open_model_locked(char **error)
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

/* Counts the user: the program, or backend-hw. */
static struct npu_driver *open_for_user(char **error)
{
	LOCKED(&lock);
	struct npu_driver *drv = open_model_locked(error);

	users += drv != NULL;
	return drv;
}

static struct npu_driver *open_at_first_call(void)
{
	char *error = NULL;
	struct npu_driver *drv = open_for_user(&error);

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

/* The top of the model's stack of drivers, opened at the first call of any thread. NULL, and this
 * thread's message says why, if it cannot be; tried again at the next call. */
static struct npu_driver *hal_driver(void)
{
	struct npu_driver *drv = atomic_load_explicit(&driver, memory_order_acquire);

	return __builtin_expect(drv != NULL, 1) ? drv : open_at_first_call();
}

/* ---- for backend-hw ---- */

static bool open_for_backend(uint32_t *out_caps, char **error)
{
	struct npu_driver *drv;

	*error = NULL;
	drv = open_for_user(error);
	if (drv != NULL)
		*out_caps = drv->caps;
	return drv != NULL;
}

static void close_for_backend(void)
{
	LOCKED(&lock);

	if (users > 0 && --users == 0)
		npu_driver_close(atomic_exchange(&driver, NULL));
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

/* ---- the functions of the seam ---- */

/* A driver of a 910B has no name to give: CANN's runtimes take it from the version word, and those
 * of CANN 9 look for a file beside them where a name is given. A 910C's name stands nowhere else.
 * Asked of the model itself: no layer hears of it. */
static bool has_no_name(struct npu_driver *drv)
{
	static const char no_name[] = "Ascend910B";
	char name[64];

	drv = driver_bottom(drv);
	return drv->halGetSocVersion(drv, 0, name, sizeof(name)) == DRV_ERROR_NONE &&
	       strncmp(name, no_name, strlen(no_name)) == 0;
}

/* Its tables have these functions themselves, so the call may come from any of its libraries. */
static bool is_npusims_runtime(const void *site)
{
	static const char *const ours[] = { "/backend-hw.so", "/libascendcl.so", "/libcuda.so" };
	Dl_info info;

	for (unsigned i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (dladdr(site, &info) != 0 && strstr(info.dli_fname, ours[i]) != NULL)
			return true;
	return false;
}

__attribute__((cold, noinline)) static void note_failure(const char *call, drvError_t code,
							 const void *site)
{
	struct npu_driver *drv = hal_driver();
	const char *text = drv != NULL ? drv->npusimLastMessage(drv) : NULL;

	if (code == DRV_ERROR_WAIT_TIMEOUT || code == DRV_ERROR_QUEUE_EMPTY)
		return; /* answers to a poll */
	if (code == DRV_ERROR_NOT_SUPPORT && strcmp(call, "halGetSocVersion") == 0)
		return; /* which is right of a 910B */
	if (is_npusims_runtime(site))
		return;
	npu_failure_note(&(struct npu_failure){
		.call = call,
		.code = code,
		.name = driver_code_name(code),
		.text = text != NULL && strstr(text, call) != NULL ? text : NULL,
		.site = site,
		.expected = code == DRV_ERROR_OUT_OF_MEMORY || code == DRV_ERROR_NOT_SUPPORT });
}

/* Passes on what a function answered to a program at `site`: a failure is noted for the log, unless
 * a runtime above made the call, which tells of its own. */
static drvError_t answer(const char *call, drvError_t code, const void *site)
{
	if (__builtin_expect(code != DRV_ERROR_NONE, 0))
		note_failure(call, code, site);
	return code;
}

/* Defines a function: a body that has `drv`, and answers a code. */
#define HAL_CALL(op, ...)                                                                         \
	static drvError_t op##_of(struct npu_driver *drv __VA_OPT__(, ) NPU_PARAMS(__VA_ARGS__)); \
	HAL_EXPORT drvError_t op NPU_PLAIN(__VA_ARGS__);                                          \
	drvError_t op NPU_PLAIN(__VA_ARGS__)                                                      \
	{                                                                                         \
		struct npu_driver *drv = hal_driver();                                            \
                                                                                                  \
		return answer(#op,                                                                \
			      drv == NULL ? DRV_ERROR_NO_DEVICE                                   \
					  : op##_of NPU_TO(drv, ##__VA_ARGS__),                   \
			      __builtin_return_address(0));                                       \
	}                                                                                         \
	static drvError_t op##_of(struct npu_driver *drv __VA_OPT__(, ) NPU_PARAMS(__VA_ARGS__))

/* What those answer without a model that answer no code. */
#define NO_MODEL(missing) _Generic((missing), void * : npu_message(), default : (missing))

#define NPU_OP(result, missing, op, ...)                                                     \
	HAL_EXPORT result op NPU_PLAIN(__VA_ARGS__);                                         \
	result op NPU_PLAIN(__VA_ARGS__)                                                     \
	{                                                                                    \
		struct npu_driver *drv = hal_driver();                                       \
                                                                                             \
		return drv == NULL ? NO_MODEL(missing) : drv->op NPU_TO(drv, ##__VA_ARGS__); \
	}
#define NPU_CALL(op, ...)                                                     \
	HAL_CALL(op, __VA_ARGS__)                                             \
	{                                                                     \
		if (strcmp(#op, "halGetSocVersion") == 0 && has_no_name(drv)) \
			return DRV_ERROR_NOT_SUPPORT;                         \
		return drv->op NPU_TO(drv, ##__VA_ARGS__);                    \
	}
/* Not by the default: cppcheck does not know __VA_OPT__. */
#define NPU_QUERY NPU_CALL
#include "npusim/driver-ops.h"

/* ---- beyond the seam ---- */

#define INVALID(...) (npu_message_set(__VA_ARGS__), DRV_ERROR_INVALID_VALUE)

HAL_CALL(drvDeviceStatus, (uint32_t, dev), (int *, status))
{
	uint32_t id;
	drvError_t result = status == NULL ? INVALID("drvDeviceStatus: status is NULL")
					   : drv->drvDeviceGetPhyIdByIndex(drv, dev, &id);

	if (result == DRV_ERROR_NONE)
		*status = DEVICE_WORKS;
	return result;
}

/* The addresses say where the bytes are; the direction is a promise of the caller's. */
HAL_CALL(halMemcpy, (void *, dst), (size_t, dst_size), (void *, src), (size_t, count),
	 (struct memcpy_info *, info))
{
	if (info == NULL || (unsigned)info->dir > DRV_MEMCPY_DEVICE_TO_DEVICE)
		return INVALID("halMemcpy: info is %p, and its dir %d; it must be from 0 to 3",
			       (void *)info, info == NULL ? -1 : (int)info->dir);
	return drv->drvMemcpy(drv, (DVdeviceptr)(uintptr_t)dst, dst_size,
			      (DVdeviceptr)(uintptr_t)src, count);
}

HAL_CALL(drvMemAddressTranslate, (DVdeviceptr, va), (uint64_t *, pa))
{
	struct npu_place place;
	uint64_t bytes = 1;
	drvError_t result = pa == NULL ? INVALID("drvMemAddressTranslate: pptr is NULL")
				       : drv->npusimPlace(drv, va, &place);

	if (result == DRV_ERROR_NONE &&
	    (!npu_place_is_translated(&place) || place.owner == NPU_OWNER_HOST))
		return INVALID("drvMemAddressTranslate: 0x%llx is no memory of a device",
			       (unsigned long long)va);
	return result ?: drv->npusimPhysical(drv, place.owner, va, pa, &bytes);
}

/* The end of what halMemcpy2D made. */
HAL_CALL(drvMemDestroyAddr, (struct DMA_ADDR *, ptr))
{
	struct MEMCPY2D end = { .type = DEVMM_MEMCPY2D_ASYNC_DESTROY, .copy2dAsync.dmaAddr = ptr };

	return drv->halMemcpy2D(drv, &end);
}

/* What CANN's runtime closes a notify by. */
drvError_t drvCloseIpcNotify(const char *name, void *info)
{
	(void)info;
	return halShrIdClose(name);
}

/* Nothing to show, and no cache of the host that a device does not see. */
void drvDfxShowReport(uint32_t dev)
{
	(void)dev;
}

void drvFlushCache(uint64_t base, uint32_t length)
{
	(void)base;
	(void)length;
}

int g_devmm_mem_dev = -1; /* a file descriptor: none */

/* ---- with nothing behind them: CANN's runtime links them strongly, or memfabric looks them up,
 * and calls none on drivers that have the virtual memory functions ---- */

static void refuse(atomic_bool *said, const char *name, const char *what)
{
	npu_message_set("%s: %s is not modelled", name, what);
	if (!atomic_exchange(said, true))
		npu_log(NPU_LOG_DEBUG, "%s: %s is not modelled", name, what);
}

#define UNMODELLED(result, answer, name, what) \
	HAL_EXPORT result name(void);          \
	result name(void)                      \
	{                                      \
		static atomic_bool said;       \
                                               \
		refuse(&said, #name, what);    \
		return answer;                 \
	}
#define REFUSED(name, what) UNMODELLED(int, DRV_ERROR_NOT_SUPPORT, name, what)

#define HDC "the channel to daemons of the device"
REFUSED(drvHdcAddMsgBuffer, HDC)
REFUSED(drvHdcAllocMsg, HDC)
REFUSED(drvHdcClientCreate, HDC)
REFUSED(drvHdcClientDestroy, HDC)
REFUSED(drvHdcEpollClose, HDC)
REFUSED(drvHdcEpollCreate, HDC)
REFUSED(drvHdcEpollCtl, HDC)
REFUSED(drvHdcEpollWait, HDC)
REFUSED(drvHdcFreeMsg, HDC)
REFUSED(drvHdcGetCapacity, HDC)
REFUSED(drvHdcGetMsgBuffer, HDC)
REFUSED(drvHdcReuseMsg, HDC)
REFUSED(drvHdcServerCreate, HDC)
REFUSED(drvHdcServerDestroy, HDC)
REFUSED(drvHdcSessionAccept, HDC)
REFUSED(drvHdcSessionClose, HDC)
REFUSED(drvHdcSessionConnect, HDC)
REFUSED(drvHdcSetSessionReference, HDC)
REFUSED(halHdcGetSessionAttr, HDC)
REFUSED(halHdcRecv, HDC)
REFUSED(halHdcSend, HDC)
REFUSED(halHdcSessionConnectEx, HDC)
REFUSED(halGetCapabilityGroupInfo, "dividing a device into groups")
REFUSED(drvMemConvertAddr, "a descriptor of a plain copy, which entries do without")

#define PRIVATE "a private table of the vendor's driver"
UNMODELLED(void *, NULL, devmm_get_heap_list_by_type, PRIVATE)
UNMODELLED(void *, NULL, devmm_va_to_heap, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_alloc_mem_from_base, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_get_heap_from_queue, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_get_heap_mgmt, PRIVATE)
REFUSED(devmm_ioctl_enable_heap, PRIVATE)
REFUSED(devmm_ioctl_free_pages, PRIVATE)
REFUSED(devmm_va_to_heap_idx, PRIVATE)
REFUSED(devmm_virt_destroy_heap, PRIVATE)
REFUSED(devmm_virt_normal_heap_update_info, PRIVATE)
REFUSED(devmm_virt_set_heap_idle, PRIVATE)
REFUSED(svm_module_alloced_size_inc, PRIVATE)
