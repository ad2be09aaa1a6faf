/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between devices and host as programs see them: who waits for whom, and who shares.
 */
#include "harness/test.h"
#include "machine.h"

#define PIECES 16 /* of 2 MiB, of each copy */

static struct sim_job jobs[8];

SETUP(links)
{
	machine_setup();
}

TEARDOWN(links)
{
	machine_close();
}

static void map_nodes(const char *soc)
{
	char *error = NULL;

	ASSERT_TRUE(sim_profile_load(soc, &machine.profile, &error));
	machine_open(true);
	for (int node = 0; node < MACHINE_DEVICES; node++)
		machine_map(node, MACHINE_VA, SIM_PA(node, 0), 21, 2 * PIECES, PT_WRITE);
	machine_map(SIM_NODE_HOST, MACHINE_VA, SIM_PA(SIM_NODE_HOST, 0), 21, 2 * PIECES, PT_WRITE);
}

/* A request that is translated at once does not wait for the link because one that was issued
 * before it will need the link later, after its walk. */
TEST(links, late_request_does_not_block_an_early_one)
{
	uint64_t alone;

	map_nodes("Ascend910B1");
	for (unsigned i = 0; i < 3; i++) {
		jobs[i] = (struct sim_job){ .kind = SIM_JOB_READ,
					    .engine = SIM_ENGINE_CORE,
					    .core = i,
					    .src = machine_ref(SIM_NODE_HOST, MACHINE_VA),
					    .bytes = 512 };
	}
	jobs[0].src.va += HUGE; /* core 0: a page that nobody has used */
	jobs[2].core = 1;       /* core 1 brings its page into its TLB */
	ASSERT_EQ(sim_execute(machine.sim, &jobs[2]), SIM_OK);
	ASSERT_EQ(sim_execute(machine.sim, &jobs[2]), SIM_OK);
	alone = jobs[2].finish_ps - jobs[2].begin_ps;
	sim_submit(machine.sim, &jobs[0]);
	sim_submit(machine.sim, &jobs[1]);
	sim_drain(machine.sim);
	EXPECT_GT(jobs[0].finish_ps - jobs[0].begin_ps, alone);
	EXPECT_EQ(jobs[1].finish_ps - jobs[1].begin_ps, alone);
}

/* Two copies at once: through one link each gets half of it, and neither is first; the two
 * directions of a link do not wait for one another. */
struct pair {
	const char *title, *soc;
	struct {
		enum sim_engine engine;
		unsigned device;
		int dst, src;
	} job[2];
	double gb_s; /* of both */
};

#define HOST SIM_NODE_HOST

static const struct pair pairs[] = {
	{ "to_device",
	  "Ascend910B1",
	  { { SIM_ENGINE_H2D, 0, 0, HOST }, { SIM_ENGINE_SDMA, 0, 0, HOST } },
	  25 },
	{ "to_host",
	  "Ascend910B1",
	  { { SIM_ENGINE_D2H, 0, HOST, 0 }, { SIM_ENGINE_SDMA, 0, HOST, 0 } },
	  25 },
	{ "from_peer",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  23.4 }, /* one reads at 27.3, one writes at 20.5, each half of the time */
	{ "from_other_die",
	  "Ascend910_9391",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  270 },
	{ "host_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_H2D, 0, 0, HOST }, { SIM_ENGINE_D2H, 0, HOST, 0 } },
	  2 * 25 },
	{ "peer_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 1, 0 } },
	  2 * 27.3 },
	{ "peer_written_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 1, 0 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  2 * 20.5 },
	{ "other_chip_written_both_ways",
	  "Ascend910_9391",
	  { { SIM_ENGINE_SDMA, 0, 2, 0 }, { SIM_ENGINE_SDMA, 2, 0, 2 } },
	  2 * 138 },
};

TEST_EACH(links, two_copies_at_once, pairs, title)
{
	const struct pair *pair = param;
	double us[2];

	map_nodes(pair->soc);
	for (unsigned i = 0; i < 2; i++) {
		jobs[i] =
			machine_copy(pair->job[i].engine, machine_ref(pair->job[i].dst, MACHINE_VA),
				     machine_ref(pair->job[i].src, MACHINE_VA), PIECES * HUGE);
		jobs[i].device = pair->job[i].device;
		sim_submit(machine.sim, &jobs[i]);
	}
	sim_drain(machine.sim);
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(jobs[i].status, SIM_OK);
		us[i] = (double)(jobs[i].finish_ps - jobs[i].begin_ps) / SIM_PS_PER_US;
	}
	EXPECT_NEAR(us[0], us[1], 0.05 * us[0]);
	EXPECT_NEAR(2.0 * PIECES * HUGE / us[0] / 1000, pair->gb_s, 0.05 * pair->gb_s);
}

/* A device's own copy does not wait in its memory for bytes that a link is yet to bring or take. */
static const struct pair flows[] = {
	{ "peer_writes", "Ascend910B1", { { SIM_ENGINE_SDMA, 0, 1, 0 } }, 0 },
	{ "other_die_writes", "Ascend910_9391", { { SIM_ENGINE_SDMA, 0, 1, 0 } }, 0 },
	{ "peer_reads", "Ascend910B1", { { SIM_ENGINE_SDMA, 0, 0, 1 } }, 0 },
	{ "from_host", "Ascend910B1", { { SIM_ENGINE_H2D, 1, 1, HOST } }, 0 },
	{ "to_host", "Ascend910B1", { { SIM_ENGINE_D2H, 1, HOST, 1 } }, 0 },
};

/* Of the device's pages [first, first + PIECES / 2), to those behind; takes so long. */
static uint64_t own_copy(unsigned first)
{
	uint64_t at = MACHINE_VA + first * HUGE;

	jobs[0] = machine_copy(SIM_ENGINE_SDMA, machine_ref(1, at + PIECES / 2 * HUGE),
			       machine_ref(1, at), PIECES / 2 * HUGE);
	jobs[0].device = 1;
	EXPECT_EQ(sim_execute(machine.sim, &jobs[0]), SIM_OK);
	return jobs[0].finish_ps - jobs[0].begin_ps;
}

TEST_EACH(links, own_copy_beside_one_over_a_link, flows, title)
{
	const struct pair *flow = param;
	uint64_t alone, beside;

	map_nodes(flow->soc);
	alone = own_copy(0);
	jobs[1] = machine_copy(flow->job[0].engine, machine_ref(flow->job[0].dst, MACHINE_VA),
			       machine_ref(flow->job[0].src, MACHINE_VA), PIECES * HUGE);
	jobs[1].device = flow->job[0].device;
	sim_submit(machine.sim, &jobs[1]);
	beside = own_copy(PIECES);
	sim_drain(machine.sim);
	EXPECT_GT(jobs[1].finish_ps, jobs[0].finish_ps);
	EXPECT_LT(beside, alone + alone / 2);
}
