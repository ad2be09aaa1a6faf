/* SPDX-License-Identifier: Apache-2.0
 *
 * The ACL's face of start-up, devices, streams, events and callbacks, over the model.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "npusim/driver.h"
#include "npusim/npusim.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* ---- start-up ---- */

static aclError init_with(const char *text)
{
	char path[] = "/tmp/npusim-config-XXXXXX";
	int fd = mkstemp(path);
	aclError code;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	close(fd);
	code = aclInit(path);
	if (code == ACL_SUCCESS)
		aclFinalize();
	unlink(path);
	return code;
}

static const struct config_case {
	const char *label, *text;
	aclError code;
	const char *message;
} configs[] = {
	{ "object", "{\"dump\": {\"dump_path\": \"/tmp\", \"n\": [1, -2.5e3, true, null]}}\n", 0,
	  NULL },
	{ "empty_object", "{}", 0, NULL },
	{ "empty_file", "", 0, NULL },
	{ "blanks", " \n\t", 0, NULL },
	{ "escape", "{\"a\\u00e4\\n\": \"\\\"\"}", 0, NULL },
	{ "text", "hello", 100006, "line 1, column 1: a value is expected there" },
	{ "open", "{\"a\": 1", 100006, "',' or '}'" },
	{ "trailing", "{}\n x", 100006, "line 2, column 2: the end is expected there" },
	{ "comma", "{\"a\": 1,}", 100006, "a string" },
	{ "bad_escape", "{\"\\x\": 1}", 100006, "an escape" },
	{ "number", "[01]", 100006, "',' or ']'" },
	{ "line_in_string", "[\"a\n\"]", 100006, "the end of a string" },
};

TEST_EACH(init, config, configs, label)
{
	const struct config_case *c = param;

	EXPECT_EQ(init_with(c->text), c->code);
	if (c->message != NULL)
		EXPECT_CONTAINS(aclGetRecentErrMsg(), c->message);
}

TEST(init, config_that_is_not_there)
{
	EXPECT_EQ(aclInit("/nonexistent/acl.json"), 100003);
	EXPECT_CONTAINS(aclGetRecentErrMsg(),
			"aclInit: configPath=/nonexistent/acl.json cannot be read: No such file");
}

/* Memory of the host is told of whatever devices have; what a reset ends, no call gave back. */
static void use_after_many(void *before)
{
	void *host, *memory;

	EXPECT_EQ(aclrtMallocHost(&host, 5 << 20), 0);
	EXPECT_EQ(aclrtFreeHost(host), 0);
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(aclrtMalloc(&memory, 1000, ACL_MEM_MALLOC_HUGE_FIRST), 0);
		EXPECT_EQ(aclrtFree(memory), 0);
	}
	EXPECT_EQ(aclrtMalloc(&memory, 1000, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(memory, before);
	EXPECT_EQ(aclrtResetDeviceForce(0), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtFree(memory), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "; a device was reset since");
	EXPECT_EQ(aclrtFreeHost(host), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "was given back by aclrtFreeHost, ");
	EXPECT_EQ(aclrtMalloc(&memory, 1000, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtFree(memory), 0);
	EXPECT_EQ(aclrtFree(memory), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "was given back by aclrtFree, ");
}

/* Of an export, and of an import; whichever key was closed between. */
static void close_keys_again(void)
{
	char key[65], other[65];
	void *memory, *seen;

	EXPECT_EQ(aclrtMalloc(&memory, 2 << 20, ACL_MEM_MALLOC_HUGE_ONLY), 0);
	EXPECT_EQ(aclrtIpcMemGetExportKey(memory, 2 << 20, key, sizeof(key), 1), 0);
	EXPECT_EQ(aclrtIpcMemGetExportKey(memory, 2 << 20, other, sizeof(other), 1), 0);
	EXPECT_EQ(aclrtIpcMemImportByKey(&seen, key, 0), 0);
	EXPECT_EQ(aclrtIpcMemClose(key), 0);
	EXPECT_EQ(aclrtIpcMemClose(other), 0);
	EXPECT_EQ(aclrtIpcMemClose(key), 0);
	for (unsigned i = 0; i < 2; i++) {
		char told[256];

		snprintf(told, sizeof(told),
			 "this process has closed the key \"%s\" already, by aclrtIpcMemClose",
			 i ? other : key);
		EXPECT_EQ(aclrtIpcMemClose(i ? other : key), 507899);
		EXPECT_CONTAINS(aclGetRecentErrMsg(), told);
	}
	key[40] = key[40] == '0' ? '1' : '0';
	EXPECT_EQ(aclrtIpcMemClose(key), 507899);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "has no name \"00000");
	EXPECT_EQ(aclrtIpcMemClose(""), 507899);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "has no name \"\"");
	EXPECT_EQ(aclrtFree(memory), 0);
}

