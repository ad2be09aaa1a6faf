/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls of the ACL take in simulated time, against public measurements of the SoC that the
 * program runs on (sim/bench/published.ini has their sources). NPUSIM_SOC says which: a process has
 * one.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "npusim/npusim.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

static aclrtStream stream;

SETUP(times)
{
	ASSERT_EQ(aclInit(NULL), 0);
	ASSERT_EQ(aclrtSetDevice(0), 0);
	ASSERT_EQ(aclrtCreateStream(&stream), 0);
}

TEARDOWN(times)
{
	EXPECT_EQ(aclFinalize(), 0);
}

static bool is_soc(const char *soc)
{
	return strcmp(aclrtGetSocName(), soc) == 0;
}

static void *device_memory(int device, size_t bytes)
{
	void *at = NULL;

	EXPECT_EQ(aclrtSetDevice(device), 0);
	EXPECT_EQ(aclrtMalloc(&at, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	return at;
}

/* Microseconds that the call takes; of a second one, as the first finds nothing in the TLBs. */
static double submit_us(void *dst, void *src, size_t bytes, aclrtMemcpyKind kind)
{
	uint64_t since = 0;

	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
		since = npusim_now_ps();
		EXPECT_EQ(aclrtMemcpyAsync(dst, bytes, src, bytes, kind, stream), 0);
	}
	return (double)(npusim_now_ps() - since) / 1e6;
}

/* Simulated microseconds of a call. */
#define US(call)                                          \
	({                                                \
		uint64_t since_ = npusim_now_ps();        \
		EXPECT_EQ((call), 0);                     \
		(double)(npusim_now_ps() - since_) / 1e6; \
	})

/* All that the calls make of driver calls is in it; of the second record, which gives back what the
 * first one took. */
TEST(times, events_of_a_910b2c)
{
	aclrtEventRecordedStatus status;
	aclrtPtrAttributes attributes;
	aclrtStream other;
	aclrtEvent event;
	void *device;

	if (!is_soc("Ascend910B2C"))
		SKIP("they were measured on an Ascend910B2C");
	device = device_memory(0, MIB);
	ASSERT_EQ(aclrtCreateStream(&other), 0);
	EXPECT_NEAR(US(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC)), 2.1, 0.01);
	ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
	ASSERT_EQ(aclrtSynchronizeEvent(event), 0);
	EXPECT_NEAR(US(aclrtRecordEvent(event, stream)), 5.4, 0.01);
	ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_NEAR(US(aclrtQueryEventStatus(event, &status)), 2.1, 0.01);
	EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	EXPECT_NEAR(US(aclrtSynchronizeEvent(event)), 0.2, 0.01);
	EXPECT_NEAR(US(aclrtSynchronizeStream(stream)), 0.5, 0.01);
	EXPECT_NEAR(US(aclrtSynchronizeDevice()), 4.6, 0.01);
	EXPECT_NEAR(US(aclrtPointerGetAttributes(device, &attributes)), 0.8, 0.01);
	EXPECT_NEAR(US(aclrtDestroyEvent(event)), 1.3, 0.01);
	EXPECT_EQ(aclrtFree(device), 0);
}

/* A wait for what is under way ends with it, and then the host is woken; one for what has happened
 * takes what a look does. */
