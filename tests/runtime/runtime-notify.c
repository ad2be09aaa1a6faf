/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifies of the ACL on the model, within a process and between two. Each test is a process of its
 * own, which those of two processes fork before they use a device.
 */
#include "harness/test.h"

#include "acl/acl.h"
#include "runtime/rt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 4096u

static aclrtStream a, b;

static void begin(int device)
{
	EXPECT_EQ(aclrtSetDevice(device), 0);
	EXPECT_EQ(aclrtCreateStream(&a), 0);
	EXPECT_EQ(aclrtCreateStream(&b), 0);
}

static aclrtNotify make(void)
{
	aclrtNotify notify = NULL;

	EXPECT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), 0);
	return notify;
}

static bool is_idle(aclrtStream stream)
{
	aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;

	EXPECT_EQ(aclrtStreamQuery(stream, &status), 0);
	return status == ACL_STREAM_STATUS_COMPLETE;
}

TEST_CHILD(notify, orders_work_of_two_streams)
{
	aclrtNotify notify;
	char *sent, *got;
	void *memory;

	begin(0);
	notify = make();
	ASSERT_EQ(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	ASSERT_EQ(aclrtMallocHost((void **)&sent, BYTES), 0);
	ASSERT_EQ(aclrtMallocHost((void **)&got, BYTES), 0);
	memset(sent, 7, BYTES);
	memset(got, 0, BYTES);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, b, 0), 0);
	EXPECT_EQ(aclrtMemcpyAsync(got, BYTES, memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, b), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(b, 10), 507046);
	EXPECT_EQ(aclrtMemcpyAsync(memory, BYTES, sent, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, a), 0);
	EXPECT_EQ(aclrtRecordNotify(notify, a), 0);
	EXPECT_EQ(aclrtSynchronizeStream(b), 0);
	EXPECT_EQ(memcmp(got, sent, BYTES), 0);
	/* The wait has taken the record. */
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, b, 1), 0);
	EXPECT_EQ(aclrtSynchronizeStream(b), 107020);
	EXPECT_EQ(aclrtDestroyNotify(notify), 0);
}

TEST_CHILD(notify, is_taken_by_one_waiter_and_reset)
{
	aclrtNotify notify, more[2];
	aclrtStream c;

	begin(0);
	notify = more[0] = make();
	more[1] = make();
	EXPECT_EQ(aclrtCreateStream(&c), 0);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, a, 0), 0);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, b, UINT32_MAX), 0);
	EXPECT_EQ(aclrtRecordNotify(notify, c), 0);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	EXPECT_FALSE(is_idle(b));
	EXPECT_EQ(aclrtRecordNotify(notify, NULL), 0);
	EXPECT_EQ(aclrtSynchronizeStream(b), 0);
	/* Recorded twice is recorded; a reset ends that. */
	EXPECT_EQ(aclrtRecordNotify(notify, c), 0);
	EXPECT_EQ(aclrtRecordNotify(notify, c), 0);
	EXPECT_EQ(aclrtRecordNotify(more[1], c), 0);
	EXPECT_EQ(aclrtSynchronizeStream(c), 0);
	EXPECT_EQ(aclrtNotifyBatchReset(more, 2), 0);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, a, 0), 0);
	EXPECT_EQ(aclrtWaitAndResetNotify(more[1], b, 0), 0);
	EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(a, 10), 507046);
	EXPECT_FALSE(is_idle(b));
	/* Who waits for one that is destroyed fails. */
	EXPECT_EQ(aclrtDestroyNotify(more[1]), 0);
	EXPECT_EQ(aclrtSynchronizeStream(b), 507001);
	EXPECT_EQ(aclrtRecordNotify(notify, c), 0);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
}

