/* SPDX-License-Identifier: Apache-2.0
 *
 * A small simulated server for the tests of sim.h: memory for its devices and host, a page table
 * for each space, and an open simulation. A test changes the profile before machine_open().
 */
#ifndef NPUSIM_TESTS_SIM_MACHINE_H
#define NPUSIM_TESTS_SIM_MACHINE_H

#include "sim/page-table.h"
#include "sim/sim.h"

#define MACHINE_DEVICES 3
#define MACHINE_BYTES   (UINT64_C(8) << 30) /* of each node; only touched pages cost */
#define MACHINE_VA      UINT64_C(0x12c000000000)
#define HUGE            (UINT64_C(1) << 21)

struct machine {
	struct sim_profile profile;
	struct sim_memory memory;
	struct sim *sim;
	struct page_table table[SIM_NODE_MAX];
	uint64_t next_table; /* offset in device 0's memory: tables lie at its end */
};

extern struct machine machine;

/* The profile and the memories; to be followed by machine_open(). */
void machine_setup(void);
void machine_open(bool timing);
void machine_close(void);

/* Maps pages and tells nobody. flags: PT_WRITE. */
void machine_map(int space, uint64_t va, uint64_t pa, unsigned lg2, uint64_t count, unsigned flags);
void machine_unmap(int space, uint64_t va, uint64_t bytes); /* and invalidates */
unsigned char *machine_at(unsigned node, uint64_t offset);

struct sim_job machine_copy(enum sim_engine engine, struct sim_ref dst, struct sim_ref src,
			    uint64_t bytes);
struct sim_ref machine_raw(const void *pointer);
struct sim_ref machine_ref(int space, uint64_t va);

#endif
