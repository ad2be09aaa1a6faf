/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudart of one major version, CUDART_MAJOR: each modelled function with right and wrong
 * arguments, the layout of its records, the version of its symbols, and what it does not model.
 */
#include "rig.h"
#include "runtime/cuda/cudart.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef TRY
#define TRY(call)      EXPECT_EQ(0, call)
#define GIVES(n, call) EXPECT_EQ(n, call)
enum { INVALID_VALUE = 1, KIND = 21, INVALID_DEVICE = 101, HANDLE = 400 };

#if CUDART_MAJOR == 11
#define NODE "libcudart.so.11.0"
#else
#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)
#define NODE         "libcudart.so." STRING(CUDART_MAJOR)
#endif

/* Of NVIDIA's headers, each of that version: driver_types.h of CUDA 11.3, 12.5 and 13.1. */
TEST(cudart, records_have_the_layout_of_the_version)
{
	size_t size = CUDART_MAJOR == 11 ? 728 : CUDART_MAJOR == 12 ? 1032 : 1008;
	size_t last = CUDART_MAJOR == 13 ? 696 : 720;

	EXPECT_EQ(size, sizeof(struct cudaDeviceProp));
	EXPECT_EQ(288, offsetof(struct cudaDeviceProp, totalGlobalMem));
	EXPECT_EQ(360, offsetof(struct cudaDeviceProp, major));
	EXPECT_EQ(last, offsetof(struct cudaDeviceProp, reservedSharedMemPerBlock));
	EXPECT_EQ(CUDART_MAJOR == 13 ? 88 : 24, sizeof(struct cudaPointerAttributes));
}

