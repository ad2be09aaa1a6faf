/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs need around virtual memory: devices, contexts, streams, events, host functions,
 * memory in one piece, cuGetProcAddress and what is not modelled.
 */
#include "npusim/npusim.h"
#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A call of the program, though a thread of ours makes it. */
static void fail_in_stream(void *arg)
{
	(void)arg;
	FAILS(INVALID_VALUE, cuMemAddressFree(MIB, GRANULE));
}

AS_WRITTEN static void fails(void *arg)
{
	atomic_bool open = false;
	void *unknown = arg;
	CUdeviceptr ptr;
	CUevent event;
	CUstream stream;

	rig_begin();
	for (int i = 0; i < 3; i++)
		FAILS(INVALID_VALUE, cuMemUnmap(MIB, GRANULE));
	FAILS(INVALID_VALUE, npusimMark(NULL));
	FAILS(INVALID_VALUE, cuMemAlloc_v2(NULL, MIB));
	FAILS(INVALID_HANDLE, cuEventRecord((CUevent)8, NULL));
	FAILS(OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, UINT64_C(1) << 40));
	FAILS(NOT_FOUND, cuGetProcAddress("cuNoSuchFunction", &unknown, 12000, 0));
	TRY(cuEventCreate(&event, 0));
	TRY(cuEventQuery(event));
	/* An answer of a query is no failure. */
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuLaunchHostFunc(stream, rig_hold, &open));
	TRY(cuEventRecord(event, stream));
	FAILS(NOT_READY, cuStreamQuery(stream));
	FAILS(NOT_READY, cuEventQuery(event));
	atomic_store(&open, true);
	TRY(cuLaunchHostFunc(stream, fail_in_stream, NULL));
	TRY(cuStreamSynchronize(stream));
	exit(0);
}

/* First in this file: the process has not used a device yet, and its child may. */
TEST_CHILD(cuda_init, comes_before_all_but_what_needs_none)
{
	const char *name;
	CUdeviceptr ptr;
	int value;

	FAILS(NOT_INITIALIZED, cuDeviceGetCount(&value));
	FAILS(NOT_INITIALIZED, cuDeviceGetP2PAttribute(&value, 1, 0, 1));
	FAILS(NOT_INITIALIZED, cuMemAlloc_v2(&ptr, 0));
	FAILS(NOT_INITIALIZED, cuMemUnmap(0, 0));
	FAILS(NOT_INITIALIZED, cuProfilerStart());
	TRY(cuDriverGetVersion(&value));
	TRY(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &name));
	FAILS(INVALID_VALUE, cuGetProcAddress(NULL, NULL, 12000, 0));
	FAILS(INVALID_VALUE, cuInit(1));
	exit(0);
}

TEST(cuda_log, has_each_kind_of_failure_once)
{
	const char *log;

	setenv("NPUSIM_FAILURES", "on", 1);
	EXPECT_EXIT(0, fails, NULL);
	log = harness_last_stderr();
	EXPECT_CONTAINS(log, " warn: cuMemUnmap: ");
	EXPECT_CONTAINS(log, " (1 CUDA_ERROR_INVALID_VALUE, at cuda-runtime+0x");
	EXPECT_CONTAINS(log, " warn: npusimMark: name is NULL (1 CUDA_ERROR_INVALID_VALUE, at ");
	EXPECT_CONTAINS(log, " warn: cuMemAlloc_v2: ");
	EXPECT_CONTAINS(log, " it was not made by cuEventCreate");
	EXPECT_CONTAINS(log, " warn: cuMemAddressFree: [0x100000, ");
	EXPECT_NULL(strstr(log, "aclrt"));
	EXPECT_NULL(strstr(log, "halMem"));
	EXPECT_NULL(strstr(log, " warn: cuGetProcAddress"));
	EXPECT_CONTAINS(log, " warn: 9 failures of 7 kinds, 2 of them such as programs try; the "
			     "first: cuMemUnmap: ");
	EXPECT_NULL(strstr(strstr(log, " warn: cuMemUnmap: ") + 1, " warn: cuMemUnmap: "));
}

static void in_the_child(void *arg)
{
	CUdeviceptr ptr;

	(void)arg;
	FAILS(NOT_INITIALIZED, cuInit(0));
	FAILS(NOT_INITIALIZED, cuMemAlloc_v2(&ptr, MIB));
	FAILS(NOT_INITIALIZED, cuCtxSynchronize());
}

