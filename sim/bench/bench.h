/* SPDX-License-Identifier: Apache-2.0
 *
 * Access patterns on the model of one device, with their own memory and page tables, without a
 * driver. It is a module of its own (bench.so), so that what needs no model needs no SystemC.
 */
#ifndef NPUSIM_SIM_BENCH_BENCH_H
#define NPUSIM_SIM_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

enum bench_pattern { BENCH_SEQUENTIAL, BENCH_RANDOM, BENCH_STRIDED, BENCH_CHASE, BENCH_TRACE };
enum bench_operation { BENCH_READ, BENCH_WRITE, BENCH_MIXED };

/* An access of BENCH_TRACE. */
#define BENCH_ACCESS(address, write) ((uint64_t)(address) << 1 | ((write) != 0))
#define BENCH_ADDRESS(access)        ((access) >> 1)
#define BENCH_WRITES(access)         ((access)&1)

struct bench_request {
	const struct sim_profile *profile;
	enum bench_pattern pattern;
	enum bench_operation operation; /* MIXED: batches of reads and of writes in turn */
	unsigned engines;               /* vector cores first, then cube cores */
	unsigned page_lg2;              /* 12, 21 or 30 */
	uint64_t bytes;                 /* of memory that the pattern goes over: whole pages */
	uint64_t access_bytes;          /* of one access; divides bytes */
	uint64_t stride;                /* STRIDED */
	uint64_t accesses;              /* of all engines together */
	uint64_t warmup;                /* accesses before those that are measured */
	uint64_t seed;                  /* RANDOM, CHASE */
	const uint64_t *traced;         /* TRACE, over and over: below `bytes`; no `operation` */
	uint64_t traced_count;
	const char *commands; /* file for the commands of the HBM, as DRAMsim3 has them; or NULL */
	void (*progress)(uint64_t done, void *data); /* accesses of both; may be NULL */
	void *data;
};

/* What passes a stage while accesses are measured, and the most that can: above, the model errs. */
enum bench_stage { BENCH_CORES, BENCH_L2, BENCH_HBM, BENCH_STAGES };
struct bench_flow {
	uint64_t bytes, bytes_per_us;
	bool over;
};

struct bench_result {
	/* Of the measured accesses, from the first one's issue to the last one's last byte; the
	 * counters are theirs, too. */
	uint64_t accesses, bytes, ps;
	uint64_t warmup_ps;
	/* Of an access's latency, from its issue to its last byte. The percentiles are right to a
	 * thirty-second, and lie between min and max; the others are exact. */
	uint64_t min_ps, mean_ps, p50_ps, p90_ps, p99_ps, max_ps;
	struct bench_flow flow[BENCH_STAGES];
	struct sim_counters counters;
};

enum bench_status {
	BENCH_OK,
	BENCH_BAD_REQUEST, /* a value of the request is out of range */
	BENCH_FAILED       /* the model cannot be built, or faults */
};

/* Where the answer is not BENCH_OK, *error is a message to be g_free()d. */
typedef enum bench_status (*bench_run_fn)(const struct bench_request *request,
					  struct bench_result *out, char **error);
__attribute__((visibility("default"))) enum bench_status
npusim_bench_run(const struct bench_request *request, struct bench_result *out, char **error);

/* One published measurement, and the model's answer to the same. */
struct bench_published {
	const char *soc, *what, *unit, *source;
	const char *note; /* why they differ, where they do; "" else */
	double measured;
	double expected; /* measured / modelled, within 10 %: 1, unless the note says why not */
	double modelled; /* 0: nothing stands for it */
	bool remote;     /* memory of another server */
};
/* Fills up to `room` rows. Returns how many there are; 0, *error (g_free): there is no model. */
typedef unsigned (*bench_published_fn)(struct bench_published *out, unsigned room, char **error);
__attribute__((visibility("default"))) unsigned npusim_bench_published(struct bench_published *out,
								       unsigned room, char **error);

#endif
