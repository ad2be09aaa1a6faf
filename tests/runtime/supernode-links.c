/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies between the servers of a supernode: links that NPUSIM_FAULT slows down or cuts, by the
 * ACL and by the driver's functions alone; what a lost server had imported; notifies of another
 * server.
 */
#include "supernode.h"

#define NO_RIGHT     507899
#define STREAM_ERROR 507001
#define INVALID      107000

/* Of libascend_hal.so. */
drvError_t halMemImportFromShareableHandleV2(drv_mem_handle_type type, struct MemShareHandle *block,
					     uint32_t device, drv_mem_handle_t **handle);
drvError_t halDeviceOpen(uint32_t dev, halDevOpenIn *in, halDevOpenOut *out);
drvError_t halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
				uint64_t flag);
drvError_t halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle,
		     uint64_t flag);
drvError_t drvMemcpy(DVdeviceptr dst, size_t dest_max, DVdeviceptr src, size_t count);
drvError_t halShrIdOpen(const char *name, struct drvShrIdInfo *info);
drvError_t halShrIdClose(const char *name);
drvError_t halShrIdSetPodPid(const char *name, uint32_t sdid, pid_t pid);

/* Memory of server 0 that holds `value`, exported as handle 0; it stays until the end. */
static void export_memory(int value)
{
	aclrtDrvMemHandle handle = create(PAGE);

	IS(aclrtMemset(map(handle, PAGE), PAGE, value, PAGE), 0);
	IS(export_fabric(handle, 0, 0), 0);
}

static aclError read_byte(const void *at, int *out)
{
	unsigned char byte = 0;
	aclError error = aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST);

	*out = byte;
	return error;
}

/* ---- links that lose copies ---- */

/* The link goes with the third copy over it: no byte of that one or of a later one crosses, nor a
 * value. Imports and frees do not use it, nor do copies within the server. */