TEST_CHILD(notify, refuses_what_cannot_be)
{
	int32_t pid = 1, many[2] = { 1, 2 };
	aclrtNotify notify, other, made_up = &pid;
	aclrtContext context;
	uint32_t id = 0, next = 0;
	uint64_t offset = 0;
	char key[65], again[65];

	EXPECT_EQ(aclrtCreateNotify(&notify, 0), 107002);
	begin(0);
	EXPECT_EQ(aclrtCreateNotify(NULL, 0), 100000);
	EXPECT_EQ(aclrtCreateNotify(&notify, 2), 107000);
	EXPECT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEVICE_USE_ONLY), 207000);
	notify = make();
	other = make();
	EXPECT_EQ(aclrtGetNotifyId(notify, &id), 0);
	EXPECT_EQ(aclrtGetNotifyId(other, &next), 0);
	EXPECT_NE(id, next);
	EXPECT_EQ(rtNotifyGetAddrOffset(notify, &offset), 0);
	EXPECT_EQ(offset, id % 512 * 4 + (uint64_t)(id / 512) * 65536);
	EXPECT_EQ(aclrtGetNotifyId(made_up, &id), 107017);
	EXPECT_EQ(aclrtRecordNotify(NULL, a), 100000);
	EXPECT_EQ(aclrtNotifyBatchReset(&notify, 0), 107000);
	EXPECT_EQ(aclrtNotifySetImportPid(notify, &pid, 1), 107000);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "aclrtNotifyGetExportKey first");
	EXPECT_EQ(aclrtNotifyGetExportKey(notify, key, 64, 0), 107000);
	EXPECT_EQ(aclrtNotifyGetExportKey(notify, key, 65, 1), 107000);
	ASSERT_EQ(aclrtNotifyGetExportKey(notify, key, 65, 0), 0);
	EXPECT_EQ(aclrtNotifyGetExportKey(notify, again, 65, 0), 507000);
	EXPECT_EQ(aclrtNotifySetImportPid(notify, many, 2), 0); /* as documented */
	EXPECT_EQ(aclrtNotifySetImportPid(notify, &pid, 0), 107000);
	EXPECT_EQ(aclrtNotifyGetExportKey(other, key, 65, 2), 0);
	EXPECT_EQ(aclrtNotifySetImportPid(other, &pid, 1), 207006);
	EXPECT_EQ(aclrtNotifyImportByKey(&made_up, "", 0), 107000);
	EXPECT_EQ(aclrtNotifyImportByKey(&made_up, key, 4), 107000);
	key[3] ^= 1;
	EXPECT_EQ(aclrtNotifyImportByKey(&made_up, key, 0), 507899);
	/* Another device: its streams do not wait, and record by import only. */
	ASSERT_EQ(aclrtSetDevice(1), 0);
	EXPECT_EQ(aclrtRecordNotify(notify, NULL), 107000);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, NULL, 0), 107000);
	EXPECT_EQ(aclrtNotifyBatchReset(&notify, 1), 107000);
	EXPECT_EQ(aclrtRecordNotify(notify, a), 107003);
	ASSERT_EQ(aclrtCreateContext(&context, 1), 0);
	ASSERT_EQ(aclrtDestroyContext(context), 0);
	EXPECT_EQ(aclrtDestroyNotify(notify), 107002);
	ASSERT_EQ(aclrtSetDevice(0), 0);
	EXPECT_EQ(aclrtDestroyNotify(notify), 0);
	EXPECT_EQ(aclrtDestroyNotify(notify), 107017);
}

/* ---- two processes ---- */

static int line;

static void tell(const void *data, size_t bytes)
{
	EXPECT_EQ(write(line, data, bytes), (ssize_t)bytes);
}

static void hear(void *data, size_t bytes)
{
	EXPECT_EQ(recv(line, data, bytes, MSG_WAITALL), (ssize_t)bytes);
}

static pid_t fork_peer(void (*peer)(void))
{
	int ends[2];
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	line = ends[pid == 0];
	close(ends[pid != 0]);
	if (pid != 0)
		return pid;
	peer();
	_exit(harness_has_failed() ? 70 : 0);
}

static void join_peer(pid_t pid, int wanted)
{
	int status = -1;

	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), wanted);
}

struct offer {
	char key[65], memory[65];
	uint32_t id;
};

