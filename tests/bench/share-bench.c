/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of what processes share, through the ACL: allocation by two processes at once against
 * one alone, and the way of a handle from one process into another until its first byte is read.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define SECONDS   1.0
#define HANDOVERS 1001

static void start_runtime(void)
{
	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
}

/* ---- creating and freeing, alone and side by side ---- */

struct shared {
	volatile int ready, go;
	double rate[2];
};

static void worker(struct shared *shared, int index)
{
	long count = 0;
	start_runtime();
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		usleep(100);
	double start = bench_seconds(), end = start;
	while (end - start < SECONDS) {
		for (int i = 0; i < 1000; i++)
			check(aclrtFreePhysical(create(0, HUGE_BYTES)), "aclrtFreePhysical");
		count += 1000;
		end = bench_seconds();
	}
	shared->rate[index] = (double)count / (end - start);
	_exit(0);
}

static void run_workers(struct shared *shared, int workers)
{
	memset(shared, 0, sizeof *shared);
	for (int i = 0; i < workers; i++) {
		if (fork() == 0)
			worker(shared, i);
	}
	while (shared->ready < workers)
		usleep(100);
	shared->go = 1;
	while (wait(NULL) > 0)
		;
}

/* ---- a handle's way into another process ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void importer(int from, int to)
{
	uint64_t shareable;
	void *va;

	start_runtime();
	check(aclrtReserveMemAddress(&va, HUGE_BYTES, 0, NULL, 1), "aclrtReserveMemAddress");
	while (read(from, &shareable, sizeof shareable) == sizeof shareable) {
		aclrtDrvMemHandle handle;
		char byte;
		check(aclrtMemImportFromShareableHandle(shareable, 0, &handle), "import");
		check(aclrtMapMem(va, HUGE_BYTES, 0, handle, 0), "aclrtMapMem");
		check(aclrtMemcpy(&byte, 1, va, 1, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
		if (write(to, &byte, 1) != 1)
			_exit(1);
		check(aclrtUnmapMem(va), "aclrtUnmapMem");
		check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	}
	_exit(0);
}

static void handovers(void)
{
	static double times[HANDOVERS];
	int out[2], back[2];

	if (pipe(out) != 0 || pipe(back) != 0)
		exit(1);
	if (fork() == 0) {
		close(out[1]);
		importer(out[0], back[1]);
	}
	start_runtime();
	for (int i = 0; i < HANDOVERS; i++) {
		aclrtDrvMemHandle handle = create(0, HUGE_BYTES);
		uint64_t shareable;
		char byte;
		double start = bench_seconds();
		check(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
						      ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
						      &shareable),
		      "export");
		if (write(out[1], &shareable, sizeof shareable) != sizeof shareable ||
		    read(back[0], &byte, 1) != 1)
			exit(1);
		times[i] = (bench_seconds() - start) * 1e6;
		check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	}
	close(out[1]);
	wait(NULL);
	qsort(times, HANDOVERS, sizeof times[0], by_value);
	bench_line("export, import, map, first byte read", "%.1f us median, %.1f us p99",
		   times[HANDOVERS / 2], times[HANDOVERS * 99 / 100]);
}

static void round_trips(void)
{
	static double times[HANDOVERS];
	int out[2], back[2];
	uint64_t word = 0;
	char byte;

	if (pipe(out) != 0 || pipe(back) != 0)
		exit(1);
	if (fork() == 0) {
		close(out[1]);
		while (read(out[0], &word, sizeof word) == sizeof word &&
		       write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	for (int i = 0; i < HANDOVERS; i++) {
		double start = bench_seconds();
		if (write(out[1], &word, sizeof word) != sizeof word ||
		    read(back[0], &byte, 1) != 1)
			exit(1);
		times[i] = (bench_seconds() - start) * 1e6;
	}
	close(out[1]);
	wait(NULL);
	qsort(times, HANDOVERS, sizeof times[0], by_value);
	bench_line("  of which two pipes alone", "%.1f us median", times[HANDOVERS / 2]);
}

int main(void)
{
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	run_workers(shared, 1);
	double alone = shared->rate[0];
	run_workers(shared, 2);
	bench_line("create + free of 2 MiB, one process", "%.0f pairs/s", alone);
	bench_line("create + free of 2 MiB, two at once",
		   "%.0f and %.0f pairs/s, %.2f and %.2f x that", shared->rate[0], shared->rate[1],
		   shared->rate[0] / alone, shared->rate[1] / alone);
	round_trips();
	handovers();
	return 0;
}
