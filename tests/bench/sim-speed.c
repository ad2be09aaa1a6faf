/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the model runs: requests a second of the HBM alone and through the whole path, sweeps,
 * copies against plain memcpy, the page table, invalidation, opening. Prints a line for each; the
 * numbers are for people. Times are the thread's own: on a machine that others use too, what one
 * core would take.
 * usage: sim-speed [PERCENT [GROUP]]: how many of 100 million random accesses, 1 by default; GROUP
 * hbm, path or copy: that part alone.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void line(const char *what, double value, const char *unit)
{
	printf("%-58s %10.2f %s\n", what, value, unit);
}

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

static void *at(void *ctx, uint64_t pa)
{
	(void)ctx;
	return memory.base[SIM_PA_NODE(pa)] + SIM_PA_OFFSET(pa);
}

static void open_server(void)
{
	const struct sim_config config = { &profile, &memory, 8, true };
	const struct pt_host host = { alloc_table, free_table, at, NULL };
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
	start = now();
	sim = sim_open(&config, &error);
	if (!sim)
		g_error("%s", error);
	line("open, 8 devices", (now() - start) * 1e3, "ms");
	pt_init(&table, &host);
}

static void bench_page_table(void)
{
	unsigned n = 5000000;
	double start;

	(void)pt_map(&table, VA, 0, 21, 1, PT_WRITE);
	start = now();
	for (unsigned i = 0; i < n; i++) {
		(void)pt_map(&table, VA + HUGE, HUGE, 21, 1, PT_WRITE);
		pt_unmap(&table, VA + HUGE, HUGE);
	}
	line("map + unmap of 2 MiB, level 2 table at hand", (now() - start) / n * 1e9, "ns");
	start = now();
	for (unsigned i = 0; i < n / 10; i++) {
		(void)pt_map(&table, VA + 600 * GIB, HUGE, 21, 1, PT_WRITE);
		pt_unmap(&table, VA + 600 * GIB, HUGE);
	}
	line("map + unmap of 2 MiB, tables made and freed", (now() - start) / n * 10 * 1e9, "ns");
	pt_unmap(&table, VA, HUGE);
	(void)pt_map(&table, VA, 0, 21, 60 * 512, PT_WRITE);
	sim_set_root(sim, 0, 1, table.root_pa);
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
	struct hbm *hbm;
	uint64_t n = 3000000, t[1024] = { 0 };
	double start;

	one.hbm_stacks = 1;
	g_strlcpy(one.hbm_map, "o5 c1 h3 p1 g2 c4 b2 r16", sizeof(one.hbm_map));
	hbm = hbm_new(&one);
	start = now();
	for (uint64_t i = 0; i < n; i++)
		t[i & 1023] = hbm_access(hbm, mix(i) % (8 * GIB) & ~UINT64_C(63), 64, false,
					 t[i & 1023], NULL);
	line("HBM alone, random reads of 64 bytes, one stack", (double)n / (now() - start) / 1e6,
	     "M/s");
	hbm_free(hbm);
}

static uint64_t random_offset(const struct sim_job *job, uint64_t row)
{
	return mix(row) % (uint64_t)(uintptr_t)job->arg & ~(job->row_bytes - 1);
}

static void bench_accesses(const char *what, uint64_t bytes, uint64_t n)
{
	struct sim_job job = { .kind = SIM_JOB_READ,
			       .engine = SIM_ENGINE_CORE,
			       .core = 30,
			       .src = { 0, VA },
			       .bytes = n * 64,
			       .row_bytes = 64,
			       .row_offset = random_offset,
			       .arg = (void *)(uintptr_t)bytes };
	double start = now(), took;

	if (sim_execute(sim, &job) != SIM_OK)
		g_error("%s: fault at 0x%lx", what, (unsigned long)job.fault_va);
	took = now() - start;
	line(what, (double)n / took / 1e6, "M/s");
}

static void bench_sequential(void)
{
	struct sim_job job = { .kind = SIM_JOB_READ, .src = { 0, VA }, .bytes = 60 * GIB };
	double start = now();

	(void)sim_execute(sim, &job);
	line("sequential sweep over 60 GiB", now() - start, "s");
}

static void bench_copy(const char *what, enum sim_engine engine, struct sim_ref dst,
		       struct sim_ref src, void *to, const void *from)
{
	struct sim_job job = {
		.kind = SIM_JOB_COPY, .engine = engine, .dst = dst, .src = src, .bytes = GIB
	};
	double start, plain = 1e9, model = 1e9;

	for (unsigned i = 0; i < 3; i++) {
		start = now();
		memcpy(to, from, GIB);
		plain = MIN(plain, now() - start);
		start = now();
		(void)sim_execute(sim, &job);
		model = MIN(model, now() - start);
	}
	line(what, model / plain, "x memcpy");
}

static void bench_copies(void)
{
	unsigned char *host = g_malloc(GIB);

	memset(host, 1, GIB);
	memset(memory.base[0], 2, 2 * GIB);
	bench_copy("copy of 1 GiB, host to device", SIM_ENGINE_H2D, (struct sim_ref){ 0, VA },
		   (struct sim_ref){ SIM_RAW, (uintptr_t)host }, memory.base[0], host);
	bench_copy("copy of 1 GiB, device to device", SIM_ENGINE_SDMA, (struct sim_ref){ 0, VA },
		   (struct sim_ref){ 0, VA + GIB }, memory.base[0], memory.base[0] + GIB);
	g_free(host);
}

static void bench_invalidate(void)
{
	unsigned n = 5000000;
	double start = now();

	for (unsigned i = 0; i < n; i++)
		sim_invalidate(sim, 0, VA + 128 * GIB + (i & 0xffff) * HUGE, HUGE);
	line("invalidation of 2 MiB that no TLB has", (now() - start) / n * 1e9, "ns");
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
		bench_accesses("whole path, random reads of 64 bytes over 1 GiB", GIB,
			       (uint64_t)(100e6 * scale));
		bench_accesses("whole path, random reads of 64 bytes over 60 GiB", 60 * GIB,
			       (uint64_t)(100e6 * scale));
		bench_sequential();
		bench_invalidate();
	}
	if (wanted(argc, argv, "copy"))
		bench_copies();
	pt_destroy(&table);
	sim_close(sim);
	return 0;
}
