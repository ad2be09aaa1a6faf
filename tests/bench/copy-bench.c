/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of 1 GiB through the ACL against plain memcpy of the same bytes on the same pages, turn
 * and turn about in one run: the device's memory is mapped to the CPU, too, so that memcpy reaches
 * it. CPU time of the whole process, best of five. And what one of 8 bytes costs: of memory of the
 * program, of a local variable, which may lie in a page that need not be checked, and of pinned
 * memory.
 */
#include <stdlib.h>
#include <string.h>

#include "bench-acl.h"
#include "bench.h"

#define GIB ((size_t)1 << 30)

static aclrtStream stream;
static aclrtDrvMemHandle handle;

/* Memory of device 0 that the CPU reaches, too. */
static char *device_memory(size_t bytes)
{
	aclrtMemAccessDesc host = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				    .location = { 0, ACL_MEM_LOCATION_TYPE_HOST } };
	void *va;

	check(aclrtReserveMemAddress(&va, bytes, 0, NULL, 1), "aclrtReserveMemAddress");
	handle = create(0, bytes);
	check(aclrtMapMem(va, bytes, 0, handle, 0), "aclrtMapMem");
	check(aclrtMemSetAccess(va, bytes, &host, 1), "aclrtMemSetAccess");
	memset(va, 1, bytes);
	return va;
}

static void copy_sync(void *to, const void *from)
{
	check(aclrtMemcpy(to, GIB, from, GIB, ACL_MEMCPY_DEFAULT), "aclrtMemcpy");
}

static void copy_async(void *to, const void *from)
{
	check(aclrtMemcpyAsync(to, GIB, from, GIB, ACL_MEMCPY_DEFAULT, stream), "aclrtMemcpyAsync");
	check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
}

static void plain(void *to, const void *from)
{
	memcpy(to, from, GIB);
}

static double seconds_of(void (*copy)(void *, const void *), void *to, const void *from)
{
	double start = bench_cpu_seconds();

	copy(to, from);
	return bench_cpu_seconds() - start;
}

static void compare(const char *what, void (*copy)(void *, const void *), char *to,
		    const char *from)
{
	double ours = 1e9, theirs = 1e9;

	copy(to, from);
	for (int round = 0; round < BENCH_ROUNDS; round++) {
		double seconds = seconds_of(plain, to, from);

		theirs = seconds < theirs ? seconds : theirs;
		seconds = seconds_of(copy, to, from);
		ours = seconds < ours ? seconds : ours;
	}
	bench_at_most(what, ours / theirs, "x memcpy", 1.3);
}

/* ---- 8 bytes ---- */

#define SMALL 20000

static void small_to_device(void *arg)
{
	void *const *ends = arg;

	for (int i = 0; i < SMALL; i++)
		check(aclrtMemcpy(ends[0], 8, ends[1], 8, ACL_MEMCPY_HOST_TO_DEVICE),
		      "aclrtMemcpy");
}

static void small_to_host(void *arg)
{
	void *const *ends = arg;

	for (int i = 0; i < SMALL; i++)
		check(aclrtMemcpy(ends[1], 8, ends[0], 8, ACL_MEMCPY_DEVICE_TO_HOST),
		      "aclrtMemcpy");
}

static void compare_small(void *device, void *host, void *pinned)
{
	uint64_t local = 1;
	void *hosts[] = { host, &local, pinned };
	static const char *const names[] = { "heap", "local", "pinned" };

	for (int i = 0; i < 3; i++) {
		void *ends[] = { device, hosts[i] };
		char name[64];

		snprintf(name, sizeof(name), "8 B, host to device, %s", names[i]);
		bench_at_most(name,
			      1e9 / bench_rate_by(bench_cpu_seconds, small_to_device, ends, SMALL),
			      "ns", 350);
		snprintf(name, sizeof(name), "8 B, device to host, %s", names[i]);
		bench_line(name, "%8.2f ns",
			   1e9 / bench_rate_by(bench_cpu_seconds, small_to_host, ends, SMALL));
	}
}

int main(void)
{
	char *host = malloc(GIB), *device;
	void *pinned;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	check(aclrtCreateStream(&stream), "aclrtCreateStream");
	check(aclrtMallocHost(&pinned, GIB), "aclrtMallocHost");
	device = device_memory(2 * GIB);
	memset(host, 2, GIB);
	memset(pinned, 3, GIB);
	compare("1 GiB, host to device", copy_sync, device, host);
	compare("1 GiB, device to host", copy_sync, host, device);
	compare("1 GiB, device to device", copy_sync, device, device + GIB);
	compare("1 GiB, pinned host to device, async", copy_async, device, pinned);
	compare_small(device, host, pinned);
	check(aclrtUnmapMem(device), "aclrtUnmapMem");
	check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	check(aclrtReleaseMemAddress(device), "aclrtReleaseMemAddress");
	check(aclrtFreeHost(pinned), "aclrtFreeHost");
	free(host);
	return 0;
}