TEST(times, waits_of_a_910b2c)
{
	const double wake = 7.6, query = 0.8;
	aclrtEvent start, end;
	aclrtStream other;
	void *device, *host;
	float ms;

	if (!is_soc("Ascend910B2C"))
		SKIP("they were measured on an Ascend910B2C");
	device = device_memory(0, 64 * MIB);
	ASSERT_EQ(aclrtMallocHost(&host, 64 * MIB), 0);
	ASSERT_EQ(aclrtCreateStream(&other), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&start, ACL_EVENT_TIME_LINE), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), 0);
	for (int how = 0; how < 3; how++) {
		double us, calls = how == 0 ? 0.5 : how == 1 ? 0.2 : 4.6, copied, sent;
		uint64_t began;

		ASSERT_EQ(aclrtRecordEvent(start, stream), 0);
		began = npusim_now_ps(); /* when `start` happens: the stream is idle */
		ASSERT_EQ(aclrtMemcpyAsync(device, 64 * MIB, host, 64 * MIB,
					   ACL_MEMCPY_HOST_TO_DEVICE, stream),
			  0);
		ASSERT_EQ(aclrtRecordEvent(end, stream), 0);
		if (how == 1) /* the other stream's wait has a cost of its own */
			EXPECT_NEAR(US(aclrtStreamWaitEvent(other, end)), 2.5, 0.01);
		sent = (double)(npusim_now_ps() - began) / 1e6;
		us = how == 0   ? US(aclrtSynchronizeStream(stream))
		     : how == 1 ? US(aclrtSynchronizeEvent(end))
				: US(aclrtSynchronizeDevice());
		ASSERT_EQ(aclrtEventElapsedTime(&ms, start, end), 0);
		copied = 1000 * (double)ms;
		EXPECT_GT(copied, 2600);
		EXPECT_NEAR(sent + us, copied + wake + query, calls + 0.01 + query * how);
		EXPECT_GE(sent + us, copied + wake - 0.01);
	}
	ASSERT_EQ(aclrtMemcpyAsync(device, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream), 0);
	for (int i = 0; i < 100; i++) /* meanwhile it is done */
		EXPECT_EQ(aclrtRecordEvent(start, other), 0);
	EXPECT_LT(US(aclrtSynchronizeStream(stream)), wake);
	EXPECT_EQ(aclrtFree(device), 0);
	EXPECT_EQ(aclrtFreeHost(host), 0);
}

/* Streams that are done soon after each other, in whatever order, wake the host once. */
TEST(times, synchronizing_a_device_wakes_once)
{
	const double wake = 7.6, query = 0.8;
	aclrtEvent start, end;
	aclrtStream streams[3];
	void *device, *host;
	uint64_t began;
	float ms;

	if (!is_soc("Ascend910B2C"))
		SKIP("one SoC is enough");
	device = device_memory(0, 4 * MIB);
	ASSERT_EQ(aclrtMallocHost(&host, 4 * MIB), 0);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(aclrtCreateStream(&streams[i]), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&start, ACL_EVENT_TIME_LINE), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE), 0);
	EXPECT_EQ(aclrtSynchronizeDevice(), 0);
	for (int down = 0; down < 2; down++) { /* the last one made is looked at first */
		ASSERT_EQ(aclrtRecordEvent(start, stream), 0);
		began = npusim_now_ps();
		for (int i = 0; i < 3; i++) { /* one engine has them all */
			size_t bytes = i == 0 ? 4 * MIB : 4096;

			ASSERT_EQ(aclrtMemcpyAsync(device, bytes, host, bytes,
						   ACL_MEMCPY_HOST_TO_DEVICE,
						   streams[down ? 2 - i : i]),
				  0);
		}
		ASSERT_EQ(aclrtRecordEvent(end, streams[down ? 0 : 2]), 0);
		EXPECT_EQ(aclrtSynchronizeDevice(), 0);
		began = npusim_now_ps() - began;
		ASSERT_EQ(aclrtEventElapsedTime(&ms, start, end), 0);
		EXPECT_NEAR((double)began / 1e6, 1000 * (double)ms + wake + query * (down ? 1 : 4),
			    0.01);
	}
	EXPECT_EQ(aclrtFree(device), 0);
	EXPECT_EQ(aclrtFreeHost(host), 0);
}