static void use_after_end(void *arg)
{
	void *memory, *va;

	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtMalloc(&memory, 1000, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtFree(memory), 0);
	EXPECT_EQ(aclrtFree(memory), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "was given back by aclrtFree, ");
	EXPECT_EQ(aclrtReserveMemAddress(&va, 4 << 20, 0, NULL, 0), 0);
	EXPECT_EQ(aclrtUnmapMem(va), 507899);
	EXPECT_NULL(strstr(aclGetRecentErrMsg(), "given back"));
	EXPECT_EQ(aclrtReleaseMemAddress(va), 0);
	EXPECT_EQ(aclrtReleaseMemAddress(va), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "was given back by aclrtReleaseMemAddress, ");
	close_keys_again();
	use_after_many(memory);
}

TEST(messages, tell_who_gave_memory_back)
{
	EXPECT_EXIT(0, use_after_end, NULL);
}

TEST(init, counts)
{
	uint64_t left = 9;

	EXPECT_EQ(aclInit(NULL), 0);
	EXPECT_EQ(aclInit(NULL), 100002);
	EXPECT_EQ(aclInit(""), 100002);
	EXPECT_EQ(aclFinalizeReference(&left), 0);
	EXPECT_EQ(left, 2);
	EXPECT_EQ(aclFinalizeReference(NULL), 0);
	EXPECT_EQ(aclFinalizeReference(&left), 0);
	EXPECT_EQ(left, 0);
	EXPECT_EQ(aclFinalizeReference(&left), 100037);
	EXPECT_EQ(aclFinalize(), 100037);
}

static char hook_text[64];
static int hook_calls;

static aclError on_init(const char *text, size_t length, void *user_data)
{
	snprintf(hook_text, sizeof(hook_text), "%.*s", (int)length, text);
	hook_calls += *(int *)user_data;
	return 0;
}

static aclError on_finalize(void *user_data)
{
	hook_calls += *(int *)user_data;
	return 0;
}

TEST(init, callbacks)
{
	int one = 1, ten = 10;

	hook_calls = 0;
	EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, NULL, &one), 100000);
	EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, on_init, &one), 0);
	EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, on_init, &one), 500000);
	EXPECT_EQ(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, on_finalize, &ten), 0);
	EXPECT_EQ(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, on_finalize, &ten), 0);
	EXPECT_EQ(init_with("{\"x\":1}"), 0);
	EXPECT_STREQ(hook_text, "{\"x\":1}");
	EXPECT_EQ(hook_calls, 21);
	EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, on_init), 500000);
	EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, on_init), 0);
	EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, on_finalize), 0);
	EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, on_finalize), 0);
	EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, on_finalize), 500000);
}

TEST(init, versions)
{
	int32_t major = 0, minor = 0, patch = -1, number = 0;
	char runtime[] = "runtime", compiler[] = "bisheng_compiler", other[] = "toolbox",
	     text[ACL_PKG_VERSION_MAX_SIZE];
	aclCANNPackageVersion version;

	EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), 0);
	EXPECT_EQ(major * 10000 + minor * 100 + patch, 11700);
	EXPECT_EQ(aclsysGetVersionStr(runtime, text), 0);
	EXPECT_STREQ(text, "9.0.0");
	EXPECT_EQ(aclsysGetVersionNum(compiler, &number), 0);
	EXPECT_EQ(number, 90000000);
	EXPECT_EQ(aclsysGetVersionStr(other, text), 100003);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "there is no package 'toolbox'");
	EXPECT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version), 0);
	EXPECT_STREQ(version.version, "9.0.0");
	EXPECT_STREQ(version.majorVersion, "9");
	EXPECT_EQ(aclsysGetCANNVersion((aclCANNPackageName)8, &version), 100000);
}