/* Each call of a child says what is wrong, and what to do. */
TEST_CHILD(cuda_log, child_of_fork)
{
	static const char *const calls[] = { "cuInit", "cuMemAlloc_v2", "cuCtxSynchronize" };

	setenv("NPUSIM_FAILURES", "on", 1);
	rig_begin();
	EXPECT_EXIT(0, in_the_child, NULL);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *line = strstr(harness_last_stderr(), calls[i]);

		ASSERT_NOT_NULL(line);
		ASSERT_NOT_NULL(strstr(line, "spawn"));
		line += strlen(calls[i]);
		EXPECT_TRUE(strncmp(line, ": npusim: this process was forked", 33) == 0);
		EXPECT_TRUE(strcspn(line, "\n") > (size_t)(strstr(line, "spawn") - line));
	}
	exit(harness_has_failed());
}

SETUP(cuda_runtime)
{
	rig_begin();
}

TEST(cuda_runtime, devices)
{
	int count = 0, value = 0;
	char name[64];
	CUuuid first, second;
	CUdevice device = -1;
	size_t total = 0;

	TRY(cuDriverGetVersion(&value));
	EXPECT_EQ(CUDA_VERSION, value);
	TRY(cuDeviceGetCount(&count));
	EXPECT_EQ(2, count);
	TRY(cuDeviceGet(&device, 1));
	EXPECT_EQ(1, device);
	FAILS(INVALID_DEVICE, cuDeviceGet(&device, 2));
	TRY(cuDeviceGetName(name, sizeof(name), 0));
	EXPECT_STREQ("NVIDIA H100 80GB HBM3", name);
	TRY(cuDeviceGetUuid_v2(&first, 0));
	TRY(cuDeviceGetUuid_v2(&second, 1));
	EXPECT_NE(0, memcmp(&first, &second, sizeof(first)));
	TRY(cuDeviceTotalMem_v2(&total, 0));
	if (getenv("NPUSIM_HBM") == NULL)
		EXPECT_GT(total, UINT64_C(79) << 30);
	TRY(cuDeviceCanAccessPeer(&value, 0, 1));
	EXPECT_EQ(1, value);
	TRY(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	EXPECT_EQ(9, value);
	FAILS(INVALID_VALUE, cuDeviceGetAttribute(&value, 0, 0));
	FAILS(INVALID_DEVICE, cuDeviceGetAttribute(&value, 1, 7));
}

TEST(cuda_runtime, contexts)
{
	CUcontext primary = NULL, made = NULL, got = NULL;
	CUdevice device = -1;
	CUdeviceptr ptr = 0;

	TRY(cuCtxGetCurrent(&primary));
	TRY(cuCtxCreate_v2(&made, 0, 1));
	TRY(cuCtxGetCurrent(&got));
	EXPECT_EQ((void *)made, (void *)got);
	TRY(cuCtxGetDevice(&device));
	EXPECT_EQ(1, device);
	TRY(cuMemAlloc_v2(&ptr, MIB));
	TRY(cuCtxPushCurrent_v2(primary));
	TRY(cuCtxGetDevice(&device));
	EXPECT_EQ(0, device);
	TRY(cuCtxPopCurrent_v2(&got));
	EXPECT_EQ((void *)primary, (void *)got);
	TRY(cuCtxDestroy_v2(made));
	TRY(cuCtxGetCurrent(&got));
	EXPECT_EQ((void *)primary, (void *)got);
	FAILS(INVALID_CONTEXT, cuCtxDestroy_v2(made));
	FAILS(INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)0x1234));
	FAILS(INVALID_VALUE, cuMemFree_v2(ptr)); /* it went with its context */
	TRY(cuCtxSetCurrent(NULL));
	FAILS(INVALID_CONTEXT, cuCtxSynchronize());
	FAILS(INVALID_CONTEXT, cuMemAlloc_v2(&ptr, MIB));
	TRY(cuCtxSetCurrent(primary));
}

