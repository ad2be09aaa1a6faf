/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens simulations, and maps their memory.
 */
#include "server.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>

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

char *server_open(struct server *server, const struct sim_profile *profile, unsigned devices)
{
	const struct sim_config config = { profile, &server->memory, devices, true, NULL };
	char *error = NULL;

	memset(server, 0, sizeof(*server));
	server->sim = sim_open(&config, &error);
	return error;
}

char *server_add(struct server *server, unsigned node, uint64_t bytes, uint64_t mapped,
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

void server_close(struct server *server)
{
	sim_close(server->sim);
	for (unsigned node = 0; node < SIM_MEMORY_MAX; node++)
		if (server->memory.base[node])
			munmap(server->memory.base[node], server->memory.bytes[node]);
}
