/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, opening and refusing a driver's library, and what the driver object makes of one: each
 * defect of tests/fake that shows before the first device is used.
 */
#include "harness/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw.h"

static char folder[64]; /* of a test's files */

SETUP(hw_find)
{
	strcpy(folder, "/tmp/npusim-hw-XXXXXX");
	ASSERT_NOT_NULL(mkdtemp(folder));
}

TEARDOWN(hw_find)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	EXPECT_EQ(system(command), 0);
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ASSERT_NOT_NULL(file);
	fputs(text, file);
	fclose(file);
}

TEST(hw_find, named_library_is_the_only_place)
{
	struct hw_places places;

	hw_find("some/libascend_hal.so", "/nonexistent", "/opt/none", &places);
	EXPECT_TRUE(places.named);
	ASSERT_EQ(places.count, 1u);
	EXPECT_STREQ(places.path[0], "some/libascend_hal.so");
}

TEST(hw_find, without_a_name_asks_loader_then_installer_then_default)
{
	struct hw_places places;
	char info[128];

	write_file("ascend_install.info",
		   "UserName=HwHiAiUser\nDriver_Install_Path_Param= /opt/ascend \r\n");
	snprintf(info, sizeof(info), "%s/ascend_install.info", folder);
	hw_find("", info, "/usr/local/Ascend", &places);
	EXPECT_FALSE(places.named);
	ASSERT_EQ(places.count, 3u);
	EXPECT_STREQ(places.path[0], "libascend_hal.so");
	EXPECT_STREQ(places.path[1], "/opt/ascend/driver/lib64/driver/libascend_hal.so");
	EXPECT_STREQ(places.path[2], "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so");
}

TEST(hw_find, place_that_installer_and_default_share_stands_once)
{
	struct hw_places places;
	char info[128];

	write_file("ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\n");
	snprintf(info, sizeof(info), "%s/ascend_install.info", folder);
	hw_find("", info, "/usr/local/Ascend", &places);
	EXPECT_EQ(places.count, 2u);
	hw_find("", "/nonexistent", "/usr/local/Ascend", &places);
	EXPECT_EQ(places.count, 2u);
}

TEST(hw_find, version_of_the_package_comes_from_beside_the_library)
{
	char path[256], version[128];

	write_file("version.info",
		   "Version=25.2.0\nInnerversion=V100R001C23SPC005B219\npackage=driver\n");
	snprintf(path, sizeof(path), "%s/lib64/driver/libascend_hal.so", folder);
	ASSERT_TRUE(hw_package_version(path, version, sizeof(version)));
	EXPECT_STREQ(version, "25.2.0 (V100R001C23SPC005B219)");
	write_file("version.info", "Innerversion=V100R001\n");
	ASSERT_TRUE(hw_package_version(path, version, sizeof(version)));
	EXPECT_STREQ(version, "V100R001");
	write_file("version.info", "nothing\n");
	EXPECT_FALSE(hw_package_version(path, version, sizeof(version)));
	EXPECT_FALSE(hw_package_version("/libascend_hal.so", version, sizeof(version)));
}

/* ---- loading ---- */

/* What hw_load() says to a library that it refuses; free(). */
static char *refusal(const char *path)
{
	struct hw_places places;
	struct hw_library library;
	char *error = NULL;

	hw_find(path, "/nonexistent", "/nonexistent", &places);
	if (hw_load(&places, &library, &error)) {
		ADD_FAILURE("%s was taken", path);
		return strdup("");
	}
	return error != NULL ? error : strdup("");
}

static void load(const char *path, struct hw_library *out)
{
	struct hw_places places;
	char *error = NULL;

	hw_find(path, "/nonexistent", "/nonexistent", &places);
	if (!hw_load(&places, out, &error))
		FAIL("%s", error);
}

TEST(hw_load, machine_without_a_driver_gets_one_sentence)
{
	struct hw_places places;
	struct hw_library library;
	char *error = NULL;

	hw_find("", "/nonexistent", "/nonexistent", &places);
	memmove(places.path[0], places.path[1],
		PATH_MAX); /* not what this machine's loader may find */
	places.count = 1;
	ASSERT_FALSE(hw_load(&places, &library, &error));
	EXPECT_CONTAINS(
		error, "no driver: /nonexistent/driver/lib64/driver/libascend_hal.so: cannot open");
	EXPECT_CONTAINS(error, "NPUSIM_BACKEND=sim");
	EXPECT_NULL(strchr(error, '\n'));
	free(error);
}

