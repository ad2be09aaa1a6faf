/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured on real devices and published, row by row, against the model. The figures and
 * where they come from are in published.ini; the constants that are fitted to them are in
 * sim/profiles.
 */
#include "bench.h"

#include <glib.h>

#include "server.h"

#define NODE    (UINT64_C(1) << 30) /* of each node */
#define DEVICES 3

static const struct row {
	struct bench_published shown;
	enum sim_call call;
	enum sim_engine engine;
	unsigned dst, src; /* nodes */
	unsigned copies;
	uint64_t pages, creations, bytes;
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

	if (row->pages)
		us = call_us(p, row->call, row->pages);
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
