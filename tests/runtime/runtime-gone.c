/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that is queued while the program moves on: host memory given back under it, failures that
 * nobody asks for, fork, exit, cancelled threads, a full disk, core dumps. Each test is a process
 * of its own.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "npusim/npusim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB   (UINT64_C(1) << 20)
#define BYTES (4 * MIB)
#define HALF  (BYTES / 2)

static aclrtStream stream, other;
static aclrtEvent gate;
static unsigned char *device;

/* What follows in `stream` waits for open_gate(). */
static void begin(void *arg)
{
	(void)arg;
	setenv("NPUSIM_LEAKS", "off", 1);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtMemset(device, BYTES, 3, BYTES), 0);
	EXPECT_EQ(aclrtCreateStream(&stream), 0);
	EXPECT_EQ(aclrtCreateStream(&other), 0);
	EXPECT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(stream, gate), 0);
}

static void open_gate(void)
{
	EXPECT_EQ(aclrtRecordEvent(gate, other), 0);
}

static int device_byte(uint64_t offset)
{
	unsigned char byte = 0;

	EXPECT_EQ(aclrtMemcpy(&byte, 1, device + offset, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	return byte;
}

static unsigned char *pinned(void)
{
	void *at = NULL;

	EXPECT_EQ(aclrtMallocHost(&at, BYTES), 0);
	memset(at, 7, BYTES);
	return at;
}

static unsigned char *anonymous(void)
{
	unsigned char *at =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		ADD_FAILURE("no memory");
		exit(70);
	}
	memset(at, 7, BYTES);
	return at;
}

/* ---- the ways of queueing a copy ---- */

static aclError copy_to_device(void *host)
{
	return aclrtMemcpyAsync(device, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream);
}

static aclError copy_to_host(void *host)
{
	return aclrtMemcpyAsync(host, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream);
}

static aclError copy_rows(void *host)
{
	return aclrtMemcpy2dAsync(device, MIB, host, MIB, MIB / 2, 4, ACL_MEMCPY_HOST_TO_DEVICE,
				  stream);
}

static aclError copy_batch(void *host)
{
	void *dst[] = { device, device + HALF }, *src[] = { host, (char *)host + HALF };
	size_t sizes[] = { HALF, HALF }, first = 0, failed;
	aclrtMemcpyBatchAttr attr = { .dstLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE },
				      .srcLoc = { 0, ACL_MEM_LOCATION_TYPE_HOST } };

	return aclrtMemcpyBatchAsync(dst, sizes, src, sizes, 2, &attr, &first, 1, &failed, stream);
}

static const struct way {
	const char *title;
	aclError (*copy)(void *host);
	bool to_device;
} ways[] = {
	{ "to the device", copy_to_device, true },
	{ "to the host", copy_to_host, false },
	{ "rows", copy_rows, true },
	{ "batch", copy_batch, true },
};

/* ---- memory given back ---- */

static void free_under_copy(void *arg)
{
	const struct way *way = arg;
	unsigned char *at;

	begin(NULL);
	at = pinned();
	EXPECT_EQ(way->copy(at), 0);
	EXPECT_EQ(aclrtFreeHost(at), 0);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	if (way->to_device)
		EXPECT_EQ(device_byte(3 * MIB), 7);
	EXPECT_EQ(way->copy(pinned()), 0); /* and at once, without a gate */
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

TEST_EACH(gone, pinned_memory_freed, ways, title)
{
	EXPECT_EXIT(0, free_under_copy, (void *)(uintptr_t)param);
	EXPECT_STREQ(harness_last_stderr(), "");
}

TEST_CHILD(gone, pinned_memory_freed_under_way)
{
	begin(NULL);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	for (int i = 0; i < 8; i++) {
		unsigned char *at = pinned();

		memset(at, i + 1, BYTES);
		EXPECT_EQ(copy_to_device(at), 0);
		EXPECT_EQ(aclrtFreeHost(at), 0);
		EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
		EXPECT_EQ(device_byte(BYTES - 1), i + 1);
	}
}

static void unregister_under_copy(void *arg)
{
	const struct way *way = arg;
	unsigned char *at;

	begin(NULL);
	at = anonymous();
	EXPECT_EQ(aclrtHostRegisterV2(at, BYTES, ACL_HOST_REG_PINNED), 0);
	EXPECT_EQ(way->copy(at), 0);
	EXPECT_EQ(aclrtHostUnregister(at), 0);
	munmap(at + HALF, HALF);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 507001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "given back by aclrtHostUnregister, ");
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	if (way->to_device)
		EXPECT_EQ(device_byte(MIB), 7);
	else
		EXPECT_EQ(at[HALF - 1], 3);
}

