/* SPDX-License-Identifier: Apache-2.0
 *
 * What the interface of the model (sim.h) and its blocks have in common: physical addresses,
 * memory, jobs and their histograms, the configuration and the counters of a simulation. Plain C,
 * no state.
 */
#ifndef NPUSIM_SIM_JOB_H
#define NPUSIM_SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nodes are memories: the HBM of the server's devices are nodes 0 .. devices - 1, memory of its
 * host is SIM_NODE_HOST; node n of server k of the supernode is SIM_PEER(k, n). */
#define SIM_NODE_MAX        32
#define SIM_NODE_HOST       31
#define SIM_SERVERS         48
#define SIM_PEER(server, n) (((server) + 1u) * SIM_NODE_MAX + (n))
#define SIM_PEER_SERVER(n)  ((n) / SIM_NODE_MAX - 1u)
#define SIM_MEMORY_MAX      SIM_PEER(SIM_SERVERS, 0u)

/* What reading or writing a node of another server is. */
static inline enum sim_remote sim_remote_of(unsigned node, bool write)
{
	return (enum sim_remote)(
		(node % SIM_NODE_MAX == SIM_NODE_HOST ? SIM_REMOTE_HOST_READ : SIM_REMOTE_READ) +
		write);
}

/* Physical addresses have 48 bits. Below 48 TiB lies the server's own memory: its devices 2 TiB
 * apart, then its host's. Above lies what other servers have, in the windows of the driver
 * (devdrv_s2s_msg.h, devmm_common.h): a device at 48 TiB + server x 1 TiB + chip x 128 GiB + die x
 * 64 GiB, a host at 128 TiB + server x 2728 GiB. */
#define SIM_NODE_LG2      41
#define SIM_HOST_LG2      43
#define SIM_PEER_LG2      36
#define SIM_PEER_HOST     (UINT64_C(2728) << 30)
#define SIM_PA_HOST       (UINT64_C(32) << 40)
#define SIM_PA_PEERS      (UINT64_C(48) << 40)
#define SIM_PA_PEER_HOSTS (UINT64_C(128) << 40)

static inline uint64_t SIM_PA(unsigned node, uint64_t offset)
{
	uint64_t server = SIM_PEER_SERVER(node), n = node % SIM_NODE_MAX;

	if (node < SIM_NODE_HOST)
		return (uint64_t)node << SIM_NODE_LG2 | offset;
	if (node == SIM_NODE_HOST)
		return SIM_PA_HOST + offset;
	if (n == SIM_NODE_HOST)
		return SIM_PA_PEER_HOSTS + server * SIM_PEER_HOST + offset;
	return SIM_PA_PEERS + (server << 40) + (n << SIM_PEER_LG2) + offset;
}

/* The node of an address, and how far into it that is; SIM_MEMORY_MAX: no node's. */
static inline unsigned sim_pa_find(uint64_t pa, uint64_t *offset)
{
	uint64_t peer = pa - SIM_PA_PEERS, host = pa - SIM_PA_PEER_HOSTS;

	if (pa < SIM_PA_HOST) {
		*offset = pa & ((UINT64_C(1) << SIM_NODE_LG2) - 1);
		return (unsigned)(pa >> SIM_NODE_LG2);
	}
	*offset = pa - SIM_PA_HOST;
	if (pa < SIM_PA_PEERS)
		return SIM_NODE_HOST;
	if (peer < (uint64_t)SIM_SERVERS << 40) {
		*offset = peer & ((UINT64_C(1) << SIM_PEER_LG2) - 1);
		return SIM_PEER((unsigned)(peer >> 40), (unsigned)(peer >> SIM_PEER_LG2 & 15));
	}
	*offset = host % SIM_PEER_HOST;
	return pa >= SIM_PA_PEER_HOSTS && host < SIM_SERVERS * SIM_PEER_HOST
		       ? SIM_PEER((unsigned)(host / SIM_PEER_HOST), SIM_NODE_HOST)
		       : SIM_MEMORY_MAX;
}

static inline unsigned SIM_PA_NODE(uint64_t pa)
{
	uint64_t offset;

	return sim_pa_find(pa, &offset);
}

static inline uint64_t SIM_PA_OFFSET(uint64_t pa)
{
	uint64_t offset;

	(void)sim_pa_find(pa, &offset);
	return offset;
}

#define SIM_PS_PER_NS UINT64_C(1000)
#define SIM_PS_PER_US UINT64_C(1000000)
#define SIM_PS_PER_MS UINT64_C(1000000000)
#define SIM_NEVER     UINT64_MAX