static void importer(void)
{
	struct offer offer;
	aclrtNotify notify, twice;
	int32_t pid = 0;
	uint32_t id = 0;
	void *memory, *fresh;
	char go;

	begin(1);
	EXPECT_EQ(aclrtDeviceGetBareTgid(&pid), 0);
	hear(&offer, sizeof(offer));
	EXPECT_EQ(aclrtNotifyImportByKey(&notify, offer.key, 0), 507899);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "whitelist");
	tell(&pid, sizeof(pid));
	hear(&go, 1);
	ASSERT_EQ(aclrtNotifyImportByKey(&notify, offer.key,
					 ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS),
		  0);
	ASSERT_EQ(aclrtNotifyImportByKey(&twice, offer.key, 0), 0);
	EXPECT_EQ(aclrtGetNotifyId(notify, &id), 0);
	EXPECT_EQ(id, offer.id);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, a, 0), 107000);
	EXPECT_EQ(aclrtNotifySetImportPid(notify, &pid, 1), 507899);
	ASSERT_EQ(aclrtIpcMemImportByKey(&memory, offer.memory,
					 ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS),
		  0);
	ASSERT_EQ(aclrtMalloc(&fresh, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	ASSERT_EQ(aclrtMemset(fresh, BYTES, 9, BYTES), 0);
	EXPECT_EQ(aclrtMemcpyAsync(memory, BYTES, fresh, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, a), 0);
	EXPECT_EQ(aclrtRecordNotify(notify, a), 0);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	hear(&go, 1); /* its maker has destroyed it */
	EXPECT_EQ(aclrtDestroyNotify(twice), 0);
	EXPECT_EQ(aclrtNotifyImportByKey(&twice, offer.key, 0), 507899);
	EXPECT_EQ(aclrtRecordNotify(notify, a), 0);
	EXPECT_EQ(aclrtSynchronizeStream(a), 0);
	tell(&go, 1);
	pause(); /* to be killed with it in its hands */
}

/* Whether one of a round of fresh notifies has the id. */
static bool is_free(uint32_t id)
{
	static aclrtNotify all[8192];
	uint32_t count = 0, got = UINT32_MAX;
	bool found = false;

	while (count < 8192 && aclrtCreateNotify(&all[count], 0) == 0) {
		EXPECT_EQ(aclrtGetNotifyId(all[count++], &got), 0);
		found |= got == id;
	}
	while (count > 0)
		EXPECT_EQ(aclrtDestroyNotify(all[--count]), 0);
	return found;
}

TEST_CHILD(notify, is_recorded_by_another_process)
{
	pid_t peer = fork_peer(importer);
	struct offer offer;
	aclrtNotify notify;
	int32_t pid;
	void *memory;
	char *got, go = 1;

	begin(0);
	notify = make();
	ASSERT_EQ(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	ASSERT_EQ(aclrtMallocHost((void **)&got, BYTES), 0);
	ASSERT_EQ(aclrtIpcMemGetExportKey(memory, BYTES, offer.memory, 65,
					  ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION),
		  0);
	ASSERT_EQ(aclrtNotifyGetExportKey(notify, offer.key, 65, 0), 0);
	EXPECT_EQ(aclrtGetNotifyId(notify, &offer.id), 0);
	EXPECT_EQ(aclrtWaitAndResetNotify(notify, b, 0), 0);
	EXPECT_EQ(aclrtMemcpyAsync(got, BYTES, memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, b), 0);
	tell(&offer, sizeof(offer));
	hear(&pid, sizeof(pid));
	EXPECT_FALSE(is_idle(b));
	EXPECT_EQ(aclrtNotifySetImportPid(notify, &pid, 1), 0);
	tell(&go, 1);
	EXPECT_EQ(aclrtSynchronizeStream(b), 0); /* by the other process's record */
	EXPECT_EQ(got[0], 9);
	EXPECT_EQ(got[BYTES - 1], 9);
	EXPECT_EQ(aclrtDestroyNotify(notify), 0);
	EXPECT_FALSE(is_free(offer.id)); /* the other process uses it still */
	tell(&go, 1);
	hear(&go, 1);
	kill(peer, SIGKILL);
	join_peer(peer, SIGKILL);
	EXPECT_TRUE(is_free(offer.id));
}

/* Ids are unique on the device, and those of a process that was killed come back. */
static void taker(void)
{
	uint32_t ids[8191], count = 0;
	aclrtNotify notify;

	begin(0);
	while (count < 8191 && aclrtCreateNotify(&notify, 0) == 0)
		EXPECT_EQ(aclrtGetNotifyId(notify, &ids[count++]), 0);
	EXPECT_EQ(count, 8191u);
	tell(&ids[0], sizeof(ids[0]));
	pause();
}

TEST_CHILD(notify, is_one_of_the_device)
{
	pid_t peer = fork_peer(taker);
	aclrtNotify notify, other;
	uint32_t theirs, mine = 0;

	hear(&theirs, sizeof(theirs));
	begin(0);
	notify = make();
	EXPECT_EQ(aclrtGetNotifyId(notify, &mine), 0);
	EXPECT_NE(mine, theirs);
	EXPECT_EQ(aclrtCreateNotify(&other, 0), 207009);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "all 8192 notify ids of device 0");
	kill(peer, SIGKILL);
	join_peer(peer, SIGKILL);
	EXPECT_EQ(aclrtCreateNotify(&other, 0), 0);
	/* A reset of the device gives back all that the process has of it. */
	EXPECT_EQ(aclrtResetDevice(0), 0);
	EXPECT_EQ(aclrtSetDevice(0), 0);
	EXPECT_TRUE(is_free(mine));
}