/* Calls that are refused take no time. */
TEST(times, refused_calls_take_none)
{
	aclrtEvent event, bad = &event;
	aclrtEventRecordedStatus recorded;
	aclrtEventWaitStatus waited;
	aclrtEventStatus status;
	aclrtStreamStatus idle;
	uint64_t since;

	ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE), 0);
	since = npusim_now_ps();
	EXPECT_NE(aclrtCreateEventWithFlag(&bad, 0x70000), 0);
	EXPECT_NE(aclrtCreateEventExWithFlag(&bad, 0), 0);
	EXPECT_NE(aclrtDestroyEvent(bad), 0);
	EXPECT_NE(aclrtRecordEvent(bad, stream), 0);
	EXPECT_NE(aclrtRecordEvent(event, bad), 0);
	EXPECT_NE(aclrtRecordEventWithFlag(event, stream, 7), 0);
	EXPECT_NE(aclrtQueryEvent(event, &status), 0);
	EXPECT_NE(aclrtQueryEventStatus(bad, &recorded), 0);
	EXPECT_NE(aclrtQueryEventStatus(event, NULL), 0);
	EXPECT_NE(aclrtQueryEventWaitStatus(event, &waited), 0);
	EXPECT_NE(aclrtSynchronizeEvent(bad), 0);
	EXPECT_NE(aclrtSynchronizeEventWithTimeout(event, 0), 0);
	EXPECT_NE(aclrtStreamWaitEvent(stream, bad), 0);
	EXPECT_NE(aclrtStreamWaitEvent(stream, event), 0);
	EXPECT_NE(aclrtStreamWaitEventWithFlag(stream, event, 0, 7), 0);
	EXPECT_NE(aclrtStreamQuery(bad, &idle), 0);
	EXPECT_NE(aclrtSynchronizeStream(bad), 0);
	EXPECT_EQ(npusim_now_ps(), since);
}

TEST(times, small_allocations_of_a_910b2c)
{
	void *first, *second, *host, *some[3];
	double us;

	if (!is_soc("Ascend910B2C"))
		SKIP("one SoC is enough");
	ASSERT_EQ(aclrtMallocHost(&host, MIB), 0);
	us = US(aclrtMalloc(&first, 2560, ACL_MEM_MALLOC_HUGE_FIRST));
	EXPECT_NEAR(us, 87, 1); /* a frame of 2 MiB is made */
	us = US(aclrtMalloc(&second, 2560, ACL_MEM_MALLOC_HUGE_FIRST)) +
	     US(aclrtMemcpy(second, 2560, host, 2560, ACL_MEMCPY_HOST_TO_DEVICE));
	EXPECT_NEAR(us, 17, 1.7);
	EXPECT_EQ(aclrtFree(first), 0);
	EXPECT_EQ(aclrtFree(second), 0);
	us = US(aclrtMalloc(&first, 2560, ACL_MEM_MALLOC_HUGE_FIRST));
	EXPECT_NEAR(us, 87, 1); /* with the last page of it a frame goes */
	EXPECT_EQ(aclrtFree(first), 0);
	for (int i = 0; i < 3; i++) { /* of 193 pages; the third needs another frame */
		us = US(aclrtMalloc(&some[i], 768 << 10, ACL_MEM_MALLOC_NORMAL_ONLY));
		EXPECT_NEAR(us, i == 1 ? 7.2 + 192 * 2 : 471, 0.01);
	}
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(aclrtFree(some[i]), 0);
	EXPECT_EQ(aclrtFreeHost(host), 0);
}

TEST(times, calls_of_a_910b2c)
{
	void *device, *host;
	uint64_t since;

	if (!is_soc("Ascend910B2C"))
		SKIP("they were measured on an Ascend910B2C");
	device = device_memory(0, MIB);
	ASSERT_EQ(aclrtMallocHost(&host, MIB), 0);
	EXPECT_NEAR(submit_us(device, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), 2.4, 0.24);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	since = npusim_now_ps();
	EXPECT_EQ(aclrtMemcpy(device, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), 0);
	EXPECT_NEAR((double)(npusim_now_ps() - since) / 1e6, 9.8, 0.98);
	EXPECT_EQ(aclrtFree(device), 0);
	EXPECT_EQ(aclrtFreeHost(host), 0);
}

