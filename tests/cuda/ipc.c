/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of cuMemAlloc, events and pools in two processes, by handles of 64 bytes. The test program
 * itself uses no device, so that its children may.
 */
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (6 * MIB)
#define SMALL 768u
#define PEER  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

/* Both sides of a socket pair take turns: who has written waits for the other's byte. */
static void say(int socket)
{
	EXPECT_EQ(1, write(socket, "x", 1));
}

static void hear(int socket)
{
	char byte;

	EXPECT_EQ(1, read(socket, &byte, 1));
}

static void begin(void)
{
	alarm(60);
	rig_begin();
}

static atomic_bool go;

/* Who opens a handle while its last close waits for the device gets it anew. */
static void open_while_it_is_closed(const CUipcMemHandle *handle)
{
	struct rig_giving_back closed;
	CUdeviceptr ptr = 0, again = 0;
	CUstream stream;

	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuIpcOpenMemHandle_v2(&ptr, *handle, PEER));
	TRY(cuLaunchHostFunc(stream, rig_hold, &go));
	rig_give_back(&closed, cuIpcCloseMemHandle, ptr);
	TRY(cuIpcOpenMemHandle_v2(&again, *handle, PEER));
	EXPECT_NE(ptr, again);
	atomic_store(&go, true);
	pthread_join(closed.thread, NULL);
	EXPECT_TRUE(rig_is_filled(again, LARGE, 41));
	TRY(cuIpcCloseMemHandle(again));
	TRY(cuStreamDestroy_v2(stream));
}

/* The exporter's answer to the importer's child process; two handles are sent. */
static void import(int socket)
{
	CUipcMemHandle handle[2];
	CUdeviceptr large = 0, again = 0, small = 0, base = 0;
	size_t before, bytes = 0;
	int ordinal = -1;

	begin();
	hear(socket);
	EXPECT_EQ((ssize_t)sizeof(handle), read(socket, handle, sizeof(handle)));
	before = rig_free_bytes();
	TRY(cuIpcOpenMemHandle_v2(&large, handle[0], PEER));
	TRY(cuIpcOpenMemHandle_v2(&again, handle[0], PEER));
	EXPECT_EQ(large, again);
	TRY(cuIpcOpenMemHandle_v2(&small, handle[1], PEER));
	EXPECT_EQ(before, rig_free_bytes()); /* it is the exporter's */
	TRY(cuMemGetAddressRange_v2(&base, &bytes, large + MIB));
	EXPECT_EQ(large, base);
	EXPECT_EQ(LARGE, bytes);
	TRY(cuMemGetAddressRange_v2(&base, &bytes, small + 5));
	EXPECT_EQ(small, base);
	EXPECT_EQ(SMALL, bytes);
	TRY(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, large));
	EXPECT_EQ(1, ordinal); /* the exporter's device, whichever is current here */
	EXPECT_TRUE(rig_is_filled(large, LARGE, 31));
	EXPECT_TRUE(rig_is_filled(small, SMALL, 32));
	TRY(cuMemsetD8_v2(large, 41, LARGE));
	TRY(cuMemsetD8_v2(small, 42, SMALL));
	FAILS(INVALID_VALUE, cuMemFree_v2(large)); /* it is closed instead */
	FAILS(INVALID_VALUE, cuMemFreeAsync(large, NULL));
	TRY(cuIpcCloseMemHandle(large));
	EXPECT_TRUE(rig_is_filled(large, LARGE, 41)); /* it is open once more */
	TRY(cuIpcCloseMemHandle(large));
	FAILS(INVALID_VALUE, cuIpcCloseMemHandle(large));
	FAILS(INVALID_VALUE, cuMemsetD8_v2(large, 1, 1));
	open_while_it_is_closed(&handle[0]);
	FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, handle[0], PEER));
	FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&again, handle[0], 0));
	say(socket);
	hear(socket); /* the exporter has freed the large one */
	FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&again, handle[0], PEER));
	EXPECT_TRUE(rig_is_filled(small, SMALL, 42));
	memset(handle, '0', sizeof(handle));
	FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&again, handle[0], PEER));
	exit(harness_has_failed() ? 1 : 0);
}

