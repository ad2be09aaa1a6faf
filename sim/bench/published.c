/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured on real devices and published, row by row, against the model. Owns the figures
 * and where they come from; the constants that are fitted to them are in sim/profiles.
 */
#include "bench.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/page-table.h"

#define VA        UINT64_C(0x12c000000000)
#define HUGE      (UINT64_C(1) << 21)
#define NODE      (UINT64_C(1) << 30) /* of each node */
#define DEVICES   3                   /* 0 and 1: the dies of a chip */
#define HOST      SIM_NODE_HOST
#define MIB(n)    ((uint64_t)(n) << 20)
#define KIB(n)    ((uint64_t)(n) << 10)
#define STUDY     "AI-Serving-Infra-Study practice_14, 910B2C, one run"
#define PROFILER  "the same study, msprof's api_statistic, profiler on"
#define HIXL      "HIXL benchmarks/performance.md"
#define MEMFABRIC "memfabric_hybrid README"
#define SDMA_PERF "memfabric_hybrid example/trans/perf"

enum kind {
	CALL,    /* us of one call on `amount` pages of 2 MiB */
	CREATE,  /* ms of `amount` creations and mappings of 10 pages each, stalls included */
	COPY,    /* GB/s of one copy of `amount` bytes */
	QUEUE,   /* GB/s of 1024 queued copies of `amount` bytes */
	LONE,    /* us of one queued copy of `amount` bytes, its submission included */
	SYNC,    /* us of a synchronous copy */
	NO_MODEL /* nothing stands for it */
};