TEST(init, message_is_handed_out_once)
{
	EXPECT_EQ(aclrtGetDevice(NULL), 100000);
	EXPECT_STREQ(aclGetRecentErrMsg(),
		     "aclrtGetDevice: deviceId is NULL; it must point to something");
	EXPECT_NULL(aclGetRecentErrMsg());
}

TEST(init, last_error_is_the_runtimes)
{
	EXPECT_EQ(aclrtGetLastError((aclrtLastErrLevel)1), 100000);
	aclrtGetLastError(ACL_RT_THREAD_LEVEL);
	EXPECT_EQ(aclrtGetDevice(NULL), 100000);
	EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
	EXPECT_EQ(aclrtSetDevice(99), 107001);
	EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107001);
	EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107001);
	EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
}

/* ---- devices ---- */

static aclrtStream first, second;

static void open_device(void)
{
	ASSERT_EQ(aclrtSetDevice(0), 0);
	ASSERT_EQ(aclrtCreateStream(&first), 0);
	ASSERT_EQ(aclrtCreateStreamWithConfig(&second, 2, ACL_STREAM_FAST_LAUNCH), 0);
}

static void close_device(void)
{
	EXPECT_EQ(aclrtResetDeviceForce(0), 0);
	aclGetRecentErrMsg();
}

SETUP(device)
{
	open_device();
}

TEARDOWN(device)
{
	close_device();
}

SETUP(work)
{
	open_device();
}

TEARDOWN(work)
{
	close_device();
}

TEST(device, attributes)
{
	static const struct {
		aclrtDevAttr attr;
		int64_t least;
	} attrs[] = {
		{ ACL_DEV_ATTR_AICPU_CORE_NUM, 1 },
		{ ACL_DEV_ATTR_AICORE_CORE_NUM, 20 },
		{ ACL_DEV_ATTR_CUBE_CORE_NUM, 20 },
		{ ACL_DEV_ATTR_VECTOR_CORE_NUM, 40 },
		{ ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, 32 << 20 },
		{ ACL_DEV_ATTR_L2_CACHE_SIZE, 192 << 20 },
		{ ACL_DEV_ATTR_IS_VIRTUAL, 0 },
		{ ACL_DEV_ATTR_NPU_ARCH, 2201 },
		{ ACL_DEV_ATTR_HD_CONNECT_TYPE, 0 },
		{ ACL_DEV_ATTR_SUPER_POD_DEVICE_ID, 0 },
	};
	int64_t value;

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		NOTE("attribute %d", (int)attrs[i].attr);
		value = -1;
		EXPECT_EQ(aclrtGetDeviceInfo(0, attrs[i].attr, &value), 0);
		EXPECT_GE(value, attrs[i].least);
	}
	EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value), 207000);
	EXPECT_EQ(aclrtGetDeviceInfo(0, (aclrtDevAttr)7, &value), 107000);
}

TEST(device, uuids_tell_devices_apart)
{
	aclrtUuid one, same, other;

	EXPECT_EQ(aclrtDeviceGetUuid(0, &one), 0);
	EXPECT_EQ(aclrtDeviceGetUuid(0, &same), 0);
	EXPECT_EQ(aclrtDeviceGetUuid(1, &other), 0);
	EXPECT_MEMEQ(&one, &same, sizeof(one));
	EXPECT_NE(memcmp(&one, &other, sizeof(one)), 0);
	EXPECT_EQ(aclrtDeviceGetUuid(99, &one), 107001);
}

