/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libruntime.so beside the ACL, on the model: what they answer, and that they work
 * on the ACL's devices, streams and memory.
 */
#include "runtime/rt.h"

#include <dlfcn.h>
#include <string.h>

#include "acl/acl.h"
#include "harness/test.h"

SETUP(rt)
{
	ASSERT_EQ(aclInit(NULL), 0);
	ASSERT_EQ(aclrtSetDevice(0), 0);
}
TEARDOWN(rt)
{
	EXPECT_EQ(aclrtResetDevice(0), 0);
	EXPECT_EQ(aclFinalize(), 0);
}

/* memfabric looks rt names up in libascendcl.so, others in libruntime.so. */
TEST(rt, is_found_in_either_library_once)
{
	void *runtime = dlopen("libruntime.so", RTLD_NOW),
	     *acl = dlopen("libascendcl.so", RTLD_NOW);

	ASSERT_NE(runtime, NULL);
	EXPECT_EQ(dlsym(runtime, "rtStreamGetSqid"), dlsym(acl, "rtStreamGetSqid"));
	EXPECT_NE(dlsym(acl, "rtStreamGetSqid"), NULL);
	EXPECT_EQ(dlsym(runtime, "aclrtMalloc"), dlsym(acl, "aclrtMalloc"));
}

TEST(rt, tells_queues_of_streams)
{
	aclrtStream streams[2];
	uint32_t sq[2] = { 99, 99 }, cq[2], logic[2];

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(aclrtCreateStream(&streams[i]), 0);
		EXPECT_EQ(rtStreamGetSqid(streams[i], &sq[i]), 0);
		EXPECT_EQ(rtStreamGetCqid(streams[i], &cq[i], &logic[i]), 0);
	}
	EXPECT_NE(sq[0], sq[1]);
	EXPECT_NE(logic[0], logic[1]);
	EXPECT_EQ(rtStreamGetSqid(streams[0], NULL), 107000);
	EXPECT_EQ(rtStreamGetCqid(streams[0], &cq[0], NULL), 107000);
	EXPECT_EQ(aclrtDestroyStream(streams[0]), 0);
	EXPECT_NE(rtStreamGetSqid(streams[0], &sq[0]), 0);
	EXPECT_EQ(aclrtDestroyStream(streams[1]), 0);
}

TEST(rt, needs_a_context)
{
	char name[65] = "name";
	uint32_t sq;
	void *memory = NULL;

	EXPECT_EQ(aclrtResetDevice(0), 0);
	EXPECT_EQ(rtStreamGetSqid(NULL, &sq), 107002);
	EXPECT_EQ(rtIpcSetMemoryName(name, 1, name, 65), 107002);
	EXPECT_EQ(rtIpcOpenMemory(&memory, name), 107002);
	EXPECT_EQ(rtIpcCloseMemory(name), 107002);
	EXPECT_EQ(rtIpcDestroyMemoryName(name), 107002);
	EXPECT_EQ(aclrtSetDevice(0), 0);
}

TEST(rt, tells_of_devices)
{
	uint32_t pid = 0, phy = 9;
	int32_t acl_pid = 0, logic = 9;
	int64_t value = -1;

	EXPECT_EQ(rtDeviceGetBareTgid(&pid), 0);
	EXPECT_EQ(aclrtDeviceGetBareTgid(&acl_pid), 0);
	EXPECT_EQ((int32_t)pid, acl_pid);
	EXPECT_EQ(rtDeviceGetBareTgid(NULL), 107000);
	EXPECT_EQ(rtGetLogicDevIdByUserDevId(1, &logic), 0);
	EXPECT_EQ(logic, 1);
	EXPECT_EQ(rtGetLogicDevIdByUserDevId(1, NULL), 107000);
	EXPECT_EQ(rtGetDevicePhyIdByIndex(2, &phy), 0);
	EXPECT_EQ(phy, 2);
	EXPECT_EQ(rtGetDevicePhyIdByIndex(2, NULL), 107000);
	EXPECT_EQ(rtGetDeviceInfo(1, 0, 18, &value), 0); /* the system's physical chip */
	EXPECT_GE(value, 0);
	EXPECT_EQ(rtGetDeviceInfo(1, 0, 18, NULL), 107000);
	EXPECT_EQ(rtGetDeviceInfo(1, 8, 3, &value), 107000); /* the host's AICPU */
	EXPECT_EQ(rtGetDeviceInfo(99, 0, 18, &value), 107000);
	EXPECT_EQ(rtGetDeviceInfo(1, 0, 12345, &value), 207000);
	EXPECT_EQ(rtEnableP2P(0, 1, 0), 0);
	EXPECT_EQ(rtDisableP2P(0, 1), 0);
	EXPECT_EQ(rtEnableP2P(64, 1, 0), 107000);
	EXPECT_EQ(rtDisableP2P(0, 64), 107000);
}

