/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers of a supernode: identities, fabric handles within a server and between two, life times
 * of memory that another server holds, and names across servers. Each server is a process.
 */
#include <dirent.h>

#include "runtime/rt.h"
#include "supernode.h"

#define SERVERS  4u
#define REFUSED  207000
#define NO_RIGHT 507899

/* Of libascend_hal.so. */
drvError_t halMemImportFromShareableHandleV2(drv_mem_handle_type type, struct MemShareHandle *block,
					     uint32_t device, drv_mem_handle_t **handle);

static uint32_t word_of(unsigned handle, unsigned index)
{
	uint32_t word;

	memcpy(&word, (const char *)&board->handle[handle] + 4 * index, sizeof(word));
	return word;
}

/* ---- identities ---- */

static int64_t asked(uint32_t device, int32_t info)
{
	int64_t value = -1;

	IS(rtGetDeviceInfo(device, 0, info, &value), 0);
	return value;
}

TEST_SERVERS(each_server_has_its_ids, 3, EACH_ENDS)
{
	static const uint32_t low[] = { 0, 65537, 262146 }; /* supernode.md's samples */
	int64_t value = 0;

	unsetenv("NPUSIM_DEVICES"); /* all that a server has */
	start(0);
	for (unsigned d = 0; d < 3; d++)
		IS(asked(d, INFO_TYPE_SDID), server << 22 | low[d]);
	IS(asked(15, INFO_TYPE_SDID), server << 22 | 1900559);
	IS(asked(3, INFO_TYPE_SERVER_ID), server);
	IS(asked(0, INFO_TYPE_SCALE_TYPE), 384);
	IS(asked(0, INFO_TYPE_SUPER_POD_ID), 0);
	IS(asked(0, INFO_TYPE_ADDR_MODE), 1);
	IS(asked(0, INFO_TYPE_MAINBOARD_ID), 0x14);
	IS(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID, &value), 0);
	IS(value, server << 22 | 65537);
	IS(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_SUPER_POD_SERVER_ID, &value), 0);
	IS(value, server);
}

TEST_SERVERS(a_910C_in_none_has_no_fabric_handles, 1, EACH_ENDS)
{
	aclrtDrvMemHandle handle;

	(void)server;
	setenv("NPUSIM_SUPERNODE", "none", 1);
	setenv("NPUSIM_SOC", "Ascend910_9391", 1);
	unsetenv("NPUSIM_SERVER");
	start(0);
	IS(asked(1, INFO_TYPE_SDID), INT64_C(4290772992) + 65537);
	IS(asked(0, INFO_TYPE_SERVER_ID), 0x3ff);
	IS(asked(0, INFO_TYPE_SUPER_POD_ID), 0xffffffff);
	handle = create(PAGE);
	IS(export_fabric(handle, 1, 0), REFUSED);
	IS(import_fabric(0, &handle), REFUSED);
}

/* ---- fabric handles ---- */