TEST(cudart, symbols_carry_the_version_of_the_library)
{
	EXPECT_NOT_NULL(dlvsym(RTLD_DEFAULT, "cudaMalloc", NODE));
	EXPECT_NOT_NULL(dlvsym(RTLD_DEFAULT, "cudaMemcpy_ptds", NODE));
	EXPECT_NOT_NULL(dlvsym(RTLD_DEFAULT, "cudaMallocAsync_ptsz", NODE));
	EXPECT_NULL(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.10.0"));
	EXPECT_EQ(CUDART_MAJOR == 12, dlsym(RTLD_DEFAULT, "cudaGetDeviceProperties_v2") != NULL);
	EXPECT_EQ(CUDART_MAJOR == 11, dlsym(RTLD_DEFAULT, "cudaBindTexture") != NULL);
	EXPECT_EQ(CUDART_MAJOR != 13, dlsym(RTLD_DEFAULT, "cudaThreadExit") != NULL);
	EXPECT_EQ(CUDART_MAJOR != 11, dlsym(RTLD_DEFAULT, "cudaLogsCurrent") != NULL);
	EXPECT_NOT_NULL(dlsym(RTLD_DEFAULT, "cudaGLSetGLDevice"));
	EXPECT_NOT_NULL(dlsym(RTLD_DEFAULT, "cudaGetDriverEntryPoint"));
}

TEST(cudart, devices)
{
	struct cudaDeviceProp prop[2];
	char id[16] = "";
	int count = 0, value = 0, other = 0;
	unsigned int flags = 9;
	size_t size = 0;

	TRY(cudaGetDeviceCount(&count));
	EXPECT_EQ(2, count);
	GIVES(INVALID_VALUE, cudaGetDeviceCount(NULL));
	TRY(cudaRuntimeGetVersion(&value));
	EXPECT_EQ(CUDART_MAJOR, value / 1000);
	GIVES(INVALID_VALUE, cudaRuntimeGetVersion(NULL));
	TRY(cudaDriverGetVersion(&other));
	EXPECT_LE(value, other);
	TRY(cudaGetDevice(&value));
	EXPECT_EQ(0, value);
	TRY(cudaSetDevice(1));
	TRY(cudaGetDevice(&value));
	EXPECT_EQ(1, value);
	GIVES(INVALID_VALUE, cudaGetDevice(NULL));
	GIVES(INVALID_DEVICE, cudaSetDevice(2));
	GIVES(INVALID_DEVICE, cudaSetDevice(-1));
	TRY(cudaGetDevice(&value));
	EXPECT_EQ(1, value);
	TRY(cudaDeviceGetAttribute(&value, 75, 0));
	EXPECT_EQ(9, value);
	GIVES(INVALID_DEVICE, cudaDeviceGetAttribute(&value, 75, 2));
	GIVES(INVALID_VALUE, cudaDeviceGetAttribute(&value, 9999, 0));
	memset(prop, 0x5a, sizeof(prop));
	TRY(cudaGetDeviceProperties(prop, 1));
	EXPECT_EQ(0x5a, (int)((unsigned char *)&prop[1])[0]);
	EXPECT_EQ(9, prop->major[0]);
	EXPECT_EQ(1024, prop->maxThreadsDim[1]);
	EXPECT_EQ(64, prop->maxThreadsDim[2]);
	EXPECT_EQ(49152, prop->sharedMemPerBlock[0]);
	EXPECT_EQ(1024, prop->reservedSharedMemPerBlock[0]);
	TRY(cudaMemGetInfo(&(size_t){ 0 }, &size));
	EXPECT_EQ(size, prop->totalGlobalMem);
	EXPECT_NOT_NULL(strstr(prop->name, "H100"));
#if CUDART_MAJOR == 12 /* the first name has the record of CUDA 11 */
	EXPECT_EQ(0x5a5a5a5a, prop->hostRegisterSupported[0]);
	TRY(cudaGetDeviceProperties_v2(prop, 1));
#endif
#if CUDART_MAJOR != 11
	EXPECT_EQ(1, prop->memoryPoolsSupported[0]);
	EXPECT_EQ(0, prop->reserved[55]);
	TRY(cudaInitDevice(1, 0, 0));
	GIVES(INVALID_DEVICE, cudaInitDevice(2, 0, 0));
#endif
	GIVES(INVALID_VALUE, cudaGetDeviceProperties(NULL, 0));
	GIVES(INVALID_DEVICE, cudaGetDeviceProperties(prop, 2));
	TRY(cudaDeviceGetPCIBusId(id, sizeof(id), 1));
	TRY(cudaDeviceGetByPCIBusId(&value, id));
	EXPECT_EQ(1, value);
	GIVES(INVALID_VALUE, cudaDeviceGetPCIBusId(id, 3, 1));
	GIVES(INVALID_DEVICE, cudaDeviceGetByPCIBusId(&value, "0000:FF:00.0"));
	TRY(cudaSetDeviceFlags(0));
	TRY(cudaGetDeviceFlags(&flags));
	EXPECT_EQ(0, flags);
	GIVES(INVALID_VALUE, cudaGetDeviceFlags(NULL));
	TRY(cudaDeviceGetStreamPriorityRange(&value, &other));
	EXPECT_LT(other, value);
	TRY(cudaDeviceSynchronize());
#if CUDART_MAJOR == 11
	TRY(cudaProfilerInitialize("", "", 0));
#endif
	TRY(cudaProfilerStart());
	TRY(cudaProfilerStop());
	TRY(cudaSetDevice(0));
}

TEST(cudart, peers)
{
	int value = -1;

	TRY(cudaSetDevice(0));
	TRY(cudaDeviceCanAccessPeer(&value, 0, 1));
	EXPECT_EQ(1, value);
	GIVES(INVALID_DEVICE, cudaDeviceCanAccessPeer(&value, 0, 2));
	TRY(cudaDeviceGetP2PAttribute(&value, 2, 0, 1));
	EXPECT_EQ(1, value);
	GIVES(INVALID_DEVICE, cudaDeviceGetP2PAttribute(&value, 2, 0, 0));
	GIVES(INVALID_DEVICE, cudaDeviceGetP2PAttribute(&value, 1, 0, 2));
	GIVES(705, cudaDeviceDisablePeerAccess(1));
	TRY(cudaDeviceEnablePeerAccess(1, 0));
	GIVES(704, cudaDeviceEnablePeerAccess(1, 0));
	GIVES(INVALID_VALUE, cudaDeviceEnablePeerAccess(1, 1));
	GIVES(INVALID_DEVICE, cudaDeviceEnablePeerAccess(0, 0));
	GIVES(INVALID_DEVICE, cudaDeviceEnablePeerAccess(2, 0));
	TRY(cudaDeviceDisablePeerAccess(1));
}

/* What was allocated in a device's context ends with it, and the next call has a new one, of which
 * the thread has one reference however often it selects the device. */
TEST(cudart, a_reset_device_begins_anew)
{
	void *ptr = NULL;

	TRY(cudaSetDevice(1));
	TRY(cudaMalloc(&ptr, MIB));
	TRY(cudaDeviceReset());
	GIVES(INVALID_VALUE, cudaFree(ptr));
	TRY(cudaMalloc(&ptr, MIB));
	TRY(cudaFree(ptr));
	TRY(cudaSetDevice(1));
	TRY(cudaSetDevice(1));
	TRY(cuDevicePrimaryCtxRelease_v2(1));
	FAILS(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(1));
	TRY(cudaMalloc(&ptr, MIB));
	TRY(cudaSetDevice(0));
}

TEST(cudart, memory)
{
	struct cudaPointerAttributes at;
	void *ptr = NULL, *other = NULL, *host = NULL, *mine = aligned_alloc(4096, MIB);
	size_t pitch = 0, before = 0, now = 0, total;
	unsigned int flags = 9;

	TRY(cudaMemGetInfo(&before, &total));
	TRY(cudaMalloc(&ptr, 8 * MIB));
	TRY(cudaMemGetInfo(&now, &total));
	EXPECT_EQ(8 * MIB, before - now);
	GIVES(INVALID_VALUE, cudaMalloc(NULL, 1));
	GIVES(2, cudaMalloc(&other, (size_t)1 << 50));
	TRY(cudaMalloc(&other, 0));
	EXPECT_NULL(other);
	GIVES(INVALID_VALUE, cudaMalloc(NULL, 0));
	TRY(cudaPointerGetAttributes(&at, ptr));
	EXPECT_EQ(CUDART_DEVICE, at.type);
	EXPECT_EQ(0, at.device);
	EXPECT_EQ(ptr, at.devicePointer);
	EXPECT_NULL(at.hostPointer);
	TRY(cudaPointerGetAttributes(&at, mine));
	EXPECT_EQ(CUDART_UNREGISTERED, at.type);
	EXPECT_EQ(-2, at.device);
	GIVES(INVALID_VALUE, cudaPointerGetAttributes(NULL, ptr));
	TRY(cudaFree(ptr));
	GIVES(INVALID_VALUE, cudaFree(ptr));
	TRY(cudaFree(NULL));
	TRY(cudaMallocPitch(&ptr, &pitch, 1000, 10));
	EXPECT_EQ(0, pitch % 512);
	GIVES(INVALID_VALUE, cudaMallocPitch(&other, NULL, 1000, 10));
	TRY(cudaFree(ptr));
	TRY(cudaMallocManaged(&ptr, MIB, 1));
	TRY(cudaPointerGetAttributes(&at, ptr));
	EXPECT_EQ(CUDART_MANAGED, at.type);
	EXPECT_EQ(ptr, at.hostPointer);
	memset(ptr, 1, MIB);
	GIVES(INVALID_VALUE, cudaMallocManaged(&other, MIB, 8));
	TRY(cudaFree(ptr));
	TRY(cudaMallocHost(&host, MIB));
	TRY(cudaPointerGetAttributes(&at, host));
	EXPECT_EQ(CUDART_HOST, at.type);
	GIVES(INVALID_VALUE, cudaMallocHost(NULL, MIB));
	TRY(cudaFreeHost(host));
	GIVES(INVALID_VALUE, cudaFreeHost(host));
	TRY(cudaFreeHost(NULL));
	TRY(cudaHostAlloc(&host, MIB, 2));
	TRY(cudaHostGetDevicePointer(&ptr, host, 0));
	EXPECT_EQ(host, ptr);
	GIVES(INVALID_VALUE, cudaHostGetDevicePointer(&ptr, mine, 0));
	TRY(cudaHostGetFlags(&flags, host));
	EXPECT_EQ(2, flags & 2);
	GIVES(INVALID_VALUE, cudaHostGetFlags(&flags, mine));
	GIVES(INVALID_VALUE, cudaHostAlloc(&other, MIB, 99));
	TRY(cudaFreeHost(host));
	TRY(cudaHostRegister(mine, MIB, 0));
	GIVES(712, cudaHostRegister(mine, MIB, 0));
	TRY(cudaHostUnregister(mine));
	GIVES(713, cudaHostUnregister(mine));
	free(mine);
}

TEST(cudart, copies_and_fills)
{
	unsigned char *host = malloc(2 * MIB);
	void *ptr = NULL, *peer = NULL;
	CUstream stream = NULL;

	TRY(cudaStreamCreate(&stream));
	TRY(cudaMalloc(&ptr, 2 * MIB));
	TRY(cudaSetDevice(1));
	TRY(cudaMalloc(&peer, 2 * MIB));
	TRY(cudaSetDevice(0));
	TRY(cudaMemset(ptr, 3, 2 * MIB));
	TRY(cudaMemcpyPeer(peer, 1, ptr, 0, 2 * MIB));
	GIVES(INVALID_DEVICE, cudaMemcpyPeer(peer, 2, ptr, 0, 2 * MIB));
	EXPECT_TRUE(rig_is_filled((uintptr_t)peer, 2 * MIB, 3));
	TRY(cudaMemsetAsync(ptr, 4, 2 * MIB, stream));
	TRY(cudaMemcpyPeerAsync(peer, 1, ptr, 0, 2 * MIB, stream));
	GIVES(INVALID_DEVICE, cudaMemcpyPeerAsync(peer, 1, ptr, -1, 1, stream));
	TRY(cudaMemcpyAsync(host, peer, 2 * MIB, 2, stream));
	TRY(cudaStreamSynchronize(stream));
	EXPECT_EQ(4, host[2 * MIB - 1]);
	memset(host, 5, 2 * MIB);
	TRY(cudaMemcpy(ptr, host, 2 * MIB, 1));
	EXPECT_TRUE(rig_is_filled((uintptr_t)ptr, 2 * MIB, 5));
	GIVES(KIND, cudaMemcpy(ptr, host, 1, 5));
	GIVES(KIND, cudaMemcpyAsync(ptr, host, 1, -1, stream));
	GIVES(INVALID_VALUE, cudaMemcpy(NULL, host, 1, 4));
	GIVES(INVALID_VALUE, cudaMemset(NULL, 0, 1));
	/* 512 of each 1024 bytes */
	TRY(cudaMemset2D(ptr, 1024, 6, 512, 2048));
	TRY(cudaMemcpy2D(peer, 512, ptr, 1024, 512, 2048, 4));
	EXPECT_TRUE(rig_is_filled((uintptr_t)peer, MIB, 6));
	TRY(cudaMemset2DAsync(ptr, 1024, 7, 512, 2048, stream));
	TRY(cudaMemcpy2DAsync(peer, 512, ptr, 1024, 512, 2048, 3, stream));
	TRY(cudaStreamSynchronize(stream));
	EXPECT_TRUE(rig_is_filled((uintptr_t)peer, MIB, 7));
	GIVES(KIND, cudaMemcpy2D(peer, 512, ptr, 1024, 512, 2048, 9));
	GIVES(INVALID_VALUE, cudaMemcpy2D(peer, 511, ptr, 1024, 512, 2048, 4));
	GIVES(INVALID_VALUE, cudaMemset2D(ptr, 511, 6, 512, 2048));
	TRY(cudaFree(ptr));
	TRY(cudaFree(peer));
	TRY(cudaStreamDestroy(stream));
	free(host);
}

/* ---- boxes ---- */

enum { PITCH = 16, ROWS = 4, SLICES = 3, BOX = PITCH * ROWS * SLICES };

/* Two bytes of two rows in two slices, from (1, 1, 1) to (2, 0, 1); each byte holds its place. */
#define BOX_OF(from, to)                                                                 \
	{                                                                                \
		.srcPos = { 1, 1, 1 }, .srcPtr = { from, PITCH, PITCH, ROWS },           \
		.dstPos = { 2, 0, 1 }, .dstPtr = { to, PITCH, PITCH, ROWS }, .extent = { \
			2,                                                               \
			2,                                                               \
			2                                                                \
		}                                                                        \
	}

static void expect_box(void *ptr)
{
	unsigned char host[BOX];

	TRY(cudaMemcpy(host, ptr, BOX, 2));
	for (int z = 0; z < SLICES; z++)
		for (int y = 0; y < ROWS; y++)
			for (int x = 0; x < PITCH; x++) {
				int at = (z * ROWS + y) * PITCH + x;
				bool inside = z >= 1 && y < 2 && x >= 2 && x < 4;

				EXPECT_EQ(inside ? at + PITCH - 1 : 255, host[at]);
			}
	TRY(cudaMemset(ptr, 255, BOX));
}

TEST(cudart, a_box_of_its_own)
{
	struct cudaExtent all = { 100, 3, 2 }, part = { 10, 2, 2 };
	struct cudaPitchedPtr box = { 0 }, inside;
	unsigned char host[2][3][1024];

	GIVES(INVALID_VALUE, cudaMalloc3D(NULL, all));
	GIVES(2, cudaMalloc3D(&box, (struct cudaExtent){ 1, SIZE_MAX, 2 }));
	GIVES(2, cudaMalloc3D(&box, (struct cudaExtent){ 1, (size_t)1 << 32, (size_t)1 << 32 }));
	TRY(cudaMalloc3D(&box, all));
	EXPECT_EQ(100, box.xsize);
	EXPECT_EQ(3, box.ysize);
	ASSERT_EQ(512, box.pitch);
	TRY(cudaMemset3D(box, 7, all));
	TRY(cudaMemset3D((struct cudaPitchedPtr){ 0 }, 7, (struct cudaExtent){ 1, 0, 1 }));
	inside = box;
	inside.ptr = (char *)box.ptr + box.pitch + 5;
	TRY(cudaMemset3DAsync(inside, 9, part, NULL));
	GIVES(HANDLE, cudaMemset3DAsync(inside, 9, part, (CUstream)box.ptr));
	inside.pitch = 9; /* a row has 10 */
	GIVES(INVALID_VALUE, cudaMemset3D(inside, 9, part));
	TRY(cudaMemcpy2D(host, 1024, box.ptr, box.pitch, 100, 6, 2));
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 3; y++)
			for (int x = 0; x < 100; x++)
				EXPECT_EQ(y > 0 && x >= 5 && x < 15 ? 9 : 7, host[z][y][x]);
	TRY(cudaFree(box.ptr));
}