TEST(device, names_and_states)
{
	aclrtUtilizationInfo info = { 0 };
	aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
	aclrtRunMode mode = ACL_DEVICE;
	int32_t value = 9, least = 0, greatest = 9, active = 0;

	EXPECT_STREQ(aclrtGetSocName(), "Ascend910B1");
	EXPECT_EQ(aclrtGetDeviceUtilizationRate(0, &info), 0);
	EXPECT_EQ(info.cubeUtilization, 0);
	EXPECT_GE(info.memoryUtilization, 0);
	EXPECT_EQ(aclrtQueryDeviceStatus(0, &status), 0);
	EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
	EXPECT_EQ(aclrtGetRunMode(&mode), 0);
	EXPECT_EQ(mode, ACL_HOST);
	EXPECT_EQ(
		aclrtGetDeviceCapability(0, ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV, &value),
		0);
	EXPECT_EQ(value, ACL_DEV_FEATURE_NOT_SUPPORT);
	EXPECT_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), 0);
	EXPECT_EQ(least, 7);
	EXPECT_EQ(greatest, 0);
	EXPECT_EQ(aclrtGetPrimaryCtxState(0, NULL, &active), 0);
	EXPECT_EQ(active, 1);
	EXPECT_EQ(aclrtGetPrimaryCtxState(1, NULL, &active), 0);
	EXPECT_EQ(active, 0);
	EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR), 0);
	EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_RESERVED), 100000);
}

TEST(device, ids_without_a_mask_are_the_same)
{
	int32_t id = -1;

	EXPECT_EQ(aclrtGetLogicDevIdByUserDevId(1, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetUserDevIdByLogicDevId(1, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(1, &id), 0);
	EXPECT_EQ(aclrtGetLogicDevIdByPhyDevId(id, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetPhyDevIdByUserDevId(1, &id), 0);
	EXPECT_EQ(aclrtGetUserDevIdByPhyDevId(id, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(-1, &id), 107000);
	EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(99, &id), 107001);
	EXPECT_EQ(aclrtGetLogicDevIdByUserDevId(-1, &id), 107000);
	EXPECT_EQ(aclrtGetUserDevIdByLogicDevId(-1, &id), 107000);
	EXPECT_EQ(aclrtGetUserDevIdByPhyDevId(-1, &id), 107000);
}

TEST(device, peers)
{
	int32_t value = -1;
	uint64_t topology = 0;

	EXPECT_EQ(aclrtDeviceCanAccessPeer(&value, 0, 1), 0);
	EXPECT_EQ(value, 1);
	EXPECT_EQ(aclrtGetDevicesTopo(0, 1, &topology), 0);
	EXPECT_EQ(topology, ACL_RT_DEVS_TOPOLOGY_HCCS);
	EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &value), 0);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(aclrtSetDevice(1), 0);
	EXPECT_EQ(aclrtDeviceEnablePeerAccess(0, 0), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), 0);
	EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &value), 0);
	EXPECT_EQ(value, 1);
	EXPECT_EQ(aclrtDeviceDisablePeerAccess(1), 0);
	EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &value), 0);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(aclrtResetDeviceForce(1), 0);
}