TEST_EACH(gone, registered_memory_unmapped, ways, title)
{
	EXPECT_EXIT(0, unregister_under_copy, (void *)(uintptr_t)param);
	EXPECT_CONTAINS(harness_last_stderr(), "given back by aclrtHostUnregister");
}

TEST_CHILD(gone, memory_unmapped_while_registered)
{
	unsigned char *at;
	void *seen = NULL;

	begin(NULL);
	at = anonymous();
	EXPECT_EQ(aclrtHostRegister(at, BYTES, ACL_HOST_REGISTER_MAPPED, &seen), 0);
	EXPECT_EQ(copy_to_device(at), 0);
	munmap(at, BYTES);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 507001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(),
			"no readable memory of this process: unmapped by the program");
}

/* Memory of the C library, unregistered and freed but still there: its bytes are copied. */
TEST_CHILD(gone, memory_that_is_still_there)
{
	unsigned char *at;

	begin(NULL);
	at = anonymous();
	EXPECT_EQ(aclrtHostRegisterV2(at, BYTES, ACL_HOST_REG_PINNED), 0);
	EXPECT_EQ(copy_to_device(at), 0);
	EXPECT_EQ(aclrtHostUnregister(at), 0);
	memset(at, 9, BYTES);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_EQ(device_byte(HALF), 9);
}

/* ---- failures that nobody asks for ---- */

static void fail_unheard(void *arg)
{
	const bool *force = arg;

	begin(NULL);
	EXPECT_EQ(copy_to_device(pinned()), 0);
	EXPECT_EQ(aclrtFree(device), 0);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(other), 0);
	EXPECT_EQ(*force ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream), 0);
}

static unsigned count(const char *text, const char *words)
{
	unsigned n = 0;

	for (; (text = strstr(text, words)) != NULL; text++)
		n++;
	return n;
}

TEST(gone, failure_is_told_when_it_happens)
{
	bool force = false;

	unsetenv("NPUSIM_LOG");
	EXPECT_EXIT(0, fail_unheard, &force);
	EXPECT_EQ(count(harness_last_stderr(), "warn: device 0, stream"), 1u);
	EXPECT_CONTAINS(harness_last_stderr(), "is not mapped");
	force = true;
	EXPECT_EXIT(0, fail_unheard, &force);
	EXPECT_EQ(count(harness_last_stderr(), "warn: device 0, stream"), 1u);
}

static void fail_often(void *arg)
{
	unsigned char *at;
	const char *text;

	(void)arg;
	begin(NULL);
	at = pinned();
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(copy_to_device(at), 0);
	EXPECT_EQ(aclrtFree(device), 0);
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 507001);
	text = aclGetRecentErrMsg();
	EXPECT_GT(strlen(text), 256u);
	EXPECT_CONTAINS(text, "or give the size of what is mapped");
}

TEST(gone, failures_of_one_stream_are_bounded_and_whole)
{
	EXPECT_EXIT(0, fail_often, NULL);
	EXPECT_EQ(count(harness_last_stderr(), "warn: device 0, stream"), 8u);
	EXPECT_CONTAINS(harness_last_stderr(), "further failures on this stream");
}

/* ---- fork, exit, cancelled threads ---- */

