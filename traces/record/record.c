/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the one recorder of the process, tracks which threads are inside a call, and writes what
 * the header of the trace says about the server.
 */
#include "preload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/line.h"

#define SOC_TRIES 16

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
	return strncmp(preload_name(function), "aclrtMalloc", strlen("aclrtMalloc")) == 0 ||
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
	*call = trace_call_begin(recorder, preload_name(function));
	if (obtains_memory(function))
		call->site = trace_site(npu_stack_here());
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
			preload_name(function), ACL_ERROR_API_NOT_SUPPORT);
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
	    atomic_load_explicit(&tries, memory_order_relaxed) < SOC_TRIES) {
		int mine = atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed);

		if (mine < SOC_TRIES && describe(to))
			atomic_store_explicit(&tries, SOC_TRIES, memory_order_relaxed);
	}
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