TEST(device, statistics_and_time)
{
	struct npu_stats stats = { .size = sizeof(stats) };
	uint64_t before = npusim_now_ps(), soon[] = { 1, UINT64_MAX, (uintptr_t)&stats, 0, 0, 0 };
	void *small, *large;

	EXPECT_EQ(npusim_get_stats(0, NULL), 100000);
	EXPECT_EQ(npusim_get_stats(0, &stats), 0);
	EXPECT_GT(stats.hbm_bytes, 0);
	EXPECT_GT(stats.usable_bytes, 0);
	stats.size = 0;
	EXPECT_EQ(npusim_get_stats(0, &stats), 100000);
	EXPECT_GE(npusim_now_ps(), before);

	/* a hint changes nothing, whatever is there */
	ASSERT_EQ(aclrtMalloc(&small, 8, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
	ASSERT_EQ(aclrtMalloc(&large, 600 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	soon[3] = (uintptr_t)small;
	soon[4] = soon[3] + 4096;
	soon[5] = (uintptr_t)large + 300 * MIB;
	before = npusim_now_ps();
	npusim_freed_soon(soon, 6);
	npusim_freed_soon(NULL, 0);
	EXPECT_EQ(npusim_now_ps(), before);
	EXPECT_EQ(aclrtFree(large), 0);
	EXPECT_EQ(aclrtFree(small), 0);
	npusim_freed_soon(soon, 6);
}

TEST(device, physical_memory_behind_an_address)
{
	const aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
					    .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
					    .memAttr = ACL_HBM_MEM_HUGE,
					    .location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	uint64_t pa, again, bytes = 64 * MIB, none = 0;
	aclrtDrvMemHandle handle;
	void *va;

	ASSERT_EQ(aclrtReserveMemAddress(&va, 64 * MIB, 0, NULL, 1), 0);
	ASSERT_EQ(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0), 0);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va, &pa, &bytes), 507899);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "no memory of device 0 is mapped at");
	ASSERT_EQ(aclrtMapMem(va, 4 * MIB, 0, handle, 0), 0);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va, &pa, &bytes), 0);
	EXPECT_TRUE(bytes >= 2 * MIB && bytes <= 4 * MIB);
	EXPECT_EQ(pa % (2 * MIB), 0);
	/* the same memory elsewhere lies where it did */
	ASSERT_EQ(aclrtUnmapMem(va), 0);
	ASSERT_EQ(aclrtMapMem((char *)va + 32 * MIB, 4 * MIB, 0, handle, 0), 0);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va + 32 * MIB, &again, &bytes), 0);
	EXPECT_EQ(again, pa);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va, NULL, &bytes), 100000);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va, &pa, NULL), 100000);
	EXPECT_EQ(npusim_physical(0, (uintptr_t)va + 32 * MIB, &pa, &none), 107000);
	EXPECT_EQ(npusim_physical(99, (uintptr_t)va, &pa, &bytes), 107001);
	EXPECT_EQ(aclrtUnmapMem((char *)va + 32 * MIB), 0);
	EXPECT_EQ(aclrtFreePhysical(handle), 0);
	EXPECT_EQ(aclrtReleaseMemAddress(va), 0);
}

TEST(device, streams_know_what_they_are)
{
	uint32_t value = 9;
	int32_t id = -1, other = -1;
	aclrtStream by_name = NULL;
	uint32_t before = 0, after = 0;

	EXPECT_EQ(aclrtStreamGetPriority(second, &value), 0);
	EXPECT_EQ(value, 2);
	EXPECT_EQ(aclrtStreamGetFlags(second, &value), 0);
	EXPECT_EQ(value, ACL_STREAM_FAST_LAUNCH);
	EXPECT_EQ(aclrtSetStreamFailureMode(second, ACL_CONTINUE_ON_FAILURE), 0);
	EXPECT_EQ(aclrtSetStreamFailureMode(second, ACL_STOP_ON_FAILURE), 0);
	EXPECT_EQ(aclrtSetStreamFailureMode(second, ACL_STOP_ON_FAILURE), 0);
	EXPECT_EQ(aclrtSetStreamFailureMode(second, ACL_CONTINUE_ON_FAILURE), 207000);
	EXPECT_EQ(aclrtSetStreamFailureMode(&value, ACL_STOP_ON_FAILURE), 107000);
	EXPECT_EQ(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE), 0);
	EXPECT_EQ(aclrtStreamGetId(first, &id), 0);
	EXPECT_EQ(aclrtStreamGetId(second, &other), 0);
	EXPECT_NE(id, other);
	EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&by_name), 0);
	EXPECT_EQ(aclrtStreamGetId(NULL, &id), 0);
	EXPECT_EQ(aclrtStreamGetId(by_name, &other), 0);
	EXPECT_EQ(id, other);
	EXPECT_EQ(aclrtGetStreamAvailableNum(&before), 0);
	EXPECT_EQ(aclrtDestroyStream(second), 0);
	EXPECT_EQ(aclrtGetStreamAvailableNum(&after), 0);
	EXPECT_EQ(after, before + 1);
	EXPECT_EQ(aclrtDestroyStream(second), 107000);
	EXPECT_EQ(aclrtStreamGetId(second, &id), 107000);
}

/* ---- work ---- */