TEST_SERVERS(bytes_cross_between_servers, SERVERS, EACH_ENDS)
{
	unsigned from = (server + 1) % SERVERS;
	aclrtDrvMemHandle own, other = NULL, again = NULL;
	aclrtPhysicalMemProp prop;
	void *at, *there;

	start(0);
	own = create(PAGE);
	at = map(own, PAGE);
	IS(aclrtMemset(at, PAGE, (int)(server + 10), PAGE), 0);
	memset(&board->handle[server], 0xee, sizeof(board->handle[server]));
	IS(export_fabric(own, 0, server), 0); /* flags 0, and no list of processes */
	IS(word_of(server, 0), 1);
	IS(word_of(server, 1), server << 22);
	IS(word_of(server, 2), 0);
	IS(word_of(server, 3), 0);
	IS(word_of(server, 5), 0xeeeeeeee); /* as the caller had it */
	IS(word_of(server, 31), 0xeeeeeeee);
	step();
	IS(import_fabric(from, &other), 0);
	IS(import_fabric(from, &again), 0);
	IS(other != again, 1); /* each import is one of its own */
	IS(aclrtMemGetAllocationPropertiesFromHandle(other, &prop), 0);
	IS(prop.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	there = map(other, PAGE);
	IS(byte_at(there), from + 10);
	IS(byte_at((char *)there + PAGE - 1), from + 10);
	step();
	IS(aclrtMemset(there, PAGE, (int)(server + 100), PAGE), 0);
	step();
	IS(byte_at(at), (server + SERVERS - 1) % SERVERS + 100);
	IS(aclrtUnmapMem(there), 0);
	IS(aclrtFreePhysical(other), 0);
	IS(aclrtFreePhysical(again), 0);
}

/* What holds inside one server alone, and what garbage gets. */
TEST_SERVERS(refusals_by_code, 2, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL, other = NULL;
	aclrtMemFabricHandle zero = { { 0 } };
	struct MemShareHandle block;
	drv_mem_handle_t *made;
	int32_t pid = getpid();

	start(0);
	if (server == 0) {
		handle = create(PAGE);
		IS(export_fabric(handle, 0, 0), 0);
		IS(export_fabric(handle, 0, 0), NO_RIGHT); /* once */
		handle = create(PAGE);
		IS(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1,
						   &board->number),
		   0);
	}
	step();
	if (server == 1) {
		IS(aclrtMemImportFromShareableHandle(board->number, 0, &other), UNKNOWN);
		IS(aclrtMemSetPidToShareableHandleV2(&board->handle[0],
						     ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &pid, 1),
		   UNKNOWN);
		IS(aclrtMemImportFromShareableHandleV2(&zero, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0,
						       &other),
		   107000);
		memcpy(&block, &board->handle[0], sizeof(block));
		IS(halMemImportFromShareableHandleV2(MEM_HANDLE_TYPE_FABRIC, &block, 65, &made),
		   0xfffe);                /* no CPU maps it */
		block.share_info[16] ^= 1; /* the share's id */
		IS(halMemImportFromShareableHandleV2(MEM_HANDLE_TYPE_FABRIC, &block, 0, &made), 4);
		block.share_info[16] ^= 1;
		block.share_info[7] = 0xff; /* a server that there cannot be */
		IS(halMemImportFromShareableHandleV2(MEM_HANDLE_TYPE_FABRIC, &block, 0, &made), 4);
		IS(import_fabric(0, &other), 0);
		IS(aclrtMemExportToShareableHandleV2(other, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
						     &zero),
		   NO_RIGHT);
	}
	step();
}

TEST_SERVERS(host_memory_is_reached_by_devices_alone, 2, EACH_ENDS)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_MEM_LOCATION_TYPE_HOST);
	aclrtMemAccessDesc access = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				      .location = { .type = ACL_MEM_LOCATION_TYPE_HOST } };
	aclrtDrvMemHandle handle = NULL;
	void *at;

	start(0);
	if (server == 0) {
		IS(aclrtMallocPhysical(&handle, PAGE, &prop, 0), 0);
		at = map(handle, PAGE);
		IS(aclrtMemSetAccess(at, PAGE, &access, 1), 0);
		memset(at, 77, PAGE);
		IS(export_fabric(handle, 1, 0), 0);
		IS(word_of(0, 1), 0);
		IS(word_of(0, 2), 65);
		IS(word_of(0, 3), 65);
		step();
		step();
		IS(*(volatile unsigned char *)at, 78); /* as device 0 of the other server left it */
		return;
	}
	step();
	IS(import_fabric(0, &handle), 0);
	at = map(handle, PAGE);
	IS(byte_at(at), 77);
	IS(aclrtMemSetAccess(at, PAGE, &access, 1), REFUSED);
	IS(aclrtMemset(at, PAGE, 78, PAGE), 0);
	step();
}

/* ---- names ---- */

TEST_SERVERS(names_cross_by_the_list_of_a_server, 2, EACH_ENDS)
{
	aclrtServerPid list = { .sdid = 1u << 22, .pid = &board->pid[1], .num = 1 },
		       nobody = { .sdid = 40u << 22, .pid = &board->pid[1], .num = 1 };
	void *at = NULL;

	start(0);
	step(); /* a list names who is there */
	if (server == 0) {
		IS(aclrtMalloc(&at, PAGE, ACL_MEM_MALLOC_HUGE_ONLY), 0);
		IS(aclrtMemset(at, PAGE, 66, PAGE), 0);
		/* The flag lets in its own server alone, and takes no list. */
		IS(aclrtIpcMemGetExportKey(at, PAGE, board->key, sizeof(board->key),
					   ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION),
		   0);
		IS(aclrtIpcMemImportPidInterServer(board->key, &list, 1), 207006);
		step();
		step();
		IS(aclrtIpcMemClose(board->key), 0);
		IS(aclrtIpcMemGetExportKey(at, PAGE, board->key, sizeof(board->key), 0), 0);
		/* Its own list does not let another server in. */
		IS(aclrtIpcMemSetImportPid(board->key, &board->pid[1], 1), 0);
		step();
		step();
		IS(aclrtIpcMemImportPidInterServer(board->key, &nobody, 1), UNKNOWN);
		IS(aclrtIpcMemImportPidInterServer(board->key, &list, 1), 0);
		step();
		step();
		return;
	}
	step();
	IS(aclrtIpcMemImportByKey(&at, board->key, 0), NO_RIGHT);
	IS(strstr(aclGetRecentErrMsg(), ", SDID 4194304)") != NULL, 1);
	step();
	step();
	IS(aclrtIpcMemImportByKey(&at, board->key, 0), NO_RIGHT);
	step();
	step();
	IS(aclrtIpcMemImportByKey(&at, board->key, 0), 0);
	IS(byte_at(at), 66);
	IS(aclrtIpcMemClose(board->key), 0);
	step();
}