TEST(rt, has_no_addresses_of_resources)
{
	uint64_t offset, address;
	uint32_t length;
	rtDevResInfo resource = { 0 };
	rtDevResAddrInfo where = { &address, &length };

	EXPECT_EQ(rtNotifyGetAddrOffset(&resource, &offset), 107017);
	EXPECT_EQ(rtNotifyGetAddrOffset(NULL, &offset), 107000);
	EXPECT_EQ(rtGetDevResAddress(&resource, &where), 207000);
	EXPECT_EQ(rtReleaseDevResAddress(&resource), 207000);
}

TEST(rt, shares_memory_by_name)
{
	char name[65], sent[] = "shared", got[sizeof(sent)] = "";
	int32_t pid = 0;
	void *memory, *opened = NULL;

	ASSERT_EQ(aclrtMalloc(&memory, 4u << 20, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	ASSERT_EQ(aclrtMemcpy(memory, sizeof(sent), sent, sizeof(sent), ACL_MEMCPY_HOST_TO_DEVICE),
		  0);
	EXPECT_EQ(rtIpcSetMemoryName(NULL, 4u << 20, name, 65), 107000);
	EXPECT_EQ(rtIpcSetMemoryName(memory, 0, name, 65), 107000);
	EXPECT_EQ(rtIpcSetMemoryName(memory, 4u << 20, name, 0), 107000);
	ASSERT_EQ(rtIpcSetMemoryName(memory, 4u << 20, name, 65), 0);
	ASSERT_EQ(aclrtDeviceGetBareTgid(&pid), 0);
	EXPECT_EQ(rtSetIpcMemPid(name, &pid, 0), 107000);
	EXPECT_EQ(rtSetIpcMemPid(name, &pid, 1), 0);
	EXPECT_EQ(rtSetIpcMemorySuperPodPid(name, 1, &pid, 1), 207000);
	EXPECT_EQ(rtSetIpcMemorySuperPodPid(name, 1, NULL, 1), 107000);
	ASSERT_EQ(rtIpcOpenMemory(&opened, name), 0);
	EXPECT_EQ(rtIpcOpenMemory(NULL, name), 107000);
	EXPECT_EQ(aclrtMemcpy(got, sizeof(got), opened, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST), 0);
	EXPECT_EQ(strcmp(got, sent), 0);
	EXPECT_EQ(rtIpcCloseMemory(opened), 0);
	EXPECT_NE(rtIpcCloseMemory(opened), 0);
	EXPECT_EQ(rtIpcDestroyMemoryName(name), 0);
	EXPECT_NE(rtIpcDestroyMemoryName(name), 0);
	EXPECT_EQ(aclrtFree(memory), 0);
}

/* The direction is the addresses'. */
TEST(rt, copies_without_a_direction)
{
	char sent[] = "there", got[sizeof(sent)] = "";
	void *memory;

	ASSERT_EQ(aclrtMalloc(&memory, sizeof(sent), ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(rtMemcpyAsyncWithoutCheckKind(memory, sizeof(sent), sent, sizeof(sent),
						RT_MEMCPY_DEVICE_TO_HOST, NULL),
		  0);
	EXPECT_EQ(rtMemcpyAsyncWithoutCheckKind(got, sizeof(got), memory, sizeof(got),
						RT_MEMCPY_HOST_TO_HOST, NULL),
		  0);
	EXPECT_EQ(aclrtSynchronizeStream(NULL), 0);
	EXPECT_EQ(strcmp(got, sent), 0);
	EXPECT_EQ(rtMemcpyAsyncWithoutCheckKind(NULL, 0, NULL, 0, RT_MEMCPY_HOST_TO_HOST, NULL), 0);
	EXPECT_NE(rtMemcpyAsyncWithoutCheckKind(got, 1, memory, 2, RT_MEMCPY_HOST_TO_HOST, NULL),
		  0);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "rtMemcpyAsyncWithoutCheckKind: count is 2, ");
	EXPECT_EQ(aclrtFree(memory), 0);
}