/* Device memory of `bytes`, filled with `value`. */
static void *device_memory(size_t bytes, int value)
{
	void *memory = NULL;

	EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	EXPECT_EQ(aclrtMemset(memory, bytes, value, bytes), 0);
	return memory;
}

static unsigned char *host_memory(size_t bytes, int value)
{
	void *memory = NULL;

	EXPECT_EQ(aclrtMallocHost(&memory, bytes), 0);
	memset(memory, value, bytes);
	return memory;
}

/* Where this thread has no call to make for a millisecond the model goes on: not twenty times. */
TEST(work, takes_effect_at_its_completion)
{
	size_t bytes = 32 * MIB;
	unsigned char *host = host_memory(bytes, 1), before = 0;
	void *device = device_memory(bytes, 7);
	aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;

	for (int i = 0; i < 20 && status != ACL_STREAM_STATUS_NOT_READY; i++) {
		host[bytes - 1] = 1;
		EXPECT_EQ(aclrtMemcpyAsync(host, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST,
					   first),
			  0);
		before = host[bytes - 1];
		EXPECT_EQ(aclrtStreamQuery(first, &status), 0);
		EXPECT_EQ(aclrtSynchronizeStream(first), 0);
		EXPECT_EQ(host[0], 7);
		EXPECT_EQ(host[bytes - 1], 7);
	}
	EXPECT_EQ(before, 1);
	EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
	EXPECT_EQ(aclrtStreamQuery(first, &status), 0);
	EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
	EXPECT_EQ(aclrtFreeHost(host), 0);
	EXPECT_EQ(aclrtFree(device), 0);
}

TEST(work, elapsed_time_is_that_of_the_copy)
{
	size_t bytes = 64 * MIB;
	void *from = device_memory(bytes, 1), *to = device_memory(bytes, 2);
	aclrtEvent gate, start, end;
	float ms = 0;
	uint64_t us_start = 0, us_end = 0;

	ASSERT_EQ(aclrtCreateEvent(&start), 0);
	ASSERT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE), 0);
	ASSERT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(first, gate), 0);
	EXPECT_EQ(aclrtRecordEvent(start, first), 0);
	EXPECT_EQ(aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, first), 0);
	EXPECT_EQ(aclrtRecordEvent(end, first), 0);
	EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), 107006);
	EXPECT_EQ(aclrtRecordEvent(gate, second), 0);
	EXPECT_EQ(aclrtSynchronizeEvent(end), 0);
	EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), 0);
	EXPECT_GT(ms, 0.02); /* 64 MiB read and written: more than 3 TB/s would be no HBM */
	EXPECT_LT(ms, 10.0);
	EXPECT_EQ(aclrtEventGetTimestamp(start, &us_start), 0);
	EXPECT_EQ(aclrtEventGetTimestamp(end, &us_end), 0);
	EXPECT_NEAR((double)(us_end - us_start) * 1e-3, ms, 0.01);
	EXPECT_EQ(aclrtDestroyEvent(gate), 0);
	EXPECT_EQ(aclrtDestroyEvent(start), 0);
	EXPECT_EQ(aclrtDestroyEvent(end), 0);
	aclrtFree(from);
	aclrtFree(to);
}

TEST(work, second_stream_waits_for_the_first)
{
	size_t bytes = 32 * MIB;
	void *a = device_memory(bytes, 1), *b = device_memory(bytes, 2);
	unsigned char *host = host_memory(bytes, 9);
	aclrtEvent done;

	ASSERT_EQ(aclrtCreateEventExWithFlag(&done, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtMemcpyAsync(b, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, first), 0);
	EXPECT_EQ(aclrtRecordEvent(done, first), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(second, done), 0);
	EXPECT_EQ(aclrtMemcpyAsync(host, bytes, b, bytes, ACL_MEMCPY_DEVICE_TO_HOST, second), 0);
	EXPECT_EQ(aclrtSynchronizeStream(second), 0);
	EXPECT_EQ(host[0], 1);
	EXPECT_EQ(host[bytes - 1], 1);
	EXPECT_EQ(aclrtDestroyEvent(done), 0);
	aclrtFreeHost(host);
	aclrtFree(a);
	aclrtFree(b);
}

/* A time-out of simulated time passes at once where nothing else is to be done. */
TEST(work, time_outs_are_simulated)
{
	aclrtEvent gate;
	uint64_t before = npusim_now_ps();

	ASSERT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(first, gate), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(first, 50), 507046);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "not done in time");
	EXPECT_GE(npusim_now_ps() - before, UINT64_C(50000000000));
	EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(10), 507046);
	EXPECT_EQ(aclrtRecordEvent(gate, second), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(first, 1000), 0);
	EXPECT_EQ(aclrtDestroyEvent(gate), 0);
}

