/* SPDX-License-Identifier: Apache-2.0
 *
 * The access patterns of npusim bench: computes the addresses, and submits the jobs that bring the
 * accesses to the cores; keeps the commands of the HBM until the end, adds the refreshes, and sorts
 * them. And published measurements, against the model.
 */
#include "bench.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/hbm/hbm.h"
#include "sim/page-table.h"

/* ---- a simulation with memory and page tables of its own, without a driver ---- */

#define SERVER_VA UINT64_C(0x12c000000000)

/* Other servers' memories lie above the node's own, 8 GiB apart. */
static inline uint64_t server_va(unsigned node)
{
	return SERVER_VA + (node < SIM_NODE_MAX ? 0 : (uint64_t)node << 33);
}

struct server {
	struct sim *sim;
	struct sim_memory memory;
	struct page_table table[SIM_NODE_MAX];
	uint64_t tables_start, tables_end; /* of device 0's memory; tables are taken from the end */
};

static uint64_t alloc_table(void *ctx)
{
	struct server *server = ctx;

	if (server->tables_end - 4096 < server->tables_start)
		return 0;
	return SIM_PA(0, server->tables_end -= 4096);
}

static void free_table(void *ctx, uint64_t pa)
{
	(void)ctx;
	(void)pa;
}

/* NULL, or what is wrong, to g_free(); server_close() in either case. The profile is borrowed. */
static char *server_open(struct server *server, const struct sim_profile *profile, unsigned devices)
{
	const struct sim_config config = { profile, &server->memory, devices, true, NULL };
	char *error = NULL;

	memset(server, 0, sizeof(*server));
	server->sim = sim_open(&config, &error);
	return error;
}

/* Memory of `bytes`, of which the first `mapped` are at server_va() of the node's space, of another
 * server's node of device 0's, in pages of 2^page_lg2 bytes. Tables lie in what is left of device
 * 0's, which is added first. */
static char *server_add(struct server *server, unsigned node, uint64_t bytes, uint64_t mapped,
			unsigned page_lg2)
{
	const struct pt_host host = { alloc_table, free_table, server, &server->memory };
	unsigned space = node < SIM_NODE_MAX ? node : 0;
	struct page_table *table = &server->table[space];
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return g_strdup_printf("no address space for %" G_GUINT64_FORMAT " bytes", bytes);
	server->memory.base[node] = at;
	server->memory.bytes[node] = bytes;
	if (node == 0) {
		server->tables_start = mapped;
		server->tables_end = bytes;
	}
	if (node == space)
		pt_init(table, &host);
	if (!pt_map(table, server_va(node), SIM_PA(node, 0), page_lg2, mapped >> page_lg2,
		    PT_WRITE))
		return g_strdup("the page tables do not fit beside the memory: use a smaller size");
	sim_set_root(server->sim, (int)space, table->root_pa);
	return NULL;
}

static void server_close(struct server *server)
{
	sim_close(server->sim);
	for (unsigned node = 0; node < SIM_MEMORY_MAX; node++)
		if (server->memory.base[node])
			munmap(server->memory.base[node], server->memory.bytes[node]);
}

/* ---- access patterns ---- */

#define BATCH_ROWS 4096u /* that a core is given at a time */

/* Consecutive accesses of an engine that are of one kind, until they are done: a core goes from one
 * to the next without a pause. */
struct run {
	struct sim_job job;
	struct lane *lane;
	uint64_t first; /* accesses of the engine before them */
};

struct lane {
	uint64_t issued, stop; /* accesses of this engine, warm-up included; where to pause */
	unsigned index, runs_left;
};

static struct bench {
	const struct bench_request *request;
	struct server server;
	struct sim_histogram latency;
	struct lane *lane;
	uint64_t done; /* accesses of all lanes */
	enum sim_status status;
	uint64_t fault_va;
} bench;

/* --- accesses --- */