TEST(cudart, boxes)
{
	void *ptr = NULL, *source = NULL;
	unsigned char host[BOX];

	EXPECT_EQ(160, sizeof(struct cudaMemcpy3DParms)); /* of NVIDIA's headers */
	EXPECT_EQ(168, sizeof(struct cudaMemcpy3DPeerParms));
	for (int i = 0; i < BOX; i++)
		host[i] = (unsigned char)i;
	TRY(cudaMalloc(&ptr, BOX));
	TRY(cudaMalloc(&source, BOX));
	TRY(cudaMemcpy(source, host, BOX, 1));
	TRY(cudaMemset(ptr, 255, BOX));
	struct cudaMemcpy3DParms box = BOX_OF(host, ptr);
	struct cudaMemcpy3DPeerParms peer = BOX_OF(source, ptr);
	box.kind = 1;
	peer.dstDevice = 1;
	TRY(cudaMemcpy3D(&box));
	expect_box(ptr);
	TRY(cudaMemcpy3DAsync(&box, NULL));
	TRY(cudaStreamSynchronize(NULL));
	expect_box(ptr);
	TRY(cudaMemcpy3DPeer(&peer));
	expect_box(ptr);
	TRY(cudaMemcpy3DPeerAsync(&peer, NULL));
	TRY(cudaStreamSynchronize(NULL));
	expect_box(ptr);
	GIVES(INVALID_VALUE, cudaMemcpy3D(NULL));
	GIVES(INVALID_VALUE, cudaMemcpy3DAsync(NULL, NULL));
	GIVES(INVALID_VALUE, cudaMemcpy3DPeer(NULL));
	GIVES(INVALID_VALUE, cudaMemcpy3DPeerAsync(NULL, NULL));
	box.dstPtr.pitch = 3; /* 2 + 2 are more */
	GIVES(INVALID_VALUE, cudaMemcpy3D(&box));
	GIVES(INVALID_VALUE, cudaMemcpy3DAsync(&box, NULL));
	box.dstPtr.pitch = PITCH;
	box.dstArray = ptr;
	GIVES(INVALID_VALUE, cudaMemcpy3D(&box));
	box.kind = 5;
	GIVES(KIND, cudaMemcpy3D(&box));
	GIVES(KIND, cudaMemcpy3DAsync(&box, NULL));
	peer.srcDevice = 2;
	GIVES(INVALID_DEVICE, cudaMemcpy3DPeer(&peer));
	GIVES(INVALID_DEVICE, cudaMemcpy3DPeerAsync(&peer, NULL));
	TRY(cudaFree(ptr));
	TRY(cudaFree(source));
}