TEST(work, wait_for_an_event_can_time_out)
{
	aclrtEvent gate;

	ASSERT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEventWithTimeout(first, gate, 1), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 107020);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "a wait for an event on stream");
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	EXPECT_EQ(aclrtStreamWaitEventWithTimeout(first, gate, -1), 107000);
	EXPECT_EQ(aclrtStreamWaitEventWithFlag(first, gate, 0, ACL_EVENT_WAIT_EXTERNAL), 207000);
	EXPECT_EQ(aclrtStreamWaitEventWithFlag(first, gate, 0, 2), 100000);
	EXPECT_EQ(aclrtRecordEventWithFlag(gate, first, ACL_EVENT_RECORD_DEFAULT), 0);
	EXPECT_EQ(aclrtDestroyEvent(gate), 0);
}

TEST(work, event_flags)
{
	aclrtEvent event = NULL;

	EXPECT_EQ(aclrtCreateEventWithFlag(&event, 0), 107000);
	EXPECT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_IPC), 107000);
	EXPECT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_SYNC),
		  107000);
	EXPECT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_DEVICE_USE_ONLY), 207000);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC), 207000);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_EXTERNAL), 107000);
	EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), 0);
	EXPECT_EQ(aclrtResetEvent(event, first), 207000);
	EXPECT_EQ(aclrtDestroyEvent(event), 0);
}