/* Where the bytes of each node lie in this process; NULL for a node that is not there. The table is
 * read at every access, so an entry may be filled in later, before its first use. */
struct sim_memory {
	unsigned char *base[SIM_MEMORY_MAX + 1]; /* the last is NULL, for addresses of no node */
	uint64_t bytes[SIM_MEMORY_MAX + 1];
};

/* Where the byte at pa lies, and how many follow it in its node (0, NULL: there is none). */
static inline unsigned char *sim_memory_at(const struct sim_memory *memory, uint64_t pa,
					   uint64_t *out_bytes)
{
	uint64_t offset;
	unsigned node = sim_pa_find(pa, &offset);

	*out_bytes = 0;
	if (!memory->base[node] || offset >= memory->bytes[node])
		return NULL;
	*out_bytes = memory->bytes[node] - offset;
	return memory->base[node] + offset;
}

/* One of several requests of as many bytes that are handed on together. Those that pass the L2 so
 * lie within SIM_ROW_BYTES, aligned, each. */
#define SIM_ROWS_MAX  64u
#define SIM_ROW_BYTES 4096u
struct sim_row {
	uint64_t address;
	uint64_t at_ps;             /* when it is there, in the model's time */
	uint64_t first_ps, done_ps; /* the answer: when its first and its last byte are there */
};

/* A place to read or write. */
struct sim_ref {
	int space;   /* device whose page table translates va, SIM_NODE_HOST for the host's, or
			SIM_RAW */
	uint64_t va; /* virtual address there; with SIM_RAW a pointer of this process, not
			translated */
	int pid;     /* SIM_RAW: 0 for memory that stays as long as the job; else this process's id:
			it may go meanwhile, and the kernel moves its bytes (transport/loose.h) */
};
#define SIM_RAW (-1)

/* Engines. Each moves one job at a time, in the order of submission; engines run side by side and
 * share TLBs, walkers, memories and links. A core that only reads or writes begins the next job
 * while the last one's answers are under way. */
enum sim_engine {
	SIM_ENGINE_SDMA, /* the device's own copy engine: device to device, fills */
	SIM_ENGINE_H2D,  /* host link, towards the device (PCIe DMA or HCCS) */
	SIM_ENGINE_D2H,  /* host link, from the device */
	SIM_ENGINE_CORE, /* an AI core's memory path (MTE); job.core says which: replayed accesses
			    and microbenchmarks */
	SIM_ENGINE_COUNT
};

enum sim_job_kind {
	SIM_JOB_COPY,  /* bytes from src to dst */
	SIM_JOB_FILL,  /* bytes at dst from pattern, repeated every pattern_bytes (1, 2 or 4) */
	SIM_JOB_READ,  /* bytes at src read, nothing kept: time, TLB and row state only */
	SIM_JOB_WRITE, /* bytes at dst written in time only: contents stay */
	SIM_JOB_DELAY  /* delay_ps of the engine's time */
};

enum sim_status {
	SIM_OK,
	SIM_FAULT_TRANSLATION, /* no valid descriptor for fault_va in fault_space */
	SIM_FAULT_PERMISSION,  /* write to a page mapped read-only */
	SIM_FAULT_ADDRESS,     /* a descriptor points at memory that is not there */
	SIM_FAULT_HOST,        /* SIM_RAW memory at fault_va is gone, or not to be written */
	SIM_NO_MEMORY          /* this process has none for the job; no fault_va */
};

/* How many requests took how long: 16 buckets for each power of two of picoseconds; and exactly,
 * how many there were, their sum, the shortest and the longest. */
#define SIM_HISTOGRAM_BUCKETS 976
struct sim_histogram {
	uint64_t count[SIM_HISTOGRAM_BUCKETS];
	uint64_t total, sum_ps, min_ps, max_ps;
};

/* The bucket of a time. */
static inline size_t sim_histogram_bucket(uint64_t ps)
{
	size_t lg2 = (63 ^ (size_t)__builtin_clzll(ps | 16)) - 4;

	return lg2 * 16 + (ps >> lg2);
}

/* The least time of bucket i. */
static inline uint64_t sim_histogram_ps(unsigned i)
{
	return i < 32 ? i : (uint64_t)(16 + i % 16) << (i / 16 - 1);
}

struct sim_job;
/* Called at the job's simulated completion, from inside the model, the caller's lock held. It may
 * submit further jobs. */
