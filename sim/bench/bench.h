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

enum bench_pattern { BENCH_SEQUENTIAL, BENCH_RANDOM, BENCH_STRIDED, BENCH_CHASE };
enum bench_operation { BENCH_READ, BENCH_WRITE, BENCH_MIXED };

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
};

struct bench_result {
	uint64_t accesses, bytes, ps;
	/* Of an access's latency, from its issue to its last byte. The percentiles are right to a
	 * thirty-second, and lie between min and max; the others are exact. */
	uint64_t min_ps, mean_ps, p50_ps, p90_ps, p99_ps, max_ps;
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

#endif