/* ---- life time ---- */

/* The exporter frees: pages stay until the last importer's end, and may be imported meanwhile. */
TEST_SERVERS(pages_stay_while_an_importer_holds_them, 3, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL;
	size_t before;

	start(0);
	before = free_bytes();
	if (server == 0) {
		handle = create(PAGE);
		IS(export_fabric(handle, 0, 0), 0);
	}
	step();
	if (server == 1)
		IS(import_fabric(0, &handle), 0);
	step();
	if (server == 0) {
		IS(aclrtFreePhysical(handle), 0);
		IS(before - free_bytes(), PAGE);
	}
	step();
	if (server == 2)
		IS(import_fabric(0, &handle), 0);
	step();
	if (server == 1)
		IS(aclrtFreePhysical(handle), 0);
	step();
	if (server == 0)
		IS(before - free_bytes(), PAGE);
	step();
	if (server == 2)
		IS(aclrtFreePhysical(handle), 0);
	step();
	if (server == 0)
		IS(before, free_bytes());
	else
		IS(import_fabric(0, &handle), UNKNOWN);
	step();
}

/* The exporter dies, and with it the server's last process: the memory stays, and a new process of
 * the server finds it in use. */
TEST_SERVERS(memory_outlives_the_servers_last_process, 3, EACH_ENDS)
{
	aclrtDrvMemHandle handle = NULL, again = NULL;
	size_t free_now = 0, total = 0;
	void *at;

	if (server == 2) {
		setenv("NPUSIM_SERVER", "0", 1);
		wait_for(&board->flag, 1);
		start(0);
		IS(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total), 0);
		IS(total - free_now, PAGE);
		tell(&board->flag, 2);
		wait_for(&board->flag, 3);
		IS(total, free_bytes());
		tell(&board->flag, 4);
		return;
	}
	start(0);
	if (server == 0) {
		handle = create(PAGE);
		at = map(handle, PAGE);
		IS(aclrtMemset(at, PAGE, 9, PAGE), 0);
		IS(export_fabric(handle, 0, 0), 0);
		tell(&board->flag, 10);
		wait_for(&board->flag, 11);
		_exit(0); /* nothing is closed */
	}
	wait_for(&board->flag, 10);
	IS(import_fabric(0, &handle), 0);
	tell(&board->flag, 11);
	wait_for_end_of(board->pid[0]);
	at = map(handle, PAGE);
	IS(byte_at(at), 9);
	IS(import_fabric(0, &again), 0); /* somebody holds it */
	tell(&board->flag, 1);
	wait_for(&board->flag, 2);
	IS(aclrtUnmapMem(at), 0);
	IS(aclrtFreePhysical(again), 0);
	IS(aclrtFreePhysical(handle), 0);
	IS(import_fabric(0, &handle), UNKNOWN);
	tell(&board->flag, 3);
	wait_for(&board->flag, 4);
}

/* The importer dies, by itself or by SIGKILL: what it held and mapped goes back. */
static void importer_dies(unsigned server, bool killed)
{
	aclrtDrvMemHandle handle = NULL;
	size_t before;

	start(0);
	before = free_bytes();
	if (server == 1) {
		wait_for(&board->flag, 1);
		IS(import_fabric(0, &handle), 0);
		IS(byte_at(map(handle, PAGE)), 0);
		tell(&board->flag, 2);
		wait_for(&board->flag, 3);
		if (killed)
			raise(SIGKILL);
		_exit(0);
	}
	handle = create(PAGE);
	IS(export_fabric(handle, 0, 0), 0);
	tell(&board->flag, 1);
	wait_for(&board->flag, 2);
	IS(aclrtFreePhysical(handle), 0);
	IS(before - free_bytes(), PAGE);
	tell(&board->flag, 3);
	wait_for_end_of(board->pid[1]);
	IS(before, free_bytes());
}

TEST_SERVERS(a_dead_importer_keeps_nothing, 2, EACH_ENDS)
{
	importer_dies(server, false);
}