typedef void (*sim_done_fn)(struct sim_job *job);

struct sim_job {
	/* set by the caller, not touched by it until done */
	enum sim_job_kind kind;
	enum sim_engine engine;
	unsigned device; /* whose engine, 0 .. devices - 1 */
	unsigned core;   /* SIM_ENGINE_CORE: 0 .. cores - 1; cube cores first, then vector cores */
	struct sim_ref dst, src;
	uint64_t bytes;
	/* SIM_JOB_READ and SIM_JOB_WRITE: rows of row_bytes that begin pitch_bytes apart, as of a
	 * two-dimensional copy; bytes is the sum of them. 0: one stretch. */
	uint64_t row_bytes, pitch_bytes;
	/* Where row `row` of the job begins, from src.va or dst.va on, for patterns of other kinds;
	 * asked some rows ahead. NULL: row x pitch_bytes. */
	uint64_t (*row_offset)(const struct sim_job *job, uint64_t row);
	/* SIM_JOB_READ, SIM_JOB_WRITE of a core: counts each request's latency; may be NULL */
	struct sim_histogram *latency;
	uint32_t pattern;
	unsigned pattern_bytes;
	uint64_t delay_ps;
	bool contents_stay; /* SIM_JOB_COPY and SIM_JOB_FILL: in time only */
	uint64_t start_ps;  /* not before this time; raised to the time at submission: the host's,
			       in a done call the model's */
	uint64_t sent_ps;   /* since when its queue has it, behind one that ends when it is handed
			       over; 0: since start_ps */
	sim_done_fn done;   /* may be NULL */
	void *arg;
	/* set by the model, valid from done on */
	enum sim_status status; /* bytes before the fault have been moved */
	int fault_space;
	uint64_t fault_va;
	uint64_t begin_ps, finish_ps;
	uint64_t moved_bytes;
	/* the model's own */
	struct sim_job *next;
	void *model;
};

/* As many are moved faster than a lock changes hands. */
#define SIM_FEW_BYTES UINT64_C(4096)

/* The caller's lock, seen from inside: a simulation lets go of it while bytes move, and offers it
 * between two events, or behind a job of a few bytes that is alone, and within a long one. Others
 * may call meanwhile; the simulation may not be closed. */
struct sim_lock {
	void (*release)(void *arg);
	void (*take)(void *arg);
	bool (*is_awaited)(void *arg); /* whether an offer is worth while */
	void (*wait)(void *arg);       /* lets go of it until another thread has taken it again */
	void *arg;
	unsigned away; /* the model's own: threads that have let go of it inside the model */
};

/* Between two steps, of the model or of one event: who waits for the lock has it. May be NULL. */
static inline void sim_lock_offer(struct sim_lock *lock)
{
	if (lock == NULL || !lock->is_awaited(lock->arg))
		return;
	lock->away++;
	lock->release(lock->arg);
	lock->take(lock->arg);
	lock->away--;
}

struct sim_config {
	const struct sim_profile *profile; /* borrowed, for the life of the simulation */
	const struct sim_memory *memory;   /* borrowed */
	unsigned devices;                  /* 1 .. 16 */
	bool timing; /* false: every job completes at once, at the host's time, and driver calls
			cost nothing */
	struct sim_lock *lock; /* borrowed; NULL: nobody else calls */
};

/* Counters of one device since the start. The names follow msprof's soc_pmu where it has them. */
struct sim_counters {
	uint64_t tlb_requests, tlb_l1_hits, tlb_l2_hits, tlb_misses;
	uint64_t walks, walk_levels, walk_cache_hits, walk_ps;
	uint64_t tlb_l1_entries, tlb_l2_entries; /* capacities: reach = entries x page size */
	uint64_t tlb_live_bytes;                 /* bytes that the L2 TLB covers now */
	uint64_t l2_reads, l2_read_hits, l2_writes, l2_write_hits; /* lines of data */
	uint64_t l2_walk_reads, l2_walk_hits; /* lines with descriptors that walks read */
	uint64_t l2_conflicts; /* requests that met another to the same 512 bytes in the L2 */
	uint64_t hbm_read_bytes, hbm_write_bytes, hbm_refreshes;
	/* Requests of a bank, each a piece of one row, that found it open, or had to open it; and
	 * all of their bursts. */
	uint64_t hbm_row_hits, hbm_row_misses, hbm_bursts;
};

#ifdef __cplusplus
}
#endif

#endif