static const struct row {
	const char *soc, *what;
	enum kind kind;
	double measured;
	unsigned which; /* enum sim_call or sim_engine */
	int dst, src;
	uint64_t amount;
	const char *source, *note;
} rows[] = {
	{ "Ascend910B2C", "reserve 68.6 GiB", CALL, 843, SIM_CALL_RESERVE, 0, 0, 35120, STUDY, "" },
	{ "Ascend910B2C", "create 20 MiB", CALL, 34.2, SIM_CALL_CREATE, 0, 0, 10, STUDY, "" },
	{ "Ascend910B2C", "map 20 MiB", CALL, 28.7, SIM_CALL_MAP, 0, 0, 10, STUDY, "" },
	{ "Ascend910B2C", "create 2 MiB, the process's first", CALL, 82, SIM_CALL_CREATE, 0, 0, 1,
	  STUDY, "first calls cost as the later ones" },
	{ "Ascend910B2C", "map 2 MiB, the process's first", CALL, 50, SIM_CALL_MAP, 0, 0, 1, STUDY,
	  "first calls cost as the later ones" },
	{ "Ascend910B2C", "887 x create and map 20 MiB", CREATE, 790, 0, 0, 0, 887, STUDY, "" },
	{ "Ascend910B2C", "create a stream", CALL, 1612, SIM_CALL_STREAM, 0, 0, 1,
	  "AI-Serving-Infra-Study practice_22, the process's first two", "" },
	{ "Ascend910B2C", "submit a copy", CALL, 2.4, SIM_CALL_SUBMIT, 0, 0, 1, PROFILER, "" },
	{ "Ascend910B2C", "synchronous copy of 8 bytes", SYNC, 9.8, SIM_ENGINE_H2D, 0, HOST, 8,
	  PROFILER, "two averages, 8.5 and 11.1, the smallest call 6.5" },
	{ "Ascend910B2C", "pointer attributes", CALL, 0.8, SIM_CALL_QUERY, 0, 0, 1, PROFILER,
	  "all queries cost the same, which is assumed; measured 0.2 to 0.9" },
	{ "Ascend910B1", "host to device, pinned, 4 GiB", COPY, 24.93, SIM_ENGINE_H2D, 0, HOST,
	  MIB(256), "FlagPerf interconnect-h2d, Atlas 800T A2", "" },
	{ "Ascend910B1", "read from a peer", COPY, 27.05, SIM_ENGINE_SDMA, 0, 2, MIB(128), HIXL,
	  "" },
	{ "Ascend910B1", "write to a peer", COPY, 20.4, SIM_ENGINE_SDMA, 2, 0, MIB(128), HIXL, "" },
	{ "Ascend910B1", "write to a peer, 16 KiB in a queue", QUEUE, 8.9, SIM_ENGINE_SDMA, 2, 0,
	  KIB(16), HIXL, "the latency of each copy's read and write is not overlapped" },
	{ "Ascend910B1", "read from a peer, 16 KiB in a queue", QUEUE, 10.3, SIM_ENGINE_SDMA, 0, 2,
	  KIB(16), HIXL, "the latency of each copy's read and write is not overlapped" },
	{ "Ascend910_9391", "host to device, pinned", COPY, 56.0, SIM_ENGINE_H2D, 0, HOST, MIB(256),
	  "hw-native-sys/simpler pull request 1971", "" },
	{ "Ascend910_9391", "device to host, pinned", COPY, 54.2, SIM_ENGINE_D2H, HOST, 0, MIB(256),
	  HIXL, "" },
	{ "Ascend910_9391", "mapped host memory to device", COPY, 110.2, SIM_ENGINE_SDMA, 0, HOST,
	  MIB(256), MEMFABRIC, "" },
	{ "Ascend910_9391", "device to mapped host memory", COPY, 74.5, SIM_ENGINE_SDMA, HOST, 0,
	  MIB(256), MEMFABRIC, "" },
	{ "Ascend910_9391", "other die of the chip, 16 MiB", COPY, 186.6, SIM_ENGINE_SDMA, 1, 0,
	  MIB(16), SDMA_PERF, "" },
	{ "Ascend910_9391", "other chip, write, 16 MiB", COPY, 133.9, SIM_ENGINE_SDMA, 2, 0,
	  MIB(16), SDMA_PERF, "" },
	{ "Ascend910_9391", "other chip, write, 1 GB", COPY, 138.0, SIM_ENGINE_SDMA, 2, 0, MIB(512),
	  MEMFABRIC, "" },
	{ "Ascend910_9391", "other chip, read, 1 GB", COPY, 166.5, SIM_ENGINE_SDMA, 0, 2, MIB(512),
	  MEMFABRIC, "" },
	{ "Ascend910_9391", "read, 16 KiB in a queue", QUEUE, 18.0, SIM_ENGINE_SDMA, 0, 2, KIB(16),
	  HIXL, "the latency of each copy's read and write is not overlapped" },
	{ "Ascend910_9391", "lone copy of 32 KiB, dies of a chip", LONE, 10.2, SIM_ENGINE_SDMA, 1,
	  0, KIB(32), SDMA_PERF, "waking the waiting host is not modelled" },
	{ "Ascend910_9391", "lone copy of 32 KiB, other chip", LONE, 15.1, SIM_ENGINE_SDMA, 2, 0,
	  KIB(32), SDMA_PERF, "waking the waiting host is not modelled" },
	{ "Ascend910B2C", "record an event", NO_MODEL, 2.9, 0, 0, 0, 0, PROFILER, "us" },
	{ "Ascend910B2C", "stream waits for an event", NO_MODEL, 2.5, 0, 0, 0, 0, PROFILER, "us" },
	{ "Ascend910B2C", "create, destroy an event", NO_MODEL, 2.1, 0, 0, 0, 0, PROFILER, "us" },
	{ "Ascend910B2C", "query an event", NO_MODEL, 2.1, 0, 0, 0, 0, PROFILER, "us" },
	{ "Ascend910B2C", "synchronize an idle stream", NO_MODEL, 0.5, 0, 0, 0, 0,
	  "AI-Serving-Infra-Study practice_22", "us" },
	{ "Ascend910B2C", "synchronize an idle device", NO_MODEL, 7.4, 0, 0, 0, 0, PROFILER, "us" },
	{ "Ascend910B2", "launch a kernel", NO_MODEL, 8.6, 0, 0, 0, 0,
	  "triton-lang/triton-ascend issue 1675", "us" },
	{ "Ascend910_9391", "host memory to a remote device", NO_MODEL, 62.0, 0, 0, 0, 0, HIXL,
	  "GB/s" },
	{ "Ascend910B1", "RoCE from 64 KiB on", NO_MODEL, 23.4, 0, 0, 0, 0, HIXL, "GB/s" },
};

static struct {
	struct sim_profile profile;
	struct sim_memory memory;
	struct page_table table[SIM_NODE_MAX];
	uint64_t tables;
	struct sim *sim;
} server;

static uint64_t alloc_table(void *ctx)
{
	(void)ctx;
	return SIM_PA(0, NODE + (server.tables += 4096));
}