/* 32 KiB, until the host sees them; of a second one, as above. */
static double lone_copy_us(void *dst, void *src)
{
	uint64_t since = 0;

	for (int i = 0; i < 2; i++) {
		since = npusim_now_ps();
		EXPECT_EQ(aclrtMemcpyAsync(dst, 32 << 10, src, 32 << 10,
					   ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
			  0);
		EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	}
	return (double)(npusim_now_ps() - since) / 1e6;
}

TEST(times, calls_of_a_910c)
{
	void *near, *die, *far;

	if (!is_soc("Ascend910_9391"))
		SKIP("they were measured on an Ascend910_9391");
	near = device_memory(0, MIB);
	die = device_memory(1, MIB);
	far = device_memory(2, MIB);
	ASSERT_EQ(aclrtDeviceEnablePeerAccess(1, 0), 0);
	ASSERT_EQ(aclrtDeviceEnablePeerAccess(2, 0), 0);
	EXPECT_NEAR(submit_us(far, near, 32 << 10, ACL_MEMCPY_DEVICE_TO_DEVICE), 3.4, 0.34);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_NEAR(lone_copy_us(die, near), 12.5, 1.25);
	EXPECT_NEAR(lone_copy_us(far, near), 15.5, 1.55);
	EXPECT_EQ(aclrtFree(near), 0);
	EXPECT_EQ(aclrtFree(die), 0);
	EXPECT_EQ(aclrtFree(far), 0);
}

#define QUEUE      64
#define QUEUE_COPY ((size_t)16 << 10)

/* Microseconds of the copies of a stream, all of which are sent before the first may begin; with an
 * event between two of them each begins when the one before has ended. */
static double queue_us(char *dst, char *src, bool events)
{
	aclrtStream gate;
	aclrtEvent go, begin, between, end;
	float ms;

	EXPECT_EQ(aclrtCreateStream(&gate), 0);
	EXPECT_EQ(aclrtCreateEventWithFlag(&go, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&begin, ACL_EVENT_TIME_LINE), 0);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&between, ACL_EVENT_TIME_LINE), 0);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(stream, go), 0);
	EXPECT_EQ(aclrtRecordEvent(begin, stream), 0);
	for (size_t i = 0; i < QUEUE; i++) {
		EXPECT_EQ(aclrtMemcpyAsync(dst + i * QUEUE_COPY, QUEUE_COPY, src + i * QUEUE_COPY,
					   QUEUE_COPY, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
			  0);
		if (events)
			EXPECT_EQ(aclrtRecordEvent(between, stream), 0);
	}
	EXPECT_EQ(aclrtRecordEvent(end, stream), 0);
	EXPECT_EQ(aclrtRecordEvent(go, gate), 0);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	EXPECT_EQ(aclrtEventElapsedTime(&ms, begin, end), 0);
	EXPECT_EQ(aclrtDestroyStream(gate), 0);
	return 1000 * (double)ms;
}