TEST(cudart, managed_memory)
{
	CUmem_range_attribute which[] = { CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
					  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION };
	int mostly = 9, last = 9;
	void *ptr = NULL, *data[] = { &mostly, &last };
	size_t sizes[] = { 4, 4 };
	CUstream stream = NULL;

	TRY(cudaStreamCreate(&stream));
	TRY(cudaMallocManaged(&ptr, MIB, 1));
#if CUDART_MAJOR == 11
#define AT(device) device
#define FLAGS
#else
#define AT(device) (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, device }
#define FLAGS      0,
#if CUDART_MAJOR == 12 /* which has both; below are the second ones */
	TRY(cudaMemAdvise(ptr, MIB, 1, 0));
	TRY(cudaMemAdvise(ptr, MIB, 2, 0));
	GIVES(INVALID_DEVICE, cudaMemAdvise(ptr, MIB, 3, 2));
	TRY(cudaMemPrefetchAsync(ptr, MIB, 0, stream));
	GIVES(INVALID_DEVICE, cudaMemPrefetchAsync(ptr, MIB, 2, stream));
#define cudaMemAdvise        cudaMemAdvise_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#endif
	GIVES(INVALID_VALUE, cudaMemPrefetchAsync(ptr, MIB, AT(1), 1, stream));
#endif
	TRY(cudaMemAdvise(ptr, MIB, 1, AT(0)));
	GIVES(INVALID_VALUE, cudaMemAdvise(ptr, MIB, 7, AT(0)));
	GIVES(INVALID_VALUE, cudaMemAdvise(NULL, MIB, 1, AT(0)));
	GIVES(INVALID_DEVICE, cudaMemAdvise(ptr, MIB, 3, AT(2)));
	TRY(cudaMemPrefetchAsync(ptr, MIB, AT(1), FLAGS stream));
	GIVES(INVALID_VALUE, cudaMemPrefetchAsync(ptr, MIB + 1, AT(1), FLAGS stream));
	GIVES(INVALID_DEVICE, cudaMemPrefetchAsync(ptr, MIB, AT(2), FLAGS stream));
	TRY(cudaMemRangeGetAttribute(&last, 4, which[1], ptr, MIB));
	EXPECT_EQ(1, last);
	GIVES(INVALID_VALUE, cudaMemRangeGetAttribute(NULL, 4, which[1], ptr, MIB));
	last = 9;
	TRY(cudaMemRangeGetAttributes(data, sizes, which, 2, ptr, MIB));
	EXPECT_EQ(1, mostly);
	EXPECT_EQ(1, last);
	GIVES(INVALID_VALUE, cudaMemRangeGetAttributes(data, sizes, which, 0, ptr, MIB));
	TRY(cudaStreamAttachMemAsync(stream, ptr, 0, 4));
	GIVES(INVALID_VALUE, cudaStreamAttachMemAsync(stream, ptr, 4096, 4));
	GIVES(INVALID_VALUE, cudaStreamAttachMemAsync(NULL, ptr, 0, 4));
	TRY(cudaFree(ptr));
	TRY(cudaStreamDestroy(stream));
	GIVES(HANDLE, cudaStreamAttachMemAsync(stream, ptr, 0, 4));
}

