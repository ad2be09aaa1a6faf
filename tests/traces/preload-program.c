/* SPDX-License-Identifier: Apache-2.0
 *
 * What preload-test.py runs under libnpusim-record.so: programs linked with an ACL library, by
 * their names. Each ends with 0 where it was answered as it expects.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

#define MIB   ((size_t)1 << 20)
#define CHUNK (2 * MIB)

static void check(aclError code, aclError wanted, const char *call)
{
	if (code == wanted)
		return;
	fprintf(stderr, "%s answered %d, not %d: %s\n", call, code, wanted, aclGetRecentErrMsg());
	_exit(1);
}
#define OK(call)          check((call), ACL_SUCCESS, #call)
#define FAILS(code, call) check((call), (code), #call)

static aclrtDrvMemHandle create(uint32_t device, aclrtMemAttr attr)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = attr,
				      .location = { .id = device,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle;

	OK(aclrtMallocPhysical(&handle, CHUNK, &prop, 0));
	return handle;
}

/* ---- calls of every verb ---- */

static void virtual_memory(void)
{
	aclrtMemAccessDesc access[2] = {
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
		  .location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST } },
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
		  .location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE } },
	};
	aclrtDrvMemHandle one = create(0, ACL_HBM_MEM_HUGE), two = create(1, ACL_HBM_MEM_NORMAL);
	aclrtDrvMemHandle again, other;
	uint64_t share;
	int32_t logic;
	void *va, *hinted;

	OK(aclrtGetLogicDevIdByUserDevId(0, &logic));
	access[1].location.id = (uint32_t)logic;
	OK(aclrtReserveMemAddress(&va, 16 * MIB, 0, NULL, 1));
	OK(aclrtReserveMemAddress(&hinted, 4 * MIB, 0, (char *)va + ((size_t)1 << 40), 1));
	OK(aclrtMapMem(va, CHUNK, 0, one, 0));
	OK(aclrtMapMem(hinted, CHUNK, 0, two, 0));
	OK(aclrtMemSetAccess(va, CHUNK, access, 2));
	FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, aclrtMapMem(va, CHUNK, 0, two, 0));
	OK(aclrtMemRetainAllocationHandle(va, &again));
	OK(aclrtMemExportToShareableHandle(one, ACL_MEM_HANDLE_TYPE_NONE,
					   ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &share));
	FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, aclrtMemImportFromShareableHandle(share, 0, &other));
	OK(aclrtMapMem((char *)va + 3 * CHUNK, CHUNK, 0, again, 0));
	OK(aclrtMemset((char *)va + 3 * CHUNK, CHUNK, 7, CHUNK));
	OK(aclrtUnmapMem((char *)va + 3 * CHUNK));
	OK(aclrtFreePhysical(again));
	OK(aclrtUnmapMem(va));
	OK(aclrtUnmapMem(hinted));
	OK(aclrtFreePhysical(one));
	OK(aclrtFreePhysical(two));
	OK(aclrtReleaseMemAddress(hinted));
	OK(aclrtReleaseMemAddress(va));
}

