/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulation with memory and page tables of its own, without a driver.
 */
#ifndef NPUSIM_SIM_BENCH_SERVER_H
#define NPUSIM_SIM_BENCH_SERVER_H

#include "sim/page-table.h"
#include "sim/sim.h"

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

/* NULL, or what is wrong, to be g_free()d; server_close() in either case. The profile is borrowed.
 */
char *server_open(struct server *server, const struct sim_profile *profile, unsigned devices);
/* Memory of `bytes`, of which the first `mapped` are at server_va() of the node's space, of another
 * server's node of device 0's, in pages of 2^page_lg2 bytes. Tables lie in what is left of device
 * 0's, which is added first. */
char *server_add(struct server *server, unsigned node, uint64_t bytes, uint64_t mapped,
		 unsigned page_lg2);
void server_close(struct server *server);

#endif
