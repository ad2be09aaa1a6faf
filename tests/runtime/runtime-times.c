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
