/* SPDX-License-Identifier: Apache-2.0
 *
 * libnpusim-record.so: loaded by LD_PRELOAD in front of an ACL library, CANN's or any other, it has
 * functions of the same names, which call the real ones and record what was called and answered:
 * the calls for devices, for virtual memory and its sharing, for classic allocations, and copies
 * and memsets, one line each, and one for each item of a batch. Work queued on a stream is recorded
 * when it is queued. Sizes are written as the driver receives them, so that a replay requests the
 * same.
 *
 * It interposes dlsym() as well: a program that opens its ACL library and looks up a function there
 * gets ours, since LD_PRELOAD alone does not affect such a lookup. It needs only libc, and changes
 * nothing: results, errno and outputs are those of the real function.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/malloc-rule.h"
#include "base/base.h"
#include "trace/line.h"
#include "trace/recorder.h"
#include "traces/record/record-functions.h"

#define SOC_TRIES        16
#define ACCESS_LINES_MAX 64
#define BATCH_LINES_MAX  65536

#define EXPORTED __attribute__((visibility("default")))

/* Functions that are called for the recorder's own sake: they are asked for, never stood in front
 * of. What it stands in front of, PRELOAD_FUNCTIONS(X), the build finds in the wrappers below. */
#define ASKED(X)                         \
	X(aclrtGetDevice)                \
	X(aclrtGetDeviceCount)           \
	X(aclrtGetLogicDevIdByUserDevId) \
	X(aclrtGetSocName)
enum function {
#define SLOT(name) AT_##name,
	PRELOAD_FUNCTIONS(SLOT) WRAPPED_COUNT,
	BEFORE_ASKED = WRAPPED_COUNT - 1,
	ASKED(SLOT) FUNCTION_COUNT
};

/* Declared by hand in no header: what dlsym() is to us and to everybody else. */
typedef void *dlsym_fn(void *handle, const char *name);

static const char *const names[FUNCTION_COUNT] = {
#define NAME(name) [AT_##name] = #name,
	PRELOAD_FUNCTIONS(NAME) ASKED(NAME)
};
/* NULL for ASKED. */
static void *const wrappers[FUNCTION_COUNT] = {
#define WRAPPER(name) [AT_##name] = (void *)(uintptr_t)name,
	PRELOAD_FUNCTIONS(WRAPPER)
};
static _Atomic(void *) reals[FUNCTION_COUNT];

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

/* Takes `found` for the real function if none is known, and answers the one that is. */
static void *settle(enum function function, void *found)
{
	void *known = NULL;
	Dl_info info;

	if (atomic_compare_exchange_strong_explicit(&reals[function], &known, found,
						    memory_order_acq_rel, memory_order_acquire)) {
		/* a library whose functions we call stays loaded */
		if (dladdr(found, &info) != 0)
			/* cppcheck-suppress leakReturnValNotUsed ; it is meant to stay */
			(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
		return found;
	}
	return known;
}

/* The real function: in the libraries behind this one, else in an ACL library that was opened with
 * RTLD_LOCAL. NULL: there is none (yet). It is looked for once. Any thread. */
static void *real_of(enum function function)
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
		if (found == wrappers[function])
			found = NULL;
	}
	return found != NULL ? settle(function, found) : NULL;
}

/* The last call is a jump (this file is compiled so that it is): RTLD_NEXT and RTLD_DEFAULT go by
 * who called, and that must stay the program. */
EXPORTED void *dlsym(void *restrict handle, const char *restrict name)
{
	dlsym_fn *look_up = find_dlsym();
	/* a sanitizer that starts asks before its strcmp() works */
	bool ours = name[0] == 'a' && name[1] == 'c' && name[2] == 'l';
	enum function function = ours ? 0 : WRAPPED_COUNT;
	void *found;

	if (look_up == NULL)
		return NULL;
	while (function < WRAPPED_COUNT && strcmp(name, names[function]) != 0)
		function++;
	if (function == WRAPPED_COUNT || handle == RTLD_NEXT)
		return look_up(handle, name);
	if (handle == RTLD_DEFAULT)
		return real_of(function) != NULL ? wrappers[function] : NULL;
	found = look_up(handle, name);
	if (found == NULL || found == wrappers[function])
		return found;
	/* another's function of the same name (one more library in front of the ACL) is its own */
	return settle(function, found) == found ? wrappers[function] : found;
}

/* The runtime of npusim leaves the recording to us where it sees this (runtime/driver/trace.c). */
EXPORTED extern const int npusim_record_preloaded;
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