TEST(cudart, limits)
{
	size_t stack = 0, now = 0;

	TRY(cudaDeviceGetLimit(&stack, 0));
	TRY(cudaDeviceSetLimit(0, 2 * stack));
	TRY(cudaDeviceGetLimit(&now, 0));
	EXPECT_EQ(2 * stack, now);
	TRY(cudaDeviceSetLimit(0, stack));
	GIVES(INVALID_VALUE, cudaDeviceGetLimit(NULL, 0));
	GIVES(INVALID_VALUE, cudaDeviceGetLimit(&now, 99));
	GIVES(INVALID_VALUE, cudaDeviceSetLimit(-1, 1));
	GIVES(215, cudaDeviceSetLimit(3, 1));
}

/* ---- streams and events ---- */

static void count(void *counter)
{
	(*(int *)counter)++;
}

static void count_callback(CUstream stream, CUresult status, void *counter)
{
	(void)stream, (void)status;
	count(counter);
}

TEST(cudart, streams_and_events)
{
	CUstream stream = NULL, other = NULL;
	CUevent start = NULL, end = NULL;
	unsigned int flags = 9;
	int priority = 9, calls = 0, mode = 2;
	float ms = -1;

	TRY(cudaStreamCreateWithFlags(&stream, 1));
	GIVES(INVALID_VALUE, cudaStreamCreateWithFlags(&other, 2));
	GIVES(INVALID_VALUE, cudaStreamCreate(NULL));
	TRY(cudaStreamGetFlags(stream, &flags));
	EXPECT_EQ(1, flags);
	TRY(cudaStreamCreateWithPriority(&other, 0, -2));
	TRY(cudaStreamGetPriority(other, &priority));
	EXPECT_EQ(-2, priority);
	GIVES(INVALID_VALUE, cudaStreamGetPriority(other, NULL));
	TRY(cudaStreamIsCapturing(stream, &mode));
	EXPECT_EQ(0, mode);
	TRY(cudaThreadExchangeStreamCaptureMode(&mode));
	GIVES(INVALID_VALUE, cudaThreadExchangeStreamCaptureMode(NULL));
#if CUDART_MAJOR != 11
	unsigned long long id[2] = { 0 };
	int device = -1;
	TRY(cudaStreamGetDevice(stream, &device));
	EXPECT_EQ(0, device);
	TRY(cudaStreamGetId(stream, &id[0]));
	TRY(cudaStreamGetId(other, &id[1]));
	EXPECT_NE(id[0], id[1]);
	TRY(cudaEventCreate(&start));
	TRY(cudaEventCreate(&end));
	TRY(cudaEventRecord(start, 0));
	TRY(cudaEventRecord(end, 0));
	TRY(cudaEventSynchronize(end));
	TRY(cudaEventElapsedTime_v2(&ms, start, end));
	TRY(cudaEventDestroy(start));
	TRY(cudaEventDestroy(end));
#endif
	TRY(cudaEventCreate(&start));
	TRY(cudaEventCreateWithFlags(&end, 1));
	GIVES(INVALID_VALUE, cudaEventCreateWithFlags(&end, 64));
	GIVES(INVALID_VALUE, cudaEventCreate(NULL));
	TRY(cudaEventRecord(start, stream));
	TRY(cudaLaunchHostFunc(stream, count, &calls));
	TRY(cudaStreamAddCallback(stream, count_callback, &calls, 0));
	GIVES(INVALID_VALUE, cudaLaunchHostFunc(stream, NULL, NULL));
	GIVES(INVALID_VALUE, cudaStreamAddCallback(stream, NULL, NULL, 0));
	TRY(cudaEventRecordWithFlags(end, stream, 0));
	TRY(cudaStreamWaitEvent(other, end, 0));
	TRY(cudaEventSynchronize(end));
	TRY(cudaStreamSynchronize(other));
	EXPECT_EQ(2, calls);
	TRY(cudaStreamQuery(other));
	TRY(cudaEventQuery(end));
	TRY(cudaEventElapsedTime(&ms, start, end));
	EXPECT_GE(ms, 0);
	GIVES(INVALID_VALUE, cudaEventElapsedTime(NULL, start, end));
	TRY(cudaEventDestroy(start));
	GIVES(HANDLE, cudaEventDestroy(start));
	GIVES(HANDLE, cudaEventRecord(start, stream));
	GIVES(HANDLE, cudaEventQuery(start));
	TRY(cudaEventDestroy(end));
	TRY(cudaStreamDestroy(stream));
	GIVES(HANDLE, cudaStreamSynchronize(stream));
	GIVES(HANDLE, cudaStreamQuery(stream));
	GIVES(HANDLE, cudaStreamDestroy(stream));
	TRY(cudaStreamDestroy(other));
}