/* What CUDA 13 gives programs that ask for these by name and its version. */
TEST(cuda_runtime, a_context_that_is_not_the_current_one)
{
	CUcontext primary = NULL, other = NULL, got = NULL;
	CUgreenCtx green = (CUgreenCtx)1;
	CUstream stream = NULL;
	atomic_bool open = true;
	CUdevice device = -1;
	void *function = NULL;

	TRY(cuGetProcAddress("cuCtxGetDevice", &function, 13000, 0));
	EXPECT_EQ((void *)cuCtxGetDevice_v2, function);
	TRY(cuGetProcAddress("cuCtxSynchronize", &function, 13000, 0));
	EXPECT_EQ((void *)cuCtxSynchronize_v2, function);
	TRY(cuCtxGetCurrent(&primary));
	TRY(cuCtxCreate_v2(&other, 0, 1));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuCtxSetCurrent(primary));
	TRY(cuCtxGetDevice_v2(&device, other));
	EXPECT_EQ(1, device);
	TRY(cuCtxGetDevice_v2(&device, NULL));
	EXPECT_EQ(0, device);
	TRY(cuStreamGetDevice(stream, &device));
	EXPECT_EQ(1, device);
	TRY(cuStreamGetCtx_v2(stream, &got, &green));
	EXPECT_EQ((void *)other, (void *)got);
	EXPECT_NULL(green);
	TRY(cuLaunchHostFunc(stream, rig_hold, &open));
	TRY(cuCtxSynchronize_v2(other));
	TRY(cuStreamQuery(stream));
	TRY(cuCtxSetCurrent(NULL));
	TRY(cuCtxSynchronize_v2(other));
	FAILS(INVALID_CONTEXT, cuCtxGetDevice_v2(&device, NULL));
	FAILS(INVALID_CONTEXT, cuCtxSynchronize_v2(NULL));
	TRY(cuCtxDestroy_v2(other));
	FAILS(INVALID_CONTEXT, cuCtxGetDevice_v2(&device, other));
	FAILS(INVALID_CONTEXT, cuCtxSynchronize_v2(other));
	TRY(cuCtxSetCurrent(primary));
}

/* What a context waits for is its own, on a device that others use, too. */
TEST(cuda_runtime, context_does_not_wait_for_another)
{
	CUcontext primary = NULL, other = NULL;
	CUstream held = NULL, stream = NULL;
	atomic_bool open = false;

	TRY(cuCtxGetCurrent(&primary));
	TRY(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	TRY(cuLaunchHostFunc(held, rig_hold, &open));
	TRY(cuCtxCreate_v2(&other, 0, 0));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuCtxSynchronize());
	TRY(cuCtxDestroy_v2(other));
	FAILS(NOT_READY, cuStreamQuery(held));
	atomic_store(&open, true);
	TRY(cuCtxSynchronize());
	TRY(cuStreamQuery(held));
	TRY(cuStreamDestroy_v2(held));
}

/* CUDA's stack has no limit. */
TEST(cuda_runtime, contexts_are_pushed_as_often_as_programs_like)
{
	CUcontext primary = NULL, other = NULL, got = NULL;

	TRY(cuCtxGetCurrent(&primary));
	TRY(cuDevicePrimaryCtxRetain(&other, 1));
	for (int i = 0; i < 1000; i++)
		TRY(cuCtxPushCurrent_v2(i % 2 == 0 ? other : primary));
	for (int i = 1000; i-- > 0;) {
		TRY(cuCtxPopCurrent_v2(&got));
		EXPECT_EQ((void *)(i % 2 == 0 ? other : primary), (void *)got);
	}
	TRY(cuCtxGetCurrent(&got));
	EXPECT_EQ((void *)primary, (void *)got);
	FAILS(INVALID_CONTEXT, cuCtxPushCurrent_v2(NULL));
	TRY(cuDevicePrimaryCtxRelease_v2(1));
}

/* An id is a stream's own for the life of the program. */
TEST(cuda_runtime, ids_of_streams)
{
	unsigned long long id[4] = { 0 };
	CUstream stream = NULL;

	for (int i = 0; i < 2; i++) {
		TRY(cuStreamCreate(&stream, 0));
		TRY(cuStreamGetId(stream, &id[i]));
		TRY(cuStreamDestroy_v2(stream));
		FAILS(INVALID_HANDLE, cuStreamGetId(stream, &id[3]));
	}
	TRY(cuStreamGetId(NULL, &id[2]));
	TRY(cuStreamGetId(CU_STREAM_LEGACY, &id[3]));
	EXPECT_NE(id[0], id[1]);
	EXPECT_NE(id[1], id[2]);
	EXPECT_EQ(id[2], id[3]);
	FAILS(INVALID_VALUE, cuStreamGetId(NULL, NULL));
}