TEST(times, a_queue_of_small_copies_of_a_910c)
{
	const double flight = 1.2 + 0.145; /* peer_ps, hit_ps */
	char *near, *far, got[QUEUE_COPY];
	double queued, apart;

	if (!is_soc("Ascend910_9391"))
		SKIP("they were measured on an Ascend910_9391");
	near = device_memory(0, MIB);
	far = device_memory(2, MIB);
	ASSERT_EQ(aclrtDeviceEnablePeerAccess(2, 0), 0);
	for (size_t i = 0; i < QUEUE; i++)
		EXPECT_EQ(aclrtMemset(near + i * QUEUE_COPY, QUEUE_COPY, (int)i, QUEUE_COPY), 0);
	(void)queue_us(far, near, false); /* TLBs */
	queued = queue_us(far, near, false);
	apart = queue_us(far, near, true);
	EXPECT_NEAR(QUEUE * (double)QUEUE_COPY / queued / 1000, 18.0, 1.8);
	EXPECT_NEAR(apart - queued, (QUEUE - 1) * flight, 1);
	for (size_t i = 0; i < QUEUE; i++) {
		EXPECT_EQ(aclrtMemcpy(got, QUEUE_COPY, far + i * QUEUE_COPY, QUEUE_COPY,
				      ACL_MEMCPY_DEVICE_TO_HOST),
			  0);
		EXPECT_EQ(got[0], (char)i);
		EXPECT_EQ(got[QUEUE_COPY - 1], (char)i);
	}
	EXPECT_EQ(aclrtFree(near), 0);
	EXPECT_EQ(aclrtFree(far), 0);
}

static double copy_gb_s(void *dst, void *src, aclrtMemcpyKind kind)
{
	size_t bytes = 256 * MIB;
	uint64_t since;

	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	since = npusim_now_ps();
	EXPECT_EQ(aclrtMemcpyAsync(dst, bytes, src, bytes, kind, stream), 0);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
	return (double)bytes * 1000 / (double)(npusim_now_ps() - since);
}

/* Host memory as HIXL's FabricMem has it: created, exported, and imported by device 0. */
static void *imported_host_memory(size_t bytes)
{
	const aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
					    .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
					    .memAttr = ACL_DDR_MEM_HUGE,
					    .location = { .type = ACL_MEM_LOCATION_TYPE_HOST } };
	aclrtDrvMemHandle handle, imported;
	aclrtPtrAttributes attributes;
	uint64_t share;
	void *at = NULL;

	EXPECT_EQ(aclrtMallocPhysical(&handle, bytes, &prop, 0), 0);
	EXPECT_EQ(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &share), 0);
	EXPECT_EQ(aclrtMemImportFromShareableHandle(share, 0, &imported), 0);
	EXPECT_EQ(aclrtReserveMemAddress(&at, bytes, 0, NULL, 1), 0);
	EXPECT_EQ(aclrtMapMem(at, bytes, 0, imported, 0), 0);
	EXPECT_EQ(aclrtPointerGetAttributes(at, &attributes), 0);
	EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	return at;
}

TEST(times, pinned_and_imported_host_memory_of_a_910c)
{
	void *device, *pinned, *imported;

	if (!is_soc("Ascend910_9391"))
		SKIP("they were measured on an Ascend910_9391");
	device = device_memory(0, 256 * MIB);
	ASSERT_EQ(aclrtMallocHost(&pinned, 256 * MIB), 0);
	imported = imported_host_memory(256 * MIB);
	EXPECT_NEAR(copy_gb_s(device, pinned, ACL_MEMCPY_HOST_TO_DEVICE), 56.0, 5.6);
	EXPECT_NEAR(copy_gb_s(device, imported, ACL_MEMCPY_DEVICE_TO_DEVICE), 101.7, 10.1);
	EXPECT_NEAR(copy_gb_s(imported, device, ACL_MEMCPY_DEVICE_TO_DEVICE), 54.2, 5.4);
	*(char *)pinned = 42; /* and the bytes arrive */
	EXPECT_EQ(aclrtMemcpy(device, 1, pinned, 1, ACL_MEMCPY_HOST_TO_DEVICE), 0);
	copy_gb_s(imported, device, ACL_MEMCPY_DEVICE_TO_DEVICE);
	*(char *)pinned = 0;
	EXPECT_EQ(aclrtMemcpy(pinned, 1, imported, 1, ACL_MEMCPY_DEFAULT), 0);
	EXPECT_EQ(*(char *)pinned, 42);
	EXPECT_EQ(aclrtFree(device), 0);
	EXPECT_EQ(aclrtFreeHost(pinned), 0);
}
