/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of mapping through the ACL: pairs of aclrtMapMem and aclrtUnmapMem of 2 MiB against the
 * kernel's own mmap and munmap of a 2 MiB memfd in the same run, with few and with many live
 * mappings; start to the first map; memory that mapping everything takes. NPUSIM_TIMING says
 * whether the model's time is on.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define PAIRS 200000
#define FEW   10
#define MANY  30000

struct pair {
	char *va;
	aclrtDrvMemHandle handle;
};

static void map_pairs(void *arg)
{
	struct pair *p = arg;
	for (int i = 0; i < PAIRS; i++) {
		if (aclrtMapMem(p->va, HUGE_BYTES, 0, p->handle, 0) != 0 ||
		    aclrtUnmapMem(p->va) != 0)
			check(ACL_ERROR_FAILURE, "map and unmap");
	}
}

static void mmap_pairs(void *arg)
{
	int fd = *(int *)arg;
	for (int i = 0; i < PAIRS; i++) {
		void *p = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		munmap(p, HUGE_BYTES);
	}
}

static double pairs_with_live(int live)
{
	struct pair pair = { .handle = create(0, HUGE_BYTES) };
	aclrtDrvMemHandle shared = create(0, HUGE_BYTES);
	void *va;

	check(aclrtReserveMemAddress(&va, (size_t)(live + 1) * HUGE_BYTES, 0, NULL, 1),
	      "aclrtReserveMemAddress");
	for (int i = 0; i < live; i++)
		check(aclrtMapMem((char *)va + (size_t)i * HUGE_BYTES, HUGE_BYTES, 0, shared, 0),
		      "aclrtMapMem");
	pair.va = (char *)va + (size_t)live * HUGE_BYTES;
	double rate = bench_rate_by(bench_cpu_seconds, map_pairs, &pair, PAIRS);
	for (int i = 0; i < live; i++)
		check(aclrtUnmapMem((char *)va + (size_t)i * HUGE_BYTES), "aclrtUnmapMem");
	check(aclrtReleaseMemAddress(va), "aclrtReleaseMemAddress");
	check(aclrtFreePhysical(shared), "aclrtFreePhysical");
	check(aclrtFreePhysical(pair.handle), "aclrtFreePhysical");
	return rate;
}

static long resident_kib(void)
{
	long pages = 0, ignored;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f == NULL || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* All usable memory of every device, in one handle each, mapped and not touched. */
static void map_everything(void)
{
	uint32_t devices = 0;
	double total = 0;

	check(aclrtGetDeviceCount(&devices), "aclrtGetDeviceCount");
	for (uint32_t d = 0; d < devices; d++) {
		size_t free_bytes, all;
		void *va;
		check(aclrtSetDevice((int32_t)d), "aclrtSetDevice");
		check(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &all), "aclrtGetMemInfo");
		free_bytes &= ~(HUGE_BYTES - 1);
		check(aclrtReserveMemAddress(&va, free_bytes, 0, NULL, 1),
		      "aclrtReserveMemAddress");
		check(aclrtMapMem(va, free_bytes, 0, create((int)d, free_bytes), 0), "aclrtMapMem");
		total += (double)free_bytes;
	}
	bench_line("resident, all devices mapped, untouched", "%.1f MiB for %.1f GiB on %u devices",
		   (double)resident_kib() / 1024, total / (1 << 30), devices);
}

int main(void)
{
	const char *timing = getenv("NPUSIM_TIMING");
	double start = bench_seconds();
	int fd;
	void *va;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	check(aclrtReserveMemAddress(&va, HUGE_BYTES, 0, NULL, 1), "aclrtReserveMemAddress");
	aclrtDrvMemHandle first = create(0, HUGE_BYTES);
	check(aclrtMapMem(va, HUGE_BYTES, 0, first, 0), "aclrtMapMem");
	bench_line("aclInit to the first map", "%.1f ms", (bench_seconds() - start) * 1e3);
	check(aclrtUnmapMem(va), "aclrtUnmapMem");
	check(aclrtFreePhysical(first), "aclrtFreePhysical");

	fd = memfd_create("map-bench", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)HUGE_BYTES) != 0)
		return 1;
	double kernel = bench_rate_by(bench_cpu_seconds, mmap_pairs, &fd, PAIRS);
	double few = pairs_with_live(FEW), many = pairs_with_live(MANY);
	bench_line("mmap + munmap of a 2 MiB memfd", "%.0f pairs/s", kernel);
	bench_line("map + unmap of 2 MiB, 10 live", "%.0f pairs/s", few);
	bench_line("map + unmap of 2 MiB, 30000 live", "%.0f pairs/s, %.2f x that with 10", many,
		   many / few);
	if (timing && strcmp(timing, "off") == 0)
		bench_at_least("map + unmap of 2 MiB, timing off", few / kernel, "x mmap", 4);
	else
		bench_at_least("map + unmap of 2 MiB, timing on", few / kernel, "x mmap", 1);
	map_everything();
	return 0;
}