TEST(work, values_order_streams)
{
	uint64_t *flag = device_memory(64, 0);
	unsigned char *host = host_memory(8, 9);
	uint64_t value = 0;

	EXPECT_EQ(aclrtValueWait(flag, 5, ACL_STREAM_WAIT_VALUE_GEQ, first), 0);
	EXPECT_EQ(aclrtMemcpyAsync(host, 8, flag, 8, ACL_MEMCPY_DEVICE_TO_HOST, first), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(first, 1), 507046);
	EXPECT_EQ(aclrtValueWrite(flag, 6, 0, second), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	memcpy(&value, host, 8);
	EXPECT_EQ(value, 6);
	EXPECT_EQ(aclrtValueWrite(flag, 6, 1, second), 107000);
	EXPECT_EQ(aclrtValueWrite(NULL, 6, 0, second), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtValueWait(NULL, 6, ACL_STREAM_WAIT_VALUE_EQ, second),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtValueWrite((char *)flag + 4, 6, 0, second), 107000);
	EXPECT_EQ(aclrtValueWrite(host, 6, 0, second), 107000);
	EXPECT_EQ(aclrtValueWait(flag, 6, 4, second), 107000);
	aclrtFreeHost(host);
	aclrtFree(flag);
}

static atomic_int host_saw;

static void look(void *arg)
{
	atomic_store(&host_saw, *(unsigned char *)arg);
	*(unsigned char *)arg = 42;
}

TEST(work, host_function_stands_between_copies)
{
	size_t bytes = 8 * MIB;
	unsigned char *host = host_memory(bytes, 1);
	void *a = device_memory(bytes, 7), *b = device_memory(bytes, 8);
	unsigned char byte = 0;

	EXPECT_EQ(aclrtMemcpyAsync(host, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_HOST, first), 0);
	EXPECT_EQ(aclrtLaunchHostFunc(first, look, host), 0);
	EXPECT_EQ(aclrtMemcpyAsync(b, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, first), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	EXPECT_EQ(host_saw, 7);
	EXPECT_EQ(aclrtMemcpy(&byte, 1, b, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	EXPECT_EQ(byte, 42);
	EXPECT_EQ(aclrtLaunchHostFunc(first, NULL, host), 107000);
	aclrtFreeHost(host);
	aclrtFree(a);
	aclrtFree(b);
}

static atomic_bool serving;

static void *serve(void *arg)
{
	(void)arg;
	EXPECT_EQ(aclrtSetDevice(0), 0);
	while (serving) {
		aclError code = aclrtProcessReport(20);

		if (code == 107012)
			usleep(1000);
	}
	EXPECT_EQ(aclrtResetDevice(0), 0);
	return NULL;
}

TEST(work, callback_in_a_subscribed_thread)
{
	unsigned char *host = host_memory(MIB, 1);
	pthread_t thread;

	host_saw = 0;
	serving = true;
	ASSERT_EQ(pthread_create(&thread, NULL, serve, NULL), 0);
	EXPECT_EQ(aclrtLaunchCallback(look, host, ACL_CALLBACK_BLOCK, first), 107015);
	EXPECT_EQ(aclrtSubscribeReport((uint64_t)thread, first), 0);
	EXPECT_EQ(aclrtLaunchCallback(look, host, ACL_CALLBACK_BLOCK, first), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	EXPECT_EQ(host_saw, 1);
	EXPECT_EQ(aclrtLaunchCallback(look, host, (aclrtCallbackBlockType)2, first), 100000);
	EXPECT_EQ(aclrtUnSubscribeReport((uint64_t)thread, first), 0);
	serving = false;
	pthread_join(thread, NULL);
	EXPECT_EQ(aclrtProcessReport(0), 100000);
	aclrtFreeHost(host);
}

/* Work that waits behind a gate, and whose memory goes before its turn. */
TEST(work, copy_that_faults_is_reported_by_the_next_synchronize)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	void *va = NULL, *other = device_memory(2 * MIB, 1);
	aclrtDrvMemHandle handle;
	aclrtEvent gate;

	ASSERT_EQ(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1), 0);
	ASSERT_EQ(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), 0);
	ASSERT_EQ(aclrtMapMem(va, 2 * MIB, 0, handle, 0), 0);
	ASSERT_EQ(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtStreamWaitEvent(first, gate), 0);
	EXPECT_EQ(aclrtMemcpyAsync(va, 2 * MIB, other, 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, first),
		  0);
	EXPECT_EQ(aclrtUnmapMem(va), 0);
	EXPECT_EQ(aclrtRecordEvent(gate, second), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 507001);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "a copy or fill on the device on stream");
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	EXPECT_EQ(aclrtFreePhysical(handle), 0);
	EXPECT_EQ(aclrtReleaseMemAddress(va), 0);
	EXPECT_EQ(aclrtDestroyEvent(gate), 0);
	aclrtFree(other);
}

TEST(work, events_between_devices)
{
	size_t bytes = 16 * MIB;
	void *a = device_memory(bytes, 1), *b = device_memory(bytes, 2), *far = NULL;
	aclrtEvent done;
	aclrtStream there = NULL;
	unsigned char byte = 0;

	ASSERT_EQ(aclrtCreateEventExWithFlag(&done, ACL_EVENT_SYNC), 0);
	EXPECT_EQ(aclrtMemcpyAsync(b, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, first), 0);
	EXPECT_EQ(aclrtRecordEvent(done, first), 0);
	EXPECT_EQ(aclrtSetDevice(1), 0);
	ASSERT_EQ(aclrtCreateStream(&there), 0);
	far = device_memory(4096, 3);
	EXPECT_EQ(aclrtStreamWaitEvent(there, done), 0);
	EXPECT_EQ(aclrtMemsetAsync(far, 4096, 5, 4096, there), 0);
	EXPECT_EQ(aclrtSynchronizeStream(there), 0);
	EXPECT_EQ(aclrtMemcpy(&byte, 1, far, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	EXPECT_EQ(byte, 5);
	EXPECT_EQ(aclrtFree(far), 0);
	EXPECT_EQ(aclrtResetDevice(1), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtSynchronizeStream(first), 0);
	EXPECT_EQ(aclrtDestroyEvent(done), 0);
	aclrtFree(a);
	aclrtFree(b);
}
