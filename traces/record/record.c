/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the real functions, and interposes dlsym(): a program that opens its ACL library and looks
 * up a function there gets ours, since LD_PRELOAD alone does not affect such a lookup. Owns the one
 * recorder of the process, tracks which threads are inside a call, and writes what the header of
 * the trace says about the server.
 */
#include "preload.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/line.h"

#define SOC_TRIES 16

/* Declared by hand in no header: what dlsym() is to us and to everybody else. */
typedef void *dlsym_fn(void *handle, const char *name);

static const char *const names[PRELOAD_FUNCTION_COUNT] = {
#define PRELOAD_NAME(name) [PRELOAD_##name] = #name,
	PRELOAD_FUNCTIONS(PRELOAD_NAME) PRELOAD_ASKED(PRELOAD_NAME)
};
static void *const wrappers[PRELOAD_WRAPPED_COUNT] = {
#define PRELOAD_WRAPPER(name) [PRELOAD_##name] = (void *)(uintptr_t)name,
	PRELOAD_FUNCTIONS(PRELOAD_WRAPPER)
};
static _Atomic(void *) reals[PRELOAD_FUNCTION_COUNT];

static dlsym_fn *find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	static _Atomic(void *) found;
	void *fn = atomic_load_explicit(&found, memory_order_acquire);

	for (size_t i = 0; fn == NULL && i < sizeof(versions) / sizeof(versions[0]); i++)
		fn = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store_explicit(&found, fn, memory_order_release);
	return (dlsym_fn *)(uintptr_t)fn;
}

/* A library whose functions we call stays loaded. */
static void pin(void *function)
{
	Dl_info info;

	if (dladdr(function, &info) != 0)
		/* cppcheck-suppress leakReturnValNotUsed ; it stays loaded on purpose */
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

/* Takes `found` for the real function if none is known, and answers the one that is. */
static void *settle(enum preload_function function, void *found)
{
	void *known = NULL;

	if (atomic_compare_exchange_strong_explicit(&reals[function], &known, found,
						    memory_order_acq_rel, memory_order_acquire)) {
		pin(found);
		return found;
	}
	return known;
}

static bool is_ours(enum preload_function function, const void *found)
{
	return function < PRELOAD_WRAPPED_COUNT && found == wrappers[function];
}

void *preload_real(enum preload_function function)
{
	static const char *const libraries[] = { "libascendcl.so", "libacl_rt.so",
						 "libascendcl.so.1" };
	void *found = atomic_load_explicit(&reals[function], memory_order_acquire);
	dlsym_fn *look_up = find_dlsym();

	if (found != NULL || look_up == NULL)
		return found;
	found = look_up(RTLD_NEXT, names[function]);
	for (size_t i = 0; found == NULL && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);

		if (library == NULL)
			continue;
		found = look_up(library, names[function]);
		dlclose(library);
		if (found != NULL && is_ours(function, found))
			found = NULL;
	}
	return found != NULL ? settle(function, found) : NULL;
}

static int compare_name(const void *name, const void *at)
{
	return strcmp(name, *(const char *const *)at);
}

/* Its number, or PRELOAD_WRAPPED_COUNT. */
static enum preload_function function_of(const char *name)
{
	const char *const *found =
		bsearch(name, names, PRELOAD_WRAPPED_COUNT, sizeof(*names), compare_name);

	return found != NULL ? (enum preload_function)(found - names) : PRELOAD_WRAPPED_COUNT;
}

/* The last call is a jump (this file is compiled so that it is): RTLD_NEXT and RTLD_DEFAULT go by
 * who called, and that must stay the program. */
PRELOAD_EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	dlsym_fn *look_up = find_dlsym();
	enum preload_function function;
	void *found;

	if (look_up == NULL)
		return NULL;
	function = handle == RTLD_NEXT ? PRELOAD_WRAPPED_COUNT : function_of(name);
	if (function == PRELOAD_WRAPPED_COUNT)
		return look_up(handle, name);
	if (handle == RTLD_DEFAULT)
		return preload_real(function) != NULL ? wrappers[function] : NULL;
	found = look_up(handle, name);
	if (found == NULL || is_ours(function, found))
		return found;
	/* another's function of the same name (one more library in front of the ACL) is its own */
	return settle(function, found) == found ? wrappers[function] : found;
}

/* The runtime of npusim leaves the recording to us where it sees this (runtime/driver/trace.c). */
PRELOAD_EXPORT extern const int npusim_record_preloaded;
const int npusim_record_preloaded = 1;

static struct trace_recorder *recorder;
static __thread unsigned depth;

