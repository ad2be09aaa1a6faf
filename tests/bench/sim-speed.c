/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the model runs: requests a second of the HBM alone and through the whole path, sweeps,
 * the page table, invalidation, opening. Prints a line for each; the numbers are for people. Times
 * are CPU time: on a machine that others use too, what one core would take.
 * usage: sim-speed [PERCENT [GROUP]]: how many of 100 million random accesses, 1 by default; GROUP
 * hbm or path: that part alone.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "sim/hbm/hbm.h"
#include "sim/page-table.h"
#include "sim/sim.h"

#define VA   UINT64_C(0x12c000000000)
#define GIB  (UINT64_C(1) << 30)
#define HUGE (UINT64_C(1) << 21)

static struct sim_profile profile;
static struct sim_memory memory;
static struct sim *sim;
static struct page_table table;
static uint64_t table_bytes, free_tables[64], free_count;
static double scale = 0.01;

static uint64_t alloc_table(void *ctx)
{
	(void)ctx;
	if (free_count)
		return free_tables[--free_count];
	return SIM_PA(0, profile.hbm_bytes - (table_bytes += 4096));
}

static void free_table(void *ctx, uint64_t pa)
{
	(void)ctx;
	if (free_count < G_N_ELEMENTS(free_tables))
		free_tables[free_count++] = pa;
}

static void open_server(void)
{
	const struct sim_config config = { &profile, &memory, 8, true, NULL };
	const struct pt_host host = { alloc_table, free_table, NULL, &memory };
	char *error = NULL;
	double start;

	if (!sim_profile_load("Ascend910B1", &profile, &error))
		g_error("%s", error);
	for (unsigned i = 0; i < 8; i++) {
		memory.bytes[i] = profile.hbm_bytes;
		memory.base[i] = mmap(NULL, profile.hbm_bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory.base[i] == MAP_FAILED)
			g_error("no address space for the memory of device %u", i);
	}
	start = bench_cpu_seconds();
	sim = sim_open(&config, &error);
	if (!sim)
		g_error("%s", error);
	bench_line("open, 8 devices", "%8.2f ms", (bench_cpu_seconds() - start) * 1e3);
	pt_init(&table, &host);
}

static void bench_page_table(void)
{
	unsigned n = 5000000;
	double start;

	(void)pt_map(&table, VA, 0, 21, 1, PT_WRITE);
	start = bench_cpu_seconds();
	for (unsigned i = 0; i < n; i++) {
		(void)pt_map(&table, VA + HUGE, HUGE, 21, 1, PT_WRITE);
		pt_unmap(&table, VA + HUGE, HUGE);
	}
	bench_line("map + unmap of 2 MiB, level 2 table at hand", "%8.2f ns",
		   (bench_cpu_seconds() - start) / n * 1e9);
	start = bench_cpu_seconds();
	for (unsigned i = 0; i < n / 10; i++) {
		(void)pt_map(&table, VA + 600 * GIB, HUGE, 21, 1, PT_WRITE);
		pt_unmap(&table, VA + 600 * GIB, HUGE);
	}
	bench_line("map + unmap of 2 MiB, tables made and freed", "%8.2f ns",
		   (bench_cpu_seconds() - start) / n * 10 * 1e9);
	pt_unmap(&table, VA, HUGE);
	(void)pt_map(&table, VA, 0, 21, 64 * 512, PT_WRITE);
	sim_set_root(sim, 0, table.root_pa);
}

static uint64_t mix(uint64_t z)
{
	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void bench_hbm(void)
{
	struct sim_profile one = profile;
	uint64_t n = 3000000;
	double best = 0;

	one.hbm_stacks = 1;
	g_strlcpy(one.hbm_map, "o5 c1 h3 p1 g2 c4 b2 r16", sizeof(one.hbm_map));
	for (unsigned round = 0; round < 3; round++) {
		struct hbm *hbm = hbm_new(&one, NULL);
		uint64_t t[1024] = { 0 };
		double start = bench_cpu_seconds();

		for (uint64_t i = 0; i < n; i++)
			t[i & 1023] = hbm_access(hbm, mix(i) % (8 * GIB) & ~UINT64_C(63), 64, false,
						 t[i & 1023], NULL);
		best = MAX(best, (double)n / (bench_cpu_seconds() - start) / 1e6);
		hbm_free(hbm);
	}
	bench_at_least("HBM alone, random reads of 64 bytes", best, "M/s", 10);
}

static uint64_t random_offset(const struct sim_job *job, uint64_t row)
{
	return mix(row) % (uint64_t)(uintptr_t)job->arg & ~(job->row_bytes - 1);
}

/* Random reads of 64 bytes by one core. Returns the seconds. */
static double random_reads(uint64_t bytes, uint64_t n)
{
	struct sim_job job = { .kind = SIM_JOB_READ,
			       .engine = SIM_ENGINE_CORE,
			       .core = 30,
			       .src = { 0, VA },
			       .bytes = n * 64,
			       .row_bytes = 64,
			       .row_offset = random_offset,
			       .arg = (void *)(uintptr_t)bytes };
	double start = bench_cpu_seconds();

	if (sim_execute(sim, &job) != SIM_OK)
		g_error("random reads: fault at 0x%lx", (unsigned long)job.fault_va);
	return bench_cpu_seconds() - start;
}

static void bench_accesses(void)
{
	uint64_t n = (uint64_t)(100e6 * scale), few = MIN(n, 3000000);
	double best = 0;
	char name[64];

	for (unsigned round = 0; round < 3; round++)
		best = MAX(best, (double)few / random_reads(GIB, few) / 1e6);
	bench_at_least("whole path, random reads of 64 bytes over 1 GiB", best, "M/s", 5);
	g_snprintf(name, sizeof(name), "100 M random reads over 60 GiB, from %.0f M", n / 1e6);
	bench_at_most(name, random_reads(60 * GIB, n) / scale, "s", 15);
}

/* All of the device's memory; the page tables at its end are only read. */
static void bench_sequential(void)
{
	struct sim_job job = { .kind = SIM_JOB_READ, .src = { 0, VA }, .bytes = 64 * GIB };
	double start = bench_cpu_seconds();

	if (sim_execute(sim, &job) != SIM_OK)
		g_error("sequential sweep: fault at 0x%lx", (unsigned long)job.fault_va);
	bench_at_most("sequential sweep over 64 GiB", bench_cpu_seconds() - start, "s", 1);
}

static void bench_invalidate(void)
{
	unsigned n = 5000000;
	double start = bench_cpu_seconds();

	for (unsigned i = 0; i < n; i++)
		sim_invalidate(sim, 0, VA + 128 * GIB + (i & 0xffff) * HUGE, HUGE);
	bench_line("invalidation of 2 MiB that no TLB has", "%8.2f ns",
		   (bench_cpu_seconds() - start) / n * 1e9);
}

static bool wanted(int argc, char **argv, const char *group)
{
	return argc < 3 || !strcmp(argv[2], group);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		scale = g_ascii_strtod(argv[1], NULL) / 100;
	open_server();
	bench_page_table();
	if (wanted(argc, argv, "hbm"))
		bench_hbm();
	if (wanted(argc, argv, "path")) {
		bench_accesses();
		bench_sequential();
		bench_invalidate();
	}
	pt_destroy(&table);
	sim_close(sim);
	return 0;
}