/* Each thread has a mode of its own, which does nothing: there are no captures. */
TEST(cuda_runtime, modes_of_capture)
{
	CUstreamCaptureMode mode = 2;

	TRY(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT_EQ(0, mode);
	TRY(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT_EQ(2, mode);
	mode = 3;
	FAILS(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
	FAILS(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(NULL));
}

/* Kept, and without effect. */
TEST(cuda_runtime, flags_and_limits)
{
	CUcontext primary = NULL, made = NULL;
	unsigned flags = 9;
	size_t value = 0;
	int active = 0;

	TRY(cuCtxGetCurrent(&primary));
	TRY(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	TRY(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN));
	TRY(cuCtxCreate_v2(&made, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	TRY(cuCtxGetFlags(&flags));
	EXPECT_EQ(CU_CTX_SCHED_BLOCKING_SYNC, flags);
	TRY(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
	TRY(cuCtxGetFlags(&flags));
	EXPECT_EQ(CU_CTX_SCHED_YIELD, flags);
	TRY(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	EXPECT_EQ(1024, value); /* each context has its own */
	TRY(cuCtxDestroy_v2(made));
	TRY(cuCtxGetFlags(&flags));
	EXPECT_EQ(CU_CTX_SCHED_SPIN, flags);
	TRY(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT_EQ(CU_CTX_SCHED_SPIN, flags);
	TRY(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	EXPECT_EQ(4096, value);
	FAILS(UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, 3));
	FAILS(INVALID_VALUE, cuCtxGetLimit(&value, 10));
	FAILS(INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
	FAILS(UNSUPPORTED_LIMIT, cuCtxSetLimit(8, 1));
	FAILS(INVALID_VALUE, cuCtxSetFlags(3));
	FAILS(INVALID_VALUE, cuCtxSetFlags(0x100));
	FAILS(INVALID_VALUE, cuCtxCreate_v2(&made, 6, 0));
	TRY(cuCtxSetFlags(0));
}

static void wait_and_write(CUdeviceptr at, CUstream waits, CUstream writes)
{
	TRY(cuStreamWaitValue32_v2(waits, at, 5, CU_STREAM_WAIT_VALUE_GEQ));
	FAILS(NOT_READY, cuStreamQuery(waits));
	TRY(cuStreamWriteValue32_v2(writes, at, 4, 0));
	TRY(cuStreamSynchronize(writes));
	FAILS(NOT_READY, cuStreamQuery(waits));
	TRY(cuStreamWriteValue32_v2(writes, at, 6, 0));
	TRY(cuStreamSynchronize(waits));
	/* A cyclic comparison: 0xffffffff is -1, and 6 is more. */
	TRY(cuStreamWaitValue32_v2(waits, at, 0xffffffff, CU_STREAM_WAIT_VALUE_GEQ));
	TRY(cuStreamSynchronize(waits));
	TRY(cuStreamWaitValue64_v2(waits, at, UINT64_C(7) << 32 | 6, CU_STREAM_WAIT_VALUE_EQ));
	FAILS(NOT_READY, cuStreamQuery(waits));
	TRY(cuStreamWriteValue32_v2(writes, at + 4, 7, 0));
	TRY(cuStreamSynchronize(waits));
	TRY(cuStreamWaitValue32_v2(waits, at + 4, 8, CU_STREAM_WAIT_VALUE_AND));
	FAILS(NOT_READY, cuStreamQuery(waits));
	TRY(cuStreamWriteValue64_v2(writes, at, UINT64_C(0xfffffff8) << 32, 0));
	TRY(cuStreamSynchronize(waits));
	TRY(cuStreamWaitValue32_v2(waits, at + 4, 7, CU_STREAM_WAIT_VALUE_NOR));
	FAILS(NOT_READY, cuStreamQuery(waits)); /* all bits are set in one of the two */
	TRY(cuStreamWriteValue32_v2(writes, at + 4, 0, 0));
	TRY(cuStreamSynchronize(waits));
}

TEST(cuda_runtime, values_in_memory_of_all_kinds)
{
	CUstreamBatchMemOpParams ops[3] = {
		{ .writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, { 1 }, 0, 0 } },
		{ .operation = CU_STREAM_MEM_OP_BARRIER },
		{ .writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_64, 0, { 2 }, 0, 0 } }
	};
	CUstream waits = NULL, writes = NULL;
	CUdeviceptr ptr = 0, managed = 0;
	uint64_t *mine = aligned_alloc(4096, 4096), values[2] = { 9, 9 };
	void *host = NULL;

	memset(mine, 0, 4096);
	TRY(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAlloc_v2(&ptr, MIB));
	TRY(cuMemAllocHost_v2(&host, 4096));
	TRY(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	TRY(cuMemsetD8_v2(ptr, 0, 4096));
	memset(host, 0, 4096);
	FAILS(INVALID_VALUE, cuStreamWaitValue32_v2(waits, (uintptr_t)mine, 1, 0));
	TRY(cuMemHostRegister_v2(mine, 4096, 0));
	wait_and_write(ptr, waits, writes);
	wait_and_write((uintptr_t)host, waits, writes);
	wait_and_write((uintptr_t)mine, waits, writes);
	/* The CPU writes, and a stream goes on. */
	TRY(cuStreamWaitValue64_v2(waits, (uintptr_t)mine, 77, CU_STREAM_WAIT_VALUE_EQ));
	FAILS(NOT_READY, cuStreamQuery(waits));
	__atomic_store_n(mine, 77, __ATOMIC_RELEASE);
	TRY(cuStreamSynchronize(waits));
	ops[0].writeValue.address = ptr;
	ops[2].writeValue.address = ptr + 8;
	TRY(cuStreamBatchMemOp_v2(writes, 3, ops, 0));
	TRY(cuStreamSynchronize(writes));
	TRY(cuMemcpyDtoH_v2(values, ptr, sizeof(values)));
	EXPECT_EQ(1, (uint32_t)values[0]);
	EXPECT_EQ(2, values[1]);
	ops[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	FAILS(NOT_SUPPORTED, cuStreamBatchMemOp_v2(writes, 3, ops, 0));
	ops[1].operation = 7;
	FAILS(INVALID_VALUE, cuStreamBatchMemOp_v2(writes, 3, ops, 0));
	FAILS(INVALID_VALUE, cuStreamBatchMemOp_v2(writes, 3, NULL, 0));
	FAILS(INVALID_VALUE, cuStreamBatchMemOp_v2(writes, 256, ops, 0));
	FAILS(INVALID_VALUE, cuStreamBatchMemOp_v2(writes, 1, ops, 1));
	FAILS(INVALID_VALUE, cuStreamWaitValue32_v2(waits, ptr + 2, 1, 0));
	FAILS(INVALID_VALUE, cuStreamWaitValue64_v2(waits, ptr + 4, 1, 0));
	FAILS(INVALID_VALUE, cuStreamWaitValue32_v2(waits, 0, 1, 0));
	FAILS(INVALID_VALUE, cuStreamWaitValue32_v2(waits, managed, 1, 0));
	FAILS(INVALID_VALUE, cuStreamWaitValue32_v2(waits, ptr, 1, 4));
	FAILS(INVALID_VALUE, cuStreamWriteValue32_v2(waits, ptr, 1, 2));
	FAILS(NOT_SUPPORTED, cuStreamWaitValue32_v2(waits, ptr, 1, CU_STREAM_WAIT_VALUE_FLUSH));
	TRY(cuMemHostUnregister(mine));
	TRY(cuMemFree_v2(ptr));
	TRY(cuMemFree_v2(managed));
	TRY(cuMemFreeHost(host));
	TRY(cuStreamDestroy_v2(waits));
	TRY(cuStreamDestroy_v2(writes));
	free(mine);
}

static void count_up(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

TEST(cuda_runtime, streams_events_and_host_functions)
{
	static atomic_bool go;
	static _Atomic int calls;
	CUstream stream = NULL;
	CUevent start = NULL, end = NULL;
	CUdeviceptr ptr = 0;
	void *host = NULL;
	float ms = -1;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuEventCreate(&start, CU_EVENT_DEFAULT));
	TRY(cuEventCreate(&end, CU_EVENT_DEFAULT));
	TRY(cuMemAlloc_v2(&ptr, 64 * MIB));
	TRY(cuMemAllocHost_v2(&host, 64 * MIB));
	memset(host, 1, 64 * MIB);
	TRY(cuEventQuery(start)); /* never recorded: nothing to wait for */
	FAILS(INVALID_HANDLE, cuEventElapsedTime(&ms, start, end));
	TRY(cuLaunchHostFunc(stream, rig_hold, &go));
	TRY(cuEventRecord(start, stream));
	TRY(cuMemsetD32Async(ptr, 0x05050505, 16 * MIB, stream));
	TRY(cuMemcpyDtoHAsync_v2(host, ptr, 64 * MIB, stream));
	FAILS(NOT_READY, cuStreamQuery(stream));
	EXPECT_NE(5, *(unsigned char *)host); /* not yet */
	atomic_store(&go, true);
	TRY(cuLaunchHostFunc(stream, count_up, &calls));
	TRY(cuEventRecord(end, stream));
	TRY(cuEventSynchronize(end));
	EXPECT_EQ(5, ((unsigned char *)host)[64 * MIB - 1]);
	EXPECT_EQ(1, calls);
	TRY(cuEventElapsedTime(&ms, start, end));
	EXPECT_GT(ms, 0.5f); /* 64 MiB over the host link */
	TRY(cuStreamQuery(stream));
	TRY(cuStreamDestroy_v2(stream));
	FAILS(INVALID_HANDLE, cuStreamSynchronize(stream));
	FAILS(INVALID_HANDLE, cuStreamSynchronize((CUstream)0x1234));
	TRY(cuEventDestroy_v2(start));
	TRY(cuEventDestroy_v2(end));
	FAILS(INVALID_HANDLE, cuEventDestroy_v2(end));
	TRY(cuMemFreeHost(host));
	TRY(cuMemFree_v2(ptr));
}

TEST(cuda_runtime, default_stream_waits_for_the_others)
{
	CUstream stream = NULL;
	CUdeviceptr ptr = 0;
	void *host = NULL;

	TRY(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	TRY(cuMemAlloc_v2(&ptr, 16 * MIB));
	TRY(cuMemAllocHost_v2(&host, 16 * MIB));
	memset(host, 8, 16 * MIB);
	TRY(cuMemcpyHtoDAsync_v2(ptr, host, 16 * MIB, stream));
	EXPECT_TRUE(rig_is_filled(ptr, 16 * MIB, 8)); /* a synchronous copy waits for it */
	TRY(cuStreamDestroy_v2(stream));
	TRY(cuMemFreeHost(host));
	TRY(cuMemFree_v2(ptr));
}

TEST(cuda_runtime, fills_and_rows)
{
	CUdeviceptr ptr = 0;
	size_t pitch = 0;
	unsigned short shorts[4];
	unsigned char block[8 * 4];
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = block,
			       .dstPitch = 8,
			       .WidthInBytes = 8,
			       .Height = 4 };

	TRY(cuMemAllocPitch_v2(&ptr, &pitch, 100, 4, 4));
	EXPECT_EQ(512, pitch);
	TRY(cuMemsetD2D8_v2(ptr, pitch, 9, 100, 4));
	TRY(cuMemsetD2D8_v2(0, 0, 9, 100, 0));
	TRY(cuMemsetD2D32Async(1, 0, 9, 1, 0, NULL));
	TRY(cuMemsetD16_v2(ptr, 0x1234, 4));
	TRY(cuMemcpyDtoH_v2(shorts, ptr, sizeof(shorts)));
	EXPECT_EQ(0x1234, shorts[3]);
	copy.srcDevice = ptr;
	copy.srcPitch = pitch;
	copy.srcXInBytes = 8;
	TRY(cuMemcpy2D_v2(&copy));
	for (unsigned i = 0; i < sizeof(block); i++)
		EXPECT_EQ(9, block[i]);
	FAILS(INVALID_VALUE, cuMemsetD32_v2(ptr + 1, 1, 1));
	TRY(cuMemFree_v2(ptr));
	FAILS(INVALID_VALUE, cuMemFree_v2(ptr));
}

TEST(cuda_runtime, attributes_of_many_kinds_of_pointers)
{
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_CONTEXT };
	int type = 0, managed = 0, local = 0;
	CUcontext context = NULL, current = NULL;
	void *data[] = { &type, &managed, &context };
	CUdeviceptr ptr = 0;

	TRY(cuMemAllocManaged(&ptr, MIB, CU_MEM_ATTACH_GLOBAL));
	TRY(cuPointerGetAttributes(3, which, data, ptr));
	TRY(cuCtxGetCurrent(&current));
	EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
	EXPECT_EQ(1, managed);
	EXPECT_EQ((void *)current, (void *)context);
	TRY(cuPointerGetAttributes(3, which, data, (uintptr_t)&local));
	EXPECT_EQ(0, type);
	EXPECT_NULL(context);
	FAILS(INVALID_VALUE,
	      cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&local));
	TRY(cuMemFree_v2(ptr));
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
CUresult cuGetProcAddress_v2_ptsz(const char *, void **, int, uint64_t,
				  CUdriverProcAddressQueryResult *);

TEST(cuda_runtime, functions_by_name_and_version)
{
	CUdriverProcAddressQueryResult status;
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long);
	void *function = NULL;

	TRY(cuGetProcAddress_v2("cuMemMap", &function, 12000, 0, &status));
	EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, status);
	memcpy(&map, &function, sizeof(map));
	FAILS(INVALID_VALUE, map(0, GRANULE, 0, 0, 0));
	TRY(cuGetProcAddress_v2("cuMemMap", &function, 9000, 0, &status));
	EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
	EXPECT_NULL(function);
	TRY(cuGetProcAddress_v2("cuMemCap", &function, 12000, 0, &status));
	EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
	EXPECT_NULL(function);
	FAILS(INVALID_VALUE,
	      cuGetProcAddress_v2("cuMemMap", &function, CUDA_VERSION + 10, 0, &status));
	FAILS(NOT_FOUND, cuGetProcAddress("cuMemCap", &function, 12000, 0));
	TRY(cuGetProcAddress_v2("cuMemcpyAsync", &function, 12000, 2, &status));
	EXPECT_EQ((void *)cuMemcpyAsync_ptsz, function);
	TRY(cuGetProcAddress_v2("cuMemcpyHtoD", &function, 12000, 2, &status));
	EXPECT_EQ((void *)cuMemcpyHtoD_v2_ptds, function);
	TRY(cuGetProcAddress_v2("cuMemMap", &function, 12000, 2, &status));
	EXPECT_EQ((void *)cuMemMap, function);
	TRY(cuGetProcAddress("cuMemAlloc", &function, 12000, 0));
	EXPECT_EQ((void *)cuMemAlloc_v2, function);
	TRY(cuGetProcAddress("cuCtxCreate", &function, 12000, 0));
	EXPECT_EQ((void *)cuCtxCreate_v3, function);
	TRY(cuGetProcAddress("cuGetProcAddress", &function, 12000, 2));
	EXPECT_EQ((void *)cuGetProcAddress_v2_ptsz, function);
	TRY(cuGetProcAddress("cuModuleLoad", &function, 12000, 0));
	EXPECT_NOT_NULL(function);
}

CUresult cuModuleLoad(void **module, const char *name);
CUresult cuMulticastGetGranularity(size_t *size, const void *prop, int option);
CUresult cuMemAlloc(CUdeviceptr *ptr, size_t size);

TEST(cuda_runtime, what_is_not_modelled_says_so)
{
	CUdeviceptr ptr = 0;
	const char *name = NULL;
	void *module = NULL;
	size_t size = 0;

	FAILS(NOT_SUPPORTED, cuModuleLoad(&module, "kernels.cubin"));
	FAILS(NOT_SUPPORTED, cuMulticastGetGranularity(&size, NULL, 0));
	TRY(cuMemAlloc(&ptr, MIB)); /* the first API's name */
	TRY(cuMemFree_v2(ptr));
	TRY(cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &name));
	EXPECT_STREQ("CUDA_ERROR_NOT_SUPPORTED", name);
	FAILS(INVALID_VALUE, cuGetErrorName((CUresult)12345, &name));
}

/* What a call frees or ends is found by its address or handle: garbage collectors and threads that
 * other libraries start have no context. */
TEST(cuda_runtime, ends_things_without_a_context)
{
	CUcontext context, own;
	CUdeviceptr ptr, range;
	CUstream stream;
	CUevent event;
	void *host, *mine = malloc(4096);
	unsigned flags;
	int priority;

	TRY(cuCtxGetCurrent(&context));
	TRY(cuMemAlloc_v2(&ptr, MIB));
	TRY(cuMemAllocHost_v2(&host, 4096));
	TRY(cuMemHostRegister_v2(mine, 4096, 0));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuEventCreate(&event, 0));
	TRY(cuCtxSetCurrent(NULL));
	TRY(cuMemsetD8Async(ptr, 1, MIB, stream));
	TRY(cuEventRecord(event, stream));
	TRY(cuStreamWaitEvent(stream, event, 0));
	TRY(cuStreamSynchronize(stream));
	TRY(cuStreamQuery(stream));
	TRY(cuStreamGetFlags(stream, &flags));
	TRY(cuStreamGetPriority(stream, &priority));
	TRY(cuStreamGetCtx(stream, &own));
	EXPECT_EQ(context, own);
	TRY(cuEventSynchronize(event));
	TRY(cuEventQuery(event));
	TRY(cuMemGetAddressRange_v2(&range, NULL, ptr));
	EXPECT_EQ(ptr, range);
	FAILS(INVALID_CONTEXT, cuMemAlloc_v2(&range, MIB));
	FAILS(INVALID_CONTEXT, cuStreamSynchronize(NULL));
	FAILS(INVALID_HANDLE, cuStreamDestroy_v2(NULL));
	TRY(cuEventDestroy_v2(event));
	TRY(cuStreamDestroy_v2(stream));
	FAILS(INVALID_HANDLE, cuStreamQuery(stream));
	TRY(cuMemHostUnregister(mine));
	TRY(cuMemFreeHost(host));
	TRY(cuMemFree_v2(ptr));
	TRY(cuCtxGetCurrent(&own));
	EXPECT_NULL(own);
	TRY(cuCtxSetCurrent(context));
	free(mine);
}

/* A NULL where an answer is wanted is found first, with or without a context. */
TEST(cuda_runtime, arguments_come_first)
{
	CUmemGenericAllocationHandle handle;
	CUcontext context;

	TRY(cuCtxGetCurrent(&context));
	for (int i = 0; i < 2; i++) {
		FAILS(INVALID_VALUE, cuMemAlloc_v2(NULL, MIB));
		FAILS(INVALID_VALUE, cuMemAllocManaged(NULL, MIB, 7));
		FAILS(INVALID_VALUE, cuMemGetInfo_v2(NULL, NULL));
		FAILS(INVALID_VALUE, cuMemHostRegister_v2(NULL, 4096, 0));
		FAILS(INVALID_VALUE, cuStreamCreate(NULL, 0));
		FAILS(INVALID_VALUE, cuStreamGetCtx(NULL, NULL));
		FAILS(INVALID_VALUE, cuEventCreate(NULL, 0));
		FAILS(INVALID_VALUE, cuCtxGetDevice(NULL));
		FAILS(INVALID_VALUE, cuCtxGetFlags(NULL));
		FAILS(INVALID_VALUE,
		      cuMemImportFromShareableHandle(&handle, NULL,
						     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		TRY(cuCtxSetCurrent(NULL));
	}
	TRY(cuCtxSetCurrent(context));
}

/* What this library can do, and what an H100 says of itself. */
TEST(cuda_runtime, attributes_agree_with_behaviour)
{
	static const struct {
		int attribute, value;
	} expected[] = {
		{ 32, 1 },       { 89, 1 },     { 90, 1 },    { 95, 1 },  { 21, 131072 },
		{ 107, 1 },      { 102, 1 },    { 103, 1 },   { 141, 1 }, { 115, 1 },
		{ 119, 1 },      { 122, 1 },    { 123, 1 },   { 98, 0 },  { 125, 1 },
		{ 132, 0 },      { 124, 0 },    { 54, 2046 }, { 87, 2 },  { 51, 32 },
		{ 72, 2097120 }, { 77, 32768 },
	};
	CUdeviceptr ptr = 0;
	int fd = -1;

	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		int value = -1;

		TRY(cuDeviceGetAttribute(&value, expected[i].attribute, 0));
		EXPECT_EQ(expected[i].value, value);
	}
	TRY(cuMemAlloc_v2(&ptr, MIB)); /* 124: dma-bufs */
	FAILS(NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, ptr, 4096, 1, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(NULL, ptr, 4096, 1, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, ptr, 4095, 1, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, ptr + 8, 4096, 1, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, ptr, 0, 1, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, ptr, 4096, 2, 0));
	FAILS(INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, ptr, 4096, 1, 2));
	TRY(cuMemFree_v2(ptr));
}

CUresult cuGraphicsGLRegisterBuffer(void **resource, unsigned buffer, unsigned flags);

TEST(cuda_runtime, profilers_and_graphics_link)
{
	void *resource;

	TRY(cuProfilerStart());
	TRY(cuProfilerStop());
	FAILS(NOT_SUPPORTED, cuGraphicsGLRegisterBuffer(&resource, 1, 0));
}