static void free_table(void *ctx, uint64_t pa)
{
	(void)ctx;
	(void)pa;
}

static void *table_at(void *ctx, uint64_t pa)
{
	(void)ctx;
	return server.memory.base[0] + SIM_PA_OFFSET(pa);
}

/* Each node's memory, at VA of its own space. Behind that of device 0 lie the tables. */
static char *add_node(unsigned node)
{
	const struct pt_host host = { alloc_table, free_table, table_at, NULL };
	void *at = mmap(NULL, 2 * NODE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return g_strdup("no address space for the memory");
	server.memory.base[node] = at;
	server.memory.bytes[node] = 2 * NODE;
	pt_init(&server.table[node], &host);
	(void)pt_map(&server.table[node], VA, SIM_PA(node, 0), 21, NODE / HUGE, PT_WRITE);
	sim_set_root(server.sim, (int)node, 1, server.table[node].root_pa);
	return NULL;
}

static char *open_server(const char *soc)
{
	const struct sim_config config = { &server.profile, &server.memory, DEVICES, true };
	char *error = NULL;

	memset(&server, 0, sizeof(server));
	if (!sim_profile_load(soc, &server.profile, &error))
		return error;
	server.sim = sim_open(&config, &error);
	for (unsigned node = 0; !error && node < DEVICES; node++)
		error = add_node(node);
	return error ? error : add_node(HOST);
}

static void close_server(void)
{
	sim_close(server.sim);
	for (unsigned node = 0; node < SIM_NODE_MAX; node++)
		if (server.memory.base[node])
			munmap(server.memory.base[node], server.memory.bytes[node]);
}

/* Microseconds that `count` copies take, one behind the other in one engine's queue. */
static double copy_us(const struct row *row, unsigned count)
{
	g_autofree struct sim_job *jobs = g_new0(struct sim_job, count);
	uint64_t since = sim_host_ps(server.sim);

	for (unsigned i = 0; i < count; i++) {
		jobs[i] = (struct sim_job){
			.kind = SIM_JOB_COPY,
			.engine = (enum sim_engine)row->which,
			.dst = { row->dst, VA + i * row->amount % NODE, 0 },
			.src = { row->src, VA + i * row->amount % NODE, 0 },
			.bytes = row->amount,
			.contents_stay = true,
		};
		sim_submit(server.sim, &jobs[i]);
	}
	sim_drain(server.sim);
	return (double)(sim_host_ps(server.sim) - since) / SIM_PS_PER_US;
}

static double call_us(enum sim_call call, uint64_t pages)
{
	return (double)sim_call_ps(&server.profile, call, pages, 21) / SIM_PS_PER_US;
}

static double model(const struct row *row, const char **out_unit)
{
	uint64_t stall = server.profile.call[SIM_CALL_STALL].pages_per_message;

	*out_unit = row->kind == CREATE                       ? "ms"
		    : row->kind == COPY || row->kind == QUEUE ? "GB/s"
							      : "us";
	switch (row->kind) {
	case CALL:
		return call_us((enum sim_call)row->which, row->amount);
	case CREATE:
		return ((double)row->amount *
				(call_us(SIM_CALL_CREATE, 10) + call_us(SIM_CALL_MAP, 10)) +
			call_us(SIM_CALL_STALL, row->amount * 10 / stall * stall)) /
		       1000;
	case COPY:
		return (double)row->amount / copy_us(row, 1) / 1000;
	case QUEUE:
		return 1024 * (double)row->amount / copy_us(row, 1024) / 1000;
	case LONE:
		return call_us(SIM_CALL_SUBMIT, 1) + copy_us(row, 1);
	case SYNC:
		return call_us(SIM_CALL_COPY, 1) + copy_us(row, 1);
	default:
		*out_unit = row->note;
		return 0;
	}
}

unsigned npusim_bench_published(struct bench_published *out, unsigned room, char **error)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(rows) && i < room; i++) {
		const struct row *row = &rows[i];

		*error = open_server(row->soc);
		if (!*error) {
			out[i] = (struct bench_published){ .soc = row->soc,
							   .what = row->what,
							   .source = row->source,
							   .measured = row->measured };
			out[i].modelled = model(row, &out[i].unit);
			out[i].note = row->kind == NO_MODEL ? "not modelled" : row->note;
		}
		close_server();
		if (*error)
			return 0;
	}
	return G_N_ELEMENTS(rows);
}
