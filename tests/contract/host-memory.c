/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that is registered, caches, and questions about memory, through libascendcl.so.
 */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define OK   ACL_SUCCESS
#define PAGE 4096u

SETUP(host_memory)
{
	ASSERT_EQ(aclrtSetDevice(0), OK);
}

TEARDOWN(host_memory)
{
	EXPECT_EQ(aclrtResetDevice(0), OK);
}

static aclrtMemLocationType place_of(const void *ptr)
{
	aclrtPtrAttributes attributes;

	EXPECT_EQ(aclrtPointerGetAttributes(ptr, &attributes), OK);
	return attributes.location.type;
}

TEST(host_memory, registered_memory_counts_as_page_locked)
{
	uint8_t *p = aligned_alloc(PAGE, 4 * PAGE);

	EXPECT_EQ(place_of(p), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	ASSERT_EQ(aclrtHostRegisterV2(p, 4 * PAGE, ACL_HOST_REG_PINNED), OK);
	EXPECT_EQ(place_of(p), ACL_MEM_LOCATION_TYPE_HOST);
	EXPECT_EQ(place_of(p + 4 * PAGE - 1), ACL_MEM_LOCATION_TYPE_HOST);
	EXPECT_EQ(aclrtHostRegisterV2(p + PAGE, PAGE, ACL_HOST_REG_PINNED),
		  ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "aclrtHostRegisterV2");
	EXPECT_EQ(aclrtHostUnregister(p + PAGE), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	EXPECT_EQ(aclrtHostUnregister(p), OK);
	EXPECT_EQ(place_of(p), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	EXPECT_EQ(aclrtHostUnregister(p), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(p);
}

TEST(host_memory, mapped_memory_has_an_address_for_the_device)
{
	uint8_t *p = aligned_alloc(PAGE, 4 * PAGE);
	void *va = NULL, *inside = NULL;

	ASSERT_EQ(aclrtHostRegister(p, 4 * PAGE, ACL_HOST_REGISTER_MAPPED, &va), OK);
	EXPECT_NOT_NULL(va);
	EXPECT_EQ(aclrtHostGetDevicePointer(p + 5000, &inside, 0), OK);
	EXPECT_EQ(inside, (void *)((char *)va + 5000));
	EXPECT_EQ(aclrtHostGetDevicePointer(p, &inside, 1), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtHostUnregister(p), OK);
	EXPECT_EQ(aclrtHostGetDevicePointer(p, &inside, 0), ACL_ERROR_RT_PARAM_INVALID);
	ASSERT_EQ(aclrtHostRegisterV2(p, 4 * PAGE, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED), OK);
	EXPECT_EQ(aclrtHostGetDevicePointer(p, &inside, 0), OK);
	EXPECT_EQ(aclrtHostUnregister(p), OK);
	free(p);
}

TEST(host_memory, register_is_checked)
{
	uint8_t *p = aligned_alloc(PAGE, PAGE);
	void *va = NULL;

	EXPECT_EQ(aclrtHostRegister(p, PAGE, (aclrtHostRegisterType)99, &va),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	EXPECT_EQ(aclrtHostRegisterV2(NULL, PAGE, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtHostRegisterV2(p, 0, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtHostRegisterV2(p, PAGE, 0), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtHostRegisterV2(p, PAGE, 1), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtHostRegisterV2(p, UINT64_MAX, ACL_HOST_REG_PINNED),
		  ACL_ERROR_RT_PARAM_INVALID);
	free(p);
}

TEST(host_memory, queued_copies_of_registered_memory)
{
	const size_t size = 64 * PAGE;
	uint8_t *p = aligned_alloc(PAGE, size), *q = aligned_alloc(PAGE, size);
	void *a = NULL;

	memset(p, 6, size);
	memset(q, 0, size);
	ASSERT_EQ(aclrtMalloc(&a, size, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	ASSERT_EQ(aclrtHostRegisterV2(p, size, ACL_HOST_REG_PINNED), OK);
	ASSERT_EQ(aclrtHostRegisterV2(q, size, ACL_HOST_REG_PINNED), OK);
	ASSERT_EQ(aclrtMemcpyAsync(a, size, p, size, ACL_MEMCPY_HOST_TO_DEVICE, NULL), OK);
	ASSERT_EQ(aclrtMemcpyAsync(q, size, a, size, ACL_MEMCPY_DEVICE_TO_HOST, NULL), OK);
	ASSERT_EQ(aclrtSynchronizeStream(NULL), OK);
	EXPECT_MEMEQ(p, q, size);
	EXPECT_EQ(aclrtHostUnregister(p), OK);
	EXPECT_EQ(aclrtHostUnregister(q), OK);
	EXPECT_EQ(aclrtFree(a), OK);
	free(p);
	free(q);
}

TEST(host_memory, capabilities)
{
	aclrtHostMemMapCapability capability = (aclrtHostMemMapCapability)9;

	EXPECT_EQ(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_SDMA, &capability), OK);
	EXPECT_LE((int)capability, 1);
	EXPECT_EQ(aclrtHostMemMapCapabilities(0, (aclrtHacType)10, &capability),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtHostMemMapCapabilities(99, ACL_RT_HAC_TYPE_SDMA, &capability),
		  ACL_ERROR_RT_INVALID_DEVICEID);
	EXPECT_EQ(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_SDMA, NULL),
		  ACL_ERROR_INVALID_PARAM);
}

TEST(host_memory, configured_allocations)
{
	aclrtMallocAttribute attrs[2] = {
		{ .attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 3 },
		{ .attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 0 }
	};
	aclrtMallocConfig cfg = { attrs, 2 }, none = { NULL, 1 };
	void *p = NULL;

	ASSERT_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg), OK);
	EXPECT_EQ(place_of(p), ACL_MEM_LOCATION_TYPE_DEVICE);
	EXPECT_EQ(aclrtFreeWithDevSync(p), OK);
	ASSERT_EQ(aclrtMallocForTaskScheduler(&p, 100, ACL_MEM_MALLOC_NORMAL_ONLY, NULL), OK);
	EXPECT_EQ(aclrtFree(p), OK);
	EXPECT_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &none),
		  ACL_ERROR_INVALID_PARAM);
	attrs[1].value.deviceId = 77;
	EXPECT_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg),
		  ACL_ERROR_RT_PARAM_INVALID);
	attrs[1].attr = (aclrtMallocAttrType)9;
	EXPECT_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtMallocHostWithCfg(&p, 100, &cfg), ACL_ERROR_RT_PARAM_INVALID);
	cfg.numAttrs = 1;
	ASSERT_EQ(aclrtMallocHostWithCfg(&p, 100, &cfg), OK);
	EXPECT_EQ(place_of(p), ACL_MEM_LOCATION_TYPE_HOST);
	EXPECT_EQ(aclrtFreeHostWithDevSync(p), OK);
}

