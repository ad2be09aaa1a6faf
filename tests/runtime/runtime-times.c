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

TEST(times, calls_of_a_910c)
{
	void *near, *far;

	if (!is_soc("Ascend910_9391"))
		SKIP("they were measured on an Ascend910_9391");
	near = device_memory(0, MIB);
	far = device_memory(2, MIB);
	ASSERT_EQ(aclrtDeviceEnablePeerAccess(2, 0), 0);
	EXPECT_NEAR(submit_us(far, near, 32 << 10, ACL_MEMCPY_DEVICE_TO_DEVICE), 3.4, 0.34);
	EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
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