/* By the limits of an H100: 64 warps, 32 blocks and 228 KiB, of which each block has 1 beside its
 * own. */
TEST(cudart, blocks_at_once)
{
	static const struct {
		int threads;
		size_t shared;
		int blocks;
	} rows[] = { { 128, 0, 16 },        { 1, 0, 32 },          { 33, 0, 32 },
		     { 1024, 0, 2 },        { 700, 0, 2 },         { 128, 48 << 10, 4 },
		     { 128, 227 << 10, 1 }, { 128, 228 << 10, 0 }, { 128, SIZE_MAX - 1023, 0 },
		     { 1025, 0, 0 } };
	int blocks = -1;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rows, rows[i].threads,
								  rows[i].shared));
		EXPECT_EQ(rows[i].blocks, blocks);
	}
	TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, rows, 256, 0, 1));
	EXPECT_EQ(8, blocks);
	GIVES(INVALID_VALUE, cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, rows, 1, 0));
	GIVES(INVALID_VALUE, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 1, 0));
	GIVES(INVALID_VALUE, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rows, 0, 0));
	GIVES(INVALID_VALUE,
	      cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, rows, 1, 0, 2));
}

#if CUDART_MAJOR != 11
TEST(cudart, copies_in_a_batch)
{
	CUmemcpyAttributes any = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY };
	char from[2][16] = { "first", "second" }, to[2][16] = { "", "" };
	void *ptr = NULL, *at[2];
	void *sources[] = { from[0], from[1] };
	size_t sizes[] = { 16, 16 }, first = 0, failed = 0;
	CUstream stream = NULL;

	(void)failed;
	TRY(cudaStreamCreate(&stream));
	TRY(cudaMalloc(&ptr, 32));
	at[0] = ptr;
	at[1] = (char *)ptr + 16;