TEST_CHILD(gone, fork_with_a_copy_queued)
{
	unsigned char *at;
	int status = -1;
	pid_t child;

	begin(NULL);
	at = anonymous();
	EXPECT_EQ(aclrtHostRegisterV2(at, BYTES, ACL_HOST_REG_PINNED), 0);
	EXPECT_EQ(copy_to_device(at), 0);
	child = fork();
	if (child == 0) {
		int code = aclrtSynchronizeStream(stream);

		munmap(at, BYTES); /* its own */
		exit(code == 0 ? 1 : 0);
	}
	open_gate();
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_EQ(device_byte(HALF), 7);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(copy_to_device(at), 0);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

/* What a parent had. */
static struct {
	aclrtContext context;
	aclrtStream stream;
	aclrtEvent event;
	aclrtNotify notify;
	void *va, *memory, *pinned;
} had;

/* A device is asked for: 500000; a context is: 107002, since there is none. Either says why. */
#define EXPECT_FORKED(code, call, ...)                                                       \
	do {                                                                                 \
		const char *message_;                                                        \
                                                                                             \
		EXPECT_EQ(call(__VA_ARGS__), code);                                          \
		message_ = aclGetRecentErrMsg() ?: "";                                       \
		EXPECT_TRUE(strncmp(message_, #call ": npusim: ", strlen(#call) + 10) == 0); \
		EXPECT_CONTAINS(message_, "forked after its parent had opened a device");    \
		EXPECT_CONTAINS(message_, "no device survives fork()");                      \
		EXPECT_CONTAINS(message_, "open it in the child alone");                     \
		EXPECT_CONTAINS(message_, "spawn");                                          \
		EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), code);                     \
	} while (0)

static void child_of_a_user(void *arg)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtMemAccessDesc desc = {
		.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
		.location = prop.location,
	};
	aclrtEventRecordedStatus recorded;
	aclrtPtrAttributes attributes;
	aclrtDrvMemHandle handle;
	aclrtContext context;
	aclrtStream made;
	aclrtEvent event;
	aclrtNotify notify;
	char bytes[64] = { 0 }, key[65];
	size_t size, free_bytes;
	uint32_t count;
	int32_t user;
	void *out = NULL;
	float ms;

	(void)arg;
	EXPECT_FORKED(500000, aclInit, NULL);
	EXPECT_FORKED(500000, aclrtSetDevice, 0);
	EXPECT_FORKED(500000, aclrtResetDevice, 0);
	EXPECT_FORKED(500000, aclrtResetDeviceForce, 0);
	EXPECT_FORKED(500000, aclrtGetDeviceCount, &count);
	EXPECT_FORKED(500000, aclrtCreateContext, &context, 0);
	EXPECT_FORKED(500000, aclrtReserveMemAddress, &out, 2 * MIB, 0, NULL, 1);
	EXPECT_FORKED(500000, aclrtMallocPhysical, &handle, 2 * MIB, &prop, 0);
	EXPECT_FORKED(500000, aclrtUnmapMem, had.va);
	EXPECT_FORKED(500000, aclrtReleaseMemAddress, had.va);
	EXPECT_FORKED(500000, aclrtMemSetAccess, had.va, 2 * MIB, &desc, 1);
	EXPECT_FORKED(500000, aclrtMemRetainAllocationHandle, had.va, &handle);
	EXPECT_FORKED(500000, aclrtPointerGetAttributes, had.va, &attributes);
	EXPECT_FORKED(500000, aclrtFree, had.memory);
	EXPECT_FORKED(500000, aclrtFreeHost, had.pinned);
	EXPECT_FORKED(500000, npusimMark, "name");
	EXPECT_FORKED(107002, aclrtGetDevice, &user);
	EXPECT_FORKED(107002, aclrtGetCurrentContext, &context);
	EXPECT_FORKED(107002, aclrtSetCurrentContext, had.context);
	EXPECT_FORKED(107002, aclrtDestroyContext, had.context);
	EXPECT_FORKED(107002, aclrtMalloc, &out, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
	EXPECT_FORKED(107002, aclrtMallocHost, &out, 4096);
	EXPECT_FORKED(107002, aclrtGetMemInfo, ACL_HBM_MEM, &free_bytes, &size);
	EXPECT_FORKED(107002, aclrtMemcpy, had.memory, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);
	EXPECT_FORKED(107002, aclrtMemset, had.memory, 64, 1, 64);
	EXPECT_FORKED(107002, aclrtMemcpyAsync, had.memory, 64, had.pinned, 64,
		      ACL_MEMCPY_HOST_TO_DEVICE, had.stream);
	EXPECT_FORKED(107002, aclrtIpcMemGetExportKey, had.memory, MIB, key, 65, 0);
	EXPECT_FORKED(107002, aclrtCreateStream, &made);
	EXPECT_FORKED(107002, aclrtSynchronizeStream, had.stream);
	EXPECT_FORKED(107002, aclrtDestroyStream, had.stream);
	EXPECT_FORKED(107002, aclrtSynchronizeDevice);
	EXPECT_FORKED(107002, aclrtCreateEvent, &event);
	EXPECT_FORKED(107002, aclrtRecordEvent, had.event, had.stream);
	EXPECT_FORKED(107002, aclrtQueryEventStatus, had.event, &recorded);
	EXPECT_FORKED(107002, aclrtSynchronizeEvent, had.event);
	EXPECT_FORKED(107002, aclrtEventElapsedTime, &ms, had.event, had.event);
	EXPECT_FORKED(107002, aclrtDestroyEvent, had.event);
	EXPECT_FORKED(107002, aclrtCreateNotify, &notify, 0);
	EXPECT_FORKED(107002, aclrtRecordNotify, had.notify, had.stream);
	EXPECT_FORKED(107002, aclrtDestroyNotify, had.notify);
}

TEST_CHILD(gone, forked)
{
	begin(NULL);
	had.memory = device;
	EXPECT_EQ(aclrtReserveMemAddress(&had.va, 2 * MIB, 0, NULL, 1), 0);
	EXPECT_EQ(aclrtCreateContext(&had.context, 0), 0);
	EXPECT_EQ(aclrtCreateStream(&had.stream), 0);
	EXPECT_EQ(aclrtCreateEvent(&had.event), 0);
	EXPECT_EQ(aclrtCreateNotify(&had.notify, 0), 0);
	EXPECT_EQ(aclrtMallocHost(&had.pinned, 4096), 0);
	EXPECT_EXIT(0, child_of_a_user, NULL);
	EXPECT_EQ(aclrtFreeHost(had.pinned), 0);
	EXPECT_EQ(aclrtDestroyContext(had.context), 0);
}

static void *late;
static bool gate_is_open;

static void free_late(void)
{
	aclrtFreeHost(late);
	if (gate_is_open) { /* else these wait for ever */
		aclrtSynchronizeStream(stream);
		aclrtDestroyStream(stream);
		aclrtResetDevice(0);
	}
	aclFinalize();
}

/* bit 0: the handler is registered before the library's first; bit 1: the copies' turn has come;
 * bit 2: from another thread */
static void *call_exit(void *arg)
{
	(void)arg;
	exit(0);
}

static void exit_under_copy(void *arg)
{
	const int *how = arg;
	pthread_t thread;

	if (*how & 1)
		atexit(free_late);
	begin(NULL);
	late = pinned();
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(copy_to_device(late), 0);
	if (!(*how & 1))
		atexit(free_late);
	gate_is_open = *how & 2;
	if (gate_is_open)
		open_gate();
	if (*how & 4 && pthread_create(&thread, NULL, call_exit, NULL) == 0)
		pthread_join(thread, NULL);
	exit(0);
}

TEST(gone, exit_with_copies_queued)
{
	for (int how = 0; how < 8; how++) {
		NOTE("%d", how);
		EXPECT_EXIT(0, exit_under_copy, &how);
	}
}

static atomic_int waiting;

static void *wait_for_stream(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	atomic_store(&waiting, 1);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	pthread_testcancel();
	return NULL;
}

static void *call_often(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	atomic_store(&waiting, 1);
	for (int i = 0; i < 100000; i++) {
		void *at = NULL;

		aclrtMallocHost(&at, MIB);
		aclrtFreeHost(at);
		aclrtFreeHost(&at); /* fails, in the log */
		pthread_testcancel();
	}
	return NULL;
}

TEST_CHILD(gone, cancelled_in_a_call)
{
	char trace[] = "/tmp/npusim-gone-XXXXXX";
	int fd = mkstemp(trace);
	pthread_t thread;
	void *end;

	setenv("NPUSIM_TRACE", trace, 1);
	begin(NULL);
	close(fd);
	unlink(trace);
	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_stream, NULL), 0);
	while (atomic_load(&waiting) == 0)
		sched_yield();
	EXPECT_EQ(pthread_cancel(thread), 0);
	EXPECT_EQ(copy_to_device(pinned()), 0); /* who is cancelled leaves no lock behind */
	open_gate();
	EXPECT_EQ(pthread_join(thread, &end), 0);
	EXPECT_EQ(end, PTHREAD_CANCELED);
	for (int i = 0; i < 50; i++) {
		atomic_store(&waiting, 0);
		EXPECT_EQ(pthread_create(&thread, NULL, call_often, NULL), 0);
		while (atomic_load(&waiting) == 0)
			sched_yield();
		EXPECT_EQ(pthread_cancel(thread), 0);
		EXPECT_EQ(pthread_join(thread, NULL), 0);
	}
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_EQ(device_byte(HALF), 7);
}