TEST_SERVERS(a_link_is_lost_from_a_copy_on, 2, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL, again = NULL;
	aclrtStream stream = NULL;
	void *there, *own;
	int byte = 0;

	setenv("NPUSIM_FAULT", "link0:3+:lost", 1);
	start(0);
	if (server == 0)
		export_memory(7);
	step();
	if (server == 1) {
		IS(import_fabric(0, &handle), 0);
		there = map(handle, PAGE);
		own = map(create(PAGE), PAGE);
		IS(aclrtCreateStream(&stream), 0);
		IS(aclrtMemset(own, PAGE, 8, PAGE), 0);
		IS(read_byte(there, &byte), 0);
		IS(byte, 7);
		IS(aclrtMemcpyAsync(there, 1, own, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
		IS(aclrtSynchronizeStream(stream), 0);
		IS(read_byte(there, &byte), NO_RIGHT);
		IS(strstr(aclGetRecentErrMsg(), "the link to server 0") != NULL, 1);
		IS(aclrtMemset(there, PAGE, 9, PAGE), NO_RIGHT);
		IS(aclrtMemcpyAsync(there, PAGE, own, PAGE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
		   0);
		IS(aclrtSynchronizeStream(stream), STREAM_ERROR);
		IS(aclrtValueWrite(there, 1, 0, stream), 0);
		IS(aclrtSynchronizeStream(stream), STREAM_ERROR);
		IS(strstr(aclGetRecentErrMsg(), "the link to server 0") != NULL, 1);
		IS(aclrtValueWrite(own, 0x0808080808080808, 0, stream), 0);
		IS(aclrtSynchronizeStream(stream), 0);
		IS(read_byte(own, &byte), 0);
		IS(byte, 8);
		IS(import_fabric(0, &again), 0);
		IS(aclrtFreePhysical(again), 0);
		IS(aclrtUnmapMem(there), 0);
		IS(aclrtFreePhysical(handle), 0);
	}
	step();
}

/* An asynchronous fill is as many transfers as entries, each of which doubles what is set. */
TEST_SERVERS(each_entry_of_a_fill_counts_on_the_link, 2, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL;
	aclrtStream stream = NULL;
	char *there;
	int byte = 0;

	setenv("NPUSIM_FAULT", "link0:12:lost", 1);
	start(0);
	if (server == 0)
		export_memory(7);
	step();
	if (server == 1) {
		IS(import_fabric(0, &handle), 0);
		there = map(handle, PAGE);
		IS(aclrtCreateStream(&stream), 0);
		IS(aclrtMemsetAsync(there, PAGE, 8, PAGE, stream), 0); /* 6, from 64 KiB on */
		IS(aclrtSynchronizeStream(stream), 0);
		IS(aclrtMemsetAsync(there, PAGE, 9, PAGE, stream), 0); /* the last 1 MiB is lost */
		IS(aclrtSynchronizeStream(stream), STREAM_ERROR);
		IS(read_byte(there + PAGE / 2 - 1, &byte), 0);
		IS(byte, 9);
		IS(read_byte(there + PAGE / 2, &byte), 0);
		IS(byte, 8);
	}
	step();
}

/* Each importer has the rules of its own process: one copy of many, those of another link, of any.
 */
TEST_SERVERS(rules_choose_link_and_copy, 6, EACH_ENDS)
{
	static const struct {
		const char *rules, *lost;
	} of_server[] = { { "", "" },
			  { "link0:2:lost", ".L...." },
			  { "link0:every:3:lost", "..L..L" },
			  { "link1:1+:lost", "......" },
			  { "link:4+:lost,link9::lost", "...LLL" },
			  { "link0::lost", "LLLLLL" } };
	aclrtDrvMemHandle handle = NULL;
	void *there;
	int byte;

	if (server > 0)
		setenv("NPUSIM_FAULT", of_server[server].rules, 1);
	start(0);
	if (server == 0)
		export_memory(1);
	step();
	if (server > 0) {
		IS(import_fabric(0, &handle), 0);
		there = map(handle, PAGE);
		for (unsigned i = 0; i < 6; i++)
			IS(read_byte(there, &byte),
			   of_server[server].lost[i] == 'L' ? NO_RIGHT : 0);
	}
	step();
}

/* ---- links that are slow ---- */

static long copy_ns(void *dst, const void *src, aclrtStream stream)
{
	aclrtEvent before = NULL, after = NULL;
	float ms = 0;

	IS(aclrtCreateEvent(&before), 0);
	IS(aclrtCreateEvent(&after), 0);
	IS(aclrtRecordEvent(before, stream), 0);
	IS(aclrtMemcpyAsync(dst, PAGE, src, PAGE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
	IS(aclrtRecordEvent(after, stream), 0);
	IS(aclrtSynchronizeStream(stream), 0);
	IS(aclrtEventElapsedTime(&ms, before, after), 0);
	return (long)(ms * 1e6 + 0.5);
}

TEST_SERVERS(a_link_has_the_latency_that_is_asked_for, 2, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL;
	aclrtStream stream = NULL;
	void *there, *own;
	uint64_t began;
	long quick[2], slow[2], us;

	setenv("NPUSIM_FAULT", "link0:5+:200us,link0:7+:300us", 1);
	start(0);
	if (server == 0)
		export_memory(7);
	step();
	if (server == 1) {
		IS(import_fabric(0, &handle), 0);
		there = map(handle, PAGE);
		own = map(create(PAGE), PAGE);
		IS(aclrtCreateStream(&stream), 0);
		for (unsigned i = 0; i < 2; i++) { /* the second time the translations are known */
			quick[0] = copy_ns(own, there, stream);
			quick[1] = copy_ns(there, own, stream);
		}
		slow[0] = copy_ns(own, there, stream);
		slow[1] = copy_ns(there, own, stream);
		for (unsigned i = 0; i < 2; i++)
			IS((slow[i] - quick[i] + 500) / 1000, 200);
		began = npusim_now_ps();
		IS(aclrtMemset(there, PAGE, 1, PAGE), 0); /* by both rules */
		us = (long)((npusim_now_ps() - began) / 1000000);
		IS(us >= 500 && us < 500 + quick[1] / 1000 + 20, 1);
	}
	step();
}

/* ---- the driver's functions alone ---- */

TEST_SERVERS(links_have_faults_for_programs_of_the_driver, 2, EACH_ENDS)
{
	halDevOpenIn in = { 0 };
	halDevOpenOut out = { 0 };
	drv_mem_handle_t *handle = NULL;
	struct MemShareHandle block;
	unsigned char byte = 0;
	void *there = NULL;

	if (server == 0) {
		start(0);
		export_memory(7);
	}
	step();
	if (server == 1) {
		setenv("NPUSIM_FAULT", "link0:2:lost", 1);
		memcpy(&block, &board->handle[0], sizeof(block));
		IS(halDeviceOpen(0, &in, &out), 0);
		IS(halMemImportFromShareableHandleV2(MEM_HANDLE_TYPE_FABRIC, &block, 0, &handle),
		   0);
		IS(halMemAddressReserve(&there, PAGE, 0, NULL, 1), 0);
		IS(halMemMap(there, PAGE, 0, handle, 0), 0);
		for (unsigned i = 0; i < 3; i++)
			IS(drvMemcpy((uintptr_t)&byte, 1, (uintptr_t)there, 1),
			   i == 1 ? DRV_ERROR_IOCRL_FAIL : DRV_ERROR_NONE);
		IS(byte, 7);
	}
	step();
}

/* ---- life time: what a lost server had ---- */

/* Simulated seconds: an import from the server that was stopped takes 30 or 1. */
static void pass_seconds(unsigned seconds)
{
	uint64_t end = npusim_now_ps() + seconds * UINT64_C(1000000000000);
	aclrtDrvMemHandle none = NULL;

	while (npusim_now_ps() < end)
		IS(import_fabric(0, &none), UNKNOWN);
}

/* Importer is server 0, which is stopped. A scan, every 60 s of the exporter's time, changes
 * nothing while the exporter holds its handle; after its free, the next one gives the pages back.
 * Who counts on them before is out of memory. */
TEST_SERVERS(pages_of_a_lost_importer_come_back_at_the_scan, 2, SERVER_0_STOPPED)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_MEM_LOCATION_TYPE_DEVICE);
	aclrtDrvMemHandle handle = NULL, all = NULL;
	char holder[32];
	size_t before;
	void *at;

	start(0);
	if (server == 0) {
		export_memory(1);
		wait_for(&board->flag, 1);
		IS(import_fabric(1, &handle), 0);
		IS(byte_at(map(handle, PAGE)), 7);
		tell(&board->flag, 2);
		for (;;)
			pause();
	}
	before = free_bytes();
	handle = create(PAGE);
	at = map(handle, PAGE);
	IS(aclrtMemset(at, PAGE, 7, PAGE), 0);
	IS(export_fabric(handle, 0, 1), 0);
	tell(&board->flag, 1);
	wait_for(&board->flag, 3);
	wait_for_end_of(board->pid[0]);
	pass_seconds(61);
	IS(aclrtUnmapMem(at), 0);
	IS(aclrtFreePhysical(handle), 0);
	IS(before - free_bytes(), PAGE);
	IS(aclrtMallocPhysical(&all, before, &prop, 0), 207001);
	snprintf(holder, sizeof(holder), "process %d", (int)board->pid[0]);
	IS(strstr(aclGetRecentErrMsg(), holder) != NULL, 1); /* it says who had them */
	pass_seconds(58);                                    /* 119 */
	IS(before - free_bytes(), PAGE);
	pass_seconds(2);
	IS(before - free_bytes(), 0);
	IS(aclrtMallocPhysical(&all, before, &prop, 0), 0);
}

/* The same when the exporter ends: a new process of its server has the scan. Server 2 keeps the
 * supernode alive meanwhile. */
TEST_SERVERS(pages_of_a_lost_importer_outlive_the_exporter, 4, SERVER_0_STOPPED)
{
	aclrtDrvMemHandle handle = NULL;
	size_t free_now;

	if (server == 3) {
		setenv("NPUSIM_SERVER", "1", 1);
		wait_for(&board->flag, 3);
		wait_for_end_of(board->pid[0]);
		wait_for_end_of(board->pid[1]);
		start(0);
		free_now = free_bytes();
		pass_seconds(61);
		IS(free_bytes() - free_now, PAGE);
		tell(&board->flag, 4);
		return;
	}
	start(0);
	if (server == 2) {
		wait_for(&board->flag, 4);
		return;
	}
	if (server == 0) {
		export_memory(1);
		wait_for(&board->flag, 1);
		IS(import_fabric(1, &handle), 0);
		tell(&board->flag, 2);
		for (;;)
			pause();
	}
	handle = create(PAGE);
	IS(aclrtMemset(map(handle, PAGE), PAGE, 7, PAGE), 0);
	IS(export_fabric(handle, 0, 1), 0);
	tell(&board->flag, 1);
	wait_for(&board->flag, 3);
	wait_for_end_of(board->pid[0]);
	_exit(0);
}

/* The exporter frees what nobody has imported: unknown in its server (process 2) and in others. */
TEST_SERVERS(a_share_that_nobody_holds_is_unknown, 3, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL;

	if (server == 2)
		setenv("NPUSIM_SERVER", "0", 1);
	start(0);
	if (server == 0) {
		handle = create(PAGE);
		IS(export_fabric(handle, 1, 0), 0);
		IS(aclrtFreePhysical(handle), 0);
	}
	step();
	if (server > 0)
		IS(import_fabric(0, &handle), UNKNOWN);
	step();
}

/* ---- notifies ---- */

/* Server 0 waits on device 3 for what server 1 records: there is its data, which it has written
 * before. Only the server of the list is let in, by the id of any of its devices. */
TEST_SERVERS(notifies_cross_by_the_list_of_a_server, 2, EACH_ENDS)
{
	aclrtServerPid list = { .sdid = 1u << 22 | 65537, .pid = &board->pid[1], .num = 1 };
	aclrtServerPid wrong = { .sdid = 40u << 22, .pid = &board->pid[1], .num = 1 };
	aclrtServerPid own = { .sdid = 0, .pid = &board->pid[1], .num = 1 };
	aclrtServerPid two = { .sdid = 1u << 22, .pid = &board->pid[0], .num = 2 };
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE };
	aclrtDrvMemHandle handle = NULL;
	aclrtNotify notify = NULL;
	aclrtStream stream = NULL;
	void *at;

	start(0);
	if (server == 0) {
		handle = create(PAGE);
		at = map(handle, PAGE);
		IS(export_fabric(handle, 0, 0), 0);
		IS(aclrtSetDevice(3), 0);
		IS(aclrtCreateStream(&stream), 0);
		IS(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), 0);
		IS(aclrtNotifySetImportPidInterServer(notify, &list, 1), INVALID); /* no key yet */
		IS(aclrtNotifyGetExportKey(notify, board->key, sizeof(board->key), 0), 0);
		IS(aclrtNotifySetImportPidInterServer(NULL, &list, 1), INVALID);
		IS(aclrtNotifySetImportPidInterServer(notify, NULL, 1), INVALID);
		IS(aclrtNotifySetImportPidInterServer(notify, &list, 0), INVALID);
		IS(aclrtNotifySetImportPidInterServer(notify, &two, 1), INVALID);
		IS(aclrtNotifySetImportPidInterServer(notify, &wrong, 1), NO_RIGHT);
		IS(aclrtNotifySetImportPidInterServer(notify, &own, 1), 0);
		step();
		step();
		IS(aclrtNotifySetImportPidInterServer(notify, &list, 1), 0);
		IS(aclrtWaitAndResetNotify(notify, stream, 0), 0);
		step();
		IS(aclrtSynchronizeStream(stream), 0);
		IS(byte_at(at), 5);
		IS(aclrtWaitAndResetNotify(notify, stream, 1), 0); /* once */
		IS(aclrtSynchronizeStream(stream), 107020);
		step();
		step();
		return;
	}
	IS(aclrtCreateStream(&stream), 0);
	step();
	IS(aclrtNotifyImportByKey(&notify, board->key, 0), NO_RIGHT);
	step();
	step();
	IS(aclrtNotifyImportByKey(&notify, board->key, 0), 0);
	IS(halShrIdOpen(board->key, &info), 0);
	IS(info.devid, 1 << 18 | 1 << 16 | 3);
	IS(info.flag, 64);
	IS(aclrtWaitAndResetNotify(notify, stream, 0), INVALID);
	IS(aclrtNotifyBatchReset(&notify, 1), INVALID);
	IS(import_fabric(0, &handle), 0);
	IS(aclrtMemsetAsync(map(handle, PAGE), PAGE, 5, PAGE, stream), 0);
	IS(aclrtRecordNotify(notify, stream), 0);
	IS(aclrtSynchronizeStream(stream), 0);
	step();
	IS(aclrtDestroyNotify(notify), 0);
	IS(aclrtRecordNotify(notify, stream), UNKNOWN);
	step();
}

/* The exporter is killed: its name goes, and who has the notify records it for nobody. The link is
 * lost, or its server is stopped: a record is the stream's error. It can be closed in any case. */
TEST_SERVERS(a_notify_outlives_its_exporter_but_not_its_server, 3, SERVER_0_STOPPED)
{
	aclrtServerPid list = { .sdid = 1u << 22, .pid = &board->pid[1], .num = 1 };
	aclrtNotify notify = NULL, other = NULL;
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE };
	aclrtStream stream = NULL;
	const char *text;

	if (server == 2)
		setenv("NPUSIM_SERVER", "0", 1);
	setenv("NPUSIM_FAULT", "link0:2:lost", 1);
	start(0);
	IS(aclrtCreateStream(&stream), 0);
	if (server == 2) {
		IS(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), 0);
		IS(aclrtNotifyGetExportKey(notify, board->key, sizeof(board->key), 0), 0);
		step();
		IS(aclrtNotifySetImportPidInterServer(notify, &list, 1), 0);
		step();
		step();
		_exit(0);
	}
	step();
	step();
	if (server == 1) {
		IS(aclrtNotifyImportByKey(&notify, board->key, 0), 0);
		IS(halShrIdOpen(board->key, &info), 0);
	}
	step();
	if (server == 0)
		for (;;)
			pause();
	wait_for_end_of(board->pid[2]);
	IS(aclrtNotifyImportByKey(&other, board->key, 0), NO_RIGHT);
	IS(aclrtRecordNotify(notify, stream), 0);
	IS(aclrtSynchronizeStream(stream), 0);
	IS(aclrtRecordNotify(notify, stream), 0);
	IS(aclrtSynchronizeStream(stream), STREAM_ERROR);
	text = aclGetRecentErrMsg();
	IS(strstr(text, "or record of a notify on stream") != NULL, 1);
	IS(strstr(text, "the link to server 0") != NULL, 1);
	tell(&board->flag, 2);
	wait_for(&board->flag, 3);
	IS(aclrtRecordNotify(notify, stream), 0);
	IS(aclrtSynchronizeStream(stream), STREAM_ERROR);
	IS(strstr(aclGetRecentErrMsg(), "does not answer: it was stopped") != NULL, 1);
	IS(halShrIdClose(board->key), 0);
	IS(aclrtDestroyNotify(notify), 0);
	IS(halShrIdClose(board->key), DRV_ERROR_PARA_ERROR); /* every use is given back */
}