TEST_CHILD(cuda_ipc, memory_is_one_in_two_processes)
{
	CUipcMemHandle handle[2], same, other;
	CUdeviceptr large = 0, small = 0, managed = 0;
	CUcontext context;
	int sockets[2], status = -1;
	struct piece piece;
	pid_t child;

	EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0)
		import(sockets[1]);
	begin();
	TRY(cuDevicePrimaryCtxRetain(&context, 1));
	TRY(cuCtxSetCurrent(context));
	TRY(cuMemAlloc_v2(&large, LARGE));
	TRY(cuMemAlloc_v2(&small, SMALL));
	TRY(cuMemsetD8_v2(large, 31, LARGE));
	TRY(cuMemsetD8_v2(small, 32, SMALL));
	TRY(cuIpcGetMemHandle(&handle[0], large + 1)); /* any address of it will do */
	TRY(cuIpcGetMemHandle(&handle[1], small));
	TRY(cuIpcGetMemHandle(&same, large));
	EXPECT_EQ(0, memcmp(&same, &handle[0], sizeof(same)));
	say(sockets[0]);
	EXPECT_EQ((ssize_t)sizeof(handle), write(sockets[0], handle, sizeof(handle)));
	hear(sockets[0]);
	EXPECT_TRUE(rig_is_filled(large, LARGE, 41));
	EXPECT_TRUE(rig_is_filled(small, SMALL, 42));
	TRY(cuMemFree_v2(large));
	say(sockets[0]);
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* New memory at the old address has a handle of its own. */
	TRY(cuMemAlloc_v2(&large, LARGE));
	TRY(cuIpcGetMemHandle(&other, large));
	EXPECT_NE(0, memcmp(&same, &other, sizeof(same)));
	TRY(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	piece = rig_make(1, GRANULE);
	FAILS(INVALID_VALUE, cuIpcGetMemHandle(NULL, large));
	FAILS(INVALID_VALUE, cuIpcGetMemHandle(&other, managed));
	FAILS(INVALID_VALUE, cuIpcGetMemHandle(&other, piece.va));
	FAILS(INVALID_VALUE, cuIpcGetMemHandle(&other, 0));
	FAILS(INVALID_VALUE, cuIpcCloseMemHandle(large));
	exit(harness_has_failed() ? 1 : 0);
}

/* ---- events ---- */

struct handles {
	CUipcMemHandle memory;
	CUipcEventHandle event, back;
};

/* Waits for the exporter's fill in a stream, and records an event of the exporter's in turn. */
static void follow(int socket)
{
	struct handles handles;
	CUevent event = NULL, back = NULL;
	CUstream stream = NULL;
	CUdeviceptr ptr = 0;
	void *host = NULL;

	begin();
	EXPECT_EQ((ssize_t)sizeof(handles), read(socket, &handles, sizeof(handles)));
	TRY(cuIpcOpenMemHandle_v2(&ptr, handles.memory, PEER));
	TRY(cuIpcOpenEventHandle(&event, handles.event));
	TRY(cuIpcOpenEventHandle(&back, handles.back));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAllocHost_v2(&host, LARGE));
	TRY(cuEventQuery(back)); /* never recorded */
	FAILS(NOT_READY, cuEventQuery(event));
	TRY(cuStreamWaitEvent(stream, event, 0));
	TRY(cuMemcpyDtoHAsync_v2(host, ptr, LARGE, stream));
	TRY(cuEventRecord(back, stream));
	FAILS(NOT_READY, cuStreamQuery(stream));
	FAILS(NOT_READY, cuEventQuery(back));
	say(socket);
	TRY(cuStreamSynchronize(stream));
	EXPECT_EQ(51, ((unsigned char *)host)[0]);
	EXPECT_EQ(51, ((unsigned char *)host)[LARGE - 1]);
	TRY(cuEventQuery(event));
	TRY(cuEventDestroy_v2(event));
	FAILS(INVALID_HANDLE, cuEventQuery(event));
	hear(socket);
	memset(&handles.event, 0, sizeof(handles.event));
	FAILS(INVALID_HANDLE, cuIpcOpenEventHandle(&event, handles.event));
	FAILS(INVALID_VALUE, cuIpcOpenEventHandle(NULL, handles.back));
	exit(harness_has_failed() ? 1 : 0);
}

TEST_CHILD(cuda_ipc, events_order_work_of_two_processes)
{
	unsigned flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	struct handles handles;
	CUevent event = NULL, back = NULL, plain = NULL;
	CUstream stream = NULL;
	CUdeviceptr ptr = 0;
	int sockets[2], status = -1;
	float ms;
	pid_t child;

	EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0)
		follow(sockets[1]);
	begin();
	TRY(cuMemAlloc_v2(&ptr, LARGE));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuEventCreate(&event, flags));
	TRY(cuEventCreate(&back, flags));
	TRY(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	TRY(cuIpcGetMemHandle(&handles.memory, ptr));
	TRY(cuIpcGetEventHandle(&handles.event, event));
	TRY(cuIpcGetEventHandle(&handles.back, back));
	TRY(cuLaunchHostFunc(stream, rig_hold, &go));
	TRY(cuMemsetD8Async(ptr, 51, LARGE, stream));
	TRY(cuEventRecord(event, stream));
	EXPECT_EQ((ssize_t)sizeof(handles), write(sockets[0], &handles, sizeof(handles)));
	hear(sockets[0]); /* the other process waits */
	FAILS(NOT_READY, cuEventQuery(back));
	atomic_store(&go, true);
	TRY(cuEventSynchronize(back));
	TRY(cuEventQuery(event));
	say(sockets[0]);
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	FAILS(INVALID_VALUE, cuEventCreate(&plain, CU_EVENT_INTERPROCESS)); /* it has times */
	FAILS(INVALID_HANDLE, cuIpcGetEventHandle(&handles.event, plain));
	FAILS(INVALID_VALUE, cuIpcGetEventHandle(NULL, event));
	FAILS(INVALID_HANDLE, cuEventElapsedTime(&ms, event, back));
	TRY(cuEventDestroy_v2(event));
	FAILS(INVALID_HANDLE, cuIpcGetEventHandle(&handles.event, event));
	exit(harness_has_failed() ? 1 : 0);
}