/* ---- a full disk, and core dumps ---- */

static void trace_to_full_disk(void *arg)
{
	(void)arg;
	setenv("NPUSIM_TRACE", "/dev/full", 1);
	begin(NULL);
	open_gate();
	EXPECT_EQ(copy_to_device(pinned()), 0);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_EQ(device_byte(HALF), 7);
}

TEST(gone, full_disk_ends_the_trace_alone)
{
	if (access("/dev/full", W_OK) != 0)
		SKIP("there is no /dev/full");
	EXPECT_EXIT(0, trace_to_full_disk, NULL);
	EXPECT_EQ(count(harness_last_stderr(), "/dev/full"), 1u);
	EXPECT_CONTAINS(harness_last_stderr(), "No space left on device");
}

/* Sums up what a core file has, as the kernel decides it. */
static void dumpable(uint64_t *out_dumped_kib, uint64_t *out_resident_kib)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uint64_t start, end, kib, size = 0;
	char line[512], rights[8] = "";

	*out_dumped_kib = *out_resident_kib = 0;
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3)
			size = (end - start) / 1024;
		else if (sscanf(line, "Rss: %lu", &kib) == 1)
			*out_resident_kib += kib;
		else if (sscanf(line, "Anonymous: %lu", &kib) == 1 && kib == 0 && rights[3] == 'p')
			size = 0; /* private, and nothing written */
		else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL)
			*out_dumped_kib += size;
	}
	if (file != NULL)
		fclose(file);
}

TEST_CHILD(gone, core_files_have_no_device_memory)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtMemAccessDesc grant = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				     .location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST } };
	aclrtDrvMemHandle handle;
	void *va = NULL;
	uint64_t dumped, resident;

	begin(NULL);
	pinned();
	EXPECT_EQ(aclrtReserveMemAddress(&va, 64 * MIB, 0, NULL, 1), 0);
	EXPECT_EQ(aclrtMallocPhysical(&handle, 64 * MIB, &prop, 0), 0);
	EXPECT_EQ(aclrtMapMem(va, 64 * MIB, 0, handle, 0), 0);
	EXPECT_EQ(aclrtMemSetAccess(va, 64 * MIB, &grant, 1), 0);
	memset(va, 1, 4096);
	dumpable(&dumped, &resident);
	EXPECT_GT(dumped, 0u);
	if (getenv("NPUSIM_VALIDATE") != NULL || getenv("ASAN_OPTIONS") != NULL)
		resident += 8 << 10; /* its tables are sparse */
#ifndef __SANITIZE_THREAD__          /* whose shadow is dumped, too */
	EXPECT_LE(dumped, 2 * resident);
#endif
}