/* Begins a call, as *call. False: it comes from within another, or there is no file to write to. */
static bool enter(enum function function, struct trace_call *call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (depth > 0)
		return false;
	depth++;
	pthread_once(&once, open_recorder);
	if (recorder == NULL) {
		depth--;
		return false;
	}
	bool obtains = strncmp(names[function], "aclrtMalloc", strlen("aclrtMalloc")) == 0 ||
		       function == AT_aclrtMemImportFromShareableHandle ||
		       function == AT_aclrtMemImportFromShareableHandleV2;
	const char *site = obtains ? npu_stack_lines(npu_stack_here()) : NULL;
	*call = trace_call_begin(recorder, names[function]);
	call->site = site;
	return true;
}

/* What a wrapper answers where there is no real function; says so once. */
static aclError missing(enum function function)
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

#define ASK(name) ((__typeof__(&name))real_of(AT_##name))

/* Once a call has worked: the library may know nothing before. False: it does not tell yet. */
static bool describe(void)
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
	trace_recorder_about(recorder, about);
	return true;
}

/* After the call's lines are written. */
static void leave(const struct trace_call *call)
{
	static _Atomic int tries;

	if (call->code == ACL_SUCCESS &&
	    atomic_load_explicit(&tries, memory_order_relaxed) < SOC_TRIES &&
	    atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) < SOC_TRIES && describe())
		atomic_store_explicit(&tries, SOC_TRIES, memory_order_relaxed);
	depth--;
}

/* A device as the whole server numbers it, whatever ASCEND_RT_VISIBLE_DEVICES shows of it. Between
 * enter and leave only, as the next one. The library is asked after calls that worked, so that what
 * it remembers of one that failed stays; else the variable has it, at the place `user`. */