static void open_recorder(void)
{
	const char *path = secure_getenv("NPUSIM_TRACE");

	if (path == NULL || path[0] == '\0') {
		npu_log(NPU_LOG_WARN,
			"libnpusim-record.so: NPUSIM_TRACE names no file, so nothing is recorded");
		return;
	}
	recorder = trace_recorder_open(path, "backend=cann");
	if (recorder == NULL)
		npu_log(NPU_LOG_WARN,
			"libnpusim-record.so: NPUSIM_TRACE=%s cannot be written: %s; nothing is "
			"recorded",
			path, strerror(errno));
	npu_stack_use(0);
}

static bool obtains_memory(enum preload_function function)
{
	return strncmp(names[function], "aclrtMalloc", strlen("aclrtMalloc")) == 0 ||
	       function == PRELOAD_aclrtMemImportFromShareableHandle ||
	       function == PRELOAD_aclrtMemImportFromShareableHandleV2;
}

struct trace_recorder *preload_enter(enum preload_function function, struct trace_call *call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (depth > 0)
		return NULL;
	depth++;
	pthread_once(&once, open_recorder);
	if (recorder == NULL) {
		depth--;
		return NULL;
	}
	const char *site = obtains_memory(function) ? npu_stack_lines(npu_stack_here()) : NULL;
	*call = trace_call_begin(recorder, names[function]);
	call->site = site;
	return recorder;
}

aclError preload_missing(enum preload_function function)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int code_of_errno = errno;

	if (!atomic_flag_test_and_set(&said))
		npu_log(NPU_LOG_WARN,
			"libnpusim-record.so: no ACL library with %s is loaded (libascendcl.so), "
			"so the call answers %d",
			names[function], ACL_ERROR_API_NOT_SUPPORT);
	errno = code_of_errno;
	return ACL_ERROR_API_NOT_SUPPORT;
}

#define ASK(name) ((__typeof__(&name))preload_real(PRELOAD_##name))

/* Once a call has worked: the library may know nothing before. False: it does not tell yet. */
static bool describe(struct trace_recorder *to)
{
	char about[256];
	struct trace_text text = { .at = about, .end = about + sizeof(about) - 1 };
	__typeof__(&aclrtGetSocName) ask_name = ASK(aclrtGetSocName);
	__typeof__(&aclrtGetDeviceCount) ask_count = ASK(aclrtGetDeviceCount);
	const char *soc = ask_name != NULL ? ask_name() : NULL;
	char devices[32];
	uint32_t count = 0;

	if (soc == NULL || soc[0] == '\0')
		return ask_name == NULL;
	trace_text_put(&text, "soc=", strlen("soc="));
	trace_text_put_value(&text, soc);
	if (ask_count != NULL && ask_count(&count) == ACL_SUCCESS)
		trace_text_put(&text, devices,
			       (size_t)snprintf(devices, sizeof(devices), " devices=%u", count));
	*text.at = '\0';
	trace_recorder_about(to, about);
	return true;
}

void preload_leave(struct trace_recorder *to, const struct trace_call *call)
{
	static _Atomic int tries;

	if (call->code == ACL_SUCCESS &&
	    atomic_load_explicit(&tries, memory_order_relaxed) < SOC_TRIES &&
	    atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) < SOC_TRIES && describe(to))
		atomic_store_explicit(&tries, SOC_TRIES, memory_order_relaxed);
	depth--;
}

/* The number in ASCEND_RT_VISIBLE_DEVICES at the place `user`; `user` if there is none. */
static uint32_t visible_device(uint32_t user)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	char *end;

	for (uint32_t at = 0; list != NULL && *list >= '0' && *list <= '9'; at++) {
		unsigned long id = strtoul(list, &end, 10);

		if (at == user)
			return (uint32_t)id;
		if (*end != ',')
			break;
		list = end + 1;
	}
	return user;
}

int64_t preload_device(const struct trace_call *call, uint32_t user)
{
	__typeof__(&aclrtGetLogicDevIdByUserDevId) ask =
		call->code == ACL_SUCCESS ? ASK(aclrtGetLogicDevIdByUserDevId) : NULL;
	int32_t logic = 0;

	if (ask != NULL && ask((int32_t)user, &logic) == ACL_SUCCESS && logic >= 0)
		return logic;
	return visible_device(user);
}

int64_t preload_device_at(const struct trace_call *call, const aclrtMemLocation *location)
{
	return location->type == ACL_MEM_LOCATION_TYPE_DEVICE ? preload_device(call, location->id)
							      : NPU_TRACE_HOST;
}

int64_t preload_current_device(const struct trace_call *call)
{
	static __thread int32_t last; /* that this thread was seen with */
	__typeof__(&aclrtGetDevice) ask = call->code == ACL_SUCCESS ? ASK(aclrtGetDevice) : NULL;
	int32_t user = 0;

	if (ask != NULL && ask(&user) == ACL_SUCCESS && user >= 0)
		last = user;
	return preload_device(call, (uint32_t)last);
}