#if CUDART_MAJOR == 12
	TRY(cudaMemcpyBatchAsync(at, sources, sizes, 2, &any, &first, 1, &failed, stream));
	EXPECT_EQ(SIZE_MAX, failed);
#else
	TRY(cudaMemcpyBatchAsync(at, sources, sizes, 2, &any, &first, 1, stream));
#endif
	TRY(cudaStreamSynchronize(stream));
	TRY(cudaMemcpy(to, ptr, 32, 4));
	EXPECT_STREQ("first", to[0]);
	EXPECT_STREQ("second", to[1]);
	TRY(cudaFree(ptr));
	TRY(cudaStreamDestroy(stream));
}
#endif

TEST(cudart, entry_points)
{
	void *function = NULL;
	CUdriverProcAddressQueryResult status;

#if CUDART_MAJOR == 11
	TRY(cudaGetDriverEntryPoint("cuMemCreate", &function, 0));
	(void)status;
#else
	TRY(cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, 0, &status));
	EXPECT_EQ(0, status);
	GIVES(INVALID_VALUE, cudaGetDriverEntryPointByVersion(NULL, &function, 12000, 0, &status));
#endif
	EXPECT_NOT_NULL(function);
#if CUDART_MAJOR != 11
	TRY(cudaGetDriverEntryPoint("cuNone", &function, 0, &status));
	EXPECT_EQ(1, status);
#endif
}

static void *fail_elsewhere(void *unused)
{
	(void)unused;
	TRY(cudaGetLastError());
	GIVES(KIND, cudaMemcpy(NULL, NULL, 1, 9));
	GIVES(KIND, cudaPeekAtLastError());
	return NULL;
}