static void classic_memory(void)
{
	static char bytes[64];
	void *small, *large, *normal, *aligned, *host;
	aclrtStream stream;

	OK(aclrtMalloc(&small, 1000, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc(&large, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocAlign32(&aligned, MIB + 1, ACL_MEM_MALLOC_HUGE_ONLY));
	OK(aclrtMallocWithCfg(&normal, 5000, ACL_MEM_MALLOC_NORMAL_ONLY, NULL));
	OK(aclrtMallocHost(&host, 4096));
	memset(host, 1, 4096);
	OK(aclrtMemcpy((char *)large + 16, 64, bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemcpy(small, 64, (char *)large + 16, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
	OK(aclrtMemcpy2d(normal, 512, host, 64, 64, 8, ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemset(aligned, MIB, 1, MIB));
	OK(aclrtCreateStream(&stream));
	OK(aclrtMemcpyAsync((char *)host + 64, 64, small, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
	OK(aclrtMemcpyAsync(large, 4096, normal, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
	OK(aclrtSynchronizeStream(stream));
	OK(aclrtDestroyStream(stream));
	OK(aclrtFree(small));
	OK(aclrtFree(aligned));
	OK(aclrtFree(normal));
	OK(aclrtFreeWithDevSync(large));
	OK(aclrtFreeHost(host));
}

static int all(void)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(1));
	OK(aclrtSetDevice(0));
	virtual_memory();
	classic_memory();
	OK(aclrtResetDevice(1));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
	return 0;
}

/* ---- what is left as it is ---- */

static int outcomes(void)
{
	void *va = NULL;

	OK(aclrtSetDevice(0));
	errno = ERANGE;
	OK(aclrtReserveMemAddress(&va, 4 * MIB, 0, NULL, 1));
	if (errno != ERANGE)
		return 2;
	FAILS(ACL_ERROR_INVALID_PARAM, aclrtReserveMemAddress(NULL, 4 * MIB, 0, NULL, 1));
	FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, aclrtUnmapMem(va));
	FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(99));
	if (strstr(aclGetRecentErrMsg(), "aclrtSetDevice") == NULL)
		return 3;
	OK(aclrtReleaseMemAddress(va));
	OK(aclrtResetDevice(0));
	return 0;
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS  200

static void *work(void *unused)
{
	aclrtDrvMemHandle handle;
	void *va;

	(void)unused;
	OK(aclrtSetDevice(0));
	handle = create(0, ACL_HBM_MEM_HUGE);
	OK(aclrtReserveMemAddress(&va, CHUNK, 0, NULL, 1));
	for (int i = 0; i < ROUNDS; i++) {
		OK(aclrtMapMem(va, CHUNK, 0, handle, 0));
		OK(aclrtUnmapMem(va));
	}
	OK(aclrtReleaseMemAddress(va));
	OK(aclrtFreePhysical(handle));
	return NULL;
}

static int threads(void)
{
	pthread_t ids[THREADS];

	OK(aclrtSetDevice(0));
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&ids[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

/* ---- processes ---- */

/* Forever; the test kills it. It tells when it has begun. */
static int forever(void)
{
	aclrtDrvMemHandle handle;
	void *va;

	OK(aclrtSetDevice(0));
	handle = create(0, ACL_HBM_MEM_HUGE);
	OK(aclrtReserveMemAddress(&va, CHUNK, 0, NULL, 1));
	if (write(STDOUT_FILENO, "x", 1) != 1)
		return 1;
	for (;;) {
		OK(aclrtMapMem(va, CHUNK, 0, handle, 0));
		OK(aclrtUnmapMem(va));
	}
}

/* A child of fork(), and one that execs this program anew; a child that comes after the parent's
 * first calls, too. */
static int family(const char *self)
{
	int status, failed = 0;
	uint32_t count;

	OK(aclrtGetDeviceCount(&count));
	for (int which = 0; which < 3; which++) {
		pid_t pid;

		if (which == 2)
			OK(aclrtSetDevice(0));
		pid = fork();
		if (pid == 0 && which == 0)
			_exit(all());
		if (pid == 0 && which == 1)
			execl(self, self, "all", (char *)NULL);
		if (pid == 0) { /* no device lives in the child: the call fails, and is recorded */
			void *va;

			_exit(aclrtReserveMemAddress(&va, CHUNK, 0, NULL, 1) == ACL_SUCCESS);
		}
		waitpid(pid, &status, 0);
		failed |= status;
	}
	OK(aclrtResetDevice(0));
	return failed != 0;
}

/* Exports a handle to a program of its own, "import NUMBER". */
static int share(const char *self)
{
	aclrtDrvMemHandle handle;
	uint64_t number;
	char text[32];
	int status;
	pid_t pid;

	OK(aclrtSetDevice(0));
	handle = create(0, ACL_HBM_MEM_HUGE);
	OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
					   ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &number));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	pid = fork();
	if (pid == 0)
		execl(self, self, "import", text, (char *)NULL);
	waitpid(pid, &status, 0);
	OK(aclrtFreePhysical(handle));
	return status != 0;
}

static int import(const char *number)
{
	aclrtDrvMemHandle handle;

	OK(aclrtSetDevice(0));
	OK(aclrtMemImportFromShareableHandle(strtoull(number, NULL, 10), 0, &handle));
	OK(aclrtFreePhysical(handle));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc >= 2 ? argv[1] : "";

	if (strcmp(what, "share") == 0)
		return share(argv[0]);
	if (strcmp(what, "import") == 0 && argc == 3)
		return import(argv[2]);

	if (strcmp(what, "all") == 0)
		return all();
	if (strcmp(what, "outcomes") == 0)
		return outcomes();
	if (strcmp(what, "threads") == 0)
		return threads();
	if (strcmp(what, "forever") == 0)
		return forever();
	if (strcmp(what, "family") == 0)
		return family(argv[0]);
	fprintf(stderr, "usage: %s all|outcomes|threads|forever|family|share\n", argv[0]);
	return 2;
}