/* The record that counts is the last that was asked for, whichever happens first. */
TEST_CHILD(cuda_ipc, last_record_of_an_event_counts)
{
	CUstream slow = NULL, fast = NULL;
	CUevent event = NULL;

	begin();
	TRY(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&fast, CU_STREAM_NON_BLOCKING));
	TRY(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	TRY(cuLaunchHostFunc(slow, rig_hold, &go));
	TRY(cuEventRecord(event, slow));
	FAILS(NOT_READY, cuEventQuery(event));
	TRY(cuEventRecord(event, fast));
	TRY(cuEventSynchronize(event));
	atomic_store(&go, true);
	TRY(cuStreamSynchronize(slow));
	TRY(cuEventQuery(event));
	TRY(cuStreamWaitEvent(fast, event, 0));
	TRY(cuStreamSynchronize(fast));
	exit(harness_has_failed() ? 1 : 0);
}

/* ---- pools ---- */

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static void import_pool(int socket)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool = NULL, strange = NULL;
	CUdeviceptr ptr = 0, other = 0;
	int fd, empty;

	begin();
	fd = rig_receive_fd(socket);
	empty = rig_receive_fd(socket);
	EXPECT_EQ((ssize_t)sizeof(data), read(socket, &data, sizeof(data)));
	TRY(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
	TRY(cuMemPoolImportFromShareableHandle(&strange, (void *)(intptr_t)empty, FD, 0));
	EXPECT_EQ(0, close(fd));
	FAILS(INVALID_VALUE, cuMemPoolImportPointer(&ptr, strange, &data));
	TRY(cuMemPoolImportPointer(&ptr, pool, &data));
	EXPECT_TRUE(rig_is_filled(ptr, LARGE, 61));
	TRY(cuMemsetD8_v2(ptr, 62, LARGE));
	FAILS(INVALID_VALUE, cuMemAllocFromPoolAsync(&other, MIB, pool, NULL));
	FAILS(INVALID_VALUE, cuDeviceSetMemPool(1, pool));
	FAILS(INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	FAILS(INVALID_VALUE, cuMemPoolImportPointer(NULL, pool, &data));
	FAILS(INVALID_VALUE, cuIpcCloseMemHandle(ptr)); /* it is freed, either way */
	TRY(cuMemPoolImportPointer(&other, pool, &data));
	EXPECT_EQ(ptr, other);
	TRY(cuMemFree_v2(ptr));
	TRY(cuMemFreeAsync(ptr, NULL));
	FAILS(INVALID_VALUE, cuMemFreeAsync(ptr, NULL));
	FAILS(INVALID_VALUE, cuMemFree_v2(ptr));
	TRY(cuMemPoolDestroy(pool));
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	FAILS(INVALID_VALUE,
	      cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
	exit(harness_has_failed() ? 1 : 0);
}

TEST_CHILD(cuda_ipc, pool_and_its_memory_in_two_processes)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .handleTypes = FD,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
	CUmemPoolPtrExportData data;
	CUmemoryPool pool = NULL, alone = NULL, empty = NULL;
	CUdeviceptr ptr = 0, again = 0;
	int sockets[2], fd = -1, status = -1;
	pid_t child;

	EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0)
		import_pool(sockets[1]);
	begin();
	TRY(cuMemPoolCreate(&pool, &props));
	TRY(cuMemPoolCreate(&empty, &props));
	props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
	TRY(cuMemPoolCreate(&alone, &props));
	TRY(cuMemAllocFromPoolAsync(&ptr, LARGE, pool, NULL));
	TRY(cuMemsetD8_v2(ptr, 61, LARGE));
	TRY(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	EXPECT_TRUE(rig_send_fd(sockets[0], fd));
	TRY(cuMemPoolExportToShareableHandle(&fd, empty, FD, 0));
	EXPECT_TRUE(rig_send_fd(sockets[0], fd));
	TRY(cuMemPoolExportPointer(&data, ptr));
	EXPECT_EQ((ssize_t)sizeof(data), write(sockets[0], &data, sizeof(data)));
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(rig_is_filled(ptr, LARGE, 62));
	TRY(cuMemFreeAsync(ptr, NULL));
	FAILS(INVALID_VALUE, cuMemPoolExportPointer(&data, ptr));
	FAILS(INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, FD, 0));
	FAILS(INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, alone, FD, 0));
	TRY(cuMemAllocFromPoolAsync(&again, LARGE, alone, NULL));
	FAILS(INVALID_VALUE, cuMemPoolExportPointer(&data, again));
	FAILS(INVALID_VALUE, cuMemPoolImportPointer(&again, pool, &data));
	exit(harness_has_failed() ? 1 : 0);
}