TEST(hw_load, named_file_that_is_missing_is_named)
{
	char *error = refusal("/nonexistent/libascend_hal.so");

	EXPECT_CONTAINS(error, "/nonexistent/libascend_hal.so: cannot open shared object file");
	free(error);
}

TEST(hw_load, lists_all_essential_names_that_are_missing)
{
	char *error = refusal(FAKE_HAL_NO_MAP);

	EXPECT_CONTAINS(error, FAKE_HAL_NO_MAP);
	EXPECT_CONTAINS(error,
			"lacks 2 functions without which nothing runs: halMemMap halMemUnmap");
	free(error);
}

TEST(hw_load, library_that_is_no_driver_lacks_everything)
{
	char *error = refusal(FAKE_HAL_EMPTY);

	EXPECT_CONTAINS(error, "lacks 24 functions");
	EXPECT_CONTAINS(error, "drvGetDevNum");
	EXPECT_CONTAINS(error, "halCqReportRecv");
	EXPECT_CONTAINS(error, "halDeviceOpen (or drvMemDeviceOpen and drvDeviceOpen)");
	free(error);
}

TEST(hw_load, newer_interface_is_refused_with_both_versions)
{
	char *error = refusal(FAKE_HAL_NEWER);

	EXPECT_CONTAINS(error, "speaks interface 8.1.2");
	EXPECT_CONTAINS(error, "7.x");
	free(error);
}

TEST(hw_load, older_interface_is_taken)
{
	struct hw_library library;

	ASSERT_NO_FATAL(load(FAKE_HAL_OLDER, &library));
	EXPECT_EQ(library.api, 0x061f00);
	EXPECT_STREQ(library.path, FAKE_HAL_OLDER);
	EXPECT_STREQ(library.version, "unknown");
}

TEST(hw_load, our_own_of_another_version_is_refused)
{
	char *error = refusal(FAKE_HAL_IMPOSTOR);

	EXPECT_CONTAINS(error,
			"belongs to another version of npusim: its ABI is 2, and 1 is wanted");
	free(error);
}

TEST(hw_load, our_own_is_taken_only_by_name)
{
	struct hw_places places;
	struct hw_library library;
	char *error = NULL;

	hw_find("", "/nonexistent", "/nonexistent", &places);
	places.count = 1;
	strcpy(places.path[0], LIBASCEND_HAL);
	ASSERT_FALSE(hw_load(&places, &library, &error));
	EXPECT_CONTAINS(error, LIBASCEND_HAL " is npusim's own model of a driver");
	EXPECT_CONTAINS(error, "NPUSIM_HAL");
	free(error);
	ASSERT_NO_FATAL(load(LIBASCEND_HAL, &library));
	EXPECT_NOT_NULL(library.ours);
}

TEST(hw_load, refused_library_is_closed_again)
{
	free(refusal(FAKE_HAL_NO_MAP));
	EXPECT_NULL(dlopen(FAKE_HAL_NO_MAP, RTLD_NOW | RTLD_NOLOAD));
}

/* ---- the driver object ---- */

struct rig {
	struct hw_library library;
	struct npu_driver *driver;
	int (*live)(void);
	const char *(*story)(void);
};

static void open_rig(const char *path, struct rig *rig)
{
	ASSERT_NO_FATAL(load(path, &rig->library));
	rig->driver = hw_driver_new(&rig->library, 0);
	ASSERT_NOT_NULL(rig->driver);
	*(void **)&rig->live = dlsym(rig->library.handle, "fake_hal_live");
	*(void **)&rig->story = dlsym(rig->library.handle, "fake_hal_story");
	ASSERT_NOT_NULL(rig->live);
	ASSERT_NOT_NULL(rig->story);
}

static void close_rig(struct rig *rig)
{
	EXPECT_EQ(rig->live(), 0);
	rig->driver->close(rig->driver);
}

TEST(hw_driver, has_no_capability_bits_and_names_what_is_missing)
{
	struct rig good, old;
	char *missing;

	ASSERT_NO_FATAL(open_rig(FAKE_HAL_GOOD, &good));
	EXPECT_EQ(good.driver->caps, 0u);
	EXPECT_STREQ(good.driver->name, "hw");
	missing = hw_missing_names(&good.library.symbols);
	EXPECT_NULL(strstr(missing, "halMemMapNoAccess"));
	EXPECT_NULL(strstr(missing, "halMemRetainAllocationHandle"));
	EXPECT_NULL(strstr(missing, "halMemExportToShareableHandleV2"));
	free(missing);
	ASSERT_NO_FATAL(open_rig(FAKE_HAL_OLD, &old));
	EXPECT_EQ(old.driver->caps, 0u);
	missing = hw_missing_names(&old.library.symbols);
	EXPECT_CONTAINS(missing, "halMemMapNoAccess");
	EXPECT_CONTAINS(missing, "halMemRetainAllocationHandle");
	free(missing);
	close_rig(&good);
	close_rig(&old);
}