/* torch_npu asks for one address on both sides, and takes what there is when told that there is
 * none. */
TEST(host_memory, one_address_on_both_sides)
{
	aclrtMallocAttribute attr = { .attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1 };
	aclrtMallocConfig cfg = { &attr, 1 };
	void *p = NULL, *seen = NULL;

	EXPECT_EQ(aclrtMallocHostWithCfg(&p, 4096, &cfg), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	EXPECT_TRUE(p == NULL);
	EXPECT_TRUE(strstr(aclGetRecentErrMsg(), "aclrtMallocHost") != NULL);
	attr.value.vaFlag = 0;
	ASSERT_EQ(aclrtMallocHostWithCfg(&p, 4096, &cfg), OK);
	ASSERT_EQ(aclrtHostRegister(p, 4096, ACL_HOST_REGISTER_MAPPED, &seen), OK);
	EXPECT_TRUE(seen != NULL);
	memset(p, 0x33, 4096);
	EXPECT_EQ(aclrtMemset(seen, 4096, 0x44, 4096), OK);
	EXPECT_EQ(((unsigned char *)p)[4095], 0x44);
	EXPECT_EQ(aclrtHostUnregister(p), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

TEST(host_memory, caches)
{
	void *a = NULL;
	int plain = 0;

	ASSERT_EQ(aclrtMalloc(&a, 4096, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	EXPECT_EQ(aclrtMemFlush(a, 4096), OK);
	EXPECT_EQ(aclrtMemInvalidate(a, 4096), OK);
	EXPECT_EQ(aclrtMemFlush(a, 0), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtCmoAsync(a, 4096, ACL_RT_CMO_TYPE_PREFETCH, NULL), OK);
	EXPECT_EQ(aclrtCmoAsync(a, 4096, ACL_RT_CMO_TYPE_FLUSH, NULL), OK);
	EXPECT_EQ(aclrtSynchronizeStream(NULL), OK);
	EXPECT_EQ(aclrtCmoAsync(a, 0, ACL_RT_CMO_TYPE_FLUSH, NULL), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtCmoAsync(NULL, 4, ACL_RT_CMO_TYPE_FLUSH, NULL), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtCmoAsync(a, 4096, (aclrtCmoType)4, NULL), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtCmoAsync(&plain, 4, ACL_RT_CMO_TYPE_FLUSH, NULL),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtFree(a), OK);
}

TEST(host_memory, kinds_of_addresses)
{
	uint32_t result = 7;
	void *a = NULL, *list[2];
	int plain = 0;

	ASSERT_EQ(aclrtMalloc(&a, 4096, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	list[0] = a;
	list[1] = (char *)a + 100;
	EXPECT_EQ(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 0), OK);
	EXPECT_EQ(result, 1u);
	list[1] = &plain;
	EXPECT_EQ(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 0), OK);
	EXPECT_EQ(result, 0u);
	EXPECT_EQ(aclrtCheckMemType(list, 0, ACL_RT_MEM_TYPE_DEV, &result, 0),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtCheckMemType(list, 1, 0x40, &result, 0), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, &result, 1),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtCheckMemType(NULL, 1, ACL_RT_MEM_TYPE_DEV, &result, 0),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtFree(a), OK);
}

TEST(host_memory, what_the_process_holds)
{
	aclrtMemUsageInfo usage[3];
	size_t count = 9;
	void *a = NULL;

	ASSERT_EQ(aclrtMalloc(&a, 64 << 20, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	ASSERT_EQ(aclrtGetMemUsageInfo(0, usage, 3, &count), OK);
	ASSERT_GE(count, 1u);
	EXPECT_GE(usage[0].curMemSize, UINT64_C(64) << 20);
	EXPECT_GE(usage[0].memPeakSize, usage[0].curMemSize);
	ASSERT_EQ(aclrtFree(a), OK);
	ASSERT_EQ(aclrtGetMemUsageInfo(0, usage, 3, &count), OK);
	EXPECT_GE(usage[0].memPeakSize, UINT64_C(64) << 20);
	EXPECT_LT(usage[0].curMemSize, usage[0].memPeakSize);
	EXPECT_EQ(aclrtGetMemUsageInfo(0, usage, 0, &count), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(aclrtGetMemUsageInfo(-1, usage, 1, &count), ACL_ERROR_RT_INVALID_DEVICEID);
	EXPECT_EQ(aclrtGetMemUsageInfo(0, NULL, 1, &count), ACL_ERROR_INVALID_PARAM);
}

TEST(host_memory, errors_of_the_memory_itself)
{
	aclrtMemUceInfo info[2];
	size_t count = 9;

	memset(info, 0, sizeof(info));
	EXPECT_EQ(aclrtGetMemUceInfo(0, info, 2, &count), OK);
	EXPECT_EQ(count, 0u);
	EXPECT_EQ(aclrtGetMemUceInfo(99, info, 2, &count), ACL_ERROR_RT_INVALID_DEVICEID);
	EXPECT_EQ(aclrtGetMemUceInfo(0, NULL, 2, &count), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemUceRepair(0, info, 2), OK);
	EXPECT_EQ(aclrtMemUceRepair(0, info, 129), ACL_ERROR_INVALID_PARAM);
	info[1].reserved[13] = 1;
	EXPECT_EQ(aclrtMemUceRepair(0, info, 2), ACL_ERROR_INVALID_PARAM);
}

TEST(host_memory, several_grants_in_one_call)
{
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .id = 0,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtMemAccessDesc desc[2] = {
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE, .location = prop.location },
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
		  .location = { 0, ACL_MEM_LOCATION_TYPE_HOST } },
	};
	aclrtDrvMemHandle handle = NULL;
	volatile uint8_t *bytes;
	void *va = NULL;

	ASSERT_EQ(aclrtReserveMemAddress(&va, 2 << 20, 0, NULL, 1), OK);
	ASSERT_EQ(aclrtMallocPhysical(&handle, 2 << 20, &prop, 0), OK);
	ASSERT_EQ(aclrtMapMem(va, 2 << 20, 0, handle, 0), OK);
	ASSERT_EQ(aclrtMemset(va, 2 << 20, 5, 2 << 20), OK);
	ASSERT_EQ(aclrtMemSetAccess(va, 2 << 20, desc, 2), OK);
	bytes = va;
	EXPECT_EQ(bytes[1 << 20], 5);
	EXPECT_EQ(aclrtMemSetAccess(va, 2 << 20, desc, 5000), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtUnmapMem(va), OK);
	EXPECT_EQ(aclrtFreePhysical(handle), OK);
	EXPECT_EQ(aclrtReleaseMemAddress(va), OK);
}
