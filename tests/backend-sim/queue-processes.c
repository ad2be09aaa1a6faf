/* SPDX-License-Identifier: Apache-2.0
 *
 * What two processes share through queues: a notify by its name, and what one is told of a share
 * before it has opened a device.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue-rig.h"

extern const struct npu_backend npusim_backend_1;

struct told {
	uint64_t share;
	char name[65];
};

static void import(int from, int to)
{
	struct ShareHandleGetInfo share = { 0 };
	struct shrIdGetInfo of = { .phyDevid = 9 };
	struct drvShrIdInfo info = { 0 };
	struct rig_stream stream;
	struct told told;
	char *error = NULL;

	ASSERT_EQ(read(from, &told, sizeof(told)), (ssize_t)sizeof(told));
	rig = npusim_backend_1.open(&error);
	ASSERT_NOT_NULL(rig);
	EXPECT_EQ(npu_call(rig, halShrIdOpen, told.name, &info), DRV_ERROR_INVALID_HANDLE);
	EXPECT_EQ(npu_call(rig, halMemShareHandleInfoGet, told.share, &share), DRV_ERROR_NONE);
	EXPECT_EQ(share.phyDevid, 1u);
	EXPECT_EQ(npu_call(rig, halMemShareHandleInfoGet, told.share + 77, &share),
		  DRV_ERROR_INVALID_HANDLE);
	ASSERT_NO_FATAL(rig_open());
	EXPECT_EQ(npu_call(rig, halShrIdInfoGet, told.name, &of), DRV_ERROR_NONE);
	EXPECT_EQ(of.phyDevid, 1u);
	ASSERT_EQ(npu_call(rig, halShrIdOpen, told.name, &info), DRV_ERROR_NONE);
	EXPECT_EQ(info.devid, 1u);
	ASSERT_NO_FATAL(rig_stream_open(&stream, 1, 64, 64));
	ASSERT_EQ(write(to, "w", 1), 1);
	rig_event(&stream, STARS_SQE_NOTIFY_WAIT, 1, info.shrid, 0, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
	EXPECT_EQ(npu_call(rig, halShrIdClose, told.name), DRV_ERROR_NONE);
	rig_stream_close(&stream);
	rig_close();
}

static void export(int from, int to)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .devid = 1,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE };
	struct shrIdAttr to_all = { .enableFlag = SHRID_NO_WLIST_ENABLE };
	drv_mem_handle_t *handle = NULL;
	struct drvShrIdInfo info = { .devid = 1, .id_type = SHR_ID_NOTIFY_TYPE };
	struct rig_stream stream;
	struct told told = { 0 };
	char ready;

	ASSERT_NO_FATAL(rig_open());
	ASSERT_EQ(npu_call(rig, halMemCreate, &handle, 2 * MIB, &prop, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemExportToShareableHandle, handle, MEM_HANDLE_TYPE_NONE, 0,
			   &told.share),
		  DRV_ERROR_NONE);
	info.shrid = rig_id(1, DRV_NOTIFY_ID);
	ASSERT_EQ(npu_call(rig, halShrIdCreate, &info, told.name, sizeof(told.name)),
		  DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halShrIdSetAttribute, told.name, SHR_ID_ATTR_NO_WLIST_IN_SERVER,
			   to_all),
		  DRV_ERROR_NONE);
	ASSERT_EQ(write(to, &told, sizeof(told)), (ssize_t)sizeof(told));
	ASSERT_NO_FATAL(rig_stream_open(&stream, 1, 64, 64));
	ASSERT_EQ(read(from, &ready, 1), 1);
	rig_event(&stream, STARS_SQE_NOTIFY_RECORD, 1, info.shrid, 0, REPORT);
	EXPECT_EQ(rig_next(&stream).error_type, 0);
}

TEST(processes, share_a_notify)
{
	int down[2], up[2], status = -1;
	pid_t pid;

	ASSERT_EQ(pipe(down), 0);
	ASSERT_EQ(pipe(up), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (pid == 0) {
		import(down[0], up[1]);
		rig_end();
		_exit(harness_has_failed());
	}
	close(up[1]);
	export(up[0], down[1]);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	rig_close();
}