static uint64_t mix(uint64_t z)
{
	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Engines take the accesses of one stream in turn. */
static uint64_t number_of(const struct lane *lane, uint64_t access)
{
	return access * bench.request->engines + lane->index;
}

static uint64_t traced_of(const struct bench_request *r, uint64_t number)
{
	return r->traced[number % r->traced_count];
}

static uint64_t place_of(const struct sim_job *job, uint64_t row)
{
	const struct bench_request *r = bench.request;
	const struct run *run = job->arg;
	uint64_t number = number_of(run->lane, run->first + row);

	switch (r->pattern) {
	case BENCH_SEQUENTIAL:
		return number * r->access_bytes % r->bytes;
	case BENCH_TRACE:
		return BENCH_ADDRESS(traced_of(r, number)) / r->access_bytes * r->access_bytes;
	case BENCH_STRIDED:
		/* another lap begins one access further on */
		return (number * r->stride % r->bytes +
			number * r->stride / r->bytes * r->access_bytes) %
		       r->bytes;
	default:
		return mix(number ^ r->seed) % (r->bytes / r->access_bytes) * r->access_bytes;
	}
}

static uint64_t batch_rows(const struct bench_request *r)
{
	return r->pattern == BENCH_CHASE ? 1 : BATCH_ROWS;
}

static void next_batch(struct lane *lane);

static void on_done(struct sim_job *job)
{
	struct run *run = job->arg;
	struct lane *lane = run->lane;

	if (job->status != SIM_OK && bench.status == SIM_OK) {
		bench.status = job->status;
		bench.fault_va = job->fault_va;
	}
	bench.done += job->bytes / bench.request->access_bytes;
	if (bench.request->progress)
		bench.request->progress(bench.done, bench.request->data);
	g_free(run);
	if (--lane->runs_left == 0)
		next_batch(lane);
}

/* The run that begins there ends at `stop` or before; returns where. */
static uint64_t run_end(const struct lane *lane, uint64_t first, uint64_t stop, bool *out_write)
{
	const struct bench_request *r = bench.request;
	uint64_t end = first + 1;

	if (r->pattern != BENCH_TRACE) {
		end = stop - stop % batch_rows(r); /* at most one is between */
		*out_write = r->operation == BENCH_WRITE ||
			     (r->operation == BENCH_MIXED && first / batch_rows(r) % 2);
		return r->operation == BENCH_MIXED && end > first ? end : stop;
	}
	*out_write = BENCH_WRITES(traced_of(r, number_of(lane, first)));
	while (end < stop && BENCH_WRITES(traced_of(r, number_of(lane, end))) == *out_write)
		end++;
	return end;
}

static void next_batch(struct lane *lane)
{
	const struct bench_request *r = bench.request;
	const struct sim_profile *p = r->profile;
	uint64_t first = lane->issued, end;
	bool write;

	if (bench.status != SIM_OK)
		return;
	lane->issued += MIN(batch_rows(r), lane->stop - first);
	for (; first < lane->issued; first = end) {
		struct run *run = g_new(struct run, 1);

		end = run_end(lane, first, lane->issued, &write);
		*run = (struct run){ .lane = lane, .first = first };
		run->job = (struct sim_job){
			.kind = write ? SIM_JOB_WRITE : SIM_JOB_READ,
			.engine = SIM_ENGINE_CORE,
			.core = lane->index < p->vector_cores ? p->cube_cores + lane->index
							      : lane->index - p->vector_cores,
			.dst = { 0, SERVER_VA },
			.src = { 0, SERVER_VA },
			.bytes = (end - first) * r->access_bytes,
			.row_bytes = r->access_bytes,
			.row_offset = place_of,
			.latency = &bench.latency,
			.done = on_done,
			.arg = run,
		};
		lane->runs_left++;
		sim_submit(bench.server.sim, &run->job);
	}
}

/* So many accesses more, shared out, to their end. Returns the time from the first one's issue to
 * the last one's last byte. */
static uint64_t run_accesses(uint64_t accesses)
{
	unsigned engines = bench.request->engines;
	uint64_t since = sim_host_ps(bench.server.sim);

	memset(&bench.latency, 0, sizeof(bench.latency));
	for (unsigned i = 0; i < engines; i++) {
		bench.lane[i].stop += accesses / engines + (i < accesses % engines);
		next_batch(&bench.lane[i]);
	}
	sim_drain(bench.server.sim);
	return sim_host_ps(bench.server.sim) - since;
}

/* --- results --- */

/* The time that `percent` of the accesses did not exceed (nearest rank): its bucket's middle. */
static uint64_t percentile(const struct sim_histogram *h, unsigned percent)
{
	uint64_t seen = 0, rank = (h->total * percent + 99) / 100;
	unsigned i = 0;

	for (; i + 1 < SIM_HISTOGRAM_BUCKETS; i++) {
		seen += h->count[i];
		if (seen >= rank)
			break;
	}
	return CLAMP((sim_histogram_ps(i) + sim_histogram_ps(i + 1)) / 2, h->min_ps, h->max_ps);
}

/* What the counters have counted since then; those of what is there stay. */
static void subtract(struct sim_counters *counters, const struct sim_counters *then)
{
	struct sim_counters now = *counters;
	uint64_t *each = (uint64_t *)counters;

	for (size_t i = 0; i < sizeof(*then) / sizeof(uint64_t); i++)
		each[i] -= ((const uint64_t *)then)[i];
	counters->tlb_l1_entries = now.tlb_l1_entries;
	counters->tlb_l2_entries = now.tlb_l2_entries;
	counters->tlb_live_bytes = now.tlb_live_bytes;
}

/* `late`: bytes at most that count before they pass. */
static struct bench_flow flow_of(uint64_t bytes, uint64_t bytes_per_us, uint64_t ps, uint64_t late)
{
	double most = (double)bytes_per_us * (double)ps / SIM_PS_PER_US;

	/* times are whole picoseconds, of pieces that take some hundred */
	return (struct bench_flow){ bytes, bytes_per_us,
				    (double)bytes > most * (1 + 1e-4) + (double)late };
}

static void get_flows(struct bench_result *out)
{
	const struct bench_request *r = bench.request;
	const struct sim_profile *p = r->profile;
	const struct sim_counters *c = &out->counters;
	uint64_t pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	uint64_t vector = MIN(r->engines, p->vector_cores), burst = p->hbm_burst * 8;

	out->flow[BENCH_CORES] = flow_of(out->bytes,
					 vector * p->vector_core_bytes_per_us +
						 (r->engines - vector) * p->core_bytes_per_us,
					 out->ps, 0);
	out->flow[BENCH_L2] =
		flow_of((c->l2_reads + c->l2_writes + c->l2_walk_reads) * p->l2_line_bytes,
			p->l2_bytes_per_us, out->ps, 0);
	/* A pseudo channel moves 16 bytes a clock; half its queue may be writes that are to come,
	 * of four bursts at most. */
	out->flow[BENCH_HBM] = flow_of(c->hbm_read_bytes + c->hbm_write_bytes,
				       pseudos * 16 * SIM_PS_PER_US / p->hbm_tck_ps, out->ps,
				       pseudos * p->hbm_queue / 2 * 4 * burst);
}

static void get_result(struct bench_result *out)
{
	const struct sim_histogram *h = &bench.latency;

	out->accesses = h->total;
	out->bytes = h->total * bench.request->access_bytes;
	out->min_ps = h->min_ps;
	out->mean_ps = h->total ? h->sum_ps / h->total : 0;
	out->p50_ps = percentile(h, 50);
	out->p90_ps = percentile(h, 90);
	out->p99_ps = percentile(h, 99);
	out->max_ps = h->max_ps;
	get_flows(out);
}

static char *check(const struct bench_request *r)
{
	const struct sim_profile *p = r->profile;
	uint64_t page = UINT64_C(1) << r->page_lg2;

	if (r->engines < 1 || r->engines > p->cube_cores + p->vector_cores)
		return g_strdup_printf("%u engines: %s has 1 to %u", r->engines, p->soc_name,
				       p->cube_cores + p->vector_cores);
	if (!r->bytes || r->bytes % page || r->bytes > p->usable_frames << 21)
		return g_strdup_printf("size %" G_GUINT64_FORMAT
				       ": must be whole pages of %" G_GUINT64_FORMAT
				       " bytes, at most the %" G_GUINT64_FORMAT " bytes of %s",
				       r->bytes, page, p->usable_frames << 21, p->soc_name);
	if (!r->access_bytes || r->access_bytes > r->bytes || r->bytes % r->access_bytes)
		return g_strdup_printf("access %" G_GUINT64_FORMAT
				       ": must divide the size, %" G_GUINT64_FORMAT,
				       r->access_bytes, r->bytes);
	if (r->pattern == BENCH_STRIDED && (!r->stride || r->stride % r->access_bytes))
		return g_strdup_printf("stride %" G_GUINT64_FORMAT
				       ": must be a multiple of the access, %" G_GUINT64_FORMAT,
				       r->stride, r->access_bytes);
	return r->accesses ? NULL : g_strdup("0 accesses: must be at least 1");
}

/* --- the commands of the HBM, in the format in which DRAMsim3 writes them for the verifiers of
 * DRAM models: clock, command, channel (a pseudo channel here), rank, bank group, bank, row,
 * column, in the order of time --- */

struct command {
	uint64_t clock;
	struct hbm_place place;
	enum hbm_command command;
};

static struct {
	FILE *file;
	GArray *all; /* struct command */
} commands;

static void add_command(enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	const struct command c = { clock, *place, command };

	g_array_append_val(commands.all, c);
}

/* Of the simulation that is opened next. Returns NULL, or what is wrong, to be g_free()d. */
static char *commands_begin(const char *path)
{
	commands.file = fopen(path, "we");
	commands.all = g_array_new(FALSE, FALSE, sizeof(struct command));
	hbm_record_next = (struct hbm_record){ .call = add_command };
	return commands.file ? NULL : g_strdup_printf("%s: %s", path, g_strerror(errno));
}

/* Of one clock and channel, precharges come before activations. */
static int compare_commands(gconstpointer a, gconstpointer b)
{
	const struct command *x = a, *y = b;

	if (x->clock != y->clock)
		return x->clock < y->clock ? -1 : 1;
	if (x->place.pseudo != y->place.pseudo)
		return x->place.pseudo < y->place.pseudo ? -1 : 1;
	return (y->command == HBM_PRECHARGE) - (x->command == HBM_PRECHARGE);
}

/* A refresh of bank `bank`, or of all (`banks` from 0 on), that begins at `clock`: the rows are
 * closed first. `open`: the rows of each channel's banks. */
static void add_refresh(const struct sim_profile *p, uint32_t *open, unsigned bank, unsigned count,
			uint64_t clock)
{
	unsigned pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	unsigned banks = p->hbm_bank_groups * p->hbm_banks;
	uint64_t closed = clock + p->hbm_clocks.rtp;

	for (unsigned pseudo = 0; pseudo < pseudos; pseudo++) {
		for (unsigned b = bank; b < bank + count; b++) {
			uint32_t *row = &open[pseudo * banks + b];

			if (*row != UINT32_MAX)
				add_command(HBM_PRECHARGE,
					    &(struct hbm_place){ pseudo, b, *row, 0 }, closed);
			*row = UINT32_MAX;
		}
		add_command(HBM_REFRESH, &(struct hbm_place){ pseudo, bank, 0, 0 },
			    closed + p->hbm_clocks.rp);
	}
}

static void add_refreshes(const struct sim_profile *p)
{
	unsigned banks = p->hbm_bank_groups * p->hbm_banks, each = p->hbm_refresh_per_bank;
	unsigned rows = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels * banks;
	uint64_t step = each ? p->hbm_clocks.refi_sb : p->hbm_clocks.refi;
	uint64_t next = each ? banks : 1; /* of the refreshes */
	g_autofree uint32_t *open = g_new(uint32_t, rows);
	guint count = commands.all->len;

	memset(open, 0xff, rows * sizeof(*open));
	for (guint i = 0; i < count; i++) {
		const struct command c = g_array_index(commands.all, struct command, i);

		for (; next * step <= c.clock; next++)
			add_refresh(p, open, each ? next % banks : 0, each ? 1 : banks,
				    next * step);
		if (c.command == HBM_ACTIVATE || c.command == HBM_PRECHARGE)
			open[c.place.pseudo * banks + c.place.bank] =
				c.command == HBM_ACTIVATE ? c.place.row : UINT32_MAX;
	}
}

/* Writes them. `bursts`: that the HBM has counted; with accesses so large that it books them in one
 * step, without commands, the file would not be whole. Returns as above. */
static char *commands_end(const struct sim_profile *p, uint64_t bursts)
{
	const char *const names[] = {
		[HBM_ACTIVATE] = "activate",
		[HBM_PRECHARGE] = "precharge",
		[HBM_READ] = "read",
		[HBM_WRITE] = "write",
		[HBM_REFRESH] = p->hbm_refresh_per_bank ? "refresh_bank" : "refresh",
	};
	uint64_t recorded = 0;

	g_array_sort(commands.all, compare_commands);
	if (p->hbm_refresh)
		add_refreshes(p);
	g_array_sort(commands.all, compare_commands);
	for (guint i = 0; i < commands.all->len; i++) {
		const struct command *c = &g_array_index(commands.all, struct command, i);

		recorded += c->command == HBM_READ || c->command == HBM_WRITE;
		fprintf(commands.file, "%-18" PRIu64 " %-12s %3u %3u %3u %3u %#10x %#6x\n",
			c->clock, names[c->command], c->place.pseudo, 0,
			c->place.bank / p->hbm_banks, c->place.bank % p->hbm_banks, c->place.row,
			c->place.column);
	}
	g_array_unref(commands.all);
	if (fclose(commands.file) != 0)
		return g_strdup_printf("the commands cannot be written: %s", g_strerror(errno));
	return recorded == bursts
		       ? NULL
		       : g_strdup("accesses of this size are booked in one step, without "
				  "commands: use a smaller --access");
}

/* --- a run --- */

static enum bench_status run(const struct bench_request *r, struct bench_result *out, char **error)
{
	struct sim_counters warm;

	*error = r->commands ? commands_begin(r->commands) : NULL;
	if (!*error)
		*error = server_open(&bench.server, r->profile, 1);
	if (!*error)
		*error = server_add(&bench.server, 0, r->profile->hbm_bytes, r->bytes, r->page_lg2);
	if (*error)
		return BENCH_FAILED;
	bench.lane = g_new0(struct lane, r->engines);
	for (unsigned i = 0; i < r->engines; i++)
		bench.lane[i].index = i;
	out->warmup_ps = run_accesses(r->warmup);
	sim_get_counters(bench.server.sim, 0, &warm);
	out->ps = run_accesses(r->accesses);
	sim_get_counters(bench.server.sim, 0, &out->counters);
	if (r->commands && (*error = commands_end(r->profile, out->counters.hbm_bursts)))
		return BENCH_FAILED;
	subtract(&out->counters, &warm);
	get_result(out);
	if (bench.status == SIM_OK)
		return BENCH_OK;
	*error = g_strdup_printf("the model faults at 0x%" G_GINT64_MODIFIER "x", bench.fault_va);
	return BENCH_FAILED;
}

enum bench_status npusim_bench_run(const struct bench_request *request, struct bench_result *out,
				   char **error)
{
	enum bench_status status;

	memset(&bench, 0, sizeof(bench));
	bench.request = request;
	if ((*error = check(request)))
		return BENCH_BAD_REQUEST;
	status = run(request, out, error);
	server_close(&bench.server);
	g_free(bench.lane);
	return status;
}

/* ---- what was measured on real devices and published, row by row, against the model: the figures
 * and where they come from are in published.ini, the constants that are fitted to them in
 * sim/profiles ---- */

#define NODE    (UINT64_C(1) << 30) /* of each node */
#define DEVICES 3

static const struct row {
	struct bench_published shown;
	struct {
		enum sim_call call;
		uint64_t pages;
	} calls[5];
	unsigned call_count;
	enum sim_engine engine;
	unsigned dst, src; /* nodes */
	unsigned copies;
	uint64_t creations, bytes;
} rows[] = {
#include "sim/published-data.h"
};

/* Device 0's page tables lie behind its node. */
static char *open_server(struct server *server, const struct sim_profile *profile)
{
	char *error = server_open(server, profile, DEVICES);

	for (unsigned node = 0; !error && node < DEVICES; node++)
		error = server_add(server, node, 2 * NODE, NODE, 21);
	error = error ?: server_add(server, SIM_NODE_HOST, 2 * NODE, NODE, 21);
	error = error ?: server_add(server, SIM_PEER(1, 0), NODE, NODE, 21);
	return error ?: server_add(server, SIM_PEER(1, SIM_NODE_HOST), NODE, NODE, 21);
}

static struct sim_ref ref_of(unsigned node, uint64_t offset)
{
	return (struct sim_ref){ .space = node < SIM_NODE_MAX ? (int)node : 0,
				 .va = server_va(node) + offset };
}

/* Microseconds that the copies take, one behind the other in one engine's queue. */
static double copy_us(struct server *server, const struct row *row)
{
	g_autofree struct sim_job *jobs = g_new0(struct sim_job, row->copies);
	uint64_t since = sim_host_ps(server->sim);

	for (unsigned i = 0; i < row->copies; i++) {
		jobs[i] = (struct sim_job){
			.kind = SIM_JOB_COPY,
			.engine = row->engine,
			.dst = ref_of(row->dst, i * row->bytes % NODE),
			.src = ref_of(row->src, i * row->bytes % NODE),
			.bytes = row->bytes,
			.contents_stay = true,
		};
		sim_submit(server->sim, &jobs[i]);
	}
	sim_drain(server->sim);
	return (double)(sim_host_ps(server->sim) - since) / SIM_PS_PER_US;
}

static double call_us(const struct sim_profile *p, enum sim_call call, uint64_t pages)
{
	return (double)sim_call_ps(p, call, pages, 21) / SIM_PS_PER_US;
}

/* In the row's unit. */
static double model(struct server *server, const struct sim_profile *p, const struct row *row)
{
	uint64_t stall = p->call[SIM_CALL_STALL].pages_per_message;
	double us = 0;

	if (row->call_count && row->copies) /* a program's: of many, its pages in the TLBs */
		copy_us(server, row);
	for (unsigned i = 0; i < row->call_count; i++)
		us += call_us(p, row->calls[i].call, row->calls[i].pages);
	if (row->creations)
		us = (double)row->creations *
			     (call_us(p, SIM_CALL_CREATE, 10) + call_us(p, SIM_CALL_MAP, 10)) +
		     call_us(p, SIM_CALL_STALL, row->creations * 10 / stall * stall);
	if (row->copies)
		us += copy_us(server, row);
	if (us > 0 && row->shown.unit[0] == 'G')
		return row->copies * (double)row->bytes / us / 1000;
	return row->shown.unit[0] == 'm' ? us / 1000 : us;
}

unsigned npusim_bench_published(struct bench_published *out, unsigned room, char **error)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(rows) && i < room; i++) {
		struct sim_profile profile;
		struct server server;

		if (!sim_profile_load(rows[i].shown.soc, &profile, error))
			return 0;
		*error = open_server(&server, &profile);
		out[i] = rows[i].shown;
		if (!*error)
			out[i].modelled = model(&server, &profile, &rows[i]);
		server_close(&server);
		if (*error)
			return 0;
	}
	return G_N_ELEMENTS(rows);
}