TEST(hw_driver, missing_function_is_not_supported_and_named)
{
	struct rig rig;
	drv_mem_handle_t *handle = NULL;
	uint32_t count;

	ASSERT_NO_FATAL(open_rig(FAKE_HAL_OLD, &rig));
	EXPECT_EQ(npu_call(rig.driver, halMemRetainAllocationHandle, &handle, NULL),
		  DRV_ERROR_NOT_SUPPORT);
	EXPECT_CONTAINS(npu_call(rig.driver, npusimLastMessage),
			"the driver has no halMemRetainAllocationHandle");
	EXPECT_CONTAINS(npu_call(rig.driver, npusimLastMessage), FAKE_HAL_OLD);
	EXPECT_FALSE(npu_call(rig.driver, halSupportFeature, 0, 0));
	/* A later call that the driver has takes the words back. */
	EXPECT_EQ(npu_call(rig.driver, drvGetDevNum, &count), DRV_ERROR_NONE);
	EXPECT_NULL(npu_call(rig.driver, npusimLastMessage));
	close_rig(&rig);
}

TEST(hw_driver, old_driver_opens_memory_first_and_closes_it_last)
{
	struct rig rig;
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;
	halDevCloseIn close_in = { { 0 } };

	ASSERT_NO_FATAL(open_rig(FAKE_HAL_OLD, &rig));
	EXPECT_EQ(npu_call(rig.driver, halDeviceOpen, 1, &in, &out), DRV_ERROR_NONE);
	EXPECT_EQ(rig.live(), 2);
	EXPECT_EQ(npu_call(rig.driver, halDeviceClose, 1, &close_in), DRV_ERROR_NONE);
	EXPECT_STREQ(rig.story(),
		     "drvMemDeviceOpen(1) drvDeviceOpen(1) drvDeviceClose(1) drvMemDeviceClose(1)");
	close_rig(&rig);
}

TEST(hw_driver, old_driver_that_fails_half_way_is_taken_back)
{
	struct rig rig;
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	ASSERT_NO_FATAL(open_rig(FAKE_HAL_OLD_OPEN_FAILS, &rig));
	EXPECT_EQ(npu_call(rig.driver, halDeviceOpen, 0, &in, &out), DRV_ERROR_OPEN_FAILED);
	EXPECT_STREQ(rig.story(), "drvMemDeviceOpen(0) drvDeviceOpen(0) drvMemDeviceClose(0)");
	close_rig(&rig);
}

TEST(hw_driver, calls_go_straight_through)
{
	struct rig rig;
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE, .pg_type = MEM_HUGE_PAGE_TYPE };
	drv_mem_handle_t *handle = NULL;
	struct MemInfo info;
	void *va = NULL;
	char text[] = "as it was", back[sizeof(text)] = "";

	ASSERT_NO_FATAL(open_rig(FAKE_HAL_GOOD, &rig));
	ASSERT_EQ(npu_call(rig.driver, halMemAddressReserve, &va, 2 << 20, 0, NULL, 1),
		  DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig.driver, halMemCreate, &handle, 2 << 20, &prop, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig.driver, halMemMap, va, 2 << 20, 0, handle, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig.driver, drvMemcpy, (uintptr_t)va, sizeof(text), (uintptr_t)text,
			   sizeof(text)),
		  DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig.driver, drvMemcpy, (uintptr_t)back, sizeof(back), (uintptr_t)va,
			   sizeof(back)),
		  DRV_ERROR_NONE);
	EXPECT_STREQ(back, text);
	EXPECT_EQ(npu_call(rig.driver, halMemGetInfo, 0, MEM_INFO_TYPE_HBM_SIZE, &info),
		  DRV_ERROR_NONE);
	EXPECT_EQ(info.phy_info.huge_total, UINT64_C(64) << 30);
	EXPECT_EQ(npu_call(rig.driver, halMemUnmap, va), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig.driver, halMemRelease, handle), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig.driver, halMemAddressFree, va), DRV_ERROR_NONE);
	close_rig(&rig);
}