TEST_SERVERS(a_killed_importer_keeps_nothing, 2, SERVER_1_KILLED)
{
	importer_dies(server, true);
}

/* A server that was stopped: 107017 at import and at free, after the time that finding it out
 * takes; a copy fails. */
TEST_SERVERS(a_stopped_server_is_lost_for_its_importers, 2, SERVER_0_STOPPED)
{
	aclrtDrvMemHandle handle = NULL, other = NULL;
	unsigned char byte;
	uint64_t began = 0, ended = 0;
	void *at;

	start(0);
	if (server == 0) {
		handle = create(PAGE);
		IS(export_fabric(handle, 0, 0), 0);
		tell(&board->flag, 1);
		for (;;)
			pause(); /* until it is stopped */
	}
	wait_for(&board->flag, 1);
	IS(import_fabric(0, &handle), 0);
	at = map(handle, PAGE);
	IS(byte_at(at), 0);
	tell(&board->flag, 2);
	wait_for(&board->flag, 3);
	began = npusim_now_ps();
	IS(import_fabric(0, &other), UNKNOWN);
	ended = npusim_now_ps();
	IS((ended - began) / 1000000000, 30000); /* ms */
	IS(import_fabric(0, &other), UNKNOWN);
	began = npusim_now_ps();
	IS((began - ended) / 1000000000, 1000);
	IS(aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST) != 0, 1);
	IS(aclrtUnmapMem(at), 0);
	IS(aclrtFreePhysical(handle), UNKNOWN);
	IS(aclrtFreePhysical(handle), UNKNOWN); /* the handle stays */
	handle = create(PAGE);                  /* all else goes on */
	IS(byte_at(map(handle, PAGE)), 0);
}

/* Queued copies of a server's memory: those that ran before it was stopped are done, later ones are
 * the stream's error, and other streams go on. */
TEST_SERVERS(queued_copies_of_a_stopped_server_are_the_streams_error, 2, SERVER_0_STOPPED)
{
	aclrtDrvMemHandle handle = NULL;
	aclrtStream stream = NULL, other = NULL;
	unsigned char *bytes;
	void *at, *own;

	start(0);
	if (server == 0) {
		handle = create(PAGE);
		IS(aclrtMemset(map(handle, PAGE), PAGE, 5, PAGE), 0);
		IS(export_fabric(handle, 0, 0), 0);
		tell(&board->flag, 1);
		for (;;)
			pause();
	}
	wait_for(&board->flag, 1);
	own = map(create(PAGE), PAGE);
	IS(aclrtCreateStream(&stream), 0);
	IS(aclrtCreateStream(&other), 0);
	IS(aclrtMallocHost((void **)&bytes, 2), 0);
	IS(import_fabric(0, &handle), 0);
	at = map(handle, PAGE);
	IS(aclrtMemcpyAsync(own, PAGE, at, PAGE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
	IS(aclrtSynchronizeStream(stream), 0);
	tell(&board->flag, 2);
	wait_for(&board->flag, 3);
	bytes[0] = 66;
	IS(aclrtMemcpyAsync(bytes, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
	IS(aclrtMemcpyAsync(bytes + 1, 1, own, 1, ACL_MEMCPY_DEVICE_TO_HOST, other), 0);
	IS(aclrtSynchronizeStream(stream), 507001);
	IS(aclrtSynchronizeStream(other), 0);
	IS(bytes[0], 66);
	IS(bytes[1], 5);
	IS(aclrtFreeHost(bytes), 0);
}

/* ---- a ring of all servers ---- */

static unsigned descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 3;
}

static void body_ring(unsigned server)
{
	aclrtDrvMemHandle own, other = NULL;
	unsigned count;
	void *at, *there;

	start(0);
	own = create(4 * PAGE);
	at = map(own, 4 * PAGE);
	IS(aclrtMemset(at, 4 * PAGE, (int)(server + 1), 4 * PAGE), 0);
	IS(export_fabric(own, 0, server), 0);
	step();
	for (unsigned k = 1; k < RING; k++) {
		unsigned from = (server + k) % RING;

		IS(import_fabric(from, &other), 0);
		there = map(other, 4 * PAGE);
		IS(byte_at((char *)there + 4 * PAGE - 1), from + 1);
	}
	count = descriptors();
	if (count > board->most_descriptors)
		board->most_descriptors = count;
	step();
}

TEST(supernode, forty_eight_servers_see_each_other)
{
	run_servers(RING, EACH_ENDS, body_ring);
	EXPECT_LE(board->most_descriptors, 100u);
}
