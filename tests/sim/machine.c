/* SPDX-License-Identifier: Apache-2.0
 *
 * The small server of machine.h.
 */
#include "machine.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness/test.h"

struct machine machine;

static uint64_t alloc_table(void *ctx)
{
	uint64_t offset = MACHINE_BYTES - (machine.next_table += 4096);

	(void)ctx;
	return SIM_PA(0, offset);
}

/* Tables are not used again: a stale walk would then find zeros and not another table. */
static void free_table(void *ctx, uint64_t pa)
{
	(void)ctx;
	(void)pa;
}

static void add_node(unsigned node)
{
	void *at = mmap(NULL, MACHINE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ASSERT_NE(at, MAP_FAILED);
	machine.memory.base[node] = at;
	machine.memory.bytes[node] = MACHINE_BYTES;
}

void machine_setup(void)
{
	const struct pt_host host = { alloc_table, free_table, NULL, &machine.memory };
	char *error = NULL;

	memset(&machine, 0, sizeof(machine));
	ASSERT_TRUE(sim_profile_load("Ascend910B1", &machine.profile, &error));
	for (unsigned i = 0; i < MACHINE_DEVICES; i++)
		add_node(i);
	add_node(SIM_NODE_HOST);
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		pt_init(&machine.table[i], &host);
}

void machine_open(bool timing)
{
	const struct sim_config config = { &machine.profile, &machine.memory, MACHINE_DEVICES,
					   timing, NULL };
	char *error = NULL;

	machine.sim = sim_open(&config, &error);
	if (!machine.sim)
		FAIL("%s", error);
}

void machine_close(void)
{
	sim_close(machine.sim);
	machine.sim = NULL;
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		pt_destroy(&machine.table[i]);
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (machine.memory.base[i])
			munmap(machine.memory.base[i], machine.memory.bytes[i]);
}

void machine_map(int space, uint64_t va, uint64_t pa, unsigned lg2, uint64_t count, unsigned flags)
{
	struct page_table *table = &machine.table[space];
	bool first = !table->root_pa;

	ASSERT_TRUE(pt_map(table, va, pa, lg2, count, flags));
	if (first)
		sim_set_root(machine.sim, space, table->root_pa);
}

void machine_unmap(int space, uint64_t va, uint64_t bytes)
{
	pt_unmap(&machine.table[space], va, bytes);
	sim_invalidate(machine.sim, space, va, bytes);
}

unsigned char *machine_at(unsigned node, uint64_t offset)
{
	return machine.memory.base[node] + offset;
}

struct sim_job machine_copy(enum sim_engine engine, struct sim_ref dst, struct sim_ref src,
			    uint64_t bytes)
{
	return (struct sim_job){
		.kind = SIM_JOB_COPY, .engine = engine, .dst = dst, .src = src, .bytes = bytes
	};
}

struct sim_ref machine_raw(const void *pointer)
{
	return (struct sim_ref){ .space = SIM_RAW, .va = (uintptr_t)pointer };
}

struct sim_ref machine_ref(int space, uint64_t va)
{
	return (struct sim_ref){ .space = space, .va = va };
}
