/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the two contracts, met by an aclrt function and by the driver's own in one process:
 * the documents' rules are for the aclrt function, whichever way it reaches the driver.
 */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "npusim/driver.h"

#define NPU_OP(result, missing, op, ...) result op NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static bool by_hal; /* the door of the calls below */

/* The codes of the rows, as the ACL has them. */
static int code_of(drvError_t code)
{
	switch (code) {
	case DRV_ERROR_INVALID_VALUE:
		return 107000;
	case DRV_ERROR_OUT_OF_MEMORY:
		return 207001;
	case DRV_ERROR_NOT_SUPPORT:
		return 207000;
	default:
		return code == DRV_ERROR_NONE ? 0 : 507899;
	}
}
#define EITHER(acl, hal) (by_hal ? code_of(hal) : (int)(acl))

static int reserve_at(uint64_t bytes, uint64_t hint, char **out)
{
	void *at = (void *)(uintptr_t)hint;

	return EITHER(aclrtReserveMemAddress((void **)out, bytes, 0, at, 1),
		      halMemAddressReserve((void **)out, bytes, 0, at, 1));
}

/* type: an aclrtMemLocationType. */
static int create(uint64_t bytes, int type, unsigned device, void **out)
{
	bool host = type == ACL_MEM_LOCATION_TYPE_HOST;
	aclrtPhysicalMemProp prop = { .memAttr = ACL_MEM_HUGE,
				      .location = { device, (aclrtMemLocationType)type } };
	struct drv_mem_prop driver = { .side = (uint32_t)type,
				       .devid = device,
				       .module_id = APP_MODULE_ID,
				       .pg_type = MEM_HUGE_PAGE_TYPE,
				       .mem_type = host ? MEM_DDR_TYPE : MEM_HBM_TYPE };

	return EITHER(aclrtMallocPhysical(out, bytes, &prop, 0),
		      halMemCreate((drv_mem_handle_t **)out, bytes, &driver, 0));
}

static int map(char *at, uint64_t bytes, void *handle)
{
	return EITHER(aclrtMapMem(at, bytes, 0, handle, 0), halMemMap(at, bytes, 0, handle, 0));
}

static char *reserved(uint64_t bytes)
{
	char *at = NULL;

	EXPECT_EQ(reserve_at(bytes, 0, &at), 0);
	return at;
}

static void *created(uint64_t bytes, int type, unsigned device)
{
	void *handle = NULL;

	EXPECT_EQ(create(bytes, type, device, &handle), 0);
	return handle;
}

static uint64_t exported(void *handle)
{
	uint64_t value = 0;

	EXPECT_EQ(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
						  ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
						  &value),
		  0);
	return value;
}

static int import(uint64_t value, unsigned device, void **out)
{
	return EITHER(aclrtMemImportFromShareableHandle(value, (int)device, out),
		      halMemImportFromShareableHandle(value, device, (drv_mem_handle_t **)out));
}

/* ---- the rows ---- */

static int meet_hint_not_aligned(void)
{
	char *at = reserved(2 * GIB);

	EXPECT_EQ(aclrtReleaseMemAddress(at), 0);
	return reserve_at(6 * MIB, (uintptr_t)at + GIB + 8 * MIB, &at);
}

static int meet_hint_taken(void)
{
	char *at = reserved(2 * GIB);

	return reserve_at(GIB, (uintptr_t)at + GIB, &at);
}

static int meet_hint_out_of_window(void)
{
	char *at = NULL;

	return reserve_at(GIB, GIB, &at);
}

static int meet_nouc(void)
{
	void *hint = (void *)(uintptr_t)(40 * TIB), *at = NULL;
	int code = EITHER(aclrtReserveMemAddressNoUCMemory(&at, GIB, 0, hint, 1),
			  halMemAddressReserve(&at, GIB, 0, hint, MEM_RSV_TYPE_REMOTE_MAP | 1));

	if (code == 0)
		EXPECT_EQ(aclrtReleaseMemAddress(at), 0);
	return code;
}

static int meet_create_unaligned(void)
{
	void *handle = NULL;

	return create(3 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0, &handle);
}

static int meet_create_managed(void)
{
	void *handle = NULL;

	return create(2 * MIB, ACL_MEM_LOCATION_TYPE_MANAGED, 0, &handle);
}