static int64_t device_of(const struct trace_call *call, uint32_t user)
{
	__typeof__(&aclrtGetLogicDevIdByUserDevId) ask =
		call->code == ACL_SUCCESS ? ASK(aclrtGetLogicDevIdByUserDevId) : NULL;
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	int32_t logic = 0;
	char *end;

	if (ask != NULL && ask((int32_t)user, &logic) == ACL_SUCCESS && logic >= 0)
		return logic;
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

/* The calling thread's current one. */
static int64_t current_device(const struct trace_call *call)
{
	static __thread int32_t last; /* that this thread was seen with */
	__typeof__(&aclrtGetDevice) ask = call->code == ACL_SUCCESS ? ASK(aclrtGetDevice) : NULL;
	int32_t user = 0;

	if (ask != NULL && ask(&user) == ACL_SUCCESS && user >= 0)
		last = user;
	return device_of(call, (uint32_t)last);
}

/* A function in front of the real one, with the parameters that its header gives them: `lines`
 * write down `call`, unless nothing is to be; `before` is done in front of the call. */
#define WRAP_AROUND(name, before, lines)                      \
	EXPORTED aclError name PRELOAD_PARAMETERS_##name      \
	{                                                     \
		int code_of_errno = errno;                    \
		__typeof__(&name) real = ASK(name);           \
		struct trace_call call;                       \
                                                              \
		if (real == NULL)                             \
			return missing(AT_##name);            \
		if (!enter(AT_##name, &call)) {               \
			errno = code_of_errno;                \
			return real PRELOAD_ARGUMENTS_##name; \
		}                                             \
		before;                                       \
		errno = code_of_errno;                        \
		call.code = real PRELOAD_ARGUMENTS_##name;    \
		code_of_errno = errno;                        \
		trace_call_end(recorder, &call);              \
		lines;                                        \
		leave(&call);                                 \
		errno = code_of_errno;                        \
		return call.code;                             \
	}
#define WRAP(name, lines) WRAP_AROUND(name, , lines)
/* A line. */
#define RECORD(verb, ...) TRACE_RECORD(recorder, &call, verb, __VA_ARGS__)
/* A call that no verb is for. */
#define WRAP_OTHER(name) WRAP(name, RECORD(CALL))
/* One that ends a name. */
#define WRAP_END(name, pointer, verb)                                                       \
	WRAP_AROUND(name, struct trace_ending ending = trace_ends(recorder, verb, pointer), \
		    trace_record_end(recorder, &call, &ending))

static const void *got(const struct trace_call *call, void *const *out)
{
	return call->code == ACL_SUCCESS ? *out : NULL;
}

#define WRAP_DEVICE(name, verb) \
	WRAP(name, RECORD(verb, .device = device_of(&call, (uint32_t)deviceId)))
WRAP_DEVICE(aclrtSetDevice, DEVICE_SET)
WRAP_DEVICE(aclrtResetDevice, DEVICE_RESET)
WRAP_DEVICE(aclrtResetDeviceForce, DEVICE_RESET)

#define WRAP_RESERVE(name_)                                                             \
	WRAP(name_, RECORD(RESERVE, .name = TRACE_AT(got(&call, virPtr)), .size = size, \
			   .hint = (uintptr_t)expectPtr, .flags = flags))
WRAP_RESERVE(aclrtReserveMemAddress)
WRAP_RESERVE(aclrtReserveMemAddressNoUCMemory)
WRAP_END(aclrtReleaseMemAddress, virPtr, NPU_TRACE_UNRESERVE)

static uint32_t page_of_attribute(aclrtMemAttr attr)
{
	static const uint8_t pages[] = {
		[ACL_DDR_MEM_NORMAL] = 12,     [ACL_HBM_MEM_NORMAL] = 12,
		[ACL_DDR_MEM_P2P_NORMAL] = 12, [ACL_HBM_MEM_P2P_NORMAL] = 12,
		[ACL_MEM_NORMAL] = 12,         [ACL_MEM_P2P_NORMAL] = 12,
		[ACL_HBM_MEM_HUGE1G] = 30,     [ACL_HBM_MEM_P2P_HUGE1G] = 30,
		[ACL_MEM_HUGE1G] = 30,         [ACL_MEM_P2P_HUGE1G] = 30,
	};

	return (size_t)attr < sizeof(pages) && pages[attr] != 0 ? pages[attr] : 21;
}

WRAP(aclrtMallocPhysical,
     RECORD(CREATE, .name = TRACE_AT(got(&call, handle)), .size = size,
	    .device = prop != NULL && prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE
			      ? device_of(&call, prop->location.id)
			      : NPU_TRACE_HOST,
	    .page_lg2 = prop != NULL ? page_of_attribute(prop->memAttr) : 0))
WRAP_END(aclrtFreePhysical, handle, NPU_TRACE_RELEASE)
WRAP(aclrtMemRetainAllocationHandle,
     RECORD(RETAIN, .name = TRACE_AT(got(&call, handle)), .at = TRACE_AT(virPtr)))

#define WRAP_MAP(name_, has_)                                                          \
	WRAP(name_, RECORD(MAP, .has = (has_), .name = TRACE_AT(virPtr), .size = size, \
			   .handle = TRACE_AT(handle)))
WRAP_MAP(aclrtMapMem, 0)
WRAP_MAP(aclrtMemMapNoAccess, NPU_TRACE_HAS_NO_ACCESS)
WRAP(aclrtUnmapMem, RECORD(UNMAP, .name = TRACE_AT(virPtr)))

/* Here CANN takes an id of the server, unlike anywhere else. */
static void record_access(struct trace_call *call, const void *va, size_t size,
			  const aclrtMemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; desc != NULL && i < count && i < ACCESS_LINES_MAX; i++)
		TRACE_RECORD(recorder, call, ACCESS, .name = TRACE_AT(va), .size = size,
			     .device = desc[i].location.type == ACL_MEM_LOCATION_TYPE_DEVICE
					       ? (int64_t)desc[i].location.id
					       : NPU_TRACE_HOST,
			     .flags = (uint64_t)desc[i].flags);
}
WRAP(aclrtMemSetAccess, record_access(&call, virPtr, size, desc, count))

/* `share` is a number, or the bytes of a fabric handle. */
static uint64_t key_of(const void *share, aclrtMemSharedHandleType type)
{
	if (share == NULL)
		return 0;
	return type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
		       ? trace_key_of_bytes(share, sizeof(aclrtMemFabricHandle))
		       : *(const uint64_t *)share;
}

#define WRAP_EXPORT(name, share)                                                 \
	WRAP(name, RECORD(EXPORT, .key = call.code == ACL_SUCCESS ? (share) : 0, \
			  .handle = TRACE_AT(handle), .flags = flags))
WRAP_EXPORT(aclrtMemExportToShareableHandle, *shareableHandle)
WRAP_EXPORT(aclrtMemExportToShareableHandleV2, key_of(shareableHandle, shareType))
#define WRAP_IMPORT(name_, share, device_)                                               \
	WRAP(name_, RECORD(IMPORT, .name = TRACE_AT(got(&call, handle)), .key = (share), \
			   .device = device_))
WRAP_IMPORT(aclrtMemImportFromShareableHandle, shareableHandle,
	    device_of(&call, (uint32_t)deviceId))
WRAP_IMPORT(aclrtMemImportFromShareableHandleV2,
	    call.code == ACL_SUCCESS ? key_of(shareableHandle, shareType) : 0,
	    current_device(&call))
WRAP_OTHER(aclrtMemSetPidToShareableHandle)
WRAP_OTHER(aclrtMemSetPidToShareableHandleV2)
WRAP_OTHER(aclrtIpcMemGetExportKey)
WRAP_OTHER(aclrtIpcMemSetImportPid)
WRAP_OTHER(aclrtIpcMemImportByKey)
WRAP_OTHER(aclrtIpcMemClose)

/* ---- classic allocations ---- */

static void record_malloc(struct trace_call *call, void *const *out, uint64_t size,
			  aclrtMemMallocPolicy policy, bool padded)
{
	enum page_choice pages = malloc_policy_of(policy).pages;

	malloc_round(pages, padded, &size);
	pages = malloc_pages_of(pages, size);
	TRACE_RECORD(recorder, call, MALLOC, .name = TRACE_AT(got(call, out)), .size = size,
		     .device = current_device(call),
		     .page_lg2 = pages == PAGES_GIANT  ? 30
				 : pages == PAGES_HUGE ? 21
						       : 12);
}

#define WRAP_MALLOC(name, padded) WRAP(name, record_malloc(&call, devPtr, size, policy, padded))
WRAP_MALLOC(aclrtMalloc, true)
WRAP_MALLOC(aclrtMallocAlign32, false)
WRAP_MALLOC(aclrtMallocCached, true)
WRAP_MALLOC(aclrtMallocWithCfg, false)
WRAP_MALLOC(aclrtMallocForTaskScheduler, false)

#define WRAP_HOST(name_, out)                                                       \
	WRAP(name_, RECORD(MALLOC, .name = TRACE_AT(got(&call, out)), .size = size, \
			   .device = NPU_TRACE_HOST, .page_lg2 = 12))
WRAP_HOST(aclrtMallocHost, hostPtr)
WRAP_HOST(aclrtMallocHostWithCfg, ptr)

WRAP_END(aclrtFree, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeWithDevSync, devPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHost, hostPtr, NPU_TRACE_MFREE)
WRAP_END(aclrtFreeHostWithDevSync, hostPtr, NPU_TRACE_MFREE)

WRAP_OTHER(aclrtHostRegister)
WRAP_OTHER(aclrtHostRegisterV2)
WRAP_OTHER(aclrtHostUnregister)
WRAP_OTHER(aclrtMemAllocManaged)
WRAP_OTHER(aclrtMemFlush)
WRAP_OTHER(aclrtMemInvalidate)
WRAP_OTHER(aclrtCmoAsync)
WRAP_OTHER(aclrtMemP2PMap)

#define WRAP_COPY(name, bytes) \
	WRAP(name, RECORD(COPY, .at = TRACE_AT(dst), .from = TRACE_AT(src), .size = bytes))
WRAP_COPY(aclrtMemcpy, count)
WRAP_COPY(aclrtMemcpyAsync, count)
WRAP_COPY(aclrtMemcpyAsyncWithCondition, count)
WRAP_COPY(aclrtMemcpy2d, height *(uint64_t)width)
WRAP_COPY(aclrtMemcpy2dAsync, height *(uint64_t)width)

/* Where the pointers are is device memory, which nobody may read here. */
WRAP_OTHER(aclrtMemcpyAsyncWithOffset)
WRAP_OTHER(aclrtMemcpyAsyncWithDesc)
WRAP_OTHER(aclrtReduceAsync)

static void record_batch(struct trace_call *call, void *const *dsts, void *const *srcs,
			 const size_t *sizes, size_t count)
{
	bool readable = dsts != NULL && srcs != NULL && sizes != NULL && count <= BATCH_LINES_MAX;

	for (size_t i = 0; readable && i < count; i++)
		TRACE_RECORD(recorder, call, COPY, .at = TRACE_AT(dsts[i]),
			     .from = TRACE_AT(srcs[i]), .size = sizes[i]);
	if (!readable || count == 0)
		TRACE_RECORD(recorder, call, CALL);
}

#define WRAP_BATCH(name) WRAP(name, record_batch(&call, dsts, srcs, sizes, numBatches))
WRAP_BATCH(aclrtMemcpyBatch)
WRAP_BATCH(aclrtMemcpyBatchV2)
WRAP_BATCH(aclrtMemcpyBatchAsync)
WRAP_BATCH(aclrtMemcpyBatchAsyncV2)

#define WRAP_FILL(name, pointer, bytes) \
	WRAP(name, RECORD(FILL, .at = TRACE_AT(pointer), .size = bytes))
WRAP_FILL(aclrtMemset, devPtr, count)
WRAP_FILL(aclrtMemsetAsync, devPtr, count)
WRAP_FILL(aclrtMemsetD32, ptr, (uint64_t)N * sizeof(value))
WRAP_FILL(aclrtMemsetD32Async, ptr, (uint64_t)N * sizeof(value))