TEST(cudart, the_last_error_is_the_threads)
{
	pthread_t thread;

	cudaGetLastError();
	GIVES(INVALID_DEVICE, cudaSetDevice(77));
	TRY(cudaMalloc(&(void *){ NULL }, 0)); /* a success leaves it */
	ASSERT_EQ(0, pthread_create(&thread, NULL, fail_elsewhere, NULL));
	pthread_join(thread, NULL);
	GIVES(INVALID_DEVICE, cudaPeekAtLastError());
	GIVES(INVALID_DEVICE, cudaGetLastError());
	TRY(cudaGetLastError());
	EXPECT_STREQ("cudaErrorMemoryAllocation", cudaGetErrorName(2));
	EXPECT_STREQ("cudaErrorInvalidMemcpyDirection", cudaGetErrorName(21));
	EXPECT_STREQ("cudaErrorPeerAccessNotEnabled", cudaGetErrorName(705));
	EXPECT_STREQ("cudaSuccess", cudaGetErrorName(0));
	EXPECT_STREQ("out of memory", cudaGetErrorString(2));
	EXPECT_STREQ("invalid copy direction for memcpy", cudaGetErrorString(21));
	EXPECT_STREQ("unrecognized error code", cudaGetErrorString(12345));
}

static void *use_device(void *ptr)
{
	TRY(cudaMalloc(ptr, MIB)); /* of device 0, whose context is made now */
	return NULL;
}

TEST(cudart, a_new_thread_has_the_first_device)
{
	struct cudaPointerAttributes at;
	pthread_t thread;
	void *ptr = NULL;

	TRY(cudaSetDevice(1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, use_device, &ptr));
	pthread_join(thread, NULL);
	TRY(cudaPointerGetAttributes(&at, ptr));
	EXPECT_EQ(0, at.device);
	TRY(cudaFree(ptr));
	TRY(cudaSetDevice(0));
}

/* ---- kernels, and what the log says ---- */

typedef int launch_function(const void *, void *, void *, void **, size_t, CUstream);
long __cudaPushCallConfiguration(void);
long __cudaPopCallConfiguration(void);
void **__cudaRegisterFatBinary(void);
long __cudaRegisterFatBinaryEnd(void);

AS_WRITTEN static void fail_for_the_log(void)
{
	launch_function *launch;
	void **handle = __cudaRegisterFatBinary();

	__cudaRegisterFatBinaryEnd();
	if (handle == NULL || __cudaPushCallConfiguration() != 0 ||
	    __cudaPopCallConfiguration() != 0)
		exit(1);
	*(void **)&launch = dlsym(RTLD_DEFAULT, "cudaLaunchKernel");
	for (int i = 0; i < 3; i++)
		if (launch(NULL, NULL, NULL, NULL, 0, NULL) != 801 || cudaGetLastError() != 801 ||
		    cudaFree((void *)0x10) != INVALID_VALUE)
			exit(1);
	cudaSetDevice(33);
	*(void **)&launch = dlsym(RTLD_DEFAULT, "cuGetExportTable");
	exit(launch(NULL, NULL, NULL, NULL, 0, NULL) == 801 ? 0 : 1);
}

static unsigned lines_with(const char *first, const char *second)
{
	char *text = strdup(harness_last_stderr()), *rest = text, *line;
	unsigned found = 0;

	while ((line = strsep(&rest, "\n")) != NULL)
		found += strstr(line, first) != NULL && strstr(line, second) != NULL;
	free(text);
	return found;
}

static void start_again(void *log)
{
	bool hides = *(char *)log == '0';

	setenv("CUDART_LOG", log, 1);
	setenv(hides ? "CUDA_VISIBLE_DEVICES" : "NPUSIM_LOG", hides ? "" : "warn", 1);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	execl("/proc/self/exe", "cuda-cudart",
	      "--gtest_filter=cudart.failures_are_told_once_a_site", NULL);
}

/* The program's calls stand there, and not those that libcudart makes of them. */
TEST(cudart, failures_are_told_once_a_site)
{
	const char *log = getenv("CUDART_LOG");

	if (log != NULL && *log == '0') /* no device is visible */
		exit(cudaGetDeviceCount(&(int){ 0 }) == 100 ? 0 : 1);
	if (log != NULL) /* started by the lines below */
		fail_for_the_log();
	EXPECT_EXIT(0, start_again, (char[]){ "0" });
	EXPECT_EXIT(0, start_again, (char[]){ "1" });
	EXPECT_EQ(1, lines_with("warn: cudaLaunchKernel is not modelled", "kernels"));
	EXPECT_EQ(1, lines_with("warn: cudaFree", "(1 cudaErrorInvalidValue, at cuda-cudart"));
	EXPECT_EQ(1, lines_with("warn: cudaSetDevice", "101 cudaErrorInvalidDevice"));
	EXPECT_EQ(1, lines_with("warn: cuGetExportTable is not modelled", "-cudart shared"));
	EXPECT_EQ(0, lines_with("CUDA_ERROR_", ""));
	EXPECT_EQ(1, lines_with("8 failures of 4 kinds", ""));
}