static int map_part(uint64_t bytes)
{
	return map(reserved(8 * MIB), bytes, created(4 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
}

static int meet_map_smaller(void)
{
	return map_part(2 * MIB);
}

static int meet_map_larger(void)
{
	return map_part(6 * MIB);
}

static int meet_map_unaligned(void)
{
	return map_part(3 * MIB);
}

/* Memory of the host and of this process, which the driver lets it import. */
static int meet_map_mixed(void)
{
	char *at = reserved(4 * MIB);
	void *own = created(2 * MIB, ACL_MEM_LOCATION_TYPE_HOST, 0), *imported = NULL;

	EXPECT_EQ(halMemImportFromShareableHandle(exported(own), 0, (drv_mem_handle_t **)&imported),
		  DRV_ERROR_NONE);
	EXPECT_EQ(map(at, 2 * MIB, own), 0);
	return map(at + 2 * MIB, 2 * MIB, imported);
}

static int meet_import_on_other_device(void)
{
	void *handle = NULL;

	return import(exported(created(2 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0)), 1, &handle);
}

static int meet_import_host_memory(void)
{
	void *handle = NULL;

	return import(exported(created(2 * MIB, ACL_MEM_LOCATION_TYPE_HOST, 0)), 0, &handle);
}

static int meet_sync_copy(void)
{
	char *at[2];

	for (unsigned device = 0; device < 2; device++) {
		at[device] = reserved(2 * MIB);
		EXPECT_EQ(map(at[device], 2 * MIB,
			      created(2 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, device)),
			  0);
	}
	EXPECT_EQ(halDeviceEnableP2P(0, 1, 0), DRV_ERROR_NONE);
	EXPECT_EQ(halDeviceEnableP2P(1, 0, 0), DRV_ERROR_NONE);
	return EITHER(aclrtMemcpy(at[1], 2 * MIB, at[0], 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE),
		      drvMemcpy((uintptr_t)at[1], 2 * MIB, (uintptr_t)at[0], 2 * MIB));
}

/* ---- the walk ---- */

static const struct meeting {
	const char *name;
	int (*meet)(void);
	int docs, driver; /* what an aclrt function answers */
	int hal;          /* what the driver's own answers, under both */
} meetings[] = {
	{ "hint_not_1g_aligned", meet_hint_not_aligned, 107000, 0, 0 },
	{ "hint_taken", meet_hint_taken, 207001, 507899, 507899 },
	{ "hint_out_of_window", meet_hint_out_of_window, 207001, 507899, 507899 },
	{ "nouc_needs_910c", meet_nouc, 207000, 0, 0 },
	{ "create_unaligned", meet_create_unaligned, 0, 507899, 507899 },
	{ "create_managed", meet_create_managed, 100000, 100000, 107000 },
	{ "map_smaller", meet_map_smaller, 107000, 0, 0 },
	{ "map_larger", meet_map_larger, 107000, 207001, 207001 },
	{ "map_unaligned_size", meet_map_unaligned, 107000, 507899, 507899 },
	{ "map_mixed_import", meet_map_mixed, 107000, 0, 0 },
	{ "import_on_other_device", meet_import_on_other_device, 507899, 0, 0 },
	{ "import_own_host_memory", meet_import_host_memory, 507899, 0, 0 },
	{ "sync_copy_two_devices", meet_sync_copy, 507899, 0, 0 },
};

static void meet(const struct meeting *m, bool hal, int want)
{
	if (m->meet == meet_nouc && getenv("NPUSIM_WINDOW") != NULL)
		SKIP("40 TiB is not free here");
	ASSERT_EQ(aclrtSetDevice(1), 0);
	ASSERT_EQ(aclrtSetDevice(0), 0);
	by_hal = hal;
	EXPECT_EQ(m->meet(), want);
}

TEST_EACH(contract, aclrt_functions_have_rules, meetings, name)
{
	const struct meeting *m = param;
	const char *contract = getenv("NPUSIM_CONTRACT");

	meet(m, false, contract != NULL && strcmp(contract, "driver") == 0 ? m->driver : m->docs);
}

TEST_EACH(contract, functions_of_the_driver_have_none, meetings, name)
{
	const struct meeting *m = param;

	meet(m, true, m->hal);
}
